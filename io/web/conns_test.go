package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A crawl of a million names meets hundreds of thousands that lead nowhere: none of
// them may leave anything behind.
func TestNothingIsKeptOfDeadHosts(t *testing.T) {
	c := client(t, Config{})
	n := 0
	SetDial(c, func(_ context.Context, _, addr string) (net.Conn, error) {
		if n++; n%2 == 0 {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}}
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	})
	const hosts = 20_000
	ask := func(from int) (heap uint64) {
		for i := range hosts {
			_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("https://dead-%d.example/robots.txt", from+i)})
			var failure *Error
			require.True(t, errors.As(err, &failure) && (failure.Kind == KindDNS || failure.Kind == KindConnect), err)
		}
		runtime.GC()
		runtime.GC() // the first may leave what pools keep
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := ask(0) // buffers and tables that a client has once
	after := ask(hosts)
	each := (float64(after) - float64(before)) / hosts
	assert.True(t, each <= 50, "each dead host leaves %.0f bytes", each)
}

// A host that does not answer is no longer dialled when its request has ended: else a
// process would have many more dials under way than requests.
func TestDialEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{})
		var ended []time.Duration
		start := time.Now()
		SetDial(c, func(ctx context.Context, _, _ string) (net.Conn, error) {
			deadline, ok := ctx.Deadline()
			assert.False(t, ok, "the dialer knows of a deadline in %v", time.Until(deadline))
			<-ctx.Done()
			ended = append(ended, time.Since(start))
			return nil, ctx.Err()
		})
		_, err := c.Get(t.Context(), Request{URL: "http://a.example/", Timeout: time.Second})
		wantKind(t, err, KindTimeout)
		within, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Get(within, Request{URL: "http://a.example/"})
		assert.ErrorIs(t, err, context.Canceled, "%v, want that it was cancelled", err)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second}, ended, "the dials ended at")
	})
}

// lines is a network in which each connection answers the requests that are sent
// over it. It counts the connections.
type lines struct {
	mu     sync.Mutex
	opened int
	open   int
}

func (l *lines) dial(answer func(w io.Writer, r *http.Request)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		l.mu.Lock()
		l.opened++
		l.open++
		l.mu.Unlock()
		go func() {
			defer func() {
				_ = theirs.Close()
				l.mu.Lock()
				l.open--
				l.mu.Unlock()
			}()
			in := bufio.NewReader(theirs)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				answer(theirs, r)
			}
		}()
		return ours, nil
	}
}

func (l *lines) want(t *testing.T, what string, opened, open int) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.True(t, l.opened == opened && l.open == open,
		"%s: %d connections were made and %d are open, want %d and %d", what, l.opened, l.open, opened, open)
}

func ok(w io.Writer, _ *http.Request) {
	_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

func TestConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		c := client(t, Config{})
		SetDial(c, l.dial(ok))
		get := func(v *Conns, u string) {
			t.Helper()
			r, err := c.Get(t.Context(), Request{URL: u, Conns: v})
			assert.True(t, err == nil && string(r.Body) == "ok", "%s: %+v, %v", u, r, err)
		}
		get(nil, "http://a.example/")
		l.want(t, "a request of its own", 1, 0)

		var v, other Conns
		get(&v, "http://a.example/1")
		time.Sleep(maxIdle - 1)
		get(&v, "http://a.example/2")
		l.want(t, "two requests of a visit", 2, 1)
		get(&other, "http://a.example/")
		l.want(t, "another visit of the same host", 3, 2)
		get(&v, "http://b.example/")
		get(&v, "http://a.example:80/3")
		get(&v, "http://b.example/2")
		l.want(t, "another host", 4, 3)
		time.Sleep(maxIdle)
		l.want(t, "nothing for a while", 4, 0)
		get(&v, "http://a.example/4")
		l.want(t, "a request after a while", 5, 1)
		v.Close()
		l.want(t, "the visit's end", 5, 0)
		get(&v, "http://a.example/5")
		l.want(t, "a request after the visit's end", 6, 0)

		get(&other, "http://a.example/")
		c.Close()
		l.want(t, "the client's end", 7, 0)
	})
}

