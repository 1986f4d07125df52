package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
	"github.com/newsfork/seed-engine/transforms/catalog/sites"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// Catalog is the catalog job's graph: list pages become products in a database.
func Catalog(s beam.Scope, cfg catalog.Config) {
	sites := catalog.Sites(s, cfg)
	crawled := catalog.Visit(s, cfg, sites)
	lane.Total(s, cfg.Lane, crawled)
}

const (
	queueLength   = 64 // tasks that may wait for each stage of a site
	taggers       = 1  // requests that a site has in flight at --tag-url
	imageFetchers = 2  // of a site, with --images; a host gets one request at a time
)

// catalogOptions are the catalog job's own options: those of the launcher, and those of the workers.
type catalogOptions struct {
	Sites, Site, Try string
	DemoEdition      int
	History          latest
	catalog.Config

	joining
	loaded []catalog.Site
	off    map[string]string // why a site is not crawled, by people's changes
}

func catalogJob() Job {
	o := &catalogOptions{}
	o.joining = joining{words: siteKind.Words, resolve: o.resolve}
	return Job{
		Job: ledger.Job{Name: catalog.Job, Title: "Catalog", Counts: catalog.Counts(),
			Stages: []ledger.Stage{
				{Name: "listed", Unit: "sites", Counts: []string{ledger.LaneHosts}},
				{Name: "lists read", Unit: "list pages", Counts: []string{"list_pages_fetched"}},
				{Name: "found", Unit: "products", Counts: []string{"product_urls_found"}},
				{Name: "fetched", Unit: "products", Counts: []string{"detail_pages_fetched"}, Apart: []string{"failed_tasks"}},
				{Name: "saved", Unit: "products", Counts: []string{"products_saved"}, Apart: []string{"products_new", "products_changed", "products_unchanged"}},
				{Name: "crawled", Unit: "sites", Counts: []string{ledger.LaneHostsDone}, Apart: []string{"sites_failed", "sites_held"}},
			},
			Warnings: catalog.Warnings(), Source: "site",
			Purpose: ledger.Purpose{Sites: catalog.SitesCrawled, SitesFailed: catalog.SitesFailed, SitesHeld: catalog.SitesHeld},
			Path:    "/api/v1/catalog/runs", Done: "products_saved", Failed: "failed_tasks", Alerts: alert.Rules(),
		}, SQL: true,
		Keeps: []string{catalog.Images.Root()}, Tables: []string{"catalog_crawls", "catalog_products"},
		Audit: catalog.Images.Audit,
		Rows:  catalog.Rows(), Removal: new(catalog.Removal()), Policies: siteKind, Commands: o.initCommands(),
		Options: o.options, Check: o.check, Accept: o.accept, Offer: o.offer, Instead: o.instead,
		Demo:       o.demo,
		DemoNotice: "Demo: simulated sites (demo data); pauses between requests are turned off for them",
		Config:     func(c RunOptions, l lane.Config, _ string) any { return o.config(c, l) },
		Build:      func(s beam.Scope, config any) { Catalog(s, config.(catalog.Config)) },
		LiveCount:  "products_saved", Unit: "products",
		Live: [][2]string{{"list_pages_fetched", "lists"}, {"product_urls_found", "found"}, {"detail_pages_fetched", "fetched"},
			{"products_saved", "saved"}, {"failed_tasks", "failed"}},
		Extend: extendCatalog,
		Reopen: reopenIn(catalog.Migrate, catalog.Reopen),
	}
}

// demo adds the simulated sites.
func (c *catalogOptions) demo(w *webtest.Web) {
	matter, gadgets := catalogsim.Install(w.Handle)
	catalogsim.InstallShops(w.Handle)
	for range c.DemoEdition {
		matter.Change()
		gadgets.Change()
	}
}

