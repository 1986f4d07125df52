package content

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
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
var asides = words(`admonition callout footnote footnotes endnote endnotes sidenote marginnote annotation`)

// names returns the words of an element's classes and role: "starlight-aside--tip"
// has three.
func names(n *html.Node) []string {
	return strings.FieldsFunc(strings.ToLower(attr(n, "class")+" "+attr(n, "role")), func(r rune) bool { return !unicode.IsLetter(r) })
}

// belongs reports whether an aside is part of the text around it: a callout or
// a note, and not part of the site's frame.
func belongs(aside *html.Node) bool {
	for _, word := range names(aside) {
		if asides[word] || kinds[word] != "" {
			return true
		}
	}
	return kinds[strings.ToLower(strings.TrimSpace(attr(aside, "aria-label")))] != ""
}

// callout returns the kind of a callout whose text does not begin with its kind; ""
// for all other elements.
func (w *writer) callout(n *html.Node) string {
	if n.DataAtom != atom.Aside && n.DataAtom != atom.Div && n.DataAtom != atom.Section && n.DataAtom != atom.Blockquote {
		return ""
	}
	kind := kinds[strings.ToLower(strings.TrimSpace(attr(n, "aria-label")))]
	is := n.DataAtom == atom.Aside || attr(n, "role") == "note"
	for _, word := range names(n) {
		is = is || word == "admonition" || word == "callout"
		if kind == "" {
			kind = kinds[word]
		}
	}
	if !is || kind == "" {
		return ""
	}
	first, some := w.firstWord(n)
	if !some || kinds[strings.ToLower(first)] != "" {
		return ""
	}
	return kind
}

// firstWord returns the first word of an element's text that is written.
func (w *writer) firstWord(n *html.Node) (word string, some bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			for word := range strings.FieldsFuncSeq(c.Data, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				return word, true
			}
		case c.Type == html.ElementNode && !w.clutter.drops(c):
			if word, some := w.firstWord(c); some {
				return word, true
			}
		}
	}
	return "", false
}

// unraised are superscripts with the same meaning as ordinary text.
var unraised = words(`st nd rd th er re ère ème tm sm`)

// superOrSubscript writes a superscript or subscript so that 10⁶ does not become
// 106: it writes mark and then the text, in parentheses unless it is one word. A
// reference to a footnote is written as its sign in brackets.
func (w *writer) superOrSubscript(n *html.Node, mark byte) {
	text := line(n)
	switch {
	case mark == '^' && refers(n) && len(text) <= 12:
		w.text("[" + strings.Trim(text, "[]") + "]")
	case !hasWords(text), w.fresh || w.lead != "", mark == '^' && unraised[strings.ToLower(text)], len(text) > 40:
		w.children(n)
	default:
		w.begin()
		w.out, w.fresh = append(w.out, mark), false
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			text = "(" + text + ")"
		}
		w.text(text)
	}
}

// refers reports whether a superscript is, contains or is in a link to a place in the page.
func refers(n *html.Node) bool {
	isRef := func(n *html.Node) bool { return n.DataAtom == atom.A && strings.HasPrefix(attr(n, "href"), "#") }
	if n.Parent != nil && isRef(n.Parent) {
		return true
	}
	for c := range n.Descendants() {
		if isRef(c) {
			return true
		}
	}
	return false
}

// signature writes a term that declares a function, class or option in the markup
// of a site generator as code on one line.
func (w *writer) signature(n *html.Node) {
	var b strings.Builder
	w.declaration(&b, n)
	w.block()
	w.inline(strings.Join(strings.Fields(codeText.Replace(b.String())), " "))
	w.block()
}

func (w *writer) declaration(b *strings.Builder, n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.Type != html.ElementNode || w.clutter.drops(c) || c.DataAtom == atom.A && permalink(c):
		default:
			if c.DataAtom == atom.Dd || c.DataAtom == atom.Br {
				b.WriteByte(' ')
			}
			w.declaration(b, c)
		}
	}
}

// declares reports whether a term is a declaration, as Sphinx marks it.
func declares(dt *html.Node) bool {
	for word := range strings.FieldsSeq(attr(dt, "class")) {
		if word == "sig" || word == "sig-object" || word == "signature" {
			return true
		}
	}
	return false
}
