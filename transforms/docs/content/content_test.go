package content_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func extract(t *testing.T, page string, o content.Options) content.Page {
	t.Helper()
	p, err := content.Extract([]byte(page), "text/html; charset=utf-8", o)
	require.NoError(t, err)
	return p
}

// TestOrder checks the order of the selectors: the policy's own, then candidates.
func TestOrder(t *testing.T) {
	const filler = " and some more words, so that it is no card next to the main part of the page"
	f := func(page, own, selector, text string) {
		t.Helper()
		got := extract(t, "<!DOCTYPE html><title>t</title><body>"+page, content.Options{Content: own})
		require.Equal(t, selector, got.Selector, page)
		require.Equal(t, text, got.Markdown, page)
	}
	f("<main>m<article>a"+filler+"</article></main><div class=x>own</div>", ".x", ".x", "own")
	f("<main>m<article>a"+filler+"</article></main>", ".absent", "article", "a"+filler)
	f("<main>m<article>a"+filler+"</article></main>", "", "article", "a"+filler)
	f("<div role=main>r"+filler+"</div><main>m</main>", "", "main", "m")
	f("<div role=main>r</div><div class='x content'>c</div>", "", `[role="main"]`, "r")
	f("<div class='x content'>c</div><div class=docs-body>d</div>", "", ".content", "c")
	f("<div id=content>i</div><div class=docs-body>d</div>", "", ".docs-body", "d")
	f("<div id=content>i</div><div class=markdown-body>b</div>", "", "#content", "i")
	f("<div>frame<div class=markdown-body>b</div></div>", "", ".markdown-body", "b")
	f("<div>plain</div><nav>n</nav><footer>f</footer><header>h</header><aside>a</aside>", "", "body", "plain")

	// The rules in choose change the order.
	f("<article></article><main>m</main>", "", "main", "m")                                                                 // nothing in it
	f("<aside><article>teaser</article></aside><main>m</main>", "", "main", "m")                                            // of the frame
	f("<article>small</article><article>big"+filler+"</article>", "", "article", "big"+filler)                              // the one with most of the text
	f("<article>a1</article><article>b2</article><article>c3</article>", "", "article", "a1\n\nb2\n\nc3")                   // a list
	f("<main>"+strings.Repeat("m ", 99)+"<article>card</article></main>", "", "main", strings.Repeat("m ", 98)+"m\n\ncard") // a card
	f("<h1>Title</h1><main>text</main>", "", "main", "# Title\n\ntext")
}

// TestClutter checks each element, class and role that is dropped.
func TestClutter(t *testing.T) {
	for _, tag := range strings.Fields("script style noscript iframe object nav header footer aside") {
		got := extract(t, "<main>text<"+tag+">clutter</"+tag+"></main>", content.Options{})
		require.Equal(t, "text", got.Markdown, tag)
	}
	require.Equal(t, "text", extract(t, "<main>text<embed src=x></main>", content.Options{}).Markdown)
	for _, class := range strings.Fields(`ad ads advertisement sidebar toc table-of-contents breadcrumb breadcrumbs pagination pager cta banner
		announcement alert-banner promo feedback feedback-widget thumbs-up-down was-helpful cookie-banner cookie-consent gdpr-banner`) {
		got := extract(t, "<main>text<div class='x "+class+"'>clutter</div><div class='x"+class+"'>stays</div></main>", content.Options{})
		require.Equal(t, "text\n\nstays", got.Markdown, class)
	}
	got := extract(t, `<main>text<div data-ad="1">clutter</div><div data-adunit>clutter</div><p id=pagination>stays</p></main>`, content.Options{})
	require.Equal(t, "text\n\nstays", got.Markdown)
	got = extract(t, `<main>text<p class="gnb">clutter</p><div id="left"><p>clutter</p></div><p>stays</p></main>`, content.Options{Remove: []string{".gnb", "#left, .y"}})
	require.Equal(t, "text\n\nstays", got.Markdown)
	got = extract(t, `<main class="sidebar content">text<header><div>by me<h1>Kept</h1></div><nav><h2>no</h2></nav></header></main>`, content.Options{})
	require.Equal(t, "text\n\n# Kept", got.Markdown)
}

