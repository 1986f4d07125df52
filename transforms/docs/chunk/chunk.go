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

// Default is what the docs job uses.
var Default = Limits{Max: 500, Min: 50}

// MaxPreview is how many characters of a chunk are stored in the database; the full
// text is only in the hand-off for embedding.
const MaxPreview = 500

// Chunk is a piece of a page.
type Chunk struct {
	// ID is made of the page's key, the text, and which of the page's equal texts
	// this is: the same text has the same id in every run, wherever it moves.
	// 32 hexadecimal digits.
	ID string `json:"id"`
	// Ordinal counts a page's chunks from 0.
	Ordinal int `json:"ordinal"`
	// Path is the headings that all of the chunk is below, outermost first; its own
	// text begins with the last of them where a section begins with it.
	Path []string `json:"path,omitempty"`
	// Anchor is the fragment that leads a browser to the chunk's section of the
	// page, without "#"; "" where the page has none there.
	Anchor string `json:"anchor,omitempty"`
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
// enters the ids. anchors are the fragments of the headings, in order; those
// that are missing are "". Together the chunks have all words of the text, in order. Code
// is cut between lines only, in fences of its own, and a table between rows,
// under its head; a line is cut only where it alone is over the limit, at the
// ends of sentences or words where it can be.
func Split(page, markdown string, anchors []string, l Limits) []Chunk {
	s := splitter{limits: l}
	s.sections(scan(markdown, anchors))
	s.merge()
	chunks := make([]Chunk, 0, len(s.drafts))
	seen := make(map[string]int)
	for i, d := range s.drafts {
		sum := sha256.Sum256([]byte(d.text))
		c := Chunk{Ordinal: i, Path: d.path, Tokens: d.tokens, Hash: hex.EncodeToString(sum[:]), Text: d.text}
		for _, a := range d.anchors { // the nearest heading that has one
			if a != "" {
				c.Anchor = a
			}
		}
		id := sha256.Sum256([]byte(page + "\x00" + c.Hash + "\x00" + strconv.Itoa(seen[c.Hash])))
		seen[c.Hash]++
		c.ID = hex.EncodeToString(id[:16])
		chunks = append(chunks, c)
	}
	return chunks
}

// draft is an unfinished chunk.
type draft struct {
	path, anchors []string // the same length
	text          string
	tokens        int
}

func draftOf(b block, text string) draft {
	return draft{path: b.path, anchors: b.anchors, text: text, tokens: Tokens(text)}
}

type splitter struct {
	limits Limits
	drafts []draft
}

// sections makes drafts of the blocks: a new one at each heading and at the
// limit. A heading stays with what is below it, and an introduction with what
// it introduces.
func (s *splitter) sections(blocks []block) {
	var d draft
	end := func() {
		if d.text == "" {
			return
		}
		for _, text := range s.fit(d.text) {
			s.drafts = append(s.drafts, draft{path: d.path, anchors: d.anchors, text: text, tokens: Tokens(text)})
		}
		d = draft{}
	}
	put := func(next draft, begins bool) {
		// Joining two texts can change the number of tokens by one.
		if d.text != "" && (begins || d.tokens+next.tokens+1 > s.limits.Max) {
			end()
		}
		if d.text == "" {
			d = next
			return
		}
		d.text += "\n\n" + next.text
		d.tokens += next.tokens + 1
	}
	var lead draft // headings and introductions, kept for the block after them
	heading, introduced := false, false
	flush := func() {
		if lead.text != "" {
			put(lead, heading)
		}
		lead, heading, introduced = draft{}, false, false
	}
	for _, b := range blocks {
		if b.heading && lead.text != "" && (len(b.path) <= len(lead.path) || shared(b.path, lead.path) < len(lead.path)) {
			flush() // that heading has no text
		}
		tokens := count(b.text, s.limits.Max)
		if lead.text != "" && lead.tokens+1 > s.limits.Max/2 {
			flush()
		}
		if (b.heading || b.introduces()) && tokens <= s.limits.Max/2 {
			if lead.text == "" {
				lead = draftOf(b, b.text)
			} else {
				lead.text += "\n\n" + b.text
				lead.tokens += tokens + 1
				if !introduced { // the chunk is of the place where its first words are
					lead.path, lead.anchors = b.path, b.anchors
				}
			}
			heading, introduced = heading || b.heading, introduced || !b.heading
			continue
		}
		for i, text := range s.pieces(b, lead) {
			next := draftOf(b, text)
			if i == 0 && introduced {
				next.path, next.anchors = lead.path, lead.anchors
			}
			put(next, heading && i == 0)
		}
		lead, heading, introduced = draft{}, false, false
	}
	flush()
	end()
}

// merge joins each draft that is too small with a neighbour, where both fit into
// one: with the one it shares most headings with, since the path of both
// together is what they share.
func (s *splitter) merge() {
	var merged []draft
	for i, d := range s.drafts {
		last := len(merged) - 1
		if d.tokens >= s.limits.Min {
			merged = append(merged, d)
			continue
		}
		var back, ahead draft
		if last >= 0 {
			back = s.joined(merged[last], d)
		}
		if i+1 < len(s.drafts) {
			ahead = s.joined(d, s.drafts[i+1])
		}
		switch {
		case back.text != "" && (ahead.text == "" || len(back.path) > len(ahead.path) || len(back.path) == len(ahead.path) && len(back.path) == len(merged[last].path)):
			merged[last] = back
		case ahead.text != "":
			s.drafts[i+1] = ahead
		default:
			merged = append(merged, d)
		}
	}
	s.drafts = merged
}

// joined returns two drafts as one; it has no text when that would be over the limit.
func (s *splitter) joined(a, b draft) draft {
	if a.tokens+b.tokens > s.limits.Max {
		return draft{}
	}
	text := a.text + "\n\n" + b.text
	tokens := Tokens(text)
	if tokens > s.limits.Max {
		return draft{}
	}
	n := shared(a.path, b.path)
	return draft{path: a.path[:n:n], anchors: a.anchors[:n:n], text: text, tokens: tokens}
}

// shared is how many headings two paths have in common, from the outermost.
func shared(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// fit returns the text, halved until each part is within the limit, because the sums
// of tokens are not always exact.
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

// pieces are a block's text behind what leads to it, cut where that is over the
// limit. Where no piece of the block fits behind the lead, the lead is a piece of its own.
func (s *splitter) pieces(b block, lead draft) []string {
	before, room := "", s.limits.Max
	first := room // of the first piece
	if lead.text != "" {
		before, first = lead.text+"\n\n", room-lead.tokens-1
	}
	if count(b.text, first) <= first {
		return []string{before + b.text}
	}
	lines := strings.Split(b.text, "\n")
	var head, foot string
	code := b.fence != ""
	whole := code // its lines are cut only where one alone is over the limit
	switch {
	case code && lines[0] == b.fence && len(lines) > 1:
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
		whole = true
	}
	// One token more for each end that may part where the texts meet.
	ends := Tokens(head) + Tokens(foot) + 2
	if room -= ends; head != "" && room < s.limits.Max/2 {
		head, foot, room, ends = "", "", s.limits.Max, 0
		lines = strings.Split(b.text, "\n")
	}
	first -= ends
	var pieces []string
	var piece []string
	sum, left := 0, first
	end := func() {
		if text := strings.Trim(strings.Join(piece, "\n"), "\n"); strings.TrimSpace(text) != "" {
			pieces = append(pieces, before+head+text+foot)
			before, left = "", room
		}
		piece, sum = nil, 0
	}
	alone := func() {
		pieces = append(pieces, lead.text)
		before, left = "", room
	}
	for _, l := range lines {
		tokens := count(l, room) + 1
		if sum+tokens > left {
			end()
		}
		if before != "" && tokens > left && (left < s.limits.Max/4 || whole && tokens <= room) {
			alone()
		}
		if tokens <= left {
			piece = append(piece, l)
			sum += tokens
			continue
		}
		for l != "" {
			var part string
			if part, l = cut(l, left-1, code); part != "" {
				piece = []string{part}
				end()
			}
		}
	}
	end()
	if before != "" && lead.text != "" {
		pieces = append(pieces, lead.text)
	}
	return pieces
}

// cut parts the beginning of a line, of at most limit tokens, from the rest: of
// prose at the end of a sentence, else of a word, else of a character.
func cut(l string, limit int, code bool) (part, rest string) {
	n := prefix(l, limit)
	if n < len(l) {
		if at := lastSentence(l[:n]); at > n/2 && !code {
			n = at
		} else if at := strings.LastIndexByte(l[:n], ' '); at > n/2 {
			n = at + 1
		}
	}
	if part, rest = l[:n], l[n:]; !code {
		part, rest = strings.TrimRight(part, " "), strings.TrimLeft(rest, " ")
	}
	return part, rest
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
