package runs

import (
	"cmp"
	"net/url"

	"github.com/newsfork/seed-engine/io/ledger"
)

// FailureGroup are reasons of failure of one sort.
type FailureGroup struct {
	Name    string
	Reasons []reason
}

// reason is why something failed, with examples.
type reason struct {
	Bar
	Examples []example
}

// example is one thing that failed.
type example struct {
	Text string
	Href string // where it can be seen; "" for nowhere
	Log  string // what its lines of the log have; "" for nothing
}

// maxExamples is how many examples a reason has on the page.
const maxExamples = 3

// FailuresOf are the reasons of what failed in a run.
func FailuresOf(r ledger.Report, open []DeadLetter) (groups []FailureGroup) {
	add := func(name string, counts ledger.Counts, class func(string) string, examples func(kind string) []example) {
		g := FailureGroup{Name: name}
		for _, b := range Bars(counts, class) {
			g.Reasons = append(g.Reasons, reason{b, examples(b.Name)})
		}
		if len(g.Reasons) > 0 {
			groups = append(groups, g)
		}
	}
	bad := func(string) string { return "bad" }
	urls := func(kind string) (all []example) {
		for _, u := range r.HTTP.Examples[kind] {
			e := example{Text: u, Href: u}
			if parsed, err := url.Parse(u); err == nil {
				e.Log = parsed.Hostname()
			}
			all = append(all, e)
		}
		return all
	}
	refused := ledger.Counts{}
	for status, n := range r.HTTP.ByStatus {
		if status >= "4" {
			refused[status] = n
		}
	}
	add("Requests without an answer", r.HTTP.Failures, bad, urls)
	add("Answers 4xx and 5xx", refused, StatusClass, urls)
	add("Dead letters", r.DeadLetters, bad, func(kind string) (all []example) {
		for _, d := range open {
			if d.Kind == kind && len(all) < maxExamples {
				in := d.Input
				all = append(all, example{Text: cmp.Or(in.DomainID, in.URL, in.Source, in.File, in.Key, d.ID), Href: "#dead-letter-" + d.ID})
			}
		}
		return all
	})
	return groups
}

// DeadLetter is a dead letter with its id.
type DeadLetter struct {
	ID string `json:"id"`
	ledger.DeadLetter
}
