package face

import (
	"cmp"
	"fmt"
	"html/template"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// A strip shows the newest runs of a schedule, oldest first: in the table of schedules as squares, on the first page as bars whose
// height is the duration. Each has a sign and a text, so that nobody depends on its colour.

// stripMark is one run in a strip, or a tick that began none.
type stripMark struct {
	schedule.Mark
	Kind string // of signs: also the class of style.css
	Text string
	Bar  template.HTML
}

// signs tell the kinds apart without colour.
var signs = map[string]string{"done": "✓", "failed": "✗", "cancelled": "–", "active": "▶", "not_begun": "⊘", "skipped": "»", "missed": "○", "unknown": "?"}

// Sign is the mark's sign.
func (m stripMark) Sign() string { return signs[m.Kind] }

// Linked reports whether the mark leads to the page of a run.
func (m stripMark) Linked() bool { return m.RunID != "" }

// kindOf is the kind of a mark.
func kindOf(state string) string {
	switch {
	case state == string(ledger.Interrupted) || state == string(ledger.Silent):
		return "failed"
	case signs[state] != "":
		return state
	case state == "starting" || state == "cancelling" || ledger.State(state) == ledger.Running || ledger.State(state) == ledger.Paused:
		return "active"
	}
	return "unknown"
}

// strip is the strip of marks; local writes their times.
func strip(marks []schedule.Mark, local func(time.Time) string) (out []stripMark) {
	longest := 0.0
	for _, m := range marks {
		longest = max(longest, m.Seconds)
	}
	for _, m := range marks {
		s := stripMark{Mark: m, Kind: kindOf(m.State)}
		s.Text = local(m.At) + ": " + cmp.Or(map[string]string{schedule.NotBegun: "it did not begin", schedule.Missed: "missed, no server was running",
			schedule.Skipped: "skipped, another run was active"}[m.State], m.State)
		if m.Seconds > 0 {
			s.Text += " after " + known.FormatSeconds(m.Seconds)
		}
		if m.Missed > 1 {
			s.Text += fmt.Sprintf(" (%d times)", m.Missed)
		}
		if m.Error != "" {
			s.Text += ": " + cut(m.Error)
		}
		share := 1.0
		if m.Seconds > 0 || s.Kind != "active" {
			share = m.Seconds / max(longest, 1)
		}
		s.Bar = tower(share)
		out = append(out, s)
	}
	return out
}

// utc writes a time of what has no zone of its own.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// marksOf are the marks of runs that no schedule started, oldest first.
func marksOf(all []*runs.Entry) (out []schedule.Mark) {
	for i := min(len(all), schedule.MaxMarks) - 1; i >= 0; i-- {
		out = append(out, schedule.MarkOf(all[i]))
	}
	return out
}

// stripOf are the newest n marks of a schedule.
func stripOf(v schedule.View, n int) []stripMark {
	return strip(v.Marks[max(0, len(v.Marks)-n):], v.Local)
}

// lateText says by how much a schedule's newest result is late, "" if it is not.
func lateText(v schedule.View) string {
	if d := v.LateBy(v.Now); d > 0 {
		return "late by " + ago(d)
	}
	return ""
}

// fresh says how old the newest result of a schedule is.
func fresh(s schedule.View) string {
	switch {
	case s.Result == nil && !s.Gone.IsZero():
		return "Newest result not known"
	case s.Result == nil && len(s.Marks) > 0:
		return "No result"
	case s.Result == nil:
		return "No result yet"
	}
	return "Newest result " + ago(s.Now.Sub(s.Result.Run.FinishedAt)) + " ago"
}

// ago writes a past time in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "1 min"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/time.Hour/24)
}
