package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
)

// Removal says what is kept of a registrable domain, in both layouts.
func Removal() removal.What {
	return removal.What{Job: Job, Kind: "domain", Read: registrable, Objects: func(ctx context.Context, src removal.Source) iter.Seq2[store.Object, error] {
		return objectsOf(ctx, src.Store, []string{src.Name})
	},
		Parts: []removal.Part{{Name: "packed", Count: countPacked, Remove: func(ctx context.Context, src removal.Source) error {
			_, err := Purge(ctx, src.Store, ledger.NewRunID(time.Now()), []string{src.Name})
			return err
		}}},
		Alone: func(ctx context.Context, src removal.Source, do func(context.Context, removal.Source) error) error {
			return Alone(ctx, src.Store, lane.DefaultLeaseTTL, io.Discard, func(ctx context.Context, s store.Store, _ string) error {
				src.Store = s
				return do(ctx, src)
			})
		}}
}

// registrable refuses what is no registrable domain, for which nothing is kept.
func registrable(word string) (string, error) {
	name, err := domain.Registrable(word)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is no domain: %w", word, err)
	case name != word:
		return "", fmt.Errorf("results are kept for registrable domains; write %s instead of %s", name, word)
	}
	return name, nil
}

// objectsOf yields the objects of domains, also of partitions without raw files.
func objectsOf(ctx context.Context, s store.Store, domains []string) iter.Seq2[store.Object, error] {
	folders, names := map[string]bool{}, map[string]bool{}
	for _, name := range domains {
		folders[path.Base(hive.Partition{}.DomainDir(name))], names[name] = true, true
	}
	return func(yield func(store.Object, error) bool) {
		for _, prefix := range []string{hive.Processing, robotsPrefix} {
			for o, err := range s.List(ctx, prefix) {
				of := err != nil || folders[path.Base(path.Dir(o.Key))]
				for host := strings.TrimSuffix(path.Base(o.Key), ".json"); prefix == robotsPrefix && host != "" && !of; _, host, _ = strings.Cut(host, ".") {
					of = names[host]
				}
				if of && !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

// countPacked counts the packed results of a domain.
func countPacked(ctx context.Context, src removal.Source) (n int64, err error) {
	commits, err := packedCommits(ctx, src.Store)
	for _, c := range commits {
		for _, d := range c.Done {
			if slices.Contains(d.Names, src.Name) {
				n++
			}
		}
	}
	return n, err
}

// Alone works under the job's lease, when no worker of an earlier run is left. It says to stderr for what it waits.
func Alone(ctx context.Context, s store.Store, ttl time.Duration, stderr io.Writer, work func(ctx context.Context, s store.Store, runID string) error) (err error) {
	holder := lease.CurrentHolder()
	holder.Job = Job
	l, err := lease.Acquire(ctx, lease.InStore(s), Job, holder, ttl)
	if err != nil {
		return err
	}
	within, release := l.Keep(ctx, ledger.LogLeaseEvent(slog.New(slog.NewTextHandler(stderr, nil))))
	defer func() { err = errors.Join(err, release()) }()
	if err := ledger.CloseAbandoned(ctx, s, Job, time.Now()); err != nil {
		return err
	}
	if err := lane.WaitForLanes(within, s, Job, func(h lease.Holder) {
		_, _ = fmt.Fprintf(stderr, "waiting for a worker of an earlier run: %s\n", h) // only to say why it takes time
	}); err != nil {
		return err
	}
	return work(within, store.Guarded(s, lease.Allow(l)), ledger.NewRunID(time.Now()))
}
