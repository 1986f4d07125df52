package polite

import (
	"cmp"
	"context"
	_ "embed" // for cdns.txt
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite/turns"
)

// Servers says how requests to one server are kept apart, whatever the names in their
// URLs: thousands of sites of a hosting company can be on one machine.
type Servers struct {
	// Delay is the pause from the end of one request to a server to the start of the
	// next; a server gets one request at a time. 0: servers are not told apart.
	Delay time.Duration
	// CDNs are the networks whose addresses stand before the servers of many sites. nil:
	// DefaultCDNs.
	CDNs []CDN
	// Rate is how many requests a second such a network gets, in place of Delay. 0:
	// DefaultCDNRate.
	Rate float64
}

// CDN is a network with servers for unrelated sites, such as a content delivery network.
type CDN struct {
	Name     string
	Prefixes []netip.Prefix
}

// DefaultCDNRate stands for a zero Servers.Rate.
const DefaultCDNRate = 50

//go:embed cdns.txt
var cdns string

// DefaultCDNs returns the networks of cdns.txt: on each line a name and a prefix, or a comment.
var DefaultCDNs = sync.OnceValue(func() (all []CDN) {
	for line := range strings.Lines(cdns) {
		name, prefix, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "#" {
			continue
		}
		i := slices.IndexFunc(all, func(c CDN) bool { return c.Name == name })
		if i < 0 {
			i, all = len(all), append(all, CDN{Name: name})
		}
		all[i].Prefixes = append(all[i].Prefixes, netip.MustParsePrefix(prefix)) // TestDefaultCDNs parses them
	}
	return all
})

// serverIPv6Bits is the part of an IPv6 address that tells servers apart: a network
// gives each machine a /64 (RFC 6177, RFC 7934), and many hosters give each name on it
// an address of its own.
const serverIPv6Bits = 64

// Key names the server at an address, or its network, which is given a rate. Names of
// sites have no space.
func (s Servers) Key(a netip.Addr) (name string, rated bool) {
	all := s.CDNs
	if all == nil {
		all = DefaultCDNs()
	}
	for _, c := range all {
		for _, p := range c.Prefixes {
			if p.Contains(a) {
				return "network " + c.Name, true
			}
		}
	}
	if a.Is6() {
		return "server " + netip.PrefixFrom(a, serverIPv6Bits).Masked().String(), false
	}
	return "server " + a.String(), false
}

// serverTurn is the right to send a server a request. A nil one is for a server that is
// not known.
type serverTurn struct {
	c    *Client
	name string
	s    *site
	free func(rest time.Duration) // of Pacer.Hold
	// taken says that the turn is this process's among those that share Pacer.Turns.
	taken bool
}

// enterServer waits for the turn of the server at a. For a network with a rate it waits
// for one of the times at which the network gets a request.
func (c *Client) enterServer(ctx context.Context, a netip.Addr) (*serverTurn, error) {
	p := c.Pacer
	if !a.IsValid() {
		return nil, nil
	}
	name, rated := p.Servers.Key(a)
	s := p.enter(name)
	if rated {
		defer p.leave(name, s)
		p.mu.Lock()
		now := p.now()
		if now.After(s.next) {
			s.next = now
		}
		wait := s.next.Sub(now)
		s.next = s.next.Add(c.scaled(time.Duration(float64(time.Second) / (cmp.Or(p.Servers.Rate, DefaultCDNRate) * p.part()))))
		p.mu.Unlock()
		if wait <= 0 {
			return nil, nil
		}
		return nil, c.wait(ctx, wait)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		p.leave(name, s)
		return nil, context.Cause(ctx)
	}
	t := &serverTurn{c: c, name: name, s: s, free: func(time.Duration) {}}
	if p.Hold != nil {
		free, unknown, err := p.Hold(ctx, name)
		if err != nil {
			t.leave()
			return nil, err
		}
		t.free = free
		if unknown {
			p.mu.Lock()
			t.end(p.now())
			p.mu.Unlock()
		}
	}
	for {
		wait := t.take()
		if wait <= 0 {
			return t, nil
		}
		if err := c.wait(ctx, wait); err != nil {
			t.leave()
			return nil, err
		}
	}
}

// take takes the server's turn among the processes of the machine, once, and returns how
// long to wait.
func (t *serverTurn) take() (wait time.Duration) {
	p := t.c.Pacer
	now := p.now()
	var known turns.Times
	if p.Turns != nil && !t.taken {
		if known, t.taken = p.Turns.Take(p.key(t.name), now); !t.taken {
			return lookAgain
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.s.askedElsewhere(known) {
		t.end(known.Ended)
	}
	return t.s.next.Sub(now)
}

// kept is place.kept for the server.
func (t *serverTurn) kept() bool {
	return t == nil || !t.taken || t.c.Pacer.Turns.Keep(t.c.Pacer.key(t.name))
}

// leave gives the turn to another request.
func (t *serverTurn) leave() {
	if t == nil {
		return
	}
	p := t.c.Pacer
	p.mu.Lock()
	rest, known := t.s.next.Sub(p.now()), turns.Times{Ended: t.s.ended}
	p.mu.Unlock()
	if t.taken {
		p.Turns.Give(p.key(t.name), known, 0)
	}
	t.free(rest)
	<-t.s.turn
	p.leave(t.name, t.s)
}

func (p *Pacer) part() float64 {
	if p.Part == nil {
		return 1
	}
	return p.Part()
}

// end begins the server's pause; its request was answered. It is called with Pacer.mu
// locked.
func (t *serverTurn) end(now time.Time) {
	if t != nil {
		t.s.ended, t.s.next = now, now.Add(t.c.scaled(t.c.Pacer.Servers.Delay))
	}
}
