// Package web is the HTTP client of all jobs. It connects to public addresses
// only, limits the size of answers and the number of requests in flight, and gives
// each failure one of a few kinds. Jobs send their requests through package polite,
// which obeys robots.txt and paces them.
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

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/web/botauth"
)

// Defaults for the zero fields of Config and Request.
const (
	DefaultUserAgent   = "Newsfork-SeedEngine/1.0"
	DefaultConcurrency = 64
	DefaultTimeout     = 30 * time.Second
	DefaultMaxBytes    = 10 << 20
)

// Config configures a Client. It travels as JSON in a DoFn's field.
type Config struct {
	UserAgent    string // DefaultUserAgent when empty
	From         string // the operator's mail address, sent with each request; "": none
	Sign         botauth.Config
	Concurrency  int     // requests in flight in the process; 0: DefaultConcurrency
	Rate         float64 // starts of requests a second in the process; 0: no limit
	ConnectTo    string  // host:port that every connection goes to, whatever the URL; the guard still checks names, and TLS checks certificates
	Resolver     string  // host:port of a name server to use instead of the system's; with ConnectTo it is a simulated internet's, see New
	AllowPrivate bool    // switches the address guard off, with its checks of ports and names
	RootCAs      []byte  // PEM certificates to trust, in addition to the system's
	Offline      bool    // no request will be sent: New does not require certificate authorities
}

