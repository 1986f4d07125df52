package lane

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Lane is one lane at work, in one ProcessElement call. What its visits count is
// at once in the live figures, and in the end in the run's total; while it works,
// one writer keeps its progress in the ledger.
type Lane struct {
	// Sample, when set, gives what the visits have counted by themselves so far.
	// Drain counts what it has grown by.
	Sample func() ledger.Counts

	w       *Worker
	ctx     context.Context // of the ProcessElement call, whose counters Beam's are
	number  int
	sampled ledger.Counts
	shown   ledger.Counts // of sum, what Beam's counters have
	shownAt time.Time
	stop    context.CancelFunc
	stopped chan struct{}

	mu       sync.Mutex
	sum      ledger.Tally
	progress ledger.Progress
}

// RunLane does the work of lane n of so many, which has that many hosts: it
// acquires the lane's lease, shares the limits out again, keeps the progress, and
// emits the lane's tally. Under the context that work gets nothing is sent or
// written without the lease. work is not called when the run was stopped while
// this waited for the lease.
func (w *Worker) RunLane(ctx context.Context, n, of, hosts int, emit func(ledger.Tally), work func(context.Context, *Lane) error) error {
	within, release, acquired, err := w.acquireLane(ctx, n, of)
	if err != nil {
		return err
	}
	defer release()
	if !acquired {
		w.emitCounted(emit, ledger.Tally{})
		return nil
	}
	w.lanes(+1)
	defer w.lanes(-1)
	l := w.beginLane(ctx, n, hosts)
	defer l.stop()
	if err := work(within, l); err != nil {
		return err
	}
	l.end()
	w.emitCounted(emit, l.sum)
	return nil
}

// Count adds to what the lane has counted. Any goroutine may call it.
func (l *Lane) Count(t ledger.Tally) {
	l.w.Count(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.Add(t)
}

const (
	// progressEvery is how often a lane's progress is written.
	progressEvery = 5 * time.Second
	// sampleEvery is how often Drain samples, for the progress line.
	sampleEvery = 200 * time.Millisecond
	// countersEvery is how often Beam's counters grow: for each host it would cost.
	countersEvery = time.Second
)

// beginLane begins the lane's progress. Every five seconds it is written, also
// while one host keeps the lane waiting and in a pause, until end.
func (w *Worker) beginLane(ctx context.Context, n, hosts int) *Lane {
	within, stop := context.WithCancel(w.ctx)
	l := &Lane{w: w, ctx: ctx, number: n, stop: stop, stopped: make(chan struct{}), shownAt: time.Now(), progress: ledger.Progress{Hosts: int64(hosts)}}
	go func() {
		defer close(l.stopped)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-within.Done():
				return
			case <-tick.C:
				l.write(within)
			}
		}
	}()
	return l
}

// end writes the lane's last figures.
func (l *Lane) end() {
	l.stop()
	<-l.stopped
	l.show()
	l.mu.Lock()
	l.progress.Finished = true
	l.mu.Unlock()
	l.write(l.ctx)
}

// hostDone notes one host more.
func (l *Lane) hostDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.HostsDone++
}

// sample counts what the visits have counted by themselves, and shows Beam what
// the lane has. As show it is for the goroutine of the ProcessElement call.
func (l *Lane) sample() {
	if l.Sample != nil {
		now := l.Sample()
		l.Count(ledger.Tally{Counts: now.Minus(l.sampled)})
		l.sampled = now
	}
	if time.Since(l.shownAt) >= countersEvery {
		l.show()
	}
}

// show brings Beam's counters of the lanes up to date.
func (l *Lane) show() {
	l.mu.Lock()
	now := maps.Clone(l.sum.Counts)
	l.mu.Unlock()
	count(l.ctx, "lanes", now.Minus(l.shown))
	l.shown, l.shownAt = now, time.Now()
}

// write puts the figures into the ledger. They are for those who watch: where
// they cannot be written, the lane works on and the log has a warning.
func (l *Lane) write(ctx context.Context) {
	l.mu.Lock()
	l.progress.Tally.Add(l.w.unshown())
	now := l.progress
	now.UpdatedAt, now.Waits, now.Tally = time.Now(), l.w.waiting(), ledger.Tally{}
	now.Tally.Add(l.progress.Tally)
	l.mu.Unlock()
	if err := ledger.WriteProgress(ctx, l.w.Store, l.w.cfg.RunID, l.number, now); err != nil && ctx.Err() == nil {
		l.w.Log.Warn("progress_not_written", "lane", l.number, "error", ledger.Redact(err.Error()))
	}
}
