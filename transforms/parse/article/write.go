package article

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// textLine is a line of the text and the kind of its block.
type textLine struct {
	text    string
	heading bool
	item    bool       // of a list
	of      *html.Node // the block that it ends; nil where that does not matter
}

func joinLines(lines []textLine) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return b.String()
}

// write returns the text below roots, a line for each block.
func (r *reader) write(roots []*html.Node) []textLine {
	w := writer{r: r, lists: map[*html.Node]listWidths{}}
	for _, n := range roots {
		w.within(n, false)
	}
	return w.lines
}

// text returns the lines of write as one text.
func (r *reader) text(roots []*html.Node) string { return joinLines(r.write(roots)) }

// trim removes lines that are not part of the text: dates, names and labels before
// the first paragraph or its subheading, headings and labels after the last one, and
// announcements of other articles, with everything after one at the end.
func (r *reader) trim(lines []textLine) []textLine {
	sum := 0
	for _, l := range lines {
		sum += len(l.text)
	}
	before := 0
	text := make([]textLine, 0, len(lines))
	for i, l := range lines {
		if len(l.text) < 80 && announcesOthers(l.text) {
			if before > 0 && (before*10 >= sum*8 || !l.item && ends(lines, i)) {
				break
			}
			continue
		}
		before += len(l.text)
		text = append(text, l)
	}
	lines = text
	if !slices.ContainsFunc(lines, func(l textLine) bool { return paragraph(l) || l.item }) { // a poem, or nothing
		return lines
	}
	const most = 8 // lines before the text
	begin := max(0, slices.IndexFunc(lines[:min(most, len(lines))], func(l textLine) bool { return paragraph(l) || l.item }))
	if begin > 0 && r.subheading(lines[begin-1], lines[begin:]) {
		begin--
	}
	for begin > 0 && begin < len(lines) && alikeParagraphs(lines[begin-1], lines[begin]) && !strings.ContainsAny(lines[begin-1].text, "0123456789") { // short ones, but no names and days
		begin--
	}
	var kept []textLine
	for _, l := range lines[:begin] {
		if introduces(l) || l.heading && r.explains(l) {
			kept = append(kept, l)
		}
	}
	kept = append(kept, lines[begin:]...)
	for len(kept) > 1 {
		last := kept[len(kept)-1]
		if len(kept) > 3 && asksReaders(last.text) {
			kept = kept[:len(kept)-1]
			continue
		}
		if last.item || introduces(last) || !last.heading && (paragraph(last) || sentence(last.text) && width(last.text) >= 12 || closes(last, kept[:len(kept)-1]) || quoted(last)) {
			break
		}
		kept = kept[:len(kept)-1]
	}
	out := make([]textLine, 0, len(kept))
	for _, l := range kept {
		if !onlyTime(l) {
			out = append(out, l)
		}
	}
	return out
}

// ends reports whether the text ends before line i: there are paragraphs of one element, and
// none of that element's after it. Where the line is in an element like one that had paragraphs,
// it is the heading of one of several parts.
func ends(lines []textLine, i int) bool {
	const text = 3 // paragraphs
	of := map[*html.Node]int{}
	var parent *html.Node
	for _, l := range lines[:i] {
		if l.of != nil && paragraph(l) {
			of[l.of.Parent]++
			if parent == nil || of[l.of.Parent] > of[parent] {
				parent = l.of.Parent
			}
		}
	}
	if l := lines[i]; l.of != nil {
		for p := range of {
			if p != l.of.Parent && alike(p, l.of.Parent) {
				return false
			}
		}
	}
	return parent != nil && of[parent] >= text && !slices.ContainsFunc(lines[i:], func(l textLine) bool { return l.of != nil && dom.Below(l.of, parent) })
}

// alike reports whether two elements have the same name and the same classes.
func alike(a, b *html.Node) bool {
	return a != nil && a.DataAtom == b.DataAtom && dom.Attr(a, "class") != "" && dom.Attr(a, "class") == dom.Attr(b, "class")
}