// validate returns an error that tells the user what is wrong with the configuration.
func (cfg Config) validate() error {
	switch {
	case cfg.Concurrency < 0:
		return fmt.Errorf("concurrency %d: use 0 (for %d) or more", cfg.Concurrency, DefaultConcurrency)
	case cfg.Rate < 0 || math.IsNaN(cfg.Rate) || math.IsInf(cfg.Rate, 0):
		return fmt.Errorf("rate %v: use requests a second, or 0 for no limit", cfg.Rate)
	}
	for _, r := range cfg.UserAgent + cfg.From {
		if r < ' ' || r > '~' {
			return fmt.Errorf("user agent %q, from %q: use printable ASCII", cfg.UserAgent, cfg.From)
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

// Request is one GET with its redirects and retries, or, with a Body, one POST.
type Request struct {
	URL          string
	Accept       string
	Timeout      time.Duration // for one try, with its redirects and body, without the time waiting in Turn, Ready and for the limits. 0: DefaultTimeout
	MaxBytes     int64         // of the body, after decompression; the rest is not read. 0: DefaultMaxBytes
	MaxRedirects int           // how many redirects (301, 302, 303, 307, 308) are followed; one more is KindRedirect. Below 0 Get returns the redirect itself
	Header       http.Header   // more headers; Authorization and Cookie are not sent to another host
	Body         []byte        // if not nil, it is sent with POST, and Get returns a redirect itself
	// Agent, when set, returns the User-Agent for a URL, "" for Config.UserAgent.
	Agent func(*url.URL) string
	// Allow, when set, is called before each redirect is followed. Its error ends the
	// exchange with KindBlocked and is wrapped in Get's error.
	Allow func(u *url.URL) error
	// Turn, when set, is called before each request, redirects too, and waits until
	// the request may be sent. If it fails, the request is not sent, and Get's error
	// wraps its error. Get calls end when the answer has been read, with nil if there
	// is no answer, and with the time that the exchange took without waiting.
	//
	// server looks the host's name up and returns the address of the server that the
	// request will be sent to, and to no other. It is invalid if there is none, or if a
	// proxy is asked. If that server cannot be reached and the host has another, Turn is
	// called again. Without a call of server any address of the host is used.
	Turn func(ctx context.Context, u *url.URL, server func(context.Context) netip.Addr) (end func(r *Response, took time.Duration), err error)
	// Ready, when set, is called just before each request is sent, redirects too.
	// It may wait: Timeout begins after it. If it cancels ctx, the request is not
	// sent. If it returns false, it is not sent before Turn was called again.
	Ready func() bool
	// Still, when set, is called when the connection is open, and must not block. If it
	// returns false, the request is not sent, and Ready is called again.
	Still func() bool
	// Conns, when set, keep the connections for the visit's next requests; else they
	// are closed when this one has ended.
	Conns *Conns
}

// Response is the answer, whatever its status.
type Response struct {
	Status    int
	Header    http.Header   // without Content-Encoding and Content-Length where the body was decoded
	Body      []byte        // decoded
	Truncated bool          // the body was cut at MaxBytes, or its compression ends early or is broken
	FinalURL  string        // after redirects
	Elapsed   time.Duration // from sending to the end of the body, for all redirects, without the time waiting to send
}

// Stats are a Client's counters since New.
type Stats struct {
	Requests int64            // sent, redirect hops and retries too
	Bytes    int64            // of bodies, as received
	Retries  int64            // see Retried
	Absent   int64            // see Absent
	ByStatus map[string]int64 // answers by status: "200"
	Failures map[string]int64 // Gets that ended in an Error, by Kind
	// Examples are URLs that failed, by Kind, or that were answered with a status from
	// 400 on, by the status: a few of each, without user and password.
	Examples map[string][]string
}

// Client sends HTTP requests. A process has one, so that its limits apply to all
// requests of the process. It is safe for concurrent use.
type Client struct {
	// Allow, when set, is called before each request is sent, redirects and retries
	// too: with wait once the request's turn has come, and without wait, so that it
	// must not block, once the connection is open. If it returns an error, the
	// request is not sent. Set it before the first request.
	Allow func(ctx context.Context, wait bool) error
	// Shortages is told when a request cannot be sent because this machine lacks something.
	// Its Short ends the requests' contexts.
	Shortages fault.Watch
	// Lowered, when set, is called when a shortage lowers the number of requests in flight.
	Lowered func(from, to int, why string)

	cfg       Config
	signer    *botauth.Signer // nil: nothing is signed
	guard     guard
	proxy     func(*url.URL) (*url.URL, error) // nil without proxies
	transport *http.Transport                  // how connections are made; it keeps none
	connect   func(context.Context, target) (clientConn, error)
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	resolver  *net.Resolver // the guarded dialer's
	lookup    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	idle      idleConns
	connected atomic.Int64 // when the last connection was made, in Unix nanoseconds
	// unresolved is when the resolver could not be reached last, in Unix nanoseconds
	unresolved atomic.Int64

	slots slots
	pace  *pace

	recent recent

	requests, bytes, retries, absent atomic.Int64
	byStatus                         [1000]atomic.Int64
	examples                         examples
	failures                         [len(kinds)]atomic.Int64
}

// route goes with a context to the transport and its dialer.
type route struct {
	via     *url.URL      // the proxy, nil for none
	ip      netip.Addr    // the address to dial, invalid for any of the host's
	timeout time.Duration // of the dialler, 0 for its own
	conn    *checkedConn  // what was dialled
}

type routeKey struct{}

// New makes a client. Proxies come from HTTPS_PROXY, HTTP_PROXY and NO_PROXY
// (not with ConnectTo), the certificate authorities from SSL_CERT_FILE where it is set.
// A proxy resolves names itself, so behind one the guard checks names and literal
// addresses only.
//
// With both Resolver and ConnectTo, the client looks a name up and connects to its
// address, which must be a loopback one, at ConnectTo's port. So hosts of a
// simulated internet can be missing or refuse connections.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
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
		guard: cfg.guard(),
		pace:  newPace(cfg.Rate),

		resolver: &net.Resolver{},
	}
	c.lookup = c.resolver.LookupNetIP
	c.guard.nat64 = &nat64{lookup: func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		return c.lookup(ctx, network, host)
	}}
	c.slots.limit = min(cfg.Concurrency, MaxRequests())
	c.idle.limit = maxIdleConns(c.slots.limit, maxFiles())
	if env := httpproxy.FromEnvironment(); cfg.ConnectTo == "" && (env.HTTPProxy != "" || env.HTTPSProxy != "") {
		c.proxy = env.ProxyFunc()
	}

	tlsConfig, err := newTLS(cfg)
	if err == nil {
		c.signer, err = botauth.Open(cfg.Sign)
	}
	if err != nil {
		return nil, fmt.Errorf("web client: %w", err)
	}
	c.dial = c.newDial()
	var onlyHTTP1 http.Protocols // for two or three requests a host, HTTP/2 costs more than it saves
	onlyHTTP1.SetHTTP1(true)
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			r := ctx.Value(routeKey{}).(*route)
			if r.ip.IsValid() {
				addr = withHost(addr, r.ip)
			}
			if r.timeout > 0 {
				within, cancel := context.WithTimeout(ctx, r.timeout)
				defer cancel()
				ctx = within
			}
			conn, err := c.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			r.conn = &checkedConn{Conn: conn}
			return r.conn, nil
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
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        1 << 10, // a GET and its headers
	}
	if c.proxy != nil {
		c.transport.Proxy = func(r *http.Request) (*url.URL, error) {
			return r.Context().Value(routeKey{}).(*route).via, nil
		}
	}
	// Not by RoundTrip: it keeps something of each connection that could not be made,
	// and connections by host, whoever asked.
	c.connect = func(ctx context.Context, to target) (clientConn, error) {
		made, err := c.transport.NewClientConn(ctx, to.scheme, to.addr)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
	return c, nil
}

