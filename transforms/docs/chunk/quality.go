package chunk

import (
	"strings"
	"unicode"
)

// Quality sums figures over the pages of a provider. They show whether its
// selectors and paths are right. The zero value is ready to use. It is not safe
// for concurrent use.
type Quality struct {
	Pages, Chunks, Tokens int
	Empty                 int // chunks with headings only
	Duplicate             int // chunks with the text of an earlier chunk of any page
	Small                 int // chunks under Default.Min, which could not be joined with a neighbour
	MinPage, MaxPage      int // fewest and most chunks of a page that has chunks

	seen map[string]struct{}
}

// Add counts the chunks of one page.
func (q *Quality) Add(chunks []Chunk) {
	q.Pages++
	if len(chunks) == 0 {
		return
	}
	q.Chunks += len(chunks)
	if q.MinPage == 0 || len(chunks) < q.MinPage {
		q.MinPage = len(chunks)
	}
	q.MaxPage = max(q.MaxPage, len(chunks))
	if q.seen == nil {
		q.seen = make(map[string]struct{})
	}
	for _, c := range chunks {
		q.Tokens += c.Tokens
		if empty(c.Text) {
			q.Empty++
		}
		if c.Tokens < Default.Min {
			q.Small++
		}
		if _, ok := q.seen[c.Hash]; ok {
			q.Duplicate++
		}
		q.seen[c.Hash] = struct{}{}
	}
}

func empty(text string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		if depth, _ := headingOf(l); depth == 0 && strings.ContainsFunc(l, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			return false
		}
	}
	return true
}

// AverageTokens is the average number of tokens of a chunk, 0 without chunks.
func (q *Quality) AverageTokens() float64 { return ratio(q.Tokens, q.Chunks) }

// EmptyRatio is the share of chunks with headings only.
func (q *Quality) EmptyRatio() float64 { return ratio(q.Empty, q.Chunks) }

// DuplicateRatio is the share of chunks that repeat another's text.
func (q *Quality) DuplicateRatio() float64 { return ratio(q.Duplicate, q.Chunks) }

// ChunksPerPage is the average over all pages.
func (q *Quality) ChunksPerPage() float64 { return ratio(q.Chunks, q.Pages) }

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Figure is a figure of Quality that is out of its range.
type Figure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"` // tokens, chunks, or a ratio from 0 to 1
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	WhatToDo string  `json:"what_to_do"`
}

// Outside lists the figures out of range; none if no page was counted.
func (q *Quality) Outside() []Figure {
	if q.Pages == 0 {
		return nil
	}
	var out []Figure
	check := func(name string, value, low, high float64, what string) {
		if value < low || value > high {
			out = append(out, Figure{name, value, low, high, what})
		}
	}
	if q.Chunks > 0 {
		check("average_tokens", q.AverageTokens(), 200, 600, "check the content selector: it may take too little or too much of the page")
	}
	check("empty_ratio", q.EmptyRatio(), 0, 0.05, "check the content selector: it may match nothing on some pages")
	check("duplicate_ratio", q.DuplicateRatio(), 0, 0.10, "check the remove selectors and the blocked paths: pages repeat each other's text")
	check("chunks_per_page", q.ChunksPerPage(), 1, 20, "check the content selector and the allowed paths")
	return out
}
