// Package lane is what the pipelines of all jobs share: URL records in batches,
// hosts hashed to lanes, and in each lane a bounded pool of visits. See
// docs/architecture.md.
package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// Config is what a worker must know to open its end of a run. It travels in
// DoFn fields, so it holds no secret: credentials come from each worker's own
// environment.
type Config struct {
	Job, RunID string
	Store      string        // URL of the bucket
	Slots      int           // of the whole job: 1 where everything runs in one process
	Web        web.Config    // limits in it are the whole job's
	Grace      time.Duration // how long visits in flight may go on after a stop
	LogFormat  string        // "text" or "json"
	LogLevel   slog.Level
	Leases     bool          // workers can outlive the launcher: each lane has a lease of its own
	LeaseTTL   time.Duration // of a lane's lease; 0 for DefaultLeaseTTL
	Running    bool          // the graph is unbounded: its totals come in parts
}

// Worker is what the lanes of one run share inside one operating-system
// process: clients, limits, and the control of the run: pause, resume, cancel.
type Worker struct {
	Store store.Store
	Web   *web.Client
	Pacer polite.Pacer // turns at hosts, of all visits that this process makes; its clock is theirs
	Log   *slog.Logger

	cfg      Config
	lease    *lease.Lease // the run's, where this process has it
	calls    *store.Calls
	ctx      context.Context
	cancel   context.CancelFunc
	stopOnce sync.Once
	stopping context.Context // ended when nothing new may begin
	noMore   context.CancelFunc
	paused   atomic.Bool
	cause    atomic.Pointer[error]
	endLog   func() error // of a process that keeps a part of the run's log
	users    int          // DoFns that have it, under the lock of workers

	deadLetters deadLetters
	sql         struct {
		sync.Mutex
		open *db.DB
	}

	mu        sync.Mutex
	taken     ledger.Tally // what Take has handed out
	shown     ledger.Tally // requests and store calls that progress objects have
	live      ledger.Tally // what was counted, for the progress line
	unwritten ledger.Tally // of it, what no progress object has yet
	untaken   ledger.Tally // dead letters and the process's own troubles, not yet taken
	active    int          // lanes at work here
	waits     []string     // for what visits wait long, in words
}

var workers = struct {
	sync.Mutex
	open map[string]*Worker
}{open: map[string]*Worker{}}

// Open gives the process's worker of a run, made at the first call. Errors say
// which part could not be opened.
func Open(ctx context.Context, cfg Config) (*Worker, error) {
	workers.Lock()
	defer workers.Unlock()
	return open(ctx, cfg)
}

// open is Open, under the lock of workers.
func open(ctx context.Context, cfg Config) (*Worker, error) {
	if w, ok := workers.open[cfg.RunID]; ok {
		return w, nil
	}
	s, err := store.Open(ctx, cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("opening the worker's store: %w", err)
	}
	client, err := web.New(cfg.Web)
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("opening the worker's web client: %w", err)
	}
	w := &Worker{cfg: cfg, Web: client, Pacer: polite.Pacer{Clock: polite.SystemClock}, calls: new(store.Calls), endLog: func() error { return nil }}
	w.stopping, w.noMore = context.WithCancel(context.WithoutCancel(ctx))
	runLeases.Lock()
	w.lease = runLeases.of[cfg.RunID]
	runLeases.Unlock()
	w.Store = store.Guarded(store.Counted(s, w.calls), w.allowed)
	client.Allow = w.allowed
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Leases { // this process may have been started for a run that is over
		if err := w.obey(ctx); err != nil {
			w.cancel()
			client.Close()
			return nil, errors.Join(fmt.Errorf("reading what the run is asked to do: %w", err), s.Close())
		}
	}
	if cfg.Leases { // the launcher keeps the log of this process only where they are one
		if err := w.keepOwnLog(ctx); err != nil {
			w.cancel()
			client.Close()
			return nil, errors.Join(err, s.Close())
		}
	}
	w.Log = RunLogger(cfg)
	TakeLibraryLines(w.Log)
	workers.open[cfg.RunID] = w
	go w.watch()
	return w, nil
}

// Find gives the worker of a run if this process has one.
func Find(runID string) (*Worker, bool) {
	workers.Lock()
	defer workers.Unlock()
	w, ok := workers.open[runID]
	return w, ok
}

// Close ends the process's worker of a run; the launcher calls it when the
// pipeline has ended.
func Close(runID string) error {
	workers.Lock()
	w, ok := workers.open[runID]
	delete(workers.open, runID)
	workers.Unlock()
	Under(runID, nil)
	if !ok {
		return nil
	}
	return w.close()
}

func (w *Worker) close() error {
	w.cancel()
	w.Web.Close()
	w.sql.Lock()
	defer w.sql.Unlock()
	err := w.endLog()
	if w.sql.open != nil {
		err = errors.Join(err, w.sql.open.Close())
	}
	return errors.Join(err, w.Store.Close())
}

