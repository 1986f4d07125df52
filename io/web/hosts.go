package web

import (
	"context"
	"sync"
	"time"
)

const (
	// crawlMemory is how long a host's Crawl-delay outlives its last request;
	// forgetting it with the gap would let a host that was left alone for a
	// while be asked at the usual pace.
	crawlMemory = 10 * time.Minute
	minSweep    = 256
)

// hosts gives out turns: one request at a time a host, and a gap between the
// end of one and the start of the next. From the end, because a host that
// needs a second an answer would otherwise never get a pause.
type hosts struct {
	delay time.Duration // the gap of every host
	limit time.Duration // the longest Crawl-delay or Retry-After obeyed

	mu      sync.Mutex
	byName  map[string]*host
	sweepAt int
}

type host struct {
	turn chan struct{} // holds a token while a request is under way

	// guarded by hosts.mu
	users int           // holding the turn or waiting for it
	ended time.Time     // when the last request's body was read
	crawl time.Duration // Crawl-delay, 0 when there is none
	hold  time.Time     // Retry-After: nothing before this
}

func newHosts(delay, limit time.Duration) *hosts {
	return &hosts{delay: delay, limit: limit, byName: map[string]*host{}, sweepAt: minSweep}
}

// acquire waits for the turn of name and for its gap.
func (h *hosts) acquire(ctx context.Context, name string) (*host, error) {
	h.mu.Lock()
	e := h.entry(name)
	e.users++
	h.mu.Unlock()

	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		h.leave(name, e)
		return nil, ctx.Err()
	}
	for { // again after each wait: SetCrawlDelay may have widened the gap meanwhile
		h.mu.Lock()
		wait := time.Until(h.free(e))
		h.mu.Unlock()
		if wait <= 0 {
			return e, nil
		}
		if err := sleep(ctx, wait); err != nil {
			<-e.turn
			h.leave(name, e)
			return nil, err
		}
	}
}

// release ends the turn; a hold over 0 keeps everybody off for so long.
func (h *hosts) release(name string, e *host, hold time.Duration) {
	h.mu.Lock()
	e.ended = time.Now()
	if hold > 0 {
		e.hold = e.ended.Add(min(hold, h.limit))
	}
	h.mu.Unlock()
	<-e.turn
	h.leave(name, e)
}

// note remembers the end of a request that went without a turn, so that the
// next one keeps its pause.
func (h *hosts) note(name string, hold time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(name)
	e.ended = time.Now()
	if hold > 0 {
		e.hold = e.ended.Add(min(hold, h.limit))
	}
}

func (h *hosts) leave(name string, e *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.users--
	if h.over(e, time.Now()) {
		delete(h.byName, name)
	}
}

func (h *hosts) setCrawlDelay(name string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d = min(max(d, 0), h.limit)
	if d == 0 && h.byName[name] == nil {
		return
	}
	e := h.entry(name)
	e.crawl = d
	if e.ended.IsZero() { // its last request is forgotten, or was just now
		e.ended = time.Now()
	}
}

// entry finds or makes the host, and now and then drops those that are done
// with: when the map has doubled, so it costs a constant a request and the map
// stays near the number of hosts that are in use or in their gap.
func (h *hosts) entry(name string) *host {
	if e := h.byName[name]; e != nil {
		return e
	}
	if len(h.byName) >= h.sweepAt {
		now := time.Now()
		for n, e := range h.byName {
			if h.over(e, now) {
				delete(h.byName, n)
			}
		}
		h.sweepAt = max(minSweep, 2*len(h.byName))
	}
	e := &host{turn: make(chan struct{}, 1)}
	h.byName[name] = e
	return e
}

// free is the earliest start of the host's next request.
func (h *hosts) free(e *host) time.Time {
	if e.ended.IsZero() {
		return e.hold
	}
	next := e.ended.Add(max(h.delay, e.crawl))
	if e.hold.After(next) {
		return e.hold
	}
	return next
}

// over reports that forgetting the host changes nothing.
func (h *hosts) over(e *host, now time.Time) bool {
	return e.users == 0 && !now.Before(h.free(e)) && (e.crawl == 0 || now.Sub(e.ended) >= crawlMemory)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
