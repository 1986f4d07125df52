package seed

import (
	"context"
	"slices"

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
// and marks. A segment that has one of them is written again without it, and the old one
// is removed after the commit of the new one. So a call that was killed anywhere loses
// nothing of other domains, and the next call finishes it. The caller must have the
// job's lease.
func Purge(ctx context.Context, s store.Store, runID string, domains []string) (done Purged, err error) {
	if done.Objects, err = purgeObjects(ctx, s, domains); err != nil {
		return done, err
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
	// Each segment by itself: their sizes stay as they are.
	apart := func(ctx context.Context, m *merger, c segment.Commit) error {
		if err := m.add(ctx, c); err != nil {
			return err
		}
		return m.flush(ctx)
	}
	err = rewrite(ctx, s, runID, new(Compacted), has, keep, apart)
	return done, err
}

// purgeObjects removes what each partition that has raw files keeps of the domains.
func purgeObjects(ctx context.Context, s store.Store, domains []string) (removed int64, err error) {
	partitions := map[hive.Partition]bool{}
	for o, err := range s.List(ctx, "datasets/") {
		if err != nil {
			return 0, err
		}
		if raw, ok := hive.ParseRaw(o.Key); ok {
			partitions[raw.Partition] = true
		}
	}
	for p := range partitions {
		for _, name := range domains {
			for o, err := range s.List(ctx, p.DomainDir(name)+"/") {
				if err != nil {
					return removed, err
				}
				if err := store.Remove(ctx, s, o.Key); err != nil {
					return removed, err
				}
				removed++
			}
		}
	}
	return removed, nil
}
