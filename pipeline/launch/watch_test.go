package launch

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// A watch copies each control action to the batch at work, also to a batch that
// begins later, and tries again when the store refuses the write.
func TestWatchControlsItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		inner, err := store.Open(ctx, t.TempDir())
		require.NoError(t, err)
		s := &refusing{Store: inner}
		w := &watcher{run: &run{store: s, id: "w1", stop: make(chan struct{})}}
		controlled, done := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); w.control(controlled) }()
		act := func(a ledger.Action) {
			t.Helper()
			require.NoError(t, ledger.WriteControl(ctx, inner, "w1", ledger.Control{Action: a, At: time.Now()}))
			time.Sleep(controlInterval)
			synctest.Wait()
		}
		batch := func(id string, want ledger.Action) {
			t.Helper()
			w.setCurrent(id)
			time.Sleep(controlInterval)
			synctest.Wait()
			c, err := ledger.ReadControl(ctx, inner, id)
			require.NoError(t, err)
			require.Equal(t, want, c.Action, id)
		}
		batch("w1-b1", ledger.ActionRun)
		act(ledger.ActionPause)
		require.True(t, w.paused.Load())
		batch("w1-b1", ledger.ActionPause)
		batch("w1-b2", ledger.ActionPause)
		s.refuses.Store(true)
		act(ledger.ActionRun)
		require.False(t, w.paused.Load())
		batch("w1-b2", ledger.ActionPause)
		s.refuses.Store(false)
		time.Sleep(time.Minute) // longer than the ledger's own retries
		batch("w1-b2", ledger.ActionRun)
		batch("w1-b3", ledger.ActionRun)
		w.setCurrent("")
		act(ledger.ActionCancel)
		<-w.stop
		batch("w1-b4", ledger.ActionCancel)
		done()
		<-ended
	})
}

// refusing is a store that refuses writes.
type refusing struct {
	store.Store
	refuses atomic.Bool
}

func (s *refusing) Put(ctx context.Context, key string, r io.Reader, o store.PutOptions) error {
	if s.refuses.Load() {
		return errors.New("no")
	}
	return s.Store.Put(ctx, key, r, o)
}

// A watch can end in the middle of a listing.
func TestWatchEndsWhileItLists(t *testing.T) {
	seed, _ := pipeline.Named("seed")
	for name, c := range map[string]struct {
		end  func(*watcher)
		want error
	}{
		"Ctrl-C":      {func(w *watcher) { w.signals <- os.Interrupt }, ErrInterrupted},
		"runs cancel": {func(w *watcher) { close(w.stop) }, errWatchCancelled},
		"lease lost":  {func(w *watcher) { w.loseLease(lease.ErrLost) }, lease.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watcher{tracker: seed.Watch.Tracker(pipeline.RunOptions{Watch: time.Minute}), run: &run{store: endless{}, signals: make(chan os.Signal, 1), stop: make(chan struct{}), lostLease: make(chan struct{})}}
				result := make(chan error, 1)
				go func() { result <- w.loop(t.Context()) }()
				synctest.Wait()
				c.end(w)
				synctest.Wait()
				select {
				case err := <-result:
					require.ErrorIs(t, err, c.want)
				default:
					t.Fatal("it is still listing")
				}
			})
		})
	}
}

// Ctrl-C ends a run that waits for the workers of an earlier run.
func TestInterruptedBeforeTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), "mem://interrupted")
		require.NoError(t, err)
		worker, err := lease.Acquire(t.Context(), lease.InStore(s), ledger.LanesOf("seed")+"/16/3", lease.Holder{Host: "vm", RunID: "r0"}, time.Minute)
		require.NoError(t, err)
		_, release := worker.Keep(t.Context(), func(lease.Event) {})
		defer func() { require.NoError(t, release()) }()
		r := &run{store: s, job: "seed", signals: make(chan os.Signal, 1), lostLease: make(chan struct{}), cfg: lane.Config{Leases: true},
			o: Options{Flags: option.New(""), RunOptions: pipeline.RunOptions{LogFormat: "json"}}}
		result := make(chan error, 1)
		go func() {
			_, _, err := r.once(t.Context(), "r1", nil)
			result <- err
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, result)
		r.signals <- os.Interrupt
		synctest.Wait()
		require.Len(t, result, 1)
		require.ErrorIs(t, <-result, ErrInterrupted)
		_, err = ledger.Load(t.Context(), s, "r1")
		require.ErrorIs(t, err, store.ErrNotExist, "the run has not begun")
	})
}

