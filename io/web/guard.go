package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/idna"
)

// blockedError is the guard's refusal.
type blockedError struct{ what, why string }

func (e *blockedError) Error() string { return e.what + " is refused: " + e.why }

// privateError is a refusal that an intranet's owner may lift.
type privateError struct{ of *blockedError }

func (e *privateError) Error() string { return e.of.Error() + " (--allow-private allows it)" }

func (e *privateError) Unwrap() error { return e.of }

// guard allows connections to the public internet only. Raw files, robots.txt,
// sitemaps and redirects are written by strangers, who must not be able to
// direct the crawler to this machine, its network or its cloud's metadata service.
type guard struct {
	private bool                    // allow everything, for tests and intranets
	anyPort bool                    // allow ports other than 80 and 443
	refuse  func(netip.Addr) string // why an address is refused, "" when it is not
	nat64   *nat64                  // this network's prefixes; nil: only the well-known one
	own     *ownAddresses           // this machine's; nil: not checked
}

// guard is the guard of a client with this configuration, without NAT64 prefixes of this network.
func (cfg Config) guard() guard {
	return guard{private: cfg.AllowPrivate, anyPort: cfg.ConnectTo != "", refuse: refuseAddr, own: &ownAddresses{list: net.InterfaceAddrs}}
}

// Check refuses a URL that a client would not request whatever its name resolves to.
func (cfg Config) Check(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	g := cfg.guard()
	return g.url(u)
}

// url checks scheme, port, name and literal addresses of u, and rewrites its
// host to the form that is dialled (lower case, ASCII), so that the spelling that
// was checked is the one that is used.
func (g *guard) url(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return &blockedError{strconv.Quote(u.Scheme), "only http and https URLs are fetched"}
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if host != u.Hostname() || strings.HasSuffix(u.Host, ":") {
		u.Host = host
		if strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
		if port != "" {
			u.Host += ":" + port
		}
	}
	if g.private {
		return nil
	}
	if !g.anyPort && port != "" && port != "80" && port != "443" {
		return &privateError{&blockedError{"port " + port, "only 80 and 443 are used"}}
	}
	return g.host(host)
}

// host checks a name or a literal address in any spelling.
func (g *guard) host(host string) error {
	host = strings.TrimSuffix(host, ".")
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return &blockedError{host, "not an address"}
		}
		return g.addr(a)
	}
	a, number, ok := looseIPv4(host)
	switch {
	case ok:
		return g.addr(a)
	case number:
		return &blockedError{host, "neither a name nor an address"}
	}
	if why := refuseName(host); why != "" {
		return &privateError{&blockedError{host, why}}
	}
	return nil
}

func (g *guard) addr(a netip.Addr) error {
	if g.private {
		return nil
	}
	if why := g.why(a); why != "" {
		return &privateError{&blockedError{a.String(), why}}
	}
	return nil
}

// why says why an address is refused, "" when it is not.
func (g *guard) why(a netip.Addr) string {
	if v4, ok := g.nat64.embedded(a); ok {
		if why := g.why(v4); why != "" {
			return "NAT64 of " + v4.String() + ", " + why
		}
		return ""
	}
	if why := g.refuse(a); why != "" {
		return why
	}
	if g.own.contains(a) {
		return "an address of this machine"
	}
	return ""
}

// ownAddresses are the addresses of this machine's interfaces. A service on a
// public one may trust requests that come from the machine itself.
type ownAddresses struct {
	list func() ([]net.Addr, error)

	mu    sync.Mutex
	have  map[netip.Addr]bool
	until time.Time
}

const ownKeep = 10 * time.Second

func (o *ownAddresses) contains(a netip.Addr) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); !now.Before(o.until) {
		o.until = now.Add(ownKeep)
		if addrs, err := o.list(); err == nil { // else the old list stays
			o.have = map[netip.Addr]bool{}
			for _, each := range addrs {
				if p, err := netip.ParsePrefix(each.String()); err == nil && !p.Addr().IsLoopback() {
					o.have[p.Addr().Unmap().WithZone("")] = true
				}
			}
		}
	}
	return o.have[a.Unmap().WithZone("")]
}

// control is a net.Dialer.Control. It checks the address that is about to be
// connected to, because a name may resolve to another address than before.
func (g *guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &blockedError{address, "not an address"}
	}
	return g.addr(ap.Addr())
}

// loopbackOnly is a net.Dialer.Control for a simulated internet, which runs on
// this machine. It refuses every address that is not a loopback one.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	if ap, err := netip.ParseAddrPort(address); err != nil || !ap.Addr().IsLoopback() {
		return &blockedError{address, "not on the simulated internet"}
	}
	return nil
}

