package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func wantKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("%v, want kind %s", err, kind)
		return &Error{}
	}
	return e
}

// A request with a body is a POST, which is sent once, and to no other address.
func TestPost(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ", r.ContentLength, " ", string(body), err))
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusPermanentRedirect)
		}
	})
	c := client(t, Config{UserAgent: "Test/1", ConnectTo: s.Listener.Addr().String()})
	for path, status := range map[string]int{"/": 200, "/moved": 308, "/empty": 200} {
		body := []byte(`{"a": 1}`)
		if path == "/empty" {
			body = []byte{}
		}
		r, err := c.Get(t.Context(), Request{URL: "http://site.example" + path, MaxRedirects: 5, Body: body, Header: http.Header{"Content-Type": {"application/json"}}})
		assert.True(t, err == nil && r.Status == status, "%s: %+v, %v", path, r, err)
	}
	slices.Sort(got)
	want := []string{`POST / application/json 8 {"a": 1}<nil>`, `POST /empty application/json 0 <nil>`, `POST /moved application/json 8 {"a": 1}<nil>`}
	assert.True(t, slices.Equal(got, want), "the server saw %q", got)
}

func TestGet(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, r.Host, "|", r.UserAgent(), "|", r.Header.Get("Accept"), "|", r.Header.Get("Accept-Encoding"), "|", r.Header.Get("Cookie"), "|", r.Header.Get("If-None-Match"))
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, "/#part", http.StatusFound)
		case "/404":
			http.Error(w, "none", 404)
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(pack(t, "gzip", make([]byte, 50<<20)))
		case "/broken":
			w.Header().Set("Content-Encoding", "gzip")
			raw := pack(t, "gzip", []byte(strings.Repeat("a b c ", 100)))
			_, _ = w.Write(raw[:len(raw)-4])
		case "/loop":
			http.Redirect(w, r, "/loop2", 301)
		case "/loop2":
			http.Redirect(w, r, "/loop", 308)
		case "/more":
			http.Redirect(w, r, "/more?"+r.URL.RawQuery+"x", 307)
		case "/bad":
			w.Header().Set("Location", "http://a b:c/%zz")
			w.WriteHeader(302)
		case "/inward":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", 302)
		case "/304":
			w.WriteHeader(304)
		case "/short":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", 300<<10))
		}
	})
	c := client(t, Config{UserAgent: "Test/1", ConnectTo: s.Listener.Addr().String()})
	const base = "http://site.example"
	ask := func(path string, r Request) (*Response, error) {
		r.URL = base + path
		return c.Get(t.Context(), r)
	}

	r, err := ask("/cookie", Request{Accept: "text/plain", MaxRedirects: 1, Header: http.Header{"if-none-match": {`"e"`}}})
	require.NoError(t, err)
	got, want := string(r.Body), `site.example|Test/1|text/plain|gzip, deflate, br, zstd||"e"`
	assert.Equal(t, want, got, "the server saw %s, want %s", got, want)
	assert.True(t, r.FinalURL == base+"/" && r.Status == 200 && !r.Truncated, "%+v", r)
	r, err = ask("/404", Request{})
	assert.True(t, err == nil && r.Status == 404 && string(r.Body) == "none\n", "%+v, %v", r, err)
	r, err = ask("/304", Request{})
	assert.True(t, err == nil && r.Status == 304 && len(r.Body) == 0, "%+v, %v", r, err)
	r, err = ask("/bomb", Request{MaxBytes: 1 << 20})
	assert.True(t, err == nil && r.Truncated && len(r.Body) == 1<<20 && r.Header.Get("Content-Encoding") == "", "bomb: %v", err)
	r, err = ask("/broken", Request{})
	assert.True(t, err == nil && r.Truncated && string(r.Body) == strings.Repeat("a b c ", 100), "broken gzip: %+v, %v", r, err)
	_, err = ask("/loop", Request{MaxRedirects: 5})
	e := wantKind(t, err, KindRedirect)
	assert.Equal(t, 308, e.Status, "status")
	_, err = ask("/more", Request{MaxRedirects: 3})
	e = wantKind(t, err, KindRedirect)
	assert.True(t, e.Status == 307 && e.URL == base+"/more?xxx", "%+v, want 307 of the fourth", e)
	_, err = ask("/bad", Request{MaxRedirects: 3})
	wantKind(t, err, KindRedirect)
	_, err = ask("/inward", Request{MaxRedirects: 3})
	e = wantKind(t, err, KindBlocked)
	assert.True(t, e.Status == 302 && strings.Contains(e.URL, "169.254"), "%+v", e)
	if r, err := ask("/cookie", Request{MaxRedirects: -1}); err != nil || r.Status/100 != 3 || r.Header.Get("Location") == "" || r.FinalURL != base+"/cookie" {
		t.Errorf("a redirect for the caller to follow: %+v, %v", r, err)
	}
	no := errors.New("not that one")
	_, err = ask("/loop", Request{MaxRedirects: 3, Allow: func(u *url.URL) error {
		assert.Equal(t, "/loop2", u.Path, "asked for %s", u)
		return no
	}})
	wantKind(t, err, KindBlocked)
	assert.ErrorIs(t, err, no, "%v does not wrap Allow's", err)
	before := c.Stats().Failures["reset"]
	_, err = ask("/short", Request{})
	wantKind(t, err, KindReset)
	assert.EqualValues(t, 1, c.Stats().Failures["reset"]-before)
	_, err = ask("/headers", Request{})
	wantKind(t, err, KindTooLarge)
	_, err = c.Get(t.Context(), Request{URL: "http://user:secret@a.example:x/"})
	wantKind(t, err, KindBlocked)
	assert.NotContains(t, err.Error(), "secret", "%v shows the password", err)
}

