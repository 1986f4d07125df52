package polite_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/polite"
)

// What the server sees of names on one address: one request at a time, and a pause from
// the end of each to the start of the next, also where requests are parallel, are
// retried, or follow a redirect.
func TestTurnsAtAServer(t *testing.T) {
	var mu sync.Mutex
	at, most := 0, 0
	var ended time.Time
	var w *world
	short := 0
	serve := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at++
			most = max(most, at)
			if !ended.IsZero() && w.clock.Now().Sub(ended) < 5*sec {
				short++
			}
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			at--
			ended = w.clock.Now()
			mu.Unlock()
			answer(rw, r)
		}
	}
	ok := serve(respond(200, ""))
	w = newWorld(t, map[string][]http.HandlerFunc{
		"a.example/": list(ok), "b.example/": list(ok), "www.a.example/": list(ok),
		"a.example/to-b": list(serve(respond(301, "", "Location", "https://b.example/"))),
		"b.example/busy": list(serve(respond(503, "", "Retry-After", "2")), ok),
	})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	crawl := func(clients ...*polite.Client) {
		at, most, ended, short = 0, 0, time.Time{}, 0
		var wg sync.WaitGroup
		for i, u := range []string{"a.example/", "b.example/", "www.a.example/", "a.example/to-b", "b.example/busy", "a.example/", "b.example/"} {
			c := clients[i%len(clients)]
			wg.Go(func() {
				visit := &polite.Client{Web: c.Web, Pacer: c.Pacer, Policy: p}
				defer visit.Close()
				resp, err := visit.Get(t.Context(), polite.Request{URL: "https://" + u, MaxRedirects: 2, Parallel: i%2 == 0})
				assert.True(t, err == nil && resp.Status == 200, "%s: %+v, %v", u, resp, err)
			})
		}
		wg.Wait()
		require.Equal(t, 1, most)
		require.Zero(t, short)
	}
	c := w.client(p)
	c.Pacer.Servers.Delay = 5 * sec
	crawl(c)
	require.Len(t, w.requests(), 9)

	// Of several processes one has the server at a time.
	held, last := make(chan struct{}, 1), ""
	process := func(name string) *polite.Client {
		c := w.client(p)
		c.Pacer.Servers.Delay = 5 * sec
		c.Pacer.Hold = func(_ context.Context, server string) (func(time.Duration), bool, error) {
			require.Equal(t, "server 127.0.0.1", server)
			held <- struct{}{}
			unknown := last != name
			last = name
			return func(rest time.Duration) { <-held }, unknown, nil
		}
		return c
	}
	crawl(process("one"), process("two"))
	require.Len(t, w.requests(), 8) // b.example is busy once

	// Of several jobs too.
	one, two := w.sharing(p)
	one.Pacer.Servers.Delay, two.Pacer.Servers.Delay = 5*sec, 5*sec
	crawl(one, two)
	require.Len(t, w.requests(), 8)
}

// Each process sends a network its part of the network's rate.
func TestPartOfANetworksRate(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/": list(respond(200, "")), "b.example/": list(respond(200, ""))})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c := w.client(p)
	c.Pacer.Servers = polite.Servers{Delay: sec, CDNs: []polite.CDN{{Name: "here", Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, Rate: 2}
	c.Pacer.Part = func() float64 { return 0.1 }
	require.Equal(t, "200", get(t, c, "https://a.example/"))
	require.Equal(t, "200", get(t, c, "https://b.example/"))
	require.Equal(t, []string{"0s a.example/", "5s b.example/"}, w.requests())
}

// A stop does not wait for a server's pause, and leaves its turn to nobody.
func TestStopAtAServer(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/": list(respond(200, "")), "b.example/": list(respond(200, ""))})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c := w.client(p)
	c.Pacer.Servers.Delay = time.Hour
	c.Pacer.Clock = polite.Clock{Now: w.clock.Now} // a real pause
	require.Equal(t, "200", get(t, c, "https://a.example/"))
	control := newControl()
	waiting := &polite.Client{Web: c.Web, Pacer: c.Pacer, Policy: p, Control: control}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := waiting.Get(t.Context(), polite.Request{URL: "https://b.example/"})
			require.ErrorIs(t, err, polite.ErrStopped)
		})
	}
	control.stop()
	wg.Wait()
	w.clock.Advance(time.Hour)
	require.Equal(t, "200", get(t, c, "https://b.example/"))
	require.Len(t, w.requests(), 2)
}

func TestDefaultCDNs(t *testing.T) {
	of := func(a string) (name string) {
		for _, c := range polite.DefaultCDNs() {
			for _, p := range c.Prefixes {
				require.Equal(t, p.Masked(), p)
				if p.Contains(netip.MustParseAddr(a)) {
					require.Empty(t, name, a)
					name = c.Name
				}
			}
		}
		return name
	}
	for a, want := range map[string]string{"104.16.132.229": "cloudflare", "2606:4700::6810:84e5": "cloudflare", "151.101.1.69": "fastly", "185.199.108.153": "github",
		"13.224.0.1": "cloudfront", "23.32.0.1": "akamai", "142.250.74.36": "google", "93.184.215.14": "", "127.0.0.1": "", "8.8.8.8": ""} {
		require.Equal(t, want, of(a), a)
	}
}
