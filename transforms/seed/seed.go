// Package seed has the seed job's stages: list the raw files, extract the
// domains that they name, visit each domain once, and mark each raw file whose
// domains are all done.
package seed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Job is the name of this job in the ledger and in dead letters.
const Job = "seed"

// Counts names what the job's report always counts, in the order in which a person
// reads them.
func Counts() []string {
	return []string{"files_listed", "files_ignored", "files_skipped", "files_read", "files_bad", "records", "records_bad",
		"domains_unique", "domains_already_done", "domains_collected", "domains_held", "domains_failed", "robots_found", "sitemaps_found", "dead_letters"}
}

// Config is the configuration that the job's DoFns bring to the workers.
type Config struct {
	Lane  lane.Config
	Lanes int

	Country, Category, Date string   // filters, empty for all
	Files                   []string // only these raw files, for a replay; empty for all
	Sample                  float64  // only this share of the domains (0–1); 0 for all

	// ForceID identifies a forced run and the killed tries that it resumes: only marks
	// with this id count as done. Empty if the run is not forced.
	ForceID string

	Collect Collect
	Layout  Layout // empty for Objects
	// SegmentAge is how old a segment may become before it is committed; 0 for SegmentAge.
	SegmentAge time.Duration
	// OutageThreshold is the share of a window of visits (0–1) from which on
	// failures below HTTP mean that our own network is down; 0 turns the guard off.
	OutageThreshold float64
}

// Sampled returns a visit of the records whose domains are in the sample. A domain is in all samples from some share on.
func (c Config) Sampled(visit func(lane.URLRecord) error) func(lane.URLRecord) error {
	if c.Sample == 0 {
		return visit
	}
	return func(r lane.URLRecord) error {
		sum := sha256.Sum256([]byte(r.Host))
		if float64(binary.BigEndian.Uint64(sum[:8])) >= c.Sample*(1<<64) {
			return nil
		}
		return visit(r)
	}
}

// doFn is the part that the job's DoFns share.
type doFn struct {
	lane.DoFn
	Config Config
}

// Setup implements Beam's.
func (d *doFn) Setup(ctx context.Context) error {
	if err := d.Open(ctx, d.Config.Lane); err != nil {
		return err
	}
	return d.Worker.LoadPauses(ctx)
}

// Collect says what is collected about a domain.
type Collect struct {
	StrictHosts      bool // only https at the registrable domain is requested
	FollowIndex      bool
	MaxChildSitemaps int
	Feeds            bool
	Homepage         bool
	ParallelFetch    bool
	RobotsCache      time.Duration // how long a robots.txt may be reused; 0 for never
	Web              string        // of the metadata: demo, or "" for real sites
}

// marker returns the options with which this run writes a completion mark.
func (c Config) marker() store.PutOptions {
	o := store.PutOptions{ContentType: "text/plain"}
	if c.ForceID != "" {
		o.Metadata = map[string]string{ledger.ForcedByKey: c.ForceID}
	}
	return o
}

// counts reports whether a completion mark is valid for this run: in a forced run only
// its own marks are. (A mark has its run's id because the times of stores are too coarse
// to order two marks of one second.)
func (c Config) counts(mark store.Object) bool {
	return c.ForceID == "" || mark.Metadata[ledger.ForcedByKey] == c.ForceID
}

func (c Config) marked(ctx context.Context, s store.Store, key string) (bool, error) {
	if c.ForceID != "" {
		return marked(ctx, s, key+hive.Success, c.counts)
	}
	return store.Has(ctx, s, key+hive.Success)
}

func tally(counts map[string]int64) ledger.Tally { return ledger.Tally{Counts: counts} }

// Visits is how many hosts a lane visits at the same time. Most visits wait for the gap of
// their host while others send; the number of requests is limited by the client. With a
// low rate only few hosts are visited at the same time, so that each visit ends soon and
// a stop loses little of what was fetched.
func Visits(concurrency int, hostDelay time.Duration, rate float64) int {
	n := concurrency
	if hostDelay > 0 {
		n *= 4
	}
	if rate > 0 {
		n = min(n, int(math.Ceil(4*rate))) // a visit makes about four requests of a second each
	}
	return n
}

func (c Config) pool() int {
	return Visits(c.Lane.Web.Concurrency, c.Lane.Polite.HostDelay, c.Lane.Web.Rate)
}
