// Package lease gives the right to do one piece of work to one process at a
// time, over processes and machines. There is one protocol; a lease is kept in
// a store (InStore) or in a database (InDB).
//
// A holding has an epoch. Acquiring, and taking over what expired or whose
// holder is dead, creates the next epoch, which only one of several racing
// processes can do. A holder renews its epoch every third of the time to live
// (Keep). From five sixths of it on without a renewal it is unsure whether the
// lease is still its own: it must send and write nothing then (Await, Check).
// It resumes when it could create the next epoch itself, for then nobody else
// had the lease in between. When another process had it, or the place of the
// leases does not answer for ten times the time to live, the lease is lost.
//
// What is written to a database under a lease that it has is fenced: each
// transaction checks the lease's token before it commits (With). A store cannot
// tell who writes an object, so there only Check keeps a late write back.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ErrLost means that a lease is no longer ours: another process took it over,
// or it could not be renewed for long. The work under it must stop at once.
var ErrLost = errors.New("lease lost")

// HeldError means that a living process has the lease: wait, or cancel its run.
type HeldError struct {
	Name       string
	Holder     Holder
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Epoch      int64
}

func (e *HeldError) Error() string {
	todo := "wait until it ends"
	if e.Holder.RunID != "" {
		todo += ", or stop it with `runs cancel " + e.Holder.RunID + "`"
	}
	return fmt.Sprintf("lease %s is held by %s since %s until %s: %s", e.Name, e.Holder,
		e.AcquiredAt.UTC().Format(time.RFC3339), e.ExpiresAt.UTC().Format(time.RFC3339), todo)
}