func TestSecretsStayWithTheirHost(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "a.example" {
			http.Redirect(w, r, "http://b.example/", 302)
			return
		}
		fmt.Fprint(w, r.Header.Get("Authorization"), "|", r.Header.Get("X-Kept"))
	})
	c := client(t, Config{ConnectTo: s.Listener.Addr().String()})
	h := http.Header{"Authorization": {"Bearer x"}, "X-Kept": {"y"}}
	r, err := c.Get(t.Context(), Request{URL: "http://a.example/", Header: h, MaxRedirects: 1})
	assert.True(t, err == nil && string(r.Body) == "|y" && len(h) == 2, "%+v, %v, header %v", r, err, h)
}

// A request whose context Ready cancels is never sent, even over an open
// connection. Ready is called for each request that is sent.
func TestReady(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
		}
	})
	c := client(t, Config{AllowPrivate: true})
	calls := 0
	if _, err := c.Get(t.Context(), Request{URL: s.URL + "/from", MaxRedirects: 1, Ready: func() bool { calls++; return calls != 2 }}); err != nil || calls != 3 || asked.Load() != 2 {
		t.Errorf("called %d times, %d requests, %v; want 3, one a hop and one more for the turn that is over", calls, asked.Load(), err)
	}
	asked.Store(0)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.Get(ctx, Request{URL: s.URL + "/to", Ready: func() bool { cancel(); return true }})
		assert.ErrorIs(t, err, context.Canceled)
	}
	n := asked.Load()
	assert.True(t, n <= 0, "%d of 100 requests were sent", n)
	if s := c.Stats(); s.Requests != 2 || len(s.Failures) > 0 {
		t.Errorf("they are counted: %+v", s)
	}
}

