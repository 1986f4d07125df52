// Package dom has what the readers of parsed pages share. It is pure. No promise: see docs/library.md.
package dom

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
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
