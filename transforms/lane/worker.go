// Package lane has what the pipelines of all jobs share: URL records in batches, hosts hashed to lanes, and in each lane a bounded pool of
// visits. See docs/architecture.md.
package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// Config is what a worker must know about a run. It is sent to workers in DoFn fields, so it has no secrets.
type Config struct {
	Job, RunID string
	Build      string      // of the launcher; see Build
	Store      string      // URL of the bucket
	Roots      store.Roots // where it has raw files and results
	Slots      int         // of the whole job: 1 if everything runs in one process; see share
	Web        web.Config  // with the limits of the whole job
	Limit      int         // of items that the run begins: domains, pages, products or articles; 0: none. See Worker.Quota
	Polite     polite.Config
	Grace      time.Duration // how long visits in flight may continue after a stop
	LogFormat  string        // "text" or "json"
	LogLevel   slog.Level
	Leases     bool          // workers can outlive the launcher, so each lane has its own lease
	LeaseTTL   time.Duration // of a lane's lease; 0 for DefaultLeaseTTL
	Running    bool          // the graph is unbounded, so its total is written in parts
}

// Worker is what the lanes of one run share in one process: clients, limits, and the control of the run.
type Worker struct {
	Store  store.Store
	Web    *web.Client
	Pacer  polite.Pacer // turns at hosts, of all visits that this process makes; its clock is theirs
	Pauses Pauses       // at hosts, for a job without a database; see LoadPauses
	Log    *slog.Logger

	cfg      Config
	lease    *lease.Lease // the run's, if this process has it
	calls    *store.Calls
	ctx      context.Context
	cancel   context.CancelFunc
	stopOnce sync.Once
	stopping context.Context // ended when nothing new may begin
	noMore   context.CancelFunc
	paused   atomic.Bool
	cause    atomic.Pointer[error]
	waited   atomic.Int64 // when waitsFor has logged, in Unix nanoseconds
	endLog   func() error // of a process that keeps a part of the run's log
	users    int          // number of DoFns that use it, guarded by the lock of workers

	shared      sync.Map     // see Shared
	worked      sync.Map     // the lanes that began here, if lanes have no leases
	turn        sync.Mutex   // see Bundle.InTurn
	visits      atomic.Int64 // of all bundles, begun and not merged
	shares      shares
	begun       begun
	servers     servers
	deadLetters deadLetters
	sql         struct {
		sync.Mutex
		open *db.DB
	}

	mu       sync.Mutex
	taken    ledger.Tally                 // what Take has returned
	live     ledger.Tally                 // what was counted, for the progress line
	outside  ledger.Tally                 // the part of live that no lane counted
	progress map[int]*ledger.LaneProgress // by lane, of the lanes that this process has begun
	writing  chan struct{}                // full while progress is written; nil before the first lane
	cleaned  map[string]string            // see clean
	untaken  ledger.Tally                 // dead letters and failures of this process that Take has not returned yet
	active   int                          // lanes at work here
	visited  map[string]time.Time         // who is visited now, since when
	waits    []string                     // descriptions of the long waits of visits
	quotas   map[int]*atomic.Int64        // by part of the work
	closed   []string                     // patterns of hosts that get no request at this hour
}

var workers = struct {
	sync.Mutex
	open map[string]*Worker
}{open: map[string]*Worker{}}

// Open returns the process's worker of a run; the first call makes it. Errors say
// which part could not be opened.
func Open(ctx context.Context, cfg Config) (*Worker, error) {
	workers.Lock()
	defer workers.Unlock()
	return open(ctx, cfg)
}