// explains reports whether a heading below the headline says more than that.
func (r *reader) explains(l textLine) bool {
	if width(l.text) < 50 || r.title == "" || l.of == nil || l.of.DataAtom == atom.H1 {
		return false
	}
	same, all := 0, 0
	for word := range strings.FieldsSeq(l.text) {
		if f := fold(word); len(f) > 3 {
			all++
			if strings.Contains(r.title, f) {
				same++
			}
		}
	}
	return all >= 4 && same*2 < all
}

// introduces reports whether a heading is a paragraph: its sentence is too long for a headline.
func introduces(l textLine) bool {
	return l.heading && width(l.text) >= 80 && sentence(l.text)
}

// subheading reports whether a heading before the text is that of its first part: the first of several like it, or right before a paragraph.
func (r *reader) subheading(l textLine, after []textLine) bool {
	if !l.heading || l.of == nil {
		return false
	}
	if a := after[0].of; a != nil && l.of.DataAtom != atom.H1 && adjacent(l.of, true) == a && width(l.text) >= 12 && (len(r.title) < 12 || !strings.Contains(fold(l.text), r.title)) {
		return true
	}
	for _, a := range after {
		if a.heading && a.of != nil && a.of.DataAtom == l.of.DataAtom && a.of.Parent == l.of.Parent {
			return true
		}
	}
	return false
}

// closes reports whether a short line is the last paragraph of several like it, and neither initials
// nor a credit: a label and names.
func closes(l textLine, before []textLine) bool {
	if l.text[0] == '(' || !strings.HasPrefix(l.text, "http") && strings.ContainsAny(l.text[:len(l.text)*2/3], ":：") {
		return false
	}
	for i := len(before) - 1; i >= 0 && alikeParagraphs(l, before[i]); i-- {
		if paragraph(before[i]) {
			return true
		}
	}
	return false
}

// quoted reports whether a line is a quotation of the text's own; those of other sites have classes.
func quoted(l textLine) bool {
	for n := l.of; n != nil; n = n.Parent {
		if n.DataAtom == atom.Blockquote {
			return dom.Attr(n, "class") == ""
		}
		if n.DataAtom != atom.P {
			break
		}
	}
	return false
}

// alikeParagraphs reports whether two lines are paragraphs of one class next to each other.
func alikeParagraphs(a, b textLine) bool {
	return a.of != nil && b.of != nil && (a.of.DataAtom == atom.P || a.of.DataAtom == atom.Div) && b.of.DataAtom == a.of.DataAtom && a.of.Parent == b.of.Parent && dom.Attr(a.of, "class") == dom.Attr(b.of, "class")
}

// paragraph reports whether a line is prose, by its length or as a sentence.
func paragraph(l textLine) bool {
	n := width(l.text)
	return !l.heading && (n >= 100 || n >= 30 && sentence(l.text))
}

// sentence reports whether a text ends as sentences do.
func sentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’»)]』」 ")
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?…。！？:;।۔؟", last) || strings.HasSuffix(s, "다") // also without its full stop
}

// writer gathers the inline text of a block until the block ends.
type writer struct {
	r         *reader
	lines     []textLine
	listDepth int // number of lists around the current place
	lists     map[*html.Node]listWidths
	pending   strings.Builder
	of        *html.Node // the block of pending
	links     []span     // of links in pending
	// inLink says that a link without blocks is open. All of it is inline text:
	// whatever elements are in it, pending does not end before the link.
	inLink bool
	inData bool // a table is open whose links are names in its rows
}

func (w *writer) block(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			w.pending.WriteString(c.Data)
		case html.ElementNode:
			w.element(c)
		}
	}
}

