package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/io/backup"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// demoTable is a table of a database whose rows are those of --web=demo.
const demoTable = "seed_engine_demo"

// CheckStore refuses a run on a store that is not wholly restored, and one by which invented results and real ones would come into one
// store or one database. Nothing is changed.
func (o *Options) CheckStore(ctx context.Context, s store.Store) error {
	half, err := backup.Unfinished(ctx, s)
	if err == nil && half {
		err = usage.Errorf("--store=%s: a restore to it has not come to its end: give the same `restore` command again", o.Store)
	}
	if err != nil {
		return err
	}
	j := o.Target()
	if !j.Takes("web") || j.Offline != nil && j.Offline() {
		return nil
	}
	demo, err := ledger.IsDemo(ctx, s)
	if err != nil {
		return fmt.Errorf("looking for the mark of a demo: %w", err)
	}
	real := false
	if o.Web == "demo" && !demo {
		if real, err = o.realResults(ctx, s); err != nil {
			return fmt.Errorf("looking for results of real runs: %w", err)
		}
	}
	switch {
	case demo && o.Web != "demo":
		return usage.Errorf("--store=%s has the results of a demo (--web=demo), as its object demo says, and would have real ones among them: "+
			"use another store, or remove this one and its database; --web=demo works on it", o.Store)
	case real:
		return usage.Errorf("--web=demo: --store=%s has results of real runs, and would have invented ones among them: use an empty store; "+
			"if a demo of an earlier version wrote all of them, remove the store and its database", o.Store)
	case !j.SQL:
		return nil
	}
	if _, missing := db.Missing(o.DB); missing {
		return nil
	}
	opened := false
	err = o.withDB(ctx, func(base *db.DB) error {
		opened = true
		demo, err := base.HasTable(ctx, demoTable)
		if err == nil && o.Web == "demo" && !demo {
			real, err = o.realRows(ctx, base)
		}
		switch {
		case err != nil:
			return err
		case demo && o.Web != "demo":
			return usage.Errorf("--db=%s has the rows of a demo (--web=demo), as its table %s says: use another database",
				ledger.Redact(o.DB), demoTable)
		case real:
			return usage.Errorf("--web=demo: --db=%s has rows of real runs: use another database; "+
				"if a demo of an earlier version wrote all of them, remove it", ledger.Redact(o.DB))
		}
		return nil
	})
	if !opened && o.WorkersElsewhere { // their database need not be in the launcher's reach
		return nil
	}
	return err
}

// enterWeb is CheckStore, after which a demo marks the store and the database before anything is in them.
func (o *Options) enterWeb(ctx context.Context, s store.Store) error {
	if err := o.CheckStore(ctx, s); err != nil || o.Web != "demo" || !o.Target().Takes("web") {
		return err
	}
	if o.Target().SQL { // first: a wrong --db marks no store
		err := o.withDB(ctx, func(base *db.DB) error {
			_, err := base.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+demoTable+" (marked BIGINT)")
			return err
		})
		if err != nil {
			return err
		}
	}
	return ledger.MarkDemo(ctx, s)
}

// withDB calls do with the job's database.
func (o *Options) withDB(ctx context.Context, do func(*db.DB) error) error {
	base, err := db.Open(ctx, o.DB)
	if err != nil {
		return err
	}
	return errors.Join(do(base), base.Close())
}

// realResults reports whether a store that no demo has marked has results, or a run that may have left some.
func (o *Options) realResults(ctx context.Context, s store.Store) (bool, error) {
	for _, j := range o.Jobs {
		for _, prefix := range j.Keeps {
			for _, err := range s.List(ctx, prefix) {
				return err == nil, err
			}
		}
	}
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return false, err
		}
		if j, known := pipeline.Find(o.Jobs, r.Job); !known || j.Takes("web") {
			return true, nil
		}
	}
	return false, nil
}

// realRows is realResults of a database.
func (o *Options) realRows(ctx context.Context, base *db.DB) (bool, error) {
	for _, j := range o.Jobs {
		for _, table := range j.Tables {
			there, err := base.HasTable(ctx, table)
			if err != nil {
				return false, err
			}
			var rows int
			if there {
				err = base.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+table+" LIMIT 1) AS one").Scan(&rows)
			}
			if err != nil || rows > 0 {
				return rows > 0, err
			}
		}
	}
	return false, nil
}
