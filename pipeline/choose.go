package pipeline

import (
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/usage"
)

// manyNames is the number of names up to which an error lists all of them.
const manyNames = 20

// choose returns the names that a flag's value lists, separated by commas; nil: the
// flag was not given. Each must be one of known. what says what is named.
func choose(flag, value, what string, known []string) ([]string, error) {
	if value == "" {
		return nil, nil
	}
	var chosen []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, unknown(flag, name, what, known)
		}
		if !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	return chosen, nil
}

// unknown is the error for a name that nothing has: it lists the known ones, or the most
// similar ones of many.
func unknown(flag, name, what string, known []string) error {
	known = slices.Clone(known)
	slices.Sort(known)
	known = slices.Compact(known)
	if len(known) <= manyNames {
		return usage.Errorf("--%s=%s: there is no such %s; known are %s", flag, name, what, strings.Join(known, ", "))
	}
	slices.SortStableFunc(known, func(a, b string) int { return distance(a, name) - distance(b, name) })
	return usage.Errorf("--%s=%s: there is no such %s; the most similar of %d are %s", flag, name, what, len(known), strings.Join(known[:5], ", "))
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
