package polite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite/turns"
)

// Range is a range of pauses.
type Range struct{ Min, Max time.Duration }

// Draw returns a random pause of the range that is at least minimum. If minimum is
// above the range, it returns minimum.
func (r Range) Draw(minimum time.Duration) time.Duration {
	minimum = max(minimum, r.Min)
	return minimum + rand.N(max(r.Max-minimum, 0)+1)
}

// Clock is the clock for pauses. Tests replace it.
type Clock struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // returns the context's error when that is done first
}

// SystemClock is the machine's clock.
var SystemClock = Clock{Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}}

const (
	// delayMemory is how long a site's Crawl-delay, and that it refused requests, is
	// remembered after its last request. If it were forgotten with the gap, the next request to the site would
	// be followed by the usual gap only.
	delayMemory = 10 * time.Minute
	minSweep    = 256
)

// Pacer keeps requests to a site (web.Site) apart: one request at a time, with a gap
// between the end of one and the start of the next. It counts from the end because
// a host that needs a second for an answer would otherwise never get a pause. The
// zero value uses the system's clock.
type Pacer struct {
	Clock   Clock
	Servers Servers
	Hosts   Hosts
	// Closed, when set, is called once for each client and site that gets no request because
	// of the hours in Hosts.
	Closed func(*AbandonedError)
	// Adapt lengthens the gap of a site to so many times its response time, and after
	// each 429 and 503, up to the longest pause that its client waits for. 0: it does not.
	Adapt float64
	// Hold, when set, waits until this process alone may send a server requests. free is
	// called with the rest of the server's pause after each request; until the pause is
	// over no other process gets the server. unknown says that another process may have
	// sent the server a request just now.
	Hold func(ctx context.Context, server string) (free func(rest time.Duration), unknown bool, err error)
	// Part, when set, is this process's part of the rate of a network. nil: all of it.
	Part func() float64
	// Turns, when set, are shared with other processes of the machine: a site gets one
	// request at a time of all of them, and they keep the gap and the pauses together.
	Turns *turns.File
	// Web is the address that all requests go to, "" for the public web. Another web's
	// sites are others.
	Web string

	mu      sync.Mutex
	sites   map[string]*site
	sweepAt int
	longest time.Duration  // gap of all clients
	flying  map[string]int // requests in flight, by the pattern of Hosts that limits them
}

// site is guarded by Pacer.mu, except turn, host and sharing.
type site struct {
	host    Host          // what Pacer.Hosts says about it
	sharing string        // the pattern that decides host.Concurrency, "" for none
	turn    chan struct{} // has a token while a request is in flight
	users   int           // how many have the turn or wait for it
	ended   time.Time     // when the last answer was read
	next    time.Time     // when the gap is over
	paused  time.Time     // no request before this: the host asked for a pause, or a retry waits
	gap     Range         // the longest of the clients that sent it requests
	delays  map[string]time.Duration
	load    load // kept if Pacer.Adapt is set
}

// delay is the longest Crawl-delay of the site's origins.
func (s *site) delay() (d time.Duration) {
	for _, of := range s.delays {
		d = max(d, of)
	}
	return d
}

// rest is how long a request has to wait for the site's pause and, unless it is sent in
// parallel, for its gap. It is called with Pacer.mu locked.
func (s *site) rest(now time.Time, r Request) time.Duration {
	rest := s.paused.Sub(now)
	if !r.Parallel {
		rest = max(rest, s.next.Sub(now))
	}
	return rest
}

// Len is the number of sites that are remembered.
func (p *Pacer) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sites)
}

func (p *Pacer) now() time.Time {
	if p.Clock.Now == nil {
		return time.Now()
	}
	return p.Clock.Now()
}

func (p *Pacer) sleep(ctx context.Context, d time.Duration) error {
	if p.Clock.Sleep == nil {
		return SystemClock.Sleep(ctx, d)
	}
	return p.Clock.Sleep(ctx, d)
}

// enter returns a site for one more user, who must call leave.
func (p *Pacer) enter(name string) *site {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(name)
	s.users++
	return s
}

// site returns a site and makes it if there is none. Each time the map has doubled,
// it drops the sites that may be forgotten. So that costs a constant time a request,
// and the map stays about as large as the number of sites in use or in their gap. It
// is called with mu locked.
func (p *Pacer) site(name string) *site {
	if s := p.sites[name]; s != nil {
		return s
	}
	if p.sites == nil {
		p.sites, p.sweepAt = map[string]*site{}, minSweep
	}
	if len(p.sites) >= p.sweepAt {
		now := p.now()
		for n, s := range p.sites {
			if s.over(now, p.longest) {
				delete(p.sites, n)
			}
		}
		p.sweepAt = max(minSweep, 2*len(p.sites))
	}
	host, by := p.Hosts.For(name)
	s := &site{host: host, sharing: decidedBy(by, "concurrency"), turn: make(chan struct{}, 1), delays: map[string]time.Duration{}}
	p.sites[name] = s
	return s
}