func TestCheck(t *testing.T) {
	require.NoError(t, content.Options{Content: "main article", Remove: []string{".a, #b > c"}}.Check())
	require.ErrorContains(t, content.Options{Content: "main["}.Check(), `content selector "main["`)
	require.ErrorContains(t, content.Options{Remove: []string{".ok", "..no"}}.Check(), `remove selector "..no"`)
	_, err := content.Extract(nil, "", content.Options{Content: "["})
	require.Error(t, err)
}

func TestTitle(t *testing.T) {
	for page, want := range map[string]string{
		"<title> A\n  &amp; B </title><h1>h</h1>":               "A & B",
		"<h1>The <code>h1</code></h1>":                          "The h1",
		"<p>none</p>":                                           "",
		"<svg><title>icon</title></svg><main><h2>x</h2></main>": "x",
		"<title>me@example.com</title>":                         "[email]",
	} {
		require.Equal(t, want, extract(t, page, content.Options{}).Title, page)
	}
}

func TestLongTitle(t *testing.T) {
	long, want := strings.Repeat("긴 ", 1<<20)+"end", strings.Repeat("긴 ", content.MaxTitle/2)
	p, err := content.Extract([]byte("<title>"+long+"</title><main>words"), "text/html; charset=utf-8", content.Options{})
	require.NoError(t, err)
	require.Equal(t, want, p.Title)
	p, err = content.ExtractText([]byte("# "+long), "text/plain; charset=utf-8")
	require.NoError(t, err)
	require.Equal(t, want, p.Title)
	p, err = content.ExtractOpenAPI([]byte(`{"openapi":"3.0.0","info":{"title":"` + long + `"}}`))
	require.NoError(t, err)
	require.Equal(t, want, p.Title)
}

func TestLinks(t *testing.T) {
	got := extract(t, `<head><base href="/v2/"></head><nav><a href="a?utm_source=x&v=1">a</a></nav><main><a href="a#part">a</a><a href="#x">x</a>
		<a href="mailto:a@b.com">m</a><a href="https://other.example/">o</a><a href="/b?lang=ko&ref=x">b</a><map><area href="c"></map><svg><a href="/svg">s</a></svg></main>`,
		content.Options{Base: base})
	require.Equal(t, []string{"https://docs.example.com/v2/a?v=1", "https://docs.example.com/v2/a", "https://other.example/", "https://docs.example.com/b?lang=ko", "https://docs.example.com/v2/c"}, got.Links)
	require.Empty(t, extract(t, `<a href="/a">a</a>`, content.Options{}).Links)
}

func TestEmpty(t *testing.T) {
	f := func(page string, empty, script bool) {
		t.Helper()
		got := extract(t, page, content.Options{})
		require.Equal(t, [2]bool{empty, script}, [2]bool{got.Empty, got.Script}, page)
	}
	f("", true, false)
	f("<main><p> </p></main><nav>links</nav>", true, false)
	f(`<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="a.js"></script>`, true, true)
	f(`<div id="__next"><div></div></div><script>1</script><p>Loading...</p>`, true, true)
	f(`<div id="app"></div><main>`+strings.Repeat("Rendered on the server. ", 20)+`</main><script src="a.js"></script>`, false, false)
	f(`<main>text</main><script src="a.js"></script>`, false, false)
}

func TestHostile(t *testing.T) {
	_, err := content.Extract([]byte(strings.Repeat("<div>", 10_000)), "text/html", content.Options{})
	require.ErrorIs(t, err, content.ErrTooDeep)

	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "<a href=/p%d>x</a>", i)
	}
	got := extract(t, b.String(), content.Options{Base: base})
	require.Len(t, got.Links, content.MaxLinks)

	// Pages for which simpler code takes far too much time or memory.
	for _, page := range []string{
		"<p>" + strings.Repeat("_", 1<<19),
		"<pre>" + strings.Repeat("`", 1<<19) + "</pre><code>" + strings.Repeat("`a", 1<<18),
		"<p>a@" + strings.Repeat("a.", 1<<18),
		"<table>" + strings.Repeat("<tr><td>x", 20_000) + "<tr>" + strings.Repeat("<td>y", 20_000),
		strings.Repeat("<blockquote>", 400) + strings.Repeat("x<p>", 20_000),
		"<div id=content>" + strings.Repeat("<div>", 400) + strings.Repeat("<p><a href=x>x</a></p>", 10_000) + "word",
	} {
		require.Less(t, len(extract(t, page, content.Options{}).Markdown), 20*len(page))
	}

	got = extract(t, "<main>\xff\xfe<p>broken \xed\xa0\x80 UTF-8\x00</main>", content.Options{})
	require.True(t, utf8.ValidString(got.Markdown))

	ko, err := content.Extract([]byte("<main>\xc7\xd1\xb1\xdb</main>"), "text/html; charset=euc-kr", content.Options{})
	require.NoError(t, err)
	require.Equal(t, "한글", ko.Markdown)
}

