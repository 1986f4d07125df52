package web

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func TestGuard(t *testing.T) {
	for want, urls := range cases.Table[map[string][]string](t, "guard.yaml") {
		for _, at := range urls {
			u, err := url.Parse(at)
			require.NoError(t, err)
			g := guard{refuse: refuseAddr}
			assert.Equal(t, want, why(t, g.url(u)), at)
		}
	}
}

func why(t *testing.T, err error) string {
	t.Helper()
	var b *blockedError
	require.True(t, err == nil || errors.As(err, &b), "%v is a %T, want a *blockedError", err, err)
	if b == nil {
		return ""
	}
	return b.why
}

// Of an address of the network's NAT64 gateway, the guard checks the IPv4 address
// inside it, for each prefix length. The prefix is learned from the address that
// DNS64 makes of a known one.
func TestNAT64(t *testing.T) {
	for _, tt := range []struct{ known, public, private string }{
		{"64:ff9b::192.0.0.170", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1"},
		{"64:ff9b:1::192.0.0.171", "64:ff9b:1::8.8.8.8", "64:ff9b:1::10.0.0.1"},
		{"64:ff9b:1:fffe::192.0.0.170", "64:ff9b:1:fffe::8.8.8.8", "64:ff9b:1:fffe::10.0.0.1"},
		{"64:ff9b:1:c000:0:aa00::", "64:ff9b:1:0808:8:800::", "64:ff9b:1:0a00:0:100::"},          // /48
		{"2a00:1450:c000:aa::", "2a00:1450:808:808::", "2a00:1450:a00:1::"},                      // /32
		{"2a00:1450:64c0:0:aa::", "2a00:1450:6408:808:8::", "2a00:1450:640a:0:1::"},              // /40
		{"2a00:1450:64:c0:0:aa::", "2a00:1450:64:8:8:808::", "2a00:1450:64:a:0:1::"},             // /56
		{"2a00:1450:64:1:c0:0:aa00::", "2a00:1450:64:1:8:808:800::", "2a00:1450:64:1:a:0:100::"}, // /64
		{"2a00:1450:64::192.0.0.170", "2a00:1450:64::8.8.8.8", "2a00:1450:64::10.0.0.1"},         // /96
	} {
		asked := 0
		g := guard{refuse: refuseAddr, nat64: &nat64{lookup: func(_ context.Context, network, host string) ([]netip.Addr, error) {
			asked++
			assert.True(t, network == "ip6" && host == "ipv4only.arpa.", "asked for %s of %s", network, host)
			return []netip.Addr{netip.MustParseAddr(tt.known)}, nil
		}}}
		assert.Equal(t, "", g.why(netip.MustParseAddr(tt.public)), "%s with %s: refused", tt.public, tt.known)
		assert.Equal(t, "NAT64 of 10.0.0.1, private", g.why(netip.MustParseAddr(tt.private)), "%s with %s", tt.private, tt.known)
		assert.Equal(t, "", g.why(netip.MustParseAddr("2606:4700::1111")), "another address with %s", tt.known)
		g.why(netip.MustParseAddr("8.8.8.8"))
		assert.True(t, asked <= 1, "asked %d times for the prefix", asked)
	}
}

// A prefix that the network cannot have is ignored. After a failure the resolver is
// asked again a minute later.
func TestNAT64Unknown(t *testing.T) {
	for _, known := range []string{"192.0.0.170", "::ffff:192.0.0.170", "2a00:1450:64::8.8.8.8", "2a00:1450:c000:aa:c000:aa::", "fd00:64::192.0.0.170"} {
		g := guard{refuse: refuseAddr, nat64: &nat64{lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(known)}, nil
		}}}
		for at, want := range map[string]string{
			"64:ff9b:1::8.8.8.8": "NAT64 of a prefix that is not this network's", "fd00:64::8.8.8.8": "private (ULA)", "::ffff:8.8.8.8": "IPv4-mapped", "2a00:1450:64::10.0.0.1": "",
		} {
			assert.Equal(t, want, g.why(netip.MustParseAddr(at)), "%s with %s", at, known)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		at, asked := netip.MustParseAddr("64:ff9b:1::8.8.8.8"), 0
		answers := []error{errors.New("server misbehaving"), &net.DNSError{IsTimeout: true}, nil, &net.DNSError{IsTimeout: true}, &net.DNSError{IsNotFound: true}}
		g := guard{refuse: refuseAddr, nat64: &nat64{lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			asked++
			if err := answers[asked-1]; err != nil {
				return nil, err
			}
			return []netip.Addr{netip.MustParseAddr("64:ff9b:1::192.0.0.170")}, nil
		}}}
		const no = "NAT64 of a prefix that is not this network's"
		for i, step := range []struct {
			wait time.Duration
			why  string
		}{{0, no}, {59 * sec, no}, {sec, no}, {60 * sec, ""}, {59 * 60 * sec, ""}, {60 * sec, ""}, {60 * sec, no}} {
			time.Sleep(step.wait)
			assert.Equal(t, step.why, g.why(at), "step %d", i)
		}
		assert.Equal(t, len(answers), asked, "asked")
	})
}

