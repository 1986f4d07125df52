package pipeline

import (
	"cmp"
	"context"
	"errors"
	"flag"
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
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Docs is the docs job's graph: crawling policies become chunks, and a report
// of what changed.
func Docs(s beam.Scope, cfg docs.Config) {
	hosts, listed := docs.List(s, cfg)
	visited, crawled := docs.Visit(s, cfg, hosts)
	concluded := docs.Conclude(s, cfg, visited)
	lane.Total(s, cfg.Lane, listed, crawled, concluded)
}

// providerLeaseTTL is how long a killed run's providers wait for the next run, unless
// --lease-ttl is shorter.
const providerLeaseTTL = 15 * time.Second

// docsOptions are the docs job's own flags.
type docsOptions struct {
	Policies        string
	Fallback        bool
	SessionMaxPages int
	Retention       time.Duration
	Unsandboxed     bool
	Again           latest
	Purge, Enable   string
	Explain         string
	Diff            latest
	Alerts          string
	Edition         int

	loaded []policy.Policy
	alerts docs.Thresholds
}

// latest is a flag that may stand without a value: the latest session then.
type latest struct {
	asked   bool
	session string
}

// String implements flag.Value.
func (l *latest) String() string { return l.session }

// IsBoolFlag lets the flag stand without a value.
func (l *latest) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (l *latest) Set(v string) error {
	l.asked, l.session = v != "false", v
	if v == "true" || v == "false" {
		l.session = ""
	}
	return nil
}

func docsJob() job {
	own := []string{"lanes", "web", "connect-to", "allow-private", "db", "policies", "fallback", "allow-unsandboxed-browser", "session-max-pages", "handoff-retention", "handoff-again",
		"purge-provider", "enable-provider", "explain", "diff", "alerts", "demo-edition"}
	return job{name: docs.Job, flags: own, sql: true, counts: "pages_fetched", unit: "pages", run: runDocs,
		define: func(o *Options, f *flag.FlagSet) { o.Docs.define(f) },
		check:  func(o *Options) error { return o.Docs.check(o.elsewhere()) },
		demo: func(o Options, w *webtest.Web) error {
			docsim.Install(w.Handle, o.Docs.Edition)
			return nil
		},
		extend: extendDocs,
		// A page that failed is asked for again in every session.
		reopen: func(context.Context, Options, store.Store, []ledger.DeadLetter) error { return nil },
	}
}

func (d *docsOptions) define(f *flag.FlagSet) {
	f.StringVar(&d.Policies, "policies", "", "directory with a YAML policy a provider (default: the fifteen that come with the program)")
	f.BoolVar(&d.Fallback, "fallback", false, "crawl the providers whose main channel is context7 too")
	f.IntVar(&d.SessionMaxPages, "session-max-pages", docs.SessionMaxPages, "pages asked for in one session, all providers together")
	f.DurationVar(&d.Retention, "handoff-retention", docs.DefaultRetention, "how long handoff/docs/ is kept for the embedding step; below 0: for ever")
	f.BoolVar(&d.Unsandboxed, "allow-unsandboxed-browser", false, "let the browser of spa_rendering run without its sandbox: as root, and where it has none")
	f.Var(&d.Again, "handoff-again", "ask for all pages again and hand them over to the embedding step, changed or not; of one provider alone with --handoff-again=PROVIDER")
	f.StringVar(&d.Purge, "purge-provider", "", "remove everything that this provider left, and do not crawl it again")
	f.StringVar(&d.Enable, "enable-provider", "", "let a purged provider be crawled again")
	f.StringVar(&d.Explain, "explain", "", "tell for this URL which rule takes or drops it, and fetch nothing but robots.txt")
	f.Var(&d.Diff, "diff", "print which sections of which pages changed in the latest session, or in --diff=SESSION")
	f.StringVar(&d.Alerts, "alerts", "", "thresholds of the report's alerts that differ from the policy's, such as success_rate=0.85,mean_response=3s,duration=6h; 0: off")
	f.IntVar(&d.Edition, "demo-edition", 1, "with --web=demo: 1 for the simulated sites' first week, 2 for the next, in which pages changed")
}

func (d *docsOptions) check(elsewhere bool) error {
	var asked []string
	for name, is := range map[string]bool{"purge-provider": d.Purge != "", "enable-provider": d.Enable != "", "explain": d.Explain != "", "diff": d.Diff.asked, "handoff-again": d.Again.asked} {
		if is {
			asked = append(asked, "--"+name)
		}
	}
	slices.Sort(asked)
	switch {
	case len(asked) > 1:
		return usagef("%s: use one at a time", strings.Join(asked, " and "))
	case d.SessionMaxPages < 1:
		return usagef("--session-max-pages=%d: use 1 or more", d.SessionMaxPages)
	case d.Edition != 1 && d.Edition != 2:
		return usagef("--demo-edition=%d: use 1 or 2", d.Edition)
	}
	var err error
	if d.alerts, err = docs.ParseThresholds(d.Alerts); err != nil {
		return usagef("--alerts: %w", err)
	}
	var files fs.FS = policies.Files
	if d.Policies != "" {
		if info, err := os.Stat(d.Policies); err != nil {
			return usagef("--policies: %w", err)
		} else if !info.IsDir() {
			return usagef("--policies=%s is no directory; name the one with the YAML files", d.Policies)
		}
		files = os.DirFS(d.Policies)
	}
	if d.loaded, err = policy.Load(files); err != nil {
		return usagef("--policies: %s", oneLine(err))
	}
	if err := d.knowsAgain(); err != nil {
		return err
	}
	for _, p := range d.loaded {
		if _, err := docs.Browser(d.Unsandboxed); p.SPARendering && !elsewhere && err != nil {
			return usagef("--policies: %s: %w", p.ProviderID, err)
		}
	}
	return nil
}

// knowsAgain refuses to hand over again what would not be crawled.
func (d *docsOptions) knowsAgain() error {
	id := d.Again.session
	if id == "" {
		return nil
	}
	var known []string
	for _, p := range d.loaded {
		known = append(known, p.ProviderID)
		if p.ProviderID != id {
			continue
		}
		if reason, ok := (docs.Config{Fallback: d.Fallback}).Crawled(p); !ok {
			return usagef("--handoff-again=%s: %s", id, reason)
		}
		return nil
	}
	return noProvider("handoff-again", id, known)
}

// again is what the workers are told of --handoff-again.
func (d *docsOptions) again() string {
	if d.Again.asked {
		return cmp.Or(d.Again.session, docs.AgainAll)
	}
	return ""
}

// runDocs crawls, or does the one thing that a flag asks for instead.
func runDocs(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	if o.DB, err = takePassword(o.DB); err != nil {
		return err
	}
	for flag, id := range map[string]string{"purge-provider": o.Docs.Purge, "enable-provider": o.Docs.Enable} {
		if err := o.knowsProvider(ctx, flag, id); err != nil {
			return err
		}
	}
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	switch d := o.Docs; {
	case d.Purge != "", d.Enable != "", d.Diff.asked:
		return lookAtDocs(ctx, o, s, stdout)
	case d.Explain != "":
		return explainDocs(ctx, o, docsConfig(o, lane.Config{}), stdout)
	}
	if o.Web == "demo" {
		if err := notice(o, stderr, "demo_hurries", "Demo: simulated sites (demo data); pauses between requests and budgets of requests are turned off for them"); err != nil {
			return err
		}
	}
	runID := ""
	err = runJob(ctx, s, o, docs.Job, docs.Job, stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		runID = l.RunID
		Docs(scope, docsConfig(o, l))
	})
	if runID == "" || o.Report == "-" {
		return err
	}
	r, rerr := docs.ReadReport(ctx, s, runID)
	if errors.Is(rerr, store.ErrNotExist) {
		return err
	}
	if rerr == nil {
		rerr = r.WriteText(stdout)
	}
	return errors.Join(err, rerr)
}

