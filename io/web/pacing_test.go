package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

const sec = time.Second

// answer is a host's answer to a request, and how long the host needs for it.
type answer struct {
	status int
	took   time.Duration
	header http.Header
	body   string
}

// request is a request as its host saw it, by the synctest bubble's clock.
type request struct {
	host, path string
	start, end time.Duration
}

// testClient is a polite client with a function instead of the network. Its clock is
// the synctest bubble's.
type testClient struct {
	*polite.Client
	t *testing.T

	mu     sync.Mutex
	n      int
	log    []request
	origin time.Time
}

// newTestClient makes a client whose requests of answers; if of is nil, the network
// does. n counts the requests from 0.
func newTestClient(t *testing.T, cfg web.Config, gap time.Duration, of func(n int, r *http.Request) answer) *testClient {
	t.Helper()
	c, err := web.New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	a := &testClient{t: t, origin: time.Now(), Client: &polite.Client{Web: c, Pacer: &polite.Pacer{}, Policy: polite.Policy{
		Gap: polite.Range{Min: gap}, MaxCrawlDelay: 10 * sec, MaxRetryAfter: 20 * sec,
		Robots: polite.Robots{Agent: "TestBot", MaxRedirects: 5, For: func(*url.URL) *url.URL { return nil }}}}}
	if of == nil {
		return a
	}
	web.SetTransport(c, transport(func(r *http.Request) (*http.Response, error) {
		a.mu.Lock()
		n := a.n
		a.n++
		a.mu.Unlock()
		start := time.Since(a.origin)
		says := of(n, r)
		select {
		case <-time.After(says.took):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		a.mu.Lock()
		a.log = append(a.log, request{r.URL.Host, r.URL.Path, start, time.Since(a.origin)})
		a.mu.Unlock()
		if says.header == nil {
			says.header = http.Header{}
		}
		return &http.Response{StatusCode: says.status, Header: says.header, Body: io.NopCloser(bytes.NewReader([]byte(says.body)))}, nil
	}))
	return a
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// again makes the client of another visit in the same process.
func (a *testClient) again() *polite.Client {
	return &polite.Client{Web: a.Web, Pacer: a.Pacer, Policy: a.Policy}
}

func (a *testClient) get(c *polite.Client, urls ...string) {
	a.t.Helper()
	for _, u := range urls {
		_, err := c.Get(a.t.Context(), polite.Request{URL: u, MaxRedirects: 5})
		assert.NoError(a.t, err)
	}
}

func (a *testClient) started(want ...time.Duration) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var got []time.Duration
	for _, e := range a.log {
		got = append(got, e.start)
	}
	slices.Sort(got)
	assert.Equal(a.t, want, got, "requests started at")
}

func after(d time.Duration) func(int, *http.Request) answer {
	return func(int, *http.Request) answer { return answer{status: 200, took: d} }
}

// A site gets one request at a time, under all of its names, with a gap from the end
// of one to the start of the next.
func TestGapFromTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, sec, after(2*sec))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { a.get(a.Client, "https://a.example/", "http://www.a.example./") })
			wg.Go(func() { a.get(a.again(), "https://b.example/") })
		}
		wg.Wait()
		last := map[string]time.Duration{}
		for _, e := range a.log {
			u := &url.URL{Host: e.host}
			prev, ok := last[web.Site(u)]
			assert.True(t, !ok || e.start == prev+sec, "%s: started at %v, the one before ended at %v", e.host, e.start, prev)
			last[web.Site(u)] = e.end
		}
		assert.True(t, last["a.example"] == 17*sec && last["b.example"] == 8*sec, "ended at %v, want a at 17s and b at 8s", last)
	})
}

// robots.txt is requested from the apex, which redirects to www. Its Crawl-delay
// applies to both names, over both schemes, to redirects between them and to all
// visits of the process, also a minute later. Another port or name is paced
// separately. A delay over the limit is shortened for clients that have not read it.
func TestCrawlDelayOfTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := "3"
		a := newTestClient(t, web.Config{AllowPrivate: true}, sec, func(_ int, r *http.Request) answer {
			switch {
			case r.URL.Host == "a.example":
				return answer{status: 301, header: http.Header{"Location": {"https://www.a.example" + r.URL.Path}}}
			case r.URL.Path == "/robots.txt":
				return answer{status: 200, body: "User-agent: *\nCrawl-delay: " + delay + "\n"}
			}
			return answer{status: 200}
		})
		reads := func() *polite.Client {
			c := a.again()
			c.Policy.Robots.For = func(u *url.URL) *url.URL { return &url.URL{Scheme: "https", Host: "a.example"} }
			return c
		}
		a.get(reads(), "https://a.example/sitemap.xml") // robots.txt at 0, at www. 1; 4, and 7 at www.
		a.get(a.Client, "http://www.a.example/b")       // 10
		a.get(a.Client, "https://a.example/c")          // 13, 16
		a.get(a.Client, "https://www.b.example/")       // 16
		a.get(a.Client, "https://b.example:8443/")      // 16
		a.get(a.Client, "https://b.example/")           // 17: a gap, but no Crawl-delay
		a.started(0, sec, 4*sec, 7*sec, 10*sec, 13*sec, 16*sec, 16*sec, 16*sec, 17*sec)
		time.Sleep(time.Minute) // not forgotten
		a.log = nil
		begun := time.Since(a.origin)
		a.get(a.Client, "https://www.a.example/d", "https://www.a.example/e")
		a.started(begun, begun+3*sec)

		delay = "3600"
		a.log = nil
		_, err := reads().Get(t.Context(), polite.Request{URL: "https://a.example/f"})
		var abandoned *polite.AbandonedError
		assert.True(t, errors.As(err, &abandoned) && abandoned.CrawlDelay == time.Hour, "%v, want an abandoned site", err)
		_, err = a.Get(t.Context(), polite.Request{URL: "https://www.a.example/g"})
		assert.True(t, errors.As(err, &abandoned) && abandoned.CrawlDelay == time.Hour, "%v, want an abandoned site: another client knows", err)
		begun += 3 * sec
		a.started(begun+3*sec, begun+6*sec) // robots.txt, twice
		_, err = reads().Get(t.Context(), polite.Request{URL: "https://a.example/h"})
		assert.True(t, errors.As(err, &abandoned), "%v, want an abandoned site", err)
		a.started(begun+3*sec, begun+6*sec, begun+16*sec, begun+26*sec) // robots.txt again, at the limit
	})
}

