package polite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/robots"
)

// Robots is how a job fetches and reads robots.txt.
type Robots struct {
	Agent        string // the crawler's product token, or a User-Agent that begins with it
	Accept       string
	Timeout      time.Duration
	MaxBytes     int64 // RFC 9309 section 2.5 asks for 500 KiB at least
	MaxRedirects int
	// For returns the origin whose robots.txt applies to u; nil if none does. If For
	// is nil, it is u's own origin, as RFC 9309 demands.
	For func(u *url.URL) *url.URL
	// Retry is Policy.Retry for robots.txt. nil: no retries.
	Retry Retry
	// OnFailure decides what an answer other than 2xx means, or, with status 0, a
	// request without an answer. nil: Standard.
	OnFailure func(status int, kind web.Kind) Verdict
	// SlowGap is the minimum gap after AllowSlowly.
	SlowGap time.Duration
	// Reserves, when set, is called with each answer. Of what it returns an error keeps a URL from being
	// requested, also an invited one. Robots.txt itself is requested in any case.
	Reserves func(a RobotsAnswer, agent string) func(u *url.URL) error
}

// RobotsAge is how long the answer for a robots.txt is used (RFC 9309 section 2.4). Where robots.txt fails later, the
// rules that were read last hold until it can be read again.
const RobotsAge = 24 * time.Hour

// failureAge is how long a robots.txt that failed is not requested again, where AllowSlowly lets the client continue.
const failureAge = 5 * time.Minute

// Verdict is what a crawler may fetch from a host whose robots.txt it cannot read.
type Verdict int

// The verdicts.
const (
	Deny        Verdict = iota // nothing
	Allow                      // everything
	AllowSlowly                // everything that the rules read last allow, with gaps of at least Robots.SlowGap; the answer is not kept
)

// Standard is RFC 9309 sections 2.3.1.2 to 2.3.1.4: everything is allowed if there is
// no robots.txt or it is behind too many redirects; nothing is allowed if it cannot
// be reached.
func Standard(status int, kind web.Kind) Verdict {
	if status >= 300 && status < 500 && status != 429 || kind == web.KindRedirect {
		return Allow
	}
	return Deny
}

// RobotsAnswer is an answer for robots.txt as a Memory keeps it.
type RobotsAnswer struct {
	URL       string // that was requested
	FinalURL  string // after redirects; empty if there was no answer
	Status    int
	Kind      web.Kind    // why there was no answer
	Why       string      // the same as web.Error.Why
	Header    http.Header // of the answer; nil if it comes from Memory
	Body      []byte      // of a 2xx
	SHA256    string      // of Body as received, in hexadecimal; a Memory that keeps Text in its place keeps it
	Truncated bool
	FetchedAt time.Time
	Elapsed   time.Duration
}

// Text is the body as UTF-8, without a last line that is wrong where it is cut off: the text
// that the rules are read from, and that a Memory may keep in place of Body.
func (a RobotsAnswer) Text() string {
	if a.Truncated {
		return robots.Whole(robots.Text(a.Body))
	}
	return robots.Text(a.Body)
}

// Rules are the rules of a robots.txt for this crawler.
type Rules struct {
	RobotsAnswer
	File  *robots.File  // without rules if there is no robots.txt
	Delay time.Duration // Crawl-delay, 0 for none
	Slow  bool          // AllowSlowly
	Kept  bool          // the answer comes from Memory
	Agent string        // the crawler's name for this site

	reserves func(u *url.URL) error
}

// Check returns a *DisallowedError if the rules forbid u, or reserve it.
func (r *Rules) Check(u *url.URL) error {
	line, text, ok := r.File.Rule(r.Agent, u.String())
	if ok {
		return r.reserved(u)
	}
	return &DisallowedError{URL: u.String(), Line: line, Rule: untrusted.Line(text, maxRule)}
}

func (r *Rules) age() time.Duration {
	if r.Slow {
		return failureAge
	}
	return RobotsAge
}

func (r *Rules) reserved(u *url.URL) error {
	if r == nil || r.reserves == nil {
		return nil
	}
	if err := r.reserves(u); err != nil {
		return &DisallowedError{URL: u.String(), Reserved: err}
	}
	return nil
}

