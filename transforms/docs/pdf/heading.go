package pdf

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	maxHeading = 200 // bytes
	deepest    = 6   // levels of headings in Markdown
	// larger is how much larger than the text a heading is set at least.
	larger = 1.12
	// rare is the share of a document's letters that lines of one heading's kind have at
	// most. What is more frequent is text.
	rare = 0.15
)

// kind is what headings of one level have in common.
type kind struct {
	size float64 // in half points
	bold bool
}

func kindOf(f font) kind { return kind{math.Round(f.size*2) / 2, f.bold} }

// headings says which lines are headings.
type headings struct {
	body    font
	leading float64 // from a baseline of the text to the next
	levels  map[kind]int
	titles  map[int]map[string]int // levels by page and title, of the outline
	outline bool                   // the levels are the outline's
}

// headingsOf looks at the whole document: the font of the most letters is the text's.
func headingsOf(f file) *headings {
	letters, total := map[font]int{}, 0
	gaps := map[float64]int{}
	for _, p := range f.pages {
		for i, l := range p {
			letters[l.font] += len(l.text)
			total += len(l.text)
			if gap := math.Round((l.top)*5) / 5; i > 0 {
				if gap = math.Round((p[i-1].bottom-gap)*5) / 5; gap > 0 && p[i-1].font == l.font {
					gaps[gap] += len(l.text)
				}
			}
		}
	}
	h := &headings{levels: map[kind]int{}, titles: map[int]map[string]int{}}
	h.body, h.leading = most(letters, func(f font) float64 { return f.size }), most(gaps, func(g float64) float64 { return -g })
	kinds := map[kind]int{}
	for f, n := range letters {
		if f.size >= h.body.size*larger || f.bold && !h.body.bold && f.size >= h.body.size*.97 {
			kinds[kindOf(f)] += n
		}
	}
	var order []kind
	for k, n := range kinds {
		if float64(n) <= rare*float64(total) || k.size >= h.body.size*2 {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b kind) int {
		switch {
		case a.size != b.size:
			return int(2 * (b.size - a.size))
		case a.bold == b.bold:
			return 0
		case a.bold:
			return -1
		}
		return 1
	})
	for i, k := range order {
		h.levels[k] = min(i+1, deepest)
	}
	h.follow(f)
	return h
}

// most returns the key with the highest count; of two, the one that has more of what
// value says.
func most[K comparable](counts map[K]int, value func(K) float64) (best K) {
	n := -1
	for k, c := range counts {
		if c > n || c == n && value(k) > value(best) {
			best, n = k, c
		}
	}
	return best
}

// follow takes the levels from the document's outline where it names its headings.
func (h *headings) follow(f file) {
	for _, e := range f.outline {
		if e.page >= len(f.pages) {
			continue
		}
		if h.titles[e.page] == nil {
			h.titles[e.page] = map[string]int{}
		}
		if name := nameOf(e.title); name != "" && h.titles[e.page][name] == 0 {
			h.titles[e.page][name] = min(e.depth+1, deepest)
		}
	}
	found, levels := 0, map[kind]map[int]int{}
	for i, p := range f.pages {
		for n := range p {
			if level, lines := h.titled(i, p, n); lines > 0 {
				found++
				k := kindOf(p[n].font)
				if levels[k] == nil {
					levels[k] = map[int]int{}
				}
				levels[k][level]++
			}
		}
	}
	if h.outline = found > 0 && 2*found >= len(f.outline); !h.outline {
		h.titles = map[int]map[string]int{}
		return
	}
	biggest, deep := 0.0, 1
	named := map[kind]int{}
	for k, of := range levels {
		named[k] = most(of, func(level int) float64 { return -float64(level) })
		biggest, deep = max(biggest, k.size), max(deep, named[k])
	}
	for k := range h.levels {
		switch {
		case named[k] > 0:
			h.levels[k] = named[k]
		case k.size > biggest:
			h.levels[k] = 1
		default:
			h.levels[k] = min(deep+1, deepest)
		}
	}
}

// titled returns the level that the outline gives to the heading that begins with the
// n-th line of a page, and of how many lines it is, 0 for none.
func (h *headings) titled(page int, p []line, n int) (level, lines int) {
	text := ""
	if nameOf(p[n].text) == "" {
		return 0, 0
	}
	for lines = 1; lines <= 3 && n+lines <= len(p); lines++ {
		if text = strings.TrimSpace(text + " " + p[n+lines-1].text); len(text) > maxHeading {
			break
		}
		if level := h.titles[page][nameOf(text)]; level > 0 {
			return level, lines
		}
	}
	return 0, 0
}

var numbered = regexp.MustCompile(`^(?:(?i:chapter|appendix|section|part)\s+)?(?:[0-9]+|[A-Z]|[IVXL]+)(?:\.[0-9]+)*[.:)]?\s+`)

// nameOf is a title for comparing: the numbers before it are not always in the outline.
func nameOf(title string) string {
	title = strings.ToLower(numbered.ReplaceAllString(strings.TrimSpace(title), ""))
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return r
	}, title)
}

// leaders match the lines of a table of contents.
var leaders = regexp.MustCompile(`(?:\. ?){4,}\s*(?:[0-9]+|[ivxl]+)?$`)

// level returns the level of the heading that begins with the n-th line of a page, and of
// how many lines it is; 0 for text.
func (h *headings) level(page int, p []line, n int) (level, lines int) {
	if level, lines = h.titled(page, p, n); lines > 0 {
		return level, lines
	}
	l := p[n]
	level = h.levels[kindOf(l.font)]
	if level == 0 || len(l.text) > maxHeading || !strings.ContainsFunc(l.text, unicode.IsLetter) || marker(l.text) != "" {
		return 0, 0
	}
	lines, length := 1, len(l.text)
	for n+lines < len(p) && p[n+lines].font == l.font && length <= maxHeading {
		if gap := p[n+lines-1].bottom - p[n+lines].top; gap <= 0 || gap > 1.5*l.font.size {
			break
		}
		length += len(p[n+lines].text) + 1
		lines++
	}
	if length > maxHeading {
		return 0, 0
	}
	if l.font.size < h.body.size*larger && (lines > 1 || !h.stands(p, n)) {
		return 0, 0
	}
	return level, lines
}

// stands reports whether a bold line of the text's size stands alone like a heading: a
// gap above it, and no end of a sentence.
func (h *headings) stands(p []line, n int) bool {
	l := p[n]
	first := []rune(l.text)[0]
	if len(l.text) > 100 || l.isRow() || strings.ContainsAny(l.text[len(l.text)-1:], ".,;:") || !unicode.IsUpper(first) && !unicode.IsDigit(first) || l.font.fixed {
		return false
	}
	return n == 0 || p[n-1].bottom-l.top > h.leading*looser || p[n-1].bottom < l.top
}
