package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// Docs is the docs job's graph: it crawls the providers of the policies, cuts
// their pages into chunks, and reports what changed.
func Docs(s beam.Scope, cfg docs.Config) {
	hosts, listed := docs.List(s, cfg)
	visited, crawled := docs.Visit(s, cfg, hosts)
	concluded := docs.Conclude(s, cfg, visited)
	lane.Total(s, cfg.Lane, listed, crawled, concluded)
}

// providerLeaseTTL is how long the providers of a killed run stay leased, unless
// --lease-ttl is shorter.
const providerLeaseTTL = 15 * time.Second

// docsOptions are the docs job's own flags.
type docsOptions struct {
	Policies      string
	Fallback      bool
	Retention     time.Duration
	Again         latest
	Purge, Enable string
	Explain       string
	Provider      string
	Depth         int
	TermsRead     string
	Markdown      string
	Links         string
	Diff          latest
	Alerts        string
	Edition       int

	given      []string        // the flags that ask for something special, with their dashes
	files      []policy.Policy // of --policies, or shipped
	unresolved error           // what is wrong by the files alone; the store may know better
	resolved   bool            // the store was asked

	loaded []policy.Policy
	off    map[string]string // why a provider is not crawled, by people's changes
	only   []string
	page   *policy.Policy // of --url
	source string         // the provider whose policy that one is of, "" for none
	dsn    string         // of the database, for what is printed after the run
	alerts alert.Thresholds
}

// latest is a flag that may be given without a value; it then means the latest session.
type latest struct {
	given   bool
	session string
}

// String implements flag.Value.
func (l *latest) String() string { return l.session }

// IsBoolFlag lets the flag be given without a value.
func (l *latest) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (l *latest) Set(v string) error {
	l.given, l.session = v != "false", v
	if v == "true" || v == "false" {
		l.session = ""
	}
	return nil
}

func docsJob() Job {
	o := &docsOptions{}
	return Job{
		Job: ledger.Job{Name: docs.Job, Title: "Docs", Counts: docs.Counts(),
			Stages: []ledger.Stage{
				{Name: "listed", Unit: "hosts", Counts: []string{ledger.LaneHosts}},
				{Name: "fetched", Unit: "pages", Counts: []string{"pages_fetched"}, Apart: []string{"pages_failed", "pages_blocked", "pages_skipped"}},
				{Name: "new or changed", Unit: "pages", Counts: []string{"pages_new", "pages_updated"}, Apart: []string{"pages_unchanged", "pages_deleted"}},
				{Name: "written", Unit: "chunks", Counts: []string{"chunks"}},
				{Name: "crawled", Unit: "hosts", Counts: []string{ledger.LaneHostsDone}, Apart: []string{"providers_not_done"}},
			}, Path: "/api/v1/docs/runs", Done: "pages_fetched", Alerts: alert.Rules(), OwnAlerts: true,
		}, SQL: true, Agent: docs.UserAgent,
		Keeps: []string{"handoff/"}, Tables: []string{"docs_sessions", "docs_pages"},
		Audit: docs.Audit,
		Rows:  docs.Rows(wholeShown), Removal: new(docs.Removal()),
		Policies: providerKind, Knows: o.knows, Commands: o.initCommands(),
		Options: o.options, Check: o.check, Prepare: o.prepare, Accept: o.accept, Offer: o.offer, Instead: o.instead,
		Demo:       o.demo,
		DemoNotice: "Demo: simulated sites (demo data); pauses between requests and budgets of requests are turned off for them",
		Config:     func(c RunOptions, l lane.Config, _ string) any { return o.config(c, l) },
		Build:      func(s beam.Scope, config any) { Docs(s, config.(docs.Config)) },
		LiveCount:  "pages_fetched", Unit: "pages", NotDone: docs.ProvidersNotDone,
		Extend: extendDocs, Write: o.write, Unmet: o.nothingKeptOfURL,
		// A page that failed is requested again in every session.
		Reopen: func(context.Context, RunOptions, store.Store, []ledger.DeadLetter) error { return nil },
	}
}

