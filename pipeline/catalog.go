package pipeline

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
	"github.com/newsfork/seed-engine/transforms/catalog/sites"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Catalog is the catalog job's graph: list pages become products in a database.
func Catalog(s beam.Scope, cfg catalog.Config) {
	sites := catalog.Sites(s, cfg)
	crawled := catalog.Visit(s, cfg, sites)
	lane.Total(s, cfg.Lane, crawled)
}

// catalogOptions are the catalog job's own flags.
type catalogOptions struct {
	Sites, Contact                                                   string
	ListFetchers, ListParsers, DetailFetchers, DetailParsers, Savers int
	QueueLength, StopAfterKnown                                      int
	DemoEdition                                                      int
	History                                                          latest

	loaded []catalog.Site
}

func catalogJob() job {
	own := []string{"db", "force", "sites", "contact", "list-fetchers", "list-parsers", "detail-fetchers", "detail-parsers", "savers",
		"queue-length", "stop-after-known", "demo-changes", "history"}
	return job{name: catalog.Job, flags: slices.Concat(crawling, own), sql: true, counts: "products_saved", unit: "products", run: runCatalog,
		live: [][2]string{{"list_pages_fetched", "lists"}, {"product_urls_found", "found"}, {"detail_pages_fetched", "fetched"},
			{"products_saved", "saved"}, {"failed_tasks", "failed"}},
		defaults: map[string]string{"host-delay": "1s"},
		define:   func(o *Options, f *flag.FlagSet) { o.Catalog.define(f) },
		check:    checkCatalog,
		demo: func(o Options, w *webtest.Web) error {
			matter, gadgets := catalogsim.Install(w.Handle)
			for range o.Catalog.DemoEdition {
				matter.Change()
				gadgets.Change()
			}
			return nil
		},
		extend: extendCatalog,
		reopen: reopenCatalog,
	}
}

func (c *catalogOptions) define(f *flag.FlagSet) {
	f.StringVar(&c.Sites, "sites", "", "directory with one YAML file a site (default: those that come with the program; with --web=demo the simulated ones too)")
	f.StringVar(&c.Contact, "contact", "", "URL or mail address that the User-Agent names, for a site's owner who has a question; needed for real sites")
	f.IntVar(&c.ListFetchers, "list-fetchers", 2, "workers that fetch list pages, each site")
	f.IntVar(&c.ListParsers, "list-parsers", 1, "workers that read list pages, each site")
	f.IntVar(&c.DetailFetchers, "detail-fetchers", 8, "workers that fetch product pages, each site; with a pause between requests one is at work at a time")
	f.IntVar(&c.DetailParsers, "detail-parsers", 2, "workers that read product pages, each site")
	f.IntVar(&c.Savers, "savers", 1, "workers that write products to the database, each site")
	f.IntVar(&c.QueueLength, "queue-length", 64, "tasks that wait in front of each stage")
	f.IntVar(&c.StopAfterKnown, "stop-after-known", 0, "stop listing after so many pages without a new product; 0: read the whole list")
	f.Var(&c.History, "history", "print the latest changes of values that products had, newest first, of one site in --history=SITE, of one product and what is kept of it in --history=SITE/KEY")
	f.IntVar(&c.DemoEdition, "demo-changes", 0, "with --web=demo: how often every tenth simulated product has changed")
}

func checkCatalog(o *Options) error {
	c := &o.Catalog
	for _, p := range []struct {
		flag string
		n    int
	}{{"list-fetchers", c.ListFetchers}, {"list-parsers", c.ListParsers}, {"detail-fetchers", c.DetailFetchers}, {"detail-parsers", c.DetailParsers},
		{"savers", c.Savers}, {"queue-length", c.QueueLength}} {
		if p.n < 1 || p.n > 10_000 {
			return usagef("--%s=%d: use 1 to 10000", p.flag, p.n)
		}
	}
	switch {
	case c.StopAfterKnown < 0:
		return usagef("--stop-after-known=%d: use 0 or more", c.StopAfterKnown)
	case c.DemoEdition < 0 || c.DemoEdition > 9:
		return usagef("--demo-changes=%d: use 0 to 9", c.DemoEdition)
	case c.Contact != "" && !strings.Contains(c.Contact, "@") && !strings.HasPrefix(c.Contact, "https://") && !strings.HasPrefix(c.Contact, "http://"):
		return usagef("--contact=%s: use a URL or a mail address", c.Contact)
	case c.Contact == "" && o.Web == "live" && o.ConnectTo == "" && !c.History.asked:
		return usagef("--job=catalog asks real sites, which want to know whom: add --contact=URL, or --web=demo")
	}
	return c.load(o.Web == "demo")
}

// load reads the sites.
func (c *catalogOptions) load(demo bool) error {
	c.loaded = nil
	from := []fs.FS{sites.Files}
	switch {
	case c.Sites != "":
		if info, err := os.Stat(c.Sites); err != nil {
			return usagef("--sites: %w", err)
		} else if !info.IsDir() {
			return usagef("--sites=%s is no directory; name the one with the YAML files", c.Sites)
		}
		from = []fs.FS{os.DirFS(c.Sites)}
	case demo:
		more, err := fs.Sub(sites.Files, "demo")
		if err != nil {
			return err
		}
		from = append(from, more)
	}
	for _, files := range from {
		read, err := catalog.ReadSites(files)
		if err != nil {
			return usagef("--sites: %w", err)
		}
		c.loaded = append(c.loaded, read...)
	}
	return nil
}

