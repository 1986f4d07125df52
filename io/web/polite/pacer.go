package polite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// Range is what a pause is drawn from.
type Range struct{ Min, Max time.Duration }

// Draw is uniform in the part of the range that is not under the least; a least
// above the range is the pause itself.
func (r Range) Draw(least time.Duration) time.Duration {
	least = max(least, r.Min)
	return least + rand.N(max(r.Max-least, 0)+1)
}

// Clock is the time that pauses go by. Tests turn it.
type Clock struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // ends early with the context's error
}

// SystemClock is the machine's.
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
	// delayMemory is how long a site's Crawl-delay outlives its last request:
	// forgetting it with the gap would let a site that was not asked for a while be
	// asked at the usual pace.
	delayMemory = 10 * time.Minute
	minSweep    = 256
)

// Pacer gives out turns: one request at a time a site (web.Site), and a gap
// between the end of one and the start of the next. From the end, because a host
// that needs a second an answer would otherwise never get a pause. The zero value
// goes by the system's clock.
type Pacer struct {
	Clock Clock

	mu      sync.Mutex
	sites   map[string]*site
	sweepAt int
}

// site is guarded by Pacer.mu, but for its turn.
type site struct {
	turn   chan struct{} // holds a token while a request is under way
	users  int           // having the turn or waiting for it
	ended  time.Time     // when the last answer was read
	next   time.Time     // its gap is over
	paused time.Time     // nothing before this: the host asked for it, or a retry waits
	delays map[string]time.Duration
}

// delay is the longest that an origin of the site asks for.
func (s *site) delay() (d time.Duration) {
	for _, of := range s.delays {
		d = max(d, of)
	}
	return d
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

// enter finds or makes a site for one that asks it, and now and then drops those
// that are done with: when the map has doubled, so it costs a constant a request
// and the map stays near the number of sites that are in use or in their gap.
func (p *Pacer) enter(name string) *site {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(name)
	s.users++
	return s
}

// site is called with mu locked.
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
			if s.over(now) {
				delete(p.sites, n)
			}
		}
		p.sweepAt = max(minSweep, 2*len(p.sites))
	}
	s := &site{turn: make(chan struct{}, 1), delays: map[string]time.Duration{}}
	p.sites[name] = s
	return s
}

func (p *Pacer) leave(name string, s *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.over(p.now()) {
		delete(p.sites, name)
	}
}

// over reports that forgetting the site changes nothing.
func (s *site) over(now time.Time) bool {
	return s.users == 0 && !now.Before(s.next) && !now.Before(s.paused) && (s.delay() == 0 || now.Sub(s.ended) >= delayMemory)
}

// pause keeps everybody off a site for at least d from now, and says until when.
func (p *Pacer) pause(name string, d time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(name)
	if until := p.now().Add(d); until.After(s.paused) {
		s.paused = until
	}
	return s.paused
}

// maxOpen is the longest that a request of a killed process may have been under
// way when its process ended.
const maxOpen = time.Minute

// expect takes over when an earlier process said that a site may be asked: after
// the gap of its last request, or after a pause where that is longer than a gap
// and a pause that are waited for. That gap began when the request was sent. Its
// answer may have come, or the request have reached the site, as late as now, so
// a whole gap from now is kept too where the earlier process may have been killed
// with a request under way.
func (p *Pacer) expect(name string, next time.Time, most time.Duration, gap Range) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.site(name)
	until := &s.next
	if next.Sub(p.now()) > most+2*max(s.delay(), gap.Min, gap.Max) {
		until = &s.paused
	}
	if next.After(*until) {
		*until = next
	}
	if now := p.now(); !next.IsZero() && now.Sub(next) < maxOpen {
		if whole := now.Add(gap.Draw(s.delay())); whole.After(s.next) {
			s.next = whole
		}
	}
}

// paused is until when a site asked for a pause.
func (p *Pacer) paused(name string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sites[name]; s != nil {
		return s.paused
	}
	return time.Time{}
}

// setDelay sets the least pause that an origin asks for at a site. It holds from
// the end of the site's last request.
func (p *Pacer) setDelay(name, origin string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d <= 0 {
		if s := p.sites[name]; s != nil {
			delete(s.delays, origin)
		}
		return
	}
	s := p.site(name)
	s.delays[origin] = d
	if s.ended.IsZero() { // its last request is forgotten, or was another process's
		s.ended = p.now()
	}
	if next := s.ended.Add(d); next.After(s.next) {
		s.next = next
	}
}

