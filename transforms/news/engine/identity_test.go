//go:build unix

package engine_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// told is a page about something, as none of the others is.
func told(what, head string) string {
	var words []string
	for i := range 60 {
		words = append(words, fmt.Sprintf("%s%d", what, i))
	}
	return "<!doctype html><html lang=en><head><title>About " + what + "</title>" + head + "</head><body><article><h1>About " + what + "</h1><p>" + strings.Join(words, " ") + ".</p></article></body></html>"
}

// An article whose page names another article as its canonical address is stored all the same,
// in whatever order they are fetched. A copy of an article never replaces it.
func TestCanonicalOfAnotherArticle(t *testing.T) {
	first := `<link rel=canonical href="https://daily.example/a/first">`
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n",
		"/a/first": told("harbour", first), "/a/second": told("mountain", first), "/a/third": told("winter", first),
		"/a/first/amp": strings.Replace(told("harbour", first), ">harbour0 ", ">amp ", 1)}
	for name, order := range map[string][]string{
		"the named one first": {"first", "second", "third", "first/amp"}, "the named one last": {"second", "third", "first", "first/amp"}, "a copy first": {"first/amp", "third", "first", "second"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")
				for run := range 3 {
					set := ""
					for _, path := range order {
						set += fmt.Sprintf("<url><loc>/a/%s</loc><lastmod>2026-03-0%d</lastmod></url>", path, run+1)
					}
					pages["/map.xml"] = "<urlset>" + set + "</urlset>"
					w.serve("daily.example", pages)
					w.now = w.now.AddDate(0, 0, 1)
					r := w.run(p)
					assert.Equal(t, engine.Ran, r.State)
					got := map[string]string{}
					for _, a := range w.articles() {
						word, _, _ := strings.Cut(a.Text, "0")
						got[a.CanonicalURL] = word + " " + a.URL
					}
					assert.Equal(t, map[string]string{"https://daily.example/a/first": "harbour https://daily.example/a/first",
						"https://daily.example/a/second": "mountain https://daily.example/a/second", "https://daily.example/a/third": "winter https://daily.example/a/third"}, got)
					if run == 2 {
						assert.Equal(t, counts{Found: 4, Fetched: 4, Same: 4}, countsOf(r))
					}
				}
			})
		})
	}
}

// Of an article with several kept pages the newest is read again, and none that is older than what was read since.
func TestReparseReadsTheNewest(t *testing.T) {
	w := once(t)
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")
	run := func(day int, text string, keep bool) {
		w.now = begin.AddDate(0, 0, day)
		w.serve("daily.example", map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n", "/a/1": told(text, ""),
			"/map.xml": "<urlset><url><loc>/a/1</loc><lastmod>" + w.now.Format(time.RFC3339) + "</lastmod></url></urlset>"})
		w.run(p, func(e *engine.Engine) { e.KeepHTML = keep })
	}
	run(0, "river", true)
	run(1, "forest", true)
	r := w.run(p, reparse)
	assert.Equal(t, counts{Same: 1}, countsOf(r))
	assert.Empty(t, r.Limits)
	run(2, "island", false)
	r = w.run(p, reparse)
	assert.Equal(t, counts{}, countsOf(r))
	assert.Equal(t, []string{"1 kept pages were not read again: the articles were fetched since, without --keep-html"}, r.Limits)
	require.Len(t, w.articles(), 1)
	assert.Equal(t, []any{"About island", int64(3)}, []any{w.articles()[0].Title, w.articles()[0].Version})
}

// What is read otherwise from a kept page has changed now, and stays for as long as it would have.
func TestReparsedIsChangedNow(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/map.xml": "<urlset><url><loc>/a/1</loc></url></urlset>", "/a/1": told("river", "<meta name=x>")})
	file := "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]\n"
	w.run(declared(t, file), keepHTML)
	before := w.articles()[0]
	w.now = w.now.AddDate(0, 0, 3)
	r := w.run(declared(t, file+"body: h1"), reparse)
	require.Equal(t, counts{Changed: 1}, countsOf(r))
	after := w.articles()[0]
	assert.Equal(t, []any{before.CollectedAt, before.ExpiresAt, w.now.UTC().Truncate(time.Microsecond)}, []any{after.CollectedAt, after.ExpiresAt, after.ChangedAt.UTC()})
}

