package pipeline

import (
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	countryForm  = regexp.MustCompile(`^[a-z]{2}$`)
	categoryForm = regexp.MustCompile(`^[a-z0-9_-]+$`)
)

// defaultStore is where the sample bucket is copied to.
const defaultStore = "out"

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
	// Empty, from a script's unset variable, would mean the sample, or a whole run.
	for name, advice := range map[string]string{"store": "name a bucket, or leave it out for the sample", "until": "use list or extract, or leave it out"} {
		if slices.Contains(line, name) && o.flags.Lookup(name).Value.String() == "" {
			return usagef("--%s= is empty; %s", name, advice)
		}
	}
	if err := o.place(); err != nil {
		return err
	}
	if err := o.checkRunner(); err != nil {
		return err
	}
	if err := o.checkWatch(); err != nil {
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
	case o.Store == "" && o.Env != "" && !strings.Contains(o.DB, "{env}"):
		return usagef("--env=%s: without --store there is no {env} to fill; add --store=r2://newsfork-datasets-{env}", o.Env)
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
		return usagef("--db: write sqlite:///path, or postgres:// with user@host/database after it")
	case lite:
	case err != nil:
		return usagef("--db is no URL; write postgres://user@host/database")
	}
	if !o.elsewhere() || lite && o.SharedFilesystem && o.Runner != "dataflow" {
		return nil
	}
	if lite {
		return usagef("--db=%s is seen by this machine only, and %s has workers elsewhere; use postgres://", o.DB, o.Runner)
	}
	if _, password := u.User.Password(); password && o.DB != os.Getenv("SEED_DB") {
		return usagef("--db holds a password, and %s shows options to whoever may see the job; leave it out, and set SEED_DB or PGPASSFILE in the workers' environment", o.Runner)
	} else if password { // the workers have their own
		u.User = url.User(u.User.Username())
		o.DB = u.String()
	}
	return nil
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

func localStore(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return !ok || scheme == "file" || scheme == "mem"
}
