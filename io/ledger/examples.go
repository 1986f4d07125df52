package ledger

import (
	"slices"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Examples are URLs by what was wrong with them. Addition is commutative and
// associative, and keeps a few of each.
type Examples map[string][]string

const (
	maxExamples    = 3   // of one kind
	maxExampleSize = 400 // bytes of one
)

// ExampleText makes a stranger's URL fit for Examples: without secrets, control
// characters and excess length.
func ExampleText(url string) string {
	return untrusted.Text(Redact(url), maxExampleSize)
}

func (e *Examples) add(o Examples) {
	if *e == nil && len(o) > 0 {
		*e = make(Examples, len(o))
	}
	for kind, urls := range o {
		all := slices.Concat((*e)[kind], urls)
		slices.Sort(all)
		all = slices.Compact(all)
		(*e)[kind] = slices.Clip(all[:min(len(all), maxExamples)])
	}
}

// minus returns the URLs of e that o does not have.
func (e Examples) minus(o Examples) (d Examples) {
	for kind, urls := range e {
		for _, u := range urls {
			if slices.Contains(o[kind], u) {
				continue
			}
			if d == nil {
				d = Examples{}
			}
			d[kind] = append(d[kind], u)
		}
	}
	return d
}