func (p *Pacer) leave(name string, s *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.over(p.now(), p.longest) {
		delete(p.sites, name)
	}
}

// over reports whether the site may be forgotten, whichever client asks it next:
// longest is the longest gap of all clients.
func (s *site) over(now time.Time, longest time.Duration) bool {
	since := now.Sub(s.ended)
	return s.users == 0 && !now.Before(s.next) && !now.Before(s.paused) && since >= longest && (s.delay() == 0 && s.load.refused == 0 || since >= delayMemory)
}

// pause stops all requests to a site for at least d from now, and returns until when.
func (p *Pacer) pause(name string, d time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(name)
	if until := p.now().Add(d); until.After(s.paused) {
		s.paused = until
		p.tell(p.key(name), turns.Times{Paused: until})
	}
	return s.paused
}

// maxOpen is how long a request that a killed process had sent may stay in flight.
const maxOpen = time.Minute

// expect applies the time next that an earlier process stored: when the site may be
// sent a request, after the gap of its last request or after a pause. It is a pause
// if it is later than longestGap and a gap explain. A stored gap began when the
// request was sent, but if the earlier process was killed then, the site may have
// received or answered the request as late as now. So after a recent request a whole
// gap from now is waited for too, unless this process sent the site's last request.
func (c *Client) expect(name string, next time.Time) {
	p := c.Pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	s, now := p.site(name), p.now()
	gap, delay := c.gap(s.host), c.delay(s)
	until := &s.next
	if next.Sub(now) > c.longestGap(s.host)+2*max(delay, gap.Min, gap.Max) {
		until = &s.paused
	}
	if next.After(*until) {
		*until = next
	}
	if s.ended.IsZero() && !next.IsZero() && now.Sub(next) < maxOpen {
		if whole := now.Add(gap.Draw(delay)); whole.After(s.next) {
			s.next = whole
		}
	}
}

// Paused returns the end of a site's pause, zero if it has none.
func (p *Pacer) Paused(name string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sites[name]; s != nil {
		return s.paused
	}
	return time.Time{}
}

// setDelay sets the Crawl-delay of one of a site's origins. It applies from the end
// of the site's last request, up to maxDelay for a request for robots.txt. It
// returns when the site may be sent the next request.
func (p *Pacer) setDelay(name, origin string, d, maxDelay time.Duration) (next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d <= 0 {
		if s := p.sites[name]; s != nil {
			delete(s.delays, origin)
		}
		return time.Time{}
	}
	s := p.site(name)
	s.delays[origin] = d
	if s.ended.IsZero() { // the last request is unknown: forgotten, or another process sent it
		s.ended = p.now()
	}
	if next := s.ended.Add(min(d, maxDelay)); next.After(s.next) {
		s.next = next
		p.tell(p.key(name), turns.Times{Ended: s.ended, Next: next})
	}
	if s.paused.After(s.next) {
		return s.paused
	}
	return s.next
}

// turn waits until a request may be sent to u, and counts it. server looks its server
// up. The caller calls end when it has read the answer, with nil if there is none. end
// starts the pause that the answer asks for and returns its length, below 0 for none. took
// is the exchange's time without waiting.
func (c *Client) turn(ctx context.Context, u *url.URL, r Request, server func(context.Context) netip.Addr) (at *place, end func(r *web.Response, took time.Duration) time.Duration, err error) {
	p, name := c.Pacer, web.Site(u)
	s := p.enter(name)
	r.Parallel = r.Parallel && s.host.Delay == 0
	free := func() { p.leave(name, s) }
	if !r.Parallel {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			free()
			return nil, nil, context.Cause(ctx)
		}
		free = func() {
			<-s.turn
			p.leave(name, s)
		}
	}
	gap, at, err := c.await(ctx, u, s, r, server)
	if err != nil {
		free()
		return nil, nil, err
	}
	return at, func(resp *web.Response, took time.Duration) time.Duration {
		defer free()
		defer at.leave()
		if at.lost { // and the request was not sent
			return -1
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		now := p.now()
		gap = max(gap, c.delay(s))
		if p.Adapt > 0 {
			longest := c.longestGap(s.host)
			s.load.add(resp, took, gap, longest)
			gap = max(gap, c.scaled(s.load.gap(p.Adapt, longest)))
		}
		s.ended, s.next = now, now.Add(gap)
		after := c.asksFor(resp, now)
		if until := now.Add(c.scaled(after)); after >= 0 && until.After(s.paused) {
			s.paused = until
		}
		at.end(now)
		return after
	}, nil
}