func (d *docsOptions) options(s *option.Set) {
	s.Take(slices.Concat(requesting, costed, []string{"url", "purpose", "allow-unsandboxed-browser", "db"})...)
	s.Text(&d.Policies, "policies", "", "directory with one YAML policy for each provider (default: the fifteen shipped with the program)").In(option.What)
	s.Names(&d.Provider, "provider", "only these providers, by id, separated by commas", "Only these providers", "ids of providers").
		NotEmpty("name providers, or leave it out for all").Is(option.Selects | option.Extent).In(option.What)
	s.Number(&d.Depth, "depth", 0, "with --url: follow links to this depth, to pages below the URL, 1 to 5; 0: the page alone").Range(0, 5).Is(option.OneRun | option.Extent).In(option.What)
	s.Text(&d.TermsRead, "tos-allowed", "", "with --url: the day, YYYY-MM-DD, on which you read the site's terms, which do not forbid crawling; --markdown then has whole pages").Is(option.OneRun)
	s.Text(&d.Markdown, "markdown", "", "write pages into this directory as Markdown: those that are stored, without a crawl, or with --url those of its crawl; whole where the policy says tos: allowed, else 200 characters").
		NotEmpty("name a directory").Is(option.OneRun).In(option.Output)
	s.Text(&d.Links, "links", linksAbsolute, "links in the pages of --markdown: absolute, with whole addresses, or none, their text alone").
		OneOf(linksAbsolute, linksNone).Is(option.OneRun)
	s.Yes(&d.Fallback, "fallback", false, "also crawl the providers that Context7 has").Asked("Crawl what Context7 has too", "").Is(option.Extent)
	s.Default("limit", "5000")
	s.Pause(&d.Retention, "handoff-retention", docs.DefaultRetention, "how long to keep handoff/docs/ for the embedding step; below 0: for ever")
	s.Other(&d.Again, "handoff-again", "fetch all pages again and hand them over to the embedding step, changed or not; --handoff-again=PROVIDER: of one provider only").Is(option.Extent)
	s.Text(&d.Purge, "purge-provider", "", "remove everything of this provider, and do not crawl it again").Is(option.OneRun)
	s.Text(&d.Enable, "enable-provider", "", "let a purged provider be crawled again").Is(option.OneRun)
	s.Text(&d.Explain, "explain", "", "print which rule accepts or rejects this URL, and fetch nothing but robots.txt").Is(option.OneRun).In(option.What)
	s.Other(&d.Diff, "diff", "print which sections of which pages changed in the latest session; in another one: --diff=SESSION").Is(option.OneRun).In(option.Output)
	s.Text(&d.Alerts, "alerts", "", "thresholds of the report's alerts that differ from the defaults, such as success_rate=0.85,mean_response=3s,duration=6h; 0: off")
	s.Number(&d.Edition, "demo-edition", 1, "with --web=demo: 1 for the simulated sites' first week, 2 for the second, with changed pages").Range(1, 2).Says("use 1 or 2").Is(option.Tuning)
}

func (d *docsOptions) check(c *RunOptions) error {
	var given []string
	for name, is := range map[string]bool{"purge-provider": d.Purge != "", "enable-provider": d.Enable != "", "explain": d.Explain != "", "diff": d.Diff.given, "handoff-again": d.Again.given,
		"url": c.URL != "", "markdown": d.Markdown != "" && c.URL == ""} {
		if is {
			given = append(given, "--"+name)
		}
	}
	slices.Sort(given)
	if len(given) > 1 {
		return usage.Errorf("%s: use one at a time", strings.Join(given, " and "))
	}
	var err error
	if d.alerts, err = alert.Parse(d.Alerts, alert.PageRules()...); err != nil {
		return usage.Errorf("--alerts: %w", err)
	}
	if d.files, err = readPolicies(d.Policies, time.Now()); err != nil {
		return err
	}
	d.given = given
	if d.unresolved = d.resolve(c, nil); keepsNothing(c, providerKind.Words) {
		return d.unresolved
	}
	return nil
}

// resolve joins the policies of the files with people's changes, and refuses what does not
// fit them.
func (d *docsOptions) resolve(c *RunOptions, changes map[string]policyfile.Change) error {
	d.loaded, d.off = nil, map[string]string{}
	for _, p := range providerKind.Join(d.files, changes, d.Policies != "", time.Now()) {
		if p.Off != "" {
			d.off[p.ID] = p.Off
		}
		if !p.Refused {
			d.loaded = append(d.loaded, p.Value)
		}
	}
	if err := errors.Join(d.knowsAgain(), d.choose(d.given), d.forURL(c)); err != nil {
		return err
	}
	for _, p := range d.loaded {
		if _, err := browser.Find(c.UnsandboxedBrowser); p.SPARendering && !c.WorkersElsewhere && err != nil {
			return usage.Errorf("--policies: %s: %w", p.ProviderID, err)
		}
	}
	return nil
}

// crawled reports whether a provider is crawled by its policy and by people's changes, and
// if not, why.
func (d *docsOptions) crawled(p policy.Policy) (reason string, crawled bool) {
	return docs.Config{Fallback: d.Fallback, Off: d.off}.Crawled(p)
}

