package content

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// formula returns a formula on one line: its TeX where the page has that, else what MathML
// shows, with marks for what stands above, below and over other parts: the words alone would
// make x2 of x².
func formula(n *html.Node) string {
	for c := range n.Descendants() {
		if c.Data == "annotation" && strings.EqualFold(dom.Attr(c, "encoding"), "application/x-tex") {
			return line(c)
		}
	}
	var b strings.Builder
	if dom.HasClass(n, katex) {
		drawn(&b, n)
	} else {
		mathML(&b, n)
	}
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
	grouped(b, part.String())
}

func grouped(b *strings.Builder, text string) {
	if utf8.RuneCountInString(text) > 1 && strings.ContainsFunc(text, func(r rune) bool { return !hasWords(string(r)) && r != '.' }) {
		text = "(" + text + ")"
	}
	b.WriteString(text)
}

// KaTeX draws a formula with elements that programs are told to skip, because they find it in
// MathML next to them. Some sites leave MathML out.
var (
	katex         = dom.Set("katex")
	katexDrawing  = dom.Set("katex-html")
	katexSpace    = dom.Set("mspace")
	katexRoot     = dom.Set("sqrt")
	katexDegree   = dom.Set("root katex-root")
	katexFraction = dom.Set("mfrac")
	katexScripts  = dom.Set("msupsub")
	katexLimits   = dom.Set("op-limits")
	katexSign     = dom.Set("mop")
	katexStack    = dom.Set("vlist") // its elements are the parts, the lowest first
	katexLow      = dom.Set("vlist-t2")
)

// isDrawn reports whether an element is a formula that KaTeX draws and that is in no MathML.
func isDrawn(n *html.Node) bool {
	return dom.HasClass(n, katex) && !dom.Holds(n, atom.Math) && dom.Any(n, func(c *html.Node) bool { return dom.HasClass(c, katexDrawing) })
}

// drawn writes a formula as KaTeX draws it, with the marks of mathML.
func drawn(b *strings.Builder, n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		b.WriteString(codeText.Replace(n.Data))
		return
	case dom.HasClass(n, katexSpace), n.Parent != nil && dom.HasClass(n.Parent, katexStack): // as a row of a matrix
		b.WriteByte(' ')
	case dom.HasClass(n, katexRoot):
		var under strings.Builder
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if dom.HasClass(c, katexDegree) {
				drawn(b, c)
			} else {
				drawn(&under, c)
			}
		}
		b.WriteString("√")
		grouped(b, strings.TrimSpace(under.String()))
		return
	case dom.HasClass(n, katexFraction), dom.HasClass(n, katexScripts), dom.HasClass(n, katexLimits):
		if stacked(b, n) {
			return
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		drawn(b, c)
	}
}

// stacked writes parts that stand one above the other. It reports whether it knows what they are.
func stacked(b *strings.Builder, n *html.Node) bool {
	low, sign := false, -1
	var parts []string
	for c := range n.Descendants() {
		low = low || dom.HasClass(c, katexLow)
		if !dom.HasClass(c, katexStack) {
			continue
		}
		for p := c.FirstChild; p != nil; p = p.NextSibling {
			var part strings.Builder
			drawn(&part, p)
			text := strings.TrimSpace(part.String())
			if text == "" { // the line of a fraction
				continue
			}
			for d := range p.Descendants() {
				if sign < 0 && dom.HasClass(d, katexSign) {
					sign = len(parts)
				}
			}
			parts = append(parts, text)
		}
		break
	}
	switch {
	case dom.HasClass(n, katexFraction) && len(parts) == 2:
		grouped(b, parts[1])
		b.WriteByte('/')
		grouped(b, parts[0])
		return true
	case dom.HasClass(n, katexScripts) && len(parts) == 1 && !low:
		sign, parts = 0, append([]string{""}, parts...)
	case dom.HasClass(n, katexScripts) && (len(parts) == 1 || len(parts) == 2):
		sign, parts = 1, append([]string{parts[0], ""}, parts[1:]...)
	case !dom.HasClass(n, katexLimits) || sign < 0:
		return false
	}
	b.WriteString(parts[sign])
	for i, part := range parts {
		if i != sign {
			b.WriteByte("_^"[min(1, max(0, i-sign))])
			grouped(b, part)
		}
	}
	return true
}

func hasSigns(s string) bool { return strings.TrimFunc(s, space) != "" }

// isTeX reports whether a script is a formula that MathJax shows.
func isTeX(n *html.Node) bool {
	return n.DataAtom == atom.Script && strings.HasPrefix(dom.Attr(n, "type"), "math/tex")
}
