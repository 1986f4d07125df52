// Package chunk cuts Markdown into pieces for embedding and compares two states
// of a page by its blocks. It is pure: no network, no clock, no logging.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bound a chunk's size, in tokens of cl100k_base.
type Limits struct {
	Max int // no chunk has more; at least 20
	Min int // chunks with fewer are merged with a neighbour where the sum stays within Max
}

// Default is CPA-001's: sections 8.1 and 9.2.
var Default = Limits{Max: 500, Min: 50}

// MaxPreview is how many characters of a chunk may be stored (CPA-001 section 8.1).
const MaxPreview = 500

// Chunk is a piece of a page.
type Chunk struct {
	// ID is made of the page's key, the text, and which of the page's equal texts
	// this is: the same text has the same id in every run, wherever it moves.
	// 32 hexadecimal digits.
	ID string `json:"id"`
	// Ordinal counts a page's chunks from 0.
	Ordinal int `json:"ordinal"`
	// Path is the headings above the chunk's first words, outermost first.
	Path []string `json:"path,omitempty"`
	// Tokens is the length of Text in tokens of cl100k_base.
	Tokens int `json:"tokens"`
	// Hash is the SHA-256 of Text, in hexadecimal.
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Preview is the beginning of the text, at most MaxPreview characters.
func (c Chunk) Preview() string { return first(c.Text, MaxPreview) }

// first is the beginning of text, at most so many characters.
func first(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

// Split cuts a page's Markdown by its headings. page is the page's key; it only
// enters the ids. Together the chunks have all words of the text, in order. Code
// is cut between lines only, in fences of its own, and a table between rows,
// under its head; a line is cut only where it alone is over the limit, at the
// ends of sentences or words where it can be.
func Split(page, markdown string, l Limits) []Chunk {
	s := splitter{limits: l}
	s.sections(scan(markdown))
	chunks := make([]Chunk, 0, len(s.drafts))
	seen := make(map[string]int)
	for i, d := range s.drafts {
		sum := sha256.Sum256([]byte(d.text))
		c := Chunk{Ordinal: i, Path: d.path, Tokens: d.tokens, Hash: hex.EncodeToString(sum[:]), Text: d.text}
		id := sha256.Sum256([]byte(page + "\x00" + c.Hash + "\x00" + strconv.Itoa(seen[c.Hash])))
		seen[c.Hash]++
		c.ID = hex.EncodeToString(id[:16])
		chunks = append(chunks, c)
	}
	return chunks
}

// draft is a chunk in the making.
type draft struct {
	path   []string
	text   string
	tokens int
	open   bool // has nothing but headings yet
}

type splitter struct {
	limits Limits
	drafts []draft
}

// sections makes drafts of the blocks: a new one at each heading and at the
// limit, headings together with what follows them.
func (s *splitter) sections(blocks []block) {
	var d draft
	end := func() {
		if d.text == "" {
			return
		}
		for _, text := range s.fit(d.text) {
			s.add(draft{path: d.path, text: text, tokens: Tokens(text)})
		}
		d = draft{}
	}
	put := func(b block, text string) {
		// Where two texts meet their tokens may part by one.
		tokens := Tokens(text)
		if d.text != "" && d.tokens+tokens+1 > s.limits.Max {
			end()
		}
		if d.text == "" {
			d = draft{path: b.path, text: text, tokens: tokens, open: b.heading}
			return
		}
		if d.open {
			d.path, d.open = b.path, b.heading
		}
		d.text += "\n\n" + text
		d.tokens += tokens + 1
	}
	for _, b := range blocks {
		if b.heading && !d.open {
			end()
		}
		if count(b.text, s.limits.Max) <= s.limits.Max {
			put(b, b.text)
			continue
		}
		for _, piece := range s.pieces(b) {
			put(b, piece)
		}
	}
	end()
}

// fit is the text, halved until each part is within the limit: what the sums
// above promise all but always.
func (s *splitter) fit(text string) []string {
	if Tokens(text) <= s.limits.Max {
		return []string{text}
	}
	at := len(text) / 2
	if n := strings.LastIndexByte(text[:at], '\n'); n > 0 {
		at = n
	} else {
		for at > 1 && !utf8.RuneStart(text[at]) {
			at--
		}
	}
	var parts []string
	for _, part := range []string{text[:at], text[at:]} {
		if part = strings.Trim(part, "\n"); part != "" {
			parts = append(parts, s.fit(part)...)
		}
	}
	return parts
}

// add appends a draft, merged with the one before it where either is too small
// and both fit into one.
func (s *splitter) add(d draft) {
	if last := len(s.drafts) - 1; last >= 0 {
		before := &s.drafts[last]
		if (before.tokens < s.limits.Min || d.tokens < s.limits.Min) && before.tokens+d.tokens <= s.limits.Max {
			joined := before.text + "\n\n" + d.text
			if tokens := Tokens(joined); tokens <= s.limits.Max {
				before.text, before.tokens = joined, tokens
				return
			}
		}
	}
	s.drafts = append(s.drafts, d)
}

// pieces cuts a block that is over the limit.
func (s *splitter) pieces(b block) []string {
	lines := strings.Split(b.text, "\n")
	var head, foot string
	room := s.limits.Max
	switch {
	case b.fence != "" && lines[0] == b.fence && len(lines) > 1:
		head = lines[0] + "\n"
		foot = "\n" + strings.Repeat(" ", len(b.fence)-len(strings.TrimLeft(b.fence, " "))) + opens(b.fence)
		lines = lines[1:]
		if closes(lines[len(lines)-1], opens(b.fence)) {
			foot = "\n" + lines[len(lines)-1]
			lines = lines[:len(lines)-1]
		}
	case len(lines) > 2 && strings.HasPrefix(lines[1], "| ---"):
		head = lines[0] + "\n" + lines[1] + "\n"
		lines = lines[2:]
	}
	// One token more for each end that may part where the texts meet.
	if room -= Tokens(head) + Tokens(foot) + 2; head != "" && room < s.limits.Max/2 {
		head, foot, room = "", "", s.limits.Max
		lines = strings.Split(b.text, "\n")
	}
	var pieces []string
	var piece []string
	sum := 0
	end := func() {
		if text := strings.Trim(strings.Join(piece, "\n"), "\n"); strings.TrimSpace(text) != "" {
			pieces = append(pieces, head+text+foot)
		}
		piece, sum = nil, 0
	}
	for _, l := range lines {
		tokens := count(l, room) + 1
		if tokens > room {
			end()
			for part := range cut(l, room-1, b.fence != "") {
				piece, sum = []string{part}, room
				end()
			}
			continue
		}
		if sum+tokens > room {
			end()
		}
		piece = append(piece, l)
		sum += tokens
	}
	end()
	return pieces
}

// cut yields the parts of a line of at most limit tokens: of prose to the ends
// of sentences, else of words, else of characters.
func cut(l string, limit int, code bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for l != "" {
			n := prefix(l, limit)
			if n < len(l) {
				if at := lastSentence(l[:n]); at > n/2 && !code {
					n = at
				} else if at := strings.LastIndexByte(l[:n], ' '); at > n/2 {
					n = at + 1
				}
			}
			part := l[:n]
			l = l[n:]
			if !code {
				part, l = strings.TrimRight(part, " "), strings.TrimLeft(l, " ")
			}
			if part != "" && !yield(part) {
				return
			}
		}
	}
}

// prefix is the length of the longest beginning of s, in whole characters, that
// is known to have at most limit tokens.
func prefix(s string, limit int) int {
	count, n := 0, 0
	for n < len(s) {
		// A word longer than this is cut, or a line of one word would be counted
		// again for each of its parts.
		end := min(len(s), n+limit)
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		w := wordLength(s[n:end])
		tokens := Tokens(s[n : n+w])
		if count+tokens > limit {
			break
		}
		count += tokens
		n += w
	}
	if n > 0 {
		return n
	}
	// A word over the limit: no character has more tokens than bytes.
	for n < len(s) {
		_, size := utf8.DecodeRuneInString(s[n:])
		if n > 0 && n+size > limit {
			break
		}
		n += size
	}
	return n
}

// lastSentence is the end of the last whole sentence in s, 0 for none.
func lastSentence(s string) int {
	best := 0
	for _, end := range []string{". ", "? ", "! ", "。", "！", "？"} {
		if at := strings.LastIndex(s, end); at >= 0 {
			best = max(best, at+len(end))
		}
	}
	return best
}
