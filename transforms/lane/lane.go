package lane

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Lane is a lane at work, in one ProcessElement call. The counts of its visits are
// in the live figures at once, and in the run's total at the end. While it works, one
// goroutine writes its progress to the ledger.
type Lane struct {
	// Sample, when set, returns what the visits have counted by themselves so far.
	// Drain adds its growth to the lane's counts.
	Sample func() ledger.Counts
	// Tick, when set, is called several times a second while visits run, in the goroutine
	// that merges their results.
	Tick func()
	// Again says that this run has worked at the lane before: its worker was lost or
	// its bundle failed, or in a stream more work came. So what this process learnt of
	// the lane's hosts from the store before may be out of date.
	Again bool

	w       *Worker
	ctx     context.Context // of the ProcessElement call; Beam's counters need it
	number  int
	sampled ledger.Counts
	shown   ledger.Counts // the part of sum that Beam's counters have
	shownAt time.Time
	stop    context.CancelFunc // ends the writing of progress
	stopped chan struct{}

	// What the bundle knows of its lane.
	bundle  *Bundle
	release func() // its lease
	emit    func(ledger.Tally)
	visits  int                // begun and not merged
	begun   bool               // no more visits will begin
	cancel  context.CancelFunc // cuts its visits off; nil before the first
	atEnd   func()             // given to Begin

	mu       sync.Mutex
	sum      ledger.Tally
	progress ledger.Progress
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
	// countersEvery is how often Beam's counters are updated: after each host it would cost time.
	countersEvery = time.Second
)

// beginLane begins the lane's progress. Until end it is written every five seconds,
// even while the lane waits for one host, and during a pause.
func (w *Worker) beginLane(ctx context.Context, n, hosts int) *Lane {
	within, stop := context.WithCancel(w.ctx)
	l := &Lane{w: w, ctx: ctx, number: n, stop: stop, stopped: make(chan struct{}), shownAt: time.Now(), progress: ledger.Progress{Hosts: int64(hosts)}}
	w.plan(n, l.progress)
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

// endIfDone ends a lane whose visits have all been merged, and emits its tally.
func (l *Lane) endIfDone() {
	if !l.begun || l.visits > 0 {
		return
	}
	if l.atEnd != nil {
		l.atEnd()
	}
	l.sample()
	l.end()
	l.w.emitCounted(l.emit, l.sum)
	l.bundle.closed(l)
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

// hostDone counts one more host.
func (l *Lane) hostDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.HostsDone++
	l.w.plan(l.number, l.progress)
}

// sample adds what the visits have counted by themselves, and updates Beam's
// counters. Only the goroutine of the ProcessElement call may call sample and show.
func (l *Lane) sample() {
	if l.Tick != nil {
		l.Tick()
	}
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

// write writes the progress to the ledger. It is only for people who watch, so an
// error is a warning in the log and does not stop the lane.
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
