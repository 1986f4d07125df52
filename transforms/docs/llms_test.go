package docs

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// typed answers with a text of a media type.
func typed(media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, text)
	}
}

func prose(of string) string {
	return fmt.Sprintf("# %s\n\nThe Markdown of %s says at some length what it is about, so that it has something to say.\n", of, of)
}

// sourcesOf are the sources of the pages with content, with what was asked of each.
func sourcesOf(w *world) (pages []string, counts map[string][2]int64) {
	counts = map[string][2]int64{}
	for _, c := range w.crawl.part.stats.Sources {
		counts[c.Source] = [2]int64{c.Pages, c.Requests}
	}
	return w.strings(`SELECT s.source || ' ' || p.key FROM docs_page_sources s JOIN docs_pages p ON p.provider = s.provider AND p.key = s.key WHERE p.content_hash <> '' ORDER BY p.key`), counts
}

func offering(t *testing.T, d *db.DB) *world {
	w := newWorld(t, d)
	w.policy.Sources = []policy.Source{policy.LLMsFull, policy.Markdown, policy.HTML}
	w.set("/docs", doc("seed", "/docs/a", "/docs/hidden"))
	for _, name := range []string{"a", "b", "hidden"} {
		w.set("/docs/"+name, doc(name))
	}
	return w
}

// A llms-full.txt has the text of its pages with one request. What it does not have is
// asked for as HTML, and a page that the list leaves out is found by the seed.
func TestLLMsFull(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := offering(t, d)
		w.set("/llms.txt", typed("text/plain", "# Demo\n- [A](https://"+host+"/docs/a): a\n- [B](/docs/b)\n- [Old](/docs/old/x)\n- [Else](https://other.example/docs/x)\n"))
		full := "# A\nSource: https://" + host + "/docs/a\n\n" + prose("a") + "\n# B\nSource: /docs/b\n\n" + prose("b") + "Write to me@example.com or see [more](/docs/more).\n\n# Old\nSource: /docs/old/x\n\n" + prose("old")
		w.set("/llms-full.txt", tagged(`"f1"`, typed("text/markdown", full)))
		w.set("/docs/more", doc("more"))
		state, _ := w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs/llms.txt", "/llms.txt", "/llms-full.txt", "/docs", "/docs/hidden", "/docs/more"}, w.paths())
		at := " https://" + host
		pages, counts := sourcesOf(w)
		require.Equal(t, []string{"html" + at + "/docs", "llms_full" + at + "/docs/a", "llms_full" + at + "/docs/b", "html" + at + "/docs/hidden", "html" + at + "/docs/more"}, pages)
		require.Equal(t, map[string][2]int64{"llms": {0, 2}, "llms_full": {2, 1}, "html": {3, 3}}, counts)
		require.Equal(t, row{Indexed, "", 1, 200, true}, w.row("/docs/a"))
		require.NotContains(t, w.everything(), "me@example.com")
		require.Equal(t, []string{"5"}, w.strings(`SELECT CAST(requested AS TEXT) FROM docs_runs`), "its pages count against max_pages")

		// The next session asks once whether the file changed, and not again for what was missing.
		w.newSession()
		w.run()
		require.Equal(t, []string{"/llms.txt", "/llms-full.txt", "/docs", "/docs/hidden", "/docs/more"}, w.paths())
		require.Equal(t, NotModified, w.row("/docs/a").Status)
		w.set("/llms-full.txt", tagged(`"f2"`, typed("text/markdown", strings.Replace(full, "at some length", "shortly", 1))))
		w.time.Advance(30 * 24 * time.Hour)
		w.newSession()
		w.run()
		require.Equal(t, []string{"/docs/llms.txt", "/llms.txt", "/llms-full.txt", "/docs", "/docs/hidden", "/docs/more"}, w.paths(), "after a month it is asked for again")
		require.Equal(t, int64(1), w.crawl.part.stats.Updated)
	})
}

