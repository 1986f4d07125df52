package content_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/andybalholm/cascadia"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// kind says where the pages of a documentation generator have their text, as its
// own stylesheets and manual name it. Extract knows nothing of this.
type kind struct {
	name string
	// text selects the elements that have the text, drop those in it that are not text,
	// and maybe those about which nothing is said: a running title may be kept or not.
	text, drop, maybe string
}

var kinds = []kind{
	{"javadoc", "main", "nav, .toc, .sub-nav, button, [role=tablist], .tableTab", ".activeTableTab, .activeTableTab *"},
	{"javadoc8", "body", ".topNav, .bottomNav, .subNav, .skipNav, .legalCopy, noscript, .tableTab", ".activeTableTab, .activeTableTab *"}, // up to JDK 8, without main
	{"docbook", "body", ".navheader, .navfooter, .toc, .list-of-tables, .list-of-figures, .list-of-examples", ""},
	{"asciidoc", "#header > h1, #content", "#toc", "#header > .details, #header #author, #header #email, #header #revnumber, #header #revdate, #header .details *"},
	{"texinfo", "body", "div.header, div.nav-panel", "div.contents, div.shortcontents, div.contents *, div.shortcontents *, .menu, .section-toc, .mini-toc, .menu *, .section-toc *"},
	{"rustdoc", "#main-content, main > .width-limiter > section.content", "nav, button, .sidebar, #copy-path, .out-of-band #render-detail, .search-container, a.srclink, a.src", "#toggle-all-docs"},
	{"doxygen", ".headertitle, .contents", ".toc, .ttc, .lineno", ".header .summary, .header .summary *"},
	{"gtkdoc", "body", "table.navigation, .footer, .toc, .listing_lines", ""},
	{"man", ".manual-text", "", "table.head, table.foot, .head, .foot"},
}

// expected is what a reader of the page's own markup finds.
type expected struct {
	words, maybe map[string]int
	headings     []string
	text         string
}

func (k kind) read(t *testing.T, body []byte) expected {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(body))
	require.NoError(t, err)
	match := func(selector string) map[*html.Node]bool {
		found := map[*html.Node]bool{}
		if selector != "" {
			for _, n := range cascadia.QueryAll(root, cascadia.MustCompile(selector)) {
				found[n] = true
			}
		}
		return found
	}
	text, drop, maybe := match(k.text), match(k.drop+cond(k.drop != "", ", ")+"script, style, head, [hidden], [aria-hidden=true], a.anchor, a.anchorjs-link"), match(k.maybe)
	notes := match(".note, .tip, .warning, .caution, .important") // DocBook's admonitions, whose titles are h3
	var in, optional strings.Builder
	var e expected
	var walk func(n *html.Node, on, may bool, into *strings.Builder)
	walk = func(n *html.Node, on, may bool, into *strings.Builder) {
		if drop[n] {
			return
		}
		on, may = on || text[n], may || maybe[n]
		switch {
		case n.Type == html.TextNode && may:
			optional.WriteString(n.Data)
		case n.Type == html.TextNode && on:
			into.WriteString(strings.ReplaceAll(n.Data, "\u200b", ""))
		}
		var h strings.Builder
		below := into
		level := ""
		if n.Type == html.ElementNode && len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			level = n.Data[1:]
		} else if k.name == "doxygen" && len(n.Attr) == 1 && n.Attr[0].Val == "title" { // the page's title is a div
			level = "1"
		}
		isHeading := on && !may && level != "" && !notes[n.Parent]
		if isHeading {
			below = &h
		}
		block := n.Type == html.ElementNode && !inline[n.Data]
		if block {
			below.WriteByte(' ')
			optional.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, on, may, below)
		}
		if n.Data == "img" && n.Type == html.ElementNode && on {
			for _, a := range n.Attr {
				if a.Key == "alt" {
					below.WriteString(" " + a.Val + " ")
				}
			}
		}
		if block {
			below.WriteByte(' ')
			optional.WriteByte(' ')
		}
		if isHeading {
			into.WriteString(h.String())
			if s := letters(content.MaskEmails(h.String())); s != "" {
				e.headings = append(e.headings, level+" "+s)
			}
		}
	}
	walk(root, false, false, &in)
	e.text = content.MaskEmails(strings.Join(strings.Fields(in.String()), " "))
	e.words, e.maybe = count(e.text), count(optional.String())
	return e
}

func cond(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

// inline are the elements whose text continues the word before them.
var inline = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike strong time tt u var wbr") {
		m[n] = true
	}
	return m
}()

// letters returns the letters and digits of a text.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// count counts the words of a text: its runs of letters and digits.
func count(s string) map[string]int {
	m := map[string]int{}
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		m[w]++
	}
	return m
}

var (
	markers  = regexp.MustCompile(`^(?:[ >]|[-*:] |[0-9]+\. )*`)
	codeSpan = regexp.MustCompile("``.+?``|`[^`]+`")
)

