package lane

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
)

// leasing makes a worker of a run whose workers are elsewhere.
func leasing(t *testing.T, s store.Store, run string) *Worker {
	t.Helper()
	w := idle(t, 0)
	w.cfg = Config{Job: "seed", RunID: run, Leases: true, LeaseTTL: 30 * time.Second}
	w.calls = new(store.Calls)
	w.Store = store.Counted(s, w.calls)
	w.Log = Logger("json", 12)
	return w
}

// crawling makes a worker of run r1 with its own store, and with a client of the web.
func crawling(t *testing.T) *Worker {
	t.Helper()
	w := leasing(t, memory(t), "r1")
	client, err := web.New(web.Config{})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w.Web = client
	return w
}

var memories atomic.Int64

func memory(t *testing.T) store.Store {
	t.Helper()
	// A memory store lives as long as the process: with -count the next round must not find the objects of this one.
	s, err := store.Open(t.Context(), fmt.Sprintf("mem://%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), memories.Add(1)))
	require.NoError(t, err)
	return s
}

func TestAcquireLaneWaitsForTheOtherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		begin := time.Now()
		within, release, again, _, err := leasing(t, s, "first").acquireLane(t.Context(), 3, 16)
		if err != nil || within == nil || again {
			t.Fatal(within, again, err)
		}
		time.AfterFunc(100*time.Second, release) // it is renewed for longer than its time to live
		if within, free, _, _, err := leasing(t, s, "second").acquireLane(t.Context(), 4, 16); err != nil || within == nil || time.Since(begin) > 0 {
			t.Fatalf("another lane: acquired %v, %v after %v", within != nil, err, time.Since(begin))
		} else {
			free()
		}
		within, free, again, _, err := leasing(t, s, "second").acquireLane(t.Context(), 3, 16)
		if err != nil || within == nil || again {
			t.Fatal(within, again, err)
		}
		if took := time.Since(begin); took < 100*time.Second || took > 102*time.Second {
			t.Errorf("the second worker had the lane after %v, want soon after the first released it at 100s", took)
		}
		free()
	})
}

// A lane begins again if this run had it before: in this process or in another one, and
// whether that one released it or was killed. Other runs and other lanes do not count.
func TestAcquireLaneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		at := func(run string, n int, killed bool) (again bool) {
			w := leasing(t, s, run)
			within, release, again, _, err := w.acquireLane(t.Context(), n, 16)
			if err != nil || within == nil {
				t.Fatal(within, err)
			}
			if killed {
				body := fmt.Sprintf(`{"holder":{"host":"another","run_id":%q},"token":"x","expires_at":%q}`, run, time.Now().Add(10*time.Second).Format(time.RFC3339))
				require.NoError(t, s.Put(t.Context(), fmt.Sprintf("lease/lanes/seed/16/%d/000009", n), strings.NewReader(body), store.PutOptions{}))
			}
			release()
			return again
		}
		for i, step := range []struct {
			run    string
			lane   int
			killed bool
			want   bool
		}{
			{"first", 3, false, false},
			{"second", 3, false, false},
			{"second", 4, true, false},
			{"second", 3, false, true},
			{"second", 4, false, true},
			{"third", 4, false, false},
		} {
			assert.Equal(t, step.want, at(step.run, step.lane, step.killed), "step %d: again", i)
		}
	})
}

func TestAcquireLaneIsGivenUpOnAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		_, release, _, _, err := leasing(t, s, "first").acquireLane(t.Context(), 0, 1)
		require.NoError(t, err)
		defer release()
		w := leasing(t, s, "second")
		time.AfterFunc(5*time.Second, func() { w.Stop(nil) })
		begin := time.Now()
		within, _, _, _, err := w.acquireLane(t.Context(), 0, 1)
		assert.True(t, within == nil && err == nil && time.Since(begin) == 5*time.Second,
			"acquired %v, %v after %v; want false at the stop after 5s", within != nil, err, time.Since(begin))
	})
}

func TestLostLaneSendsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		w := leasing(t, s, "first")
		within, release, _, _, err := w.acquireLane(t.Context(), 0, 1)
		if err != nil || within == nil {
			t.Fatal(within, err)
		}
		body := `{"holder":{"host":"another"},"token":"x","expires_at":"2100-01-01T00:00:00Z"}`
		require.NoError(t, s.Put(t.Context(), "lease/lanes/seed/1/0/000002", strings.NewReader(body), store.PutOptions{}))
		begin := time.Now()
		begun, cut := 0, 0
		Drain(within, alone(t, w), 1, upTo(10), func(ctx context.Context, _ int) error { return pause(ctx, time.Minute) },
			func(_ int, err error) error { return err }, func(err error) {
				begun++
				if err != nil {
					cut++
				}
			})
		assert.True(t, begun == 1 && cut == 1 && time.Since(begin) <= 10*time.Second,
			"%d visits begun, %d cut, after %v; want 1, 1, within a heartbeat", begun, cut, time.Since(begin))
		release()
		assert.EqualValues(t, 1, w.untaken.Counts[ledger.LanesLost], "%s", ledger.LanesLost)
	})
}

func TestAcquireLaneCostsNothingInOneProcess(t *testing.T) {
	w := leasing(t, memory(t), "only")
	w.cfg.Leases = false
	for _, want := range []bool{false, true} {
		within, release, again, _, err := w.acquireLane(t.Context(), 0, 1)
		release()
		if err != nil || within == nil || again != want {
			t.Error(within, again, err)
		}
	}
	for kind, n := range w.calls.Snapshot() {
		assert.True(t, n <= 0, "%d store calls: %s", n, kind)
	}
}

func TestWaitForLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		begin := time.Now()
		var waited []string
		wait := func() {
			require.NoError(t, WaitForLanes(t.Context(), s, "seed", func(h lease.Holder) { waited = append(waited, h.RunID) }))
		}
		wait()
		require.True(t, time.Since(begin) <= 0 && waited == nil, "an empty store: waited %v for %v", time.Since(begin), waited)
		for n := range 3 {
			_, release, _, _, err := leasing(t, s, "old").acquireLane(t.Context(), n, 7)
			require.NoError(t, err)
			time.AfterFunc(time.Duration(20+n)*time.Second, release)
		}
		wait()
		if took := time.Since(begin); took < 22*time.Second || took > 24*time.Second || fmt.Sprint(waited) != "[old]" {
			t.Errorf("waited %v for %v, want 22s for one run, announced once", took, waited)
		}
	})
}

// A lease that nobody took over is lost when its database is: the run must not end as if another one did its work.
func TestLeaseOfALostDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "db")
		d, err := db.Open(t.Context(), "sqlite://"+file)
		require.NoError(t, err)
		defer func() { _ = d.Close() }()
		w := leasing(t, memory(t), "first")
		within, release, err := w.Lease(t.Context(), lease.InDB(d), 3*time.Second, false, "site/a")
		if err != nil || within == nil {
			t.Fatal(within, err)
		}
		require.NoError(t, os.Remove(file))
		<-within.Done()
		if cause := w.Cause(); !fault.Stops(cause) || !strings.Contains(cause.Error(), "was deleted") {
			t.Errorf("the run was stopped by %v, want the loss of its database", cause)
		}
		release()
	})
}

// unreachable is a store that cannot be reached.
type unreachable struct{ store.Store }

func (unreachable) Put(context.Context, string, io.Reader, store.PutOptions) error {
	return syscall.ECONNREFUSED
}

func (unreachable) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, syscall.ECONNREFUSED
}

