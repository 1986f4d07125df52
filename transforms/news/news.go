// Package news has the stages of the news job: they choose the publishers and crawl them
// within the run's limits. Package engine crawls one publisher. Each publisher has its
// own folder or YAML file. No promise: see docs/library.md.
package news

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/hankyung"
	"github.com/newsfork/seed-engine/transforms/news/mk"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// Job is the name of this job in the ledger, in dead letters and in leases.
const Job = "news"

// Counts names what the job's report always counts, in the order in which a person
// reads them.
func Counts() []string {
	return []string{"providers_run", "providers_skipped", "providers_stopped", "articles_found", "articles_fetched", "articles_inserted",
		"articles_changed", "articles_same", "articles_empty", "articles_expired"}
}

// Registered returns the publishers that are Go code. A new one needs its folder and a
// line here.
func Registered() []provider.Provider {
	return []provider.Provider{
		mk.Provider{},
		hankyung.Provider{},
	}
}

// Config is the configuration that the job's DoFns bring to the workers. It has no
// password of the database: each worker has its own environment.
type Config struct {
	Lane        lane.Config
	Lanes       int
	DB          string // DSN without password; see db.OfWorker
	Concurrency int    // providers at the same time; 0: 1
	Settings    provider.Config
	Publishers  []string // YAML texts of the declarative publishers
	engine.Options
}

// Providers returns the publishers of a configuration, enabled or not.
func (c Config) Providers() ([]provider.Provider, error) {
	all := Registered()
	for _, text := range c.Publishers {
		p, err := provider.Declared([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("reading a publisher: %w", err)
		}
		all = append(all, p)
	}
	return all, provider.Check(all)
}

// Web adapts the client's configuration for this job.
func (c Config) Web(w web.Config) web.Config {
	w.Concurrency = max(c.Concurrency, 1)
	return w
}

// lanes returns the number of lanes. It is at most Concurrency, because providers in
// different lanes are crawled at the same time.
func (c Config) lanes() int { return min(max(c.Lanes, 1), max(c.Concurrency, 1)) }

func init() {
	beam.RegisterDoFn(reflect.TypeFor[listFn]())
	beam.RegisterDoFn(reflect.TypeFor[visitFn]())
	register.Emitter2[int, string]()
	register.Iter1[string]()
}

// doFn is the part that the job's DoFns share.
type doFn struct {
	lane.DoFn
	Config Config
	db     *db.DB
}

// Setup implements Beam's.
func (d *doFn) Setup(ctx context.Context) (err error) {
	if err = d.Open(ctx, d.Config.Lane); err != nil {
		return err
	}
	d.db, err = d.Worker.DB(ctx, d.Config.DB, raw.Migrate)
	return err
}

// List removes expired articles, and chooses the providers that are crawled.
//
// Out: ids of providers by lane (int, string); tallies.
func List(s beam.Scope, cfg Config) (providers, tallies beam.PCollection) {
	s = s.Scope("news.List")
	return beam.ParDo2(s, &listFn{doFn{Config: cfg}}, beam.Impulse(s))
}

type listFn struct{ doFn }

func (fn *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(int, string), emitTally func(ledger.Tally)) error {
	expired, err := Purge(ctx, fn.db, fn.Worker.Store, fn.Config.Settings, time.Now())
	if err != nil {
		return err
	}
	all, err := fn.Config.Providers()
	if err != nil {
		return err
	}
	lanes := map[string]int{}
	for _, p := range all {
		if !fn.Config.Settings.Enabled(p.ID()) {
			fn.Worker.Log.Info("provider_disabled", "provider", p.ID())
			continue
		}
		emit(turn(lanes, p, fn.Config.lanes()), p.ID())
	}
	fn.Worker.Emit(emitTally, ledger.Tally{Counts: map[string]int64{"articles_expired": expired}})
	return nil
}

// turn returns the lane of a provider. Providers with the same web.Site get the same lane,
// so that one worker keeps the pauses there; others get the lanes in turn.
func turn(lanes map[string]int, p provider.Provider, of int) int {
	site := p.ID()
	if u, err := url.Parse(p.BaseURL()); err == nil { // an error is reported by its visit
		site = web.Site(u)
	}
	n, known := lanes[site]
	if !known {
		n = len(lanes) % of
		lanes[site] = n
	}
	return n
}

// Purge removes expired articles, evidence, and images that no article names, and returns the number of articles.
func Purge(ctx context.Context, d *db.DB, s store.Store, c provider.Config, now time.Time) (int64, error) {
	expired, err := raw.Expiring(ctx, d, now)
	if err != nil {
		return 0, err
	}
	// Before the articles, by which the next run knows what is left after a kill.
	if _, err := raw.Sweep(ctx, s, expired, now.Add(-c.Retention())); err != nil {
		return 0, err
	}
	n, err := raw.Purge(ctx, d, now)
	return n, errors.Join(err, raw.SweepImages(ctx, d, s))
}

// Visit crawls each lane's providers, as many at the same time as the configuration says.
//
// In: ids of providers by lane. Out: tallies.
func Visit(s beam.Scope, cfg Config, providers beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("news.Visit")
	return beam.ParDo(s, &visitFn{doFn{Config: cfg}}, beam.GroupByKey(s, providers))
}

type visitFn struct{ doFn }

func (fn *visitFn) ProcessElement(ctx context.Context, n int, values func(*string) bool, emitTally func(ledger.Tally)) error {
	var ids []string
	var id string
	for values(&id) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	all, err := fn.Config.Providers()
	if err != nil {
		return err
	}
	return fn.Worker.RunLane(ctx, n, fn.Config.lanes(), len(ids), emitTally, func(within context.Context, l *lane.Lane) error {
		e := fn.engine()
		e.Count, e.Quota = l.Count, fn.Worker.Quota(n, fn.Config.lanes())
		visit := func(ctx context.Context, id string) ledger.Tally {
			defer fn.Worker.At(id)()
			i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.ID() == id })
			r, err := e.Run(ctx, all[i])
			return fn.ended(ctx, r, err)
		}
		failed := func(id string, err error) ledger.Tally { // a bug of the engine fails only this provider
			return fn.ended(ctx, engine.Result{Provider: id, State: engine.Cut, Reason: err.Error(), Alerts: []string{fmt.Sprintf("provider %s: %v", id, err)}}, nil)
		}
		at := max(1, max(fn.Config.Concurrency, 1)/fn.Config.lanes())
		lane.Drain(within, l, at, slices.Values(ids), visit, failed, l.Count)
		return nil
	})
}

