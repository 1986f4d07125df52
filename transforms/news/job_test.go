//go:build unix

package news

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
)

func TestMain(m *testing.M) { lanetest.Main(m) }

// world is a bucket, a simulated web, a database and a configuration: what one
// command of the news job meets.
type world struct {
	t      testing.TB
	store  store.Store
	web    *webtest.Web
	sites  map[string]*newssim.Site
	cfg    Config
	runs   int
	runner string
}

func newWorld(t testing.TB, dsn, runner string) *world {
	w := &world{t: t, web: webtest.New(webtest.Options{}), runner: runner}
	w.sites = newssim.Install(w.web.Handle, time.Now())
	require.NoError(t, w.web.Start())
	t.Cleanup(func() { assert.NoError(t, w.web.Close()) })
	dir := t.TempDir()
	var err error
	w.store, err = store.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.store.Close()) })
	w.cfg = Config{Lanes: 2, Concurrency: 2, DB: dsn, Settings: provider.Defaults(), Options: engine.Options{NoDelay: true, LeaseTTL: 5 * time.Second},
		Lane: lane.Config{Job: Job, Store: dir, Slots: 1, LogFormat: "json", LogLevel: 100, Grace: 2 * time.Second,
			Web: web.Config{ConnectTo: w.web.Addr(), RootCAs: w.web.CAPEM()}}}
	for _, name := range []string{"demo-economy.yaml", "demo-local.yaml"} {
		b, err := publishers.Files.ReadFile(name)
		require.NoError(t, err)
		w.cfg.Publishers = append(w.cfg.Publishers, string(b))
	}
	return w
}

// run runs the job's graph once, as one command does, and gives its total and rows.
func (w *world) run() (ledger.Tally, []engine.Result) {
	w.t.Helper()
	w.runs++
	cfg := w.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), w.runs)
	cfg.Lane.Web = cfg.Web(cfg.Lane.Web)
	w.web.ResetLog()
	worker, err := lane.Open(w.t.Context(), cfg.Lane)
	require.NoError(w.t, err)
	p, s := beam.NewPipelineWithRoot()
	// pipeline.News, which cannot be imported: its package holds the whole program.
	providers, listed := List(s, cfg)
	lane.Total(s, cfg.Lane, listed, Visit(s, cfg, providers))
	result, err := beam.Run(context.Background(), w.runner, p)
	require.NoError(w.t, errors.Join(err, lane.Close(cfg.Lane.RunID)))
	require.NoError(w.t, worker.Cause())
	total, err := ledger.ReadTotal(context.Background(), w.store, cfg.Lane.RunID)
	require.NoError(w.t, err)
	shown := lanetest.Shown(w.runner, result)
	for _, name := range Counts() {
		if name != "articles_expired" { // those are List's
			require.Equal(w.t, total.Counts[name], shown[name], name)
		}
	}
	rows, err := Results(context.Background(), w.store, cfg.Lane.RunID)
	require.NoError(w.t, err)
	return total, rows
}

func reported(total ledger.Tally) map[string]int64 {
	out := map[string]int64{}
	for _, n := range Counts() {
		if total.Counts[n] != 0 {
			out[n] = total.Counts[n]
		}
	}
	return out
}

// The whole job on both runners and both databases: all publishers, one that
// stops, one that is switched off, a second run, what is past its time.
func TestJob(t *testing.T) {
	for _, runner := range []string{"direct", "prism"} {
		for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
			t.Run(runner+"/"+name, func(t *testing.T) {
				w := newWorld(t, dsn(t), runner)
				off := false
				w.cfg.Settings.Providers = map[string]provider.Toggles{"demo-local": {Enabled: &off}}
				w.sites[newssim.MK].Answer(w.sites[newssim.MK].Path(11), 429)
				total, rows := w.run()
				assert.Equal(t, map[string]int64{"providers_run": 2, "providers_stopped": 1, "articles_found": 36, "articles_fetched": 21, "articles_inserted": 21}, reported(total))
				assert.Equal(t, int64(len(w.web.Requests())), total.HTTP.Requests)
				require.Len(t, rows, 3)
				assert.Equal(t, engine.Stopped, rows[2].State, rows[2].Provider)
				for _, r := range w.web.Requests() {
					assert.NotEqual(t, newssim.Local, r.Host, "it is switched off")
				}

				w.sites[newssim.MK].Answer(w.sites[newssim.MK].Path(11), 0)
				w.sites[newssim.Economy].Robots("")
				w.sites[newssim.Economy].Answer("/robots.txt", 500)
				total, _ = w.run()
				assert.Equal(t, map[string]int64{"providers_run": 2, "providers_stopped": 1, "articles_found": 24, "articles_fetched": 9, "articles_inserted": 9}, reported(total))

				d, err := db.Open(t.Context(), w.cfg.DB)
				require.NoError(t, err)
				defer func() { require.NoError(t, d.Close()) }()
				_, err = d.ExecContext(t.Context(), `UPDATE news_articles SET expires_at = $1 WHERE source = 'mk'`, 1)
				require.NoError(t, err)
				total, _ = w.run()
				assert.Equal(t, map[string]int64{"providers_run": 2, "providers_stopped": 1, "articles_found": 24, "articles_expired": 10}, reported(total), "what was purged does not come back")
			})
		}
	}
}

// at is a publisher with a base URL.
type at struct {
	provider.Provider
	url string
}

func (p at) ID() string      { return "p" }
func (p at) BaseURL() string { return p.url }

// Publishers of one server fall into one lane, the others in turn.
func TestLanesByServer(t *testing.T) {
	lanes := map[string]int{}
	var got []int
	for _, url := range []string{"https://a.example/", "https://www.b.example/", "http://www.a.example/news", "https://c.example/", "https://b.example/"} {
		got = append(got, turn(lanes, at{url: url}, 2))
	}
	require.Equal(t, []int{0, 1, 0, 0, 1}, got)
}