// A host's Retry-After stops all requests to it, and none to other hosts.
func TestRetryAfterKeepsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, 0, func(n int, _ *http.Request) answer {
			switch n {
			case 0:
				return answer{status: 429, header: http.Header{"Retry-After": {"7"}}, body: "x"}
			case 1:
				return answer{status: 503, header: http.Header{"Retry-After": {time.Now().Add(9 * sec).UTC().Format(http.TimeFormat)}}, body: "x"}
			case 2:
				return answer{status: 503, header: http.Header{"Retry-After": {"20"}}, body: "x"}
			}
			return answer{status: 200, body: "x"}
		})
		a.Policy.Retry = func(at polite.Attempt) (time.Duration, bool) { return 0, at.Retries < 2 && at.Status() >= 400 }
		resp, err := a.Get(t.Context(), polite.Request{URL: "http://a.example/"})
		assert.True(t, err == nil && resp.Status == 503, "%+v, %v, want the third try's 503", resp, err)
		a.get(a.again(), "http://b.example/", "http://a.example/") // b is free
		a.started(0, 7*sec, 16*sec, 16*sec, 36*sec)
		s := a.Web.Stats()
		assert.True(t, s.Retries == 2 && s.Requests == 5 && s.ByStatus["503"] == 2 && s.ByStatus["429"] == 1 && s.Bytes == 5, "stats %+v", s)
	})
}

// A pause that would end after the caller's deadline does not begin.
func TestPauseBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, 0, func(int, *http.Request) answer {
			return answer{status: 429, header: http.Header{"Retry-After": {"20"}}}
		})
		a.Policy.Retry = func(polite.Attempt) (time.Duration, bool) { return 0, true }
		ctx, cancel := context.WithTimeout(t.Context(), 5*sec)
		defer cancel()
		resp, err := a.Get(ctx, polite.Request{URL: "http://a.example/"})
		assert.True(t, err == nil && resp.Status == 429 && time.Since(a.origin) <= 0, "%+v, %v, want the 429 at once", resp, err)
		a.started(0)
	})
}

// Each try has the whole timeout. The pauses between tries double, with a random
// part. One failure is counted.
func TestTimeoutOfATry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, 0, func(n int, _ *http.Request) answer {
			if n < 2 {
				return answer{status: 200, took: time.Hour}
			}
			return answer{status: 200, took: 3 * sec}
		})
		a.Policy.Retry = func(at polite.Attempt) (time.Duration, bool) {
			return polite.Backoff(4*sec, at.Retries), at.Retries < 2 && at.Kind() == web.KindTimeout
		}
		resp, err := a.Get(t.Context(), polite.Request{URL: "http://a.example/", Timeout: 10 * sec})
		require.True(t, err == nil && resp.Elapsed == 3*sec, "%+v, %v", resp, err)
		start := a.log[0].start
		assert.True(t, start >= 20*sec+9*sec && start <= 20*sec+15*sec, "third try at %v", start) // 3–5 s, then 6–10 s
		_, err = a.Get(t.Context(), polite.Request{URL: "http://b.example/", Timeout: sec, Once: true})
		var e *web.Error
		assert.True(t, errors.As(err, &e) && e.Kind == web.KindTimeout && e.URL == "http://b.example/", "%v, want a timeout", err)
		s := a.Web.Stats()
		assert.True(t, s.Failures["timeout"] == 1 && s.Retries == 2, "failures %v, retries %d", s.Failures, s.Retries)
	})
}

