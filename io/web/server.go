package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// lookupTimeout is for one look-up of a host's addresses.
	lookupTimeout = 30 * time.Second
	// addressAge is how long visits use what one of them looked up. The address guard checks
	// each connection all the same.
	addressAge = time.Minute
	// maxAddresses bounds the addresses of a host that one request tries.
	maxAddresses = 4
)

// addresses are where a request's connection may lead, the next one to try first. If
// there is none, err says why.
type addresses struct {
	list  []netip.Addr
	err   error
	until time.Time // when a visit looks them up again
}

// first is invalid if there is none.
func (a addresses) first() netip.Addr {
	if len(a.list) == 0 {
		return netip.Addr{}
	}
	return a.list[0]
}

// otherAddress means that a connection to an address could not be made, and that the
// host has another one. That is another server, which is asked at its own turn.
type otherAddress struct{ error }

func (e otherAddress) Unwrap() error { return e.error }

// addresses looks up the addresses of u's host, or returns what the visit knows. A
// request that is given them connects to the first of them, and to no other.
func (c *Client) addresses(ctx context.Context, v *Conns, u *url.URL) addresses {
	name := c.lookupName(u)
	v.mu.Lock()
	known, ok := v.known[name]
	v.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known
	}
	found, ok := c.recent.get(name)
	if !ok {
		found = addresses{until: time.Now().Add(addressAge)}
		var err error
		if found.list, err = c.lookUp(ctx, name); err != nil {
			found.err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
		var dns *net.DNSError
		if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
			return found // which may pass
		}
		c.recent.keep(name, found)
	}
	v.know(name, found)
	return found
}

// recent are the look-ups of the last minute, for hosts that many visits are redirected to.
type recent struct {
	mu sync.Mutex
	of map[string]addresses
}

// maxRecent bounds the look-ups that are kept.
const maxRecent = 4096

func (r *recent) get(name string) (addresses, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.of[name]
	return found, ok && time.Now().Before(found.until)
}

func (r *recent) keep(name string, found addresses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) >= maxRecent {
		now := time.Now()
		maps.DeleteFunc(r.of, func(_ string, a addresses) bool { return !now.Before(a.until) })
	}
	if r.of == nil || len(r.of) >= maxRecent {
		r.of = map[string]addresses{}
	}
	r.of[name] = found
}

// lookUp returns the addresses of a name that a connection may lead to, the one to try
// first at the beginning. There is at least one.
func (c *Client) lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	full := name
	// Without the resolver's search list: where the public name has no answer for a moment, a name in this machine's own domain
	// that does not exist would be taken for one. With AllowPrivate a host may be a short name of that list.
	if _, err := netip.ParseAddr(name); err != nil && (!c.cfg.AllowPrivate || c.cfg.ConnectTo != "" && c.cfg.Resolver != "") {
		full = strings.TrimSuffix(name, ".") + "."
	}
	list, err := c.lookup(ctx, "ip", full)
	var dns *net.DNSError
	if errors.As(err, &dns) {
		dns.Name = name
	}
	if err != nil {
		return nil, err
	}
	for i, a := range list {
		list[i] = a.Unmap() // a Resolver gives IPv4 addresses as IPv6 ones
	}
	var refused error
	list = slices.DeleteFunc(list, func(a netip.Addr) bool {
		why := c.guard.addr(a)
		if c.cfg.ConnectTo != "" {
			why = nil // it leads where the user said; a simulated internet's dialer checks by itself
		}
		refused = cmp.Or(refused, why)
		return why != nil
	})
	if len(list) == 0 {
		return nil, cmp.Or[error](refused, &net.DNSError{Err: "no addresses", Name: name, IsNotFound: true})
	}
	// IPv4 first: many hosters give each name an IPv6 address of its own on the same
	// server, and IPv6 that leads nowhere costs no wait.
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return list, nil
}

// lookupName is the name whose addresses a connection for u leads to.
func (c *Client) lookupName(u *url.URL) string {
	if c.cfg.ConnectTo != "" && c.cfg.Resolver == "" {
		host, _, _ := net.SplitHostPort(c.cfg.ConnectTo) // checked by Validate
		return host
	}
	return u.Hostname()
}

func (v *Conns) know(name string, a addresses) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[string]addresses{}
	}
	v.known[name] = a
}

// server is the address by which a server is known: of NAT64 the IPv4 address inside.
func (c *Client) server(a netip.Addr) netip.Addr {
	if v4, ok := c.guard.nat64.embedded(a); ok {
		return v4
	}
	return a.WithZone("")
}
