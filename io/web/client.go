// Package web is the polite HTTP client of all jobs: it asks one thing at a
// time of a host, pauses in between, keeps to the public internet, bounds what
// it reads, and names failures from a small closed set.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// What a zero field of Config or Request stands for.
const (
	DefaultUserAgent     = "Newsfork-SeedEngine/1.0"
	DefaultMaxCrawlDelay = 30 * time.Second
	DefaultConcurrency   = 64
	DefaultRetryBackoff  = 500 * time.Millisecond
	DefaultTimeout       = 30 * time.Second
	DefaultMaxBytes      = 10 << 20
)

// Config is how a process behaves on the web. It travels as JSON in a DoFn's field.
type Config struct {
	UserAgent     string        // DefaultUserAgent when empty
	HostDelay     time.Duration // least pause of a host, from the end of one request to the start of the next
	MaxCrawlDelay time.Duration // longest Crawl-delay or Retry-After obeyed; 0: DefaultMaxCrawlDelay
	Concurrency   int           // requests in flight in the process; 0: DefaultConcurrency
	Rate          float64       // starts of requests a second in the process; 0: no limit
	ConnectTo     string        // host:port every connection goes to, whatever the URL; the names are still checked, and so are certificates
	Resolver      string        // host:port of the name server asked in place of the system's; with ConnectTo it stands for a simulated internet's, see New
	AllowPrivate  bool          // lifts the address guard, its ports and names too
	RootCAs       []byte        // PEM certificates trusted besides the system's
	RetryBackoff  time.Duration // pause before the first retry, doubled for each further one; 0: DefaultRetryBackoff
}

// Validate says what is wrong with the configuration, in words for its user.
func (cfg Config) Validate() error {
	switch {
	case cfg.HostDelay < 0:
		return fmt.Errorf("host delay %v: use 0 or more", cfg.HostDelay)
	case cfg.MaxCrawlDelay < 0:
		return fmt.Errorf("longest crawl delay %v: use 0 (for %v) or more", cfg.MaxCrawlDelay, DefaultMaxCrawlDelay)
	case cfg.RetryBackoff < 0:
		return fmt.Errorf("retry backoff %v: use 0 (for %v) or more", cfg.RetryBackoff, DefaultRetryBackoff)
	case cfg.Concurrency < 0:
		return fmt.Errorf("concurrency %d: use 0 (for %d) or more", cfg.Concurrency, DefaultConcurrency)
	case cfg.Rate < 0 || math.IsNaN(cfg.Rate) || math.IsInf(cfg.Rate, 0):
		return fmt.Errorf("rate %v: use requests a second, or 0 for no limit", cfg.Rate)
	}
	for _, r := range cfg.UserAgent {
		if r < ' ' || r > '~' {
			return fmt.Errorf("user agent %q: use printable ASCII", cfg.UserAgent)
		}
	}
	if cfg.ConnectTo != "" {
		if host, port, err := net.SplitHostPort(cfg.ConnectTo); err != nil || host == "" || port == "" {
			return fmt.Errorf("connect to %q: use host:port", cfg.ConnectTo)
		}
	}
	if cfg.Resolver != "" {
		if host, port, err := net.SplitHostPort(cfg.Resolver); err != nil || host == "" || port == "" {
			return fmt.Errorf("resolver %q: use host:port", cfg.Resolver)
		}
	}
	return nil
}

// Request is one GET with its redirects and retries.
type Request struct {
	URL          string
	Accept       string
	Timeout      time.Duration // of a whole exchange: redirects, body; not the waiting for one's turn. Each try has it anew. 0: DefaultTimeout
	MaxBytes     int64         // of the body, after decompression; more is left unread. 0: DefaultMaxBytes
	MaxRedirects int           // 301, 302, 303, 307, 308 followed; one more is KindRedirect; below 0 a redirect is the answer, for the caller to follow
	Retries      int           // further tries after timeout, reset, 429, 502, 503, 504
	Header       http.Header   // more headers; Authorization and Cookie do not follow to another host
	// Allow, when set, is asked before each redirect hop; its error ends the
	// exchange as KindBlocked and can be found in it by errors.Is.
	Allow func(u *url.URL) error
	// Beside sends the request without waiting for the host's turn: for a user
	// who asks for two requests side by side at one host. Redirects wait.
	Beside bool
	// Ready, when set, is called when the turn of a request has come, before it
	// is sent; redirects and retries too. It may wait: Timeout begins after it. A
	// ctx that it ends keeps the request from being sent.
	Ready func()
}

