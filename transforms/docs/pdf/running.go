package pdf

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// withoutRunning removes the heads and feet that pages repeat: lines at the top or the
// bottom of the page with the same words, whatever their numbers, and lines with the
// page's number.
func withoutRunning(pages [][]line) [][]line {
	out := make([][]line, len(pages))
	for i, p := range pages {
		out[i] = append([]line(nil), p...)
	}
	for range 3 { // heads of several lines
		gone := false
		for _, top := range []bool{true, false} {
			gone = dropEdge(out, top) || gone
		}
		if !gone {
			break
		}
	}
	return out
}

// edge returns the line that is the highest or the lowest of a page, -1 for an empty one.
func edge(p []line, top bool) int {
	at := -1
	for i, l := range p {
		if at < 0 || top && l.top > p[at].top || !top && l.bottom < p[at].bottom {
			at = i
		}
	}
	return at
}

// place is the text of an edge without its numbers, and its height on the page.
type place struct {
	words  string
	height int
}

func placeOf(l line) place { return place{wordsOf(l.text), int(math.Round(l.top / 3))} }

// wordsOf returns the letters of a text.
func wordsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// numbering is how the numbers of pages differ from their order.
type numbering struct {
	roman  bool
	offset int
}

func dropEdge(pages [][]line, top bool) (gone bool) {
	words, numbers := map[place]int{}, map[numbering]int{}
	full := 0
	for i, p := range pages {
		at := edge(p, top)
		if at < 0 {
			continue
		}
		full++
		if w := placeOf(p[at]); len(w.words) >= 3 {
			for h := -1; h <= 1; h++ {
				words[place{w.words, w.height + h}]++
			}
		}
		for _, n := range numbersOf(p[at].text, i) {
			numbers[n]++
		}
	}
	often := max(3, full/50)
	for i, p := range pages {
		at := edge(p, top)
		if at < 0 {
			continue
		}
		drop := words[placeOf(p[at])] >= often
		for _, n := range numbersOf(p[at].text, i) {
			drop = drop || numbers[n] >= max(3, full/4) || n.roman && numbers[n] >= 3
		}
		if drop {
			pages[i], gone = append(p[:at], p[at+1:]...), true
		}
	}
	return gone
}

// numbersOf returns the numberings by which a line at the edge of the i-th page has its
// number at one of its ends.
func numbersOf(text string, i int) (out []numbering) {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(text) > 200 {
		return nil
	}
	for n, f := range []string{fields[0], fields[len(fields)-1]} {
		if n == 1 && len(fields) == 1 {
			break
		}
		f = strings.Trim(f, "-–—|.[]()")
		if v, err := strconv.Atoi(f); err == nil && v < 1e5 {
			out = append(out, numbering{false, v - i})
		} else if v := roman(f); v > 0 {
			out = append(out, numbering{true, v - i})
		}
	}
	return out
}

// roman reads a small roman number, 0 for another text.
func roman(s string) (sum int) {
	values := map[byte]int{'i': 1, 'v': 5, 'x': 10, 'l': 50, 'c': 100}
	if len(s) > 10 || s != strings.ToLower(s) {
		return 0
	}
	for i := range len(s) {
		v := values[s[i]]
		if v == 0 {
			return 0
		}
		if i+1 < len(s) && values[s[i+1]] > v {
			v = -v
		}
		sum += v
	}
	return sum
}
