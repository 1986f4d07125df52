package seed

import (
	"context"
	"fmt"
	"path"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// Wanted are the names of registrable domains by the partition that has them.
type Wanted map[hive.Partition]map[string]struct{}

// Add adds a domain of a partition.
func (w Wanted) Add(p hive.Partition, name string) {
	if w[p] == nil {
		w[p] = map[string]struct{}{}
	}
	w[p][name] = struct{}{}
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
		commits, err := packedCommits(ctx, s)
		for _, c := range commits {
			for _, d := range c.Done {
				for _, name := range d.Names {
					delete(w[partitionOf(d)], name)
				}
			}
		}
		return found, err
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
