// Package alarm judges runs and ticks, sends alerts to channels, and sums up days and weeks.
//
// No promise: see docs/library.md.
package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// alertState is the object alert.StateKey.
type alertState struct {
	Firing map[string]Breach `json:"firing"`
	// Judged is when a run last judged the source (a provider, publisher or site) of a firing alert.
	Judged map[string]time.Time `json:"judged,omitempty"`
	// Seen are the ended runs that were judged, with the times of their ends. Runs that
	// ended until Floor were all judged and are not listed. The server may see runs
	// out of the order in which they ended.
	Seen map[string]time.Time `json:"seen"`
	// Reminded is when one message last repeated the alerts about sources of one cause.
	Reminded map[string]time.Time `json:"reminded,omitempty"`
	Floor    time.Time            `json:"floor"`
	Began    time.Time            `json:"began,omitzero"` // when a server first judged runs
	Ticks    map[string]time.Time `json:"ticks"`          // the last judged tick of each schedule
	Past     []Past               `json:"past,omitempty"` // the alerts that are over, the newest first
	// Channels have what is to be sent, by the channel's name.
	Channels map[string]*outbox `json:"channels,omitempty"`
}

// Past is an alert that is over.
type Past struct {
	Breach
	Until time.Time `json:"until"`
	Over  string    `json:"over"` // why it is over
}

// maxPast is how many alerts that are over are kept.
const maxPast = 100

// maxLateness is how long after its end the server may first see a run.
const maxLateness = time.Hour

// forgotten is how long after a source was last judged its alerts end, because runs no longer have it.
const forgotten = 14 * 24 * time.Hour

// Alarm judges runs. It announces each breach once, and once that it is over.
type Alarm struct {
	Store     store.Store
	Log       *slog.Logger
	Jobs      known.Jobs
	Limits    map[string]alert.Thresholds
	Scheduler *schedule.Scheduler
	Channels  []Channel
	PublicURL string                        // of the server's pages, without a slash at its end; "" if it is not known
	Count     func(channel, outcome string) // of a delivery

	mu        sync.Mutex
	loaded    bool
	State     alertState
	dirty     bool
	silences  []alert.Silence
	silenceAt time.Time           // when to read them again
	together  map[string][]Breach // alerts that are told in one message, by its first word
}

// silenceInterval is how often the leader reads which alerts are silent.
const silenceInterval = 10 * time.Second

// Firing are the alerts that fire.
func (a *Alarm) Firing() []Breach {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Breach
	for _, k := range slices.Sorted(maps.Keys(a.State.Firing)) {
		out = append(out, a.State.Firing[k])
	}
	return out
}

// Past are the newest alerts that are over.
func (a *Alarm) Past() []Past {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Past{}, a.State.Past...)
}

// Load reads the state that the last leader wrote.
func (a *Alarm) Load(ctx context.Context) (changed bool, err error) {
	var fresh alertState
	err = store.ReadJSON(ctx, a.Store, alert.StateKey, known.MaxObject, &fresh)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	if fresh.Firing == nil {
		fresh.Firing = map[string]Breach{}
	}
	if fresh.Judged == nil {
		fresh.Judged = map[string]time.Time{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = !maps.Equal(fresh.Firing, a.State.Firing) || !slices.Equal(fresh.Past, a.State.Past)
	a.State, a.loaded, a.dirty = fresh, true, false
	return changed, nil
}

// Invalidate makes the next tick read the state again, because another server may
// have written it.
func (a *Alarm) Invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded = false
}

// Tick judges the runs that have ended since the last tick, in the order of their
// ends, then the active runs, then the ticks of schedules. Only the leader calls it.
func (a *Alarm) Tick(ctx context.Context, all []*runs.Entry, now time.Time) (changed bool, err error) {
	a.mu.Lock()
	loaded := a.loaded
	a.mu.Unlock()
	if !loaded {
		if changed, err = a.Load(ctx); err != nil {
			return false, err
		}
	}
	if err := a.readSilences(ctx, now); err != nil {
		return changed, err // else it would tell what a person silenced
	}
	plans, ticks := a.newTicks(now)
	changed = a.judgeAll(all, plans, ticks, now) || changed
	err = a.save(ctx)
	sent, serr := a.send(ctx, now)
	return changed || sent, errors.Join(err, serr)
}

// judgeAll judges all that is new; it holds mu for what it calls. Only Tick writes the state, so Tick reads it without mu.
func (a *Alarm) judgeAll(all []*runs.Entry, plans []schedule.View, ticks map[string][]schedule.Tick, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.markOldRuns(all)
	for _, e := range a.unjudged(all, now) {
		changed = a.judgeRun(e, now) || changed
	}
	for _, e := range all {
		if e.Active() && !e.Starting {
			changed = a.judgeRun(e, now) || changed
		}
	}
	changed = a.judgeFreshness(all, now) || changed
	changed = a.judgeTicks(plans, ticks, now) || changed
	changed = a.tellUntold(now) || changed
	return a.remind(now) || changed
}

// readSilences reads which alerts are silent, if it is time.
func (a *Alarm) readSilences(ctx context.Context, now time.Time) error {
	a.mu.Lock()
	due := !now.Before(a.silenceAt)
	a.mu.Unlock()
	if !due {
		return nil
	}
	fresh, err := alert.Silences(ctx, a.Store, now)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silences, a.silenceAt = fresh, now.Add(silenceInterval)
	return nil
}

// RereadSilences makes the next tick read which alerts are silent.
func (a *Alarm) RereadSilences() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silenceAt = time.Time{}
}

