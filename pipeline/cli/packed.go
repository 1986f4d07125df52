package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// packedWork works on the results of the seed job, and says what it did.
type packedWork func(ctx context.Context, s store.Store, id string) (said string, err error)

func materialize(ctx context.Context, s store.Store, _ string) (string, error) {
	m, err := seed.Materialize(ctx, s)
	return fmt.Sprintf("read %d segments: wrote the objects of %d domains, %d had theirs", m.Segments, m.Written, m.There), err
}

func compact(ctx context.Context, s store.Store, id string) (string, error) {
	c, err := seed.Compact(ctx, s, id)
	return fmt.Sprintf("replaced %d segments by %d, and dropped %d rows of domains that were visited again", c.Replaced, c.By, c.Dropped), err
}

// packed makes the commands that work on the whole store.
func (p *program) packed() *cobra.Command {
	return family("store", "rewrite what the seed job keeps: materialize, compact",
		p.aloneCommand("materialize", "write the objects of --layout=objects from packed results; a call that was cut off is resumed by the next one", nil,
			func([]string) (packedWork, error) { return materialize, nil }),
		p.aloneCommand("compact", "merge small segments of packed results", nil, func([]string) (packedWork, error) { return compact, nil }))
}

// rm makes the commands that remove results.
func (p *program) rm() *cobra.Command {
	removed := func() string {
		if p.dry {
			return "would remove"
		}
		return "removed"
	}
	dry := func(s *option.Set) { s.Yes(&p.dry, "dry-run", false, "say what would be removed, and remove nothing") }
	return family("rm", "remove what the jobs keep: of domains, of old visits", p.aloneCommand("domain NAME…", "remove all results of these registrable domains, packed or as objects", dry, func(w []string) (packedWork, error) {
		domains, err := purgedDomains(w)
		return func(ctx context.Context, s store.Store, id string) (string, error) {
			n, err := seed.Purge(ctx, s, id, domains)
			return fmt.Sprintf("%s %d packed results and %d objects of %d domains", removed(), n.Rows, n.Objects, len(domains)), err
		}, err
	}), p.aloneCommand("older-than AGE", "remove the results of visits before that, such as 90d; raw files that are done stay so", dry, func(w []string) (packedWork, error) {
		age, err := days(w[0])
		if err != nil {
			return nil, usage.Errorf("rm older-than %s: write a number of days, such as 90d, or hours, such as 36h", w[0])
		}
		before := time.Now().Add(-age)
		return func(ctx context.Context, s store.Store, id string) (string, error) {
			n, err := seed.PurgeOlder(ctx, s, id, before)
			return fmt.Sprintf("%s %d packed results and %d objects from before %s", removed(), n.Rows, n.Objects, before.UTC().Format(time.RFC3339)), err
		}, nil
	}))
}

// purgedDomains checks the domains that are to be purged: one that is misspelt, or that is
// no registrable domain, would remove nothing.
func purgedDomains(words []string) (names []string, err error) {
	for _, word := range words {
		name, err := seed.Registrable(word)
		if err != nil {
			return nil, usage.Errorf("rm domain: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// aloneCommand makes a command that works under the seed job's lease: no run may write meanwhile. What was cut off is finished by the
// next call. A dry run changes nothing, and needs no lease.
func (p *program) aloneCommand(use, short string, own func(*option.Set), what func(w []string) (packedWork, error)) *cobra.Command {
	var work packedWork
	c := p.ofStore(use, short, own, func(ctx context.Context, s store.Store, _ []string) (err error) {
		var said string
		if p.dry {
			said, err = work(ctx, store.DryRun(s), "dry-run")
		} else {
			err = seed.Alone(ctx, s, p.o.LeaseTTL, p.stderr, func(ctx context.Context, s store.Store, id string) error {
				said, err = work(ctx, s, id)
				return err
			})
		}
		if err != nil {
			if said != "" {
				err = fmt.Errorf("%s (before it failed: %s): %w", use, said, err)
			}
			return err
		}
		_, err = fmt.Fprintln(p.stdout, said)
		return err
	})
	counted := c.Args
	c.Args = func(c *cobra.Command, w []string) (err error) { // before the store is opened
		if err := counted(c, w); err != nil {
			return err
		}
		work, err = what(w)
		return err
	}
	return c
}
