package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline"
)

// replay lets the next runs try the inputs of the jobs' dead letters again. The
// dead letters stay until a run succeeds with their inputs.
func replay(ctx context.Context, s store.Store, o Options, of []pipeline.Job, run string, ids []string, stdout io.Writer) error {
	letters := make([][]ledger.DeadLetter, len(of))
	options := make([]Options, len(of))
	missing := slices.Clone(ids)
	for i, j := range of {
		for d, err := range ledger.ListDeadLetters(ctx, s, j.Name, run) {
			if err != nil {
				return err
			}
			if len(ids) == 0 || slices.Contains(ids, d.ID()) {
				letters[i] = append(letters[i], d)
				missing = slices.DeleteFunc(missing, func(id string) bool { return id == d.ID() })
			}
		}
		options[i] = o
		options[i].Job = j.Name
		if len(letters[i]) > 0 && j.Reopen != nil {
			if err := options[i].placeDB(); err != nil {
				return err
			}
		}
	}
	if len(missing) > 0 {
		return noDeadLetter(o, strings.Join(missing, ", "))
	}
	if !slices.ContainsFunc(letters, func(l []ledger.DeadLetter) bool { return len(l) > 0 }) {
		_, err := fmt.Fprintln(stdout, "opened the inputs of 0 dead letters: there are none")
		return err
	}
	for i, j := range of {
		n := len(letters[i])
		if n == 0 {
			continue
		}
		reopen := j.Reopen
		if reopen == nil {
			reopen = unmark
		}
		if err := reopen(ctx, options[i].Common, s, letters[i]); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "opened the inputs of %d dead letters; the next run of --job=%s does them again\n", n, j.Name); err != nil {
			return err
		}
	}
	return nil
}

// unmark removes the .success of the dead letters' inputs.
func unmark(ctx context.Context, _ pipeline.Common, s store.Store, letters []ledger.DeadLetter) error {
	for _, d := range letters {
		for _, key := range []string{d.Input.Key, d.Input.File} {
			if key == "" {
				continue
			}
			if err := store.Retry(ctx, func() error { return s.Delete(ctx, key+hive.Success) }); err != nil {
				return fmt.Errorf("opening %s again: %w", key, err)
			}
		}
	}
	return nil
}