// silent reports whether a silence covers an alert. The caller holds mu.
func (a *Alarm) silent(b Breach, now time.Time) bool {
	return slices.ContainsFunc(a.silences, func(s alert.Silence) bool { return s.Covers(b.Job, b.Rule, b.Named(), now) })
}

// tellUntold sends the alerts that still fire when their silence is over.
func (a *Alarm) tellUntold(now time.Time) (changed bool) {
	for _, key := range slices.Sorted(maps.Keys(a.State.Firing)) {
		b := a.State.Firing[key]
		if !b.Untold || a.silent(b, now) {
			continue
		}
		b.Untold = false
		a.State.Firing[key], a.dirty, changed = b, true, true
		a.announce("alert_raised", "ALERT", b, now)
	}
	return changed
}

// remindEvery is how often alerts about sources are repeated while they last.
const remindEvery = 7 * 24 * time.Hour

// remind repeats the alerts that some providers, publishers or sites are not open, all of one
// cause in one message.
func (a *Alarm) remind(now time.Time) (changed bool) {
	last, texts, all := map[string]time.Time{}, map[string][]string{}, map[string][]Breach{}
	for _, key := range slices.Sorted(maps.Keys(a.State.Firing)) {
		b := a.State.Firing[key]
		if b.Rule != "provider" || b.Untold || a.silent(b, now) {
			continue
		}
		cause, why, _ := strings.Cut(b.Text, ": ")
		if t, had := last[cause]; !had || b.Since.Before(t) {
			last[cause] = b.Since
		}
		texts[cause], all[cause] = append(texts[cause], strings.TrimSuffix(b.Who()+": "+why, ": ")), append(all[cause], b)
	}
	for _, cause := range slices.Sorted(maps.Keys(texts)) {
		if t := a.State.Reminded[cause]; t.After(last[cause]) {
			last[cause] = t
		}
		if now.Sub(last[cause]) < remindEvery {
			continue
		}
		if a.State.Reminded == nil {
			a.State.Reminded = map[string]time.Time{}
		}
		a.State.Reminded[cause], a.dirty, changed = now.UTC(), true, true
		a.enqueueLocked(notice{Type: "report", All: all[cause],
			Text: "[STILL] " + strings.TrimPrefix(cause, "it was ") + " for a week or more: " + some(texts[cause], "; ", "; and ")}, now)
	}
	return changed
}

// markOldRuns marks the runs that ended before the store had its first server as
// judged, except the last run of each job.
func (a *Alarm) markOldRuns(all []*runs.Entry) {
	if a.State.Seen != nil {
		return
	}
	a.State.Seen, a.dirty = map[string]time.Time{}, true
	last := map[string]*runs.Entry{}
	for _, e := range all {
		if e.Broken || e.Starting || !e.Run.State.Over() {
			continue
		}
		a.State.Seen[e.Run.RunID] = e.Run.FinishedAt
		if l := last[e.Run.Job]; l == nil || l.Run.FinishedAt.Before(e.Run.FinishedAt) {
			last[e.Run.Job] = e
		}
	}
	for _, e := range last {
		delete(a.State.Seen, e.Run.RunID)
	}
}