func TestKinds(t *testing.T) {
	raw := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
		return l.Addr().String()
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_ = closed.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)

	for _, tt := range []struct {
		url  string
		want Kind
	}{
		{"http://" + closed.Addr().String(), KindConnect},
		{"http://" + raw(""), KindReset},
		{"http://" + raw("SSH-2.0-OpenSSH\r\n\r\n"), KindReset},
		{"http://" + raw("HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n"), KindReset},
		{"http://" + raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), KindReset},
		{"https://" + raw("HTTP/1.1 400 Bad Request\r\n\r\n"), KindTLS},
		{secure.URL, KindTLS}, // an unknown authority
		{"ftp://example.com/", KindBlocked},
	} {
		_, err := client(t, Config{AllowPrivate: true}).Get(t.Context(), Request{URL: tt.url})
		wantKind(t, err, tt.want)
	}
	for err, want := range map[error]Kind{
		&net.DNSError{Err: "no such host", IsNotFound: true}:                  KindDNS,
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}:     KindDNS,
		&net.OpError{Op: "dial", Err: errors.New("no route to host")}:         KindConnect,
		&net.OpError{Op: "remote error", Err: tls.AlertError(40)}:             KindTLS,
		&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}: KindReset,
		&proxyError{502}: KindConnect,
		&proxyError{403}: KindConnect, // a proxy that lets nothing pass is an outage, and no product is gone by it
		fmt.Errorf("reading the body: %w", context.DeadlineExceeded): KindTimeout,
		io.EOF: KindReset,
	} {
		assert.Equal(t, want, classify(err), err)
	}
}

func TestWhy(t *testing.T) {
	for want, err := range map[string]error{
		"no such host (NXDOMAIN)":     &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}},
		"server misbehaving":          &net.DNSError{Err: "server misbehaving", Name: "a.example"},
		"connect: connection refused": &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"timed out":                   fmt.Errorf("reading the body: %w", context.DeadlineExceeded),
		"closed without an answer":    io.EOF,
		x509.HostnameError{Host: "h", Certificate: &x509.Certificate{DNSNames: []string{"other"}}}.Error(): &tls.CertificateVerificationError{Err: x509.HostnameError{Host: "h", Certificate: &x509.Certificate{DNSNames: []string{"other"}}}},
	} {
		assert.Equal(t, want, (&Error{Err: err}).Why(), err)
	}
}

// fakeDNS answers A queries with the next of addrs, AAAA queries with nothing.
func fakeDNS(t *testing.T, c *Client, addrs ...string) {
	var n atomic.Int64
	c.resolver.PreferGo = true
	c.resolver.Dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		go func() {
			defer ours.Close()
			for { // DNS over a stream: two bytes of length before each message
				var size [2]byte
				if _, err := io.ReadFull(ours, size[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(ours, q); err != nil {
					return
				}
				end := 12
				for q[end] != 0 {
					end += int(q[end]) + 1
				}
				end += 5
				a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
				if q[end-3] == 1 {
					ip := netip.MustParseAddr(addrs[min(int(n.Add(1))-1, len(addrs)-1)]).As4()
					a[7] = 1
					a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
					a = append(a, ip[:]...)
				}
				if _, err := ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
					return
				}
			}
		}()
		return theirs, nil
	}
}

// A name has an allowed address when it is checked and a forbidden one when it is
// dialled: the guard refuses the address that is dialled.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Connection", "close") // so that each request resolves the name again
	})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	c := client(t, Config{})
	fakeDNS(t, c, "127.0.0.1", "127.0.0.2", "10.0.0.1")
	c.guard.anyPort = true
	c.guard.refuse = func(a netip.Addr) string { // here 127.0.0.1 is the public internet
		if a == netip.MustParseAddr("127.0.0.1") {
			return ""
		}
		return refuseAddr(a)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://rebind.example" + port + "/"})
	require.NoError(t, err)
	for _, forbidden := range []string{"127.0.0.2", "10.0.0.1"} {
		_, err := c.Get(t.Context(), Request{URL: "http://rebind.example" + port + "/", Timeout: 5 * time.Second})
		e := wantKind(t, err, KindBlocked)
		assert.True(t, e.Err == nil || strings.Contains(e.Error(), forbidden), "%v, want %s refused", err, forbidden)
	}
	assert.EqualValues(t, 1, asked.Load(), "the server was asked")
}

