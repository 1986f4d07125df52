package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/testdata"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// grace is how long requests in flight may go on after a stop; the process
// ends within stopWithin whatever they do.
const (
	grace      = 2500 * time.Millisecond
	stopWithin = 4 * time.Second
)

// runSeed runs the seed job from its checks to its report.
func runSeed(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	cfg := seedConfig(o)
	if err := matches(ctx, s, o); err != nil {
		return err
	}
	if o.Until != "" {
		return preview(ctx, s, o, cfg, stdout)
	}
	if o.Watch > 0 && o.Streaming {
		return stream(ctx, s, o, cfg, stdout, stderr)
	}
	if o.Watch > 0 && !o.beamDryRun() { // each batch is a job of the same form
		return watch(ctx, s, o, cfg, stdout, stderr)
	}
	return runJob(ctx, s, o, seed.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, forceID string) {
		cfg.Lane, cfg.ForceID = l, forceID
		Seed(scope, cfg)
	})
}

func seedConfig(o Options) seed.Config {
	return seed.Config{
		Lanes: o.Lanes, Country: o.Country, Category: o.Category, Date: o.Date, OutageThreshold: o.OutageThreshold,
		Lane: lane.Config{LogFormat: o.LogFormat, LogLevel: o.level()},
		Collect: seed.Collect{MaxCrawlDelay: o.MaxCrawlDelay, FollowIndex: o.FollowIndex, MaxChildSitemaps: o.MaxChildSitemaps,
			Feeds: o.Feeds, Homepage: o.Homepage, ParallelFetch: o.Parallel, RobotsCache: o.RobotsCache},
	}
}

// filterHash names the part of the bucket that a run is about, so that a
// forced run that was killed is gone on with by the same command only.
func filterHash(o Options) string {
	sum := sha256.Sum256([]byte(o.Country + "\x00" + o.Category + "\x00" + o.Date))
	return hex.EncodeToString(sum[:8])
}

// openStore opens the user's store. One that is not there, or may not be
// read, is bad usage; any other trouble is the store's.
func openStore(ctx context.Context, o *Options, stderr io.Writer) (store.Store, error) {
	if o.beamDryRun() { // the job comes from the options alone
		return store.Open(ctx, "mem://dry-run")
	}
	if _, err := os.Stat(o.Store); o.sample && o.dry() && errors.Is(err, fs.ErrNotExist) {
		return memorySample(ctx) // what only looks leaves no ./out
	}
	if o.sample {
		if err := copySample(o.Store); err != nil {
			return nil, err
		}
		if err := notice(*o, stderr, "sample_bucket_used", fmt.Sprintf("No --store given: using the sample bucket (demo data), copied to ./%s", o.Store), "directory", o.Store); err != nil {
			return nil, err
		}
	}
	if o.fresh {
		if err := os.MkdirAll(o.Store, 0o755); err != nil {
			return nil, usagef("--store: making ./%s: %w", o.Store, err)
		}
	}
	s, err := store.Open(ctx, o.Store)
	if err == nil {
		err = readable(ctx, s)
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	switch {
	case errors.Is(err, store.ErrNotExist), errors.Is(err, fs.ErrPermission), err != nil && !store.Retryable(err):
		return nil, usagef("--store: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--store: %w; try again when the store answers", err)
	}
	return s, nil
}

// readable tries a listing: opening a directory does not read it.
func readable(ctx context.Context, s store.Store) error {
	for _, err := range s.List(ctx, "datasets/") {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("it may not be read; give this user the right to: %w", err)
		}
		return err
	}
	return nil
}

// memorySample is the sample bucket without a copy of it on disk.
func memorySample(ctx context.Context) (store.Store, error) {
	s, err := store.Open(ctx, "mem://sample")
	if err != nil {
		return nil, err
	}
	return s, fs.WalkDir(testdata.Bucket, "bucket", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := testdata.Bucket.ReadFile(p)
		if err != nil {
			return err
		}
		return s.Put(ctx, strings.TrimPrefix(p, "bucket/"), bytes.NewReader(b), store.PutOptions{})
	})
}

// copySample lays the sample bucket out under dir; what is there stays.
func copySample(dir string) error {
	return fs.WalkDir(testdata.Bucket, "bucket", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, "bucket")))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		b, err := testdata.Bucket.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}

// matches refuses filters under which the bucket holds no raw file, and a
// memory store that nobody in this process has put one into.
func matches(ctx context.Context, s store.Store, o Options) error {
	memory := strings.HasPrefix(o.Store, "mem://")
	if o.beamDryRun() || !o.filtered() && !memory {
		return nil
	}
	for ob, err := range s.List(ctx, hive.Prefix("datasets/", o.Country, o.Category, o.Date)) {
		if err != nil {
			return fmt.Errorf("listing the store: %w", err)
		}
		if r, ok := hive.ParseRaw(ob.Key); ok && o.wants(r.Partition) {
			return nil
		}
	}
	if memory {
		return usagef("--store=%s has no such raw file: a memory store is empty when the program starts; use a directory or a bucket", o.Store)
	}
	return o.noMatch()
}

