package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Removal says what is kept of a registrable domain, in both layouts.
func Removal() removal.What {
	return removal.What{Job: Job, Kind: "domain", Read: registrable, Objects: func(ctx context.Context, src removal.Source) iter.Seq2[store.Object, error] {
		return objectsOf(ctx, src.Store, []string{src.Name})
	},
		Parts: []removal.Part{{Name: "table", Count: countRows, Remove: func(ctx context.Context, src removal.Source) error {
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

// countRows counts the rows of a domain in the table, and those that are staged.
func countRows(ctx context.Context, src removal.Source) (n int64, err error) {
	tables, err := domaintable.Tables(ctx, src.Store)
	if err != nil {
		return 0, err
	}
	for _, t := range tables {
		parts, err := t.Parts(ctx)
		if err != nil {
			return 0, err
		}
		err = namesOf(ctx, src.Store, parts, func(_ domaintable.Part, done []domaintable.Done) {
			for _, d := range done {
				if slices.Contains(d.Names, src.Name) {
					n++
				}
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
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

// Purged says what Purge removed.
type Purged struct {
	Rows    int64 // of the table
	Objects int64 // of the objects' layout
}

// Purge removes all results of domains, in both layouts: their metadata, evidence and marks, and the states of their sites. A part
// that has one of them is written again without it, one commit replaces all such parts, and then the objects of earlier versions
// are removed. So a call that was killed anywhere loses nothing of other domains, and the next call finishes it. The caller must
// have the job's lease.
func Purge(ctx context.Context, s store.Store, runID string, domains []string) (done Purged, err error) {
	if done.Objects, err = purgeObjects(ctx, s, domains); err != nil {
		return done, err
	}
	for _, name := range domains {
		if err := ledger.RemoveSite(ctx, s, Job, name); err != nil {
			return done, err
		}
	}
	done.Rows, err = purgeRows(ctx, s, func(log *domaintable.Writer, parts []domaintable.Part) (rewriting, error) {
		gone := Wanted{}
		for _, p := range parts {
			for _, in := range p.In {
				for _, name := range domains {
					gone.Add(in, name)
				}
			}
		}
		return replace(ctx, s, log, domaintable.Change{Operation: "DELETE", RunID: runID}, gone)
	})
	return done, err
}

// purgeRows calls purge for the table and for what is staged, and then removes what they name no more.
func purgeRows(ctx context.Context, s store.Store,
	purge func(*domaintable.Writer, []domaintable.Part) (rewriting, error)) (rows int64, err error) {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil {
		return 0, err
	}
	var left unread
	of := 0
	for _, t := range tables {
		log, parts, err := t.Begin(ctx, "purge")
		if err != nil {
			return rows, err
		}
		re, err := purge(log, parts)
		if err != nil {
			return rows, err
		}
		rows, left, of = rows+re.rows, append(left, re.unread...), of+len(parts)
	}
	if err := sweep(ctx, s, tables, 0); err != nil {
		return rows, err
	}
	return rows, left.err(of)
}

// PurgeOlder removes the results of visits before a time. A part whose visits all were before it is removed without being read, so
// that one that is damaged does not stay; one that has others, too, is written again without the older ones. Of the objects' layout
// the newest object of a domain says how old all of them are. Like Purge it may be killed anywhere, and needs the job's lease.
func PurgeOlder(ctx context.Context, s store.Store, runID string, before time.Time) (done Purged, err error) {
	if done.Objects, err = purgeOldObjects(ctx, s, before); err != nil {
		return done, err
	}
	done.Rows, err = purgeRows(ctx, s, func(log *domaintable.Writer, parts []domaintable.Part) (re rewriting, err error) {
		for _, p := range parts {
			switch {
			case p.Newest.Before(before):
				re.remove, re.rows = append(re.remove, p), re.rows+p.Count
			case p.Oldest.Before(before):
				if err := re.part(ctx, s, p, func(r table.Row) bool { return !r.CollectedAt.Before(before) }); err != nil {
					return re, err
				}
			}
		}
		if len(re.remove) == 0 {
			return re, nil
		}
		return re, log.Commit(ctx, domaintable.Change{Operation: "DELETE", RunID: runID, Add: re.add, Remove: re.remove})
	})
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
	return auditTable(ctx, s, !atWork, found)
}

// auditTable looks for parts that are damaged or, if no run is at work, named by nothing.
func auditTable(ctx context.Context, s store.Store, idle bool, found func(what, key, mend string)) error {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil {
		return err
	}
	for _, t := range tables {
		parts, err := t.Parts(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			faulty, err := p.Check(ctx, s)
			if err != nil {
				return err
			}
			for _, key := range faulty {
				found(FileDamaged, key, "restore them from a backup; or `rm older-than` removes the part, and seed --force visits its domains again")
			}
		}
	}
	for key, err := range left(ctx, s, tables, delta.Retention) {
		if err != nil {
			return err
		}
		if idle {
			found(FileLeft, key, "store compact: it removes them")
		}
	}
	return nil
}

// What Audit finds in the table.
const (
	FileDamaged = "files of the table that are missing or of another size"
	FileLeft    = "files that no version of the table names"
)

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
