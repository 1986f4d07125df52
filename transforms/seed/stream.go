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
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[pollFn]())
	register.Emitter2[beam.EventTime, File]()
	register.Emitter2[beam.EventTime, ledger.Tally]()
}

// Stream lists the bucket's raw files again and again, until the run stops. (Beam's
// fileio.MatchContinuously never returns a file a second time, so a file that stayed open
// would not be tried again, and periodic.Impulse cannot be drained.)
//
// Out: the files that are due (File) and ledger.Tally, unbounded. The files of one poll
// are in a window of their own, which ends with the poll. So every grouping after it
// closes at once, as in a batch run over those files.
//
// Between two polls the lister returns to the runner. With maxCall it stays in its call
// until a file is due, at most for that time, and no longer than the job has run: Flink
// advances the watermark only between two calls, and not before each of its workers has
// begun, so that the first files would wait for a whole call if one began late.
func Stream(s beam.Scope, cfg Config, every, maxCall time.Duration) (files, tallies beam.PCollection) {
	s = s.Scope("seed.Stream")
	files, tallies = beam.ParDo2(s, &pollFn{doFn: doFn{Config: cfg}, Every: every, MaxCall: maxCall}, beam.Impulse(s))
	polls := beamwindow.NewFixedWindows(pollWindow)
	return beam.WindowInto(s, polls, files), beam.WindowInto(s, polls, tallies)
}

const (
	// pollWindow is the resolution of Beam's timestamps.
	pollWindow = time.Millisecond
	// maxStopWait is the longest time between two checks whether the run stops.
	maxStopWait = 2 * time.Second
	// minAway is the shortest pause between two calls. A call without a poll moves the time of the last poll by a millisecond.
	minAway = 100 * time.Millisecond
	// maxAway is how long after the last poll the lister is resumed. Later it begins with all open files.
	maxAway = 24 * time.Hour
	// maxPollFiles is the maximum number of files that one poll emits.
	maxPollFiles = 1000
)

// lister is what a process knows of a stream's lister, which a runner may resume in another instance of its
// DoFn or in another process. The restriction has the time of the last poll; what is due then follows from
// the store (see FileTracker.resume), so that a process to which the lister is new needs no other.
type lister struct {
	sync.Mutex
	FileTracker
	next time.Time // when it polls again
	turn int       // number of the latest call; an older call belongs to a job that was restarted, and may not emit
	call int64     // the position in the restriction that the latest call claimed last
	last time.Time // the last poll of another process; zero: it is known, or there was none
	over time.Time // the watermark: later polls are not before it

	began time.Time // when the job began or was restarted
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

// workEnded reports to a stream's lister, if it is in this process, that the work on a
// file has ended.
func workEnded(run, key string) {
	listers.Lock()
	l, ok := listers.of[run]
	listers.Unlock()
	if ok {
		l.Lock()
		defer l.Unlock()
		l.ended(key, time.Now())
	}
}

type pollFn struct {
	doFn
	Every   time.Duration
	MaxCall time.Duration // the longest time that a call lasts while no file is due
}

// CreateInitialRestriction returns the times of all polls, in milliseconds: there is no last one. A call that
// does not poll claims the position at which it begins, and each poll its time.
func (fn *pollFn) CreateInitialRestriction([]byte) offsetrange.Restriction {
	return offsetrange.Restriction{Start: 0, End: math.MaxInt64}
}

func (fn *pollFn) CreateTracker(r offsetrange.Restriction) *sdf.LockRTracker {
	return sdf.NewLockRTracker(&oneLister{offsetrange.NewTracker(r)})
}

// oneLister is a tracker that a runner cannot split. Prism splits long calls. Each part
// would have its own watermark, and what one part emits would be late, and dropped, by
// the watermark of the other.
type oneLister struct{ *offsetrange.Tracker }

// TrySplit returns all the rest when the lister pauses, and never a part of it.
func (t *oneLister) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction > 0 {
		return t.GetRestriction(), nil, nil
	}
	return t.Tracker.TrySplit(fraction)
}

func (fn *pollFn) SplitRestriction(_ []byte, r offsetrange.Restriction) []offsetrange.Restriction {
	return []offsetrange.Restriction{r}
}

// RestrictionSize returns the size of one poll, because the number of polls is unknown.
func (fn *pollFn) RestrictionSize([]byte, offsetrange.Restriction) float64 { return 1 }

// TruncateRestriction ends the listing when a runner drains the job.
func (fn *pollFn) TruncateRestriction(*sdf.LockRTracker, []byte) offsetrange.Restriction {
	return offsetrange.Restriction{}
}

