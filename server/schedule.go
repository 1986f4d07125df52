package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

const (
	// late is how late a tick may still start a run; past it, it was missed:
	// the server was down, or asleep.
	late = 2 * time.Minute
	// orphaned is how long a claimed tick may be without its run before another
	// server starts that: the claimer has died, or is very slow.
	orphaned = startTTL
	// keptTicks of a schedule stay in the store.
	keptTicks = 100
	// openTicks are looked at for claims that nobody finished.
	openTicks = 5
	tickForm  = "20060102T150405Z"
	// countMissed bounds the counting of missed ticks.
	countMissed = 10_000
)

// tick is one time of a schedule: the object schedules/{name}/{time}.json. Of
// several servers the one that creates it has the tick, so that no schedule
// starts twice. A claim names its run before that begins: should the server die
// in between, another one starts the run of that very id, which can begin once
// only, however late the first server wakes up.
type tick struct {
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome"`             // claimed, started, active, failed or missed
	ClaimedAt time.Time `json:"claimed_at,omitzero"` // by the claimer's clock
	RunID     string    `json:"run_id,omitempty"`    // to be started, that was, or that was in the way
	Missed    int       `json:"missed,omitempty"`    // ticks up to this one
	Error     string    `json:"error,omitempty"`     // why the run did not start
	Token     string    `json:"token,omitempty"`     // tells our own write from another's when the answer got lost
}

// scheduler starts runs at their times.
type scheduler struct {
	store store.Store
	log   *slog.Logger
	start func(ctx context.Context, run ledger.Run, flags []string, by string) error
	count func(schedule, outcome string)

	all []Schedule

	mu   sync.Mutex
	seen map[string]time.Time // up to where each schedule is done with
	last map[string]tick
	open map[string]bool // schedules with a tick that is claimed and not closed
}

// plan is a schedule as the dashboard shows it.
type plan struct {
	Schedule
	Next time.Time
	Last tick
}

// Local writes a time in the schedule's own zone.
func (s *Schedule) Local(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.In(s.zone).Format("2006-01-02 15:04 MST")
}

func (s *scheduler) plans(now time.Time) []plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []plan
	for _, sc := range s.all {
		next, err := sc.next(now)
		if err != nil {
			next = time.Time{}
		}
		out = append(out, plan{Schedule: sc, Next: next, Last: s.last[sc.Name]})
	}
	return out
}

// tick does what is due at now.
func (s *scheduler) tick(ctx context.Context, now time.Time) (changed bool, err error) {
	for _, sc := range s.all {
		did, serr := s.one(ctx, sc, now)
		changed = changed || did
		if serr != nil {
			err = errors.Join(err, fmt.Errorf("schedule %s: %w", sc.Name, serr))
		}
	}
	return changed, err
}

func (s *scheduler) one(ctx context.Context, sc Schedule, now time.Time) (bool, error) {
	s.mu.Lock()
	seen, ok := s.seen[sc.Name]
	s.mu.Unlock()
	if !ok {
		newest, err := s.newest(ctx, sc.Name)
		if err != nil {
			return false, err
		}
		seen = newest.At
		if seen.IsZero() {
			seen = now
		}
		s.note(sc.Name, seen, newest)
		s.leaveOpen(sc.Name, true)
	}
	refreshed, err := s.closeOpen(ctx, sc, now)
	if err != nil {
		return refreshed, err
	}
	var missed []time.Time
	var due time.Time
	for at, err := sc.next(seen); err == nil && !at.After(now) && len(missed) < countMissed; at, err = sc.next(at) {
		if now.Sub(at) > late {
			missed = append(missed, at)
		} else {
			due = at
		}
		seen = at
	}
	if n := len(missed); n > 0 {
		won, err := s.claim(ctx, sc.Name, tick{At: missed[n-1].UTC(), Outcome: "missed", Missed: n})
		if err != nil {
			return false, err
		}
		if won {
			s.count(sc.Name, "missed")
			s.log.Warn("schedule_ticks_missed", "schedule", sc.Name, "count", n, "first", missed[0].UTC(), "last", missed[n-1].UTC())
		}
	}
	if due.IsZero() {
		if len(missed) > 0 {
			newest, err := s.newest(ctx, sc.Name)
			s.note(sc.Name, seen, newest)
			if err != nil {
				return true, err
			}
		}
		return refreshed || len(missed) > 0, nil
	}
	return true, s.fire(ctx, sc, due.UTC(), now)
}

// fire claims a tick and starts its run, if no other server does.
func (s *scheduler) fire(ctx context.Context, sc Schedule, due, now time.Time) error {
	t := tick{At: due, Outcome: "claimed", ClaimedAt: now.UTC(), RunID: ledger.NewRunID(now)}
	won, err := s.claim(ctx, sc.Name, t)
	if err != nil {
		return err // the tick is tried again, until it is late
	}
	s.leaveOpen(sc.Name, true)
	if !won {
		newest, err := s.newest(ctx, sc.Name)
		s.note(sc.Name, due, newest)
		return err
	}
	s.note(sc.Name, due, t)
	if _, err := s.closeTick(ctx, sc, t, now); err != nil {
		return err
	}
	return s.sweep(ctx, sc.Name)
}

