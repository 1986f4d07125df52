package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// site is a transport that answers from a function, by the synctest bubble's clock.
type site func(n int, r *http.Request) (status int, took time.Duration, h http.Header)

type event struct {
	host       string
	start, end time.Duration
}

// fakeWeb makes c send its requests to s instead of the network, and returns its log.
func fakeWeb(c *Client, s site) func() []event {
	var (
		mu     sync.Mutex
		log    []event
		n      int
		origin = time.Now()
	)
	SetTransport(c, roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		start := time.Since(origin)
		status, took, h := s(i, r)
		select {
		case <-time.After(took):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		mu.Lock()
		log = append(log, event{r.URL.Host, start, time.Since(origin)})
		mu.Unlock()
		if h == nil {
			h = http.Header{}
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader([]byte("x"))), ContentLength: 1}, nil
	}))
	return func() []event { mu.Lock(); defer mu.Unlock(); return slices.Clone(log) }
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func client(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func took(d time.Duration) site {
	return func(int, *http.Request) (int, time.Duration, http.Header) { return 200, d, nil }
}

func get(t *testing.T, c *Client, urls ...string) {
	t.Helper()
	for _, u := range urls {
		_, err := c.Get(t.Context(), Request{URL: u})
		assert.NoError(t, err)
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
	assert.Equal(t, want, starts(log), "requests started at")
}

const sec = time.Second

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
		require.NoError(t, err)
		assert.Equal(t, want, Site(u), in)
	}
}

func TestConcurrencyAndSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{Concurrency: 2})
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
