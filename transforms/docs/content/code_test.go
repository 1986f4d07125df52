package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// Listings are no main content, even where their class is "content".
func TestListingsAreNoContent(t *testing.T) {
	for _, page := range []string{
		`<h2>One</h2><p>Text</p><div class=content><pre>a long listing with more than all of the text around it, and some more words in it to be sure that it has more of the letters than all of what is around it, so that only its form can say that it is none; it is code, and code alone has never been the whole of a page with headings of its own</pre></div>`,
		`<div><h2>One</h2><p>Text</p><div class=content>Listings are not text even without a pre element around them</div><h2>Two</h2><p>Text</p><div class=content>Listings are not text even without a pre element around them</div></div>`,
	} {
		p, err := content.Extract([]byte("<body>"+page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		require.Contains(t, p.Markdown, "## One")
		require.Equal(t, "body", p.Selector)
	}
}
