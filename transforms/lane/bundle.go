package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Bundle is the lanes of one process for one bundle of Beam's. A lane of an overlapping bundle begins while the last, slow hosts of the
// one before are visited.
//
// Its functions are called, and results are merged, only in the goroutine of Beam's calls: emit functions and counters are not safe
// elsewhere.
type Bundle struct {
	w          *Worker
	overlap    bool
	lanes      []*Lane // that have not ended, oldest first
	work       chan func() (merge func())
	merges     chan func()
	pool       sync.WaitGroup
	goroutines int
	visits     int // begun and not merged; see began
	unattended *time.Timer
}

const (
	// maxOpenLanes is how many lanes of a bundle may be open: each has its host table in
	// memory, and writes its progress.
	maxOpenLanes = 32
	// maxUnattended is how long a runner may leave an overlapping bundle with open lanes alone: Beam does not tell a DoFn that its bundle
	// was given up.
	maxUnattended = 5 * time.Minute
)

var errUnattended = errors.New("the runner gave the bundle up and came back to it later, when its lanes were closed; the runner tries it again")

// NewBundle returns a bundle without lanes. In one that overlaps, RunLane returns when
// the last visit of a lane that uses Begin has begun, and Finish must be called.
func (w *Worker) NewBundle(overlap bool) *Bundle { return &Bundle{w: w, overlap: overlap} }

// RunLane runs one lane, alone: see Bundle.RunLane.
func (w *Worker) RunLane(ctx context.Context, n, of, hosts int, emit func(ledger.Tally), work func(context.Context, *Lane) error) error {
	b := w.NewBundle(false)
	if err := b.RunLane(ctx, n, of, hosts, emit, work); err != nil {
		return err
	}
	return b.Finish()
}

// InTurn calls runLane, which reads what a lane has to visit and then calls RunLane, when no other bundle of this process does that. Prism
// has eight bundles at work at a time: they would be no faster, and each would have its host table in memory. Where lanes are in several
// processes the runner decides.
func (b *Bundle) InTurn(ctx context.Context, runLane func() error) error {
	if !b.alone() {
		return runLane()
	}
	if err := b.attend(); err != nil {
		return err
	}
	mine := false
	b.merge(func() bool {
		mine = mine || b.w.turn.TryLock()
		return mine || ctx.Err() != nil
	})
	if !mine {
		b.abandon()
		return ctx.Err()
	}
	defer b.w.turn.Unlock()
	err := runLane()
	if err != nil {
		b.abandon()
	}
	return err
}

// alone reports whether all lanes of the job are in this process, and overlap.
func (b *Bundle) alone() bool { return b.overlap && !b.w.cfg.Leases }

// visitsAtOnce is how many visits the bundle may have, if the whole job may have n. Of
// bundles that take turns, the others have only the last visits of their lanes.
func (b *Bundle) visitsAtOnce(n int) int {
	if b.alone() {
		return max(1, n-int(b.w.visits.Load())+b.visits)
	}
	return b.w.visitsAtOnce(n)
}

// began counts visits that have begun, or less than none that have ended.
func (b *Bundle) began(visits int) {
	b.visits += visits
	b.w.visits.Add(int64(visits))
}

// RunLane does the work of lane n of of lanes, which has that many hosts, under the lane's lease: it shares the limits, writes the
// progress, and emits the tally. work is not called if the run was stopped meanwhile. After an error all lanes of the bundle are closed,
// and the runner must do the whole bundle again.
func (b *Bundle) RunLane(ctx context.Context, n, of, hosts int, emit func(ledger.Tally), work func(context.Context, *Lane) error) error {
	if err := b.attend(); err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete { // an error, or a panic of an emit function
			b.abandon()
		}
	}()
	b.merge(func() bool { return len(b.lanes) < maxOpenLanes })
	within, release, again, epoch, err := b.w.acquireLane(ctx, n, of)
	if err != nil {
		return err
	}
	if within == nil {
		b.w.emitCounted(emit, ledger.Tally{})
	} else {
		l := b.open(ctx, ledger.LaneProgress{Lane: n, Epoch: epoch, Hosts: int64(hosts)}, emit, release)
		l.Again = again
		if err := work(within, l); err != nil {
			return err
		}
		l.begun = true
		l.endIfDone()
	}
	if !b.overlap {
		b.merge(func() bool { return len(b.lanes) == 0 })
	}
	if len(b.lanes) > 0 {
		b.unattended = time.AfterFunc(maxUnattended, b.abandon)
	}
	complete = true
	return nil
}

// Finish waits until all lanes have ended.
func (b *Bundle) Finish() error {
	if err := b.attend(); err != nil {
		return err
	}
	defer b.abandon() // of no lane, unless an emit function panics
	b.merge(func() bool { return len(b.lanes) == 0 })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.w.ctx), progressEvery)
	defer cancel()
	b.w.writeProgress(ctx)
	return nil
}

// attend takes the bundle back from the timer that abandons it.
func (b *Bundle) attend() error {
	if b.unattended != nil && !b.unattended.Stop() {
		return errUnattended
	}
	b.unattended = nil
	return nil
}

// open adds a lane to the bundle.
func (b *Bundle) open(ctx context.Context, p ledger.LaneProgress, emit func(ledger.Tally), release func()) *Lane {
	if len(b.lanes) == 0 {
		b.w.lanes(+1) // lanes that overlap are one lane's work
	}
	l := b.w.beginLane(ctx, p)
	l.bundle, l.release, l.emit = b, release, emit
	b.lanes = append(b.lanes, l)
	return l
}

// closed removes a lane from the bundle.
func (b *Bundle) closed(l *Lane) {
	b.w.mu.Lock()
	l.progress.UpdatedAt, l.progress.Waits = time.Now().UTC(), slices.Clone(b.w.waits)
	b.w.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.release()
	b.lanes = slices.DeleteFunc(b.lanes, func(o *Lane) bool { return o == l })
	if len(b.lanes) == 0 {
		b.w.lanes(-1)
	}
}

// abandon cuts off all visits, ends the pool and closes all lanes. The lanes emit nothing.
func (b *Bundle) abandon() {
	for _, l := range b.lanes {
		if l.cancel != nil {
			l.cancel()
		}
	}
	if b.work != nil {
		close(b.work)
		b.work = nil
	}
	b.pool.Wait() // their results stay in merges
	b.began(-b.visits)
	for len(b.lanes) > 0 {
		b.closed(b.lanes[0])
	}
}

// merge merges results of visits until done reports true.
func (b *Bundle) merge(done func() bool) {
	if done() {
		return
	}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for !done() {
		select {
		case merge := <-b.merges:
			merge()
		case <-tick.C:
			b.sample()
		}
	}
}

func (b *Bundle) sample() {
	for _, l := range b.lanes {
		l.sample()
	}
}

// startOne adds a goroutine to the pool.
func (b *Bundle) startOne() {
	b.goroutines++
	work := b.work
	b.pool.Go(func() {
		for visit := range work {
			b.merges <- visit()
		}
	})
}
