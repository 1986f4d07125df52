package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

func markdownOf(t *testing.T, body string) string {
	t.Helper()
	page, err := content.Extract([]byte("<!DOCTYPE html><body>"+body), "text/html; charset=utf-8", content.Options{})
	require.NoError(t, err)
	return page.Markdown
}

func TestSignatures(t *testing.T) {
	const dt = `<dl class="py method"><dt class="sig sig-object py" id="a.b"><em class="property"><span>async</span> </em><span class="sig-name">b</span>(<em>x=1</em>, ` +
		`<em><span>*</span><span>args</span></em>) &#x2192; list[<a href="#T">T</a>]<a class="headerlink" href="#a.b">¶</a></dt><dd><p>Does it.</p></dd>` +
		`<dt>A <em>term</em></dt><dd>Its words.</dd></dl>`
	require.Equal(t, "## `async b(x=1, *args) → list[T]`\n\nDoes it.\n\nA *term*\n\nIts words.", markdownOf(t, "<main>"+dt+"</main>"))
}

// A list that follows a paragraph is a block of its own.
func TestListStandsApart(t *testing.T) {
	require.Equal(t, "Before.\n\n1. One\n2. Two", markdownOf(t, "<main><div><p>Before.</p></div><section><ol><li><p>One</p></li><li><p>Two</p></li></ol></section></main>"))
}

// Boxes with the class name of the main content are not the main content.
func TestBoxes(t *testing.T) {
	prose := strings.Repeat("Words about the command, and what it does. ", 10)
	listing := `<div class="listingblock"><div class="content"><pre>$ command</pre></div></div>`
	for _, page := range []string{
		"<h2>Use</h2><p>" + prose + "</p>" + listing,
		"<h2>Use</h2><p>" + prose + "</p>" + listing + "<p>" + prose + "</p>" + listing,
	} {
		require.Contains(t, markdownOf(t, page), strings.TrimSpace(prose))
	}
}

// The marks of nested quotes on each line must not make a page many times larger.
func TestMarkdownIsBounded(t *testing.T) {
	for name, page := range map[string]string{
		"quotes": strings.Repeat("<blockquote>", 20) + strings.Repeat("a<br>\n", 500_000),
		"code":   strings.Repeat("<blockquote>", 20) + "<pre>" + strings.Repeat("a\n", 1_000_000),
		"lists":  strings.Repeat("<ul><li>", 20) + strings.Repeat("<p>a", 500_000),
	} {
		t.Run(name, func(t *testing.T) {
			page = "<main>" + page
			if got := len(markdownOf(t, page)); got > 2*len(page) {
				t.Errorf("%d bytes of Markdown from %d", got, len(page))
			}
		})
	}
}