func (w *writer) element(n *html.Node) {
	if neverText(n) || w.r.isClutter(n) {
		return
	}
	switch n.DataAtom {
	case atom.Br:
		w.pending.WriteByte('\v')
		return
	case atom.A:
		if !w.r.blocks[n] {
			w.link(n)
			return
		}
		if !w.r.bySelector && !w.r.whole && len(w.lines) > 0 && w.linksAway(n) {
			w.flush(false)
			return
		}
	case atom.Article:
		if !w.r.bySelector && !w.r.whole && len(w.lines) > 0 && w.card(n) {
			w.flush(false)
			return
		}
	case atom.Ul, atom.Ol, atom.Dl, atom.Table:
		w.list(n)
		return
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.flush(false)
		w.within(n, true)
		return
	case atom.Td, atom.Th:
		w.pending.WriteByte(' ')
		w.block(n)
		w.pending.WriteByte(' ')
		return
	}
	switch {
	case w.r.inline(n), w.inLink && n.DataAtom == 0:
		w.block(n)
	case w.inLink:
		w.pending.WriteByte(' ')
		w.block(n)
		w.pending.WriteByte(' ')
	default:
		w.flush(false)
		w.within(n, false)
	}
}

// link reads a link within a line.
func (w *writer) link(n *html.Node) {
	if w.inLink { // its text is counted with that of the outer link
		w.block(n)
		return
	}
	w.inLink = true
	from := w.pending.Len()
	w.block(n)
	w.inLink = false
	if strings.HasPrefix(dom.Attr(n, "href"), "#") && w.of != nil && dom.IsHeading(w.of) {
		return // the heading's own address
	}
	w.links = append(w.links, span{from, w.pending.Len()})
}

// list reads a list or a table.
func (w *writer) list(n *html.Node) {
	links := !w.r.bySelector && !w.r.whole && w.linkList(n)
	w.flush(false)
	if links && !belongs(n) {
		return
	}
	before := w.inData
	w.inData = before || links || n.DataAtom == atom.Table && isData(n) || mostlyPlain(n)
	w.listDepth++
	w.block(n)
	w.flush(false)
	w.listDepth--
	w.inData = before
}

// within writes a block of its own.
func (w *writer) within(n *html.Node, heading bool) {
	around := w.of
	w.of = n
	w.block(n)
	w.flush(heading)
	w.of = around
}

// linkList reports whether a list shows mostly links.
func (w *writer) linkList(n *html.Node) bool {
	l := w.measure(n)
	return l.all > 0 && l.free*10 < l.all*4 && (n.DataAtom != atom.Table || !isData(n))
}

// belongs reports whether a list of links is part of the text around it: a sentence with a colon or a heading introduces
// its items, or a paragraph does, and the text continues after it.
func belongs(n *html.Node) bool {
	const items, least, introduction = 3, 80, 25 // items, widths of a paragraph and of what introduces a list
	count := 0
	for c := range n.ChildNodes() {
		if c.DataAtom == atom.Li {
			count++
		}
	}
	for n.Parent != nil && n.Parent.DataAtom == atom.Div && adjacent(n, false) == nil && adjacent(n, true) == nil {
		n = n.Parent
	}
	before, after := adjacent(n, false), adjacent(n, true)
	if count < items-1 || before == nil || announcesOthers(line(before)) {
		return false
	}
	if before.DataAtom == atom.P && prose(before) >= introduction && strings.HasSuffix(line(before), ":") {
		return true
	}
	if after != nil && dom.IsHeading(after) && !announcesOthers(line(after)) {
		after = adjacent(after, true)
	}
	return count >= items && (dom.IsHeading(before) || isProse(before, least)) && isProse(after, least)
}

// isProse reports whether an element is a paragraph of at least a width that announces nothing.
func isProse(n *html.Node, least int) bool {
	return n != nil && n.DataAtom == atom.P && prose(n) >= least && !announcesOthers(line(n))
}

// adjacent returns the element before or after n with the same parent, nil for none, or for text that is in no element.
func adjacent(n *html.Node, after bool) *html.Node {
	for {
		if after {
			n = n.NextSibling
		} else {
			n = n.PrevSibling
		}
		if n == nil || n.Type == html.ElementNode {
			return n
		}
		if strings.TrimSpace(n.Data) != "" && n.Type == html.TextNode {
			return nil
		}
	}
}

