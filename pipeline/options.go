package pipeline

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"golang.org/x/term"

	// Beam's own flags are registered on flag.CommandLine by its packages.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/testdata"
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
	DryRun, DeleteVerified    bool

	sample bool // the store is the sample bucket's copy
	fresh  bool // the store is the default directory, made when it is not there
	flags  *flag.FlagSet
}

var errHelp = errors.New("help asked for")

// remote are the runners whose workers are not in this process.
var remote = []string{"flink", "dataflow", "spark", "universal"}

var runners = append([]string{"direct", "prism"}, remote...)

func newFlags(o *Options) *flag.FlagSet {
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Job, "job", "seed", "the job: "+or(jobNames()))
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
	f.StringVar(&o.DB, "db", "", "database of docs, catalog and news: sqlite:///path or postgres://… (default: a SQLite file beside a directory store)")
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
	return o, o.check(line, stderr)
}

// layers fills in, under the flags that are given already, what the
// environment says, and under that what the file says. A variable that is
// empty says nothing.
func (o *Options) layers(given map[string]bool) error {
	var err error
	o.flags.VisitAll(func(g *flag.Flag) {
		name := "SEED_" + strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_"))
		v := os.Getenv(name)
		if v == "" || given[g.Name] || err != nil {
			return
		}
		if serr := o.flags.Set(g.Name, v); serr != nil {
			err = usagef("environment variable %s=%q is no value for --%s: %w", name, v, g.Name, serr)
		}
		given[g.Name] = true
	})
	if err != nil || o.Config == "" {
		return err
	}
	return o.file(given)
}

// jobDefaults fills in what nothing above has given.
func (o *Options) jobDefaults(given map[string]bool) error {
	j, _ := jobNamed(o.Job)
	for name, v := range j.defaults {
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, v); err != nil {
			return fmt.Errorf("default of --%s for --job=%s: %w", name, j.name, err)
		}
	}
	return nil
}

// addBeamFlags lets f take Beam's own flags under their names. Their values go
// to flag.CommandLine, which the SDK copies into the job; ours never do.
func addBeamFlags(f *flag.FlagSet) {
	flag.CommandLine.VisitAll(func(b *flag.Flag) {
		if f.Lookup(b.Name) == nil && !strings.HasPrefix(b.Name, "test.") {
			f.Var(&beamFlag{b}, b.Name, "Beam: "+b.Usage)
		}
	})
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
	// Nodes keep a value as it is written: a category 007 stays that.
	var values map[string]ast.Node
	if err := yaml.Unmarshal(b, &values); err != nil {
		return usagef("--config=%s is no YAML mapping of flags' names to values: %s", o.Config, yaml.FormatError(err, false, false))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if o.flags.Lookup(name) == nil || name == "config" {
			return usagef("--config=%s: unknown key %q; keys are the flags' names, `help` lists them", o.Config, name)
		}
		v, ok := scalar(values[name])
		if !ok {
			return usagef("--config=%s: %s has no single value; write %s: VALUE, or leave the line out", o.Config, name, name)
		}
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, v); err != nil {
			return usagef("--config=%s: %q is no value for %s: %w", o.Config, v, name, err)
		}
	}
	return nil
}

// scalar is the text of a YAML string, number or boolean.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return "", false
}

var (
	countryForm  = regexp.MustCompile(`^[a-z]{2}$`)
	categoryForm = regexp.MustCompile(`^[a-z0-9_-]+$`)
)

// defaultStore is where the sample bucket is copied to.
const defaultStore = "out"

// dry says that the run only prints what would be done.
func (o *Options) dry() bool { return o.Until != "" || o.Job == "migrate" && o.DryRun }

