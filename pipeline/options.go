package pipeline

import (
	"errors"
	"flag"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Options are what a user says about a run, from flags, environment and file.
type Options struct {
	Job, Runner, Store, Env   string
	DB                        string // SQL database of the jobs that keep their state in one
	Country, Category, Date   string
	Force, Strict             bool
	Until                     string
	Lanes, Concurrency        int
	Rate                      float64
	HostDelay, MaxCrawlDelay  time.Duration
	Web, ConnectTo            string
	AllowPrivate              bool
	Report, LogFormat, Log    string
	Progress, Config          string
	FollowIndex               bool
	MaxChildSitemaps          int
	Feeds, Homepage, Parallel bool
	RobotsCache               time.Duration
	OutageThreshold           float64
	LeaseTTL                  time.Duration
	SharedFilesystem          bool
	Watch                     time.Duration
	Streaming                 bool
	DryRun, DeleteVerified    bool
	Docs                      docsOptions
	Catalog                   catalogOptions
	News                      newsOptions

	sample bool // the store is the sample bucket's copy
	fresh  bool // the store is the default directory, made when it is not there
	flags  *flag.FlagSet
}

func newFlags(o *Options) *flag.FlagSet {
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Job, "job", "seed", "the job: "+or(jobNames()))
	f.StringVar(&o.Runner, "runner", "direct", "Beam runner: "+strings.Join(runners, ", ")+" (with --streaming: prism, unless another is given)")
	f.StringVar(&o.Store, "store", "", "bucket with datasets/ and processing/: a directory, file:///dir, s3://bucket/prefix, r2://bucket, gs://bucket, mem://name (default: the sample bucket, copied to ./out)")
	f.StringVar(&o.Env, "env", "", "dev, staging or prod: fills {env} in --store")
	f.StringVar(&o.Country, "country", "", "only this country, two lower-case letters")
	f.StringVar(&o.Category, "category", "", "only this category")
	f.StringVar(&o.Date, "date", "", "only this date, YYYY-MM-DD")
	f.BoolVar(&o.Force, "force", false, "do again what has its .success")
	f.BoolVar(&o.Strict, "strict", false, "exit 4 when the run left dead letters")
	f.StringVar(&o.Until, "until", "", "list or extract: stop there, touch nothing, print what would be done")
	f.IntVar(&o.Lanes, "lanes", 0, "lanes that hosts are spread over (default: 1 in one process, 16 × the parallelism on a cluster)")
	f.IntVar(&o.Concurrency, "concurrency", 64, "requests in flight, all workers together")
	f.Float64Var(&o.Rate, "rate", 0, "requests a second, all workers together; 0: no limit")
	f.DurationVar(&o.HostDelay, "host-delay", 200*time.Millisecond, "pause between two requests to one host")
	f.DurationVar(&o.MaxCrawlDelay, "max-crawl-delay", 30*time.Second, "longest Crawl-delay or Retry-After that is waited for; past it the rest of the host is left")
	f.StringVar(&o.Web, "web", "live", "live, or demo: the bundled simulated web, offline")
	f.StringVar(&o.ConnectTo, "connect-to", "", "host:port that every request is sent to instead of the URL's own")
	f.BoolVar(&o.AllowPrivate, "allow-private", false, "let the fetcher reach loopback and private addresses")
	f.StringVar(&o.Report, "report", "", "where the JSON report also goes: a file, or - for standard output")
	f.StringVar(&o.LogFormat, "log-format", "", "text or json, to standard error (default: text on a terminal, else json)")
	f.StringVar(&o.Log, "log-level", "", "debug, info, warn or error (default: warn on a terminal, else info)")
	f.StringVar(&o.Progress, "progress", "auto", "auto: a live line on a terminal; off")
	f.StringVar(&o.Config, "config", "", "YAML file with any of these flags")
	f.BoolVar(&o.FollowIndex, "follow-index", false, "read the children of a sitemap index")
	f.IntVar(&o.MaxChildSitemaps, "max-child-sitemaps", 50, "children read of one sitemap index")
	f.BoolVar(&o.Feeds, "feeds", false, "look for RSS and Atom feeds")
	f.BoolVar(&o.Homepage, "homepage", false, "keep the homepage's HTML as evidence")
	f.BoolVar(&o.Parallel, "parallel-fetch", false, "fetch robots.txt and the default sitemap side by side")
	f.DurationVar(&o.RobotsCache, "robots-cache", 0, "reuse a robots.txt of an earlier partition or run for this long, e.g. 24h; 0: off")
	f.Float64Var(&o.OutageThreshold, "outage-threshold", 0.95, "share of the last 200 domains (of at least 20) failing below HTTP that means our own network is down; 0: never")
	f.DurationVar(&o.LeaseTTL, "lease-ttl", 30*time.Second, "how long a run's lease outlives a killed holder on another machine")
	f.DurationVar(&o.Watch, "watch", 0, "stay, and take new raw files as they come, looking at that interval, e.g. 1m")
	f.BoolVar(&o.Streaming, "streaming", false, "with --watch: one unbounded graph (prism, Flink, Dataflow) in place of a batch run for what is new")
	f.BoolVar(&o.SharedFilesystem, "shared-filesystem", false, "all workers see the store's directory under the same path")
	f.BoolVar(&o.DryRun, "dry-run", true, "migrate: print what would be copied; --dry-run=false copies")
	f.BoolVar(&o.DeleteVerified, "delete-verified", false, "migrate: remove an old file once its copy is verified")
	f.StringVar(&o.DB, "db", "", "database of docs, catalog and news: sqlite:///path or postgres://… (default: a SQLite file next to a directory store)")
	for _, j := range jobs() {
		if j.define != nil {
			j.define(o, f)
		}
	}
	return f
}