func (c *catalogOptions) options(s *option.Set) {
	s.Take(slices.Concat(requesting, costed, []string{"concurrency", "rate", "host-delay", "max-crawl-delay", "db", "force", "allow-unsandboxed-browser", "images"})...)
	s.Default("host-delay", "1s")
	workers := func(p *int, name string, value int, usage string) {
		s.Number(p, name, value, usage).Range(1, 10_000).Is(option.Tuning)
	}
	s.Text(&c.Sites, "sites", "", "directory with one YAML file for each site (default: those shipped with the program; with --web=demo also the simulated ones)").In(option.What)
	s.Names(&c.Site, "site", "only these sites, by name, separated by commas, or the one whose YAML file is named", "Only these sites", "names of sites").
		NotEmpty("name sites, or leave it out for all").Is(option.Selects | option.Extent).In(option.What)
	s.Text(&c.Try, "try", "", "fetch this page alone, print what its site's file reads from it and what nearly matches, and save nothing").Is(option.OneRun).In(option.What)
	s.Text(&c.Tagging.Endpoint, "tag-url", "", "an OpenAI-compatible endpoint, such as http://localhost:11434/v1, whose model tags new and changed products; its key: "+catalog.TagKey+" in the environment of the workers")
	s.Text(&c.Tagging.Model, "tag-model", "default", "with --tag-url: the model's name; an endpoint with one model alone may not need it")
	workers(&c.ListFetchers, "list-fetchers", 2, "workers that fetch list pages, for each site")
	workers(&c.ListParsers, "list-parsers", 1, "workers that read list pages, for each site")
	workers(&c.DetailFetchers, "detail-fetchers", 8, "workers that fetch product pages, for each site; with a pause between requests only one works at a time")
	workers(&c.DetailParsers, "detail-parsers", 2, "workers that read product pages, for each site")
	workers(&c.Savers, "savers", 1, "workers that write products to the database, for each site")
	s.Number(&c.StopAfterKnown, "stop-after-known", 0, "stop reading the list after this many pages without a new product; 0: read the whole list").
		Range(0, 1_000_000).Says("use 0 or more, at most 1000000").Asked("Stop after known pages", "").Is(option.Extent)
	s.Text(&c.Details, "details", catalog.DetailsAll, "which products' pages are fetched: all; new: only of products that are not stored yet; "+
		"incomplete: also of those that lack a required field. The list is read in any case").
		OneOf(catalog.DetailsAll, catalog.DetailsNew, catalog.DetailsIncomplete).Asked("Product pages", "all, new or incomplete").Is(option.Extent)
	s.Other(&c.History, "history", "print the latest changes of products' values, newest first; --history=SITE: of one site; --history=SITE/KEY: of one product, with its current values").Is(option.OneRun)
	s.Number(&c.DemoEdition, "demo-changes", 0, "with --web=demo: how many times every tenth simulated product has changed").Range(0, 9).Is(option.Tuning)
}

func (c *catalogOptions) check(o *RunOptions) error {
	switch {
	case c.History.given && c.Try != "":
		return usage.Errorf("--history and --try: use one at a time")
	case c.Tagging.Check() != nil:
		return usage.Errorf("--tag-url=%s --tag-model=%s: %w", ledger.Redact(c.Tagging.Endpoint), c.Tagging.Model, c.Tagging.Check())
	case o.Bot.Contact == "" && o.Bot.Page == "" && o.Web == "live" && o.ConnectTo == "" && !c.History.given:
		return usage.Errorf("--job=catalog sends requests to real sites, whose owners want to know from whom: add --contact=URL, or --web=demo")
	}
	return c.joining.check(o, c.Sites != "")
}

// resolve joins the sites of the files with people's changes, and refuses what does not fit them.
func (c *catalogOptions) resolve(o *RunOptions, changes map[string]policyfile.Change) error {
	if err := c.load(o.Web == "demo", changes); err != nil {
		return err
	}
	if o.Images && !slices.ContainsFunc(c.loaded, catalog.Site.HasImages) {
		return usage.Errorf("--images: no field of the sites has the type image; name such a field in a site's file, or leave --images out")
	}
	for _, s := range c.loaded {
		if _, err := browser.Find(o.UnsandboxedBrowser); s.Renders() && !o.WorkersElsewhere && err != nil {
			return usage.Errorf("--sites: %s: %w", s.Name, err)
		}
	}
	return nil
}

// load chooses sites of the files and of the store.
func (c *catalogOptions) load(demo bool, changes map[string]policyfile.Change) error {
	files, err := c.files(demo)
	if err != nil {
		return err
	}
	c.loaded, c.off = nil, map[string]string{}
	named := c.Site
	if c.isFile() {
		named = files[0].Name
	}
	for _, s := range siteKind.Join(files, changes, c.Sites != "" || c.isFile(), time.Now()) {
		if s.Off == "" {
			c.loaded = append(c.loaded, s.Value.Site)
		} else {
			c.off[s.ID] = s.Off
		}
	}
	return c.choose(named)
}

