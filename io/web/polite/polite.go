// Package polite sends a job's requests to hosts. All requests of all jobs go
// through it. It obeys robots.txt, pauses between two requests to a site, waits when
// a host asks for a pause, retries failures that may pass, checks redirects, and
// abandons a host that asks for a longer pause than a run waits for.
//
// A Policy says how a job treats hosts. A Memory keeps what must outlive the
// process. A Pacer knows when a site may be sent its next request; all clients of a
// process that may use the same sites share one. The requests themselves are sent
// by a web.Client, with the limits of the process and the address guard.
package polite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// Policy is how a job treats hosts.
type Policy struct {
	// Gap is the pause from the end of one request to a site to the start of the
	// next. A Crawl-delay can lengthen it.
	Gap Range
	// MaxCrawlDelay is the longest Crawl-delay that is obeyed; a site that asks for
	// more is abandoned. 0: any is obeyed.
	MaxCrawlDelay time.Duration
	// MaxRetryAfter is the longest pause that is waited for when an answer asks for
	// it. A site that asks for a longer one is abandoned until the pause is over.
	// 0: defaultMaxPause.
	MaxRetryAfter time.Duration
	// PauseOn reports whether Retry-After is obeyed in an answer with this status.
	// nil: 429 and 503.
	PauseOn func(status int) bool
	// PauseOf, when set, takes the place of PauseOn and Retry-After: it returns the pause
	// that an answer of any status asks for, below 0 for none.
	PauseOf func(r *web.Response, now time.Time) time.Duration
	// Abandon reports whether a site is abandoned after this status. nil: never.
	Abandon func(status int) bool
	// Retry decides which requests are retried. nil: none.
	Retry  Retry
	Robots Robots
	// WaitForBudget, when set, is called when Memory says that the site's budget is
	// used up until the given time. It waits by calling wait once or more often, and
	// returns wait's error, if any. nil: one wait.
	WaitForBudget func(ctx context.Context, site string, until time.Time, wait func(time.Duration) error) error
	// NoDelay is only for simulated sites: no gaps, and a thousandth of other pauses.
	NoDelay bool
}

// Control is how a run is paused and stopped.
type Control interface {
	// Proceed waits while the run is paused. It returns false when the run stops.
	Proceed(context.Context) bool
	// Stopping is closed when the run stops: no new request may be sent.
	Stopping() context.Context
}

// Memory keeps what must outlive the process. A site is named by web.Site, an origin
// is a scheme and a host. None is a Memory that keeps nothing.
type Memory interface {
	// Next returns when the site may be sent its next request, zero if unknown.
	Next(ctx context.Context, site string) (time.Time, error)
	// Requested is called before each request and counts it. next is when the site
	// may be sent another request if the process dies before this one ends. When the
	// budget is used up, nothing is counted: wait, over 0, is the time until the
	// budget allows a request, and ErrBudget means that it allows none in this run.
	Requested(ctx context.Context, site string, now, next time.Time) (wait time.Duration, err error)
	// Paused keeps that no process may send the site a request before until: after a
	// pause, or after a gap that robots.txt lengthened.
	Paused(ctx context.Context, site string, until time.Time) error
	// Robots returns the answer kept for an origin's robots.txt, nil if there is none or it is
	// older than RobotsAge. With a zero now it is never too old: robots.txt fails.
	Robots(ctx context.Context, origin string, now time.Time) (*RobotsAnswer, error)
	// KeepRobots is called with each answer that is not a failure and may keep it.
	KeepRobots(ctx context.Context, origin string, a RobotsAnswer) error
}

// None is a Memory that keeps nothing. Memories that keep only a part embed it.
type None struct{}

// Next knows no site.
func (None) Next(context.Context, string) (time.Time, error) { return time.Time{}, nil }

// Requested always allows the request.
func (None) Requested(context.Context, string, time.Time, time.Time) (time.Duration, error) {
	return 0, nil
}

// Paused keeps nothing.
func (None) Paused(context.Context, string, time.Time) error { return nil }

// Robots knows no answer.
func (None) Robots(context.Context, string, time.Time) (*RobotsAnswer, error) { return nil, nil }

// KeepRobots keeps nothing.
func (None) KeepRobots(context.Context, string, RobotsAnswer) error { return nil }

// Client sends requests by one policy to the hosts of one visit: of a provider, of a
// catalog site, of a domain. It remembers their robots.txt and which of them it has
// abandoned, and keeps connections to them until Close, which ends the visit. The
// gaps, Crawl-delays and pauses that it learns apply to all clients of its Pacer. It
// is safe for concurrent use once its fields are set.
type Client struct {
	Web     *web.Client
	Pacer   *Pacer
	Policy  Policy
	Memory  Memory       // nil: None
	Control Control      // nil: nothing stops it but a context
	Log     *slog.Logger // for events about robots.txt; nil: none

	conns web.Conns

	mu        sync.Mutex
	abandoned map[string]*AbandonedError // by site
	known     map[string]bool            // sites whose Memory.Next was read
	closed    map[string]bool            // sites that Pacer.Closed was told of

	robotsMu sync.Mutex // one robots.txt at a time
	rules    map[string]*Rules
	denied   map[string]error // by origin: why its robots.txt could not be fetched, if the policy then denies everything
}

