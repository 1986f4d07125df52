package content

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// markdown writes Markdown (CommonMark 0.31 with GFM's tables). Text is written to out at once. Space, breaks and
// marks are written only when text follows, so that nothing empty is ever written.
type markdown struct {
	out    []byte
	levels []level // the lists and quotes around the current place, outermost first
	gap    gap
	space  bool   // a space is pending
	fresh  bool   // the line has only markers so far
	lead   string // the pending mark of a heading
	anchor string // of that heading
	marks  []mark

	// The ends of the last closing mark and of the last inline code in out. When the
	// same mark opens there, the closing mark is removed, so that <b>a</b><b>b</b>
	// becomes one.
	closed  int
	ends    []mark // the closing marks that end there, the inner ones first
	codeEnd int

	anchors   []string // of the headings outside of lists and quotes
	markBytes int      // how many bytes of marks for lists and quotes may still be written

	cell    bool // in a table's cell: no breaks, bars escaped
	opens   bool // what is written next begins a line, although it is a cell
	heading bool
	inLink  bool // in the text of a link
	bracket int  // where the text of the last link begins in out
	tight   bool // in a list whose items have one line each
	term    bool // the next block is what the term before it means; there is no blank line before it
	newList bool // the next block starts a list; there is a blank line before it, even in a tight list
}

// gap is the break before the next text.
type gap int

const (
	none gap = iota
	hardBreak
	newLine
	blankLine
)

// level is a list item or a quote: first is written before its first line, rest
// before the others.
type level struct {
	first, rest string
	used        bool
}

// mark is an emphasis; it is written when text follows.
type mark struct {
	text    string // "" if CommonMark would not read it as a mark where it stands
	written bool
	at      int // where it begins in out
}

// String returns the Markdown, without white space at its ends.
func (w *markdown) String() string { return string(bytes.Trim(w.out, "\n ")) }

// block ends a block.
func (w *markdown) block() {
	if w.cell || w.heading {
		w.space = true
		return
	}
	w.suspend()
	w.space = false
	w.gap = blankLine
	if w.tight && !w.newList || w.term {
		w.gap = newLine
	}
}

// suspend closes the open marks before a break. They open again after it.
func (w *markdown) suspend() {
	for i := len(w.marks) - 1; i >= 0; i-- {
		if w.marks[i].written {
			w.out = append(w.out, w.marks[i].text...)
			w.marks[i].written = false
		}
	}
}

// begin writes what is pending, before text is written: breaks with the markers of
// lists and quotes, a space, a heading's lead, opening marks. next is the first character
// of the text.
func (w *markdown) begin(next rune) {
	w.writePending()
	open := slices.IndexFunc(w.marks, func(m mark) bool { return !m.written })
	after := w.closed == len(w.out) && len(w.ends) > 0
	if joins := after && open >= 0 && w.ends[len(w.ends)-1].text == w.marks[open].text; after && !joins && !splits(next) {
		w.unmark()
		after = len(w.ends) > 0
	}
	before, _ := utf8.DecodeLastRune(w.out)
	for i := max(open, 0); open >= 0 && i < len(w.marks); i++ {
		m := &w.marks[i]
		if m.written {
			continue
		}
		m.written, m.at = true, len(w.out)
		switch last := len(w.ends) - 1; {
		case after && w.ends[last].text == m.text:
			m.at, w.ends = w.ends[last].at, w.ends[:last]
			w.out = w.out[:len(w.out)-len(m.text)]
			w.closed = len(w.out)
		case after && m.text != strikethrough, splits(next) && !splits(before):
			m.text = ""
		default:
			w.out = append(w.out, m.text...)
		}
		after = w.closed == len(w.out) && len(w.ends) > 0
	}
}

// strikethrough is the mark that does not begin as the others do.
const strikethrough = "~~"

// splits reports whether marks can stand between a character and a letter on their other side, with the character inside (CommonMark 6.2,
// flanking).
func splits(c rune) bool {
	return c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsPunct(c) || unicode.IsSymbol(c)
}

