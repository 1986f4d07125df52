package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
)

// NotEndedError means that an asynchronous run of the job has not ended: wait, or
// cancel it.
type NotEndedError struct {
	Run       Run
	Cancelled bool // it was cancelled and may still be stopping
}

func (e *NotEndedError) Error() string {
	s := fmt.Sprintf("run %s was submitted with --async at %s and has not ended: ", e.Run.RunID, e.Run.StartedAt.Format(time.RFC3339))
	if e.Cancelled {
		return s + "it was cancelled, and its workers may not have stopped yet; try again in half a minute"
	}
	return s + "wait until `runs show " + e.Run.RunID + "` says so, or stop it with `runs cancel " + e.Run.RunID + "` (also when the runner no longer has it)"
}

// Detach records that a run continues without its launcher, as the job runnerJob of
// its runner. No process writes its state from then on. Load finds its end in its total,
// which the last stage of the pipeline writes, and in its control object, and judges
// the total by the job's purpose. An unbounded run writes its total in parts, so only
// a cancel ends it.
func Detach(ctx context.Context, s store.Store, id, runnerJob string, unbounded bool, p Purpose) error {
	key := runKey(id, "state.json")
	r, err := load[Run](ctx, s, key)
	if err != nil {
		return err
	}
	r.Async, r.Unbounded, r.RunnerJob, r.Purpose = true, unbounded, runnerJob, p
	return store.WriteJSON(ctx, s, key, r)
}

// ActiveAsync returns the id of a job's asynchronous run that has not ended; "" when
// there is none. Such a run has no lease of its job. Like CloseAbandoned it stops at
// the newest run that has ended.
func ActiveAsync(ctx context.Context, s store.Store, job string) (string, error) {
	for r, err := range List(ctx, s) {
		switch {
		case err != nil && r.RunID == "":
			return "", err
		case err != nil || r.Job != job:
		case r.State.Over():
			return "", nil
		case r.Async:
			return r.RunID, nil
		}
	}
	return "", nil
}

// LanesOf is the prefix of the names of the leases of a job's lanes.
func LanesOf(job string) string { return "lanes/" + job }

// cancelDelay is how long after a cancel a worker may still begin something: workers
// read the control object every two seconds, and the store may be slow.
const cancelDelay = 10 * time.Second

// asynchronous reads the state of a run without a launcher.
func asynchronous(ctx context.Context, s store.Store, r Run, c Control) (Run, error) {
	t, err := load[total](ctx, s, runKey(r.RunID, "total.json"))
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return r, err
	}
	over := func(state State, at time.Time, why error) (Run, error) {
		r.State, r.FinishedAt, r.Error, r.inferred = state, at, ErrorText(why), true
		return r, nil
	}
	switch ended := err == nil && !r.Unbounded; {
	case ended && t.Counts[Outage] > 0:
		return over(Failed, t.WrittenAt, errors.New("its workers' network seemed to be down; finished work is kept, the same command resumes from there"))
	case ended && t.Counts[WorkersStopped] > 0:
		return over(Failed, t.WrittenAt, errors.New("a worker stopped the run; the workers' logs say why"))
	case ended && c.Action == ActionCancel:
		return over(Cancelled, t.WrittenAt, nil)
	case ended && t.Counts[LanesLost] > 0:
		return over(Failed, t.WrittenAt, errors.New("lanes lost their leases; the same command does their remaining work"))
	case ended && t.Counts[NotStored] > 0:
		return over(Failed, t.WrittenAt, ErrNotStored)
	case ended:
		if err := r.Purpose.Unmet(ctx, s, r, t.Tally); err != nil {
			return over(Failed, t.WrittenAt, err)
		}
		return over(Done, t.WrittenAt, nil)
	case c.Action == ActionPause:
		r.State = Paused
	case c.Action == ActionCancel && time.Since(c.At) > cancelDelay:
		// A worker that starts now reads the cancel. A worker that is still working has the lease of a lane.
		if _, working, err := lease.ActiveHolder(ctx, s, LanesOf(r.Job)); err != nil || working {
			return r, err
		}
		return over(Cancelled, c.At.Add(cancelDelay), nil)
	}
	return r, nil
}

// closeInferred writes the end of an asynchronous run, as Load found it, to its state.
func closeInferred(ctx context.Context, s store.Store, r Run) error {
	if r.State == Done && r.ForceID != "" {
		if err := ClearForce(ctx, s, r.Job, r.ForceID); err != nil {
			return err
		}
	}
	return store.WriteJSON(ctx, s, runKey(r.RunID, "state.json"), r)
}

func notEnded(ctx context.Context, s store.Store, r Run) error {
	c, err := ReadControl(ctx, s, r.RunID)
	if err != nil {
		return err
	}
	return &NotEndedError{Run: r, Cancelled: c.Action == ActionCancel}
}
