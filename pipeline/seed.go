package pipeline

import (
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// Seed is the seed job's graph: raw research files become domain metadata.
func Seed(s beam.Scope, cfg seed.Config) {
	files, listed := seed.List(s, cfg)
	read, mentions, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, mentions)
	completed := seed.Complete(s, cfg, read, visited, network)
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}
