//go:build unix

package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// A publisher that is not due is not asked, whatever process asks; without OnlyDue it is, and the time counts.
func TestNotDue(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.add(outlet{Host: "daily.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/sitemap.xml": "news"}})
		p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/sitemap.xml]\nminInterval: 2h\nmaxInterval: 3h")
		run := func(due bool) engine.Result {
			w.sim.ResetLog()
			e := w.engine() // a process of its own
			e.OnlyDue = due
			r, err := e.Run(t.Context(), p)
			require.NoError(t, err)
			return r
		}
		first := run(true)
		assert.Equal(t, engine.Ran, first.State)
		at := first.DueAt.Add(-time.Second)
		w.now = at
		r := run(true)
		assert.Equal(t, []any{engine.NotDue, "not due before " + first.DueAt.UTC().Format(time.RFC3339) + ", by how often it publishes"}, []any{r.State, r.Reason})
		assert.Empty(t, w.paths())
		assert.Empty(t, r.Alerts)
		assert.Equal(t, engine.Ran, run(false).State, "all are asked")
		w.now = at.Add(time.Minute)
		assert.Equal(t, engine.NotDue, run(true).State, "that run counts")
		w.now = at.Add(3*time.Hour + time.Minute)
		assert.Equal(t, engine.Ran, run(true).State)
	})
}
