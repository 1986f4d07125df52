package chunk

// Block is a paragraph, list, table, code block or heading of a page: what is
// remembered of it is where it stands and what its text hashes to.
type Block struct {
	Path []string `json:"path,omitempty"` // the headings above it, outermost first
	Hash string   `json:"hash"`           // of its text without outer and repeated space; 16 hexadecimal digits
}

// Blocks lists the blocks of Markdown in order.
func Blocks(markdown string) []Block { return nil }

// Change is a section in which two states of a page differ.
type Change struct {
	Path []string `json:"path,omitempty"`
	Kind string   `json:"kind"` // added, removed, changed, moved
	// Added and Removed count blocks.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
}

// Diff lists the sections that differ, in the order of the new state, removed
// ones where they stood.
func Diff(before, after []Block) []Change { return nil }