// Response is the answer, whatever its status.
type Response struct {
	Status    int
	Header    http.Header   // without Content-Encoding and Content-Length where the body was decoded
	Body      []byte        // decoded
	Truncated bool          // the body was cut at MaxBytes, or its compression ends early or is broken
	FinalURL  string        // after redirects
	Elapsed   time.Duration // of the last try: from sending to the body's end, all hops, without waiting for turns
	Tries     int
}

// Stats counts since New.
type Stats struct {
	Requests int64            // sent, redirect hops and retries too
	Bytes    int64            // of bodies, as received
	Retries  int64            // tries after the first
	ByStatus map[string]int64 // answers by status: "200"
	Failures map[string]int64 // Gets that ended in an Error, by Kind
}

// Client is the process's only way to the web: its limits hold over all that
// share it. It is safe for concurrent use.
type Client struct {
	cfg       Config
	guard     guard
	proxy     func(*url.URL) (*url.URL, error) // nil without proxies
	transport http.RoundTripper
	resolver  *net.Resolver // the guarded dialer's
	idle      func()

	hosts *hosts
	slots slots
	pace  *pace

	requests, bytes, retries atomic.Int64
	byStatus                 [1000]atomic.Int64
	failures                 [len(kinds)]atomic.Int64
}

// proxyKey carries a request's proxy to the transport and its dialer.
type proxyKey struct{}

// New makes a client. Proxies come from HTTPS_PROXY, HTTP_PROXY and NO_PROXY
// (not with ConnectTo), the certificate authorities from SSL_CERT_FILE where it is set.
// Through a proxy it is the proxy that resolves names, so there the guard sees
// names and literal addresses only.
//
// With Resolver and ConnectTo both, a name is looked up, and connected at its
// own address and ConnectTo's port; that address must be a loopback one. So
// hosts of a simulated internet can be missing or refuse connections.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("web client: %w", err)
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = DefaultUserAgent
	}
	if cfg.MaxCrawlDelay == 0 {
		cfg.MaxCrawlDelay = DefaultMaxCrawlDelay
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = DefaultConcurrency
	}
	if cfg.RetryBackoff == 0 {
		cfg.RetryBackoff = DefaultRetryBackoff
	}
	c := &Client{
		cfg:   cfg,
		guard: guard{private: cfg.AllowPrivate, anyPort: cfg.ConnectTo != "", refuse: refuseAddr},
		hosts: newHosts(cfg.HostDelay, cfg.MaxCrawlDelay),
		pace:  newPace(cfg.Rate),

		resolver: &net.Resolver{},
	}
	c.slots.limit = cfg.Concurrency
	if env := httpproxy.FromEnvironment(); cfg.ConnectTo == "" && (env.HTTPProxy != "" || env.HTTPSProxy != "") {
		c.proxy = env.ProxyFunc()
	}

	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cfg.RootCAs) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("web client: reading the system's certificates: %w", err)
		}
		if !roots.AppendCertsFromPEM(cfg.RootCAs) {
			return nil, errors.New("web client: RootCAs holds no PEM certificate")
		}
		tlsConfig.RootCAs = roots
	}

	unguarded := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1}
	guarded := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1, Control: c.guard.control, Resolver: c.resolver}
	simulated := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1, Control: loopbackOnly, Resolver: c.resolver}
	if cfg.Resolver != "" {
		c.resolver.PreferGo = true
		c.resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return unguarded.DialContext(ctx, network, cfg.Resolver)
		}
	}
	var onlyHTTP1 http.Protocols // for two or three requests a host, HTTP/2 costs more than it saves
	onlyHTTP1.SetHTTP1(true)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case cfg.ConnectTo != "" && cfg.Resolver != "":
				host, _, _ := net.SplitHostPort(addr)          // net/http made it
				_, port, _ := net.SplitHostPort(cfg.ConnectTo) // Validate has seen it
				if _, err := netip.ParseAddr(host); err != nil {
					host = strings.TrimSuffix(host, ".") + "." // no search list
				}
				return simulated.DialContext(ctx, network, net.JoinHostPort(host, port))
			case cfg.ConnectTo != "":
				return unguarded.DialContext(ctx, network, cfg.ConnectTo)
			case ctx.Value(proxyKey{}) != nil:
				return unguarded.DialContext(ctx, network, addr)
			}
			return guarded.DialContext(ctx, network, addr)
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
			if r.StatusCode != http.StatusOK {
				return &proxyError{r.StatusCode}
			}
			return nil
		},
		TLSClientConfig:        tlsConfig,
		Protocols:              &onlyHTTP1,
		DisableCompression:     true, // decoded here, with more formats and a cap
		MaxIdleConns:           cfg.Concurrency,
		MaxIdleConnsPerHost:    8, // for Request.Beside; else one is enough
		IdleConnTimeout:        15 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        1 << 10, // a GET and its headers
	}
	if c.proxy != nil {
		transport.Proxy = func(r *http.Request) (*url.URL, error) {
			via, _ := r.Context().Value(proxyKey{}).(*url.URL)
			return via, nil
		}
	}
	c.transport, c.idle = transport, transport.CloseIdleConnections
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.idle() }

