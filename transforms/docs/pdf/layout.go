package pdf

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

const (
	// looser is how much more than the usual distance to the line above begins a paragraph.
	looser = 1.18
	// short is the share of a column's width that the last line of a paragraph leaves empty
	// at least, so that no other line does.
	short = 0.25
	// column is the width in points of the strips by which lines of one column are found.
	column = 36
	// wide is how much wider a row of a table is than its letters.
	wide = 1.7
)

// layout writes the lines of a document as Markdown.
type layout struct {
	headings
	out    []byte
	starts []int // where the pages begin in out
	item   bool  // the last block is an item of a list
	last   span  // the last heading
	title  string
	known  map[string]bool // words of the document that have a hyphen

	block  block
	rights map[int]float64 // of the columns of the current page
}

// span is a part of what is written.
type span struct{ from, to int }

// block is what is written next.
type block struct {
	lines []line
	kind  blockKind
	page  int
}

type blockKind int

const (
	paragraph blockKind = iota
	code
	row // of a table
)

// page turns what was read into a page of documentation.
func (f file) page() (content.Page, error) {
	letters, other := 0, 0
	for _, p := range f.pages {
		for i := range p {
			p[i].text = plain(p[i].text)
			for _, r := range p[i].text {
				switch {
				case unicode.IsLetter(r) || unicode.IsDigit(r):
					letters++
				case r == utf8.RuneError || unicode.Is(unicode.Co, r):
					other++
				}
			}
		}
	}
	switch {
	case other > letters:
		return content.Page{}, errNoLetters
	case letters == 0:
		return content.Page{}, errNoText
	}
	f.pages = withoutRunning(f.pages)
	l := layout{headings: *headingsOf(f), known: hyphenated(f.pages)}
	for i, p := range f.pages {
		l.page(i, p)
	}
	l.flush()
	for len(l.starts) < len(f.pages) {
		l.starts = append(l.starts, len(l.out))
	}
	title := strings.TrimSpace(plain(f.title))
	if title == "" || unnamed.MatchString(title) {
		title = l.title
	}
	return content.Page{Title: content.ShortTitle(title), Language: content.Language(f.language), Markdown: string(l.out), Pages: l.starts, Empty: len(l.out) == 0}, nil
}

// unnamed matches titles that a program gave a document.
var unnamed = regexp.MustCompile(`(?i)^untitled|^microsoft word|^about:blank$|^\(?anonymous\)?$|^https?://\S+$|\.(?:docx?|odt|tex|dvi|pdf|html?|indd|texi|md|ps|fm)$|^[^\pL]*$`)

