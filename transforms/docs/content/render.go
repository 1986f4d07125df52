package content

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// writer turns a tree into Markdown in one walk.
type writer struct {
	markdown
	clutter clutter
	bounded bool                    // the root is the content, so a header in it is not the site's
	framing map[*html.Node]struct{} // elements of the site's frame, found where the root is a guess
	labels  map[*html.Node]string   // of the panels of tabs
	dropped map[*html.Node]bool     // what is written in another way
	buttons bool                    // all words of the heading are in buttons
	depth   int                     // of the last heading that is not in a description
	// declared is the depth of the last declaration's heading: those in its description are below it.
	declared int
	notes    int // the callouts around the current place
	// kindTold says that the kind of the last callout is written.
	kindTold  bool
	base      *url.URL // of links, nil where their text alone is written
	linkBytes int      // how many bytes of links' targets may still be written
	// introduced says that all paragraphs below the heading introduce the page.
	introduced bool
}

// children renders what is below n.
func (w *writer) children(n *html.Node) { below(n, w.text, w.element) }

// below passes the texts and the elements that are directly below n, in their order.
func below(n *html.Node, text func(string), element func(*html.Node)) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			text(c.Data)
		case html.ElementNode:
			element(c)
		}
	}
}

// element renders one element and what is in it.
func (w *writer) element(n *html.Node) {
	if isTeX(n) {
		w.inline(line(n))
		return
	}
	if w.tabs(n) || w.clutter.drops(n) || w.dropped[n] || w.aboutPage(n) || namesLanguage(n) {
		return
	}
	if _, ok := w.framing[n]; ok {
		return
	}
	kind, is := w.callout(n)
	if kind != "" {
		w.kind(kind)
	}
	if is {
		w.kindTold = kind != ""
		w.labelled(n)
		w.notes++
	}
	w.label(n)
	w.byName(n)
	if is {
		w.notes--
	}
}

// byName renders an element by its name.
func (w *writer) byName(n *html.Node) {
	switch n.DataAtom {
	case atom.Header:
		w.header(n)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.title(n, int(n.Data[1]-'0'))
	case atom.Pre, atom.Listing, atom.Xmp:
		w.pre(n)
	case atom.Table:
		w.table(n)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		w.list(n)
	case atom.Blockquote:
		w.nested(n, level{first: "> ", rest: "> "})
	case atom.Hr:
		w.rule()
	case atom.Dl:
		w.definitions(n)
	case atom.Address, atom.Article, atom.Aside, atom.Body, atom.Center, atom.Dd, atom.Details, atom.Div, atom.Dt,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Form, atom.Hgroup, atom.Legend, atom.Li, atom.Main,
		atom.Optgroup, atom.Option, atom.P, atom.Search, atom.Section, atom.Summary,
		atom.Caption, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		w.container(n)
	default:
		w.phrase(n)
	}
}

// container renders an element that is a block and has no mark of its own.
func (w *writer) container(n *html.Node) {
	if dom.Attr(n, "role") == "heading" {
		depth, err := strconv.Atoi(dom.Attr(n, "aria-level"))
		if err != nil || depth < 1 || depth > 6 {
			depth = 2 // WAI-ARIA's default
		}
		w.title(n, depth)
		return
	}
	if n.DataAtom == atom.Div && dom.HasClass(n, pageTitle) && n.Parent != nil && dom.HasClass(n.Parent, titleArea) {
		w.title(n, 1)
		return
	}
	if n.DataAtom == atom.Div && dom.HasClass(n, listings) && !w.cell && !w.heading {
		w.pre(n)
		return
	}
	if declares(n) {
		w.signature(n)
		return
	}
	w.block()
	w.children(n)
	w.block()
	if first := after(&html.Node{NextSibling: n.FirstChild}); first != nil && first.DataAtom != atom.Dt && declares(first) {
		w.closes(n)
	}
}

