package lane

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Lane is a lane at work, in one ProcessElement call. Its counts are in the live figures at once, and in the run's total at the end.
type Lane struct {
	// Sample, when set, returns what the visits have counted by themselves so far.
	// Drain adds its growth to the lane's counts.
	Sample func() ledger.Counts
	// Tick, when set, is called several times a second while visits run, in the goroutine
	// that merges their results.
	Tick func()
	// Again says that this run has worked at the lane before. What this process learnt of its hosts from the store may be stale.
	Again bool

	w       *Worker
	ctx     context.Context // of the ProcessElement call; Beam's counters need it
	sampled ledger.Counts
	shown   ledger.Counts // the part of sum that Beam's counters have
	shownAt time.Time

	// What the bundle knows of its lane.
	bundle  *Bundle
	release func() // its lease
	emit    func(ledger.Tally)
	visits  int                // begun and not merged
	begun   bool               // no more visits will begin
	cancel  context.CancelFunc // cuts its visits off; nil before the first
	atEnd   func()             // given to Begin

	progress *ledger.LaneProgress // guarded by w.mu; its time is zero while the lane is at work
}

// Count adds to what the lane has counted. Any goroutine may call it.
func (l *Lane) Count(t ledger.Tally) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.live.Add(t)
	l.progress.Tally.Add(t)
}

const (
	// progressEvery is how often a lane's progress is written.
	progressEvery = 5 * time.Second
	// sampleEvery is how often Drain samples, for the progress line.
	sampleEvery = 200 * time.Millisecond
	// countersEvery is how often Beam's counters are updated: after each host it would cost time.
	countersEvery = time.Second
)

// beginLane begins a lane, which is in the process's progress from now on, in place of an earlier time at that lane.
func (w *Worker) beginLane(ctx context.Context, p ledger.LaneProgress) *Lane {
	l := &Lane{w: w, ctx: ctx, shownAt: time.Now(), progress: &p}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress == nil {
		w.progress, w.writing = map[int]*ledger.LaneProgress{}, make(chan struct{}, 1)
		go w.keepProgress()
	}
	w.progress[p.Lane] = &p
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
	l.w.emitCounted(l.emit, l.progress.Tally)
	l.bundle.closed(l)
}

// end marks the lane as finished.
func (l *Lane) end() {
	l.show()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.progress.Finished = true
}

// hostDone counts one more host.
func (l *Lane) hostDone() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.progress.HostsDone++
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
	l.w.mu.Lock()
	now := maps.Clone(l.progress.Tally.Counts)
	l.w.mu.Unlock()
	count(l.ctx, "lanes", now.Minus(l.shown))
	l.shown, l.shownAt = now, time.Now()
}

// keepProgress writes the progress every five seconds while a lane is at work, also while it waits for one host, and during a pause.
func (w *Worker) keepProgress() {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		active := w.active
		w.mu.Unlock()
		if active > 0 {
			w.writeProgress(w.ctx)
		}
	}
}

// writeProgress writes the progress of this process to the ledger. It is only for people who watch, so an error is a
// warning in the log and stops nothing.
func (w *Worker) writeProgress(ctx context.Context) {
	w.mu.Lock()
	writing := w.writing
	w.mu.Unlock()
	if writing == nil { // no lane has begun here
		return
	}
	writing <- struct{}{} // until it is written: an older progress must not overwrite a newer one
	defer func() { <-writing }()
	w.mu.Lock()
	p := ledger.Progress{Tally: w.exchanges()}
	p.Tally.Add(w.outside)
	for _, l := range w.progress {
		now := *l
		if now.UpdatedAt.IsZero() {
			now.UpdatedAt, now.Waits, now.Tally = time.Now().UTC(), slices.Clone(w.waits), ledger.Tally{}
			now.Tally.Add(l.Tally)
		}
		p.Lanes = append(p.Lanes, now)
	}
	w.mu.Unlock()
	if err := ledger.WriteProgress(ctx, w.Store, w.cfg.RunID, processName(), p); err != nil && ctx.Err() == nil {
		w.Log.Warn("progress_not_written", "error", ledger.Redact(err.Error()))
	}
}
