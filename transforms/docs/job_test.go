package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser/browsertest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
)

func TestMain(m *testing.M) {
	go browsertest.Read()
	lanetest.Main(m)
}

// job is a store, a database and the fifteen simulated sites.
type job struct {
	t     testing.TB
	dir   string
	store store.Store
	sim   *webtest.Web
	sites docsim.Sites
	cfg   Config
	mu    sync.Mutex
	runs  int
}

func newJob(t testing.TB, dsn string, o webtest.Options) *job {
	t.Helper()
	j := &job{t: t, dir: t.TempDir(), sim: webtest.New(o)}
	require.NoError(t, j.sim.Start())
	t.Cleanup(func() { require.NoError(t, j.sim.Close()) })
	j.sites = docsim.Install(j.sim.Handle, 1)
	var err error
	j.store, err = store.Open(t.Context(), j.dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.store.Close()) })
	all, err := policy.Load(policies.Files, time.Now())
	require.NoError(t, err)
	j.cfg = Config{DB: dsn, Policies: all, Fallback: true, NoDelay: true, Lanes: 1,
		Lane: lane.Config{Job: Job, Store: j.dir, Slots: 1, LogFormat: "json", LogLevel: 12, Web: Web(web.Config{ConnectTo: j.sim.Addr(), RootCAs: j.sim.CAPEM()})}}
	return j
}

// openDB opens a database of the job's, with its tables.
func openDB(t *testing.T, dsn string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, Migrate(t.Context(), d))
	return d
}

// run runs the job's graph once, as one command does.
func (j *job) run(runner string) (crawlReport, ledger.Tally) {
	j.t.Helper()
	id, cause := j.try(runner)
	require.NoError(j.t, cause)
	r, err := ReadReport(j.t.Context(), j.store, id)
	require.NoError(j.t, err)
	total, err := ledger.ReadTotal(j.t.Context(), j.store, id)
	require.NoError(j.t, err)
	return r, total
}

// fails runs the job's graph and gives why that failed.
func (j *job) fails() error {
	j.t.Helper()
	_, cause := j.try("direct")
	require.Error(j.t, cause)
	return cause
}

func (j *job) try(runner string) (id string, cause error) {
	j.mu.Lock()
	j.runs++
	cfg := j.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), j.runs)
	j.mu.Unlock()
	p, s := beam.NewPipelineWithRoot()
	hosts, listed := List(s, cfg)
	visited, crawled := Visit(s, cfg, hosts)
	lane.Total(s, cfg.Lane, listed, crawled, Conclude(s, cfg, visited))
	result, err := beam.Run(j.t.Context(), runner, p)
	if w, ok := lane.Find(cfg.Lane.RunID); ok {
		cause = w.Cause()
	}
	err = errors.Join(err, cause, lane.Close(cfg.Lane.RunID))
	if err != nil {
		return cfg.Lane.RunID, err
	}
	total, err := ledger.ReadTotal(j.t.Context(), j.store, cfg.Lane.RunID)
	shown := lanetest.Shown(runner, result)
	for _, name := range Counts() {
		if strings.HasPrefix(name, "pages_") {
			require.Equal(j.t, total.Counts[name], shown[name], name)
		}
	}
	return cfg.Lane.RunID, err
}

// each request's host and path, how often.
func (j *job) asked() map[string]int {
	out := map[string]int{}
	for _, r := range j.sim.Requests() {
		out[r.Host+r.Path]++
	}
	j.sim.ResetLog()
	return out
}

