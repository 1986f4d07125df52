package chunk

import (
	"slices"
	"strings"
	"unicode"

	"github.com/newsfork/seed-engine/transforms/parse/simhash"
)

// Quality sums figures over the pages of a provider, which show whether its selectors and paths are right.
type Quality struct {
	Pages, Chunks, Tokens int
	Empty                 int // chunks with headings only
	Duplicate             int // chunks with the text, or nearly the text, of an earlier chunk of any page

	seen  map[string]struct{}
	texts []sketch // of the different texts
}

// Add counts the chunks of one page.
func (q *Quality) Add(chunks []Chunk) {
	q.Pages++
	if len(chunks) == 0 {
		return
	}
	q.Chunks += len(chunks)
	if q.seen == nil {
		q.seen = make(map[string]struct{})
	}
	for _, c := range chunks {
		q.Tokens += c.Tokens
		if empty(c.Text) {
			q.Empty++
		}
		if _, ok := q.seen[c.Hash]; ok {
			q.Duplicate++
		} else if text := sketchOf(c); q.near(text) {
			q.Duplicate++
		} else if text.hash != 0 {
			q.texts = append(q.texts, text)
		}
		q.seen[c.Hash] = struct{}{}
	}
}

// sketch is what is compared of a text: its preview, since the whole is not kept, and its
// length.
type sketch struct {
	hash   uint64
	tokens int
}

func sketchOf(c Chunk) sketch { return sketch{simhash.Of(c.Preview()), c.Tokens} }

// near reports whether an earlier text is nearly the same: it begins alike, and its length
// differs by at most a fifth.
func (q *Quality) near(text sketch) bool {
	return text.hash != 0 && slices.ContainsFunc(q.texts, func(t sketch) bool {
		return simhash.Same(t.hash, text.hash) && 5*min(t.tokens, text.tokens) >= 4*max(t.tokens, text.tokens)
	})
}

func empty(text string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		if depth, _ := headingOf(l); depth == 0 && strings.ContainsFunc(l, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			return false
		}
	}
	return true
}

// figure is a figure of Quality that is out of its range.
type figure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"` // tokens, chunks, or a ratio from 0 to 1
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	WhatToDo string  `json:"what_to_do"`
}

// Outside lists the figures out of range; none if no page was counted.
func (q *Quality) Outside() []figure {
	if q.Pages == 0 {
		return nil
	}
	var out []figure
	check := func(name string, part, whole int, low, high float64, what string) {
		if value := float64(part) / float64(max(whole, 1)); value < low || value > high {
			out = append(out, figure{name, value, low, high, what})
		}
	}
	if q.Chunks > 0 {
		check("average_tokens", q.Tokens, q.Chunks, 200, 600, "check the content selector: it may take too little or too much of the page")
	}
	check("empty_ratio", q.Empty, q.Chunks, 0, 0.05, "check the content selector: it may match nothing on some pages")
	check("duplicate_ratio", q.Duplicate, q.Chunks, 0, 0.10, "check the remove selectors and the blocked paths: pages repeat each other's text")
	check("chunks_per_page", q.Chunks, q.Pages, 1, 20, "check the content selector and the allowed paths")
	return out
}
