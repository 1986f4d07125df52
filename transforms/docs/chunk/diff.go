package chunk

import (
	"slices"
	"strconv"
	"strings"
)

// Kinds of changes.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
	moved   = "moved"
)

// Change is a section in which two states of a page differ.
type Change struct {
	Path []string `json:"path,omitempty"` // the section's headings; none for blocks before the first
	Kind string   `json:"kind"`
	// Added and Removed count blocks.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
}

// section has the blocks below one heading, up to the next.
type section struct {
	path   []string
	hashes []string
}

// Diff lists the sections in which after differs from before: added, changed and moved ones in the order of after, then removed ones. A
// section is identified by its headings, and its number among equal ones.
func Diff(before, after []Block) []Change {
	old, oldOrder := group(before)
	current, order := group(after)
	var changes []Change
	var kept []int // the indexes in before of the sections that after has too
	at := make(map[string]int)
	for i, key := range oldOrder {
		at[key] = i
	}
	for _, key := range order {
		if i, ok := at[key]; ok {
			kept = append(kept, i)
		}
	}
	stay := increasing(kept)
	for _, key := range order {
		s := current[key]
		o, ok := old[key]
		if !ok {
			changes = append(changes, Change{Path: s.path, Kind: added, Added: len(s.hashes)})
			continue
		}
		if added, removed := differ(o.hashes, s.hashes); added+removed > 0 || !slices.Equal(o.hashes, s.hashes) {
			changes = append(changes, Change{Path: s.path, Kind: changed, Added: added, Removed: removed})
		} else if !stay[at[key]] {
			changes = append(changes, Change{Path: s.path, Kind: moved})
		}
	}
	for _, key := range oldOrder {
		if _, ok := current[key]; !ok {
			changes = append(changes, Change{Path: old[key].path, Kind: removed, Removed: len(old[key].hashes)})
		}
	}
	return changes
}

// group groups blocks by section; order has the keys in order.
func group(blocks []Block) (sections map[string]*section, order []string) {
	sections = make(map[string]*section)
	seen := make(map[string]int)
	var last *section
	for i, b := range blocks {
		if last == nil || !slices.Equal(b.Path, blocks[i-1].Path) {
			key := strings.Join(b.Path, "\x1f")
			seen[key]++
			key += "\x1e" + strconv.Itoa(seen[key])
			last = &section{path: b.Path}
			sections[key] = last
			order = append(order, key)
		}
		last.hashes = append(last.hashes, b.Hash)
	}
	return sections, order
}

// maxCells is the maximum size of the table in differ.
const maxCells = 1 << 22

// differ returns how many hashes of b are new and how many of a are gone. It uses
// the longest common subsequence, or, for very long lists, the number of times that
// each hash occurs.
func differ(a, b []string) (added, removed int) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > maxCells {
		left := make(map[string]int)
		for _, h := range a {
			left[h]++
		}
		common := 0
		for _, h := range b {
			if left[h] > 0 {
				left[h]--
				common++
			}
		}
		return len(b) - common, len(a) - common
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return len(b) - row[len(b)], len(a) - row[len(b)]
}

// increasing returns the members of a longest increasing subsequence: the sections
// that stayed in order. The others moved.
func increasing(places []int) map[int]bool {
	var tails []int                    // indexes into places
	before := make([]int, len(places)) // the index before each in its sequence
	for i, p := range places {
		n, _ := slices.BinarySearchFunc(tails, p, func(t, p int) int { return places[t] - p })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	members := make(map[int]bool)
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = before[i] {
			members[places[i]] = true
		}
	}
	return members
}