// check refuses what cannot be run. line are the flags of the command line.
func (o *Options) check(line []string, stderr io.Writer) error {
	j, known := jobNamed(o.Job)
	switch {
	case !known:
		return noJob(o.Job)
	case !slices.Contains(runners, o.Runner):
		return usagef("--runner=%s: there is no such runner; use one of %s", o.Runner, strings.Join(runners, ", "))
	case o.Country != "" && !countryForm.MatchString(o.Country):
		return usagef("--country=%s: a country is two lower-case letters, such as sg", o.Country)
	case o.Category != "" && !categoryForm.MatchString(o.Category):
		return usagef("--category=%s: a category is lower-case letters, digits, _ and -", o.Category)
	case o.Until != "" && o.Until != "list" && o.Until != "extract":
		return usagef("--until=%s: use list or extract", o.Until)
	case o.Web != "live" && o.Web != "demo":
		return usagef("--web=%s: use live or demo", o.Web)
	case o.Lanes < 0 || o.Lanes > 100_000:
		return usagef("--lanes=%d: use 1 to 100000", o.Lanes)
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return usagef("--concurrency=%d: use 1 to 10000", o.Concurrency)
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return usagef("--rate=%g: use 0 for no limit, or requests a second", o.Rate)
	case o.HostDelay < 0:
		return usagef("--host-delay=%s: use 0 or more, such as 200ms", o.HostDelay)
	case o.MaxCrawlDelay <= 0:
		return usagef("--max-crawl-delay=%s: use more than 0, such as 30s", o.MaxCrawlDelay)
	case o.RobotsCache < 0:
		return usagef("--robots-cache=%s: use 0 (off) or more, such as 24h", o.RobotsCache)
	case o.LeaseTTL < time.Second:
		return usagef("--lease-ttl=%s: use 1s or more", o.LeaseTTL)
	case o.MaxChildSitemaps < 1:
		return usagef("--max-child-sitemaps=%d: use 1 or more", o.MaxChildSitemaps)
	case !(o.OutageThreshold >= 0 && o.OutageThreshold <= 1):
		return usagef("--outage-threshold=%g: use a share from 0 (off) to 1", o.OutageThreshold)
	case o.Progress != "auto" && o.Progress != "off":
		return usagef("--progress=%s: use auto or off", o.Progress)
	case o.LogFormat != "" && o.LogFormat != "text" && o.LogFormat != "json":
		return usagef("--log-format=%s: use text or json", o.LogFormat)
	case o.Web == "demo" && o.elsewhere():
		return usagef("--web=demo lives in this process, and %s has workers elsewhere; use --runner=direct or prism", o.Runner)
	case o.Web == "demo" && o.ConnectTo != "":
		return usagef("--web=demo and --connect-to both say where requests go; give one")
	}
	if j.check != nil {
		if err := j.check(o); err != nil {
			return err
		}
	}
	for _, name := range j.foreign() {
		if !slices.Contains(line, name) {
			continue
		}
		if name == "dry-run" {
			return usagef("--dry-run is for --job=migrate; for a dry run of %s use --until=list or --until=extract", o.Job)
		}
		return usagef("--%s means nothing to --job=%s; leave it out, `help %s` lists what there is", name, o.Job, o.Job)
	}
	if o.Date != "" {
		if d, err := time.Parse(time.DateOnly, o.Date); err != nil || d.Format(time.DateOnly) != o.Date {
			return usagef("--date=%s: that is no day; write YYYY-MM-DD", o.Date)
		}
	}
	if o.ConnectTo != "" {
		if !hostPort(o.ConnectTo) {
			return usagef("--connect-to=%s: write host:port", o.ConnectTo)
		}
	}
	if o.Log != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(o.Log)); err != nil {
			return usagef("--log-level=%s: use debug, info, warn or error", o.Log)
		}
	}
	if err := o.place(); err != nil {
		return err
	}
	if err := o.checkRunner(); err != nil {
		return err
	}
	if err := o.checkReport(); err != nil {
		return err
	}
	if o.sample && o.filtered() {
		if err := o.sampleMatches(); err != nil {
			return err
		}
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

// place settles which store is meant.
func (o *Options) place() error {
	if o.Env != "" && !slices.Contains([]string{"dev", "staging", "prod"}, o.Env) {
		return usagef("--env=%s: use dev, staging or prod", o.Env)
	}
	switch {
	case o.Store == "":
		j, _ := jobNamed(o.Job)
		o.Store, o.sample, o.fresh = defaultStore, !j.sql, j.sql
	case o.Store == "mem://": // the one without a name
		o.Store = "mem://default"
	case strings.Contains(o.Store, "{env}"):
		if o.Env == "" {
			return usagef("--store=%s: nothing fills {env}; add --env=dev, staging or prod", o.Store)
		}
		o.Store = strings.ReplaceAll(o.Store, "{env}", o.Env)
	}
	return o.placeDB()
}

// placeDB settles which database is meant.
func (o *Options) placeDB() error {
	j, _ := jobNamed(o.Job)
	if !j.sql {
		return nil
	}
	switch {
	case strings.Contains(o.DB, "{env}"):
		if o.Env == "" {
			return usagef("--db: nothing fills {env}; add --env=dev, staging or prod")
		}
		o.DB = strings.ReplaceAll(o.DB, "{env}", o.Env)
	case o.DB == "" && !localStore(o.Store):
		return usagef("--job=%s needs --db; add --db=sqlite:///path or --db=postgres://…", o.Job)
	case o.DB == "" && strings.HasPrefix(o.Store, "mem://"):
		o.DB = "sqlite:///:memory:"
	case o.DB == "":
		beside, err := filepath.Abs(strings.TrimPrefix(o.Store, "file://"))
		if err != nil {
			return usagef("--db: finding the directory beside --store: %w", err)
		}
		o.DB = "sqlite://" + filepath.ToSlash(beside) + ".db"
	}
	lite := strings.HasPrefix(o.DB, "sqlite:///")
	u, err := url.Parse(o.DB)
	switch {
	case !lite && !strings.HasPrefix(o.DB, "postgres://") && !strings.HasPrefix(o.DB, "postgresql://"):
		return usagef("--db: write sqlite:///path or postgres://user@host/database")
	case lite:
	case err != nil:
		return usagef("--db is no URL; write postgres://user@host/database")
	}
	if !o.elsewhere() || lite && o.SharedFilesystem && o.Runner != "dataflow" {
		return nil
	}
	if _, password := u.User.Password(); lite {
		return usagef("--db=%s is seen by this machine only, and %s has workers elsewhere; use postgres://", o.DB, o.Runner)
	} else if password {
		return usagef("--db holds a password, and %s shows options to whoever may see the job; leave it out, and set SEED_DB or PGPASSFILE in the workers' environment", o.Runner)
	}
	return nil
}

// checkRunner refuses a runner without what it needs to start or to see the store.
func (o *Options) checkRunner() error {
	if !slices.Contains(remote, o.Runner) {
		return nil
	}
	if o.Runner == "dataflow" {
		for _, need := range []struct{ name, like string }{{"project", "PROJECT"}, {"region", "europe-west1"}, {"staging_location", "gs://bucket/staging"}} {
			if o.beam(need.name) == "" {
				return usagef("--runner=dataflow needs --%s; add --%s=%s", need.name, need.name, need.like)
			}
		}
		if v := o.beam("staging_location"); !strings.HasPrefix(v, "gs://") || len(v) == len("gs://") {
			return usagef("--staging_location=%s: Dataflow stages in Google Cloud Storage; write gs://bucket/staging", v)
		}
	} else {
		switch v := o.beam("endpoint"); {
		case v == "":
			return usagef("--runner=%s needs --endpoint; add --endpoint=host:port of its job server, such as localhost:8099", o.Runner)
		case !hostPort(v):
			return usagef("--endpoint=%s: write host:port, such as localhost:8099", v)
		}
		if err := o.checkFlink(); err != nil {
			return err
		}
	}
	mount := o.SharedFilesystem && o.Runner != "dataflow" && !strings.HasPrefix(o.Store, "mem://")
	switch {
	case !o.elsewhere() || mount || !localStore(o.Store):
		return nil
	case o.sample:
		return usagef("the sample bucket is seen by this machine only, and %s has workers elsewhere; add --store=s3://…, r2://… or gs://…", o.Runner)
	case o.Runner == "dataflow" || strings.HasPrefix(o.Store, "mem://"):
		return usagef("--store=%s is seen by this machine only, and %s has workers elsewhere; use s3://, r2:// or gs://", o.Store, o.Runner)
	}
	return usagef("--store=%s is seen by this machine only, and %s has workers elsewhere; use s3://, r2:// or gs://, or --shared-filesystem when every worker mounts it", o.Store, o.Runner)
}

// checkReport finds out before the run whether its report has a place.
func (o *Options) checkReport() error {
	switch {
	case o.Report == "":
		return nil
	case o.dry():
		return usagef("--report=%s: what only prints what would be done makes no report; leave --report out", o.Report)
	case o.Report == "-":
		return nil
	}
	if info, err := os.Stat(o.Report); err == nil && info.IsDir() {
		return usagef("--report=%s is a directory; name a file, or - for standard output", o.Report)
	}
	if info, err := os.Stat(filepath.Dir(o.Report)); err != nil || !info.IsDir() {
		return usagef("--report=%s: there is no directory %s; make it first", o.Report, filepath.Dir(o.Report))
	}
	return nil
}

func (o *Options) filtered() bool { return o.Country != "" || o.Category != "" || o.Date != "" }

// wants says whether the filters let a partition through.
func (o *Options) wants(p hive.Partition) bool {
	return (o.Country == "" || p.Country == o.Country) && (o.Category == "" || p.Category == o.Category) && (o.Date == "" || p.Date == o.Date)
}

func (o *Options) noMatch() error {
	what, look := "raw file", "`--until=list` without filters shows what there is"
	if o.Job == "migrate" {
		what, look = "legacy file", "a dry run without filters shows what there is"
	}
	return usagef("no %s matches --country=%q --category=%q --date=%q; %s", what, o.Country, o.Category, o.Date, look)
}

// sampleMatches looks for the filters in the sample bucket and in an earlier
// copy of it, before a copy is made.
func (o *Options) sampleMatches() error {
	bucket, err := fs.Sub(testdata.Bucket, "bucket")
	if err != nil {
		return err
	}
	parse := hive.ParseRaw
	if o.Job == "migrate" {
		parse = hive.ParseLegacy
	}
	for _, at := range []fs.FS{bucket, os.DirFS(o.Store)} {
		found := false
		for _, root := range []string{"datasets", "research"} {
			err := fs.WalkDir(at, root, func(key string, _ fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return fs.SkipDir
				}
				if err != nil {
					return err
				}
				if r, ok := parse(key); ok && o.wants(r.Partition) {
					found = true
					return fs.SkipAll
				}
				return nil
			})
			if err != nil {
				return usagef("reading ./%s: %w", o.Store, err)
			}
		}
		if found {
			return nil
		}
	}
	return o.noMatch()
}

