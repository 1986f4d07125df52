package lane

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
)

// A lane writes its progress every five seconds, even while one host takes longer,
// and during a pause.
func TestProgressEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		begin := time.Now()
		time.AfterFunc(8*time.Second, func() { w.paused.Store(true) })
		time.AfterFunc(40*time.Second, func() { w.paused.Store(false) })
		var mu sync.Mutex
		seen := map[time.Duration]ledger.Progress{}
		look := func() {
			all, err := ledger.Progresses(t.Context(), w.Store, "r1")
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range all {
				seen[time.Since(begin).Round(time.Second)] = p
			}
		}
		for s := 6; s < 60; s += 5 {
			time.AfterFunc(time.Duration(s)*time.Second, look)
		}
		l := w.beginLane(t.Context(), 3, 4)
		l.bundle = alone(t, w).bundle
		// One host takes two seconds; the next takes twelve, into the pause; two more follow the pause.
		Drain(t.Context(), l, 1, upTo(4), func(ctx context.Context, i int) int {
			_ = pause(ctx, []time.Duration{2, 12, 3, 7}[i]*time.Second)
			return i
		}, noFailure(t), func(int) {
			l.Count(ledger.Tally{Counts: ledger.Counts{"hosts": 1}})
		})
		l.end()
		look()
		mu.Lock()
		defer mu.Unlock()
		end := time.Since(begin).Round(time.Second)
		for s := 6; s < int(end/time.Second); s += 5 {
			at := time.Duration(s) * time.Second
			require.Contains(t, seen, at)
			require.Equal(t, begin.Add(at-time.Second).UTC(), seen[at].UpdatedAt, "%v", at)
			require.False(t, seen[at].Finished)
			require.Equal(t, 3, seen[at].Lane)
			require.EqualValues(t, 4, seen[at].Hosts)
		}
		require.EqualValues(t, 1, seen[6*time.Second].HostsDone)
		require.EqualValues(t, 1, seen[6*time.Second].Tally.Counts["hosts"])
		require.EqualValues(t, 2, seen[36*time.Second].HostsDone, "during the pause")
		last := seen[end]
		require.True(t, last.Finished)
		require.EqualValues(t, 4, last.HostsDone)
		require.EqualValues(t, 4, last.Tally.Counts["hosts"])
		require.Positive(t, last.Tally.Store["list"], "store calls since the lane's beginning: %v", last.Tally.Store)
	})
}

// The next progress has what a visit has counted so far, what a stage without lanes
// has counted, and the dead letters. With several lanes at work each count is in the
// progress of one lane only.
func TestProgressShowsUnfinishedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		w.Emit(func(ledger.Tally) {}, ledger.Tally{Counts: ledger.Counts{"files_listed": 7}})
		first, second := w.beginLane(t.Context(), 0, 1), w.beginLane(t.Context(), 1, 1)
		seen := func() (sum ledger.Tally) {
			time.Sleep(progressEvery + time.Second)
			all, err := ledger.Progresses(t.Context(), w.Store, "r1")
			require.NoError(t, err)
			for _, p := range all {
				require.Zero(t, p.HostsDone)
				sum.Add(p.Tally)
			}
			return sum
		}
		require.Equal(t, ledger.Counts{"files_listed": 7}, seen().Counts)
		w.Count(ledger.Tally{Counts: ledger.Counts{"pages": 2}})
		require.Equal(t, ledger.Counts{"files_listed": 7, "pages": 2}, seen().Counts)
		w.Count(ledger.Tally{Counts: ledger.Counts{"pages": 1}})
		require.NoError(t, w.DeadLetter(t.Context(), ledger.DeadLetter{Job: "seed", RunID: "r1", Stage: "visit", Kind: "x", Error: "x", Input: ledger.Input{URL: "https://a.example/"}}))
		now := seen()
		require.Equal(t, ledger.Counts{"files_listed": 7, "pages": 3, "dead_letters": 1}, now.Counts)
		require.Equal(t, ledger.Counts{"x": 1}, now.DeadLetters)
		var sum ledger.Tally
		sum.Count("pages", 3)
		w.emitCounted(func(ledger.Tally) {}, sum) // this was counted before
		first.end()
		second.end()
		all, err := ledger.Progresses(t.Context(), w.Store, "r1")
		require.NoError(t, err)
		require.EqualValues(t, 3, all[0].Tally.Counts["pages"]+all[1].Tally.Counts["pages"])
	})
}

// The progress of a run shows a long wait while it lasts, once for all lanes.
func TestProgressShowsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		first, second := w.beginLane(t.Context(), 0, 1), w.beginLane(t.Context(), 1, 1)
		run := ledger.Run{RunID: "r1", Job: "docs", State: ledger.Running, Async: true, StartedAt: time.Now()}
		said := func() []string {
			time.Sleep(progressEvery + time.Second)
			r, err := ledger.ReportSoFar(t.Context(), w.Store, ledger.Job{}, run, time.Now())
			require.NoError(t, err)
			return r.Alerts
		}
		over := w.Waits("a waits until noon")
		also := w.Waits("b waits until one")
		require.Equal(t, []string{"a waits until noon", "b waits until one"}, said())
		over()
		require.Equal(t, []string{"b waits until one"}, said())
		first.end()
		second.end()
		require.Empty(t, said(), "a lane that ended shows no waits")
		also()
	})
}

// slow is a store whose first write takes long.
type slow struct {
	store.Store
	once sync.Once
}

func (s *slow) Put(_ context.Context, key string, body io.Reader, o store.PutOptions) error {
	s.once.Do(func() { time.Sleep(3 * time.Second) })
	return s.Store.Put(context.Background(), key, body, o)
}

// A lane that ends while a write is in progress leaves its last figures.
func TestProgressEndIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leasing(t, &slow{Store: memory(t)}, "r1")
		client, err := web.New(web.Config{})
		require.NoError(t, err)
		defer client.Close()
		w.Web = client
		l := w.beginLane(t.Context(), 0, 1)
		time.Sleep(progressEvery + time.Second)
		l.end()
		time.Sleep(time.Minute)
		all, err := ledger.Progresses(t.Context(), w.Store, "r1")
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.True(t, all[0].Finished)
	})
}

// The report of an interrupted run is made from the live figures. They include the
// dead letters, also those that a stage has already added to its own total.
func TestLiveHasDeadLetters(t *testing.T) {
	w := leasing(t, memory(t), "r1")
	client, err := web.New(web.Config{})
	require.NoError(t, err)
	defer client.Close()
	w.Web = client
	for i, url := range []string{"https://a.example/", "https://b.example/"} {
		require.NoError(t, w.DeadLetter(t.Context(), ledger.DeadLetter{Job: "seed", RunID: "r1", Stage: "store", Kind: "store_failed", Error: "x", Input: ledger.Input{URL: url}}))
		require.EqualValues(t, i+1, w.Live().DeadLetters["store_failed"])
		require.EqualValues(t, 1, w.take().DeadLetters["store_failed"])
	}
	require.EqualValues(t, 2, w.Live().Counts["dead_letters"])
}
