package pipeline

import (
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
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
		text := strings.Join(known, ", ")
		if near := similar.Near(name, known); near != "" {
			text += "; did you mean " + near + "?"
		}
		return usage.Errorf("--%s=%s: there is no such %s; known are %s", flag, name, what, text)
	}
	return usage.Errorf("--%s=%s: there is no such %s; the most similar of %d are %s", flag, name, what, len(known), strings.Join(similar.Names(name, known, 5), ", "))
}
