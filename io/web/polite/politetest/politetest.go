// Package politetest has the clock of tests that crawl without waiting. No promise: see docs/library.md.
package politetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite"
)

// Clock advances when somebody sleeps by it or calls Advance, and only then.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// At returns a clock that shows a time.
func At(at time.Time) *Clock { return &Clock{at: at} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance lets time pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Polite returns the clock as a Pacer takes it: whoever sleeps advances it, unless
// his context has ended.
func (c *Clock) Polite() polite.Clock {
	return polite.Clock{Now: c.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if ctx.Err() == nil {
			c.Advance(d)
		}
		return ctx.Err()
	}}
}

// Killed returns a clock by which a process is killed in the pause after some whole
// ones: kill is called there, and nobody sleeps from then on.
func Killed(c polite.Clock, after int, kill context.CancelFunc) polite.Clock {
	var pauses atomic.Int64
	return polite.Clock{Now: c.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if pauses.Add(1) > int64(after) {
			kill()
			return context.Canceled
		}
		return c.Sleep(ctx, d)
	}}
}
