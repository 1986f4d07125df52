package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/lineage"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// grace is how long requests in flight may continue after a stop. The process
// ends within stopWithin in any case.
const (
	grace      = 2500 * time.Millisecond
	stopWithin = 4 * time.Second
)

// runIDVariable names the environment variable with the id of a run: a
// server knows the id before the run has begun.
const runIDVariable = "SEED_RUN_ID"

// scheduleVariable names the environment variable with the schedule whose tick started the run.
const scheduleVariable = "SEED_SCHEDULE"

// startedByVariable names the environment variable in which a server says who started the run.
const startedByVariable = "SEED_STARTED_BY"

// startedBy is the run's ledger.Run.StartedBy.
func (r *run) startedBy() string {
	by, server := os.LookupEnv(startedByVariable)
	if !server && IsTerminal(r.stderr) {
		return ledger.Person
	}
	return by
}

// ErrInterrupted ends a run that a signal or a cancel stopped.
var ErrInterrupted = errors.New("interrupted: what was done is kept, and the same command resumes from there")

// ErrStrict ends a complete run that left dead letters, with --strict.
var ErrStrict = errors.New("the run is complete, but it left dead letters: see `errors`")

// ErrNotDone ends a complete run that left providers paused, unreachable or out
// of budget, with --strict.
var ErrNotDone = errors.New("the run is complete, but some providers are not done: their rows of the report say why; the next run tries them again")

// run is the state of the program while it works, for one run or for all batches
// of a watch: the job's lease, the signals, the simulated web of --web=demo.
type run struct {
	store   store.Store
	o       Options
	job     string
	id      string // of the run, or of the whole watch
	cfg     lane.Config
	lease   *lease.Lease
	signals chan os.Signal
	stop    chan struct{} // closed when a watch is cancelled by its control object; nil for one run
	stderr  io.Writer
	undo    []func() error // what close calls, the last one first
	calls   store.Calls    // of this process outside its workers
	told    ledger.Tally   // those that earlier batches' reports have
	past    chan []ledger.Report
	lineage *lineage.Sender
	events  queue.Out // nil: nobody wants events

	mu        sync.Mutex
	current   string // the id of the run that is at work
	lost      error
	lostLease chan struct{} // closed when lost is set
}

// start acquires the job's lease, and cleans up after killed runs.
func start(ctx context.Context, s store.Store, o Options, stderr io.Writer) (r *run, err error) {
	r = &run{o: o, job: o.Job, id: ledger.NewRunID(time.Now()), signals: make(chan os.Signal, 2), stderr: stderr, lostLease: make(chan struct{})}
	r.store = store.Counted(s, &r.calls)
	r.calls.Shortages.Short = r.short
	scratch.Sweep(time.Now())
	if id := os.Getenv(runIDVariable); id != "" {
		r.id = id
	}
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = r.id, r.job
	signal.Notify(r.signals, Endings()...)
	r.undo = append(r.undo, func() error { signal.Stop(r.signals); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if err := r.acquire(ctx, holder); err != nil {
		if errors.Is(err, store.ErrNotExclusive) {
			err = usage.Errorf("%w", err)
		}
		return r, fmt.Errorf("starting the run: %w", err)
	}
	r.cfg = o.LaneConfig()
	endDemo, err := o.Target().StartDemo(o.RunOptions, &r.cfg.Web)
	if err != nil {
		return r, err
	}
	r.undo = append(r.undo, endDemo)
	r.undo = append(r.undo, r.sweep(ctx), r.readPast(ctx))
	if err := errors.Join(r.openLineage(), r.openEvents(ctx)); err != nil {
		return r, err
	}
	if !beam.Initialized() {
		beam.Init() // before quietBeam, because it sets up its own logging
	}
	quietBeam(r.log(r.id))
	undo, err := o.workerSetup()
	if err == nil {
		r.undo = append(r.undo, undo)
	}
	return r, err
}

// short stops the run's worker in this process: its writes wait for the run's lease, which
// cannot be renewed.
func (r *run) short(lack *fault.Shortage) {
	if w, ok := lane.Find(r.running()); ok {
		w.Stop(lack)
	}
}

// Endings are the signals that end a program as it should: Ctrl-C, SIGTERM, and the SIGHUP of a
// terminal that is closed, except for what nohup started.
func Endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// log returns the log of one run.
func (r *run) log(runID string) *slog.Logger {
	cfg := r.o.LaneConfig()
	cfg.RunID = runID
	return lane.RunLogger(cfg)
}

// await returns a value from c, or the reason why the run ends before one comes.
func await[T any](ctx context.Context, r *run, c <-chan T) (got T, err error) {
	select {
	case got = <-c:
	case <-r.signals:
		err = ErrInterrupted
	case <-r.stop:
		err = errWatchCancelled
	case <-r.lostLease:
		err = r.leaseLost()
	case <-ctx.Done():
		err = ctx.Err()
	}
	return got, err
}

// interruptible does work that can take minutes before a run begins, and stops it
// when the run ends.
func (r *run) interruptible(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- work(ctx)
	}()
	err, ended := await(ctx, r, done)
	if ended != nil {
		cancel()
		for range done { // the reason for the end is returned, not the error of the interrupted work
		}
		return ended
	}
	return err
}

// sweepAfter is how long a run works before sweep begins: for a run that has little
// to do, walking the store would take longer than its work.
const sweepAfter = time.Minute

// sweep removes half-written files of killed runs. It works in parallel to the
// run, because walking a directory of a million domains takes minutes. It ends
// with the run at the latest.
func (r *run) sweep(ctx context.Context) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	begin := time.AfterFunc(sweepAfter, func() {
		_, err := store.SweepTemp(ctx, r.store, time.Now().Add(-time.Hour))
		done <- err
	})
	return func() error {
		cancel()
		if begin.Stop() {
			return nil
		}
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) { // the run's result is the same
			r.log(r.id).Warn("temporary_files_stay", "error", ledger.Redact(err.Error()))
		}
		return nil
	}
}

