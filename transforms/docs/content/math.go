package content

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// formula returns a formula on one line: its TeX where the page has that, else what MathML
// shows, with marks for what stands above, below and over other parts: the words alone would
// make x2 of x².
func formula(n *html.Node) string {
	for c := range n.Descendants() {
		if c.Data == "annotation" && strings.EqualFold(attr(c, "encoding"), "application/x-tex") {
			return line(c)
		}
	}
	var b strings.Builder
	mathML(&b, n)
	return strings.Join(strings.Fields(b.String()), " ")
}

func mathML(b *strings.Builder, n *html.Node) {
	if n.Type == html.TextNode {
		b.WriteString(strings.TrimFunc(n.Data, space))
		return
	}
	var parts []*html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && !strings.HasPrefix(c.Data, "annotation") || c.Type == html.TextNode && hasSigns(c.Data) {
			parts = append(parts, c)
		}
	}
	// marks stand before the parts of an element with as many parts.
	marks := map[string][]string{"msup": {"", "^"}, "mover": {"", "^"}, "msub": {"", "_"}, "munder": {"", "_"},
		"msubsup": {"", "_", "^"}, "munderover": {"", "_", "^"}, "mfrac": {"", "/"}, "msqrt": {"√"}}[n.Data]
	switch {
	case n.Data == "mspace":
		b.WriteByte(' ')
	case n.Data == "mtable":
		b.WriteByte('(')
		rows(b, parts)
		b.WriteByte(')')
	case n.Data == "mroot" && len(parts) == 2:
		group(b, parts[1])
		b.WriteString("√")
		group(b, parts[0])
	case len(marks) == len(parts):
		for i, p := range parts {
			b.WriteString(marks[i])
			group(b, p)
		}
	default:
		rows(b, parts)
	}
}

// rows writes parts one after another, those of a table with marks between them.
func rows(b *strings.Builder, parts []*html.Node) {
	for i, p := range parts {
		if i > 0 && p.Data == "mtr" {
			b.WriteString("; ")
		}
		if i > 0 && p.Data == "mtd" {
			b.WriteString(", ")
		}
		mathML(b, p)
	}
}

// group writes a part of a formula, in parentheses if it is more than one sign or word.
func group(b *strings.Builder, n *html.Node) {
	var part strings.Builder
	mathML(&part, n)
	text := part.String()
	if utf8.RuneCountInString(text) > 1 && strings.ContainsFunc(text, func(r rune) bool { return !hasWords(string(r)) && r != '.' }) {
		text = "(" + text + ")"
	}
	b.WriteString(text)
}

func hasSigns(s string) bool { return strings.TrimFunc(s, space) != "" }

// isTeX reports whether a script is a formula that MathJax shows.
func isTeX(n *html.Node) bool {
	return n.DataAtom == atom.Script && strings.HasPrefix(attr(n, "type"), "math/tex")
}