// parseOptions reads flags, then the environment (SEED_…), then the file, and
// checks every value before anything is touched.
func parseOptions(args []string, stderr io.Writer) (Options, error) {
	var o Options
	f := newFlags(&o)
	o.flags = f
	addBeamFlags(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, errHelp
		}
		if m := badValue.FindStringSubmatch(err.Error()); m != nil {
			return o, usagef("--%s=%s: %w; `help` lists the flags", m[2], m[1], wanted(f, m[2], errors.New(m[3])))
		}
		return o, usagef("%s; `help` lists the flags", err)
	}
	if f.NArg() > 0 {
		return o, usagef("%q is no command; use runs, dead-letters, version, help, or flags alone", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	line := slices.Sorted(maps.Keys(given))
	if err := o.layers(given); err != nil {
		return o, err
	}
	if err := o.jobDefaults(given); err != nil {
		return o, err
	}
	if o.Streaming && !given["runner"] { // the one of this process that has unbounded graphs
		o.Runner = "prism"
	}
	return o, o.check(line, stderr)
}

// dry says that the run only prints what would be done.
func (o *Options) dry() bool { return o.Until != "" || o.Job == "migrate" && o.DryRun }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *Options) level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(o.Log)) // checked with the other options
	return l
}

// laneConfig is what the workers of every job are told of the options.
func (o *Options) laneConfig(job string) lane.Config {
	return lane.Config{Job: job, Store: o.Store, Slots: o.slots(), Web: o.web(), Grace: grace, LogFormat: o.LogFormat, LogLevel: o.level(),
		Leases: o.leases(), LeaseTTL: o.LeaseTTL}
}

func (o *Options) web() web.Config {
	return web.Config{UserAgent: "Newsfork-SeedEngine/1.0", HostDelay: o.HostDelay, MaxCrawlDelay: o.MaxCrawlDelay,
		Concurrency: o.Concurrency, Rate: o.Rate, ConnectTo: o.ConnectTo, AllowPrivate: o.AllowPrivate}
}

// public are the options that a report may show: what the user set, without
// anything that could be a secret.
func (o *Options) public() map[string]any {
	out := map[string]any{}
	own := newFlags(new(Options))
	o.flags.Visit(func(f *flag.Flag) {
		if own.Lookup(f.Name) != nil && f.Name != "config" && f.Name != "report" && f.Name != "store" && f.Name != "db" {
			out[f.Name] = f.Value.String()
		}
	})
	return out
}
