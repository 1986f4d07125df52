package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// DefaultLeaseTTL is how long a lane's lease outlives its worker where the
// run says nothing else.
const DefaultLeaseTTL = 30 * time.Second

// leaseLook is how often a lane that another worker holds is looked at again.
const leaseLook = time.Second

// Hold takes the lease of lane n of so many, and waits while a worker of an
// earlier run, or of an earlier try of this one, still has it: a killed
// launcher leaves its workers at work (design.md, Leases). The context it
// gives ends when the lease is lost, and then nothing more may be sent; release
// gives the lease back. held is false when the run was stopped meanwhile.
//
// Where all lanes live and die with the launcher the run's own lease is enough,
// and Hold costs nothing.
func (w *Worker) Hold(ctx context.Context, n, of int) (within context.Context, release func(), held bool, err error) {
	if !w.cfg.Leases {
		return ctx, func() {}, true, nil
	}
	ttl := w.cfg.LeaseTTL
	if ttl <= 0 {
		ttl = DefaultLeaseTTL
	}
	holder := ledger.CurrentHolder()
	holder.RunID, holder.Job = w.cfg.RunID, w.cfg.Job
	name := fmt.Sprintf("%s/%d/%d", ledger.LanesOf(w.cfg.Job), of, n)
	for said := false; ; said = true {
		if !w.Proceed(ctx) {
			return ctx, func() {}, false, ctx.Err()
		}
		l, err := ledger.Acquire(ctx, w.Store, name, holder, ttl)
		var other *ledger.HeldError
		switch {
		case err == nil:
			within, release = w.keep(ctx, n, l)
			return within, release, true, nil
		case !errors.As(err, &other):
			return ctx, func() {}, false, fmt.Errorf("holding lane %d: %w", n, err)
		case !said:
			w.Log.Warn("lane_waits", "lane", n, "holder", other.Holder.String(), "until", other.ExpiresAt)
		}
		t := time.NewTimer(leaseLook)
		select {
		case <-t.C:
		case <-w.Stopping():
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// keep renews a lane's lease until its release.
func (w *Worker) keep(ctx context.Context, n int, l *ledger.Lease) (within context.Context, release func()) {
	within, cancel := context.WithCancel(ctx)
	stop := l.Keep(within, func(lost error) {
		w.Log.Error("lane_lost", "lane", n, "error", ledger.Redact(lost.Error()))
		w.mu.Lock()
		w.letterTally.Count(ledger.LanesLost, 1)
		w.mu.Unlock()
		cancel()
	})
	return within, func() {
		lost := l.Lost()
		stop()
		cancel()
		if lost {
			return
		}
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer done()
		if err := l.Release(ctx); err != nil { // it expires by itself
			w.Log.Warn("lane_not_released", "lane", n, "error", ledger.Redact(err.Error()))
		}
	}
}

// Vacate waits until no worker of an earlier run of the job holds one of its
// lanes: with another number of lanes a host lies in a lane of another name.
// The launcher, which has the job's own lease, calls it before it submits a job
// whose workers are elsewhere; waits is told for whom it waits.
func Vacate(ctx context.Context, s store.Store, job string, waits func(ledger.Holder)) error {
	for said := false; ; {
		holder, held, err := ledger.HolderUnder(ctx, s, ledger.LanesOf(job))
		if err != nil {
			return fmt.Errorf("looking for lanes that an earlier run still holds: %w", err)
		}
		if !held {
			return nil
		}
		if !said {
			waits(holder)
			said = true
		}
		t := time.NewTimer(leaseLook)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
