//go:build unix

package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/mk"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
)

// publisher serves a publisher's pages (see serve), and names them in its sitemap, the first as the newest.
func publisher(w *world, paths []string, pages map[string]string) {
	pages["/sitemap.xml"] = strings.ReplaceAll(list(paths...), "daily.example", newssim.MK)
	pages["/robots.txt"] = "Sitemap: https://" + newssim.MK + "/sitemap.xml\n"
	w.serve(newssim.MK, pages)
}

var plainPage = "<html><head><title>A headline</title></head><body><article>" + prose + "</article></body></html>"

// Indexes without end are one limit, and what is no sitemap is named with what it is.
func TestUselessSitemaps(t *testing.T) {
	w := once(t)
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			_, _ = fmt.Fprintf(rw, "Sitemap: https://%s/sitemap.xml\n", newssim.MK)
			return
		}
		for i := range 9 {
			_, _ = fmt.Fprintf(rw, "%s<sitemap><loc>https://%s/sitemap.xml?%s%d</loc></sitemap>", map[bool]string{true: "<sitemapindex>"}[i == 0], newssim.MK, r.URL.RawQuery, i)
		}
		_, _ = rw.Write([]byte("</sitemapindex>"))
	}))
	r := w.run(mk.Provider{})
	require.Len(t, r.Limits, 2, "%v", r.Limits)
	assert.Contains(t, r.Limits[0], "an index in an index in an index was not followed: https://")
	assert.Contains(t, r.Limits[1], "20 sitemaps were read, the maximum for a run")

	w.serve(newssim.MK, map[string]string{"/robots.txt": "Sitemap: https://" + newssim.MK + "/sitemap.xml\n", "/sitemap.xml": "<html><body>Please accept our cookies"})
	r = w.run(mk.Provider{})
	assert.Equal(t, []any{engine.Skipped, "none of its sitemaps and feeds can be read: https://" + newssim.MK + `/sitemap.xml is neither a sitemap nor a feed, but "text/html; charset=utf-8"`}, []any{r.State, r.Reason})
}

