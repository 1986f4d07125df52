// Package schedule starts runs by cron expressions and for ranges of dates.
//
// No promise: see docs/library.md.
package schedule

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

const (
	// MaxLate is how late a tick may still start a run. After that it counts as missed:
	// the server was down or suspended.
	MaxLate = 2 * time.Minute
	// ClaimTimeout is how long after a claim another server starts the tick's run, if it
	// has not started: the server that claimed the tick has died or is very slow.
	ClaimTimeout = runs.StartLeaseTTL
	// maxTicks is how many ticks of a schedule are kept in the store.
	maxTicks = 100
	// maxOpenTicks is how many of the newest ticks are checked for unfinished claims.
	maxOpenTicks = 5
	tickLayout   = "20060102T150405Z"
	// maxMissed is the largest number of missed ticks that is counted.
	maxMissed = 10_000
)

// Tick is one due time of a schedule: the object schedules/{name}/{time}.json. The
// server that creates the object has claimed the tick and starts its run. The claim
// contains the run's id. If that server dies before the run starts, another one
// starts a run with the same id. A run of one id can start only once, even if the
// first server resumes later.
type Tick struct {
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome"`             // claimed, started, active, failed or missed
	ClaimedAt time.Time `json:"claimed_at,omitzero"` // by the claimer's clock
	RunID     string    `json:"run_id,omitempty"`    // of the tick's run, or of the active run that prevented it
	Missed    int       `json:"missed,omitempty"`    // how many ticks, this one included
	Error     string    `json:"error,omitempty"`     // why the run did not start
	Token     string    `json:"token,omitempty"`     // identifies this server's write if the answer to it was lost
}

// Scheduler starts the runs of schedules.
type Scheduler struct {
	Store store.Store
	Log   *slog.Logger
	Start func(ctx context.Context, run ledger.Run, flags []string, by string) error
	Count func(schedule, outcome string)
	Check func(ctx context.Context, job string, flags []string) error // of a run that a definition asks for; nil: none

	File  []Schedule // those of the configuration file
	Jobs  known.Jobs
	Audit *known.Audit

	mu       sync.Mutex
	Plans    []Plan
	keptText string            // what was kept, as JSON
	keptAt   time.Time         // when to read it again
	loaded   bool              // what was kept has been read
	recent   map[string][]Tick // the newest ticks of each schedule, oldest first

	// of Tick, which one goroutine calls
	seen map[string]time.Time // the last time up to which each schedule's ticks were handled
	open map[string]bool      // schedules with a tick that is claimed and not closed
}

// New returns a scheduler without its settings.
func New() *Scheduler {
	return &Scheduler{seen: map[string]time.Time{},
		recent: map[string][]Tick{}, open: map[string]bool{}}
}

// View is a schedule as the dashboard shows it.
type View struct {
	Plan
	Now   time.Time // at which it is shown
	Next  time.Time
	Times []time.Time // the next ones
	Ticks []Tick      // the newest ones, oldest first

	// Set by History.
	Marks  []Mark      // oldest first
	Result *runs.Entry // the newest of its runs that is done; nil: none of those that History knows
	Gone   time.Time   // the newest tick whose run History does not know; zero: there is none
}

// Local formats a time in the schedule's time zone.
func (s *Schedule) Local(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.In(s.zone).Format("2006-01-02 15:04 MST")
}

// Views are the schedules as they are shown.
func (s *Scheduler) Views(now time.Time) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []View
	for _, p := range s.Plans {
		v := View{Plan: p, Now: now, Ticks: slices.Clone(s.recent[p.Name])}
		for at := now; len(v.Times) < upcoming && !p.Kept.Paused && p.Wrong == ""; v.Times = append(v.Times, at) {
			next, err := p.Next(at)
			if err != nil { // no time is left
				break
			}
			at = next
		}
		if len(v.Times) > 0 {
			v.Next = v.Times[0]
		}
		out = append(out, v)
	}
	return out
}

// Tick handles the ticks that are due.
func (s *Scheduler) Tick(ctx context.Context, now time.Time) (changed bool, err error) {
	if changed, err = s.Refresh(ctx, now); err != nil && !s.Known() {
		return changed, err // a schedule may be paused
	}
	for _, p := range s.All() {
		if p.Wrong != "" {
			continue
		}
		did, serr := s.tickSchedule(ctx, p, now)
		changed = changed || did
		if serr != nil {
			err = errors.Join(err, fmt.Errorf("schedule %s: %w", p.Name, serr))
		}
	}
	return changed, err
}

// Known reports whether this server has read which schedules were changed.
func (s *Scheduler) Known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