// DB gives the process's database of the run, opened and brought up to date by
// migrate at the first call. dsn has no password: see db.OfWorker. Close closes it.
func (w *Worker) DB(ctx context.Context, dsn string, migrate func(context.Context, *db.DB) error) (*db.DB, error) {
	w.sql.Lock()
	defer w.sql.Unlock()
	if w.sql.open != nil {
		return w.sql.open, nil
	}
	d, err := db.Open(ctx, db.OfWorker(dsn, w.cfg.Leases))
	if err != nil {
		return nil, fmt.Errorf("opening the worker's database: %w", err)
	}
	if err := migrate(ctx, d); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the worker's database: %w", err), d.Close())
	}
	d.Allow = w.allowed
	w.sql.open = d
	return d, nil
}

// watch polls the control object, so that a run obeys `runs cancel` and
// `runs pause` wherever its workers are, once a process.
func (w *Worker) watch() {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.obey(w.ctx); err != nil {
			w.Log.Warn("control_unreadable", "error", ledger.Redact(err.Error()))
		}
	}
}

// obey does what the control object asks for.
func (w *Worker) obey(ctx context.Context) error {
	c, err := ledger.ReadControl(ctx, w.Store, w.cfg.RunID)
	if err != nil {
		return err
	}
	if c.Action == ledger.ActionCancel {
		w.Stop(nil)
	}
	w.paused.Store(c.Action == ledger.ActionPause)
	return nil
}

// Stop lets nothing new begin; what is in flight may end within the grace
// time and is cut after it; at once when the cause is a lost lease, for another
// process may be at the same work. A cause marks the run as failed by it: here by
// Cause, elsewhere by the count that reaches the run's total.
func (w *Worker) Stop(cause error) {
	w.stopOnce.Do(func() {
		if cause != nil {
			w.cause.Store(&cause)
			w.Log.Error("worker_stopped", "error", ledger.Redact(cause.Error()))
			w.mu.Lock()
			w.untaken.Count(ledger.WorkersStopped, 1)
			w.mu.Unlock()
		}
		w.noMore()
		if errors.Is(cause, lease.ErrLost) {
			w.cancel()
			return
		}
		time.AfterFunc(w.cfg.Grace, w.cancel)
	})
}

// Cause is the error that stopped the worker, nil when there was none.
func (w *Worker) Cause() error {
	if p := w.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Stopping ends once nothing new may begin.
func (w *Worker) Stopping() context.Context { return w.stopping }

// Stopped says whether nothing new may begin.
func (w *Worker) Stopped() bool { return w.stopping.Err() != nil }

// Proceed waits while the run is paused and says whether a new item may begin.
func (w *Worker) Proceed(ctx context.Context) bool {
	for w.paused.Load() && !w.Stopped() && ctx.Err() == nil {
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-t.C:
		case <-w.stopping.Done():
		case <-ctx.Done():
		}
		t.Stop()
	}
	return !w.Stopped() && ctx.Err() == nil
}

// Context is ctx, ended as well when the worker's grace time is over.
func (w *Worker) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(w.ctx, cancel)
	return ctx, func() { unhook(); cancel() }
}

// lanes changes the number of lanes at work here. The limits are the whole job's:
// this process takes its share by its lanes.
func (w *Worker) lanes(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active += by
	slots := max(w.cfg.Slots, 1)
	share := min(float64(max(w.active, 1))/float64(slots), 1)
	w.Web.SetLimits(max(int(float64(w.cfg.Web.Concurrency)*share), 1), w.cfg.Web.Rate*share)
}

// Count adds to the live figures: those of the progress line and, with the next
// write of a lane's progress, of the run's page. A host that takes hours is seen
// at work when its visit counts as it goes. Any goroutine may call it.
func (w *Worker) Count(t ledger.Tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(t)
}

func (w *Worker) count(t ledger.Tally) {
	w.live.Add(t)
	w.unwritten.Add(t)
}

// Waits shows, in the progress of the lanes, a long wait of a visit until it is
// over: what says who waits, for what, and until when.
func (w *Worker) Waits(what string) (over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, what)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.Index(w.waits, what); i >= 0 {
			w.waits = slices.Delete(w.waits, i, i+1)
		}
	}
}

func (w *Worker) waiting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.waits)
}

// Live is what this process has counted so far.
func (w *Worker) Live() ledger.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	var t ledger.Tally
	t.Add(w.live)
	t.Add(w.exchanges())
	return t
}

// Take gives the requests and store calls that no earlier Take gave: each
// stage of the process takes its part, and together they are exact.
func (w *Worker) Take() ledger.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.exchanges()
	part := now.Minus(w.taken)
	w.taken = now
	part.Add(w.untaken)
	w.untaken = ledger.Tally{}
	return part
}

// unshown gives what was counted, the requests and the store calls that no
// lane's progress has yet: lanes side by side share them, and their sum is exact.
func (w *Worker) unshown() ledger.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.exchanges()
	part := now.Minus(w.shown)
	part.Add(w.unwritten)
	w.shown, w.unwritten = now, ledger.Tally{}
	return part
}

func (w *Worker) exchanges() ledger.Tally {
	var t ledger.Tally
	s := w.Web.Stats()
	t.HTTP = ledger.HTTP{Requests: s.Requests, Bytes: s.Bytes, Retries: s.Retries, ByStatus: s.ByStatus, Failures: s.Failures}
	t.Store = w.calls.Snapshot()
	return t
}