// choose reads --provider. given are the flags that ask for something in place of a run.
func (d *docsOptions) choose(given []string) (err error) {
	if slices.Contains(given, "--markdown") { // also of providers without a policy: prepare looks for them
		d.only = slices.DeleteFunc(strings.Split(d.Provider, ","), func(id string) bool { return id == "" })
		return nil
	}
	if d.only, err = choose("provider", d.Provider, "provider", d.known()); err != nil || d.only == nil {
		return err
	}
	if d.Again.session != "" {
		return usage.Errorf("--handoff-again=%s names the provider already; leave --provider out", d.Again.session)
	}
	if len(given) > 0 && !d.Diff.given && !d.Again.given {
		return usage.Errorf("%s is not limited to providers; leave --provider out", given[0])
	}
	for _, p := range d.loaded {
		if !slices.Contains(d.only, p.ProviderID) || len(given) > 0 && !d.Again.given {
			continue
		}
		if reason, ok := d.crawled(p); !ok {
			return usage.Errorf("--provider=%s: %s", p.ProviderID, reason)
		}
	}
	return nil
}

// known are the ids of the providers that have a policy.
func (d *docsOptions) known() (ids []string) {
	for _, p := range d.loaded {
		ids = append(ids, p.ProviderID)
	}
	return ids
}

func (d *docsOptions) offer(context.Context, store.Store, *RunOptions) (map[string][]string, error) {
	return map[string][]string{"provider": slices.DeleteFunc(d.known(), func(id string) bool { return d.off[id] != "" })}, nil
}

// knowsAgain refuses a --handoff-again=PROVIDER whose provider this run would not crawl.
func (d *docsOptions) knowsAgain() error {
	id := d.Again.session
	if id == "" {
		return nil
	}
	for _, p := range d.loaded {
		if p.ProviderID != id {
			continue
		}
		if reason, ok := d.crawled(p); !ok {
			return usage.Errorf("--handoff-again=%s: %s", id, reason)
		}
		return nil
	}
	return unknown("handoff-again", id, "provider", d.known())
}

// again returns the value of --handoff-again for the workers.
func (d *docsOptions) again() string {
	if d.Again.given {
		return cmp.Or(d.Again.session, docs.AgainAll)
	}
	return ""
}

func (d *docsOptions) demo(w *webtest.Web) { docsim.Install(w.Handle, d.Edition) }

// prepare refuses what does not fit the files, before anything is created, where the store
// cannot know better.
func (d *docsOptions) prepare(ctx context.Context, c *RunOptions) error {
	if keepsNothing(c, providerKind.Words) {
		return d.fits(ctx, c, d.unresolved)
	}
	return nil
}

// accept takes the changes of providers that people keep in the store.
func (d *docsOptions) accept(ctx context.Context, s store.Store, c *RunOptions) error {
	if d.resolved {
		return nil
	}
	changes, err := changesIn(ctx, s, providerKind.Words)
	if err != nil {
		return err
	}
	return d.fits(ctx, c, d.resolve(c, changes))
}

// fits returns what resolve found, or refuses a provider that nobody knows.
func (d *docsOptions) fits(ctx context.Context, c *RunOptions, found error) error {
	d.resolved = true
	if found != nil {
		return found
	}
	for flag, id := range map[string]string{"purge-provider": d.Purge, "enable-provider": d.Enable} {
		if err := d.knowsProvider(ctx, c, flag, id); err != nil {
			return err
		}
	}
	if d.Markdown != "" {
		for _, id := range d.only {
			if err := d.knowsProvider(ctx, c, "provider", id); err != nil {
				return err
			}
		}
	}
	d.dsn = c.DB
	return d.notPurged(ctx)
}

func (d *docsOptions) instead() *Action {
	switch {
	case d.Purge != "", d.Enable != "", d.Diff.given:
		return &Action{Do: d.look}
	case d.Explain != "":
		return &Action{Alone: true, Do: d.explain}
	case d.Markdown != "" && d.page == nil:
		return &Action{Do: d.printMarkdown}
	}
	return nil
}

// writeDocs prints the report of what the run did, when it got that far.
func writeDocs(ctx context.Context, s store.Store, runID string, stdout io.Writer) error {
	r, err := docs.ReadReport(ctx, s, runID)
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.WriteText(stdout)
}

// config makes the workers' configuration from the options.
func (d *docsOptions) config(c RunOptions, l lane.Config) docs.Config {
	l.Web = docs.Web(l.Web)
	return docs.Config{Lane: l, Lanes: min(c.Lanes, docs.MaxHosts), DB: c.DB, Policies: d.loaded, Off: d.off, Only: d.only, Purpose: c.For(), Fallback: d.Fallback, Again: d.again(),
		Retention: cmp.Or(d.Retention, 1), LeaseTTL: min(c.LeaseTTL, providerLeaseTTL), Alerts: d.alerts, NoDelay: c.Web == "demo",
		UnsandboxedBrowser: c.UnsandboxedBrowser}
}

