package seed

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Purged says what Purge removed.
type Purged struct {
	Rows    int64 // of packed results
	Objects int64 // of the objects' layout
}

// Purge removes all results of domains, packed or as objects: their metadata, evidence
// and marks, and the states of their sites. A segment that has one of them is written again without it, and the old one
// is removed after the commit of the new one. So a call that was killed anywhere loses
// nothing of other domains, and the next call finishes it. The caller must have the
// job's lease.
func Purge(ctx context.Context, s store.Store, runID string, domains []string) (done Purged, err error) {
	if done.Objects, err = purgeObjects(ctx, s, domains); err != nil {
		return done, err
	}
	for _, name := range domains {
		if err := ledger.RemoveSite(ctx, s, Job, name); err != nil {
			return done, err
		}
	}
	has := func(c segment.Commit) bool {
		return slices.ContainsFunc(c.Done, func(d segment.Done) bool {
			return slices.ContainsFunc(d.Names, func(name string) bool { return slices.Contains(domains, name) })
		})
	}
	keep := func(r table.Row) bool {
		purged := slices.Contains(domains, r.RegistrableDomain)
		if purged {
			done.Rows++
		}
		return !purged
	}
	err = rewrite(ctx, s, runID, new(Compacted), has, keep, apart)
	return done, err
}

// apart writes a segment again by itself: the sizes of segments stay as they are.
func apart(ctx context.Context, m *merger, c segment.Commit) error {
	if err := m.add(ctx, c); err != nil {
		return err
	}
	return m.flush(ctx)
}

// PurgeOlder removes the results of visits before a time. A segment that was committed
// before it is removed without being read, so that one that is damaged does not stay. A
// merged one can have older rows than its commit is: it is written again without them. Of
// the objects' layout the newest object of a domain says how old all of them are. Like
// Purge it may be killed anywhere, and needs the job's lease.
func PurgeOlder(ctx context.Context, s store.Store, runID string, before time.Time) (done Purged, err error) {
	if done.Objects, err = purgeOldObjects(ctx, s, before); err != nil {
		return done, err
	}
	has := func(c segment.Commit) bool { return c.At.Before(before) || len(c.Replaces) > 0 }
	keep := func(r table.Row) bool {
		old := r.CollectedAt.Before(before)
		if old {
			done.Rows++
		}
		return !old
	}
	remove := func(ctx context.Context, m *merger, c segment.Commit) error {
		if !c.At.Before(before) {
			return apart(ctx, m, c)
		}
		for _, d := range c.Done {
			done.Rows += int64(len(d.Names))
		}
		return m.log.Remove(ctx, c)
	}
	err = rewrite(ctx, s, runID, new(Compacted), has, keep, remove)
	return done, err
}

// maxPurged is how many domains' objects are removed at the same time.
const maxPurged = 16

// purgeOldObjects removes the objects of domains that have none from before on.
func purgeOldObjects(ctx context.Context, s store.Store, before time.Time) (int64, error) {
	var removed atomic.Int64
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(maxPurged)
	dir, keys, old := "", []string(nil), false
	remove := func() {
		if of := keys; old {
			group.Go(func() error { return removeResult(within, s, of, &removed) })
		}
	}
	var listed error
	for o, err := range s.List(within, hive.Processing) {
		if listed = err; err != nil {
			break
		}
		if d := path.Dir(o.Key); d != dir {
			remove()
			_, _, old = hive.ParseMark(d + "/" + hive.Metadata + hive.Success)
			dir, keys = d, nil
		}
		keys = append(keys, o.Key)
		old = old && o.ModTime.Before(before)
	}
	if listed == nil {
		remove()
	}
	err := errors.Join(group.Wait(), listed)
	return removed.Load(), err
}

// removeResult removes the objects of a domain, the mark first: a mark without metadata
// would say that it is there.
func removeResult(ctx context.Context, s store.Store, keys []string, removed *atomic.Int64) error {
	slices.SortStableFunc(keys, func(a, b string) int {
		switch {
		case path.Ext(a) == hive.Success:
			return -1
		case path.Ext(b) == hive.Success:
			return 1
		}
		return 0
	})
	for _, key := range keys {
		if err := store.Remove(ctx, s, key); err != nil {
			return err
		}
		removed.Add(1)
	}
	return nil
}

// purgeObjects removes the objects of domains.
func purgeObjects(ctx context.Context, s store.Store, domains []string) (removed int64, err error) {
	for o, err := range objectsOf(ctx, s, domains) {
		if err != nil {
			return removed, err
		}
		if err := store.Remove(ctx, s, o.Key); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