// shown returns the text of Markdown as a browser would show it, without the marks, and its
// headings with their levels.
func shown(markdown string) (text string, headings []string) {
	var b strings.Builder
	fence := ""
	for l := range strings.SplitSeq(markdown, "\n") {
		bare := l[len(markers.FindString(l)):]
		ticks := bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]
		switch {
		case fence == "" && len(ticks) > 2:
			fence = ticks
			continue
		case fence != "" && bare == fence:
			fence = ""
			continue
		case fence != "":
			b.WriteString(l + "\n")
			continue
		}
		if text := strings.TrimLeft(bare, "#"); text != bare && strings.HasPrefix(text, " ") && letters(text) != "" {
			headings = append(headings, fmt.Sprint(len(bare)-len(text))+" "+letters(text))
		}
		bare = strings.ReplaceAll(bare, "[이미지: ", "[")
		at := 0
		for _, span := range codeSpan.FindAllStringIndex(bare, -1) {
			if span[0] > 0 && bare[span[0]-1] == '\\' {
				continue
			}
			b.WriteString(unmarked(bare[at:span[0]]) + strings.Trim(bare[span[0]:span[1]], "`"))
			at = span[1]
		}
		b.WriteString(unmarked(bare[at:]) + "\n")
	}
	return b.String(), headings
}

// unmarked removes the marks of emphasis, and shows what is escaped.
func unmarked(s string) string {
	s = escapes.ReplaceAllStringFunc(s, func(e string) string {
		return map[string]string{`\*`: "\x01", "\\~": "\x02", "\\`": "\x03"}[e] + cond(!strings.ContainsAny(e, "*~`"), e[1:])
	})
	s = strings.NewReplacer("*", "", "~~", "").Replace(s)
	return strings.NewReplacer("\x01", "*", "\x02", "~", "\x03", "`").Replace(s)
}

// kindScore is the result of one page.
type kindScore struct {
	page                       string
	recall, precision, heading float64
	missing, extra             []string
	headings                   []string // missing, and with + those that are too many
}

func (s kindScore) least() float64 { return min(s.recall, s.precision, s.heading) }

func (k kind) score(t *testing.T, name string, body []byte) kindScore {
	t.Helper()
	e := k.read(t, body)
	p, err := content.Extract(body, "text/html; charset=utf-8", content.Options{})
	require.NoError(t, err, name)
	visible, found := shown(p.Markdown)
	got := count(visible)
	s := kindScore{page: name, recall: 1, precision: 1, heading: 1}
	right, all := 0, 0
	for w, n := range e.words {
		all += n
		right += min(n, got[w])
		if n > got[w] {
			s.missing = append(s.missing, fmt.Sprintf("%s×%d", w, n-got[w]))
		}
	}
	if all > 0 {
		s.recall = float64(right) / float64(all)
	}
	right, all = 0, 0
	for w, n := range got {
		all += n
		right += min(n, e.words[w]+e.maybe[w])
		if over := n - e.words[w] - e.maybe[w]; over > 0 {
			s.extra = append(s.extra, fmt.Sprintf("%s×%d", w, over))
		}
	}
	if all > 0 {
		s.precision = float64(right) / float64(all)
	}
	right, all = 0, max(len(e.headings), len(found))
	for _, h := range e.headings {
		if i := slices.Index(found, h); i >= 0 {
			found = slices.Delete(found, i, i+1)
			right++
		} else {
			s.headings = append(s.headings, h)
		}
	}
	for _, h := range found {
		s.headings = append(s.headings, "+"+h)
	}
	if all > 0 {
		s.heading = float64(right) / float64(all)
	}
	slices.Sort(s.missing)
	slices.Sort(s.extra)
	return s
}

// TestKinds reads pages of the common generators of documentation, from packages of
// Debian. Of each kind at least 99 % of the words and headings are right, and at least
// 95 % of each page.
func TestKinds(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			names, err := filepath.Glob("testdata/kinds/" + k.name + "/*.gz")
			require.NoError(t, err)
			require.NotEmpty(t, names)
			var scores []kindScore
			for _, name := range names {
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				z, err := gzip.NewReader(bytes.NewReader(b))
				require.NoError(t, err)
				body, err := io.ReadAll(z)
				require.NoError(t, err)
				scores = append(scores, k.score(t, filepath.Base(name), body))
			}
			judge(t, k.name, scores)
		})
	}
}

func judge(t *testing.T, name string, scores []kindScore) {
	t.Helper()
	var recall, precision, heading float64
	for _, s := range scores {
		recall, precision, heading = recall+s.recall, precision+s.precision, heading+s.heading
	}
	n := float64(len(scores))
	recall, precision, heading = recall/n, precision/n, heading/n
	t.Logf("%-9s %4d pages: word recall %.4f, precision %.4f, headings %.4f", name, len(scores), recall, precision, heading)
	slices.SortStableFunc(scores, func(a, b kindScore) int {
		if a.least() < b.least() {
			return -1
		}
		return cmpBool(a.least() > b.least())
	})
	for _, s := range scores[:min(3, len(scores))] {
		if s.least() < 1 {
			t.Logf("  worst: %s %.4f %.4f %.4f missing %s extra %s headings %.100q", s.page, s.recall, s.precision, s.heading, few(s.missing), few(s.extra), s.headings[:min(4, len(s.headings))])
		}
	}
	if min(recall, precision, heading) < 0.99 {
		t.Errorf("%s: word recall %.4f, precision %.4f, headings %.4f; each must be 0.99", name, recall, precision, heading)
	}
	for _, s := range scores {
		if s.least() < 0.95 {
			t.Errorf("%s: word recall %.4f, precision %.4f, headings %.4f; each must be 0.95", s.page, s.recall, s.precision, s.heading)
		}
	}
}

// few returns the first words of a list.
func few(words []string) string { return strings.Join(words[:min(12, len(words))], " ") }

func cmpBool(ok bool) int {
	if ok {
		return 1
	}
	return 0
}
