package pipeline

import (
	"slices"

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

func seedJob() job {
	own := []string{"force", "until", "follow-index", "max-child-sitemaps", "feeds", "homepage", "parallel-fetch", "robots-cache", "outage-threshold", "watch", "streaming"}
	return job{name: seed.Job, flags: slices.Concat(crawling, partitioned, own), counts: "domains_unique", unit: "domains", run: runSeed}
}
