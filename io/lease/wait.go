package lease

import (
	"context"
	"errors"
	"time"
)

// Option says what Acquire does when a living process has the lease.
type Option func(*request)

// request is what Acquire is called for.
type request struct {
	place  Place
	names  []string // one of these
	holder Holder
	ttl    time.Duration
	proc   string
	gone   func(context.Context, Holder) bool
	wait   *Waiting
}

// Or names further leases: Acquire acquires the first that is free.
func Or(names ...string) Option { return func(q *request) { q.names = append(q.names, names...) } }

// EvictIf evicts a holder that gone knows to be dead although its process cannot
// be looked at.
func EvictIf(gone func(context.Context, Holder) bool) Option {
	return func(q *request) { q.gone = gone }
}

// Wait makes Acquire wait for the lease; it returns nil, and no error, when
// Proceed ended the wait.
func Wait(w Waiting) Option { return func(q *request) { q.wait = &w } }

// Waiting is how Acquire waits.
type Waiting struct {
	// Proceed says whether to wait on, and may itself wait; Stopping, when set, is
	// closed once it will not.
	Proceed  func(context.Context) bool
	Stopping <-chan struct{}
	// Waits is told once of each holder that is waited for, but not where a run
	// waits for one of several leases that it shares out among its own.
	Waits func(*HeldError)
	// GiveUp ends the wait for a holder that is seen to live, because it renews its
	// lease: then the error is its *HeldError.
	GiveUp bool
}

// maxLook is how often a lease that another process has is looked at again.
const maxLook = time.Second

func (q request) isGone(ctx context.Context, h Holder) bool { return q.gone != nil && q.gone(ctx, h) }

// first acquires the first of the leases that is free.
func (q request) first(ctx context.Context) (l *Lease, err error) {
	for _, name := range q.names {
		var held *HeldError
		if l, err = q.once(ctx, name); err == nil || !errors.As(err, &held) {
			return l, err
		}
	}
	return nil, err
}

func (q request) await(ctx context.Context) (*Lease, error) {
	seen := map[string]*HeldError{}
	for {
		if !q.wait.Proceed(ctx) {
			return nil, ctx.Err()
		}
		for _, name := range q.names {
			l, err := q.once(ctx, name)
			var held *HeldError
			if err == nil || !errors.As(err, &held) {
				return l, err
			}
			before := seen[name]
			switch {
			case before == nil || before.Epoch != held.Epoch:
				seen[name] = held
				own := len(q.names) > 1 && held.Holder.RunID == q.holder.RunID
				if !own && (len(q.names) == 1 || before == nil) {
					q.wait.Waits(held)
				}
			case q.wait.GiveUp && held.ExpiresAt.After(before.ExpiresAt):
				return nil, err
			}
		}
		t := time.NewTimer(min(maxLook, q.ttl/5))
		select {
		case <-t.C:
		case <-q.wait.Stopping:
		case <-ctx.Done():
		}
		t.Stop()
	}
}
