package content

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// definitions writes a definition list in the form that Markdown Extra and pandoc read: a
// term on a line, and what it means below it after a colon. Lists of declarations and
// lists with headings in them are parts of the page, and written as such.
func (w *writer) definitions(n *html.Node) {
	if kind := kinds[strings.ToLower(strings.Trim(line(firstTerm(n)), ": "))]; kind != "" && namesKind(n) {
		w.callouts(n, kind)
		return
	}
	if w.cell || w.heading || headed(n) || declared(n) {
		w.container(n)
		if declared(n) {
			w.closes(n)
		}
		return
	}
	w.block()
	w.terms(n)
	w.block()
}

// terms writes the terms and definitions of a list, which may be in groups.
func (w *writer) terms(list *html.Node) {
	for c := list.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			w.text(c.Data)
		case c.Type != html.ElementNode || w.clutter.drops(c):
		case c.DataAtom == atom.Div:
			w.terms(c)
		case c.DataAtom == atom.Dt:
			w.element(c)
			w.term = true
		case c.DataAtom == atom.Dd:
			w.definition(c)
		default:
			w.element(c)
		}
	}
}

func (w *writer) definition(dd *html.Node) {
	tight, term := w.tight, w.term
	w.tight = false
	w.block()
	w.term = term
	depth := len(w.levels)
	w.push(level{first: ": ", rest: "  "})
	w.children(dd)
	w.suspend()
	w.levels = w.levels[:depth]
	w.tight, w.term = tight, false
	w.block()
}

// callouts writes a callout that is a list of one term, as in Doxygen's pages.
func (w *writer) callouts(list *html.Node, kind string) {
	w.kind(kind)
	w.notes++
	for c := list.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.DataAtom != atom.Dt {
			w.element(c)
		}
	}
	w.notes--
}

// firstTerm returns the first term of a list with one term, and the list itself for any other.
func firstTerm(list *html.Node) *html.Node {
	term := list
	for c := list.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Dt {
			if term != list {
				return list
			}
			term = c
		}
	}
	return term
}

// namesKind reports whether a class of an element is the kind of a callout.
func namesKind(n *html.Node) bool {
	for word := range strings.FieldsSeq(attr(n, "class")) {
		if kinds[word] != "" {
			return true
		}
	}
	return false
}

// declared reports whether a list has a declaration.
func declared(list *html.Node) bool {
	return has(list, func(c *html.Node) bool { return c.DataAtom == atom.Dt && declares(c) })
}
