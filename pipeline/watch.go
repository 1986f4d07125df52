package pipeline

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
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
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
		return usagef("--streaming is a way to watch; add --watch=INTERVAL, such as --watch=1m")
	case o.Watch == 0:
		return nil
	case o.Watch < 100*time.Millisecond:
		return usagef("--watch=%s: use 100ms or more, such as 1m", o.Watch)
	case o.Job != seed.Job:
		return usagef("--watch is for --job=seed: it waits for raw files; start --job=%s by a schedule", o.Job)
	case o.Force:
		return usagef("--watch and --force: a watch would do everything again at each look; force one run without --watch")
	case o.Until != "":
		return usagef("--watch and --until=%s: a look around ends by itself; leave one of them out", o.Until)
	case o.Streaming && o.Runner == "direct":
		return usagef("--streaming: Beam's direct runner has no unbounded graphs (it loses elements); use --runner=prism, flink or dataflow, or leave --streaming out")
	}
	return nil
}

// watcher is a watch at work: a loop of batch runs under one lease.
type watcher struct {
	*session
	cfg     seed.Config
	tracker seed.FileTracker
	batches int
	counted sync.Mutex // of total
	total   ledger.Tally
	paused  atomic.Bool
}

// watch stays and takes new raw files as they come (design.md, Watching): it
// lists, runs the batch graph over what is new or changed, and waits. The
// watch is a run of its own in the ledger; each batch is another.
func watch(ctx context.Context, s store.Store, o Options, cfg seed.Config, stdout, stderr io.Writer) (err error) {
	ses, err := begin(ctx, s, o, seed.Job, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ses.end(ctx)) }()
	run := ledger.Run{RunID: ses.id, Job: seed.Job, Runner: o.Runner, StartedAt: time.Now(), Options: o.public()}
	if err := ledger.Start(ctx, s, run); err != nil {
		return err
	}
	ses.stop = make(chan struct{})
	w := &watcher{session: ses, cfg: cfg, tracker: seed.FileTracker{Interval: o.Watch}}
	following, done := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); w.follow(following) }()
	result := w.loop(ctx)
	done()
	<-ended
	return w.close(ctx, run, result, stdout)
}

// errWatchCancelled ends a watch that its control object stopped.
var errWatchCancelled = fmt.Errorf("cancelled: %w", errInterrupted)

// loop ends with errInterrupted, or with what makes going on senseless.
func (w *watcher) loop(ctx context.Context) error {
	for {
		pause := w.o.Watch
		if !w.paused.Load() {
			err := w.look(ctx)
			select {
			case <-w.stop:
				return errWatchCancelled
			default:
			}
			switch {
			case errors.Is(err, errInterrupted):
				return err
			case w.leaseLost() != nil:
				return w.leaseLost()
			case err != nil: // the files stay open: the tracker tries them again
				if nerr := notice(w.o, w.stderr, "batch_failed", "watching goes on after: "+ledger.Redact(err.Error()), "error", ledger.Redact(err.Error())); nerr != nil {
					return nerr
				}
			}
			pause = w.tracker.Pause()
		}
		if _, err := await(ctx, w.session, time.After(pause)); err != nil {
			return err
		}
	}
}

// look lists once and runs a batch when files are due.
func (w *watcher) look(ctx context.Context) error {
	var l seed.Listing
	err := w.under(ctx, func(ctx context.Context) (err error) {
		l, err = seed.ListRaw(ctx, w.store, w.cfg)
		return err
	})
	if err != nil || w.paused.Load() {
		return err
	}
	due := w.tracker.Due(l.Files, time.Now(), batchFiles)
	if len(due) == 0 {
		return nil
	}
	cfg := w.cfg
	for _, f := range due {
		cfg.Files = append(cfg.Files, f.Key)
	}
	w.batches++
	id := w.batch(w.batches)
	report, total, err := w.run(ctx, id, filterHash(w.o), func(scope beam.Scope, l lane.Config, _ string) {
		cfg.Lane = l
		Seed(scope, cfg)
	})
	w.setNow("")
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

// follow does what the watch's control object asks for, also to the batch that
// is at work, or begins later.
func (w *watcher) follow(ctx context.Context) {
	tick := time.NewTicker(controlLook)
	defer tick.Stop()
	shown := time.Now()
	for batch, told, stopped := "", ledger.ActionRun, false; ; {
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
			batch, told = id, ledger.ActionRun
		}
		if batch != "" && c.Action != told && ledger.WriteControl(ctx, w.store, batch, c) == nil {
			told = c.Action
		}
		if c.Action == ledger.ActionCancel && !stopped {
			stopped = true
			close(w.stop)
		}
	}
}