// The timeout is for the time that hosts need, over all redirects, without waiting.
func TestTimeoutWithoutGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, 20*sec, func(_ int, r *http.Request) answer {
			if r.URL.Path == "/" {
				return answer{status: 301, took: sec, header: http.Header{"Location": {"/b"}}}
			}
			return answer{status: 200, took: 2 * sec}
		})
		resp, err := a.Get(t.Context(), polite.Request{URL: "http://a.example/", Timeout: 4 * sec, MaxRedirects: 1})
		assert.True(t, err == nil && resp.Elapsed == 3*sec, "%+v, %v, want 3s", resp, err)
		a.started(0, 21*sec)
		_, err = a.Get(t.Context(), polite.Request{URL: "http://a.example/", Timeout: 5 * sec / 2, MaxRedirects: 1})
		var e *web.Error
		assert.True(t, errors.As(err, &e) && e.Kind == web.KindTimeout && e.Status == 301, "%v, want a timeout: the hops share it", err)
	})
}

// A caller that is cancelled while it waits for a turn or a slot blocks nobody and
// is not counted as a failure.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{Concurrency: 1}, sec, after(10*sec))
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for _, u := range []string{"http://a.example/", "http://a.example/", "http://b.example/"} {
			wg.Go(func() {
				_, err := a.Get(ctx, polite.Request{URL: u})
				var e *web.Error
				assert.True(t, errors.Is(err, context.Canceled) && !errors.As(err, &e), "%v, want context.Canceled and no Kind", err)
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		a.get(a.Client, "http://a.example/", "http://b.example/")
		assert.Equal(t, 2, len(a.log))
		assert.Empty(t, a.Web.Stats().Failures, "failures")
	})
}

// A request that waits for a site's gap uses none of the process's slots.
func TestGapTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{Concurrency: 1}, time.Minute, after(sec))
		var wg sync.WaitGroup
		wg.Go(func() { a.get(a.Client, "http://a.example/", "http://a.example/") })
		time.Sleep(2 * sec)
		a.get(a.Client, "http://b.example/")
		wg.Wait()
		a.started(0, 2*sec, 61*sec)
	})
}

// A Pacer remembers only the sites that are in use or in their gap.
func TestSitesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, sec, after(0))
		for i := range 5_000 {
			a.get(a.again(), fmt.Sprintf("http://h%d.example/", i))
			time.Sleep(10 * time.Millisecond) // so about 100 are in their gap
		}
		assert.LessOrEqual(t, a.Pacer.Len(), 512)
	})
}

// Client.Allow is called before each try.
func TestAllowBeforeEachTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("not now")
		for allowed := range 3 {
			a := newTestClient(t, web.Config{}, 0, func(int, *http.Request) answer { return answer{status: 503} })
			a.Policy.Retry = func(at polite.Attempt) (time.Duration, bool) { return 1, at.Retries < 1 }
			asked := 0
			a.Web.Allow = func(_ context.Context, wait bool) error {
				if !wait {
					return nil
				}
				if asked++; asked > allowed {
					return no
				}
				return nil
			}
			_, err := a.Get(t.Context(), polite.Request{URL: "http://a.example/"})
			var failure *web.Error
			refused := allowed < 2
			assert.True(t, refused == errors.Is(err, no) && !errors.As(err, &failure), "%d allowed: %v", allowed, err)
			assert.Equal(t, int64(allowed), a.Web.Stats().Requests, "%d allowed", allowed)
		}
	})
}

// A server closes each connection after its first answer without announcing it. It
// gets only requests that are counted and paced.
func TestBrokenReuse(t *testing.T) {
	for _, tt := range []struct {
		retries int
		paths   []string
	}{
		{0, []string{"/1", "/2"}},
		{1, []string{"/1", "/2", "/2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var at []time.Duration
			var paths []string
			a := newTestClient(t, web.Config{}, sec, nil)
			web.SetDial(a.Web, func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					in := bufio.NewReader(theirs)
					for n := range 2 {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						mu.Lock()
						at = append(at, time.Since(a.origin))
						paths = append(paths, r.URL.Path)
						mu.Unlock()
						assert.True(t, len(r.TransferEncoding) <= 0 && r.ContentLength == 0 && r.Header.Get("Content-Length") == "",
							"a GET with a body: %v, %d", r.TransferEncoding, r.ContentLength)
						if n == 0 {
							_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						}
					}
				}()
				return ours, nil
			})
			a.Policy.Retry = func(of polite.Attempt) (time.Duration, bool) {
				return 1, of.Retries < tt.retries && of.Kind() == web.KindReset
			}
			a.get(a.Client, "http://a.example/1")
			_, err := a.Get(t.Context(), polite.Request{URL: "http://a.example/2"})
			var failure *web.Error
			assert.EqualValues(t, (tt.retries == 0), errors.As(err, &failure) && failure.Kind == web.KindReset,
				"%v after %d retries", err, tt.retries)
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, tt.paths, paths, "the server read")
			for i, d := range at {
				assert.Equal(t, time.Duration(i)*sec, d, "request %d came after", i)
			}
			if s := a.Web.Stats(); s.Requests != int64(len(tt.paths)) || s.Retries != int64(tt.retries) {
				t.Errorf("%d requests and %d retries are counted, want %d and %d", s.Requests, s.Retries, len(tt.paths), tt.retries)
			}
		})
	}
}
