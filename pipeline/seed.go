package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/pipeline/estimate"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// Seed is the seed job's graph: raw research files become domain metadata.
func Seed(s beam.Scope, cfg seed.Config) {
	files, listed := seed.List(s, cfg)
	read, records, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, records)
	completed := seed.Promoted(s, cfg, seed.Complete(s, cfg, read, visited, network))
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}

// seedStream is the seed job as one unbounded graph: the stages of Seed after a
// source that lists the bucket again at each interval, or waits for a queue, until the control object
// stops it. maxCall is the longest time that one call of the source may take.
func seedStream(s beam.Scope, cfg seed.Config, from seed.Source, maxCall time.Duration) {
	files, listed := seed.Stream(s, cfg, from, maxCall)
	read, records, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, records)
	completed := seed.Complete(s, cfg, read, visited, network)
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}

// seedOptions are the seed job's own options: those of the launcher, and those of the workers.
type seedOptions struct {
	Until, Hosts string
	Gate         float64
	seed.Config
}

func seedJob() Job {
	o := &seedOptions{}
	return Job{
		Job: ledger.Job{Name: seed.Job, Title: "Seed", Counts: seed.Counts(),
			Stages: []ledger.Stage{
				{Name: "listed", Unit: "files", Counts: []string{"files_listed"}, Apart: []string{"files_ignored", "files_skipped"}},
				{Name: "read", Unit: "files", Counts: []string{"files_read"}, Apart: []string{"files_bad", "records_bad"}},
				{Name: "hosts", Unit: "hosts", Counts: []string{ledger.LaneHosts}},
				{Name: "visited", Unit: "hosts", Counts: []string{"hosts_visited"}, Apart: []string{"domains_already_done", "hosts_unreachable"}},
				{Name: "written", Unit: "results", Counts: []string{"metadata_written"}, Apart: []string{"domains_failed"}},
				{Name: "completed", Unit: "files", Counts: []string{"files_completed"}, Apart: []string{"dead_letters"}},
			}, Purpose: ledger.Purpose{Kept: "domains_collected", Refused: "store_failed"},
			Path: "/api/v1/seeds/orchestrate", Operation: "orchestrateSeeds", Done: "domains_collected", Failed: "domains_failed",
			Alerts: []string{"failure_rate", "duration", "retry_rate"}, // most sites have no sitemap, so a 404 is nothing unusual
		},
		Keeps: []string{hive.Processing, domaintable.Root},
		Audit: seed.Audit,
		Rows:  seed.Rows(), Removal: new(seed.Removal()), Commands: o.commands(),
		Options: o.options, Check: o.check, Instead: o.instead, Accept: o.accept, Offer: o.offer,
		Input: &input{Name: "raw file", List: "`--until=list` without filters shows what there is", Read: hive.ParseRaw},
		Config: func(c RunOptions, l lane.Config, forceID string) any {
			cfg := o.config(c)
			cfg.Lane, cfg.ForceID = l, forceID
			return cfg
		},
		Build:     func(s beam.Scope, config any) { Seed(s, config.(seed.Config)) },
		Watch:     o.watch(),
		LiveCount: "domains_unique", Unit: "domains",
		Estimate: o.estimate, Afterwards: estimate.Afterwards,
		Failure: func(counts ledger.Counts) error {
			switch {
			case counts[ledger.OutageTLS] > 0:
				return seed.ErrOutageTLS
			case counts[ledger.Outage] > 0:
				return seed.ErrOutage
			}
			return nil
		},
	}
}

func (o *seedOptions) watch() *watch {
	return &watch{
		Tracker: func(c RunOptions) Tracker {
			files := &seed.FileTracker{Interval: c.Watch}
			list := func(ctx context.Context, s store.Store) (func(time.Time, int) []string, error) {
				l, err := seed.ListRaw(ctx, s, o.config(c))
				return func(now time.Time, most int) (names []string) {
					for _, f := range files.Due(l.Files, now, most) {
						names = append(names, f.Key)
					}
					return names
				}, err
			}
			return Tracker{List: list, Pause: files.Pause}
		},
		Config: func(c RunOptions, l lane.Config, files []string) any {
			cfg := o.config(c)
			cfg.Lane, cfg.Files = l, files
			return cfg
		},
		Stream: func(s beam.Scope, c RunOptions, l lane.Config, maxCall time.Duration) {
			cfg := o.config(c)
			cfg.Lane = l
			seedStream(s, cfg, seed.Source{Queue: c.From, Every: c.Watch}, maxCall)
		},
	}
}