// reach checks that the runner's job server answers: the SDK itself would wait
// for two minutes.
func (o *Options) reach(ctx context.Context) error {
	if !slices.Contains(remote, o.Runner) || o.Runner == "dataflow" || o.dry() {
		return nil
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", o.beam("endpoint"))
	if err != nil {
		return fmt.Errorf("--endpoint=%s: no job server of %s answers there; start it, or correct the address: %w", o.beam("endpoint"), o.Runner, err)
	}
	return c.Close()
}

func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n > 0 && n < 65536
}

func localStore(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return !ok || scheme == "file" || scheme == "mem"
}

// beam is the value of a flag of Beam's.
func (o *Options) beam(name string) string {
	if f := o.flags.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// elsewhere says that the workers are not in this process.
func (o *Options) elsewhere() bool {
	return slices.Contains(remote, o.Runner) && (o.Runner == "dataflow" || !strings.EqualFold(o.beam("environment_type"), "loopback"))
}

// slots is how many lanes can be at work at once in the whole job. A lane has
// one request in flight at least, so --concurrency bounds them.
func (o *Options) slots() int {
	switch {
	case !slices.Contains(remote, o.Runner):
		return 1
	case o.Runner == "dataflow":
		return o.dataflowSlots()
	}
	n, err := strconv.Atoi(o.beam("parallelism"))
	if err != nil { // a runner without that flag
		return 1
	}
	return min(max(n, 1), o.Concurrency)
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
		if own.Lookup(f.Name) != nil && f.Name != "config" && f.Name != "report" && f.Name != "store" && f.Name != "db" {
			out[f.Name] = f.Value.String()
		}
	})
	return out
}

