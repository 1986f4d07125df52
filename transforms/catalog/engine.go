package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// stage is one kind of task with its queue and its pool of workers.
type stage struct {
	name  string // of its workers
	fails string // the count of its failed tasks
	input Kind
	size  int // of the pool
	batch int // tasks that a worker takes at once when so many wait; 0: one

	// work does one task and gives those that come of it.
	work func(ctx context.Context, t Task) ([]Task, error)
	// commit, when set, writes to the journal what a worker's tasks brought, before
	// any of it moves on. It may remove what is not new, and fail tasks.
	commit func(ctx context.Context, results []result) error
	queue  chan Task
}

// result is a task that was worked on.
type result struct {
	task  Task
	found []Task
	err   error
}

// failure is why a task was not done.
type failure struct {
	kind  string // of the dead letter
	final bool   // another try would end the same
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errStopped ends a task that a stop kept from being done: it is neither done nor
// failed, and stays in the journal.
var errStopped = errors.New("stopped before it was done")

// journal remembers tasks until they are done, so that a later run resumes a
// killed crawl.
type journal interface {
	// due gives up to n tasks that wait and may begin now, and marks them as
	// begun. next is when the first of the others may, zero when none waits.
	due(ctx context.Context, now time.Time, n int) (tasks []entry, next time.Time, err error)
	// retry lets a task wait until at for its next try.
	retry(ctx context.Context, e entry, at time.Time) error
	// end ends a task that is not tried again.
	end(ctx context.Context, e entry) error
}

// engine owns the queues and the pools of a crawl, feeds them from the journal,
// and knows when all is done.
//
// It cannot deadlock, at any size of queues and pools: workers send only to
// later stages, and wait for room there; the last stage sends nothing, so it
// always makes room, and so on up. What leads back (a next page, a retry) goes
// through the journal, which only the engine's own loop feeds from.
type engine struct {
	stages  []*stage
	state   *SharedState
	journal journal
	// deadLetter keeps a task that failed for good, before the journal ends it.
	deadLetter func(ctx context.Context, e entry, stage string, f *failure) error
	// backoff is how long a task waits for its next try after so many.
	backoff func(tries int) time.Duration
	now     func() time.Time

	pending atomic.Int64  // tasks in queues and at workers
	wake    chan struct{} // has a token when feed has to read the journal
	fatal   atomic.Pointer[error]
	cancel  context.CancelFunc
}

// maxTries is how often a task is tried before it becomes a dead letter.
const maxTries = 3

// maxFeed is how many tasks feed reads from the journal at once.
const maxFeed = 256

// newEngine makes queues of a length for a plan of stages.
func newEngine(plan []*stage, length int, state *SharedState, j journal) *engine {
	e := &engine{stages: plan, state: state, journal: j, wake: make(chan struct{}, 1), now: time.Now}
	for _, s := range plan {
		s.queue = make(chan Task, max(length, 1))
		s.size = max(s.size, 1)
	}
	return e
}

// run works until every queue is empty, every worker idle and nothing waits
// (true), or until Control or ctx ends it (false). The error is the
// journal's: without one the crawl cannot go on.
func (e *engine) run(ctx context.Context) (complete bool, err error) {
	ctx, e.cancel = context.WithCancel(ctx)
	defer e.cancel()
	idle := make(chan struct{}) // ends the workers
	var pools sync.WaitGroup
	for i, s := range e.stages {
		for range s.size {
			pools.Go(func() { e.worker(ctx, i, idle) })
		}
	}
	complete, err = e.feed(ctx)
	close(idle)
	pools.Wait()
	if p := e.fatal.Load(); p != nil {
		return false, *p
	}
	return complete, err
}

// feed moves tasks from the journal to the stages until the crawl ends.
func (e *engine) feed(ctx context.Context) (complete bool, err error) {
	for {
		if !e.state.Control.Proceed(ctx) {
			return false, nil
		}
		idle := e.pending.Load() == 0 // before reading: by then the journal has what workers left for it
		tasks, next, err := e.journal.due(ctx, e.now(), maxFeed)
		if err != nil {
			if ctx.Err() != nil {
				return false, nil
			}
			return false, fmt.Errorf("looking for tasks: %w", err)
		}
		if len(tasks) > 0 {
			e.pending.Add(int64(len(tasks)))
			for _, t := range tasks {
				if !e.send(ctx, e.after(-1, t.Kind), t.task()) {
					return false, nil
				}
			}
			continue
		}
		if idle && next.IsZero() {
			return true, nil
		}
		var timer *time.Timer
		var at <-chan time.Time
		if !next.IsZero() {
			timer = time.NewTimer(max(next.Sub(e.now()), time.Millisecond))
			at = timer.C
		}
		select {
		case <-e.wake:
		case <-at:
		case <-e.state.Control.Stopping().Done():
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// wakeUp lets feed read the journal.
func (e *engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// send puts a task into a stage's queue, and waits for room.
func (e *engine) send(ctx context.Context, to int, t Task) bool {
	q := e.stages[to].queue
	select {
	case q <- t:
		return true
	default:
	}
	select {
	case q <- t:
		return true
	case <-e.state.Control.Stopping().Done():
	case <-ctx.Done():
	}
	return false
}

// worker is one of a stage's pool.
func (e *engine) worker(ctx context.Context, n int, idle <-chan struct{}) {
	s, stopping := e.stages[n], e.state.Control.Stopping().Done()
	results := make([]result, 0, max(s.batch, 1))
	for {
		var t Task
		select {
		case t = <-s.queue:
		default:
			select {
			case t = <-s.queue:
			case <-stopping:
				return
			case <-idle:
				return
			case <-ctx.Done():
				return
			}
		}
		if !e.state.Control.Proceed(ctx) {
			return // the journal has it
		}
		results = append(results[:0], e.one(ctx, s, t))
	more:
		for len(results) < s.batch {
			select {
			case t = <-s.queue:
				results = append(results, e.one(ctx, s, t))
			default:
				break more
			}
		}
		if !e.forward(ctx, n, results) {
			return
		}
	}
}

// one does one task; a panic is that task's failure.
func (e *engine) one(ctx context.Context, s *stage, t Task) (r result) {
	r.task = t
	defer func() {
		if v := recover(); v != nil {
			r.found, r.err = nil, &failure{kind: "panic", final: true, err: &lane.PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	r.found, r.err = s.work(ctx, t)
	return r
}

// after is the stage behind stage n that takes tasks of a kind, 0 where there is
// none: what leads back waits in the journal for feed.
func (e *engine) after(n int, k Kind) int {
	for i := n + 1; i < len(e.stages); i++ {
		if e.stages[i].input == k {
			return i
		}
	}
	return 0
}

// forward commits what a worker did and sends on what came of it. It is false
// when the worker has to end.
func (e *engine) forward(ctx context.Context, n int, results []result) bool {
	s := e.stages[n]
	if s.commit != nil {
		if err := s.commitEach(ctx, results); errors.Is(err, errStopped) {
			return false // the journal has them
		} else if err != nil {
			e.fail(ctx, fmt.Errorf("%s: %w", s.name, err))
			return false
		}
	}
	for i := range results {
		r := &results[i]
		if r.err != nil {
			if !e.retryOrEnd(ctx, s, r) {
				return false
			}
			continue
		}
		ahead := 0
		for _, t := range r.found {
			if e.after(n, t.Kind()) > 0 {
				ahead++
			}
		}
		if ahead > 1 {
			e.pending.Add(int64(ahead - 1)) // before the first of them is done
		}
		for _, t := range r.found {
			if to := e.after(n, t.Kind()); to > 0 && !e.send(ctx, to, t) {
				return false
			}
		}
		if ahead == 0 && e.pending.Add(-1) == 0 || ahead < len(r.found) {
			e.wakeUp() // all is done, or some wait in the journal
		}
		*r = result{} // a page's text must not outlive its task
	}
	return true
}

// commitEach commits a batch. Where the database refuses what one of its pages
// says, each is committed alone, and only those that are refused have failed.
func (s *stage) commitEach(ctx context.Context, results []result) error {
	err := s.commit(ctx, results)
	switch {
	case !db.Rejected(err):
		return err
	case len(results) == 1:
		results[0].err = &failure{kind: "database_rejected", final: true, err: err}
		return nil
	}
	for i := range results {
		if err := s.commitEach(ctx, results[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// retryOrEnd lets a failed task wait for its next try, or ends it after the last.
func (e *engine) retryOrEnd(ctx context.Context, s *stage, r *result) bool {
	if errors.Is(r.err, errStopped) || ctx.Err() != nil {
		return false // stopped: the journal has it
	}
	var f *failure
	if !errors.As(r.err, &f) {
		f = &failure{kind: "failed", err: r.err}
	}
	t := r.task.entry()
	t.Tries++
	var err error
	if f.final || t.Tries >= maxTries {
		if err = e.deadLetter(ctx, t, s.name, f); err == nil {
			err = e.journal.end(ctx, t)
		}
		if err == nil {
			e.state.Stats.fail(s.fails)
		}
	} else {
		err = e.journal.retry(ctx, t, e.now().Add(e.backoff(t.Tries)))
	}
	if err != nil {
		e.fail(ctx, fmt.Errorf("%s: after %w: keeping the task: %w", s.name, r.err, err))
		return false
	}
	e.pending.Add(-1)
	e.wakeUp()
	return true
}

// fail ends the crawl: what its tasks brought can no longer be kept.
func (e *engine) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.fatal.CompareAndSwap(nil, &err)
	}
	e.cancel()
}
