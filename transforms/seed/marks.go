package seed

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"golang.org/x/sync/errgroup"
)

// mark is what a lane knows of a host's completion mark before it visits the host.
type mark uint8

const (
	markUnknown mark = iota // the visit looks for it
	markAbsent
	markPresent
)

const (
	// minListed is how many hosts of a partition are worth a listing.
	minListed = 100
	// maxListed is how many hosts share one listing. Several run at the same time.
	maxListed = 5000
	// minFound is how many marks of pageSize listed objects must be those of the
	// lane's hosts. A page costs as much as a dozen calls that ask for one mark each.
	minFound = 12
	pageSize = 1000
)

// listMarks finds the marks of the lane's hosts by listing their partitions, so that
// a lane of a hundred thousand finished hosts costs some hundred calls. It leaves a
// mark unknown where a listing fails or would cost more than asking for each mark: in
// a store of this machine, for few hosts, and for hosts that are few among the
// others of their partition.
func (l *laneRun) listMarks(ctx context.Context) {
	w := l.fn.Worker
	if store.Local(w.Store) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.Stopping(), cancel)()
	var lists errgroup.Group
	lists.SetLimit(maxMarkReads)
	for p, hosts := range l.table.byPartition() {
		if len(hosts) < minListed || l.fresh(ctx, p) {
			continue
		}
		name := func(h int32) string { return l.table.hosts[h].name }
		slices.SortFunc(hosts, func(a, b int32) int { return strings.Compare(name(a), name(b)) })
		for _, part := range splitByPrefix(hosts, name, 0, maxListed) {
			lists.Go(func() error {
				if err := l.listPart(ctx, p, part); err != nil && ctx.Err() == nil {
					w.Log.Warn("marks_not_listed", "partition", p.DomainDir(""), "error", ledger.Redact(err.Error()))
				}
				return nil
			})
		}
	}
	_ = lists.Wait() // no function returns an error
}

// splitByPrefix cuts hosts, which are sorted by name, into parts of at most most
// hosts. The names of a part begin with the same bytes, and no other names do.
func splitByPrefix(hosts []int32, name func(int32) string, depth, most int) (parts [][]int32) {
	if len(hosts) <= most {
		return [][]int32{hosts}
	}
	at := func(h int32) int {
		if n := name(h); depth < len(n) {
			return int(n[depth])
		}
		return -1
	}
	for len(hosts) > 0 {
		end := slices.IndexFunc(hosts, func(h int32) bool { return at(h) != at(hosts[0]) })
		if end < 0 {
			end = len(hosts)
		}
		parts = append(parts, splitByPrefix(hosts[:end], name, depth+1, most)...)
		hosts = hosts[end:]
	}
	return parts
}

// listPart finds the marks of hosts of one partition in one listing.
func (l *laneRun) listPart(ctx context.Context, p hive.Partition, hosts []int32) error {
	if len(hosts) < minFound {
		return nil
	}
	type wanted struct {
		key  string
		host int32
	}
	marks := make([]wanted, len(hosts))
	for i, h := range hosts {
		marks[i] = wanted{metadataKey(p, l.table.hosts[h].name) + hive.Success, h}
	}
	slices.SortFunc(marks, func(a, b wanted) int { return cmp.Compare(a.key, b.key) })
	known, objects, before := 0, 0, 0
	for o, err := range l.fn.Worker.Store.List(ctx, commonPrefix(marks[0].key, marks[len(marks)-1].key)) {
		if err != nil {
			return err
		}
		for ; known < len(marks) && marks[known].key <= o.Key; known++ {
			l.setMark(p, marks[known].host, marks[known].key == o.Key)
		}
		if objects++; objects%pageSize == 0 {
			if known-before < minFound {
				return nil
			}
			before = known
		}
	}
	for _, m := range marks[known:] {
		l.setMark(p, m.host, false)
	}
	return nil
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// setMark keeps what was listed. A listing does not say which run wrote a mark, so in
// a forced run only the visit can know whether one counts.
func (l *laneRun) setMark(p hive.Partition, h int32, found bool) {
	m := markAbsent
	if found {
		m = markPresent
		if l.fn.Config.ForceID != "" {
			m = markUnknown
		}
	}
	records := l.table.hosts[h].records
	for i := range records {
		if l.table.files[records[i].file].in == p {
			records[i].mark = m
		}
	}
}
