package seed

import (
	"context"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	beamwindow "github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/rtrackers/offsetrange"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[lookFn]())
	register.Emitter2[beam.EventTime, File]()
	register.Emitter2[beam.EventTime, []byte]()
}

// Stream lists the bucket's raw files again and again, until the run is told
// to stop. (fileio.MatchContinuously never offers a file that stayed open
// again, and periodic.Impulse cannot be drained.)
//
// Out: the files that are due (File) and encoded ledger.Tally, unbounded. What
// one look finds lies in a window of its own, which ends with the look: every
// grouping behind it closes at once, as in a batch run over those files.
//
// Between two looks the lister goes back to the runner, or, with hold, stays in
// its call for so long at most or until a file is due.
func Stream(s beam.Scope, cfg Config, every, hold time.Duration) (files, tallies beam.PCollection) {
	s = s.Scope("seed.Stream")
	files, tallies = beam.ParDo2(s, &lookFn{Config: cfg, Every: every, Hold: hold}, beam.Impulse(s))
	looks := beamwindow.NewFixedWindows(lookWindow)
	return beam.WindowInto(s, looks, files), beam.WindowInto(s, looks, tallies)
}

const (
	// lookWindow is the finest that Beam's timestamps tell apart.
	lookWindow = time.Millisecond
	// stopLook is how often the lister sees whether it is told to stop.
	stopLook = 2 * time.Second
	// streamFiles are read of one look at most.
	streamFiles = 1000
)

// lister is the memory of a stream's lister. It is the process's, for a runner
// may resume the lister in another instance of its DoFn.
type lister struct {
	sync.Mutex
	Lookout
	next time.Time // when it looks again
	turn int       // of the last call: one whose job was started again has nobody to emit to
	over time.Time // the watermark: looks from now on are not before it
}

var listers = struct {
	sync.Mutex
	of map[string]*lister // by run
}{of: map[string]*lister{}}

func listerOf(run string) *lister {
	listers.Lock()
	defer listers.Unlock()
	l, ok := listers.of[run]
	if !ok {
		l = &lister{}
		listers.of[run] = l
	}
	return l
}

// settled tells a stream's lister, where this process has it, that the work on
// a file has ended.
func settled(run, key string) {
	listers.Lock()
	l, ok := listers.of[run]
	listers.Unlock()
	if ok {
		l.Lock()
		defer l.Unlock()
		l.Settle(key, time.Now())
	}
}

type lookFn struct {
	Config Config
	Every  time.Duration
	Hold   time.Duration
	w      *lane.Worker
}

func (fn *lookFn) Setup(ctx context.Context) (err error) {
	fn.w, err = lane.Open(ctx, fn.Config.Lane)
	return err
}

// CreateInitialRestriction counts the looks: there is no last one.
func (fn *lookFn) CreateInitialRestriction([]byte) offsetrange.Restriction {
	return offsetrange.Restriction{Start: 0, End: math.MaxInt64}
}

func (fn *lookFn) CreateTracker(r offsetrange.Restriction) *sdf.LockRTracker {
	return sdf.NewLockRTracker(&oneLister{offsetrange.NewTracker(r)})
}

// oneLister is a tracker that a runner cannot share out. Prism splits a call
// that takes long, and each part would have a watermark of its own: what the one
// emits is late, and dropped, by that of the other.
type oneLister struct{ *offsetrange.Tracker }

// TrySplit gives back the rest, for the lister comes again, and no part of it.
func (t *oneLister) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction > 0 {
		return t.GetRestriction(), nil, nil
	}
	return t.Tracker.TrySplit(fraction)
}

func (fn *lookFn) SplitRestriction(_ []byte, r offsetrange.Restriction) []offsetrange.Restriction {
	return []offsetrange.Restriction{r}
}

// RestrictionSize is that of a look: the work to come has no size.
func (fn *lookFn) RestrictionSize([]byte, offsetrange.Restriction) float64 { return 1 }

