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
	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// stage is one kind of task with its queue and its pool of workers.
type stage struct {
	name  string // the name of its workers
	fails string // the name of the count of its failed tasks
	input Kind
	size  int // number of workers in the pool
	batch int // maximum number of tasks that a worker takes at once; 0: one
	// linger is how long a worker waits for a full batch, from its first task on, while
	// tasks are under way that could join it. 0: it takes what is in the queue.
	linger time.Duration
	// enough, if set, reports whether a worker that waits must commit what it has.
	enough func(results []result) bool

	// work does one task and returns the tasks that follow from it.
	work func(ctx context.Context, t Task) ([]Task, error)
	// commit, if set, writes the results of a worker's tasks to the journal before they
	// are sent on. It may remove results that are not new, and fail tasks.
	commit func(ctx context.Context, results []result) error
	queue  chan Task
}

// result is the result of a task.
type result struct {
	task  Task
	found []Task // the tasks that follow from it
	err   error
}

// failure is the reason why a task failed.
type failure struct {
	kind  string // of the dead letter
	final bool   // another try would fail in the same way
	err   error
	// answer is what the site answered in place of the page, for the judgement of the site. nil: the task failed otherwise.
	answer *judging.Answer
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errStopped ends a task that was stopped: it is neither done nor failed, and stays in
// the journal.
var errStopped = errors.New("stopped before it was done")

// errLeft ends a task that the run's limit leaves to the next run: it stays in the journal.
var errLeft = errors.New("the run's limit is used up")

// journal stores tasks until they are done, so that a later run can resume a killed
// crawl.
type journal interface {
	// due returns up to n waiting tasks that may begin now, and marks them as begun. next
	// is when the first of the other tasks may begin, zero if none waits.
	due(ctx context.Context, now time.Time, n int) (tasks []entry, next time.Time, err error)
	// retry makes a task wait for its next try until at.
	retry(ctx context.Context, e entry, at time.Time) error
	// end removes a task that is done or is not tried again.
	end(ctx context.Context, e entry) error
}

// engine has the queues and the pools of a crawl, moves tasks from the journal to them,
// and knows when all tasks are done.
//
// It cannot deadlock, whatever the sizes of queues and pools. Workers send only to later
// stages, and wait while their queues are full. The last stage sends nothing, so it always
// empties its queue, and therefore so does the stage before it, and so on. Tasks for
// earlier stages (a next page, a retry) go through the journal, which only the engine's
// own loop reads.
type engine struct {
	stages  []*stage
	state   *sharedState
	journal journal
	// deadLetter writes a dead letter for a task that is not tried again, before the journal ends it. After errHeld the
	// task stays in the journal.
	deadLetter func(ctx context.Context, e entry, stage string, f *failure) error
	// unit is lane.Worker.Unit for a task.
	unit func(ctx context.Context, e entry) (within context.Context, end func(), err error)
	// backoff returns how long a task waits after that many tries.
	backoff func(tries int) time.Duration
	now     func() time.Time

	pending atomic.Int64  // tasks in queues and at workers
	wake    chan struct{} // has a token when feed must read the journal
	left    atomic.Bool   // some tasks ended with errLeft
	fatal   atomic.Pointer[error]
	cancel  context.CancelFunc
}

// maxTries is how often a task is tried before it becomes a dead letter.
const maxTries = 3

// maxFeed is how many tasks feed reads from the journal at once.
const maxFeed = 256

// newEngine makes an engine with these stages and this length of queues.
func newEngine(plan []*stage, length int, state *sharedState, j journal) *engine {
	e := &engine{stages: plan, state: state, journal: j, wake: make(chan struct{}, 1), now: time.Now,
		unit: func(ctx context.Context, _ entry) (context.Context, func(), error) { return ctx, func() {}, nil }}
	for _, s := range plan {
		s.queue = make(chan Task, max(length, 1))
		s.size = max(s.size, 1)
	}
	return e
}

// run works until all queues are empty, all workers are idle and no task waits (true, unless some were left to the next run),
// or until Control or ctx ends it (false). The error is an error of the journal, without
// which the crawl cannot continue.
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
		idle := e.pending.Load() == 0 // before the journal is read, because then it has all that the workers wrote
		tasks, next, err := e.journal.due(ctx, e.now(), maxFeed)
		if err != nil {
			if ctx.Err() != nil {
				return false, nil
			}
			return false, fmt.Errorf("reading tasks: %w", err)
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
			return !e.left.Load(), nil
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

// wakeUp makes feed read the journal.
func (e *engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// send puts a task into a stage's queue, and waits while the queue is full.
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

// worker is one worker of a stage's pool.
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
			return // the task stays in the journal
		}
		results = e.gather(ctx, s, append(results[:0], e.one(ctx, s, t)))
		if !e.forward(ctx, n, results) {
			return
		}
	}
}

