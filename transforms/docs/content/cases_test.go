package content_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// docsPage is a row of docs_pages/cases.jsonl with its page.
type docsPage struct {
	ID, File, Encoding string
	Title              string `json:"page_title"`
	Headings           [][2]any
	Code               []struct {
		Lines int
		First string
	} `json:"code_blocks"`
	Tables []struct {
		Rows, Cols int
		First      string
	}
	MustHave []string `json:"must_have"`
	MustNot  []string `json:"must_not"`
	body     []byte
}

func docsPages(tb testing.TB) []docsPage {
	tb.Helper()
	pages := cases.Rows[docsPage](tb, "docs_pages/cases.jsonl")
	for i, p := range pages {
		z, err := gzip.NewReader(bytes.NewReader(cases.File(tb, "docs_pages/"+p.File)))
		if err != nil {
			tb.Fatalf("reading %s: %v", p.File, err)
		}
		if pages[i].body, err = io.ReadAll(z); err != nil {
			tb.Fatalf("reading %s: %v", p.File, err)
		}
	}
	return pages
}

// Minimum scores on docs_pages, from 0 to 1. They may only rise. The comments give
// the scores of trafilatura 2.3.1.
const (
	minHeadings   = 1     // 0.738: level and text
	minFirstLines = 1     // 0.986: the first line of each code block is in a code block
	minCodeLines  = 0.998 // lines in code blocks, page by page
	minMustHave   = 1     // 0.973
	minMustNot    = 1     // 0.964
	minTables     = 1     // a table's first cell below the head is in a row
	minTitles     = 1
)

var (
	escapes = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])")
	marks   = strings.NewReplacer("`", "", "*", "", "|", " ", `\`, "")
)

// plainText returns the text of Markdown on one line, without its marks.
func plainText(markdown string) string {
	var lines []string
	code := false
	for l := range strings.SplitSeq(markdown, "\n") {
		t := strings.TrimSpace(strings.TrimLeft(l, "> "))
		if strings.HasPrefix(t, "```") {
			code = !code
			continue
		}
		if !code {
			l = strings.TrimPrefix(strings.TrimSpace(strings.TrimLeft(t, "#")), "- ")
			l = escapes.ReplaceAllString(l, "$1")
		}
		lines = append(lines, l)
	}
	return words(strings.Join(lines, " "))
}

// words writes one space between words and removes marks.
func words(s string) string {
	return strings.Join(strings.FieldsFunc(marks.Replace(s), func(r rune) bool { return r <= ' ' || r == '\u00a0' || r == '\u200b' }), " ")
}

// squeeze removes all space and the marks that words removes.
func squeeze(s string) string { return strings.ReplaceAll(words(s), " ", "") }

// codeLines returns the lines in Markdown's fences that are not empty.
func codeLines(markdown string) []string {
	var lines []string
	fence, quoted := "", false
	for l := range strings.SplitSeq(markdown, "\n") {
		if quoted && fence != "" {
			_, l, _ = strings.Cut(l, ">")
		}
		t := strings.TrimLeft(l, " ")
		if fence == "" {
			t = strings.TrimLeft(l, "-> 0123456789.")
			quoted = strings.Contains(l[:len(l)-len(t)], ">")
			if ticks := len(t) - len(strings.TrimLeft(t, "`")); ticks > 2 {
				fence = t[:ticks]
			}
		} else if t == fence {
			fence = ""
		} else if s := squeeze(l); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

func headings(markdown string) []string {
	var found []string
	code := false
	for l := range strings.SplitSeq(markdown, "\n") {
		t := strings.TrimSpace(strings.TrimLeft(l, "> -"))
		if strings.HasPrefix(t, "```") {
			code = !code
		}
		if text := strings.TrimLeft(t, "#"); !code && text != t {
			found = append(found, fmt.Sprint(len(t)-len(text), squeeze(escapes.ReplaceAllString(text, "$1"))))
		}
	}
	return found
}

type score struct {
	right, all int
	missed     []string
}

func (s *score) add(ok bool, what string) {
	s.all++
	if ok {
		s.right++
	} else {
		s.missed = append(s.missed, what)
	}
}

func (s *score) atLeast(t *testing.T, name string, floor float64) {
	t.Helper()
	got := float64(s.right) / float64(s.all)
	t.Logf("%-12s %.4f (%d of %d), floor %.3f", name, got, s.right, s.all, floor)
	if got < floor {
		t.Errorf("%s: %.4f, floor %.4f", name, got, floor)
	}
	if got < floor || testing.Verbose() {
		for _, m := range s.missed {
			t.Logf("  missed %.160q", m)
		}
	}
}

// calloutTitles returns the headings that are the titles of callouts, in a page's own markup.
func calloutTitles(t *testing.T, p docsPage) map[string]bool {
	t.Helper()
	text, _, err := charset.Decode(p.body, "text/html; charset="+p.Encoding)
	require.NoError(t, err)
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, n := range cascadia.QueryAll(root, cascadia.MustCompile("div.note > h3:first-child, div.caution > h3:first-child, div.warning > h3:first-child")) {
		var b strings.Builder
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				b.WriteString(c.Data)
			}
		}
		found["3"+squeeze(b.String())] = true
	}
	return found
}

