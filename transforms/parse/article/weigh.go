package article

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// weigh records the width of the prose below each element, and which elements are
// left out; the prose of those does not count for the elements around them.
func (r *reader) weigh(n *html.Node) int {
	sum, direct := 0, 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			direct += width(c.Data)
		case html.ElementNode:
			if neverText(c) {
				continue
			}
			clutter := r.isClutter(c)
			if !clutter && r.inline(c) {
				direct += prose(c)
				continue
			}
			m := r.weigh(c)
			if clutter {
				r.out[c] = true
				r.leftOut = append(r.leftOut, c)
				continue
			}
			sum += m
		}
	}
	if direct >= 30 && !dom.IsHeading(n) {
		sum += direct
	}
	if sum > 0 {
		r.proseWidth[n] = sum
	}
	return sum
}

// coded reports whether a text is data, such as base64: no language has ASCII words this long.
func coded(s string) bool {
	const word = 200
	if len(s) <= word {
		return false
	}
	for i := range word {
		if c := s[len(s)/2-word/2+i]; c <= ' ' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// prose is the text below an inline element that is not in links.
func prose(n *html.Node) int {
	if n.DataAtom == atom.A {
		return 0
	}
	sum := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			sum += width(c.Data)
		case html.ElementNode:
			if !neverText(c) {
				sum += prose(c)
			}
		}
	}
	return sum
}

// width is the length of a text; a character of Chinese, Japanese or Korean counts
// twice, because it says more than a letter of an alphabet.
func width(s string) int {
	sum, space := 0, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			if !space {
				sum++
			}
			space = true
		case c < utf8.RuneSelf:
			sum++
			space = false
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			i += n - 1
			switch {
			case r == '\u00a0':
				if !space {
					sum++
				}
				space = true
				continue
			case r >= 0x2e80:
				sum++
			}
			sum++
			space = false
		}
	}
	return sum
}

func (r *reader) inline(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd,
		atom.Mark, atom.Nobr, atom.Q, atom.Ruby, atom.Rp, atom.Rt, atom.Rb, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Br, atom.Acronym, atom.Label:
		return !r.blocks[n]
	}
	return n.DataAtom == 0 && strings.IndexByte(n.Data, '-') < 0 && !r.blocks[n]
}

func block(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Ul, atom.Ol, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre, atom.Figure, atom.Dl, atom.Hr, atom.Header, atom.Footer, atom.Main, atom.Aside, atom.Nav, atom.Form:
		return true
	}
	return false
}

// neverText reports whether an element never contains an article's text.
func neverText(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Button: // strip leaves those of headings
		return n.Parent == nil || !dom.IsHeading(n.Parent)
	case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Object, atom.Embed, atom.Template, atom.Nav, atom.Footer,
		atom.Input, atom.Select, atom.Textarea, atom.Datalist, atom.Dialog, atom.Svg, atom.Canvas, atom.Audio, atom.Video,
		atom.Rt, atom.Rp, atom.Head, atom.Link, atom.Meta, atom.Title, atom.Menu, atom.Img, atom.Picture:
		return true
	}
	return false
}
