package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline/estimate"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// maxFileReads is how many raw files an estimate reads at the same time.
const maxFileReads = 8

// work lists and reads the raw files as a run would, and looks for what is done.
func (o *seedOptions) work(ctx context.Context, c RunOptions, s store.Store) (w estimate.Work, err error) {
	cfg := o.config(c)
	if c.Force {
		cfg.ForceID = "estimate"
	}
	l, err := seed.ListRaw(ctx, s, cfg)
	if err != nil {
		return w, err
	}
	w.Files, w.Listed = int64(len(l.Files)), l.Listed+l.Ignored
	log := lane.Logger(c.LogFormat, slog.Level(math.MaxInt)) // --until=extract shows the problems of files
	wanted := seed.Wanted{}
	var mu sync.Mutex
	reads, within := errgroup.WithContext(ctx)
	reads.SetLimit(maxFileReads)
	for _, f := range l.Files {
		w.FileBytes += f.Size
		reads.Go(func() error {
			var names []string
			err := store.Retry(within, func() error {
				names = names[:0]
				_, err := seed.ExtractFile(within, s, f.Key, log, cfg.Sampled(func(r lane.URLRecord) error {
					names = append(names, r.Host)
					return nil
				}))
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case within.Err() != nil:
				return within.Err()
			case err != nil && store.Retryable(err):
				return fmt.Errorf("reading %s: %w", f.Key, err)
			case err != nil: // a run leaves the file out, too
				w.BadFiles++
				return nil
			}
			raw, _ := hive.ParseRaw(f.Key) // listed as one
			for _, name := range names {
				wanted.Add(raw.Partition, name)
			}
			return nil
		})
	}
	if err := reads.Wait(); err != nil {
		return w, err
	}
	w.Partitions = int64(len(wanted))
	w.Domains, _ = wanted.Domains()
	found, err := wanted.RemoveFinished(ctx, s, cfg)
	if err != nil {
		return w, err
	}
	if w.Asked = found.Asked; !c.Force && !store.Local(s) {
		w.Stored = found.Objects
	}
	w.Open, w.Results = wanted.Domains()
	w.Finished = w.Domains - w.Open
	if limit := int64(c.Limit); 0 < limit && limit < w.Open {
		w.Open, w.Results = limit, (w.Results*limit+w.Open-1)/w.Open
	}
	return w, nil
}

// estimate says what a run will cost.
func (o *seedOptions) estimate(ctx context.Context, c RunOptions, s store.Store, past estimate.Past) (estimate.Estimate, error) {
	w, err := o.work(ctx, c, s)
	if err != nil {
		return estimate.Estimate{}, err
	}
	return estimate.Seed(w, past), nil
}
