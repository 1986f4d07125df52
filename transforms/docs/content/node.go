package content

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func contains(outer, n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p == outer {
			return true
		}
	}
	return false
}

// has reports whether there is such a node below n.
func has(n *html.Node, is func(*html.Node) bool) bool {
	for c := range n.Descendants() {
		if is(c) {
			return true
		}
	}
	return false
}

// hasElement reports whether there is such an element below n.
func hasElement(n *html.Node, name atom.Atom) bool {
	return has(n, func(c *html.Node) bool { return c.DataAtom == name })
}

// headed reports whether there is a heading below n.
func headed(n *html.Node) bool { return has(n, isHeading) }

func isHeading(n *html.Node) bool {
	if n == nil {
		return false
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// hasClass reports whether one of an element's classes is in a set.
func hasClass(n *html.Node, set map[string]bool) bool {
	for word := range strings.FieldsSeq(attr(n, "class")) {
		if set[word] {
			return true
		}
	}
	return false
}

func attr(n *html.Node, key string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return n.Attr[i].Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return true
		}
	}
	return false
}

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
	return !has(n, func(c *html.Node) bool { return c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" })
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
		if c.DataAtom == atom.Template && (hasAttr(c, "shadowrootmode") || hasAttr(c, "shadowroot")) {
			n.RemoveChild(c)
			assigned := map[string][]*html.Node{}
			for _, child := range take(n) {
				name := attr(child, "slot")
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
		name := attr(c, "name")
		if own := assigned[name]; len(own) > 0 {
			take(c)
			for _, child := range own {
				c.AppendChild(child)
			}
			delete(assigned, name)
		}
	}
}
