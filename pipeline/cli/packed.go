package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
)

const packedUsage = `pipeline materialize              writes the objects of --layout=objects from packed results;
                                  a call that was cut off is resumed by the next one
pipeline compact                  merges small segments of packed results
pipeline purge DOMAIN...          removes all results of these registrable domains, packed or as objects;
                                  a call that was cut off is finished by the next one
                                  (see docs/packed.md; none of them while a seed run works)
`

// packedCommands work on the results of the seed job. domains is empty but for purge.
var packedCommands = map[string]func(ctx context.Context, s store.Store, id string, domains []string) (said string, err error){
	"materialize": func(ctx context.Context, s store.Store, _ string, _ []string) (string, error) {
		m, err := seed.Materialize(ctx, s)
		return fmt.Sprintf("read %d segments: wrote the objects of %d domains, %d had theirs", m.Segments, m.Written, m.There), err
	},
	"compact": func(ctx context.Context, s store.Store, id string, _ []string) (string, error) {
		c, err := seed.Compact(ctx, s, id)
		return fmt.Sprintf("replaced %d segments by %d, and dropped %d rows of domains that were visited again", c.Replaced, c.By, c.Dropped), err
	},
	"purge": func(ctx context.Context, s store.Store, id string, domains []string) (string, error) {
		p, err := seed.Purge(ctx, s, id, domains)
		return fmt.Sprintf("removed %d packed results and %d objects of %d domains", p.Rows, p.Objects, len(domains)), err
	},
}

// purgedDomains checks the domains that are to be purged: one that is misspelt, or that is
// no registrable domain, would remove nothing.
func purgedDomains(words []string) (names []string, err error) {
	if len(words) == 0 {
		return nil, usage.Errorf("purge needs registrable domains, such as `purge moh.gov.sg`; see `help purge`")
	}
	for _, word := range words {
		name, err := domain.Registrable(word)
		if err != nil {
			return nil, usage.Errorf("purge: %q is no domain: %v", word, err)
		}
		if name != word {
			return nil, usage.Errorf("purge: results are kept for registrable domains; write %s instead of %s", name, word)
		}
		names = append(names, name)
	}
	return names, nil
}

// packedCommand does one of packedCommands under the seed job's lease: no run may write
// segments meanwhile.
func packedCommand(ctx context.Context, verb string, args []string, stdout, stderr io.Writer) (err error) {
	o, w, err := controlOptions(flag.NewFlagSet(verb, flag.ContinueOnError), args)
	if errors.Is(err, flag.ErrHelp) {
		return help([]string{verb}, stdout)
	}
	if err != nil {
		return err
	}
	var domains []string
	if verb == "purge" {
		if domains, err = purgedDomains(w); err != nil {
			return err
		}
	} else if len(w) > 0 {
		return usage.Errorf("%s takes nothing but flags, not %q; see `help %s`", verb, w[0], verb)
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	holder := lease.CurrentHolder()
	holder.Job = seed.Job
	l, err := lease.Acquire(ctx, lease.InStore(s), seed.Job, holder, o.LeaseTTL)
	if err != nil {
		return err
	}
	within, release := l.Keep(ctx, ledger.LogLeaseEvent(slog.New(slog.NewTextHandler(stderr, nil))))
	defer func() { err = errors.Join(err, release()) }()
	if err := ledger.CloseAbandoned(ctx, s, seed.Job, time.Now()); err != nil {
		return err
	}
	if err := lane.WaitForLanes(within, s, seed.Job, func(h lease.Holder) {
		_, _ = fmt.Fprintf(stderr, "waiting for a worker of an earlier run: %s\n", h) // only to say why it takes time
	}); err != nil {
		return err
	}
	said, err := packedCommands[verb](within, store.Guarded(s, lease.Allow(l)), ledger.NewRunID(time.Now()), domains)
	if err != nil {
		return fmt.Errorf("%s (before it failed: %s): %w", verb, said, err)
	}
	_, err = fmt.Fprintln(stdout, said)
	return err
}
