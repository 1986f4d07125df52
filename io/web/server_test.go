package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// names is a resolver that knows the addresses of names.
func names(of map[string]string) func(context.Context, string, string) ([]netip.Addr, error) {
	return func(_ context.Context, _, host string) (list []netip.Addr, err error) {
		if a, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{a}, nil
		}
		for _, a := range strings.Fields(of[strings.TrimSuffix(host, ".")]) {
			list = append(list, netip.MustParseAddr(a))
		}
		if len(list) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return list, nil
	}
}

// answering is a connection to a server that answers each request with 200.
func answering() net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		for in := bufio.NewReader(theirs); ; {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}()
	return ours
}

// Names on one address get one request at a time and a pause between two, redirects
// too, while other servers are asked. Those of one IPv6 network of 64 bits are on one
// server. A network of the list gets its rate.
func TestServers(t *testing.T) {
	hosts := map[string]string{"a.test": "93.184.215.14", "b.test": "2606:2800:21f::1 ::ffff:93.184.215.14", "c.test": "93.184.215.15",
		"x.test": "2606:2800:21f:1::1", "y.test": "2606:2800:21f:1::2", "z.test": "2606:2800:21f:2::1",
		"p.test": "104.16.0.1", "q.test": "104.16.0.1", "r.test": "172.64.0.9"}
	for _, tt := range []struct {
		delay time.Duration
		urls  string
		want  map[string]string
	}{
		{3 * sec, "a.test b.test a.test c.test", map[string]string{"a.test": "0s 8s", "b.test": "4s", "c.test": "0s"}},
		{0, "a.test b.test c.test", map[string]string{"a.test": "0s", "b.test": "0s", "c.test": "0s"}},
		{3 * sec, "c.test/to-a.test a.test", map[string]string{"c.test": "0s", "a.test": "0s 4s"}}, // the redirect waits for the server
		{3 * sec, "x.test y.test z.test", map[string]string{"x.test": "0s", "y.test": "4s", "z.test": "0s"}},
		{3 * sec, "p.test q.test r.test", map[string]string{"p.test": "0s", "q.test": "500ms", "r.test": "1s"}},
		{3 * sec, "93.184.215.14 a.test", map[string]string{"93.184.215.14": "0s", "a.test": "4s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newTestClient(t, web.Config{}, sec, func(_ int, r *http.Request) answer {
				if _, to, ok := strings.Cut(r.URL.Path, "/to-"); ok {
					return answer{status: 301, took: sec, header: http.Header{"Location": {"http://" + to + "/"}}}
				}
				return answer{status: 200, took: sec}
			})
			web.SetLookup(a.Web, names(hosts))
			a.Pacer.Servers = polite.Servers{Delay: tt.delay, Rate: 2}
			var wg sync.WaitGroup
			for i, u := range strings.Fields(tt.urls) {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Nanosecond) // in this order
					a.get(a.again(), "http://"+u)
				})
			}
			wg.Wait()
			got := map[string]string{}
			slices.SortFunc(a.log, func(x, y request) int { return int(x.start - y.start) })
			for _, e := range a.log {
				got[e.host] = strings.TrimSpace(got[e.host] + " " + e.start.Truncate(time.Millisecond).String())
			}
			assert.Equal(t, tt.want, got, "%s, %v: requests started at", tt.urls, tt.delay)
		})
	}
}

// While a site waits for its own pause, its server serves other sites. A name that does
// not resolve, or that leads to this network, takes no turn.
func TestServerIsFreeInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, sec, func(_ int, r *http.Request) answer {
			if r.URL.Path == "/busy" {
				return answer{status: 429, header: http.Header{"Retry-After": {"9"}}}
			}
			return answer{status: 200}
		})
		web.SetLookup(a.Web, names(map[string]string{"a.test": "93.184.215.14", "b.test": "93.184.215.14"}))
		a.Pacer.Servers.Delay = 2 * sec
		var wg sync.WaitGroup
		wg.Go(func() { a.get(a.again(), "http://a.test/busy", "http://a.test/") })
		time.Sleep(sec)
		a.get(a.again(), "http://b.test/", "http://b.test/")
		wg.Wait()
		a.started(0, 2*sec, 4*sec, 9*sec)
		assert.LessOrEqual(t, a.Pacer.Len(), 3)
	})
}

