//go:build unix

package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/newssim"
)

// What a publisher brought between two runs, and no run fetched, is counted.
func TestMissed(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 3
	site := newssim.Add(w.sim.Handle, newssim.Press{Host: "daily.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/sitemap.xml": "news"}}, begin)
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/sitemap.xml]")
	assert.Zero(t, w.run(p).Missed, "what is older than the first run is not missed")
	site.Publish(2)
	assert.Zero(t, w.run(p).Missed)
	site.Publish(7)
	r := w.run(p)
	assert.Equal(t, []int64{4, 3}, []int64{r.Missed, r.Inserted})
	assert.Zero(t, w.run(p).Missed, "counted once")
}
