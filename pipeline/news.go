package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
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
	Publisher                string
	KeepHTML, Reparse, Purge bool
	Due                      bool
	loaded                   provider.Config
	texts                    []string // of the declarative publishers
	joining
	shipped map[string]publisher // before people's changes, by id
	off     map[string]string    // why a publisher is not crawled, by people's changes
	// world are the publishers that ship with the program and are crawled only by name.
	world   []provider.Provider
	offered []string // ids of all publishers that can be named
	one     *onePage // of --url
}

func newsJob() Job {
	o := &newsOptions{}
	o.joining = joining{words: publisherKind.Words, resolve: o.resolve}
	return Job{
		Job: ledger.Job{Name: news.Job, Title: "News", Counts: news.Counts(),
			Stages: []ledger.Stage{
				{Name: "listed", Unit: "publishers", Counts: []string{ledger.LaneHosts}},
				{Name: "found", Unit: "articles", Counts: []string{"articles_found"}},
				{Name: "fetched", Unit: "articles", Counts: []string{"articles_fetched"}, Apart: []string{"articles_failed", "articles_forbidden", "articles_paywalled", "articles_empty"}},
				{Name: "stored", Unit: "articles", Counts: []string{"articles_inserted", "articles_changed"}, Apart: []string{"articles_same"}},
				{Name: "crawled", Unit: "publishers", Counts: []string{ledger.LaneHostsDone}, Apart: []string{"providers_skipped", "providers_stopped", "providers_not_due"}},
			}, Path: "/api/v1/news/runs", Done: "articles_inserted", Alerts: alert.Rules(),
		}, SQL: true,
		Tables: []string{"news_runs", "news_urls", "news_articles"}, Offline: func() bool { return o.Reparse },
		Rows: raw.Rows(news.Job), Audit: raw.Images.Audit, Removal: new(raw.Removal(news.Job)), Policies: publisherKind, Commands: newsCommands(),
		Options: o.options, Check: o.check, Accept: o.accept, Offer: o.offer, Instead: o.instead,
		Demo:       newsDemo,
		DemoNotice: "Demo: simulated publishers (demo data); pauses between requests are turned off for them",
		Config:     func(c RunOptions, l lane.Config, _ string) any { return o.config(c, l) },
		Build:      func(s beam.Scope, config any) { News(s, config.(news.Config)) },
		LiveCount:  "articles_fetched", Unit: "articles",
		Extend: extendNews,
		Reopen: reopenIn(raw.Migrate, raw.Reopen),
	}
}

func newsDemo(w *webtest.Web) { newssim.Install(w.Handle, time.Now()) }

func (n *newsOptions) options(s *option.Set) {
	// host-delay is not among them: the job's pauses are delaySeconds.
	s.Take(slices.Concat(requesting, costed, []string{"concurrency", "rate", "max-crawl-delay", "db", "url", "purpose", "images"})...)
	s.Default("concurrency", "1")
	s.Text(&n.Settings, "news-config", "", "YAML file with delaySeconds, maxArticlesPerProvider, rawTextMaxLength, rawRetentionDays, providers; NEWS_… environment variables override it").In(option.What)
	s.Text(&n.Publishers, "publishers", "", "directory with one YAML file for each publisher; of those shipped with the program only the ones that --news-config enables by name are crawled then").In(option.What)
	s.Names(&n.Publisher, "publisher", "only these publishers, by id, separated by commas; those of the world that ship with the program (bbc, lemonde, yna …) are crawled only when they are named here or enabled by --news-config", "Only these publishers", "ids of publishers").
		NotEmpty("name publishers, or leave it out for all").Is(option.Selects | option.Extent).In(option.What)
	s.Yes(&n.KeepHTML, "keep-html", false, "store each article's whole page for as long as the article")
	s.Yes(&n.Due, "due", false, "ask only the publishers that are due, by how often each publishes (minInterval and maxInterval in its file: 15 minutes to 6 hours); for schedules that start a run every few minutes").Is(option.Selects)
	s.Yes(&n.Reparse, "reparse", false, "read the pages that --keep-html stored again, and fetch nothing").Is(option.OneRun | option.Selects).In(option.What)
	s.Yes(&n.Purge, "purge-expired", false, "remove expired articles, and do nothing else").Is(option.OneRun)
}

