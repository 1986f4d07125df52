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

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

const (
	// maxBatchFiles is the most raw files of one batch. It bounds the memory of a
	// batch when many files wait.
	maxBatchFiles = 1000
	// maxBatches is how many batches of a watch stay in the ledger.
	maxBatches = 100
	// progressInterval is the time between two updates of a watch's progress.
	progressInterval = 6 * time.Second
	// controlInterval is the time between two readings of the watch's own control object.
	controlInterval = 2 * time.Second
)

// checkWatch refuses options with which a watch cannot run.
func (o *Options) checkWatch() error {
	switch {
	case o.Watch == 0 && o.Streaming:
		return usage.Errorf("--streaming is a way to watch; add --watch=INTERVAL, such as --watch=1m")
	case o.Watch == 0:
		return nil
	case o.From != "" && o.Runner == "direct":
		return usage.Errorf("--from: Beam's direct runner has no unbounded graphs; use --runner=prism, flink or dataflow")
	case o.Watch < 100*time.Millisecond:
		return usage.Errorf("--watch=%s: use 100ms or more, such as 1m", o.Watch)
	case o.Target().Watch == nil:
		return usage.Errorf("--watch is for --job=seed: it waits for raw files; start --job=%s by a schedule", o.Job)
	case o.Force:
		return usage.Errorf("--watch and --force: a watch would do everything again at each poll; force one run without --watch")
	case o.Streaming && o.Runner == "direct":
		return usage.Errorf("--streaming: Beam's direct runner has no unbounded graphs (it loses elements); use --runner=prism, flink or dataflow, or leave --streaming out")
	}
	return nil
}

// watcher is a loop of batch runs under one lease.
type watcher struct {
	*run
	tracker pipeline.Tracker
	batches int
	counted sync.Mutex // guards total
	total   ledger.Tally
	paused  atomic.Bool
}

// watch reads new raw files as they come: it lists the bucket, runs the graph
// over the files that are new or changed, waits, and begins again. In the ledger
// the watch is a run, and each of its batches is another run.
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
	w := &watcher{run: r, tracker: o.Target().Watch.Tracker(o.RunOptions)}
	controlled, done := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); w.control(controlled) }()
	result := w.loop(ctx)
	done()
	<-ended
	return w.finish(ctx, record, result, stdout)
}

// errWatchCancelled ends a watch that its control object stopped.
var errWatchCancelled = fmt.Errorf("cancelled: %w", ErrInterrupted)

// loop polls until the watch is interrupted or cancelled, loses its lease, or cannot write its notices.
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
			case err != nil: // the files stay open: the tracker returns them again
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
	files := due(time.Now(), maxBatchFiles)
	if len(files) == 0 {
		return nil
	}
	w.batches++
	id := w.batch(w.batches)
	report, total, err := w.once(ctx, id, func(scope beam.Scope, l lane.Config, _ string) {
		j := w.o.Target()
		j.Build(scope, j.Watch.Config(w.o.RunOptions, l, files))
	})
	w.setCurrent("")
	w.counted.Lock()
	w.total.Add(total)
	w.counted.Unlock()
	w.show(ctx, "")
	if old := w.batches - maxBatches; old > 0 {
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

// show writes the watch's own progress: the sum of the batches that ended and of
// the lanes of the batch at work. Progress is only for people who look on, so an
// error of the store does not stop the watch.
func (w *watcher) show(ctx context.Context, batch string) {
	w.counted.Lock() // until it is written: an older progress must not overwrite a newer one
	defer w.counted.Unlock()
	if w.running() != batch {
		return
	}
	all := ledger.LaneProgress{UpdatedAt: time.Now()}
	all.Tally.Add(w.total)
	if batch != "" {
		p, err := ledger.ReadProgress(ctx, w.store, batch)
		for _, l := range p.Lanes {
			all.Hosts, all.HostsDone = all.Hosts+l.Hosts, all.HostsDone+l.HostsDone
		}
		all.Tally.Add(p.Tally)
		if err != nil {
			w.log(w.id).Warn("progress_not_read", "batch", batch, "error", ledger.Redact(err.Error()))
		}
	}
	err := ledger.WriteProgress(ctx, w.store, w.id, "watch", ledger.Progress{Lanes: []ledger.LaneProgress{all}})
	if err != nil && ctx.Err() == nil {
		w.log(w.id).Warn("progress_not_written", "error", ledger.Redact(err.Error()))
	}
}

func (w *watcher) batch(n int) string { return fmt.Sprintf("%s-b%06d", w.id, n) }

// control obeys the watch's control object, and copies its action to the control
// object of the batch that is at work, or that begins later.
func (w *watcher) control(ctx context.Context) {
	tick := time.NewTicker(controlInterval)
	defer tick.Stop()
	shown := time.Now()
	for batch, sent, stopped := "", ledger.ActionRun, false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if id := w.running(); id != "" && time.Since(shown) >= progressInterval {
			w.show(ctx, id)
			shown = time.Now()
		}
		c, err := ledger.ReadControl(ctx, w.store, w.id)
		if err != nil {
			continue // read again at the next tick
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
		return result // the next watcher closed this run
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
