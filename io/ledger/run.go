package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
)

// State is the state of a run.
type State string

// The states of a run. Only Running and Paused can change.
const (
	Running     State = "running"
	Paused      State = "paused"
	Done        State = "done"
	Failed      State = "failed"
	Cancelled   State = "cancelled"   // by the control object
	Interrupted State = "interrupted" // by a signal
	// Silent is never stored: see Seen.
	Silent State = "silent"
)

// Over reports whether a run in this state has ended.
func (s State) Over() bool { return s != Running && s != Paused }

func (s State) valid() bool {
	return slices.Contains([]State{Running, Paused, Done, Failed, Cancelled, Interrupted}, s)
}

// Run is one run: the object runs/{run_id}/state.json.
type Run struct {
	RunID      string         `json:"run_id"`
	Job        string         `json:"job"`
	Runner     string         `json:"runner"`
	State      State          `json:"state"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt time.Time      `json:"finished_at,omitzero"`
	Error      string         `json:"error,omitempty"`      // why it failed or was interrupted, see ErrorText
	Options    map[string]any `json:"options,omitempty"`    // public ones only: never a credential
	ForceID    string         `json:"force_id,omitempty"`   // of a forced run, see ForceID
	Schedule   string         `json:"schedule,omitempty"`   // whose tick started it, or a person in its place
	StartedBy  string         `json:"started_by,omitempty"` // Person, who sees how it ends; "" if nobody looks
}

// Person is the value of Run.StartedBy for a run that somebody started at a terminal or by a form.
const Person = "person"

// WorkedAt reports whether the run was at work at a time, which has milliseconds. Where one
// run of a job works at a time, that says which run wrote what has this time.
func (r Run) WorkedAt(t time.Time) bool {
	return !t.Before(r.StartedAt.Truncate(time.Millisecond)) && (r.FinishedAt.IsZero() || !t.After(r.FinishedAt))
}

func (r Run) check() error {
	if !name.MatchString(r.RunID) || !r.State.valid() {
		return fmt.Errorf("run_id is %q, state is %q", r.RunID, r.State)
	}
	return nil
}

// NewRunID returns a unique id that sorts by time (to the millisecond) and is valid in
// a key, a file name and a URL: 20261121-143524-123-9f3a1c2e.
func NewRunID(now time.Time) string {
	var b [4]byte
	rand.Read(b[:]) // never fails, by its contract
	return strings.ReplaceAll(now.UTC().Format("20060102-150405.000"), ".", "-") + "-" + hex.EncodeToString(b[:])
}

const runsPrefix = "runs/"

func runKey(id, rest string) string { return runsPrefix + id + "/" + rest }

// Start records a new run in the state running. The error matches store.ErrExist when
// there is a run of that id.
func Start(ctx context.Context, s store.Store, r Run) error {
	if err := errors.Join(checkName("run id", r.RunID), checkName("job", r.Job)); err != nil {
		return fmt.Errorf("starting a run: %w", err)
	}
	r.State, r.StartedAt, r.FinishedAt = Running, r.StartedAt.UTC(), time.Time{}
	return store.CreateJSON(ctx, s, runKey(r.RunID, "state.json"), r)
}

// Load reads one run; the error matches store.ErrNotExist when there is none.
func Load(ctx context.Context, s store.Store, id string) (Run, error) {
	r, err := loadOf[Run](ctx, s, id, "state.json")
	if err != nil || r.State != Running {
		return r, err
	}
	// Workers obey the control object and do not change the state object.
	c, err := ReadControl(ctx, s, id)
	if err != nil {
		return r, err
	}
	if c.Action == ActionPause {
		r.State = Paused
	}
	return r, nil
}

// Finish sets a run's state, with the error that ended it, nil if none did. If the run is
// over in that state, now is its end. Only the process that has the run's lease calls it.
func Finish(ctx context.Context, s store.Store, id string, state State, why error, now time.Time) (Run, error) {
	if !state.valid() {
		return Run{}, fmt.Errorf("setting the state of run %s: there is no state %q", id, state)
	}
	r, err := Load(ctx, s, id)
	if err != nil {
		return Run{}, err
	}
	r.State, r.FinishedAt, r.Error = state, time.Time{}, ErrorText(why)
	if state.Over() {
		r.FinishedAt = now.UTC()
	}
	return r, store.WriteJSON(ctx, s, runKey(id, "state.json"), r)
}

// List yields the runs, newest first. It lists the keys once and reads each state only
// when it yields it, so reading only the newest runs is cheap. For an unreadable state
// it yields an error with the run's id, and continues.
func List(ctx context.Context, s store.Store) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		ids, err := runIDs(ctx, s)
		if err != nil {
			yield(Run{}, err)
			return
		}
		for _, id := range slices.Backward(ids) {
			r, err := Load(ctx, s, id)
			if errors.Is(err, store.ErrNotExist) {
				continue // purged since the listing
			}
			if err != nil {
				r.RunID = id
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// runIDs are the ids of all runs, oldest first.
func runIDs(ctx context.Context, s store.Store) ([]string, error) {
	var ids []string
	for o, err := range s.List(ctx, runsPrefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", runsPrefix, err)
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(o.Key, runsPrefix), "/")
		if rest == "state.json" && name.MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// startedAfter reports whether NewRunID made an id after a time.
func startedAfter(id string, t time.Time) bool {
	at, err := time.Parse("20060102-150405", id[:min(len(id), len("20060102-150405"))])
	return err == nil && at.After(t)
}

// Action is a control request to a run.
type Action string

// The actions of the control object.
const (
	ActionRun    Action = "run"    // resume; also when there is no control object
	ActionPause  Action = "pause"  // begin nothing new until resumed
	ActionCancel Action = "cancel" // begin nothing new, finish what is in flight, report
)

func (a Action) valid() bool { return a == ActionRun || a == ActionPause || a == ActionCancel }

// Control is the object runs/{run_id}/control.json. The command line or the server
// writes it, and each process of the run polls it.
type Control struct {
	Action Action    `json:"action"`
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"` // who wrote it
}