// What a page says never gets to the database as it came, and one page's values
// that the database refuses are that page's dead letter.
func TestHostilePages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		long := "/news/economy/" + strings.Repeat("1", 4000)
		paths := []string{"/news/economy/11000001", long, "/newsRead.php?year=2021&no=1%00%FF", "/news/economy/11000002", "/news/economy/11000003", "/news/economy/11000004"}
		publisher(w, paths, map[string]string{
			paths[0]: `<html lang="ko&#0;` + "\xff" + `"><head><meta property="og:title" content="A` + "\xff\xfe\x00\x1b[31m" + ` headline"><meta property="article:published_time" content="2026-03-02T08:00:00+09:00">
				<link rel=canonical href="https://www.mk.co.kr` + long + `">
				<script type="application/ld+json">{"@type":"NewsArticle","author":["홍길\u0000동","\u0000\u0000"],"articleSection":"a\u0000b","articleBody":"` + strings.Repeat(`한국은행은\u0000 기준금리를 동결했다고 밝혔다.\n`, 5) + `"}</script></head><body></body></html>`,
			paths[2]: plainPage,
			paths[3]: strings.Replace(plainPage, "A headline", "refuse me", 1),
			paths[4]: strings.Replace(plainPage, "A headline", strings.Repeat("제목 ", 3000), 1),
			paths[5]: plainPage,
		})
		refuse := `ALTER TABLE news_articles ADD CHECK (title <> 'refuse me')`
		if w.db.Dialect == db.SQLite {
			refuse = `CREATE TRIGGER refuse BEFORE INSERT ON news_articles WHEN NEW.title = 'refuse me' BEGIN SELECT RAISE(ABORT, 'refused'); END`
		}
		_, err := w.db.ExecContext(t.Context(), refuse)
		require.NoError(t, err)

		r := w.run(mk.Provider{})
		assert.Equal(t, engine.Ran, r.State)
		assert.Equal(t, counts{Found: 5, Fetched: 5, Inserted: 4, Failed: 1}, countsOf(r), "the address of 4,000 bytes is left out")
		require.Len(t, w.letters, 1)
		assert.Equal(t, "database_rejected", w.letters[0].Kind)
		assert.Equal(t, "https://www.mk.co.kr"+paths[3], w.letters[0].Input.URL)

		var title, text, authors, language, canonical, id string
		row := func(path string) {
			require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT title, raw_text, authors, language, canonical_url, external_id FROM news_articles WHERE url = $1`,
				"https://www.mk.co.kr"+path).Scan(&title, &text, &authors, &language, &canonical, &id))
		}
		row(paths[0])
		assert.Equal(t, "A\uFFFD\uFFFD\uFFFD[31m headline", title) // one for each byte that is no character
		assert.Equal(t, strings.TrimSuffix(strings.Repeat("한국은행은 기준금리를 동결했다고 밝혔다.\n", 5), "\n"), text)
		assert.Equal(t, `["홍길동"]`, authors)
		assert.NotContains(t, language, "\x00")
		assert.Equal(t, "https://mk.co.kr"+paths[0], canonical, "one that is too long is none")
		row(paths[2])
		assert.Equal(t, "", id, "an id that cannot be kept is none")
		row(paths[4])
		assert.LessOrEqual(t, len(title), 2000)
		assert.True(t, utf8.ValidString(title), "cut between characters")

		again := w.run(mk.Provider{})
		assert.Equal(t, counts{Found: 5, Fetched: 1, Failed: 1}, countsOf(again), "the rest is remembered")
		w.run(mk.Provider{})
		assert.Equal(t, counts{Found: 5}, countsOf(w.run(mk.Provider{})), "three times in vain are enough")
	})
}

// The newest article refuses every time: the others are asked for all the same,
// and after three times it is left.
func TestRefusedArticleStarvesNobody(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.MK]
	site.Answer(site.Path(12), 403)
	r := w.run(mk.Provider{})
	assert.Equal(t, blocked, r.State, "nothing else is known of the site")
	assert.Equal(t, counts{Found: 12}, countsOf(r))

	r = w.run(mk.Provider{})
	assert.Equal(t, engine.Stopped, r.State)
	assert.Equal(t, counts{Found: 12, Fetched: 9, Inserted: 9}, countsOf(r))
	paths := w.paths()
	assert.Equal(t, site.Path(12), paths[len(paths)-1], "it comes last")

	assert.Equal(t, engine.Stopped, w.run(mk.Provider{}).State)
	r = w.run(mk.Provider{})
	assert.Equal(t, engine.Ran, r.State)
	assert.NotContains(t, w.paths(), site.Path(12), "it has refused three times")

	site.Answer(site.Path(12), 0)
	site.Edit(12)
	r = w.run(mk.Provider{})
	assert.Equal(t, counts{Found: 12, Fetched: 1, Inserted: 1}, countsOf(r), "until the sitemap says that it is newer")
}

// After redirects the page's own address is kept; one that is no article's is none.
func TestFinalAddress(t *testing.T) {
	w := once(t)
	paths := []string{"/news/economy/11000001", "/news/economy/11000002"}
	const moved = "/news/stock/11000001?utm_source=moved"
	publisher(w, paths, map[string]string{paths[0]: moved, moved: plainPage, paths[1]: "/", "/": plainPage})
	r := w.run(mk.Provider{})
	assert.Equal(t, counts{Found: 2, Fetched: 1, Inserted: 1, Failed: 1}, countsOf(r))
	assert.Equal(t, 1, w.count(`url = 'https://www.mk.co.kr`+moved+`' AND canonical_url = 'https://mk.co.kr/news/stock/11000001'`))
	require.Len(t, w.letters, 1)
	assert.Equal(t, "not_an_article", w.letters[0].Kind)
	assert.Equal(t, "it redirects to https://www.mk.co.kr/: which is not an article's address; if it is one, change articleUrl", w.letters[0].Error)
	assert.Equal(t, counts{Found: 2, Failed: 1}, countsOf(w.run(mk.Provider{})), "by the address of the sitemap it is known")
}

// What a page shows in place of an article that is not free is not kept; the
// article is fetched again when the sitemap says that it is newer.
func TestPaywall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		paths := []string{"/news/economy/11000001", "/news/economy/11000002"}
		paid := `<script type="application/ld+json">{"@type":"NewsArticle","headline":"Paid","isAccessibleForFree":"False"}</script>` + plainPage
		publisher(w, paths, map[string]string{paths[0]: paid, paths[1]: plainPage})
		r := w.run(mk.Provider{})
		assert.Equal(t, counts{Found: 2, Fetched: 2, Inserted: 1}, countsOf(r))
		assert.EqualValues(t, 1, r.Paywalled)
		assert.Empty(t, w.letters)
		assert.Equal(t, 0, w.count("url LIKE '%1'"))
		assert.Equal(t, counts{Found: 2}, countsOf(w.run(mk.Provider{})))
	})
}

// robots.txt is at the root of the publisher's host, wherever its base URL points.
func TestRobotsOfABaseURLWithAPath(t *testing.T) {
	w := once(t)
	paths := []string{"/news/economy/11000001"}
	publisher(w, paths, map[string]string{paths[0]: plainPage})
	r := w.run(edition{})
	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(r))
	assert.Equal(t, []string{"/robots.txt", "/sitemap.xml", paths[0]}, w.paths())
}

type edition struct{ mk.Provider }

func (edition) BaseURL() string { return "https://www.mk.co.kr/kr/?a=b" }
