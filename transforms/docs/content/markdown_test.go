package content_test

import (
	"bytes"
	"cmp"
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

// Text that looks like marks is read as the text that it is.
func TestTextIsNoMark(t *testing.T) {
	for text, want := range map[string]string{
		"[key]: https://a.example/x": "",
		"[^1]: A note.":              "",
		"[two words]: and a text":    "",
		"[key] is a key":             "",
		"In the middle [a]: b":       "",
		`C:\`:                        "",
		`\<em>x</em>`:                `\<em>x</em>`,
		`a\<strong>b</strong>`:       `a\<strong>b</strong>`,
	} {
		page, err := content.Extract([]byte("<!DOCTYPE html><body><main><h1>T</h1><p>"+text+"</p></main>"), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		require.Equal(t, "<h1>T</h1><p>"+cmp.Or(want, text)+"</p>", structure(t, page.Markdown), page.Markdown)
	}
}

// Emphasis is read as emphasis, or left out where CommonMark cannot have it; its marks are never read as text.
func TestEmphasis(t *testing.T) {
	for text, want := range map[string]string{
		`a <em>*</em> b`:                                             "",
		`<em>*</em>`:                                                 "",
		`<strong>*</strong> and <em>**</em>`:                         "",
		`<strong>a*b</strong> <em>a*</em> <em>*a</em>`:               "",
		`<em>_</em> <strong>a_</strong>b`:                            `<em>_</em> a_b`,
		`2 * 3 <em>a</em>* and *<em>a</em>`:                          `2 * 3 <em>a</em>* and *<em>a</em>`,
		`<strong>결제(Payment)</strong>를 한다`:                           `결제(Payment)를 한다`,
		`<strong>Note:</strong>text`:                                 `Note:text`,
		`<strong>Note:</strong> text <b>x</b>, y`:                    `<strong>Note:</strong> text <strong>x</strong>, y`,
		`은<strong>(KR)</strong> x`:                                   `은(KR) x`,
		`은<strong>KR</strong>는`:                                      "",
		`a<b><code>x</code></b>b`:                                    `a<code>x</code>b`,
		`<b>a <code>x</code></b>b <code>y</code>`:                    `a <code>x</code>b <code>y</code>`,
		`<strong>a<em>b.</em></strong>c`:                             `ab.c`,
		`<strong>a <em>b</em></strong>c`:                             `<strong>a <em>b</em></strong>c`,
		`<strong>a.</strong><em>b</em> c`:                            `a.<em>b</em> c`,
		`<b>a</b><i>(x)</i> d`:                                       `<strong>a</strong>(x) d`,
		`<b>x.</b><b>y.</b>z <del>gone.</del>z`:                      `x.y.z gone.z`,
		`<b><i>x</i></b><b><i>y.</i></b>z <b>a.</b><b><i>y.</i></b>`: `xy.z <strong>a.<em>y.</em></strong>`,
		`<b>“x”</b>는 <i>!</i>`:                                       `“x”는 <em>!</em>`,
		`<b>a.<br>b</b> c`:                                           `<strong>a.<br></br>b</strong> c`,
	} {
		page, err := content.Extract([]byte("<!DOCTYPE html><body><main><h1>T</h1><p>"+text+"</p></main>"), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		assert.Equal(t, "<h1>T</h1><p>"+strings.NewReplacer("<b>", "<strong>", "</b>", "</strong>", "<i>", "<em>", "</i>", "</em>").Replace(cmp.Or(want, text))+"</p>", structure(t, page.Markdown), page.Markdown)
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
