package web

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
)

// site is a transport that answers from a function, on the bubble's clock.
type site func(n int, r *http.Request) (status int, took time.Duration, h http.Header)

type event struct {
	host       string
	start, end time.Duration
}

// fakeWeb makes c ask s in place of the network, and returns its log.
func fakeWeb(c *Client, s site) func() []event {
	var (
		mu     sync.Mutex
		log    []event
		n      int
		origin = time.Now()
	)
	c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		start := time.Since(origin)
		status, took, h := s(i, r)
		if err := sleep(r.Context(), took); err != nil {
			return nil, err
		}
		mu.Lock()
		log = append(log, event{r.URL.Host, start, time.Since(origin)})
		mu.Unlock()
		if h == nil {
			h = http.Header{}
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader([]byte("x"))), ContentLength: 1}, nil
	})
	return func() []event { mu.Lock(); defer mu.Unlock(); return slices.Clone(log) }
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func client(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func took(d time.Duration) site {
	return func(int, *http.Request) (int, time.Duration, http.Header) { return 200, d, nil }
}

func get(t *testing.T, c *Client, urls ...string) {
	t.Helper()
	for _, u := range urls {
		if _, err := c.Get(t.Context(), Request{URL: u}); err != nil {
			t.Error(err)
		}
	}
}

func starts(log []event) (s []time.Duration) {
	for _, e := range log {
		s = append(s, e.start)
	}
	slices.Sort(s)
	return s
}

func wantStarts(t *testing.T, log []event, want ...time.Duration) {
	t.Helper()
	if got := starts(log); !slices.Equal(got, want) {
		t.Errorf("requests started at %v, want %v", got, want)
	}
}

const sec = time.Second

func TestHostGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{HostDelay: sec})
		log := fakeWeb(c, took(2*sec))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { get(t, c, "https://a.example/", "http://a.example./") })
			wg.Go(func() { get(t, c, "https://b.example/") })
		}
		wg.Wait()
		last := map[string]time.Duration{}
		for _, e := range log() {
			host := e.host[:1]
			if prev, ok := last[host]; ok && e.start != prev+sec {
				t.Errorf("%s: started at %v, the one before ended at %v", e.host, e.start, prev)
			}
			last[host] = e.end
		}
		if last["a"] != 17*sec || last["b"] != 8*sec {
			t.Errorf("ended at %v, want a at 17s and b at 8s", last)
		}
	})
}

func TestCrawlDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{HostDelay: sec, MaxCrawlDelay: 10 * sec})
		log := fakeWeb(c, took(0))
		get(t, c, "http://a.example/") // 0
		c.SetCrawlDelay(4*sec, "http://A.example/robots.txt")
		get(t, c, "http://a.example/") // 4
		time.Sleep(60 * sec)           // long idle: not forgotten
		get(t, c, "http://a.example/", "http://a.example/")
		c.SetCrawlDelay(time.Hour, "https://a.example/") // capped
		get(t, c, "http://a.example/")
		c.SetCrawlDelay(0, "http://a.example/")
		get(t, c, "http://a.example/")
		wantStarts(t, log(), 0, 4*sec, 64*sec, 68*sec, 78*sec, 79*sec)
	})
}

func TestCrawlDelayOfForgottenHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{})
		log := fakeWeb(c, took(0))
		get(t, c, "http://a.example/")
		c.SetCrawlDelay(3*sec, "http://a.example/")
		get(t, c, "http://a.example/")
		wantStarts(t, log(), 0, 3*sec)
	})
}

// A robots.txt is asked for at the apex, served by www., and its Crawl-delay
// holds for both, over both schemes, through redirects from one to the other;
// another port and another name have their own pace.
func TestCrawlDelayOfASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{HostDelay: sec, MaxCrawlDelay: 10 * sec})
		c.guard.anyPort = true
		log := fakeWeb(c, func(_ int, r *http.Request) (int, time.Duration, http.Header) {
			if r.URL.Host == "a.example" {
				return 301, 0, http.Header{"Location": {"https://www.a.example" + r.URL.Path}}
			}
			return 200, 0, nil
		})
		ask := func(u string) *Response {
			r, err := c.Get(t.Context(), Request{URL: u, MaxRedirects: 5})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := ask("https://a.example/robots.txt") // 0, and 1 at www.
		c.SetCrawlDelay(3*sec, "https://a.example/robots.txt", r.FinalURL)
		ask("https://a.example/sitemap.xml") // 4, and 7 at www.
		ask("http://www.a.example/b")        // 10
		ask("https://a.example/c")           // 13, and 16 at www.
		ask("https://www.b.example/")        // 16
		ask("https://b.example:8443/")       // 16
		ask("https://b.example/")            // 17: a pause, but no Crawl-delay
		ask("http://www.example/")           // 17
		ask("http://example.com/")           // 17
		c.SetCrawlDelay(2*sec, "https://apex.example/robots.txt", "https://elsewhere.example/robots.txt")
		ask("http://www.elsewhere.example/robots.txt") // 19
		ask("http://elsewhere.example/")               // 21
		wantStarts(t, log(), 0, sec, 4*sec, 7*sec, 10*sec, 13*sec, 16*sec, 16*sec, 16*sec, 17*sec, 17*sec, 17*sec, 19*sec, 21*sec)
	})
}