func (n *newsOptions) check(c *RunOptions) error {
	switch {
	case n.Purge && (n.Reparse || n.KeepHTML || c.Images):
		return usage.Errorf("--purge-expired does nothing else: leave --reparse, --keep-html and --images out")
	case n.Reparse && (n.KeepHTML || c.Images):
		return usage.Errorf("--reparse fetches nothing that --keep-html or --images could keep: use one of them")
	case n.Due && (n.Purge || n.Reparse):
		return usage.Errorf("--due chooses the publishers that are asked for their newest articles; leave --purge-expired and --reparse out")
	case n.Purge && n.Publisher != "":
		return usage.Errorf("--purge-expired removes the expired articles of all publishers; leave --publisher out")
	}
	if c.Limit > 0 && (n.Purge || n.Reparse) {
		return usage.Errorf("--limit is of articles that are fetched; leave it out with --purge-expired and --reparse")
	}
	return n.joining.check(c, n.Publishers != "")
}

// resolve joins the publishers of the files with people's changes, and refuses what does not fit them.
func (n *newsOptions) resolve(c *RunOptions, changes map[string]policyfile.Change) error {
	if err := n.load(c.Web == "demo", changes); err != nil || c.URL == "" {
		return err
	}
	return n.chooseOne(c)
}

// load chooses publishers of the files and of the store, by the settings.
func (n *newsOptions) load(demo bool, changes map[string]policyfile.Change) error {
	files, err := n.files(demo)
	if err != nil {
		return err
	}
	all := publisherKind.Join(files, changes, n.Publishers != "", time.Now())
	if err := n.configure(files, all); err != nil {
		return err
	}
	n.texts, n.one, n.world, n.off = nil, nil, nil, map[string]string{}
	worldTexts, ids := map[string]string{}, []string{}
	for _, p := range all {
		if ids = append(ids, p.ID); p.Off != "" {
			n.off[p.ID] = p.Off
			n.loaded = n.loaded.Switch(false, true, p.ID)
		}
		switch {
		case p.Refused || n.shipped[p.ID].code():
		case n.shipped[p.ID].world:
			n.world, worldTexts[p.ID] = append(n.world, p.Value.Provider), p.Value.text
		default:
			n.texts = append(n.texts, p.Value.text)
		}
	}
	n.offered = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !n.loaded.Enabled(id) })
	named := strings.FieldsFunc(n.Publisher, func(c rune) bool { return c == ',' || c == ' ' })
	for _, id := range named {
		if why := n.off[id]; why != "" {
			return usage.Errorf("--publisher=%s: %s", id, why)
		}
	}
	for _, id := range provider.IDs(n.world) {
		n.loaded = n.loaded.Switch(slices.Contains(named, id), false, id)
	}
	if err := n.choose(ids); err != nil {
		return err
	}
	for _, p := range n.world { // the workers read those that are crawled
		if n.loaded.Enabled(p.ID()) {
			n.texts = append(n.texts, worldTexts[p.ID()])
		}
	}
	return nil
}

// files reads the publishers that are Go code, those of files, and those of the world, except those with the id of another one.
func (n *newsOptions) files(demo bool) (all []publisher, err error) {
	var from fs.FS
	if n.Publishers != "" {
		if info, err := os.Stat(n.Publishers); err != nil {
			return nil, usage.Errorf("--publishers: %w", err)
		} else if !info.IsDir() {
			return nil, usage.Errorf("--publishers=%s is no directory; name the one with the YAML files", n.Publishers)
		}
		from = os.DirFS(n.Publishers)
	} else if demo {
		from = publishers.Files
	}
	taken := map[string]bool{}
	add := func(p publisher) {
		if !taken[p.ID()] {
			all, taken[p.ID()] = append(all, p), true
		}
	}
	for _, p := range news.Registered() {
		add(publisher{Provider: p})
	}
	if from != nil {
		declared, texts, err := provider.ReadDeclarations(from)
		if err == nil {
			_, err = news.Config{Publishers: texts}.Providers()
		}
		if err != nil {
			return nil, usage.Errorf("--publishers: %w", err)
		}
		if len(texts) == 0 {
			return nil, usage.Errorf("--publishers=%s has no YAML file (*.yaml, *.yml): write one a publisher, or name the directory that has them", n.Publishers)
		}
		for i, p := range declared {
			add(publisher{Provider: p, text: texts[i]})
		}
	}
	if demo {
		return all, nil
	}
	declared, texts, err := provider.ReadDeclarations(publishers.World())
	for i, p := range declared {
		add(publisher{Provider: p, text: texts[i], world: true})
	}
	return all, err
}

