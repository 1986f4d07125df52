package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

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
