//go:build unix

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

var prose = strings.Repeat("<p>The central bank left its rate unchanged on this day, according to the made-up data of this demonstration.</p>", 3)

// Dates far in the future do not keep the newest articles from being fetched.
func TestDatesInTheFuture(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 3
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/index.xml\n",
		"/index.xml": "<sitemapindex><sitemap><loc>/old.xml</loc><lastmod>2026-02-20</lastmod></sitemap><sitemap><loc>/new.xml</loc><lastmod>2026-03-02</lastmod></sitemap></sitemapindex>"}
	set, news := "", ""
	for i := range 4 {
		news += fmt.Sprintf("<url><loc>/a/never-%d</loc><lastmod>2090-01-01</lastmod><news:news><news:publication_date>209%d-01-01</news:publication_date></news:news></url>", i, i)
		set += fmt.Sprintf("<url><loc>/a/old-%d</loc><lastmod>2026-02-1%d</lastmod></url>", i, i)
		pages[fmt.Sprintf("/a/never-%d", i)], pages[fmt.Sprintf("/a/old-%d", i)] = story("", prose), story("", prose)
	}
	news += "<url><loc>/a/soon</loc><lastmod>2026-03-02T20:00:00+09:00</lastmod></url><url><loc>/a/now</loc><lastmod>2026-03-02T08:00:00+09:00</lastmod></url>"
	pages["/a/soon"], pages["/a/now"] = story("", prose), story("", prose)
	pages["/new.xml"], pages["/old.xml"] = "<urlset>"+news+"</urlset>", "<urlset>"+set+"</urlset>"
	w.serve("daily.example", pages)
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")
	r := w.run(p)
	assert.Equal(t, engine.Ran, r.State, r.Reason)
	assert.Equal(t, []string{"/robots.txt", "/index.xml", "/new.xml", "/old.xml", "/a/soon", "/a/now", "/a/old-3"}, w.paths())
	for _, a := range w.articles() {
		assert.Nil(t, a.PublishedAt, a.URL)
	}
}

// A backfill asks for none of the sitemaps whose names say that they are of later days, but for one day in another zone, and
// takes a date without an offset as it is written.
func TestBackfillOfOldDays(t *testing.T) {
	w := once(t)
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/index.xml\n"}
	index := ""
	for i := range 600 {
		day := begin.AddDate(0, 0, -i).Format(time.DateOnly)
		index += "<sitemap><loc>/" + day + ".xml</loc></sitemap>"
		pages["/"+day+".xml"] = "<urlset><url><loc>/a/" + day + "</loc><lastmod>" + day + "</lastmod></url></urlset>"
		pages["/a/"+day] = story("", prose)
	}
	pages["/index.xml"] = "<sitemapindex>" + index + "</sitemapindex>"
	w.serve("daily.example", pages)
	e := w.engine()
	e.Backfill = provider.Period{From: time.Date(2024, 9, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2024, 9, 3, 0, 0, 0, 0, time.UTC)}
	r, err := e.Run(t.Context(), declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nzone: Asia/Seoul"))
	assert.NoError(t, err)
	assert.Equal(t, counts{Found: 2, Fetched: 2, Inserted: 2}, countsOf(r))
	assert.Empty(t, r.Limits)
	assert.Equal(t, []string{"/robots.txt", "/index.xml", "/2024-09-04.xml", "/2024-09-03.xml", "/2024-09-02.xml", "/2024-09-01.xml", "/a/2024-09-02", "/a/2024-09-01"}, w.paths())
}

// A backfill that finds nothing says why, and tells nothing about the runs for the newest
// articles. Articles without a date are of the day in their address.
func TestBackfillFindsNothing(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n",
		"/map.xml":           "<urlset><url><loc>/2026/03/01/bank</loc></url><url><loc>/2026/02/27/bank</loc></url><url><loc>/2026/02/x/bank</loc><lastmod>2026-03-01</lastmod></url><url><loc>/2026/02/y/bank</loc></url></urlset>",
		"/2026/02/27/bank":   story("", prose),
		"/2026/03/01/bank":   story("", prose),
		"/2026/02/x/bank":    story("", prose),
		"/2026/02/y/bank":    story("", prose),
		"/2026/02/27/bank/2": story("", prose)})
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/20")
	run := func(month time.Month, day int) engine.Result {
		e := w.engine()
		e.Backfill.From = time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
		e.Backfill.Until = e.Backfill.From.AddDate(0, 0, 1)
		r, err := e.Run(t.Context(), p)
		assert.NoError(t, err)
		return r
	}
	for range 4 {
		assert.Equal(t, []string{"provider daily-example: no article of these days: of the articles in its sitemaps 3 are of other days and 1 have no date"}, run(1, 1).Alerts)
	}
	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(run(2, 27)))
	r := run(3, 1)
	assert.Equal(t, counts{Found: 2, Fetched: 2, Inserted: 2}, countsOf(r))
	assert.Empty(t, r.Alerts)
	assert.Empty(t, w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/20")).Alerts, "the backfills before it are no runs in a row without an article")
}

// Relative addresses of a feed that redirects are relative to where it is.
func TestFeedThatMoved(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/feed": "/world/en/feed",
		"/world/en/feed": `<rss version="2.0"><channel><title>Daily</title><item><link>a/1</link></item></channel></rss>`,
		"/world/en/a/1":  story("", prose)})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: /a/\nfeeds: [https://daily.example/feed]"))
	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(r), "%v", w.paths())
}