// The addresses of this machine's interfaces are refused, also behind NAT64.
func TestOwnAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		have := []net.Addr{&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:4700::1"), Mask: net.CIDRMask(64, 128)},
			&net.IPNet{IP: net.ParseIP("127.0.0.1"), Mask: net.CIDRMask(8, 32)}}
		var failure error
		g := guard{refuse: refuseAddr, own: &ownAddresses{list: func() ([]net.Addr, error) { return have, failure }}}
		f := func(want string, addrs ...string) {
			t.Helper()
			for _, a := range addrs {
				assert.Equal(t, want, why(t, g.control("tcp", net.JoinHostPort(a, "80"), nil)), a)
			}
		}
		const mine = "an address of this machine"
		f(mine, "8.8.4.4", "2606:4700::1")
		f("NAT64 of 8.8.4.4, "+mine, "64:ff9b::8.8.4.4")
		f("", "8.8.4.5", "2606:4700::2", "64:ff9b::8.8.4.5")
		have = have[1:]
		time.Sleep(ownKeep)
		f("", "8.8.4.4")
		have, failure = nil, errors.New("no netlink")
		time.Sleep(ownKeep)
		f(mine, "2606:4700::1")
	})
	// The real ones: all are refused for one reason or another.
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	c := client(t, Config{})
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		assert.True(t, err == nil && c.guard.addr(p.Addr()) != nil, "%s of this machine is not refused (%v)", a, err)
	}
}

func TestGuardLifted(t *testing.T) {
	check := func(g guard, raw, want string) {
		t.Helper()
		u, err := url.Parse(raw)
		require.NoError(t, err)
		assert.Equal(t, want, why(t, g.url(u)), raw)
	}
	private := guard{private: true, refuse: refuseAddr}
	check(private, "http://127.0.0.1:8080/", "")
	check(private, "http://localhost/", "")
	check(private, "ftp://localhost/", "only http and https URLs are fetched")
	connectTo := guard{anyPort: true, refuse: refuseAddr}
	check(connectTo, "http://example.com:8080/", "")
	check(connectTo, "http://127.0.0.1:8080/", "loopback")
	check(connectTo, "http://localhost/", "a name for private use")
}

func TestGuardRewritesHost(t *testing.T) {
	for in, want := range map[string]string{
		"http://EXAMPLE.com:80/A":  "http://example.com:80/A",
		"http://Bücher.example/":   "http://xn--bcher-kva.example/",
		"http://[2606:4700::AB]/x": "http://[2606:4700::ab]/x",
		"http://example.com:/":     "http://example.com/",
	} {
		u, err := url.Parse(in)
		require.NoError(t, err)
		g := guard{refuse: refuseAddr}
		err = g.url(u)
		assert.True(t, err == nil && u.String() == want, "%s: %s, %v, want %s", in, u, err, want)
	}
}

func TestControl(t *testing.T) {
	g := guard{refuse: refuseAddr}
	for addr, want := range map[string]string{
		"8.8.8.8:80":         "",
		"127.0.0.1:80":       "loopback",
		"[::1]:443":          "loopback",
		"[fe80::1%lo]:80":    "link-local",
		"169.254.169.254:80": "link-local",
		"nonsense":           "not an address",
	} {
		assert.Equal(t, want, why(t, g.control("tcp", addr, nil)), addr)
	}
}

func FuzzLooseIPv4(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "0x7f.1", "2130706433", "a.b", "", ".", "1..2", "0x", "09"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, number, ok := looseIPv4(s)
		assert.True(t, !ok || (number && a.Is4()), "%q: %v, number %v", s, a, number)
		strict, err := netip.ParseAddr(s)
		assert.True(t, err != nil || !strict.Is4() || (ok && a == strict), "%q: %v %v, netip says %v", s, a, ok, strict)
	})
}
