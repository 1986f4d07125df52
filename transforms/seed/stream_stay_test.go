package seed

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
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
	return &pollFn{doFn: doFn{Config: cfg, DoFn: lane.DoFn{Worker: w}}, Source: Source{Every: every}}, func(name string) {
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
				tracker = resume(t, fn, tracker)
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

// resume returns the tracker of what is left of a call, as a runner sends it to any process.
func resume(t *testing.T, fn *pollFn, tracker *sdf.LockRTracker) *sdf.LockRTracker {
	t.Helper()
	_, rest, err := tracker.TrySplit(0)
	require.True(t, err == nil && tracker.IsDone(), "a call that pauses leaves %v: %v", rest, err)
	text, err := encodePosition(rest.(position))
	require.NoError(t, err)
	at, err := decodePosition(text)
	require.NoError(t, err)
	return fn.CreateTracker(at)
}

// A runner may resume the source in a fresh process at each call, because all that it knows is in its restriction: an open
// file is emitted once and then after pauses, a file that comes later within two polls, and none before the watermark of the
// call before.
func TestListerResumedInFreshProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, put := newLister(t, "fresh", time.Minute)
		put("raw_0001.json")
		time.Sleep(time.Hour)
		began, passed, emitted := time.Now(), time.Time{}, map[string][]int{}
		tracker := first.CreateTracker(first.CreateInitialRestriction(nil))
		for added := false; time.Since(began) < 25*time.Minute; {
			if !added && time.Since(began) > 3*time.Minute+30*time.Second {
				added = true
				put("raw_0002.json")
			}
			fn := &pollFn{doFn: first.doFn, Source: first.Source} // another process has no other fields
			watermark := fn.CreateWatermarkEstimator()
			again, err := fn.ProcessElement(t.Context(), watermark, tracker, nil, func(at beam.EventTime, f File) {
				name := f.Key[strings.LastIndex(f.Key, "/")+1:]
				emitted[name] = append(emitted[name], int(time.Since(began).Minutes()))
				assert.True(t, at.ToTime().After(passed), "%s is emitted at %v, but the watermark is %v", name, at.ToTime(), passed)
			}, func(beam.EventTime, ledger.Tally) {})
			require.True(t, err == nil && again.ShouldResume(), "a call ends the source: %v", err)
			if now := watermark.CurrentWatermark(); now.After(passed) {
				passed = now
			}
			tracker = resume(t, fn, tracker)
			time.Sleep(max(again.ResumeDelay(), time.Millisecond))
		}
		assert.Equal(t, map[string][]int{"raw_0001.json": {0, 10, 20}, "raw_0002.json": {4, 14, 24}}, emitted, "in minutes")
	})
}

// Two parts of the source would have a watermark each, and what the one finds
// would be late by that of the other.
func TestOneSource(t *testing.T) {
	fn := &pollFn{}
	tracker := fn.CreateTracker(fn.CreateInitialRestriction(nil))
	require.True(t, tracker.TryClaim(position{Calls: 7}), "the first poll is refused")
	if primary, residual, err := tracker.TrySplit(0.5); err != nil || residual != nil || primary.(position).Calls != 7 {
		t.Errorf("a runner that shares the source out gets %v and %v (%v), want all and nothing", primary, residual, err)
	}
	primary, residual, err := tracker.TrySplit(0) // its own checkpoint
	if err != nil || residual.(position).Calls != 7 || !primary.(position).Ended || !tracker.IsDone() {
		t.Errorf("the source's checkpoint gives %v and %v (%v), want the end and all the rest", primary, residual, err)
	}
}
