package lane

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
)

// bundle returns the context of a ProcessElement call, and a function that reads its Beam counters.
func bundle(t *testing.T) (context.Context, func() ledger.Counts) {
	ctx := metrics.SetPTransformID(metrics.SetBundleID(t.Context(), "b"), "visit")
	return ctx, func() ledger.Counts {
		now := ledger.Counts{}
		require.NoError(t, metrics.Extractor{SumInt64: func(l metrics.Labels, n int64) {
			if l.Namespace() == "lanes" {
				now[l.Name()] = n
			}
		}}.ExtractFrom(metrics.GetStore(ctx)))
		return now
	}
}

// What a host's visit counts, itself or by a sample, is in the live figures, in
// Beam's counters and in the lane's progress while the visit still runs. At the end
// it is in the lane's tally, once.
func TestLaneCountsWhileAHostIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		ctx, counters := bundle(t)
		var saved atomic.Int64
		var total ledger.Tally
		merged := 0
		err := w.RunLane(ctx, 2, 16, 1, func(t ledger.Tally) { total = t }, func(within context.Context, l *Lane) error {
			l.Sample = func() ledger.Counts { return ledger.Counts{"saved": saved.Load()} }
			Drain(within, l, 1, upTo(1), func(ctx context.Context, _ int) error {
				for i := range 10 {
					l.Count(ledger.Tally{Counts: ledger.Counts{"pages": 1}})
					saved.Add(2)
					if err := pause(ctx, 3*time.Second); err != nil {
						return err
					}
					want := ledger.Counts{"pages": int64(i + 1), "saved": int64(2 * (i + 1))}
					require.Equal(t, want, w.Live().Counts)
					require.Equal(t, want, counters())
					if i == 2 { // after 9 s; written after 5
						all, err := ledger.ReadProgress(ctx, w.Store, "r1")
						require.NoError(t, err)
						require.Len(t, all.Lanes, 1)
						require.Equal(t, 2, all.Lanes[0].Lane)
						require.Equal(t, ledger.Counts{"pages": 2, "saved": 4}, all.Tally.Counts)
					}
				}
				return nil
			}, func(_ int, err error) error { return err }, func(err error) {
				require.NoError(t, err)
				merged++
			})
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, merged)
		want := ledger.Counts{"pages": 10, "saved": 20}
		require.Equal(t, want, total.Counts)
		require.Equal(t, want, counters())
		require.Equal(t, want, w.Live().Counts)
		all, err := ledger.ReadProgress(ctx, w.Store, "r1")
		require.NoError(t, err)
		require.True(t, all.Lanes[0].Finished)
		require.Equal(t, want, all.Tally.Counts)
		require.EqualValues(t, 1, all.Lanes[0].HostsDone)
	})
}

// A lane whose run is stopped while it waits for its lease does no work, but still
// emits a tally. A lane whose work fails ends its progress and releases its lease.
func TestRunLaneWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		client, err := web.New(web.Config{})
		require.NoError(t, err)
		defer client.Close()
		first, second, third := leasing(t, s, "r1"), leasing(t, s, "r2"), leasing(t, s, "r3")
		first.Web, second.Web, third.Web = client, client, client
		failure := errors.New("it does not work")
		emitted := 0
		emit := func(ledger.Tally) { emitted++ }
		err = first.RunLane(t.Context(), 0, 1, 1, emit, func(context.Context, *Lane) error {
			time.AfterFunc(time.Minute, func() { second.Stop(nil) })
			require.NoError(t, second.RunLane(t.Context(), 0, 1, 1, emit, func(context.Context, *Lane) error {
				t.Error("it does not have the lease")
				return nil
			}))
			require.Equal(t, 1, emitted)
			return failure
		})
		require.ErrorIs(t, err, failure)
		require.Equal(t, 1, emitted, "a lane whose work failed emits nothing, because it is done again")
		require.Zero(t, first.active)
		begin := time.Now()
		require.NoError(t, third.RunLane(t.Context(), 0, 1, 1, emit, func(context.Context, *Lane) error { return nil }))
		require.Zero(t, time.Since(begin), "the lease is free")
	})
}