func (s *Scheduler) tickSchedule(ctx context.Context, sc Plan, now time.Time) (bool, error) {
	refreshed, err := s.closeOpen(ctx, sc.Schedule, now)
	if err != nil {
		return refreshed, err
	}
	seen, ok := s.seen[sc.Name]
	if recent := s.recent[sc.Name]; !ok { // only this goroutine writes it
		if seen = now; len(recent) > 0 {
			seen = recent[len(recent)-1].At
		}
		s.seen[sc.Name] = seen
	}
	if sc.Kept.Paused {
		s.seen[sc.Name] = now
		return refreshed, nil
	}
	if sc.Kept.From.After(seen) {
		seen = sc.Kept.From
	}
	var missed []time.Time
	var due time.Time
	for at, err := sc.Next(seen); err == nil && !at.After(now) && len(missed) < maxMissed; at, err = sc.Next(at) {
		if now.Sub(at) > MaxLate {
			missed = append(missed, at)
		} else {
			due = at
		}
		seen = at
	}
	if n := len(missed); n > 0 {
		won, err := s.claim(ctx, sc.Name, Tick{At: missed[n-1].UTC(), Outcome: "missed", Missed: n})
		if err != nil {
			return false, err
		}
		if won {
			s.Count(sc.Name, "missed")
			s.Log.Warn("schedule_ticks_missed", "schedule", sc.Name, "count", n, "first", missed[0].UTC(), "last", missed[n-1].UTC())
		}
	}
	if due.IsZero() {
		s.seen[sc.Name] = seen
		return refreshed || len(missed) > 0, nil
	}
	if ok, err := s.unchanged(ctx, sc); err != nil || !ok { // paused or edited a moment ago
		s.reread()
		return true, err
	}
	return true, s.fire(ctx, sc.Schedule, due.UTC(), now)
}

// fire claims a tick and starts its run, unless another server has claimed it.
func (s *Scheduler) fire(ctx context.Context, sc Schedule, due, now time.Time) error {
	t := Tick{At: due, Outcome: "claimed", ClaimedAt: now.UTC(), RunID: ledger.NewRunID(now)}
	won, err := s.claim(ctx, sc.Name, t)
	if err != nil {
		return err // the tick is tried again, until it is too late
	}
	if s.seen[sc.Name] = due; !won {
		return nil
	}
	if _, err := s.closeTick(ctx, sc, t, now); err != nil {
		return err
	}
	return s.sweep(ctx, sc.Name)
}

// closeOpen reads what became of claimed ticks, and closes those whose claim has
// timed out. It reads nothing while no tick is open, and at its first call all that are shown.
func (s *Scheduler) closeOpen(ctx context.Context, sc Schedule, now time.Time) (changed bool, err error) {
	n := maxOpenTicks
	if _, ok := s.seen[sc.Name]; !ok {
		n = MaxMarks
	} else if !s.open[sc.Name] {
		return false, nil
	}
	all, err := s.Newest(ctx, sc.Name, n)
	if err != nil {
		return false, err
	}
	open := false
	for _, t := range all {
		if t.Outcome == "claimed" && now.Sub(t.ClaimedAt) >= ClaimTimeout {
			if t, err = s.closeTick(ctx, sc, t, now); err != nil {
				return changed, err
			}
		}
		open = open || t.Outcome == "claimed"
		s.mu.Lock()
		changed = s.note(sc.Name, t) || changed
		s.mu.Unlock()
	}
	s.open[sc.Name] = open
	return changed, nil
}

