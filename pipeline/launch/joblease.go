package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// acquire acquires the job's lease and closes the runs that a killed process left
// as running. A watcher waits while another run is at work.
func (r *run) acquire(ctx context.Context, holder lease.Holder) error {
	for announced := ""; ; {
		err := r.tryAcquire(ctx, holder)
		var taken *lease.InUseError
		if r.o.Watch == 0 || !errors.As(err, &taken) || r.leaseLost() != nil {
			return err
		}
		if who := taken.Holder.String(); who != announced {
			if err := notice(r.o, r.stderr, "standing_by", "waiting: "+err.Error(), "holder", who); err != nil {
				return err
			}
			announced = who
		}
		if _, err := await(ctx, r, time.After(min(r.o.Watch, r.o.LeaseTTL/3))); err != nil {
			return err
		}
	}
}

// tryAcquire acquires the job's lease once, without waiting.
func (r *run) tryAcquire(ctx context.Context, holder lease.Holder) error {
	l, err := lease.Acquire(ctx, lease.InStore(r.store), r.job, holder, r.o.LeaseTTL)
	if err != nil {
		return err
	}
	log := ledger.LogLeaseEvent(r.log(r.id))
	_, free := l.Keep(ctx, func(e lease.Event) {
		log(e)
		if e.Kind == lease.Lost {
			r.loseLease(e.Err)
		}
	})
	release := func() error {
		if err := free(); err != nil { // it expires by itself, and the run ends as it ended
			r.log(r.id).Warn("lease_not_released", "lease", l.Name(), "error", ledger.Redact(err.Error()))
		}
		return nil
	}
	now := time.Now()
	if err := ledger.CloseHolder(ctx, r.store, l.Previous(), now); err != nil {
		return errors.Join(err, release())
	}
	if err := ledger.CloseAbandoned(ctx, r.store, r.job, now); err != nil {
		return errors.Join(err, release())
	}
	r.lease, r.undo = l, append(r.undo, release)
	return nil
}

// leaseLost returns the error that ended the job's lease; nil: the lease is not lost.
func (r *run) leaseLost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// awaitLease waits while it is unknown whether this run still has the job's
// lease, such as when the store does not answer or this process was suspended.
func (r *run) awaitLease(ctx context.Context) error {
	if r.lease == nil {
		return r.leaseLost()
	}
	if err := r.lease.Await(ctx); errors.Is(err, lease.ErrLost) {
		return lostLease(err)
	} else if err != nil {
		return err
	}
	return nil
}

func lostLease(err error) error {
	return fmt.Errorf("this run lost its lease, and another run may be at work: %w", err)
}

// loseLease stops the run that is at work.
func (r *run) loseLease(lost error) {
	lost = lostLease(lost)
	r.mu.Lock()
	r.lost = lost
	id := r.current
	r.mu.Unlock()
	close(r.lostLease)
	if w, ok := lane.Find(id); ok {
		w.Stop(lost)
	}
}
