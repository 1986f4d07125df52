package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
)

// judgeTicks raises alerts for ticks that were missed or whose run did not start.
func (a *alarm) judgeTicks(ctx context.Context, now time.Time) (changed bool, err error) {
	if !a.scheduler.known() {
		return false, nil
	}
	plans := a.scheduler.views(now)
	a.mu.Lock()
	for key, b := range a.state.Firing {
		name := b.Schedule
		if b.Rule == "schedule" || b.Rule == "late" {
			name = b.Provider
		}
		if name != "" && !slices.ContainsFunc(plans, func(p scheduleView) bool { return p.Name == name }) {
			delete(a.state.Firing, key)
			b.Text, changed, a.dirty = "there is no such schedule any more", true, true
			a.announce("alert_over", "OVER", b, now)
		}
	}
	a.mu.Unlock()
	for _, p := range plans {
		a.mu.Lock()
		after, known := a.state.Ticks[p.Name]
		a.mu.Unlock()
		if !p.Last.At.After(after) {
			continue
		}
		ticks := []tick{p.Last}
		if known { // of a new schedule only the last tick is judged
			if ticks, err = a.scheduler.since(ctx, p.Name, after); err != nil {
				return changed, err
			}
		}
		a.mu.Lock()
		raised := false // in this call: if the alert is over by a later tick, that needs no second message
		for _, t := range ticks {
			if t.Outcome == "claimed" {
				break // its run is being started
			}
			if key := (breach{Job: p.Job, Rule: "schedule", Provider: p.Name}).key(); raised && t.Outcome == "started" {
				delete(a.state.Firing, key)
			} else if a.judgeTick(p, t, now) {
				changed, raised = true, a.state.Firing[key].RunID == t.RunID
			}
			if a.state.Ticks == nil {
				a.state.Ticks = map[string]time.Time{}
			}
			a.state.Ticks[p.Name], a.dirty = t.At, true
		}
		a.mu.Unlock()
	}
	return changed, nil
}

// judgeFreshness raises alerts for jobs whose last run that was done is too long ago.
func (a *alarm) judgeFreshness(runs []*entry, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Began.IsZero() {
		a.state.Began, a.dirty = now.UTC(), true
	}
	for _, j := range a.jobs {
		if a.limits[j.Name][alert.Freshness] == 0 {
			continue
		}
		last, id, text := a.state.Began, "", "no run was done for %s"
		for _, e := range runs {
			if e.Run.Job == j.Name && e.Run.State == ledger.Done && (id == "" || e.Run.FinishedAt.After(last)) {
				last, id, text = e.Run.FinishedAt, e.Run.RunID, ""
			}
		}
		f, judged := a.limits[j.Name].Judge(alert.Figure{Rule: alert.Freshness, Value: now.Sub(last).Seconds(), Text: text})
		if !f.Raised {
			f.Text = "a run is done"
		}
		if judged {
			changed = a.apply(finding{breach{Job: j.Name, Rule: f.Rule, RunID: id, Text: f.Text}, f.Raised}, true, now) || changed
		}
	}
	return changed
}

// judgeTick raises and ends the alerts of one tick.
func (a *alarm) judgeTick(p scheduleView, t tick, now time.Time) bool {
	if t.Outcome == "active" || t.Outcome == "started" { // its run is late, or no longer
		f := finding{breach{Job: p.Job, Rule: "late", Provider: p.Name, RunID: t.RunID, Text: "the run of " + p.Local(t.At) + " has started"}, t.Outcome == "active"}
		if f.broken {
			f.Text = "the tick of " + p.Local(t.At) + " was skipped: another run was still active"
		}
		if late := a.apply(f, true, now); f.broken {
			return late
		}
	}
	f := finding{breach{Job: p.Job, Rule: "schedule", Provider: p.Name, RunID: t.RunID}, true}
	at := p.Local(t.At)
	switch t.Outcome {
	case "missed":
		f.Text = fmt.Sprintf("%d ticks were missed, the last at %s: no server was running, or it was too slow", t.Missed, at)
		if t.Missed == 1 {
			f.Text = fmt.Sprintf("the tick of %s was missed: no server was running, or it was too slow", at)
		}
	case "failed":
		f.Text = fmt.Sprintf("the run of %s did not start: %s", at, cmp.Or(t.Error, "the server's log says why"))
	case "started":
		f.broken, f.Text = false, "the run of "+at+" has started"
	default:
		return false
	}
	return a.apply(f, true, now)
}
