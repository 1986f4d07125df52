package seed

import (
	"bytes"
	"context"
	"path"
	"slices"
	"sort"
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
	l, _ := a.partitions.LoadOrStore(p, &listing{kept: &a.kept, in: p, root: path.Dir(p.DomainDir("any")) + "/", ranges: map[string]*nameRange{}})
	return l.(*listing)
}

const (
	// rangeHosts is about how many of a run's hosts share one range.
	rangeHosts = 5000
	// minSample is how many of one lane's hosts are enough to plan a range.
	minSample = 8
	// hostsPerPage is how many calls that ask for one mark each a page of a listing costs.
	hostsPerPage = 12
	pageSize     = 1000
	// objectsOfHost is about how many objects a finished domain has.
	objectsOfHost = 4
	// maxKept is how many bytes of names a process keeps, over all partitions. Marks of
	// names beyond them are asked for one by one.
	maxKept = 64 << 20
)

// listing is what was listed of one partition, in ranges of names: each range when a lane
// needs it.
type listing struct {
	kept *atomic.Int64 // bytes of names, in all partitions
	in   hive.Partition
	root string // of the keys

	looking sync.Mutex // whether the partition is empty
	empty   *bool

	mu     sync.Mutex
	split  map[string]bool       // the beginnings of names that are in several ranges
	ranges map[string]*nameRange // by the beginning of their names
	hosts  int                   // that lanes of this process have looked for
	worth  int                   // how many pages cost less than to ask for each mark
	pages  int                   // how many were listed or are promised
}

// nameRange is all finished domains whose names begin with the same bytes.
type nameRange struct {
	of      *listing
	begin   string
	listing sync.Mutex // held while it is listed
	found   atomic.Pointer[nameList]
	tooMany atomic.Bool // its listing was given up
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

// name returns a domain's name as it is in keys, with the slash behind it: the keys are
// in that order.
func (l *listing) name(registrable string) string {
	return strings.TrimPrefix(l.in.DomainDir(registrable), l.root) + "/"
}

// planned is a range that is worth listing, and the number of pages that it may have.
type planned struct {
	*nameRange
	pages int
}

// want plans to list the ranges of a lane's names. In the whole run there are about of
// hosts for each of the names, and in this process here.
func (l *listing) want(names []string, of, here float64) (plan []planned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts += len(names)
	l.worth = max(l.worth, l.hosts/hostsPerPage, int(float64(len(names))*here)/hostsPerPage)
	names = slices.Sorted(slices.Values(names))
	if l.split == nil {
		l.split = map[string]bool{}
		l.splitAt(names, 0, max(minSample, int(rangeHosts/of)))
	}
	for len(names) > 0 {
		r := l.rangeOf(names[0])
		n := slices.IndexFunc(names, func(name string) bool { return !strings.HasPrefix(name, r.begin) })
		if n < 0 {
			n = len(names)
		}
		names = names[n:]
		pages := 1 + int(float64(n)*of)*objectsOfHost/pageSize
		if r.found.Load() != nil || r.tooMany.Load() || l.pages+pages > l.worth {
			continue
		}
		l.pages += pages
		plan = append(plan, planned{r, pages})
	}
	return plan
}

// splitAt notes the beginnings that more than most of the names have. Names are sorted and
// have their first depth bytes in common.
func (l *listing) splitAt(names []string, depth, most int) {
	if len(names) <= most || depth == len(names[0]) {
		return
	}
	l.split[names[0][:depth]] = true
	for len(names) > 0 {
		begin := names[0][:min(depth+1, len(names[0]))]
		n := slices.IndexFunc(names, func(name string) bool { return !strings.HasPrefix(name, begin) })
		if n < 0 {
			n = len(names)
		}
		l.splitAt(names[:n], depth+1, most)
		names = names[n:]
	}
}

// rangeOf returns the range of a name. The caller has locked l.
func (l *listing) rangeOf(name string) *nameRange {
	n := 0
	for n < len(name) && l.split[name[:n]] {
		n++
	}
	r, ok := l.ranges[name[:n]]
	if !ok {
		r = &nameRange{of: l, begin: strings.Clone(name[:n])}
		l.ranges[r.begin] = r
	}
	return r
}

// has reports whether a domain was finished when its range was listed.
func (l *listing) has(name string) (found, known bool) {
	l.mu.Lock()
	r := l.rangeOf(name)
	l.mu.Unlock()
	names := r.found.Load()
	return names.has(name), names != nil
}

// promise changes the number of pages that ranges may have, and reports whether it is
// worth it.
func (l *listing) promise(pages int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages += pages
	return l.pages <= l.worth
}

// list lists the range, in the number of pages that was promised to it, and more if that
// is worth it.
func (r *nameRange) list(ctx context.Context, s store.Store, promised int) error {
	r.listing.Lock()
	defer r.listing.Unlock()
	l := r.of
	if r.found.Load() != nil || r.tooMany.Load() { // by another lane meanwhile
		l.promise(-promised)
		return nil
	}
	var names nameList
	objects := 0
	for o, err := range s.List(ctx, l.root+r.begin) {
		if err != nil {
			l.kept.Add(-names.size())
			return err
		}
		if objects++; objects > promised*pageSize {
			if promised++; !l.promise(1) {
				return r.giveUp(names)
			}
		}
		key := strings.TrimPrefix(o.Key, l.root)
		if name, ok := strings.CutSuffix(key, markName); ok {
			before := names.size()
			names.add(name + "/")
			if l.kept.Add(names.size()-before) > maxKept {
				return r.giveUp(names)
			}
		}
	}
	l.promise(1 + objects/pageSize - promised)
	names.text = bytes.Clone(names.text)
	r.found.Store(&names)
	return nil
}

func (r *nameRange) giveUp(names nameList) error {
	r.of.kept.Add(-names.size())
	r.tooMany.Store(true)
	return nil
}

// markName ends the key of a domain's mark.
const markName = "/" + hive.Metadata + hive.Success

// nameList is sorted names, each with a slash behind it.
type nameList struct {
	text []byte
	ends []uint32
}

func (n *nameList) size() int64 { return int64(len(n.text) + 4*len(n.ends)) }

func (n *nameList) add(name string) {
	n.text = append(n.text, name...)
	n.ends = append(n.ends, uint32(len(n.text)))
}

func (n *nameList) has(name string) bool {
	if n == nil {
		return false
	}
	_, found := sort.Find(len(n.ends), func(i int) int {
		begin := uint32(0)
		if i > 0 {
			begin = n.ends[i-1]
		}
		return strings.Compare(name, string(n.text[begin:n.ends[i]]))
	})
	return found
}
