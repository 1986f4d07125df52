package seed

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

func init() { beam.RegisterDoFn(reflect.TypeFor[promoteFn]()) }

// Promoted waits for the end of a forced run, and makes the rows that it has staged those of the table. Any other run stages nothing.
//
// In: the tallies of Complete.
// Out: the same.
func Promoted(s beam.Scope, cfg Config, completed beam.PCollection) (tallies beam.PCollection) {
	if cfg.ForceID == "" || !cfg.Layout.Packs() {
		return completed
	}
	s = s.Scope("seed.Promoted")
	all := beam.Flatten(s, completed, beam.Create(s, ledger.Tally{})) // a run that was killed before its end may find all files done
	return beam.ParDo(s, &promoteFn{doFn{Config: cfg}}, beam.GroupByKey(s, beam.AddFixedKey(s, all)))
}

type promoteFn struct{ doFn }

func (fn *promoteFn) ProcessElement(ctx context.Context, _ int, completed func(*ledger.Tally) bool, emit func(ledger.Tally)) error {
	var sum, t ledger.Tally
	for completed(&t) {
		sum.Add(t)
		t = ledger.Tally{}
	}
	emit(sum)
	if sum.Counts[ledger.Outage] > 0 || fn.Worker.Stopped() { // the next try of the run promotes them
		return nil
	}
	if err := Promote(ctx, fn.Worker.Store, fn.Config.ForceID, fn.Config.Lane.RunID); err != nil {
		return fmt.Errorf("promoting what the forced run has staged: %w", err)
	}
	fn.Worker.Emit(emit, ledger.Tally{}) // its calls of the store
	return nil
}

// Promote makes the rows that a forced run has staged those of the table, in place of the rows of the same domains, by one commit.
// It may be killed anywhere, and called again.
func Promote(ctx context.Context, s store.Store, forceID, runID string) error {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil || tables[forceID] == nil {
		return err
	}
	staged, err := tables[forceID].Parts(ctx)
	if err != nil {
		return err
	}
	main, err := domaintable.Open(ctx, s, "")
	if err != nil {
		return err
	}
	log, there, err := main.Begin(ctx, "promote")
	if err != nil {
		return err
	}
	c, gone := domaintable.Change{Operation: "PROMOTE", RunID: runID}, Wanted{}
	for _, p := range staged {
		if !slices.ContainsFunc(there, func(o domaintable.Part) bool { return o.ID == p.ID }) { // else a call that was killed has done it
			c.Add = append(c.Add, p)
		}
	}
	err = namesOf(ctx, s, c.Add, func(_ domaintable.Part, done []domaintable.Done) {
		for _, d := range done {
			for _, name := range d.Names {
				gone.Add(d.Partition, name)
			}
		}
	})
	if err != nil {
		return err
	}
	if _, err := replace(ctx, s, log, c, gone); err != nil {
		return err
	}
	return domaintable.Forget(ctx, s, forceID)
}

// Rollback makes the table what it was before a run, by one commit, and returns the version of then. It refuses to take back what
// other runs have changed since. Raw files stay done. The caller must have the job's lease.
func Rollback(ctx context.Context, s store.Store, runID string) (version int64, err error) {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil {
		return 0, err
	}
	if tables[""] == nil {
		return 0, domaintable.ErrNoTable
	}
	return tables[""].Back(ctx, runID)
}