func (c Control) check() error {
	if !c.Action.valid() {
		return fmt.Errorf("action is %q, want run, pause or cancel", c.Action)
	}
	return nil
}

// ReadControl returns a run's control object; without one the action is ActionRun.
func ReadControl(ctx context.Context, s store.Store, runID string) (Control, error) {
	c, err := loadOf[Control](ctx, s, runID, "control.json")
	if errors.Is(err, store.ErrNotExist) {
		return Control{Action: ActionRun}, nil
	}
	return c, err
}

// ErrCancelled means that a run was cancelled. A cancel cannot be undone, because some
// of the workers may have stopped already.
var ErrCancelled = errors.New("it was cancelled, which cannot be undone; start it again when it has ended")

// WriteControl writes a run's control object. After a cancel, the error matches
// ErrCancelled for any other action.
func WriteControl(ctx context.Context, s store.Store, runID string, c Control) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("writing the control of run %s: %w", runID, err)
	}
	if c.Action != ActionCancel {
		before, err := ReadControl(ctx, s, runID)
		if err != nil {
			return fmt.Errorf("writing the control of run %s: %w", runID, err)
		}
		if before.Action == ActionCancel {
			return fmt.Errorf("run %s: %w", runID, ErrCancelled)
		}
	}
	c.At = c.At.UTC()
	return writeOf(ctx, s, runID, "control.json", c)
}

// CloseAbandoned marks as interrupted the runs of a job that a killed launcher left in
// the state running. Only the holder of the job's lease calls it, before its own
// Start. Then only workers that outlived their launcher can still be active, and the
// control object cancels those. It reads the newest runs and stops at the first that
// had ended.
func CloseAbandoned(ctx context.Context, s store.Store, job string, now time.Time) error {
	for r, err := range List(ctx, s) {
		switch {
		case err != nil && r.RunID == "":
			return err
		case err != nil || r.Job != job:
			continue // the command `runs` shows unreadable states
		case r.State.Over():
			return nil
		}
		if err := closeRun(ctx, s, r, errAbandoned, now); err != nil {
			return err
		}
	}
	return nil
}

// CloseHolder does the same for the run of a lease's previous holder. CloseAbandoned
// may not reach it: a watch starts a run for each batch, and those have ended since.
func CloseHolder(ctx context.Context, s store.Store, h lease.Holder, now time.Time) error {
	if h.RunID == "" {
		return nil
	}
	err := Abandon(ctx, s, h.RunID, errAbandoned, now)
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	return err
}

// Abandon does the same for one run, with the given reason.
func Abandon(ctx context.Context, s store.Store, id string, why error, now time.Time) error {
	r, err := Load(ctx, s, id)
	if err != nil {
		return err
	}
	return closeRun(ctx, s, r, why, now)
}

func closeRun(ctx context.Context, s store.Store, r Run, why error, now time.Time) error {
	if r.State.Over() {
		return nil
	}
	if err := WriteControl(ctx, s, r.RunID, Control{Action: ActionCancel, At: now, By: "the next run"}); err != nil {
		return err
	}
	_, err := Finish(ctx, s, r.RunID, Interrupted, why, now)
	return err
}

// errAbandoned is the reason for a run whose launcher has disappeared.
var errAbandoned = errors.New("its process ended without an error message: it was killed, or its machine went down; the job's next run resumes from there")

// LanesOf is the prefix of the names of the leases of a job's lanes.
func LanesOf(job string) string { return "lanes/" + job }
