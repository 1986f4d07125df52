package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// alertsKey is the object in which firing alerts and unsent messages outlive
// the server.
const alertsKey = "alerts/state.json"

// breach is a threshold that is passed.
type breach struct {
	Job      string    `json:"job"`
	Rule     string    `json:"rule"`
	Provider string    `json:"provider,omitempty"`
	Since    time.Time `json:"since"`
	RunID    string    `json:"run_id"` // in which it began
	Text     string    `json:"text"`
}

func (b breach) key() string { return strings.Join([]string{b.Job, b.Rule, b.Provider}, "/") }

// finding is one threshold looked at: what was measured, and whether it passes.
type finding struct {
	breach
	broken bool
}

// providerRow is what the alerts need of a provider's row in a report.
type providerRow struct {
	Provider      string   `json:"provider"`
	State         string   `json:"state"`
	Reason        string   `json:"reason"`
	Alerts        []string `json:"alerts"`
	Warnings      []string `json:"warnings"`
	TotalPages    int64    `json:"total_pages"`
	PreviousPages int64    `json:"previous_pages"`
	Requests      int64    `json:"requests"`
	EmptyRate     float64  `json:"empty_rate"` // percent
	AvgResponseMS float64  `json:"avg_response_ms"`
}

// goodStates are the states of a provider that nobody must be told of: it was crawled
// to its end, or the next run continues it.
var goodStates = []string{"", "run", "done", "cut", "open"}

// stopped says that a provider was skipped, stopped or out of reach.
func (p providerRow) stopped() bool {
	return !slices.Contains(goodStates, p.State) || strings.Contains(p.Reason, "unreachable")
}

// rowsOf reads a report's providers: rows of the job's own type, of which T has
// what is looked for.
func rowsOf[T any](r ledger.Report) []T {
	b, err := json.Marshal(r.Providers)
	if err != nil {
		return nil
	}
	var rows []T
	if json.Unmarshal(b, &rows) != nil {
		return nil // a job whose rows are of another kind
	}
	return rows
}

// judge holds a run's report against a job's thresholds. A run that is going is
// judged by its duration alone, and one that broke off by that and by what
// broke: its rates are those of a part. What has too few samples is left out,
// neither good nor bad.
func judge(j job, limits limitSet, r ledger.Report) []finding {
	var out []finding
	find := func(rule, provider string, broken bool, text string) {
		out = append(out, finding{breach{Job: j.Name, Rule: rule, Provider: provider, RunID: r.RunID, Text: text}, broken})
	}
	if limit, on := limits["duration"]; on {
		value, most := apart(r.Duration, limit)
		find("duration", "", r.Duration > limit, fmt.Sprintf("the run %s %s (limit %s)", map[bool]string{true: "took", false: "has taken"}[r.State.Over()], value, most))
	}
	switch r.State {
	case ledger.Failed, ledger.Interrupted:
		find("run_failed", "", true, string(r.State)+": "+cmp.Or(r.Error, "it left no reason; see its log"))
	case ledger.Done:
		find("run_failed", "", false, "a run is done")
	}
	if !r.State.Over() {
		return out
	}
	rows := rowsOf[providerRow](r)
	for _, p := range rows {
		find("provider", p.Provider, p.stopped(), strings.TrimSuffix(fmt.Sprintf("it was %s: %s", cmp.Or(p.State, "crawled"), p.Reason), ": "))
		said := slices.Concat(p.Alerts, p.Warnings)
		find("quality", p.Provider, len(said) > 0, cmp.Or(strings.Join(said, "; "), "nothing is amiss any more"))
	}
	if rows == nil {
		for _, text := range r.Alerts { // of a job without rows: "site NAME: what is wrong"
			who, what, named := strings.Cut(text, ": ")
			if site, ok := strings.CutPrefix(who, "site "); named && ok {
				find("quality", site, true, what)
			} else {
				find("quality", "", true, text)
			}
		}
	}
	if r.State != ledger.Done {
		return out
	}
	look := func(rule, provider string, samples int64, value float64, broken func(v, limit float64) bool, what string) {
		limit, on := limits[rule]
		if !on || float64(samples) < limits["minimum_samples"] {
			return
		}
		v, l := percents(value, limit)
		find(rule, provider, broken(value, limit), fmt.Sprintf(what+" (limit %s)", v, l))
	}
	over := func(v, limit float64) bool { return v > limit }
	under := func(v, limit float64) bool { return v < limit }
	reach := func(v, limit float64) bool { return v >= limit }
	share := func(part, of int64) float64 {
		if of == 0 {
			return 0
		}
		return float64(part) / float64(of)
	}
	n := r.HTTP.Requests
	rate, of := j.failureRate(r)
	look("failure_rate", "", of, rate, over, "%s of the work failed")
	look("success_rate", "", n, share(r.HTTP.ByStatus["200"]+r.HTTP.ByStatus["304"], n), under, "%s of the requests were answered by 200 or 304")
	look("error_rate", "", n, share(classOf(r, '4')+classOf(r, '5'), n), over, "%s of the requests were answered by 4xx or 5xx")
	look("retry_rate", "", n, share(r.HTTP.Retries, n), over, "%s of the requests were retries")
	look("empty_rate", "", r.Counts["articles_fetched"], share(r.Counts["articles_empty"], r.Counts["articles_fetched"]), over, "%s of the pages were empty")
	for _, p := range rows {
		if limit, on := limits["mean_response"]; on && float64(p.Requests) >= limits["minimum_samples"] {
			v, l := apart(p.AvgResponseMS/1000, limit)
			find("mean_response", p.Provider, p.AvgResponseMS/1000 > limit, fmt.Sprintf("it answers after %s on average (limit %s)", v, l))
		}
		look("empty_rate", p.Provider, p.Requests, p.EmptyRate/100, over, "%s of its pages were empty")
		if p.PreviousPages > 0 {
			look("pages_change", p.Provider, math.MaxInt64, share(max(p.TotalPages-p.PreviousPages, p.PreviousPages-p.TotalPages), p.PreviousPages), reach,
				"its number of pages changed by %s")
		}
	}
	return out
}

