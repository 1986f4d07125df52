package alarm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// newTicks are the ticks of each schedule that were not judged. Of a new schedule only the last one is.
func (a *Alarm) newTicks(now time.Time) (plans []schedule.View, ticks map[string][]schedule.Tick) {
	if !a.Scheduler.Known() {
		return nil, nil
	}
	plans, ticks = a.Scheduler.Views(now), map[string][]schedule.Tick{}
	for _, p := range plans {
		after, known := a.State.Ticks[p.Name]
		if !known {
			p.Ticks = p.Ticks[max(0, len(p.Ticks)-1):]
		}
		ticks[p.Name] = slices.DeleteFunc(p.Ticks, func(t schedule.Tick) bool { return !t.At.After(after) })
	}
	return plans, ticks
}

// judgeTicks raises alerts for ticks that were missed or whose run did not start, and ends those of schedules that are gone.
func (a *Alarm) judgeTicks(plans []schedule.View, ticks map[string][]schedule.Tick, now time.Time) (changed bool) {
	if ticks == nil {
		return false
	}
	for _, b := range a.State.Firing {
		name := b.Schedule
		if b.Rule == "schedule" || b.Rule == "late" {
			name = b.Provider
		}
		if name != "" && !slices.ContainsFunc(plans, func(p schedule.View) bool { return p.Name == name }) {
			a.end(b, "there is no such schedule any more", now)
			changed = true
		}
	}
	for _, p := range plans {
		raised := false // in this call: if the alert is over by a later tick, that needs no second message
		for _, t := range ticks[p.Name] {
			if t.Outcome == "claimed" {
				break // its run is being started
			}
			if key := (Breach{Job: p.Job, Rule: "schedule", Provider: p.Name}).key(); raised && t.Outcome == "started" {
				a.past(key, "the run of "+p.Local(t.At)+" has started", now)
			} else if a.judgeTick(p, t, now) {
				changed, raised = true, a.State.Firing[key].RunID == t.RunID
			}
			if a.State.Ticks == nil {
				a.State.Ticks = map[string]time.Time{}
			}
			a.State.Ticks[p.Name], a.dirty = t.At, true
		}
	}
	return changed
}

// judgeFreshness raises alerts for jobs whose last run that was done is too long ago.
func (a *Alarm) judgeFreshness(all []*runs.Entry, now time.Time) (changed bool) {
	if a.State.Began.IsZero() {
		a.State.Began, a.dirty = now.UTC(), true
	}
	for _, j := range a.Jobs {
		if a.Limits[j.Name][alert.Freshness] == 0 {
			continue
		}
		last, id, text := a.State.Began, "", "no run was done for %s"
		for _, e := range all {
			if e.Run.Job == j.Name && e.Run.State == ledger.Done && (id == "" || e.Run.FinishedAt.After(last)) {
				last, id, text = e.Run.FinishedAt, e.Run.RunID, ""
			}
		}
		f, judged := a.Limits[j.Name].Judge(alert.Figure{Rule: alert.Freshness, Value: now.Sub(last).Seconds(), Text: text})
		if !f.Raised {
			f.Text = "a run is done again"
		}
		if judged {
			changed = a.apply(finding{Breach{Job: j.Name, Rule: f.Rule, RunID: id, Text: f.Text}, f.Raised}, true, now) || changed
		}
	}
	return changed
}

// judgeTick raises and ends the alerts of one tick.
func (a *Alarm) judgeTick(p schedule.View, t schedule.Tick, now time.Time) bool {
	if t.Outcome == "active" || t.Outcome == "started" { // its run is late, or no longer
		f := finding{Breach{Job: p.Job, Rule: "late", Provider: p.Name, RunID: t.RunID,
			Text: "the run of " + p.Local(t.At) + " has started"}, t.Outcome == "active"}
		if f.Broken {
			f.Text = "the run of " + p.Local(t.At) + " was skipped, because another run was still active"
		}
		if late := a.apply(f, true, now); f.Broken {
			return late
		}
	}
	f := finding{Breach{Job: p.Job, Rule: "schedule", Provider: p.Name, RunID: t.RunID}, true}
	at := p.Local(t.At)
	switch t.Outcome {
	case "missed":
		f.Text = fmt.Sprintf("%d runs were missed, the last of %s, because no server was running or it was too slow", t.Missed, at)
		if t.Missed == 1 {
			f.Text = fmt.Sprintf("the run of %s was missed, because no server was running or it was too slow", at)
		}
	case "failed":
		f.Text = fmt.Sprintf("the run of %s did not start: %s", at, cmp.Or(t.Error, "the server's log says why"))
	case "started":
		f.Broken, f.Text = false, "the run of "+at+" has started"
	default:
		return false
	}
	return a.apply(f, true, now)
}

const removalRule = "removal"

// JudgeRemovals raises an alert for each source with a request that is late, and ends it
// with its receipt.
func (a *Alarm) JudgeRemovals(all []removal.Entry, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	judged := map[string]finding{}
	for _, e := range all { // the newest first, so that the oldest that is late remains
		f := finding{Breach{Job: e.Job, Rule: removalRule, Provider: e.Provider, Text: "what was kept of it is removed"}, e.Late(now)}
		if f.Broken {
			f.Text = fmt.Sprintf("everything of it must be removed until %s, and is not: stop the run that crawls it", e.Due.UTC().Format("2006-01-02 15:04 UTC"))
		}
		if key := e.Job + "/" + e.Provider; f.Broken || !judged[key].Broken {
			judged[key] = f
		}
	}
	for _, f := range judged {
		changed = a.apply(f, true, now) || changed
	}
	return changed
}
