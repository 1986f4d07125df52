package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[completeFn]())
	beam.RegisterDoFn(reflect.TypeFor[outageFn]())
	register.Iter1[FileSummary]()
	register.Iter1[FileOutcome]()
	register.Iter1[undecidedFile]()
	register.Iter1[Network]()
	register.Emitter2[int, undecidedFile]()
}

// undecidedFile is a raw file with domains that wait for the outage guard.
type undecidedFile struct {
	Key      string
	Whole    bool // the file was read to its end
	Summary  FileSummary
	Finished int64
	Held     int64
	Unmarked []UnmarkedDomain
}

// Complete writes the .success of each raw file whose domains are all done.
//
// In: the summaries and the lanes' outcomes, by file, and the state of the network.
// Out: tallies.
//
// Files with unmarked domains wait for the network of all lanes. They cannot be left
// open for the next run: a lane with fewer than outageVisits domains can never
// recognise an outage by itself, so a single dead site would keep its file open for
// ever. The network arrives by a grouping: Flink's batch runner waited for ever for a
// side input.
func Complete(s beam.Scope, cfg Config, read, outcomes, network beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("seed.Complete")
	undecided, completed := beam.ParDo2(s, &completeFn{doFn{Config: cfg}}, beam.CoGroupByKey(s, read, outcomes))
	decided := beam.ParDo(s, &outageFn{completeFn{doFn{Config: cfg}}}, beam.CoGroupByKey(s, undecided, beam.AddFixedKey(s, network)))
	return beam.Flatten(s, completed, decided)
}

type completeFn struct{ doFn }

func (fn *completeFn) ProcessElement(ctx context.Context, key string, reads func(*FileSummary) bool, outcomes func(*FileOutcome) bool, emitUndecided func(int, undecidedFile), emitTally func(ledger.Tally)) error {
	f := undecidedFile{Key: key}
	f.Whole = reads(&f.Summary)
	var o FileOutcome
	for outcomes(&o) {
		f.Finished += o.Finished
		f.Held += o.Held
		f.Unmarked = append(f.Unmarked, o.Unmarked...)
	}
	if len(f.Unmarked) > 0 {
		emitUndecided(0, f) // 0 is the key of AddFixedKey
		return nil
	}
	fn.Worker.Emit(emitTally, tally(fn.complete(ctx, f)))
	return nil
}

// complete marks a file that is done, and counts it.
func (fn *completeFn) complete(ctx context.Context, f undecidedFile) map[string]int64 {
	if isMessage(f.Key) { // the domain's own mark is all
		return nil
	}
	if !f.Whole || f.Finished != f.Summary.Domains {
		level := slog.LevelWarn
		if fn.Config.Lane.Limit > 0 || fn.Config.Sample > 0 { // as it was asked for
			level = slog.LevelInfo
		}
		fn.Worker.Log.Log(ctx, level, "file_left_open", "file_path", f.Key, "domains", f.Summary.Domains,
			"finished", f.Finished, "held", len(f.Unmarked)+int(f.Held))
		if f.Held > 0 { // of a run before
			if err := store.Remove(ctx, fn.Worker.Store, f.Key+hive.Success); err != nil {
				fn.Worker.Log.Error("success_remove_failed", "key", f.Key+hive.Success, "error", ledger.Redact(err.Error()))
				fn.Worker.NotStored(err)
			}
		}
		return map[string]int64{"files_open": 1}
	}
	done, err := fn.finish(ctx, f.Key, f.Summary)
	if err != nil {
		fn.Worker.Log.Error("success_write_failed", "key", f.Key+hive.Success, "error", err.Error())
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotExist) && !fn.Worker.NotStored(err) { // a file that was removed meanwhile needs no dead letter
		d := fileDeadLetter(fn.Config, f.Key, "store_failed", true, nil, err)
		d.Stage = "complete"
		if err := fn.Worker.DeadLetter(ctx, d); err != nil {
			fn.Worker.Log.Error("dead_letter_lost", "file_path", f.Key, "error", ledger.Redact(err.Error()))
		}
	}
	if !done {
		return map[string]int64{"files_open": 1}
	}
	return map[string]int64{"files_completed": 1}
}

// outageFn decides about the domains that their lanes left unmarked.
type outageFn struct{ completeFn }

func (fn *outageFn) ProcessElement(ctx context.Context, _ int, files func(*undecidedFile) bool, network func(*Network) bool, emitTally func(ledger.Tally)) error {
	w, cfg := fn.Worker, fn.Config
	var all, n Network
	for network(&n) {
		all.add(n)
	}
	var undecided []undecidedFile
	failed := map[string]bool{}
	var f undecidedFile
	for files(&f) {
		undecided = append(undecided, f)
		for _, d := range f.Unmarked {
			failed[d.Host] = true
		}
	}
	stopped := w.Stopped() // perhaps because this machine lacks something: then nothing is concluded about the hosts
	outage := all.Down || !stopped && len(undecided) > 0 && down(ctx, w, cfg, all, failed)
	to, marks := sink{cfg: cfg, w: w}, !outage && !stopped
	if marks {
		if err := to.late(ctx, undecided); err != nil {
			w.Log.Error("success_write_failed", "key", domaintable.Root, "error", ledger.Redact(err.Error()))
			w.NotStored(err)
			marks = false
		}
	}
	var sum ledger.Tally
	if !marks { // the lanes counted them
		ids, keys := map[string]bool{}, map[string]bool{}
		for _, f := range undecided {
			for _, d := range f.Unmarked {
				ids[d.ID], keys[d.Key] = true, true
			}
		}
		sum.Count("domains_collected", -int64(len(ids)))
		sum.Count("metadata_written", -int64(len(keys)))
	}
	for _, f := range undecided {
		switch {
		case outage:
			all.outageCounts(&sum) // with these counts the launcher fails the run
		case marks:
			f.Finished += to.markAll(ctx, f.Unmarked)
		}
		sum.Add(tally(fn.complete(ctx, f)))
	}
	w.Emit(emitTally, sum)
	return nil
}

