//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// stops is a run that is stopped after some requests.
type stops struct {
	process
	after int
}

func (s stops) Proceed(context.Context) bool { return len(s.w.sim.Requests()) < s.after }

// A backfill fetches all articles of its days that are not known, however old, skips
// sitemaps of other days but the nearest, and resumes where it was stopped.
func TestBackfill(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 2
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/sitemap.xml\n"}
	index := "<sitemapindex>"
	for month := range 5 {
		at := fmt.Sprintf("/2025-0%d.xml", month+1)
		index += "<sitemap><loc>https://daily.example" + at + "</loc></sitemap>"
		set := "<urlset>"
		for day := range 9 {
			path := fmt.Sprintf("/2025/0%d/0%d/bank", month+1, day+1)
			set += fmt.Sprintf("<url><loc>https://daily.example%s</loc><lastmod>2025-0%d-0%d</lastmod></url>", path, month+1, day+1)
			pages[path] = story("", strings.Repeat("<p>The central bank left its rate unchanged on this day, according to the made-up data of this demonstration.</p>", 3))
		}
		pages[at] = set + "</urlset>"
	}
	pages["/sitemap.xml"] = index + "</sitemapindex>"
	w.serve("daily.example", pages)
	p := declared(t, "baseUrl: https://daily.example\nzone: UTC")

	day := func(month, day int) time.Time { return time.Date(2025, time.Month(month), day, 0, 0, 0, 0, time.UTC) }
	run := func(stopAfter int) (engine.Result, []string) {
		w.sim.ResetLog()
		e := w.engine()
		e.Backfill = provider.Period{From: day(3, 3), Until: day(3, 9)}
		if stopAfter > 0 {
			e.Worker = stops{e.Worker.(process), stopAfter}
		}
		r, err := e.Run(t.Context(), p)
		assert.NoError(t, err)
		return r, w.paths()
	}
	r, asked := run(7)
	assert.Equal(t, engine.Cut, r.State)
	first := int(r.Fetched)
	assert.Equal(t, 2, first, "after robots.txt, the index and three sitemaps")
	assert.NotContains(t, asked, "/2025-01.xml", "it ends before the first day")
	assert.NotContains(t, asked, "/2025-05.xml", "it begins after the last day")
	r, asked = run(0)
	assert.Equal(t, engine.Ran, r.State)
	assert.Equal(t, int64(6), r.Found)
	assert.Equal(t, 6-first, int(r.Inserted), "%v", asked)
	assert.Len(t, w.articles(), 6)
	r, _ = run(0)
	assert.Zero(t, r.Fetched)
}