// gather does more tasks of a stage's queue, until the batch of results is full.
func (e *engine) gather(ctx context.Context, s *stage, results []result) []result {
	var late <-chan time.Time
	for len(results) < s.batch {
		select {
		case t := <-s.queue:
			results = append(results, e.one(ctx, s, t))
			continue
		default:
		}
		switch {
		case s.linger <= 0,
			e.pending.Load() <= int64(len(results)), // no other task is under way
			s.enough != nil && s.enough(results):
			return results
		}
		if late == nil {
			timer := time.NewTimer(s.linger)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case t := <-s.queue:
			results = append(results, e.one(ctx, s, t))
		case <-late:
			return results
		case <-e.state.Control.Stopping().Done():
			return results
		case <-ctx.Done():
			return results
		}
	}
	return results
}

// one does one task. A panic fails only that task.
func (e *engine) one(ctx context.Context, s *stage, t Task) (r result) {
	r.task = t
	defer func() {
		if v := recover(); v != nil {
			r.found, r.err = nil, &failure{kind: "panic", final: true, err: &lane.PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	ctx, end, err := e.unit(ctx, t.stored())
	if err != nil {
		r.err = &failure{kind: ledger.Died, final: true, err: err}
		return r
	}
	defer end()
	r.found, r.err = s.work(ctx, t)
	return r
}

// after returns the stage after stage n that does tasks of a kind, 0 if there is none: a
// task for an earlier stage waits in the journal for feed.
func (e *engine) after(n int, k Kind) int {
	for i := n + 1; i < len(e.stages); i++ {
		if e.stages[i].input == k {
			return i
		}
	}
	return 0
}

// forward commits the results of a worker and sends the following tasks on. It returns
// false if the worker must end.
func (e *engine) forward(ctx context.Context, n int, results []result) bool {
	s := e.stages[n]
	if s.commit != nil {
		if err := s.commitEach(ctx, results); errors.Is(err, errStopped) {
			return false // the tasks stay in the journal
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
			e.pending.Add(int64(ahead - 1)) // before the first one can be done
		}
		for _, t := range r.found {
			if to := e.after(n, t.Kind()); to > 0 && !e.send(ctx, to, t) {
				return false
			}
		}
		if ahead == 0 && e.pending.Add(-1) == 0 || ahead < len(r.found) {
			e.wakeUp() // all tasks are done, or some wait in the journal
		}
		*r = result{} // frees the page's text
	}
	return true
}

// commitEach commits a batch. If the database refuses the text of one of its pages, each
// result is committed alone, so that only the refused ones fail.
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

// retryOrEnd makes a failed task wait for its next try, or ends it after the last try.
func (e *engine) retryOrEnd(ctx context.Context, s *stage, r *result) bool {
	if errors.Is(r.err, errStopped) || ctx.Err() != nil {
		return false // stopped: the task stays in the journal
	}
	if errors.Is(r.err, errLeft) {
		e.left.Store(true)
		e.pending.Add(-1)
		e.wakeUp()
		return true
	}
	if fault.Stops(r.err) {
		e.fail(ctx, fmt.Errorf("%s: %w", s.name, r.err))
		return false
	}
	var f *failure
	if !errors.As(r.err, &f) {
		f = &failure{kind: "failed", err: r.err}
	}
	t := r.task.stored()
	t.Tries++
	var err error
	if f.final || t.Tries >= maxTries {
		if err = e.deadLetter(ctx, t, s.name, f); err == nil {
			err = e.journal.end(ctx, t)
		}
		switch {
		case err == nil:
			e.state.Stats.fail(s.fails)
		case errors.Is(err, errHeld):
			err = nil
		}
	} else {
		err = e.journal.retry(ctx, t, e.now().Add(e.backoff(t.Tries)))
	}
	if err != nil {
		e.fail(ctx, fmt.Errorf("%s: after %w: writing the task: %w", s.name, r.err, err))
		return false
	}
	e.pending.Add(-1)
	e.wakeUp()
	return true
}

// fail ends the crawl because results can no longer be stored.
func (e *engine) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.fatal.CompareAndSwap(nil, &err)
	}
	e.cancel()
}