// After a run was stopped by a shortage, its later stages do not wait for it again, and what was cut off is no failure.
func TestStoppedByAShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leasing(t, unreachable{memory(t)}, "first")
		began := time.Now()
		err := store.Write(t.Context(), w.Store, "a", nil, store.PutOptions{})
		took := time.Since(began)
		require.True(t, fault.Stops(err) && took >= fault.MaxWait, "%v after %v, want a shortage after a minute", err, took)
		assert.True(t, !w.NotStored(context.Canceled) && w.NotStored(err), "a result is recorded after the stop")
		began = time.Now()
		_, err = store.ReadAll(t.Context(), w.Store, "a", 1)
		took = time.Since(began)
		assert.True(t, errors.Is(err, syscall.ECONNREFUSED) && took <= 10*time.Second, "another call waited for %v after the stop: %v", took, err)
		assert.True(t, w.NotStored(context.Canceled), "what the stop has cut off is recorded as a failure")
	})
}

// A process that was suspended for longer than its run's lease lasts sends and writes
// nothing until it knows that nobody took the lease over, and nothing at all if
// somebody did.
func TestNothingIsSentOrWrittenWithoutTheRunsLease(t *testing.T) {
	for name, taken := range map[string]bool{"taken over": true, "not taken over": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			var sent atomic.Int64
			site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
			defer site.Close()
			clock, err := db.Open(ctx, "sqlite:///:memory:")
			require.NoError(t, err)
			defer func() { _ = clock.Close() }()
			var asleep atomic.Int64
			clock.Now = func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) }
			l, err := lease.Acquire(ctx, lease.InDB(clock), "run", lease.Holder{Host: "a"}, time.Minute)
			require.NoError(t, err)
			Under(name, l)
			w, err := Open(ctx, Config{Job: "seed", RunID: name, Store: fmt.Sprintf("mem://suspended-%d", memories.Add(1)), Web: web.Config{AllowPrivate: true}, LogFormat: "json", LogLevel: 12})
			require.NoError(t, err)
			defer func() { _ = Close(name) }()
			d, err := w.DB(ctx, "sqlite:///:memory:", func(ctx context.Context, d *db.DB) error {
				_, err := d.ExecContext(ctx, `CREATE TABLE kept (n INTEGER)`)
				return err
			})
			require.NoError(t, err)
			does := map[string]func() error{
				"request": func() error { _, err := w.Web.Get(ctx, web.Request{URL: site.URL}); return err },
				"put":     func() error { return w.Store.Put(ctx, "a", strings.NewReader("x"), store.PutOptions{}) },
				"create": func() error {
					return w.Store.PutIfAbsent(ctx, fmt.Sprint("b", time.Now().UnixNano()), strings.NewReader("x"), store.PutOptions{})
				},
				"delete":      func() error { return w.Store.Delete(ctx, "a") },
				"statement":   func() error { _, err := d.ExecContext(ctx, `INSERT INTO kept VALUES (1)`); return err },
				"transaction": func() error { return d.Tx(ctx, func(tx *sql.Tx) error { return nil }) },
			}
			for what, do := range does {
				assert.NoError(t, do(), "%s with the lease", what)
			}
			before := sent.Load()
			for what, do := range does {
				asleep.Add(int64(2 * time.Minute))
				if taken && !l.Lost() {
					_, err := lease.Acquire(ctx, lease.InDB(clock), "run", lease.Holder{Host: "b"}, 24*time.Hour)
					require.NoError(t, err)
				}
				epoch := l.Epoch()
				err := do()
				assert.True(t, taken == errors.Is(err, lease.ErrLost) && (taken || (err == nil && l.Epoch() != epoch)),
					"%s: %v, in epoch %d after %d", what, err, l.Epoch(), epoch)
			}
			n := sent.Load() - before
			assert.True(t, (!taken || n == 0) && (taken || n == 1), "%d requests were sent", n)
			assert.True(t, !taken || (w.Stopped() && w.ctx.Err() != nil), "the worker was not stopped at once")
		})
	}
}
