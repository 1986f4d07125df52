//go:build unix

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/news/engine"
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

// Relative addresses of a feed that redirects are relative to where it is.
func TestFeedThatMoved(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/feed": "/world/en/feed",
		"/world/en/feed": `<rss version="2.0"><channel><title>Daily</title><item><link>a/1</link></item></channel></rss>`,
		"/world/en/a/1":  story("", prose)})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: /a/\nfeeds: [https://daily.example/feed]"))
	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(r), "%v", w.paths())
}

// dated is a sitemap of articles with what else it says of each.
func dated(entries ...[2]string) string {
	set := ""
	for _, e := range entries {
		set += "<url><loc>" + e[0] + "</loc>" + e[1] + "</url>"
	}
	return "<urlset>" + set + "</urlset>"
}

func index(entries ...[2]string) string {
	return strings.ReplaceAll(strings.ReplaceAll(dated(entries...), "urlset>", "sitemapindex>"), "url>", "sitemap>")
}

func changed(at string) string { return "<lastmod>" + at + "</lastmod>" }

func published(at string) string {
	return "<news:news><news:publication_date>" + at + "</news:publication_date></news:news>"
}

// The newest articles are found also where an index says of its sitemaps no more than a day, is
// older than they are, or names them by days of another zone.
func TestTimesOfSitemaps(t *testing.T) {
	for name, tt := range map[string]struct{ index, rest string }{
		"a day":                   {index([2]string{"/economy.xml", changed("2026-03-02")}, [2]string{"/sports.xml", changed("2026-03-02")}, [2]string{"/old.xml", changed("2026-02-27")}), ""},
		"older than the sitemaps": {index([2]string{"/economy.xml", changed("2026-03-02T03:00:00+09:00")}, [2]string{"/sports.xml", changed("2026-03-02T03:00:00+09:00")}, [2]string{"/old.xml", changed("2026-02-27T03:00:00+09:00")}), "/old.xml"},
		"a day in another zone":   {index([2]string{"/economy.xml?day=2026-03-02"}, [2]string{"/sports.xml?day=2026-03-01"}, [2]string{"/old.xml?day=2026-02-27"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			w.cfg.MaxArticlesPerProvider = 2
			economy := dated([2]string{"/a/1", published("2026-03-02T08:00:00+09:00")}, [2]string{"/a/2", published("2026-03-02T08:10:00+09:00")})
			sports := dated([2]string{"/a/3", published("2026-03-02T08:30:00+09:00")})
			pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/index.xml\n", "/index.xml": tt.index, "/economy.xml": economy, "/economy.xml?day=2026-03-02": economy,
				"/sports.xml": sports, "/sports.xml?day=2026-03-01": sports, "/old.xml": dated([2]string{"/a/4", published("2026-02-27T01:00:00+09:00")})}
			for n := range 5 {
				pages[fmt.Sprintf("/a/%d", n)] = story("", prose)
			}
			w.serve("daily.example", pages)
			r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/"))
			assert.Equal(t, int64(2), r.Inserted)
			paths := w.paths()
			assert.Equal(t, []string{"/a/3", "/a/2"}, paths[len(paths)-2:])
			assert.Equal(t, tt.rest != "", slices.Contains(paths, "/old.xml"), "%v", paths)
		})
	}
}

// A time that a hundred addresses of one sitemap have is when somebody wrote the sitemap: it makes no article new,
// and says nothing about the sitemaps of an index.
func TestSharedTimes(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 2
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/all.xml\nSitemap: https://daily.example/news.xml\nSitemap: https://daily.example/index.xml\n"}
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")
	run := func() (counts, []string) {
		now := changed(w.now.Format(time.RFC3339))
		var all, days [][2]string
		for i := range 120 {
			all = append(all, [2]string{fmt.Sprintf("/a/old-%d", i), now})
			day := begin.AddDate(0, 0, -i).Format(time.DateOnly)
			days = append(days, [2]string{"/" + day + ".xml", now})
			pages["/"+day+".xml"] = dated([2]string{"/a/" + day, changed(day + "T06:00:00+09:00")})
			pages["/a/"+day], pages[fmt.Sprintf("/a/old-%d", i)] = story("", prose), story("", prose)
		}
		pages["/all.xml"], pages["/index.xml"] = dated(all...), index(days...)
		pages["/news.xml"] = dated([2]string{"/a/new", published("2026-03-02T08:00:00+09:00")})
		pages["/a/new"] = story("", prose)
		w.serve("daily.example", pages)
		r := w.run(p)
		return countsOf(r), w.paths()
	}
	got, paths := run()
	assert.Equal(t, counts{Found: 123, Fetched: 2, Inserted: 2}, got)
	assert.Equal(t, []string{"/robots.txt", "/all.xml", "/news.xml", "/index.xml", "/2026-03-02.xml", "/2026-03-01.xml", "/a/new", "/a/2026-03-02"}, paths)
	w.now = w.now.Add(time.Hour)
	got, _ = run()
	assert.Zero(t, got.Fetched)
}

// A time to come, such as one with a wrong zone, does not show that an index is older than its sitemaps.
func TestTimeToComeBeliesNoIndex(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 2
	w.serve("daily.example", map[string]string{"/robots.txt": "Sitemap: https://daily.example/index.xml\n",
		"/index.xml": index([2]string{"/new.xml", changed("2026-03-02T08:15:00+09:00")}, [2]string{"/old.xml", changed("2026-02-27T08:15:00+09:00")}),
		"/new.xml":   dated([2]string{"/a/1", published("2026-03-02T17:10:00+09:00")}, [2]string{"/a/2", published("2026-03-02T08:00:00+09:00")}),
		"/a/1":       story("", prose), "/a/2": story("", prose)})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/"))
	assert.Equal(t, int64(2), r.Inserted)
	assert.Equal(t, []string{"/robots.txt", "/index.xml", "/new.xml", "/a/1", "/a/2"}, w.paths())
}
