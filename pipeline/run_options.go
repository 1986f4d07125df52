package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// RunOptions are the options that every job may use. A Job has the values of its
// own flags.
type RunOptions struct {
	Job                      string // its name
	Store, DB                string // DB: only for jobs that keep their state in a database
	Roots                    store.Roots
	Country, Category, Date  string
	Force                    bool
	URL                      string // one page in place of all that is configured
	Lanes, Concurrency       int
	Limit                    int    // items that a run begins; 0: no limit
	Share                    string // of the domains, such as 1%; empty: all
	Rate                     float64
	HostDelay, MaxCrawlDelay time.Duration
	Purpose                  string // see For
	ServerDelay              time.Duration
	AdaptiveDelay            float64
	CDNRate                  float64
	Turns                    string       // a file, or see polite.Pacer.Share
	Politeness               string       // a file
	Hosts                    polite.Hosts // what it says; see ReadPoliteness
	BotText, Contact         string
	Bot                      botauth.Bot // what they say; see ReadBot
	Web, ConnectTo           string
	AllowPrivate             bool
	UnsandboxedBrowser       bool // of jobs that render pages
	Images                   bool // of jobs that can keep the images of pages
	LeaseTTL                 time.Duration
	LogFormat, LogLevel      string
	Watch                    time.Duration
	Streaming                bool
	From                     string // the address of a queue in place of the bucket's listing
	Events                   string // the address of a queue or an endpoint that gets events of what is stored
	WorkersElsewhere         bool   // the workers are not in this process
	LanesByInput             bool   // no number of lanes was given: Accept may raise it; see seedOptions.raiseLanes
}

// Level is the least severe level that is logged.
func (c *RunOptions) Level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(c.LogLevel)) // checked with the other options
	return l
}

// ReadBot reads who crawls, and with here, where this process is the worker, the key.
func (c *RunOptions) ReadBot(here bool) error {
	c.Bot = botauth.Bot{}
	err := yamltext.Strict([]byte(c.BotText), &c.Bot)
	if err == nil {
		c.Bot.Contact = cmp.Or(c.Contact, c.Bot.Contact)
		err = c.Bot.Check()
	}
	if err == nil && here {
		_, err = botauth.Open(c.Bot.Signing())
	}
	if err != nil {
		return usage.Errorf("bot: %w", err)
	}
	return nil
}

// WebConfig is the HTTP client's configuration, before a job adapts it. own is the job's own User-Agent, "" for the program's.
func (c *RunOptions) WebConfig(own string) web.Config {
	return web.Config{UserAgent: c.Bot.UserAgent(cmp.Or(own, web.DefaultUserAgent)), From: c.Bot.Mail(), Sign: c.Bot.Signing(),
		Concurrency: c.Concurrency, Rate: c.Rate, ConnectTo: c.ConnectTo, AllowPrivate: c.AllowPrivate}
}

// PoliteConfig is what the jobs' policies take from the options.
func (c *RunOptions) PoliteConfig() polite.Config {
	return polite.Config{HostDelay: c.HostDelay, MaxPause: c.MaxCrawlDelay, Turns: c.Turns, Hosts: c.Hosts,
		Servers: polite.Servers{Delay: c.ServerDelay, Rate: c.CDNRate}, Adapt: c.AdaptiveDelay}
}

// asking is for requests that no run makes, to the web of cfg.
func (c *RunOptions) asking(cfg web.Config) (*web.Client, *polite.Pacer, error) {
	p := &polite.Pacer{Clock: polite.SystemClock, Hosts: c.Hosts}
	if _, err := p.Share(c.Turns, cfg.ConnectTo); err != nil { // a run logs why it is alone
		return nil, nil, err
	}
	client, err := web.New(cfg)
	return client, p, err
}

// Filtered reports whether the run reads only a part of the bucket.
func (c *RunOptions) Filtered() bool { return c.Country != "" || c.Category != "" || c.Date != "" }

// wants reports whether a partition passes the filters.
func (c *RunOptions) wants(p hive.Partition) bool {
	return (c.Country == "" || p.Country == c.Country) && (c.Category == "" || p.Category == c.Category) && (c.Date == "" || p.Date == c.Date)
}

// filterHash identifies the part of the bucket that a run reads, so that only the
// same command resumes a forced run that was killed.
func (c *RunOptions) filterHash() string {
	text := c.Country + "\x00" + c.Category + "\x00" + c.Date
	if c.Share != "" {
		text += "\x00" + c.Share
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// openDB opens a job's database for what is done in place of a run, and brings its
// tables up to date.
func openDB(ctx context.Context, dsn string, migrate func(context.Context, *db.DB) error) (*db.DB, error) {
	d, err := db.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// For returns what the pages of the run are for, "" for none.
func (c RunOptions) For() rights.Purpose {
	if c.Purpose == "none" {
		return ""
	}
	return rights.Purpose(c.Purpose)
}
