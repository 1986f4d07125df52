package pipeline

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// replay opens the inputs of dead letters again, by taking away the marks that
// keep the next run from them. The letters stay until that run succeeds.
func replay(ctx context.Context, s store.Store, job, run string, ids []string, stdout io.Writer) error {
	opened := 0
	for d, err := range ledger.ListDeadLetters(ctx, s, job, run) {
		if err != nil {
			return err
		}
		if len(ids) > 0 && !slices.Contains(ids, d.ID()) {
			continue
		}
		for _, key := range []string{d.Input.Key, d.Input.File} {
			if key == "" {
				continue
			}
			if err := store.Retry(ctx, func() error { return s.Delete(ctx, key+hive.Success) }); err != nil {
				return fmt.Errorf("opening %s again: %w", key, err)
			}
		}
		opened++
	}
	if len(ids) > 0 && opened == 0 {
		return usagef("none of these dead letters is there; `dead-letters list` lists them")
	}
	_, err := fmt.Fprintf(stdout, "opened the inputs of %d dead letters; the next run of --job=%s does them again\n", opened, job)
	return err
}