func TestMaskEmails(t *testing.T) {
	for _, c := range cases.Table[[]testCase](t, "emails.yaml") {
		require.Equal(t, c.Want, content.MaskEmails(c.In))
		require.Equal(t, c.Want, content.MaskEmails(c.Want), "masking twice changes nothing")
	}
}

// A text with very many beginnings of addresses is read in time that grows linearly
// with its length.
func TestMaskEmailsInTime(t *testing.T) {
	for _, s := range []string{"%40", "a%40", "@", "a@", "a@b", "a@b.", "a@*", "*@", "＠", "&#64;", "a@b.com", "가@", "@가"} {
		start := time.Now()
		content.MaskEmails(strings.Repeat(s, 256<<10/len(s)))
		require.Less(t, time.Since(start), 5*time.Second, s)
	}
}

func TestExtractText(t *testing.T) {
	p, err := content.ExtractText([]byte("\ufeff# Title\r\n\r\nme@example.com\r\n"), "text/plain")
	require.NoError(t, err)
	require.Equal(t, content.Page{Title: "Title", Markdown: "# Title\n\n[email]"}, p)
	const markdown = "# [Pets](/pets)\n\nSee [`GET /pets`](https://a.b/c#d), ![a cat](cat.png) and `[x](y)` or [x](y).\n\n```js``` [x](y)\n\n```md\n[x](y)\n```\n\n[y](z)"
	p, err = content.ExtractText([]byte(markdown), "text/markdown; charset=utf-8")
	require.NoError(t, err)
	require.Equal(t, content.Page{Title: "Pets", Markdown: "# Pets\n\nSee `GET /pets`, [이미지: a cat] and `[x](y)` or x.\n\n```js``` x\n\n```md\n[x](y)\n```\n\ny"}, p)
	p, err = content.ExtractText([]byte(markdown), "text/plain; charset=utf-8")
	require.NoError(t, err)
	require.Equal(t, markdown, p.Markdown, "plain text has no links")
	p, err = content.ExtractText([]byte(" \n"), "")
	require.NoError(t, err)
	require.Equal(t, content.Page{Empty: true}, p)
}

// Markdown that people wrote has links in all forms of CommonMark, underlined headings and
// comments.
func TestPlainMarkdown(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"labels":                 {"See [the *guide*][g], [Guide][], [guide] and ![a cat][g], not [this][other] or [that].\n\n[G]: /guide 'The guide'\n[guide]: <https://a.b/c d>\n\nEnd.", "See the *guide*, Guide, guide and [이미지: a cat], not [this][other] or [that].\n\n\nEnd."},
		"over two lines":         {"See [the long\nguide](\n/guide \"The (guide)\").", "See the long\nguide."},
		"parentheses":            {"[Foo](https://a.b/Foo_(bar)) and [x](<a b>) and [y]().", "Foo and x and y."},
		"a badge":                {"[![build](b.svg)](https://ci)![](pixel.gif)", "[이미지: build]"},
		"brackets in brackets":   {"[a [nested] b](u) and a[0](x, y), \\[not\\](this), [one\n\ntwo](x)", "a [nested] b and a[0](x, y), \\[not\\](this), [one\n\ntwo](x)"},
		"code":                   {"`[x](y)` and ``a ` [x](y)`` and `[x](y)\n\n[g]: no\n\n```\n[g]: /kept\n<!-- kept -->\nA\n---\n```\n[x][g]", "`[x](y)` and ``a ` [x](y)`` and `x\n\n\n```\n[g]: /kept\n<!-- kept -->\nA\n---\n```\nx"},
		"a callout of GitHub's":  {"> [!WARNING]\n> It is hot.\n\n```\n> [!NOTE]\n```\n\n- [x] Done", "> **Warning:**\n>\n> It is hot.\n\n```\n> [!NOTE]\n```\n\n- [x] Done"},
		"a definition in a text": {"A line\n[g]: and more\n[^1]: A [note](x).", "A line\n[g]: and more\n[^1]: A note."},
		"comments":               {"<!-- License\n\n# no heading\n-->\n# T\n\na <!-- b --> c, `<!-- d -->` <!-- e", "# T\n\na  c, `<!-- d -->` <!-- e"},
		"underlined":             {"Title\n=====\n\nText\nmore\n---\n\nPart [one](x)\n--------\nText\n\n- item\n---\n\n| a |\n---\n\n---", "# Title\n\nText\nmore\n---\n\n## Part one\nText\n\n- item\n---\n\n| a |\n---\n\n---"},
		"closed":                 {"## Part ##\n\n# C# #\n\n# F#", "## Part\n\n# C#\n\n# F#"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := content.ExtractText([]byte(c.in), "text/markdown; charset=utf-8")
			require.NoError(t, err)
			require.Equal(t, c.want, p.Markdown)
		})
	}
}

