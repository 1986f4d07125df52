package web

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"
)

func TestGuard(t *testing.T) {
	const ok = ""
	tests := []struct{ url, why string }{
		{"https://example.com/", ok},
		{"http://example.com:80/", ok},
		{"https://example.com:443/robots.txt", ok},
		{"http://my_host.example.com/", ok},
		{"http://example.com./", ok},
		{"http://8.8.8.8/", ok},
		{"http://134744072/", ok}, // 8.8.8.8
		{"http://[2606:4700::1111]/", ok},
		{"http://xn--bcher-kva.example/", ok},
		{"http://bücher.example/", ok},
		{"http://127.0.0.1.example.com/", ok},
		{"http://localhost.example.com/", ok},
		{"http://11.0.0.1/", ok},
		{"http://100.128.0.1/", ok},
		{"http://172.32.0.1/", ok},
		{"http://169.253.0.1/", ok},
		{"http://192.167.1.1/", ok},
		{"http://198.20.0.1/", ok},

		{"ftp://example.com/", "only http and https URLs are fetched"},
		{"file:///etc/passwd", "only http and https URLs are fetched"},
		{"gopher://example.com/", "only http and https URLs are fetched"},
		{"//example.com/", "only http and https URLs are fetched"},
		{"http:///x", "it has no host"},
		{"http://example.com:8080/", "only 80 and 443 are used"},
		{"http://example.com:22/", "only 80 and 443 are used"},
		{"http://example.com:0/", "only 80 and 443 are used"},

		{"http://localhost/", "a name for private use"},
		{"http://LOCALHOST/", "a name for private use"},
		{"http://localhost./", "a name for private use"},
		{"http://a.localhost/", "a name for private use"},
		{"http://localhost.localdomain/", "a name for private use"},
		{"http://printer.local/", "a name for private use"},
		{"http://metadata.google.internal/computeMetadata/v1/", "a name for private use"},
		{"http://router.home.arpa/", "a name for private use"},
		{"http://metadata/", "a name without a dot is not on the public internet"},
		{"http://ip6-loopback/", "a name without a dot is not on the public internet"},

		{"http://127.0.0.1/", "loopback"},
		{"http://127.255.255.254/", "loopback"},
		{"http://127.0.0.1./", "loopback"},
		{"http://2130706433/", "loopback"},
		{"http://0x7f000001/", "loopback"},
		{"http://0x7f.1/", "loopback"},
		{"http://0X7F.0.0.0x1/", "loopback"},
		{"http://0177.0.0.1/", "loopback"},
		{"http://017700000001/", "loopback"},
		{"http://127.1/", "loopback"},
		{"http://127.0.1/", "loopback"},
		{"http://１２７.0.0.1/", "loopback"},
		{"http://127。0。0。1/", "loopback"},
		{"http://0/", "unspecified"},
		{"http://0x/", "unspecified"},
		{"http://0.0.0.0/", "unspecified"},
		{"http://0.1.2.3/", "unspecified"},
		{"http://10.0.0.1/", "private"},
		{"http://0xa000001/", "private"},
		{"http://172.16.0.1/", "private"},
		{"http://172.31.255.255/", "private"},
		{"http://192.168.1.1/", "private"},
		{"http://3232235777/", "private"}, // 192.168.1.1
		{"http://169.254.169.254/latest/meta-data/", "link-local"},
		{"http://2852039166/", "link-local"}, // 169.254.169.254
		{"http://0251.0376.0251.0376/", "link-local"},
		{"http://100.64.0.1/", "shared by carriers (CGNAT)"},
		{"http://100.100.100.200/", "shared by carriers (CGNAT)"},
		{"http://100.127.255.255/", "shared by carriers (CGNAT)"},
		{"http://168.63.129.16/", "metadata of a cloud"},
		{"http://192.0.0.192/", "reserved"},
		{"http://192.0.2.1/", "documentation"},
		{"http://198.51.100.7/", "documentation"},
		{"http://203.0.113.9/", "documentation"},
		{"http://192.88.99.1/", "6to4 relay"},
		{"http://198.18.0.1/", "benchmarking"},
		{"http://198.19.255.255/", "benchmarking"},
		{"http://224.0.0.1/", "multicast"},
		{"http://239.255.255.250/", "multicast"},
		{"http://240.0.0.1/", "reserved"},
		{"http://255.255.255.255/", "broadcast"},
		{"http://256.0.0.1/", "neither a name nor an address"},
		{"http://1.2.3.4.5/", "neither a name nor an address"},
		{"http://127.0.0.08/", "neither a name nor an address"},
		{"http://4294967296/", "neither a name nor an address"},
		{"http://99999999999999999999999/", "neither a name nor an address"},
		{"http://foo.0x7f/", "neither a name nor an address"},

		{"http://[::]/", "unspecified"},
		{"http://[::1]/", "loopback"},
		{"http://[0:0:0:0:0:0:0:1]/", "loopback"},
		{"http://[::ffff:127.0.0.1]/", "IPv4-mapped"},
		{"http://[::ffff:7f00:1]/", "IPv4-mapped"},
		{"http://[::ffff:a9fe:a9fe]/", "IPv4-mapped"},
		{"http://[::FFFF:8.8.8.8]/", "IPv4-mapped"},
		{"http://[::127.0.0.1]/", "IPv4-compatible"},
		{"http://[64:ff9b::7f00:1]/", "NAT64"},
		{"http://[64:ff9b::8.8.8.8]/", "NAT64"},
		{"http://[64:ff9b:1::a00:1]/", "NAT64"},
		{"http://[2002:7f00:1::]/", "6to4"},
		{"http://[2001:0:4136:e378::1]/", "Teredo"},
		{"http://[2001:2::1]/", "benchmarking"},
		{"http://[2001:10::1]/", "reserved"},
		{"http://[2001:db8::1]/", "documentation"},
		{"http://[3fff::1]/", "documentation"},
		{"http://[3ffe::1]/", "reserved"},
		{"http://[fc00::1]/", "private (ULA)"},
		{"http://[fd00:ec2::254]/", "private (ULA)"},
		{"http://[fe80::1]/", "link-local"},
		{"http://[fe80::1%25eth0]/", "link-local"},
		{"http://[fec0::1]/", "site-local"},
		{"http://[ff02::1]/", "multicast"},
		{"http://[100::1]/", "reserved"},
		{"http://[5f00::1]/", "reserved"},
		{"http://[4000::1]/", "reserved"},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		g := guard{refuse: refuseAddr}
		if got := why(t, g.url(u)); got != tt.why {
			t.Errorf("%s: %q, want %q", tt.url, got, tt.why)
		}
	}
}

func why(t *testing.T, err error) string {
	t.Helper()
	var b *blockedError
	if err != nil && !errors.As(err, &b) {
		t.Fatalf("%v is a %T, want a *blockedError", err, err)
	}
	if b == nil {
		return ""
	}
	return b.why
}

func TestGuardLifted(t *testing.T) {
	check := func(g guard, raw, want string) {
		t.Helper()
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := why(t, g.url(u)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		g := guard{refuse: refuseAddr}
		if err := g.url(u); err != nil || u.String() != want {
			t.Errorf("%s: %s, %v, want %s", in, u, err, want)
		}
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
		if got := why(t, g.control("tcp", addr, nil)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func FuzzLooseIPv4(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "0x7f.1", "2130706433", "a.b", "", ".", "1..2", "0x", "09"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, number, ok := looseIPv4(s)
		if ok && (!number || !a.Is4()) {
			t.Errorf("%q: %v, number %v", s, a, number)
		}
		if strict, err := netip.ParseAddr(s); err == nil && strict.Is4() && (!ok || a != strict) {
			t.Errorf("%q: %v %v, netip says %v", s, a, ok, strict)
		}
	})
}