// docsConfig is what the workers are told of the options.
func docsConfig(o Options, l lane.Config) docs.Config {
	l.Web = docs.Web(l.Web)
	return docs.Config{Lane: l, Lanes: min(o.Lanes, docs.MaxHosts), DB: o.DB, Policies: o.Docs.loaded, Fallback: o.Docs.Fallback, Again: o.Docs.again(),
		SessionMaxPages: o.Docs.SessionMaxPages, Retention: cmp.Or(o.Docs.Retention, 1), LeaseTTL: min(o.LeaseTTL, providerLeaseTTL), Alerts: &o.Docs.alerts, Hurry: o.Web == "demo",
		UnsandboxedBrowser: o.Docs.Unsandboxed}
}

// knowsProvider refuses a provider that has no policy and left nothing in the
// database, before anything is made: a misspelt id would else look purged.
func (o *Options) knowsProvider(ctx context.Context, flag, id string) error {
	var known []string
	for _, p := range o.Docs.loaded {
		known = append(known, p.ProviderID)
	}
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	if _, missing := db.Missing(o.DB); missing {
		return noProvider(flag, id, known)
	}
	d, err := db.Open(ctx, o.DB)
	if err != nil {
		return err
	}
	kept, err := docs.Providers(ctx, d)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if slices.Contains(kept, id) {
		return nil
	}
	return noProvider(flag, id, append(known, kept...))
}