// unjudged are the ended runs that were not judged, in the order of their ends.
func (a *Alarm) unjudged(all []*runs.Entry, now time.Time) []*runs.Entry {
	var out []*runs.Entry
	for _, e := range all {
		_, seen := a.State.Seen[e.Run.RunID]
		late := now.Sub(e.Run.FinishedAt) > 5*runs.MaxReportDelay // its report may never come
		if e.Broken || e.Starting || !e.Run.State.Over() || seen || !e.Run.FinishedAt.After(a.State.Floor) || e.ReportPending && !late {
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(x, y *runs.Entry) int {
		return cmp.Or(x.Run.FinishedAt.Compare(y.Run.FinishedAt), strings.Compare(x.Run.RunID, y.Run.RunID))
	})
	return out
}

// judgeRun raises and ends alerts by one run. Any run can raise an alert, except one that a person started: the person sees
// what is wrong. Only a run that is done can end one.
func (a *Alarm) judgeRun(e *runs.Entry, now time.Time) (changed bool) {
	j, ok := a.Jobs.Named(e.Run.Job)
	if !ok {
		return false // migrate
	}
	r, all := e.Report, a.findings(j, e)
	r.State = e.Run.State
	for i, f := range all {
		if f.Provider == "" {
			all[i].Schedule, all[i].Selection = e.Run.Schedule, j.Selection(e.Run)
		}
	}
	if r.State == ledger.Done {
		all = append(all, a.others(j, e.Run, all, len(ledger.Rows[alert.Row](r)) == 0)...)
		all = append(all, a.forget(j, e.Run, all)...)
	}
	if e.Run.StartedBy == ledger.Person {
		all = slices.DeleteFunc(all, func(f finding) bool { return f.Broken })
	}
	defer a.group(all, r, now)()
	for _, f := range all {
		changed = a.apply(f, r.State == ledger.Done, now) || changed
		if _, fires := a.State.Firing[f.key()]; !fires {
			delete(a.State.Judged, f.key())
		} else if f.Schedule == "" {
			a.State.Judged[f.key()], a.dirty = e.Run.FinishedAt, true
		}
	}
	if r.State.Over() {
		a.State.Seen[e.Run.RunID], a.dirty = e.Run.FinishedAt, true
		if floor := e.Run.FinishedAt.Add(-maxLateness); floor.After(a.State.Floor) {
			a.State.Floor = floor
			maps.DeleteFunc(a.State.Seen, func(_ string, at time.Time) bool { return !at.After(floor) })
		}
	}
	return changed
}

// findings are what a run's end, figures and report say.
func (a *Alarm) findings(j known.Job, e *runs.Entry) []finding {
	r := e.Report
	r.State, r.Error = e.Run.State, e.Error()
	return judge(j, a.Limits[j.Name], r)
}

// Told returns sentences about what is wrong with a run that a person started, besides its error. Such a run raises no alert.
func (a *Alarm) Told(e *runs.Entry) (out []string) {
	j, ok := a.Jobs.Named(e.Run.Job)
	if !ok || e.Run.StartedBy != ledger.Person {
		return nil
	}
	for _, f := range a.findings(j, e) {
		if f.Broken && f.Rule != "run_failed" {
			out = append(out, f.Sentence())
		}
	}
	return out
}

// maxApart is how many providers, publishers or sites that change state in one run have a message each.
const maxApart = 3

// group lets the alerts that a run raises about providers, publishers or sites be one message if they are many, and
// those that it ends. The returned function queues the messages. The caller holds mu.
func (a *Alarm) group(all []finding, r ledger.Report, now time.Time) (queue func()) {
	many := map[string]int{}
	for _, f := range all {
		if _, fires := a.State.Firing[f.key()]; f.Rule == "provider" && f.Broken != fires {
			many[map[bool]string{true: "ALERT", false: "OVER"}[f.Broken]]++
		}
	}
	a.together = map[string][]Breach{}
	for word, n := range many {
		if n > maxApart {
			a.together[word] = []Breach{}
		}
	}
	return func() {
		for _, word := range slices.Sorted(maps.Keys(a.together)) {
			if told := a.together[word]; len(told) > 0 {
				var texts []string
				for _, b := range told {
					texts = append(texts, strings.Replace(b.Sentence(), " ("+b.Job+")", "", 1))
				}
				a.enqueueLocked(notice{Type: "report", All: told, RunID: r.RunID, page: told[0].Page(),
					Text: fmt.Sprintf("[%s] %d of %s: %s", word, len(told), r.Job, some(texts, "; ", "; and "))}, now)
			}
		}
		a.together = nil
	}
}

// others finds the end of alerts that other runs raised, by a run of the same or a wider selection. A job without rows reports
// only what is wrong, so an alert of quality that it does not repeat is over. The caller holds mu.
func (a *Alarm) others(j known.Job, run ledger.Run, found []finding, noRows bool) (out []finding) {
	for _, key := range slices.Sorted(maps.Keys(a.State.Firing)) {
		b := a.State.Firing[key]
		if b.Job != j.Name || !covers(j.Selection(run), b) || slices.ContainsFunc(found, func(f finding) bool { return f.key() == key }) {
			continue
		}
		i := slices.IndexFunc(found, func(f finding) bool { return f.Rule == b.Rule && f.Provider == b.Provider })
		switch {
		case i >= 0 && !found[i].Broken:
			b.Text = found[i].Text
		case i < 0 && b.Rule == "quality" && noRows:
			b.Text = noComplaint
		default:
			continue
		}
		b.RunID = run.RunID
		out = append(out, finding{b, false})
	}
	return out
}

// forget finds the end of alerts whose source or selection no run has judged for long: a provider that was taken out.
// A schedule's alert waits for its next run. The caller holds mu.
func (a *Alarm) forget(j known.Job, run ledger.Run, found []finding) (out []finding) {
	for _, key := range slices.Sorted(maps.Keys(a.State.Judged)) {
		b, last := a.State.Firing[key], a.State.Judged[key]
		if b.Job != j.Name || run.FinishedAt.Sub(last) < forgotten || slices.ContainsFunc(found, func(f finding) bool { return f.key() == key }) {
			continue
		}
		b.RunID, b.Text = run.RunID, "no run has judged it since "+last.UTC().Format("2006-01-02")
		out = append(out, finding{b, false})
	}
	return out
}

// apply raises or ends the alert of a finding. A run that fails for another reason
// than the one before raises its alert again. The caller holds mu.
func (a *Alarm) apply(f finding, ends bool, now time.Time) (changed bool) {
	key := f.key()
	old, fires := a.State.Firing[key]
	f.Since = now.UTC()
	if fires {
		f.Since = old.Since
	}
	switch {
	case f.Broken && (!fires || f.Rule == "run_failed" && SameError(f.Text) != SameError(old.Text)):
		f.Untold = a.silent(f.Breach, now)
		a.State.Firing[key] = f.Breach
		a.announce("alert_raised", "ALERT", f.Breach, now)
	case !f.Broken && fires && ends:
		a.end(f.Breach, f.Text, now)
	default:
		return false
	}
	a.dirty = true
	return true
}

// numbers are what differs between two errors of one cause: ids, ports, times, counts.
var numbers = regexp.MustCompile(`\b[0-9a-f]*[0-9][0-9a-f]*\b`)

// SameError returns an error's text with # for its numbers: it equals that of another error of the same cause.
func SameError(text string) string { return numbers.ReplaceAllString(text, "#") }

// end ends an alert, with a message. The caller holds mu.
func (a *Alarm) end(b Breach, why string, now time.Time) {
	b.Untold = a.past(b.key(), why, now).Untold // who was not told of an alert is not told of its end
	b.Text = why
	a.announce("alert_over", "OVER", b, now)
}

// past moves an alert to those that are over, and returns it as it was. The caller holds mu.
func (a *Alarm) past(key, why string, now time.Time) Breach {
	old := a.State.Firing[key]
	delete(a.State.Firing, key)
	a.State.Past = slices.Insert(a.State.Past, 0, Past{old, now.UTC(), why})
	a.State.Past, a.dirty = a.State.Past[:min(len(a.State.Past), maxPast)], true
	return old
}
