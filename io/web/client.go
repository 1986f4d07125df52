// Package web is the HTTP client of all jobs: it keeps to the public internet,
// bounds what it reads and how much is in flight, and names failures from a small
// closed set. Jobs send their requests through package polite, which obeys
// robots.txt and paces them.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
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

// idleLimit is below the five seconds after which much server software (Apache,
// Node.js) closes an idle connection: a request that crosses the closing on its way
// is lost.
const idleLimit = 4 * time.Second

// Config is how a process behaves on the web. It travels as JSON in a DoFn's field.
type Config struct {
	UserAgent     string        // DefaultUserAgent when empty
	HostDelay     time.Duration // the gap of the jobs' polite.Policy; the client itself does not pause
	MaxCrawlDelay time.Duration // the longest Crawl-delay or Retry-After that the jobs' policies obey; 0: DefaultMaxCrawlDelay
	Concurrency   int           // requests in flight in the process; 0: DefaultConcurrency
	Rate          float64       // starts of requests a second in the process; 0: no limit
	ConnectTo     string        // host:port every connection goes to, whatever the URL; the names are still checked, and so are certificates
	Resolver      string        // host:port of the name server asked in place of the system's; with ConnectTo it stands for a simulated internet's, see New
	AllowPrivate  bool          // lifts the address guard, its ports and names too
	RootCAs       []byte        // PEM certificates trusted besides the system's
	Offline       bool          // nothing will be asked for: New does without certificate authorities
	RetryBackoff  time.Duration // the pause before a first retry in the jobs' policies; 0: DefaultRetryBackoff
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
	Header       http.Header   // more headers; Authorization and Cookie do not follow to another host
	// Allow, when set, is asked before each redirect hop; its error ends the
	// exchange as KindBlocked and can be found in it by errors.Is.
	Allow func(u *url.URL) error
	// Turn, when set, is called before each request, redirects too, and waits until
	// the request may be sent.
	// Its error keeps the request from being sent and can be found in Get's. end is
	// called when the answer is read, with nil where there is none.
	Turn func(ctx context.Context, u *url.URL) (end func(*Response), err error)
	// Ready, when set, is called when the turn of a request has come, before it
	// is sent; redirects too. It may wait: Timeout begins after it. A
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
	Elapsed   time.Duration // from sending to the body's end, all hops, without waiting for turns
}

// Stats counts since New.
type Stats struct {
	Requests int64            // sent, redirect hops and retries too
	Bytes    int64            // of bodies, as received
	Retries  int64            // see Retried
	ByStatus map[string]int64 // answers by status: "200"
	Failures map[string]int64 // Gets that ended in an Error, by Kind
}

// Client is the process's only way to the web: its limits hold over all that
// share it. It is safe for concurrent use.
type Client struct {
	// Allow, when set, is asked before each request is sent; redirects and retries
	// too: when its turn has come, when it may wait, and when its connection has
	// been made, when it may not. Its error keeps the request from being sent. Set
	// it before the first one.
	Allow func(ctx context.Context, wait bool) error

	cfg       Config
	guard     guard
	proxy     func(*url.URL) (*url.URL, error) // nil without proxies
	transport http.RoundTripper
	resolver  *net.Resolver // the guarded dialer's
	idle      func()

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
	if cfg.Concurrency == 0 {
		cfg.Concurrency = DefaultConcurrency
	}
	c := &Client{
		cfg:   cfg,
		guard: guard{private: cfg.AllowPrivate, anyPort: cfg.ConnectTo != "", refuse: refuseAddr},
		pace:  newPace(cfg.Rate),

		resolver: &net.Resolver{},
	}
	c.guard.nat64 = &nat64{lookup: func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		return c.resolver.LookupNetIP(ctx, network, host)
	}}
	c.guard.own = &ownAddresses{list: net.InterfaceAddrs}
	c.slots.limit = cfg.Concurrency
	if env := httpproxy.FromEnvironment(); cfg.ConnectTo == "" && (env.HTTPProxy != "" || env.HTTPSProxy != "") {
		c.proxy = env.ProxyFunc()
	}

	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cfg.RootCAs) == 0 && !cfg.Offline {
		if err := checkAuthorities(x509.SystemCertPool); err != nil {
			return nil, fmt.Errorf("web client: %w", err)
		}
	}
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
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
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
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &checkedConn{Conn: conn}, nil
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
		MaxIdleConnsPerHost:    8, // for requests in parallel; else one is enough
		IdleConnTimeout:        idleLimit,
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

// checkAuthorities says what is wrong with the machine's certificate authorities.
// Without any, or with a file of them that crypto/x509 silently cannot read, every
// site would fail by TLS, and a crawl would take that for the sites' own fault.
func checkAuthorities(system func() (*x509.CertPool, error)) error {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("SSL_CERT_FILE: reading the certificate authorities: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("SSL_CERT_FILE=%s holds no PEM certificate", file)
		}
	}
	pool, err := system()
	if err != nil {
		return fmt.Errorf("reading the system's certificates: %w", err)
	}
	if pool.Equal(x509.NewCertPool()) {
		return errors.New("this machine has no certificate authorities, so no site could be trusted: install them (ca-certificates), or name a file of them in SSL_CERT_FILE")
	}
	return nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.idle() }

// SetLimits changes what the process may do: requests in flight (at least 1)
// and starts a second (0: no limit). What is in flight stays.
func (c *Client) SetLimits(concurrency int, rate float64) {
	c.slots.resize(max(1, concurrency))
	c.pace.set(rate)
}

// Retried counts a further try that the caller makes by a Get or Try of its own.
func (c *Client) Retried() { c.retries.Add(1) }

// Failed counts a request whose last Try ended in an error of kind k.
func (c *Client) Failed(k Kind) { c.failures[slices.Index(kinds[:], k)].Add(1) }

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

// Get is Try, and counts its failure.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	resp, err := c.Try(ctx, r)
	var failure *Error
	if errors.As(err, &failure) {
		c.Failed(failure.Kind)
	}
	return resp, err
}

// Try fetches r.URL. Every failure is an *Error but three: when ctx is done, the
// error wraps ctx.Err(), and where Client.Allow or r.Turn keeps it from being sent,
// theirs. Whether it counts as a failure is the caller's to say, see Failed.
func (c *Client) Try(ctx context.Context, r Request) (*Response, error) {
	if r.Timeout <= 0 {
		r.Timeout = DefaultTimeout
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultMaxBytes
	}
	return c.exchange(ctx, r)
}