// configure reads the settings, and notes for each publisher what they make of it.
func (n *newsOptions) configure(files []publisher, all []policyfile.Joined[publisher]) (err error) {
	n.shipped = map[string]publisher{}
	for _, p := range files {
		n.shipped[p.ID()] = p
	}
	var text []byte
	if n.Settings != "" {
		if text, err = os.ReadFile(n.Settings); err != nil {
			return usage.Errorf("--news-config: %w", err)
		}
	}
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	if n.loaded, err = provider.ReadConfig(text, os.Environ(), ids); err != nil {
		return usage.Errorf("--news-config: %w", err)
	}
	if n.Publishers != "" {
		n.loaded = n.loaded.Switch(false, false, provider.IDs(news.Registered())...)
	}
	for i, p := range all {
		all[i].Value.off = !n.loaded.Enabled(p.ID)
		all[i].Value.named = n.shipped[p.ID].world && n.loaded.Providers[p.ID].Enabled == nil
	}
	return nil
}

func (n *newsOptions) offer(context.Context, store.Store, *RunOptions) (map[string][]string, error) {
	return map[string][]string{"publisher": n.offered}, nil
}

// choose disables the publishers that --publisher does not name.
func (n *newsOptions) choose(ids []string) error {
	enabled := slices.DeleteFunc(ids, func(id string) bool { return !n.loaded.Enabled(id) })
	only, err := choose("publisher", n.Publisher, "enabled publisher", enabled)
	if err != nil || only == nil {
		return err
	}
	others := slices.DeleteFunc(enabled, func(id string) bool { return slices.Contains(only, id) })
	n.loaded = n.loaded.Switch(false, true, others...)
	return nil
}

func (n *newsOptions) instead() *Action {
	switch {
	case n.Purge:
		return &Action{Do: n.purge}
	case n.one != nil:
		return &Action{Alone: true, Do: n.printOne}
	}
	return nil
}

// config makes the workers' configuration from the options.
func (n *newsOptions) config(c RunOptions, l lane.Config) news.Config {
	cfg := news.Config{Lanes: c.Lanes, DB: c.DB, Concurrency: c.Concurrency, Settings: n.loaded, Publishers: n.texts,
		Options: engine.Options{KeepHTML: n.KeepHTML, Images: c.Images, Reparse: n.Reparse, OnlyDue: n.Due, Purpose: c.For(), NoDelay: c.Web == "demo", LeaseTTL: c.LeaseTTL}}
	l.Web = cfg.Web(l.Web)
	cfg.Lane = l
	return cfg
}

func (n *newsOptions) purge(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error {
	d, err := openDB(ctx, c.DB, raw.Migrate)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // every write is committed by then
	at := time.Now()
	removed, err := news.Purge(ctx, d, s, n.loaded, at)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d articles were past their time at %s and are removed; hashes of their addresses stay\n", removed, at.UTC().Format(time.RFC3339))
	return err
}

// extendNews adds a row for each publisher, and their alerts, to the run report.
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
			report.Alerts = append(report.Alerts, fmt.Sprintf("provider %s was %s: %s", r.Provider, r.State, cmp.Or(r.Reason, "no reason is known")))
		}
		report.Alerts = append(report.Alerts, r.Alerts...)
	}
	return nil
}