// markAll writes the marks of domains, and returns how many are marked.
func (s *sink) markAll(ctx context.Context, domains []UnmarkedDomain) (marked int64) {
	for _, d := range domains {
		if err := s.mark(ctx, d.Key, d.ID, d.Host); err != nil {
			s.w.Log.Error("success_write_failed", "key", d.Key+hive.Success, "error", ledger.Redact(err.Error()))
			s.w.NotStored(err)
			continue
		}
		marked++
	}
	return marked
}

// finish marks a raw file, unless the file has changed since it was read.
func (fn *completeFn) finish(ctx context.Context, key string, read FileSummary) (bool, error) {
	done := false
	err := store.Retry(ctx, func() error {
		o, err := fn.Worker.Store.Head(ctx, key)
		if err != nil {
			return fmt.Errorf("checking the version of %s: %w", key, err)
		}
		if o.ETag != read.ETag {
			fn.Worker.Log.Warn("file_replaced", "file_path", key)
			return nil
		}
		done = true
		return fn.Worker.Store.Put(ctx, key+hive.Success, strings.NewReader(""), fn.Config.marker())
	})
	return done && err == nil, err
}

func init() {
	beam.RegisterDoFn(reflect.TypeFor[totalsFn]())
	register.Function3x0(withMetadata)
	register.Iter1[FileSummary]()
}

// rawMetadata is the name of the object next to raw files that says how many files and records its partition has.
const rawMetadata = "raw_metadata.json"

// maxRawMetadata is how much of it is read.
const maxRawMetadata = 4 << 20

// Its totals, as the writers of such files call them. A list counts its items.
var (
	recordTotals = []string{"record_count", "total_records", "total_record_count", "records_count", "records"}
	fileTotals   = []string{"file_count", "total_files", "total_file_count", "files_count", "files"}
)

// compareTotals compares the totals of each raw_metadata.json with the files and records that there are. Records are compared
// if this run read all files of the partition.
func compareTotals(s beam.Scope, cfg Config, read beam.PCollection) (tallies beam.PCollection) {
	s = s.Scope("seed.Totals")
	return beam.ParDo(s, &totalsFn{doFn{Config: cfg}}, beam.GroupByKey(s, beam.ParDo(s, withMetadata, read)))
}

// withMetadata emits the summaries of files that have a raw_metadata.json next to them, by its key.
func withMetadata(key string, f FileSummary, emit func(string, FileSummary)) {
	if f.Files > 0 {
		emit(path.Dir(key)+"/"+rawMetadata, f)
	}
}

type totalsFn struct{ doFn }

func (fn *totalsFn) ProcessElement(ctx context.Context, key string, files func(*FileSummary) bool, emitTally func(ledger.Tally)) error {
	log := fn.Worker.Log.With("file_path", key)
	var read, records, there int64
	var f FileSummary
	for files(&f) {
		read, records, there = read+1, records+f.Records, max(there, f.Files)
	}
	says, err := readTotals(ctx, fn.Worker.Store, key)
	if err != nil {
		if !errors.Is(err, store.ErrNotExist) { // it is not needed, so the run continues
			log.Warn("raw_metadata_unreadable", "error", ledger.Redact(err.Error()))
		}
		return ctx.Err()
	}
	differ := int64(0)
	compare := func(field string, names []string, found int64) {
		if stated, ok := totalOf(says, names); ok && stated != found {
			log.Warn("raw_metadata_disagrees", "field", field, "meta", stated, "found", found)
			differ++
		}
	}
	compare("files", fileTotals, there)
	if read == there {
		compare("records", recordTotals, records)
	}
	if differ > 0 {
		fn.Worker.Emit(emitTally, tally(map[string]int64{"raw_metadata_disagrees": differ}))
	}
	return nil
}

// readTotals returns the objects of a raw_metadata.json that can have totals: itself first.
func readTotals(ctx context.Context, s store.Store, key string) (objects []map[string]any, err error) {
	text, err := store.ReadAll(ctx, s, key, maxRawMetadata)
	if err != nil {
		return nil, err
	}
	var top map[string]any
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, fmt.Errorf("it is no JSON object, write one or remove it: %w", err)
	}
	objects = []map[string]any{top}
	for _, name := range []string{"meta", "totals", "summary"} {
		if inner, ok := top[name].(map[string]any); ok {
			objects = append(objects, inner)
		}
	}
	return objects, nil
}

// totalOf returns the first of the named totals.
func totalOf(objects []map[string]any, names []string) (n int64, ok bool) {
	for _, o := range objects {
		for _, name := range names {
			switch x := o[name].(type) {
			case float64:
				return int64(x), true
			case []any:
				return int64(len(x)), true
			}
		}
	}
	return 0, false
}
