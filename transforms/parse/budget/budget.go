// Package budget bounds the size of all documents that the process parses at
// the same time, over all jobs and lanes. No promise: see docs/library.md.
package budget

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// budget is in bytes of documents. A parser needs up to sixty times the size of
// a page that consists of tags only. 160 ordinary pages fit, or one of that size.
const budget = 16 << 20

var taken = semaphore.NewWeighted(budget)

type watch struct {
	alone bool
	begun func() (ended func())
}

type watchKey struct{}

// Watch returns a context for the documents of one unit. Begin calls begun when the parsing of such a
// document begins, and ended at its end. With alone, no other document is parsed meanwhile.
func Watch(ctx context.Context, alone bool, begun func() (ended func())) context.Context {
	return context.WithValue(ctx, watchKey{}, watch{alone, begun})
}

// Begin waits until a document of so many bytes, decompressed, fits into the
// budget. The caller calls end when it no longer needs the parser's result. The
// error is that ctx was done first.
func Begin(ctx context.Context, size int) (end func(), err error) {
	weight := min(int64(max(size, 1)), budget)
	w, watched := ctx.Value(watchKey{}).(watch)
	if w.alone {
		weight = budget
	}
	if err := taken.Acquire(ctx, weight); err != nil {
		return nil, fmt.Errorf("waiting to parse %d bytes: %w", size, err)
	}
	ended := func() {}
	if watched {
		ended = w.begun()
	}
	return func() { ended(); taken.Release(weight) }, nil
}