func TestProxy(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(502)
			return
		}
		fmt.Fprint(w, "proxied ", r.URL)
	})
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("HTTPS_PROXY", s.URL)
	t.Setenv("NO_PROXY", "direct.example")
	c := client(t, Config{})
	fakeDNS(t, c, "127.0.0.1")
	r, err := c.Get(t.Context(), Request{URL: "http://a.example/x"})
	require.True(t, err == nil && string(r.Body) == "proxied http://a.example/x", "%+v, %v", r, err)
	_, err = c.Get(t.Context(), Request{URL: "https://a.example/"})
	wantKind(t, err, KindConnect)
	for _, u := range []string{"http://10.0.0.1/", "http://localhost/", s.URL, "http://direct.example/"} {
		_, err = c.Get(t.Context(), Request{URL: u})
		wantKind(t, err, KindBlocked)
	}
}

func TestConnectToVerifiesTheName(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS.ServerName) }))
	t.Cleanup(s.Close)
	c := client(t, Config{ConnectTo: s.Listener.Addr().String()})
	c.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	r, err := c.Get(t.Context(), Request{URL: "https://example.com/"}) // the name in httptest's certificate
	assert.True(t, err == nil && string(r.Body) == "example.com", "%+v, %v", r, err)
	_, err = c.Get(t.Context(), Request{URL: "https://example.net/"})
	wantKind(t, err, KindTLS)
}

func TestValidate(t *testing.T) {
	for _, cfg := range []Config{{Concurrency: -1}, {Rate: -1}, {ConnectTo: "x"}, {ConnectTo: ":1"}, {UserAgent: "a\nb"}} {
		assert.Error(t, cfg.validate(), "%+v: no error", cfg)
	}
	assert.NoError(t, (Config{ConnectTo: "[::1]:443", UserAgent: "A/1 (+https://a.example)"}).validate())
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Add("Fri, 02 Jan 2026 03:04:15 GMT")
	f.Add("99999999999999999999")
	f.Fuzz(func(t *testing.T, h string) {
		d, ok := RetryAfter(http.Header{"Retry-After": {h}}, now)
		assert.True(t, d >= 0 && (ok || d == 0), "%q: %v, %v", h, d, ok)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"120", 2 * time.Minute, true},
		{" 0 ", 0, true},
		{"Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second, true},
		{"Friday, 02-Jan-26 03:04:15 GMT", 10 * time.Second, true},
		{"Fri, 02 Jan 2026 03:04:00 GMT", 0, true},
		{"99999999999999999999", time.Duration(9223372036) * time.Second, true},
		{"", 0, false}, {"-1", 0, false}, {"1.5", 0, false}, {"soon", 0, false},
	} {
		d, ok := RetryAfter(http.Header{"Retry-After": {tt.in}}, now)
		assert.True(t, d == tt.want && ok == tt.ok, "%q: %v, %v, want %v, %v", tt.in, d, ok, tt.want, tt.ok)
	}
	// This machine's clock is an hour ahead, or the answer has no date that can be right.
	for date, want := range map[string]time.Duration{"Fri, 02 Jan 2026 02:04:05 GMT": time.Minute, "Thu, 01 Jan 1970 00:00:00 GMT": 0, "soon": 0, "": 0} {
		d, ok := RetryAfter(http.Header{"Retry-After": {"Fri, 02 Jan 2026 02:05:05 GMT"}, "Date": {date}}, now)
		assert.True(t, d == want && ok, "date %q: %v, %v, want %v", date, d, ok, want)
	}
}

// A crawl without usable certificate authorities would record every site as broken.
func TestAuthorities(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.pem")
	require.NoError(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	for file, want := range map[string]string{filepath.Join(dir, "none.pem"): "no such file", garbage: "contains no PEM certificate", dir: "is a directory"} {
		t.Setenv("SSL_CERT_FILE", file)
		if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") || !strings.Contains(err.Error(), want) {
			t.Errorf("SSL_CERT_FILE=%s: %v, want %q", file, err, want)
		}
		_, err := New(Config{Offline: true})
		assert.NoError(t, err, "SSL_CERT_FILE=%s, offline", file)
	}
	t.Setenv("SSL_CERT_FILE", "")
	err := checkAuthorities(func() (*x509.CertPool, error) { return x509.NewCertPool(), nil })
	assert.True(t, err != nil && strings.Contains(err.Error(), "ca-certificates"), "a machine without authorities: %v", err)
}

// Allow is called before each request, redirects too. A request that it refuses is
// not sent and is not counted as a failure of the site.
func TestAllow(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	})
	no := errors.New("not now")
	for path, want := range map[string][]string{"/": {"/"}, "/moved": {"/moved", "/there"}} {
		for allowed := range len(want) + 1 {
			got = nil
			c := client(t, Config{AllowPrivate: true})
			asked := 0
			c.Allow = func(_ context.Context, wait bool) error {
				if !wait {
					return nil
				}
				if asked++; asked > allowed {
					return no
				}
				return nil
			}
			_, err := c.Get(t.Context(), Request{URL: s.URL + path, MaxRedirects: 1})
			var failure *Error
			refused := allowed < len(want)
			assert.True(t, refused == errors.Is(err, no) && !errors.As(err, &failure), "%s, %d allowed: %v", path, allowed, err)
			assert.Equal(t, fmt.Sprint(want[:allowed]), fmt.Sprint(got), "%s, %d allowed: %v were sent", path, allowed, got)
			assert.Equal(t, int64(allowed), c.Stats().Requests, "%s, %d allowed", path, allowed)
		}
	}
}