// In Doxygen's pages the title is no heading element, and code is lines of its own.
var (
	titleArea = dom.Set("headertitle")
	pageTitle = dom.Set("title")
	listings  = dom.Set("fragment")
)

// phrase renders an element within a line. Only the text of a link is kept.
func (w *writer) phrase(n *html.Node) {
	switch n.DataAtom {
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		w.code(n)
	case atom.Strong, atom.B:
		w.marked(n, "**")
	case atom.Em, atom.I:
		w.marked(n, "*")
	case atom.Del, atom.S, atom.Strike:
		w.marked(n, "~~")
	case atom.Img:
		w.image(n)
	case atom.Sup:
		w.superOrSubscript(n, '^')
	case atom.Sub:
		w.superOrSubscript(n, '_')
	case atom.Br:
		w.lineBreak()
	case atom.A:
		if !permalink(n) && !dom.HasClass(n, sources) && (w.heading || w.cell || !isControl(n)) {
			w.link(n)
		}
	case atom.Button:
		w.button(n)
	case atom.Math:
		w.inline(formula(n))
	case atom.Span:
		if isDrawn(n) {
			w.inline(formula(n))
			return
		}
		w.children(n)
	case atom.Label:
		if opensNext(n) {
			w.block()
			w.marked(n, "**")
			w.block()
			return
		}
		w.space = w.space || before(n) != nil && before(n).DataAtom == atom.Label // in a row of tabs or options
		w.children(n)
	case atom.Q:
		w.text("“")
		w.children(n)
		w.text("”")
	default:
		w.children(n)
	}
}

// isScript reports whether a link runs a script.
func isScript(a *html.Node) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(dom.Attr(a, "href"))), "javascript:")
}

// isControl reports whether a link runs a script and is a control of the page: it has no block, and there is no text around it.
func isControl(a *html.Node) bool {
	if !isScript(a) || blocks(a) > 1 || headed(a) {
		return false
	}
	for n := a; n != nil; n = n.Parent {
		switch n.DataAtom {
		case atom.A, atom.Span, atom.Code, atom.B, atom.Strong, atom.Em, atom.I, atom.Small:
		case atom.Dt, atom.Summary, atom.Figcaption, atom.Caption:
			return n.DataAtom == atom.Caption
		default:
			return true
		}
		for _, s := range []*html.Node{n.PrevSibling, n.NextSibling} {
			if s != nil && s.Type == html.TextNode && hasWords(s.Data) {
				return false
			}
		}
	}
	return true
}

// called matches an operation of an API: its method and its path.
var called = regexp.MustCompile(`(?i)^(get|post|put|patch|delete|head|options|trace|query)\s*((?:/|https?:)\S*)$`)

// button renders what a button says where that is content: what it opens, and in Redoc's pages the operation, the
// responses and the fields.
func (w *writer) button(n *html.Node) {
	if m := called.FindStringSubmatch(line(n)); m != nil {
		w.inline(strings.ToUpper(m[1]) + " " + m[2])
		return
	}
	alone := w.cell && inCell(n) && hasWords(line(n)) && line(n) == line(cellOf(n))
	if alone || n.Parent != nil && n.Parent.DataAtom == atom.Summary || w.heading && w.buttons || dom.Holds(n, atom.P) {
		w.children(n)
	}
}

// task returns the box of an item of a list of tasks, "" for another item.
func task(li *html.Node) string {
	for n := range li.Descendants() {
		switch {
		case n.Type == html.TextNode && hasWords(n.Data):
			return ""
		case n.DataAtom != atom.Input || dom.Attr(n, "type") != "checkbox":
		case !dom.HasAttr(n, "disabled") && !dom.HasClass(li, tasks):
			return ""
		case dom.HasAttr(n, "checked"):
			return "[x] "
		default:
			return "[ ] "
		}
	}
	return ""
}

var tasks = dom.Set("task-list-item")

// sources is the class of links to the source text of what is documented, as in rustdoc.
var sources = dom.Set("src")