func (fn *visitFn) engine() *engine.Engine {
	return &engine.Engine{Job: Job, RunID: fn.Config.Lane.RunID, Config: fn.Config.Settings, UserAgent: fn.Config.Lane.Web.UserAgent,
		Web: fn.Worker.Web, Store: fn.Worker.Store, DB: fn.db, Log: fn.Worker.Log, Polite: fn.Config.Lane.Polite,
		Options: fn.Config.Options, Worker: fn.Worker, Pacer: &fn.Worker.Pacer}
}

// One fetches one article of a provider, and stores nothing of it.
func One(ctx context.Context, cfg Config, p provider.Provider, address string) (one engine.One, err error) {
	fn := visitFn{doFn{Config: cfg}}
	err = fn.Setup(ctx)
	defer func() { err = errors.Join(err, fn.Teardown()) }()
	if err != nil {
		return one, err
	}
	return fn.engine().One(ctx, p, address)
}

// ended writes a provider's row for the report, and returns the counts of the provider
// itself: its articles are counted already.
func (fn *visitFn) ended(ctx context.Context, r engine.Result, err error) ledger.Tally {
	if err != nil && ctx.Err() == nil {
		// A publisher cannot fail a visit: this is an error of the database, the store, or a bug.
		fn.Worker.Log.Error("provider_failed", "provider", r.Provider, "error", ledger.Redact(err.Error()))
		fn.Worker.Stop(fmt.Errorf("crawling %s: %w; what was done is kept, and the same command resumes from there", r.Provider, err))
	}
	if err != nil {
		r.State, r.Reason = engine.Cut, err.Error()
	}
	r.Reason = ledger.Redact(r.Reason)
	if werr := writeResult(context.WithoutCancel(ctx), fn.Worker.Store, fn.Config.Lane.RunID, r); werr != nil {
		fn.Worker.Log.Error("provider_row_not_written", "provider", r.Provider, "error", ledger.Redact(werr.Error()))
		fn.Worker.Stop(werr)
	}
	var t ledger.Tally
	switch r.State {
	case engine.Ran:
		t.Count("providers_run", 1)
	case engine.Skipped:
		t.Count("providers_skipped", 1)
	case engine.NotDue:
		t.Count("providers_not_due", 1)
	case engine.Cut, engine.Left:
	default: // the site is not open, or refuses
		t.Count("providers_stopped", 1)
	}
	return t
}

// maxResult is more than the row of a provider with maxDecisions has.
const maxResult = 16 << 20

func rowsPrefix(runID string) string { return "runs/" + runID + "/providers/" }

func writeResult(ctx context.Context, s store.Store, runID string, r engine.Result) error {
	return store.WriteJSON(ctx, s, rowsPrefix(runID)+r.Provider+".json", r)
}

// Results returns the rows of a run's providers, sorted by id.
func Results(ctx context.Context, s store.Store, runID string) (out []engine.Result, err error) {
	for o, err := range s.List(ctx, rowsPrefix(runID)) {
		if err != nil {
			return nil, fmt.Errorf("listing the rows of providers: %w", err)
		}
		var r engine.Result
		if err := store.ReadJSON(ctx, s, o.Key, maxResult, &r); err != nil {
			return nil, fmt.Errorf("reading the row of a provider: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}
