package web

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/newsfork/seed-engine/io/fault"
)

const (
	firstShortageWait = 250 * time.Millisecond // doubles with each try
	maxShortageWait   = 5 * time.Second
	// resolverSettles is how long a resolver that could not be reached is not believed that a name is unknown: one
	// that has just come back, or forwards to others, answers so for a moment.
	resolverSettles = 20 * time.Second
)

// shortage returns what this machine lacks, nil if err has another cause.
func shortage(err error) *fault.Shortage {
	if errors.As(err, new(*blockedError)) {
		return nil
	}
	_, lack := fault.Of(fault.Web, err)
	return lack
}

// lack returns what this machine lacks. A resolver that has only just come back is lacking too: a name that it does not know is
// asked again.
func (c *Client) lack(err error) *fault.Shortage {
	lack, now := shortage(err), time.Now()
	switch unresolved := errors.As(err, new(*net.DNSError)); {
	case !unresolved:
	case lack != nil:
		c.unresolved.Store(now.UnixNano())
	case now.UnixNano()-c.unresolved.Load() < int64(resolverSettles):
		return &fault.Shortage{Lacks: "this machine's resolver could not be reached a moment ago", Err: err, Some: true}
	}
	return lack
}

// lacking is how long, and how often, one exchange has met a shortage.
type lacking struct {
	began time.Time
	tries int
}

// outlast waits before a request is tried again that this machine could not send. The
// request keeps its slot, so fewer are in flight. If the shortage lasts for fault.MaxWait and
// nothing else could be reached meanwhile, outlast stops the run and returns the shortage.
// A shortage that other hosts do not meet is that host's failure.
func (c *Client) outlast(ctx context.Context, lack *fault.Shortage, l *lacking) error {
	if l.tries == 0 {
		l.began = time.Now()
		c.Shortages.Wait(lack)
		c.lower(lack)
	}
	if time.Since(l.began) >= fault.MaxWait {
		works := c.connected.Load() > l.began.UnixNano()
		switch {
		case works && lack.Some:
			return lack.Err
		case !works:
			return c.giveUp(ctx, lack)
		}
		l.began = time.Now()
	}
	c.requests.Add(-1) // it was not sent
	l.tries++
	select {
	case <-time.After(min(firstShortageWait<<min(l.tries-1, 10), maxShortageWait)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lower halves the number of requests in flight, if this process lacks something that all
// its requests need. Connections that can be made raise it again.
func (c *Client) lower(lack *fault.Shortage) {
	if lack.Some {
		return
	}
	if from, to := c.slots.lower(); to < from && c.Lowered != nil {
		c.Lowered(from, to, lack.Lacks)
	}
}

// giveUp stops the run, and waits for the end of ctx that it causes, so that a caller sees
// an exchange that was cut off and no failure.
func (c *Client) giveUp(ctx context.Context, lack *fault.Shortage) error {
	if c.Shortages.Short == nil {
		return lack
	}
	c.Shortages.Short(lack)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(maxShortageWait):
		return lack
	}
}

// maxRequests is how many requests a process with so many files may have in flight: each
// can have a connection and two sockets of a look-up, and a quarter is for other things.
func maxRequests(files int) int { return max(1, files/4) }

// MaxRequests is how many requests this process may have in flight: see maxRequests.
func MaxRequests() int { return maxRequests(maxFiles()) }
