//go:build unix

package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// What a publisher brought between two runs, and no run fetched, is counted.
func TestMissed(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 3
	site := w.add(outlet{Host: "daily.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/sitemap.xml": "news"}})
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/sitemap.xml]")
	assert.Zero(t, w.run(p).Missed, "what is older than the first run is not missed")
	site.publish(2)
	assert.Zero(t, w.run(p).Missed)
	site.publish(7)
	r := w.run(p)
	assert.Equal(t, []int64{4, 3}, []int64{r.Missed, r.Inserted})
	assert.Zero(t, w.run(p).Missed, "counted once")
}

// few is a quota of so many articles.
type few int

func (n *few) Empty() bool { return *n <= 0 }
func (n *few) Take() bool  { *n--; return *n >= 0 }

// A limited run leaves the rest to the next one, concludes nothing of having few, and is due again as soon as may be.
func TestLimit(t *testing.T) {
	w := once(t)
	w.add(outlet{Host: "daily.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/sitemap.xml": "news"}})
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/sitemap.xml]\nminInterval: 2h\nmaxInterval: 9h")
	run := func(n int) engine.Result {
		quota := few(n)
		return w.run(p, func(e *engine.Engine) { e.Quota = &quota })
	}
	for range 4 { // more runs in a row without an article are an alert
		r := run(0)
		require.Equal(t, []any{engine.Left, int64(1)}, []any{r.State, r.Left})
		require.Empty(t, w.paths())
		require.Empty(t, r.Alerts)
	}
	at := w.now
	r := run(3)
	require.Equal(t, []any{engine.Ran, int64(3), int64(3), int64(7)}, []any{r.State, r.Fetched, r.Inserted, r.Left})
	require.Empty(t, r.Alerts)
	require.Equal(t, at.Add(2*time.Hour), r.DueAt)
	r = run(100)
	require.Equal(t, []int64{7, 7, 0, 0}, []int64{r.Fetched, r.Inserted, r.Left, r.Missed})
}