// A page's Markdown is asked for at the address that the list names. Where that is
// missing or no Markdown, the page is asked for itself.
func TestMarkdownTwins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := offering(t, d)
		w.set("/docs/llms.txt", typed("text/plain", "- [A](/docs/a.md)\n- [B](/docs/b.md)\n- [C](/docs/c/index.html.md)\n- [Gone](/docs/gone.md)\n- [Forbidden](/docs/no.md)\n"))
		w.set("/robots.txt", typed("text/plain", "User-agent: *\nDisallow: /docs/no.md\n"))
		w.set("/docs/a.md", tagged(`"a"`, typed("text/plain; charset=utf-8", "---\ntitle: The A\n---\nSee [b](b.md) and "+strings.Repeat("text ", 40)+"[x](/docs/linked.md)\n")))
		w.set("/docs/b.md", html("<!doctype html><title>not found</title><p>a soft 404"))
		w.set("/docs/c/index.html.md", typed("text/markdown", prose("c")))
		w.set("/docs/gone", doc("gone"))
		w.set("/docs/no", doc("no"))
		w.set("/docs/linked", doc("linked"))
		state, _ := w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs/llms.txt", "/docs/llms-full.txt", "/docs", "/docs/a.md", "/docs/b.md", "/docs/b", "/docs/c/index.html.md", "/docs/gone.md", "/docs/gone", "/docs/no", "/docs/hidden", "/docs/linked"}, w.paths())
		at := " https://" + host
		pages, counts := sourcesOf(w)
		require.Equal(t, []string{"html" + at + "/docs", "markdown" + at + "/docs/a", "html" + at + "/docs/b", "markdown" + at + "/docs/c", "html" + at + "/docs/gone", "html" + at + "/docs/hidden", "html" + at + "/docs/linked", "html" + at + "/docs/no"}, pages)
		require.Equal(t, [2]int64{2, 4}, counts["markdown"])
		require.Equal(t, []string{"The A"}, w.strings(`SELECT title FROM docs_pages WHERE key LIKE '%/docs/a'`))
		for _, l := range w.handed() {
			require.NotContains(t, l.URL, ".md", "people are sent to the page")
		}

		w.newSession()
		w.run()
		require.Equal(t, NotModified, w.row("/docs/a").Status, "the conditions are those of its Markdown")
	})
}

// Without addresses of Markdown in the list, a request prefers Markdown; a page of
// HTML says where its Markdown is; and the usual address is tried once.
func TestMarkdownByAcceptAndRule(t *testing.T) {
	t.Parallel()
	list := typed("text/plain", "- [A](/docs/a)\n- [B](/docs/b)\n- [C](/docs/c)\n")
	accepts := func(of string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Accept"), "text/markdown") {
				typed("text/markdown; charset=utf-8", prose(of))(w, r)
				return
			}
			doc(of)(w, r)
		}
	}
	alternate := func(of string) http.HandlerFunc {
		return html(`<html><head><title>x</title><link rel="alternate" type="text/markdown" href="/docs/` + of + `.md"></head><body><main><h1>x</h1><p>` + strings.Repeat("text ", 30) + `</p></main></body></html>`)
	}
	for _, tt := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		asked   []string // after the list
		count   [2]int64 // of Markdown: pages, requests
	}{
		{"accept", map[string]http.HandlerFunc{"/docs/a": accepts("a"), "/docs/b": accepts("b"), "/docs/c": accepts("c")}, []string{"/docs/a", "/docs/b", "/docs/c"}, [2]int64{3, 3}},
		{"rel=alternate", map[string]http.HandlerFunc{"/docs/a": alternate("a"), "/docs/b.md": typed("text/markdown", prose("b")), "/docs/c.md": typed("text/markdown", prose("c"))}, []string{"/docs/a", "/docs/b.md", "/docs/c.md"}, [2]int64{2, 2}},
		{"the usual address", map[string]http.HandlerFunc{"/docs/a": doc("a"), "/docs/b.md": typed("text/markdown", prose("b")), "/docs/c.md": typed("text/markdown", prose("c"))}, []string{"/docs/a", "/docs/b.md", "/docs/c.md"}, [2]int64{2, 2}},
		{"none", map[string]http.HandlerFunc{"/docs/a": doc("a"), "/docs/b": doc("b"), "/docs/c": doc("c")}, []string{"/docs/a", "/docs/b.md", "/docs/b", "/docs/c"}, [2]int64{0, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldOn(t, openDB(t, dbtest.SQLite(t)))
			w.policy.Sources = []policy.Source{policy.LLMsFull, policy.Markdown, policy.HTML}
			w.set("/docs", doc("seed"))
			w.set("/docs/llms.txt", list)
			for path, h := range tt.answers {
				w.set(path, h)
			}
			state, _ := w.run()
			require.Equal(t, Done, state)
			require.Equal(t, append([]string{"/docs/llms.txt", "/docs/llms-full.txt", "/docs"}, tt.asked...), w.paths())
			_, counts := sourcesOf(w)
			require.Equal(t, tt.count, counts["markdown"])
			if tt.name == "none" { // and not tried again in the next session
				w.newSession()
				w.run()
				require.Equal(t, []string{"/docs/llms.txt", "/docs", "/docs/a", "/docs/b", "/docs/c"}, w.paths())
			}
		})
	}
}

