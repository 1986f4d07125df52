package content

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// kinds maps the names of callouts in classes, labels and first words to the words
// that are written.
var kinds = map[string]string{
	"note": "Note", "notice": "Note", "info": "Info", "information": "Info", "tip": "Tip", "hint": "Hint",
	"important": "Important", "attention": "Attention", "warning": "Warning", "warn": "Warning", "caution": "Caution",
	"danger": "Danger", "error": "Error", "success": "Success", "example": "Example", "deprecated": "Deprecated",
	"experimental": "Experimental", "remark": "Remark",
}

// asides are the words in an aside's class or role that make it part of the
// text, in addition to the kinds of callouts.
var asides = dom.Set(`admonition callout footnote footnotes endnote endnotes sidenote marginnote annotation`)

// names returns the words of an element's classes and role: "starlight-aside--tip"
// has three.
func names(n *html.Node) []string {
	return strings.FieldsFunc(strings.ToLower(dom.Attr(n, "class")+" "+dom.Attr(n, "role")), func(r rune) bool { return !unicode.IsLetter(r) })
}

// belongs reports whether an aside is part of the text around it: a callout or
// a note, and not part of the site's frame.
func belongs(aside *html.Node) bool {
	for _, word := range names(aside) {
		if asides[word] || kinds[word] != "" {
			return true
		}
	}
	return kinds[strings.ToLower(strings.TrimSpace(dom.Attr(aside, "aria-label")))] != ""
}

// callout reports whether an element is a callout. kind is the word to write before its
// text, "" where the text begins with it.
func (w *writer) callout(n *html.Node) (kind string, is bool) {
	if n.DataAtom != atom.Aside && n.DataAtom != atom.Div && n.DataAtom != atom.Section && n.DataAtom != atom.Blockquote {
		return "", false
	}
	kind = kinds[strings.ToLower(strings.TrimSpace(dom.Attr(n, "aria-label")))]
	is = n.DataAtom == atom.Aside || dom.Attr(n, "role") == "note" || n.DataAtom == atom.Div && dom.HasClass(n, notes)
	for _, word := range names(n) {
		is = is || callouts[word]
		if kind == "" {
			kind = kinds[word]
		}
	}
	if !is || kind == "" && !dom.HasClass(n, callouts) {
		return "", false
	}
	switch title, text := w.begins(n); {
	case text == "":
		kind = ""
	case kinds[strings.ToLower(strings.Trim(text, " :：!"))] != "": // a text of its own
		if kind = ""; title != nil {
			w.drop(title)
			kind = kinds[strings.ToLower(strings.Trim(text, " :：!"))]
		}
	case tellsKind(text):
		kind = ""
	}
	return kind, true
}

// tellsKind reports whether a text begins with the kind of a callout and a colon.
func tellsKind(text string) bool {
	word, _, colon := strings.Cut(strings.Replace(text, "：", ":", 1), ":")
	return colon && kinds[strings.ToLower(strings.TrimSpace(word))] != ""
}

// callouts are the words in a class that make an element a callout, notes the classes
// that do so alone.
var (
	callouts = dom.Set(`admonition admonitionblock alert callout`)
	notes    = dom.Set(`attention caution danger hint important note tip warning`)
	icons    = dom.Set(`icon`)
)

// titlesCallout reports whether a heading is the title of the callout that it is in:
// nothing is before it there.
func (w *writer) titlesCallout(h *html.Node) bool {
	for n := h; n != nil; n = n.Parent {
		if _, is := w.callout(n); is {
			return true
		}
		for p := n.PrevSibling; p != nil; p = p.PrevSibling {
			if p.Type == html.TextNode && hasWords(p.Data) || p.Type == html.ElementNode && !w.clutter.drops(p) && hasWords(line(p)) {
				return false
			}
		}
	}
	return false
}

// kind writes the kind of a callout.
func (w *writer) kind(kind string) {
	w.block()
	w.begin('`')
	w.out, w.fresh = append(w.out, "**"+kind+":**"...), false
	w.block()
}

// labelled writes the title of a callout that programs are to skip because it is the callout's
// label too, unless that is a kind.
func (w *writer) labelled(n *html.Node) {
	label := strings.TrimSpace(dom.Attr(n, "aria-label"))
	if label == "" || kinds[strings.ToLower(label)] != "" {
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if dom.Attr(c, "aria-hidden") == "true" && line(c) == label {
			w.block()
			w.marked(c, "**")
			w.block()
		}
	}
}

// icon returns the kind that the first cell of an AsciiDoc callout shows, "" for none.
func icon(cell *html.Node) string {
	text := line(cell)
	for c := range cell.Descendants() {
		if c.DataAtom == atom.Img {
			text = dom.Attr(c, "alt")
		}
	}
	return kinds[strings.ToLower(text)]
}

// titles are the elements that may be the title of a callout and nothing more. Headings are others, see titlesCallout.
var titles = []atom.Atom{atom.P, atom.Div, atom.Summary, atom.Td}

// begins returns the first text of an element that is written, and the block that has only this text.
func (w *writer) begins(n *html.Node) (title *html.Node, text string) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && hasWords(c.Data):
			return nil, strings.Join(strings.FieldsFunc(c.Data, space), " ")
		case c.Type == html.ElementNode && !w.clutter.drops(c):
			if title, text = w.begins(c); text == "" {
				continue
			}
			if title == nil && slices.Contains(titles, c.DataAtom) && line(c) == text {
				title = c
			}
			return title, text
		}
	}
	return nil, ""
}

// drop leaves an element out.
func (w *writer) drop(n *html.Node) {
	if w.dropped == nil {
		w.dropped = map[*html.Node]bool{}
	}
	w.dropped[n] = true
}

// unraised are superscripts with the same meaning as ordinary text.
var unraised = dom.Set(`st nd rd th er re ère ème tm sm`)

// superOrSubscript writes mark and the text, in parentheses unless it is one word: 10⁶ is not 106. A reference to a footnote is its sign
// in brackets.
func (w *writer) superOrSubscript(n *html.Node, mark byte) {
	text := line(n)
	switch {
	case mark == '^' && refers(n) && len(text) <= 12:
		w.text("[" + strings.Trim(text, "[]") + "]")
	case !hasWords(text), w.fresh || w.lead != "", mark == '^' && unraised[strings.ToLower(text)], len(text) > 40:
		w.children(n)
	default:
		w.begin('`')
		w.out, w.fresh = append(w.out, mark), false
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			text = "(" + text + ")"
		}
		w.text(text)
	}
}

// refers reports whether a superscript is, contains or is in a link to a place in the page.
func refers(n *html.Node) bool {
	isRef := func(n *html.Node) bool { return n.DataAtom == atom.A && strings.HasPrefix(dom.Attr(n, "href"), "#") }
	return n.Parent != nil && isRef(n.Parent) || dom.Any(n, isRef)
}
