package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// ErrLost means that a lease is no longer ours: another process took it over,
// or it could not be renewed in time. The work under it must stop at once.
var ErrLost = errors.New("lease lost")

// HeldError means that a living process has the lease: wait, or cancel its run.
type HeldError struct {
	Name       string
	Holder     Holder
	AcquiredAt time.Time
	ExpiresAt  time.Time
}

func (e *HeldError) Error() string {
	todo := "wait until it ends"
	if e.Holder.RunID != "" {
		todo += ", or stop it with `runs cancel " + e.Holder.RunID + "`"
	}
	return fmt.Sprintf("lease %s is held by %s since %s until %s: %s", e.Name, e.Holder,
		e.AcquiredAt.UTC().Format(time.RFC3339), e.ExpiresAt.UTC().Format(time.RFC3339), todo)
}

// leaseBody is the object lease/{name}/{epoch}.
type leaseBody struct {
	Holder     Holder    `json:"holder"`
	Token      string    `json:"token"` // tells our own write from another's when the store's answer got lost
	AcquiredAt time.Time `json:"acquired_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	Released   bool      `json:"released"`
}

func decodeLease(b []byte) (leaseBody, error) {
	var l leaseBody
	if err := parse("lease", b, &l); err != nil {
		return leaseBody{}, err
	}
	if l.ExpiresAt.IsZero() && !l.Released {
		return leaseBody{}, errors.New("not a lease: it has no expires_at")
	}
	return l, nil
}

// Lease is the right to do one piece of work until it expires, is released, or
// is lost. Its methods may be called from several goroutines.
type Lease struct {
	store store.Store
	name  string
	epoch int
	ttl   time.Duration

	before   Holder     // who had it last
	renewing sync.Mutex // one Renew or Release at a time

	mu   sync.Mutex
	body leaseBody
	lost bool
}

func leasePrefix(name string) string { return "lease/" + name + "/" }

func leaseKey(name string, epoch int) string { return fmt.Sprintf("%s%06d", leasePrefix(name), epoch) }

// Acquire takes the lease name for ttl. When a living process has it the error
// is a *HeldError. A lease that is released, expired, or whose holder died on
// this machine is taken over at once: by creating the next epoch, which only
// one of several racing processes can do.
//
// Expiry compares the clocks of two hosts, so ttl must be well over the skew
// between them (seconds, where clocks are synchronised).
func Acquire(ctx context.Context, s store.Store, name string, holder Holder, ttl time.Duration) (*Lease, error) {
	return acquire(ctx, s, name, holder, ttl, "/proc")
}

// tries bounds how often Acquire looks again after another process moved first.
// Each further look needs yet another take-over within milliseconds.
const tries = 16

func acquire(ctx context.Context, s store.Store, name string, holder Holder, ttl time.Duration, proc string) (*Lease, error) {
	if name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
		return nil, fmt.Errorf("acquiring a lease: %q is not a lease name", name)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("acquiring lease %s: its time to live is %v, want more than 0", name, ttl)
	}
	self := holderAt(proc)
	token := rand.Text()
	for range tries {
		epochs, err := leaseEpochs(ctx, s, name)
		if err != nil {
			return nil, fmt.Errorf("acquiring lease %s: %w", name, err)
		}
		newest := 0
		var before Holder
		if len(epochs) > 0 {
			newest = epochs[len(epochs)-1]
			body, err := load(ctx, s, leaseKey(name, newest), decodeLease)
			switch {
			case errors.Is(err, store.ErrNotExist):
				continue // a newer epoch replaced it since the listing
			case err != nil:
				return nil, fmt.Errorf("acquiring lease %s: %w (delete that object if no run is going)", name, err)
			case body.alive(self, proc):
				return nil, &HeldError{Name: name, Holder: body.Holder, AcquiredAt: body.AcquiredAt, ExpiresAt: body.ExpiresAt}
			}
			before = body.Holder
		}
		l, err := takeOver(ctx, s, name, newest+1, holder, token, ttl)
		if err != nil {
			return nil, fmt.Errorf("acquiring lease %s: %w", name, err)
		}
		if l != nil {
			l.before = before
			return l, nil
		}
	}
	return nil, fmt.Errorf("acquiring lease %s: %d other processes took it meanwhile; try again", name, tries)
}

// takeOver creates one epoch. It returns nil without an error when another
// process was first.
func takeOver(ctx context.Context, s store.Store, name string, epoch int, holder Holder, token string, ttl time.Duration) (*Lease, error) {
	now := time.Now().UTC()
	l := &Lease{store: s, name: name, epoch: epoch, ttl: ttl, body: leaseBody{
		Holder: holder, Token: token, AcquiredAt: now, ExpiresAt: now.Add(ttl),
	}}
	err := create(ctx, s, l.key(), l.body)
	if errors.Is(err, store.ErrExist) {
		// A repeated request may have met what its first try wrote.
		there, err := load(ctx, s, l.key(), decodeLease)
		if errors.Is(err, store.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if there.Token != token {
			return nil, nil
		}
		l.body = there
	} else if err != nil {
		return nil, err
	}

	// Between listing and creating, this epoch may have been used, overtaken
	// and cleared away. The newest epoch is never cleared, so it shows.
	epochs, err := leaseEpochs(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if len(epochs) == 0 || epochs[len(epochs)-1] < epoch {
		return nil, nil // someone deleted it by hand: begin again
	}
	if epochs[len(epochs)-1] > epoch {
		return nil, remove(ctx, s, l.key())
	}
	for _, old := range epochs[:len(epochs)-1] {
		if err := remove(ctx, s, leaseKey(name, old)); err != nil {
			return nil, err
		}
	}
	if l.Lost() {
		return nil, fmt.Errorf("%w: the store took longer than its time to live of %v", ErrLost, ttl)
	}
	return l, nil
}

// HolderUnder gives the holder of a lease that is alive and whose name lies
// under prefix; held is false when there is none.
func HolderUnder(ctx context.Context, s store.Store, prefix string) (holder Holder, held bool, err error) {
	newest := map[string]string{} // key by name: keys come in the order of their epochs
	for o, err := range s.List(ctx, leasePrefix(prefix)) {
		if err != nil {
			return Holder{}, false, fmt.Errorf("listing %s: %w", leasePrefix(prefix), err)
		}
		newest[path.Dir(o.Key)] = o.Key
	}
	self := holderAt("/proc")
	for _, key := range newest {
		body, err := load(ctx, s, key, decodeLease)
		switch {
		case errors.Is(err, store.ErrNotExist):
			continue // taken over since the listing, by a run that is under way
		case err != nil:
			return Holder{}, false, fmt.Errorf("reading a lease: %w (delete that object if no run is going)", err)
		case body.alive(self, "/proc"):
			return body.Holder, true, nil
		}
	}
	return Holder{}, false, nil
}

// alive reports whether the lease may still be worked under.
func (l leaseBody) alive(self Holder, proc string) bool {
	return !l.Released && time.Now().Before(l.ExpiresAt) && !l.Holder.dead(self, proc)
}

// leaseEpochs lists the epochs of one lease, oldest first.
func leaseEpochs(ctx context.Context, s store.Store, name string) ([]int, error) {
	prefix := leasePrefix(name)
	var epochs []int
	err := store.Retry(ctx, func() error {
		epochs = epochs[:0]
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				return fmt.Errorf("listing %s: %w", prefix, err)
			}
			// Leases may be nested by name; theirs have more segments.
			if n, err := strconv.Atoi(strings.TrimPrefix(o.Key, prefix)); err == nil && n > 0 && o.Key == leaseKey(name, n) {
				epochs = append(epochs, n)
			}
		}
		return nil
	})
	slices.Sort(epochs)
	return epochs, err
}

func (l *Lease) key() string { return leaseKey(l.name, l.epoch) }

// deadline is when we stop believing in the lease: somewhat before others may
// take it, for clocks differ and a request under way needs time to stop.
func (l *Lease) deadline() time.Time {
	return l.body.ExpiresAt.Add(-l.ttl / 6)
}

// Before is who had the lease last; empty when it is new.
func (l *Lease) Before() Holder { return l.before }

// Epoch is the number of this holding: higher than that of every earlier one.
func (l *Lease) Epoch() int { return l.epoch }

// Lost reports whether the lease is no longer ours. It is cheap and needs no
// heartbeat to turn true: time alone does it.
func (l *Lease) Lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost || !time.Now().Before(l.deadline())
}

func (l *Lease) snapshot() (body leaseBody, deadline time.Time, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.body, l.deadline(), l.lost || !time.Now().Before(l.deadline())
}

func (l *Lease) lose(why string) error {
	l.mu.Lock()
	l.lost = true
	l.mu.Unlock()
	return fmt.Errorf("renewing lease %s: %w: %s", l.name, ErrLost, why)
}

// Renew makes the lease last its time to live from now on. The error matches
// ErrLost when it is lost for good; after any other error it may be tried
// again until Lost reports true.
func (l *Lease) Renew(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	body, deadline, lost := l.snapshot()
	if lost {
		return l.lose("it was not renewed before it expired")
	}
	body.ExpiresAt = time.Now().UTC().Add(l.ttl)
	if err := save(ctx, l.store, l.key(), body); err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	epochs, err := leaseEpochs(ctx, l.store, l.name)
	if err != nil {
		return fmt.Errorf("renewing lease %s: %w", l.name, err)
	}
	if len(epochs) > 0 && epochs[len(epochs)-1] > l.epoch {
		// The write above may have brought back an epoch already cleared away.
		return errors.Join(l.lose("another process took it over"), remove(ctx, l.store, l.key()))
	}
	// Had the write come in after the old expiry, another process might have
	// read the old one and be taking over now.
	if !time.Now().Before(deadline) {
		return l.lose("the store answered after it had expired")
	}
	l.mu.Lock()
	l.body = body
	l.mu.Unlock()
	return nil
}

// Release gives the lease back, so that the next process need not wait for it
// to expire. Releasing a lost lease does nothing to its new holder.
func (l *Lease) Release(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	body, _, _ := l.snapshot()
	l.mu.Lock()
	l.lost = true
	l.mu.Unlock()
	body.Released = true
	if err := save(ctx, l.store, l.key(), body); err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.name, err)
	}
	epochs, err := leaseEpochs(ctx, l.store, l.name)
	if err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.name, err)
	}
	if len(epochs) > 0 && epochs[len(epochs)-1] > l.epoch {
		return remove(ctx, l.store, l.key())
	}
	return nil
}

// Keep renews the lease every third of its time to live until stop is called
// or ctx ends. When the lease is lost it calls onLost once, with an error that
// matches ErrLost, and ends. stop waits for the heartbeat to end, so onLost
// must not call it; it does not release the lease.
func (l *Lease) Keep(ctx context.Context, onLost func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.beat(ctx); err != nil {
			onLost(err)
		}
	}()
	return func() { cancel(); <-done }
}

// beat returns nil when ctx ended first.
func (l *Lease) beat(ctx context.Context) error {
	var last error // why the latest renewal did not succeed
	for {
		_, deadline, _ := l.snapshot()
		timer := time.NewTimer(min(l.ttl/3, time.Until(deadline)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		within, cancel := context.WithDeadline(ctx, deadline)
		err := l.Renew(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLost) && last != nil:
			return fmt.Errorf("%w (last error: %w)", err, last)
		case errors.Is(err, ErrLost):
			return err
		}
		last = err
	}
}
