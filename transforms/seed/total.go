package seed

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	register.DoFn4x1[context.Context, int, func(*[]byte) bool, func(int64), error](&totalFn{})
	register.Iter1[[]byte]()
	register.Emitter1[int64]()
}

// Total sums what the stages counted into the run's ledger, where the launcher
// and `runs show` read it.
//
// In: encoded tallies of all stages. Out: the number of parts summed.
func Total(s beam.Scope, cfg Config, tallies ...beam.PCollection) beam.PCollection {
	s = s.Scope("seed.Total")
	return beam.ParDo(s, &totalFn{Config: cfg}, beam.GroupByKey(s, beam.AddFixedKey(s, beam.Flatten(s, tallies...))))
}

type totalFn struct {
	Config Config
	w      *lane.Worker
}

func (fn *totalFn) Setup(ctx context.Context) (err error) {
	fn.w, err = lane.Open(ctx, fn.Config.Lane)
	return err
}

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
	sum.Add(fn.w.Take())
	if err := fn.w.Total(ctx, sum); err != nil {
		return err
	}
	emit(n)
	return nil
}
