package provider_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

const prose = "<p>The bank kept its rate unchanged at the meeting of this week, as analysts had expected, and said that prices fall slowly.</p>"

func read(t *testing.T, head, body string) provider.Article {
	t.Helper()
	u, err := url.Parse("https://demo.example/a/12")
	require.NoError(t, err)
	a, err := declared(t, "baseUrl: https://demo.example").ParseArticle([]byte("<!doctype html><html lang=en><head><title>A headline</title>"+head+"</head><body>"+body+"</body></html>"), "text/html; charset=utf-8", u)
	require.NoError(t, err)
	return a
}

// A page says for machines what its article is about.
func TestFields(t *testing.T) {
	a := read(t, `<meta property="og:description" content="In short."><meta property="article:tag" content="Banks, Rates"><meta property="article:tag" content="Prices"><meta property="og:image" content="/b.jpg">
<script type="application/ld+json">{"@type":"NewsArticle","articleSection":"Economy","keywords":["Rates","Europe"],"image":[{"@type":"ImageObject","url":"https://demo.example/a.jpg"}],"dateModified":"2026-03-02T10:00:00Z","isAccessibleForFree":"True"}</script>`,
		"<article>"+prose+"</article>")
	assert.Equal(t, "In short.", a.Description)
	assert.Equal(t, "Economy", a.Section)
	assert.Equal(t, []string{"Banks", "Rates", "Prices", "Europe"}, a.Tags)
	assert.Equal(t, []string{"https://demo.example/a.jpg", "/b.jpg"}, a.Images)
	assert.Equal(t, "2026-03-02T10:00:00Z", a.Modified.UTC().Format("2006-01-02T15:04:05Z"))
	assert.False(t, a.Live)
	assert.False(t, a.Paywalled)

	live := read(t, `<script type="application/ld+json">{"@type":"LiveBlogPosting","headline":"Live","liveBlogUpdate":[{"@type":"BlogPosting","articleBody":"First."}]}</script>`, "<article>"+prose+"</article>")
	assert.True(t, live.Live)
	a = read(t, `<meta name="news_keywords" content="one,two">`, "<article>"+prose+"</article>")
	assert.Equal(t, []string{"one", "two"}, a.Tags)
}

func TestPaywall(t *testing.T) {
	for name, tt := range map[string]struct {
		head, body string
		want       bool
	}{
		"JSON-LD":                 {`<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":"False"}</script>`, "<article>" + prose + "</article>", true},
		"an element in its place": {"", "<article>" + prose + `<div class="article__paywall c-paywall"><h3>Read on</h3></div></article>`, true},
		"words in its place":      {"", "<article>" + prose + "</article><section>Subscribe to continue reading. From 1 euro a week.</section>", true},
		"Korean words":            {"", "<article>" + prose + "</article><div>이 기사는 유료 회원만 볼 수 있습니다.</div>", true},
		"a long text":             {"", "<article>" + strings.Repeat(prose, 9) + `<div class="paywall">Subscribe to continue reading</div></article>`, false},
		"hidden":                  {"", "<article>" + prose + `</article><div class="paywall" style="display: none">Subscribe</div><div id="paywall" hidden>Subscribe</div>`, false},
		"empty":                   {"", "<article>" + prose + `</article><div id="paywall"></div>`, false},
		"the body's own class":    {"", "<article>" + prose + `</article>`, false},
		"a free one says so":      {"", `<article class="paywall-free">` + prose + `</article><a href="/subscribe">Subscribe</a>`, false},
	} {
		assert.Equal(t, tt.want, read(t, tt.head, tt.body).Paywalled, name)
	}
}

