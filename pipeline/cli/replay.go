package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// replay lets the next runs try the inputs of the jobs' dead letters again. The
// dead letters stay until a run succeeds with their inputs.
func replay(ctx context.Context, s store.Store, o Options, of []pipeline.Job, run string, ids []string, stdout io.Writer) error {
	letters, err := toReplay(ctx, s, o, of, run, ids)
	if err != nil {
		return err
	}
	by := map[string][]ledger.DeadLetter{}
	for _, d := range letters {
		by[d.Job] = append(by[d.Job], d)
	}
	of = slices.DeleteFunc(slices.Clone(of), func(j pipeline.Job) bool { return by[j.Name] == nil })
	options := make([]Options, len(of))
	for i, j := range of { // all are checked before the first is opened
		options[i] = o
		options[i].Job = j.Name
		if j.Reopen != nil {
			if err := options[i].placeDB(); err != nil {
				return err
			}
		}
	}
	if len(of) == 0 {
		_, err := fmt.Fprintln(stdout, "opened the inputs of 0 dead letters: there are none")
		return err
	}
	for i, j := range of {
		reopen := j.Reopen
		if reopen == nil {
			reopen = unmark
		}
		if err := errors.Join(ledger.ForgetDeaths(ctx, s, by[j.Name]), reopen(ctx, options[i].RunOptions, s, by[j.Name])); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "opened the inputs of %d dead letters; the next run of --job=%s does them again\n", len(by[j.Name]), j.Name); err != nil {
			return err
		}
	}
	return nil
}

// toReplay are the open dead letters of a run, or of all runs when it is empty: all, or those that have the ids.
func toReplay(ctx context.Context, s store.Store, o Options, of []pipeline.Job, run string, ids []string) (letters []ledger.DeadLetter, err error) {
	if len(ids) > 0 {
		letters, err = namedLetters(ctx, s, o, of, ids)
		for _, d := range letters {
			switch {
			case run != "" && !d.FailedIn(run):
				return nil, noDeadLetter(o, d.ID()+" of run "+run)
			case !d.Open():
				return nil, usage.Errorf("dead letter %s was dismissed by %s (%s); `errors reopen %s` takes that back", d.ID(), d.Dismissed.By, d.Dismissed.Note, d.ID())
			}
		}
		return letters, err
	}
	for _, j := range of {
		for d, err := range ledger.AllDeadLetters(ctx, s, ledger.DeadLetterQuery{Job: j.Name, RunID: run, State: ledger.OpenLetters}) {
			if err != nil {
				return nil, err
			}
			letters = append(letters, d)
		}
	}
	return letters, nil
}

// deletes are made at the same time.
const deletes = 16

// unmark removes the .success of the dead letters' inputs.
func unmark(ctx context.Context, _ pipeline.RunOptions, s store.Store, letters []ledger.DeadLetter) error {
	keys := map[string]bool{}
	for _, d := range letters {
		keys[d.Input.Key], keys[d.Input.File] = true, true
	}
	delete(keys, "")
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(deletes)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		g.Go(func() error {
			if err := store.Remove(ctx, s, key+hive.Success); err != nil {
				return fmt.Errorf("opening %s again: %w", key, err)
			}
			return nil
		})
	}
	return g.Wait()
}
