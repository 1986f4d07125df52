package launch

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// The counters in the runner's console have the report's names and numbers, and
// they agree with the simulated web's own log.
func TestCounters(t *testing.T) {
	beamlog.SetLogger(quiet{})
	if !beam.Initialized() {
		beam.Init()
	}
	for _, runner := range localRunners {
		t.Run(runner, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", t.TempDir()) // for what Beam leaves behind
			sample(t, dir)
			sim := webtest.New(webtest.Options{Mix: map[webtest.Kind]int{webtest.KindURLSet: 3, webtest.KindNoSitemap: 1, webtest.KindNoRobots: 1}})
			require.NoError(t, sim.Start())
			defer func() { require.NoError(t, sim.Close()) }()
			l := lane.Config{Job: seed.Job, RunID: ledger.NewRunID(time.Now()), Store: dir, Slots: 1, LogFormat: "json", LogLevel: 12, Polite: polite.Config{MaxPause: time.Second, RetryBackoff: time.Millisecond}, Web: web.Config{
				Concurrency: 32, ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}}
			p, scope := beam.NewPipelineWithRoot()
			pipeline.Seed(scope, seed.Config{Lane: l, Lanes: 4, OutageThreshold: 0.95, Collect: seed.Collect{MaxChildSitemaps: 10}})
			require.NoError(t, startPrism(t.Context(), runner))
			result, err := beam.Run(t.Context(), runner, p)
			require.NoError(t, errors.Join(err, lane.Close(l.RunID)))

			got := map[string]ledger.Counts{}
			for _, c := range result.Metrics().AllMetrics().Counters() {
				space := c.Key.Namespace
				if got[space] == nil {
					got[space] = ledger.Counts{}
				}
				got[space][c.Key.Name] += c.Result()
			}
			s, err := store.Open(t.Context(), dir)
			require.NoError(t, err)
			defer func() { _ = s.Close() }() // only read
			total, err := ledger.ReadTotal(t.Context(), s, l.RunID)
			require.NoError(t, err)
			want := maps.Clone(total.Counts)
			require.Greater(t, want["domains_collected"], int64(10))
			require.Subset(t, seed.Counts(), []string{"domains_collected", "robots_found"}) // the names are the report's
			want["http_requests"], want["http_bytes"], want["http_retries"] = total.HTTP.Requests, total.HTTP.Bytes, total.HTTP.Retries
			require.Equal(t, want, got["total"])
			require.EqualValues(t, len(sim.Requests()), got["total"]["http_requests"], "as in the simulated web's own log")
			if runner == "prism" { // 2.77 may lose what one of several bundles counted
				return
			}
			for _, name := range []string{"domains_unique", "domains_collected", "robots_found", "sitemaps_found"} {
				require.Equal(t, total.Counts[name], got["lanes"][name], name)
			}
		})
	}
}
