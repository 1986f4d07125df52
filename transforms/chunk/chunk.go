// Package chunk cuts Markdown into pieces for embedding and compares two states
// of a page by its blocks. It is pure: no network, no clock, no logging.
package chunk

// Limits bound a chunk's size, in tokens of cl100k_base.
type Limits struct {
	Max int // no chunk has more
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
	ID string `json:"id"`
	// Ordinal counts a page's chunks from 0.
	Ordinal int `json:"ordinal"`
	// Path is the headings above the chunk's beginning, outermost first, its own
	// heading last.
	Path []string `json:"path,omitempty"`
	// Tokens is the length of Text in tokens of cl100k_base.
	Tokens int `json:"tokens"`
	// Hash is the SHA-256 of Text, in hexadecimal.
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Preview is the beginning of the text, at most MaxPreview characters.
func (c Chunk) Preview() string { return "" }

// Split cuts a page's Markdown by its headings. page is the page's key; it only
// enters the ids. Joined with blank lines the chunks hold all of the text; code
// is cut between lines, and a line only where it alone is over the limit.
func Split(page, markdown string, l Limits) []Chunk { return nil }

// Tokens is how many tokens of cl100k_base text has.
func Tokens(text string) int { return 0 }
