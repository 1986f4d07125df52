package lane

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// parseBudget is how many bytes of strangers' documents the process parses at
// once, over all jobs and lanes: a parser makes up to sixty times as much of a
// page that is nothing but tags. 160 usual pages fit, or one of that size.
const parseBudget = 16 << 20

var parsed = semaphore.NewWeighted(parseBudget)

// Parsing waits until a document of so many bytes, decompressed, fits into what
// the process parses at once. The caller calls done when it has dropped what
// the parser made. Only ctx ends the wait early.
func Parsing(ctx context.Context, size int) (done func(), err error) {
	weight := min(int64(max(size, 1)), parseBudget)
	if err := parsed.Acquire(ctx, weight); err != nil {
		return nil, fmt.Errorf("waiting to parse %d bytes: %w", size, err)
	}
	return func() { parsed.Release(weight) }, nil
}
