// Package chunk cuts Markdown into pieces for embedding and compares two states
// of a page by its blocks. It is pure: no network, no clock, no logging. No promise: see docs/library.md.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bound a chunk's size, in tokens of cl100k_base.
type Limits struct {
	Max int // no chunk has more; Max is 20 or more
	Min int // chunks with fewer are merged with a neighbour where the sum stays within Max
}

// Default is what the docs job uses.
var Default = Limits{Max: 500, Min: 50}

// MaxPreview is how many characters of a chunk are stored in the database; the full
// text is only in the hand-off for embedding.
const MaxPreview = 500

// Chunk is a piece of a page.
type Chunk struct {
	// ID is a hash of the page's key, the text, and the number of the text among
	// equal texts of the page. So a text keeps its id in every run, wherever it
	// moves. It has 32 hexadecimal digits.
	ID string `json:"id"`
	// Ordinal counts a page's chunks from 0.
	Ordinal int `json:"ordinal"`
	// Path has the headings above all of the chunk, outermost first, and the first lines of the items of lists and
	// the terms of definitions within which it begins. When a section begins with the chunk, the text begins with
	// the last heading of Path.
	Path []string `json:"path,omitempty"`
	// Anchor is the URL fragment of the chunk's section, without "#"; "" when the
	// page has none there.
	Anchor string `json:"anchor,omitempty"`
	// Tokens is the length of Text in tokens of cl100k_base.
	Tokens int `json:"tokens"`
	// Hash is the SHA-256 of Text, in hexadecimal.
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Context returns the title of the chunk's page and the headings above the chunk on one
// line. A title that begins with the first heading ("Charges | Example API") stands alone.
func (c Chunk) Context(title string) string {
	path := c.Path
	if len(path) > 0 && strings.HasPrefix(title, path[0]) {
		path = path[1:]
	}
	parts := slices.DeleteFunc(append([]string{title}, path...), func(p string) bool { return p == "" })
	return strings.Join(parts, " > ")
}

// Preview returns the beginning of the text, at most MaxPreview characters.
func (c Chunk) Preview() string { return first(c.Text, MaxPreview) }

// first returns the first characters of text, at most n.
func first(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// Split cuts a page's Markdown by its headings. page is the page's key, for the ids; anchors are the fragments of the headings, "" for
// none. Together the chunks have all words, in order. Code is cut between lines with a fence each, a table between rows with its head, and
// a line only when it alone is over the limit.
func Split(page, markdown string, anchors []string, l Limits) []Chunk {
	return split(page, scan(markdown, anchors), l)
}

// SplitPages is Split for a document of numbered pages, which begin at the offsets
// starts of the Markdown: a chunk's anchor is the page on which it begins, as in page=12
// (RFC 8118).
func SplitPages(page, markdown string, starts []int, l Limits) []Chunk {
	blocks := scan(markdown, nil)
	n := 0
	for i, b := range blocks {
		for n < len(starts) && starts[n] <= b.at {
			n++
		}
		blocks[i].page = max(n, 1)
	}
	return split(page, blocks, l)
}

func split(page string, blocks []block, l Limits) []Chunk {
	s := splitter{limits: l}
	s.sections(blocks)
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
		if d.page > 0 {
			c.Anchor = "page=" + strconv.Itoa(d.page)
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
	page          int      // on which it begins, from 1; 0 in documents without pages
	text          string
	tokens        int
	counted       bool // tokens is Tokens(text), not a sum of parts
	above         int  // how many steps of path are not in its text
}

// draftOf makes a draft of a piece of a block, which is within items.
func draftOf(b block, within []string, text string, limit int) draft {
	tokens := b.tokens
	if text != b.text || tokens > limit {
		tokens = Tokens(text)
	}
	d := draft{path: b.path, anchors: b.anchors, page: b.page, text: text, tokens: tokens, counted: true}
	if len(within) > 0 {
		d.path, d.anchors = slices.Concat(b.path, within), slices.Concat(b.anchors, make([]string, len(within)))
	}
	if d.above = len(d.path); b.heading {
		d.above--
	}
	return d
}

type splitter struct {
	limits  Limits
	drafts  []draft // finished, except that merge may join them
	current draft   // takes blocks until it is full
	lead    lead
}

// lead is the headings and introductions that wait for the block after them.
type lead struct {
	draft
	heading, introduced bool // what it contains
}

// sections makes drafts of the blocks: a new one at each heading and at the limit. Headings and introductions stay with what follows.
func (s *splitter) sections(blocks []block) {
	for i := range blocks {
		blocks[i].tokens = count(blocks[i].text, s.limits.Max)
	}
	for i, b := range blocks {
		if whole := s.item(blocks[i:]); b.apart || s.lead.text == "" && whole <= s.limits.Max && s.current.tokens+whole > s.limits.Max {
			s.flush()
			s.finish()
		}
		if s.lead.text != "" && (b.heading && !below(b.path, s.lead.path) || s.lead.tokens+1 > s.limits.Max/2 ||
			s.lead.leaves(slices.Concat(b.path, b.outer))) {
			s.flush()
		}
		if (b.heading || b.introduces()) && b.tokens <= s.limits.Max/2 {
			s.addToLead(b)
			continue
		}
		for i, text := range s.pieces(b, s.lead.draft) {
			within := b.outer
			if i > 0 {
				within = b.inner
			}
			next := draftOf(b, within, text, s.limits.Max)
			if i == 0 && s.lead.introduced {
				next.path, next.anchors = s.lead.path, s.lead.anchors
			}
			if i == 0 && s.lead.text != "" {
				next.page, next.above = s.lead.page, s.lead.above
			}
			s.put(next, s.lead.heading && i == 0)
		}
		s.lead = lead{}
	}
	s.flush()
	s.finish()
}

// item returns the tokens of the item of a list that the first block begins, 0 for none. It counts up to the limit.
func (s *splitter) item(blocks []block) int {
	name := blocks[0].inner
	if len(name) == len(blocks[0].outer) {
		return 0
	}
	sum := 0
	for i, b := range blocks {
		if i > 0 && (b.heading || shared(name, b.outer) < len(name)) || sum > s.limits.Max {
			break
		}
		sum += b.tokens + 1
	}
	return sum
}

// addToLead keeps a heading or an introduction for the block after it.
func (s *splitter) addToLead(b block) {
	l := &s.lead
	if l.text == "" {
		l.draft = draftOf(b, b.outer, b.text, s.limits.Max)
	} else {
		l.text += "\n\n" + b.text
		l.tokens += b.tokens + 1
		l.counted = false
		if !l.introduced { // a draft has the path of its first words
			l.path, l.anchors = b.path, b.anchors
		}
	}
	l.heading, l.introduced = l.heading || b.heading, l.introduced || !b.heading
}

// flush makes text of the lead, because no block follows that belongs to it.
func (s *splitter) flush() {
	if s.lead.text != "" {
		s.put(s.lead.draft, s.lead.heading)
	}
	s.lead = lead{}
}

// put adds text to the current draft, or begins another one with it.
func (s *splitter) put(next draft, begins bool) {
	d := &s.current
	// Joining two texts can change the number of tokens by one.
	if d.text != "" && (begins || d.tokens+next.tokens+1 > s.limits.Max || d.leaves(next.path)) {
		s.finish()
	}
	if d.text == "" {
		*d = next
		return
	}
	d.text += "\n\n" + next.text
	d.tokens += next.tokens + 1
	d.counted = false
}

// finish ends the current draft.
func (s *splitter) finish() {
	d := s.current
	if d.text == "" {
		return
	}
	s.fit(d)
	s.current = draft{}
}

// below reports whether the path of a heading is below another heading's.
func below(path, other []string) bool {
	return len(path) > len(other) && shared(path, other) == len(other)
}

// leaves reports whether a draft would lose the name of what it begins in, if text of another path were in it.
func (d draft) leaves(path []string) bool { return shared(path, d.path) < d.above }

// merge joins each draft that is too small with a neighbour, if both together are
// within the limit. The path of joined drafts is what their paths share, so it
// prefers the neighbour with which the draft shares more headings.
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

// joined returns two drafts as one; it has no text when that would be over the limit, or without the name of the first.
func (s *splitter) joined(a, b draft) draft {
	if a.tokens+b.tokens > s.limits.Max || a.leaves(b.path) {
		return draft{}
	}
	text := a.text + "\n\n" + b.text
	tokens := Tokens(text)
	if tokens > s.limits.Max {
		return draft{}
	}
	n := shared(a.path, b.path)
	return draft{path: a.path[:n:n], anchors: a.anchors[:n:n], page: a.page, text: text, tokens: tokens, above: a.above}
}

// shared returns how many headings two paths have in common, from the outermost on.
func shared(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// fit finishes a draft. It halves the text until each part is within the limit: the
// sums of tokens are not always exact.
func (s *splitter) fit(d draft) {
	text := d.text
	if !d.counted {
		d.tokens, d.counted = Tokens(text), true
	}
	if d.tokens <= s.limits.Max {
		s.drafts = append(s.drafts, d)
		return
	}
	at := len(text) / 2
	if n := strings.LastIndexByte(text[:at], '\n'); n > 0 {
		at = n
	} else {
		for at > 1 && !utf8.RuneStart(text[at]) {
			at--
		}
	}
	for _, part := range []string{text[:at], text[at:]} {
		if part = strings.Trim(part, "\n"); strings.TrimSpace(part) != "" {
			s.fit(draft{path: d.path, anchors: d.anchors, page: d.page, text: part, above: d.above})
			d.above = len(d.path)
		}
	}
}

// frame returns what each piece of a block of code or of a table begins and ends with, and the lines between.
// A line of a whole block is cut only when it alone is over the limit.
func (b block) frame() (head string, lines []string, foot string, whole bool) {
	lines = strings.Split(b.text, "\n")
	switch {
	case b.fence != "" && lines[0] == b.fence && len(lines) > 1:
		head = lines[0] + "\n"
		foot = "\n" + strings.Repeat(" ", len(b.fence)-len(strings.TrimLeft(b.fence, " "))) + opens(b.fence)
		lines = lines[1:]
		if last := len(lines) - 1; closes(lines[last], opens(b.fence)) {
			lines, foot = lines[:last], "\n"+lines[last]
		}
		return head, lines, foot, true
	case len(lines) > 2 && strings.HasPrefix(strings.TrimLeft(lines[1], " >"), "| ---"):
		return lines[0] + "\n" + lines[1] + "\n", lines[2:], "", true
	}
	return "", lines, "", b.fence != ""
}

// pieces returns the lead and a block's text, cut within the limit. If nothing of the block fits behind the lead, that is a piece of its
// own.
func (s *splitter) pieces(b block, lead draft) []string {
	before, limit := "", s.limits.Max
	first := limit // of the first piece
	if lead.text != "" {
		before, first = lead.text+"\n\n", limit-lead.tokens-1
	}
	if b.tokens <= first {
		return []string{before + b.text}
	}
	head, lines, foot, whole := b.frame()
	// Joining head, lines and foot can add a token at each of the two joints.
	ends := Tokens(head) + Tokens(foot) + 2
	if limit -= ends; head != "" && limit < s.limits.Max/2 {
		head, foot, limit, ends = "", "", s.limits.Max, 0
		lines = strings.Split(b.text, "\n")
	}
	first -= ends
	var pieces []string
	var piece []string
	sum, left := 0, first
	end := func() {
		if text := strings.Trim(strings.Join(piece, "\n"), "\n"); strings.TrimSpace(text) != "" {
			pieces = append(pieces, before+head+text+foot)
			before, left = "", limit
		}
		piece, sum = nil, 0
	}
	alone := func() {
		pieces = append(pieces, lead.text)
		before, left = "", limit
	}
	for _, l := range lines {
		tokens := count(l, limit) + 1
		if sum+tokens > left && (whole || tokens <= limit || left-sum < s.limits.Max/4) {
			end()
		}
		if before != "" && tokens > left && (left < s.limits.Max/4 || whole && tokens <= limit) {
			alone()
		}
		if sum+tokens <= left {
			piece = append(piece, l)
			sum += tokens
			continue
		}
		for l != "" {
			var part string
			if part, l = cut(l, left-sum-1, b.fence != ""); part != "" {
				piece = append(piece, part)
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

// cut cuts a line after at most limit tokens. It cuts prose at the end of a
// sentence if possible, else of a word, else of a character.
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

// prefix returns the length of the longest beginning of s, in whole characters,
// that certainly has at most limit tokens.
func prefix(s string, limit int) int {
	count, n := 0, 0
	for n < len(s) {
		// A longer word is cut: otherwise a line of one word would be counted
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

// lastSentence returns the end of the last whole sentence in s, 0 for none.
func lastSentence(s string) int {
	best := 0
	for _, end := range []string{". ", "? ", "! ", "。", "！", "？"} {
		if at := strings.LastIndex(s, end); at >= 0 {
			best = max(best, at+len(end))
		}
	}
	return best
}
