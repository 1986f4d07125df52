package web

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

var (
	// wellKnownNAT64 is the prefix that every network may use to reach IPv4
	// addresses from IPv6 (RFC 6052, 2.1).
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")
	// localNAT64 is for prefixes that a network chooses for itself (RFC 8215). Only
	// that network knows where in an address the IPv4 address is.
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
)

const (
	nat64Timeout = 3 * time.Second // for one lookup, at the first IPv6 connection
	nat64Keep    = time.Hour
	nat64Retry   = time.Minute // after a failure
)

// nat64 finds the prefixes by which this network reaches IPv4 addresses from IPv6.
// For such an address the guard checks the IPv4 address inside it, which is what
// the network's gateway connects to.
type nat64 struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	found []netip.Prefix
	until time.Time // found is valid until then
}

// embedded is the IPv4 address that the gateway would connect to for a, false when
// a is not a NAT64 address.
func (n *nat64) embedded(a netip.Addr) (netip.Addr, bool) {
	switch {
	case a.Zone() != "":
		return a, false
	case wellKnownNAT64.Contains(a):
		return embeddedIPv4(a, wellKnownNAT64.Bits()), true
	case n == nil || !localNAT64.Contains(a) && !globalIPv6.Contains(a): // the resolver is not trusted to name a private prefix
		return a, false
	}
	for _, p := range n.prefixes() {
		if p.Contains(a) {
			return embeddedIPv4(a, p.Bits()), true
		}
	}
	return a, false
}

// prefixes returns the network's prefixes and asks the resolver when they are too
// old. ipv4only.arpa has two known A records and no AAAA record, so an AAAA answer
// was made by the network's DNS64 (RFC 7050).
func (n *nat64) prefixes() []netip.Prefix {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.until) {
		return n.found
	}
	ctx, cancel := context.WithTimeout(context.Background(), nat64Timeout)
	defer cancel()
	addrs, err := n.lookup(ctx, "ip6", "ipv4only.arpa.")
	var none *net.DNSError
	if err != nil && (!errors.As(err, &none) || !none.IsNotFound) {
		n.until = time.Now().Add(nat64Retry) // until then the old prefixes stay
		return n.found
	}
	n.found, n.until = nil, time.Now().Add(nat64Keep)
	for _, a := range addrs {
		if p, ok := nat64Prefix(a); ok && !slices.Contains(n.found, p) {
			n.found = append(n.found, p)
		}
	}
	return n.found
}

// nat64Prefix finds the prefix of an address that DNS64 made from 192.0.0.170 or
// 192.0.0.171 (RFC 7050, 3). It returns false when two prefix lengths are possible.
func nat64Prefix(a netip.Addr) (found netip.Prefix, ok bool) {
	if !a.Is6() || a.Is4In6() {
		return found, false
	}
	for _, bits := range []int{32, 40, 48, 56, 64, 96} { // RFC 6052, 2.2
		v4 := embeddedIPv4(a, bits).As4()
		if v4 != [4]byte{192, 0, 0, 170} && v4 != [4]byte{192, 0, 0, 171} || bits < 96 && a.As16()[8] != 0 {
			continue
		}
		if ok {
			return netip.Prefix{}, false
		}
		p, err := a.WithZone("").Prefix(bits)
		if err != nil {
			return netip.Prefix{}, false
		}
		found, ok = p, true
	}
	return found, ok
}

// embeddedIPv4 is the IPv4 address after a prefix of the given length; the ninth
// byte is never part of it (RFC 6052, 2.2).
func embeddedIPv4(a netip.Addr, bits int) netip.Addr {
	var v4 [4]byte
	b := a.As16()
	for i, at := 0, bits/8; i < len(v4); at++ {
		if at == 8 {
			continue
		}
		v4[i] = b[at]
		i++
	}
	return netip.AddrFrom4(v4)
}
