package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[totalFn]())
	register.Iter1[[]byte]()
	register.Emitter1[int64]()
}

// Total sums what the stages counted into the run's ledger, where the launcher
// and `runs show` read it.
//
// In: encoded tallies of all stages. Out: the number of parts summed.
func Total(s beam.Scope, cfg Config, tallies ...beam.PCollection) beam.PCollection {
	s = s.Scope("lane.Total")
	return beam.ParDo(s, &totalFn{Config: cfg}, beam.GroupByKey(s, beam.AddFixedKey(s, beam.Flatten(s, tallies...))))
}

type totalFn struct {
	DoFn
	Config Config
}

// Setup implements Beam's.
func (fn *totalFn) Setup(ctx context.Context) error { return fn.Open(ctx, fn.Config) }

func (fn *totalFn) ProcessElement(ctx context.Context, _ int, parts func(*[]byte) bool, emit func(int64)) error {
	var sum ledger.Tally
	var b []byte
	var n int64
	for parts(&b) {
		var t ledger.Tally
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("decoding a tally: %w", err)
		}
		sum.Add(t)
		n++
	}
	sum.Add(fn.Worker.Take())
	count(ctx, "total", sum.Counts)
	count(ctx, "total", ledger.Counts{"http_requests": sum.HTTP.Requests, "http_bytes": sum.HTTP.Bytes, "http_retries": sum.HTTP.Retries})
	if fn.Config.Running { // the parts share their key, so one is added at a time
		before, err := ledger.ReadTotal(ctx, fn.Worker.Store, fn.Config.RunID)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return err
		}
		sum.Add(before)
	}
	if err := fn.Worker.Total(ctx, sum); err != nil {
		return err
	}
	emit(n)
	return nil
}

// count adds to Beam's counters under the report's own names, for the runner's
// console. Only a ProcessElement goroutine may call it: their store is not safe
// for others.
func count(ctx context.Context, space string, counts ledger.Counts) {
	for name, n := range counts {
		beam.NewCounter(space, name).Inc(ctx, n)
	}
}

// EmitPart counts a stage's figures and sends them on, with the requests and
// store calls that this process made since the last part.
func EmitPart(w *Worker, emit func([]byte), t ledger.Tally) error {
	w.Count(t)
	return EmitCounted(w, emit, t)
}

// EmitCounted is EmitPart of figures that were counted while the work was done,
// as those of a lane are.
func EmitCounted(w *Worker, emit func([]byte), t ledger.Tally) error {
	t.Add(w.Take())
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encoding a tally: %w", err)
	}
	emit(b)
	return nil
}
