//go:build unix

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/mk"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// archive answers for a publisher whose sitemaps are given by their paths: the
// addresses that each names, relative to the host, with a lastmod after a space
// where there is one. Those that end in .xml are an index's children.
func archive(w *world, robots string, sitemaps map[string][]string) {
	pages := map[string]string{"/robots.txt": robots}
	for path, locs := range sitemaps {
		var entries [][2]string
		form := dated
		for _, l := range locs {
			loc, at, _ := strings.Cut(l, " ")
			if strings.Contains(loc, ".xml") {
				form = index
			} else {
				pages[loc] = plainPage
			}
			if at != "" {
				at = changed(at)
			}
			entries = append(entries, [2]string{"https://" + newssim.MK + loc, at})
		}
		pages[path] = form(entries...)
	}
	w.serve(newssim.MK, pages)
}

const named = "Sitemap: https://" + newssim.MK + "/index.xml\n"

// months lays out n sitemaps, a month's articles each, the first the newest, and
// an index of them without lastmod in the order of their names.
func months(n int, names func(i int) string, order func(i int) int) map[string][]string {
	all := map[string][]string{"/index.xml": make([]string, n)}
	for i := range n {
		at := begin.AddDate(0, -i, 0)
		all["/index.xml"][order(i)] = names(i)
		for k := range 3 {
			all[names(i)] = append(all[names(i)], fmt.Sprintf("/news/economy/%d%02d %s", 11000000-i*100, k, at.AddDate(0, 0, -k).Format(time.RFC3339)))
		}
	}
	return all
}

// An index without lastmod is read from its newest end, wherever that is.
func TestUndatedIndex(t *testing.T) {
	const n = 60
	plain := func(i int) string { return fmt.Sprintf("/part-%d.xml", n-i) }
	dated := func(i int) string { return "/part-" + begin.AddDate(0, -i, -1).Format("2006-01") + ".xml" }
	mixed := func(i int) int { return i * 7 % n }
	last := func(i int) int { return n - 1 - i }
	first := func(i int) int { return i }
	for name, all := range map[string]map[string][]string{
		"the last is the newest":             months(n, plain, last),
		"the first is the newest":            months(n, plain, first),
		"dates in names, in any order":       months(n, dated, mixed),
		"dates in names, the last is newest": months(n, dated, last),
	} {
		w := once(t)
		w.cfg.MaxArticlesPerProvider = 3
		archive(w, named, all)
		r := w.run(mk.Provider{})
		assert.Equal(t, engine.Ran, r.State, name)
		assert.EqualValues(t, 3, r.Inserted, name)
		assert.Empty(t, r.Alerts, name)
		assert.Equal(t, 3, w.count("url LIKE '%/110000%'"), "%s: the newest month's", name)
	}
}

// What was left out at a limit is said, and is an alert when nothing came of the rest.
func TestLimitIsSaid(t *testing.T) {
	w := once(t)
	const n = 60
	all := months(n, func(i int) string { return fmt.Sprintf("/part-%d.xml", i) }, func(i int) int { return (i + n/2) % n })
	archive(w, named, all)
	r := w.run(mk.Provider{})
	assert.Zero(t, r.Inserted)
	require.Len(t, r.Limits, 1)
	assert.Contains(t, r.Limits[0], "20 sitemaps were read, the maximum for a run; 41 more were left out, such as https://www.mk.co.kr/part-")
	require.Len(t, r.Alerts, 1)
	assert.Contains(t, r.Alerts[0], "provider mk: no article yet: its sitemaps name 57 articles; of the newest ones 10 are older than the retention; 20 sitemaps were read")
}

// A long index does not keep the other sitemaps of robots.txt from being read.
func TestEveryRootIsRead(t *testing.T) {
	w := once(t)
	all := months(60, func(i int) string { return fmt.Sprintf("/part-%d.xml", i) }, func(i int) int { return (i + 30) % 60 })
	all["/news.xml"] = []string{"/news/economy/12000000 " + begin.Format(time.RFC3339)}
	archive(w, named+"Sitemap: https://"+newssim.MK+"/news.xml\n", all)
	r := w.run(mk.Provider{})
	assert.EqualValues(t, 1, r.Inserted)
	assert.Empty(t, r.Alerts)
	assert.Len(t, r.Limits, 1)
	assert.Equal(t, []string{"/robots.txt", "/index.xml", "/news.xml"}, w.paths()[:3])
}

// A new publisher that brings nothing says why; a known one after three runs.
func TestNothingComes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alerts := func(robots string, urls ...string) []string {
			t.Helper()
			archive(w, robots, map[string][]string{"/index.xml": urls})
			w.now = w.now.Add(time.Hour)
			return w.run(mk.Provider{}).Alerts
		}
		old := "/news/economy/11000001 " + begin.AddDate(-1, 0, 0).Format(time.RFC3339)
		assert.Equal(t, []string{"provider mk: no article yet: articleUrl (without it: the usual form of articles' addresses) matches none of the 2 addresses in its sitemaps, such as https://www.mk.co.kr/a"}, alerts(named, "/a", "/b"))
		assert.Equal(t, []string{"provider mk: no article yet: neither its sitemaps nor feeds nor links name an article: look at sitemapHints, feeds and articleUrl"}, alerts(named))
		assert.Equal(t, []string{"provider mk: no article in 3 runs in a row: its sitemaps name 1 articles; of the newest ones 1 are older than the retention"}, alerts(named, old))

		assert.Empty(t, alerts(named, "/news/economy/11000002"), "now it brings one")
		assert.Empty(t, alerts(named, "/news/economy/11000002"), "which stays")
		assert.Empty(t, alerts(named), "once is nothing yet")
		assert.Empty(t, alerts(named))
		assert.Equal(t, []string{"provider mk: no article in 3 runs in a row: neither its sitemaps nor feeds nor links name an article: look at sitemapHints, feeds and articleUrl"}, alerts(named))
		assert.Empty(t, alerts(named, "/news/economy/11000002"), "what is kept is there")

		w.now = w.now.Add(8 * 24 * time.Hour)
		assert.Equal(t, []string{"provider mk: no new article since 2026-03-02, in 6 runs; do its sitemaps still name the newest?"}, alerts(named, "/news/economy/11000002"))
		assert.Empty(t, alerts(named, "/news/economy/11000002", "/news/economy/11000003"))

		w.now = w.now.AddDate(0, 0, 31)
		_, err := raw.Purge(t.Context(), w.db, w.now)
		require.NoError(t, err)
		for range 2 {
			assert.Empty(t, alerts(named, "/news/economy/11000003"))
		}
		assert.Equal(t, []string{"provider mk: no article in 3 runs in a row: its sitemaps name 1 articles; of the newest ones 1 have expired"}, alerts(named, "/news/economy/11000003"))
	})
}
