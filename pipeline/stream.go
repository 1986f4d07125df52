package pipeline

import (
	"context"
	"io"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// SeedStream is the seed job as one unbounded graph: Seed's own stages behind
// a lister that looks again at that interval, until the control object stops it.
// hold is how long the lister may stay in one call.
func SeedStream(s beam.Scope, cfg seed.Config, every, hold time.Duration) {
	files, listed := seed.Stream(s, cfg, every, hold)
	read, mentions, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, mentions)
	completed := seed.Complete(s, cfg, read, visited, network)
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}

// flinkHold is long, for Beam's job servers before apache/beam#39191 keep a
// state for each time that a lister comes back. (They ask no lister to split.)
const flinkHold = 10 * time.Minute

// stream runs the unbounded graph until it is stopped.
func stream(ctx context.Context, s store.Store, o Options, cfg seed.Config, stdout, stderr io.Writer) error {
	hold := time.Duration(0)
	if o.viaJobServer() {
		hold = flinkHold
	}
	return runJob(ctx, s, o, seed.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		cfg.Lane = l
		cfg.Lane.Leases, cfg.Lane.Running = true, true
		SeedStream(scope, cfg, o.Watch, hold)
	})
}
