package pipeline

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
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// grace is how long requests in flight may go on after a stop; the process
// ends within stopWithin whatever they do.
const (
	grace      = 2500 * time.Millisecond
	stopWithin = 4 * time.Second
)

// runJob brackets one run of a job's graph with everything around it.
func runJob(ctx context.Context, s store.Store, o Options, job, filters string, stdout, stderr io.Writer, build func(beam.Scope, lane.Config, string)) (err error) {
	if o.beamDryRun() {
		return printDataflow(ctx, o, job, stdout, build)
	}
	ses, err := begin(ctx, s, o, job, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ses.end(ctx)) }()
	report, _, err := ses.run(ctx, ses.id, filters, build)
	if report == nil {
		return err
	}
	return errors.Join(err, writeReport(o, *report, stdout, stderr))
}

// session is what the program holds while it works, for one run or, watching,
// for many: the job's lease, the signals, the simulated web if asked for.
type session struct {
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
	now       string // the run that is at work
	lost      error
	lostLease chan struct{} // closed when lost is set
}

// begin takes the job's lease and tidies up behind a killed run.
func begin(ctx context.Context, s store.Store, o Options, job string, stderr io.Writer) (ses *session, err error) {
	ses = &session{store: s, o: o, job: job, id: ledger.NewRunID(time.Now()), signals: make(chan os.Signal, 2), stderr: stderr, lostLease: make(chan struct{})}
	if id := os.Getenv(RunIDVariable); id != "" {
		ses.id = id
	}
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = ses.id, job
	signal.Notify(ses.signals, os.Interrupt, syscall.SIGTERM)
	ses.undo = append(ses.undo, func() error { signal.Stop(ses.signals); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, ses.end(ctx))
		}
	}()
	if err := ses.take(ctx, holder); err != nil {
		if errors.Is(err, store.ErrNotExclusive) {
			err = &usageError{err}
		}
		return ses, fmt.Errorf("starting the run: %w", err)
	}
	ses.cfg = o.laneConfig(job)
	endDemo, err := startDemo(o, job, &ses.cfg.Web)
	if err != nil {
		return ses, err
	}
	ses.undo = append(ses.undo, endDemo)
	ses.undo = append(ses.undo, sweep(ctx, s))
	if !beam.Initialized() {
		beam.Init() // first: it sets up logging of its own
	}
	quietBeam(ses.log(ses.id))
	return ses, ses.under(ctx, func(ctx context.Context) error {
		undo, err := o.workerSetup(ctx)
		if err == nil {
			ses.undo = append(ses.undo, undo)
		}
		return err
	})
}

// log is the log of one of the session's runs.
func (ses *session) log(runID string) *slog.Logger {
	cfg := ses.o.laneConfig(ses.job)
	cfg.RunID = runID
	return lane.RunLogger(cfg)
}

// await gives what comes, or what ends the session before that.
func await[T any](ctx context.Context, ses *session, c <-chan T) (got T, err error) {
	select {
	case got = <-c:
	case <-ses.signals:
		err = errInterrupted
	case <-ses.stop:
		err = errWatchCancelled
	case <-ses.lostLease:
		err = ses.leaseLost()
	case <-ctx.Done():
		err = ctx.Err()
	}
	return got, err
}

// under does what can take minutes before a run begins; what ends the session
// ends it.
func (ses *session) under(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- work(ctx)
	}()
	err, ended := await(ctx, ses, done)
	if ended != nil {
		cancel()
		for range done { // what ended the session counts, and not what that made of the work
		}
		return ended
	}
	return err
}

// sweep removes what killed runs left half written, beside the run: to walk a
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

// startDemo starts the simulated web where --web=demo asks for it, and leads a
// client there.
func startDemo(o Options, job string, client *web.Config) (end func() error, err error) {
	if o.Web != "demo" {
		return func() error { return nil }, nil
	}
	sim := webtest.New(webtest.Options{Seed: 1})
	if j, _ := jobNamed(job); j.demo != nil {
		if err := j.demo(o, sim); err != nil {
			return nil, fmt.Errorf("laying out the simulated sites: %w", err)
		}
	}
	if err := sim.Start(); err != nil {
		return nil, fmt.Errorf("starting the simulated web: %w", err)
	}
	if client.Resolver, err = sim.DNS(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the simulated web: %w", err), sim.Close())
	}
	client.ConnectTo, client.RootCAs = sim.Addr(), sim.CAPEM()
	return sim.Close, nil
}

// loseLease stops the run that is at work.
func (ses *session) loseLease(lost error) {
	lost = lostLease(lost)
	ses.mu.Lock()
	ses.lost = lost
	id := ses.now
	ses.mu.Unlock()
	close(ses.lostLease)
	if w, ok := lane.Find(id); ok {
		w.Stop(lost)
	}
}

