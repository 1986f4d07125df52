// Package polite asks hosts on behalf of a job. It is the one way from a job to
// the web: it obeys robots.txt, pauses between two requests to a site, waits when
// a host asks for it, repeats what may pass, checks where redirects lead, and
// abandons a host that asks for more time than a run has.
//
// What the jobs do differently is a Policy; what must outlive the process is a
// Memory. When a site may be asked next is kept in a Pacer, which all clients of
// a process share that may ask the same sites. Underneath is a web.Client: one
// exchange, with its limits of the process and its address guard.
package polite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// DefaultMaxRetryAfter stands for a zero Policy.MaxRetryAfter.
const DefaultMaxRetryAfter = web.DefaultMaxCrawlDelay

// Policy is how a job treats hosts.
type Policy struct {
	// Gap is the pause from the end of one request to a site to the start of the
	// next. A Crawl-delay can lengthen it.
	Gap Range
	// MaxCrawlDelay is the longest Crawl-delay that is obeyed; a site that asks for
	// more is abandoned. 0: any is obeyed.
	MaxCrawlDelay time.Duration
	// MaxRetryAfter is the longest pause that is waited for when an answer asks for
	// it; past it the site is abandoned until then. 0: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// PauseOn says in answers of which statuses a Retry-After is obeyed. nil: 429
	// and 503.
	PauseOn func(status int) bool
	// Abandon says after which statuses nothing more is asked of a site. nil: none.
	Abandon func(status int) bool
	// Retry says what is tried once more. nil: nothing.
	Retry  Retry
	Robots Robots
	// WaitForBudget, when set, is called where Memory says that the site must wait
	// until then for its budget. It waits by calling wait once or often, and ends
	// with wait's error, if any. nil: one wait.
	WaitForBudget func(ctx context.Context, site string, until time.Time, wait func(time.Duration) error) error
	// NoDelay is for simulated sites alone: no gaps, and other pauses a thousandth.
	NoDelay bool
}

// Control is how a run is paused and stopped.
type Control interface {
	// Proceed waits while the run is paused and says whether to go on.
	Proceed(context.Context) bool
	// Stopping is closed when nothing new may begin.
	Stopping() <-chan struct{}
}

// Memory keeps what must outlive the process. The site is web.Site's, the origin
// a scheme and a host. None is the one that keeps nothing.
type Memory interface {
	// Next is when the site may be asked, zero where that is not known.
	Next(ctx context.Context, site string) (time.Time, error)
	// Requested is called before each request and counts it. next is when the site
	// may be asked again should the process die meanwhile. A wait over 0 means that
	// nothing was counted, as the budget has room only after it; ErrBudget, that
	// there is none in this run.
	Requested(ctx context.Context, site string, now, next time.Time) (wait time.Duration, err error)
	// Paused keeps that nobody may ask the site before until.
	Paused(ctx context.Context, site string, until time.Time) error
	// Robots is the answer kept for an origin's robots.txt, nil where there is none
	// that still holds.
	Robots(ctx context.Context, origin string, now time.Time) (*RobotsAnswer, error)
	// KeepRobots is offered each answer that was no failure.
	KeepRobots(ctx context.Context, origin string, a RobotsAnswer) error
}

// None is a Memory that keeps nothing. Others embed it for what they do not keep.
type None struct{}

// Next knows of no site.
func (None) Next(context.Context, string) (time.Time, error) { return time.Time{}, nil }

// Requested has no budget.
func (None) Requested(context.Context, string, time.Time, time.Time) (time.Duration, error) {
	return 0, nil
}

// Paused keeps nothing.
func (None) Paused(context.Context, string, time.Time) error { return nil }

// Robots has none.
func (None) Robots(context.Context, string, time.Time) (*RobotsAnswer, error) { return nil, nil }

// KeepRobots keeps nothing.
func (None) KeepRobots(context.Context, string, RobotsAnswer) error { return nil }

// Client asks hosts by one policy: those of a provider, of a catalog's site, of a
// domain's visit. It remembers their robots.txt and which of them it has
// abandoned, and is dropped with the visit. It is safe for concurrent use once
// its fields are set.
type Client struct {
	Web     *web.Client
	Pacer   *Pacer
	Policy  Policy
	Memory  Memory       // nil: None
	Control Control      // nil: nothing stops it but a context
	Log     *slog.Logger // of robots.txt; nil: none

	mu        sync.Mutex
	abandoned map[string]*AbandonedError // by site
	known     map[string]bool            // sites that Memory was asked for

	robotsMu sync.Mutex // one robots.txt at a time
	rules    map[string]*Rules
	lost     map[string]error // by origin: why its robots.txt could not be had
}

// Request is one GET with its redirects and retries.
type Request struct {
	URL          string
	Accept       string
	Header       http.Header
	Timeout      time.Duration // of a try, as in web.Request
	MaxBytes     int64
	MaxRedirects int // below 0 a redirect is the answer
	// Scope, when set, is asked before each redirect is followed. Its error ends
	// the request as web.KindBlocked and is found in it by errors.Is.
	Scope func(u *url.URL) error
	// Invited is a request for what robots.txt itself names, a sitemap: its rules
	// are not checked.
	Invited bool
	// Parallel sends the request without waiting for the site's turn and gap, next
	// to others: for a user who wants that. Redirects and retries wait.
	Parallel bool
	// Once is a request that is not tried again.
	Once bool
	// Retries were made before, by a process that was killed.
	Retries int
	// OnRetry, when set, is called before the pause ahead of a further try, also
	// where the site is abandoned over it. Its error ends the request.
	OnRetry func(ctx context.Context, a Attempt, wait time.Duration) error
}

