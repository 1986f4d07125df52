// Package catalog has the catalog job's stages. In a lane each site is crawled by its own
// engine: list pages, product pages and products are tasks, and each kind of task has a
// queue and a pool of workers. No promise: see docs/library.md.
package catalog

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Job is the name of this job in the ledger, in dead letters and in leases.
const Job = "catalog"

// Counts names what the job's report always counts, in the order in which a person
// reads them.
func Counts() []string {
	return []string{"list_pages_fetched", "product_urls_found", "detail_pages_fetched", "products_saved", "failed_tasks",
		"products_new", "products_changed", "products_unchanged", "products_gone", SitesCrawled, SitesFailed, SitesHeld}
}

// DefaultLeaseTTL is how long the lease of a site lasts after its worker was killed.
const DefaultLeaseTTL = 15 * time.Second

// maxSites is how many sites a lane crawls at the same time. They are on different hosts,
// and the client limits the requests of all.
const maxSites = 8

// Config is the configuration that the job's DoFns bring to the workers, without secrets.
type Config struct {
	Lane  lane.Config
	Lanes int
	DB    string // DSN without password; see db.OfWorker
	Sites []Site
	Order []string // the sites' names, where each has its share of a limit; see lane.Quota

	// The sizes of the pools, and the length of the queue of each pool.
	ListFetchers, ListParsers, DetailFetchers, DetailParsers, Savers int
	QueueLength                                                      int

	Tagging Tagging
	Images  imaging

	UnsandboxedBrowser bool // of sites with rendering

	// Details says which products' pages are fetched: all; DetailsNew: only of products that are not stored; or
	// DetailsIncomplete: also of those that lack a required field.
	Details        string
	StopAfterKnown int           // a list ends after this many pages without a new product; 0: it is read to its end
	Restart        bool          // do not resume an interrupted crawl, and believe a list that has lost most of its products
	LeaseTTL       time.Duration // of a site; 0 for DefaultLeaseTTL
}

//go:embed migrations
var migrations embed.FS

// Migrate brings the job's tables up to date, from an empty database too.
func Migrate(ctx context.Context, d *db.DB) error {
	return d.Migrate(ctx, Job, db.Files(migrations))
}

