package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	filenames "path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/backup"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// fault is one kind of what is inconsistent in a store.
type fault struct {
	What     string   `json:"what"`
	Count    int      `json:"count"`
	Examples []string `json:"examples"`
	Mend     string   `json:"mend"`
}

// faults collects what is inconsistent, from several goroutines.
type faults struct {
	mu  sync.Mutex
	all []fault
}

func (f *faults) found(what, key, mend string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(x fault) bool { return x.What == what })
	if i < 0 {
		i = len(f.all)
		f.all = append(f.all, fault{What: what, Mend: mend})
	}
	if f.all[i].Count++; len(f.all[i].Examples) < 3 {
		f.all[i].Examples = append(f.all[i].Examples, key)
	}
}

// storeCheck makes the command that says what is inconsistent in a store.
func (p *program) storeCheck() *cobra.Command {
	var asJSON bool
	c := p.ofStore("check", "say what is inconsistent in the store and the database, and how to mend it; change nothing", jsonLines(&asJSON),
		func(ctx context.Context, s store.Store, _ []string) error {
			f := &faults{}
			if err := p.audit(ctx, s, f); err != nil {
				return err
			}
			if len(f.all) == 0 {
				if asJSON {
					return nil
				}
				_, err := fmt.Fprintln(p.stdout, "nothing is inconsistent")
				return err
			}
			n := 0
			for _, x := range f.all {
				n += x.Count
			}
			err := list(asJSON, p.stdout, seq(f.all), "COUNT\tWHAT\tSUCH AS\tMEND", func(x fault) []string {
				return []string{fmt.Sprint(x.Count), x.What, x.Examples[0], x.Mend}
			})
			return errors.Join(err, fmt.Errorf("%d things are inconsistent", n))
		}, "db")
	c.Long = "reads the store and the database as the jobs do, and says what does not fit together, such as a mark without its results.\n" +
		"It changes nothing. Exit code 1: something was found. What a run at work has not finished is no fault."
	return c
}

func (p *program) audit(ctx context.Context, s store.Store, f *faults) error {
	dsn, err := p.database()
	if err != nil {
		return err
	}
	var d *db.DB
	if _, missing := db.Missing(dsn); dsn != "" && !missing {
		if d, err = db.Open(ctx, dsn); err != nil {
			return fmt.Errorf("--db: %w", err)
		}
		defer func() { _ = d.Close() }() // it was only read
	}
	for _, j := range p.o.Jobs {
		if j.Audit != nil {
			err = errors.Join(err, j.Audit(ctx, s, d, f.found))
		}
	}
	left, terr := store.SweepTemp(ctx, store.DryRun(s), time.Now().Add(-time.Hour))
	for range left {
		f.found("temporary files of killed writers", ".store-tmp-…", "the next run removes them")
	}
	return errors.Join(err, terr, p.auditJSON(ctx, s, f), auditRuns(ctx, s, f))
}

// auditJSON looks for objects of the program that are no JSON. Raw files and results are the jobs'.
func (p *program) auditJSON(ctx context.Context, s store.Store, f *faults) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for o, err := range s.List(ctx, "") {
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		if o.Key == backup.RestoringKey {
			f.found("a restore that was cut off", o.Key, "give the same `restore` command again")
		}
		if filenames.Ext(o.Key) != ".json" || strings.HasPrefix(o.Key, "tables/") ||
			strings.HasPrefix(o.Key, p.o.Roots.Key(hive.Datasets)) || strings.HasPrefix(o.Key, p.o.Roots.Key(hive.Processing)) {
			continue
		}
		group.Go(func() error {
			b, err := store.ReadAll(within, s, o.Key, 64<<20)
			if errors.Is(err, store.ErrNotExist) {
				return nil // removed since the listing
			}
			if err == nil && !json.Valid(b) {
				f.found("objects that are no JSON", o.Key, "restore them from a backup, or remove them")
			}
			return err
		})
	}
	return group.Wait()
}

// auditRuns looks for runs whose process is gone.
func auditRuns(ctx context.Context, s store.Store, f *faults) error {
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return err
		}
		if err != nil {
			continue // what is no JSON is told already
		}
		switch r, err = ledger.Seen(ctx, s, r); {
		case errors.Is(err, store.ErrNotExist): // removed since the listing
		case err != nil:
			return err
		case r.State == ledger.Silent:
			f.found("runs whose process is gone", r.RunID, r.Job+": its next run marks them as interrupted, and resumes")
		}
	}
	return nil
}
