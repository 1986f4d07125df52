// Package similar finds the names that somebody may have meant by a misspelt one. No promise: see docs/library.md.
package similar

import (
	"slices"
)

// Names are the most similar ones of known, the best first, at most most.
func Names(name string, known []string, most int) []string {
	near := slices.Compact(slices.Sorted(slices.Values(known)))
	slices.SortStableFunc(near, func(a, b string) int { return distance(a, name) - distance(b, name) })
	return near[:min(most, len(near))]
}

// distance is the number of characters to insert, remove or replace to make b from a
// (the Levenshtein distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Near is the one of known that was probably meant by a misspelt name; "": none is similar enough.
func Near(name string, known []string) string {
	if near := Names(name, known, 1); len(near) > 0 && distance(near[0], name) <= max(1, min(3, len(name)/2)) {
		return near[0]
	}
	return ""
}