// closeOpen looks how claimed ticks went on, and closes those that their
// claimers left. It reads nothing while no tick is open.
func (s *scheduler) closeOpen(ctx context.Context, sc Schedule, now time.Time) (changed bool, err error) {
	s.mu.Lock()
	open, last := s.open[sc.Name], s.last[sc.Name]
	s.mu.Unlock()
	if !open {
		return false, nil
	}
	keys, err := s.keys(ctx, sc.Name)
	if err != nil {
		return false, err
	}
	open = false
	for _, key := range keys[max(0, len(keys)-openTicks):] {
		var t tick
		if err := getJSON(ctx, s.store, key, &t); err != nil {
			return changed, err
		}
		if t.Outcome == "claimed" && now.Sub(t.ClaimedAt) >= orphaned {
			if t, err = s.closeTick(ctx, sc, t, now); err != nil {
				return changed, err
			}
		}
		open = open || t.Outcome == "claimed"
		if !t.At.Before(last.At) && t != last {
			changed, last = true, t
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[sc.Name] = last
	s.open[sc.Name] = open
	return changed, nil
}

// closeTick starts the run that a claimed tick names, or finds that it has begun,
// and writes down how it went. A tick whose run another server is starting at
// this moment stays claimed.
func (s *scheduler) closeTick(ctx context.Context, sc Schedule, t tick, now time.Time) (tick, error) {
	claimed := t
	err := s.begin(ctx, sc, t, now)
	var active *activeError
	switch {
	case err == nil, errors.Is(err, errBegun):
		t.Outcome = "started"
	case errors.As(err, &active) && active.RunID == t.RunID:
		return claimed, nil
	case errors.As(err, &active):
		t.Outcome, t.RunID = "active", active.RunID
		s.log.Warn("schedule_overlaps", "schedule", sc.Name, "at", t.At, "active_run_id", active.RunID)
	case errors.Is(err, errLate):
		t.Outcome, t.RunID, t.Missed = "missed", "", 1
		s.log.Warn("schedule_ticks_missed", "schedule", sc.Name, "count", 1, "first", t.At, "last", t.At, "why", "the server that had it ended before its run began")
	case ctx.Err() != nil:
		return claimed, err // the next server closes it
	default:
		t.Outcome, t.Error = "failed", ledger.Why(err)
		s.log.Error("schedule_failed", "schedule", sc.Name, "at", t.At, "error", ledger.Redact(err.Error()))
	}
	s.count(sc.Name, t.Outcome)
	if err := putJSON(ctx, s.store.Put, tickKey(sc.Name, t.At), t); err != nil {
		return claimed, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[sc.Name].At.Equal(t.At) {
		s.last[sc.Name] = t
	}
	return t, nil
}

// errLate says that a tick's time is over and its run has not begun.
var errLate = errors.New("it is too late for this tick's run")

// begin starts the run of a claimed tick.
func (s *scheduler) begin(ctx context.Context, sc Schedule, t tick, now time.Time) error {
	if now.Sub(t.At) <= late {
		return s.start(ctx, ledger.Run{RunID: t.RunID, Job: sc.Job, StartedAt: now}, sc.flags, "schedule "+sc.Name)
	}
	_, err := ledger.Load(ctx, s.store, t.RunID)
	switch {
	case err == nil:
		return errBegun
	case errors.Is(err, store.ErrNotExist):
		return errLate
	}
	return err
}

func (s *scheduler) leaveOpen(name string, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = open
}

func (s *scheduler) note(name string, seen time.Time, last tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = seen
	if !last.At.IsZero() {
		s.last[name] = last
	}
}

func tickPrefix(name string) string { return "schedules/" + name + "/" }

func tickKey(name string, at time.Time) string {
	return tickPrefix(name) + at.UTC().Format(tickForm) + ".json"
}

// claim creates a tick's object; won is false when another server has.
func (s *scheduler) claim(ctx context.Context, name string, t tick) (won bool, err error) {
	t.Token = rand.Text()
	key := tickKey(name, t.At)
	err = putJSON(ctx, s.store.PutIfAbsent, key, t)
	if !errors.Is(err, store.ErrExist) {
		return err == nil, err
	}
	// A repeated request may have met what its first try wrote.
	var there tick
	if err := getJSON(ctx, s.store, key, &there); err != nil {
		return false, err
	}
	return there.Token == t.Token, nil
}

// newest is the latest tick in the store; empty when there is none.
func (s *scheduler) newest(ctx context.Context, name string) (tick, error) {
	keys, err := s.keys(ctx, name)
	if err != nil || len(keys) == 0 {
		return tick{}, err
	}
	var t tick
	err = getJSON(ctx, s.store, keys[len(keys)-1], &t)
	return t, err
}

// since are the ticks after a time, oldest first.
func (s *scheduler) since(ctx context.Context, name string, after time.Time) ([]tick, error) {
	keys, err := s.keys(ctx, name)
	var out []tick
	for _, key := range keys {
		if err != nil {
			break
		}
		if key <= tickKey(name, after) {
			continue
		}
		var t tick
		err = getJSON(ctx, s.store, key, &t)
		out = append(out, t)
	}
	return out, err
}

func (s *scheduler) keys(ctx context.Context, name string) ([]string, error) {
	var keys []string
	for o, err := range s.store.List(ctx, tickPrefix(name)) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", tickPrefix(name), err)
		}
		if _, err := time.Parse(tickForm, strings.TrimSuffix(path.Base(o.Key), ".json")); err == nil {
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}

func (s *scheduler) sweep(ctx context.Context, name string) error {
	keys, err := s.keys(ctx, name)
	if err != nil {
		return err
	}
	for len(keys) > keptTicks {
		if err := store.Retry(ctx, func() error { return s.store.Delete(ctx, keys[0]) }); err != nil {
			return fmt.Errorf("removing an old tick: %w", err)
		}
		keys = keys[1:]
	}
	return nil
}
