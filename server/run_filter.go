package server

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// dayRange is a range of days in UTC, both included. An empty one has no limit.
type dayRange struct {
	From, To   string // like 2026-11-20
	begin, end time.Time
}

// read reads the two days, which are checked.
func (d *dayRange) read(q url.Values) {
	d.From, d.To = q.Get("from"), q.Get("to")
	d.begin, _ = time.Parse(time.DateOnly, d.From)
	if to, err := time.Parse(time.DateOnly, d.To); err == nil {
		d.end = to.AddDate(0, 0, 1)
	}
}

// filterFields are the parameters that all filters have. what is that of which the days are.
func filterFields(what, in string) []option.Option {
	text := option.Option{Name: "text", Kind: option.Text, Usage: "Only with this text in " + in + ". Case does not matter.",
		Wrong: "use at most 200 letters"}
	const day = "write a day like 2026-11-20"
	return []option.Option{
		{Name: "from", Kind: option.Day, Usage: what + " on this day (UTC) or later.", Wrong: day},
		{Name: "to", Kind: option.Day, Usage: what + " on this day (UTC) or earlier.", Wrong: day},
		*text.Range(1, maxFilterText),
	}
}

// nameField is a parameter whose values are ids.
func nameField(name, about, wrong string) option.Option {
	return option.Option{Name: name, Kind: option.Text, Pattern: "[A-Za-z0-9][A-Za-z0-9_-]{0,127}", Usage: about, Wrong: wrong}
}

func (d dayRange) has(t time.Time) bool {
	return !t.Before(d.begin) && (d.end.IsZero() || t.Before(d.end))
}

// maxFilterText is how many letters a text to search for may have.
const maxFilterText = 200

// filterText is the text that a query searches for, in lower case.
func filterText(q url.Values) string { return strings.ToLower(strings.TrimSpace(q.Get("text"))) }

// runStates are the words of entry.State.
var runStates = []string{"starting", string(ledger.Running), string(ledger.Paused), "cancelling",
	string(ledger.Done), string(ledger.Failed), string(ledger.Interrupted), string(ledger.Cancelled), "unreadable"}

// runFilter chooses the runs of a list, of a page and of the API. All of it is in the
// URL.
type runFilter struct {
	Job, State, Text string
	dayRange
	Before string // only runs whose id sorts before this one
}

func runFields(known jobList) []option.Option {
	return append([]option.Option{
		{Name: "job", Kind: option.Text, Choices: known.names()},
		{Name: "state", Kind: option.Text, Choices: runStates, Usage: "Only runs in this state.",
			Wrong: "use one of " + strings.Join(runStates, ", ")},
		nameField("before", "Only runs whose id sorts before this one.", "that is not a run's id"),
	}, filterFields("Only runs that started", "the id, the job, the runner, the error or an option")...)
}

func readRunFilter(q url.Values, known jobList) (f runFilter, err error) {
	f = runFilter{Job: q.Get("job"), State: q.Get("state"), Before: q.Get("before"), Text: filterText(q)}
	f.read(q)
	return f, checked(q, runFields(known), false)
}

// page returns the filter's runs, at most limit, and whether there are more.
func (f runFilter) page(runs []*entry, limit int) (found []*entry, more bool) {
	for _, e := range runs {
		if f.Before != "" && e.Run.RunID >= f.Before || !f.has(e) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, e)
	}
	return found, false
}

func (f runFilter) has(e *entry) bool {
	return (f.Job == "" || e.Run.Job == f.Job) && (f.State == "" || e.State() == f.State) &&
		f.dayRange.has(e.Run.StartedAt) && (f.Text == "" || strings.Contains(e.text(), f.Text))
}

// text is what a search finds a run by, in lower case.
func (e *entry) text() string {
	var b strings.Builder
	for _, s := range []string{e.Run.RunID, e.Run.Job, e.Run.Runner, e.Error()} {
		b.WriteString(s + "\n")
	}
	for name, v := range e.Run.Options {
		fmt.Fprintf(&b, "%s=%v\n", name, v)
	}
	return strings.ToLower(b.String())
}

// Chosen reports whether the filter leaves out any run.
func (f runFilter) Chosen() bool {
	return f.Job+f.State+f.From+f.To+f.Text != ""
}

// URL is the page with the filter's runs before an id; "" means the newest.
func (f runFilter) URL(before string) string {
	q := url.Values{}
	for name, v := range map[string]string{"job": f.Job, "state": f.State, "from": f.From, "to": f.To, "text": f.Text, "before": before} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}