// invited is Allowed for a request that needs no rule of robots.txt, which is not fetched for it.
func (c *Client) invited(u *url.URL) error {
	if c.Policy.Robots.Reserves == nil { // do not wait for a robots.txt that is being fetched
		return nil
	}
	c.robotsMu.Lock()
	defer c.robotsMu.Unlock()
	return c.rules[origin(u)].reserved(u)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// maxRule is how many bytes of a robots.txt line an error shows.
const maxRule = 500

// Allowed checks u against the robots.txt that applies to it, and fetches it if
// needed. Its errors are those of Robots and *DisallowedError.
func (c *Client) Allowed(ctx context.Context, u *url.URL) error {
	r, err := c.Robots(ctx, u)
	if err != nil || r == nil {
		return err
	}
	return r.Check(u)
}

// Robots returns the rules for u, nil if no robots.txt applies to u. It fetches the
// robots.txt if it is not known or too old. Its errors are Get's except
// *DisallowedError. If the answer itself is the reason for an *AbandonedError, by its
// status, Retry-After or Crawl-delay, Robots returns the rules too.
func (c *Client) Robots(ctx context.Context, u *url.URL) (*Rules, error) {
	of := u
	if c.Policy.Robots.For != nil {
		if of = c.Policy.Robots.For(u); of == nil {
			return nil, nil
		}
	}
	c.robotsMu.Lock()
	defer c.robotsMu.Unlock()
	origin := origin(of)
	now := c.Pacer.now()
	if r := c.rules[origin]; r != nil && now.Sub(r.FetchedAt) < r.age() {
		return r, nil
	}
	kept, err := c.memory().Robots(ctx, origin, now)
	if err != nil {
		return nil, fmt.Errorf("reading the stored robots.txt of %s: %w", origin, err)
	}
	if kept != nil {
		kept.URL = origin + "/robots.txt"
		r := c.read(*kept, false)
		r.Kept = true
		return r, c.obey(ctx, origin, r)
	}
	if err := c.denied[origin]; err != nil {
		return nil, err
	}
	at := &url.URL{Scheme: of.Scheme, Host: of.Host, Path: "/robots.txt"}
	return c.fetchRobots(ctx, origin, at)
}

func (c *Client) fetchRobots(ctx context.Context, origin string, at *url.URL) (*Rules, error) {
	p := c.Policy.Robots
	resp, err := c.repeat(ctx, Request{URL: at.String(), Accept: p.Accept, Timeout: p.Timeout, MaxBytes: p.MaxBytes, MaxRedirects: p.MaxRedirects, Invited: true, robots: true,
		OnRetry: func(_ context.Context, a Attempt, _ time.Duration) error {
			if c.Log != nil {
				c.Log.Warn("robots_retry", "url", at.String(), "retries", a.Retries+1)
			}
			return nil
		}}, p.Retry)
	a := RobotsAnswer{URL: at.String(), FetchedAt: c.Pacer.now()}
	var failure *web.Error
	var abandoned *AbandonedError
	switch {
	case resp != nil:
		errors.As(err, &abandoned)
		a.FinalURL, a.Status, a.Header, a.Truncated, a.Elapsed = resp.FinalURL, resp.Status, resp.Header, resp.Truncated, resp.Elapsed
	case errors.As(err, &failure):
		a.Kind, a.Why = failure.Kind, untrusted.Line(failure.Why(), maxRule)
		if failure.Kind == web.KindRedirect || failure.Kind == web.KindBlocked {
			a.Status = failure.Status // of the last redirect that was followed
		}
	default:
		return nil, err
	}
	verdict := Allow
	if a.Status/100 == 2 {
		sum := sha256.Sum256(resp.Body)
		a.Body, a.SHA256 = resp.Body, hex.EncodeToString(sum[:])
	} else {
		judge := p.OnFailure
		if judge == nil {
			judge = Standard
		}
		status := a.Status
		if failure != nil {
			status = 0
		}
		verdict = judge(status, a.Kind)
	}
	if verdict != Allow && abandoned == nil {
		again, err := c.earlier(ctx, origin)
		if err != nil {
			return nil, err
		}
		if again != nil {
			again.FetchedAt, again.Slow = a.FetchedAt, verdict == AllowSlowly
			return again, c.obey(ctx, origin, again)
		}
	}
	if verdict == Deny && abandoned == nil {
		err := &RobotsError{URL: at.String(), Status: a.Status, Err: failure}
		if c.denied == nil {
			c.denied = map[string]error{}
		}
		c.denied[origin] = err // so that its other pages do not try robots.txt again
		return nil, err
	}
	r := c.read(a, verdict == AllowSlowly)
	if c.Log != nil {
		c.Log.Info("robots_fetched", "origin", origin, "status", a.Status, "crawl_delay_s", r.Delay.Seconds())
		if r.Slow {
			c.Log.Warn("robots_failed", "origin", origin, "status", a.Status, "least_gap_s", p.SlowGap.Seconds())
		}
	}
	if abandoned != nil {
		return r, abandoned
	}
	if !r.Slow {
		if err := c.memory().KeepRobots(ctx, origin, a); err != nil {
			return nil, fmt.Errorf("storing the robots.txt of %s: %w", origin, err)
		}
	}
	return r, c.obey(ctx, origin, r)
}

// earlier returns the rules that were read last before an origin's robots.txt failed, nil if none ever were.
func (c *Client) earlier(ctx context.Context, origin string) (*Rules, error) {
	if r := c.rules[origin]; r != nil && r.Status < 500 && r.Status != http.StatusTooManyRequests {
		again := *r
		return &again, nil
	}
	kept, err := c.memory().Robots(ctx, origin, time.Time{})
	if err != nil || kept == nil {
		return nil, err
	}
	kept.URL = origin + "/robots.txt"
	return c.read(*kept, false), nil
}

func (c *Client) read(a RobotsAnswer, slow bool) *Rules {
	r := &Rules{RobotsAnswer: a, File: robots.Parse(nil), Slow: slow, Agent: c.Policy.Robots.Agent}
	if u, err := url.Parse(a.URL); err == nil {
		r.Agent = c.Agent(u)
	}
	if a.Status/100 == 2 {
		at, _ := url.Parse(cmp.Or(a.FinalURL, a.URL)) // nil only for a kept answer that is damaged
		r.File = robots.ParseAt([]byte(a.Text()), at)
		r.Delay, _ = r.File.CrawlDelay(r.Agent)
	}
	if reserves := c.Policy.Robots.Reserves; reserves != nil {
		r.reserves = reserves(a, r.Agent)
	}
	return r
}

// obey applies an origin's rules: it sets the site's delay or abandons the site. Both
// apply to the site that robots.txt was requested from and to the one that answered,
// if it was redirected.
func (c *Client) obey(ctx context.Context, origin string, r *Rules) error {
	if c.rules == nil {
		c.rules = map[string]*Rules{}
	}
	c.rules[origin] = r
	delay := r.Delay
	if r.Slow {
		delay = max(delay, c.Policy.Robots.SlowGap)
	}
	var abandoned *AbandonedError
	for _, at := range []string{r.URL, r.FinalURL} {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" {
			continue
		}
		name := web.Site(u)
		most := c.maxCrawlDelay(c.Pacer.host(name))
		if most > 0 && delay > most {
			e := c.abandon(&AbandonedError{Site: name, URL: r.URL, CrawlDelay: delay})
			if abandoned == nil {
				abandoned = e
			}
		}
		if c.Policy.NoDelay {
			continue
		}
		if err := c.remember(ctx, name); err != nil { // else a longer pause would be overwritten
			return err
		}
		next := c.Pacer.setDelay(name, origin, delay, cmp.Or(most, delay))
		if delay <= 0 {
			continue
		}
		if err := c.memory().Paused(ctx, name, next); err != nil {
			return fmt.Errorf("keeping the Crawl-delay of %s: %w", name, err)
		}
	}
	if abandoned != nil {
		return abandoned
	}
	return nil
}
