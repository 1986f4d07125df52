package content_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

var update = flag.Bool("update", false, "write the goldens")

// TestGoldens renders each testdata/*.html: rule-*.html check the rules of
// rendering, page-*.html are invented pages in the style of common generators.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.html")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 11+6)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".html"), func(t *testing.T) {
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			page, err := content.Extract(body, "text/html", content.Options{Base: base})
			require.NoError(t, err)
			got := page.Markdown + "\n"
			if strings.HasPrefix(filepath.Base(file), "page-") {
				links := ""
				for _, l := range page.Links {
					links += "link: " + l + "\n"
				}
				got = "title: " + page.Title + "\nselector: " + page.Selector + "\n" + links + "\n" + got
			}
			golden := strings.TrimSuffix(file, ".html") + ".md"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "run the test with -update to write it")
			require.Equal(t, string(want), got)
		})
	}
}

// minStructure is how many of the Markdown cases for the rules of this package must
// have the structure that their source expects, links and images aside. It may only
// rise.
const minStructure = 123

func TestMarkdownCases(t *testing.T) {
	right, all := 0, 0
	type row struct{ ID, HTML, Markdown string }
	for _, r := range cases.Rows[row](t, "extraction/markdown_cases.jsonl") {
		page, err := content.Extract([]byte("<!DOCTYPE html><body><main>"+r.HTML+"</main>"), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		got, want := structure(t, page.Markdown), structure(t, r.Markdown)
		all++
		if got == want {
			right++
		} else if testing.Verbose() {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Logf("%s\n  ours %.300q\n  got  %.300s\n  want %.300s", r.ID, page.Markdown, got[max(0, at-60):], want[max(0, at-60):])
		}
	}
	t.Logf("%d of %d have their structure, floor %d", right, all, minStructure)
	require.GreaterOrEqual(t, right, minStructure, "of %d have their structure", all)
}

func TestMarks(t *testing.T) {
	for _, c := range cases.Table[[]testCase](t, "marks.yaml") {
		want := strings.NewReplacer("<b>", "<strong>", "</b>", "</strong>", "<i>", "<em>", "</i>", "</em>").Replace(c.Want)
		got := markdownOf(t, "<main><h1>T</h1><p>"+c.In+"</p></main>")
		assert.Equal(t, "<h1>T</h1><p>"+want+"</p>", structure(t, got), got)
	}
}

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))
	spaces   = regexp.MustCompile(`[\s\x{a0}]+`)
	between  = regexp.MustCompile(` ?(</?(?:p|h[1-6]|ul|ol|li|pre|blockquote|table|tr|td|br|hr)>) ?`)
)

// structure returns what a CommonMark parser reads from Markdown, as tags and text.
// A link is its text, an image its alternative text as "[이미지:…]".
func structure(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, markdown.Convert([]byte(text), &b))
	root, err := html.Parse(&b)
	require.NoError(t, err)
	var out strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				out.WriteString(c.Data)
			case c.Data == "img":
				for _, a := range c.Attr {
					if a.Key == "alt" && a.Val != "" {
						out.WriteString("[이미지: " + a.Val + "]")
					}
				}
			case c.Type != html.ElementNode || c.Data == "head":
			case c.Data == "body" || c.Data == "html" || c.Data == "a" || c.Data == "tbody" || c.Data == "thead" || c.Data == "pre":
				walk(c)
			default:
				name := c.Data
				if name == "th" {
					name = "td"
				}
				out.WriteString("<" + name + ">")
				walk(c)
				out.WriteString("</" + name + ">")
			}
		}
	}
	walk(root)
	s := spaces.ReplaceAllString(out.String(), " ")
	s = between.ReplaceAllString(s, "$1")
	// Dialects differ in whether a list is tight.
	return strings.TrimSpace(strings.NewReplacer("<li><p>", "<li>", "</p></li>", "</li>", "</p><ul>", "<ul>", "</p><ol>", "<ol>", "<p></p>", "").Replace(s))
}

// The links of a page are absolute, and the text of its Markdown without them is that of its chunks.
func TestLinked(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"relative, with a fragment":  {`<p>See <a href="../b#c">the <b>guide</b> </a>now.</p>`, "See [the **guide**](https://docs.example.com/b#c) now."},
		"in the page, and elsewhere": {`<p><a href="#x">here</a>, <a href="//a.example/?q=1&amp;r=(2)">there</a></p>`, "[here](https://docs.example.com/guide/start#x), [there](https://a.example/?q=1&r=%282%29)"},
		"to no page":                 {`<p><a href="mailto:a@b.example">mail</a> <a href="ftp://a.example">f</a> a <a href="javascript:x()">s</a></p>`, "mail f a s"},
		"brackets and code":          {`<p><a href="/a"> a[0] <code>b</code></a>c</p>`, "[a\\[0\\] `b`](https://docs.example.com/a)c"},
		"in a cell":                  {`<table><tr><th>A</th><th>B</th></tr><tr><td><a href="/a|b">x</a></td><td>y</td></tr></table>`, "| A | B |\n| --- | --- |\n| [x](https://docs.example.com/a%7Cb) | y |"},
		"in a heading":               {`<h2 id="h"><a href="/a">Title</a><a href="#h">#</a></h2>`, "## [Title](https://docs.example.com/a)"},
		"around blocks":              {`<a href="/a"><h3>Card</h3><p>Its text.</p></a>`, "### [Card](https://docs.example.com/a)\n\nIts text."},
		"with a password":            {`<p><a href="https://me:secret@a.example/">in</a></p>`, "[in](https://a.example/)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := content.Extract([]byte("<main>"+c.html+"</main>"), "text/html", content.Options{Base: base, Links: true})
			require.NoError(t, err)
			require.Equal(t, c.want, p.Linked)
			plain, err := content.Extract([]byte("<main>"+c.html+"</main>"), "text/html", content.Options{Base: base})
			require.NoError(t, err)
			require.Equal(t, plain.Markdown, p.Markdown)
			require.Empty(t, plain.Linked)
			require.Equal(t, plain.Markdown, strings.NewReplacer("\\[", "[", "\\]", "]").Replace(content.WithoutLinks(p.Linked)))
		})
	}
	p, err := content.Read(content.Text, []byte("See [a](b.md#c), [d], [d][e] and ![i](i.png).\n\n[d]: /f 'F'\n[e]: <g>\n"), "text/markdown", content.Options{Base: base, Links: true})
	require.NoError(t, err)
	require.Equal(t, "See [a](https://docs.example.com/guide/b.md#c), [d](https://docs.example.com/f), [d](https://docs.example.com/guide/g) and [이미지: i].", p.Linked)
	require.Equal(t, "See a, d, d and [이미지: i].", p.Markdown)
}