// close undoes what start did, in reverse order.
func (r *run) close() error {
	var err error
	for _, undo := range slices.Backward(r.undo) {
		err = errors.Join(err, undo())
	}
	r.undo = nil
	return err
}

// once runs the graph once. The report is nil when the run ended before there was one.
func (r *run) once(ctx context.Context, id string, build graph) (*ledger.Report, ledger.Tally, error) {
	o, s := r.o, r.store
	run := ledger.Run{RunID: id, Job: r.job, Runner: o.Runner, StartedAt: time.Now(), Options: o.Public(),
		Schedule: os.Getenv(scheduleVariable), StartedBy: r.startedBy()}
	if err := r.interruptible(ctx, r.awaitLease); err != nil {
		return nil, ledger.Tally{}, err
	}
	if r.cfg.Leases {
		err := r.interruptible(ctx, func(ctx context.Context) error { return lane.WaitForLanes(ctx, s, r.job, r.logWaiting) })
		if err != nil {
			return nil, ledger.Tally{}, err
		}
	}
	forceID, err := ledger.ForceID(ctx, s, r.job, o.Target().Filters(o.RunOptions), o.Force)
	if err != nil {
		return nil, ledger.Tally{}, err
	}
	if o.Force {
		run.ForceID = forceID
	}
	if err := ledger.Start(ctx, s, run); err != nil {
		return nil, ledger.Tally{}, err
	}
	endLog, err := lane.KeepLog(ctx, s, id, "")
	if err != nil {
		return nil, ledger.Tally{}, err
	}
	r.lineage.Send(r.event(run, nil))
	endEvents, err := r.beginEvents(ctx, id)
	if err != nil {
		return nil, ledger.Tally{}, err
	}
	report, total, err := r.inLedger(ctx, run, build)
	if report != nil {
		r.lineage.Send(r.event(run, report))
	}
	endEvents(report)
	r.logEnd(id, report, err)
	// The log is for people who look later: without its last lines the run's result is the same.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), logWithin)
	defer cancel()
	if err := endLog(last); err != nil {
		r.log(id).Warn("log_not_kept", "error", ledger.Redact(err.Error()))
	}
	return report, total, err
}

// logWithin bounds the last write of a run's log.
const logWithin = 5 * time.Second