// knowsProvider refuses a provider that has no policy and left nothing in the
// database: a misspelt id would otherwise look like a purged provider.
func (d *docsOptions) knowsProvider(ctx context.Context, c *RunOptions, flag, id string) error {
	known := d.known()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	if _, missing := db.Missing(c.DB); missing {
		return unknown(flag, id, "provider", known)
	}
	base, err := db.Open(ctx, c.DB)
	if err != nil {
		return err
	}
	kept, err := docs.Providers(ctx, base)
	if err := errors.Join(err, base.Close()); err != nil {
		return err
	}
	if slices.Contains(kept, id) {
		return nil
	}
	return unknown(flag, id, "provider", append(known, kept...))
}

// extendDocs adds a row for each provider and the session's alerts to the run report.
func extendDocs(ctx context.Context, s store.Store, report *ledger.Report) error {
	r, err := docs.ReadReport(ctx, s, report.RunID)
	if errors.Is(err, store.ErrNotExist) {
		return nil // the run was interrupted before the session's report was written
	}
	if err != nil {
		return err
	}
	report.Providers = r.Providers
	for _, a := range r.Alerts {
		report.Alerts = append(report.Alerts, a.Text)
	}
	for _, p := range r.Providers {
		report.Alerts = append(report.Alerts, p.Warnings...)
	}
	return nil
}

// look runs the actions that need only the database and the store.
func (d *docsOptions) look(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error {
	base, err := openDB(ctx, c.DB, docs.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }() // every write is committed by then
	switch {
	case d.Enable != "":
		was, err := docs.Enable(ctx, base, d.Enable)
		if err != nil {
			return err
		}
		if !was {
			return usage.Errorf("--enable-provider=%s: it is not disabled", d.Enable)
		}
		_, err = fmt.Fprintf(stdout, "%s is crawled again from the next run on\n", d.Enable)
		return err
	case d.Purge != "":
		return d.purge(ctx, base, s, stdout)
	}
	session, changes, err := docs.Changes(ctx, base, d.Diff.session)
	if errors.Is(err, docs.ErrNoSession) {
		return usage.Errorf("--diff: %w", err)
	}
	if err != nil {
		return err
	}
	if d.only != nil {
		changes = slices.DeleteFunc(changes, func(c docs.PageChange) bool { return !slices.Contains(d.only, c.Provider) })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session %s: %d pages changed\n", session, len(changes))
	for _, change := range changes {
		fmt.Fprintf(&b, "%s  %-7s  %s\n", change.Provider, change.Kind, change.URL)
		for _, sec := range change.Sections {
			fmt.Fprintf(&b, "    %-7s  %s  (+%d -%d blocks)\n", sec.Kind, cmp.Or(strings.Join(sec.Path, " > "), "(before the first heading)"), sec.Added, sec.Removed)
		}
	}
	_, err = io.WriteString(stdout, b.String())
	return err
}

func (d *docsOptions) purge(ctx context.Context, base *db.DB, s store.Store, stdout io.Writer) error {
	id := d.Purge
	p, receipts, purged := docs.Removal().Remove(ctx, removal.Source{Name: id, Store: s, DB: base}, byCommand(), time.Now())
	if purged != nil && !errors.Is(purged, removal.ErrNotErased) {
		return purged
	}
	then := "; it is not crawled again until --enable-provider=" + id + " is given"
	for _, r := range receipts {
		then += fmt.Sprintf("; the request %s is done: `removals show %[1]s` has its receipt", r.Request.ID)
	}
	return errors.Join(purged, sayRemoved(stdout, id+": removed", p, then))
}

func (d *docsOptions) explain(ctx context.Context, c RunOptions, _ store.Store, stdout io.Writer) (err error) {
	cfg := d.config(c, lane.Config{Job: docs.Job, RunID: ledger.NewRunID(time.Now()), Store: c.Store, Web: c.WebConfig(docs.UserAgent), LogFormat: c.LogFormat, LogLevel: c.Level()})
	end, err := startDemo(c, d.demo, &cfg.Lane.Web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lane.Close(cfg.Lane.RunID), end()) }()
	found, err := docs.Explain(ctx, cfg, d.Explain)
	if err != nil {
		return err
	}
	for _, e := range found {
		if _, err := io.WriteString(stdout, e.String()); err != nil {
			return err
		}
	}
	return nil
}