// preview prints what a run would do and touches nothing.
func preview(ctx context.Context, s store.Store, o Options, cfg seed.Config, stdout io.Writer) error {
	if o.Force {
		cfg.ForceID = "preview"
	}
	l, err := seed.ListRaw(ctx, s, cfg)
	if err != nil {
		return err
	}
	hosts := map[string]bool{}
	log := lane.Logger(o.LogFormat, max(cfg.Lane.LogLevel, slog.LevelWarn))
	for _, f := range l.Files {
		if o.Until == "list" {
			if _, err := fmt.Fprintln(stdout, f.Key); err != nil {
				return err
			}
			continue
		}
		x, err := seed.ExtractFile(ctx, s, f.Key, log, func(m lane.Mention) error { hosts[m.Host] = true; return nil })
		line := fmt.Sprintf("%s: %d records, %d bad, %d distinct domains", f.Key, x.Records, x.Bad, x.Domains)
		if err != nil {
			line = fmt.Sprintf("%s: broken: %s", f.Key, ledger.Redact(err.Error()))
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "would read %d raw files (%d listed, %d already processed, %d other objects ignored)\n", len(l.Files), l.Listed, l.Skipped, l.Ignored)
	if err == nil && o.Until == "extract" {
		_, err = fmt.Fprintf(stdout, "would visit up to %d registrable domains\n", len(hosts))
	}
	return err
}

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
	signals chan os.Signal
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
	holder := ledger.CurrentHolder()
	holder.RunID, holder.Job = ses.id, job
	signal.Notify(ses.signals, os.Interrupt, syscall.SIGTERM)
	ses.undo = append(ses.undo, func() error { signal.Stop(ses.signals); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, ses.end(ctx))
		}
	}()
	if err := ses.take(ctx, holder); err != nil {
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
	quietBeam(o)
	undo, err := o.workerSetup(ctx)
	if err != nil {
		return ses, err
	}
	ses.undo = append(ses.undo, undo)
	return ses, nil
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
	lost = fmt.Errorf("this run lost its lease, another may be at work: %w", lost)
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
	if ses.cfg.Leases {
		if err := lane.Vacate(ctx, s, ses.job, ses.waiting); err != nil {
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
	ses.setNow(id)
	cfg := ses.cfg
	cfg.RunID = id
	p, scope := beam.NewPipelineWithRoot()
	build(scope, cfg, run.ForceID)
	done := make(chan error, 1)
	runnerJob := ""
	go func() {
		if !o.async() {
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
	if o.async() && ended.err == nil && !ended.interrupted && ses.leaseLost() == nil {
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

// wait lets the pipeline end, or a signal end it.
func (ses *session) wait(ctx context.Context, done <-chan error, show *progressLine, runID string) outcome {
	var out outcome
	var deadline <-chan time.Time
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
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
		case <-ses.signals:
			if out.interrupted { // the second one: at once
				live()
				return out
			}
			out.interrupted = true
			deadline = time.After(ses.o.stopWithin())
			ses.stopWorkers(ctx, runID)
		case <-deadline:
			live()
			return out
		}
	}
}

// conclude writes the run's last state and its report.
func (ses *session) conclude(ctx context.Context, run ledger.Run, out outcome) (*ledger.Report, ledger.Tally, error) {
	s, o := ses.store, ses.o
	fail := func(err error) (*ledger.Report, ledger.Tally, error) { return nil, ledger.Tally{}, err }
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
	var cause error
	if w, ok := lane.Find(run.RunID); ok {
		cause = w.Cause()
	}
	switch {
	case cause != nil:
	case total.Counts[ledger.Outage] > 0:
		cause = seed.ErrOutage
	case total.Counts[ledger.WorkersStopped] > 0:
		cause = errWorkerStopped
	}
	delete(total.Counts, ledger.Outage)
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
	}
	run, err = ledger.SetState(ctx, s, run.RunID, state, time.Now())
	if err != nil {
		return fail(err)
	}
	report := ledger.BuildReport(run, total, time.Now(), lanes...)
	if j, _ := jobNamed(run.Job); j.extend != nil {
		if err := j.extend(ctx, s, &report); err != nil {
			return nil, total, err
		}
	}
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
	if result == nil && o.Strict && total.Counts["dead_letters"] > 0 {
		result = errStrict
	}
	return &report, total, result
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
	_, err := fmt.Fprintln(stderr, line)
	return err
}

// quietBeam keeps the runner's own chatter off the user's log: errors stay, in
// the form of that log.
func quietBeam(o Options) {
	slog.SetDefault(lane.Logger(o.LogFormat, slog.LevelError))
	beamlog.SetLogger(quiet{})
}

type quiet struct{}

// Log implements Beam's log.Logger.
func (quiet) Log(_ context.Context, sev beamlog.Severity, _ int, msg string) {
	if sev >= beamlog.SevError && !slices.Contains([]string{"", "EOF"}, msg) {
		slog.Error(msg)
	}
}
