package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// block is a heading, a fenced code block, or lines up to an empty one.
type block struct {
	path    []string // the headings above it; for a heading, itself too, as the last
	anchors []string // the fragments of the headings in path, "" for one without
	text    string   // without the empty lines around it
	at      int      // the offset in the Markdown at which its lines begin
	page    int      // on which it begins, from 1; 0 in documents without pages
	tokens  int      // the result of count
	heading bool
	fence   string // for a code block its opening line, else ""
	apart   bool   // what signatures declare ended before it
	// outer are the first lines of the items of lists, and the terms of definitions, that it is in; inner has
	// that of the item that the block is the beginning of, too.
	outer, inner []string
}

// introduces reports whether a block only introduces the next one, such as "The fields are:".
func (b block) introduces() bool {
	text := strings.TrimRight(b.text, "*_~ ")
	return b.fence == "" && (strings.HasSuffix(text, ":") || strings.HasSuffix(text, "："))
}

// scan cuts Markdown into blocks; anchors are the fragments of its headings, in
// order. Headings are ATX headings at the margin, as
// package content writes them.
func scan(markdown string, anchors []string) []block {
	var blocks []block
	var path, above []string
	var depths []int
	var codes []bool // which headings of path are code, as signatures are
	var lines []string
	fence, opening, ends := "", "", false
	begins, next := 0, 0 // the offsets of lines and of the next line
	var around items
	flush := func() {
		if text := strings.Trim(strings.Join(lines, "\n"), "\n"); strings.TrimSpace(text) != "" {
			b := block{path: path, anchors: above, text: text, at: begins, fence: opening, apart: ends}
			around.read(&b)
			blocks = append(blocks, b)
			ends = false
		}
		lines, opening = nil, ""
	}
	for l := range strings.SplitSeq(markdown, "\n") {
		at := next
		next += len(l) + 1
		l = strings.TrimSuffix(l, "\r")
		if fence != "" {
			lines = append(lines, l)
			if closes(l, fence) {
				fence = ""
				flush()
			}
			continue
		}
		if depth, text := headingOf(l); depth > 0 {
			flush()
			for len(depths) > 0 && depths[len(depths)-1] >= depth {
				depths = depths[:len(depths)-1]
			}
			// Blocks share a path, so appending to it must not change theirs.
			path = append(path[:len(depths):len(depths)], text)
			anchor := ""
			if len(anchors) > 0 {
				anchor, anchors = anchors[0], anchors[1:]
			}
			above = append(above[:len(depths):len(depths)], anchor)
			depths, codes, around = append(depths, depth), append(codes[:len(depths)], isCode(l[depth:])), nil
			blocks = append(blocks, block{path: path, anchors: above, text: l, at: at, heading: true})
			continue
		}
		if strings.TrimSpace(l) == "" {
			flush()
			continue
		}
		if l == "---" && len(lines) == 0 { // it ends what signatures declare
			n := len(depths)
			for n > 0 && codes[n-1] && depths[n-1] > 1 {
				n--
			}
			ends = n < len(depths)
			depths, path, above = depths[:n], path[:n:n], above[:n:n]
		}
		if f := opens(l); f != "" {
			// A fence after a list's marker begins the block of that item.
			if strings.HasPrefix(strings.TrimLeft(l, " "), f) {
				flush()
			}
			opening, fence = l, f
		}
		if len(lines) == 0 {
			begins = at
		}
		lines = append(lines, l)
	}
	flush()
	return blocks
}

// items are the items of lists and the definitions around a place of Markdown, outermost first.
type items []item

// item is known by the column at which its text begins, and by its first line or its term, "" for code.
type item struct {
	column int
	name   string
}

// read sets a block's outer and inner names. The items that it begins, and those around it, are around the next block.
func (s *items) read(b *block) {
	lines, begun := strings.Split(b.text, "\n"), 0
	for n, l := range lines {
		text := strings.TrimLeft(l, " ")
		column := len(l) - len(text)
		if n == 0 {
			s.leave(column)
			b.outer = s.names()
		} else if b.fence != "" {
			break
		}
		for mark := marker(text); mark > 0; mark = marker(text) {
			named := text[mark:]
			if text[0] == ':' {
				named = strings.TrimLeft(lines[0], " ")
				named = named[marker(named):]
			} else if begun++; opens(named) != "" {
				named = ""
			}
			s.leave(column)
			text, column = text[mark:], column+mark
			*s = append(*s, item{column, headline(named)})
		}
	}
	if b.inner = s.names(); begun > 1 { // each piece of a list begins with an item
		b.inner = b.outer
	}
}

