package content

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

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
