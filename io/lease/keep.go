package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Event is what happened to a lease under a heartbeat.
type Event struct {
	Lease *Lease
	Kind  EventKind
	Err   error         // why the latest renewal did not succeed
	For   time.Duration // Renewed: how long it was unsure
}

// EventKind is one of Unsure, Renewed, Lost.
type EventKind string

// The kinds of events, as the log names them.
const (
	Unsure  EventKind = "lease_unsure"  // from now on nothing is sent or written
	Renewed EventKind = "lease_renewed" // after it was unsure
	Lost    EventKind = "lease_lost"    // the work must stop at once
)

// releaseWithin is how long releasing a kept lease may take.
const releaseWithin = 10 * time.Second

// Keep renews the lease every third of its time to live until release is called
// or ctx ends. The work is done under within: it ends, with a cause that matches
// ErrLost, when the lease is lost, and Check on it waits while the lease is
// unsure. tell is told of each event, before within ends.
//
// release waits for the heartbeat to end, so tell must not call it; then it
// releases the lease as Release does, within ten seconds and also when ctx has
// ended. After its error the lease expires by itself.
func (l *Lease) Keep(ctx context.Context, tell func(Event)) (within context.Context, release func() error) {
	work, lose := context.WithCancelCause(ctx)
	beating, stop := context.WithCancel(exempt(ctx))
	l.mu.Lock()
	l.kept = true
	l.onLost = func(err error) {
		tell(Event{Lease: l, Kind: Lost, Err: err})
		lose(err)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.beat(beating, tell)
	}()
	return With(work, l), func() error {
		stop()
		<-done
		lose(context.Canceled)
		within, end := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer end()
		return l.Release(within)
	}
}

// beat ends with ctx, or when the lease is lost.
func (l *Lease) beat(ctx context.Context, tell func(Event)) {
	var since time.Time // when it became unsure
	var last error      // why the latest renewal did not succeed
	defer func() {
		l.mu.Lock()
		l.kept = false
		l.wake()
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
		if since.IsZero() && !l.Held() {
			since = l.place.now()
			tell(Event{Lease: l, Kind: Unsure, Err: last})
		}
		within, cancel := context.WithTimeout(ctx, l.untilUnsure())
		err := l.Renew(within)
		cancel()
		held := l.Held()
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrLost):
			return
		case err == nil && held && !since.IsZero():
			tell(Event{Lease: l, Kind: Renewed, For: l.place.now().Sub(since), Err: last})
			since = time.Time{}
		case !since.IsZero() && l.place.now().Sub(since) > l.maxUnsure():
			_ = l.lose(fmt.Errorf("it could not be renewed for %v: %w", l.maxUnsure(), errors.Join(err, last)))
			return
		}
		if last = err; err == nil && held {
			last = nil
		}
	}
}

// nudged tells of work that found the lease unsure before the heartbeat did.
func (l *Lease) nudged(sure bool) <-chan struct{} {
	if !sure {
		return nil
	}
	return l.nudge
}

// untilNext is how long to wait for the next renewal.
func (l *Lease) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held() {
		return min(time.Second, l.ttl/6)
	}
	return min(l.ttl/3, max(l.sure.Sub(l.place.now()), time.Millisecond))
}

// untilUnsure bounds one renewal: it ends when the lease becomes unsure, so that
// this is noticed and reported; one that is made then has a time to live.
func (l *Lease) untilUnsure() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held() {
		return l.ttl
	}
	return max(l.sure.Sub(l.place.now()), time.Millisecond)
}

type (
	underKey  struct{}
	exemptKey struct{}
)

// under is a lease of a context, and those of the contexts around it.
type under struct {
	lease *Lease
	outer *under
}

// With gives a context for work that needs the lease. Keep does so itself. What
// is written under it to the database that has the lease is refused there when
// another process has acquired the lease meanwhile.
func With(ctx context.Context, l *Lease) context.Context {
	outer, _ := ctx.Value(underKey{}).(*under)
	ctx = context.WithValue(ctx, underKey{}, &under{l, outer})
	if p, ok := l.place.(inDB); ok {
		ctx = p.db.WithFence(ctx, func(ctx context.Context, tx *sql.Tx) error { return l.fence(ctx, p, tx) })
	}
	return ctx
}

// fence checks in a transaction that the lease is still ours, and keeps it so
// until the commit. Its error matches ErrLost; the heartbeat then finds the loss
// and ends the work.
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
	case l.nudge <- struct{}{}:
	default:
	}
	return fmt.Errorf("lease %s: %w: %w", l.name, ErrLost, errTakenOver)
}

// exempt gives a context for the work on leases themselves.
func exempt(ctx context.Context) context.Context {
	return context.WithValue(db.WithoutFences(ctx), exemptKey{}, true)
}

// Check is to be called before each request and each write. It returns nil when
// all leases that ctx was made under, and those given, are surely ours; while one
// is unsure it waits. Its error matches ErrLost, or is ctx's.
func Check(ctx context.Context, more ...*Lease) error {
	for {
		if err := each(ctx, more, func(l *Lease) error { return l.Await(ctx) }); err != nil {
			return err
		}
		if Sure(ctx, more...) { // the first may have become unsure while the second was waited for
			return nil
		}
	}
}

// Sure is Check that does not wait.
func Sure(ctx context.Context, more ...*Lease) bool {
	return each(ctx, more, func(l *Lease) error {
		if !l.Held() {
			return ErrLost
		}
		return nil
	}) == nil
}

// Allow is Check and Sure as a database asks for them, see db.DB.
func Allow(more ...*Lease) func(ctx context.Context, wait bool) error {
	return func(ctx context.Context, wait bool) error {
		switch {
		case wait:
			return Check(ctx, more...)
		case Sure(ctx, more...):
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
