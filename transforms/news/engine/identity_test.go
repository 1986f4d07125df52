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

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/news/engine"
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
		e := w.engine()
		e.KeepHTML = keep
		_, err := e.Run(t.Context(), p)
		require.NoError(t, err)
	}
	var limits []string
	reparse := func() counts {
		e := w.engine()
		e.Reparse = true
		r, err := e.Run(t.Context(), p)
		require.NoError(t, err)
		limits = r.Limits
		return countsOf(r)
	}
	run(0, "river", true)
	run(1, "forest", true)
	assert.Equal(t, counts{Same: 1}, reparse())
	assert.Empty(t, limits)
	run(2, "island", false)
	assert.Equal(t, counts{}, reparse())
	assert.Equal(t, []string{"1 kept pages were not read again: the articles were fetched since, without --keep-html"}, limits)
	require.Len(t, w.articles(), 1)
	assert.Equal(t, []any{"About island", int64(3)}, []any{w.articles()[0].Title, w.articles()[0].Version})
}

// What is read otherwise from a kept page has changed now, and stays for as long as it would have.
func TestReparsedIsChangedNow(t *testing.T) {
	w := once(t)
	w.serve("daily.example", map[string]string{"/map.xml": "<urlset><url><loc>/a/1</loc></url></urlset>", "/a/1": told("river", "<meta name=x>")})
	file := "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]\n"
	e := w.engine()
	e.KeepHTML = true
	_, err := e.Run(t.Context(), declared(t, file))
	require.NoError(t, err)
	before := w.articles()[0]
	w.now = w.now.AddDate(0, 0, 3)
	e = w.engine()
	e.Reparse = true
	r, err := e.Run(t.Context(), declared(t, file+"body: h1"))
	require.NoError(t, err)
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
			_, _ = z.Write([]byte(story("", prose)))
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
	e := w.engine()
	e.KeepHTML = true
	_, err := e.Run(t.Context(), p)
	require.NoError(t, err)
	for _, name := range []string{"0.warc.gz", "1.json.gz"} {
		require.NoError(t, store.Write(t.Context(), w.store, "evidence/news/daily-example/2026-03-01/"+name, []byte("garbage"), store.PutOptions{}))
	}
	e = w.engine()
	e.Reparse = true
	r, err := e.Run(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, counts{Same: 1, Failed: 2}, countsOf(r))
	require.Len(t, w.letters, 2)
	assert.Equal(t, []any{"parse_failed", "evidence/news/daily-example/2026-03-01/0.warc.gz", "daily-example"}, []any{w.letters[0].Kind, w.letters[0].Input.Key, w.letters[0].Input.Source})
}
