package web

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// slots is a first-come, first-served semaphore whose size can change while it is
// in use.
type slots struct {
	mu      sync.Mutex
	limit   int
	halved  int
	changed time.Time // when it was halved or doubled
	used    int
	waiting list.List // of chan struct{}, closed when the waiter has its slot
}

// slotsChange is the least time between two changes of slots by a shortage and its end.
const slotsChange = 5 * time.Second

// now is how many slots there are now.
func (s *slots) now() int { return max(1, s.limit>>s.halved) }

// lower halves the slots, unless they have just changed.
func (s *slots) lower() (from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.now()
	if from > 1 && time.Since(s.changed) >= slotsChange {
		s.halved, s.changed = s.halved+1, time.Now()
	}
	return from, s.now()
}

// raise doubles slots that were halved, unless they have just changed.
func (s *slots) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halved > 0 && time.Since(s.changed) >= slotsChange {
		s.halved, s.changed = s.halved-1, time.Now()
		s.give()
	}
}

func (s *slots) acquire(ctx context.Context) error {
	s.mu.Lock()
	if s.used < s.now() && s.waiting.Len() == 0 {
		s.used++
		s.mu.Unlock()
		return nil
	}
	given := make(chan struct{})
	place := s.waiting.PushBack(given)
	s.mu.Unlock()

	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-given: // the slot came at the same moment: pass it on
		s.used--
		s.give()
	default:
		s.waiting.Remove(place)
	}
	return ctx.Err()
}

func (s *slots) release() {
	s.mu.Lock()
	s.used--
	s.give()
	s.mu.Unlock()
}

func (s *slots) resize(limit int) {
	s.mu.Lock()
	s.limit = limit
	s.give()
	s.mu.Unlock()
}

func (s *slots) give() {
	for s.used < s.now() && s.waiting.Len() > 0 {
		close(s.waiting.Remove(s.waiting.Front()).(chan struct{}))
		s.used++
	}
}

// pace limits how many requests start a second. Only one caller at a time waits for
// the limiter, so set must wake only that one, and the new rate applies to all
// others.
type pace struct {
	tokens *rate.Limiter
	turn   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
}

func newPace(perSecond float64) *pace {
	return &pace{tokens: rate.NewLimiter(limitOf(perSecond), 1), turn: make(chan struct{}, 1), changed: make(chan struct{})}
}

func limitOf(perSecond float64) rate.Limit {
	if perSecond <= 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}

func (p *pace) set(perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens.SetLimit(limitOf(perSecond))
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pace) wait(ctx context.Context) error {
	if p.tokens.Limit() == rate.Inf {
		return ctx.Err()
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	for {
		p.mu.Lock()
		changed := p.changed
		r := p.tokens.Reserve()
		p.mu.Unlock()
		wait := r.Delay()
		if wait == 0 {
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
			return nil
		case <-changed:
			t.Stop()
			r.Cancel()
		case <-ctx.Done():
			t.Stop()
			r.Cancel()
			return ctx.Err()
		}
	}
}
