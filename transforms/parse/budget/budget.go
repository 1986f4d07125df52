// Package budget bounds what the process parses of strangers' documents at
// once, over all jobs and lanes.
package budget

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// budget is in bytes of documents. A parser makes up to sixty times as much of
// a page that is nothing but tags. 160 usual pages fit, or one of that size.
const budget = 16 << 20

var taken = semaphore.NewWeighted(budget)

// Begin waits until a document of so many bytes, decompressed, fits into the
// budget. The caller calls end when it has dropped what the parser made. The
// error is that ctx was done first.
func Begin(ctx context.Context, size int) (end func(), err error) {
	weight := min(int64(max(size, 1)), budget)
	if err := taken.Acquire(ctx, weight); err != nil {
		return nil, fmt.Errorf("waiting to parse %d bytes: %w", size, err)
	}
	return func() { taken.Release(weight) }, nil
}
