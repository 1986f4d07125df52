package seed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

func init() { beam.RegisterDoFn(reflect.TypeFor[promoteFn]()) }

// Promoted waits for the end of a forced run, and makes the rows that it has staged those of the table. What a forced run of a sample
// has staged waits for a person, who calls Promote or Rollback. Any other run stages nothing.
//
// In: the tallies of Complete.
// Out: the same.
func Promoted(s beam.Scope, cfg Config, completed beam.PCollection) (tallies beam.PCollection) {
	if cfg.ForceID == "" || !cfg.Layout.Packs() || cfg.Sample > 0 {
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
	if _, _, err := Promote(ctx, fn.Worker.Store, fn.Config.ForceID, fn.Config.Lane.RunID); err != nil {
		return fmt.Errorf("promoting what the forced run has staged: %w", err)
	}
	fn.Worker.Emit(emit, ledger.Tally{}) // its calls of the store
	return nil
}

// Promote makes the rows that a forced run has staged those of the table, in place of the rows of the same domains, by one commit.
// It returns how many rows are staged, and how many they replace. It may be killed anywhere, and called again.
func Promote(ctx context.Context, s store.Store, forceID, runID string) (rows, replaced int64, err error) {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil || forceID == "" || tables[forceID] == nil {
		return 0, 0, err
	}
	staged, err := tables[forceID].Parts(ctx)
	if err != nil {
		return 0, 0, err
	}
	main, err := domaintable.Open(ctx, s, "", nil)
	if err != nil {
		return 0, 0, err
	}
	log, there, err := main.Begin(ctx, "promote")
	if err != nil {
		return 0, 0, err
	}
	c, gone := domaintable.Change{Operation: "PROMOTE", RunID: runID}, Wanted{}
	for _, p := range staged {
		rows += p.Count
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
		return 0, 0, err
	}
	if err := noneNewer(ctx, s, there, staged, gone); err != nil {
		return 0, 0, err
	}
	re, err := replace(ctx, s, log, c, gone)
	if err != nil {
		return 0, 0, err
	}
	return rows, re.rows, domaintable.Forget(ctx, s, forceID)
}

// noneNewer refuses to replace rows of visits that were later than all that is staged.
func noneNewer(ctx context.Context, s store.Store, there, staged []domaintable.Part, gone Wanted) error {
	var last time.Time
	for _, p := range staged {
		if p.Newest.After(last) {
			last = p.Newest
		}
	}
	for _, p := range there {
		if len(gone) == 0 || !p.Newest.After(last) {
			continue
		}
		rows, err := p.ReadRows(ctx, s)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.CollectedAt.After(last) && gone.has(r.Partition(), r.RegistrableDomain) {
				return explore.Refuse("what is staged was visited up to %s, and the table has %s of %s: "+
					"`runs rollback` of the run that staged it drops it", last.Format(time.RFC3339), r.RegistrableDomain, r.CollectedAt.UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

// PromoteRun makes the rows that a run has staged those of the table, as Promote does, and returns what it did. The error is an
// explore.RefusedError if the run has staged none. The caller must have the job's lease.
func PromoteRun(ctx context.Context, s store.Store, runID string) (did string, err error) {
	id, err := forceOf(ctx, s, runID)
	if err != nil {
		return "", err
	}
	rows, replaced, err := Promote(ctx, s, id, runID)
	if err != nil {
		return "", err
	}
	if rows == 0 {
		return "", explore.Refuse("run %s has staged nothing: only --layout=table with --force does, and without --sample it promotes its rows itself "+
			"when it comes to its end", runID)
	}
	return fmt.Sprintf("%d rows of run %s are in the table, in place of %d", rows, runID, replaced), nil
}

// forceOf returns the id of the forced run of which a run was a part, "" for none.
func forceOf(ctx context.Context, s store.Store, runID string) (string, error) {
	r, err := ledger.Load(ctx, s, runID)
	if errors.Is(err, store.ErrNotExist) { // its record was removed, or it is none of a job, such as a compaction
		return "", nil
	}
	return r.ForceID, err
}

// Rollback drops what a run has staged, or makes the table what it was before the run, by one commit, and returns what it did. It refuses
// to take back what other runs have changed since. Raw files stay done. The caller must have the job's lease.
func Rollback(ctx context.Context, s store.Store, runID string) (did string, err error) {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil {
		return "", err
	}
	id, err := forceOf(ctx, s, runID)
	if err != nil {
		return "", err
	}
	if id != "" && tables[id] != nil {
		if err := ledger.ClearForce(ctx, s, Job, id); err != nil { // else the same command would resume what is dropped
			return "", err
		}
		if err := domaintable.Forget(ctx, s, id); err != nil {
			return "", err
		}
		return "what run " + runID + " has staged is dropped; the table is as it was", nil
	}
	if tables[""] == nil {
		return "", domaintable.ErrNoTable
	}
	version, err := tables[""].Back(ctx, runID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the table is as it was before run %s: version %d", runID, version), nil
}