// logEnd writes how the run ended into its log, and into a JSON log on standard error.
func (r *run) logEnd(id string, report *ledger.Report, err error) {
	cfg := r.o.LaneConfig()
	cfg.RunID = id
	log := lane.KeptLogger(cfg)
	if r.o.LogFormat == "json" {
		log = lane.RunLogger(cfg)
	}
	switch {
	case report != nil && report.Error == "":
		log.Info("run_ended", "state", report.State)
	case report != nil:
		log.Error("run_ended", "state", report.State, "error", report.Error)
	case err != nil:
		log.Error("run_ended", "error", ledger.ErrorText(err))
	}
}

// ownCalls returns the store calls of this process outside its workers that no report
// has yet: for the lease, the run's state, its log and its control object.
func (r *run) ownCalls() ledger.Tally {
	var now ledger.Tally
	now.Store = r.calls.Snapshot()
	now.StoreBytes.Read, now.StoreBytes.Written = r.calls.Bytes()
	part := now.Minus(r.told)
	r.told = now
	return part
}

// inLedger runs the graph of a run that is in the ledger.
func (r *run) inLedger(ctx context.Context, run ledger.Run, build graph) (*ledger.Report, ledger.Tally, error) {
	o, id := r.o, run.RunID
	r.setCurrent(id)
	quietBeam(r.log(id))
	cfg := r.cfg
	cfg.RunID = id
	p, scope := beam.NewPipelineWithRoot()
	build(scope, cfg, run.ForceID)
	lane.Under(id, r.lease)
	done := make(chan error, 1)
	go func() { done <- r.execute(ctx, id, p) }()
	show := newProgressLine(o, r.stderr)
	ended := r.wait(ctx, done, show, id)
	show.end()
	return r.conclude(ctx, run, ended)
}

// wait waits for the end of the pipeline, and ends it after a signal or the loss of the lease.
func (r *run) wait(ctx context.Context, done <-chan error, show *progressLine, runID string) outcome {
	var out outcome
	var deadline <-chan time.Time
	lost := r.lostLease
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var workersDue <-chan time.Time
	if r.o.Elsewhere() {
		workersDue = time.After(r.o.workersWithin())
	}
	var plan lane.Plan
	live := func() {
		if w, ok := lane.Find(runID); ok {
			out.live, plan = w.Live(), w.Plan()
		}
	}
	for {
		select {
		case out.err = <-done:
			live()
			return out
		case <-tick.C:
			live()
			show.update(out.live, plan)
		case <-workersDue:
			if workersDue = nil; r.noWorkerYet(ctx, runID) {
				workersDue = time.After(workersAgain)
			}
		case <-r.signals:
			if out.interrupted { // the second signal ends the run at once
				live()
				return out
			}
			out.interrupted = true
			deadline = time.After(r.o.stopWithin())
			r.stopWorkers(ctx, runID)
		case <-lost: // loseLease has stopped a worker of this process
			lost = nil
			if r.o.Remote() {
				deadline = time.After(r.o.stopWithin())
				r.stopWorkers(ctx, runID)
			}
		case <-deadline:
			live()
			return out
		}
	}
}

// workersAgain is the time between two warnings that no worker has begun.
const workersAgain = 45 * time.Second

// workersWithin is how long it usually takes until a worker elsewhere has written
// the first line of its log to the store.
func (o *Options) workersWithin() time.Duration {
	if o.Runner == "dataflow" { // it starts machines first
		return workersAgain
	}
	return 20 * time.Second
}

// noWorkerYet reports whether no worker has begun, and then logs a warning: a
// runner that waits for free slots gives no sign of it.
func (r *run) noWorkerYet(ctx context.Context, runID string) bool {
	seen, err := ledger.WorkerLogged(ctx, r.store, runID)
	switch {
	case err != nil:
		r.log(runID).Warn("no_worker_yet", "error", ledger.Redact(err.Error()))
	case !seen:
		r.log(runID).Warn("no_worker_yet", "runner", r.o.Runner, "parallelism", r.o.beam("parallelism"), "advice",
			"no worker has begun; if the cluster has fewer free slots than --parallelism the runner waits for them: lower it, add workers, or look at the runner's own page")
	}
	return !seen
}
