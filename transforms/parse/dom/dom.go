// Package dom has what the readers of parsed pages share. It is pure. No promise: see docs/library.md.
package dom

import (
	"bytes"
	"iter"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// Set returns the words of a list with spaces, such as names of classes.
func Set(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// Find returns the value of an attribute, and whether the element has it.
func Find(n *html.Node, key string) (string, bool) {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return n.Attr[i].Val, true
		}
	}
	return "", false
}

// Attr returns the value of an attribute, "" for none.
func Attr(n *html.Node, key string) string {
	s, _ := Find(n, key)
	return s
}

// HasAttr reports whether an element has an attribute.
func HasAttr(n *html.Node, key string) bool {
	_, ok := Find(n, key)
	return ok
}

// HasClass reports whether one of an element's classes is in a set.
func HasClass(n *html.Node, set map[string]bool) bool {
	for word := range strings.FieldsSeq(Attr(n, "class")) {
		if set[word] {
			return true
		}
	}
	return false
}

// IsHeading reports whether a node is one of h1 to h6. nil is none.
func IsHeading(n *html.Node) bool {
	if n == nil {
		return false
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// Any reports whether there is such a node below n.
func Any(n *html.Node, is func(*html.Node) bool) bool {
	for d := range n.Descendants() {
		if is(d) {
			return true
		}
	}
	return false
}

// Holds reports whether one of these elements is below n.
func Holds(n *html.Node, names ...atom.Atom) bool {
	for d := range n.Descendants() {
		if d.DataAtom != 0 && slices.Contains(names, d.DataAtom) {
			return true
		}
	}
	return false
}

// Inside reports whether n is below one of these elements.
func Inside(n *html.Node, names ...atom.Atom) bool {
	for a := n.Parent; a != nil; a = a.Parent {
		if slices.Contains(names, a.DataAtom) {
			return true
		}
	}
	return false
}

// Below reports whether n is root, or below it.
func Below(n, root *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == root {
			return true
		}
	}
	return false
}

// Attributes returns the attributes of a tag whose name was read. more is what TagName returned. Of two with one name the first counts.
func Attributes(z *html.Tokenizer, more bool) map[string]string {
	out := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, twice := out[string(key)]; !twice {
			out[string(key)] = string(value)
		}
	}
	return out
}

const (
	maxBase = 2000    // bytes of an address in a base element
	maxTag  = 1 << 20 // bytes of one tag, script or text; reading ends at a longer one
)

// Link is an element with an address.
type Link struct {
	Base *url.URL // to which Href is relative
	Href string
	Attr map[string]string
}

// Links yields the links of the page at an address that are of these elements (a, link), in its order.
func Links(page []byte, at *url.URL, elements ...string) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		z := html.NewTokenizer(bytes.NewReader(page))
		z.SetMaxBuf(maxTag)
		base, based := at, false
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			name, more := z.TagName()
			element := string(name)
			if element != "base" && !slices.Contains(elements, element) {
				continue
			}
			attr := Attributes(z, more)
			switch href := strings.TrimSpace(attr["href"]); {
			case href == "":
			case element == "base":
				if !based {
					base, based = Base(at, href), true
				}
			case !yield(Link{base, href, attr}):
				return
			}
		}
	}
}

// Base returns the address to which those in the page at u are relative, if its first base element says href (HTML, 4.2.3). One that
// is no web page's does not count, nor one that is longer than an address that is stored.
func Base(u *url.URL, href string) *url.URL {
	base, err := canonical.Address(u, href, []string{"*"})
	if err != nil || len(href) > maxBase {
		return u
	}
	return base
}
