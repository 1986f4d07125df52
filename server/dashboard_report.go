package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reportRow is one job in one day's or week's report.
type reportRow struct {
	Job  string
	What job
	JobSummary
	Failures int64
}

type reportView struct {
	Summary
	Rows []reportRow
}

func (p *pages) reports(*call) (any, error) {
	var all []reportView
	for _, s := range p.server.reports.all() {
		v := reportView{Summary: s}
		for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
			j, _ := p.server.jobs.started().named(name)
			v.Rows = append(v.Rows, reportRow{Job: name, What: j, JobSummary: s.Jobs[name], Failures: total(s.Jobs[name].HTTP.Failures)})
		}
		all = append(all, v)
	}
	return all, nil
}

// Good is the job's main count, with its name.
func (r reportRow) Good() string {
	if r.What.Done == "" {
		return "–"
	}
	return formatCount(r.Counts[r.What.Done]) + " " + words(r.What.Done)
}

// States are the numbers of runs by state, as text.
func (r reportRow) States() string {
	var out []string
	for _, state := range slices.Sorted(maps.Keys(r.Runs)) {
		out = append(out, fmt.Sprintf("%d %s", r.Runs[state], state))
	}
	return strings.Join(out, ", ")
}

// DeadLetterCount is how many dead letters there were.
func (r reportRow) DeadLetterCount() int64 { return total(r.DeadLetters) }
