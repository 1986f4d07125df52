package catalog

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
)

func init() {
	register.Function2x2(siteText)
	register.Function1x3(inLaneOne)
}

// siteText is what the sites' stage emits: the lane, and the whole site as JSON.
func siteText(lane int, s Site) (string, error) {
	b, err := encodeSite(s)
	return fmt.Sprintf("%d %s", lane, b), err
}

func inLaneOne(site []byte) (int, Site, error) {
	s, err := decodeSite(site)
	return 1, s, err
}

// stage runs a part of the graph on its own.
func (j *job) stage(t *testing.T, build func(beam.Scope, Config)) {
	t.Helper()
	cfg := j.config()
	ptest.BuildAndRun(t, func(s beam.Scope) { build(s, cfg) })
	require.NoError(t, lane.Close(cfg.Lane.RunID))
}

func TestSitesStage(t *testing.T) {
	j := newJob(t, "", webtest.Options{}, "matter", "gadgets")
	j.cfg.Lanes = 7
	var want []string
	for _, s := range j.cfg.Sites {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		want = append(want, fmt.Sprintf("%d %s", lane.Of(s.Host(), 7), b))
	}
	require.Len(t, want, 2)
	j.stage(t, func(s beam.Scope, cfg Config) {
		lanetest.Equals(s, beam.ParDo(s, siteText, Sites(s, cfg)), want...)
	})
	assert.Empty(t, j.web.Requests())
}

func TestVisitStage(t *testing.T) {
	s := newShop(t, "", shopFile)
	s.lay(4, func(i int) string {
		if i == 3 {
			return "" // its page answers 404
		}
		return whole(i)
	})
	site, err := encodeSite(s.cfg.Sites[0])
	require.NoError(t, err)
	s.cfg.Sites = nil // they come as elements
	s.stage(t, func(b beam.Scope, cfg Config) {
		tallies := Visit(b, cfg, beam.ParDo(b, inLaneOne, beam.Create(b, site)))
		lanetest.Equals(b, lanetest.Counts(b, tallies), "sites 1", "list_pages_fetched 1", "product_urls_found 4", "detail_pages_fetched 3", "products_saved 3", "products_new 3",
			"failed_product_detail_fetcher 1", "failed_tasks 1", "dead_letters 1")
	})
	assert.Len(t, s.products("shop"), 3)
}
