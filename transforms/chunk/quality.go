package chunk

// Quality sums the figures of CPA-001 section 9.2 over the pages of a provider.
// The zero value is ready; it is not for use by several goroutines at once.
type Quality struct {
	Pages, Chunks, Empty, Duplicate, Tokens, Small int
	// MinPage and MaxPage are the fewest and most chunks of one page.
	MinPage, MaxPage int

	seen map[string]bool
}

// Add counts the chunks of one page.
func (q *Quality) Add(chunks []Chunk) {}

// Figure is one of section 9.2's figures that is out of its range.
type Figure struct {
	Name  string  // average_tokens, empty_ratio, duplicate_ratio, chunks_per_page
	Value float64 // tokens, ratios from 0 to 1, chunks
	Range string  // what is normal, for people
}

// Outside lists the figures out of range; none where no page was counted.
func (q *Quality) Outside() []Figure { return nil }
