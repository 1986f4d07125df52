package cli

import (
	"errors"
	"flag"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Options are all options of a run, from flags, environment and file.
type Options struct {
	launch.Options
	Env, Config string
}

// newFlags defines the flags of all jobs, and sets their defaults in o.
func newFlags(o *Options) *flag.FlagSet {
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Job, "job", "seed", "the job: "+usage.Or(pipeline.Names()))
	f.StringVar(&o.Runner, "runner", "direct", "Beam runner: "+strings.Join(launch.Runners, ", ")+" (with --streaming: prism, unless another is given)")
	f.StringVar(&o.Store, "store", "", "bucket with datasets/ and processing/: a directory, file:///dir, s3://bucket/prefix, r2://bucket, gs://bucket, mem://name (default: the sample bucket, copied to ./out)")
	f.StringVar(&o.Roots.Raw, "raw-prefix", hive.Datasets, "prefix in the store below which raw files are: country=CC/category=…; /: none")
	f.StringVar(&o.Roots.Results, "results-prefix", hive.Processing, "prefix in the store below which the results of domains are written")
	f.StringVar(&o.Env, "env", "", "dev, staging or prod: fills {env} in --store")
	f.StringVar(&o.Country, "country", "", "only this country, two lower-case letters")
	f.StringVar(&o.Category, "category", "", "only this category")
	f.StringVar(&o.Date, "date", "", "only this date, YYYY-MM-DD")
	f.StringVar(&o.URL, "url", "", "docs: crawl this page, and with --depth those below it, without a policy file; news: print this article as JSON, and store nothing")
	f.BoolVar(&o.Force, "force", false, "also do what has its .success")
	f.BoolVar(&o.Strict, "strict", false, "exit with 4 when the run left dead letters, or providers that are not done")
	f.IntVar(&o.Lanes, "lanes", 0, "number of lanes over which hosts are spread (default: 1 in one process, for seed one per 4 MiB of raw files and at most 128; on a cluster 16 × the parallelism, and for seed at least one per MiB)")
	f.IntVar(&o.Concurrency, "concurrency", 64, "requests in flight, all workers together")
	f.Float64Var(&o.Rate, "rate", 0, "requests a second, all workers together; 0: no limit")
	f.DurationVar(&o.HostDelay, "host-delay", 200*time.Millisecond, "pause between two requests to one host")
	f.DurationVar(&o.MaxCrawlDelay, "max-crawl-delay", 30*time.Second, "longest Crawl-delay or Retry-After that is obeyed; a host that asks for more is abandoned for this run")
	f.Float64Var(&o.AdaptiveDelay, "adaptive-delay", 0, "lengthen the pause between two requests to a host to so many times its response time, e.g. 5, and after each 429 and 503; 0: off")
	f.DurationVar(&o.ServerDelay, "server-delay", 0, "pause between two requests to one server address, whatever the host names, one request at a time; 0: only hosts are told apart")
	f.Float64Var(&o.CDNRate, "cdn-rate", polite.DefaultCDNRate, "with --server-delay: requests a second to each network whose addresses serve many unrelated sites, such as Cloudflare's, in place of that pause")
	f.StringVar(&o.CDNNetworks, "cdn-networks", "", "file with these networks, a name and a prefix on each line (default: the list in io/web/polite/cdns.txt)")
	f.StringVar(&o.Turns, "turns", polite.OwnTurns, "path of the file by which all processes of a machine, of all jobs, take turns at a site; auto: in the folder of the user's caches; off: each process for itself")
	f.StringVar(&o.Web, "web", "live", "live, or demo: the simulated web that is part of the program, offline")
	f.StringVar(&o.ConnectTo, "connect-to", "", "host:port that every request is sent to instead of the URL's own")
	f.BoolVar(&o.AllowPrivate, "allow-private", false, "allow requests to loopback and private addresses")
	f.BoolVar(&o.UnsandboxedBrowser, "allow-unsandboxed-browser", false, "docs and catalog: let the browser that renders pages run without its sandbox: as root, or where the system has none")
	f.BoolVar(&o.PostQuantum, "post-quantum", false, "offer sites post-quantum key exchange (ML-KEM) too; costs CPU")
	f.StringVar(&o.Report, "report", "", "also write the JSON report to this file, or - for standard output")
	f.Var(&o.Estimate, "estimate", "print what a run will cost (requests, bytes, hours, calls to the store and their price), and change nothing; --estimate=json: for programs")
	f.StringVar(&o.Prices, "prices", "", "YAML file with the store's prices, for --estimate and the report (default: public list prices of S3, R2 and GCS)")
	f.StringVar(&o.LogFormat, "log-format", "", "text or json, to standard error (default: text on a terminal, else json)")
	f.StringVar(&o.LogLevel, "log-level", "", "debug, info, warn or error (default: warn on a terminal, else info)")
	f.StringVar(&o.Progress, "progress", "auto", "auto: a live line on a terminal; off")
	f.StringVar(&o.Config, "config", "", "YAML file with any of these flags")
	f.DurationVar(&o.LeaseTTL, "lease-ttl", 30*time.Second, "how long a run's lease lasts after its holder was killed on another machine")
	f.DurationVar(&o.Watch, "watch", 0, "keep running and read new raw files as they come; the interval between two polls, e.g. 1m")
	f.BoolVar(&o.Streaming, "streaming", false, "with --watch: one streaming pipeline (prism, Flink, Dataflow) instead of a batch run for each poll")
	f.StringVar(&o.FlinkREST, "flink-rest", "", "host:port of Flink's JobManager, to warn of too few slots or network buffers")
	f.BoolVar(&o.SharedFilesystem, "shared-filesystem", false, "all workers see the store's directory under the same path")
	f.StringVar(&o.DB, "db", "", "database of docs, catalog and news: sqlite:///path or postgres://… (default: a SQLite file next to a directory store)")
	o.Jobs, o.Flags = pipeline.All(), f
	for _, j := range o.Jobs {
		if j.Define != nil {
			j.Define(f)
		}
	}
	return f
}

// parseOptions reads flags, then the environment (SEED_…), then the file, and
// checks every value before anything is touched.
func parseOptions(args []string, stderr io.Writer) (Options, error) {
	var o Options
	f := newFlags(&o)
	launch.AddBeamFlags(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		if m := badValue.FindStringSubmatch(err.Error()); m != nil {
			return o, usage.Errorf("--%s=%s: %w; `help` lists the flags", m[2], m[1], wanted(f, m[2], errors.New(m[3])))
		}
		return o, usage.Errorf("%s; `help` lists the flags", err)
	}
	switch word := f.Arg(0); {
	case f.NArg() == 0:
	case slices.Contains(pipeline.Names(), word):
		return o, usage.Errorf("%q is a job; write --job=%[1]s", word)
	case slices.Contains(commandNames(), word) || word == "help":
		return o, usage.Errorf("%q is a command; write it before all flags, as in pipeline %[1]s …", word)
	default:
		return o, usage.Errorf("%q is no command; use %s, help, or flags alone", word, strings.Join(commandNames(), ", "))
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
	if o.Streaming && !given["runner"] { // of the runners in this process, prism alone runs unbounded graphs
		o.Runner = "prism"
	}
	return o, o.check(line, stderr)
}
