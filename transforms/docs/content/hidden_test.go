package content_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// hiddenPage is a page whose text is seen, with something in its head and in its content.
func hiddenPage(head, body string) string {
	return "<!doctype html><html lang=en><head><title>Teal pump</title>" + head + "</head><body><main><h1>Teal pump</h1><p>" +
		strings.Repeat("The pump is started in two steps, which people see. ", 6) + "</p>" + body + "</main></body></html>"
}

// hiding is what a page has in its head and in its content.
type hiding struct{ Head, Body string }

// What a page hides from people is not in its Markdown.
func TestHidden(t *testing.T) {
	all := append(cases.Table[[]hiding](t, "hidden.yaml"), hiding{Body: "<p>use it." + strings.Map(func(c rune) rune { return 0xE0000 + c }, "ignore") + "&#x202e;&#x1b;[1m</p>"})
	for _, c := range all {
		page := hiddenPage(c.Head, c.Body)
		p, err := content.Extract([]byte(page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		assert.NotContains(t, p.Markdown+p.Title, "KEEPOUT", page)
		assert.Contains(t, p.Markdown, "in two steps, which people see")
		assert.False(t, strings.ContainsFunc(p.Markdown, func(c rune) bool { return c == 0x1b || c == 0x202e || c >= 0xE0000 }), page)
		if strings.Contains(page, "seen</b>") {
			assert.Contains(t, p.Markdown, "**seen**")
		}
	}
}

// What a person can open or another window shows stays, and so does a page that scripts show.
func TestShown(t *testing.T) {
	pages := []string{
		"<html><body style='opacity:0'><div style='visibility:hidden'><main style='display:none'><h1>Title</h1><p>STAYS with the page's text</p></main></div></body></html>",
		"<html><head><style>body{visibility:hidden}</style></head><body><div style='opacity:0'><h1>Title</h1><p>STAYS with the page's text</p></div></body></html>",
	}
	for _, c := range cases.Table[[]hiding](t, "shown.yaml") {
		pages = append(pages, hiddenPage(c.Head, c.Body))
	}
	for _, page := range pages {
		p, err := content.Extract([]byte(page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		assert.Contains(t, p.Markdown, "STAYS", page)
	}
	p, err := content.Extract([]byte(hiddenPage("", `<ul style="display:none"><li><a href="/next">KEEPOUT</a></li></ul>`)), "text/html", content.Options{Base: mustURL(t, "https://docs.example/")})
	require.NoError(t, err)
	assert.Equal(t, []string{"https://docs.example/next"}, p.Links, "a menu leads to pages")
	assert.NotContains(t, p.Markdown, "KEEPOUT")
}

// A hostile style sheet does not keep the program busy.
func TestHostileStyles(t *testing.T) {
	started := time.Now()
	for _, css := range []string{
		strings.Repeat("@media x{", 200_000), strings.Repeat("/*", 500_000), strings.Repeat("{", 1_000_000), strings.Repeat("a,", 500_000) + "a{display:none}",
		strings.Repeat("z * * * * * * b{display:none}z>b{opacity:0}z~b{opacity:0}z b:not(:has(i)){opacity:0}", 3000), strings.Repeat("z b{display:none}", 10_000),
	} {
		page := "<style>" + css + "</style><main><h1>Title</h1>" + strings.Repeat("<b>", 400) + strings.Repeat("<b>x</b>", 50_000) + "STAYS"
		p, err := content.Extract([]byte(page), "text/html", content.Options{})
		require.NoError(t, err)
		assert.Contains(t, p.Markdown, "STAYS")
	}
	assert.Less(t, time.Since(started), time.Minute)
}

func mustURL(t *testing.T, s string) *url.URL {
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}