// A request goes to the address whose turn it waited for. An address that cannot be
// reached counts as another server: the host's next one is asked at its own turn.
func TestServerIsTheOneThatIsAsked(t *testing.T) {
	type result struct {
		dialled, turns string
		kind           web.Kind
	}
	for _, tt := range []struct {
		name, addrs, refuse string
		want                result
	}{
		{"the first", "93.184.215.14 93.184.215.15", "", result{"93.184.215.14:80", "93.184.215.14", ""}},
		{"IPv4 first", "2606:2800:21f::1 93.184.215.14", "", result{"93.184.215.14:80", "93.184.215.14", ""}},
		{"the next", "93.184.215.14 93.184.215.15", "93.184.215.14", result{"93.184.215.14:80 93.184.215.15:80", "93.184.215.14 93.184.215.15", ""}},
		{"none", "93.184.215.14 93.184.215.15", "93.184.215.14 93.184.215.15", result{"93.184.215.14:80 93.184.215.15:80", "93.184.215.14 93.184.215.15", web.KindConnect}},
		{"four at most", "1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5", "1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4", result{"1.1.1.1:80 1.1.1.2:80 1.1.1.3:80 1.1.1.4:80", "1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4", web.KindConnect}},
		{"a private one", "10.0.0.1 93.184.215.14", "", result{"93.184.215.14:80", "93.184.215.14", ""}},
		{"private ones", "10.0.0.1 127.0.0.1", "", result{"", "invalid IP", web.KindBlocked}},
		{"NAT64", "64:ff9b::5db8:d70e", "", result{"[64:ff9b::5db8:d70e]:80", "93.184.215.14", ""}},
		{"no address", "", "", result{"", "invalid IP", web.KindDNS}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := web.New(web.Config{})
			require.NoError(t, err)
			defer c.Close()
			var (
				got   result
				ended int
			)
			web.SetLookup(c, names(map[string]string{"a.test": tt.addrs}))
			web.SetDial(c, func(_ context.Context, _, addr string) (net.Conn, error) {
				got.dialled += " " + addr
				if host, _, _ := net.SplitHostPort(addr); slices.Contains(strings.Fields(tt.refuse), host) {
					return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
				}
				return answering(), nil
			})
			_, err = c.Get(t.Context(), web.Request{URL: "http://a.test/", Turn: func(ctx context.Context, _ *url.URL, server func(context.Context) netip.Addr) (func(*web.Response, time.Duration), error) {
				got.turns += " " + server(ctx).String()
				return func(*web.Response, time.Duration) { ended++ }, nil
			}})
			var failure *web.Error
			if errors.As(err, &failure) {
				got.kind = failure.Kind
			}
			got.dialled, got.turns = strings.TrimSpace(got.dialled), strings.TrimSpace(got.turns)
			assert.True(t, got == tt.want && (err != nil) == (got.kind != ""), "%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
			n := len(strings.Split(got.turns, " "))
			assert.True(t, tt.addrs == "" || tt.want.kind == web.KindBlocked || ended == n, "%s: %d turns ended, want %d", tt.name, ended, n)
			assert.EqualValues(t, 1, c.Stats().Requests, tt.name)
		})
	}
}

// An address that does not answer gets its part of the time only.
func TestSilentAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, sec, nil)
		a.Pacer.Servers.Delay = sec
		web.SetLookup(a.Web, names(map[string]string{"a.test": "93.184.215.14 93.184.215.15"}))
		silent := 0
		web.SetDial(a.Web, func(ctx context.Context, _, addr string) (net.Conn, error) {
			if addr == "93.184.215.14:80" {
				silent++
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return answering(), nil
		})
		for range 2 { // the second one begins with the address that answers
			resp, err := a.Get(t.Context(), polite.Request{URL: "http://a.test/", Timeout: 10 * sec})
			assert.True(t, err == nil && resp.Status == 200 && silent == 1, "%+v, %v after %d tries of the silent address", resp, err, silent)
		}
		assert.EqualValues(t, 7*sec, time.Since(a.origin), "it took") // half of the timeout, and two gaps
		a.Close()
	})
}

// A host that many visits lead to is looked up once a minute, also one that does not exist.
// A failure that may pass is not kept. Public names are asked for as they are, without a search list.
func TestRecentLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, 0, func(int, *http.Request) answer { return answer{status: 200} })
		a.Pacer.Servers.Delay = time.Millisecond
		asked := map[string]int{}
		web.SetLookup(a.Web, func(_ context.Context, _, host string) ([]netip.Addr, error) {
			asked[host]++
			switch host {
			case "none.test.":
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			case "busy.test.":
				return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
			}
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		})
		visit := func() {
			for _, host := range []string{"a.test", "none.test", "busy.test"} {
				c := a.again()
				_, _ = c.Get(t.Context(), polite.Request{URL: "http://" + host + "/"})
				c.Close()
			}
		}
		visit()
		visit()
		assert.Equal(t, map[string]int{"a.test.": 1, "none.test.": 1, "busy.test.": 2}, asked, "asked for")
		time.Sleep(2 * time.Minute)
		visit()
		assert.Equal(t, map[string]int{"a.test.": 2, "none.test.": 2, "busy.test.": 3}, asked, "two minutes later asked for")
	})
}
