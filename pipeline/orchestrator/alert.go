package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	Provider      string  `json:"provider"`
	TotalPages    int64   `json:"total_pages"`
	PreviousPages int64   `json:"previous_pages"`
	Requests      int64   `json:"requests"`
	EmptyRate     float64 `json:"empty_rate"` // percent
	AvgResponseMS float64 `json:"avg_response_ms"`
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

// judge holds a report against a job's thresholds. What has too few samples is
// left out: neither good nor bad.
func judge(j job, limits limitSet, r ledger.Report) []finding {
	var out []finding
	look := func(rule, provider string, samples int64, value float64, broken func(v, limit float64) bool, text string, scale float64) {
		limit, on := limits[rule]
		if !on || float64(samples) < limits["minimum_samples"] {
			return
		}
		out = append(out, finding{breach{Job: j.Name, Rule: rule, Provider: provider, RunID: r.RunID,
			Text: fmt.Sprintf(text, value*scale, limit*scale)}, broken(value, limit)})
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
	look("failure_rate", "", of, rate, over, "%.1f %% of the work failed (limit %.4g %%)", 100)
	look("success_rate", "", n, share(r.HTTP.ByStatus["200"]+r.HTTP.ByStatus["304"], n), under, "%.1f %% of the requests were answered by 200 or 304 (limit %.4g %%)", 100)
	look("error_rate", "", n, share(classOf(r, '4')+classOf(r, '5'), n), over, "%.1f %% of the requests were answered by 4xx or 5xx (limit %.4g %%)", 100)
	look("retry_rate", "", n, share(r.HTTP.Retries, n), over, "%.1f %% of the requests were retries (limit %.4g %%)", 100)
	always := int64(limits["minimum_samples"]) + 1
	look("duration", "", always, r.Duration, over, "the run takes %.2f hours (limit %.4g)", 1.0/3600)
	look("empty_rate", "", r.Counts["articles_fetched"], share(r.Counts["articles_empty"], r.Counts["articles_fetched"]), over, "%.1f %% of the pages were empty (limit %.4g %%)", 100)
	for _, p := range rowsOf[providerRow](r) {
		look("mean_response", p.Provider, p.Requests, p.AvgResponseMS/1000, over, "it answers after %.2f s on average (limit %.4g s)", 1)
		look("empty_rate", p.Provider, p.Requests, p.EmptyRate/100, over, "%.1f %% of its pages were empty (limit %.4g %%)", 100)
		if p.PreviousPages > 0 && r.State.Over() {
			look("pages_change", p.Provider, always, share(max(p.TotalPages-p.PreviousPages, p.PreviousPages-p.TotalPages), p.PreviousPages), reach,
				"its number of pages changed by %.1f %% (limit %.4g %%)", 100)
		}
	}
	return out
}

// alertState is the object alertsKey.
type alertState struct {
	Firing map[string]breach `json:"firing"`
	Judged map[string]string `json:"judged"` // the newest run of each job that was judged at its end
	Outbox []string          `json:"outbox"` // messages that the webhook has not taken yet
}

// alarm judges runs, and tells of a breach once and of its end once.
type alarm struct {
	store  store.Store
	log    *slog.Logger
	limits map[string]limitSet
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
	if fresh.Judged == nil {
		fresh.Judged = map[string]string{}
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

// tick judges the newest run of each job, newest first in runs. Only the
// leading server calls it.
func (a *alarm) tick(ctx context.Context, runs []*entry, now time.Time) (changed bool, err error) {
	a.mu.Lock()
	loaded := a.loaded
	a.mu.Unlock()
	if !loaded {
		if changed, err = a.load(ctx); err != nil {
			return false, err
		}
	}
	for _, j := range jobs {
		i := slices.IndexFunc(runs, func(e *entry) bool { return e.Run.Job == j.Name && !e.Broken && !e.Starting })
		if i >= 0 && !runs[i].Awaited && a.judged(j, runs[i], now) {
			changed = true
		}
	}
	return changed, errors.Join(a.save(ctx), a.send(ctx, now))
}

// judged compares one run with the alerts that fire. A run that is going can
// raise an alert; only one that has ended can end it.
func (a *alarm) judged(j job, e *entry, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := e.Run.State.Over()
	if over && a.state.Judged[j.Name] >= e.Run.RunID {
		return false
	}
	for _, f := range judge(j, a.limits[j.Name], e.Report) {
		key := f.key()
		old, fires := a.state.Firing[key]
		switch {
		case f.broken && !fires:
			f.Since = now.UTC()
			a.state.Firing[key] = f.breach
			a.tell("alert_raised", "ALERT", f.breach)
		case !f.broken && fires && over:
			delete(a.state.Firing, key)
			f.Since = old.Since
			a.tell("alert_over", "OVER", f.breach)
		default:
			continue
		}
		changed, a.dirty = true, true
	}
	if over {
		a.state.Judged[j.Name], a.dirty = e.Run.RunID, true
	}
	return changed
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
	a.post(fmt.Sprintf("[%s] %s, %s: %s. Run %s", word, who, strings.ReplaceAll(b.Rule, "_", " "), b.Text, b.RunID))
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
