package lease

import (
	"context"
	"errors"
	"time"
)

// Option says what Acquire does when a living process has the lease.
type Option func(*request)

// request has the arguments of Acquire.
type request struct {
	place  Place
	names  []string // one of these
	holder Holder
	ttl    time.Duration
	proc   string
	gone   func(context.Context, Holder) bool
	wait   *WaitPolicy
	seen   map[string]sighting // by the lease's name
}

// sighting is a lease of another process, as it was since a time.
type sighting struct {
	epoch          int64
	expires, since time.Time
}

// silent reports whether a lease was not renewed for its whole time to live while this
// request looked on. Then it has expired, whatever the clock of its holder says.
func (q request) silent(name string, epoch int64, r record) bool {
	now := q.place.now()
	s, ok := q.seen[name]
	if !ok || s.epoch != epoch || !s.expires.Equal(r.ExpiresAt) {
		q.seen[name] = sighting{epoch, r.ExpiresAt, now}
		return false
	}
	return r.TTL > 0 && now.Sub(s.since) > r.TTL
}

// Or names more leases: Acquire acquires the first one that is free.
func Or(names ...string) Option { return func(q *request) { q.names = append(q.names, names...) } }

// EvictIf evicts a holder if gone reports that it is dead. It is for holders whose
// process cannot be seen from here.
func EvictIf(gone func(context.Context, Holder) bool) Option {
	return func(q *request) { q.gone = gone }
}

// Wait makes Acquire wait for the lease. When Proceed ends the wait, Acquire returns
// no lease and no error.
func Wait(w WaitPolicy) Option { return func(q *request) { q.wait = &w } }

// WaitPolicy says how Acquire waits.
type WaitPolicy struct {
	// Proceed reports whether to keep waiting. It may itself wait, while the run is
	// paused. Stopping, when set, is closed when Proceed would return false.
	Proceed  func(context.Context) bool
	Stopping <-chan struct{}
	// OnWait is called once for each holder that Acquire waits for, except when Acquire
	// waits for one of several leases and the holder is of the same run.
	OnWait func(*InUseError)
	// GiveUp ends the wait, with the *InUseError, when the holder renews its lease: then
	// the holder is alive.
	GiveUp bool
}

// maxPoll is the maximum time between two tries to acquire a lease.
const maxPoll = time.Second

func (q request) isGone(ctx context.Context, h Holder) bool { return q.gone != nil && q.gone(ctx, h) }

// acquireFirst acquires the first of the leases that is free. It waits only for one that
// would outlast its time to live, until that shows whether its holder lives.
func (q request) acquireFirst(ctx context.Context) (l *Lease, err error) {
	for {
		looks := false
		for _, name := range q.names {
			before, again := q.seen[name]
			var inUse *InUseError
			if l, err = q.tryAcquire(ctx, name); err == nil || !errors.As(err, &inUse) {
				return l, err
			}
			renewed := again && q.seen[name] != before
			looks = looks || !renewed && inUse.outlasts(q.place.now())
		}
		if !looks {
			return nil, err
		}
		if pause(ctx, min(maxPoll, q.ttl/5)); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (q request) acquireWaiting(ctx context.Context) (*Lease, error) {
	seen := map[string]*InUseError{}
	for {
		if !q.wait.Proceed(ctx) {
			return nil, ctx.Err()
		}
		for _, name := range q.names {
			l, err := q.tryAcquire(ctx, name)
			var inUse *InUseError
			if err == nil || !errors.As(err, &inUse) {
				return l, err
			}
			before := seen[name]
			switch {
			case before == nil || before.Epoch != inUse.Epoch:
				seen[name] = inUse
				own := len(q.names) > 1 && inUse.Holder.RunID == q.holder.RunID
				if !own && (len(q.names) == 1 || before == nil) {
					q.wait.OnWait(inUse)
				}
			case q.wait.GiveUp && inUse.ExpiresAt.After(before.ExpiresAt):
				return nil, err
			}
		}
		t := time.NewTimer(min(maxPoll, q.ttl/5))
		select {
		case <-t.C:
		case <-q.wait.Stopping:
		case <-ctx.Done():
		}
		t.Stop()
	}
}