// runCatalog crawls every site.
func runCatalog(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	if o.DB, err = takePassword(o.DB); err != nil {
		return err
	}
	if o.Catalog.History.asked {
		return printHistory(ctx, o, stdout)
	}
	if o.Web == "demo" {
		if err := notice(o, stderr, "demo_hurries", "Demo: simulated sites (demo data); pauses between requests are turned off for them"); err != nil {
			return err
		}
	}
	return runJob(ctx, s, o, catalog.Job, catalog.Job, stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		Catalog(scope, catalogConfig(o, l))
	})
}

// catalogConfig is what the workers are told of the options.
func catalogConfig(o Options, l lane.Config) catalog.Config {
	c := o.Catalog
	if o.Web == "demo" {
		l.Web.HostDelay = 0
	}
	if c.Contact != "" {
		l.Web.UserAgent += " (+" + c.Contact + ")"
	}
	return catalog.Config{Lane: l, Lanes: o.Lanes, DB: o.DB, Sites: c.loaded, ListFetchers: c.ListFetchers, ListParsers: c.ListParsers, DetailFetchers: c.DetailFetchers,
		DetailParsers: c.DetailParsers, Savers: c.Savers, QueueLength: c.QueueLength, StopAfterKnown: c.StopAfterKnown, Anew: o.Force, LeaseTTL: min(o.LeaseTTL, catalog.DefaultLeaseTTL)}
}

// takePassword moves a DSN's password into this process's environment: the
// configuration travels, and may be seen, where the runner likes.
func takePassword(dsn string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres") {
		return dsn, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", usagef("--db is no URL; write postgres://user@host/database")
	}
	password, ok := u.User.Password()
	if !ok {
		return dsn, nil
	}
	u.User = url.User(u.User.Username())
	return u.String(), os.Setenv("PGPASSWORD", password)
}

// printHistory prints what products had before.
func printHistory(ctx context.Context, o Options, stdout io.Writer) error {
	asked := o.Catalog.History.session
	if file, missing := db.Missing(o.DB); missing {
		return usagef("--history: no run has used %s: add the --db of the runs that saved the products", file)
	}
	d, err := db.Open(ctx, o.DB)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it is only read from
	if err := catalog.Migrate(ctx, d); err != nil {
		return err
	}
	site, key, _ := strings.Cut(asked, "/")
	product, changes, err := catalog.History(ctx, d, site, key)
	if errors.Is(err, catalog.ErrNoProduct) {
		return usagef("--history=%s: %w", asked, catalog.ErrNoProduct)
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	if product != nil {
		b.WriteString(product.Text())
	}
	fmt.Fprintf(&b, "%d changes\n", len(changes))
	for _, c := range changes {
		b.WriteString(c.Text())
	}
	_, err = io.WriteString(stdout, b.String())
	return err
}

// inWords are alerts by the beginning of the count that stands for them; what
// follows it is the site, or the site and a field.
var inWords = []struct{ count, text string }{
	{catalog.NeverMatched, "field {field} is on none of the pages; is its selector right?"},
	{catalog.Unreadable, "field {field} cannot be read on {n} pages; the dead letters of kind unreadable_field say why"},
	{catalog.Collided, "{n} pages have the key of another page with other values; the dead letters of kind key_collision name them"},
	{catalog.ListShrunk, "its list no longer names more than half of the products, so none was called gone; is all of it read?"},
}

// extendCatalog says in words what is wrong with a site's file.
func extendCatalog(ctx context.Context, s store.Store, report *ledger.Report) error {
	for name, n := range report.Counts {
		for _, w := range inWords {
			of, ok := strings.CutPrefix(name, w.count)
			if !ok {
				continue
			}
			site, field, _ := strings.Cut(of, ".")
			report.Alerts = append(report.Alerts, "site "+site+": "+strings.NewReplacer("{field}", field, "{n}", strconv.FormatInt(n, 10)).Replace(w.text))
			delete(report.Counts, name)
		}
	}
	if report.Counts[catalog.SitesFailed] > 0 {
		for d, err := range ledger.ListDeadLetters(ctx, s, catalog.Job, report.RunID) {
			if err != nil {
				return err
			}
			if d.Input.URL == "" {
				report.Alerts = append(report.Alerts, fmt.Sprintf("site %s: %s", d.Input.Source, d.Error))
			}
		}
	}
	slices.Sort(report.Alerts)
	return nil
}

// reopenCatalog lets the next run fetch the pages of dead letters again.
func reopenCatalog(ctx context.Context, o Options, _ store.Store, letters []ledger.DeadLetter) error {
	if o.DB == "" {
		if err := o.placeDB(); err != nil {
			return err
		}
	}
	if file, missing := db.Missing(o.DB); missing {
		return usagef("no run has used %s: add the --db of the runs that left these dead letters", file)
	}
	d, err := db.Open(ctx, cmp.Or(o.DB, os.Getenv("SEED_DB")))
	if err != nil {
		return err
	}
	if err := catalog.Migrate(ctx, d); err != nil {
		return errors.Join(err, d.Close())
	}
	return errors.Join(catalog.Reopen(ctx, d, letters), d.Close())
}