// TruncateRestriction ends the listing when a runner drains the job.
func (fn *lookFn) TruncateRestriction(*sdf.LockRTracker, []byte) offsetrange.Restriction {
	return offsetrange.Restriction{}
}

func (fn *lookFn) CreateWatermarkEstimator() *sdf.ManualWatermarkEstimator {
	return &sdf.ManualWatermarkEstimator{}
}

func (fn *lookFn) ProcessElement(ctx context.Context, we *sdf.ManualWatermarkEstimator, rt *sdf.LockRTracker, _ []byte,
	emit func(beam.EventTime, File), emitTally func(beam.EventTime, []byte)) (sdf.ProcessContinuation, error) {
	r := rt.GetRestriction().(offsetrange.Restriction)
	if !rt.TryClaim(r.Start) {
		return sdf.StopProcessing(), rt.GetError()
	}
	l := listerOf(fn.Config.Lane.RunID)
	l.Lock()
	defer l.Unlock()
	if r.Start == 0 { // the job begins, maybe again: what was under way is lost
		l.Lookout, l.next = Lookout{Interval: fn.Every, Awaits: true}, time.Time{}
	}
	l.turn++
	turn, until := l.turn, time.Now().Add(fn.Hold)
	for {
		if l.turn != turn || !fn.proceed(ctx, l) {
			rt.TryClaim(r.End - 1) // what is left of it is done
			return sdf.StopProcessing(), ctx.Err()
		}
		now, found := time.Now(), 0
		if !now.Before(l.next) {
			var err error
			if found, err = fn.look(ctx, l, now, emit, emitTally); err != nil {
				return sdf.StopProcessing(), err
			}
			l.next = now.Add(l.Pause())
		}
		if s := now.Truncate(time.Second); l.over.Before(s) {
			l.over = s
		}
		we.UpdateWatermark(l.over)
		if found > 0 || !now.Before(until) {
			// Between two calls Flink lets the watermark go, if they are a second apart.
			return sdf.ResumeProcessingIn(max(min(time.Until(l.next), stopLook), min(fn.Hold, time.Second))), nil
		}
		fn.wait(ctx, l, min(time.Until(l.next), time.Until(until)))
	}
}

// proceed is the worker's, without the lister's lock while the run is paused.
func (fn *lookFn) proceed(ctx context.Context, l *lister) bool {
	l.Unlock()
	defer l.Lock()
	return fn.w.Proceed(ctx)
}

func (fn *lookFn) wait(ctx context.Context, l *lister, pause time.Duration) {
	l.Unlock()
	defer l.Lock()
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-fn.w.Stopping():
	case <-ctx.Done():
	}
}

// look lists once and gives the number of files that are due. A store that does
// not answer is asked again at the next look.
func (fn *lookFn) look(ctx context.Context, l *lister, now time.Time, emit func(beam.EventTime, File), emitTally func(beam.EventTime, []byte)) (int, error) {
	listing, err := ListRaw(ctx, fn.w.Store, fn.Config)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		fn.w.Log.Error("listing_failed", "error", ledger.Redact(err.Error()))
		return 0, nil
	}
	due := l.Due(listing.Files, now, streamFiles)
	if len(due) == 0 {
		return 0, nil
	}
	// Flink's runner cuts watermarks down to whole seconds, so a look takes the
	// rest of its second. What has the watermark's own time is late for prism's.
	if !now.After(l.over) {
		now = l.over.Add(lookWindow)
	}
	l.over = now.Truncate(time.Second).Add(time.Second)
	at := mtime.FromTime(now)
	for _, f := range due {
		emit(at, f)
	}
	fn.w.Log.Info("files_found", "count", listing.Listed, "open", len(listing.Files), "due", len(due))
	return len(due), lane.EmitPart(fn.w, func(b []byte) { emitTally(at, b) }, tally(map[string]int64{"files_listed": int64(len(due))}))
}