// asciiHost is host as net/http would send it. ASCII names are only made lower case
// and not checked as host names: underscores are invalid but common.
func asciiHost(host string) (string, error) {
	if host == "" {
		return "", &blockedError{"the URL", "it has no host"}
	}
	for i := range len(host) {
		if host[i] >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(host)
			if err != nil || ascii == "" {
				return "", &blockedError{host, fmt.Sprint("not a host name: ", err)}
			}
			return ascii, nil
		}
		if host[i] <= ' ' || host[i] == 0x7f || strings.IndexByte(`/\?#@<>^|"`, host[i]) >= 0 {
			return "", &blockedError{strconv.Quote(host), "not a host name"}
		}
	}
	return strings.ToLower(host), nil
}

// privateNames end names that never lead to the public internet: RFC 6761
// (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's resolution of
// 2024-07-29 (internal; also the metadata name of Google's cloud).
var privateNames = [...]string{"localhost", "localdomain", "local", "internal", "home.arpa"}

func refuseName(name string) string {
	for _, p := range privateNames {
		if name == p || strings.HasSuffix(name, p) && name[len(name)-len(p)-1] == '.' {
			return "a name for private use"
		}
	}
	if !strings.Contains(name, ".") {
		return "a name without a dot is not on the public internet"
	}
	return ""
}

// looseIPv4 reads IPv4 as inet_aton and the WHATWG URL standard do: one to four
// parts, each decimal, octal (0…) or hexadecimal (0x…); the last part fills all
// remaining bytes. number reports that host ends in a number, so that it can only
// be an address.
func looseIPv4(host string) (a netip.Addr, number, ok bool) {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := parseNumber(last); err != nil && !errors.Is(err, strconv.ErrRange) && !allDigits(last) {
		return a, false, false
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return a, true, false
	}
	var v uint64
	for i, p := range parts {
		n, err := parseNumber(p)
		if err != nil {
			return a, true, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return a, true, false
			}
			v |= n << (24 - 8*i)
			continue
		}
		if n >= 1<<(8*(5-len(parts))) {
			return a, true, false
		}
		v |= n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true, true
}

func parseNumber(s string) (uint64, error) {
	switch {
	case s == "0x" || s == "0X":
		return 0, nil // by the WHATWG URL standard
	case len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'):
		return strconv.ParseUint(s[2:], 16, 64)
	case len(s) > 1 && s[0] == '0':
		return strconv.ParseUint(s[1:], 8, 64)
	}
	return strconv.ParseUint(s, 10, 64)
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// specialAddresses are the blocks of the IANA special-purpose registries (RFC
// 6890 and its updates) that are not the public internet, or that carry
// another address inside. The first match gives the reason.
var specialAddresses = func() []specialBlock {
	var blocks []specialBlock
	for _, b := range [][2]string{
		{"0.0.0.0/8", "unspecified"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared by carriers (CGNAT)"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local"}, // 169.254.169.254: metadata of most clouds
		{"168.63.129.16/32", "metadata of a cloud"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "reserved"},
		{"192.0.2.0/24", "documentation"},
		{"192.88.99.0/24", "6to4 relay"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "benchmarking"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"255.255.255.255/32", "broadcast"},
		{"240.0.0.0/4", "reserved"},

		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"::ffff:0:0/96", "IPv4-mapped"},
		{"::/96", "IPv4-compatible"},
		{"64:ff9b::/96", "NAT64"},
		{"64:ff9b:1::/48", "NAT64 of a prefix that is not this network's"},
		{"2001::/32", "Teredo"},
		{"2001:2::/48", "benchmarking"},
		{"2001::/23", "reserved"},
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "6to4"},
		{"3ffe::/16", "reserved"},
		{"3fff::/20", "documentation"},
		{"fc00::/7", "private (ULA)"},
		{"fe80::/10", "link-local"},
		{"fec0::/10", "site-local"},
		{"ff00::/8", "multicast"},
	} {
		blocks = append(blocks, specialBlock{netip.MustParsePrefix(b[0]), b[1]})
	}
	return blocks
}()

type specialBlock struct {
	netip.Prefix
	why string
}

// globalIPv6 is the only block that IANA assigns global unicast addresses from.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// refuseAddr says why a is not an address of the public internet, "" if it is.
func refuseAddr(a netip.Addr) string {
	zone := a.Zone()
	a = a.WithZone("") // a prefix contains no address with a zone
	for _, b := range specialAddresses {
		if b.Contains(a) {
			return b.why
		}
	}
	if !a.IsValid() || a.Is6() && !globalIPv6.Contains(a) {
		return "reserved"
	}
	if zone != "" {
		return "an address with a zone is of a local network"
	}
	if a.Is6() {
		if b := a.As16(); b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
			return "ISATAP" // RFC 5214, 6.1: an IPv4 address in any prefix
		}
	}
	return ""
}