// open is Open for callers that have locked workers.
func open(ctx context.Context, cfg Config) (*Worker, error) {
	if w, ok := workers.open[cfg.RunID]; ok {
		return w, nil
	}
	if err := cfg.checkBuild(); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("opening the worker's store: %w", err)
	}
	s = store.Placed(s, cfg.Roots)
	client, err := web.New(cfg.Web)
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("opening the worker's web client: %w", err)
	}
	w := &Worker{cfg: cfg, Web: client, calls: new(store.Calls), endLog: func() error { return nil },
		Pacer: polite.Pacer{Clock: polite.SystemClock, Servers: cfg.Polite.Servers, Adapt: cfg.Polite.Adapt, Hosts: cfg.Polite.Hosts}}
	alone, err := w.Pacer.Share(cfg.Polite.Turns, cfg.Web.ConnectTo)
	if err != nil {
		client.Close()
		return nil, errors.Join(err, s.Close())
	}
	w.Pauses.w = w
	w.stopping, w.noMore = context.WithCancel(context.WithoutCancel(ctx))
	runLeases.Lock()
	w.lease = runLeases.of[cfg.RunID]
	runLeases.Unlock()
	w.Store = store.Guarded(store.Counted(s, w.calls), w.allowed)
	client.Allow, client.Lowered, w.Pacer.Closed = w.allowed, w.lowered, w.outsideHours
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := w.join(ctx); err != nil {
		w.cancel()
		client.Close()
		return nil, errors.Join(err, s.Close())
	}
	w.Log = RunLogger(cfg)
	client.Shortages = fault.Watch{Waits: w.waitsFor, Short: func(lack *fault.Shortage) { w.Stop(lack) }}
	w.calls.Shortages = client.Shortages
	if alone != nil {
		w.Log.Warn("turns_not_shared", "error", alone.Error(), "why", "other processes of this machine do not know when this one asks a site; name a file with --turns, or say --turns=off")
	}
	if most := web.MaxRequests(); cfg.Web.Concurrency > most {
		w.lowered(cfg.Web.Concurrency, most, "this process may open too few files: raise `ulimit -n`")
	}
	w.learnDeaths(w.lease != nil && w.lease.TookOver())
	TakeLibraryLines(w.Log)
	workers.open[cfg.RunID] = w
	go w.watch()
	if cfg.Leases {
		w.shareLimits(processName(), heartbeat)
		w.Pacer.Hold, w.Pacer.Part = w.holdServer, w.Part // the pauses of servers hold over all processes of the run
	}
	return w, nil
}

// join reads the control object of a run that another process launched, since the run may have ended, and keeps this process's log.
func (w *Worker) join(ctx context.Context) error {
	if !w.cfg.Leases {
		return nil
	}
	if err := w.Obey(ctx); err != nil {
		return fmt.Errorf("reading the run's control object: %w", err)
	}
	return w.keepOwnLog(ctx)
}

// Find returns the worker of a run if this process has one.
func Find(runID string) (*Worker, bool) {
	workers.Lock()
	defer workers.Unlock()
	w, ok := workers.open[runID]
	return w, ok
}

// Close closes the process's worker of a run. The launcher calls it at the end.
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
	w.shares.beats.Wait()
	w.releaseServers()
	w.begun.close()
	w.Web.Close()
	w.sql.Lock()
	defer w.sql.Unlock()
	err := w.endLog()
	if w.sql.open != nil {
		err = errors.Join(err, w.sql.open.Close())
	}
	return errors.Join(err, w.Store.Close())
}

// Shared returns the value of type T that all lanes of the run share in this process.
// The first call makes it, empty.
func Shared[T any](w *Worker) *T {
	v, _ := w.shared.LoadOrStore(reflect.TypeFor[T](), new(T))
	return v.(*T)
}

// DB returns the process's database of the run. The first call opens and migrates it; Close closes it. dsn has no password: see
// db.OfWorker.
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
	d.Allow, d.Shortages = w.allowed, w.calls.Shortages
	w.sql.open = d
	return d, nil
}

// watch polls the control object, so that a run obeys wherever its workers are.
func (w *Worker) watch() {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.Obey(w.ctx); err != nil {
			w.Log.Warn("control_unreadable", "error", ledger.Redact(err.Error()))
		}
	}
}

// Obey reads the control object now, and does what it says.
func (w *Worker) Obey(ctx context.Context) error {
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

// Stop lets nothing new begin. Visits in flight may end within the grace time; after a lost lease or in a shortage they are cut off at
// once. With a cause the run fails: the launcher learns it from Cause, or from a count in the total.
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
		if fault.Stops(cause) {
			w.calls.EndWaits() // of later stages
		}
		if errors.Is(cause, lease.ErrLost) || fault.Stops(cause) {
			w.cancel()
			return
		}
		time.AfterFunc(w.cfg.Grace, w.cancel)
	})
}

// outsideHours counts a site that gets no request at this hour, and logs each pattern once.
func (w *Worker) outsideHours(e *polite.AbandonedError) {
	w.mu.Lock()
	w.untaken.Count(ledger.OutsideHours, 1)
	logged := slices.Contains(w.closed, e.Pattern)
	if !logged {
		w.closed = append(w.closed, e.Pattern)
	}
	w.mu.Unlock()
	if !logged {
		w.Log.Warn("outside_hours", "pattern", e.Pattern, "hours", e.Hours, "until", e.Until.UTC(), "site", e.Site)
	}
}

// lowered logs that fewer requests are sent at once.
func (w *Worker) lowered(from, to int, why string) {
	w.Log.Warn("concurrency_lowered", "from", from, "to", to, "why", why)
}

