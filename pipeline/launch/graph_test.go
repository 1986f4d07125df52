package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // registers the runners
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/testdata"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// localRunners are the two runners that work in this process.
var localRunners = []string{"direct", "prism"}

// TestSeedGraph runs the sample's raw files on both local runners, with one lane
// and with several: all must leave the same objects and the same counts. All
// hosts of the sample are replaced by hosts that answer.
func TestSeedGraph(t *testing.T) {
	beamlog.SetLogger(quiet{})
	if !beam.Initialized() {
		beam.Init()
	}
	type result struct {
		objects map[string]string
		counts  map[string]int64
	}
	results := map[string]result{}
	for _, name := range localRunners {
		for _, lanes := range []int{1, 5} {
			label := fmt.Sprintf("%s, %d lanes", name, lanes)
			t.Run(label, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("TMPDIR", t.TempDir()) // for what Beam leaves behind
				sample(t, dir)
				sim := webtest.New(webtest.Options{Mix: map[webtest.Kind]int{webtest.KindURLSet: 3, webtest.KindNoSitemap: 1, webtest.KindNoRobots: 1}})
				require.NoError(t, sim.Start())
				defer func() {
					assert.NoError(t, sim.Close())
				}()
				l := lane.Config{Job: seed.Job, RunID: ledger.NewRunID(time.Now()), Store: dir, Slots: 1, LogFormat: "json", LogLevel: 12, Polite: polite.Config{MaxPause: time.Second, RetryBackoff: time.Millisecond}, Web: web.Config{
					Concurrency: 32, ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}}
				p, scope := beam.NewPipelineWithRoot()
				pipeline.Seed(scope, seed.Config{Lane: l, Lanes: lanes, OutageThreshold: 0.95, Collect: seed.Collect{MaxChildSitemaps: 10}})
				require.NoError(t, startPrism(t.Context(), name))
				_, err := beam.Run(t.Context(), name, p)
				require.NoError(t, errors.Join(err, lane.Close(l.RunID)))
				s, err := store.Open(t.Context(), dir)
				require.NoError(t, err)
				defer func() { _ = s.Close() }() // only read from
				total, err := ledger.ReadTotal(t.Context(), s, l.RunID)
				require.NoError(t, err)
				results[label] = result{objects(t, s), total.Counts}
			})
		}
	}
	want, ok := results["direct, 1 lanes"]
	require.True(t, ok && len(want.objects) >= 50 && want.counts["domains_collected"] >= 10 && want.counts["files_completed"] != 0,
		"the sample produced %d objects, %v", len(want.objects), want.counts)
	for label, got := range results {
		assert.Equal(t, want.counts, got.counts, "%s: counts", label)
		for _, key := range slices.Sorted(maps.Keys(want.objects)) {
			assert.Equal(t, want.objects[key], got.objects[key], "%s: %s", label, key)
		}
		for key := range got.objects {
			_, ok := want.objects[key]
			assert.True(t, ok, "%s: %s is one too many", label, key)
		}
	}
}

// sample copies the sample's raw files to dir.
func sample(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(testdata.Bucket, "bucket", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := testdata.Bucket.ReadFile(p)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, "bucket")))
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644))
	})
	require.NoError(t, err)
}

// objects returns what a run leaves in the store apart from its ledger, without times and the run's own id.
func objects(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		if strings.HasPrefix(o.Key, "runs/") {
			continue
		}
		r, err := s.Open(t.Context(), o.Key)
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, errors.Join(err, r.Close()))
		if strings.HasSuffix(o.Key, ".json") && !strings.HasPrefix(o.Key, "datasets/") && !strings.HasPrefix(o.Key, "research/") {
			var v any
			require.NoError(t, json.Unmarshal(b, &v), o.Key)
			b, err = json.MarshalIndent(timeless(v), "", " ")
			require.NoError(t, err)
		}
		all[o.Key] = string(b)
	}
	return all
}

func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if strings.HasSuffix(k, "_at") || k == "response_ms" || k == "run_id" {
				delete(v, k)
				continue
			}
			v[k] = timeless(e)
		}
	case []any:
		for i := range v {
			v[i] = timeless(v[i])
		}
	}
	return v
}
