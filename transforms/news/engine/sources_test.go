//go:build unix

package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

func declared(t *testing.T, text string) provider.Provider {
	t.Helper()
	p, err := provider.Declared([]byte(text))
	require.NoError(t, err)
	return p
}

// A publisher with nothing but a base URL is read by its sitemaps, its feeds, or the
// usual address of a sitemap.
func TestBaseURLOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		robots  string
		sources map[string]string
		asked   []string
	}{
		"robots.txt names a sitemap": {"Sitemap: https://daily.example/map.xml\n", map[string]string{"/map.xml": "news", "/": "home", "/feed": "rss"}, []string{"/robots.txt", "/map.xml"}},
		"the home page has a feed":   {"", map[string]string{"/": "home", "/feed": "atom"}, []string{"/robots.txt", "/", "/feed"}},
		"the usual sitemap":          {"", map[string]string{"/sitemap.xml": "index"}, []string{"/robots.txt", "/", "/sitemap.xml", "/sitemap.xml.part"}},
		"the home page is forbidden": {"User-agent: *\nDisallow: /$\n", map[string]string{"/": "home", "/feed": "rss", "/sitemap.xml": "urlset"}, []string{"/robots.txt", "/sitemap.xml"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			press := outlet{Host: "daily.example", Path: "/world/{yyyy}/{mm}/{dd}/story-%s", Language: "en", Robots: tt.robots, Sources: tt.sources}
			w.add(press)
			r := w.run(declared(t, "baseUrl: https://daily.example"))
			assert.Equal(t, engine.Ran, r.State, r.Reason)
			assert.Equal(t, counts{Found: 12, Fetched: 10, Inserted: 10}, countsOf(r))
			assert.Equal(t, tt.asked, w.paths()[:len(tt.asked)])
			assert.Len(t, w.paths(), len(tt.asked)+10)
			var title, text, language, by string
			require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT title, raw_text, language, press FROM news_articles WHERE source = 'daily-example' ORDER BY published_at DESC LIMIT 1`).Scan(&title, &text, &language, &by))
			assert.Equal(t, []string{press.title(12), press.text(12), "en", "daily.example"}, []string{title, text, language, by})
		})
	}
}

// A publisher with nothing but a front page is read by its links and those of its sections, in their order.
func TestHomepageOnly(t *testing.T) {
	for name, text := range map[string]string{"nothing else is there": "baseUrl: https://daily.example", "the file says so": "baseUrl: https://daily.example\narticleUrl: \\d{4}/\nhomepage: true"} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			pages := map[string]string{"/robots.txt": "User-agent: *\nDisallow: /sport\n", "/sitemap.xml": told("error", ""),
				"/": `<base href="/"><nav><a href="/about">About us</a><a href="/sport">Sport</a><a href="/town">Town</a><a href="/world/">World</a><a href="/login/">Log in</a><a href="/tag/storm">Storm</a></nav>
					<a href="world/2026/03/01/third-quay-for-the-town">A</a> <a href="/town/2026/03/01/crane-by-night-and-day?src=rss">B</a><a href="#top">Top</a><a href="https://other.example/2026/03/01/not-of-this-host">C</a>`,
				"/world":  `<a href="/world/2026/03/01/third-quay-for-the-town">A</a><a href="/world/2026/02/28/storm-takes-a-ship">D</a><a href="/world/europe">Europe</a>`,
				"/town":   `<a href="/town/2026/02/27/council-has-met-again">E</a>`,
				"/world/": `<a href="/world/2026/03/01/third-quay-for-the-town">A</a><a href="/world/2026/02/28/storm-takes-a-ship">D</a><a href="/world/europe">Europe</a>`}
			articles := []string{"/world/2026/03/01/third-quay-for-the-town", "/town/2026/03/01/crane-by-night-and-day", "/world/2026/02/28/storm-takes-a-ship", "/town/2026/02/27/council-has-met-again"}
			for i, path := range articles {
				pages[path] = told([]string{"harbour", "crane", "storm", "council"}[i], "")
			}
			w.serve("daily.example", pages)
			r := w.run(declared(t, text))
			assert.Equal(t, engine.Ran, r.State, r.Reason)
			assert.Equal(t, counts{Found: 4, Fetched: 4, Inserted: 4}, countsOf(r))
			assert.NotContains(t, w.paths(), "/about")
			assert.NotContains(t, w.paths(), "/world/europe")
			assert.NotContains(t, w.paths(), "/sport", "robots.txt forbids it")
			assert.Equal(t, articles[:2], w.paths()[len(w.paths())-4:len(w.paths())-2], "the front page's are first")
			r = w.run(declared(t, text))
			assert.Equal(t, counts{Found: 4}, countsOf(r), "they are known")
		})
	}
}

// Declared feeds are read as well as the sitemaps; robots.txt of a feed's own host counts.
func TestFeeds(t *testing.T) {
	w := once(t)
	press := outlet{Host: "daily.example", Path: "/a/%s", Language: "de", Robots: "User-agent: *\nDisallow: /closed\nSitemap: https://daily.example/map.xml\n",
		Sources: map[string]string{"/map.xml": "index", "/rss": "rss", "/rdf": "rdf", "/closed/atom": "atom"}, Others: []string{"feeds.example"}}
	site := w.add(press)
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nfeeds: [https://daily.example/rss, https://feeds.example/rdf, https://feeds.example/closed/atom, https://daily.example/closed/atom]")
	r := w.run(p)
	assert.Equal(t, counts{Found: 12, Fetched: 10, Inserted: 10}, countsOf(r))
	assert.Equal(t, []string{"/robots.txt", "/rss", "/robots.txt", "/rdf", "/map.xml", "/map.xml.part"}, w.paths()[:6])
	assert.NotContains(t, w.paths(), "/closed/atom", "robots.txt forbids it, on both hosts")

	assert.Equal(t, counts{Found: 12}, countsOf(w.run(p)))
	site.edit(12)
	site.publish(1)
	assert.Equal(t, counts{Found: 13, Fetched: 2, Inserted: 1, Same: 1}, countsOf(w.run(p)), "the feed's date is newer")
	site.answer("/map.xml", 500)
	site.publish(1)
	assert.Equal(t, counts{Found: 14, Fetched: 1, Inserted: 1}, countsOf(w.run(p)), "the feeds alone")
}

// A sitemap that robots.txt does not name may be forbidden by it.
func TestForbiddenHint(t *testing.T) {
	w := once(t)
	w.add(outlet{Host: "daily.example", Path: "/a/%s", Language: "fr", Robots: "User-agent: *\nDisallow: /map\n", Sources: map[string]string{"/map.xml": "urlset"}})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]"))
	assert.Equal(t, engine.Skipped, r.State)
	assert.Contains(t, r.Reason, "none of its sitemaps and feeds can be read")
	assert.Equal(t, []string{"/robots.txt"}, w.paths())
}

// Where a feed redirects to another host, that host's robots.txt decides, and ends this feed
// alone.
func TestFeedOnAnotherHost(t *testing.T) {
	for robots, want := range map[string][]string{
		"User-agent: *\nDisallow: /feed\n":                  {"/robots.txt", "/rss", "/robots.txt", "/map.xml"},
		"User-agent: *\nDisallow: /no\nCrawl-delay: 3600\n": {"/robots.txt", "/rss", "/robots.txt", "/map.xml"},
		"User-agent: *\nDisallow: /no\n":                    {"/robots.txt", "/rss", "/robots.txt", "/feed", "/map.xml"},
	} {
		w := once(t)
		w.serve("daily.example", map[string]string{"/rss": "//feeds.example/feed", "/map.xml": "<urlset><url><loc>https://daily.example/a/1</loc></url></urlset>", "/a/1": story("", prose)})
		w.serve("feeds.example", map[string]string{"/robots.txt": robots, "/feed": "<rss/>"})
		r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nfeeds: [https://daily.example/rss]\nsitemapHints: [https://daily.example/map.xml]"))
		assert.Equal(t, engine.Ran, r.State, r.Reason)
		assert.EqualValues(t, 1, r.Inserted)
		assert.Equal(t, append(want, "/a/1"), w.paths(), robots)
	}
}

// A host with letters besides ASCII is the same as addresses name it.
func TestInternationalHost(t *testing.T) {
	w := once(t)
	w.serve("xn--bcher-kva.example", map[string]string{"/map.xml": "<urlset><url><loc>https://bücher.example/a/1</loc></url><url><loc>https://www.xn--bcher-kva.example/a/2</loc></url></urlset>", "/a/1": story("", prose)})
	w.serve("www.xn--bcher-kva.example", map[string]string{"/a/2": story("", prose)})
	r := w.run(declared(t, "baseUrl: https://Bücher.example\narticleUrl: ^/a/\nsitemapHints: [https://bücher.example/map.xml]"))
	assert.Equal(t, counts{Found: 2, Fetched: 2, Inserted: 2}, countsOf(r))
}

// That a sitemap ends early is said: what it lacks may be the newest.
func TestSitemapEndsEarly(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/map.xml": "<urlset><url><loc>https://daily.example/a/1</loc></url><url><loc>https://daily.ex", "/a/1": story("", prose)})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]"))
	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(r))
	assert.Equal(t, []string{"a sitemap was read up to its first 50 MiB, or ends early: https://daily.example/map.xml"}, r.Limits)
}

// A declared JSON Feed is read as one of RSS, by its dates and up to where it ends.
func TestJSONFeed(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 2
	const items = `{"version":"https://jsonfeed.org/version/1.1","title":"Daily","items":[{"id":"1","url":"/a/1","date_published":"2026-03-01T08:00:00+09:00"},{"id":"2","url":"https://daily.example/a/2","title":"Told by the feed","date_published":"2026-03-01T10:00:00+09:00"},{"id":"https://daily.example/a/3","date_published":"2026-03-01T09:00:00+09:00"}`
	pages := map[string]string{"/feed.json": items + "]}", "/a/2": story("", prose), "/a/3": story("", prose)}
	w.serve("daily.example", pages)
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nfeeds: [https://daily.example/feed.json]")
	r := w.run(p)
	assert.Equal(t, counts{Found: 3, Fetched: 2, Inserted: 2}, countsOf(r), r.Reason)
	assert.Equal(t, []string{"/robots.txt", "/feed.json", "/a/2", "/a/3"}, w.paths())
	assert.Empty(t, r.Limits)
	pages["/feed.json"] = items
	assert.Equal(t, []string{"a sitemap was read up to its first 50 MiB, or ends early: https://daily.example/feed.json"}, w.run(p).Limits)
	pages["/feed.json"] = `{"code":"rest_no_route"}`
	r = w.run(p)
	assert.Equal(t, []any{engine.Skipped, `none of its sitemaps and feeds can be read: https://daily.example/feed.json is neither a sitemap nor a feed, but "text/html; charset=utf-8"`}, []any{r.State, r.Reason})
}
