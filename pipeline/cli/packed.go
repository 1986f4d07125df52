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
)

const packedUsage = `pipeline materialize              writes the objects of --layout=objects from packed results;
                                  a call that was cut off is resumed by the next one
pipeline compact                  merges small segments of packed results
                                  (see docs/packed.md; neither while a seed run works)
`

// packedCommands work on the packed results of the seed job.
var packedCommands = map[string]func(ctx context.Context, s store.Store, id string) (said string, err error){
	"materialize": func(ctx context.Context, s store.Store, _ string) (string, error) {
		m, err := seed.Materialize(ctx, s)
		return fmt.Sprintf("read %d segments: wrote the objects of %d domains, %d had theirs", m.Segments, m.Written, m.There), err
	},
	"compact": func(ctx context.Context, s store.Store, id string) (string, error) {
		c, err := seed.Compact(ctx, s, id)
		return fmt.Sprintf("replaced %d segments by %d, and dropped %d rows of domains that were visited again", c.Replaced, c.By, c.Dropped), err
	},
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
	if len(w) > 0 {
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
	said, err := packedCommands[verb](within, store.Guarded(s, lease.Allow(l)), ledger.NewRunID(time.Now()))
	if err != nil {
		return fmt.Errorf("%s (before it failed: %s): %w", verb, said, err)
	}
	_, err = fmt.Fprintln(stdout, said)
	return err
}
