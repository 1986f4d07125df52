package seed

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[extractFn]())
	register.Emitter2[string, FileSummary]()
	register.Emitter2[int, lane.Batch]()
}

// FileSummary says that a raw file was read to its end.
type FileSummary struct {
	ETag    string // of the version that was read
	Domains int64  // distinct domain ids in it
	Records int64
	Files   int64 // as in File
}

// maxBadIndices is how many bad records of a file its dead letter names; more are only counted.
const maxBadIndices = 1000

// maxBadNamed is how many of them its error explains.
const maxBadNamed = 5

// Extract reads the raw files record by record and removes duplicates within each.
//
// In: the open files. Out: a summary of each file that was read to its end (string, FileSummary);
// the URL records by lane (int, lane.Batch); tallies.
//
// A file that ends in the middle sends a batch with Broken to each lane that has some of
// its records, which voids them. A lane reads all of its batches before it visits a host. (A side input
// would do the same, but prism 2.77 keeps a core busy while a stage with a side input
// works.)
func Extract(s beam.Scope, cfg Config, files beam.PCollection) (read, records, tallies beam.PCollection) {
	s = s.Scope("seed.Extract")
	read, records, tallies = beam.ParDo3(s, &extractFn{doFn: doFn{Config: cfg}}, beam.Reshuffle(s, files))
	return read, records, beam.Flatten(s, tallies, compareTotals(s, cfg, read))
}

type extractFn struct {
	doFn
	batches batches
}

func (fn *extractFn) ProcessElement(ctx context.Context, f File, emitRead func(string, FileSummary), emitBatch func(int, lane.Batch), emitTally func(ledger.Tally)) error {
	if !fn.Worker.Proceed(ctx) {
		return nil
	}
	log := fn.Worker.Log.With("file_path", f.Key)
	log.Info("file_processor_start")
	out := fn.batches.to(f.Key, max(fn.Config.Lanes, 1), emitBatch)
	if f.Domain.ID != "" {
		r, err := f.record()
		if err != nil {
			return err // the source has made it once
		}
		out.add(r)
		out.flush()
		fn.Worker.Emit(emitTally, tally(map[string]int64{"records": 1}))
		return nil
	}
	var x Extraction
	err := store.Retry(ctx, func() (err error) {
		x, err = ExtractFile(ctx, fn.Worker.Store, f.Key, fn.Worker.Log, fn.Config.Sampled(func(m lane.URLRecord) error {
			out.add(m)
			return nil
		}))
		return err
	})
	counts := map[string]int64{"records": x.Records, "records_bad": x.Bad}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Error("file_processing_failed", "error", ledger.Redact(err.Error()))
		out.void()
		if fn.Worker.NotStored(err) {
			fn.Worker.Emit(emitTally, tally(map[string]int64{}))
			return nil
		}
		counts = map[string]int64{"files_bad": 1}
		if err := fn.Worker.DeadLetter(ctx, fileDeadLetter(fn.Config, f.Key, "bad_file", store.Retryable(err), nil, err)); err != nil {
			return err
		}
		fn.Worker.Emit(emitTally, tally(counts))
		return nil
	}
	out.flush()
	counts["files_read"] = 1
	log.Info("domains_extracted", "total_records", x.Records, "unique_domains", x.Domains, "bad_records", x.Bad)
	if x.Bad > 0 {
		err := fmt.Errorf("%d of %d records name no domain; the first ones: %w", x.Bad, x.Records, x.FirstBad)
		if err := fn.Worker.DeadLetter(ctx, fileDeadLetter(fn.Config, f.Key, "bad_records", false, x.BadIndices, err)); err != nil {
			return err
		}
	} else if err := fn.Worker.Resolve(ctx, fileDeadLetter(fn.Config, f.Key, "bad_records", false, nil, nil)); err != nil {
		return err
	}
	if err := fn.Worker.Resolve(ctx, fileDeadLetter(fn.Config, f.Key, "bad_file", false, nil, nil)); err != nil {
		return err
	}
	emitRead(f.Key, FileSummary{ETag: x.ETag, Domains: x.Domains, Records: x.Records, Files: f.Files})
	log.Info("file_processing_complete", "domains_sent", x.Domains)
	fn.Worker.Emit(emitTally, tally(counts))
	return nil
}

// Extraction is the result of reading a raw file.
type Extraction struct {
	ETag       string
	Records    int64
	Bad        int64
	BadIndices []int
	FirstBad   error // the first maxBadNamed of them
	Domains    int64 // distinct domain ids
}

var errNoPartition = errors.New("the file has no Hive partition in its path")