func help(args []string, w io.Writer) error {
	topic := ""
	switch len(args) {
	case 0:
	case 1:
		topic = args[0]
	default:
		return usagef("help takes one word, not %q; use %s", strings.Join(args, " "), or(topics()))
	}
	switch topic {
	case "", "help":
		_, err := fmt.Fprintf(w, usage, strings.Join(jobNames(), "|"), strings.Join(topics(), "|"))
		if err != nil {
			return err
		}
		return help([]string{"seed"}, w)
	case "runs":
		_, err := fmt.Fprint(w, runsUsage, controlFlags)
		return err
	case "dead-letters":
		_, err := fmt.Fprint(w, deadLettersUsage, controlFlags)
		return err
	case "version":
		_, err := fmt.Fprintln(w, "pipeline version    prints the program's version")
		return err
	}
	j, ok := jobNamed(topic)
	if !ok {
		return usagef("help %s: there is no such job or command; use %s", topic, or(topics()))
	}
	if _, err := fmt.Fprintf(w, "pipeline --job=%s [flags]\n\nFlags, each also as SEED_NAME in the environment (--host-delay: SEED_HOST_DELAY) or in the --config file:\n", topic); err != nil {
		return err
	}
	var o Options
	all, f := newFlags(&o), flag.NewFlagSet("", flag.ContinueOnError)
	all.VisitAll(func(g *flag.Flag) {
		if !slices.Contains(j.foreign(), g.Name) {
			f.Var(g.Value, g.Name, g.Usage)
			f.Lookup(g.Name).DefValue = cmp.Or(j.defaults[g.Name], g.DefValue)
		}
	})
	f.SetOutput(w)
	f.PrintDefaults()
	_, err := fmt.Fprintln(w, "\nBeam's own flags (--endpoint, --environment_type, --parallelism, --project, --region, --staging_location, --worker_binary …) keep their names.")
	return err
}

// topics are what help knows of.
func topics() []string { return append(jobNames(), "runs", "dead-letters", "version") }

const usage = `pipeline [--job=%s] [flags]                  runs a job
pipeline runs [list|show|cancel|pause|resume] [ID]     looks at runs, and steers them
pipeline dead-letters [list|show|replay] [ID]          what waits for a person
pipeline version
pipeline help [%s]

`
