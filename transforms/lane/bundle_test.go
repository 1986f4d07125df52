package lane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
)

// crawl runs lanes of the hosts in one bundle, ten at the same time. One host of fifty
// takes a minute, the others take a second.
func crawl(t *testing.T, w *Worker, overlap bool, lanes, hosts int) (took time.Duration, most int64) {
	b := w.NewBundle(overlap)
	var now, peak atomic.Int64
	begin := time.Now()
	visited := 0
	for n := range lanes {
		emit := func(tally ledger.Tally) { require.EqualValues(t, hosts/lanes, tally.Counts["hosts"]) }
		require.NoError(t, b.RunLane(t.Context(), n, lanes, hosts/lanes, emit, func(within context.Context, l *Lane) error {
			ended := 0
			Begin(within, l, 10, upTo(hosts/lanes), func(ctx context.Context, i int) int {
				if n := now.Add(1); n > peak.Load() {
					peak.Store(n)
				}
				defer now.Add(-1)
				took := time.Second
				if i%50 == 49 {
					took = time.Minute
				}
				require.NoError(t, pause(ctx, took))
				return i
			}, noFailure(t), func(int) {
				visited++
				ended++
				l.Count(ledger.Tally{Counts: ledger.Counts{"hosts": 1}})
			}, func() { require.Equal(t, hosts/lanes, ended) })
			return nil
		}))
	}
	require.NoError(t, b.Finish())
	require.Equal(t, hosts, visited)
	return time.Since(begin), peak.Load()
}

// With hosts that take a minute among hosts that take a second, many small lanes reach
// at least 0.95 of the throughput of one lane, because the slow last hosts of a lane
// do not keep the next lane from its beginning.
func TestLanesOverlap(t *testing.T) {
	// Go 1.26's race detector crashes when two threads run timers of one bubble at the same
	// time (runtime.timer.maybeRunChan uses the bubble's race context without a lock): with
	// the 15,000 visits of this test in one of a hundred runs.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		one, most := crawl(t, w, true, 1, 5000)
		require.EqualValues(t, 10, most)
		small, most := crawl(t, w, true, 50, 5000)
		require.EqualValues(t, 10, most, "visits at the same time, of all lanes")
		require.GreaterOrEqual(t, one.Seconds()/small.Seconds(), 0.95, "one lane took %v, fifty %v", one, small)
		apart, _ := crawl(t, w, false, 50, 5000)
		require.Greater(t, apart.Seconds()/one.Seconds(), 1.5, "without the overlap: one lane took %v, fifty %v", one, apart)
		all, err := ledger.ReadProgress(t.Context(), w.Store, "r1")
		require.NoError(t, err)
		require.Len(t, all.Lanes, 50)
		require.False(t, slices.ContainsFunc(all.Lanes, func(p ledger.LaneProgress) bool { return !p.Finished || p.Hosts != p.HostsDone }))
	})
}

// In one process the bundles of a runner take turns, so that one host table at a time is in
// memory; but none waits for the slow last hosts of another, and together they have no
// more visits than one may have.
func TestBundlesTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // see TestLanesOverlap
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		w.cfg.Leases = false
		begin := time.Now()
		var tables, mostTables, visits, mostVisits atomic.Int64
		atWork := func(now, most *atomic.Int64) {
			n := now.Add(1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
		}
		var bundles sync.WaitGroup
		for n := range 8 {
			bundles.Go(func() {
				b := w.NewBundle(true)
				require.NoError(t, b.InTurn(t.Context(), func() error {
					atWork(&tables, &mostTables)
					defer tables.Add(-1)
					return b.RunLane(t.Context(), n, 8, 100, func(ledger.Tally) {}, func(within context.Context, l *Lane) error {
						Begin(within, l, 10, upTo(100), func(ctx context.Context, i int) int {
							atWork(&visits, &mostVisits)
							defer visits.Add(-1)
							took := time.Second
							if i == 50 {
								took = time.Minute
							}
							require.NoError(t, pause(ctx, took))
							return i
						}, noFailure(t), func(int) {}, func() {})
						return nil
					})
				}))
				require.NoError(t, b.Finish())
			})
		}
		bundles.Wait()
		require.EqualValues(t, 1, mostTables.Load())
		require.LessOrEqual(t, mostVisits.Load(), int64(11), "a lane begins with one visit at least")
		// 8 × (99 + 60) s of visits, ten at a time, and the last of the slow ones
		require.Less(t, time.Since(begin), 3*time.Minute, "one after another they take eight minutes")
		require.Zero(t, w.visits.Load())
		require.Zero(t, w.active)
	})
}

