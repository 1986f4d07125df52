package seed

import (
	"context"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

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
