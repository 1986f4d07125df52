package pipeline

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// News is the news job's graph: publishers' newest articles go into a database.
func News(s beam.Scope, cfg news.Config) {
	providers, listed := news.List(s, cfg)
	crawled := news.Visit(s, cfg, providers)
	lane.Total(s, cfg.Lane, listed, crawled)
}

// newsOptions are the news job's own flags.
type newsOptions struct {
	Settings, Publishers     string
	KeepHTML, Reparse, Purge bool
	AsOf                     string
	loaded                   provider.Config
	texts                    []string // of the declarative publishers
	asOf                     time.Time
}

func newsJob() job {
	own := []string{"db", "news-config", "publishers", "keep-html", "reparse", "purge-expired", "as-of"}
	// host-delay is not among them: the job's pauses are delaySeconds.
	crawls := slices.DeleteFunc(slices.Clone(crawling), func(f string) bool { return f == "host-delay" })
	return job{name: news.Job, flags: slices.Concat(crawls, own), sql: true, counts: "articles_fetched", unit: "articles", run: runNews,
		defaults: map[string]string{"concurrency": "1"},
		define:   func(o *Options, f *flag.FlagSet) { o.News.define(f) },
		check:    checkNews,
		demo: func(_ Options, w *webtest.Web) error {
			newssim.Install(w.Handle, time.Now())
			return nil
		},
		extend: extendNews,
		// An article that failed is asked for again while the sitemap has it.
		reopen: func(context.Context, Options, store.Store, []ledger.DeadLetter) error { return nil },
	}
}

func (n *newsOptions) define(f *flag.FlagSet) {
	f.StringVar(&n.Settings, "news-config", "", "YAML file with userAgent, delaySeconds, maxArticlesPerProvider, rawTextMaxLength, rawRetentionDays, providers; NEWS_… environment variables override it")
	f.StringVar(&n.Publishers, "publishers", "", "directory with one YAML file a publisher; of those that are in the program only the ones that --news-config enables by name are crawled then")
	f.BoolVar(&n.KeepHTML, "keep-html", false, "keep each article's page in the store for as long as the article")
	f.BoolVar(&n.Reparse, "reparse", false, "read the pages that --keep-html kept again, and fetch nothing")
	f.BoolVar(&n.Purge, "purge-expired", false, "remove what is past its time, and do nothing else")
	f.StringVar(&n.AsOf, "as-of", "", "with --purge-expired: the time to go by, RFC 3339, in place of now")
}

func checkNews(o *Options) error {
	n := &o.News
	switch {
	case n.Purge && (n.Reparse || n.KeepHTML):
		return usagef("--purge-expired does nothing else: leave --reparse and --keep-html out")
	case n.Reparse && n.KeepHTML:
		return usagef("--reparse fetches nothing that --keep-html could keep: use one of them")
	case n.AsOf != "" && !n.Purge:
		return usagef("--as-of goes with --purge-expired")
	}
	if n.AsOf != "" {
		var err error
		if n.asOf, err = time.Parse(time.RFC3339, n.AsOf); err != nil {
			return usagef("--as-of=%s: write a time like 2026-05-03T14:24:00+09:00", n.AsOf)
		}
	}
	return n.load(o.Web == "demo")
}

// load reads the declarative publishers and the settings.
func (n *newsOptions) load(demo bool) error {
	var from []fs.FS
	if n.Publishers != "" {
		if info, err := os.Stat(n.Publishers); err != nil {
			return usagef("--publishers: %w", err)
		} else if !info.IsDir() {
			return usagef("--publishers=%s is no directory; name the one with the YAML files", n.Publishers)
		}
		from = append(from, os.DirFS(n.Publishers))
	} else if demo {
		from = append(from, publishers.Files)
	}
	n.texts = nil
	for _, files := range from {
		names, err := yamltext.Files(files)
		if err != nil {
			return usagef("--publishers: %w", err)
		}
		if len(names) == 0 {
			return usagef("--publishers=%s has no YAML file (*.yaml, *.yml): write one a publisher, or name the directory that has them", n.Publishers)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return usagef("--publishers: %w", err)
			}
			if _, err := provider.Declared(text); err != nil {
				return usagef("--publishers: %s: %w", path.Base(name), err)
			}
			n.texts = append(n.texts, string(text))
		}
	}
	all, err := news.Config{Publishers: n.texts}.Providers()
	if err != nil {
		return usagef("--publishers: %w", err)
	}
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID())
	}
	var text []byte
	if n.Settings != "" {
		if text, err = os.ReadFile(n.Settings); err != nil {
			return usagef("--news-config: %w", err)
		}
	}
	if n.loaded, err = provider.ReadConfig(text, os.Environ(), ids); err != nil {
		return usagef("--news-config: %w", err)
	}
	if n.Publishers != "" {
		n.loaded = n.loaded.Without(news.Registered())
	}
	return nil
}

// runNews crawls every publisher, or does the one thing that a flag asks for instead.
func runNews(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	if o.News.Purge {
		return purgeNews(ctx, o, s, stdout)
	}
	if o.DB, err = takePassword(o.DB); err != nil {
		return err
	}
	if o.Web == "demo" {
		if err := notice(o, stderr, "demo_hurries", "Demo: simulated publishers (demo data); pauses between requests are turned off for them"); err != nil {
			return err
		}
	}
	return runJob(ctx, s, o, news.Job, news.Job, stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		News(scope, newsConfig(o, l))
	})
}

// newsConfig is what the workers are told of the options.
func newsConfig(o Options, l lane.Config) news.Config {
	n := o.News
	cfg := news.Config{Lanes: o.Lanes, DB: o.DB, Concurrency: o.Concurrency, Settings: n.loaded, Publishers: n.texts, KeepHTML: n.KeepHTML, Reparse: n.Reparse, Hurry: o.Web == "demo", LeaseTTL: o.LeaseTTL}
	l.Web = cfg.Web(l.Web)
	cfg.Lane = l
	return cfg
}

func purgeNews(ctx context.Context, o Options, s store.Store, stdout io.Writer) error {
	d, err := db.Open(ctx, o.DB)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // every write has been committed
	if err := raw.Migrate(ctx, d); err != nil {
		return err
	}
	at := o.News.asOf
	if at.IsZero() {
		at = time.Now()
	}
	removed, err := news.Purge(ctx, d, s, o.News.loaded, at)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d articles were past their time at %s and are removed; hashes of their addresses stay\n", removed, at.UTC().Format(time.RFC3339))
	return err
}

// extendNews adds a row a provider and their alerts to the run report.
func extendNews(ctx context.Context, s store.Store, report *ledger.Report) error {
	rows, err := news.Results(ctx, s, report.RunID)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		report.Providers = rows
	}
	for _, r := range rows {
		if r.State == engine.Skipped || r.State == engine.Stopped {
			report.Alerts = append(report.Alerts, fmt.Sprintf("provider %s was %s: %s", r.Provider, r.State, cmp.Or(r.Reason, "no reason was kept")))
		}
		report.Alerts = append(report.Alerts, r.Alerts...)
	}
	return nil
}
