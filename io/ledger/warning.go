package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Warning counts how often a run saw the same problem at one source.
type Warning struct {
	Kind   string `json:"kind"`            // of Job.Warnings
	Source string `json:"source"`          // as in a dead letter's Input
	Field  string `json:"field,omitempty"` // of what the source gives
	Count  int64  `json:"count"`
}

// maxWarnings is the maximum number of warnings in a tally. If there are more, the
// first ones by kind, source and field are kept, so that the result does not depend on
// the order of addition.
const maxWarnings = 1000

func (w Warning) compare(o Warning) int {
	return cmp.Or(strings.Compare(w.Kind, o.Kind), strings.Compare(w.Source, o.Source), strings.Compare(w.Field, o.Field))
}

// addWarnings adds two sorted lists of warnings. It changes neither.
func addWarnings(a, b []Warning) []Warning {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, Warning.compare)
	sum := all[:0]
	for _, w := range all {
		if last := len(sum) - 1; last >= 0 && sum[last].compare(w) == 0 {
			sum[last].Count += w.Count
			continue
		}
		sum = append(sum, w)
	}
	return sum[:min(len(sum), maxWarnings)]
}

// Complaint is what a run saw wrong at one source.
type Complaint struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// inWords is a warning as a complaint.
func (j Job) inWords(w Warning) Complaint {
	text, ok := j.Warnings[w.Kind]
	if !ok {
		return Complaint{w.Source, fmt.Sprintf("%s %s, %d times", w.Kind, w.Field, w.Count)}
	}
	return Complaint{w.Source, strings.NewReplacer("{field}", w.Field, "{n}", strconv.FormatInt(w.Count, 10)).Replace(text)}
}

// Complain adds a complaint to a report, and the alert that says it. kind is what the
// source is, such as site.
func (r *Report) Complain(kind string, c Complaint) {
	r.Complaints = append(r.Complaints, c)
	r.Alerts = append(r.Alerts, strings.TrimSpace(kind+" "+c.Source)+": "+c.Text)
}
