// Package webtest is the simulated internet (like net/http/httptest): one listener on 127.0.0.1 that answers plain HTTP
// and TLS on the same port for any host name. Each host behaves as its Kind says. Tests, benchmarks and --web=demo use it.
//
// A response depends on (seed, host, path, scheme) only; the kinds that fail once remember the host. A host's kind is the
// first of these: the one set by Handle or Options.Hosts; the one that its first label (without www.) forces: kind-NAME,
// kind-NAME-ANYTHING or NAME-DIGITS, where NAME is a Kind with dashes for underscores, as in kind-gzip-1.example.com or
// robots-403-17.com; one drawn by hash with Options.Mix. The Kind constants are the list.
//
// It is an HTTP proxy too: with http://ADDR in HTTP_PROXY and HTTPS_PROXY it answers for any URL.
//
// Links, Sitemap lines and redirects keep the scheme and the host (with its port) of the request, so a client that speaks
// plain HTTP stays in plain HTTP. No promise: see docs/library.md.
package webtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	defaultLogLimit = 1_000_000
	maxCache        = 64 << 20 // bytes of generated bodies that are cached
	maxCachedBody   = 64 << 10 // a larger body is generated each time
)

// Options of a simulated internet; the zero value is useful.
type Options struct {
	Seed     uint64          // another seed draws other kinds and other bodies
	Latency  time.Duration   // every answer waits this long first
	Hosts    map[string]Site // hosts whose behaviour is set here, not by their name or the draw; matched exactly
	Mix      map[Kind]int    // weights of the draw instead of the realistic ones; kinds not named are not drawn
	LogLimit int             // requests kept for Requests: 0 is 1,000,000, below 0 keeps none
}

// Site says how one host behaves.
type Site struct {
	Kind    Kind         // KindURLSet when empty
	Handler http.Handler // answers everything, in Kind's place
}

// Web is a simulated internet, made by New. Its methods may be called from several goroutines.
type Web struct {
	options     Options
	weights     []weight
	totalWeight int

	sites     sync.Map // host → Site
	seenFirst sync.Map // "WHAT HOST" of the first requests, for the kinds that fail once
	cache     sync.Map // answer key → *answer
	ca        *authority
	tls       *tls.Config
	ln        net.Listener
	srv       *http.Server
	ready     chan net.Conn
	ctx       context.Context
	cancel    context.CancelFunc
	workers   sync.WaitGroup // accept loop, Serve, sniffers, DNS
	open      sync.WaitGroup // connections that net/http serves
	busy      sync.WaitGroup // requests, also those whose connection was hijacked

	mu          sync.Mutex
	closed      bool
	conns       map[*conn]struct{}
	dns         *net.UDPConn
	places      map[string]netip.Addr       // by host
	more        map[netip.Addr]net.Listener // besides ln
	log         []LoggedRequest
	inFlight    int
	maxInFlight int
	cached      int
	handshakes  int
	resumed     int
}

type weight struct {
	kind   Kind
	weight int
}

// New makes a simulated internet that does not listen yet: KindOf works, Start opens it.
func New(o Options) *Web {
	w := &Web{options: o, conns: map[*conn]struct{}{}, places: map[string]netip.Addr{}, more: map[netip.Addr]net.Listener{}, ready: make(chan net.Conn)}
	for _, r := range defaultMix {
		n := r.weight
		if o.Mix != nil {
			n = o.Mix[r.kind]
		}
		if n > 0 {
			w.weights = append(w.weights, weight{r.kind, n})
			w.totalWeight += n
		}
	}
	if w.totalWeight == 0 {
		w.weights, w.totalWeight = []weight{{KindURLSet, 1}}, 1
	}
	for host, s := range o.Hosts {
		if s.Kind == "" {
			s.Kind = KindURLSet
		}
		w.sites.Store(hostName(host), s)
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Start makes the CA and begins to answer.
func (w *Web) Start() error {
	if w.ln != nil {
		return errors.New("starting the simulated internet: it was started before")
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the simulated internet: %w", err)
	}
	w.ca, w.ln = ca, ln
	w.tls = &tls.Config{
		// One curve that every client knows: the post-quantum hybrid would be most of a handshake's cost.
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP256},
		NextProtos:         []string{"http/1.1"},
		GetConfigForClient: w.onClientHello,
		GetCertificate:     w.certificate,
		VerifyConnection:   w.countHandshake,
	}
	w.srv = &http.Server{
		Handler:      http.HandlerFunc(w.serve),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(io.Discard, "", 0), // it would log the refused handshakes, which are intended
		BaseContext:  func(net.Listener) context.Context { return w.ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				w.open.Add(1)
			case http.StateClosed, http.StateHijacked:
				w.open.Done()
			}
		},
	}
	w.workers.Go(func() { w.accept(ln) })
	w.workers.Go(func() { _ = w.srv.Serve(sniffedListener{w}) }) // always http.ErrServerClosed or the listener's end
	return nil
}

// Addr is the listener's host:port: what a client dials in place of any host's own address.
func (w *Web) Addr() string { return w.ln.Addr().String() }