// A bundle whose turn failed, or that is not wanted any more, leaves the turn to others.
func TestTurnIsGivenBack(t *testing.T) {
	w := crawling(t)
	w.cfg.Leases = false
	failure := errors.New("it does not work")
	require.ErrorIs(t, w.NewBundle(true).InTurn(t.Context(), func() error { return failure }), failure)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, w.NewBundle(true).InTurn(t.Context(), func() error {
		err := w.NewBundle(true).InTurn(gone, func() error { t.Error("two at a time"); return nil })
		require.ErrorIs(t, err, context.Canceled)
		return nil
	}))
}

// A host that takes an hour keeps only its own lane open: the others end and emit.
func TestLanesEndOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		b := w.NewBundle(true)
		begin := time.Now()
		var ended []string
		for n := range 4 {
			emit := func(ledger.Tally) { ended = append(ended, fmt.Sprintf("%d after %v", n, time.Since(begin))) }
			require.NoError(t, b.RunLane(t.Context(), n, 4, 1, emit, func(within context.Context, l *Lane) error {
				Begin(within, l, 10, upTo(1), func(ctx context.Context, i int) int {
					took := time.Minute
					if n == 1 {
						took = time.Hour
					}
					require.NoError(t, pause(ctx, took))
					return i
				}, noFailure(t), func(int) {}, func() {})
				return nil
			}))
		}
		require.Equal(t, 1, w.active, "lanes that overlap are one lane's work")
		require.NoError(t, b.Finish())
		require.Equal(t, "1 after 1h0m0s", ended[3])
		require.ElementsMatch(t, []string{"0 after 1m0s", "2 after 1m0s", "3 after 1m0s"}, ended[:3])
		require.Zero(t, w.active)
	})
}

// An error of one lane closes all lanes of the bundle: their visits are cut off, and
// their leases are free for the next try.
func TestFailedBundleClosesItsLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, again := crawling(t), crawling(t)
		again.Store = w.Store
		b := w.NewBundle(true)
		cut := 0
		none := func(ledger.Tally) { t.Error("emitted") }
		require.NoError(t, b.RunLane(t.Context(), 0, 2, 1, none, func(within context.Context, l *Lane) error {
			Begin(within, l, 1, upTo(1), func(ctx context.Context, i int) int {
				if pause(ctx, time.Hour) != nil {
					cut++
				}
				return i
			}, noFailure(t), func(int) { t.Error("merged") }, func() { t.Error("ended") })
			return nil
		}))
		failure := errors.New("it does not work")
		begin := time.Now()
		require.ErrorIs(t, b.RunLane(t.Context(), 1, 2, 1, none, func(context.Context, *Lane) error { return failure }), failure)
		require.Equal(t, 1, cut)
		require.Zero(t, w.active)
		emitted := 0
		for n := range 2 {
			require.NoError(t, again.RunLane(t.Context(), n, 2, 1, func(ledger.Tally) { emitted++ }, func(context.Context, *Lane) error { return nil }))
		}
		require.Equal(t, 2, emitted)
		require.Zero(t, time.Since(begin), "the leases are free")
	})
}

// Beam does not say when it gives a bundle up. Its lanes are closed after a while, so
// that the next try gets their leases; a runner that comes back is refused.
func TestUnattendedBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		b := w.NewBundle(true)
		none := func(ledger.Tally) { t.Error("emitted") }
		require.NoError(t, b.RunLane(t.Context(), 0, 2, 1, none, func(within context.Context, l *Lane) error {
			Begin(within, l, 1, upTo(1), func(ctx context.Context, i int) int { _ = pause(ctx, time.Minute); return i }, noFailure(t), func(int) { t.Error("merged") }, func() {})
			return nil
		}))
		time.Sleep(maxUnattended - time.Second)
		_, busy, err := lease.ActiveHolder(t.Context(), w.Store, ledger.LanesOf("seed"))
		require.NoError(t, err)
		require.True(t, busy)
		time.Sleep(2 * time.Second)
		_, busy, err = lease.ActiveHolder(t.Context(), w.Store, ledger.LanesOf("seed"))
		require.NoError(t, err)
		require.False(t, busy)
		require.ErrorIs(t, b.RunLane(t.Context(), 1, 2, 1, none, func(context.Context, *Lane) error { t.Error("it works"); return nil }), errUnattended)
		require.ErrorIs(t, b.Finish(), errUnattended)
	})
}