// mostlyPlain reports whether most items of a list have no link: the others are of the same kind, as the ingredients of a recipe are.
func mostlyPlain(list *html.Node) bool {
	plain, linked := 0, 0
	for c := range list.ChildNodes() {
		switch {
		case c.DataAtom != atom.Li:
		case dom.Holds(c, atom.A):
			linked++
		default:
			plain++
		}
	}
	return plain > 0 && plain >= linked
}

// card reports whether an article element in the text announces another article or is a box
// about this one: it is short, and its heading or much of its text is a link, or its name says so.
func (w *writer) card(n *html.Node) bool {
	if w.r.proseWidth[n] >= 1200 {
		return false
	}
	l := w.measure(n)
	return (l.all < 30 || l.free*10 < l.all*8 || clutterName(dom.Attr(n, "class")) || linkedHeading(n)) && !dom.Holds(n, atom.Article)
}

// linksAway reports whether a link with blocks, such as a heading and a teaser, is to another page. One with
// more text was never closed.
func (w *writer) linksAway(n *html.Node) bool {
	const much = 600 // width
	href := dom.Attr(n, "href")
	return href != "" && href[0] != '#' && w.measure(n).all < much
}

// linkedHeading reports whether the first heading below n, near its beginning, is or has a link.
func linkedHeading(n *html.Node) bool {
	left := 100
	for h := range n.Descendants() {
		if left--; left < 0 {
			break
		}
		switch h.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return dom.Holds(h, atom.A) || dom.Inside(h, atom.A)
		}
	}
	return false
}

// isData reports whether a table has names for its columns, or most of its rows have a cell with text
// without links next to another cell with text: then its links are names, as in a league table, and no menu.
func isData(table *html.Node) bool {
	rows, data, named := 0, 0, false
	var look func(*html.Node)
	look = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Tr:
				rows++
				cells, free, heads := cells(c)
				if cells > 1 && free > 0 {
					data++
				}
				named = named || heads > 1 && heads == cells
			case atom.Thead, atom.Tbody, atom.Tfoot:
				look(c)
			}
		}
	}
	look(table)
	return rows > 1 && (named || data*3 >= rows*2)
}

// cells counts the cells of a row that have text, those of them without links, and those that name columns.
func cells(row *html.Node) (all, free, heads int) {
	for c := row.FirstChild; c != nil; c = c.NextSibling {
		text, linked := false, false
		for d := range c.Descendants() {
			switch {
			case d.DataAtom == atom.A:
				linked = true
			case d.DataAtom == atom.Table: // a layout
				return 0, 0, 0
			case d.Type == html.TextNode && strings.TrimSpace(d.Data) != "":
				text = true
			}
		}
		if text {
			all++
			if c.DataAtom == atom.Th {
				heads++
			}
			if !linked {
				free++
			}
		}
	}
	return all, free, heads
}

// listWidths are the width of all text below an element, and of that outside links.
type listWidths struct{ all, free int }

// measure returns the widths below n. It measures each list once, also one within
// another.
func (w *writer) measure(n *html.Node) (l listWidths) {
	if l, known := w.lists[n]; known {
		return l
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			k := width(c.Data)
			l.all, l.free = l.all+k, l.free+k
		case html.ElementNode:
			below := w.measure(c)
			l.all += below.all
			if c.DataAtom != atom.A && c.DataAtom != atom.Button {
				l.free += below.free
			}
		}
	}
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Article:
		w.lists[n] = l
	}
	return l
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// breaks are two or more line breaks: they end a paragraph.
var breaks = regexp.MustCompile(`\v(\s*\v)+`)