// unmark removes the marks that end here if they stand behind punctuation: they would be read
// as text in front of a letter.
func (w *markdown) unmark() {
	end := w.closed
	for _, m := range w.ends {
		end -= len(m.text)
	}
	if c, _ := utf8.DecodeLastRune(w.out[:end]); !splits(c) {
		return
	}
	w.out = w.out[:end]
	for _, m := range w.ends { // the inner ones first: those around them begin before them
		w.out = slices.Delete(w.out, m.at, m.at+len(m.text))
	}
	w.ends, w.codeEnd = nil, 0
}

// end closes the last mark.
func (w *markdown) end() {
	last := len(w.marks) - 1
	if m := w.marks[last]; m.written && m.text != "" {
		if w.closed != len(w.out) {
			w.ends = w.ends[:0]
		}
		w.out = append(w.out, m.text...)
		w.closed, w.ends = len(w.out), append(w.ends, m)
	}
	w.marks = w.marks[:last]
}

func (w *markdown) writePending() {
	switch {
	case len(w.out) == 0 || w.gap == newLine || w.gap == blankLine:
		if len(w.out) > 0 {
			if w.gap == blankLine {
				w.out = append(w.out, '\n')
				for i := 0; i < len(w.levels) && w.levels[i].used; i++ {
					if w.markBytes -= len(w.levels[i].rest); w.markBytes > 0 {
						w.out = append(w.out, w.levels[i].rest...)
					}
				}
				w.out = bytes.TrimRight(w.out, " ")
			}
			w.out = append(w.out, '\n')
		}
		w.indent()
	case w.gap == hardBreak:
		w.out = append(w.out, "  \n"...)
		w.indent()
	case w.space && !w.fresh && (w.bracket == 0 || w.bracket != len(w.out)):
		w.out = append(w.out, ' ')
	}
	w.gap, w.space, w.newList, w.term = none, false, false, false
	if w.lead != "" {
		w.out = append(w.out, w.lead...)
		w.lead = ""
		if len(w.levels) == 0 {
			w.anchors = append(w.anchors, w.anchor)
		}
	}
}

// indent starts a line with the markers of the levels, as long as markBytes lasts.
func (w *markdown) indent() {
	for i := range w.levels {
		l := &w.levels[i]
		marker := l.rest
		if !l.used {
			marker, l.used = l.first, true
		}
		if w.markBytes -= len(marker); w.markBytes > 0 {
			w.out = append(w.out, marker...)
		}
	}
	w.fresh = true
}

// text writes words with one space between them.
func (w *markdown) text(s string) {
	for i := 0; i < len(s); {
		if n := blankAt(s[i:]); n > 0 {
			w.space = w.space || !zeroWidth(s[i:i+n])
			i += n
			continue
		}
		end := i + 1
		for end < len(s) && (s[end] > ' ' && s[end] < utf8.RuneSelf || s[end] > ' ' && blankAt(s[end:]) == 0) {
			end++
		}
		next, _ := utf8.DecodeRuneInString(s[i:])
		w.begin(next)
		w.word(s, i, end)
		w.fresh = false
		i = end
	}
}

// blankAt returns the length of the space, the zero-width character or the sign of an icon
// font (of the private use area) with which s begins, 0 for none.
func blankAt(s string) int {
	switch s[0] {
	case ' ', '\t', '\n', '\r', '\f', '\v':
		return 1
	case 0xc2: // U+00A0, U+00AD
		if len(s) > 1 && (s[1] == 0xa0 || s[1] == 0xad) {
			return 2
		}
	case 0xe2: // U+200B–U+200D, U+2028, U+2029, U+202F, U+2060
		if len(s) > 2 && (s[1] == 0x80 && (s[2] == 0x8b || s[2] == 0xa8 || s[2] == 0xa9 || s[2] == 0xaf) || s[1] == 0x81 && s[2] == 0xa0) {
			return 3
		}
	case 0xee: // U+E000–U+EFFF
		if len(s) > 2 {
			return 3
		}
	case 0xef: // U+F000–U+F8FF, U+FEFF
		if len(s) > 2 && (s[1] < 0xa4 || s[1] == 0xbb && s[2] == 0xbf) {
			return 3
		}
	}
	return 0
}

func zeroWidth(s string) bool {
	return s == "\u00ad" || s == "\u200b" || s == "\u2060" || s == "\ufeff"
}