// close writes the watch's last state and its report: the sum of its batches.
func (w *watcher) close(ctx context.Context, run ledger.Run, result error, stdout io.Writer) error {
	state := ledger.Failed
	switch {
	case errors.Is(result, errWatchCancelled):
		state = ledger.Cancelled
	case errors.Is(result, errInterrupted):
		state = ledger.Interrupted
	}
	if w.leaseLost() != nil {
		return result // the next watcher has closed this run
	}
	why := result
	if state == ledger.Cancelled {
		why = nil
	}
	run, err := ledger.Finish(ctx, w.store, run.RunID, state, why, time.Now())
	if err != nil {
		return errors.Join(result, err)
	}
	report := ledger.BuildReport(run, w.total, time.Now())
	return errors.Join(result, ledger.WriteReport(ctx, w.store, report), writeReport(w.o, report, stdout, w.stderr))
}

// take takes the job's lease and closes what a killed run left as running. A
// watcher stands by while another run is at work.
func (ses *session) take(ctx context.Context, holder lease.Holder) error {
	for said := ""; ; {
		err := ses.takeNow(ctx, holder)
		who, over := ses.busy(ctx, err)
		if ses.o.Watch == 0 || who == "" || ses.leaseLost() != nil {
			return err
		}
		if who != said {
			if err := notice(ses.o, ses.stderr, "standing_by", "standing by: "+err.Error(), "holder", who); err != nil {
				return err
			}
			said = who
		}
		if err := ses.standBy(ctx, over); err != nil {
			return err
		}
	}
}

// takeNow leaves nothing behind where it cannot take the lease.
func (ses *session) takeNow(ctx context.Context, holder lease.Holder) error {
	l, err := lease.Acquire(ctx, lease.InStore(ses.store), ses.job, holder, ses.o.LeaseTTL)
	if err != nil {
		return err
	}
	tell := ledger.LeaseEvents(ses.log(ses.id))
	_, giveBack := l.Keep(ctx, func(e lease.Event) {
		tell(e)
		if e.Kind == lease.Lost {
			ses.loseLease(e.Err)
		}
	})
	now := time.Now()
	if err := ledger.CloseHolder(ctx, ses.store, l.Before(), now); err != nil {
		return errors.Join(err, giveBack())
	}
	if err := ledger.CloseAbandoned(ctx, ses.store, ses.job, now); err != nil {
		return errors.Join(err, giveBack())
	}
	ses.lease, ses.undo = l, append(ses.undo, giveBack)
	return nil
}

// busy tells from what hinders a run who is at work, and how to see whether
// that is over without a try of one's own; who is "" where it is something else.
func (ses *session) busy(ctx context.Context, err error) (who string, over func() bool) {
	var held *lease.HeldError
	var async *ledger.AtWorkError
	switch {
	case errors.As(err, &held):
		return held.Holder.String(), func() bool { return true }
	case errors.As(err, &async): // it has no lease that others could see
		return "run " + async.Run.RunID, func() bool {
			r, err := ledger.Load(ctx, ses.store, async.Run.RunID)
			return err != nil || r.State.Over()
		}
	}
	return "", nil
}

// standBy waits until it is time for another try.
func (ses *session) standBy(ctx context.Context, over func() bool) error {
	t := time.NewTicker(min(ses.o.Watch, ses.o.LeaseTTL/3))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if over() {
				return nil
			}
		case <-ses.signals:
			return errInterrupted
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (ses *session) setNow(id string) {
	ses.mu.Lock()
	ses.now = id
	ses.mu.Unlock()
}

func (ses *session) running() string {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.now
}

// leaseLost says whether the job's lease is lost.
func (ses *session) leaseLost() error {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.lost
}

// sure waits while it is not known whether the job's lease is still ours, as
// after a store that did not answer, or when this process was suspended.
func (ses *session) sure(ctx context.Context) error {
	if ses.lease == nil {
		return ses.leaseLost()
	}
	if err := ses.lease.Await(ctx); errors.Is(err, lease.ErrLost) {
		return lostLease(err)
	} else if err != nil {
		return err
	}
	return nil
}

func lostLease(err error) error {
	return fmt.Errorf("this run lost its lease, another may be at work: %w", err)
}
