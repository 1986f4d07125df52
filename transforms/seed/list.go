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
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
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

	Domain queue.Domain // what a message names: it is read in place of a raw file; zero for none
}

// Listing is what a run finds in the bucket.
type Listing struct {
	Files    []File   // open ones, by partition, then sequence number
	Listed   int64    // raw files that match the filters
	Ignored  int64    // objects that are no raw files
	Skipped  int64    // raw files that have their .success
	Done     []string // the keys of those with their .success
	NearMiss []string // keys of objects that only look like raw files
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

// listings are the finished domains of partitions. The zero value has listed nothing.
type listings struct {
	partitions sync.Map // *listing by hive.Partition
	kept       atomic.Int64
}

func (a *listings) of(p hive.Partition) *listing {
	if l, ok := a.partitions.Load(p); ok {
		return l.(*listing)
	}
	l, _ := a.partitions.LoadOrStore(p, &listing{kept: &a.kept, in: p, root: path.Dir(p.DomainDir("any")) + "/"})
	return l.(*listing)
}

const (
	// hostsPerPage is how many calls that ask for one mark each a page of a listing costs.
	hostsPerPage = 12
	pageSize     = 1000
	// objectsOfHost is about how many objects a finished domain has.
	objectsOfHost = 4
	// maxPagesTogether is how many pages are listed one after another. A longer listing is
	// made in parts, by the first byte of the names.
	maxPagesTogether = 16
	// maxKept is how many finished domains a process keeps in 64 MiB, over all partitions.
	// Marks of others are asked for one by one.
	maxKept = 64 << 20 / 32
)

// listing is what was listed of one partition.
type listing struct {
	kept *atomic.Int64 // domains, in all partitions
	in   hive.Partition
	root string // of the keys

	looking sync.Mutex // whether the partition is empty
	empty   *bool

	mu     sync.Mutex
	ranges map[string]*nameRange // by the beginning of their names
	depth  int                   // bytes of a beginning
	hosts  int                   // that lanes of this process have looked for
	worth  int                   // how many pages cost less than to ask for each mark
	pages  int                   // that were listed
}

// nameRange is all finished domains whose names begin with the same bytes.
type nameRange struct {
	listing sync.Mutex // held while it is listed
	found   atomic.Pointer[map[visited]struct{}]
	tooMany bool // its listing was given up
}

// fresh reports whether the partition was empty when it was first asked for. After an
// error it counts as not empty, so that evidence is removed that may not exist.
func (l *listing) fresh(ctx context.Context, s store.Store) bool {
	l.looking.Lock()
	defer l.looking.Unlock()
	if l.empty != nil {
		return *l.empty
	}
	empty := true
	for range s.List(ctx, l.root) { //nolint:errcheck // see above
		empty = false
		break
	}
	if ctx.Err() != nil { // of one lane, so it says nothing to the others
		return false
	}
	l.empty = &empty
	return empty
}

// name returns a domain's name as it is in keys.
func (l *listing) name(registrable string) string {
	return strings.TrimPrefix(l.in.DomainDir(registrable), l.root)
}

// want returns the ranges of a lane's names, by their beginnings, if it is worth listing
// them. In the whole run there are about of hosts for each of the names, and in this process here.
func (l *listing) want(names []string, of, here float64) map[string]*nameRange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts += len(names)
	l.worth = max(l.worth, l.hosts/hostsPerPage, int(float64(len(names))*here)/hostsPerPage)
	pages := 1 + int(float64(len(names))*of)*objectsOfHost/pageSize
	if pages > l.worth {
		return nil
	}
	if l.ranges == nil {
		l.ranges = map[string]*nameRange{}
		if pages > maxPagesTogether {
			l.depth = 1
		}
	}
	own := map[string]*nameRange{}
	for _, name := range names {
		begin := name[:l.depth]
		if l.ranges[begin] == nil {
			begin = strings.Clone(begin)
			l.ranges[begin] = new(nameRange)
		}
		own[begin] = l.ranges[begin]
	}
	return own
}

// has reports whether a domain was finished when its range was listed.
func (l *listing) has(name string) (found, known bool) {
	l.mu.Lock()
	r := l.ranges[name[:l.depth]]
	l.mu.Unlock()
	if r == nil {
		return false, false
	}
	names := r.found.Load()
	if names == nil {
		return false, false
	}
	_, found = (*names)[visitedAs(l.in, name)]
	return found, true
}

// onePage counts a page of a listing, and reports whether it is worth its cost.
func (l *listing) onePage() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages++
	return l.pages <= l.worth
}

// list lists a range once. It gives up a range that has more names than it is worth, or
// than can be kept.
func (l *listing) list(ctx context.Context, s store.Store, begin string, r *nameRange) error {
	r.listing.Lock()
	defer r.listing.Unlock()
	if r.found.Load() != nil || r.tooMany {
		return nil
	}
	names := map[visited]struct{}{}
	forget := func() { l.kept.Add(-int64(len(names))) }
	objects := 0
	for o, err := range s.List(ctx, l.root+begin) {
		if err != nil {
			forget()
			return err
		}
		name, marked := strings.CutSuffix(strings.TrimPrefix(o.Key, l.root), markName)
		if marked {
			names[visitedAs(l.in, name)] = struct{}{}
		}
		if objects%pageSize == 0 && !l.onePage() || marked && l.kept.Add(1) > maxKept {
			r.tooMany = true
			forget()
			return nil
		}
		objects++
	}
	r.found.Store(&names)
	return nil
}

// markName ends the key of a domain's mark.
const markName = "/" + hive.Metadata + hive.Success