// A connection whose answer was not read to the end, or that the server closes, is
// not used again.
func TestConnsThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		c := client(t, Config{})
		SetDial(c, l.dial(func(w io.Writer, r *http.Request) {
			switch r.URL.Path {
			case "/close":
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			case "/silently":
				ok(w, r)
				_ = w.(net.Conn).Close()
			case "/more":
				ok(w, r)
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			case "/cut":
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
				for range 9 {
					_, _ = io.WriteString(w, "x") // it fails where nobody reads
				}
			}
		}))
		var v Conns
		for i, path := range []string{"/close", "/silently", "/more", "/cut"} {
			most := int64(0)
			if path == "/cut" {
				most = 1
			}
			_, err := c.Get(t.Context(), Request{URL: "http://a.example" + path, Conns: &v, MaxBytes: most})
			assert.NoError(t, err, path)
			l.want(t, path, i+1, 0)
		}
	})
}

// However many hosts a visit is led to, and however many visits there are: the idle
// connections are bounded, and the one that was idle longest goes first.
func TestConnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		c := client(t, Config{Concurrency: 4})
		SetDial(c, l.dial(ok))
		get := func(v *Conns, n int) {
			t.Helper()
			_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://host-%d.example/", n), Conns: v})
			assert.NoError(t, err)
		}
		var first Conns
		for n := range maxVisitIdle + 2 {
			get(&first, n)
		}
		l.want(t, "one visit", maxVisitIdle+2, maxVisitIdle)
		get(&first, 2)
		l.want(t, "one visit, a host that is kept", maxVisitIdle+2, maxVisitIdle)
		get(&first, 1)
		l.want(t, "one visit, a host that is not", maxVisitIdle+3, maxVisitIdle)
		for range 4 * maxIdlePerRequest {
			get(new(Conns), 0)
		}
		l.want(t, "many visits", maxVisitIdle+3+4*maxIdlePerRequest, 4*maxIdlePerRequest)
		c.SetLimits(1, 0)
		l.want(t, "fewer requests in flight", maxVisitIdle+3+4*maxIdlePerRequest, maxIdlePerRequest)
		c.Close()
	})
}

// A host that closes the connection after each answer, and that another visit meets
// too: only the first handshake is a whole one.
func TestSessionsAreResumed(t *testing.T) {
	w, _ := internet(t)
	closing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	w.Handle("a.example", closing)
	w.Handle("b.example", closing)
	c := client(t, Config{ConnectTo: w.Addr(), RootCAs: w.CAPEM()})
	for i, want := range []struct {
		host    string
		resumed int
	}{{"a.example", 0}, {"a.example", 1}, {"b.example", 1}, {"a.example", 2}, {"b.example", 3}} {
		_, err := c.Get(t.Context(), Request{URL: "https://" + want.host + "/", Conns: new(Conns)})
		require.NoError(t, err)
		if all, resumed := w.Handshakes(); all != i+1 || resumed != want.resumed {
			t.Errorf("request %d: %d handshakes, %d resumed; want %d and %d", i+1, all, resumed, i+1, want.resumed)
		}
	}
}

func TestKeyExchange(t *testing.T) {
	var offered []tls.CurveID
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		offered = hello.SupportedCurves
		return nil, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	classic := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
	c := client(t, Config{ConnectTo: s.Listener.Addr().String(), RootCAs: roots})
	_, err := c.Get(t.Context(), Request{URL: "https://example.com/"})
	require.NoError(t, err) // the name in httptest's certificate
	assert.Equal(t, classic, offered)
}

func TestIdleConnsLeaveFiles(t *testing.T) {
	for _, tt := range []struct{ requests, files, want int }{{64, 1 << 20, 256}, {1, 1 << 20, 4}, {1000, 4096, 2048}, {10_000, 65_536, 32_768}} {
		assert.Equal(t, tt.want, maxIdleConns(tt.requests, tt.files), "%d requests in flight and %d files", tt.requests, tt.files)
	}
	assert.GreaterOrEqual(t, maxFiles(), 256, "this process may have")
}

// closing is a connection that cannot take another request, and has not said so yet.
type closing struct {
	http.RoundTripper
	closed *int
}

func (closing) Available() int { return 0 }
func (closing) Err() error     { return nil }
func (c closing) Close() error { *c.closed++; return nil }

func TestBusyConnectionIsNotKept(t *testing.T) {
	c := client(t, Config{})
	made, closed := 0, 0
	c.connect = func(context.Context, target) (clientConn, error) {
		made++
		return closing{roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		}), &closed}, nil
	}
	var v Conns
	for range 2 {
		_, err := c.Get(t.Context(), Request{URL: "http://a.example/", Conns: &v})
		assert.NoError(t, err)
	}
	assert.True(t, made == 2 && closed == 2, "%d connections were made and %d closed, want 2 of each", made, closed)
}
