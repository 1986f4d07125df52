package content

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// maxAnchor is the maximum length of a fragment in bytes.
const maxAnchor = 200

// anchor returns the fragment of a heading: the target of its permalink, or the id
// of the heading, of something in it, of the empty anchor before it, or of the
// section that it begins.
func anchor(h *html.Node) string {
	var inside string
	for c := range h.Descendants() {
		if c.Type != html.ElementNode {
			continue
		}
		if c.DataAtom == atom.A && permalink(c) {
			_, fragment, _ := strings.Cut(dom.Attr(c, "href"), "#")
			if text, err := url.PathUnescape(fragment); err == nil && usable(text) {
				return text
			}
		}
		if inside == "" {
			inside = name(c)
		}
	}
	if id := name(h); id != "" {
		return id
	}
	if inside != "" {
		return inside
	}
	n := h
	for range 3 {
		before := n.PrevSibling
		for before != nil && (before.Type == html.CommentNode || before.Type == html.TextNode && strings.TrimSpace(before.Data) == "") {
			before = before.PrevSibling
		}
		if before != nil {
			if before.DataAtom == atom.A && blank(before) {
				return name(before)
			}
			return ""
		}
		if n = n.Parent; n == nil || n.DataAtom != atom.Section && n.DataAtom != atom.Div && n.DataAtom != atom.Header {
			return ""
		}
		if id := name(n); id != "" {
			return id
		}
	}
	return ""
}

// name returns the name by which a fragment can refer to an element, "" for none.
func name(n *html.Node) string {
	if id := dom.Attr(n, "id"); usable(id) {
		return id
	}
	if old := dom.Attr(n, "name"); n.DataAtom == atom.A && usable(old) {
		return old
	}
	return ""
}

func usable(fragment string) bool {
	return fragment != "" && len(fragment) <= maxAnchor && untrusted.Key(fragment) == nil && !strings.ContainsFunc(fragment, unicode.IsSpace)
}