// On both local runners, with one lane and with three, on both databases: the
// providers, then again without a change, then with a week's changes. All fifteen are crawled once.
func TestJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		runner string
		lanes  int
		dsn    func(testing.TB) string
		of     int // providers
	}{{"direct", 1, dbtest.SQLite, 4}, {"prism", 1, dbtest.Postgres, 4}, {"prism", 3, dbtest.SQLite, 15}, {"direct", 3, dbtest.Postgres, 4}} {
		t.Run(fmt.Sprintf("%s, %d lanes", tt.runner, tt.lanes), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, tt.dsn(t), webtest.Options{Latency: 2 * time.Millisecond})
			j.cfg.Lanes, j.cfg.Policies = tt.lanes, j.cfg.Policies[:tt.of]
			n := int64(tt.of)
			_, total := j.run(tt.runner)
			require.Equal(t, map[string]int64{"providers": n, "pages_fetched": 11 * n, "pages_new": 11 * n, "chunks": total.Counts["chunks"]}, nonZero(total.Counts))
			require.Greater(t, total.Counts["chunks"], 40*n)
			require.LessOrEqual(t, j.sim.MaxInFlight(), MaxHosts)
			for at, n := range j.asked() {
				require.Equal(t, 1, n, at)
				require.NotContains(t, at, "changelog")
			}
			files := j.files()
			require.Len(t, files, 11*tt.of)

			// Nothing changed: 304 for all of them, and nothing is written.
			r, total := j.run(tt.runner)
			require.Equal(t, map[string]int64{"providers": n, "pages_fetched": 11 * n, "pages_unchanged": 11 * n}, nonZero(total.Counts))
			require.Equal(t, ledger.Counts{"304": 11 * n}, total.HTTP.ByStatus)
			require.Equal(t, files, j.files())
			require.Empty(t, r.Alerts)

			// A week later, exactly what changed shows.
			j.asked()
			docsim.Install(j.sim.Handle, 2)
			r, total = j.run(tt.runner)
			require.Equal(t, []int64{n, 2 * n, 8 * n, n}, []int64{total.Counts["pages_new"], total.Counts["pages_updated"], total.Counts["pages_unchanged"], total.Counts["pages_deleted"]})
			require.Len(t, r.Providers, tt.of)
			for _, p := range r.Providers {
				require.Equal(t, []any{Done, int64(11), int64(1), int64(2), int64(1), int64(8)}, []any{p.State, p.TotalPages, p.New, p.Updated, p.Deleted, p.Unchanged}, p.Name)
			}
			require.True(t, r.Complete)
		})
	}
}