// leave removes the items that end before text at a column.
func (s *items) leave(column int) {
	for len(*s) > 0 && (*s)[len(*s)-1].column > column {
		*s = (*s)[:len(*s)-1]
	}
}

func (s *items) names() (names []string) {
	for i, v := range *s {
		if v.name != "" && (i == 0 || v.name != (*s)[i-1].name) {
			names = append(names, v.name)
		}
	}
	return names
}

// marker returns the length of the marker of an item or a definition with which a line begins, 0 for none.
func marker(l string) int {
	n := len(l) - len(strings.TrimLeft(l, "0123456789"))
	signs := ".)"
	if n == 0 {
		signs = "-*+:"
	}
	if len(l) < n+2 || !strings.Contains(signs, l[n:n+1]) || l[n+1] != ' ' {
		return 0
	}
	return n + 2
}

// isCode reports whether the text of a heading is inline code and nothing more.
func isCode(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "`") && Span(text) == len(text) && strings.Trim(text, "`") != ""
}

// maxTicks is how many backticks may begin inline code.
const maxTicks = 16

// Span returns the length of the inline code with which Markdown begins, or of its backticks where it does not end in
// its paragraph.
func Span(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	if n > maxTicks {
		return n
	}
	for at := n; at < len(s); {
		switch {
		case s[at] == '`':
			run := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
			if at += run; run == n {
				return at
			}
		case strings.HasPrefix(s[at:], "\n\n"):
			return n
		default:
			at++
		}
	}
	return n
}

// MaxHeading is the most characters of a heading in a path. Every chunk below a
// heading repeats it, so without this limit a page's chunks could be far larger
// than the page.
const MaxHeading = 200

// headingOf reads an ATX heading (CommonMark 0.31 section 4.2) at the margin; its
// text is without marks, at most MaxHeading characters.
func headingOf(l string) (depth int, text string) {
	for depth < len(l) && l[depth] == '#' {
		depth++
	}
	if depth == 0 || depth > 6 || len(l) > depth && l[depth] != ' ' {
		return 0, ""
	}
	return depth, headline(l)
}

// headline returns a line of Markdown as a step of a path. It is a copy, so that a short path does not keep a long line.
func headline(l string) string {
	return strings.Clone(first(strings.TrimSpace(unmark.Replace(strings.TrimLeft(l, "#"))), MaxHeading))
}

var unmark = strings.NewReplacer("`", "", "**", "", `\`, "")

// opens returns the fence that a line opens, which may follow markers of quotes
// and lists; "" for other lines.
func opens(l string) string {
	l = strings.TrimLeft(l, " >-:0123456789.")
	for _, c := range []string{"`", "~"} {
		if n := len(l) - len(strings.TrimLeft(l, c)); n > 2 && !strings.Contains(l[n:], c) {
			return l[:n]
		}
	}
	return ""
}

func closes(l, fence string) bool {
	l = strings.TrimRight(strings.TrimLeft(l, " >"), " \n")
	return len(l) >= len(fence) && strings.Trim(l, fence[:1]) == ""
}

// Fence follows the fences of Markdown that is read line by line. The zero value is outside of code.
type Fence struct {
	Mark string // what ends the code, "" outside of code
}

// In reports whether a line is code, or a fence.
func (f *Fence) In(line string) bool {
	if f.Mark == "" {
		f.Mark = opens(line)
		return f.Mark != ""
	}
	if closes(line, f.Mark) {
		f.Mark = ""
	}
	return true
}

// Block is a paragraph, list, table, code block or heading of a page, as it is
// stored: its path and the hash of its text.
type Block struct {
	Path []string `json:"path,omitempty"` // the headings above it, outermost first; for a heading, itself too, as the last
	Hash string   `json:"hash"`           // of its text, 16 hexadecimal digits; white space counts in code alone
}

// Blocks lists the blocks of Markdown in order.
func Blocks(markdown string) []Block {
	scanned := scan(markdown, nil)
	blocks := make([]Block, len(scanned))
	for i, b := range scanned {
		text := b.text
		if b.fence == "" {
			text = strings.Join(strings.Fields(text), " ")
		}
		sum := sha256.Sum256([]byte(text))
		blocks[i] = Block{Path: b.path, Hash: hex.EncodeToString(sum[:8])}
	}
	return blocks
}
