package seed

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// maxAudited is the size in bytes of the largest metadata that is read.
const maxAudited = 16 << 20

// Audit calls found for what is inconsistent in the job's results, and how to mend it. Results without a mark are those of a
// domain that the next run visits, and no fault.
func Audit(ctx context.Context, s store.Store, _ *db.DB, found func(what, key, mend string)) error {
	if err := auditRaw(ctx, s, found); err != nil {
		return err
	}
	again := "seed --force, with the --country, --category and --date of the key, visits the domain again"
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(maxMarkReads)
	last := "" // the metadata of the folder at hand
	for o, err := range s.List(ctx, hive.Processing) {
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		key, marked := strings.CutSuffix(o.Key, hive.Success)
		switch _, _, ours := hive.ParseMark(o.Key); {
		case ours && marked && key != last:
			found("marks of domains without metadata", o.Key, again)
		case path.Base(o.Key) == hive.Metadata:
			last = o.Key
			group.Go(func() error {
				var d metadata.Domain
				b, err := store.ReadAll(within, s, o.Key, maxAudited)
				if err == nil && json.Unmarshal(b, &d) != nil {
					found("metadata that is no JSON", o.Key, again)
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, atWork, err := lease.ActiveHolder(ctx, s, Job)
	if err != nil {
		return err
	}
	return segment.Audit(ctx, s, PackedRoot, func(what, key string) {
		switch what {
		case segment.FileLeft:
			if !atWork {
				found(what, key, "seed: the next run of the lane removes them")
			}
		default:
			found(what, key, "restore them from a backup; or remove their commit, and seed --force visits its domains again")
		}
	})
}

// auditRaw looks for marks of raw files that are not there.
func auditRaw(ctx context.Context, s store.Store, found func(what, key, mend string)) error {
	last := ""
	for o, err := range s.List(ctx, hive.Datasets) {
		if err != nil {
			return err
		}
		if key, marked := strings.CutSuffix(o.Key, hive.Success); !marked {
			last = o.Key
		} else if _, raw := hive.ParseRaw(key); raw && key != last {
			found("marks of raw files that are not there", o.Key, "remove the mark, or put the raw file back")
		}
	}
	return nil
}