// turn waits until a request may be sent to u, and counts it. end is called when
// its answer is read, nil where there is none; it gives the pause that the answer
// asks for, below 0 for none, which has begun.
func (c *Client) turn(ctx context.Context, u *url.URL, parallel bool) (end func(*web.Response) time.Duration, err error) {
	p, name := c.Pacer, web.Site(u)
	s := p.enter(name)
	free := func() { p.leave(name, s) }
	if !parallel {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			free()
			return nil, context.Cause(ctx)
		}
		free = func() {
			<-s.turn
			p.leave(name, s)
		}
	}
	gap, err := c.await(ctx, u, s, parallel)
	if err != nil {
		free()
		return nil, err
	}
	return func(resp *web.Response) time.Duration {
		defer free()
		after := time.Duration(-1)
		p.mu.Lock()
		defer p.mu.Unlock()
		now := p.now()
		s.ended, s.next = now, now.Add(max(gap, s.delay()))
		if resp != nil && c.pausesOn(resp.Status) {
			if d, ok := web.ParseRetryAfter(resp.Header.Get("Retry-After"), now); ok {
				after = d
				if until := now.Add(c.scaled(d)); until.After(s.paused) {
					s.paused = until
				}
			}
		}
		return after
	}, nil
}

// await waits for the gap, the pauses and the budget of a site, and draws the gap
// that follows.
func (c *Client) await(ctx context.Context, u *url.URL, s *site, parallel bool) (gap time.Duration, err error) {
	p, name := c.Pacer, web.Site(u)
	if err := c.remember(ctx, name); err != nil {
		return 0, err
	}
	for {
		if c.Control != nil && !c.Control.Proceed(ctx) {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			return 0, ErrStopped
		}
		if e := c.Abandoned(u); e != nil {
			return 0, e
		}
		p.mu.Lock()
		now := p.now()
		wait := s.paused.Sub(now)
		if !parallel {
			wait = max(wait, s.next.Sub(now))
		}
		delay := s.delay()
		p.mu.Unlock()
		if wait > 0 {
			if err := c.wait(ctx, wait); err != nil {
				return 0, err
			}
			continue // others may have been told of a longer pause meanwhile
		}
		gap = 0
		if !c.Policy.NoDelay {
			gap = c.Policy.Gap.Draw(delay)
		}
		wait, err := c.memory().Requested(ctx, name, now, now.Add(gap))
		switch {
		case errors.Is(err, ErrBudget):
			return 0, err
		case err != nil:
			return 0, fmt.Errorf("counting a request to %s: %w", name, err)
		case wait <= 0:
			return gap, nil
		}
		each := func(d time.Duration) error { return c.wait(ctx, d) }
		if c.Policy.WaitForBudget == nil {
			err = each(wait)
		} else {
			err = c.Policy.WaitForBudget(ctx, name, now.Add(wait), each)
		}
		if err != nil {
			return 0, err
		}
	}
}

// remember learns once when an earlier process said that a site may be asked.
func (c *Client) remember(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[name] {
		return nil
	}
	next, err := c.memory().Next(ctx, name)
	if err != nil {
		return fmt.Errorf("reading when %s may be asked: %w", name, err)
	}
	gap := c.Policy.Gap
	if c.Policy.NoDelay {
		gap = Range{}
	}
	c.Pacer.expect(name, next, c.maxRetryAfter(), gap)
	if c.known == nil {
		c.known = map[string]bool{}
	}
	c.known[name] = true
	return nil
}

// wait sleeps, until the run is stopped.
func (c *Client) wait(ctx context.Context, d time.Duration) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.Control != nil {
		go func() {
			select {
			case <-c.Control.Stopping():
				cancel(ErrStopped)
			case <-within.Done():
			}
		}()
	}
	if err := c.Pacer.sleep(within, d); err != nil {
		return context.Cause(within)
	}
	return nil
}

// pause keeps everybody off the site of u for d, also in runs to come, and
// abandons it where that is longer than a run waits.
func (c *Client) pause(ctx context.Context, u *url.URL, d time.Duration, a Attempt) (*AbandonedError, error) {
	if d <= 0 {
		return nil, nil
	}
	name := web.Site(u)
	until := c.Pacer.pause(name, c.scaled(d))
	if err := c.memory().Paused(ctx, name, until); err != nil {
		return nil, fmt.Errorf("keeping off %s: %w", name, err)
	}
	if c.scaled(d) <= c.maxRetryAfter() {
		return nil, nil
	}
	return &AbandonedError{Site: name, URL: u.String(), Status: a.Status(), Pause: d, Until: until}, nil
}