// CAPEM is the certificate, PEM, that signs for every host.
func (w *Web) CAPEM() []byte { return bytes.Clone(w.ca.pem) }

// Handle gives a host a site of its own, also while the simulated internet runs.
func (w *Web) Handle(host string, h http.Handler) {
	w.sites.Store(hostName(host), Site{Kind: kindCustom, Handler: h})
}

// Become makes a host one of a kind, also while the simulated internet runs.
func (w *Web) Become(host string, k Kind) { w.sites.Store(hostName(host), Site{Kind: k}) }

// Close ends every connection and returns when every goroutine of the simulated internet has ended. Its error is nil.
func (w *Web) Close() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	if w.dns != nil && !again {
		_ = w.dns.Close() // a UDP socket has nothing to flush
	}
	open := make([]*conn, 0, len(w.conns))
	for c := range w.conns {
		open = append(open, c)
	}
	w.mu.Unlock()
	w.cancel()
	if w.ln != nil && !again {
		_ = w.ln.Close()
		for _, ln := range w.more {
			_ = ln.Close()
		}
		// The raw connections first: closing a tls.Conn waits until its alert is sent, and a client may not read.
		for _, c := range open {
			_ = c.Close()
		}
		_ = w.srv.Close()
	}
	w.workers.Wait()
	w.open.Wait()
	w.busy.Wait()
	return nil
}

func (w *Web) site(host string) (Site, bool) {
	s, ok := w.sites.Load(host)
	if !ok {
		return Site{}, false
	}
	return s.(Site), true
}

// first reports whether this is the first request of this sort to the host.
func (w *Web) first(what, host string) bool {
	_, before := w.seenFirst.LoadOrStore(what+" "+host, struct{}{})
	return !before
}

// conn is a connection whose first byte was read, to learn whether the client speaks TLS.
type conn struct {
	*net.TCPConn
	web     *Web
	head    [1]byte
	pending bool
}

func (c *conn) Read(p []byte) (int, error) {
	if c.pending && len(p) > 0 {
		c.pending = false
		p[0] = c.head[0]
		return 1, nil
	}
	return c.TCPConn.Read(p)
}

func (c *conn) Close() error {
	c.web.mu.Lock()
	delete(c.web.conns, c)
	c.web.mu.Unlock()
	return c.TCPConn.Close()
}

// reset closes so that the peer gets an RST.
func (c *conn) reset() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

func (w *Web) accept(ln net.Listener) {
	for {
		raw, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely there are no file descriptors left: wait until one is closed.
			select {
			case <-w.ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
				continue
			}
		}
		c := &conn{TCPConn: raw.(*net.TCPConn), web: w}
		w.mu.Lock()
		closed := w.closed
		if !closed {
			w.conns[c] = struct{}{}
		}
		w.mu.Unlock()
		if closed {
			_ = raw.Close()
			return
		}
		w.workers.Go(func() { w.sniff(c) })
	}
}

// sniff waits for the first byte, which is 0x16 (handshake record, RFC 8446 section 5.1) when the client speaks TLS.
func (w *Web) sniff(c *conn) {
	if _, err := io.ReadFull(c.TCPConn, c.head[:]); err != nil {
		_ = c.Close()
		return
	}
	c.pending = true
	var ready net.Conn = c
	if c.head[0] == 0x16 {
		ready = tls.Server(c, w.tls)
	}
	select {
	case w.ready <- ready:
	case <-w.ctx.Done():
		_ = c.Close()
	}
}

// sniffedListener is the net.Listener of the connections whose protocol sniff has found.
type sniffedListener struct{ web *Web }

func (l sniffedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.web.ready:
		return c, nil
	case <-l.web.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (l sniffedListener) Close() error   { return nil }
func (l sniffedListener) Addr() net.Addr { return l.web.ln.Addr() }

var errRefused = errors.New("the host's kind refuses the handshake")

// onClientHello fails or hangs where the host's kind says so. It never returns another configuration, so that all hosts
// share the session ticket keys.
func (w *Web) onClientHello(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	host := hostName(hello.ServerName)
	kind := w.KindOf(host)
	switch kind {
	case KindTLSRefused, KindTLSWrongName, KindNoSuchHost, KindRefused, KindHangTLS:
	default:
		return nil, nil
	}
	start := time.Now()
	defer func() {
		w.append(LoggedRequest{Start: start, End: time.Now(), Scheme: "https", Host: host}, false)
	}()
	switch kind {
	case KindTLSRefused:
		_ = hello.Conn.Close()
		return nil, errRefused
	case KindNoSuchHost, KindRefused:
		return nil, errRefused
	case KindHangTLS:
		// Until the client closes the connection or Close does; what it sends meanwhile is ignored.
		_, _ = io.Copy(io.Discard, hello.Conn)
		return nil, errRefused
	}
	return nil, nil
}

func (w *Web) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := hostName(hello.ServerName)
	if w.KindOf(host) == KindTLSWrongName {
		host = "another-name.example.net"
	}
	return w.ca.certificate(host)
}

// hostName is the host in the form of kinds and logs: lower case, without port and trailing dot.
func hostName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}