// SetCrawlDelay sets the host's own pause, from the end of one request to the
// start of the next, where it is longer than HostDelay; it is cut at
// MaxCrawlDelay, 0 takes it back. It is forgotten ten minutes after the host's
// last request. A port other than 80 and 443 is part of host.
func (c *Client) SetCrawlDelay(host string, d time.Duration) {
	u := &url.URL{Scheme: "http", Host: host}
	if ascii, err := asciiHost(u.Hostname()); err == nil {
		c.hosts.setCrawlDelay(hostKey(ascii, u.Port()), d)
	}
}

// SetLimits changes what the process may do: requests in flight (at least 1)
// and starts a second (0: no limit). What is in flight stays.
func (c *Client) SetLimits(concurrency int, rate float64) {
	c.slots.resize(max(1, concurrency))
	c.pace.set(rate)
}

// Stats returns the counters as they are.
func (c *Client) Stats() Stats {
	s := Stats{
		Requests: c.requests.Load(),
		Bytes:    c.bytes.Load(),
		Retries:  c.retries.Load(),
		ByStatus: map[string]int64{},
		Failures: map[string]int64{},
	}
	for status := range c.byStatus {
		if n := c.byStatus[status].Load(); n > 0 {
			s.ByStatus[strconv.Itoa(status)] = n
		}
	}
	for i, k := range kinds {
		if n := c.failures[i].Load(); n > 0 {
			s.Failures[string(k)] = n
		}
	}
	return s
}

// Get fetches r.URL. Every failure is an *Error but one: when ctx is done, the
// error wraps ctx.Err().
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	if r.Timeout <= 0 {
		r.Timeout = DefaultTimeout
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultMaxBytes
	}
	for try := 1; ; try++ {
		resp, hold, err := c.exchange(ctx, r)
		r.Beside = false // a retry waits for its turn
		wait := c.backoff(try)
		if err == nil {
			resp.Tries = try
			again := retryStatus(resp.Status)
			if hold > 0 { // the host's limiter does the waiting
				wait = 0
			}
			if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait+hold {
				again = false
			}
			if try > r.Retries || !again {
				return resp, nil
			}
		} else {
			var failure *Error
			if !errors.As(err, &failure) {
				return nil, err
			}
			if try > r.Retries || !failure.retryable() {
				c.failures[slices.Index(kinds[:], failure.Kind)].Add(1)
				return nil, failure
			}
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("fetching %s: %w", r.URL, err)
		}
		c.retries.Add(1)
	}
}

func (c *Client) backoff(try int) time.Duration {
	d := c.cfg.RetryBackoff << min(try-1, 10)
	return d*3/4 + rand.N(d/2+1) // ± 25 %
}

func retryStatus(status int) bool {
	return status == 429 || status == 502 || status == 503 || status == 504
}

// exchange is one try: the URL and its redirects. hold is for how long the
// last host wants to be left alone.
func (c *Client) exchange(ctx context.Context, r Request) (_ *Response, hold time.Duration, _ error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, 0, &Error{Kind: KindBlocked, URL: "the URL", Err: &blockedError{"the URL", errors.Unwrap(err).Error()}}
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	var (
		left   = r.Timeout
		header = c.header(r)
		seen   []string
		status int
	)
	fail := func(kind Kind, err error) error {
		return &Error{Kind: kind, URL: u.String(), Status: status, Err: err}
	}
	for {
		if err := c.guard.url(u); err != nil {
			return nil, 0, fail(KindBlocked, err)
		}
		resp, hold, err := c.hop(ctx, u, header, r, &left, r.Beside && len(seen) == 0)
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, fmt.Errorf("fetching %s: %w", u, ctx.Err())
			}
			return nil, 0, fail(classify(err), err)
		}
		location := resp.Header.Get("Location")
		if !redirects(resp.Status) || location == "" || r.MaxRedirects < 0 {
			resp.FinalURL = u.String()
			resp.Elapsed = r.Timeout - left
			return resp, hold, nil
		}
		status = resp.Status
		seen = append(seen, u.String())
		if len(seen) > r.MaxRedirects {
			return nil, 0, fail(KindRedirect, fmt.Errorf("more than %d redirects", r.MaxRedirects))
		}
		next, err := u.Parse(strings.TrimSpace(location))
		if err != nil {
			return nil, 0, fail(KindRedirect, fmt.Errorf("reading Location: %w", err))
		}
		next.User, next.Fragment, next.RawFragment = nil, "", ""
		if err := c.guard.url(next); err != nil { // before it is compared or shown to Allow
			u = next
			return nil, 0, fail(KindBlocked, err)
		}
		if slices.Contains(seen, next.String()) {
			return nil, 0, fail(KindRedirect, fmt.Errorf("it leads back to %s", next))
		}
		if r.Allow != nil {
			if err := r.Allow(next); err != nil {
				u = next
				return nil, 0, fail(KindBlocked, err)
			}
		}
		if next.Host != u.Host && len(r.Header) > 0 {
			header = header.Clone()
			for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
				header.Del(secret)
			}
		}
		u = next
	}
}

