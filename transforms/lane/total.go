package lane

import (
	"context"
	"errors"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

func init() {
	beam.RegisterCoder(reflect.TypeFor[ledger.Tally](), ledger.Tally.MarshalBinary, decodeTally)
	beam.RegisterDoFn(reflect.TypeFor[totalFn]())
	register.Emitter1[ledger.Tally]()
	register.Iter1[ledger.Tally]()
}

func decodeTally(b []byte) (t ledger.Tally, err error) { return t, t.UnmarshalBinary(b) }

// Total sums the tallies of all stages and writes the sum to the ledger.
//
// In: the tallies of all stages.
func Total(s beam.Scope, cfg Config, tallies ...beam.PCollection) {
	s = s.Scope("lane.Total")
	// A tally gets its key where it was made. Runners fuse that with the stage, and have no stage of
	// their own between the others and the grouping: tallies are too few for sums of sums.
	keyed := make([]beam.PCollection, len(tallies))
	for i, t := range tallies {
		keyed[i] = beam.AddFixedKey(s, t)
	}
	beam.ParDo0(s, &totalFn{Config: cfg}, beam.GroupByKey(s, beam.Flatten(s, keyed...)))
}

type totalFn struct {
	DoFn
	Config Config
}

// Setup implements Beam's.
func (fn *totalFn) Setup(ctx context.Context) error { return fn.Open(ctx, fn.Config) }

// ProcessElement writes the total. All tallies have one key, so the sum of each window of an unbounded run is added to the total before
// it.
func (fn *totalFn) ProcessElement(ctx context.Context, _ int, next func(*ledger.Tally) bool) error {
	sum := fn.Worker.take()
	for {
		var t ledger.Tally
		if !next(&t) {
			break
		}
		sum.Add(t)
	}
	count(ctx, "total", sum.Counts)
	count(ctx, "total", ledger.Counts{"http_requests": sum.HTTP.Requests, "http_bytes": sum.HTTP.Bytes, "http_retries": sum.HTTP.Retries})
	if fn.Config.Running {
		before, err := ledger.ReadTotal(ctx, fn.Worker.Store, fn.Config.RunID)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return err
		}
		sum.Add(before)
	}
	return ledger.WriteTotal(ctx, fn.Worker.Store, fn.Config.RunID, sum)
}

// count adds to Beam's counters, for the runner's console. Only a ProcessElement goroutine may call it.
func count(ctx context.Context, space string, counts ledger.Counts) {
	for name, n := range counts {
		beam.NewCounter(space, name).Inc(ctx, n)
	}
}

// Emit counts a stage's tally and emits it, with the requests and store calls that
// this process made since the last Emit.
func (w *Worker) Emit(emit func(ledger.Tally), t ledger.Tally) {
	w.Count(t)
	w.emitCounted(emit, t)
}

// emitCounted is Emit for a tally that was counted while the work was done.
func (w *Worker) emitCounted(emit func(ledger.Tally), t ledger.Tally) {
	sum := w.take() // t stays as it is
	sum.Add(t)
	emit(sum)
}