func nonZero(c ledger.Counts) map[string]int64 {
	out := maps.Clone(map[string]int64(c))
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// files are the hand-off's keys.
func (j *job) files() (keys []string) {
	j.t.Helper()
	for o, err := range j.store.List(j.t.Context(), "handoff/docs/") {
		require.NoError(j.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// Two runs at the same time, with different stores and one database, never visit one
// provider together, and never more than three hosts.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	j := newJob(t, dbtest.Postgres(t), webtest.Options{Latency: 10 * time.Millisecond})
	other := &job{t: t, dir: t.TempDir(), sim: j.sim, cfg: j.cfg, runs: 100}
	var err error
	other.store, err = store.Open(t.Context(), other.dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.store.Close()) })
	other.cfg.Lane.Store = other.dir
	d := openDB(t, j.cfg.DB)
	var both sync.WaitGroup
	both.Go(func() { j.run("direct") })
	both.Go(func() { other.run("direct") })
	both.Wait()
	require.LessOrEqual(t, j.sim.MaxInFlight(), MaxHosts)
	sessions := 0
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM docs_sessions`).Scan(&sessions))
	most := 1
	if sessions > 1 { // the second began after the first had ended
		most = 2
	}
	at := map[string]time.Time{} // end of the last request of a host
	for _, r := range j.sim.Requests() {
		require.False(t, r.Start.Before(at[r.Host]), "%s%s overlaps", r.Host, r.Path)
		at[r.Host] = r.End
	}
	for path, n := range j.asked() {
		if !strings.HasSuffix(path, "/robots.txt") {
			require.LessOrEqual(t, n, most, path)
		}
	}
}

// A provider that is prohibited, or that Context7 has without --fallback, or purged, gets no
// request. Two providers on one host are crawled one after another.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	j := newJob(t, dbtest.SQLite(t), webtest.Options{Latency: 2 * time.Millisecond})
	j.cfg.Fallback = false
	d := openDB(t, j.cfg.DB)
	for _, p := range j.cfg.Policies {
		if p.Channel == policy.Context7 {
			_, err := d.Exec(`INSERT INTO docs_sources (provider, source, address, session, state, reason, checked_at) VALUES ($1, 'context7', '', '', 'found', 'it has it', $2)`, p.ProviderID, db.Micros(time.Now()))
			require.NoError(t, err)
		}
	}
	for i := range j.cfg.Policies {
		if j.cfg.Policies[i].ProviderID == "aws-ses" {
			j.cfg.Policies[i].Terms = policy.Prohibited
		}
	}
	twin := j.cfg.Policies[slices.IndexFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.ProviderID == "toss-payments" })]
	twin.ProviderID, twin.SeedURLs = "toss-twin", []string{"https://docs.tosspayments.com/guides/payment"}
	j.cfg.Policies = append(j.cfg.Policies, twin)
	r, total := j.run("direct")
	require.Equal(t, int64(2), total.Counts["providers"])
	require.Equal(t, []string{"toss-payments", "toss-twin"}, []string{r.Providers[0].Provider, r.Providers[1].Provider})
	require.Equal(t, 1, j.sim.MaxInFlight())
	for at := range j.asked() {
		require.True(t, strings.HasPrefix(at, "docs.tosspayments.com/"), at)
	}
	_, err := purge(t, d, j.store, "toss-twin", time.Now())
	require.NoError(t, err)
	r, total = j.run("direct")
	require.Equal(t, int64(1), total.Counts["providers"])
	require.Len(t, r.Providers, 1)
}

// An interrupted crawl resumes after a run with other policies, which has ended its session: no
// page is requested a second time.
func TestInterruptedBeforeOtherPolicies(t *testing.T) {
	t.Parallel()
	j := newJob(t, dbtest.SQLite(t), webtest.Options{})
	only := func(ids ...string) (out []policy.Policy) {
		for _, p := range j.cfg.Policies {
			if slices.Contains(ids, p.ProviderID) {
				out = append(out, p)
			}
		}
		return out
	}
	toss, both := only("toss-payments"), only("toss-payments", "aws-ses")
	j.cfg.Policies, j.cfg.Lane.Limit = only("aws-ses"), 5
	j.run("direct")
	d := openDB(t, j.cfg.DB)
	_, err := d.ExecContext(t.Context(), `UPDATE docs_sessions SET finished_at = $1`, 0)
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `UPDATE docs_runs SET state = 'open', reason = ''`)
	require.NoError(t, err)
	first := j.asked()
	j.cfg.Lane.Limit = 0
	j.cfg.Policies = toss
	r, _ := j.run("direct")
	require.True(t, r.Complete)
	j.asked()
	j.cfg.Policies = both
	r, _ = j.run("direct")
	require.True(t, r.Complete)
	require.Equal(t, int64(11), r.Providers[0].TotalPages, "%v", r.Providers[0])
	pages := 0
	for at := range j.asked() {
		if !strings.HasSuffix(at, ".txt") && strings.HasPrefix(at, both[0].Host()) {
			require.Zero(t, first[at], at)
			pages++
		}
	}
	require.Equal(t, 6, pages)
}

// A hand-off whose objects are gone is made again for one provider: all of its pages are
// requested, none is counted as changed, and the manifest is written last.
func TestHandOffAgain(t *testing.T) {
	t.Parallel()
	j := newJob(t, dbtest.SQLite(t), webtest.Options{Latency: 2 * time.Millisecond})
	j.cfg.Policies = slices.DeleteFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.Channel == policy.Context7 })
	lines := func() map[string]string { // by chunk id
		out := map[string]string{}
		for _, key := range j.files() {
			body, err := j.store.Open(t.Context(), key)
			require.NoError(t, err)
			for d := json.NewDecoder(body); d.More(); {
				var h handOffLine
				require.NoError(t, d.Decode(&h))
				require.Equal(t, "upsert", h.Op)
				out[h.ID] = h.Text
			}
			require.NoError(t, body.Close())
		}
		return out
	}
	manifest := func(session string) (m manifest) {
		body, err := j.store.Open(t.Context(), manifests+session+".json")
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(body).Decode(&m))
		require.NoError(t, body.Close())
		return m
	}
	r, _ := j.run("direct")
	first := lines()
	m := manifest(r.Session)
	require.True(t, m.Complete)
	require.Len(t, m.Providers, 2)
	var listed []string
	for _, p := range m.Providers {
		require.Equal(t, []any{Done, false}, []any{p.State, p.Again})
		for _, o := range p.Objects {
			require.Positive(t, o.Size)
			listed = append(listed, o.Key)
		}
	}
	slices.Sort(listed)
	require.Equal(t, j.files(), listed)

	n, err := sweepHandOff(t.Context(), j.store, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 22+1, n, "and the manifest")
	r, total := j.run("direct")
	require.Equal(t, int64(22), total.Counts["pages_unchanged"])
	require.Empty(t, j.files(), "what did not change is not written")
	m = manifest(r.Session)
	require.Empty(t, m.Providers[0].Objects)

	j.asked()
	j.cfg.Again = "toss-payments"
	r, total = j.run("direct")
	require.Equal(t, map[string]int64{"providers": 1, "pages_fetched": 11, "pages_unchanged": 11}, nonZero(total.Counts))
	require.Equal(t, ledger.Counts{"200": 11}, total.HTTP.ByStatus)
	require.True(t, r.Complete)
	m = manifest(r.Session)
	require.Len(t, m.Providers, 1)
	require.True(t, m.Providers[0].Again)
	require.Len(t, m.Providers[0].Objects, 11)
	for id, text := range lines() {
		require.Equal(t, first[id], text)
	}
	for at := range j.asked() {
		require.True(t, strings.HasPrefix(at, "docs.tosspayments.com/"), at)
	}

	j.cfg.Again = AgainAll
	j.run("direct")
	require.Equal(t, first, lines())

	// An open session, half done: what it asked for is asked for again, its own
	// objects stay, and the other provider keeps it open.
	j.cfg.Again = ""
	d := openDB(t, j.cfg.DB)
	session, _, err := beginSession(t.Context(), d, "half", time.Now())
	require.NoError(t, err)
	_, err = enter(t.Context(), d, session, "aws-ses", "half", time.Now())
	require.NoError(t, err)
	j.cfg.Again = "toss-payments"
	r, _ = j.run("direct")
	require.Equal(t, "half", r.Session)
	require.False(t, r.Complete, "aws-ses is open in it")
	_, err = j.store.Head(t.Context(), manifests+session+".json")
	require.ErrorIs(t, err, store.ErrNotExist)
	j.cfg.Again = ""
	r, _ = j.run("direct")
	require.True(t, r.Complete)
	require.Len(t, manifest(session).Providers, 2)

	_, err = purge(t, d, j.store, "toss-payments", time.Now())
	require.NoError(t, err)
	j.cfg.Again = "toss-payments"
	require.ErrorContains(t, j.fails(), "the hand-off of toss-payments cannot be made again: it was purged and not enabled again")
	j.cfg.Again = ""
	_, err = purge(t, d, j.store, "aws-ses", time.Now())
	require.NoError(t, err)
	require.ErrorContains(t, j.fails(), "no provider is left to crawl: ", "a run that does nothing has failed")
}

// A provider that cannot be reached is not done, but does not keep the session open: the
// next run crawls it again with all others. If no provider can be reached, the run has
// failed. A provider that is purged during the run, before its turn, is not crawled.
func TestNotDone(t *testing.T) {
	t.Parallel()
	j := newJob(t, dbtest.SQLite(t), webtest.Options{Latency: 2 * time.Millisecond})
	j.cfg.Lanes = 1
	ids := map[string]string{} // host by provider
	j.cfg.Policies = slices.DeleteFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.Channel == policy.Context7 })
	for _, p := range j.cfg.Policies {
		ids[p.ProviderID] = p.Host()
	}
	require.Len(t, ids, 2)
	dead := func(host string) { j.sim.Handle(host, http.HandlerFunc(breaking)) }
	dead(ids["aws-ses"])
	r, total := j.run("direct")
	require.True(t, r.Complete)
	require.Equal(t, int64(1), total.Counts[ProvidersNotDone])
	states := func(r crawlReport) map[string]State {
		out := map[string]State{}
		for _, p := range r.Providers {
			out[p.Provider] = p.State
		}
		return out
	}
	require.Equal(t, map[string]State{"aws-ses": Unreachable, "toss-payments": Done}, states(r))
	j.asked()

	docsim.Install(j.sim.Handle, 1)
	r, total = j.run("direct")
	require.Equal(t, map[string]State{"aws-ses": Done, "toss-payments": Done}, states(r))
	require.Zero(t, total.Counts[ProvidersNotDone])
	asked := j.asked()
	require.Len(t, asked, 12+11+2+1, "robots.txt of the one, which is kept of the other, the two places of a llms.txt, and the API catalog")

	// Purged between the beginning of the run and its turn.
	d := openDB(t, j.cfg.DB)
	j.sim.Handle(ids["aws-ses"], http.HandlerFunc(breaking))
	j.sim.Handle(ids["toss-payments"], http.HandlerFunc(breaking))
	_, err := d.ExecContext(t.Context(), `DELETE FROM docs_robots`)
	require.NoError(t, err)
	cause := j.fails()
	require.ErrorIs(t, cause, errNobody)
	require.ErrorContains(t, cause, "none of the providers could be reached: aws-ses: it cannot be reached: its robots.txt: ")

	docsim.Install(j.sim.Handle, 1)
	w, err := lane.Open(t.Context(), j.cfg.Lane)
	require.NoError(t, err)
	defer func() { require.NoError(t, lane.Close(j.cfg.Lane.RunID)) }()
	fn := &visitFn{doFn{DoFn: lane.DoFn{Worker: w}, Config: j.cfg, db: d}}
	session, _, err := beginSession(t.Context(), d, "purged", time.Now())
	require.NoError(t, err)
	_, err = purge(t, d, j.store, "aws-ses", time.Now())
	require.NoError(t, err)
	j.asked()
	state, _, err := fn.provider(t.Context(), session, j.cfg.Policies[slices.IndexFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.ProviderID == "aws-ses" })], w.Count)
	require.NoError(t, err)
	require.Equal(t, Done, state)
	require.Empty(t, j.asked())
}

// Migrations go forward from nothing, twice is once, and a file that is there stays.
func TestMigrate(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "x.db")
	d := openDB(t, "sqlite://"+at)
	_, err := d.ExecContext(t.Context(), `INSERT INTO docs_providers (id, disabled_at) VALUES ('p', $1)`, 1)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	_, err = os.Stat(at)
	require.NoError(t, err)
	d = openDB(t, "sqlite://"+at)
	off, err := removal.Purged(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"p": true}, off)
}

// fromGitHub makes a repository of each site, which alone has all its pages.
func fromGitHub(j *job) {
	hub := newGitHub(0)
	j.sim.Handle("api.github.com", hub)
	for i, p := range j.cfg.Policies {
		seed, err := url.Parse(p.SeedURLs[0])
		require.NoError(j.t, err)
		p.Sources, p.GitHub.Repository, p.GitHub.Base = []policy.Source{policy.GitHub}, "acme/"+p.ProviderID, "https://"+seed.Host+"/"
		j.cfg.Policies[i] = p
		for _, s := range j.sites {
			if s.Host == seed.Host {
				hub.put(p.GitHub.Repository, asRepository(s))
			}
		}
	}
}

// A limited run requests so many pages of all providers, and asks nothing of those that it does not come to. The next run continues,
// also one that resumes a session with as many pages.
func TestLimitedRuns(t *testing.T) {
	j := newJob(t, dbtest.SQLite(t), webtest.Options{})
	asked := func() (hosts map[string]bool) {
		hosts = map[string]bool{}
		for at := range j.asked() {
			hosts[at[:strings.Index(at, "/")]] = true
		}
		return hosts
	}
	j.cfg.Lane.Limit = 4
	r, total := j.run("direct")
	require.Equal(t, []int64{4, 15, 0}, []int64{total.Counts["pages_fetched"], total.Counts[ProvidersNotDone], total.Counts["pages_deleted"]})
	require.Greater(t, total.Counts[ledger.LeftByLimit], int64(len(j.cfg.Policies)))
	require.Less(t, len(asked()), 6, "hosts, the three at once among them")
	require.Equal(t, reasonLimit, r.Providers[len(r.Providers)-1].Reason)
	d := openDB(t, j.cfg.DB)
	_, err := d.ExecContext(t.Context(), `UPDATE docs_sessions SET finished_at = $1`, 0) // as a kill leaves it
	require.NoError(t, err)
	_, total = j.run("direct")
	require.Equal(t, int64(4), total.Counts["pages_fetched"])
	j.cfg.Lane.Limit = 0
	_, total = j.run("direct")
	require.Equal(t, []int64{0, 0, 0}, []int64{total.Counts[ProvidersNotDone], total.Counts[ledger.LeftByLimit], total.Counts["pages_deleted"]})
	var pages, sum int64
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM docs_pages WHERE status = 'indexed'`).Scan(&pages))
	sum = total.Counts["pages_fetched"] + 8
	require.Equal(t, pages, sum, "each page once")
}
