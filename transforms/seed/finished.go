package seed

import (
	"context"
	"fmt"
	"path"
	"strings"

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
	packed := Wanted{}
	if cfg.Layout.Packs() {
		commits, err := packedCommits(ctx, s)
		if err != nil {
			return found, err
		}
		for _, c := range commits {
			if cfg.ForceID != "" {
				break
			}
			for _, d := range c.Done {
				p := hive.Partition{Country: d.Country, Category: d.Category, Date: d.Date}
				for _, name := range d.Names {
					if _, ok := w[p][name]; ok {
						packed.Add(p, name)
					}
				}
			}
		}
	}
	for p, names := range w {
		if !cfg.Layout.objects() {
			for name := range packed[p] {
				delete(names, name)
			}
			continue
		}
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
			name := path.Base(path.Dir(o.Key))
			if !strings.HasSuffix(o.Key, hive.Success) || o.Key != metadataKey(p, name)+hive.Success {
				continue
			}
			if _, ok := packed[p][name]; ok || !cfg.Layout.Packs() {
				delete(names, name)
			}
		}
	}
	return found, nil
}