// delay is the Crawl-delay of a site as this client keeps it, called with
// Pacer.mu locked. It asks for robots.txt alone where the site wants a longer one
// than the policy obeys.
func (c *Client) delay(s *site) time.Duration {
	d := s.delay()
	if most := c.maxCrawlDelay(s.host); most > 0 {
		d = min(d, most)
	}
	return d
}

// widen lengthens the gap of a site to this client's. It holds from the end of
// the site's last request, whichever client made that.
func (c *Client) widen(s *site) {
	p, own := c.Pacer, c.gap(s.host)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest = max(p.longest, own.Min, own.Max)
	wide := Range{Min: max(s.gap.Min, own.Min), Max: max(s.gap.Max, own.Max)}
	if wide == s.gap {
		return
	}
	s.gap = wide
	if s.ended.IsZero() {
		return
	}
	if next := s.ended.Add(wide.Draw(c.delay(s))); next.After(s.next) {
		s.next = next
	}
}

// await waits until a site and its server may be asked, within the site's budget. It
// draws the gap that follows.
func (c *Client) await(ctx context.Context, u *url.URL, s *site, r Request, server func(context.Context) netip.Addr) (gap time.Duration, at *place, err error) {
	p, name := c.Pacer, web.Site(u)
	if err := c.remember(ctx, name); err != nil {
		return 0, nil, err
	}
	c.widen(s)
	at = &place{c: c, u: u, s: s, r: r, address: server, key: p.key(name)}
	for {
		if err := at.enter(ctx); err != nil {
			return 0, nil, err
		}
		p.mu.Lock()
		now, gap := p.now(), s.gap.Draw(c.delay(s))
		p.mu.Unlock()
		wait, err := c.memory().Requested(ctx, name, now, now.Add(gap))
		if err == nil && wait <= 0 {
			return gap, at, nil
		}
		at.leave()
		switch {
		case err == nil:
			err = c.waitForBudget(ctx, name, now, wait)
		case !errors.Is(err, ErrBudget):
			err = fmt.Errorf("counting a request to %s: %w", name, err)
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

// mayAsk returns how long a site may not be asked yet, or why it is not asked at all.
func (c *Client) mayAsk(ctx context.Context, u *url.URL, s *site, r Request) (wait time.Duration, err error) {
	if c.Control != nil && !c.Control.Proceed(ctx) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, ErrStopped
	}
	if e := c.Abandoned(u); e != nil {
		return 0, e
	}
	p := c.Pacer
	p.mu.Lock()
	now := p.now()
	wait = max(s.rest(now, r), s.host.Hours.opens(now).Sub(now))
	asks, delay := s.delay(), c.delay(s)
	p.mu.Unlock()
	if delay < asks && !r.robots {
		return 0, c.abandon(&AbandonedError{Site: web.Site(u), CrawlDelay: asks})
	}
	return wait, nil
}

// waitForBudget waits until the budget of a site allows a request again.
func (c *Client) waitForBudget(ctx context.Context, name string, now time.Time, wait time.Duration) error {
	each := func(d time.Duration) error { return c.wait(ctx, d) }
	if c.Policy.WaitForBudget == nil {
		return each(wait)
	}
	return c.Policy.WaitForBudget(ctx, name, now.Add(wait), each)
}

// remember applies, once a site, the time of its next request that an earlier
// process stored.
func (c *Client) remember(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[name] {
		return nil
	}
	next, err := c.memory().Next(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the time of the next request to %s: %w", name, err)
	}
	c.expect(name, next)
	if c.known == nil {
		c.known = map[string]bool{}
	}
	c.known[name] = true
	return nil
}

// wait sleeps for d, or until the run is stopped.
func (c *Client) wait(ctx context.Context, d time.Duration) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.Control != nil {
		defer context.AfterFunc(c.Control.Stopping(), func() { cancel(ErrStopped) })()
	}
	if err := c.Pacer.sleep(within, d); err != nil {
		return context.Cause(within)
	}
	return nil
}

// pause stops all requests to the site of u for d, also of later runs. It returns an
// *AbandonedError if a run does not wait that long.
func (c *Client) pause(ctx context.Context, u *url.URL, d time.Duration, a Attempt) (*AbandonedError, error) {
	if d <= 0 {
		return nil, nil
	}
	p, name := c.Pacer, web.Site(u)
	until := p.pause(name, c.scaled(d))
	if err := c.memory().Paused(ctx, name, until); err != nil {
		return nil, fmt.Errorf("storing the pause of %s: %w", name, err)
	}
	if c.scaled(d) <= c.maxRetryAfter(p.host(name)) {
		return nil, nil
	}
	return &AbandonedError{Site: name, URL: u.String(), Status: a.Status(), Pause: d, Until: until}, nil
}