// flush ends a block: it appends the pending text to the lines. Line breaks make several
// paragraphs of it, and each is judged by its own links.
func (w *writer) flush(heading bool) {
	s := w.pending.String()
	links := w.links
	w.pending.Reset()
	w.links = nil
	from := 0
	for from < len(s) {
		to, next := len(s), len(s)
		if strings.IndexByte(s[from:], '\v') >= 0 {
			if at := breaks.FindStringIndex(s[from:]); at != nil {
				to, next = from+at[0], from+at[1]
			}
		}
		linked, several := 0, 0
		for len(links) > 0 && links[0].from < to {
			if links[0].to > from {
				linked += width(s[max(from, links[0].from):min(to, links[0].to)])
				several++
			}
			if links[0].to > to {
				break
			}
			links = links[1:]
		}
		w.line(s[from:to], heading, linked, several > 1)
		from = next
	}
}

// line appends a line of the text. links is the width of its links.
func (w *writer) line(l string, heading bool, links int, several bool) {
	if strings.ContainsFunc(l, beyondASCII) {
		l = strings.Map(dropInvisible, l)
	}
	l = collapse(l)
	if heading && len(w.lines) > 0 && !w.r.bySelector && w.r.title != "" && w.of.DataAtom == atom.H1 && fold(l) == w.r.title {
		w.begin()
	}
	if l == "" || coded(l) || !w.r.bySelector && w.drops(l, heading, links, several) {
		return
	}
	w.lines = append(w.lines, textLine{l, heading, w.listDepth > 0, w.of})
}

// begin drops what is before the headline, unless it is so much that it may be the text.
func (w *writer) begin() {
	const little = 300 // width
	sum := 0
	for _, l := range w.lines {
		sum += width(l.text)
	}
	if sum < little {
		w.lines = w.lines[:0]
	}
}

// drops reports whether a line of a block is no text of the article: mostly links,
// without words, the headline, or repeated. links is the width of its links.
func (w *writer) drops(line string, heading bool, links int, several bool) bool {
	n := width(line)
	switch {
	case !strings.ContainsFunc(line, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }):
		return true
	case len(line) < 2*len(w.r.title) && fold(line) == w.r.title: // short ones only, as fold costs
		return true
	case w.r.whole || heading && w.r.documented:
		return false
	case !w.inData && links*10 > n*7 && !strings.HasPrefix(line, "http") && (n < 60 || several && links*10 > n*9 || !sentence(line)), // a line of links
		heading && links*10 > n*5:
		return !w.linkedPart(line, heading)
	}
	return false
}

// linkedPart reports whether a block that is a link stands in the text: a heading of one of its parts, or a sentence that is
// a paragraph between others.
func (w *writer) linkedPart(line string, heading bool) bool {
	const least, near = 80, 50 // width of a paragraph, elements before a heading
	if w.of == nil || w.of.Parent == nil || !isProse(adjacent(w.of, true), least) {
		return false
	}
	if !heading {
		return w.of.DataAtom == atom.P && strings.HasSuffix(line, ".") && strings.Count(line, " ") >= 4 && isProse(adjacent(w.of, false), least)
	}
	for c, i := adjacent(w.of, false), 0; c != nil && i < near; c, i = adjacent(c, false), i+1 {
		if isProse(c, least) {
			return true
		}
	}
	return false
}

func beyondASCII(c rune) bool { return c >= utf8.RuneSelf }

// dropInvisible removes characters without width; it is for strings.Map.
func dropInvisible(c rune) rune {
	switch c {
	case '\u00ad', '\u200b', '\u200c', '\u200e', '\u200f', '\u2060', '\ufeff':
		return -1
	}
	return c
}

// fold returns only the letters and digits of a text, in lower case, for comparison.
func fold(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, s)
}

// onlyTime reports whether a line is nothing but a time.
func onlyTime(l textLine) bool {
	if l.heading || l.item || width(l.text) >= 30 || strings.Contains(l.text, ": ") || !strings.ContainsAny(l.text, "0123456789") {
		return false
	}
	_, is := ParseTime(l.text, time.UTC)
	return is
}