// percents writes two shares, with as many digits as tell them apart.
func percents(value, limit float64) (v, l string) {
	for digits := 1; ; digits++ {
		v, l = strconv.FormatFloat(100*value, 'f', digits, 64)+" %", strconv.FormatFloat(100*limit, 'f', -1, 64)+" %"
		if w := strconv.FormatFloat(100*limit, 'f', digits, 64) + " %"; v != w || value == limit || digits == 6 {
			return v, l
		}
	}
}

// apart writes two times in seconds, each in the units that suit it.
func apart(value, limit float64) (v, l string) {
	v, l = span(value), span(limit)
	if v == l && value != limit {
		v = time.Duration(value * float64(time.Second)).String()
	}
	return v, l
}

// span writes 11520 as 3 h 12 min.
func span(s float64) string {
	d := time.Duration(s * float64(time.Second))
	h, m := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64) + " ms"
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case h == 0 && d%time.Minute < time.Second:
		return fmt.Sprintf("%d min", m)
	case h == 0:
		return fmt.Sprintf("%d min %d s", m, d%time.Minute/time.Second)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

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
	limits map[string]limitSet
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
	j, ok := jobNamed(e.Run.Job)
	if !ok {
		return false // migrate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := e.Report
	r.State, r.Error = e.Run.State, e.Error()
	all := judge(j, a.limits[j.Name], r)
	if r.State == ledger.Done && len(rowsOf[providerRow](r)) == 0 { // what a job without rows no longer says is over
		for key, b := range a.state.Firing {
			if b.Job == j.Name && b.Rule == "quality" && !slices.ContainsFunc(all, func(f finding) bool { return f.key() == key }) {
				all = append(all, finding{breach{Job: b.Job, Rule: b.Rule, Provider: b.Provider, RunID: r.RunID, Text: "nothing is amiss any more"}, false})
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

// judgeTicks tells of ticks that were missed, or whose run did not start.
func (a *alarm) judgeTicks(ctx context.Context, now time.Time) (changed bool, err error) {
	plans := a.plans.plans(now)
	a.mu.Lock()
	for key, b := range a.state.Firing {
		if b.Rule == "schedule" && !slices.ContainsFunc(plans, func(p plan) bool { return p.Name == b.Provider }) {
			delete(a.state.Firing, key)
			b.Text, changed, a.dirty = "there is no such schedule any more", true, true
			a.tell("alert_over", "OVER", b)
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
		if known { // of an unknown schedule only the newest counts
			if ticks, err = a.plans.since(ctx, p.Name, after); err != nil {
				return changed, err
			}
		}
		a.mu.Lock()
		raised := false // now: that it is over already needs no second message
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

func (a *alarm) judgeTick(p plan, t tick, now time.Time) bool {
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
	return a.found(f, true, now)
}

// tell logs an alert and puts its message up for the webhook; the caller holds mu.
func (a *alarm) tell(event, word string, b breach) {
	a.log.Warn(event, "job", b.Job, "alert", b.Rule, "provider", b.Provider, "run_id", b.RunID, "text", b.Text)
	if a.hook == nil {
		return
	}
	who := b.Job
	if b.Provider != "" {
		who += " / " + b.Provider
	}
	text := fmt.Sprintf("[%s] %s, %s: %s", word, who, words(b.Rule), strings.TrimSuffix(b.Text, "."))
	if b.RunID != "" {
		text += ". Run " + b.RunID
	}
	a.post(text)
}

// post puts a message up for the webhook; the caller holds mu.
func (a *alarm) post(text string) {
	a.state.Outbox, a.dirty = append(a.state.Outbox, text), true
	if drop := len(a.state.Outbox) - maxOutbox; drop > 0 {
		a.log.Error("webhook_messages_dropped", "count", drop)
		a.state.Outbox = a.state.Outbox[drop:]
	}
}

// say is post for others.
func (a *alarm) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hook != nil {
		a.post(text)
	}
}

func (a *alarm) save(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dirty {
		return nil
	}
	if err := putJSON(ctx, a.store.Put, alertsKey, a.state); err != nil {
		return err
	}
	a.dirty = false
	return nil
}

// send gives the webhook what waits for it, in order. One that does not answer
// is tried again, after growing pauses.
func (a *alarm) send(ctx context.Context, now time.Time) error {
	a.mu.Lock()
	waiting := slices.Clone(a.state.Outbox)
	soon := now.Before(a.nextAt)
	a.mu.Unlock()
	if a.hook == nil || soon {
		return nil
	}
	for _, text := range waiting {
		err := a.hook.send(ctx, text)
		a.mu.Lock()
		if err != nil {
			a.tries++
			a.nextAt = now.Add(min(5*time.Minute, time.Second<<min(a.tries, 9)))
			a.log.Warn("webhook_failed", "try", a.tries, "again_at", a.nextAt.UTC(), "error", err)
			a.mu.Unlock()
			return nil
		}
		a.tries, a.state.Outbox, a.dirty = 0, a.state.Outbox[1:], true
		a.mu.Unlock()
		if err := a.save(ctx); err != nil {
			return err
		}
	}
	return nil
}
