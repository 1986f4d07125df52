package pipeline

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// commands are those that rewrite the results of the whole store.
func (o *seedOptions) commands() []Command {
	dry := false
	return []Command{
		{Under: "store", Stored: true, Use: "materialize",
			Short: "write the objects of --layout=objects from the table; a call that was cut off is resumed by the next one",
			Do: alone(&dry, func(ctx context.Context, s store.Store, _ string, _ []string) (string, error) {
				m, err := seed.Materialize(ctx, s)
				return fmt.Sprintf("read %d parts: wrote the objects of %d domains, %d had theirs", m.Parts, m.Written, m.There), err
			})},
		{Under: "store", Stored: true, Use: "compact", Short: "merge small parts of the table",
			Do: alone(&dry, func(ctx context.Context, s store.Store, id string, _ []string) (string, error) {
				c, err := seed.Compact(ctx, s, id)
				return fmt.Sprintf("replaced %d parts by %d", c.Replaced, c.By), err
			})},
		{Under: "runs", Stored: true, Use: "promote RUN",
			Short: "put what a forced run of a sample has staged into the table",
			Do: alone(&dry, func(ctx context.Context, s store.Store, _ string, w []string) (string, error) {
				return seed.PromoteRun(ctx, s, w[0])
			})},
		{Under: "runs", Stored: true, Use: "rollback RUN",
			Short: "drop what a run of the seed job has staged, or take back what the newest one changed in the table",
			Do: alone(&dry, func(ctx context.Context, s store.Store, _ string, w []string) (string, error) {
				return seed.Rollback(ctx, s, w[0])
			})},
		{Under: "rm", Stored: true, Use: "older-than AGE", Short: "remove the results of visits before that, such as 90d; raw files that are done stay so",
			Options: func(s *option.Set) { s.Yes(&dry, "dry-run", false, "say what would be removed, and remove nothing") },
			Do: alone(&dry, func(ctx context.Context, s store.Store, id string, w []string) (string, error) {
				age, err := usage.Age(w[0])
				if err != nil {
					return "", usage.Errorf("rm older-than %s: %w", w[0], err)
				}
				before := time.Now().Add(-age)
				n, err := seed.PurgeOlder(ctx, s, id, before)
				did := "removed"
				if dry {
					did = "would remove"
				}
				return fmt.Sprintf("%s %d rows of the table and %d objects from before %s",
					did, n.Rows, n.Objects, before.UTC().Format(time.RFC3339)), err
			})},
	}
}

// alone makes a command that works under the seed job's lease: no run may write meanwhile. What was cut off is finished by the next call.
// A dry run changes nothing, and needs no lease. work returns what it did.
func alone(dry *bool, work func(ctx context.Context, s store.Store, id string, w []string) (string, error)) func(context.Context, *RunOptions, store.Store, []string, io.Writer, io.Writer) error {
	return func(ctx context.Context, c *RunOptions, s store.Store, w []string, stdout, stderr io.Writer) (err error) {
		var said string
		if *dry {
			said, err = work(ctx, store.DryRun(s), "dry-run", w)
		} else {
			err = seed.Alone(ctx, s, c.LeaseTTL, stderr, func(ctx context.Context, s store.Store, id string) error {
				said, err = work(ctx, s, id, w)
				return err
			})
		}
		if err != nil && said != "" {
			return fmt.Errorf("%w (before it failed: %s)", err, said)
		}
		if err == nil {
			_, err = fmt.Fprintln(stdout, said)
		}
		return err
	}
}
