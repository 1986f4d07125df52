package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

const (
	// batchFiles raw files at most go into one batch, so that memory does not
	// grow with what has piled up.
	batchFiles = 1000
	// batchesKept are the batches of a watch whose runs stay in the ledger.
	batchesKept = 100
	// showEvery is how often a watch shows how far its batch is.
	showEvery = 6 * time.Second
	// controlLook is how often the watch's own control object is read.
	controlLook = 2 * time.Second
)

// checkWatch refuses what a watch cannot do.
func (o *Options) checkWatch() error {
	switch {
	case o.Watch == 0 && o.Streaming:
		return usage.Errorf("--streaming is a way to watch; add --watch=INTERVAL, such as --watch=1m")
	case o.Watch == 0:
		return nil
	case o.Watch < 100*time.Millisecond:
		return usage.Errorf("--watch=%s: use 100ms or more, such as 1m", o.Watch)
	case o.Target().Watch == nil:
		return usage.Errorf("--watch is for --job=seed: it waits for raw files; start --job=%s by a schedule", o.Job)
	case o.Force:
		return usage.Errorf("--watch and --force: a watch would do everything again at each look; force one run without --watch")
	case o.Streaming && o.Runner == "direct":
		return usage.Errorf("--streaming: Beam's direct runner has no unbounded graphs (it loses elements); use --runner=prism, flink or dataflow, or leave --streaming out")
	}
	return nil
}

// watcher is a watch at work: a loop of batch runs under one lease.
type watcher struct {
	*run
	tracker pipeline.Tracker
	batches int
	counted sync.Mutex // of total
	total   ledger.Tally
	paused  atomic.Bool
}

// watch stays and takes new raw files as they come: it lists, runs the batch graph over what is new or changed, and waits. The
// watch is a run of its own in the ledger; each batch is another.
func watch(ctx context.Context, s store.Store, o Options, stdout, stderr io.Writer) (err error) {
	r, err := start(ctx, s, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	record := ledger.Run{RunID: r.id, Job: r.job, Runner: o.Runner, StartedAt: time.Now(), Options: o.Public()}
	if err := ledger.Start(ctx, s, record); err != nil {
		return err
	}
	r.stop = make(chan struct{})
	w := &watcher{run: r, tracker: o.Target().Watch.Tracker(o.Common)}
	following, done := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); w.control(following) }()
	result := w.loop(ctx)
	done()
	<-ended
	return w.finish(ctx, record, result, stdout)
}

// errWatchCancelled ends a watch that its control object stopped.
var errWatchCancelled = fmt.Errorf("cancelled: %w", ErrInterrupted)

// loop ends with ErrInterrupted, or with what makes going on senseless.
func (w *watcher) loop(ctx context.Context) error {
	for {
		pause := w.o.Watch
		if !w.paused.Load() {
			err := w.poll(ctx)
			select {
			case <-w.stop:
				return errWatchCancelled
			default:
			}
			switch {
			case errors.Is(err, ErrInterrupted):
				return err
			case w.leaseLost() != nil:
				return w.leaseLost()
			case err != nil: // the files stay open: the tracker gives them again
				if nerr := notice(w.o, w.stderr, "batch_failed", "watching continues after: "+ledger.Redact(err.Error()), "error", ledger.Redact(err.Error())); nerr != nil {
					return nerr
				}
			}
			pause = w.tracker.Pause()
		}
		if _, err := await(ctx, w.run, time.After(pause)); err != nil {
			return err
		}
	}
}

// poll lists once and runs a batch when files are due.
func (w *watcher) poll(ctx context.Context) error {
	var due func(time.Time, int) []string
	err := w.interruptible(ctx, func(ctx context.Context) (err error) {
		due, err = w.tracker.List(ctx, w.store)
		return err
	})
	if err != nil || w.paused.Load() {
		return err
	}
	files := due(time.Now(), batchFiles)
	if len(files) == 0 {
		return nil
	}
	w.batches++
	id := w.batch(w.batches)
	report, total, err := w.once(ctx, id, func(scope beam.Scope, l lane.Config, _ string) {
		j := w.o.Target()
		j.Build(scope, j.Watch.Config(w.o.Common, l, files))
	})
	w.setCurrent("")
	w.counted.Lock()
	w.total.Add(total)
	w.counted.Unlock()
	w.show(ctx, "")
	if old := w.batches - batchesKept; old > 0 {
		err = errors.Join(err, ledger.Forget(ctx, w.store, w.batch(old)))
	}
	if report == nil {
		return err
	}
	return errors.Join(err, notice(w.o, w.stderr, "batch_ended", fmt.Sprintf("%s %s: %d files, %d completed, %d domains collected", id, report.State,
		report.Counts["files_read"], report.Counts["files_completed"], report.Counts["domains_collected"]),
		"run_id", id, "state", report.State, "files_read", report.Counts["files_read"], "files_completed", report.Counts["files_completed"],
		"domains_collected", report.Counts["domains_collected"]))
}

// show writes what the watch has done so far as its own progress: the batches
// that ended, and of the one at work what its lanes say. It is for those who
// look on: a store that does not take it stops nothing.
func (w *watcher) show(ctx context.Context, batch string) {
	w.counted.Lock() // until it is written: what was counted before a batch's end must not come after
	defer w.counted.Unlock()
	if w.running() != batch {
		return
	}
	p := ledger.Progress{UpdatedAt: time.Now()}
	p.Tally.Add(w.total)
	if batch != "" {
		lanes, err := ledger.Progresses(ctx, w.store, batch)
		for _, l := range lanes {
			p.Hosts, p.HostsDone = p.Hosts+l.Hosts, p.HostsDone+l.HostsDone
			p.Tally.Add(l.Tally)
		}
		if err != nil {
			w.log(w.id).Warn("progress_not_read", "batch", batch, "error", ledger.Redact(err.Error()))
		}
	}
	if err := ledger.WriteProgress(ctx, w.store, w.id, 0, p); err != nil && ctx.Err() == nil {
		w.log(w.id).Warn("progress_not_written", "error", ledger.Redact(err.Error()))
	}
}

