//go:build unix

package engine_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// articles returns the stored articles as an export has them.
func (w *world) articles(publishers ...string) (out []raw.ArticleRow) {
	w.t.Helper()
	for a, err := range raw.Articles(w.t.Context(), w.db, rows.Filter{Names: publishers}, w.now) {
		require.NoError(w.t, err)
		out = append(out, a)
	}
	return out
}

// serve adds a host whose pages are these, by path with query; others are 404.
func (w *world) serve(host string, pages map[string]string) {
	w.sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.RequestURI()]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		if status, err := strconv.Atoi(page); err == nil {
			http.Error(rw, "no", status)
			return
		}
		if strings.HasPrefix(page, "/") {
			http.Redirect(rw, r, page, http.StatusFound)
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		// Each address has a text of its own.
		page = strings.ReplaceAll(page, prose, prose+"<p>This was reported at "+r.URL.Path+".</p>")
		_, _ = rw.Write([]byte(page)) // it fails only when the client has closed the connection
	}))
}

func story(head, body string) string {
	return `<!doctype html><html lang="en"><head><title>A bank keeps its rate</title>` + head + `</head><body><article><h1>A bank keeps its rate</h1>` + body + `</article></body></html>`
}

// What a page says for machines is stored, with absolute addresses.
func TestFieldsAreStored(t *testing.T) {
	w := once(t)
	paragraph := "<p>The central bank left its rate unchanged, according to the made-up data of this demonstration and of its test.</p>"
	w.serve("daily.example", map[string]string{
		"/sitemap.xml": `<urlset><url><loc>https://daily.example/2026/03/02/bank</loc></url></urlset>`,
		"/2026/03/02/bank": story(`<meta property="og:description" content="In short."><meta property="og:image" content="/b.jpg"><meta property="og:image" content="javascript:x"><meta property="article:tag" content="Rates">
<script type="application/ld+json">{"@type":["NewsArticle","LiveBlogPosting"],"articleSection":"Economy","dateModified":"2026-03-02T03:00:00Z","liveBlogUpdate":[{"@type":"BlogPosting","articleBody":"x"}]}</script>`, strings.Repeat(paragraph, 3)),
	})
	w.run(declared(t, "baseUrl: https://daily.example"))
	all := w.articles()
	require.Len(t, all, 1)
	a := all[0]
	assert.Equal(t, []any{"In short.", "Economy", []string{"Rates"}, []string{"https://daily.example/b.jpg"}, "live_blog", int64(1), ""},
		[]any{a.Description, a.Section, a.Tags, a.Images, a.Form, a.Version, a.CopyOf})
	assert.Equal(t, time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC), *a.ModifiedAt)

	w.serve("forum.example", map[string]string{"/sitemap.xml": `<urlset><url><loc>https://forum.example/2026/03/02/bank</loc></url></urlset>`,
		"/2026/03/02/bank": "<html lang=en><title>The bank</title><h1>The bank</h1>" + strings.Repeat(`<div class="post"><a href="/users/ada">Ada</a> <time>2 March 2026</time>`+paragraph+`</div>`, 4)})
	w.run(declared(t, "baseUrl: https://forum.example"))
	all = w.articles()
	require.Len(t, all, 2)
	assert.Equal(t, "forum", all[1].Form)
}

// How free an article is goes into its row: what a page shows of one that is not is stored
// only if its publisher's file says so, and counted otherwise.
func TestPaywallIsStored(t *testing.T) {
	w := once(t)
	paragraph := "<p>The central bank left its rate unchanged, according to the made-up data of this demonstration and of its test.</p>"
	paid := `<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false,"hasPart":{"@type":"WebPageElement","isAccessibleForFree":false,"cssSelector":"#rest"}}</script>`
	pages := map[string]string{"/sitemap.xml": `<urlset><url><loc>/2026/03/02/free</loc></url><url><loc>/2026/03/02/metered</loc></url><url><loc>/2026/03/02/paid</loc></url></urlset>`,
		"/2026/03/02/free": story("", paragraph), "/2026/03/02/metered": story(`<meta property="article:content_tier" content="metered">`, strings.Repeat(paragraph, 9)), "/2026/03/02/paid": story(paid, paragraph+`<div id="rest">`+strings.Repeat("<p>For those who pay: "+paragraph[3:], 9)+"</div>")}
	stored := func() map[string]string {
		out := map[string]string{}
		for _, a := range w.articles() {
			out[a.URL] = a.Paywall
			assert.NotContains(t, a.Text, "For those who pay")
		}
		return out
	}
	w.serve("some.example", pages)
	w.serve("all.example", pages)
	r := w.run(declared(t, "baseUrl: https://some.example"))
	assert.Equal(t, []int64{2, 1}, []int64{r.Inserted, r.Paywalled})
	want := map[string]string{"https://some.example/2026/03/02/free": "", "https://some.example/2026/03/02/metered": "metered"}
	assert.Equal(t, want, stored())
	r = w.run(declared(t, "baseUrl: https://all.example\nteasers: true"))
	assert.Equal(t, []int64{3, 0}, []int64{r.Inserted, r.Paywalled})
	for path, paywall := range map[string]string{"free": "", "metered": "metered", "paid": "teaser"} {
		want["https://all.example/2026/03/02/"+path] = paywall
	}
	assert.Equal(t, want, stored())
}