// header keeps only the headings of a header, with the sentences that tell what a heading is
// about, and nothing of the site's own header.
func (w *writer) header(n *html.Node) {
	if !w.bounded {
		scoped := false
		for p := n.Parent; p != nil && !scoped; p = p.Parent {
			scoped = p.DataAtom == atom.Article || p.DataAtom == atom.Section || p.DataAtom == atom.Main
		}
		if !scoped {
			return
		}
	}
	w.headings(n)
}

func (w *writer) headings(n *html.Node) { w.headingsAfter(n, false) }

// introduce writes the page's heading where it stands before the content, with what introduces the page between the two: sentences, and
// the paragraphs of a header next to the content.
func (w *writer) introduce(h1, content *html.Node) {
	top := h1
	for top.Parent != nil && !contains(top.Parent, content) {
		top = top.Parent
	}
	w.introduced = top.DataAtom == atom.Header && top.Parent != nil && top.Parent.DataAtom != atom.Body
	if top == h1 {
		w.element(h1)
	} else if dom.Any(top, func(n *html.Node) bool { return n.DataAtom == atom.Header }) || top.DataAtom == atom.Header {
		w.headings(top)
	} else {
		w.element(h1)
	}
	w.introduced = false
	for n := top.NextSibling; n != nil && n != content && !contains(n, content); n = n.NextSibling {
		if n.DataAtom == atom.P && sentence.MatchString(line(n)) {
			w.element(n)
		}
	}
}

// headingsAfter reports whether there is a heading in n, or was one before.
func (w *writer) headingsAfter(n *html.Node, headed bool) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode || w.clutter.drops(c):
		case dom.IsHeading(c):
			w.element(c)
			headed = true
		case c.DataAtom == atom.P && headed && (w.introduced || sentence.MatchString(line(c))):
			w.element(c)
		default:
			headed = w.headingsAfter(c, headed)
		}
	}
	return headed
}

// sentence matches text that ends as a sentence.
var sentence = regexp.MustCompile(`\S\s.*[.!?:。！？：]$`)

func (w *writer) title(n *html.Node, depth int) {
	if w.cell || w.heading {
		w.space = true
		w.children(n)
		w.space = true
		return
	}
	w.block()
	if w.notes > 0 && w.titlesCallout(n) { // it is not a heading of the page
		if kind := kinds[strings.ToLower(strings.Trim(line(n), ": "))]; kind != "" {
			w.kind(kind)
			return
		}
		w.marked(n, "**")
		w.block()
		return
	}
	if declaredAround(n) > 0 {
		depth = min(max(depth, w.declared+1), 6)
	} else {
		w.depth = depth
	}
	w.lead, w.anchor, w.heading = "######"[:depth]+" ", anchor(n), true
	w.buttons = !saysMore(n) // the heading of an accordion is a button
	w.children(n)
	w.suspend()
	w.lead, w.heading = "", false
	w.block()
}

// saysMore reports whether an element has words outside of buttons.
func saysMore(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode && hasWords(c.Data) || c.Type == html.ElementNode && c.DataAtom != atom.Button && saysMore(c) {
			return true
		}
	}
	return false
}

// nested renders a quote or list item.
func (w *writer) nested(n *html.Node, l level) {
	tight := w.tight
	w.block()
	w.tight = false
	depth := len(w.levels)
	w.push(l)
	w.children(n)
	w.suspend()
	w.levels = w.levels[:depth]
	w.tight = tight
	w.block()
}

// maxLevels is the maximum depth of marks for lists and quotes. Each line has the
// marks of all levels around it, so without a limit a hostile page could grow a
// thousandfold. The page's size bounds all marks together (markBytes).
const maxLevels = 16

func (w *markdown) push(l level) {
	if len(w.levels) < maxLevels {
		w.levels = append(w.levels, l)
	}
}

