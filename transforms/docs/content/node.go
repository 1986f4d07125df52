package content

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

func contains(outer, n *html.Node) bool { return dom.Below(n.Parent, outer) }

// headed reports whether there is a heading below n.
func headed(n *html.Node) bool { return dom.Any(n, dom.IsHeading) }

// after returns the element after n, nil if there is text in between.
func after(n *html.Node) *html.Node {
	for s := n.NextSibling; s != nil; s = s.NextSibling {
		switch {
		case s.Type == html.TextNode && strings.TrimSpace(s.Data) != "":
			return nil
		case s.Type == html.ElementNode && s.DataAtom != atom.Button:
			return s
		}
	}
	return nil
}

// line returns the text below n on one line.
func line(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.Join(strings.FieldsFunc(b.String(), space), " ")
}

func blank(n *html.Node) bool {
	return !dom.Any(n, func(c *html.Node) bool { return c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" })
}

// space reports whether a character is space for HTML or for people, or has no
// width.
func space(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\f', '\v', '\u00a0', '\u202f', '\u2028', '\u2029':
		return true
	}
	return false
}

// unfold puts the content of declarative shadow roots in the place of their hosts' children, as
// browsers show it: the children are where the slots are, and those without a slot are not shown.
func unfold(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		unfold(c)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Template && (dom.HasAttr(c, "shadowrootmode") || dom.HasAttr(c, "shadowroot")) {
			n.RemoveChild(c)
			assigned := map[string][]*html.Node{}
			for _, child := range take(n) {
				name := dom.Attr(child, "slot")
				assigned[name] = append(assigned[name], child)
			}
			for _, child := range take(c) {
				n.AppendChild(child)
			}
			fill(n, assigned)
			return
		}
	}
}

// take removes the children of an element and returns them.
func take(n *html.Node) (out []*html.Node) {
	for n.FirstChild != nil {
		out = append(out, n.FirstChild)
		n.RemoveChild(n.FirstChild)
	}
	return out
}

// fill puts the children of a host into its slots. A slot without any keeps its own content.
func fill(n *html.Node, assigned map[string][]*html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Data != "slot" || c.Type != html.ElementNode {
			fill(c, assigned)
			continue
		}
		name := dom.Attr(c, "name")
		if own := assigned[name]; len(own) > 0 {
			take(c)
			for _, child := range own {
				c.AppendChild(child)
			}
			delete(assigned, name)
		}
	}
}
