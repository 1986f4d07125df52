//go:build unix

package engine_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// A source that refuses ends that source; the publisher ends when robots.txt, an article or all
// of its sources refuse.
func TestRefusedSources(t *testing.T) {
	const (
		one = "<urlset><url><loc>https://daily.example/a/1</loc></url></urlset>"
		two = "<urlset><url><loc>https://daily.example/a/2</loc></url></urlset>"
		of  = "baseUrl: https://daily.example\narticleUrl: ^/a/\n"
	)
	refuses := func(which string) []string {
		return []string{"provider daily-example: a source of its articles refuses the crawler (" + which + "): the others are read; if it stays so, remove it from feeds or sitemapHints"}
	}
	for name, tt := range map[string]struct {
		file    string
		pages   map[string]string
		state   engine.State
		reason  string
		stored  int64
		alerts  []string
		request []string
	}{
		"a feed, with a hint": {of + "feeds: [https://daily.example/rss]\nsitemapHints: [https://daily.example/map.xml]",
			map[string]string{"/rss": "403", "/map.xml": one}, engine.Ran, "", 1, refuses("it answered 403 for https://daily.example/rss"), []string{"/robots.txt", "/rss", "/map.xml", "/a/1"}},
		"a feed, with a sitemap of robots.txt": {of + "feeds: [https://daily.example/rss]",
			map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n", "/rss": "401", "/map.xml": one}, engine.Ran, "", 1, refuses("it answered 401 for https://daily.example/rss"), []string{"/robots.txt", "/rss", "/map.xml", "/a/1"}},
		"one of two feeds": {of + "feeds: [https://daily.example/rss, https://daily.example/atom]",
			map[string]string{"/rss": one, "/atom": "403"}, engine.Ran, "", 1, refuses("it answered 403 for https://daily.example/atom"), []string{"/robots.txt", "/rss", "/atom", "/a/1"}},
		"a feed of another host is busy": {of + "feeds: [https://feeds.example/rss, https://daily.example/rss]",
			map[string]string{"/rss": one}, engine.Ran, "", 1, refuses("it answered 429 for https://feeds.example/rss"), []string{"/robots.txt", "/robots.txt", "/rss", "/rss", "/a/1"}},
		"a child of an index": {of + "sitemapHints: [https://daily.example/index.xml]",
			map[string]string{"/index.xml": "<sitemapindex><sitemap><loc>https://daily.example/1.xml</loc></sitemap><sitemap><loc>https://daily.example/2.xml</loc></sitemap></sitemapindex>", "/1.xml": one, "/2.xml": "403"},
			engine.Ran, "", 1, refuses("it answered 403 for https://daily.example/2.xml"), []string{"/robots.txt", "/index.xml", "/2.xml", "/1.xml", "/a/1"}},
		"all that robots.txt names, with a hint": {of + "sitemapHints: [https://daily.example/map.xml]",
			map[string]string{"/robots.txt": "Sitemap: https://daily.example/news.xml\n", "/news.xml": "403", "/map.xml": one}, engine.Ran, "", 1, refuses("it answered 403 for https://daily.example/news.xml"), []string{"/robots.txt", "/news.xml", "/map.xml", "/a/1"}},
		"the homepage that has the feeds": {"baseUrl: https://daily.example\n",
			map[string]string{"/": "403", "/sitemap.xml": "<urlset><url><loc>https://daily.example/2026/03/02/bank</loc></url></urlset>", "/2026/03/02/bank": story("", prose)}, engine.Ran, "", 1, nil, []string{"/robots.txt", "/", "/sitemap.xml", "/2026/03/02/bank"}},
		"all": {of + "feeds: [https://daily.example/rss]\nsitemapHints: [https://daily.example/map.xml]",
			map[string]string{"/rss": "403", "/map.xml": "401"}, blocked, "daily.example refuses (401, 403 for 2 of 2 seeds): the next run asks again; if it lasts, ask the site's owner to allow this crawler's User-Agent", 0, nil, []string{"/robots.txt", "/rss", "/map.xml"}},
		"robots.txt": {of + "feeds: [https://daily.example/rss]",
			map[string]string{"/robots.txt": "401", "/rss": one}, blocked, "daily.example refuses (401 for robots.txt): the next run asks again; if it lasts, ask the site's owner to allow this crawler's User-Agent", 0, nil, []string{"/robots.txt"}},
		"an article": {of + "feeds: [https://daily.example/rss]",
			map[string]string{"/rss": two, "/a/2": "401"}, blocked, "daily.example refuses (401 for 1 of 1 known URLs): the next run asks again; if it lasts, ask the site's owner to allow this crawler's User-Agent", 0, nil, []string{"/robots.txt", "/rss", "/a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			pages := map[string]string{"/a/1": story("", prose)}
			maps.Copy(pages, tt.pages)
			w.serve("daily.example", pages)
			w.serve("feeds.example", map[string]string{"/rss": "429"})
			r := w.run(declared(t, tt.file))
			assert.Equal(t, []any{tt.state, tt.reason, tt.stored}, []any{r.State, r.Reason, r.Inserted})
			assert.Equal(t, tt.alerts, r.Alerts)
			assert.Equal(t, tt.request, w.paths())
			assert.Equal(t, int(tt.stored), w.count("true"))
		})
	}
}
