package pipeline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/term"

	// Beam's own flags are registered on flag.CommandLine by its packages.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/newsfork/seed-engine/io/web"
)

// Options are what a user says about a run, from flags, environment and file.
type Options struct {
	Job, Runner, Store, Env   string
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
	DryRun, DeleteVerified    bool

	sample bool // the store is the sample bucket's copy
	flags  *flag.FlagSet
}

var errHelp = errors.New("help asked for")

// remote are the runners whose workers are not in this process.
var remote = []string{"flink", "dataflow", "spark", "universal"}

var runners = append([]string{"direct", "prism"}, remote...)

func newFlags(o *Options) *flag.FlagSet {
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Job, "job", "seed", "the job: seed or migrate")
	f.StringVar(&o.Runner, "runner", "prism", "Beam runner: "+strings.Join(runners, ", "))
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
	f.DurationVar(&o.MaxCrawlDelay, "max-crawl-delay", 30*time.Second, "longest Crawl-delay that is waited for; past it the rest of the host is left")
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
	f.Float64Var(&o.OutageThreshold, "outage-threshold", 0.95, "share of the last 200 domains failing below HTTP that means our own network is down; 0: never")
	f.DurationVar(&o.LeaseTTL, "lease-ttl", 30*time.Second, "how long a run's lease outlives a killed holder on another machine")
	f.BoolVar(&o.SharedFilesystem, "shared-filesystem", false, "all workers see the store's directory under the same path")
	f.BoolVar(&o.DryRun, "dry-run", true, "migrate: print what would be copied; --dry-run=false copies")
	f.BoolVar(&o.DeleteVerified, "delete-verified", false, "migrate: remove an old file once its copy is verified")
	return f
}

// parseOptions reads flags, then the environment (SEED_…), then the file, and
// checks every value before anything is touched.
func parseOptions(args []string, stderr io.Writer) (Options, error) {
	var o Options
	f := newFlags(&o)
	o.flags = f
	// Beam's own flags keep their names. They go to flag.CommandLine, which the
	// SDK copies into the job; ours never do.
	flag.CommandLine.VisitAll(func(b *flag.Flag) {
		if f.Lookup(b.Name) == nil && !strings.HasPrefix(b.Name, "test.") {
			f.Var(&beamFlag{b}, b.Name, "Beam: "+b.Usage)
		}
	})
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, errHelp
		}
		return o, usagef("%s; `help` lists the flags", err)
	}
	if f.NArg() > 0 {
		return o, usagef("%q is no command; use runs, dead-letters, version, help, or flags alone", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	var err error
	f.VisitAll(func(g *flag.Flag) {
		name := "SEED_" + strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_"))
		v, ok := os.LookupEnv(name)
		if !ok || given[g.Name] || err != nil {
			return
		}
		if serr := f.Set(g.Name, v); serr != nil {
			err = usagef("environment variable %s=%q: %s", name, v, serr)
		}
		given[g.Name] = true
	})
	if err != nil {
		return o, err
	}
	if o.Config != "" {
		if err := o.file(given); err != nil {
			return o, err
		}
	}
	return o, o.check(stderr)
}

// beamFlag hands a value on to Beam's own flag set, marked there as given.
type beamFlag struct{ of *flag.Flag }

func (b *beamFlag) String() string {
	if b.of == nil {
		return ""
	}
	return b.of.Value.String()
}
func (b *beamFlag) Set(v string) error { return flag.CommandLine.Set(b.of.Name, v) }

// IsBoolFlag lets a boolean flag of Beam's stand without a value.
func (b *beamFlag) IsBoolFlag() bool {
	v, ok := b.of.Value.(interface{ IsBoolFlag() bool })
	return ok && v.IsBoolFlag()
}

func (o *Options) file(given map[string]bool) error {
	b, err := os.ReadFile(o.Config)
	if err != nil {
		return usagef("reading --config: %w", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(b, &values); err != nil {
		return usagef("--config=%s is no YAML mapping: %s", o.Config, yaml.FormatError(err, false, false))
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if o.flags.Lookup(name) == nil || name == "config" {
			return usagef("--config=%s: unknown key %q; keys are the flags' names, `help` lists them", o.Config, name)
		}
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, fmt.Sprint(values[name])); err != nil {
			return usagef("--config=%s: %s: %w", o.Config, name, err)
		}
	}
	return nil
}

var (
	countryForm  = regexp.MustCompile(`^[a-z]{2}$`)
	categoryForm = regexp.MustCompile(`^[a-z0-9_-]+$`)
)

// defaultStore is where the sample bucket is copied to.
const defaultStore = "out"

func (o *Options) check(stderr io.Writer) error {
	switch {
	case !slices.Contains([]string{"seed", "migrate"}, o.Job):
		return usagef("--job=%s: there is no such job; use seed or migrate", o.Job)
	case !slices.Contains(runners, o.Runner):
		return usagef("--runner=%s: there is no such runner; use one of %s", o.Runner, strings.Join(runners, ", "))
	case o.Country != "" && !countryForm.MatchString(o.Country):
		return usagef("--country=%s: a country is two lower-case letters, such as sg", o.Country)
	case o.Category != "" && !categoryForm.MatchString(o.Category):
		return usagef("--category=%s: a category is lower-case letters, digits, _ and -", o.Category)
	case o.Until != "" && o.Until != "list" && o.Until != "extract":
		return usagef("--until=%s: use list or extract", o.Until)
	case o.Env != "" && !slices.Contains([]string{"dev", "staging", "prod"}, o.Env):
		return usagef("--env=%s: use dev, staging or prod", o.Env)
	case o.Web != "live" && o.Web != "demo":
		return usagef("--web=%s: use live or demo", o.Web)
	case o.Lanes < 0 || o.Lanes > 100_000:
		return usagef("--lanes=%d: use 1 to 100000", o.Lanes)
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return usagef("--concurrency=%d: use 1 to 10000", o.Concurrency)
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return usagef("--rate=%g: use 0 for no limit, or requests a second", o.Rate)
	case o.HostDelay < 0 || o.MaxCrawlDelay <= 0 || o.RobotsCache < 0 || o.LeaseTTL < time.Second:
		return usagef("a duration is out of range: --host-delay and --robots-cache are not negative, --max-crawl-delay is positive, --lease-ttl is at least 1s")
	case o.MaxChildSitemaps < 1:
		return usagef("--max-child-sitemaps=%d: use 1 or more", o.MaxChildSitemaps)
	case !(o.OutageThreshold >= 0 && o.OutageThreshold <= 1):
		return usagef("--outage-threshold=%g: use a share from 0 (off) to 1", o.OutageThreshold)
	case o.Progress != "auto" && o.Progress != "off":
		return usagef("--progress=%s: use auto or off", o.Progress)
	case o.LogFormat != "" && o.LogFormat != "text" && o.LogFormat != "json":
		return usagef("--log-format=%s: use text or json", o.LogFormat)
	case o.Web == "demo" && slices.Contains(remote, o.Runner):
		return usagef("--web=demo lives in this process, and %s has workers elsewhere; use --runner=direct or prism", o.Runner)
	case o.Web == "demo" && o.ConnectTo != "":
		return usagef("--web=demo and --connect-to both say where requests go; give one")
	}
	if o.Date != "" {
		if d, err := time.Parse(time.DateOnly, o.Date); err != nil || d.Format(time.DateOnly) != o.Date {
			return usagef("--date=%s: that is no day; write YYYY-MM-DD", o.Date)
		}
	}
	if o.ConnectTo != "" {
		if _, _, err := net.SplitHostPort(o.ConnectTo); err != nil {
			return usagef("--connect-to=%s: write host:port", o.ConnectTo)
		}
	}
	if o.Log != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(o.Log)); err != nil {
			return usagef("--log-level=%s: use debug, info, warn or error", o.Log)
		}
	}
	if o.Store == "" {
		o.Store, o.sample = defaultStore, true
	}
	if strings.Contains(o.Store, "{env}") {
		if o.Env == "" {
			return usagef("--store=%s needs --env=dev, staging or prod", o.Store)
		}
		o.Store = strings.ReplaceAll(o.Store, "{env}", o.Env)
	}
	if slices.Contains(remote, o.Runner) && !o.SharedFilesystem && localStore(o.Store) && !o.loopback() {
		return usagef("--store=%s is seen by this machine only, and %s has workers elsewhere; use s3://, r2:// or gs://, or --shared-filesystem when every worker mounts it", o.Store, o.Runner)
	}
	terminal := isTerminal(stderr)
	if o.LogFormat == "" {
		o.LogFormat = "json"
		if terminal {
			o.LogFormat = "text"
		}
	}
	if o.Log == "" {
		o.Log = "info"
		if terminal && o.LogFormat == "text" {
			o.Log = "warn"
		}
	}
	if o.Lanes == 0 {
		o.Lanes = 1
		if slices.Contains(remote, o.Runner) {
			o.Lanes = 16 * o.slots()
		}
	}
	return nil
}

