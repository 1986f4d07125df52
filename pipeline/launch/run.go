package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// grace is how long requests in flight may continue after a stop; the process
// ends within stopWithin whatever they do.
const (
	grace      = 2500 * time.Millisecond
	stopWithin = 4 * time.Second
)

// RunIDVariable names the environment variable that gives a run its id: a
// server knows the id before the run has begun.
const RunIDVariable = "SEED_RUN_ID"

// ErrInterrupted ends a run that a signal or a cancel stopped.
var ErrInterrupted = errors.New("interrupted: what was done is kept, the same command goes on from there")

// ErrStrict ends a complete run with dead letters under --strict.
var ErrStrict = errors.New("the run is complete, but it left dead letters: see `dead-letters list`")

// ErrNotDone ends a complete run that left providers paused, unreachable or
// out of budget under --strict.
var ErrNotDone = errors.New("the run is complete, but some providers are not done: their rows of the report say why; the next run tries them again")

// run is what the program holds while it works, for one run or, watching,
// for many: the job's lease, the signals, the simulated web if asked for.
type run struct {
	store   store.Store
	o       Options
	job     string
	id      string // of the run; of the whole watch
	cfg     lane.Config
	lease   *lease.Lease
	signals chan os.Signal
	stop    chan struct{} // closed when a watch's control object says cancel; nil for one run
	stderr  io.Writer
	undo    []func() error

	mu        sync.Mutex
	current   string // the id of the run that is at work
	lost      error
	lostLease chan struct{} // closed when lost is set
}

// start acquires the job's lease and tidies up behind a killed run.
func start(ctx context.Context, s store.Store, o Options, stderr io.Writer) (r *run, err error) {
	r = &run{store: s, o: o, job: o.Job, id: ledger.NewRunID(time.Now()), signals: make(chan os.Signal, 2), stderr: stderr, lostLease: make(chan struct{})}
	if id := os.Getenv(RunIDVariable); id != "" {
		r.id = id
	}
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = r.id, r.job
	signal.Notify(r.signals, os.Interrupt, syscall.SIGTERM)
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
	endDemo, err := o.Target().StartDemo(o.Common, &r.cfg.Web)
	if err != nil {
		return r, err
	}
	r.undo = append(r.undo, endDemo)
	r.undo = append(r.undo, sweep(ctx, s))
	if !beam.Initialized() {
		beam.Init() // first: it sets up logging of its own
	}
	quietBeam(r.log(r.id))
	return r, r.interruptible(ctx, func(ctx context.Context) error {
		undo, err := o.workerSetup(ctx)
		if err == nil {
			r.undo = append(r.undo, undo)
		}
		return err
	})
}

// log is the log of one run.
func (r *run) log(runID string) *slog.Logger {
	cfg := r.o.LaneConfig()
	cfg.RunID = runID
	return lane.RunLogger(cfg)
}

// await gives what comes, or what ends the run before that.
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

// interruptible does what can take minutes before a run begins; what ends the
// run ends it.
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
		for range done { // what ended the run counts, and not what that made of the work
		}
		return ended
	}
	return err
}

// sweep removes what killed runs left half written, in parallel to the run: to walk a
// directory of a million domains takes minutes. It ends with the run at the latest.
func sweep(ctx context.Context, s store.Store) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := store.SweepTemp(ctx, s, time.Now().Add(-time.Hour))
		done <- err
	}()
	return func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// loseLease stops the run that is at work.
func (r *run) loseLease(lost error) {
	lost = lostLease(lost)
	r.mu.Lock()
	r.lost = lost
	id := r.current
	r.mu.Unlock()
	close(r.lostLease)
	if w, ok := lane.Find(id); ok {
		w.Stop(lost)
	}
}

// close undoes what start did, last things first.
func (r *run) close() error {
	var err error
	for _, undo := range slices.Backward(r.undo) {
		err = errors.Join(err, undo())
	}
	r.undo = nil
	return err
}

// once runs the graph once. Without a report the run did not get that far.
func (r *run) once(ctx context.Context, id string, build graph) (*ledger.Report, ledger.Tally, error) {
	o, s := r.o, r.store
	run := ledger.Run{RunID: id, Job: r.job, Runner: o.Runner, StartedAt: time.Now(), Options: o.Public()}
	if err := r.interruptible(ctx, r.awaitLease); err != nil {
		return nil, ledger.Tally{}, err
	}
	if r.cfg.Leases {
		err := r.interruptible(ctx, func(ctx context.Context) error { return lane.WaitForLanes(ctx, s, r.job, r.logWaiting) })
		if err != nil {
			return nil, ledger.Tally{}, err
		}
	}
	forceID, err := ledger.ForceID(ctx, s, r.job, o.Target().Filters(o.Common), o.Force)
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
	report, total, err := r.inLedger(ctx, run, build)
	r.logEnd(id, report, err)
	// The log is for those who look later: without its last lines the run is no other.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), logWithin)
	defer cancel()
	if err := endLog(last); err != nil {
		r.log(id).Warn("log_not_kept", "error", ledger.Redact(err.Error()))
	}
	return report, total, err
}

