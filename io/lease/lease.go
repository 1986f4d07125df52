// Package lease gives the right to do one piece of work to one process at a
// time, across processes and machines. There is one protocol with two places for
// the records of leases: a store (InStore) and a database (InDB).
//
// Each acquisition of a lease creates its next epoch, also when a process takes over
// a lease that has expired or whose holder is dead. Of several processes that try to
// create the same epoch, only one succeeds. The holder renews its epoch each time a
// third of the time to live has passed (Keep). When five sixths have passed without
// a renewal, the holder is unsure whether it still has the lease. Then it must not
// send or write anything (Await, Check). It resumes when it has created the next epoch
// itself, because then no other process had the lease in between. The lease is lost
// when another process has acquired it, or when the place of the leases does not
// answer for ten times the time to live.
//
// Transactions on the database that has a lease's record are fenced: each one checks
// the lease's token before it commits (With). A store cannot tell who writes an
// object, so there only Check prevents a late write. No promise: see docs/library.md.
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

// ErrLost means that we no longer have a lease: another process took it over, or it
// could not be renewed for too long. The work under it must stop at once.
var ErrLost = errors.New("lease lost")

// InUseError means that a living process has the lease: wait, or cancel its run.
type InUseError struct {
	Name       string
	Holder     Holder
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Epoch      int64
	TTL        time.Duration // 0: not known
}

func (e *InUseError) Error() string {
	todo := "wait until it ends"
	if e.Holder.RunID != "" {
		todo += ", or stop it with `runs cancel " + e.Holder.RunID + "`"
	}
	todo += "; if its process was killed, try again when the lease has expired"
	return fmt.Sprintf("lease %s is held by %s since %s until %s: %s", e.Name, e.Holder,
		e.AcquiredAt.UTC().Format(time.RFC3339), e.ExpiresAt.UTC().Format(time.RFC3339), todo)
}

// outlasts reports whether the lease lasts for longer than its time to live: the clock of
// its holder is ahead of this one.
func (e *InUseError) outlasts(now time.Time) bool {
	return e.TTL > 0 && e.ExpiresAt.Sub(now) > e.TTL+e.TTL/6
}