func (w *watcher) batch(n int) string { return fmt.Sprintf("%s-b%06d", w.id, n) }

// control does what the watch's control object asks for, also to the batch that
// is at work, or begins later.
func (w *watcher) control(ctx context.Context) {
	tick := time.NewTicker(controlLook)
	defer tick.Stop()
	shown := time.Now()
	for batch, sent, stopped := "", ledger.ActionRun, false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if id := w.running(); id != "" && time.Since(shown) >= showEvery {
			w.show(ctx, id)
			shown = time.Now()
		}
		c, err := ledger.ReadControl(ctx, w.store, w.id)
		if err != nil {
			continue // a store that does not answer is tried again
		}
		w.paused.Store(c.Action == ledger.ActionPause)
		if id := w.running(); id != batch {
			batch, sent = id, ledger.ActionRun
		}
		if batch != "" && c.Action != sent && ledger.WriteControl(ctx, w.store, batch, c) == nil {
			sent = c.Action
		}
		if c.Action == ledger.ActionCancel && !stopped {
			stopped = true
			close(w.stop)
		}
	}
}

// finish writes the watch's last state and its report: the sum of its batches.
func (w *watcher) finish(ctx context.Context, record ledger.Run, result error, stdout io.Writer) error {
	state := ledger.Failed
	switch {
	case errors.Is(result, errWatchCancelled):
		state = ledger.Cancelled
	case errors.Is(result, ErrInterrupted):
		state = ledger.Interrupted
	}
	if w.leaseLost() != nil {
		return result // the next watcher has closed this run
	}
	why := result
	if state == ledger.Cancelled {
		why = nil
	}
	record, err := ledger.Finish(ctx, w.store, record.RunID, state, why, time.Now())
	if err != nil {
		return errors.Join(result, err)
	}
	report := ledger.BuildReport(w.o.Target().Job, record, w.total, time.Now())
	return errors.Join(result, ledger.WriteReport(ctx, w.store, report), writeReport(w.o, report, stdout, w.stderr))
}

// acquire acquires the job's lease and closes what a killed run left as running.
// A watcher waits while another run is at work.
func (r *run) acquire(ctx context.Context, holder lease.Holder) error {
	for said := ""; ; {
		err := r.tryAcquire(ctx, holder)
		who, over := r.busy(ctx, err)
		if r.o.Watch == 0 || who == "" || r.leaseLost() != nil {
			return err
		}
		if who != said {
			if err := notice(r.o, r.stderr, "standing_by", "waiting: "+err.Error(), "holder", who); err != nil {
				return err
			}
			said = who
		}
		if err := r.waitForOther(ctx, over); err != nil {
			return err
		}
	}
}

// tryAcquire leaves nothing behind where it cannot acquire the lease.
func (r *run) tryAcquire(ctx context.Context, holder lease.Holder) error {
	l, err := lease.Acquire(ctx, lease.InStore(r.store), r.job, holder, r.o.LeaseTTL)
	if err != nil {
		return err
	}
	log := ledger.LeaseEvents(r.log(r.id))
	_, release := l.Keep(ctx, func(e lease.Event) {
		log(e)
		if e.Kind == lease.Lost {
			r.loseLease(e.Err)
		}
	})
	now := time.Now()
	if err := ledger.CloseHolder(ctx, r.store, l.Before(), now); err != nil {
		return errors.Join(err, release())
	}
	if err := ledger.CloseAbandoned(ctx, r.store, r.job, now); err != nil {
		return errors.Join(err, release())
	}
	r.lease, r.undo = l, append(r.undo, release)
	return nil
}

// busy reads from the error who is at work, and how to see whether
// that is over without a try of one's own; who is "" where it is something else.
func (r *run) busy(ctx context.Context, err error) (who string, over func() bool) {
	var taken *lease.HeldError
	var async *ledger.AtWorkError
	switch {
	case errors.As(err, &taken):
		return taken.Holder.String(), func() bool { return true }
	case errors.As(err, &async): // it has no lease that others could see
		return "run " + async.Run.RunID, func() bool {
			other, err := ledger.Load(ctx, r.store, async.Run.RunID)
			return err != nil || other.State.Over()
		}
	}
	return "", nil
}

// waitForOther waits until it is time for another try.
func (r *run) waitForOther(ctx context.Context, over func() bool) error {
	t := time.NewTicker(min(r.o.Watch, r.o.LeaseTTL/3))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if over() {
				return nil
			}
		case <-r.signals:
			return ErrInterrupted
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *run) setCurrent(id string) {
	r.mu.Lock()
	r.current = id
	r.mu.Unlock()
}

func (r *run) running() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// leaseLost says whether the job's lease is lost.
func (r *run) leaseLost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// awaitLease waits while it is not known whether the job's lease is still ours, as
// after a store that did not answer, or when this process was suspended.
func (r *run) awaitLease(ctx context.Context) error {
	if r.lease == nil {
		return r.leaseLost()
	}
	if err := r.lease.Await(ctx); errors.Is(err, lease.ErrLost) {
		return lostLease(err)
	} else if err != nil {
		return err
	}
	return nil
}

func lostLease(err error) error {
	return fmt.Errorf("this run lost its lease, another may be at work: %w", err)
}