// word writes s[from:to], which has no space, and escapes what Markdown would read as
// markup.
func (w *markdown) word(s string, from, to int) {
	word := s[from:to]
	forced := -1
	if w.fresh && (!w.cell || w.opens) {
		forced = lineStart(word)
		if word[0] == '[' && strings.Contains(s[from:], "]:") {
			forced = 0 // the definition of a link or a footnote, which nobody sees
		}
	} else if w.heading && strings.Trim(word, "#") == "" {
		forced = 0 // without a backslash it would close the heading
	}
	plain := 0
	for i := 0; i < len(word); i++ {
		if !special[word[i]] && i != forced {
			continue
		}
		if w.escapes(s, from, to, i, i == forced) {
			w.out = append(append(w.out, word[plain:i]...), '\\')
			plain = i
		}
	}
	w.out = append(w.out, word[plain:]...)
}

// escapes reports whether the special character at s[from+i], in the word s[from:to],
// needs a backslash. forced says that it would start or end a block.
func (w *markdown) escapes(s string, from, to, i int, forced bool) bool {
	word := s[from:to]
	switch word[i] {
	case '\\':
		if i+1 == len(word) {
			return to == len(s) // a mark may follow
		}
		return strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", word[i+1]) >= 0
	case '`':
		return true
	case '*':
		return forced || len(word) > 1 || len(w.marks) > 0 || !w.blankAround(s, from, to)
	case '_':
		return forced || len(word) > 1 && !within(word, i)
	case '<':
		return startsTag(word[i+1:])
	case '&':
		entity := word[i:min(len(word), i+12)]
		return html.UnescapeString(entity) != entity
	case '[':
		return forced || w.inLink
	case ']':
		return w.inLink || i+1 < len(word) && (word[i+1] == '(' || word[i+1] == '[')
	case '~':
		return forced || i+1 < len(word) && word[i+1] == '~' || i > 0 && word[i-1] == '~'
	case '|':
		return w.cell
	}
	return forced
}

// blankAround reports whether s[from:to], which is written next, has white space on both sides.
func (w *markdown) blankAround(s string, from, to int) bool {
	before := len(w.out) == 0 || w.out[len(w.out)-1] == ' ' || w.out[len(w.out)-1] == '\n'
	return before && to < len(s) && blankAt(s[to:]) > 0
}

// startsTag reports whether a "<" before s would start a tag, a comment or a processing
// instruction.
func startsTag(s string) bool {
	return s != "" && (strings.IndexByte("/!?", s[0]) >= 0 || letter(s[0]))
}

// within reports whether the underscores around i are between letters, where they
// are no emphasis.
func within(word string, i int) bool {
	inside := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	// As in __init__. A long run of underscores is not part of a name.
	from, to := i, i+1
	for from > 0 && word[from-1] == '_' && i-from < 4 {
		from--
	}
	for to < len(word) && word[to] == '_' && to-i < 4 {
		to++
	}
	before, _ := utf8.DecodeLastRuneInString(word[:from])
	after, _ := utf8.DecodeRuneInString(word[to:])
	return inside(before) && inside(after)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

var special = func() (table [256]bool) {
	for _, c := range []byte("\\`*_<&[]~|") {
		table[c] = true
	}
	return
}()

// lineStart finds in a line's first word the character that would make it a
// heading, list, quote or rule, -1 for none.
func lineStart(word string) int {
	same := strings.Trim(word, word[:1]) == ""
	switch word[0] {
	case '#':
		if same && len(word) <= 6 {
			return 0
		}
	case '-', '=', '*', '_':
		if same {
			return 0
		}
	case '+':
		if len(word) == 1 {
			return 0
		}
	case '>':
		return 0
	case '~':
		if strings.HasPrefix(word, "~~~") {
			return 0
		}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if after := strings.TrimLeft(word, "0123456789"); after == "." || after == ")" {
			return len(word) - 1
		}
	}
	return -1
}

// Escape writes plain text as a paragraph of Markdown.
func Escape(text string) string {
	w := markdown{markBytes: 1}
	w.text(text)
	return w.String()
}

// Heading writes plain text as a heading, "" without text.
func Heading(level int, text string) string {
	w := markdown{markBytes: 1, heading: true, lead: strings.Repeat("#", level) + " "}
	w.text(text)
	return w.String()
}

// Code writes text as a fenced code block.
func Code(text string) string {
	fence := fenceFor(text)
	return fence + "\n" + text + "\n" + fence
}