// ExtractFile reads one raw file and passes each distinct domain id to visit once,
// in order. Errors are those of the store (see store.Retryable) or a *rawfile.Error.
func ExtractFile(ctx context.Context, s store.Store, key string, log *slog.Logger, visit func(lane.URLRecord) error) (Extraction, error) {
	var x Extraction
	raw, ok := hive.ParseRaw(key)
	if !ok {
		return x, fmt.Errorf("%s: %w", key, errNoPartition)
	}
	o, err := s.Head(ctx, key)
	if err != nil {
		return x, fmt.Errorf("reading the version of %s: %w", key, err)
	}
	x.ETag = o.ETag
	body, err := s.Open(ctx, key)
	if err != nil {
		return x, fmt.Errorf("opening %s: %w", key, err)
	}
	defer func() { _ = body.Close() }() // only read

	log = log.With("file_path", key)
	// 128 bits with two secret seeds: flat, no pointers for the collector to
	// follow, and collision-free in practice.
	seen, seeds := map[[2]uint64]struct{}{}, [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	names, labels := new(strings.Builder), map[string]string{}
	meta, err := rawfile.Read(body, func(r rawfile.Record) error {
		x.Records++
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, p := range r.Problems {
			log.Warn("record_field_ignored", "record_index", r.Index, "field", p)
		}
		d, notes, err := domain.Domain{}, []domain.Note(nil), r.Err
		if err == nil {
			d, notes, err = domain.FromRecord(r.RawURL, r.NormalizedDomain, r.DomainID, raw.Partition.Country)
		}
		if err != nil {
			log.Warn("domain_extraction_failed", "record_index", r.Index, "url", untrusted.Line(r.RawURL, maxLogged), "error", untrusted.Line(err.Error(), maxLogged))
			x.addBad(r.Index, err)
			return nil
		}
		for _, n := range notes {
			log.Warn("domain_identity_derived", "record_index", r.Index, "note", n)
		}
		seen[[2]uint64{maphash.String(seeds[0], d.ID), maphash.String(seeds[1], d.ID)}] = struct{}{}
		if int64(len(seen)) == x.Domains {
			return nil // a duplicate
		}
		x.Domains++
		label, known := labels[d.ID[:len(d.ID)-len(d.Registrable)-1]]
		if !known {
			label = strings.Clone(d.ID[:len(d.ID)-len(d.Registrable)-1])
			labels[label] = label
		}
		return visit(lane.URLRecord{Host: pack(&names, d.Registrable), Label: label, Index: r.Index, Source: pack(&names, sourceText(r, d))})
	})
	if err != nil {
		return x, fmt.Errorf("reading %s: %w", key, err)
	}
	x.compare(log, meta, raw.Partition)
	return x, nil
}

func (x *Extraction) addBad(index int, err error) {
	x.Bad++
	switch {
	case x.FirstBad == nil:
		x.FirstBad = fmt.Errorf("record %d: %w", index, err)
	case x.Bad <= maxBadNamed:
		x.FirstBad = fmt.Errorf("%w; record %d: %w", x.FirstBad, index, err)
	}
	if len(x.BadIndices) < maxBadIndices {
		x.BadIndices = append(x.BadIndices, index)
	}
}

// compare logs what a file says of itself and is not so.
func (x *Extraction) compare(log *slog.Logger, meta rawfile.Meta, in hive.Partition) {
	if meta.Country != "" && !strings.EqualFold(meta.Country, in.Country) {
		log.Warn("meta_disagrees", "field", "country", "meta", meta.Country, "path", in.Country)
	}
	if meta.Category != "" && meta.Category != in.Category {
		log.Warn("meta_disagrees", "field", "category", "meta", meta.Category, "path", in.Category)
	}
	if meta.HasCount && meta.RecordCount != x.Records {
		log.Warn("record_count_mismatch", "meta", meta.RecordCount, "records", x.Records)
	}
}

// packed is how many bytes of strings pack keeps together.
const packed = 4 << 10

// pack copies s behind the strings packed before. URL records may wait for long until
// their batch is full: s itself would keep the whole record of its file in memory, and
// strings of their own take more memory.
func pack(to **strings.Builder, s string) string {
	if (*to).Cap()-(*to).Len() < len(s) {
		*to = new(strings.Builder)
		(*to).Grow(max(packed, len(s)))
	}
	from := (*to).Len()
	(*to).WriteString(s)
	return (*to).String()[from:]
}

const (
	// maxBatch is the maximum number of URL records in one element of the shuffle.
	maxBatch = 1024
	// maxBuffered is the maximum number of bytes of URL records that wait for their
	// batch to fill, over all lanes.
	maxBuffered = 16 << 20
	// recordSize is about what a buffered record takes besides the text of its strings.
	recordSize = 64
)

// batches collects the URL records of one raw file into batches, one for each lane. Its
// memory does not depend on the number of lanes.
type batches struct {
	file  string
	lanes []laneBatch
	size  int // bytes of the records in lanes, about
	emit  func(int, lane.Batch)
}

type laneBatch struct {
	records []lane.URLRecord
	emitted bool // the lane has records of the file
}

// to begins a file: its batches go to emit.
func (b *batches) to(file string, lanes int, emit func(int, lane.Batch)) *batches {
	if len(b.lanes) != lanes {
		b.lanes = make([]laneBatch, lanes)
	}
	clear(b.lanes) // of a file that failed
	b.file, b.size, b.emit = file, 0, emit
	return b
}

// add adds a record to the lane of its host.
func (b *batches) add(r lane.URLRecord) {
	n := lane.Of(r.Host, len(b.lanes))
	b.size += sizeOf(r)
	to := &b.lanes[n]
	to.records = append(to.records, r) // without a capacity: most files have records in few of many lanes
	switch {
	case len(to.records) == maxBatch:
		b.flushLane(n)
	case b.size > maxBuffered:
		b.flush()
	}
}

func sizeOf(r lane.URLRecord) int {
	return len(r.Host) + len(r.Label) + len(r.Source) + recordSize
}

func (b *batches) flush() {
	for n := range b.lanes {
		b.flushLane(n)
	}
}

func (b *batches) flushLane(n int) {
	of := &b.lanes[n]
	if len(of.records) == 0 {
		return
	}
	for _, r := range of.records {
		b.size -= sizeOf(r)
	}
	b.emit(n, lane.NewBatch(b.file, of.records))
	of.records, of.emitted = nil, true
}

// void tells the lanes that have records of the file to drop them.
func (b *batches) void() {
	for n, of := range b.lanes {
		if of.emitted {
			b.emit(n, lane.Batch{File: b.file, Broken: true})
		}
	}
}
