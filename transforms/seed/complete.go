package seed

import (
	"context"
	"errors"
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
	beam.RegisterDoFn(reflect.TypeFor[completeFn]())
	beam.RegisterDoFn(reflect.TypeFor[settleFn]())
	register.Iter1[Read]()
	register.Iter1[Visited]()
	register.Iter1[HeldFile]()
	register.Iter1[Network]()
	register.Emitter2[int, HeldFile]()
}

// HeldFile is a raw file some of whose marks the outage guard holds back.
type HeldFile struct {
	Key      string
	Whole    bool // it was read to its end
	Read     Read
	Finished int64
	Held     []string // as in Visited
}

// Complete writes the .success of each raw file whose domains are all done,
// and only then.
//
// In: what was read and what was visited, by file, and how the network was.
// Out: encoded tallies.
//
// Files with held marks wait for the network of all lanes. It comes by a
// grouping, not as a side input, which Flink's batch runner waited for forever.
func Complete(s beam.Scope, cfg Config, read, visited, network beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("seed.Complete")
	held, completed := beam.ParDo2(s, &completeFn{Config: cfg}, beam.CoGroupByKey(s, read, visited))
	settled := beam.ParDo(s, &settleFn{completeFn{Config: cfg}}, beam.CoGroupByKey(s, held, beam.AddFixedKey(s, network)))
	return beam.Flatten(s, completed, settled)
}

type completeFn struct {
	Config Config
	w      *lane.Worker
}

func (fn *completeFn) Setup(ctx context.Context) (err error) {
	fn.w, err = lane.Open(ctx, fn.Config.Lane)
	return err
}

func (fn *completeFn) ProcessElement(ctx context.Context, key string, reads func(*Read) bool, visits func(*Visited) bool, emitHeld func(int, HeldFile), emitTally func([]byte)) error {
	f := HeldFile{Key: key}
	f.Whole = reads(&f.Read)
	var v Visited
	for visits(&v) {
		f.Finished += v.Finished
		f.Held = append(f.Held, v.Held...)
	}
	if len(f.Held) > 0 {
		emitHeld(0, f) // 0 is the key of AddFixedKey
		return nil
	}
	return lane.EmitPart(fn.w, emitTally, tally(fn.complete(ctx, f)))
}

// complete marks a file that is done, and counts it.
func (fn *completeFn) complete(ctx context.Context, f HeldFile) map[string]int64 {
	defer settled(fn.Config.Lane.RunID, f.Key)
	if !f.Whole || f.Finished != f.Read.Domains {
		fn.w.Log.Warn("file_left_open", "file_path", f.Key, "domains", f.Read.Domains, "finished", f.Finished, "held", len(f.Held))
		return map[string]int64{"files_open": 1}
	}
	done, err := fn.finish(ctx, f.Key, f.Read)
	if err != nil {
		fn.w.Log.Error("success_write_failed", "key", f.Key+hive.Success, "error", err.Error())
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotExist) { // a file that was taken away needs nobody
		letter := letterOfFile(fn.Config, f.Key, "store_failed", true, nil, err)
		letter.Stage = "complete"
		if err := fn.w.DeadLetter(ctx, letter); err != nil {
			fn.w.Log.Error("dead_letter_lost", "file_path", f.Key, "error", ledger.Redact(err.Error()))
		}
	}
	if !done {
		return map[string]int64{"files_open": 1}
	}
	return map[string]int64{"files_completed": 1}
}

// settleFn decides over the marks that the outage guard held back.
type settleFn struct{ Complete completeFn }

func (fn *settleFn) Setup(ctx context.Context) error { return fn.Complete.Setup(ctx) }

func (fn *settleFn) ProcessElement(ctx context.Context, _ int, files func(*HeldFile) bool, network func(*Network) bool, emitTally func([]byte)) error {
	w, cfg := fn.Complete.w, fn.Complete.Config
	var all, n Network
	for network(&n) {
		all.add(n)
	}
	var held []HeldFile
	failed := map[string]bool{}
	var f HeldFile
	for files(&f) {
		held = append(held, f)
		for _, s := range f.Held {
			if h, err := parseHeld(s); err == nil { // an error comes again below
				failed[h.host] = true
			}
		}
	}
	outage := all.Down || len(held) > 0 && down(ctx, w, cfg, all, failed)
	var sum ledger.Tally
	for _, f := range held {
		if outage {
			all.outageCounts(&sum) // the launcher ends the run with its cause
		}
		for _, s := range f.Held {
			if outage {
				break
			}
			h, err := parseHeld(s)
			if err != nil {
				return err
			}
			if err := markDone(ctx, w, cfg, h.key, h.id, h.host); err != nil {
				w.Log.Error("success_write_failed", "key", h.key+hive.Success, "error", ledger.Redact(err.Error()))
				continue
			}
			f.Finished++
		}
		sum.Add(tally(fn.Complete.complete(ctx, f)))
	}
	return lane.EmitPart(w, emitTally, sum)
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