func noProvider(flag, id string, known []string) error {
	slices.Sort(known)
	return usagef("--%s=%s: there is no such provider; known are %s", flag, id, strings.Join(slices.Compact(known), ", "))
}

// extendDocs adds a row a provider and section 9.1's alerts to the run report.
func extendDocs(ctx context.Context, s store.Store, report *ledger.Report) error {
	r, err := docs.ReadReport(ctx, s, report.RunID)
	if errors.Is(err, store.ErrNotExist) {
		return nil // cut short before its end
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

// lookAtDocs does what needs the database and the store alone.
func lookAtDocs(ctx context.Context, o Options, s store.Store, stdout io.Writer) error {
	d, err := db.Open(ctx, o.DB)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // every write has been committed
	if err := docs.Migrate(ctx, d); err != nil {
		return err
	}
	switch {
	case o.Docs.Enable != "":
		was, err := docs.Enable(ctx, d, o.Docs.Enable)
		if err != nil {
			return err
		}
		if !was {
			return usagef("--enable-provider=%s: it is not disabled", o.Docs.Enable)
		}
		_, err = fmt.Fprintf(stdout, "%s is crawled again from the next run on\n", o.Docs.Enable)
		return err
	case o.Docs.Purge != "":
		return purgeDocs(ctx, o, d, s, stdout)
	}
	session, changes, err := docs.Changes(ctx, d, o.Docs.Diff.session)
	if errors.Is(err, docs.ErrNoSession) {
		return usagef("--diff: %w", err)
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session %s: %d pages changed\n", session, len(changes))
	for _, c := range changes {
		fmt.Fprintf(&b, "%s  %-7s  %s\n", c.Provider, c.Kind, c.Key)
		for _, sec := range c.Sections {
			fmt.Fprintf(&b, "    %-7s  %s  (+%d -%d blocks)\n", sec.Kind, cmp.Or(strings.Join(sec.Path, " > "), "(before the first heading)"), sec.Added, sec.Removed)
		}
	}
	_, err = io.WriteString(stdout, b.String())
	return err
}

func purgeDocs(ctx context.Context, o Options, d *db.DB, s store.Store, stdout io.Writer) error {
	id := o.Docs.Purge
	p, purged := docs.Purge(ctx, d, s, id, time.Now())
	if purged != nil && !errors.Is(purged, docs.ErrNotErased) {
		return purged
	}
	rows := int64(0)
	for _, n := range p.Rows {
		rows += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: removed %d rows, %d hand-off objects, %d dead letters\n", id, rows, p.Objects, p.DeadLetters)
	if p.DeletionList != "" {
		fmt.Fprintf(&b, "%d chunks are to be deleted from the embeddings too: %s\n", p.Chunks, p.DeletionList)
	}
	fmt.Fprintf(&b, "it is not crawled again before --enable-provider=%s\n", id)
	_, err := io.WriteString(stdout, b.String())
	return errors.Join(purged, err)
}

func explainDocs(ctx context.Context, o Options, cfg docs.Config, stdout io.Writer) (err error) {
	cfg.Lane = lane.Config{Job: docs.Job, RunID: ledger.NewRunID(time.Now()), Store: o.Store, Web: docs.Web(o.web()), LogFormat: o.LogFormat, LogLevel: o.level()}
	end, err := startDemo(o, docs.Job, &cfg.Lane.Web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lane.Close(cfg.Lane.RunID), end()) }()
	found, err := docs.Explain(ctx, cfg, o.Docs.Explain)
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