// The pages of one article are joined, each requested once and by the rules of robots.txt.
func TestPagesOfAnArticle(t *testing.T) {
	w := once(t)
	w.cfg.RawTextMaxLength = 100_000
	part := func(n int, more string) string {
		return story("", fmt.Sprintf("<p>Part %d: the central bank left its rate unchanged, according to the made-up data of this demonstration.</p><p>Part %d tells what analysts expect of the months to come, and what they do not expect at all.</p>%s", n, n, more))
	}
	pages := map[string]string{
		"/robots.txt":        "User-agent: *\nDisallow: /2026/03/02/closed/2\n",
		"/sitemap.xml":       `<urlset><url><loc>https://daily.example/2026/03/02/bank</loc></url><url><loc>https://daily.example/2026/03/02/closed</loc></url><url><loc>https://daily.example/2026/03/02/back</loc></url><url><loc>https://daily.example/2026/03/02/endless</loc></url></urlset>`,
		"/2026/03/02/bank":   part(1, `<a href="/2026/03/02/bank/2">2</a>`),
		"/2026/03/02/bank/2": part(2, `<a href="/2026/03/02/bank">1</a><a href="/2026/03/02/bank/3">3</a>`),
		"/2026/03/02/bank/3": part(3, `<a href="/2026/03/02/bank/2">2</a>`),
		"/2026/03/02/closed": part(1, `<a href="/2026/03/02/closed/2">2</a>`),
		"/2026/03/02/back":   strings.ReplaceAll(part(1, `<a href="/2026/03/02/back/2">2</a>`), "analysts", "traders"),
		"/2026/03/02/back/2": "/2026/03/02/back",
	}
	for n := range 30 {
		at := "/2026/03/02/endless"
		if n > 0 {
			at += fmt.Sprintf("/%d", n+1)
		}
		pages[at] = part(n+1, fmt.Sprintf(`<a href="/2026/03/02/endless/%d">next</a>`, n+2))
	}
	w.serve("daily.example", pages)
	w.run(declared(t, "baseUrl: https://daily.example\nsitemapHints: [https://daily.example/sitemap.xml]\narticleUrl: ^/2026/"))
	parts := map[string]int{}
	for _, a := range w.articles() {
		parts[a.URL] = strings.Count(a.Text, "according to")
	}
	assert.Equal(t, map[string]int{"https://daily.example/2026/03/02/bank": 3, "https://daily.example/2026/03/02/closed": 1, "https://daily.example/2026/03/02/back": 1, "https://daily.example/2026/03/02/endless": 10}, parts)
	asked := map[string]int{}
	for _, at := range w.paths() {
		asked[at]++
	}
	assert.Equal(t, 1, asked["/2026/03/02/bank/2"])
	assert.Zero(t, asked["/2026/03/02/closed/2"], "robots.txt forbids it")
	assert.Zero(t, asked["/2026/03/02/endless/11"])
}

// An article that another publisher had before is marked as its copy; the marks outlive
// the first one's end.
func TestCopies(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 2
	wire := []string{"The central bank of the republic kept its main rate unchanged on Monday, as analysts had expected, and said that prices are falling more slowly than it had hoped in spring.",
		"The governor told reporters after the meeting that a cut would be discussed once prices had fallen for several months in a row, which she does not expect before the summer of next year.",
		"Markets hardly moved after the decision. The currency gained a little against its neighbours, and the yield of ten-year bonds stayed where it had been before the weekend."}
	page := func(lead string) string {
		return story("", "<p>"+lead+"</p><p>"+strings.Join(wire, "</p><p>")+"</p>")
	}
	other := outlet{Host: "third.example", Path: "/2026/%s", Language: "en", Sources: map[string]string{"/sitemap.xml": "urlset"}}
	w.add(other)
	for host, lead := range map[string]string{"first.example": "CITY (Agency)", "second.example": "From our own news desk, with material of an agency."} {
		w.serve(host, map[string]string{"/sitemap.xml": `<urlset><url><loc>https://` + host + `/2026/03/02/bank</loc></url></urlset>`, "/2026/03/02/bank": page(lead)})
	}
	assert.Zero(t, w.run(declared(t, "baseUrl: https://first.example")).Copies)
	w.now = w.now.Add(time.Minute)
	assert.Zero(t, w.run(declared(t, "baseUrl: https://third.example")).Copies)
	assert.Equal(t, int64(1), w.run(declared(t, "baseUrl: https://second.example")).Copies)
	first, second := w.articles("first-example"), w.articles("second-example")
	require.Len(t, first, 1)
	require.Len(t, second, 1)
	assert.Empty(t, first[0].CopyOf)
	assert.Equal(t, first[0].ID, second[0].CopyOf)
	for _, a := range w.articles("third-example") {
		assert.Empty(t, a.CopyOf, a.Title)
	}

	w.now = w.now.Add(4 * 24 * time.Hour)
	w.serve("late.example", map[string]string{"/sitemap.xml": `<urlset><url><loc>https://late.example/2026/03/06/bank</loc></url></urlset>`, "/2026/03/06/bank": page("Late")})
	assert.Zero(t, w.run(declared(t, "baseUrl: https://late.example")).Copies, "days later it is another story")
}
