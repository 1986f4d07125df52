package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/ledger"
)

// dayRange is a range of days in UTC, both included. An empty one has no limit.
type dayRange struct {
	From, To string // like 2026-11-20
	from, to time.Time
}

func readDays(q url.Values) (dayRange, error) {
	d := dayRange{From: q.Get("from"), To: q.Get("to")}
	for _, day := range []struct {
		name, text string
		at         *time.Time
	}{{"from", d.From, &d.from}, {"to", d.To, &d.to}} {
		if day.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, day.text)
		if err != nil {
			return d, refuse("%s: write a day like 2026-11-20", day.name)
		}
		*day.at = at
	}
	if !d.to.IsZero() {
		d.to = d.to.AddDate(0, 0, 1)
	}
	return d, nil
}

func (d dayRange) has(t time.Time) bool {
	return !t.Before(d.from) && (d.to.IsZero() || t.Before(d.to))
}

// maxFilterText is how many letters a text to search for may have.
const maxFilterText = 200

// searchText is the text that a query searches for, in lower case.
func searchText(q url.Values) (string, error) {
	text := strings.TrimSpace(q.Get("text"))
	if utf8.RuneCountInString(text) > maxFilterText {
		return "", refuse("text: use at most %d letters", maxFilterText)
	}
	return strings.ToLower(text), nil
}

// refuseEmpty refuses parameters without a value. A form sends its empty fields; a
// program that does so has made a mistake.
func refuseEmpty(q url.Values, names ...string) error {
	for _, name := range names {
		if q.Has(name) && q.Get(name) == "" {
			return refuse("%s: it is empty; leave it out", name)
		}
	}
	return nil
}

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

func readRunFilter(q url.Values, known jobList) (f runFilter, err error) {
	f = runFilter{Job: q.Get("job"), State: q.Get("state"), Before: q.Get("before")}
	if _, ok := known.named(f.Job); f.Job != "" && !ok {
		return f, refuse("job: use %s", known.or())
	}
	if f.State != "" && !slices.Contains(runStates, f.State) {
		return f, refuse("state: use one of %s", strings.Join(runStates, ", "))
	}
	if f.Before != "" && !ledger.IsName(f.Before) {
		return f, refuse("before: that is not a run's id")
	}
	if f.dayRange, err = readDays(q); err != nil {
		return f, err
	}
	f.Text, err = searchText(q)
	return f, err
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