// An answer that ends early is tried again, and half an article is not stored.
func TestAnswerEndsEarly(t *testing.T) {
	w := once(t)
	asked := 0
	w.sim.Handle("daily.example", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		switch r.URL.Path {
		case "/map.xml":
			_, _ = z.Write([]byte("<urlset><url><loc>/a/1</loc></url><url><loc>/a/2</loc></url></urlset>"))
		case "/a/1", "/a/2":
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = z.Write([]byte(story("", prose+"<p>This was reported at "+r.URL.Path+".</p>")))
		default:
			http.NotFound(rw, r)
			return
		}
		require.NoError(t, z.Close())
		rw.Header().Set("Content-Encoding", "gzip")
		whole := b.String()
		if asked++; r.URL.Path == "/a/1" && asked < 6 || r.URL.Path == "/a/2" && asked == 5 {
			whole = whole[:len(whole)-60]
		}
		_, _ = rw.Write([]byte(whole))
	}))
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]")
	r := w.run(p)
	assert.Equal(t, counts{Found: 2, Fetched: 1, Inserted: 1, Failed: 1}, countsOf(r))
	assert.Equal(t, []string{"/robots.txt", "/map.xml", "/a/1", "/a/1", "/a/1", "/a/2", "/a/2"}, w.paths())
	require.Len(t, w.letters, 1)
	assert.Equal(t, []any{"reset", "the answer ends early", true}, []any{w.letters[0].Kind, w.letters[0].Error, w.letters[0].Retryable})
	assert.Equal(t, counts{Found: 2, Fetched: 1, Inserted: 1}, countsOf(w.run(p)), "the next run has it whole")
}