// An article that is not free is one whose page shows no more than its beginning. What is in
// the page for subscribers only is not read.
func TestPaywallParts(t *testing.T) {
	paid := func(more string) string {
		return `<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false,"articleBody":"` + strings.Repeat("What only subscribers read. ", 60) + `"` + more + `}</script>`
	}
	part := `,"hasPart":{"@type":"WebPageElement","isAccessibleForFree":"False","cssSelector":".rest:has(p) p"}`
	parts := `,"hasPart":[{"@type":"WebPageElement","isAccessibleForFree":true,"cssSelector":".lead"},{"@type":"WebPageElement","isAccessibleForFree":"False","cssSelector":".rest"}]`
	meter := `<meta property="article:content_tier" content="metered">`
	long := strings.Repeat(prose, 9)
	rest := `<article><div class="lead">` + prose + `</div><div class="rest">` + strings.ReplaceAll(long, "The bank", "Its governor") + `</div></article>`
	for name, tt := range map[string]struct {
		head, body         string
		paywalled, metered bool
		paragraphs         int
	}{
		"the page holds its text":             {paid(""), "<article>" + long + "</article>", true, false, 7},
		"and says that it is metered":         {paid("") + meter, "<article>" + long + "</article>", false, true, 9},
		"metered, before a wall":              {paid("") + meter, "<article>" + long + `<div class="paywall">Read on</div></article>`, true, false, 7},
		"a long part is free":                 {paid(parts), strings.Replace(rest, prose, long, 1), false, true, 9},
		"it marks what is not free":           {paid(parts), rest, true, false, 1},
		"a mark that may take hours":          {paid(part), rest, true, false, 0},
		"what it marks is not in the page":    {paid(parts), "<article>" + long + "</article>", true, false, 7},
		"all of it is not free":               {paid(strings.Replace(parts, ".rest", "body", 1)), rest, true, false, 0},
		"only the JSON-LD has the text":       {paid(""), "<article>" + prose + "</article>", true, false, 1},
		"a long beginning before a wall":      {paid(""), "<article>" + long + `<div class="paywall">Read on</div></article>`, true, false, 7},
		"a meter":                             {meter, "<article>" + long + "</article>", false, true, 9},
		"a meter that has run out":            {meter, "<article>" + prose + `<div class="paywall">Read on</div></article>`, true, false, 1},
		"locked":                              {`<meta property="article:content_tier" content="Locked">`, "<article>" + long + "</article>", true, false, 7},
		"parts of a free article are not all": {strings.Replace(paid(parts), `"isAccessibleForFree":false`, `"isAccessibleForFree":true`, 1), rest, false, false, 10},
	} {
		a := read(t, tt.head, tt.body)
		assert.Equal(t, []any{tt.paywalled, tt.metered, tt.paragraphs}, []any{a.Paywalled, a.Metered, strings.Count(a.Body, "kept its rate")}, "%s: %s", name, a.Body)
	}
}

func TestNextPage(t *testing.T) {
	for _, tt := range cases.Table[[]struct{ At, Link, Want string }](t, "next-pages.yaml") {
		u, err := url.Parse("https://demo.example" + tt.At)
		require.NoError(t, err)
		assert.Equal(t, tt.Want, provider.NextPage([]byte("<html><body>"+tt.Link+"</body></html>"), u), "%s: %s", tt.At, tt.Link)
	}
}

func TestJoin(t *testing.T) {
	a := read(t, "", "")
	a.Body, a.Images = "one\ntwo", []string{"a"}
	a.Join(provider.Article{Images: []string{"a", "b"}})
	assert.Equal(t, "one\ntwo", a.Body)
	next := provider.Article{Images: []string{"c"}}
	next.Body = "two\nthree\nthree"
	a.Join(next)
	assert.Equal(t, "one\ntwo\nthree", a.Body)
	assert.Equal(t, []string{"a", "b", "c"}, a.Images)
	next.Body, next.Paywalled = "four", true
	a.Join(next)
	assert.Equal(t, []any{"one\ntwo\nthree", true, false}, []any{a.Body, a.Metered, a.Paywalled})
}

// Whatever a page says is not free, its selectors are read in time, and a page without them is as before.
func FuzzPaidParts(f *testing.F) {
	p := declared(f, "baseUrl: https://demo.example")
	f.Add(".rest", "<div class=rest>x</div>")
	f.Add("div div div:has(div)", strings.Repeat("<div>", 50))
	f.Add("html, body", "x")
	f.Fuzz(func(t *testing.T, selector, body string) {
		said, err := json.Marshal(map[string]any{"@type": "NewsArticle", "isAccessibleForFree": false, "hasPart": map[string]any{"isAccessibleForFree": false, "cssSelector": selector}})
		require.NoError(t, err)
		u := &url.URL{Scheme: "https", Host: "demo.example", Path: "/a/12"}
		a, err := p.ParseArticle([]byte(`<script type="application/ld+json">`+string(said)+`</script>`+body), "text/html; charset=utf-8", u)
		assert.True(t, err != nil || !a.Paywalled || !a.Metered, "%q: both", selector)
	})
}

func FuzzNextPage(f *testing.F) {
	f.Add("/a/story", []byte(`<a href="/a/story/2">2</a>`))
	f.Add("/a/12?page=2", []byte(`<link rel=next href="?page=3">`))
	f.Fuzz(func(t *testing.T, at string, page []byte) {
		base, err := url.Parse("https://demo.example")
		require.NoError(t, err)
		u, err := base.Parse(at)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			return
		}
		if next := provider.NextPage(page, u); next != "" {
			n, err := url.Parse(next)
			assert.True(t, err == nil && n.Host == u.Host && n.Scheme == u.Scheme && next != u.String(), "%q after %q: %v", next, u, err)
		}
	})
}
