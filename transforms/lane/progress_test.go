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

// opened begins a lane that is alone in its bundle.
func opened(t *testing.T, w *Worker, n, hosts int) *Lane {
	b := w.NewBundle(false)
	t.Cleanup(b.abandon)
	return b.open(t.Context(), ledger.LaneProgress{Lane: n, Hosts: int64(hosts)}, func(ledger.Tally) {}, func() {})
}

// ends ends lanes whose visits are merged.
func ends(t *testing.T, lanes ...*Lane) {
	for _, l := range lanes {
		l.begun = true
		l.endIfDone()
		require.NoError(t, l.bundle.Finish())
	}
}

// A process writes the progress of its lanes every five seconds, even while one host takes longer,
// and during a pause.
func TestProgressEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		begin := time.Now()
		time.AfterFunc(8*time.Second, func() { w.paused.Store(true) })
		time.AfterFunc(40*time.Second, func() { w.paused.Store(false) })
		var mu sync.Mutex
		seen := map[time.Duration]ledger.LaneProgress{}
		look := func() {
			all, err := ledger.ReadProgress(t.Context(), w.Store, "r1")
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range all.Lanes {
				p.Tally = all.Tally
				seen[time.Since(begin).Round(time.Second)] = p
			}
		}
		for s := 6; s < 60; s += 5 {
			time.AfterFunc(time.Duration(s)*time.Second, look)
		}
		l := opened(t, w, 3, 4)
		// One host takes two seconds; the next takes twelve, into the pause; two more follow the pause.
		Drain(t.Context(), l, 1, upTo(4), func(ctx context.Context, i int) int {
			_ = pause(ctx, []time.Duration{2, 12, 3, 7}[i]*time.Second)
			return i
		}, noFailure(t), func(int) {
			l.Count(ledger.Tally{Counts: ledger.Counts{"hosts": 1}})
		})
		ends(t, l)
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
// has counted, and the dead letters, each once.
func TestProgressShowsUnfinishedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		w.Emit(func(ledger.Tally) {}, ledger.Tally{Counts: ledger.Counts{"files_listed": 7}})
		first, second := opened(t, w, 0, 1), opened(t, w, 1, 1)
		seen := func() (sum ledger.Tally) {
			time.Sleep(progressEvery + time.Second)
			all, err := ledger.ReadProgress(t.Context(), w.Store, "r1")
			require.NoError(t, err)
			require.Len(t, all.Lanes, 2)
			for _, p := range all.Lanes {
				require.Zero(t, p.HostsDone)
			}
			return all.Tally
		}
		require.Equal(t, ledger.Counts{"files_listed": 7}, seen().Counts)
		first.Count(ledger.Tally{Counts: ledger.Counts{"pages": 2}})
		require.Equal(t, ledger.Counts{"files_listed": 7, "pages": 2}, seen().Counts)
		second.Count(ledger.Tally{Counts: ledger.Counts{"pages": 1}})
		require.NoError(t, w.DeadLetter(t.Context(), ledger.DeadLetter{Job: "seed", RunID: "r1", Stage: "visit", Kind: "x", Error: "x", Input: ledger.Input{URL: "https://a.example/"}}))
		now := seen()
		require.Equal(t, ledger.Counts{"files_listed": 7, "pages": 3, "dead_letters": 1}, now.Counts)
		require.Equal(t, ledger.Counts{"x": 1}, now.DeadLetters)
		ends(t, first, second)
		require.Equal(t, now.Counts, seen().Counts, "the emitted tallies are the same counts")
	})
}

// The progress of a run shows a long wait while it lasts, once for all lanes.
func TestProgressShowsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crawling(t)
		first, second := opened(t, w, 0, 1), opened(t, w, 1, 1)
		run := ledger.Run{RunID: "r1", Job: "docs", Runner: "flink", StartedAt: time.Now()}
		require.NoError(t, ledger.Start(t.Context(), w.Store, run))
		run.State = ledger.Running
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
		ends(t, first, second)
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
		l := opened(t, w, 0, 1)
		time.Sleep(progressEvery + time.Second)
		ends(t, l)
		time.Sleep(time.Minute)
		all, err := ledger.ReadProgress(t.Context(), w.Store, "r1")
		require.NoError(t, err)
		require.Len(t, all.Lanes, 1)
		require.True(t, all.Lanes[0].Finished)
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

// A worker is killed after it did 30 of a lane's 50 hosts, and another one does the lane again. Its counts replace those of the killed one.
// The lanes that the killed one finished keep theirs, and so do the requests that it sent.
func TestProgressAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := crawling(t)
		second := leasing(t, first.Store, "r1")
		second.Web = first.Web
		lane := func(w *Worker, n, hosts, done int) error {
			return w.RunLane(t.Context(), n, 8, hosts, func(ledger.Tally) {}, func(within context.Context, l *Lane) error {
				Drain(within, l, 1, upTo(done), func(_ context.Context, i int) int { return i }, noFailure(t), func(int) {
					l.Count(ledger.Tally{Counts: ledger.Counts{"hosts": 1}})
				})
				if done < hosts {
					time.Sleep(progressEvery + time.Second)
					w.cancel() // nothing of this process reaches the store from now on
				}
				return w.ctx.Err()
			})
		}
		require.NoError(t, lane(first, 1, 40, 40))
		require.ErrorIs(t, lane(first, 2, 50, 30), context.Canceled)
		type figures struct{ lanes, hosts, done, counted int64 }
		read := func(epochs ...int64) (f figures) {
			p, err := ledger.ReadProgress(t.Context(), first.Store, "r1")
			require.NoError(t, err)
			f.lanes, f.counted = int64(len(p.Lanes)), p.Tally.Counts["hosts"]
			for i, l := range p.Lanes {
				f.hosts, f.done = f.hosts+l.Hosts, f.done+l.HostsDone
				require.Equal(t, epochs[i], l.Epoch)
			}
			return f
		}
		require.Equal(t, figures{2, 90, 70, 70}, read(1, 1))
		own := processName
		defer func() { processName = own }()
		processName = func() string { return "second" }
		require.NoError(t, lane(second, 2, 50, 50))
		require.Equal(t, figures{2, 90, 90, 90}, read(1, 2))
	})
}