// waitsFor logs what work waits for, not again within shortageEvery.
func (w *Worker) waitsFor(lack *fault.Shortage) {
	now := time.Now().UnixNano()
	if last := w.waited.Load(); now-last >= int64(shortageEvery) && w.waited.CompareAndSwap(last, now) {
		w.Log.Warn("shortage", "lacks", ledger.Redact(lack.Error()), "waits_s", fault.MaxWait.Seconds())
	}
}

const shortageEvery = 10 * time.Second

// Cause returns the error that stopped the worker, nil if there was none.
func (w *Worker) Cause() error {
	if p := w.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Stopping ends once nothing new may begin.
func (w *Worker) Stopping() context.Context { return w.stopping }

// Stopped reports whether nothing new may begin.
func (w *Worker) Stopped() bool { return w.stopping.Err() != nil }

// Proceed waits while the run is paused, and reports whether a new item may begin.
func (w *Worker) Proceed(ctx context.Context) bool {
	for w.paused.Load() && !w.Stopped() && ctx.Err() == nil {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-w.stopping.Done():
		case <-ctx.Done():
		}
	}
	return !w.Stopped() && ctx.Err() == nil
}

// Context returns ctx, which also ends when the worker's grace time is over.
func (w *Worker) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(w.ctx, cancel)
	return ctx, func() { unhook(); cancel() }
}

// lanes changes the number of lanes at work in this process, which shareLimits tells others.
func (w *Worker) lanes(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active += by
	w.shares.peak = max(w.shares.peak, w.active)
	if by > 0 && w.shares.told == 0 {
		select {
		case w.shares.begun <- struct{}{}:
		default:
		}
	}
}

// Count adds what no lane counts to the live figures: those of the progress line and, with the next write of the
// progress, those of the run's page. Any goroutine may call it.
func (w *Worker) Count(t ledger.Tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(t)
}

func (w *Worker) count(t ledger.Tally) {
	w.live.Add(t)
	w.outside.Add(t)
}

// Waits shows a long wait of a visit until over is called. what says who waits, for what, and until when.
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

// Live returns what this process has counted so far.
func (w *Worker) Live() ledger.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	var t ledger.Tally
	t.Add(w.live)
	t.Add(w.exchanges())
	return t
}

// Plan is how much of the work is known, and how much of that is done.
type Plan struct {
	Lanes       int // that have begun
	Hosts, Done int64
	Visited     []Visited // the longest visit first
}

// Visited is a site or provider that is visited now.
type Visited struct {
	Name  string
	Since time.Time
	Until time.Time // the end of a pause that it asked for; zero: none
}

// At names the site or provider of a visit, for the live line, until over is called.
func (w *Worker) At(name string) (over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.visited == nil {
		w.visited = map[string]time.Time{}
	}
	w.visited[name] = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.visited, name)
	}
}

// Plan returns what the lanes that this process has begun have to visit.
func (w *Worker) Plan() (sum Plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.progress {
		sum.Lanes, sum.Hosts, sum.Done = sum.Lanes+1, sum.Hosts+p.Hosts, sum.Done+p.HostsDone
	}
	for name, since := range w.visited {
		sum.Visited = append(sum.Visited, Visited{name, since, w.Pacer.Paused(name)})
	}
	slices.SortFunc(sum.Visited, func(a, b Visited) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name)) })
	return sum
}

// take returns the requests and store calls since the last take. Each stage takes a part, and together the parts are exact.
func (w *Worker) take() ledger.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.exchanges()
	part := now.Minus(w.taken)
	w.taken = now
	part.Add(w.untaken)
	w.untaken = ledger.Tally{}
	return part
}

// clean removes secrets from URLs, of each once. The caller holds mu.
func (w *Worker) clean(urls map[string][]string) ledger.Examples {
	if len(urls) == 0 {
		return nil
	}
	all := ledger.Examples{}
	for kind, of := range urls {
		for _, u := range of {
			clean, ok := w.cleaned[u]
			if !ok {
				clean = ledger.ExampleText(u)
				if w.cleaned == nil {
					w.cleaned = map[string]string{}
				}
				w.cleaned[u] = clean
			}
			all[kind] = append(all[kind], clean)
		}
	}
	return all
}

func (w *Worker) exchanges() ledger.Tally {
	var t ledger.Tally
	s := w.Web.Stats()
	t.HTTP = ledger.HTTP{Requests: s.Requests, Bytes: s.Bytes, Retries: s.Retries, Absent: s.Absent, ByStatus: s.ByStatus, Failures: s.Failures, Examples: w.clean(s.Examples)}
	t.Store = w.calls.Snapshot()
	t.StoreBytes.Read, t.StoreBytes.Written = w.calls.Bytes()
	return t
}