func TestSite(t *testing.T) {
	for in, want := range map[string]string{
		"https://www.Example.com/a": "example.com",
		"http://example.com.:80":    "example.com",
		"https://www.com/":          "www.com",
		"https://www.www.com/":      "www.com",
		"https://www.a.b:8443/":     "a.b:8443",
		"http://[::1]:8080/":        "[::1]:8080",
		"http://www.bücher.example": "xn--bcher-kva.example",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Site(u); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// A server that closes each connection after its first answer, without saying
// so: what it reads is what was counted, at the host's pace, and nothing else.
func TestBrokenReuse(t *testing.T) {
	for _, tt := range []struct {
		retries int
		paths   []string
		ended   error
	}{
		{0, []string{"/1", "/2"}, &Error{}},
		{1, []string{"/1", "/2", "/2"}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := client(t, Config{HostDelay: sec, RetryBackoff: 1})
			var mu sync.Mutex
			var log []event
			var paths []string
			origin := time.Now()
			c.transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
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
						log = append(log, event{start: time.Since(origin)})
						paths = append(paths, r.URL.Path)
						mu.Unlock()
						if len(r.TransferEncoding) > 0 || r.ContentLength != 0 || r.Header.Get("Content-Length") != "" {
							t.Errorf("a GET with a body: %v, %d", r.TransferEncoding, r.ContentLength)
						}
						if n == 0 {
							_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						}
					}
				}()
				return ours, nil
			}
			get(t, c, "http://a.example/1")
			_, err := c.Get(t.Context(), Request{URL: "http://a.example/2", Retries: tt.retries})
			if tt.ended != nil {
				wantKind(t, err, KindReset)
			} else if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(paths, tt.paths) {
				t.Errorf("the server read %q, want %q", paths, tt.paths)
			}
			for i, at := range starts(log) {
				if at != time.Duration(i)*sec {
					t.Errorf("request %d came after %v, want a second after the one before", i, at)
				}
			}
			if s := c.Stats(); s.Requests != int64(len(tt.paths)) || s.Retries != int64(tt.retries) {
				t.Errorf("%d requests and %d retries are counted, want %d and %d", s.Requests, s.Retries, len(tt.paths), tt.retries)
			}
		})
	}
}

func TestRetryAfterHoldsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{MaxCrawlDelay: 20 * sec})
		log := fakeWeb(c, func(n int, _ *http.Request) (int, time.Duration, http.Header) {
			switch n {
			case 0:
				return 429, 0, http.Header{"Retry-After": {"7"}}
			case 1:
				return 503, 0, http.Header{"Retry-After": {time.Now().Add(9 * sec).UTC().Format(http.TimeFormat)}}
			case 2:
				return 503, 0, http.Header{"Retry-After": {"3600"}}
			}
			return 200, 0, nil
		})
		resp, err := c.Get(t.Context(), Request{URL: "http://a.example/", Retries: 2})
		if err != nil || resp.Status != 503 || resp.Tries != 3 {
			t.Errorf("%+v, %v, want the third try's 503", resp, err)
		}
		get(t, c, "http://b.example/", "http://a.example/") // b is free
		wantStarts(t, log(), 0, 7*sec, 16*sec, 16*sec, 36*sec)
		if s := c.Stats(); s.Retries != 2 || s.Requests != 5 || s.ByStatus["503"] != 2 || s.ByStatus["429"] != 1 || s.Bytes != 5 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestRetryAfterPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{})
		log := fakeWeb(c, func(int, *http.Request) (int, time.Duration, http.Header) {
			return 429, 0, http.Header{"Retry-After": {"20"}}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*sec)
		defer cancel()
		resp, err := c.Get(ctx, Request{URL: "http://a.example/", Retries: 3})
		if err != nil || resp.Status != 429 || resp.Tries != 1 {
			t.Errorf("%+v, %v, want the 429 at once", resp, err)
		}
		wantStarts(t, log(), 0)
	})
}

func TestRetryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{RetryBackoff: 4 * sec})
		log := fakeWeb(c, func(n int, _ *http.Request) (int, time.Duration, http.Header) {
			if n < 2 {
				return 200, time.Hour, nil
			}
			return 200, 3 * sec, nil
		})
		resp, err := c.Get(t.Context(), Request{URL: "http://a.example/", Timeout: 10 * sec, Retries: 2})
		if err != nil || resp.Tries != 3 || resp.Elapsed != 3*sec {
			t.Fatalf("%+v, %v", resp, err)
		}
		if start := log()[0].start; start < 20*sec+9*sec || start > 20*sec+15*sec { // backoff 3–5 s, then 6–10 s
			t.Errorf("third try at %v", start)
		}
		_, err = c.Get(t.Context(), Request{URL: "http://b.example/", Timeout: sec})
		var e *Error
		if !errors.As(err, &e) || e.Kind != KindTimeout || e.URL != "http://b.example/" {
			t.Errorf("%v, want a timeout", err)
		}
		if s := c.Stats(); s.Failures["timeout"] != 1 {
			t.Errorf("failures %v", s.Failures)
		}
	})
}

func TestTimeoutLeavesOutTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{HostDelay: 20 * sec})
		log := fakeWeb(c, func(n int, r *http.Request) (int, time.Duration, http.Header) {
			if r.URL.Path == "/" {
				return 301, sec, http.Header{"Location": {"/b"}}
			}
			return 200, 2 * sec, nil
		})
		resp, err := c.Get(t.Context(), Request{URL: "http://a.example/", Timeout: 4 * sec, MaxRedirects: 1})
		if err != nil || resp.Elapsed != 3*sec {
			t.Errorf("%+v, %v, want 3s", resp, err)
		}
		wantStarts(t, log(), 0, 21*sec)
		_, err = c.Get(t.Context(), Request{URL: "http://a.example/", Timeout: 5 * sec / 2, MaxRedirects: 1})
		var e *Error
		if !errors.As(err, &e) || e.Kind != KindTimeout || e.Status != 301 {
			t.Errorf("%v, want a timeout: the hops share it", err)
		}
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{Concurrency: 1, HostDelay: sec})
		log := fakeWeb(c, took(10*sec))
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for _, u := range []string{"http://a.example/", "http://a.example/", "http://b.example/"} {
			wg.Go(func() {
				_, err := c.Get(ctx, Request{URL: u, Retries: 3})
				var e *Error
				if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
					t.Errorf("%v, want context.Canceled and no Kind", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		get(t, c, "http://a.example/", "http://b.example/") // nothing is stuck
		if n := len(log()); n != 2 {
			t.Errorf("%d requests ended, want 2", n)
		}
		if len(c.Stats().Failures) != 0 {
			t.Errorf("failures %v, want none", c.Stats().Failures)
		}
	})
}

func TestConcurrencyAndSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{Concurrency: 2, HostDelay: time.Hour})
		log := fakeWeb(c, took(10*sec))
		var wg sync.WaitGroup
		for i := range 7 {
			wg.Go(func() { get(t, c, fmt.Sprintf("http://h%d.example/", i)) })
		}
		time.Sleep(5 * sec)
		c.SetLimits(3, 0) // one more at once
		time.Sleep(9 * sec)
		c.SetLimits(0, 0) // one, but what is in flight stays
		wg.Wait()
		wantStarts(t, log(), 0, 0, 5*sec, 10*sec, 10*sec, 20*sec, 30*sec)
	})
}

func TestWaitingForTheHostTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{Concurrency: 1, HostDelay: time.Minute})
		log := fakeWeb(c, took(sec))
		var wg sync.WaitGroup
		wg.Go(func() { get(t, c, "http://a.example/", "http://a.example/") })
		time.Sleep(2 * sec)
		get(t, c, "http://b.example/")
		wg.Wait()
		wantStarts(t, log(), 0, 2*sec, 61*sec)
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{Rate: 0.5})
		log := fakeWeb(c, took(0))
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { get(t, c, fmt.Sprintf("http://h%d.example/", i)) })
		}
		time.Sleep(5 * sec) // 0, 2, 4
		c.SetLimits(10, 1)  // half a token is there at 5
		wg.Wait()
		wantStarts(t, log(), 0, 2*sec, 4*sec, 5500*time.Millisecond, 6500*time.Millisecond, 7500*time.Millisecond)
	})
}

func TestHostMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{HostDelay: sec})
		fakeWeb(c, took(0))
		for i := range 20_000 {
			name := fmt.Sprintf("http://h%d.example/", i)
			get(t, c, name)
			if i%1000 == 0 {
				c.SetCrawlDelay(2*sec, name)
			}
			time.Sleep(10 * time.Millisecond) // so about 100 are in their gap
		}
		if n := len(c.hosts.byName); n > 2*minSweep {
			t.Errorf("%d hosts remembered, want at most %d", n, 2*minSweep)
		}
		time.Sleep(crawlMemory)
		c.hosts.mu.Lock()
		c.hosts.sweepAt = 0
		c.hosts.entry("last.example")
		c.hosts.mu.Unlock()
		if n := len(c.hosts.byName); n != 1 {
			t.Errorf("%d hosts remembered when all is over, want 1", n)
		}
	})
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{MaxCrawlDelay: 20 * sec})
		log := fakeWeb(c, func(n int, _ *http.Request) (int, time.Duration, http.Header) {
			return 429, 0, http.Header{"Retry-After": {[]string{"5", "6"}[n]}}
		})
		resp, err := c.Get(t.Context(), Request{URL: "http://a.example/", Retries: 3, Patience: 5 * sec})
		if err != nil || resp.Status != 429 || resp.Tries != 2 || resp.RetryAfter != 6*sec {
			t.Errorf("%+v, %v, want the second 429, which asks for six seconds", resp, err)
		}
		wantStarts(t, log(), 0, 5*sec)
	})
}
