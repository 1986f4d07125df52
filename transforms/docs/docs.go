// Package docs crawls the documentation of API providers: it fetches their pages,
// cuts them into chunks, stores them, and reports what changed since the last crawl. No promise: see docs/library.md.
package docs

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// Job is the name of this job in the ledger and in dead letters.
const Job = "docs"

// Counts names what the job's report always counts, in the order in which a person
// reads them.
func Counts() []string {
	return []string{"providers", "providers_not_done", "pages_fetched", "pages_new", "pages_updated", "pages_unchanged", "pages_deleted", "pages_skipped",
		"pages_blocked", "pages_reserved", "chunks"}
}

// UserAgent is the crawler's User-Agent, unless the configuration of the run names another.
const UserAgent = "APIIntelBot/1.0 (+https://api-intel.vercel.app/bot)"

// The limits of requests and pages, over all workers and runs together.
const (
	MaxHosts   = 3 // crawled at once
	HourBudget = 1_000
	DayBudget  = 10_000
)

// DefaultRetention is how long the hand-off for the embedding step is kept:
// until the next weekly run has written its own.
const DefaultRetention = 7 * 24 * time.Hour

const (
	maxPage     = 5 << 20 // bytes of one page, decoded
	maxRobots   = 500 << 10
	pageTimeout = 30 * time.Second

	// leaseTTL is how long the lease of a provider lasts after its worker was killed.
	leaseTTL = 15 * time.Second
	// resumeWithin is how long after its last activity an interrupted session is
	// resumed; after that its pages are too old to be skipped.
	resumeWithin = 72 * time.Hour
	// maxQueued is the maximum size of a provider's frontier in a session: pages with
	// ever more links must not fill the database.
	maxQueued = 10_000
	// maxOutline is the maximum size in bytes of what is stored for all blocks and
	// chunks of one page in addition to their text: headings, title and hashes.
	maxOutline = 16 << 20
	// maxLinks is the maximum number of links stored for one page.
	maxLinks = 2_000
)

// Config is the configuration that the job's DoFns bring to the workers, without secrets.
type Config struct {
	Lane     lane.Config
	Lanes    int    // at most MaxHosts
	DB       string // DSN without password; see db.OfWorker
	Policies []policy.Policy
	// Off says why a provider is not crawled whatever its policy says, because of what
	// people changed in the store.
	Off      map[string]string
	Fallback bool // crawl what Context7 has too
	// Only are the providers that are crawled; nil: all. An unfinished session stays open
	// for the others.
	Only []string
	// Again is a provider whose hand-off is made again, or AgainAll. A single provider
	// is crawled alone.
	Again string

	HourBudget int              // 0: HourBudget
	DayBudget  int              // 0: DayBudget
	Purpose    rights.Purpose   // what is reserved for it is not fetched, or not handed on; "": everything is recorded only
	Retention  time.Duration    // of the hand-off; 0: DefaultRetention, below 0: for ever
	LeaseTTL   time.Duration    // of a provider; 0: 15 s
	Alerts     alert.Thresholds // nil: the defaults

	// UnsandboxedBrowser lets the browser of spa_rendering run without its sandbox.
	UnsandboxedBrowser bool

	// NoDelay turns gaps and budgets off and divides other pauses by a thousand. It is for
	// simulated sites only, in the demo, benchmarks and tests.
	NoDelay bool
}

// Web adapts the client's configuration for this job: its own User-Agent, and few requests, because package polite makes its pauses.
func Web(c web.Config) web.Config {
	c.UserAgent = cmp.Or(c.UserAgent, UserAgent)
	c.Concurrency = MaxHosts
	return c
}

// Crawled reports whether a provider is crawled by its policy, and if not, why.
func (c Config) Crawled(p policy.Policy) (reason string, crawled bool) {
	switch {
	case c.Off[p.ProviderID] != "":
		return c.Off[p.ProviderID], false
	case p.Terms == policy.Prohibited:
		return "its terms of service prohibit crawling (tos: prohibited)", false
	}
	return "", true
}

// AgainAll stands for every provider in Config.Again.
const AgainAll = "*"

// again reports whether a provider's hand-off is made again in this run.
func (c Config) again(provider string) bool { return c.Again == AgainAll || c.Again == provider }

// leftOut reports whether a provider is left out because others were chosen.
func (c Config) leftOut(provider string) bool {
	return c.Again != "" && !c.again(provider) || c.Only != nil && !slices.Contains(c.Only, provider)
}

//go:embed migrations
var migrations embed.FS

// Migrate brings the job's tables up to date, from an empty database too.
func Migrate(ctx context.Context, d *db.DB) error {
	return d.Migrate(ctx, Job, db.Files(migrations))
}
