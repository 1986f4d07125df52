package seed

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/rtrackers/offsetrange"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// newLister is the lister of a run, whose bucket gets raw files by put.
func newLister(t *testing.T, run string, every time.Duration) (fn *pollFn, put func(name string)) {
	t.Helper()
	cfg := Config{Lane: lane.Config{Job: Job, RunID: run, Store: "mem://lister-" + run}}
	w, err := lane.Open(t.Context(), cfg.Lane)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, lane.Close(run))
	})
	return &pollFn{doFn: doFn{Config: cfg, DoFn: lane.DoFn{Worker: w}}, Every: every}, func(name string) {
		if err := w.Store.Put(context.Background(), "datasets/country=sg/category=news/date=2026-02-02/"+name, strings.NewReader("{}"), store.PutOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// A lister with a MaxCall stays in its call until a file is due, comes back so
// that the runner's watermark passes what it found, and ends with the run.
func TestListerStaysInItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, maxCall = 10 * time.Second, time.Minute
		fn, put := newLister(t, "stay", every)
		fn.MaxCall = maxCall
		tracker := fn.CreateTracker(fn.CreateInitialRestriction(nil))
		watermark := fn.CreateWatermarkEstimator()
		var found []time.Time
		call := func() (again sdf.ProcessContinuation, took time.Duration) {
			t.Helper()
			begin := time.Now()
			again, err := fn.ProcessElement(t.Context(), watermark, tracker, nil, func(at beam.EventTime, _ File) {
				found = append(found, at.ToTime())
			}, func(beam.EventTime, ledger.Tally) {})
			require.NoError(t, err)
			if again.ShouldResume() { // the rest of it is what a runner comes back with
				r := tracker.GetRestriction().(offsetrange.Restriction)
				tracker = fn.CreateTracker(offsetrange.Restriction{Start: r.Start + 1, End: r.End})
			}
			return again, time.Since(begin)
		}

		// The watermark may not advance at first: a call lasts as long as the job has run.
		var calls []time.Duration
		for range 7 {
			again, took := call()
			require.True(t, again.ShouldResume() && len(found) == 0,
				"an empty bucket ends the lister (%t) or gives %v", !again.ShouldResume(), found)
			calls = append(calls, took)
			time.Sleep(again.ResumeDelay())
		}
		assert.Equal(t, []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second, 30 * time.Second, maxCall, maxCall}, calls,
			"calls without a file lasted")
		time.AfterFunc(25*time.Second, func() { put("raw_0001.json") })
		began := time.Now()
		again, _ := call()
		if !again.ShouldResume() || again.ResumeDelay() < time.Second || len(found) != 1 || time.Since(began) > 25*time.Second+2*every {
			t.Fatalf("a file that appeared after 25 s was found %v after %v, resuming in %v", found, began, again.ResumeDelay())
		}
		over := watermark.CurrentWatermark()
		assert.True(t, over.Truncate(time.Second).After(found[0]), "the watermark %v in whole seconds is not past the poll of %v", over, found[0])

		time.AfterFunc(time.Second, func() { fn.Worker.Stop(nil) })
		if again, took := call(); again.ShouldResume() || took != time.Second || !tracker.IsDone() {
			t.Errorf("stopped after a second the lister ended after %v, resumes: %t", took, again.ShouldResume())
		}
	})
}