// A launcher that lost its lease stops the workers elsewhere, and its run fails.
func TestLeaseLostWithWorkersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := store.Open(ctx, "mem://lease-lost")
		require.NoError(t, err)
		o := Options{Runner: "flink", Progress: "off", RunOptions: pipeline.RunOptions{LogFormat: "json"}, Flags: option.New("")}
		r := &run{store: s, job: "seed", o: o, signals: make(chan os.Signal, 1), lostLease: make(chan struct{})}
		record := ledger.Run{RunID: "r1", Job: "seed", Runner: "flink", StartedAt: time.Now()}
		require.NoError(t, ledger.Start(ctx, s, record))
		done := make(chan error, 1)
		go func() { // the job ends when its workers have read the cancellation, or by itself
			for range 600 {
				time.Sleep(time.Second)
				if c, err := ledger.ReadControl(ctx, s, "r1"); err != nil || c.Action == ledger.ActionCancel {
					break
				}
			}
			done <- nil
		}()
		time.AfterFunc(time.Minute, func() { r.loseLease(lease.ErrLost) })
		began := time.Now()
		out := r.wait(ctx, done, newProgressLine(o, io.Discard), "r1")
		require.NoError(t, out.err)
		require.Less(t, time.Since(began), 2*time.Minute)
		report, _, err := r.conclude(ctx, record, out)
		require.ErrorIs(t, err, lease.ErrLost)
		require.Equal(t, ledger.Failed, report.State)
	})
}

// A launcher that was suspended for longer than its lease lasts reports its run as
// done when nobody took the lease over meanwhile, and as failed otherwise.
func TestLeaseLostAsleep(t *testing.T) {
	for state, taken := range map[ledger.State]bool{ledger.Done: false, ledger.Failed: true} {
		t.Run(string(state), func(t *testing.T) { asleep(t, state, taken) })
	}
}

func asleep(t *testing.T, state ledger.State, taken bool) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := store.Open(ctx, "mem://asleep-"+string(state))
		require.NoError(t, err)
		record := ledger.Run{RunID: "r1", Job: "seed", StartedAt: time.Now()}
		require.NoError(t, ledger.Start(ctx, s, record))
		require.NoError(t, ledger.WriteTotal(ctx, s, "r1", ledger.Tally{}))
		r := &run{store: s, job: "seed"}
		r.lease, err = lease.Acquire(ctx, lease.InStore(s), "seed", lease.Holder{RunID: "r1"}, 30*time.Second)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		if taken {
			_, err := lease.Acquire(ctx, lease.InStore(s), "seed", lease.Holder{RunID: "r2"}, 30*time.Second)
			require.NoError(t, err)
		}
		report, _, err := r.conclude(ctx, record, outcome{})
		require.Equal(t, taken, errors.Is(err, lease.ErrLost), err)
		require.Equal(t, state, report.State)
	})
}

// endless is a store whose listing never ends.
type endless struct{ store.Store }

func (endless) List(ctx context.Context, _ string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		<-ctx.Done()
		yield(store.Object{}, ctx.Err())
	}
}

// The progress of a watch is the sum of the batches that ended and of the batch
// at work.
func TestWatchShowsWhatItDoes(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, t.TempDir())
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	w := &watcher{run: &run{store: s, job: "seed", id: "w"}}
	record := ledger.Run{RunID: "w", Job: "seed", StartedAt: time.Now()}
	require.NoError(t, ledger.Start(ctx, s, record))
	w.total = ledger.Tally{Counts: ledger.Counts{"files_read": 3, "records": 40, "domains_collected": 30}, HTTP: ledger.HTTP{Requests: 90}}
	at := ledger.Progress{Tally: ledger.Tally{HTTP: ledger.HTTP{Requests: 12}},
		Lanes: []ledger.LaneProgress{{Hosts: 9, HostsDone: 4, Tally: ledger.Tally{Counts: ledger.Counts{"domains_collected": 4}}}}}
	require.NoError(t, ledger.WriteProgress(ctx, s, "w-b000001", "p", at))
	for batch, want := range map[string][4]int64{"": {3, 40, 30, 90}, "w-b000001": {3, 40, 34, 102}} {
		w.setCurrent(batch)
		w.show(ctx, batch)
		w.show(ctx, "w-b000000") // a batch that has ended, so it is in the total already
		r, err := ledger.ReportSoFar(ctx, s, ledger.Job{}, record, time.Now())
		require.NoError(t, err)
		assert.Equal(t, want, [4]int64{r.Counts["files_read"], r.Counts["records"], r.Counts["domains_collected"], r.HTTP.Requests}, batch)
	}
}
