package lane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// DefaultLeaseTTL is how long a lane's lease outlives its worker where the
// run says nothing else.
const DefaultLeaseTTL = 30 * time.Second

// lanesPoll is how often WaitForLanes looks again.
const lanesPoll = time.Second

var runLeases = struct {
	sync.Mutex
	of map[string]*lease.Lease
}{of: map[string]*lease.Lease{}}

// Under says that this process has the lease of a run, so that its worker here
// sends and writes nothing without it. Close ends that.
func Under(runID string, l *lease.Lease) {
	runLeases.Lock()
	defer runLeases.Unlock()
	if l == nil {
		delete(runLeases.of, runID)
		return
	}
	runLeases.of[runID] = l
}

// allowed waits until everything that is done under ctx has its leases.
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

// acquireLane acquires the lease of lane n of so many, and waits while a worker
// of an earlier run, or of an earlier try of this one, still has it: a killed
// launcher leaves its workers at work. Under the context it returns nothing is
// sent or written without the lease, and it ends when that is lost. acquired is
// false when the run was stopped meanwhile.
//
// Where all lanes live and die with the launcher the run's own lease is enough,
// and acquireLane costs nothing.
func (w *Worker) acquireLane(ctx context.Context, n, of int) (within context.Context, release func(), acquired bool, err error) {
	if !w.cfg.Leases {
		return ctx, func() {}, true, nil
	}
	ttl := w.cfg.LeaseTTL
	if ttl <= 0 {
		ttl = DefaultLeaseTTL
	}
	name := fmt.Sprintf("%s/%d/%d", ledger.LanesOf(w.cfg.Job), of, n)
	within, release, err = w.Lease(ctx, lease.InStore(w.Store), ttl, false, func() {
		w.mu.Lock()
		w.untaken.Count(ledger.LanesLost, 1)
		w.mu.Unlock()
	}, name)
	if err != nil || within == nil {
		return ctx, func() {}, false, err
	}
	return within, release, true, nil
}

// Lease acquires one of the leases that names list and renews it, as acquireLane does.
// It waits, and with giveUp only for a holder that is not seen to live; else the
// error is a *lease.InUseError. within is nil when the run was stopped meanwhile.
// lost, when set, is called when the lease is lost, before within ends.
func (w *Worker) Lease(ctx context.Context, p lease.Place, ttl time.Duration, giveUp bool, lost func(), names ...string) (within context.Context, release func(), err error) {
	l, err := lease.Acquire(ctx, p, names[0], w.holder(), ttl, lease.Or(names[1:]...), lease.EvictIf(ledger.Gone(w.Store)),
		lease.Wait(lease.WaitPolicy{Proceed: w.Proceed, Stopping: w.stopping.Done(), OnWait: ledger.LeaseWaits(w.Log), GiveUp: giveUp}))
	if err != nil || l == nil {
		return nil, func() {}, err
	}
	tell := ledger.LeaseEvents(w.Log)
	within, free := l.Keep(ctx, func(e lease.Event) {
		tell(e)
		if e.Kind == lease.Lost && lost != nil {
			lost()
		}
	})
	return within, func() {
		if err := free(); err != nil { // it expires by itself
			w.Log.Warn("lease_not_released", "lease", l.Name(), "error", ledger.Redact(err.Error()))
		}
	}, nil
}

// WaitForLanes waits until no worker of an earlier run of the job has the lease of
// a lane: with another number of lanes a host lies in a lane of another name.
// The launcher, which has the job's own lease, calls it before it submits a job
// whose workers are elsewhere. waits is called once, with a holder, if it must wait.
func WaitForLanes(ctx context.Context, s store.Store, job string, waits func(lease.Holder)) error {
	for said := false; ; {
		holder, held, err := lease.ActiveHolder(ctx, s, ledger.LanesOf(job))
		if err != nil {
			return fmt.Errorf("looking for lanes of an earlier run: %w", err)
		}
		if !held {
			return nil
		}
		if !said {
			waits(holder)
			said = true
		}
		t := time.NewTimer(lanesPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