// A runner may resume the lister in a process that has no lister of the run, and later in
// the first one again. In each an open file is emitted once, not at every call, and never
// before the watermark of the call before.
func TestListerResumedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, put := newLister(t, "moved", time.Minute)
		put("raw_0001.json")
		next, passed := int64(0), time.Time{}
		calls := func(n int) (found int) {
			t.Helper()
			pause := time.Duration(0) // none after a move: the polls before and after are in the same second
			for range n {
				time.Sleep(pause)
				watermark := fn.CreateWatermarkEstimator() // the SDK makes a new one for each call
				again, err := fn.ProcessElement(t.Context(), watermark, fn.CreateTracker(offsetrange.Restriction{Start: next, End: math.MaxInt64}), nil,
					func(at beam.EventTime, _ File) {
						found++
						assert.True(t, at.ToTime().After(passed), "call %d emits a file at %v, but the watermark is %v", next, at.ToTime(), passed)
					}, func(beam.EventTime, ledger.Tally) {})
				require.True(t, err == nil && again.ShouldResume(), "call %d ends the lister: %v", next, err)
				next++
				if now := watermark.CurrentWatermark(); now.After(passed) {
					passed = now
				}
				pause = again.ResumeDelay()
			}
			return found
		}
		in := func(process map[string]*lister) {
			listers.Lock()
			defer listers.Unlock()
			listers.of = process
		}
		first, second := listers.of, map[string]*lister{}
		defer in(first)
		assert.Equal(t, 1, calls(1), "the first process emits the file")
		in(second)
		assert.Equal(t, 1, calls(20), "a process that resumes the lister emits the file")
		in(first)
		assert.Equal(t, 0, calls(20), "the first process emits the file")
	})
}

// A runner may resume the lister in a fresh process at each call. An open file is emitted once and then after
// pauses, as in one process; a file that comes later within two polls.
func TestListerResumedInFreshProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, put := newLister(t, "fresh", time.Minute)
		put("raw_0001.json")
		time.Sleep(time.Hour)
		began, rest, emitted := time.Now(), fn.CreateInitialRestriction(nil), map[string][]int{}
		was := listers.of
		defer func() { listers.of = was }()
		for added := false; time.Since(began) < 9*time.Minute; {
			if !added && time.Since(began) > 3*time.Minute+30*time.Second {
				added = true
				put("raw_0002.json")
			}
			listers.Lock()
			listers.of = map[string]*lister{}
			listers.Unlock()
			tracker := fn.CreateTracker(rest)
			again, err := fn.ProcessElement(t.Context(), fn.CreateWatermarkEstimator(), tracker, nil, func(_ beam.EventTime, f File) {
				name := f.Key[strings.LastIndex(f.Key, "/")+1:]
				emitted[name] = append(emitted[name], int(time.Since(began).Minutes()))
			}, func(beam.EventTime, ledger.Tally) {})
			require.True(t, err == nil && again.ShouldResume(), "a call ends the lister: %v", err)
			_, residual, err := tracker.TrySplit(0)
			require.NoError(t, err)
			rest = residual.(offsetrange.Restriction)
			time.Sleep(max(again.ResumeDelay(), time.Millisecond))
		}
		assert.True(t, len(emitted["raw_0001.json"]) == 1 && len(emitted["raw_0002.json"]) == 1 && emitted["raw_0002.json"][0] <= 5,
			"files are emitted in minutes %v, want each once, the second one by minute 5", emitted)
	})
}

// Two parts of the lister would have a watermark each, and what the one finds
// would be late by that of the other.
func TestOneLister(t *testing.T) {
	fn := &pollFn{}
	tracker := fn.CreateTracker(fn.CreateInitialRestriction(nil))
	require.True(t, tracker.TryClaim(int64(0)), "the first poll is refused")
	whole := tracker.GetRestriction()
	if primary, residual, err := tracker.TrySplit(0.5); err != nil || residual != nil || primary != whole {
		t.Errorf("a runner that shares the lister out gets %v and %v (%v), want %v and nothing", primary, residual, err, whole)
	}
	primary, residual, err := tracker.TrySplit(0) // its own checkpoint
	if want := (offsetrange.Restriction{Start: 1, End: math.MaxInt64}); err != nil || residual != want || primary != (offsetrange.Restriction{Start: 0, End: 1}) {
		t.Errorf("the lister's checkpoint gives %v and %v (%v), want the rest in %v", primary, residual, err, want)
	}
}
