package lane

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// withLanes returns how long workers take for hosts that are spread over lanes by chance.
// Each worker has that many visits at once, and takes the next lane from one queue, as
// runners divide a bundle between its elements. A lane itself is never divided.
func withLanes(t *testing.T, workers, visits, lanes int, hosts []time.Duration) time.Duration {
	chance := rand.New(rand.NewPCG(1, uint64(lanes)))
	in := make([][]time.Duration, lanes)
	for _, took := range hosts {
		n := chance.IntN(lanes)
		in[n] = append(in[n], took)
	}
	queue := make(chan int, lanes)
	for n := range lanes {
		queue <- n
	}
	close(queue)
	begin := time.Now()
	var all sync.WaitGroup
	for range workers {
		w := crawling(t)
		all.Go(func() {
			b := w.NewBundle(true)
			for n := range queue {
				if err := b.RunLane(t.Context(), n, lanes, len(in[n]), func(ledger.Tally) {}, func(within context.Context, l *Lane) error {
					Begin(within, l, visits, slices.Values(in[n]), func(ctx context.Context, took time.Duration) error { return pause(ctx, took) },
						func(_ time.Duration, err error) error { return err }, func(err error) {
							if err != nil {
								t.Error(err)
							}
						}, func() {})
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			if err := b.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

// ifSplit is the same if lanes could be divided anywhere, at any time and for nothing:
// any free visit of any worker takes the next host.
func ifSplit(workers, visits int, hosts []time.Duration) (took time.Duration) {
	free := make([]time.Duration, workers*visits)
	for _, host := range hosts {
		first := 0
		for i, at := range free {
			if at < free[first] {
				first = i
			}
		}
		free[first] += host
		took = max(took, free[first])
	}
	return took
}

// Lanes that overlap and are small leave little for a lane that a runner can split
// while it is at work: docs/design-notes.md has the figures, and why there is no such lane.
func TestWhatSplitLanesWouldGain(t *testing.T) {
	// See TestLanesOverlap: Go 1.26's race detector.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const workers, visits, n = 4, 16, 4800
	for name, host := range map[string]func(chance float64) time.Duration{
		"all alike": func(float64) time.Duration { return time.Second },
		"one of fifty takes a minute": func(chance float64) time.Duration {
			if chance < 0.02 {
				return time.Minute
			}
			return time.Second
		},
		"a heavy tail": func(chance float64) time.Duration { // Pareto's, up to two minutes
			return time.Duration(min(120, 0.5/math.Pow(1-chance, 1/1.2)) * float64(time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var split time.Duration
			took := map[int]time.Duration{}
			for seed := range uint64(2) { // what is last is chance
				chance, hosts := rand.New(rand.NewPCG(7, seed)), make([]time.Duration, n)
				for i := range hosts {
					hosts[i] = host(chance.Float64())
				}
				split += ifSplit(workers, visits, hosts)
				for _, each := range []int{1, 16, 64} {
					synctest.Test(t, func(t *testing.T) { took[each] += withLanes(t, workers, visits, workers*each, hosts) })
				}
			}
			for _, each := range []int{1, 16, 64} {
				t.Logf("%2d lanes a worker: %v, %.3f of the time if lanes could be split (%v)", each, took[each].Round(time.Second), took[each].Seconds()/split.Seconds(), split.Round(time.Second))
			}
			require.LessOrEqual(t, took[16].Seconds()/split.Seconds(), 1.1)
		})
	}
}
