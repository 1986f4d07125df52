package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// RobotsAnswer is what a site's robots.txt says about one URL.
type RobotsAnswer struct {
	URL     string `json:"url"`
	Agent   string `json:"agent"`
	Allowed bool   `json:"allowed"`
	// Line and Rule are the number and text of the line that decides; 0 and "": no
	// line applies.
	Line int    `json:"line,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Group is the product token of the group that holds for the agent: its own, "*",
	// or "" for none. GroupLines are its user-agent lines.
	Group      string `json:"group,omitempty"`
	GroupLines []int  `json:"group_lines,omitempty"`

	CrawlDelay float64 `json:"crawl_delay_s"`
	// TooLong: the Crawl-delay is longer than the job waits, so a run asks the host for
	// nothing but robots.txt.
	TooLong   bool     `json:"crawl_delay_too_long,omitempty"`
	Sitemaps  []string `json:"sitemaps"`
	RobotsURL string   `json:"robots_url"`
	FinalURL  string   `json:"final_url,omitempty"` // after redirects
	Truncated bool     `json:"truncated,omitempty"` // only its beginning was read
	Status    int      `json:"status,omitempty"`    // 0: no answer that counts, such as too many redirects
	// Politeness is what the politeness file says about the host.
	Politeness []polite.Decision `json:"politeness,omitempty"`
	// Rights is what robots.txt and its headers say about the use of the page: a record of preferences.
	Rights rights.Rights `json:"rights"`
	// Reserved is why --purpose keeps the page from being requested.
	Reserved *rights.Decision `json:"reserved,omitempty"`
}

// maxRobotsLine is how many bytes of a line of robots.txt are shown.
const maxRobotsLine = 500

// AskRobots fetches the robots.txt of a URL's host, and nothing else, and reports what
// it says about the URL to agent. "" is the job's own name. The request is sent under
// the job's own User-Agent in any case. It fails where robots.txt cannot be fetched.
func (j Job) AskRobots(ctx context.Context, c RunOptions, agent, raw string) (a RobotsAnswer, err error) {
	given, err := url.Parse(raw)
	if err != nil || given.Host == "" {
		return a, usage.Errorf("%q is no URL of a web page; write it with its scheme, such as https://example.org/page", raw)
	}
	u, err := canonical.Address(nil, raw, nil)
	if err != nil {
		return a, usage.Errorf("%w; write an http or https URL, such as https://example.org/page", err)
	}
	u.RawQuery = given.RawQuery // rules about tracking parameters are common
	cfg := c.WebConfig(j.Agent)
	site, decided := c.Hosts.For(web.Site(u))
	agent = cmp.Or(agent, site.UserAgent, cfg.UserAgent)
	end, err := j.StartDemo(c, &cfg)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, end()) }()
	client, pacer, err := c.asking(cfg)
	if err != nil {
		return a, err
	}
	defer client.Close()
	ask := &polite.Client{Web: client, Pacer: pacer, Policy: robotsPolicy(c, agent)}
	defer ask.Close()
	rules, err := ask.Robots(ctx, u)
	var abandoned *polite.AbandonedError // a long Crawl-delay is a part of the answer
	if errors.As(err, &abandoned) && abandoned.Hours != "" {
		return a, err
	}
	if err != nil && (rules == nil || !errors.As(err, &abandoned) || abandoned.CrawlDelay == 0) {
		return a, fmt.Errorf("asking for %s: %w; %s", u, err, whatNext(err))
	}
	delay, _ := rules.File.CrawlDelay(agent)
	a = RobotsAnswer{URL: u.String(), Agent: agent, CrawlDelay: delay.Seconds(), Politeness: decided,
		RobotsURL: rules.URL, Status: rules.Status, Truncated: rules.Truncated,
		Sitemaps: slices.Concat([]string{}, rules.File.Sitemaps())}
	if rules.FinalURL != rules.URL {
		a.FinalURL = rules.FinalURL
	}
	longest := cmp.Or(site.LongestDelay, c.PoliteConfig().Longest())
	a.TooLong = delay > longest && (site.LongestDelay > 0 || j.Takes("max-crawl-delay"))
	a.Line, a.Rule, a.Allowed = rules.File.Rule(agent, u.String())
	a.Rule = untrusted.Line(a.Rule, maxRobotsLine)
	a.Group, a.GroupLines = rules.File.Group(agent)
	rules.Agent = agent
	l := (&permit.Gate{}).Ledger(rules)
	a.Rights, a.Reserved = l.Rights(a.URL), l.Reserves(c.For(), a.URL)
	return a, nil
}

// whatNext says what to do where robots.txt could not be fetched.
func whatNext(err error) string {
	var failed *polite.RobotsError
	if errors.As(err, &failed) && failed.Err != nil && failed.Err.Kind == web.KindBlocked {
		return "no job requests such an address"
	}
	return "while a site does not answer for its robots.txt, no job fetches its pages (docs: slowly, after a 5xx): try again later"
}

// robotsPolicy is how a single robots.txt is asked for: as RFC 9309 says, with one
// retry.
func robotsPolicy(c RunOptions, agent string) polite.Policy {
	const maxBytes, timeout = 1 << 20, 15 * time.Second
	pause := c.PoliteConfig()
	return polite.Policy{
		Gap:           polite.Range{Min: pause.HostDelay, Max: pause.HostDelay},
		MaxCrawlDelay: pause.Longest(), MaxRetryAfter: pause.Longest(),
		Robots: polite.Robots{Agent: agent, Accept: "text/plain, */*;q=0.8", Timeout: timeout, MaxBytes: maxBytes, MaxRedirects: 5,
			Retry: func(a polite.Attempt) (time.Duration, bool) {
				s := a.Status()
				return pause.Backoff(a.Retries), a.Retries == 0 && (s == 0 && a.Kind() != web.KindRedirect && a.Kind() != web.KindBlocked || s == 429 || s >= 500)
			}},
	}
}
