package lease

import (
	"context"
	"errors"
	"time"
)

// Waiter acquires leases that others may hold for now.
type Waiter struct {
	Place  Place
	Holder Holder
	TTL    time.Duration
	// Proceed says whether to go on waiting, and may itself wait; Stopping, when
	// set, is closed once it will not.
	Proceed  func(context.Context) bool
	Stopping <-chan struct{}
	// Dead, when set, knows of holders that are surely gone although their
	// process cannot be looked at.
	Dead func(context.Context, Holder) bool
	// Waits is told once of each holder that is waited for, but not where a run
	// waits for one of several leases that it shares out among its own.
	Waits func(*HeldError)
}

// look is how often a lease that another process holds is looked at again.
const look = time.Second

// Wait acquires one of the leases that names list: the first that is free. The
// lease is nil when Proceed ended the wait. With giveUp a holder that is seen to
// live, because it renews its lease, is not waited for: then the error is its
// *HeldError.
func (w Waiter) Wait(ctx context.Context, giveUp bool, names ...string) (*Lease, error) {
	seen := map[string]*HeldError{}
	for {
		if !w.Proceed(ctx) {
			return nil, ctx.Err()
		}
		for _, name := range names {
			l, err := w.acquire(ctx, name)
			var held *HeldError
			if err == nil || !errors.As(err, &held) {
				return l, err
			}
			before := seen[name]
			switch {
			case before == nil || before.Epoch != held.Epoch:
				seen[name] = held
				own := len(names) > 1 && held.Holder.RunID == w.Holder.RunID
				if !own && (len(names) == 1 || before == nil) {
					w.Waits(held)
				}
			case giveUp && held.ExpiresAt.After(before.ExpiresAt):
				return nil, err
			}
		}
		t := time.NewTimer(min(look, w.TTL/5))
		select {
		case <-t.C:
		case <-w.Stopping:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func (w Waiter) acquire(ctx context.Context, name string) (*Lease, error) {
	l, err := Acquire(ctx, w.Place, name, w.Holder, w.TTL)
	var held *HeldError
	if w.Dead != nil && errors.As(err, &held) && w.Dead(ctx, held.Holder) {
		return Evict(ctx, w.Place, held, w.Holder, w.TTL)
	}
	return l, err
}