// A text that quotes the beginning of an OpenAPI description is kept as text.
func TestTextAboutOpenAPI(t *testing.T) {
	for _, text := range []string{
		"# Specs\n\nWrite:\n\n```yaml\nopenapi: 3.1.0\ninfo:\n  title: x\n```",
		"---\nopenapi: 3.1.0\n---\n\n# Pets\n\nThe page says what pets are.",
		"Notes\n\nopenapi: 3.1.0 is what we write since then.\nIt was 2.0 before.",
	} {
		for _, kind := range []string{"text/markdown", "text/plain"} {
			form, _ := content.Kind(kind, []byte(text))
			p, err := content.Read(form, []byte(text), kind, content.Options{})
			require.NoError(t, err, text)
			require.Equal(t, text, p.Markdown)
		}
	}
}

// TestKind checks the form for each content type, and for wrong content types.
func TestKind(t *testing.T) {
	const page, openapi = "<!DOCTYPE html><html><p>x", `{"info":{"a":[1]},"openapi":"3.0.0","paths":{}}`
	const png, zip, pdf = "\x89PNG\x0d\x0a\x1a\x0a\x00\x00", "PK\x03\x04\x00\x00", "%PDF-1.7\n"
	f := func(header, body string, form content.Form, media string) {
		t.Helper()
		gotForm, gotMedia := content.Kind(header, []byte(body))
		require.Equal(t, [2]string{string(form), media}, [2]string{string(gotForm), gotMedia}, "%s: %s", header, body)
	}
	f("text/html; charset=utf-8", page, content.HTML, "text/html")
	f("application/xhtml+xml", page, content.HTML, "application/xhtml+xml")
	f("text/html", "<!doctype html><p>Begin with<pre><code>\nopenapi: 3.1.0\ninfo:\n</code></pre>", content.HTML, "text/html")
	f("text/html", "<?xml version='1.0'?><html><pre>\nopenapi: 3.1.0\n</pre></html>", content.HTML, "text/html")
	f("text/html", openapi, content.OpenAPI, "application/json")
	f("text/html", "openapi: 3.1.0\n", content.OpenAPI, "application/json")
	f("text/plain", "words", content.Text, "text/plain")
	f("text/markdown", "# words", content.Text, "text/markdown")
	f("application/json", openapi, content.OpenAPI, "application/json")
	f("application/json", `{"swagger":"2.0"}`, content.OpenAPI, "application/json")
	f("application/vnd.oai.openapi+json", openapi, content.OpenAPI, "application/vnd.oai.openapi+json")
	f("application/json", `{"info":{"openapi":"3.0.0"}}`, content.Excluded, "application/json")
	f("application/json", `[{"openapi":"3.0.0"}]`, content.Excluded, "application/json")
	f("application/json", `{"openapi":{}}`, content.Excluded, "application/json")
	f("application/json", `{`, content.Excluded, "application/json")
	f("application/yaml", "openapi: 3.1.0\npaths: {}\n", content.OpenAPI, "application/yaml")
	f("application/yaml", "name: x\n", content.Excluded, "application/yaml")
	f("text/plain", "# comment\nswagger: \"2.0\"\n", content.OpenAPI, "text/plain")
	f("application/pdf", pdf, content.PDF, "application/pdf")
	f("application/pdf; charset=binary", "\n\x00"+pdf, content.PDF, "application/pdf")
	f("application/octet-stream", pdf, content.PDF, "application/pdf")
	f("image/png", png, content.Excluded, "image/png")
	f("image/svg+xml", "<svg></svg>", content.Excluded, "image/svg+xml")
	f("video/mp4", "\x00\x00\x00\x18ftypmp42", content.Excluded, "video/mp4")
	f("application/zip", zip, content.Excluded, "application/zip")
	f("application/octet-stream", "\x00\x01\x02", content.Excluded, "application/octet-stream")
	f("application/xml", "<a/>", content.Excluded, "application/xml")

	f("text/html", pdf, content.PDF, "application/pdf")
	f("text/html", png, content.Excluded, "image/png")
	f("text/plain", zip, content.Excluded, "application/zip")
	f("text/plain", page, content.HTML, "text/html")
	f("application/octet-stream", page, content.HTML, "text/html")
	f("", page, content.HTML, "text/html")
	f("", "plain words", content.Text, "text/plain")
	f("nonsense", "plain words", content.Text, "text/plain")
	f("text/html", openapi, content.OpenAPI, "application/json")
	f("text/plain", `{"a": 1}`, content.Excluded, "application/json")
	f("text/html", "\xff\xfe<\x00p\x00>\x00", content.HTML, "text/html")
	f("text/html", "\xb0\xa1 \xb3\xaa", content.HTML, "text/html")
	f("", "", content.Text, "text/plain")

	for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
		utf16 := func(text string) string {
			out, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
			require.NoError(t, err)
			return out
		}
		f("application/json", utf16(openapi), content.OpenAPI, "application/json")
		f("application/yaml", utf16("# größer\r\nopenapi: 3.1.0\r\npaths: {}\r\n"), content.OpenAPI, "application/yaml")
		f("application/json; charset=utf-16", utf16(`{"a": 1}`), content.Excluded, "application/json")
		f("", utf16(page), content.HTML, "text/html")
		f("text/plain", utf16("words"), content.Text, "text/plain")
		got, err := content.Read(content.OpenAPI, []byte(utf16(`{"openapi":"3.1.0","info":{"title":"Größer"},"paths":{"/a":{"get":{"summary":"All a"}}}}`)), "application/json", content.Options{})
		require.NoError(t, err)
		require.Equal(t, "Größer", got.Title)
		require.Contains(t, got.Markdown, "All a")
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte("<title>t</title><main><h1>a</h1><ul><li><b>x</b><p>y<pre>z</pre></ul><table><tr><td>a<td colspan=2>b</table>"), "text/html; charset=euc-kr")
	f.Add([]byte("<article><ol start=5><li>`a`<code>`b</code><br><br>*_#</ol><blockquote>> q<hr>- <img alt='x]['>"), "")
	f.Add([]byte("<body><div id=nav><a href=/x>y</a></div><header><h2>h</h2></header><pre><span class=line>a</span><span class=line>b"), "a")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		p, err := content.Extract(body, contentType, content.Options{Base: base, Content: ".c", Remove: []string{"p > b"}})
		if errors.Is(err, content.ErrTooDeep) {
			return
		}
		require.NoError(t, err)
		if !utf8.ValidString(p.Markdown) || content.MaskEmails(p.Markdown) != p.Markdown || strings.Contains(p.Title, "\n") {
			t.Fatalf("%+v", p)
		}
		content.Kind(contentType, body)
	})
}

func FuzzExtractOpenAPI(f *testing.F) {
	f.Add(testdata(f, "openapi3.json"))
	f.Add([]byte("swagger: '2.0'\npaths:\n  /a:\n    get: {parameters: [{$ref: '#/x'}]}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := content.ExtractOpenAPI(body); err == nil && !utf8.ValidString(p.Markdown) {
			t.Fatalf("%+v", p)
		}
	})
}
