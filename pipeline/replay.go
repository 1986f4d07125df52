package pipeline

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// replay opens the inputs of dead letters again. The letters stay until a run
// succeeds with them.
func replay(ctx context.Context, s store.Store, o Options, j job, run string, ids []string, stdout io.Writer) error {
	var letters []ledger.DeadLetter
	missing := slices.Clone(ids)
	for d, err := range ledger.ListDeadLetters(ctx, s, j.name, run) {
		if err != nil {
			return err
		}
		if len(ids) == 0 || slices.Contains(ids, d.ID()) {
			letters = append(letters, d)
			missing = slices.DeleteFunc(missing, func(id string) bool { return id == d.ID() })
		}
	}
	if len(missing) > 0 {
		return usagef("there is no dead letter %s of job %s; `dead-letters list` lists them", strings.Join(missing, ", "), j.name)
	}
	reopen := j.reopen
	if reopen == nil {
		reopen = unmark
	}
	if err := reopen(ctx, o, s, letters); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "opened the inputs of %d dead letters; the next run of --job=%s does them again\n", len(letters), j.name)
	return err
}

// unmark takes away the .success of what the letters are about.
func unmark(ctx context.Context, _ Options, s store.Store, letters []ledger.DeadLetter) error {
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
