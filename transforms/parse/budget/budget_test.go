package budget_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

// However many are at work, so many bytes are parsed at once and no more.
func TestBudget(t *testing.T) {
	const mib, whole = 1 << 20, 16
	for _, tt := range []struct{ size, atOnce int64 }{{mib, whole}, {5 * mib, 3}, {10 * mib, 1}, {100 * mib, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var now, most, done atomic.Int64
			for range 40 {
				go func() {
					end, err := budget.Begin(t.Context(), int(tt.size))
					if err != nil {
						t.Error(err)
						return
					}
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second) // the bubble's
					now.Add(-1)
					done.Add(1)
					end()
				}()
			}
			time.Sleep(time.Minute)
			if most.Load() != tt.atOnce || done.Load() != 40 {
				t.Errorf("of %d MiB each: %d at once and %d done, want %d and 40", tt.size/mib, most.Load(), done.Load(), tt.atOnce)
			}
		})
	}
}

func TestBeginEndsWithItsContext(t *testing.T) {
	end, err := budget.Begin(t.Context(), 1<<30)
	require.NoError(t, err)
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = budget.Begin(ctx, 1)
	assert.ErrorIs(t, err, context.Canceled, "%v, want the context's error", err)
}