// Reopen lets the next run do the inputs of dead letters again.
func Reopen(ctx context.Context, d *db.DB, dead []ledger.DeadLetter) error {
	return d.Do(ctx, "reopening the inputs of dead letters", func(tx *sql.Tx) error {
		for _, l := range dead {
			if l.Input.Source == "" || l.Input.URL == "" {
				continue // a site's own failure: each run tries the site again
			}
			kind, page := KindFetchProductDetailPage, 0
			if l.Input.Index != nil {
				kind, page = KindFetchListPage, *l.Input.Index
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_tasks (site, kind, url, page, state, tries, fetched, not_before) VALUES ($1, $2, $3, $4, $5, 0, FALSE, $6)
				ON CONFLICT (site, kind, url) DO UPDATE SET state = excluded.state, tries = 0, fetched = FALSE, not_before = excluded.not_before`,
				l.Input.Source, kind, l.Input.URL, page, waiting, anyTime); err != nil {
				return err
			}
		}
		return nil
	})
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Site](), encodeSite, decodeSite)
	beam.RegisterDoFn(reflect.TypeFor[listFn]())
	beam.RegisterDoFn(reflect.TypeFor[visitFn]())
	register.Emitter2[int, Site]()
	register.Iter1[Site]()
}

func encodeSite(s Site) ([]byte, error) { return json.Marshal(s) }

func decodeSite(b []byte) (s Site, err error) { return s, json.Unmarshal(b, &s) }

// Sites gives each site its lane.
//
// Out: sites by lane.
func Sites(s beam.Scope, cfg Config) beam.PCollection {
	s = s.Scope("catalog.Sites")
	return beam.ParDo(s, &listFn{Config: cfg}, beam.Impulse(s))
}

type listFn struct{ Config Config }

func (fn *listFn) ProcessElement(_ context.Context, _ []byte, emit func(int, Site)) error {
	for _, s := range fn.Config.Sites {
		emit(lane.Of(s.Host(), fn.Config.Lanes), s)
	}
	return nil
}

// Visit crawls each lane's sites, and writes their products to the database.
//
// In: sites by lane. Out: tallies.
func Visit(s beam.Scope, cfg Config, sites beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("catalog.Visit")
	for _, site := range cfg.Sites {
		cfg.Order = append(cfg.Order, site.Name)
	}
	cfg.Sites = nil // the stage gets them as elements
	return beam.ParDo(s, &visitFn{Config: cfg}, beam.GroupByKey(s, sites))
}

type visitFn struct {
	lane.DoFn
	Config Config
	db     *db.DB
}

// Setup implements Beam's.
func (fn *visitFn) Setup(ctx context.Context) (err error) {
	if err = fn.Open(ctx, fn.Config.Lane); err != nil {
		return err
	}
	fn.db, err = fn.Worker.DB(ctx, fn.Config.DB, Migrate)
	return err
}

func (fn *visitFn) ProcessElement(ctx context.Context, n int, sites func(*Site) bool, emitTally func(ledger.Tally)) error {
	var all []Site
	var s Site
	for sites(&s) {
		all = append(all, s)
	}
	return fn.Worker.RunLane(ctx, n, fn.Config.Lanes, len(all), emitTally, func(within context.Context, l *lane.Lane) error {
		stats := make(map[string]*Stats, len(all)) // by site
		for _, s := range all {
			stats[s.Name] = &Stats{}
		}
		l.Sample = func() ledger.Counts {
			var t ledger.Tally
			for _, s := range stats {
				t.Add(ledger.Tally{Counts: s.snapshot().Counts})
			}
			return t.Counts
		}
		visit := func(ctx context.Context, s Site) error {
			defer fn.Worker.At(s.Name)()
			v, err := newVisit(fn.Config, fn.Worker, fn.db, s, stats[s.Name])
			if err == nil {
				v.count = l.Count
				err = v.run(ctx)
			}
			return fn.ended(ctx, s, stats[s.Name], err)
		}
		failed := func(s Site, err error) error { return fn.ended(ctx, s, stats[s.Name], err) }
		lane.Drain(within, l, maxSites, slices.Values(all), visit, failed, func(err error) {
			if err != nil {
				fn.Worker.Stop(err)
			}
		})
		return nil
	})
}

// ended writes a dead letter for a site that could not be crawled. An error that it
// returns ends the run.
func (fn *visitFn) ended(ctx context.Context, s Site, stats *Stats, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	d := ledger.DeadLetter{Job: Job, RunID: fn.Config.Lane.RunID, Stage: "Orchestrator", Kind: "site_failed", Input: ledger.Input{Source: s.Name}}
	if err == nil {
		if fn.Worker.Stopped() {
			return nil
		}
		stats.Count(SitesCrawled, 1)
		if stats.snapshot().Counts[ledger.LeftByLimit] > 0 {
			return nil
		}
		if err := fn.Worker.Resolve(ctx, d); err != nil {
			fn.Worker.Log.Warn("dead_letter_stays", "site", s.Name, "error", ledger.Redact(err.Error()))
		}
		return nil
	}
	if errors.Is(err, polite.ErrStopped) { // by the hours of the politeness file: the next run resumes
		return nil
	}
	fn.Worker.Log.Error("crawl_failed", "site", s.Name, "error", ledger.Redact(err.Error()))
	d.Error = err.Error()
	var f *failure
	var panicked *lane.PanicError
	if !errors.As(err, &f) && !errors.As(err, &panicked) {
		return fmt.Errorf("crawling %s: %w; what was done is kept, and the same command resumes from there", s.Name, err)
	}
	stats.Count(SitesCrawled, 1)
	stats.Count(SitesFailed, 1)
	if f != nil {
		d.Kind, d.Retryable = f.kind, !f.final
		if f.kind == "layout_break" || f.kind == "key_collisions" {
			stats.Count(SitesHeld, 1)
		}
	}
	stats.fail("failed_orchestrator")
	return fn.Worker.DeadLetter(ctx, d)
}