// A process that was suspended while it connected sends nothing after it wakes up
// until Allow permits it.
func TestAllowedWhenTheConnectionIsMade(t *testing.T) {
	var got []string
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.URL.Path) })
	c := client(t, Config{AllowPrivate: true})
	no := errors.New("not now")
	var asked []bool
	var answers []error
	c.Allow = func(_ context.Context, wait bool) error {
		asked = append(asked, wait)
		err := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		return err
	}
	var conns Conns
	get := func(path string, allow ...error) error {
		asked, got, answers = nil, nil, allow
		_, err := c.Get(t.Context(), Request{URL: s.URL + path, Conns: &conns})
		return err
	}
	for _, path := range []string{"/a", "/b"} { // over a new connection, and over the one that is there
		before := c.Stats().Requests
		err := get(path, nil, nil, no, no)
		assert.True(t, errors.Is(err, no) && len(got) == 0 && asked[len(asked)-1], "%s: %v; sent %v, asked %v", path, err, got, asked)
		assert.Equal(t, before, c.Stats().Requests, path)
		err = get(path, nil, nil, no, nil)
		assert.True(t, err == nil && fmt.Sprint(got) == "["+path+"]", "%s: %v; sent %v", path, err, got)
	}
	if err := get("/c", nil, no, nil); err != nil || fmt.Sprint(got) != "[/c]" || fmt.Sprint(asked) != "[true false true false false]" {
		t.Errorf("suspended while it waited for its turn: %v; sent %v, asked %v", err, got, asked)
	}
}

// late returns an answer after its request's timeout, as a Transport may when the
// connection is closed.
type late struct{}

func (late) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

func TestLateAnswer(t *testing.T) {
	c := client(t, Config{})
	SetTransport(c, late{})
	_, err := c.Get(t.Context(), Request{URL: "https://example.com/", Timeout: time.Millisecond})
	wantKind(t, err, KindTimeout)
}