// What is no llms.txt does not change a crawl, and a policy may leave it out.
func TestNoLLMs(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"404": status(404), "a page for every path": doc("all"), "a page said to be text": typed("text/plain", "<!doctype html><p>x"), "JSON": typed("text/plain", `{"a": "[b](/docs/b)"}`),
		"nothing in scope": typed("text/plain", "[x](/pricing) [y](https://other.example/docs)"), "elsewhere": status(302, "Location", "https://other.example/llms.txt"), "503": status(503),
	} {
		t.Run(name, func(t *testing.T) {
			w := offering(t, openDB(t, dbtest.SQLite(t)))
			w.set("/docs/llms.txt", answer)
			w.set("/llms.txt", answer)
			state, _ := w.run()
			require.Equal(t, Done, state)
			require.Equal(t, []string{"/docs/llms.txt", "/llms.txt", "/docs", "/docs/a", "/docs/hidden"}, w.paths())
			w.newSession()
			w.run()
			again := []string{"/docs", "/docs/a", "/docs/hidden"}
			if name == "503" { // it may have it
				again = append([]string{"/docs/llms.txt", "/llms.txt"}, again...)
			}
			require.Equal(t, again, w.paths())
		})
	}
	w := offering(t, openDB(t, dbtest.SQLite(t)))
	w.set("/robots.txt", typed("text/plain", "User-agent: *\nDisallow: /llms\nDisallow: /docs/llms\n"))
	w.run()
	require.Equal(t, []string{"/docs", "/docs/a", "/docs/hidden"}, w.paths())
}

// A run that is killed does not ask again for what the site offers, but for the texts of a
// llms-full.txt that it still needs.
func TestSourcesAfterAKill(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := offering(t, d)
		w.set("/docs/llms.txt", typed("text/plain", "- [A](/docs/a)\n- [B](/docs/b.md)\n- [C](/docs/c)\n"))
		w.set("/docs/llms-full.txt", typed("text/plain", "# C\nSource: /docs/c\n\n"+prose("c")))
		w.set("/docs/a", status(429, "Retry-After", "3600"))
		w.set("/docs/b.md", typed("text/markdown", prose("b")))
		state, _ := w.run()
		require.Equal(t, Held, state)
		require.Equal(t, []string{"/docs/llms.txt", "/docs/llms-full.txt", "/docs", "/docs/a"}, w.paths())
		w.set("/docs/a", doc("a"))
		w.time.Advance(time.Hour)
		state, _ = w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs/llms-full.txt", "/docs/a", "/docs/b.md", "/docs/hidden"}, w.paths())
	})
}