func redirects(status int) bool {
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308
}

func (c *Client) header(r Request) http.Header {
	h := make(http.Header, 3+len(r.Header))
	for name, values := range r.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h["User-Agent"] = []string{c.cfg.UserAgent}
	h["Accept-Encoding"] = []string{acceptEncoding}
	if r.Accept != "" {
		h["Accept"] = []string{r.Accept}
	}
	return h
}

// hostKey is what a turn is for: both schemes of a host are one.
func hostKey(host, port string) string {
	host = strings.TrimSuffix(host, ".")
	if port == "" || port == "80" || port == "443" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// hop sends one request when it is its turn, and reads the answer. It takes
// the time it needed off left. The error is the transport's or ctx's.
func (c *Client) hop(ctx context.Context, u *url.URL, header http.Header, r Request, left *time.Duration, beside bool) (_ *Response, hold time.Duration, _ error) {
	key := hostKey(u.Hostname(), u.Port())
	if beside {
		defer func() { c.hosts.note(key, hold) }()
	} else {
		turn, err := c.hosts.acquire(ctx, key)
		if err != nil {
			return nil, 0, err
		}
		defer func() { c.hosts.release(key, turn, hold) }()
	}
	if err := c.slots.acquire(ctx); err != nil {
		return nil, 0, err
	}
	defer c.slots.release()
	if err := c.pace.wait(ctx); err != nil {
		return nil, 0, err
	}
	if r.Ready != nil {
		r.Ready()
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
	}

	ctx, cancel := context.WithTimeout(ctx, *left)
	defer cancel()
	start := time.Now()
	defer func() { *left -= time.Since(start) }()
	if c.proxy != nil {
		via, err := c.proxy(u)
		if err != nil {
			return nil, 0, fmt.Errorf("reading the proxy's address: %w", err)
		}
		if via != nil {
			ctx = context.WithValue(ctx, proxyKey{}, via)
		}
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	c.requests.Add(1)
	answer, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, 0, orDone(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // of a reader: nothing is lost with its error
	if answer.StatusCode < len(c.byStatus) {
		c.byStatus[answer.StatusCode].Add(1)
	}
	resp := &Response{Status: answer.StatusCode, Header: answer.Header}
	if resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusServiceUnavailable {
		if d, ok := ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); ok {
			hold = min(d, c.cfg.MaxCrawlDelay)
		}
	}

	wire := &wire{body: answer.Body, left: math.MaxInt64}
	defer func() { c.bytes.Add(wire.n) }()
	if redirects(resp.Status) && answer.Header.Get("Location") != "" {
		// So much, to use the connection again; a failure shows in the next hop.
		_, _ = io.CopyN(io.Discard, wire, 2<<10)
		return resp, hold, nil
	}
	body, coded, free := newDecoder(wire, answer.Header["Content-Encoding"])
	defer free()
	if coded {
		wire.left = r.MaxBytes + 64<<10 // compression that makes it longer is none
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
	}
	resp.Body, resp.Truncated, err = readBody(body, r.MaxBytes)
	switch {
	case wire.err != nil && !resp.Truncated:
		return nil, hold, orDone(ctx, fmt.Errorf("reading the body: %w", wire.err))
	case err != nil: // the compression is broken: keep what came out
		resp.Truncated = true
	}
	return resp, hold, nil
}

// orDone is ctx's error when ctx is done, as what the network says then is
// only its echo.
func orDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && classify(err) != KindBlocked {
		return ctx.Err()
	}
	return err
}

// wire counts a body as it comes, ends it after left bytes, and remembers if
// the network broke, which a decoder above may report as something else.
type wire struct {
	body io.Reader
	left int64
	n    int64
	err  error
}

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := w.body.Read(p[:min(int64(len(p)), w.left)])
	w.n += int64(n)
	w.left -= int64(n)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}
