package server

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for schedules' time zones: a minimal image has no zone files

	"github.com/goccy/go-yaml"

	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/schedule"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// DefaultListen is the default address that the server listens on.
const DefaultListen = "127.0.0.1:8787"

// Config is the server's YAML file. Secrets (the token, the webhook) are in
// the environment only.
type Config struct {
	Listen    string                    `yaml:"listen"`
	PublicURL string                    `yaml:"public_url"` // of the pages, for links in messages
	Flags     map[string]any            `yaml:"flags"`      // of every run, by the flags' names
	Schedules []schedule.Schedule       `yaml:"schedules"`
	Alerts    map[string]map[string]any `yaml:"alerts"` // thresholds by job and rule
	Email     alarm.Email               `yaml:"email"`
	Reports   Reports                   `yaml:"reports"`
	Retention Retention                 `yaml:"retention"`
	Bot       *botauth.Bot              `yaml:"bot"` // of every run too; nil: the page about the crawlers is not served
	jobs      known.Jobs
	flags     map[string]string           // Flags as text
	limits    map[string]alert.Thresholds // Alerts over the defaults, by job
	runFlags  map[string][]string         // flags for each run of a job, which give Alerts to the run's own report
}

// Reports says when a day and a week begin.
type Reports struct {
	TimeZone string `yaml:"timezone"` // IANA name; UTC when empty
	zone     *time.Location
}

// Retention says how long runs and dead letters are kept.
type Retention struct {
	Days *int `yaml:"days"` // after a run's end or a dead letter's last failure; nil for defaultRetention, 0 for ever
}

// defaultRetention is in days.
const defaultRetention = 90

// before is the time before which runs and dead letters are removed; false if none
// are.
func (r Retention) before(now time.Time) (time.Time, bool) {
	days := defaultRetention
	if r.Days != nil {
		days = *r.Days
	}
	return now.AddDate(0, 0, -days), days > 0
}

// ReadConfig reads the YAML file at path; "" means the defaults.
func ReadConfig(path string, known []option.Job) (Config, error) {
	if path == "" {
		return ParseConfig(nil, known)
	}
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading --config: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err = errors.Join(err, f.Close()); err != nil {
		return Config{}, fmt.Errorf("reading --config: %w", err)
	}
	c, err := ParseConfig(b, known)
	if err != nil {
		return c, fmt.Errorf("--config=%s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads and checks the text of a configuration file; an empty one means
// the defaults.
func ParseConfig(b []byte, jobs []option.Job) (Config, error) {
	c := Config{jobs: known.JobsOf(jobs)}
	if err := yamltext.Strict(b, &c); err != nil {
		return c, fmt.Errorf("reading the server's configuration: %w", err)
	}
	return c, c.check()
}

// FlagTexts are the flags of every run, with their values as text.
func (c *Config) FlagTexts() map[string]string { return c.flags }

func (c *Config) check() error {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	if u, err := url.Parse(c.PublicURL); c.PublicURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.RawQuery+u.Fragment != "" || u.User != nil) {
		return fmt.Errorf("public_url: write the address of these pages, such as https://seed.example.org")
	}
	c.flags = map[string]string{}
	for name, v := range c.Flags {
		text, err := known.Scalar(v)
		if err != nil {
			return fmt.Errorf("flags: %s %w", name, err)
		}
		c.flags[name] = text
	}
	var err error
	if c.Reports.zone, err = known.Zone(c.Reports.TimeZone); err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	if c.Bot != nil {
		text, err := yaml.Marshal(c.Bot)
		c.flags["bot"] = string(text)
		if err = errors.Join(err, c.Bot.CheckPage()); err != nil {
			return fmt.Errorf("bot: %w", err)
		}
	}
	if err := c.Email.Check(); err != nil {
		return fmt.Errorf("email: %w", err)
	}
	if d := c.Retention.Days; d != nil && (*d < 0 || *d > 36500) {
		return fmt.Errorf("retention: days: use 1 to 36500, or 0 to keep everything")
	}
	names := map[string]bool{}
	for i := range c.Schedules {
		s := &c.Schedules[i]
		if err := s.Check(c.jobs.Started()); err != nil {
			return fmt.Errorf("schedules: %q: %w", s.Name, err)
		}
		if names[s.Name] {
			return fmt.Errorf("schedules: two are named %q; names must be unique", s.Name)
		}
		names[s.Name] = true
	}
	c.limits, c.runFlags = map[string]alert.Thresholds{}, map[string][]string{}
	for _, j := range c.jobs.Started() {
		limits, given, err := thresholds(j.Alerts, c.Alerts[j.Name])
		if err != nil {
			return fmt.Errorf("alerts: %s: %w", j.Name, err)
		}
		c.limits[j.Name] = limits
		if j.OwnAlerts && given != "" {
			c.runFlags[j.Name] = []string{"--alerts=" + given}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Alerts)) {
		if _, ok := c.jobs.Started().Named(name); !ok {
			return fmt.Errorf("alerts: there is no job %q", name)
		}
	}
	return nil
}

// minSamples is how many requests or items a rate needs before it can raise an alert.
const minSamples = 20

// thresholds are the default thresholds of rules, replaced by those in set. given are
// the replaced ones that a run's own report has a rule for, as a value of --alerts.
func thresholds(rules []string, set map[string]any) (limits alert.Thresholds, given string, err error) {
	limits = alert.Defaults(rules...)
	limits[alert.MinimumSamples] = minSamples
	var forRun []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] == nil {
			continue // named without a value: the default
		}
		text, err := known.Scalar(set[name])
		if err != nil {
			return nil, "", fmt.Errorf("%s %w", name, err)
		}
		if err := limits.Set(name, text); err != nil {
			return nil, "", err
		}
		if slices.Contains(alert.PageRules(), name) {
			forRun = append(forRun, name+"="+text)
		}
	}
	return limits, strings.Join(forRun, ","), nil
}

// loopback reports whether an address can be reached from this machine only.
func loopback(listen string) (bool, error) {
	host, port, err := net.SplitHostPort(listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return false, fmt.Errorf("--listen=%s: write host:port, such as %s", listen, DefaultListen)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