func (o *seedOptions) options(s *option.Set) {
	s.Take(slices.Concat(requesting, partitioned, costed, []string{"sample", "concurrency", "rate", "host-delay", "max-crawl-delay", "raw-prefix", "results-prefix", "force", "watch", "streaming", "from"})...)
	s.Text(&o.Until, "until", "", "list or extract: print what would be done up to this stage, and change nothing").OneOf("list", "extract").
		NotEmpty("use list or extract, or leave it out").Is(option.OneRun).Previews("--until=list or --until=extract").In(option.What)
	s.Text(&o.Hosts, "hosts", "all", "all: where https://DOMAIN fails by DNS, connect, TLS or time-out, request the record's own host and www., then http://; strict: https://DOMAIN alone").OneOf("all", "strict")
	s.Yes(&o.Collect.FollowIndex, "follow-index", false, "read the children of a sitemap index").Is(option.Extent)
	s.Number(&o.Collect.MaxChildSitemaps, "max-child-sitemaps", 50, "sitemaps that are read of those that robots.txt names, and children of a sitemap index").From(1).Is(option.Extent)
	s.Yes(&o.Collect.Feeds, "feeds", false, "look for RSS and Atom feeds").Is(option.Extent)
	s.Yes(&o.Collect.Homepage, "homepage", false, "store the homepage's HTML as evidence").Is(option.Extent)
	s.Yes(&o.Collect.ParallelFetch, "parallel-fetch", false, "fetch robots.txt and the default sitemap in parallel").Is(option.Tuning)
	s.Text((*string)(&o.Layout), "layout", string(seed.Objects), "how results are kept: objects (some for each domain) or "+
		"table (a Delta table with thousands of domains in one Parquet and one WARC file; see docs/table.md)").
		OneOf(string(seed.Objects), string(seed.Table)).In(option.Output)
	s.Pause(&o.SegmentAge, "segment-age", seed.SegmentAge,
		"rows are committed to the table at least this often; a killed run repeats at most what came since").
		Above(0).Says("use more than 0, such as 30s")
	s.Pause(&o.Collect.RobotsCache, "robots-cache", 0, "reuse a robots.txt of an earlier partition or run for this long, e.g. 24h; 0: off").
		From(0).Says("use 0 (off) or more, such as 24h").Is(option.Extent)
	s.Decimal(&o.Gate, "sample-gate", 0.2,
		"a run with a larger --sample, or without one, is refused if more than this share of the last smaller one's domains failed; 1: never").
		Range(0, 1).Says("use a share from 0 to 1 (off)")
	s.Decimal(&o.OutageThreshold, "outage-threshold", 0.95, "share of the last 200 domains (at least 20) without an HTTP answer from which on our own network counts as down; 0: never").
		Range(0, 1).Says("use a share from 0 (off) to 1").Asked("Outage threshold", "share of failing domains that stops the run, such as 0.95; 0: never")
}

func (o *seedOptions) check(c *RunOptions) error {
	switch {
	case c.From != "" && c.Filtered():
		return usage.Errorf("--from takes every message of its queue: leave --country, --category and --date out")
	case c.Streaming && o.Layout != seed.Objects:
		return usage.Errorf("--layout=%s does not go with --streaming, where windows of one lane overlap; use --watch without it", o.Layout)
	case c.Watch > 0 && c.Limit > 0:
		return usage.Errorf("--watch and --limit=%d: a watch reads all files as they come; leave one of them out", c.Limit)
	case c.Watch > 0 && c.Share != "":
		return usage.Errorf("--watch and --sample=%s: a watch reads all domains as they come; leave one of them out", c.Share)
	case c.Watch > 0 && o.Until != "":
		return usage.Errorf("--watch and --until=%s: a preview ends by itself; leave one of them out", o.Until)
	}
	return nil
}

func (o *seedOptions) config(c RunOptions) seed.Config {
	cfg := o.Config
	cfg.Lanes, cfg.Country, cfg.Category, cfg.Date = c.Lanes, c.Country, c.Category, c.Date
	cfg.Sample = share(c.Share)
	cfg.Lane = lane.Config{LogFormat: c.LogFormat, LogLevel: c.Level()}
	cfg.Collect.StrictHosts = o.Hosts == "strict"
	if c.Web == "demo" {
		cfg.Collect.Web = c.Web
	}
	return cfg
}

// accept refuses a store without a raw file, and filters that no raw file
// matches: nothing would be done. A watch may wait for the first one.
func (o *seedOptions) accept(ctx context.Context, s store.Store, c *RunOptions) error {
	memory := strings.HasPrefix(c.Store, "mem://")
	for _, err := range s.List(ctx, seed.OldRoot) {
		if err != nil {
			return fmt.Errorf("listing the store: %w", err)
		}
		return usage.Errorf("--store=%s has results under %s of --layout=packed, which an earlier version wrote and --layout=table replaces: "+
			"take a store without them, or move them away and visit their domains again", c.Store, seed.OldRoot)
	}
	if c.From != "" {
		q, err := queue.Open(ctx, c.From) // to say at once what is wrong
		if err != nil {
			return usage.Errorf("--from: %w", err)
		}
		return q.Close()
	}
	if c.Watch > 0 && !c.Filtered() && !memory {
		return nil
	}
	for ob, err := range s.List(ctx, hive.Prefix("datasets/", c.Country, c.Category, c.Date)) {
		if err != nil {
			return fmt.Errorf("listing the store: %w", err)
		}
		if r, ok := hive.ParseRaw(ob.Key); ok && c.wants(r.Partition) {
			if err := o.passGate(ctx, s, c); err != nil {
				return err
			}
			return o.raiseLanes(ctx, s, c)
		}
	}
	switch {
	case memory:
		return usage.Errorf("--store=%s has no such raw file: a memory store is empty when the program starts; use a directory or a bucket", c.Store)
	case c.Filtered():
		return seedJob().Input.noMatch(c)
	}
	seen, err := sawInstead(ctx, s)
	if err != nil {
		return err
	}
	return usage.Errorf("--store=%s has no raw file (%scountry=CC/category=NAME/date=YYYY-MM-DD/raw_NNNN.json), so there is nothing to do: %s", c.Store, c.Roots.Key(hive.Datasets), seen)
}