func (w *writer) list(n *html.Node) {
	outer, number := w.tight, 1
	if start, err := strconv.Atoi(dom.Attr(n, "start")); err == nil && start >= 0 && start < 1e9 {
		number = start
	}
	w.block()
	w.newList = w.gap == blankLine
	tight := isTight(n)
	first := true
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode {
			w.text(c.Data)
			continue
		}
		if c.Type != html.ElementNode || w.clutter.drops(c) {
			continue
		}
		marker := "- "
		if n.DataAtom == atom.Ol {
			marker = strconv.Itoa(number) + ". "
		}
		l := level{first: marker + task(c), rest: strings.Repeat(" ", len(marker))}
		if c.DataAtom == atom.Ul || c.DataAtom == atom.Ol {
			l.first = l.rest // a list directly in a list belongs to the item before it
		} else {
			number++
		}
		w.tight = tight
		if !first && !w.cell && !w.heading {
			w.block()
		}
		first = false
		if w.cell || w.heading {
			w.space = true
			w.children(c)
			continue
		}
		depth := len(w.levels)
		w.push(l)
		if c.DataAtom == atom.Li {
			w.children(c)
		} else {
			w.element(c)
		}
		w.suspend()
		w.levels = w.levels[:depth]
	}
	w.tight = outer
	w.block()
}

// isTight reports whether each item of a list has at most one block, not counting the
// lists in it.
func isTight(list *html.Node) bool {
	for li := list.FirstChild; li != nil; li = li.NextSibling {
		if li.Type == html.ElementNode && blocks(li) > 1 {
			return false
		}
	}
	return true
}

// blocks counts the blocks in n, lists aside: block elements, and runs of inline
// content.
func blocks(n *html.Node) int {
	count, run := 0, false
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.TrimFunc(c.Data, space) == "", c.Type == html.CommentNode:
			continue
		case c.Type == html.ElementNode:
			switch c.DataAtom {
			case atom.Ul, atom.Ol:
				run = false
				continue
			case atom.Div, atom.Section:
				count += blocks(c)
				run = false
				continue
			case atom.Aside, atom.P, atom.Pre, atom.Table, atom.Blockquote, atom.Dl, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Figure, atom.Details, atom.Hr:
				count++
				run = false
				continue
			case atom.A, atom.Span:
				if n := blocks(c); n > 1 {
					count += n
					run = false
					continue
				}
			}
		}
		if !run {
			count++
			run = true
		}
	}
	return count
}

func (w *writer) marked(n *html.Node, text string) {
	for _, m := range w.marks {
		if m.text == text {
			w.children(n)
			return
		}
	}
	w.marks = append(w.marks, mark{text: text})
	w.children(n)
	w.end()
}

func (w *writer) image(n *html.Node) {
	alt := dom.Attr(n, "alt")
	if strings.TrimFunc(alt, space) == "" || alt == "logo" {
		return
	}
	w.begin('[')
	w.out = append(w.out, "[이미지:"...)
	w.fresh, w.space = false, true
	w.text(alt)
	w.out, w.space = append(w.out, ']'), false
}

func (w *markdown) lineBreak() {
	switch {
	case w.cell || w.heading:
		w.space = true
	case len(w.out) == 0 || w.gap > hardBreak || w.lead != "":
	case w.gap == hardBreak && !w.tight:
		w.block()
	default:
		w.gap, w.space = hardBreak, false
	}
}

func (w *writer) rule() {
	if w.cell || w.heading {
		return
	}
	w.block()
	w.writePending()
	w.out = append(w.out, "---"...)
	w.fresh = false
	w.block()
}

// permalink reports whether a link is the anchor that site generators put next to a
// heading: it points to a place in a page and shows a symbol or nothing.
func permalink(n *html.Node) bool {
	return strings.Contains(dom.Attr(n, "href"), "#") && !dom.Any(n, func(c *html.Node) bool {
		return c.Type == html.TextNode && hasWords(c.Data) || c.DataAtom == atom.Img || c.DataAtom == atom.Code
	})
}