// Close closes the client's connections.
func (c *Client) Close() { c.conns.Close() }

// Request is one GET with its redirects and retries, or, with a Body, one POST.
type Request struct {
	URL          string
	Accept       string
	Header       http.Header
	Body         []byte        // as in web.Request
	Timeout      time.Duration // for one try, as in web.Request
	MaxBytes     int64
	MaxRedirects int // as in web.Request: below 0 Get returns the redirect itself
	// Scope, when set, is called before each redirect is followed. Its error ends
	// the request with web.KindBlocked and is wrapped in Get's error.
	Scope func(u *url.URL) error
	// Invited sends the request without checking robots.txt: for robots.txt itself
	// and for the sitemaps that it names.
	Invited bool
	// Parallel sends the request without waiting for the site's turn and gap, for
	// jobs whose configuration allows it. Redirects and retries wait.
	Parallel bool
	// Once is a request that is not retried.
	Once bool
	// Probe asks for something that need not be there: an answer 404 or 410 is no error.
	Probe bool
	// Retries is how many retries a killed process has already made.
	Retries int
	// OnRetry, when set, is called before the pause that precedes a retry, even if
	// the site is then abandoned because of that pause. Its error ends the request.
	OnRetry func(ctx context.Context, a Attempt, wait time.Duration) error

	robots bool // for robots.txt
}

// Get fetches r.URL when the site may be sent a request. It returns an answer of
// any status. Its error is one of these:
//
//   - *DisallowedError: robots.txt forbids r.URL. (If it forbids the target of a
//     redirect, the error is wrapped in a *web.Error of web.KindBlocked.)
//   - *AbandonedError: the site is sent no more requests. If the answer to this
//     request is the reason, Get returns the answer too.
//   - *RobotsError: robots.txt could not be fetched, and then the policy denies everything.
//   - ErrStopped, ErrBudget
//   - *web.Error: there is no answer
//   - the errors of ctx, of Memory, of web.Client.Allow and of OnRetry
func (c *Client) Get(ctx context.Context, r Request) (*web.Response, error) {
	if u, err := url.Parse(r.URL); err == nil { // the web client reports a bad URL
		if err := c.may(ctx, u, r); err != nil {
			return nil, err
		}
	}
	if r.Once {
		return c.repeat(ctx, r, nil)
	}
	return c.repeat(ctx, r, c.Policy.Retry)
}

// may checks u, of a request or its redirect, against robots.txt.
func (c *Client) may(ctx context.Context, u *url.URL, r Request) error {
	switch {
	case r.robots:
		return nil
	case r.Invited:
		return c.invited(u)
	}
	return c.Allowed(ctx, u)
}

// repeat sends a request until it has an answer that is final.
func (c *Client) repeat(ctx context.Context, r Request, retry Retry) (*web.Response, error) {
	for retries := r.Retries; ; retries++ {
		t, err := c.try(ctx, r)
		var failure *web.Error
		if err != nil && !errors.As(err, &failure) {
			return nil, err
		}
		if t.at == nil {
			c.Web.Failed(failure)
			return nil, failure
		}
		a := Attempt{Retries: retries, RetryAfter: t.retryAfter, Response: t.resp, Failure: failure}
		if failure == nil && c.Policy.Abandon != nil && c.Policy.Abandon(t.resp.Status) {
			if _, err := c.pause(ctx, t.at, max(t.retryAfter, 0), a); err != nil {
				return nil, err
			}
			return t.resp, c.abandon(&AbandonedError{Site: web.Site(t.at), URL: t.at.String(), Status: t.resp.Status, Pause: max(t.retryAfter, 0)})
		}
		var wait time.Duration
		again := false
		if retry != nil {
			wait, again = retry(a)
		}
		if deadline, ok := ctx.Deadline(); ok && again && time.Until(deadline) < c.scaled(max(wait, a.RetryAfter)) {
			again = false
		}
		if again && r.OnRetry != nil {
			if err := r.OnRetry(ctx, a, wait); err != nil {
				return nil, err
			}
		}
		pause := max(a.RetryAfter, 0)
		if again {
			pause = max(pause, wait)
		}
		abandoned, perr := c.pause(ctx, t.at, pause, a)
		switch {
		case perr != nil:
			return nil, perr
		case abandoned != nil:
			return t.resp, abandoned
		case !again && failure != nil:
			c.Web.Failed(failure)
			return nil, failure
		case !again:
			if r.Probe && (t.resp.Status == http.StatusNotFound || t.resp.Status == http.StatusGone) {
				c.Web.Absent()
			}
			return t.resp, nil
		}
		c.Web.Retried()
		r.Parallel = false
	}
}

