package seed

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	beamwindow "github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[pollFn]())
	beam.RegisterCoder(reflect.TypeFor[position](), encodePosition, decodePosition)
	register.Emitter2[beam.EventTime, File]()
	register.Emitter2[beam.EventTime, ledger.Tally]()
}

// Stream lists the bucket's raw files again and again, or takes the messages of a queue, until the run stops. (Beam's
// fileio.MatchContinuously never returns a file a second time, so a file that stayed open
// would not be tried again, and periodic.Impulse cannot be drained.)
//
// Out: the files that are due (File) and ledger.Tally, unbounded. The files of one poll
// are in a window of their own, which ends with the poll. So every grouping after it
// closes at once, as in a batch run over those files.
//
// Between two polls the source returns to the runner. With maxCall it stays in its call
// until a file is due, at most for that time, and no longer than the job has run: Flink
// advances the watermark only between two calls, and not before each of its workers has
// begun, so that the first files would wait for a whole call if one began late.
func Stream(s beam.Scope, cfg Config, from Source, maxCall time.Duration) (files, tallies beam.PCollection) {
	s = s.Scope("seed.Stream")
	files, tallies = beam.ParDo2(s, &pollFn{doFn: doFn{Config: cfg}, Source: from, MaxCall: maxCall}, beam.Impulse(s))
	polls := beamwindow.NewFixedWindows(pollWindow)
	return beam.WindowInto(s, polls, files), beam.WindowInto(s, polls, tallies)
}

// Source says where a stream's files come from.
type Source struct {
	Queue string        // the address of a queue; "": the bucket is listed
	Every time.Duration // between two lists
}

const (
	// pollWindow is the resolution of Beam's timestamps.
	pollWindow = time.Millisecond
	// maxStopWait is the longest time between two checks whether the run stops.
	maxStopWait = 2 * time.Second
	// minAway is the shortest pause between two calls.
	minAway = 100 * time.Millisecond
	// maxPollFiles is the maximum number of files that one poll emits.
	maxPollFiles = 1000
	// queueWait is the longest wait for a message.
	queueWait = 10 * time.Second
)

// position is the restriction of a stream's source: all that it knows between two calls. Any process continues with it.
type position struct {
	Calls int         // so far
	Began time.Time   // when the job began or was restarted
	Over  time.Time   // the watermark: later files are after it
	Next  time.Time   // when the bucket is listed again
	Files FileTracker // of the bucket
	Desk  queue.Desk  // of the queue
	Ended bool
}

func encodePosition(p position) ([]byte, error) { return json.Marshal(p) }

func decodePosition(text []byte) (p position, err error) { return p, json.Unmarshal(text, &p) }

// oneSource is a tracker that a runner cannot split. Prism splits long calls. Each part
// would have its own watermark, and what one part emits would be late, and dropped, by
// the watermark of the other.
type oneSource struct {
	at   position
	over bool
}

// TryClaim replaces the position.
func (t *oneSource) TryClaim(to any) bool {
	t.at = to.(position)
	return true
}

// TrySplit returns all the rest when the source pauses, and never a part of it.
func (t *oneSource) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction > 0 || t.over {
		return t.at, nil, nil
	}
	t.over = true
	return position{Ended: true}, t.at, nil
}

func (t *oneSource) GetError() error                      { return nil }
func (t *oneSource) GetProgress() (done, remains float64) { return 0, 1 }
func (t *oneSource) IsDone() bool                         { return t.over || t.at.Ended }
func (t *oneSource) GetRestriction() any                  { return t.at }

type pollFn struct {
	doFn
	Source  Source
	MaxCall time.Duration // the longest time that a call lasts while no file is due

	queue queue.Queue
	heard bool // the queue answered this process once
	dead  bool // there are dead letters that no tally has
}

func (fn *pollFn) CreateInitialRestriction([]byte) position { return position{} }

func (fn *pollFn) CreateTracker(at position) *sdf.LockRTracker {
	return sdf.NewLockRTracker(&oneSource{at: at})
}

func (fn *pollFn) SplitRestriction(_ []byte, at position) []position { return []position{at} }

// RestrictionSize returns the size of one poll, because the number of polls is unknown.
func (fn *pollFn) RestrictionSize([]byte, position) float64 { return 1 }

// TruncateRestriction ends the source when a runner drains the job.
func (fn *pollFn) TruncateRestriction(*sdf.LockRTracker, []byte) position {
	return position{Ended: true}
}