// end gives back what begin took, last things first.
func (ses *session) end(context.Context) error {
	var err error
	for _, undo := range slices.Backward(ses.undo) {
		err = errors.Join(err, undo())
	}
	ses.undo = nil
	return err
}

// run runs the graph once. Without a report the run did not get that far.
func (ses *session) run(ctx context.Context, id, filters string, build func(beam.Scope, lane.Config, string)) (*ledger.Report, ledger.Tally, error) {
	o, s := ses.o, ses.store
	run := ledger.Run{RunID: id, Job: ses.job, Runner: o.Runner, StartedAt: time.Now(), Options: o.public()}
	if err := ses.under(ctx, ses.sure); err != nil {
		return nil, ledger.Tally{}, err
	}
	if ses.cfg.Leases {
		err := ses.under(ctx, func(ctx context.Context) error { return lane.Vacate(ctx, s, ses.job, ses.waiting) })
		if err != nil {
			return nil, ledger.Tally{}, err
		}
	}
	forceID, err := ledger.ForceID(ctx, s, ses.job, filters, o.Force)
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
	report, total, err := ses.inLedger(ctx, run, build)
	ses.sayEnd(id, report, err)
	// The log is for those who look later: without its last lines the run is no other.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), logWithin)
	defer cancel()
	if err := endLog(last); err != nil {
		ses.log(id).Warn("log_not_kept", "error", ledger.Redact(err.Error()))
	}
	return report, total, err
}

// logWithin bounds the last write of a run's log.
const logWithin = 5 * time.Second

