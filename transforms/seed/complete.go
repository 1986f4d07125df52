package seed

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	register.Function4x0(match)
	register.Emitter2[string, Outcome]()
	register.DoFn5x1[context.Context, string, Outcome, func(*Network) bool, func([]byte), error](&completeFn{})
	register.Iter1[Read]()
	register.Iter1[Visited]()
	register.Iter1[Network]()
	beam.RegisterType(reflect.TypeFor[Outcome]())
}

// Complete writes the .success of each raw file whose domains are all done,
// and only then.
//
// In: what was read and what was visited, by file, and how the network was.
// Out: encoded tallies.
//
// The grouping is matched in a step of its own: Flink keeps what goes into a
// stage with a side input, and a grouping by several has no coder.
func Complete(s beam.Scope, cfg Config, read, visited, network beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("seed.Complete")
	matched := beam.ParDo(s, match, beam.CoGroupByKey(s, read, visited))
	return beam.ParDo(s, &completeFn{Config: cfg}, matched, beam.SideInput{Input: network})
}

// Outcome is what all lanes did for one file, beside what it should hold.
type Outcome struct {
	Whole    bool // the file was read to its end
	Read     Read
	Finished int64
	Held     []string
}

func match(key string, reads func(*Read) bool, visits func(*Visited) bool, emit func(string, Outcome)) {
	var o Outcome
	o.Whole = reads(&o.Read)
	var v Visited
	for visits(&v) {
		o.Finished += v.Finished
		o.Held = append(o.Held, v.Held...)
	}
	emit(key, o)
}

type completeFn struct {
	Config Config
	w      *lane.Worker
}

func (fn *completeFn) Setup(ctx context.Context) (err error) {
	fn.w, err = lane.Open(ctx, fn.Config.Lane)
	return err
}

func (fn *completeFn) ProcessElement(ctx context.Context, key string, file Outcome, network func(*Network) bool, emitTally func([]byte)) error {
	var all, n Network
	for network(&n) {
		all.Visits += n.Visits
		all.Failed += n.Failed
	}
	whole, read, finished, held := file.Whole, file.Read, file.Finished, file.Held
	heldDomains := int64(len(held))
	outage := all.down(fn.Config.OutageThreshold)
	if len(held) > 0 && !outage {
		for _, h := range held {
			at := strings.SplitN(h, "\t", 3)
			if err := markDone(ctx, fn.w, fn.Config, at[0], at[1], at[2]); err != nil {
				fn.w.Log.Error("success_write_failed", "key", at[0]+hive.Success, "error", ledger.Redact(err.Error()))
				continue
			}
			finished++
		}
	}
	counts := map[string]int64{"files_open": 1}
	if len(held) > 0 && outage {
		counts["outage"] = 1 // the launcher ends the run with ErrOutage
	}
	if whole && finished == read.Domains {
		done, err := fn.finish(ctx, key, read)
		if err != nil {
			fn.w.Log.Error("success_write_failed", "key", key+hive.Success, "error", err.Error())
		}
		if done {
			counts = map[string]int64{"files_completed": 1}
		}
	} else {
		fn.w.Log.Warn("file_left_open", "file_path", key, "domains", read.Domains, "finished", finished, "held", heldDomains)
	}
	return lane.EmitPart(fn.w, emitTally, tally(counts))
}

// finish marks a raw file, unless it is no longer the version that was read.
func (fn *completeFn) finish(ctx context.Context, key string, read Read) (bool, error) {
	done := false
	err := store.Retry(ctx, func() error {
		o, err := fn.w.Store.Head(ctx, key)
		if err != nil {
			return fmt.Errorf("looking at %s once more: %w", key, err)
		}
		if o.ETag != read.ETag {
			fn.w.Log.Warn("file_replaced", "file_path", key)
			return nil
		}
		done = true
		return fn.w.Store.Put(ctx, key+hive.Success, strings.NewReader(""), fn.Config.marker())
	})
	return done && err == nil, err
}
