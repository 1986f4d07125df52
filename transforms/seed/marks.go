package seed

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// mark is what a lane knows of a host's completion mark before it visits the host.
type mark uint8

const (
	markUnknown mark = iota // the visit looks for it
	markAbsent
	markPresent
)

// past is what is known of earlier visits of the hosts in a table.
type past struct {
	cfg    Config
	w      *lane.Worker
	table  *hostTable
	listed *listings
	again  bool // listed may be older than what this run found out about the hosts
}

// newPast is for hosts that this run has had before if again is set.
func newPast(cfg Config, w *lane.Worker, table *hostTable, again bool) past {
	if cfg.Lane.Running { // in a stream a listing is soon out of date
		return past{cfg: cfg, w: w, table: table, listed: new(listings)}
	}
	return past{cfg: cfg, w: w, table: table, listed: lane.Shared[listings](w), again: again}
}

// listMarks finds the marks of the lane's hosts in listings of their partitions, which
// the lanes of a process share, so that a hundred thousand finished hosts cost some
// hundred calls. It leaves a mark unknown where a listing fails or would cost more than
// asking for each mark: in a store of this machine, and for hosts that are few among
// the others of their partition.
func (l past) listMarks(ctx context.Context) {
	w := l.w
	if store.Local(w.Store) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.Stopping(), cancel)()
	// A lane is a hash of its hosts, so other lanes have about as many of the partition.
	of := 1.0
	if !l.cfg.Lane.Running {
		of = float64(l.cfg.Lanes)
	}
	here := max(1, of*w.Part())
	for p, hosts := range l.table.byPartition() {
		if l.fresh(ctx, p) {
			continue // which the visit sees, too
		}
		in := l.listed.of(p)
		names := make([]string, len(hosts))
		for i, h := range hosts {
			names[i] = in.name(l.table.hosts[h].name)
		}
		var lists errgroup.Group
		lists.SetLimit(maxMarkReads)
		for begin, r := range in.want(names, of, here) {
			lists.Go(func() error {
				if err := in.list(ctx, w.Store, begin, r); err != nil && ctx.Err() == nil {
					w.Log.Warn("marks_not_listed", "partition", p.DomainDir(""), "error", ledger.Redact(err.Error()))
				}
				return nil
			})
		}
		_ = lists.Wait() // no function returns an error
		for i, h := range hosts {
			if found, known := in.has(names[i]); known {
				l.setMark(p, h, found)
			}
		}
	}
}

// setMark keeps what was listed. A listing does not say which run wrote a mark, so in
// a forced run only the visit can know whether one counts. If this run has worked at the
// lane before, a mark may have been written since the listing.
func (l past) setMark(p hive.Partition, h int32, found bool) {
	m := markAbsent
	switch {
	case found && l.cfg.ForceID == "":
		m = markPresent
	case found || l.again:
		m = markUnknown
	}
	records := l.table.hosts[h].records
	for i := range records {
		if l.table.files[records[i].file].in == p {
			records[i].mark = m
		}
	}
}

// Wanted are the names of registrable domains by the partition that has them.
type Wanted map[hive.Partition]map[string]struct{}

// Add adds a domain of a partition.
func (w Wanted) Add(p hive.Partition, name string) {
	if w[p] == nil {
		w[p] = map[string]struct{}{}
	}
	w[p][name] = struct{}{}
}

func (w Wanted) has(p hive.Partition, name string) bool {
	_, has := w[p][name]
	return has
}

// Domains returns how many different domains there are in all partitions, and the sum of
// those of each partition.
func (w Wanted) Domains() (domains, results int64) {
	all := map[string]struct{}{}
	for _, names := range w {
		results += int64(len(names))
		for name := range names {
			all[name] = struct{}{}
		}
	}
	return int64(len(all)), results
}

// Found is what RemoveFinished saw.
type Found struct {
	Objects int64 // that it listed
	Asked   int64 // domains of partitions that have results
}

// RemoveFinished removes the domains that a run with this configuration would not visit
// again. It only reads.
func (w Wanted) RemoveFinished(ctx context.Context, s store.Store, cfg Config) (found Found, err error) {
	if cfg.Layout.Packs() {
		if cfg.ForceID != "" {
			return found, nil
		}
		parts, err := domaintable.All(ctx, s)
		if err != nil {
			return found, err
		}
		return found, namesOf(ctx, s, parts, func(_ domaintable.Part, done []domaintable.Done) {
			for _, d := range done {
				for _, name := range d.Names {
					delete(w[d.Partition], name)
				}
			}
		})
	}
	for p, names := range w {
		asked := int64(len(names))
		for o, err := range s.List(ctx, path.Dir(p.DomainDir("any"))+"/") {
			if err != nil {
				return found, fmt.Errorf("listing what is done: %w", err)
			}
			found.Objects++
			found.Asked, asked = found.Asked+asked, 0
			if cfg.ForceID != "" {
				break
			}
			if name := path.Base(path.Dir(o.Key)); o.Key == metadataKey(p, name)+hive.Success {
				delete(names, name)
			}
		}
	}
	return found, nil
}