// A kept page that cannot be read is one dead letter, and not the end of those after it.
func TestReparseOfDamagedEvidence(t *testing.T) {
	w := once(t)
	title := strings.Repeat("long title ", 200_000) // of the feed
	w.serve("daily.example", map[string]string{"/feed": "<rss><channel><item><title>" + title + "</title><link>https://daily.example/a/1</link></item></channel></rss>", "/a/1": told("river", "")})
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nfeeds: [https://daily.example/feed]")
	w.run(p, keepHTML)
	for _, name := range []string{"0.warc.gz", "1.json.gz"} {
		require.NoError(t, store.Write(t.Context(), w.store, "evidence/news/daily-example/2026-03-01/"+name, []byte("garbage"), store.PutOptions{}))
	}
	r := w.run(p, reparse)
	assert.Equal(t, counts{Same: 1, Failed: 2}, countsOf(r))
	require.Len(t, w.letters, 2)
	assert.Equal(t, []any{"parse_failed", "evidence/news/daily-example/2026-03-01/0.warc.gz", "daily-example"}, []any{w.letters[0].Kind, w.letters[0].Input.Key, w.letters[0].Input.Source})
}

// Addresses in a page are relative to its base element, and the addresses of another host are
// no article's all the same.
func TestBaseElement(t *testing.T) {
	w := once(t)
	w.cfg.RawTextMaxLength = 10_000
	said := func(base string) string {
		return base + `<link rel=canonical href="a/own"><meta property="og:image" content="i/1.jpg">`
	}
	w.serve("daily.example", map[string]string{
		"/map.xml": "<urlset><url><loc>/x/a/1</loc></url><url><loc>/x/a/2</loc></url><url><loc>/x/a/3</loc></url><url><loc>/x/a/4</loc></url></urlset>",
		"/x/a/1":   told("river", said(`<base target=_top><base href="/en/"><base href="/fr/">`)),
		"/x/a/2":   told("mountain", said(`<base href="https://other.example/">`)),
		"/x/a/3":   told("winter", said(`<base href="javascript:x">`)),
		"/x/a/4":   strings.Replace(told("forest", `<base href="/x/">`), "</article>", `<a href="a/4/2">2</a></article>`, 1),
		"/x/a/4/2": told("island", ""),
	})
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: /a/\nsitemapHints: [https://daily.example/map.xml]"))
	assert.Equal(t, counts{Found: 4, Fetched: 4, Inserted: 4}, countsOf(r))
	got := map[string][]string{}
	for _, a := range w.articles() {
		got[a.URL] = append([]string{a.CanonicalURL}, a.Images...)
		if strings.Contains(a.Text, "forest0") {
			assert.Contains(t, a.Text, "island0")
		}
	}
	assert.Equal(t, map[string][]string{
		"https://daily.example/x/a/1": {"https://daily.example/en/a/own", "https://daily.example/en/i/1.jpg"},
		"https://daily.example/x/a/2": {"https://daily.example/x/a/2", "https://other.example/i/1.jpg"},
		"https://daily.example/x/a/3": {"https://daily.example/x/a/a/own", "https://daily.example/x/a/i/1.jpg"},
		"https://daily.example/x/a/4": {"https://daily.example/x/a/4"},
	}, got)
}

// A stored article that moves stays one article, with the version before: its address redirects
// to the new one, or its page names another as canonical. What another article's address
// redirects to is no new address of it.
func TestArticleMoves(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n"}
		run := func(day int, listed ...string) counts {
			set := ""
			for _, path := range listed {
				set += fmt.Sprintf("<url><loc>%s</loc><lastmod>2026-03-0%d</lastmod></url>", path, day)
			}
			pages["/map.xml"] = "<urlset>" + set + "</urlset>"
			w.serve("daily.example", pages)
			w.now = begin.AddDate(0, 0, day)
			return countsOf(w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")))
		}
		for _, what := range []string{"river", "mountain", "winter"} {
			pages["/a/"+what] = told(what, "")
		}
		assert.Equal(t, counts{Found: 3, Fetched: 3, Inserted: 3}, run(1, "/a/river", "/a/mountain", "/a/winter"))
		ids := map[string]string{}
		for _, a := range w.articles() {
			ids[a.Title] = a.ID
		}
		pages["/a/river"], pages["/a/river-2"] = "/a/river-2", strings.ReplaceAll(told("river", ""), "About river", "More about river")
		pages["/a/mountain"] = told("mountain", `<link rel=canonical href="/a/mountain-2">`)
		pages["/a/winter"], pages["/a/forest"] = "/a/forest", told("forest", "")
		assert.Equal(t, counts{Found: 3, Fetched: 3, Inserted: 1, Changed: 2}, run(2, "/a/river", "/a/mountain", "/a/winter"))
		pages["/a/mountain-2"] = pages["/a/mountain"]
		assert.Equal(t, counts{Found: 3, Fetched: 3, Same: 3}, run(3, "/a/river-2", "/a/mountain-2", "/a/forest"))
		got := map[string]string{}
		for _, a := range w.articles() {
			got[fmt.Sprint(a.CanonicalURL, " ", a.Version)] = a.Title
			switch a.Title {
			case "More about river":
				assert.Equal(t, ids["About river"], a.ID)
			case "About mountain", "About winter":
				assert.Equal(t, ids[a.Title], a.ID)
			}
		}
		assert.Equal(t, map[string]string{"https://daily.example/a/river-2 2": "More about river", "https://daily.example/a/mountain-2 2": "About mountain",
			"https://daily.example/a/winter 1": "About winter", "https://daily.example/a/forest 1": "About forest"}, got)
	})
}

// Only pages of articles that are stored are kept, and those in which a better parser may find
// an article.
func TestPagesThatAreKept(t *testing.T) {
	w := once(t)
	paid := `<meta property="article:content_tier" content="locked">`
	pages := map[string]string{"/robots.txt": "Sitemap: https://daily.example/map.xml\n",
		"/a/free": told("river", ""), "/a/copy": told("river", `<link rel=canonical href="/a/free">`), "/a/paid": told("mountain", paid), "/a/empty": "<html><body><nav>Menu</nav></body></html>"}
	run := func(file string, paths ...string) (kept int) {
		set := ""
		for _, path := range paths {
			set += "<url><loc>" + path + "</loc><lastmod>" + w.now.Format(time.RFC3339) + "</lastmod></url>"
		}
		pages["/map.xml"] = "<urlset>" + set + "</urlset>"
		w.serve("daily.example", pages)
		e := w.engine()
		e.KeepHTML = true
		p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\n"+file)
		r, err := e.Run(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, int64(len(paths)), r.Fetched)
		for e, err := range raw.Kept(t.Context(), w.store, p.ID()) {
			require.NoError(t, err)
			assert.NotEmpty(t, e.HTML)
			kept++
		}
		return kept
	}
	assert.Equal(t, 1, run("", "/a/free"))
	assert.Equal(t, 1, run("", "/a/copy"), "it is stored already")
	assert.Equal(t, 1, run("", "/a/paid"))
	assert.Equal(t, 2, run("", "/a/empty"))
	w.now = w.now.AddDate(0, 0, 1)
	assert.Equal(t, 3, run("teasers: true", "/a/paid"))

	w.now = w.now.AddDate(0, 0, 30)
	_, err := raw.Purge(t.Context(), w.db, w.now)
	require.NoError(t, err)
	pages["/a/moved"] = pages["/a/copy"]
	assert.Equal(t, 3, run("", "/a/moved"), "the article that it is has expired")
}

// A replayed article is requested by the next run, once, also when it is no longer among the
// newest nor in a sitemap. One that may not be requested is left out.
func TestReplayed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.cfg.MaxArticlesPerProvider = 1
		pages := map[string]string{"/robots.txt": "User-agent: *\nDisallow: /a/closed\nSitemap: https://daily.example/map.xml\n", "/map.xml": "<urlset><url><loc>/a/1</loc></url></urlset>"}
		w.serve("daily.example", pages)
		p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/")
		assert.Equal(t, counts{Found: 1, Failed: 1}, countsOf(w.run(p)))
		require.Len(t, w.letters, 1)

		pages["/map.xml"] = "<urlset><url><loc>/a/2</loc></url></urlset>"
		pages["/a/1"], pages["/a/2"], pages["/a/closed"] = told("river", ""), told("forest", ""), told("island", "")
		closed, other, secret := w.letters[0], w.letters[0], w.letters[0]
		closed.Input.URL, other.Input.URL = "https://daily.example/a/closed", "https://other.example/a/1"
		secret.Input.URL = ledger.Redact("https://daily.example/a/view?code=7")
		require.NoError(t, raw.Reopen(t.Context(), w.db, []ledger.DeadLetter{w.letters[0], w.letters[0], closed, other, secret}))
		assert.Equal(t, counts{Found: 1, Fetched: 2, Inserted: 2}, countsOf(w.run(p)))
		assert.Equal(t, []string{"/robots.txt", "/map.xml", "/a/2", "/a/1"}, w.paths())
		assert.Equal(t, counts{Found: 1}, countsOf(w.run(p)))

		require.NoError(t, raw.Reopen(t.Context(), w.db, w.letters))
		pages["/a/1"], pages["/map.xml"] = told("winter", ""), "<urlset><url><loc>/a/1</loc><lastmod>2026-03-01</lastmod></url></urlset>"
		assert.Equal(t, counts{Found: 1, Fetched: 1, Changed: 1}, countsOf(w.run(p)), "it is among the newest too")
		assert.Equal(t, counts{Found: 1}, countsOf(w.run(p)))
	})
}
