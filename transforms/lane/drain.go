package lane

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"
)

// PanicError is the error of a visit that panicked. It fails one host, never the lane.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("a bug: panic in a visit: %v", e.Value) }

// Drain calls visit for each item, at most n at the same time, and merge for each
// result. It calls merge in the caller's own goroutine while other visits still run:
// only there may Beam's emit functions and counters be called. When the worker is
// stopped, no further item is begun, and items that were not begun are not merged.
// Each item counts as a host in the lane's progress.
func Drain[T, R any](ctx context.Context, l *Lane, n int, items iter.Seq[T], visit func(context.Context, T) R, failed func(T, error) R, merge func(R)) {
	w := l.w
	ctx, cancel := w.Context(ctx)
	defer cancel()
	work, done := make(chan T), make(chan R, n)
	var pool sync.WaitGroup
	one := func(item T) (r R) {
		defer func() {
			if v := recover(); v != nil {
				r = failed(item, &PanicError{Value: v, Stack: debug.Stack()})
			}
		}()
		return visit(ctx, item)
	}
	started := 0
	start := func() {
		started++
		pool.Go(func() {
			for item := range work {
				done <- one(item)
			}
		})
	}

	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	defer l.sample()
	end := func(r R) {
		merge(r)
		l.hostDone()
	}

	next, stop := iter.Pull(items)
	defer stop()
	item, more := next()
	waiting := 0
	for more && (waiting == n || w.Proceed(ctx)) {
		offer := work
		switch waiting {
		case n: // otherwise a visit could begin between the check for a pause and the end of another visit
			offer = nil
		case started: // a small lane never starts more goroutines than it has hosts
			start()
		}
		select {
		case offer <- item:
			waiting++
			item, more = next()
		case r := <-done:
			waiting--
			end(r)
		case <-tick.C:
			l.sample()
		case <-w.stopping.Done():
			more = false
		case <-ctx.Done():
			more = false
		}
	}
	close(work)
	go func() { pool.Wait(); close(done) }()
	for {
		select {
		case r, more := <-done:
			if !more {
				return
			}
			end(r)
		case <-tick.C:
			l.sample()
		}
	}
}