// record is what is kept of the newest holding of a lease.
type record struct {
	Holder     Holder    `json:"holder"`
	Token      string    `json:"token"` // tells our own write from another's
	AcquiredAt time.Time `json:"acquired_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	Released   bool      `json:"released"`
}

// alive reports whether the lease may still be worked under.
func (r record) alive(now time.Time, self Holder, proc string) bool {
	return !r.Released && now.Before(r.ExpiresAt) && !r.Holder.dead(self, proc)
}

// Place is where leases are kept.
type Place interface {
	// newest gives the newest holding; epoch 0 when the lease is new.
	newest(ctx context.Context, name string) (epoch int64, r record, err error)
	// acquire creates the epoch after before as r, unless there is another one by
	// now, or before has been renewed: then acquired is false.
	acquire(ctx context.Context, name string, epoch int64, before, r record) (acquired bool, err error)
	// renew replaces our own record of an epoch; ours is false when it is
	// somebody else's, or was released or overtaken.
	renew(ctx context.Context, name string, epoch int64, r record) (ours bool, err error)
	now() time.Time
}

// Lease is the right to do one piece of work until it is released or lost. Its
// methods may be called from several goroutines.
type Lease struct {
	place Place
	name  string
	ttl   time.Duration

	earlier  Holder     // who had it last
	renewing sync.Mutex // one Renew or Release at a time

	mu      sync.Mutex
	epoch   int64
	body    record
	sure    time.Time // until when it is surely ours, by both clocks
	lost    error
	kept    bool          // a heartbeat renews it
	changed chan struct{} // closed and replaced at each renewal and when it is lost
	nudge   chan struct{} // to the heartbeat: it is unsure
	onLost  func(error)   // set by Keep
	ended   chan struct{} // closed when it is lost and onLost is through
}

// Acquire acquires the lease name for ttl. A lease that is released, expired, or
// whose holder died on this machine is acquired at once. When a living process
// has it the error is a *HeldError, unless an option says to wait or to evict.
//
// Expiry compares the clocks of two hosts, so ttl must be well over the skew
// between them (seconds, where clocks are synchronised).
func Acquire(ctx context.Context, p Place, name string, holder Holder, ttl time.Duration, options ...Option) (*Lease, error) {
	r := request{place: p, names: []string{name}, holder: holder, ttl: ttl, proc: "/proc"}
	for _, o := range options {
		o(&r)
	}
	if r.wait != nil {
		return r.await(ctx)
	}
	return r.first(ctx)
}

// tries bounds how often once looks again after another process moved first.
// Each further look needs yet another take-over within milliseconds.
const tries = 16

// once acquires one of the leases, or says who has it.
func (q request) once(ctx context.Context, name string) (*Lease, error) {
	p, ttl := q.place, q.ttl
	if name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
		return nil, fmt.Errorf("acquiring a lease: %q is not a lease name", name)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("acquiring lease %s: its time to live is %v, want more than 0", name, ttl)
	}
	self := holderAt(q.proc)
	l := &Lease{place: p, name: name, ttl: ttl, body: record{Holder: q.holder, Token: rand.Text()}, changed: make(chan struct{}), nudge: make(chan struct{}, 1), ended: make(chan struct{})}
	first := true
	for range tries {
		epoch, newest, err := p.newest(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("acquiring lease %s: %w", name, err)
		}
		if epoch > 0 && newest.Token != l.body.Token {
			if newest.alive(p.now(), self, q.proc) && !q.isGone(ctx, newest.Holder) {
				return nil, &HeldError{Name: name, Holder: newest.Holder, AcquiredAt: newest.AcquiredAt, ExpiresAt: newest.ExpiresAt, Epoch: epoch}
			}
			l.earlier = newest.Holder
		}
		now := p.now()
		body := l.body
		if first {
			body.AcquiredAt, first = now.UTC(), false
		}
		body.ExpiresAt = now.Add(ttl).UTC()
		l.body = body
		acquired, err := p.acquire(ctx, name, epoch, newest, body)
		if err != nil {
			return nil, fmt.Errorf("acquiring lease %s: %w", name, err)
		}
		if !acquired {
			continue
		}
		l.epoch, l.sure = epoch+1, now.Add(l.margin())
		if l.Held() { // else the answer came late, and another process may be at it: see once more
			return l, nil
		}
	}
	return nil, fmt.Errorf("acquiring lease %s: %d times another process was faster, or the answer took longer than its time to live of %v; try again", name, tries, ttl)
}

// margin is how long after a renewal we are sure of the lease: somewhat shorter
// than its time to live, for clocks differ and a request under way needs time
// to stop.
func (l *Lease) margin() time.Duration { return l.ttl - l.ttl/6 }

// maxUnsure is how long an unsure holder waits for the place of the leases to
// answer before it gives the lease up.
func (l *Lease) maxUnsure() time.Duration { return 10 * l.ttl }

// Before is who had the lease last; empty when it is new.
func (l *Lease) Before() Holder { return l.earlier }

// Name is the lease's name.
func (l *Lease) Name() string { return l.name }

// Epoch is the number of this holding: higher than that of every earlier one.
func (l *Lease) Epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// Held reports whether the lease is surely ours now. It is cheap, and time
// alone makes it false: when it was not renewed, also because the process or
// the machine was suspended.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held()
}

// held compares by the monotonic clock, which a step of the wall clock leaves
// alone, and by the wall clock, which continues while a machine is suspended.
func (l *Lease) held() bool {
	now := l.place.now()
	return l.lost == nil && now.Before(l.sure) && now.Round(0).Before(l.sure.Round(0))
}

// Lost reports whether the lease is lost for good, or released.
func (l *Lease) Lost() bool { return l.loss() != nil }

func (l *Lease) loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// lose ends the lease for good. Await reports it to nobody before the work under it
// was ended: else its failures would look like the work's own.
func (l *Lease) lose(why error) error {
	l.mu.Lock()
	if l.lost != nil {
		defer l.mu.Unlock()
		return l.lost
	}
	err := fmt.Errorf("lease %s: %w: %w", l.name, ErrLost, why)
	l.lost = err
	onLost := l.onLost
	l.mu.Unlock()
	if onLost != nil && !errors.Is(why, errReleased) {
		onLost(err)
	}
	close(l.ended)
	return err
}

// wake tells those who wait in Await; mu is held.
func (l *Lease) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

var (
	errTakenOver = errors.New("another process took it over")
	errReleased  = errors.New("it was released")
)

// Renew makes the lease last its time to live from now on. The error matches
// ErrLost when it is lost for good; after any other it may be tried again.
func (l *Lease) Renew(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	if err := l.loss(); err != nil {
		return err
	}
	ctx = exempt(ctx)
	l.mu.Lock()
	body, epoch, sure, held := l.body, l.epoch, l.sure, l.held()
	l.mu.Unlock()
	now := l.place.now()
	body.ExpiresAt = now.Add(l.ttl).UTC()
	if !held {
		return l.reclaim(ctx, body)
	}
	ours, err := l.place.renew(ctx, l.name, epoch, body)
	if err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	if !ours {
		return l.lose(errTakenOver)
	}
	// Had the write come in after the old expiry, another process might have
	// read the old record and be taking over now.
	if after := l.place.now(); !after.Before(sure) || !after.Round(0).Before(sure.Round(0)) {
		return l.reclaim(ctx, body)
	}
	l.renewed(epoch, body, now)
	return nil
}

// reclaim takes over our own lease after it was not renewed in time: when that
// works nobody else had it.
func (l *Lease) reclaim(ctx context.Context, body record) error {
	epoch, newest, err := l.place.newest(ctx, l.name)
	switch {
	case err != nil:
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	case epoch == 0 || newest.Token != body.Token || newest.Released:
		return l.lose(errTakenOver)
	}
	now := l.place.now()
	body.ExpiresAt = now.Add(l.ttl).UTC()
	acquired, err := l.place.acquire(ctx, l.name, epoch, newest, body)
	if err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	if !acquired {
		return fmt.Errorf("renewing lease %s: it changed meanwhile", l.name) // the next try sees by whom
	}
	l.renewed(epoch+1, body, now)
	return nil
}

func (l *Lease) renewed(epoch int64, body record, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.body, l.sure = epoch, body, at.Add(l.margin())
	l.wake()
}

// Await returns nil when the lease is surely ours. While that is not known it
// waits. Its error matches ErrLost, or is ctx's.
func (l *Lease) Await(ctx context.Context) error {
	var unsure time.Time // since when, by our own renewals
	for {
		l.mu.Lock()
		held, lost, kept, changed := l.held(), l.lost, l.kept, l.changed
		l.mu.Unlock()
		switch {
		case lost != nil:
			<-l.ended
			return lost
		case held:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if kept {
			select {
			case l.nudge <- struct{}{}:
			default:
			}
			select {
			case <-changed:
			case <-l.ended:
			case <-ctx.Done():
			}
			continue
		}
		if unsure.IsZero() {
			unsure = l.place.now()
		}
		within, cancel := context.WithTimeout(ctx, l.ttl)
		err := l.Renew(within)
		cancel()
		switch {
		case err == nil || errors.Is(err, ErrLost):
		case l.place.now().Sub(unsure) > l.maxUnsure():
			return l.lose(fmt.Errorf("it could not be renewed for %v: %w", l.maxUnsure(), err))
		default:
			pause(ctx, l.ttl/6)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Release releases the lease, so that the next process need not wait for it
// to expire. Releasing a lost lease does nothing to its new holder.
func (l *Lease) Release(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	l.mu.Lock()
	body, epoch, lost := l.body, l.epoch, l.lost
	l.mu.Unlock()
	_ = l.lose(errReleased) // it says how a lease that was lost before was lost
	if errors.Is(lost, errReleased) || errors.Is(lost, errTakenOver) {
		return nil
	}
	body.Released = true
	if _, err := l.place.renew(exempt(ctx), l.name, epoch, body); err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.name, err)
	}
	return nil
}
