//go:build unix

package engine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// stops is a run that is stopped after some requests.
type stops struct {
	process
	after int
}

func (s stops) Proceed(context.Context) bool { return len(s.w.sim.Requests()) < s.after }

// An article whose further page is down is stored as far as it was read, and read again when
// it may be up. What is stored of all pages stays meanwhile. A run that is stopped stores no part.
func TestFurtherPageIsDown(t *testing.T) {
	w := once(t)
	down, date := true, "2026-03-01"
	w.sim.Handle("daily.example", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch {
		case r.URL.Path == "/map.xml":
			_, _ = rw.Write([]byte("<urlset><url><loc>/a/1</loc><lastmod>" + date + "</lastmod></url></urlset>"))
		case r.URL.Path == "/a/1":
			_, _ = rw.Write([]byte(strings.Replace(told("river", ""), "</article>", "<a href=/a/1/2>2</a></article>", 1)))
		case r.URL.Path == "/a/1/2" && !down:
			_, _ = rw.Write([]byte(told("forest", "")))
		case r.URL.Path == "/a/1/2":
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.NotFound(rw, r)
		}
	}))
	p := declared(t, "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]")
	stored := func() (words []string) {
		for _, a := range w.articles() {
			for _, word := range []string{"river0", "forest0"} {
				if strings.Contains(a.Text, word) {
					words = append(words, word)
				}
			}
		}
		return words
	}
	r := w.run(p, func(e *engine.Engine) { e.Worker = stops{e.Worker.(process), 3} })
	assert.Equal(t, []any{engine.Cut, counts{Found: 1, Fetched: 1}}, []any{r.State, countsOf(r)})
	assert.Empty(t, stored())

	assert.Equal(t, counts{Found: 1, Fetched: 1, Inserted: 1}, countsOf(w.run(p)))
	assert.Equal(t, []string{"river0"}, stored())
	down = false
	assert.Equal(t, counts{Found: 1, Fetched: 1, Changed: 1}, countsOf(w.run(p)))
	assert.Equal(t, []string{"river0", "forest0"}, stored())
	assert.Equal(t, counts{Found: 1}, countsOf(w.run(p)))

	down, date, w.now = true, "2026-03-03", w.now.Add(24*time.Hour)
	assert.Equal(t, counts{Found: 1, Fetched: 1, Failed: 1}, countsOf(w.run(p)))
	assert.Equal(t, []string{"river0", "forest0"}, stored())
	require.Len(t, w.letters, 1)
	assert.Equal(t, []any{"article_failed", true, "its page https://daily.example/a/1/2: status 503"}, []any{w.letters[0].Kind, w.letters[0].Retryable, w.letters[0].Error})
	down = false
	assert.Equal(t, counts{Found: 1, Fetched: 1, Same: 1}, countsOf(w.run(p)))
}

// A login to which an article redirects is no article, though its address has that of the article.
func TestRedirectToALogin(t *testing.T) {
	w := once(t)
	pages := map[string]string{"/map.xml": "<urlset><url><loc>/story/11000001</loc></url><url><loc>/story/11000002</loc></url><url><loc>/story/11000003</loc></url></urlset>",
		"/story/11000001": "/login?next=%2Fstory%2F11000001&step=1", "/login?next=%2Fstory%2F11000001&step=1": told("password", ""),
		"/story/11000002": "/wall?to=https%3A%2F%2Fdaily.example%2Fstory%2F11000002%3Fa", "/wall?to=https%3A%2F%2Fdaily.example%2Fstory%2F11000002%3Fa": told("consent", ""),
		"/story/11000003": "/story/11000003-a-title?from=11000003", "/story/11000003-a-title?from=11000003": told("river", "")}
	w.serve("daily.example", pages)
	r := w.run(declared(t, "baseUrl: https://daily.example\narticleUrl: \\d{8}\nsitemapHints: [https://daily.example/map.xml]"))
	assert.Equal(t, counts{Found: 3, Fetched: 1, Inserted: 1, Failed: 2}, countsOf(r))
	for _, l := range w.letters {
		assert.Equal(t, "not_an_article", l.Kind)
		assert.Contains(t, l.Error, "which asks for something first, such as a login")
	}
}