// try is the result of sending a request once.
type try struct {
	resp       *web.Response
	at         *url.URL      // the last one requested: r.URL, or where the redirects led
	retryAfter time.Duration // as Attempt.RetryAfter
}

// try sends a request once. If the run stops before the request is sent, it is not
// sent; a request that was sent is not interrupted.
func (c *Client) try(ctx context.Context, r Request) (try, error) {
	t := try{retryAfter: -1}
	t.at, _ = url.Parse(r.URL) // nil: the web client refuses the URL
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := func() bool { return true }
	listening := heard // ends the listening for a stop; false: it came
	defer func() { listening() }()
	var callback error // of the callbacks below, when it is not a failure of the exchange
	hop := 0
	var at *place
	resp, err := c.Web.Try(within, web.Request{URL: r.URL, Accept: r.Accept, Header: r.Header, Body: r.Body, Timeout: r.Timeout, MaxBytes: r.MaxBytes,
		MaxRedirects: r.MaxRedirects, Conns: &c.conns, Agent: c.agent,
		Allow: func(u *url.URL) error {
			if r.Scope != nil {
				if err := r.Scope(u); err != nil {
					return err
				}
			}
			err := c.may(ctx, u, r)
			var no *DisallowedError
			if err != nil && !errors.As(err, &no) {
				callback = err
			}
			return err
		},
		Turn: func(ctx context.Context, u *url.URL, server func(context.Context) netip.Addr) (func(*web.Response, time.Duration), error) {
			t.at = u
			hop++
			if c.Control != nil {
				listening = context.AfterFunc(c.Control.Stopping(), func() { cancel(ErrStopped) })
			}
			this := r
			this.Parallel = r.Parallel && hop == 1
			var (
				end func(*web.Response, time.Duration) time.Duration
				err error
			)
			if at, end, err = c.turn(ctx, u, this, server); err != nil {
				callback = err
				return nil, err
			}
			return func(resp *web.Response, took time.Duration) { t.retryAfter = end(resp, took) }, nil
		},
		Ready: func() bool {
			if c.Control != nil && (!c.Control.Proceed(within) || !listening()) {
				cancel(ErrStopped)
			}
			listening = heard
			at.lost = !at.kept() || !at.s.host.Hours.open(c.Pacer.now())
			return !at.lost
		},
		Still: func() bool { return at.kept() }})
	t.resp = resp
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return t, fmt.Errorf("fetching %s: %w", r.URL, ctx.Err())
	case callback != nil:
		return t, callback
	case errors.Is(context.Cause(within), ErrStopped):
		return t, ErrStopped
	}
	return t, err
}

// abandon remembers that this client sends a site no more requests.
func (c *Client) abandon(e *AbandonedError) *AbandonedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abandoned == nil {
		c.abandoned = map[string]*AbandonedError{}
	}
	c.abandoned[e.Site] = e
	return e
}

// Abandoned returns why this client sends the site of u no more requests, nil if it
// still does. A site that asked for a long pause, or is outside its hours in Pacer.Hosts,
// is abandoned until the rest of that time is short enough to wait for.
func (c *Client) Abandoned(u *url.URL) *AbandonedError {
	site := web.Site(u)
	c.mu.Lock()
	e := c.abandoned[site]
	c.mu.Unlock()
	if e != nil {
		return e
	}
	h, by := c.Pacer.Hosts.For(site)
	now, most := c.Pacer.now(), c.maxRetryAfter(h)
	if until := c.Pacer.Paused(site); until.Sub(now) > most {
		return &AbandonedError{Site: site, Until: until}
	}
	until := h.Hours.opens(now)
	if until.Sub(now) <= most {
		return nil
	}
	e = &AbandonedError{Site: site, Until: until, Hours: h.Hours.text, Pattern: decidedBy(by, "hours")}
	c.tellClosed(e)
	return e
}

func (c *Client) memory() Memory {
	if c.Memory == nil {
		return None{}
	}
	return c.Memory
}

func (c *Client) pausesOn(status int) bool {
	if c.Policy.PauseOn != nil {
		return c.Policy.PauseOn(status)
	}
	return status == 429 || status == 503
}

// asksFor is the pause that an answer asks for, below 0 for none.
func (c *Client) asksFor(r *web.Response, now time.Time) time.Duration {
	switch {
	case r == nil:
	case c.Policy.PauseOf != nil:
		return c.Policy.PauseOf(r, now)
	case c.pausesOn(r.Status) || r.Redirects(): // RFC 9110 section 10.2.3
		if d, ok := web.RetryAfter(r.Header, now); ok {
			return d
		}
	}
	return -1
}

// scaled is how long a pause of d really takes.
func (c *Client) scaled(d time.Duration) time.Duration {
	if c.Policy.NoDelay {
		return d / 1000
	}
	return d
}
