package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/seed"
)

const packedUsage = `pipeline materialize              writes the objects of --layout=objects from packed results;
                                  a call that was cut off is resumed by the next one
pipeline compact                  merges small segments of packed results
pipeline purge DOMAIN... [--dry-run]
                                  removes all results of these registrable domains, packed or as objects
pipeline purge --older-than=90d [--dry-run]
                                  removes the results of visits before that, packed or as objects; raw
                                  files that are done stay so
                                  (a purge that was cut off is finished by the next one; --dry-run says
                                  what it would remove; see docs/packed.md; none of these commands
                                  works while a seed run does)
`

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

// purge is what purge does with domains, or with --older-than.
func purge(words []string, older string, dry bool) (packedWork, error) {
	removed := "removed"
	if dry {
		removed = "would remove"
	}
	if older == "" {
		domains, err := purgedDomains(words)
		return func(ctx context.Context, s store.Store, id string) (string, error) {
			p, err := seed.Purge(ctx, s, id, domains)
			return fmt.Sprintf("%s %d packed results and %d objects of %d domains", removed, p.Rows, p.Objects, len(domains)), err
		}, err
	}
	if len(words) > 0 {
		return nil, usage.Errorf("purge takes domains, or --older-than=90d, not both; see `help purge`")
	}
	age, err := days(older)
	if err != nil {
		return nil, usage.Errorf("--older-than=%s: write a number of days, such as 90d, or hours, such as 36h", older)
	}
	before := time.Now().Add(-age)
	return func(ctx context.Context, s store.Store, id string) (string, error) {
		p, err := seed.PurgeOlder(ctx, s, id, before)
		return fmt.Sprintf("%s %d packed results and %d objects from before %s", removed, p.Rows, p.Objects, before.UTC().Format(time.RFC3339)), err
	}, nil
}

// purgedDomains checks the domains that are to be purged: one that is misspelt, or that is
// no registrable domain, would remove nothing.
func purgedDomains(words []string) (names []string, err error) {
	if len(words) == 0 {
		return nil, usage.Errorf("purge needs registrable domains, such as `purge moh.gov.sg`, or --older-than=90d; see `help purge`")
	}
	for _, word := range words {
		name, err := seed.Registrable(word)
		if err != nil {
			return nil, usage.Errorf("purge: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// packedCommand works on packed results under the seed job's lease: no run may write
// segments meanwhile. A dry run changes nothing, and needs no lease.
func packedCommand(ctx context.Context, verb string, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	var older string
	var dry bool
	if verb == "purge" {
		f.StringVar(&older, "older-than", "", "")
		f.BoolVar(&dry, "dry-run", false, "")
	}
	o, w, err := controlOptions(f, args)
	if err != nil {
		return err
	}
	work := materialize
	switch {
	case verb == "purge":
		if work, err = purge(w, older, dry); err != nil {
			return err
		}
	case len(w) > 0:
		return usage.Errorf("%s takes nothing but flags, not %q; see `help %s`", verb, w[0], verb)
	case verb == "compact":
		work = compact
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var said string
	if dry {
		said, err = work(ctx, store.DryRun(s), "dry-run")
	} else {
		err = seed.Alone(ctx, s, o.LeaseTTL, stderr, func(ctx context.Context, s store.Store, id string) error {
			said, err = work(ctx, s, id)
			return err
		})
	}
	if err != nil {
		if said != "" {
			err = fmt.Errorf("%s (before it failed: %s): %w", verb, said, err)
		}
		return err
	}
	_, err = fmt.Fprintln(stdout, said)
	return err
}
