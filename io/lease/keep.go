package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Event is a change of a lease that Keep renews.
type Event struct {
	Lease *Lease
	Kind  eventKind
	Err   error         // why the last renewal failed
	For   time.Duration // of Renewed: how long the lease was unsure
}

// eventKind is one of Unsure, Renewed, Lost.
type eventKind string

// The kinds of events, as the log names them.
const (
	Unsure  eventKind = "lease_unsure"  // requests and writes wait from now on
	Renewed eventKind = "lease_renewed" // it is sure again
	Lost    eventKind = "lease_lost"    // the work must stop at once
)

// releaseTimeout is how long releasing a kept lease may take.
const releaseTimeout = 10 * time.Second

// Keep renews the lease each time a third of its time to live has passed, until the
// caller calls release or ctx ends. The caller works under the context within: when
// the lease is lost it ends, with a cause that matches ErrLost, and while the lease is
// unsure Check on it waits. onEvent is called for each event, before within ends.
//
// release waits until the renewals have ended, so onEvent must not call it. Then it
// calls Release, with a timeout of ten seconds and also when ctx has ended. If it
// fails, the lease expires by itself.
func (l *Lease) Keep(ctx context.Context, onEvent func(Event)) (within context.Context, release func() error) {
	work, lose := context.WithCancelCause(ctx)
	beating, stop := context.WithCancel(exempt(ctx))
	l.mu.Lock()
	l.kept = true
	l.onLost = func(err error) {
		onEvent(Event{Lease: l, Kind: Lost, Err: err})
		lose(err)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.beat(beating, onEvent)
	}()
	return With(work, l), func() error {
		stop()
		<-done
		lose(context.Canceled)
		within, end := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer end()
		return l.Release(within)
	}
}

// beat renews the lease until ctx ends or the lease is lost.
func (l *Lease) beat(ctx context.Context, onEvent func(Event)) {
	var since time.Time // when it became unsure
	var last error      // why the last renewal failed
	defer func() {
		l.mu.Lock()
		l.kept = false
		l.wakeWaiters()
		l.mu.Unlock()
	}()
	for {
		next := time.NewTimer(l.untilNext())
		select {
		case <-next.C:
		case <-l.nudged(since.IsZero()):
		case <-ctx.Done():
		}
		next.Stop()
		if ctx.Err() != nil {
			return
		}
		if since.IsZero() && !l.Valid() {
			since = l.place.now()
			onEvent(Event{Lease: l, Kind: Unsure, Err: last})
		}
		within, cancel := context.WithTimeout(ctx, l.untilUnsure())
		err := l.Renew(within)
		cancel()
		valid := l.Valid()
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrLost):
			return
		case err == nil && valid && !since.IsZero():
			onEvent(Event{Lease: l, Kind: Renewed, For: l.place.now().Sub(since), Err: last})
			since = time.Time{}
		case !since.IsZero() && l.place.now().Sub(since) > l.maxUnsure():
			_ = l.lose(fmt.Errorf("it could not be renewed for %v: %w", l.maxUnsure(), errors.Join(err, last)))
			return
		}
		if last = err; err == nil && valid {
			last = nil
		}
	}
}

// nudged gets a value when Await or a fence needs a renewal at once. It is nil while
// the lease is unsure, because then the heartbeat renews often anyway.
func (l *Lease) nudged(sure bool) <-chan struct{} {
	if !sure {
		return nil
	}
	return l.wakeHeartbeat
}

// untilNext is how long to wait for the next renewal.
func (l *Lease) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.valid() {
		return min(time.Second, l.ttl/6)
	}
	return min(l.ttl/3, max(l.validUntil.Sub(l.place.now()), time.Millisecond))
}

// untilUnsure is the timeout of one renewal. A renewal that is too slow ends when the
// lease becomes unsure, so that this is reported. One that begins when the lease is
// unsure may take a whole time to live.
func (l *Lease) untilUnsure() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.valid() {
		return l.ttl
	}
	return max(l.validUntil.Sub(l.place.now()), time.Millisecond)
}

type (
	underKey  struct{}
	exemptKey struct{}
)

// under is a lease of a context, and the leases of the contexts around it.
type under struct {
	lease *Lease
	outer *under
}

// With returns a context for work that needs the lease. Keep calls it. The database
// that has the lease's record refuses writes with that context when another process
// has acquired the lease.
func With(ctx context.Context, l *Lease) context.Context {
	outer, _ := ctx.Value(underKey{}).(*under)
	ctx = context.WithValue(ctx, underKey{}, &under{l, outer})
	if p, ok := l.place.(inDB); ok {
		ctx = p.db.WithFence(ctx, func(ctx context.Context, tx *sql.Tx) error { return l.fence(ctx, p, tx) })
	}
	return ctx
}

// fence checks in a transaction that we still have the lease, and prevents others
// from acquiring it until the commit. Its error matches ErrLost; it also makes the
// heartbeat renew, which then finds the loss and ends the work.
func (l *Lease) fence(ctx context.Context, p inDB, tx *sql.Tx) error {
	l.mu.Lock()
	body := l.body
	l.mu.Unlock()
	ours, err := p.lock(ctx, tx, l.name, body)
	if err != nil {
		return fmt.Errorf("checking lease %s: %w", l.name, err)
	}
	if ours {
		return nil
	}
	select {
	case l.wakeHeartbeat <- struct{}{}:
	default:
	}
	return fmt.Errorf("lease %s: %w: %w", l.name, ErrLost, errTakenOver)
}

// exempt returns a context for requests and writes about the leases themselves, which
// need no lease.
func exempt(ctx context.Context) context.Context {
	return context.WithValue(db.WithoutFences(ctx), exemptKey{}, true)
}

// Check must be called before each request and each write. It returns nil when we
// surely have all leases of ctx (With, Keep) and the given ones. While one is unsure,
// it waits. Its error matches ErrLost, or is ctx's.
func Check(ctx context.Context, more ...*Lease) error {
	for {
		if err := each(ctx, more, func(l *Lease) error { return l.Await(ctx) }); err != nil {
			return err
		}
		if sure(ctx, more...) { // one may have become unsure while Check waited for another
			return nil
		}
	}
}

// sure is like Check but does not wait.
func sure(ctx context.Context, more ...*Lease) bool {
	return each(ctx, more, func(l *Lease) error {
		if !l.Valid() {
			return ErrLost
		}
		return nil
	}) == nil
}

// Allow combines Check and Sure in the form of db.DB.Allow and web.Client.Allow.
func Allow(more ...*Lease) func(ctx context.Context, wait bool) error {
	return func(ctx context.Context, wait bool) error {
		switch {
		case wait:
			return Check(ctx, more...)
		case sure(ctx, more...):
			return nil
		}
		return errUnsure
	}
}

var errUnsure = errors.New("it is not sure that the lease is still ours")

func each(ctx context.Context, more []*Lease, ask func(*Lease) error) error {
	if ctx.Value(exemptKey{}) != nil {
		return nil
	}
	for _, l := range more {
		if err := ask(l); err != nil {
			return err
		}
	}
	for u, _ := ctx.Value(underKey{}).(*under); u != nil; u = u.outer {
		if err := ask(u.lease); err != nil {
			return err
		}
	}
	return nil
}