// plain cleans a line: ligatures and the bullets of symbol fonts become usual
// characters, control characters spaces.
func plain(text string) string {
	text = ligatures.Replace(strings.ToValidUTF8(text, string(utf8.RuneError)))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xFEFF {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "\uf0b7", "•", "\uf0a7", "•", "\uf0d8", "•")

// hyphenated returns the words that have a hyphen within a line.
func hyphenated(pages [][]line) map[string]bool {
	out := map[string]bool{}
	for _, p := range pages {
		for _, l := range p {
			for _, w := range strings.Fields(l.text) {
				if w = bare(w); strings.Contains(w, "-") {
					out[w] = true
				}
			}
		}
	}
	return out
}

func bare(word string) string {
	return strings.ToLower(strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}

// page adds the lines of a page.
func (l *layout) page(n int, p []line) {
	l.rights = map[int]float64{}
	for _, x := range p {
		at := int(x.left / column)
		for s := at - 1; s <= at+1; s++ {
			l.rights[s] = max(l.rights[s], x.right)
		}
	}
	if l.block.kind != paragraph {
		l.flush()
	}
	for i := 0; i < len(p); i++ {
		if leaders.MatchString(p[i].text) { // a table of contents is navigation
			if l.last.to == len(l.out) && len(l.block.lines) == 0 { // and so is its heading
				l.out = l.out[:l.last.from]
				for n := len(l.starts); n > 0 && l.starts[n-1] > len(l.out); n-- {
					l.starts = l.starts[:n-1]
				}
			}
			continue
		}
		if level, lines := l.level(n, p, i); lines > 0 {
			l.heading(n, level, p[i:i+lines])
			i += lines - 1
			continue
		}
		l.add(n, p[i])
	}
}

func (l *layout) heading(page, level int, lines []line) {
	l.flush()
	text := l.join(lines)
	if l.title == "" {
		l.title = text
	}
	from := len(l.out)
	l.write(page, content.Heading(level, content.Clean(text)))
	l.last = span{from, len(l.out)}
}

// write adds a block that begins on a page.
func (l *layout) write(page int, markdown string) {
	if markdown == "" {
		return
	}
	item := strings.HasPrefix(markdown, "- ")
	switch {
	case len(l.out) == 0:
	case item && l.item:
		l.out = append(l.out, '\n')
	default:
		l.out = append(l.out, "\n\n"...)
	}
	l.item = item
	for len(l.starts) <= page {
		l.starts = append(l.starts, len(l.out))
	}
	l.out = append(l.out, markdown...)
}

// add adds a line of text.
func (l *layout) add(page int, x line) {
	kind := paragraph
	switch {
	case x.font.fixed && !l.body.fixed:
		kind = code
	case x.isRow():
		kind = row
	}
	if b := &l.block; len(b.lines) > 0 && (b.kind != kind || l.begins(page, x)) {
		l.flush()
	}
	if len(l.block.lines) == 0 {
		l.block = block{kind: kind, page: page}
	}
	l.block.lines = append(l.block.lines, x)
}

// isRow reports whether a line has gaps as between the cells of a table.
func (x line) isRow() bool {
	return marker(x.text) == "" && x.right-x.left > wide*.5*x.font.size*float64(utf8.RuneCountInString(x.text))
}

// begins reports whether a line begins another block than the one before it, of the same
// kind.
func (l *layout) begins(page int, x line) bool {
	b := l.block
	last := b.lines[len(b.lines)-1]
	gap := last.bottom - x.top
	switch {
	case b.kind == code:
		return gap <= 0 || gap > 4*l.leading
	case math.Abs(x.font.size-last.font.size) > .7 || marker(x.text) != "":
		return true
	case page != b.page || gap < -l.leading/2: // another page or column
		return b.kind == row || !continues(last.text, x.text)
	case b.kind == row:
		return gap > 2*l.leading
	case gap > l.leading*looser && gap > x.font.size*looser:
		return true
	case len(b.lines) > 1 && x.left > last.left+4 && gap > 1:
		return true
	}
	right := l.rights[int(last.left/column)]
	return gap > 1 && last.right < right-short*(right-last.left)
}

// continues reports whether a paragraph continues at the top of a page.
func continues(before, after string) bool {
	first, _ := utf8.DecodeRuneInString(after)
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLower(first) && !strings.ContainsRune(".:!?", last)
}

// bullets are what begins an item of a list.
const bullets = "•◦▪‣∙●○■□–·*-"

var ordered = regexp.MustCompile(`^(?:[0-9]{1,3}|[a-z])[.)] +\S`)

// marker returns what makes a line an item of a list.
func marker(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if strings.ContainsRune(bullets, r) && size > 0 && len(text) > size && text[size] == ' ' {
		return text[:size]
	}
	if m := ordered.FindString(text); m != "" {
		return m[:strings.IndexByte(m, ' ')]
	}
	return ""
}

// flush writes the current block.
func (l *layout) flush() {
	b := l.block
	l.block = block{}
	if len(b.lines) == 0 {
		return
	}
	switch b.kind {
	case code:
		l.write(b.page, l.fenced(b.lines))
	case row:
		texts := make([]string, len(b.lines))
		for i, x := range b.lines {
			texts[i] = content.Escape(content.Clean(l.join([]line{x})))
		}
		l.write(b.page, strings.Join(texts, "  \n"))
	default:
		text := content.Clean(l.join(b.lines))
		if m := marker(text); strings.Contains(bullets, m) && m != "" {
			l.write(b.page, "- "+content.Escape(strings.TrimSpace(text[len(m):])))
		} else if m != "" && m[0] <= '9' {
			l.write(b.page, m+" "+content.Escape(strings.TrimSpace(text[len(m):])))
		} else {
			l.write(b.page, content.Escape(text))
		}
	}
}

// join joins the lines of a paragraph, and words that were cut at the end of a line.
func (l *layout) join(lines []line) string {
	var b strings.Builder
	for i, x := range lines {
		if i > 0 {
			if before := b.String(); strings.HasSuffix(before, "-") && continues(before, x.text) && len(before) > 1 && before[len(before)-2] != ' ' {
				b.Reset()
				b.WriteString(strings.TrimSuffix(before, "-") + string(hyphen))
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(x.text)
	}
	return l.unhyphened(b.String())
}

// unhyphened joins cut words. A word that has the hyphen elsewhere keeps it.
func (l *layout) unhyphened(text string) string {
	if !strings.ContainsRune(text, hyphen) {
		return text
	}
	words := strings.Fields(text)
	for i, w := range words {
		if strings.ContainsRune(w, hyphen) {
			if with := strings.ReplaceAll(w, string(hyphen), "-"); l.known[bare(with)] {
				words[i] = with
			} else {
				words[i] = strings.ReplaceAll(w, string(hyphen), "")
			}
		}
	}
	return strings.Join(words, " ")
}

// fenced writes lines of code with their indentation and the empty lines between them.
func (l *layout) fenced(lines []line) string {
	left := lines[0].left
	for _, x := range lines {
		left = min(left, x.left)
	}
	var b strings.Builder
	for i, x := range lines {
		if i > 0 {
			b.WriteByte('\n')
			if lines[i-1].bottom-x.top > 1.6*x.font.size {
				b.WriteByte('\n')
			}
		}
		if letter := .6 * x.font.size; letter > 0 {
			b.WriteString(strings.Repeat(" ", int(min(80, math.Round((x.left-left)/letter)))))
		}
		b.WriteString(strings.ReplaceAll(x.text, string(hyphen), "-"))
	}
	return content.Code(content.Clean(b.String()))
}
