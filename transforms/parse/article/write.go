package article

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// textLine is a line of the text and the kind of its block.
type textLine struct {
	text    string
	heading bool
	item    bool // of a list
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
	w := writer{r: r, seen: map[string]bool{}, lists: map[*html.Node]listWidths{}}
	for _, n := range roots {
		w.block(n)
		w.flush(false)
	}
	return w.lines
}

// text returns the lines of write as one text.
func (r *reader) text(roots []*html.Node) string { return joinLines(r.write(roots)) }

// trim removes lines that are not part of the text: dates, names and labels before
// the first paragraph, headings and labels after the last one, and everything after
// an announcement of other articles.
func (r *reader) trim(lines []textLine) []textLine {
	sum := 0
	for _, l := range lines {
		sum += len(l.text)
	}
	before := 0
	for i, l := range lines {
		if before*10 >= sum*8 && len(l.text) < 80 && others.MatchString(l.text) {
			lines = lines[:i]
			break
		}
		before += len(l.text)
	}
	begin := 0
	for i, l := range lines {
		if i > 8 {
			break
		}
		if paragraph(l) || l.item {
			begin = i
			break
		}
	}
	kept := lines[begin:]
	for len(kept) > 1 {
		last := kept[len(kept)-1]
		if last.item || !last.heading && (paragraph(last) || sentence(last.text) && width(last.text) >= 12) {
			break
		}
		kept = kept[:len(kept)-1]
	}
	out := make([]textLine, 0, len(kept))
	for i, l := range kept {
		if l.heading && i+1 < len(kept) && kept[i+1].heading && others.MatchString(l.text) {
			continue
		}
		out = append(out, l)
	}
	return out
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
	seen      map[string]bool
	lists     map[*html.Node]listWidths
	pending   strings.Builder
	links     int // width of the text of links in pending
	// inLink says that a link without blocks is open. All of it is inline text:
	// whatever elements are in it, pending does not end before the link.
	inLink bool
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
			if w.inLink { // its text is counted with that of the outer link
				w.block(n)
				return
			}
			w.inLink = true
			before := w.pending.Len()
			w.block(n)
			w.links += width(w.pending.String()[before:])
			w.inLink = false
			return
		}
	case atom.Article:
		if !w.r.bySelector && len(w.lines) > 0 && w.r.proseWidth[n] < 1200 { // the card of another article
			w.flush(false)
			return
		}
	case atom.Ul, atom.Ol, atom.Dl, atom.Table:
		if !w.r.bySelector && w.linkList(n) {
			w.flush(false)
			return
		}
		w.flush(false)
		w.listDepth++
		w.block(n)
		w.flush(false)
		w.listDepth--
		return
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.flush(false)
		w.block(n)
		w.flush(true)
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
		w.block(n)
		w.flush(false)
	}
}

// linkList reports whether a list shows mostly links.
func (w *writer) linkList(n *html.Node) bool {
	l := w.measure(n)
	return l.all > 0 && l.free*10 < l.all*4
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
	case atom.Ul, atom.Ol, atom.Dl, atom.Table:
		w.lists[n] = l
	}
	return l
}

// breaks are two or more line breaks: they end a paragraph.
var breaks = regexp.MustCompile(`\v(\s*\v)+`)

// flush ends a block: it appends the pending text to the lines.
func (w *writer) flush(heading bool) {
	s := w.pending.String()
	links := w.links
	w.pending.Reset()
	w.links = 0
	parts := []string{s}
	if strings.IndexByte(s, '\v') >= 0 {
		parts = breaks.Split(s, -1)
	}
	for _, l := range parts {
		if strings.ContainsFunc(l, beyondASCII) {
			l = strings.Map(dropInvisible, l)
		}
		l = collapse(l)
		if l == "" {
			continue
		}
		if !w.r.bySelector && w.drops(l, heading, links) {
			continue
		}
		w.lines = append(w.lines, textLine{l, heading, w.listDepth > 0})
	}
}

// drops reports whether a line of a block is no text of the article: mostly links,
// without words, the headline, or repeated. links is the width of the block's links.
func (w *writer) drops(line string, heading bool, links int) bool {
	n := width(line)
	switch {
	case links*10 > n*7 && (n < 200 || links*10 > n*9): // a line of links
		return true
	case heading && links*10 > n*5:
		return true
	case !strings.ContainsFunc(line, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }):
		return true
	case w.r.title != "" && len(w.lines) < 3 && fold(line) == w.r.title:
		return true
	}
	if n > 30 && (heading || links > 0) { // teasers are often repeated
		if w.seen[line] {
			return true
		}
		w.seen[line] = true
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