// maxSeen is how many objects are listed to find what a store has in place of raw files, or what its partitions are.
const maxSeen = 10_000

// offer returns the countries, categories and days of the store's first raw files.
func (o *seedOptions) offer(ctx context.Context, s store.Store, _ *RunOptions) (map[string][]string, error) {
	seen, n := map[string]map[string]bool{"country": {}, "category": {}, "date": {}}, 0
	for ob, err := range s.List(ctx, hive.Datasets) {
		if err != nil {
			return nil, fmt.Errorf("listing the store: %w", err)
		}
		if r, ok := hive.ParseRaw(ob.Key); ok {
			p := r.Partition
			seen["country"][p.Country], seen["category"][p.Category], seen["date"][p.Date] = true, true, true
		}
		if n++; n == maxSeen {
			break
		}
	}
	out := map[string][]string{}
	for name, values := range seen {
		out[name] = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// sawInstead tells what a store without raw files has, and what to do.
func sawInstead(ctx context.Context, s store.Store) (string, error) {
	first, n := "", 0
	for ob, err := range s.List(ctx, "") {
		if err != nil {
			return "", fmt.Errorf("listing the store: %w", err)
		}
		root, rest, ok := strings.Cut(ob.Key, "country=")
		if _, raw := hive.ParseRaw(hive.Datasets + "country=" + rest); ok && raw {
			return fmt.Sprintf("it has %s: give --raw-prefix=%s", untrusted.Line(ob.Key, maxKeyShown), untrusted.Line(cmp.Or(root, "/"), maxKeyShown)), nil
		}
		if first == "" {
			first = ob.Key
		}
		if n++; n == maxSeen {
			break
		}
	}
	if first == "" {
		return "it is empty; is it the right store, and is it mounted?", nil
	}
	return fmt.Sprintf("it has %s and other objects; is it the right store?", untrusted.Line(first, maxKeyShown)), nil
}

const maxKeyShown = 200

const (
	// laneBytes is how much of the raw files makes a lane of some thousand hosts: minutes of
	// work, so that a lost worker costs no more.
	laneBytes = 1 << 20
	// maxLanesByInput limits what each worker keeps by lane while it reads raw files.
	maxLanesByInput = 1 << 16

	// In one process more lanes save no time, but only the lane at work has a host table,
	// which would be most of the memory of a million hosts. A run of some thousand hosts
	// keeps its one lane, and the few store calls of one.
	localLaneBytes = 4 << 20
	maxLocalLanes  = 1 << 7
)

// raiseLanes makes the lanes of a run small when its input is large.
func (o *seedOptions) raiseLanes(ctx context.Context, s store.Store, c *RunOptions) error {
	if !c.LanesByInput || c.Watch > 0 {
		return nil
	}
	l, err := seed.ListRaw(ctx, s, o.config(*c))
	if err != nil {
		return err
	}
	var size int64
	for _, f := range l.Files {
		size += f.Size
	}
	each, most := int64(laneBytes), int64(maxLanesByInput)
	if c.Lanes == 1 { // a cluster has some for each slot
		each, most = localLaneBytes, maxLocalLanes
	}
	c.Lanes = max(c.Lanes, int(min((size+each-1)/each, most)))
	if o.Layout.Packs() {
		// A lane reads the commits of every earlier lane with which it can share a host: of
		// two powers of two these are few, of two other numbers they can be all.
		c.Lanes = 1 << bits.Len(uint(c.Lanes-1))
	}
	return nil
}

func (o *seedOptions) instead() *Action {
	if o.Until == "" {
		return nil
	}
	return &Action{Preview: true, Do: o.preview}
}

// preview prints what a run would do and touches nothing.
func (o *seedOptions) preview(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error {
	cfg := o.config(c)
	if c.Force {
		cfg.ForceID = "preview"
	}
	l, err := seed.ListRaw(ctx, s, cfg)
	if err != nil {
		return err
	}
	hosts := map[string]bool{}
	log := lane.Logger(c.LogFormat, max(cfg.Lane.LogLevel, slog.LevelWarn))
	for _, f := range l.Files {
		if o.Until == "list" {
			if _, err := fmt.Fprintln(stdout, f.Key); err != nil {
				return err
			}
			continue
		}
		x, err := seed.ExtractFile(ctx, s, f.Key, log, cfg.Sampled(func(m lane.URLRecord) error { hosts[m.Host] = true; return nil }))
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