// newTLS returns what the client wants of TLS.
func newTLS(cfg Config) (*tls.Config, error) {
	// Post-quantum key exchanges cost CPU, for the secrecy of public pages.
	c := &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(maxSessions),
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}}
	if len(cfg.RootCAs) == 0 {
		if cfg.Offline {
			return c, nil
		}
		return c, checkAuthorities(x509.SystemCertPool)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the system's certificates: %w", err)
	}
	if !roots.AppendCertsFromPEM(cfg.RootCAs) {
		return nil, errors.New("RootCAs contains no PEM certificate")
	}
	c.RootCAs = roots
	return c, nil
}

// newDial returns what makes connections, to where the context's route and the configuration say.
func (c *Client) newDial() func(ctx context.Context, network, addr string) (net.Conn, error) {
	cfg := c.cfg
	unguarded := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1}
	guarded := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1, Control: c.guard.control, Resolver: c.resolver}
	simulated := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1, Control: loopbackOnly, Resolver: c.resolver}
	if cfg.Resolver != "" {
		c.resolver.PreferGo = true
		c.resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return unguarded.DialContext(ctx, network, cfg.Resolver)
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		r := ctx.Value(routeKey{}).(*route)
		switch {
		case cfg.ConnectTo != "" && cfg.Resolver != "":
			host, _, _ := net.SplitHostPort(addr)          // made by net/http, so it is valid
			_, port, _ := net.SplitHostPort(cfg.ConnectTo) // checked by Validate
			if _, err := netip.ParseAddr(host); err != nil {
				host = strings.TrimSuffix(host, ".") + "." // no search list
			}
			return simulated.DialContext(ctx, network, net.JoinHostPort(host, port))
		case cfg.ConnectTo != "" && r.ip.IsValid():
			return unguarded.DialContext(ctx, network, withHost(cfg.ConnectTo, r.ip))
		case cfg.ConnectTo != "":
			return unguarded.DialContext(ctx, network, cfg.ConnectTo)
		case r.via != nil:
			return unguarded.DialContext(ctx, network, addr)
		}
		return guarded.DialContext(ctx, network, addr)
	}
}

// withHost replaces the host of a host:port.
func withHost(addr string, host netip.Addr) string {
	_, port, _ := net.SplitHostPort(addr) // made by net/http, or checked by Validate
	return net.JoinHostPort(host.String(), port)
}

// checkAuthorities returns an error if the machine has no usable certificate
// authorities. crypto/x509 silently ignores a file that it cannot read. Then TLS
// would fail for every site, and a crawl would blame the sites.
func checkAuthorities(system func() (*x509.CertPool, error)) error {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("SSL_CERT_FILE: reading the certificate authorities: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("SSL_CERT_FILE=%s contains no PEM certificate", file)
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

// Close closes the idle connections of all visits.
func (c *Client) Close() { c.idle.resize(0) }

// SetLimits changes the number of requests in flight (at least 1) and the requests
// started a second (0: no limit). Requests in flight are not interrupted.
func (c *Client) SetLimits(concurrency int, rate float64) {
	concurrency = min(max(1, concurrency), MaxRequests())
	c.slots.resize(concurrency)
	c.idle.resize(maxIdleConns(concurrency, maxFiles()))
	c.pace.set(rate)
}

// Retried counts a retry. The caller makes the retry itself, by Get or Try.
func (c *Client) Retried() { c.retries.Add(1) }

// Absent counts an answer 404 or 410 to a request for something that need not be there.
func (c *Client) Absent() { c.absent.Add(1) }

// Failed counts a request whose last Try failed.
func (c *Client) Failed(failure *Error) {
	if c.failures[slices.Index(kinds[:], failure.Kind)].Add(1) <= maxTried {
		c.examples.add(string(failure.Kind), failure.URL)
	}
}

// Stats returns the current counters.
func (c *Client) Stats() Stats {
	s := Stats{
		Requests: c.requests.Load(),
		Bytes:    c.bytes.Load(),
		Retries:  c.retries.Load(),
		Absent:   c.absent.Load(),
		ByStatus: map[string]int64{},
		Failures: map[string]int64{},
		Examples: c.examples.all(),
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

// Get calls Try and counts its failure.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	resp, err := c.Try(ctx, r)
	var failure *Error
	if errors.As(err, &failure) {
		c.Failed(failure)
	}
	return resp, err
}

// Try fetches r.URL. Its error is an *Error, except that it wraps ctx.Err() when ctx
// is done, the error of Client.Allow or r.Turn when that prevented the request, or a
// *fault.Shortage when this machine could not send it.
// The caller decides whether it counts as a failure, see Failed.
func (c *Client) Try(ctx context.Context, r Request) (*Response, error) {
	if r.Timeout <= 0 {
		r.Timeout = DefaultTimeout
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultMaxBytes
	}
	return c.exchange(ctx, r)
}