// Get fetches r.URL when it may. The answer is given whatever its status. The
// errors are a closed set:
//
//   - *DisallowedError: robots.txt forbids r.URL. (Where it forbids what a redirect
//     leads to, it is inside a *web.Error of web.KindBlocked.)
//   - *AbandonedError: the site is not asked any more. Where it is this request's
//     answer that said so, the answer is given too.
//   - *RobotsError: robots.txt could not be had and the policy denies what it may forbid.
//   - ErrStopped, ErrBudget
//   - *web.Error: there is no answer
//   - those of ctx, of Memory, of web.Client.Allow and of OnRetry
func (c *Client) Get(ctx context.Context, r Request) (*web.Response, error) {
	if u, err := url.Parse(r.URL); err == nil && !r.Invited { // else the web client says what is wrong with it
		if err := c.Allowed(ctx, u); err != nil {
			return nil, err
		}
	}
	if r.Once {
		return c.repeat(ctx, r, nil)
	}
	return c.repeat(ctx, r, c.Policy.Retry)
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
			c.Web.Failed(failure.Kind)
			return nil, failure
		}
		a := Attempt{Retries: retries, RetryAfter: t.retryAfter, Response: t.resp, Failure: failure}
		if failure == nil && c.Policy.Abandon != nil && c.Policy.Abandon(t.resp.Status) {
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
			c.Web.Failed(failure.Kind)
			return nil, failure
		case !again:
			return t.resp, nil
		}
		c.Web.Retried()
		r.Parallel = false
	}
}

// tried is what a try brought.
type tried struct {
	resp       *web.Response
	at         *url.URL      // of the last hop
	retryAfter time.Duration // as Attempt's
}

// try sends a request once. A stop keeps it from being sent until the moment that
// it is; what is sent goes on.
func (c *Client) try(ctx context.Context, r Request) (tried, error) {
	t := tried{retryAfter: -1}
	t.at, _ = url.Parse(r.URL) // nil: the web client refuses it
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu      sync.Mutex
		sent    bool
		through error // what is no failure of the exchange
	)
	if c.Control != nil {
		go func() {
			select {
			case <-c.Control.Stopping():
				mu.Lock()
				defer mu.Unlock()
				if !sent {
					cancel(ErrStopped)
				}
			case <-within.Done():
			}
		}()
	}
	hop := 0
	resp, err := c.Web.Try(within, web.Request{URL: r.URL, Accept: r.Accept, Header: r.Header, Timeout: r.Timeout, MaxBytes: r.MaxBytes, MaxRedirects: r.MaxRedirects,
		Allow: func(u *url.URL) error {
			if r.Scope != nil {
				if err := r.Scope(u); err != nil {
					return err
				}
			}
			if r.Invited {
				return nil
			}
			err := c.Allowed(ctx, u)
			var no *DisallowedError
			if err != nil && !errors.As(err, &no) {
				through = err
			}
			return err
		},
		Turn: func(ctx context.Context, u *url.URL) (func(*web.Response), error) {
			t.at = u
			hop++
			end, err := c.turn(ctx, u, r.Parallel && hop == 1)
			if err != nil {
				through = err
				return nil, err
			}
			return func(resp *web.Response) { t.retryAfter = end(resp) }, nil
		},
		Ready: func() {
			if c.Control != nil && !c.Control.Proceed(within) {
				cancel(ErrStopped)
				return
			}
			mu.Lock()
			sent = true
			mu.Unlock()
		}})
	t.resp = resp
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return t, fmt.Errorf("fetching %s: %w", r.URL, ctx.Err())
	case through != nil:
		return t, through
	case errors.Is(context.Cause(within), ErrStopped):
		return t, ErrStopped
	}
	return t, err
}

// abandon remembers that a site is not asked any more by this client.
func (c *Client) abandon(e *AbandonedError) *AbandonedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abandoned == nil {
		c.abandoned = map[string]*AbandonedError{}
	}
	c.abandoned[e.Site] = e
	return e
}

// Abandoned says why the site of u is not asked by this client any more; nil where
// it is. A pause that it asked for is over some time.
func (c *Client) Abandoned(u *url.URL) *AbandonedError {
	site := web.Site(u)
	c.mu.Lock()
	e := c.abandoned[site]
	c.mu.Unlock()
	if e != nil {
		return e
	}
	if until := c.Pacer.paused(site); until.Sub(c.Pacer.now()) > c.maxRetryAfter() {
		return &AbandonedError{Site: site, Until: until}
	}
	return nil
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

func (c *Client) maxRetryAfter() time.Duration {
	if c.Policy.MaxRetryAfter > 0 {
		return c.Policy.MaxRetryAfter
	}
	return DefaultMaxRetryAfter
}

// scaled is a pause as it is waited.
func (c *Client) scaled(d time.Duration) time.Duration {
	if c.Policy.NoDelay {
		return d / 1000
	}
	return d
}