func (fn *pollFn) CreateWatermarkEstimator() *sdf.ManualWatermarkEstimator {
	return &sdf.ManualWatermarkEstimator{}
}

func (fn *pollFn) ProcessElement(ctx context.Context, we *sdf.ManualWatermarkEstimator, rt *sdf.LockRTracker, _ []byte,
	emit func(beam.EventTime, File), emitTally func(beam.EventTime, ledger.Tally)) (sdf.ProcessContinuation, error) {
	r := rt.GetRestriction().(offsetrange.Restriction)
	if !rt.TryClaim(r.Start) {
		return sdf.StopProcessing(), rt.GetError()
	}
	l := listerOf(fn.Config.Lane.RunID)
	l.Lock()
	defer l.Unlock()
	if r.Start > 0 && (l.began.IsZero() || r.Start > l.call+1) {
		// Another process polled last. Its watermark may be a second ahead (see poll), and what is before it is dropped.
		l.over = time.Now().Truncate(time.Second).Add(time.Second)
	}
	if r.Start == 0 || l.began.IsZero() { // the job begins, was restarted or is new to this process: work in progress is lost
		l.FileTracker, l.next, l.began = FileTracker{Interval: fn.Every, AwaitEnd: true}, time.Time{}, time.Now()
		if last := time.UnixMilli(r.Start); r.Start > 0 && time.Since(last) < maxAway {
			l.last, l.next = last, last.Add(fn.Every)
		}
	}
	l.call = r.Start
	l.turn++
	turn, until := l.turn, time.Now().Add(min(fn.MaxCall, time.Since(l.began)))
	for {
		if l.turn != turn || !fn.proceed(ctx, l) {
			rt.TryClaim(r.End - 1) // marks the rest as done
			return sdf.StopProcessing(), ctx.Err()
		}
		now, found := time.Now(), 0
		if !now.Before(l.next) {
			var err error
			if found, err = fn.poll(ctx, l, now, emit, emitTally); err != nil {
				return sdf.StopProcessing(), err
			}
			l.next = now.Add(l.Pause())
			if at := now.UnixMilli(); at > l.call && rt.TryClaim(at) {
				l.call = at
			}
		}
		if s := now.Truncate(time.Second); l.over.Before(s) {
			l.over = s
		}
		we.UpdateWatermark(l.over)
		if found > 0 || !now.Before(until) {
			// Flink advances the watermark only between two calls that are a second apart.
			return sdf.ResumeProcessingIn(max(min(time.Until(l.next), maxStopWait), min(fn.MaxCall, time.Second), minAway)), nil
		}
		fn.wait(ctx, l, min(time.Until(l.next), time.Until(until)))
	}
}

// proceed is Worker.Proceed; it unlocks the lister while the run is paused.
func (fn *pollFn) proceed(ctx context.Context, l *lister) bool {
	l.Unlock()
	defer l.Lock()
	return fn.Worker.Proceed(ctx)
}

func (fn *pollFn) wait(ctx context.Context, l *lister, pause time.Duration) {
	l.Unlock()
	defer l.Lock()
	select {
	case <-time.After(pause):
	case <-fn.Worker.Stopping().Done():
	case <-ctx.Done():
	}
}

// poll lists once and returns the number of files that are due. After an error of the
// store the next poll lists again.
func (fn *pollFn) poll(ctx context.Context, l *lister, now time.Time, emit func(beam.EventTime, File), emitTally func(beam.EventTime, ledger.Tally)) (int, error) {
	listing, err := ListRaw(ctx, fn.Worker.Store, fn.Config)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		fn.Worker.Log.Error("listing_failed", "error", ledger.Redact(err.Error()))
		return 0, nil
	}
	if !l.last.IsZero() {
		l.resume(listing.Files, listing.written, l.last)
		l.last = time.Time{}
	}
	due := l.Due(listing.Files, now, maxPollFiles)
	if len(due) == 0 {
		return 0, nil
	}
	// Flink's runner truncates watermarks to whole seconds, so a poll takes the
	// rest of its second. For prism an element with the watermark's own time is late.
	if !now.After(l.over) {
		now = l.over.Add(pollWindow)
	}
	l.over = now.Truncate(time.Second).Add(time.Second)
	at := mtime.FromTime(now)
	for _, f := range due {
		emit(at, f)
	}
	fn.Worker.Log.Info("files_found", "count", listing.Listed, "open", len(listing.Files), "due", len(due))
	fn.Worker.Emit(func(t ledger.Tally) { emitTally(at, t) }, tally(map[string]int64{"files_listed": int64(len(due))}))
	return len(due), nil
}
