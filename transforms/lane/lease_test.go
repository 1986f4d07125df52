package lane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// leasing is a worker of a run whose workers are elsewhere.
func leasing(t *testing.T, s store.Store, run string) *Worker {
	t.Helper()
	w := idle(t, 0)
	w.cfg = Config{Job: "seed", RunID: run, Leases: true, LeaseTTL: 30 * time.Second}
	w.calls = new(store.Calls)
	w.Store = store.Counted(s, w.calls)
	w.Log = Logger("json", 12)
	return w
}

var memories atomic.Int64

func memory(t *testing.T) store.Store {
	t.Helper()
	// A memory store is the process's: with -count the next round must not find what this one left.
	s, err := store.Open(t.Context(), fmt.Sprintf("mem://%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), memories.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHoldWaitsForTheOtherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		begin := time.Now()
		_, release, held, err := leasing(t, s, "first").Hold(t.Context(), 3, 16)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		time.AfterFunc(100*time.Second, release) // its heartbeat outlasts the time to live
		if _, free, held, err := leasing(t, s, "second").Hold(t.Context(), 4, 16); err != nil || !held || time.Since(begin) > 0 {
			t.Fatalf("another lane: held %v, %v after %v", held, err, time.Since(begin))
		} else {
			free()
		}
		_, free, held, err := leasing(t, s, "second").Hold(t.Context(), 3, 16)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		if took := time.Since(begin); took < 100*time.Second || took > 102*time.Second {
			t.Errorf("the second worker had the lane after %v, want soon after the first gave it back at 100s", took)
		}
		free()
	})
}

func TestHoldIsGivenUpOnAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		_, release, _, err := leasing(t, s, "first").Hold(t.Context(), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		w := leasing(t, s, "second")
		time.AfterFunc(5*time.Second, func() { w.Stop(nil) })
		begin := time.Now()
		_, _, held, err := w.Hold(t.Context(), 0, 1)
		if held || err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("held %v, %v after %v; want false at the stop after 5s", held, err, time.Since(begin))
		}
	})
}

func TestLostLaneSendsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		w := leasing(t, s, "first")
		within, release, held, err := w.Hold(t.Context(), 0, 1)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		body := `{"holder":{"host":"another"},"token":"x","expires_at":"2100-01-01T00:00:00Z"}`
		if err := s.Put(t.Context(), "lease/lanes/seed/1/0/000002", strings.NewReader(body), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		begun, cut := 0, 0
		Drain(within, w, 1, upTo(10), func(ctx context.Context, _ int) error { return pause(ctx, time.Minute) },
			func(_ int, err error) error { return err }, func(err error) {
				begun++
				if err != nil {
					cut++
				}
			})
		if begun != 1 || cut != 1 || time.Since(begin) > 10*time.Second {
			t.Errorf("%d visits begun, %d cut, after %v; want 1, 1, within a heartbeat", begun, cut, time.Since(begin))
		}
		release()
		if n := w.letterTally.Counts[ledger.LanesLost]; n != 1 {
			t.Errorf("%s is %d, want 1", ledger.LanesLost, n)
		}
	})
}

func TestHoldCostsNothingInOneProcess(t *testing.T) {
	w := leasing(t, memory(t), "only")
	w.cfg.Leases = false
	_, release, held, err := w.Hold(t.Context(), 0, 1)
	release()
	if err != nil || !held {
		t.Error(held, err)
	}
	for kind, n := range w.calls.Snapshot() {
		if n > 0 {
			t.Errorf("%d store calls: %s", n, kind)
		}
	}
}

func TestVacate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		begin := time.Now()
		var waited []string
		vacate := func() {
			if err := Vacate(t.Context(), s, "seed", func(h ledger.Holder) { waited = append(waited, h.RunID) }); err != nil {
				t.Fatal(err)
			}
		}
		vacate()
		if time.Since(begin) > 0 || waited != nil {
			t.Fatalf("an empty store: waited %v for %v", time.Since(begin), waited)
		}
		for n := range 3 {
			_, release, _, err := leasing(t, s, "old").Hold(t.Context(), n, 7)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Duration(20+n)*time.Second, release)
		}
		vacate()
		if took := time.Since(begin); took < 22*time.Second || took > 24*time.Second || fmt.Sprint(waited) != "[old]" {
			t.Errorf("waited %v for %v, want 22s for one run, told once", took, waited)
		}
	})
}