// files reads the sites' files.
func (c *catalogOptions) files(demo bool) (all []siteFile, err error) {
	from := []fs.FS{sites.Files}
	switch {
	case c.isFile():
		return c.readFile()
	case c.Sites != "":
		if info, err := os.Stat(c.Sites); err != nil {
			return nil, usage.Errorf("--sites: %w", err)
		} else if !info.IsDir() {
			return nil, usage.Errorf("--sites=%s is no directory; name the one with the YAML files", c.Sites)
		}
		from = []fs.FS{os.DirFS(c.Sites)}
	case demo:
		more, err := fs.Sub(sites.Files, "demo")
		if err != nil {
			return nil, err
		}
		from = append(from, more)
	}
	for _, files := range from {
		read, texts, err := catalog.ReadSites(files)
		if err != nil {
			return nil, usage.Errorf("--sites: %w", err)
		}
		for i := range read {
			all = append(all, siteFile{read[i], texts[i]})
		}
	}
	return all, nil
}

func (c *catalogOptions) offer(context.Context, store.Store, *RunOptions) (map[string][]string, error) {
	return map[string][]string{"site": c.names()}, nil
}

// names are the names of the sites that are loaded.
func (c *catalogOptions) names() (known []string) {
	for _, s := range c.loaded {
		known = append(known, s.Name)
	}
	return known
}

// choose drops the sites that are not named, if any is.
func (c *catalogOptions) choose(named string) error {
	for name := range strings.SplitSeq(named, ",") {
		if why := c.off[strings.TrimSpace(name)]; why != "" {
			return usage.Errorf("--site=%s: %s", strings.TrimSpace(name), why)
		}
	}
	only, err := choose("site", named, "site", c.names())
	if err != nil || only == nil {
		return err
	}
	if c.History.given {
		return usage.Errorf("--history=SITE names the site itself; leave --site out")
	}
	if c.Try != "" && len(only) > 1 {
		return usage.Errorf("--try reads a page of one site; name one with --site")
	}
	c.loaded = slices.DeleteFunc(c.loaded, func(s catalog.Site) bool { return !slices.Contains(only, s.Name) })
	return nil
}

// config makes the workers' configuration from the options.
func (c *catalogOptions) config(o RunOptions, l lane.Config) catalog.Config {
	if o.Web == "demo" {
		l.Polite.HostDelay = 0
	}
	cfg := c.Config
	cfg.Lane, cfg.Lanes, cfg.DB, cfg.Sites, cfg.QueueLength, cfg.Restart = l, o.Lanes, o.DB, c.loaded, queueLength, o.Force
	cfg.Tagging.Taggers, cfg.Images.Fetch, cfg.Images.Fetchers = taggers, o.Images, imageFetchers
	cfg.UnsandboxedBrowser, cfg.LeaseTTL = o.UnsandboxedBrowser, min(o.LeaseTTL, catalog.DefaultLeaseTTL)
	return cfg
}

func (c *catalogOptions) instead() *Action {
	switch {
	case c.History.given:
		return &Action{Do: c.printHistory}
	case c.Try != "":
		return &Action{Alone: true, Do: c.try}
	}
	return nil
}

// printHistory prints the earlier values of products.
func (c *catalogOptions) printHistory(ctx context.Context, o RunOptions, _ store.Store, stdout io.Writer) error {
	of := c.History.session
	if file, missing := db.Missing(o.DB); missing {
		return usage.Errorf("--history: no run has used %s: add the --db of the runs that saved the products", file)
	}
	d, err := openDB(ctx, o.DB, catalog.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it is only read from
	site, key, _ := strings.Cut(of, "/")
	product, changes, err := catalog.History(ctx, d, site, key)
	if errors.Is(err, catalog.ErrNoProduct) {
		return usage.Errorf("--history=%s: %w", of, catalog.ErrNoProduct)
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	if product != nil {
		text, err := product.Text()
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	fmt.Fprintf(&b, "%d changes\n", len(changes))
	for _, change := range changes {
		b.WriteString(change.Text())
	}
	_, err = io.WriteString(stdout, b.String())
	return err
}

// extendCatalog adds alerts that say what is wrong with a site's file.
func extendCatalog(ctx context.Context, s store.Store, report *ledger.Report) error {
	if report.Counts[catalog.SitesFailed] > 0 {
		notOpen := map[string]bool{} // the report has one alert for such a site
		for _, st := range report.NotOpen() {
			notOpen[st.Site] = true
		}
		for d, err := range ledger.ListDeadLetters(ctx, s, catalog.Job, report.RunID) {
			if err != nil {
				return err
			}
			if d.Input.URL == "" && !notOpen[d.Input.Source] {
				report.Complain("site", ledger.Complaint{Source: d.Input.Source, Text: d.Error})
			}
		}
	}
	slices.Sort(report.Alerts)
	return nil
}