// What the candidates for the content go by.
var (
	markedTags  = regexp.MustCompile(`(?i)(</?)(article|main)\b`)
	markedNames = regexp.MustCompile(`(?i)\s(?:class|id|role)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)`)
	markedWords = regexp.MustCompile(`\b(content|docs-body|markdown-body|main)\b`)
)

func TestDocsPages(t *testing.T) {
	measure(t, docsPages(t), [7]float64{minHeadings, minFirstLines, minCodeLines, minMustHave, minMustNot, minTables, minTitles})
}

// The same pages without anything that a selector finds: the content is found by its
// prose. The comments give the scores of the whole body.
func TestDocsPagesWithoutSelectors(t *testing.T) {
	pages := docsPages(t)
	for i, p := range pages {
		pages[i].body = markedNames.ReplaceAllFunc(markedTags.ReplaceAll(p.body, []byte("${1}div")), func(m []byte) []byte { return markedWords.ReplaceAll(m, []byte("thing")) })
	}
	measure(t, pages, [7]float64{
		0.988, // 0.9887
		1,     // 1
		0.998, // 0.9986
		1,     // 1
		0.987, // 0.9528
		1,     // 1
		1,     // 1
	})
}

func measure(t *testing.T, pages []docsPage, floors [7]float64) {
	t.Helper()
	var heads, first, code, have, not, tables, named score
	for _, p := range pages {
		page, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{})
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		got := headings(page.Markdown)
		titles := calloutTitles(t, p)
		for _, h := range p.Headings {
			want := fmt.Sprint(h[0], squeeze(h[1].(string)))
			if titles[want] { // the row counts it, but it is no heading of the page
				if slices.Contains(got, want) {
					t.Errorf("%s: the title of a callout is a heading: %s", p.ID, want)
				}
				continue
			}
			i := slices.Index(got, want)
			heads.add(i >= 0, p.ID+" "+want)
			if i >= 0 {
				got = slices.Delete(got, i, i+1)
			}
		}
		lines := codeLines(page.Markdown)
		want := 0
		for n, c := range p.Code {
			if n > 0 && c == p.Code[n-1] {
				continue // mdBook nests a pre in a pre, and the row counts both
			}
			line := squeeze(content.MaskEmails(c.First)) // the row may have only its beginning
			first.add(slices.ContainsFunc(lines, func(l string) bool { return l == line || len(line) > 80 && strings.HasPrefix(l, line) }), p.ID+" "+c.First)
			want += c.Lines
		}
		code.all += want
		code.right += min(want, len(lines))
		if len(lines) != want {
			code.missed = append(code.missed, fmt.Sprint(p.ID, " ", len(lines), " lines, want ", want))
		}
		text := plainText(page.Markdown)
		for _, s := range p.MustHave {
			have.add(strings.Contains(text, words(s)), p.ID+" "+s)
		}
		for _, s := range p.MustNot {
			not.add(!strings.Contains(text, words(s)), p.ID+" "+s)
		}
		for _, table := range p.Tables {
			ok := false
			for l := range strings.SplitSeq(page.Markdown, "\n") {
				ok = ok || strings.Contains(l, "|") && strings.Contains(squeeze(escapes.ReplaceAllString(l, "$1")), squeeze(table.First))
			}
			tables.add(ok, p.ID+" "+table.First)
		}
		named.add(squeeze(page.Title) == squeeze(p.Title), p.ID+" "+page.Title+", want "+p.Title)
		if page.Empty {
			t.Errorf("%s: empty", p.ID)
		}
	}
	heads.atLeast(t, "headings", floors[0])
	first.atLeast(t, "first lines", floors[1])
	code.atLeast(t, "code lines", floors[2])
	have.atLeast(t, "must have", floors[3])
	not.atLeast(t, "must not", floors[4])
	tables.atLeast(t, "tables", floors[5])
	named.atLeast(t, "titles", floors[6])
}

var base = func() *url.URL {
	u, err := url.Parse("https://docs.example.com/guide/start")
	if err != nil {
		panic(err)
	}
	return u
}()