// sayEnd writes into the run's log how it ended, and to a reader of JSON logs.
func (ses *session) sayEnd(id string, report *ledger.Report, err error) {
	cfg := ses.o.laneConfig(ses.job)
	cfg.RunID = id
	log := lane.KeptLogger(cfg)
	if ses.o.LogFormat == "json" {
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
func (ses *session) inLedger(ctx context.Context, run ledger.Run, build func(beam.Scope, lane.Config, string)) (*ledger.Report, ledger.Tally, error) {
	o, id := ses.o, run.RunID
	ses.setNow(id)
	quietBeam(ses.log(id))
	cfg := ses.cfg
	cfg.RunID = id
	p, scope := beam.NewPipelineWithRoot()
	build(scope, cfg, run.ForceID)
	lane.Under(id, ses.lease)
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
	show := newProgressLine(o, ses.stderr)
	ended := ses.wait(ctx, done, show, id)
	show.end()
	if async && ended.err == nil && !ended.interrupted && ses.leaseLost() == nil {
		return nil, ledger.Tally{}, ses.detach(ctx, id, runnerJob)
	}
	return ses.conclude(ctx, run, ended)
}

// outcome is how a run's pipeline ended.
type outcome struct {
	err         error
	interrupted bool
	live        ledger.Tally // what this process counted, for a run cut short
}

// wait lets the pipeline end, or a signal or the loss of the lease end it.
func (ses *session) wait(ctx context.Context, done <-chan error, show *progressLine, runID string) outcome {
	var out outcome
	var deadline <-chan time.Time
	lost := ses.lostLease
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var look <-chan time.Time
	if ses.o.elsewhere() {
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
			if look = nil; ses.noWorkerYet(ctx, runID) {
				look = time.After(workersWithin)
			}
		case <-ses.signals:
			if out.interrupted { // the second one: at once
				live()
				return out
			}
			out.interrupted = true
			deadline = time.After(ses.o.stopWithin())
			ses.stopWorkers(ctx, runID)
		case <-lost: // a worker of this process was stopped with it
			lost = nil
			if slices.Contains(remote, ses.o.Runner) {
				deadline = time.After(ses.o.stopWithin())
				ses.stopWorkers(ctx, runID)
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

// noWorkerYet tells that no worker has begun: a runner that waits for free slots
// says nothing itself.
func (ses *session) noWorkerYet(ctx context.Context, runID string) bool {
	seen, err := ledger.WorkerLogged(ctx, ses.store, runID)
	switch {
	case err != nil:
		ses.log(runID).Warn("no_worker_yet", "error", ledger.Redact(err.Error()))
	case !seen:
		ses.log(runID).Warn("no_worker_yet", "runner", ses.o.Runner, "parallelism", ses.o.beam("parallelism"), "advice",
			"no worker has begun; if the cluster has fewer free slots than --parallelism the runner waits for them: lower it, add workers, or look at the runner's own page")
	}
	return !seen
}

// stillOurs says at a run's end whether the job's lease was ours all the time. One
// that was interrupted does not wait for long to learn it.
func (ses *session) stillOurs(ctx context.Context, interrupted bool) error {
	if interrupted {
		within, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		ctx = within
	}
	err := ses.sure(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it could not be learnt in time whether this run still had its lease")
	}
	return err
}

// conclude writes the run's last state and its report.
func (ses *session) conclude(ctx context.Context, run ledger.Run, out outcome) (*ledger.Report, ledger.Tally, error) {
	s, o := ses.store, ses.o
	cause := ses.stillOurs(ctx, out.interrupted)
	if w, ok := lane.Find(run.RunID); ok && cause == nil {
		cause = w.Cause()
	}
	// A store that is gone does not take how the run ended; the user has it all the same.
	fail := func(err error) (*ledger.Report, ledger.Tally, error) {
		run.State, run.FinishedAt = ledger.Failed, time.Now().UTC()
		if out.interrupted {
			run.State, cause = ledger.Interrupted, errors.Join(cause, errInterrupted)
		}
		err = errors.Join(cause, fmt.Errorf("how the run ended is not in the store: %w", err))
		run.Error = ledger.Why(err)
		report := ledger.BuildReport(run, out.live, time.Now())
		return &report, out.live, err
	}
	lanes, err := ledger.Progresses(ctx, s, run.RunID)
	if err != nil {
		return fail(err)
	}
	total, err := ledger.ReadTotal(ctx, s, run.RunID)
	cut := errors.Is(err, store.ErrNotExist)
	if cut {
		total, err = ses.soFar(out, lanes), nil
	}
	if err != nil {
		return fail(err)
	}
	control, err := ledger.ReadControl(ctx, s, run.RunID)
	if err != nil {
		return fail(err)
	}
	switch {
	case cause != nil:
	case total.Counts[ledger.OutageTLS] > 0:
		cause = seed.ErrOutageTLS
	case total.Counts[ledger.Outage] > 0:
		cause = seed.ErrOutage
	case total.Counts[ledger.WorkersStopped] > 0:
		cause = errWorkerStopped
	}
	delete(total.Counts, ledger.Outage)
	delete(total.Counts, ledger.OutageTLS)
	state, result := ledger.Done, error(nil)
	switch {
	case cause != nil:
		state, result = ledger.Failed, cause
	case out.interrupted:
		state, result = ledger.Interrupted, errInterrupted
	case control.Action == ledger.ActionCancel:
		state, result = ledger.Cancelled, errInterrupted
	case out.err != nil:
		state, result = ledger.Failed, fmt.Errorf("the pipeline stopped: %w", out.err)
	case cut:
		state, result = ledger.Failed, errCutShort
	case total.Counts[ledger.LanesLost] > 0:
		state, result = ledger.Failed, errLanesLost
	default:
		if err := total.Unmet(ctx, s, run.Job, run.RunID); err != nil {
			state, result = ledger.Failed, err
		}
	}
	if err := store.Sync(ctx, s); err != nil { // first: a run that is done is kept
		return fail(err)
	}
	run.State, run.FinishedAt = state, time.Now()
	report := ledger.BuildReport(run, total, run.FinishedAt, lanes...)
	if j, _ := jobNamed(run.Job); j.extend != nil {
		if err := j.extend(ctx, s, &report); err != nil {
			result = errors.Join(result, fmt.Errorf("the run's report is not whole: %w", err))
			state = ledger.Failed
		}
	}
	why := result
	if state == ledger.Cancelled {
		why = nil
	}
	kept, err := ledger.Finish(ctx, s, run.RunID, state, why, run.FinishedAt)
	if err != nil {
		return fail(err)
	}
	report.State, report.Error = kept.State, kept.Error
	if err := ledger.WriteReport(ctx, s, report); err != nil {
		return fail(err)
	}
	if state == ledger.Done && o.Force {
		if err := ledger.ClearForce(ctx, s, run.Job, run.ForceID); err != nil {
			return fail(err)
		}
	}
	if err := lane.Close(run.RunID); err != nil && result == nil {
		result = err
	}
	if result == nil && o.Strict {
		result = leftOver(total.Counts)
	}
	return &report, total, result
}

// leftOver says what a complete run left for a person or for the next run.
func leftOver(counts ledger.Counts) error {
	switch {
	case counts["dead_letters"] > 0:
		return errStrict
	case counts[docs.ProvidersNotDone] > 0:
		return errNotDone
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
	if err := r.WriteTable(stdout); err != nil {
		return err
	}
	key := path.Join("runs", r.RunID, "report.json")
	return notice(o, stderr, "run_reported", "report: "+key, "run_id", r.RunID, "state", r.State, "key", key)
}

// notice tells a person a line, or a reader of JSON logs an event: their lines
// must all be JSON.
func notice(o Options, stderr io.Writer, event, line string, args ...any) error {
	if o.LogFormat == "json" {
		lane.Logger(o.LogFormat, o.level()).Info(event, args...)
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