// logWithin bounds the last write of a run's log.
const logWithin = 5 * time.Second

// logEnd writes into the run's log how it ended, and to a reader of JSON logs.
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
		log.Error("run_ended", "error", ledger.Why(err))
	}
}

// inLedger runs the graph of a run that the ledger has.
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
	runnerJob, async := "", o.async()
	go func() {
		if !async {
			done <- execute(ctx, o, p)
			return
		}
		var err error
		runnerJob, err = submit(ctx, o, p)
		done <- err
	}()
	show := newProgressLine(o, r.stderr)
	ended := r.wait(ctx, done, show, id)
	show.end()
	if async && ended.err == nil && !ended.interrupted && r.leaseLost() == nil {
		return nil, ledger.Tally{}, r.detach(ctx, id, runnerJob)
	}
	return r.conclude(ctx, run, ended)
}

// outcome is how a run's pipeline ended.
type outcome struct {
	err         error
	interrupted bool
	live        ledger.Tally // what this process counted, for a run cut short
}

// wait lets the pipeline end, or a signal or the loss of the lease end it.
func (r *run) wait(ctx context.Context, done <-chan error, show *progressLine, runID string) outcome {
	var out outcome
	var deadline <-chan time.Time
	lost := r.lostLease
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var look <-chan time.Time
	if r.o.Elsewhere() {
		look = time.After(workersWithin)
	}
	live := func() {
		if w, ok := lane.Find(runID); ok {
			out.live = w.Live()
		}
	}
	for {
		select {
		case out.err = <-done:
			live()
			return out
		case <-tick.C:
			live()
			show.update(out.live)
		case <-look:
			if look = nil; r.noWorkerYet(ctx, runID) {
				look = time.After(workersWithin)
			}
		case <-r.signals:
			if out.interrupted { // the second one: at once
				live()
				return out
			}
			out.interrupted = true
			deadline = time.After(r.o.stopWithin())
			r.stopWorkers(ctx, runID)
		case <-lost: // a worker of this process was stopped with it
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

// workersWithin is how long workers elsewhere usually need before one has kept the
// first lines of its log.
const workersWithin = 45 * time.Second

// noWorkerYet says that no worker has begun: a runner that waits for free slots
// says nothing itself.
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

// leaseKept says at a run's end whether the job's lease was ours all the time. One
// that was interrupted does not wait for long to learn it.
func (r *run) leaseKept(ctx context.Context, interrupted bool) error {
	if interrupted {
		within, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		ctx = within
	}
	err := r.awaitLease(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it could not be learnt in time whether this run still had its lease")
	}
	return err
}

// conclude writes the run's last state and its report.
func (r *run) conclude(ctx context.Context, record ledger.Run, out outcome) (*ledger.Report, ledger.Tally, error) {
	s, o := r.store, r.o
	cause := r.leaseKept(ctx, out.interrupted)
	if w, ok := lane.Find(record.RunID); ok && cause == nil {
		cause = w.Cause()
	}
	// A store that is gone does not take how the run ended; the user has it all the same.
	fail := func(err error) (*ledger.Report, ledger.Tally, error) {
		record.State, record.FinishedAt = ledger.Failed, time.Now().UTC()
		if out.interrupted {
			record.State, cause = ledger.Interrupted, errors.Join(cause, ErrInterrupted)
		}
		err = errors.Join(cause, fmt.Errorf("how the run ended is not in the store: %w", err))
		record.Error = ledger.Why(err)
		report := ledger.BuildReport(o.Target().Job, record, out.live, time.Now())
		return &report, out.live, err
	}
	lanes, err := ledger.Progresses(ctx, s, record.RunID)
	if err != nil {
		return fail(err)
	}
	total, err := ledger.ReadTotal(ctx, s, record.RunID)
	cut := errors.Is(err, store.ErrNotExist)
	if cut {
		total, err = r.soFar(out, lanes), nil
	}
	if err != nil {
		return fail(err)
	}
	control, err := ledger.ReadControl(ctx, s, record.RunID)
	if err != nil {
		return fail(err)
	}
	cause = r.failure(cause, total)
	delete(total.Counts, ledger.Outage)
	delete(total.Counts, ledger.OutageTLS)
	state, result := r.verdict(ctx, record, ending{out, cause, total, control.Action == ledger.ActionCancel, cut})
	if err := store.Sync(ctx, s); err != nil { // first: a run that is done is kept
		return fail(err)
	}
	record.State, record.FinishedAt = state, time.Now()
	report := ledger.BuildReport(o.Target().Job, record, total, record.FinishedAt, lanes...)
	if j := o.Target(); j.Extend != nil {
		if err := j.Extend(ctx, s, &report); err != nil {
			result = errors.Join(result, fmt.Errorf("the run's report is not whole: %w", err))
			state = ledger.Failed
		}
	}
	why := result
	if state == ledger.Cancelled {
		why = nil
	}
	kept, err := ledger.Finish(ctx, s, record.RunID, state, why, record.FinishedAt)
	if err != nil {
		return fail(err)
	}
	report.State, report.Error = kept.State, kept.Error
	if err := ledger.WriteReport(ctx, s, report); err != nil {
		return fail(err)
	}
	if state == ledger.Done && o.Force {
		if err := ledger.ClearForce(ctx, s, record.Job, record.ForceID); err != nil {
			return fail(err)
		}
	}
	if err := lane.Close(record.RunID); err != nil && result == nil {
		result = err
	}
	if result == nil && o.Strict {
		result = leftOver(o.Target(), total.Counts)
	}
	return &report, total, result
}

// failure is why a run has failed whatever its runner says: what is known
// already, or what its counts say.
func (r *run) failure(known error, total ledger.Tally) error {
	if known != nil {
		return known
	}
	if f := r.o.Target().Failure; f != nil {
		if err := f(total.Counts); err != nil {
			return err
		}
	}
	if total.Counts[ledger.WorkersStopped] > 0 {
		return errWorkerStopped
	}
	return nil
}

// ending is all that says how a run ended.
type ending struct {
	outcome
	failure   error
	total     ledger.Tally
	cancelled bool // by its control object
	cut       bool // it left no total
}

// verdict is a run's last state, and the error with which the program ends: the
// first reason that holds.
func (r *run) verdict(ctx context.Context, record ledger.Run, e ending) (ledger.State, error) {
	switch {
	case e.failure != nil:
		return ledger.Failed, e.failure
	case e.interrupted:
		return ledger.Interrupted, ErrInterrupted
	case e.cancelled:
		return ledger.Cancelled, ErrInterrupted
	case e.err != nil:
		return ledger.Failed, fmt.Errorf("the pipeline stopped: %w", e.err)
	case e.cut:
		return ledger.Failed, errCutShort
	case e.total.Counts[ledger.LanesLost] > 0:
		return ledger.Failed, errLanesLost
	}
	if err := r.o.Target().Purpose.Unmet(ctx, r.store, record, e.total); err != nil {
		return ledger.Failed, err
	}
	return ledger.Done, nil
}

// leftOver says what a complete run left for a person or for the next run.
func leftOver(j pipeline.Job, counts ledger.Counts) error {
	switch {
	case counts["dead_letters"] > 0:
		return ErrStrict
	case j.NotDone != "" && counts[j.NotDone] > 0:
		return ErrNotDone
	}
	return nil
}

func writeReport(o Options, r ledger.Report, stdout, stderr io.Writer) error {
	switch o.Report {
	case "-":
		return r.WriteJSON(stdout)
	case "":
	default:
		f, err := os.Create(o.Report)
		if err != nil {
			return fmt.Errorf("writing --report: %w", err)
		}
		if err := errors.Join(r.WriteJSON(f), f.Close()); err != nil {
			return fmt.Errorf("writing --report: %w", err)
		}
	}
	if err := r.WriteTable(stdout, o.Target().Job.Counts); err != nil {
		return err
	}
	key := path.Join("runs", r.RunID, "report.json")
	return notice(o, stderr, "run_reported", "report: "+key, "run_id", r.RunID, "state", r.State, "key", key)
}

// notice writes a line for a person, or an event into JSON logs: their lines
// must all be JSON.
func notice(o Options, stderr io.Writer, event, line string, args ...any) error {
	if o.LogFormat == "json" {
		lane.Logger(o.LogFormat, o.Level()).Info(event, args...)
		return nil
	}
	_, err := fmt.Fprintln(stderr, printable.Line(line))
	return err
}

// quietBeam keeps the runner's own chatter off the user's log: errors stay, in
// the form of that log.
func quietBeam(log *slog.Logger) {
	slog.SetDefault(slog.New(&errorsOnly{log.Handler()}))
	lane.TakeLibraryLines(log) // after SetDefault, which takes them too and would drop them
	beamlog.SetLogger(quiet{})
}

// errorsOnly lets a library's errors through.
type errorsOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h *errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h *errorsOnly) WithAttrs(a []slog.Attr) slog.Handler {
	return &errorsOnly{h.Handler.WithAttrs(a)}
}

// WithGroup implements slog.Handler.
func (h *errorsOnly) WithGroup(name string) slog.Handler {
	return &errorsOnly{h.Handler.WithGroup(name)}
}

type quiet struct{}

// Log implements Beam's log.Logger.
func (quiet) Log(_ context.Context, sev beamlog.Severity, _ int, msg string) {
	if sev >= beamlog.SevError && !slices.Contains([]string{"", "EOF"}, msg) {
		slog.Error(msg)
	}
}
