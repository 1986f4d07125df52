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
func SeedStream(s beam.Scope, cfg seed.Config, every time.Duration) {
	files, listed := seed.Stream(s, cfg, every)
	read, mentions, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, mentions)
	completed := seed.Complete(s, cfg, read, visited, network)
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}

// stream runs the unbounded graph until it is stopped.
func stream(ctx context.Context, s store.Store, o Options, cfg seed.Config, stdout, stderr io.Writer) error {
	return runJob(ctx, s, o, seed.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		cfg.Lane = l
		cfg.Lane.Leases, cfg.Lane.Running = true, true
		SeedStream(scope, cfg, o.Watch)
	})
}
