package runs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// DayRange is a range of days in UTC, both included. An empty one has no limit.
type DayRange struct {
	From, To   string // like 2026-11-20
	Begin, End time.Time
}

// Read reads the two days, which are checked.
func (d *DayRange) Read(q url.Values) {
	d.From, d.To = q.Get("from"), q.Get("to")
	d.Begin, _ = time.Parse(time.DateOnly, d.From)
	if to, err := time.Parse(time.DateOnly, d.To); err == nil {
		d.End = to.AddDate(0, 0, 1)
	}
}

// FilterFields are the parameters that all filters have. what is that of which the days are.
func FilterFields(what, in string) []option.Option {
	text := option.Option{Name: "text", Kind: option.Text, Usage: "Only with this text in " + in + ". Case does not matter.",
		Wrong: "use at most 200 letters"}
	const day = "write a day like 2026-11-20"
	return []option.Option{
		{Name: "from", Kind: option.Day, Usage: what + " on this day (UTC) or later.", Wrong: day},
		{Name: "to", Kind: option.Day, Usage: what + " on this day (UTC) or earlier.", Wrong: day},
		*text.Range(1, MaxFilterText),
	}
}

// NameField is a parameter whose values are ids.
func NameField(name, about, wrong string) option.Option {
	return option.Option{Name: name, Kind: option.Text, Pattern: "[A-Za-z0-9][A-Za-z0-9_-]{0,127}", Usage: about, Wrong: wrong}
}

func (d DayRange) has(t time.Time) bool {
	return !t.Before(d.Begin) && (d.End.IsZero() || t.Before(d.End))
}

// MaxFilterText is how many letters a text to search for may have.
const MaxFilterText = 200

// FilterText is the text that a query searches for, in lower case.
func FilterText(q url.Values) string { return strings.ToLower(strings.TrimSpace(q.Get("text"))) }

// States are the words of entry.State.
var States = []string{"starting", string(ledger.Running), string(ledger.Paused), string(ledger.Silent), "cancelling",
	string(ledger.Done), string(ledger.Failed), string(ledger.Interrupted), string(ledger.Cancelled), "unreadable"}

// Filter chooses the runs of a list, of a page and of the API. All of it is in the
// URL.
type Filter struct {
	Job, State, Text string
	DayRange
	Before string // only runs whose id sorts before this one
}

// FilterParameters are the parameters of a list of runs.
func FilterParameters(jobs known.Jobs) []option.Option {
	return append([]option.Option{
		{Name: "job", Kind: option.Text, Choices: jobs.Names()},
		{Name: "state", Kind: option.Text, Choices: States, Usage: "Only runs in this state.",
			Wrong: "use one of " + strings.Join(States, ", ")},
		NameField("before", "Only runs whose id sorts before this one.", "that is not a run's id"),
	}, FilterFields("Only runs that started", "the id, the job, the runner, the error or an option")...)
}

// ReadFilter reads the filter in the parameters of a request, and refuses wrong ones.
func ReadFilter(q url.Values, jobs known.Jobs) (f Filter, err error) {
	f = Filter{Job: q.Get("job"), State: q.Get("state"), Before: q.Get("before"), Text: FilterText(q)}
	f.Read(q)
	return f, known.Checked(q, FilterParameters(jobs), false)
}

// Page returns the filter's runs, at most limit, and whether there are more.
func (f Filter) Page(runs []*Entry, limit int) (found []*Entry, more bool) {
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

func (f Filter) has(e *Entry) bool {
	return (f.Job == "" || e.Run.Job == f.Job) && (f.State == "" || e.State() == f.State) &&
		f.DayRange.has(e.Run.StartedAt) && (f.Text == "" || strings.Contains(e.text(), f.Text))
}

// text is what a search finds a run by, in lower case.
func (e *Entry) text() string {
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
func (f Filter) Chosen() bool { return len(f.given()) > 0 }

// URL is the page with the filter's runs before an id; "" means the newest.
func (f Filter) URL(before string) string {
	q := f.given()
	if before != "" {
		q.Set("before", before)
	}
	return strings.TrimSuffix("/runs?"+q.Encode(), "?")
}

func (f Filter) given() url.Values {
	return Given("job", f.Job, "state", f.State, "from", f.From, "to", f.To, "text", f.Text)
}

// Given are parameters of a URL, by names and values in turn, without the empty ones.
func Given(pairs ...string) url.Values {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return q
}
