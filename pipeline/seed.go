package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
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

// runSeed runs the seed job from its checks to its report.
func runSeed(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	cfg := seedConfig(o)
	if err := matches(ctx, s, o); err != nil {
		return err
	}
	if o.Until != "" {
		return preview(ctx, s, o, cfg, stdout)
	}
	if o.Watch > 0 && o.Streaming {
		return stream(ctx, s, o, cfg, stdout, stderr)
	}
	if o.Watch > 0 && !o.beamDryRun() { // each batch is a job of the same form
		return watch(ctx, s, o, cfg, stdout, stderr)
	}
	return runJob(ctx, s, o, seed.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, forceID string) {
		cfg.Lane, cfg.ForceID = l, forceID
		Seed(scope, cfg)
	})
}

func seedConfig(o Options) seed.Config {
	return seed.Config{
		Lanes: o.Lanes, Country: o.Country, Category: o.Category, Date: o.Date, OutageThreshold: o.OutageThreshold,
		Lane: lane.Config{LogFormat: o.LogFormat, LogLevel: o.level()},
		Collect: seed.Collect{MaxCrawlDelay: o.MaxCrawlDelay, FollowIndex: o.FollowIndex, MaxChildSitemaps: o.MaxChildSitemaps,
			Feeds: o.Feeds, Homepage: o.Homepage, ParallelFetch: o.Parallel, RobotsCache: o.RobotsCache},
	}
}

// filterHash names the part of the bucket that a run is about, so that a
// forced run that was killed is gone on with by the same command only.
func filterHash(o Options) string {
	sum := sha256.Sum256([]byte(o.Country + "\x00" + o.Category + "\x00" + o.Date))
	return hex.EncodeToString(sum[:8])
}

// matches refuses a store without a raw file, and filters under which it holds
// none: nothing would be done. A watch may wait for the first one.
func matches(ctx context.Context, s store.Store, o Options) error {
	memory := strings.HasPrefix(o.Store, "mem://")
	if o.beamDryRun() || o.Watch > 0 && !o.filtered() && !memory {
		return nil
	}
	for ob, err := range s.List(ctx, hive.Prefix("datasets/", o.Country, o.Category, o.Date)) {
		if err != nil {
			return fmt.Errorf("listing the store: %w", err)
		}
		if r, ok := hive.ParseRaw(ob.Key); ok && o.wants(r.Partition) {
			return nil
		}
	}
	switch {
	case memory:
		return usagef("--store=%s has no such raw file: a memory store is empty when the program starts; use a directory or a bucket", o.Store)
	case o.filtered():
		return o.noMatch()
	}
	return usagef("--store=%s holds no raw file (datasets/country=CC/category=NAME/date=YYYY-MM-DD/raw_NNNN.json), so there is nothing to do: is it the right store, and is it mounted?", o.Store)
}

// preview prints what a run would do and touches nothing.
func preview(ctx context.Context, s store.Store, o Options, cfg seed.Config, stdout io.Writer) error {
	if o.Force {
		cfg.ForceID = "preview"
	}
	l, err := seed.ListRaw(ctx, s, cfg)
	if err != nil {
		return err
	}
	hosts := map[string]bool{}
	log := lane.Logger(o.LogFormat, max(cfg.Lane.LogLevel, slog.LevelWarn))
	for _, f := range l.Files {
		if o.Until == "list" {
			if _, err := fmt.Fprintln(stdout, f.Key); err != nil {
				return err
			}
			continue
		}
		x, err := seed.ExtractFile(ctx, s, f.Key, log, func(m lane.Mention) error { hosts[m.Host] = true; return nil })
		line := fmt.Sprintf("%s: %d records, %d bad, %d distinct domains", f.Key, x.Records, x.Bad, x.Domains)
		if err != nil {
			line = fmt.Sprintf("%s: broken: %s", f.Key, ledger.Redact(err.Error()))
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "would read %d raw files (%d listed, %d already processed, %d other objects ignored)\n", len(l.Files), l.Listed, l.Skipped, l.Ignored)
	if err == nil && o.Until == "extract" {
		_, err = fmt.Fprintf(stdout, "would visit up to %d registrable domains\n", len(hosts))
	}
	return err
}
