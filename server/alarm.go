package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
)

// alertsKey is the object in which firing alerts and unsent messages outlive
// the server.
const alertsKey = "alerts/state.json"

// alertState is the object alertsKey.
type alertState struct {
	Firing map[string]breach `json:"firing"`
	// Seen are the runs that were judged after their end, but for those that
	// ended until Floor: those were all. Runs come to be known out of order.
	Seen   map[string]time.Time `json:"seen"`
	Floor  time.Time            `json:"floor"`
	Ticks  map[string]time.Time `json:"ticks"`  // of each schedule, the last that was judged
	Outbox []string             `json:"outbox"` // messages that the webhook has not taken yet
}

// outOfOrder is how late a run may become known after others that ended later.
const outOfOrder = time.Hour

// alarm judges runs, and tells of a breach once and of its end once.
type alarm struct {
	store  store.Store
	log    *slog.Logger
	jobs   jobList
	limits map[string]alert.Thresholds
	plans  *scheduler
	hook   *webhook

	mu     sync.Mutex
	loaded bool
	state  alertState
	dirty  bool
	nextAt time.Time // when to try the webhook again
	tries  int
}

// maxOutbox messages wait for a webhook that does not answer.
const maxOutbox = 100

func (a *alarm) firing() []breach {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []breach
	for _, k := range slices.Sorted(maps.Keys(a.state.Firing)) {
		out = append(out, a.state.Firing[k])
	}
	return out
}

// load reads what an earlier server left.
func (a *alarm) load(ctx context.Context) (changed bool, err error) {
	var fresh alertState
	err = getJSON(ctx, a.store, alertsKey, &fresh)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	if fresh.Firing == nil {
		fresh.Firing = map[string]breach{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = !maps.Equal(fresh.Firing, a.state.Firing)
	a.state, a.loaded, a.dirty = fresh, true, false
	return changed, nil
}

// forget makes the next tick read the state again: another server may have
// written it.
func (a *alarm) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded = false
}

// tick judges what has happened since the last one: runs that ended, in that
// order, runs that are going, and ticks of schedules. Only the leading server
// calls it.
func (a *alarm) tick(ctx context.Context, runs []*entry, now time.Time) (changed bool, err error) {
	a.mu.Lock()
	loaded := a.loaded
	a.mu.Unlock()
	if !loaded {
		if changed, err = a.load(ctx); err != nil {
			return false, err
		}
	}
	a.baseline(runs)
	for _, e := range a.fresh(runs, now) {
		changed = a.judged(e, now) || changed
	}
	for _, e := range runs {
		if e.Active() && !e.Starting {
			changed = a.judged(e, now) || changed
		}
	}
	ticked, err := a.judgeTicks(ctx, now)
	return changed || ticked, errors.Join(err, a.save(ctx), a.send(ctx, now))
}

// baseline leaves out what ended before the store had its first server, but for
// the run of each job that ended last.
func (a *alarm) baseline(runs []*entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Seen != nil {
		return
	}
	a.state.Seen, a.dirty = map[string]time.Time{}, true
	last := map[string]*entry{}
	for _, e := range runs {
		if e.Broken || e.Starting || !e.Run.State.Over() {
			continue
		}
		a.state.Seen[e.Run.RunID] = e.Run.FinishedAt
		if l := last[e.Run.Job]; l == nil || l.Run.FinishedAt.Before(e.Run.FinishedAt) {
			last[e.Run.Job] = e
		}
	}
	for _, e := range last {
		delete(a.state.Seen, e.Run.RunID)
	}
}

// fresh are the runs that are over and not judged, by their ends.
func (a *alarm) fresh(runs []*entry, now time.Time) []*entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*entry
	for _, e := range runs {
		_, seen := a.state.Seen[e.Run.RunID]
		late := now.Sub(e.Run.FinishedAt) > 5*reportWithin // its report may never come
		if e.Broken || e.Starting || !e.Run.State.Over() || seen || !e.Run.FinishedAt.After(a.state.Floor) || (e.Awaited || e.Unsaid) && !late {
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(x, y *entry) int {
		return cmp.Or(x.Run.FinishedAt.Compare(y.Run.FinishedAt), strings.Compare(x.Run.RunID, y.Run.RunID))
	})
	return out
}

// judged compares one run with the alerts that fire. Anything can raise an
// alert that judge finds broken; only a run that is done can end one.
func (a *alarm) judged(e *entry, now time.Time) (changed bool) {
	j, ok := a.jobs.named(e.Run.Job)
	if !ok {
		return false // migrate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := e.Report
	r.State, r.Error = e.Run.State, e.Error()
	all := judge(j, a.limits[j.Name], r)
	if r.State == ledger.Done && len(ledger.Rows[alert.Row](r)) == 0 { // what a job without rows no longer says is over
		for key, b := range a.state.Firing {
			if b.Job == j.Name && b.Rule == "quality" && !slices.ContainsFunc(all, func(f finding) bool { return f.key() == key }) {
				all = append(all, finding{breach{Job: b.Job, Rule: b.Rule, Provider: b.Provider, RunID: r.RunID, Text: noQuality}, false})
			}
		}
	}
	for _, f := range all {
		changed = a.found(f, r.State == ledger.Done, now) || changed
	}
	if r.State.Over() {
		a.state.Seen[e.Run.RunID], a.dirty = e.Run.FinishedAt, true
		if floor := e.Run.FinishedAt.Add(-outOfOrder); floor.After(a.state.Floor) {
			a.state.Floor = floor
			maps.DeleteFunc(a.state.Seen, func(_ string, at time.Time) bool { return !at.After(floor) })
		}
	}
	return changed
}

// found raises an alert, or ends one; the caller holds mu. A run that fails for
// another reason than the one before is news.
func (a *alarm) found(f finding, ends bool, now time.Time) (changed bool) {
	key := f.key()
	old, fires := a.state.Firing[key]
	f.Since = now.UTC()
	if fires {
		f.Since = old.Since
	}
	switch {
	case f.broken && (!fires || f.Rule == "run_failed" && f.Text != old.Text):
		a.state.Firing[key] = f.breach
		a.tell("alert_raised", "ALERT", f.breach)
	case !f.broken && fires && ends:
		delete(a.state.Firing, key)
		a.tell("alert_over", "OVER", f.breach)
	default:
		return false
	}
	a.dirty = true
	return true
}