// record is the stored state of a lease's newest epoch.
type record struct {
	Holder     Holder    `json:"holder"`
	Token      string    `json:"token"` // identifies the acquisition
	AcquiredAt time.Time `json:"acquired_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	Released   bool      `json:"released"`
	// TTL is how long the lease lasts without a renewal; 0 in records of earlier versions.
	TTL time.Duration `json:"ttl_ns,omitempty"`
}

// alive reports whether the holder still has the lease.
func (r record) alive(now time.Time, self Holder, proc string) bool {
	return !r.Released && now.Before(r.ExpiresAt) && !r.Holder.dead(self, proc)
}

// Place is where leases are kept.
type Place interface {
	// newest returns the newest epoch and its record; epoch 0 when the lease is new.
	newest(ctx context.Context, name string) (epoch int64, r record, err error)
	// acquire creates the epoch after the given one, with the record r. acquired is
	// false when that epoch exists by now, or when before, the record of the given
	// epoch, was renewed meanwhile.
	acquire(ctx context.Context, name string, epoch int64, before, r record) (acquired bool, err error)
	// renew replaces our own record of an epoch. ours is false when the record is of
	// another process, was released, or has a newer epoch after it.
	renew(ctx context.Context, name string, epoch int64, r record) (ours bool, err error)
	now() time.Time
}

// Lease is the right to do one piece of work until it is released or lost. Its
// methods may be called from several goroutines.
type Lease struct {
	place Place
	name  string
	ttl   time.Duration

	previous Holder     // the last holder before us
	tookOver bool       // which did not release it
	renewing sync.Mutex // one Renew or Release at a time

	mu            sync.Mutex
	epoch         int64
	body          record
	validUntil    time.Time // by both clocks, see valid
	lost          error
	kept          bool          // a heartbeat (Keep) renews it
	changed       chan struct{} // closed and replaced at each renewal and when it is lost
	wakeHeartbeat chan struct{} // makes the heartbeat renew at once
	onLost        func(error)   // set by Keep
	ended         chan struct{} // closed when it is lost and onLost has returned
}

// Acquire acquires the lease name for ttl. It acquires at once a lease that is
// released or expired, or whose holder died on this machine. When a living process
// has the lease, the error is an *InUseError, unless an option says to wait or to
// evict.
//
// Expiry compares the clocks of two machines, so ttl must be much longer than the
// difference between them (seconds, where clocks are synchronised). Where the clock of the
// holder is so far ahead that its lease would outlast its time to live, Acquire looks on for
// that time, and acquires a lease that was not renewed meanwhile.
func Acquire(ctx context.Context, p Place, name string, holder Holder, ttl time.Duration, options ...Option) (*Lease, error) {
	r := request{place: p, names: []string{name}, holder: holder, ttl: ttl, proc: "/proc", seen: map[string]sighting{}}
	for _, o := range options {
		o(&r)
	}
	if r.wait != nil {
		return r.acquireWaiting(ctx)
	}
	return r.acquireFirst(ctx)
}

// maxTries is how often tryAcquire reads the lease again after another process was
// faster. Each further try needs another take-over within milliseconds.
const maxTries = 16

// tryAcquire acquires a lease, or returns an *InUseError.
func (q request) tryAcquire(ctx context.Context, name string) (*Lease, error) {
	p, ttl := q.place, q.ttl
	if name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
		return nil, fmt.Errorf("acquiring a lease: %q is not a lease name", name)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("acquiring lease %s: its time to live is %v, want more than 0", name, ttl)
	}
	self := holderAt(q.proc)
	l := &Lease{place: p, name: name, ttl: ttl, body: record{Holder: q.holder, Token: rand.Text(), TTL: ttl}, changed: make(chan struct{}), wakeHeartbeat: make(chan struct{}, 1), ended: make(chan struct{})}
	first := true
	for range maxTries {
		epoch, newest, err := p.newest(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("acquiring lease %s: %w", name, err)
		}
		if epoch > 0 && newest.Token != l.body.Token {
			if newest.alive(p.now(), self, q.proc) && !q.isGone(ctx, newest.Holder) && !q.silent(name, epoch, newest) {
				return nil, &InUseError{Name: name, Holder: newest.Holder, AcquiredAt: newest.AcquiredAt, ExpiresAt: newest.ExpiresAt, Epoch: epoch, TTL: newest.TTL}
			}
			l.previous, l.tookOver = newest.Holder, !newest.Released
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
		l.epoch, l.validUntil = epoch+1, now.Add(l.margin())
		if l.Valid() { // a late answer means that another process may have taken it over: try again
			return l, nil
		}
	}
	return nil, fmt.Errorf("acquiring lease %s: %d times another process was faster, or the answer took longer than its time to live of %v; try again", name, maxTries, ttl)
}

// margin is how long after a renewal we are sure that we have the lease. It is shorter
// than the time to live, because clocks differ and a request in flight needs time to
// stop.
func (l *Lease) margin() time.Duration { return l.ttl - l.ttl/6 }

// maxUnsure is how long an unsure holder tries to renew the lease before it counts as
// lost.
func (l *Lease) maxUnsure() time.Duration { return 10 * l.ttl }

// Previous is the last holder before us; empty when the lease is new.
func (l *Lease) Previous() Holder { return l.previous }

// TookOver reports whether that holder did not release it: its process died, or lost the lease.
func (l *Lease) TookOver() bool { return l.tookOver }

// Name is the lease's name.
func (l *Lease) Name() string { return l.name }

// Epoch is the number of this acquisition: higher than that of every earlier one.
func (l *Lease) Epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// Valid reports whether we surely have the lease now. It is cheap: it only compares
// times. It becomes false when the lease was not renewed in time, also because the
// process or the machine was suspended.
func (l *Lease) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid()
}

// valid compares both clocks: the monotonic clock, which changes of the wall clock
// do not affect, and the wall clock, which continues while a machine is suspended.
func (l *Lease) valid() bool {
	now := l.place.now()
	return l.lost == nil && now.Before(l.validUntil) && now.Round(0).Before(l.validUntil.Round(0))
}

// Lost reports whether the lease is lost for good, or released.
func (l *Lease) Lost() bool { return l.loss() != nil }

func (l *Lease) loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// lose ends the lease for good. Await returns only after onLost has ended the work,
// because otherwise failures of the work would look like its own.
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

// wakeWaiters wakes the callers that wait in Await. The caller holds mu.
func (l *Lease) wakeWaiters() {
	close(l.changed)
	l.changed = make(chan struct{})
}

var (
	errTakenOver = errors.New("another process took it over")
	errReleased  = errors.New("it was released")
)

// Renew extends the lease to its time to live from now. The error matches ErrLost
// when the lease is lost for good; after any other error the caller may try again.
func (l *Lease) Renew(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	if err := l.loss(); err != nil {
		return err
	}
	ctx = exempt(ctx)
	l.mu.Lock()
	body, epoch, sure, valid := l.body, l.epoch, l.validUntil, l.valid()
	l.mu.Unlock()
	now := l.place.now()
	body.ExpiresAt = now.Add(l.ttl).UTC()
	if !valid {
		return l.reclaim(ctx, body)
	}
	ours, err := l.place.renew(ctx, l.name, epoch, body)
	if err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	if !ours {
		return l.lose(errTakenOver)
	}
	// If the write arrived after the old expiry, another process may have read the old
	// record and may be taking over now.
	if after := l.place.now(); !after.Before(sure) || !after.Round(0).Before(sure.Round(0)) {
		return l.reclaim(ctx, body)
	}
	l.setRenewed(epoch, body, now)
	return nil
}

// reclaim creates the next epoch of our own lease, after it was not renewed in time.
// If that succeeds, no other process had the lease.
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
		return fmt.Errorf("renewing lease %s: it changed meanwhile", l.name) // the next try sees who changed it
	}
	l.setRenewed(epoch+1, body, now)
	return nil
}

func (l *Lease) setRenewed(epoch int64, body record, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.body, l.validUntil = epoch, body, at.Add(l.margin())
	l.wakeWaiters()
}

// Await returns nil when we surely have the lease. While that is not known, it
// waits. Its error matches ErrLost, or is ctx's.
func (l *Lease) Await(ctx context.Context) error {
	var unsure time.Time // since when, if we renew the lease here
	for {
		l.mu.Lock()
		valid, lost, kept, changed := l.valid(), l.lost, l.kept, l.changed
		l.mu.Unlock()
		switch {
		case lost != nil:
			<-l.ended
			return lost
		case valid:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if kept {
			select {
			case l.wakeHeartbeat <- struct{}{}:
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

// Release releases the lease, so that the next process need not wait for it to
// expire. Releasing a lost lease does not affect its new holder.
func (l *Lease) Release(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	l.mu.Lock()
	body, epoch, lost := l.body, l.epoch, l.lost
	l.mu.Unlock()
	_ = l.lose(errReleased) // its error matters only to a lease that was already lost
	if errors.Is(lost, errReleased) || errors.Is(lost, errTakenOver) {
		return nil
	}
	body.Released = true
	if _, err := l.place.renew(exempt(ctx), l.name, epoch, body); err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.name, err)
	}
	return nil
}
