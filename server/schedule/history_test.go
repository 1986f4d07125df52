package schedule

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/runs"
)

// daily is a schedule at 03:00 UTC.
func daily(t *testing.T) View {
	t.Helper()
	var err error
	v := View{Plan: Plan{Schedule: Schedule{Name: "nightly", Job: "seed", zone: time.UTC}}}
	v.ticks, err = parseCron("0 3 * * *", time.UTC, time.Now())
	require.NoError(t, err)
	return v
}

// night is 03:00 of a day in March 2026.
func night(day int) time.Time { return time.Date(2026, 3, day, 3, 0, 0, 0, time.UTC) }

// entry is a run of the schedule that began at a time and took some minutes.
func entry(id string, at time.Time, state ledger.State, minutes int, why error) *runs.Entry {
	e := &runs.Entry{Run: ledger.Run{RunID: id, Job: "seed", Schedule: "nightly", State: state, StartedAt: at}}
	if state.Over() {
		e.Run.FinishedAt = at.Add(time.Duration(minutes) * time.Minute)
	}
	if why != nil {
		e.Run.Error = why.Error()
	}
	e.Report.Duration = 60 * float64(minutes)
	return e
}

// The history of a schedule has its ticks with what became of their runs, what did not begin, and runs that a person started.
func TestHistory(t *testing.T) {
	v := daily(t)
	v.Ticks = []Tick{{At: night(1), Outcome: "started", RunID: "gone"}, {At: night(2), Outcome: "started", RunID: "r2"}, {At: night(3), Outcome: "missed", Missed: 2},
		{At: night(4), Outcome: "active", RunID: "other"}, {At: night(5), Outcome: "failed", RunID: "r5", Error: "no such program"},
		{At: night(6), Outcome: "started", RunID: "r6"}, {At: night(7), Outcome: "claimed", RunID: "r7"}}
	other := entry("other", night(4), ledger.Done, 90, nil)
	other.Run.Schedule = ""
	views := []View{v}
	History(views, []*runs.Entry{entry("r7", night(7), ledger.Running, 3, nil), entry("now", night(6).Add(time.Hour), ledger.Done, 7, nil),
		entry("r6", night(6), ledger.Failed, 0, errors.New("the run did not begin: country=ZZ")), other, entry("r2", night(2), ledger.Done, 5, nil)})
	v = views[0]
	var got []string
	for _, m := range v.Marks {
		got = append(got, fmt.Sprint(m.At.Format("02 15"), " ", m.State, " ", m.RunID, " ", m.Seconds, " ", m.Missed, " ", m.Error))
	}
	assert.Equal(t, []string{"01 03 started gone 0 0 ", "02 03 done r2 300 0 ", "03 03 missed  0 2 ", "04 03 skipped other 0 0 ", "05 03 not_begun  0 0 no such program",
		"06 03 not_begun r6 0 0 the run did not begin: country=ZZ", "06 04 done now 420 0 ", "07 03 running r7 180 0 "}, got)
	assert.Equal(t, "now", v.Result.Run.RunID)
	assert.InDelta(t, 420, v.Took(), 0)
}

// A result is late when the tick after the newest one is over, and the time that a run takes.
func TestLateBy(t *testing.T) {
	done := func(v *View, day, minutes int) { v.Result = entry("r", night(day), ledger.Done, minutes, nil) }
	for about, c := range map[string]struct {
		with func(v *View)
		now  time.Time
		want time.Duration
	}{
		"never run":                 {func(*View) {}, night(9), 0},
		"on time":                   {func(v *View) { done(v, 2, 60) }, night(3).Add(time.Hour), 0},
		"a little slower":           {func(v *View) { done(v, 2, 60) }, night(3).Add(72 * time.Minute), 0},
		"late":                      {func(v *View) { done(v, 2, 60) }, night(3).Add(3 * time.Hour), 2 * time.Hour},
		"late for days":             {func(v *View) { done(v, 2, 60) }, night(6), 71 * time.Hour},
		"paused":                    {func(v *View) { done(v, 2, 60); v.Kept.Paused = true }, night(6), 0},
		"resumed":                   {func(v *View) { done(v, 2, 60); v.Kept.From = night(5).Add(time.Hour) }, night(6), 0},
		"cannot run":                {func(v *View) { done(v, 2, 60); v.Wrong = "there is no such job" }, night(6), 0},
		"no result since its first": {func(v *View) { v.Ticks = []Tick{{At: night(2), Outcome: "failed"}} }, night(4), 48 * time.Hour},
	} {
		v := daily(t)
		c.with(&v)
		assert.Equal(t, c.want, v.LateBy(c.now), about)
	}
}

// A schedule whose runs are older than all that the server shows is not late since its first tick: a gone run may have been done.
func TestLateByOfGoneRuns(t *testing.T) {
	v := daily(t)
	for day := 1; day <= 9; day++ {
		v.Ticks = append(v.Ticks, Tick{At: night(day), Outcome: "started", RunID: fmt.Sprint("r", day)})
	}
	for _, c := range []struct {
		all  []*runs.Entry
		gone time.Time
		want time.Duration
	}{
		{nil, night(9), 0},
		{[]*runs.Entry{entry("r9", night(9), ledger.Failed, 5, nil)}, night(8), 12 * time.Hour},
		{[]*runs.Entry{entry("r9", night(9), ledger.Done, 5, nil)}, night(8), 0},
	} {
		views := []View{v}
		History(views, c.all)
		assert.Equal(t, []any{c.gone, c.want}, []any{views[0].Gone, views[0].LateBy(night(9).Add(12 * time.Hour))})
	}
}
