package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"golang.org/x/sync/errgroup"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[listFn]())
	register.Emitter1[File]()
}

// File is a raw file to read.
type File struct {
	Key   string
	ETag  string
	Size  int64
	Files int64 // raw files of its partition, if there is a raw_metadata.json; else 0
}

// Listing is what a run finds in the bucket.
type Listing struct {
	Files    []File      // open ones, by partition, then sequence number
	written  []time.Time // when each of Files was
	Listed   int64       // raw files that match the filters
	Ignored  int64       // objects that are no raw files
	Skipped  int64       // raw files that have their .success
	Done     []string    // the keys of those with their .success
	NearMiss []string    // keys of objects that only look like raw files
}

// match is a raw file that matches the filters.
type match struct {
	raw hive.Raw
	o   store.Object
}

// compare orders by partition, then sequence number.
func (a match) compare(b match) int {
	return cmp.Or(strings.Compare(path.Dir(a.raw.Key), path.Dir(b.raw.Key)), cmp.Compare(a.raw.Sequence, b.raw.Sequence), strings.Compare(a.raw.Key, b.raw.Key))
}

// ListRaw lists the raw files that match the filters. It keeps a page of the
// listing and the matching keys in memory, never the whole listing.
func ListRaw(ctx context.Context, s store.Store, cfg Config) (Listing, error) {
	var l Listing
	var found []match
	done, files, described := map[string]bool{}, map[string]int64{}, map[string]bool{}
	for o, err := range s.List(ctx, hive.Prefix("datasets/", cfg.Country, cfg.Category, cfg.Date)) {
		if err != nil {
			return l, fmt.Errorf("listing raw files: %w", err)
		}
		if raw, of, ok := markOf(o.Key); ok {
			if cfg.admits(raw) {
				done[of] = true
			}
			l.Ignored++
			continue
		}
		raw, ok := hive.ParseRaw(o.Key)
		if dir, name := path.Split(o.Key); ok {
			files[dir]++
		} else if name == rawMetadata {
			described[dir] = true
		}
		switch {
		case ok && cfg.admits(raw):
			found = append(found, match{raw, o})
		case ok: // of another partition: the prefix of the listing cannot express all filters
		default:
			l.Ignored++
			if hive.NearMiss(o.Key) {
				l.NearMiss = append(l.NearMiss, o.Key)
			}
		}
	}
	slices.SortFunc(found, match.compare)
	if cfg.ForceID != "" { // a listing does not say which run wrote a mark
		if err := cfg.keepOwn(ctx, s, done); err != nil {
			return l, err
		}
	}
	for _, m := range found {
		l.Listed++
		if done[m.raw.Key] {
			l.Skipped++
			l.Done = append(l.Done, m.raw.Key)
			continue
		}
		f := File{Key: m.raw.Key, ETag: m.o.ETag, Size: m.o.Size}
		if dir, _ := path.Split(f.Key); described[dir] {
			f.Files = files[dir]
		}
		l.Files = append(l.Files, f)
		l.written = append(l.written, m.o.ModTime)
	}
	return l, nil
}

// maxMarkReads is how many marks are read at the same time.
const maxMarkReads = 16

// keepOwn removes the files whose mark was not written by this forced run from done.
func (c Config) keepOwn(ctx context.Context, s store.Store, done map[string]bool) error {
	var reads errgroup.Group
	reads.SetLimit(maxMarkReads)
	var mu sync.Mutex
	for key := range maps.Clone(done) {
		reads.Go(func() error {
			marked, err := c.marked(ctx, s, key)
			if err != nil {
				return fmt.Errorf("reading the mark of %s: %w", key, err)
			}
			if !marked {
				mu.Lock()
				delete(done, key)
				mu.Unlock()
			}
			return nil
		})
	}
	return reads.Wait()
}

func markOf(key string) (hive.Raw, string, bool) {
	of, ok := strings.CutSuffix(key, hive.Success)
	if !ok {
		return hive.Raw{}, "", false
	}
	raw, ok := hive.ParseRaw(of)
	return raw, of, ok
}

func (c Config) admits(r hive.Raw) bool {
	return (c.Country == "" || r.Partition.Country == c.Country) &&
		(c.Category == "" || r.Partition.Category == c.Category) &&
		(c.Date == "" || r.Partition.Date == c.Date) &&
		(len(c.Files) == 0 || slices.Contains(c.Files, r.Key))
}

func marked(ctx context.Context, s store.Store, key string, counts func(store.Object) bool) (bool, error) {
	var o store.Object
	err := store.Retry(ctx, func() (err error) { o, err = s.Head(ctx, key); return err })
	switch {
	case errors.Is(err, store.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return counts(o), nil
}

// List lists the bucket's raw files.
//
// Out: the open files (File), and one ledger.Tally.
func List(s beam.Scope, cfg Config) (files, tallies beam.PCollection) {
	s = s.Scope("seed.List")
	return beam.ParDo2(s, &listFn{doFn{Config: cfg}}, beam.Impulse(s))
}

type listFn struct{ doFn }

func (fn *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(File), emitTally func(ledger.Tally)) error {
	cfg, log := fn.Config, fn.Worker.Log
	log.Info("orchestrator_start", "partition_info", map[string]string{"country": cfg.Country, "category": cfg.Category, "date": cfg.Date})
	l, err := ListRaw(ctx, fn.Worker.Store, cfg)
	if err != nil {
		return err
	}
	for _, key := range l.NearMiss {
		log.Warn("file_ignored", "file_path", key, "reason", "looks like a raw file; raw files are named raw_NNNN.json under country=/category=/date=")
	}
	for _, key := range l.Done {
		log.Info("file_already_processed", "file_path", key)
	}
	log.Info("files_found", "count", l.Listed, "already_processed", l.Skipped, "ignored", l.Ignored)
	sent := 0
	for _, f := range l.Files {
		if !fn.Worker.Proceed(ctx) {
			break
		}
		emit(f)
		sent++
	}
	log.Info("queue_messages_sent", "count", sent)
	fn.Worker.Emit(emitTally, tally(map[string]int64{"files_listed": l.Listed, "files_ignored": l.Ignored, "files_skipped": l.Skipped}))
	return nil
}
