package content

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
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
	for word := range strings.FieldsSeq(dom.Attr(n, "class")) {
		if kinds[word] != "" {
			return true
		}
	}
	return false
}

// declared reports whether a list has a declaration.
func declared(list *html.Node) bool {
	return dom.Any(list, func(c *html.Node) bool { return c.DataAtom == atom.Dt && declares(c) })
}

// declares reports whether an element declares a function, class or option in the markup of a site generator: Sphinx, Haddock, odoc, pydoctor, Doxygen.
func declares(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Dt:
		return dom.HasClass(n, declarationClasses)
	case atom.P:
		return dom.HasClass(n, sources) && dom.Any(n, func(c *html.Node) bool { return name(c) != "" })
	case atom.Div:
		return dom.HasClass(n, specs) && name(n) != "" || dom.HasClass(n, headers) && !headed(n) && !titled(n.Parent)
	}
	return false
}

// titled reports whether a heading stands right before an element.
func titled(n *html.Node) bool {
	p := before(n)
	return p != nil && dom.IsHeading(p)
}

var (
	declarationClasses = dom.Set(`sig sig-object signature`)
	specs              = dom.Set("spec")
	// headers are of pydoctor, of Scaladoc 3, and of Doxygen, whose older releases have no heading before it.
	headers = dom.Set("functionHeader documentableElement-expander memproto")
)

// signature writes a declaration as code on one line: as a heading of what it declares, unless it is another form of the one before.
func (w *writer) signature(n *html.Node) {
	var b strings.Builder
	w.declaration(&b, n)
	text := strings.Join(strings.Fields(codeText.Replace(b.String())), " ")
	w.block()
	if text != "" && len(w.levels) == 0 && !w.cell && !w.heading && (n.DataAtom != atom.Dt || !followsTerm(n)) {
		depth := max(w.depth, 1) + 1 + declaredAround(n)
		w.lead, w.anchor, w.declared = "######"[:min(depth, 6)]+" ", anchor(n), depth
	}
	w.inline(text)
	w.lead = ""
	w.block()
}

// followsTerm reports whether a term has the same definition as the term before it.
func followsTerm(dt *html.Node) bool {
	p := before(dt)
	return p != nil && p.DataAtom == atom.Dt && declares(p)
}

// maxBefore is how many elements before one are looked at for what they declare.
const maxBefore = 8

// declaredAround returns how many declarations have a declaration in what is about them.
func declaredAround(n *html.Node) (count int) {
	for p := n.Parent; p != nil; p = p.Parent {
		for s, steps := p.PrevSibling, 0; s != nil && steps < maxBefore; s, steps = s.PrevSibling, steps+1 {
			if declares(s) {
				count++
				break
			}
		}
	}
	return count
}

// closes writes a rule between declarations and text after them that is about all of the section again.
func (w *writer) closes(declarations *html.Node) {
	if declaredAround(declarations) > 0 || len(w.levels) > 0 {
		return
	}
	next := declarations.NextSibling
	for next != nil && (next.Type != html.ElementNode || w.clutter.drops(next) || blank(next)) && (next.Type != html.TextNode || !hasWords(next.Data)) {
		next = next.NextSibling
	}
	if next == nil || next.DataAtom == atom.Section || next.DataAtom == atom.Hr || dom.IsHeading(next) || headed(next) || dom.Any(next, declares) {
		return
	}
	w.rule()
}

func (w *writer) declaration(b *strings.Builder, n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.Type != html.ElementNode || w.clutter.drops(c) || c.DataAtom == atom.A && (permalink(c) || dom.HasClass(c, elsewhere)):
		default:
			if c.DataAtom == atom.Dd || c.DataAtom == atom.Br {
				b.WriteByte(' ')
			}
			w.declaration(b, c)
		}
	}
}

// elsewhere are the classes of links next to a declaration, as in Haddock's pages.
var elsewhere = dom.Set("link selflink")
