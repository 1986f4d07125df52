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

func TestAsides(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"a kind that only the class says":    {`<aside class="caution"><p>It is hot.</p></aside>`, "**Caution:**\n\nIt is hot."},
		"a kind that only the label says":    {`<aside aria-label="Tip" class="x-aside"><p aria-hidden="true">Tip</p><p>Use it.</p></aside>`, "**Tip:**\n\nUse it."},
		"a title that is the label too":      {`<aside aria-label="Did you know?" class="starlight-aside starlight-aside--tip"><p class="starlight-aside__title" aria-hidden="true"><svg></svg>Did you know?</p><p>Use it.</p></aside>`, "**Tip:**\n\n**Did you know?**\n\nUse it."},
		"a kind in a longer class":           {`<aside class="starlight-aside starlight-aside--danger">Hot.</aside>`, "**Danger:**\n\nHot."},
		"a kind that its words say":          {`<aside class="note"><strong>Note:</strong> Keep it.</aside>`, "**Note:** Keep it."},
		"another kind than its words":        {`<div class="callout callout-info"><b>Tip</b><p>Use it.</p></div>`, "**Tip**\n\nUse it."},
		"a callout that is no aside":         {`<div role="note" class="callout callout-danger">Hot.</div>`, "**Danger:**\n\nHot."},
		"a quote":                            {`<blockquote class="callout callout_warn"><p>Hot.</p></blockquote>`, "**Warning:**\n\n> Hot."},
		"a landmark that is a note":          {`<aside role="complementary" class="admonition">Aside.</aside>`, "Aside."},
		"a footnote":                         {`<aside class="footnote-list"><aside role="doc-footnote"><span>[1]</span> See there.</aside></aside>`, "[1] See there."},
		"what surrounds the text":            {`<aside class="related"><p>Read more.</p></aside>`, ""},
		"an aside that says nothing of it":   {`<aside><p>Read more.</p></aside>`, ""},
		"a table of contents that is a note": {`<aside class="note toc"><p>On this page</p></aside>`, ""},
		"a class that only begins like one":  {`<aside class="notebook tips-and-more"><p>Read more.</p></aside>`, ""},
		"DocBook":                            {`<div class="note"><h3 class="title">Note</h3><p>Keep it.</p></div>`, "**Note:**\n\nKeep it."},
		"DocBook with a title":               {`<div class="warning"><h3 class="title">Hot parts</h3><p>Keep off.</p></div>`, "**Warning:**\n\n**Hot parts**\n\nKeep off."},
		"Asciidoctor":                        {`<div class="admonitionblock tip"><table><tr><td class="icon"><div class="title">Tip</div></td><td class="content">Use it.</td></tr></table></div>`, "**Tip:**\n\nUse it."},
		"Asciidoctor with an icon":           {`<div class="admonitionblock tip"><table><tr><td class="icon"><i class="fa icon-tip"></i></td><td class="content">Use it.</td></tr></table></div>`, "**Tip:**\n\nUse it."},
		"AsciiDoc":                           {`<div class="admonitionblock"><table><tr><td class="icon"><img src="n.png" alt="Caution"></td><td class="content"><p>Hot.</p></td></tr></table></div>`, "**Caution:**\n\nHot."},
		"Doxygen":                            {`<dl class="section warning"><dt>Warning</dt><dd>Hot.</dd></dl>`, "**Warning:**\n\nHot."},
		"Docusaurus 2":                       {`<div class="admonition admonition-tip alert alert--success"><div class="admonition-heading"><h5>tip</h5></div><div class="admonition-content"><p>Use it.</p></div></div>`, "**Tip:**\n\nUse it."},
		"rustdoc":                            {`<div class="warning"><p>Hot.</p></div>`, "**Warning:**\n\nHot."},
		"GitHub":                             {`<div class="markdown-alert markdown-alert-note"><p class="markdown-alert-title">Note</p><p>Keep it.</p></div>`, "**Note:**\n\nKeep it."},
		"a section within":                   {`<div class="note"><p>Keep it.</p><h4>Why</h4><p>So.</p></div>`, "**Note:**\n\nKeep it.\n\n#### Why\n\nSo."},
		"a listing of class example":         {`<div class="example"><pre>a</pre></div>`, "```\na\n```"},
		"an empty callout":                   {`<aside class="note"> </aside>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.TrimSpace("Before.\n\n" + c.want)
			require.Equal(t, want, markdownOf(t, "<main><p>Before.</p>"+c.html+"</main>"))
		})
	}
}

func TestRaised(t *testing.T) {
	for html, want := range map[string]string{
		"10<sup>6</sup> times":                                       "10^6 times",
		"x<sup>n+1</sup>":                                            "x^(n+1)",
		"x <sub>i</sub>":                                             `x _i`,
		"H<sub>2</sub>O":                                             "H_2O",
		"a<sub>i, j</sub>":                                           "a_(i, j)",
		"the 1<sup>st</sup> of Widget<sup>TM</sup>":                  "the 1st of WidgetTM",
		"unsafe<sup>?</sup> item<sup>*</sup>":                        `unsafe? item\*`,
		`so.<sup><a href="#fn:1">1</a></sup>`:                        "so.[1]",
		`so.<sup id="r">[<a href="#fn:1">2</a>]</sup>`:               "so.[2]",
		`so.<a href="#fn:1" role="doc-noteref"><sup>3</sup></a> And`: "so.[3] And",
		`a<sup></sup>b`:                                              "ab",
	} {
		require.Equal(t, want, markdownOf(t, "<main><p>"+html+"</p></main>"), html)
	}
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
