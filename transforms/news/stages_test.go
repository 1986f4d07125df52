//go:build unix

package news

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/passert"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

func init() {
	register.Function2x1(providerText)
	register.Function1x2(inLaneOne)
}

func providerText(lane int, id string) string { return fmt.Sprintf("%d %s", lane, id) }

func inLaneOne(id string) (int, string) { return 1, id }

// stage runs a part of the graph on its own.
func (w *world) stage(t *testing.T, build func(beam.Scope, Config)) {
	t.Helper()
	w.runs++
	cfg := w.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), w.runs)
	cfg.Lane.Web = cfg.Web(cfg.Lane.Web)
	ptest.BuildAndRun(t, func(s beam.Scope) { build(s, cfg) })
	require.NoError(t, lane.Close(cfg.Lane.RunID))
}

func TestListStage(t *testing.T) {
	w := newWorld(t, dbtest.SQLite(t), "direct")
	off := false
	w.cfg.Settings.Providers = map[string]provider.Toggles{"hankyung": {Enabled: &off}}
	w.stage(t, func(s beam.Scope, cfg Config) {
		providers, tallies := List(s, cfg)
		passert.Equals(s, beam.ParDo(s, providerText, providers), "0 mk", "1 demo-economy", "0 demo-local")
		passert.Equals(s, lanetest.Counts(s, tallies), "articles_expired 0")
	})
	assert.Empty(t, w.web.Requests())
}

func TestVisitStage(t *testing.T) {
	w := newWorld(t, dbtest.SQLite(t), "direct")
	w.sites[newssim.Economy].Robots("")
	w.sites[newssim.Economy].Answer("/robots.txt", 500)
	w.stage(t, func(s beam.Scope, cfg Config) {
		tallies := Visit(s, cfg, beam.ParDo(s, inLaneOne, beam.Create(s, "mk", "demo-economy")))
		passert.Equals(s, lanetest.Counts(s, tallies), "providers_run 1", "providers_stopped 1", "articles_found 12", "articles_fetched 10", "articles_inserted 10")
	})
	for _, r := range w.web.Requests() {
		assert.Contains(t, []string{newssim.MK, newssim.Economy}, r.Host)
	}
}
