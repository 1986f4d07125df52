package lane

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/ledger"
)

// deadLetters has the ids of the job's dead letters, so that a success sends a
// removal to the store only if there is a dead letter to remove.
type deadLetters struct {
	sync.Mutex
	read bool
	ids  map[string]bool
}

// DeadLetter writes a dead letter and counts it.
func (w *Worker) DeadLetter(ctx context.Context, d ledger.DeadLetter) error {
	if err := ledger.Put(ctx, w.Store, d); err != nil {
		return fmt.Errorf("writing a dead letter (%s): %w", d.Kind, err)
	}
	var t ledger.Tally
	t.DeadLetter(d.Kind)
	w.mu.Lock()
	w.untaken.Add(t)
	w.count(t)
	w.mu.Unlock()
	w.deadLetters.Lock()
	defer w.deadLetters.Unlock()
	if w.deadLetters.read {
		w.deadLetters.ids[d.ID()] = true
	}
	return nil
}

// NotStored counts a result that our side did not take, so that the run is not called
// done. It reports whether the run stops, so that nothing more is to be recorded.
func (w *Worker) NotStored(err error) bool {
	if w.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return true // the stop has cut it off
	}
	if whose, _ := fault.Of(fault.Store, err); whose != fault.Ours {
		return false
	}
	w.mu.Lock()
	w.untaken.Count(ledger.NotStored, 1)
	w.mu.Unlock()
	if fault.Stops(err) {
		w.Stop(err)
	}
	return w.ctx.Err() != nil
}

// Resolve removes the dead letter of an input after a success.
func (w *Worker) Resolve(ctx context.Context, d ledger.DeadLetter) error {
	w.deadLetters.Lock()
	defer w.deadLetters.Unlock()
	if !w.deadLetters.read {
		ids := map[string]bool{}
		for id, err := range ledger.DeadLetterIDs(ctx, w.Store, w.cfg.Job) {
			if err != nil {
				return fmt.Errorf("listing dead letters: %w", err)
			}
			ids[id] = true
		}
		w.deadLetters.ids, w.deadLetters.read = ids, true
	}
	if len(w.deadLetters.ids) == 0 { // the common case: no id needs to be computed
		return nil
	}
	id := d.ID()
	if !w.deadLetters.ids[id] {
		return nil
	}
	if err := ledger.Remove(ctx, w.Store, d.Job, id); err != nil {
		return err
	}
	delete(w.deadLetters.ids, id)
	return nil
}
