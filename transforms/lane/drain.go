package lane

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// PanicError is the error of a visit that panicked. It fails one host, never the lane.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("a bug: panic in a visit: %v", e.Value) }

// Drain calls visit for each item, at most n at the same time, and merge for each result, in the caller's own goroutine: only there may
// Beam's functions be called. After a stop no further item begins. Each item counts as a host in the lane's progress.
func Drain[T, R any](ctx context.Context, l *Lane, n int, items iter.Seq[T], visit func(context.Context, T) R, failed func(T, error) R, merge func(R)) {
	begin(ctx, l, n, func() int { return n }, items, visit, failed, merge)
	l.bundle.merge(func() bool { return l.visits == 0 })
	l.sample()
}

// Begin is Drain for a lane that may overlap the next one: it returns when the last item has begun, and end is called when all results are
// merged. n is the maximum of the whole job. Begin must be the last call of the lane's work.
func Begin[T, R any](ctx context.Context, l *Lane, n int, items iter.Seq[T], visit func(context.Context, T) R, failed func(T, error) R, merge func(R), end func()) {
	l.atEnd = end
	begin(ctx, l, n, func() int { return l.bundle.visitsAtOnce(n) }, items, visit, failed, merge)
}

// begin begins the items. limit is how many visits the bundle may have at the moment, at most n.
func begin[T, R any](ctx context.Context, l *Lane, n int, limit func() int, items iter.Seq[T], visit func(context.Context, T) R, failed func(T, error) R, merge func(R)) {
	b, w := l.bundle, l.w
	ctx, l.cancel = w.Context(ctx)
	if b.work == nil {
		b.work, b.merges = make(chan func() func()), make(chan func(), n)
	}
	one := func(item T) (r R) {
		defer func() {
			if v := recover(); v != nil {
				r = failed(item, &PanicError{Value: v, Stack: debug.Stack()})
			}
		}()
		return visit(ctx, item)
	}
	run := func(item T) func() func() {
		return func() func() {
			r := one(item)
			return func() {
				b.began(-1)
				l.visits--
				merge(r)
				l.hostDone()
				l.endIfDone()
			}
		}
	}

	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	next, stop := iter.Pull(items)
	defer stop()
	item, more := next()
	visitNext := run(item)
	for more && (b.visits >= limit() || w.Proceed(ctx)) {
		offer := b.work
		switch {
		case b.visits >= limit(): // otherwise a visit could begin between the check for a pause and the end of another visit
			offer = nil
		case b.visits == b.goroutines: // a small lane never starts more goroutines than it has hosts
			b.startOne()
		}
		select {
		case offer <- visitNext:
			b.began(+1)
			l.visits++
			if item, more = next(); more {
				visitNext = run(item)
			}
		case merge := <-b.merges:
			merge()
		case <-tick.C:
			b.sample()
		case <-w.stopping.Done():
			more = false
		case <-ctx.Done():
			more = false
		}
	}
}
