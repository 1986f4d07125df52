package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/runs"
)

// Mark is a run of a schedule, or a tick that began none.
type Mark struct {
	At      time.Time `json:"at"` // of the tick, or of the start
	State   string    `json:"outcome"`
	RunID   string    `json:"run_id,omitempty"` // of the run, or of the active run that prevented it
	Seconds float64   `json:"duration_s,omitempty"`
	Missed  int       `json:"missed,omitempty"` // how many ticks, this one included
	Error   string    `json:"error,omitempty"`
}

// The states of marks that a run does not have.
const (
	NotBegun = "not_begun" // the run was refused, or its process ended at once
	Skipped  = "skipped"   // another run of the job was active
	Missed   = "missed"    // no server was running
	started  = "started"   // its run is not among those that History knows
)

// MaxMarks is how many marks a schedule has.
const MaxMarks = 30

// of returns the mark with what became of its run.
func (m Mark) of(e *runs.Entry) Mark {
	m.State, m.RunID, m.Seconds, m.Error = e.State(), e.Run.RunID, e.Report.Duration, e.Error()
	if e.Unfinished() && strings.HasPrefix(m.Error, runs.NotBegun) {
		m.State = NotBegun
	}
	return m
}

// MarkOf is the mark of a run that no tick started.
func MarkOf(e *runs.Entry) Mark { return Mark{At: e.Run.StartedAt}.of(e) }

// History fills in the marks and the newest results of schedules. all are the newest runs.
func History(views []View, all []*runs.Entry) {
	byID, bySchedule := map[string]*runs.Entry{}, map[string][]*runs.Entry{}
	for _, e := range all {
		byID[e.Run.RunID] = e
		if name := e.Run.Schedule; name != "" {
			bySchedule[name] = append(bySchedule[name], e)
		}
	}
	for i := range views {
		views[i].read(byID, bySchedule[views[i].Name])
	}
}

// read makes the marks of the schedule's ticks and of its other runs: those that a person started.
func (v *View) read(byID map[string]*runs.Entry, own []*runs.Entry) {
	listed := map[string]bool{}
	for _, t := range v.Ticks {
		m := Mark{At: t.At, RunID: t.RunID, Missed: t.Missed, Error: t.Error}
		e := byID[t.RunID]
		switch m.State = cmp.Or(map[string]string{"active": Skipped, "missed": Missed, "failed": NotBegun}[t.Outcome], started); {
		case m.State == started && e != nil && !e.Broken:
			m, listed[t.RunID] = m.of(e), true
		case m.State == started:
			v.Gone = t.At
		case m.State == NotBegun:
			m.RunID = "" // there is no such run
		}
		v.Marks = append(v.Marks, m)
	}
	for _, e := range own {
		if !listed[e.Run.RunID] {
			v.Marks = append(v.Marks, MarkOf(e))
		}
		if e.Run.State == ledger.Done && (v.Result == nil || e.Run.FinishedAt.After(v.Result.Run.FinishedAt)) {
			v.Result = e
		}
	}
	slices.SortStableFunc(v.Marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	v.Marks = v.Marks[max(0, len(v.Marks)-MaxMarks):]
}

// Took is the duration of the newest run that is over, in seconds; 0 if there is none.
func (v View) Took() float64 {
	for _, m := range slices.Backward(v.Marks) {
		if ledger.State(m.State).Over() && m.Seconds > 0 {
			return m.Seconds
		}
	}
	return 0
}

// LateBy is how late the next result is. It is due at the first tick after the newest result's start, plus the duration of that run. A
// result that is a minute or a fifth of the duration late, whichever is longer, counts as on time: LateBy is 0. It is also 0 for a
// schedule that is paused or cannot run.
func (v View) LateBy(now time.Time) time.Duration {
	if v.Kept.Paused || v.Wrong != "" {
		return 0
	}
	after, takes := v.Kept.From, time.Duration(0)
	newest := v.Gone // its run may have been done
	switch {
	case v.Result != nil:
		newest = v.Result.Run.StartedAt
		takes = v.Result.Run.FinishedAt.Sub(newest)
	case newest.IsZero() && len(v.Ticks) > 0:
		newest = v.Ticks[0].At.Add(-time.Second)
	}
	if newest.After(after) {
		after = newest
	}
	if after.IsZero() {
		return 0
	}
	due, err := v.Schedule.Next(after)
	if err != nil {
		return 0
	}
	late := now.Sub(due.Add(takes + max(time.Minute, takes/5)))
	if late <= 0 {
		return 0
	}
	return now.Sub(due.Add(takes))
}
