package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// A code block says its language in many ways.
func TestCodeLanguage(t *testing.T) {
	for page, want := range map[string]string{
		`<pre class="rust rust-example-rendered"><code>a</code></pre>`:                               "rust",
		`<pre lang="go"><code>a</code></pre>`:                                                        "go",
		`<pre><code class="language-python">a</code></pre>`:                                          "python",
		`<pre data-lang="sql">a</pre>`:                                                               "sql",
		`<div class="highlight-python3 notranslate"><div class="highlight"><pre>a</pre></div></div>`: "python3",
		`<pre class="json">a</pre>`:                                                                  "json",
		`<pre lang="en">a</pre>`:                                                                     "",
		`<pre lang="en-GB">a</pre>`:                                                                  "",
		`<pre class="screen">a</pre>`:                                                                "",
		`<pre class="synopsis wide">a</pre>`:                                                         "",
		`<div class="fragment"><div class="line"><span class="lineno">1</span>a</div></div>`:         "",
	} {
		p, err := content.Extract([]byte("<main><p>Text</p>"+page+"</main>"), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		require.Equal(t, "Text\n\n```"+want+"\na\n```", p.Markdown, page)
	}
}

// Links alone are the site's frame, unless a heading says what they are.
func TestFrame(t *testing.T) {
	const text = "<p>Words of the page that say what it is about, and more of them.</p>"
	for page, want := range map[string]string{
		`<h2>See also</h2><p><a href=a>one</a>, <a href=b>two</a></p>`:                                                                            "## See also\n\none, two",
		`<p><a href=a>one</a> | <a href=b>two</a></p>`:                                                                                            "",
		`<div class=header><p>Next: <a href=a rel=next>One</a>, Up: <a href=b rel=up>Two</a></p></div>`:                                           "",
		`<h2>More</h2><div><p>Next: <a href=a rel=next>One</a>, Previous: <a href=b rel=prev>Two</a></p></div>`:                                   "## More",
		`<div class=footer>Made by a generator</div>`:                                                                                             "",
		`<p>Links <a href=a>one</a> and <a href=b>two</a></p>`:                                                                                    "Links one and two",
		`<div class=header><div class=headertitle><div class=title>My class</div></div></div><ul><li><a href=a>One</a><li><a href=b>Two</a></ul>`: "# My class\n\n- One\n- Two",
	} {
		p, err := content.Extract([]byte("<body>"+text+page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		_, rest, _ := strings.Cut(p.Markdown, "more of them.")
		require.Equal(t, want, strings.TrimSpace(rest), page)
	}
}

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