// closeTick starts the run of a claimed tick, unless it has started, and writes the
// outcome to the tick. While another server is starting the run, the tick stays
// claimed.
func (s *Scheduler) closeTick(ctx context.Context, sc Schedule, t Tick, now time.Time) (Tick, error) {
	claimed := t
	err := s.begin(ctx, sc, t, now)
	var active *runs.ActiveError
	switch {
	case err == nil, errors.Is(err, runs.ErrAlreadyStarted):
		t.Outcome = "started"
	case errors.As(err, &active) && active.RunID == t.RunID:
		return claimed, nil
	case errors.As(err, &active):
		t.Outcome, t.RunID = "active", active.RunID
		s.Log.Warn("schedule_overlaps", "schedule", sc.Name, "at", t.At, "active_run_id", active.RunID)
	case errors.Is(err, errLate):
		t.Outcome, t.RunID, t.Missed = "missed", "", 1
		s.Log.Warn("schedule_ticks_missed", "schedule", sc.Name, "count", 1, "first", t.At, "last", t.At, "why",
			"the server that claimed it ended before its run started")
	case ctx.Err() != nil:
		return claimed, err // the next server closes it
	default:
		t.Outcome, t.Error = "failed", ledger.ErrorText(err)
		s.Log.Error("schedule_failed", "schedule", sc.Name, "at", t.At, "error", ledger.Redact(err.Error()))
	}
	s.Count(sc.Name, t.Outcome)
	if err := store.WriteJSON(ctx, s.Store, TickKey(sc.Name, t.At), t); err != nil {
		return claimed, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(sc.Name, t)
	return t, nil
}

// errLate says that a tick is too late to start its run.
var errLate = errors.New("it is too late for this tick's run")

// begin starts the run of a claimed tick.
func (s *Scheduler) begin(ctx context.Context, sc Schedule, t Tick, now time.Time) error {
	if now.Sub(t.At) <= MaxLate {
		return s.Start(ctx, ledger.Run{RunID: t.RunID, Job: sc.Job, StartedAt: now, Schedule: sc.Name}, sc.Flags, "schedule "+sc.Name)
	}
	_, err := ledger.Load(ctx, s.Store, t.RunID)
	switch {
	case err == nil:
		return runs.ErrAlreadyStarted
	case errors.Is(err, store.ErrNotExist):
		return errLate
	}
	return err
}

// note remembers a tick, and reports whether that changed something. The caller holds mu.
func (s *Scheduler) note(name string, t Tick) (changed bool) {
	all := s.recent[name]
	i, there := slices.BinarySearchFunc(all, t, func(a, b Tick) int { return a.At.Compare(b.At) })
	switch {
	case !there:
		all = slices.Insert(all, i, t)
	case all[i] == t:
		return false
	default:
		all[i] = t
	}
	s.recent[name] = all[max(0, len(all)-MaxMarks):]
	return true
}

func tickPrefix(name string) string { return "schedules/" + name + "/" }

// TickKey is the key of a tick.
func TickKey(name string, at time.Time) string {
	return tickPrefix(name) + at.UTC().Format(tickLayout) + ".json"
}

// claim creates a tick's object, and remembers the tick. won is false when another server created it: then closeOpen reads it.
func (s *Scheduler) claim(ctx context.Context, name string, t Tick) (won bool, err error) {
	t.Token = rand.Text()
	if err = store.CreateJSON(ctx, s.Store, TickKey(name, t.At), t); errors.Is(err, store.ErrExist) {
		s.open[name] = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.open[name] = t.Outcome == "claimed"
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(name, t)
	return true, nil
}

// Newest are the latest n ticks in the store, oldest first. A tick that was removed after the listing is left out, and so is one that is
// no JSON, with a line in the log. If the newest one is no JSON, that is an error, because it says up to when
// ticks were handled.
func (s *Scheduler) Newest(ctx context.Context, name string, n int) ([]Tick, error) {
	keys, err := s.keys(ctx, name)
	if err != nil {
		return nil, err
	}
	keys = keys[max(0, len(keys)-n):]
	all := make([]Tick, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, key := range keys {
		g.Go(func() error {
			b, err := store.ReadAll(ctx, s.Store, key, known.MaxObject)
			if errors.Is(err, store.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err // the next call may read it
			}
			err = json.Unmarshal(b, &all[i])
			switch {
			case err == nil:
				return nil
			case i == len(keys)-1:
				return fmt.Errorf("reading %s: %w; remove it if it cannot be repaired", key, err)
			}
			s.Log.Error("schedule_tick_unreadable", "schedule", name, "key", key, "error", err)
			all[i] = Tick{}
			return nil
		})
	}
	err = g.Wait()
	return slices.DeleteFunc(all, func(t Tick) bool { return t.At.IsZero() }), err
}

func (s *Scheduler) keys(ctx context.Context, name string) ([]string, error) {
	keys, err := store.Keys(ctx, s.Store, tickPrefix(name))
	return slices.DeleteFunc(keys, func(key string) bool {
		_, err := time.Parse(tickLayout, strings.TrimSuffix(path.Base(key), ".json"))
		return err != nil
	}), err
}

// sweep removes the oldest ticks of a schedule over maxTicks.
func (s *Scheduler) sweep(ctx context.Context, name string) error {
	keys, err := s.keys(ctx, name)
	if err != nil {
		return err
	}
	return store.Remove(ctx, s.Store, keys[:max(0, len(keys)-maxTicks)]...)
}

// Schedule starts a job's runs by a cron expression.
type Schedule struct {
	Name     string         `yaml:"name" json:"name"`
	Job      string         `yaml:"job" json:"job"`
	Cron     string         `yaml:"cron" json:"cron"`                   // minute hour day-of-month month day-of-week
	TimeZone string         `yaml:"timezone" json:"timezone,omitempty"` // IANA name; UTC when empty
	Options  map[string]any `yaml:"options" json:"options,omitempty"`   // as in the request that starts a run

	values map[string]string // Options as text
	Flags  []string
	zone   *time.Location
	ticks  cron
}

// Check reads the definition, and refuses a wrong one.
func (s *Schedule) Check(jobs known.Jobs) error {
	if !namePattern.MatchString(s.Name) {
		return errors.New("its name must be at most 64 lower-case letters, digits, _ and -, the first a letter or a digit")
	}
	j, ok := jobs.Named(s.Job)
	if !ok {
		return fmt.Errorf("there is no job %q; use %s", s.Job, jobs.Or())
	}
	var err error
	if s.zone, err = known.Zone(s.TimeZone); err != nil {
		return err
	}
	if s.ticks, err = parseCron(s.Cron, s.zone, time.Now()); err != nil {
		return err
	}
	s.values = map[string]string{}
	for name, v := range s.Options {
		if _, ok := j.Field(name); !ok {
			return fmt.Errorf("unknown option %q; options of %s: %s", name, j.Name, j.FieldNames())
		}
		if s.values[name], err = known.Scalar(v); err != nil {
			return fmt.Errorf("option %s %w", name, err)
		}
	}
	s.Flags, err = j.FlagsOf(s.values)
	return err
}

// Next is the schedule's first tick after a time.
func (s *Schedule) Next(after time.Time) (time.Time, error) {
	return s.ticks.next(after)
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