func (fn *pollFn) CreateWatermarkEstimator() *sdf.ManualWatermarkEstimator {
	return &sdf.ManualWatermarkEstimator{}
}

// Setup implements Beam's.
func (fn *pollFn) Setup(ctx context.Context) (err error) {
	if err := fn.doFn.Setup(ctx); err != nil || fn.Source.Queue == "" {
		return err
	}
	fn.queue, err = queue.Open(ctx, fn.Source.Queue)
	return err
}

// Teardown implements Beam's.
func (fn *pollFn) Teardown() error {
	if fn.queue == nil {
		return fn.doFn.Teardown()
	}
	return errors.Join(fn.queue.Close(), fn.doFn.Teardown())
}

func (fn *pollFn) ProcessElement(ctx context.Context, we *sdf.ManualWatermarkEstimator, rt *sdf.LockRTracker, _ []byte,
	emit func(beam.EventTime, File), emitTally func(beam.EventTime, ledger.Tally)) (sdf.ProcessContinuation, error) {
	at := rt.GetRestriction().(position)
	if at.Began.IsZero() {
		at.Began, at.Files = time.Now(), FileTracker{Interval: fn.Source.Every, AwaitEnd: true}
	}
	at.Calls++
	for until := time.Now().Add(min(fn.MaxCall, time.Since(at.Began))); ; {
		if at.Ended || !fn.Worker.Proceed(ctx) {
			at.Ended = true
			rt.TryClaim(at)
			return sdf.StopProcessing(), ctx.Err()
		}
		found, err := fn.due(ctx, &at)
		if err != nil {
			return sdf.StopProcessing(), err
		}
		now := time.Now()
		told := len(found.files) > 0 || fn.dead
		if fn.dead = false; told {
			fn.emit(&at, now, found, emit, emitTally)
		}
		if s := now.Truncate(time.Second); at.Over.Before(s) {
			at.Over = s
		}
		we.UpdateWatermark(at.Over)
		rt.TryClaim(at)
		if told || !now.Before(until) {
			// Flink advances the watermark only between two calls that are a second apart.
			return sdf.ResumeProcessingIn(max(min(time.Until(at.Next), maxStopWait), min(fn.MaxCall, time.Second), minAway)), nil
		}
		fn.wait(ctx, min(time.Until(at.Next), time.Until(until)))
	}
}

func (fn *pollFn) wait(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-fn.Worker.Stopping().Done():
	case <-ctx.Done():
	}
}

// found is what a poll found.
type found struct {
	files       []File // that are due
	count, open int    // files listed or messages' works begun; those that are not done
}

// due polls the queue or the bucket, if it is time. After an error of either the next call tries again.
func (fn *pollFn) due(ctx context.Context, at *position) (f found, err error) {
	now := time.Now()
	switch {
	case now.Before(at.Next):
		return f, nil
	case fn.queue != nil:
		return fn.receive(ctx, at)
	}
	listing, err := ListRaw(ctx, fn.Worker.Store, fn.Config)
	if err != nil {
		if ctx.Err() == nil {
			fn.Worker.Log.Error("listing_failed", "error", ledger.Redact(err.Error()))
		}
		at.Next = now.Add(fn.Source.Every)
		return f, ctx.Err()
	}
	f = found{at.Files.Due(listing.Files, now, maxPollFiles), int(listing.Listed), len(listing.Files)}
	at.Next = now.Add(at.Files.Pause())
	return f, nil
}

// emit emits the files of one poll.
func (fn *pollFn) emit(at *position, now time.Time, f found, emit func(beam.EventTime, File), emitTally func(beam.EventTime, ledger.Tally)) {
	// Flink's runner truncates watermarks to whole seconds, so a poll takes the
	// rest of its second. For prism an element with the watermark's own time is late.
	if !now.After(at.Over) {
		now = at.Over.Add(pollWindow)
	}
	at.Over = now.Truncate(time.Second).Add(time.Second)
	t := mtime.FromTime(now)
	for _, file := range f.files {
		emit(t, file)
	}
	fn.Worker.Log.Info("files_found", "count", f.count, "open", f.open, "due", len(f.files))
	fn.Worker.Emit(func(sum ledger.Tally) { emitTally(t, sum) }, tally(map[string]int64{"files_listed": int64(len(f.files))}))
}
