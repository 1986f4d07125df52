package lane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// DefaultLeaseTTL is how long a lane's lease lasts after its worker was killed, by default.
const DefaultLeaseTTL = 30 * time.Second

// lanesPoll is the time between two checks of WaitForLanes.
const lanesPoll = time.Second

var runLeases = struct {
	sync.Mutex
	of map[string]*lease.Lease
}{of: map[string]*lease.Lease{}}

// Under registers the run's lease of this process, without which its worker sends and writes nothing. Close removes it.
func Under(runID string, l *lease.Lease) {
	runLeases.Lock()
	defer runLeases.Unlock()
	if l == nil {
		delete(runLeases.of, runID)
		return
	}
	runLeases.of[runID] = l
}

// allowed checks, or waits, that the leases of ctx and of the run are still this process's.
func (w *Worker) allowed(ctx context.Context, wait bool) error {
	var of []*lease.Lease
	if w.lease != nil {
		of = []*lease.Lease{w.lease}
	}
	allow := lease.Allow(of...)
	if err := allow(ctx, false); err == nil || !wait {
		return err
	}
	ctx, cancel := w.Context(ctx) // a stop ends the wait
	defer cancel()
	err := allow(ctx, true)
	if w.lease != nil && w.lease.Lost() {
		w.Stop(err)
	}
	return err
}

func (w *Worker) holder() lease.Holder {
	h := lease.CurrentHolder()
	h.RunID, h.Job = w.cfg.RunID, w.cfg.Job
	return h
}

func (w *Worker) leaseTTL() time.Duration {
	if w.cfg.LeaseTTL <= 0 {
		return DefaultLeaseTTL
	}
	return w.cfg.LeaseTTL
}

// acquireLane acquires the lease of lane n of of lanes, and waits while a worker of an earlier run, or try, has it: workers of a killed
// launcher continue. With the context that it returns nothing is sent or written without the lease. within is nil if the run was stopped
// meanwhile. again reports whether the run has worked at the lane before. If all lanes are in the launcher's process, the run's own lease
// is enough.
func (w *Worker) acquireLane(ctx context.Context, n, of int) (within context.Context, release func(), again bool, epoch int64, err error) {
	if !w.cfg.Leases {
		_, again = w.worked.LoadOrStore(n, nil)
		return ctx, func() {}, again, 0, nil
	}
	name := fmt.Sprintf("%s/%d/%d", ledger.LanesOf(w.cfg.Job), of, n)
	within, release, l, err := w.acquire(ctx, lease.InStore(w.Store), w.leaseTTL(), false, func(error) {
		w.mu.Lock()
		w.untaken.Count(ledger.LanesLost, 1)
		w.mu.Unlock()
	}, name)
	// Earlier runs have no lane any more: the launcher has waited (WaitForLanes).
	if within == nil {
		return nil, release, false, 0, err
	}
	return within, release, l.Previous().RunID == w.cfg.RunID, l.Epoch(), nil
}

// Lease acquires one of the leases in names, in a database, and renews it, as acquireLane does. With giveUp it waits only for a holder
// that shows no sign of life, and returns a *lease.InUseError for any other. within is nil if the run was stopped meanwhile.
func (w *Worker) Lease(ctx context.Context, p lease.Place, ttl time.Duration, giveUp bool, names ...string) (within context.Context, release func(), err error) {
	within, release, _, err = w.acquire(ctx, p, ttl, giveUp, func(why error) {
		if _, lack := fault.Of(fault.Database, why); lack != nil {
			w.Stop(lack)
		}
	}, names...)
	return within, release, err
}

// acquire is Lease, and returns the lease. lost is called when it is lost, before within ends.
func (w *Worker) acquire(ctx context.Context, p lease.Place, ttl time.Duration, giveUp bool, lost func(error), names ...string) (
	within context.Context, release func(), l *lease.Lease, err error) {
	waits := func(e *lease.InUseError) {
		w.Log.Warn("lease_waits", "lease", e.Name, "holder", e.Holder.String(), "until", e.ExpiresAt)
	}
	l, err = lease.Acquire(ctx, p, names[0], w.holder(), ttl, lease.Or(names[1:]...), lease.EvictIf(ledger.RunClosed(w.Store)),
		lease.Wait(lease.WaitPolicy{Proceed: w.Proceed, Stopping: w.stopping.Done(), OnWait: waits, GiveUp: giveUp}))
	if err != nil || l == nil {
		return nil, func() {}, nil, err
	}
	if l.TookOver() {
		w.learnDeaths(true)
	}
	logEvent := ledger.LogLeaseEvent(w.Log)
	within, free := l.Keep(ctx, func(e lease.Event) {
		logEvent(e)
		if e.Kind == lease.Lost {
			lost(e.Err)
		}
	})
	return within, func() {
		if err := free(); err != nil { // it expires by itself
			w.Log.Warn("lease_not_released", "lease", l.Name(), "error", ledger.Redact(err.Error()))
		}
	}, l, nil
}

// WaitForLanes waits until no worker of an earlier run of the job has the lease of a lane: with another number of lanes its leases have
// other names. The launcher calls it under the job's own lease before it submits. waits is called once, with a holder.
func WaitForLanes(ctx context.Context, s store.Store, job string, waits func(lease.Holder)) error {
	for announced := false; ; {
		holder, found, err := lease.ActiveHolder(ctx, s, ledger.LanesOf(job))
		if err != nil {
			return fmt.Errorf("looking for lanes of an earlier run: %w", err)
		}
		if !found {
			return nil
		}
		if !announced {
			waits(holder)
			announced = true
		}
		if err := polite.SystemClock.Sleep(ctx, lanesPoll); err != nil {
			return err
		}
	}
}