func localStore(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return !ok || scheme == "file" || scheme == "mem"
}

func (o *Options) loopback() bool {
	f := o.flags.Lookup("environment_type")
	return f != nil && strings.EqualFold(f.Value.String(), "loopback")
}

// slots is how many lanes can be at work at once in the whole job.
func (o *Options) slots() int {
	if !slices.Contains(remote, o.Runner) {
		return 1
	}
	var n int
	if f := o.flags.Lookup("parallelism"); f != nil {
		if _, err := fmt.Sscan(f.Value.String(), &n); err == nil && n > 0 {
			return n
		}
	}
	return 1
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *Options) level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(o.Log)) // checked with the other options
	return l
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
		if own.Lookup(f.Name) != nil && f.Name != "config" && f.Name != "report" && f.Name != "store" {
			out[f.Name] = f.Value.String()
		}
	})
	return out
}

func help(args []string, w io.Writer) error {
	job := "seed"
	if len(args) > 0 {
		job = args[0]
	}
	switch job {
	case "seed", "migrate":
	case "runs":
		_, err := fmt.Fprint(w, runsUsage)
		return err
	case "dead-letters":
		_, err := fmt.Fprint(w, deadLettersUsage)
		return err
	case "version":
		_, err := fmt.Fprintln(w, "pipeline version    prints the program's version")
		return err
	default:
		return usagef("help %s: there is no such job or command; use seed, migrate, runs, dead-letters or version", job)
	}
	if _, err := fmt.Fprintf(w, "pipeline [--job=%s] [flags]\npipeline runs|dead-letters|version|help …\n\nFlags (each also as SEED_NAME in the environment, or in --config):\n", job); err != nil {
		return err
	}
	f := newFlags(new(Options))
	f.SetOutput(w)
	f.PrintDefaults()
	_, err := fmt.Fprintln(w, "\nBeam's own flags (--endpoint, --environment_type, --project, --region, --staging_location, --worker_binary …) keep their names.")
	return err
}
