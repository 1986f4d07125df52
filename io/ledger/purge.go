package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// PurgeResult is how many runs and dead letters Purge removed.
type PurgeResult struct {
	Runs        int
	DeadLetters int
}

// Purge removes the runs of a job (all jobs when empty) that ended before
// olderThan, its dead letters whose last failure was before it, and what processes died at before it: such
// units are tried again. It keeps runs that
// are not over and objects that cannot be read. The error names the unreadable
// objects; the others are still purged.
func Purge(ctx context.Context, s store.Store, job string, olderThan time.Time) (PurgeResult, error) {
	var p PurgeResult
	var broken []error
	ids, err := runIDs(ctx, s)
	if err != nil {
		return p, err
	}
	for _, id := range ids {
		if startedAfter(id, olderThan) { // then it cannot have ended before olderThan
			continue
		}
		r, err := Load(ctx, s, id)
		if errors.Is(err, store.ErrNotExist) {
			continue // purged since the listing
		}
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		if err != nil {
			broken = append(broken, err)
			continue
		}
		if job != "" && r.Job != job || !r.State.Over() || !r.FinishedAt.Before(olderThan) {
			continue
		}
		if err := purgeRun(ctx, s, r.RunID); err != nil {
			return p, errors.Join(append(broken, err)...)
		}
		p.Runs++
	}
	for o, err := range deadLetterObjects(ctx, s, job) {
		if err != nil {
			return p, errors.Join(append(broken, err)...)
		}
		if o.ModTime.After(olderThan) { // it is written at each failure
			continue
		}
		key := o.Key
		d, err := load[DeadLetter](ctx, s, key)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			broken = append(broken, err)
			continue
		}
		if !d.LastAt.Before(olderThan) {
			continue
		}
		if err := store.Remove(ctx, s, key); err != nil {
			return p, errors.Join(append(broken, err)...)
		}
		p.DeadLetters++
	}
	begun := begunPrefix
	if job != "" {
		begun += job + "/"
	}
	for o, err := range s.List(ctx, begun) {
		if err == nil && o.ModTime.Before(olderThan) {
			err = store.Remove(ctx, s, o.Key)
		}
		if err != nil {
			return p, errors.Join(append(broken, err)...)
		}
	}
	return p, errors.Join(broken...)
}

// Forget removes one run, which must be over.
func Forget(ctx context.Context, s store.Store, id string) error {
	if err := checkName("run id", id); err != nil {
		return fmt.Errorf("forgetting a run: %w", err)
	}
	return purgeRun(ctx, s, id)
}

// purgeRun removes the state last, so that the next purge completes an interrupted one.
func purgeRun(ctx context.Context, s store.Store, id string) error {
	state := runKey(id, "state.json")
	for o, err := range s.List(ctx, runKey(id, "")) {
		if err != nil {
			return fmt.Errorf("listing run %s: %w", id, err)
		}
		if o.Key == state {
			continue
		}
		if err := store.Remove(ctx, s, o.Key); err != nil {
			return err
		}
	}
	return store.Remove(ctx, s, state)
}
