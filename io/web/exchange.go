package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/fault"
)

// exchange fetches the URL and follows its redirects.
func (c *Client) exchange(ctx context.Context, r Request) (*Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, &Error{Kind: KindBlocked, URL: "the URL", Err: &blockedError{"the URL", errors.Unwrap(err).Error()}}
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	var (
		left   = r.Timeout
		header = c.header(r)
		seen   []string
		status int
		others int  // addresses of u's host that could not be reached
		signed bool // u was requested again, signed as its host asked
		short  lacking
	)
	if r.Conns == nil {
		r.Conns = new(Conns)
		defer r.Conns.Close()
	}
	fail := func(kind Kind, err error) error {
		return &Error{Kind: kind, URL: u.String(), Status: status, Err: err}
	}
	for {
		if err := c.guard.url(u); err != nil {
			return nil, fail(KindBlocked, err)
		}
		if r.Agent != nil {
			header["User-Agent"] = []string{cmp.Or(r.Agent(u), c.cfg.UserAgent)}
		}
		resp, err := c.hop(ctx, u, header, r, &left, &short)
		var other otherAddress
		if errors.As(err, &other) && shortage(err) == nil && ctx.Err() == nil && others < maxAddresses-1 {
			others++
			c.requests.Add(-1) // it was not sent
			continue
		}
		if errors.Is(err, errTurnLost) {
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("fetching %s: %w", u, ctx.Err())
			}
			var no *notAllowed
			if errors.As(err, &no) {
				return nil, fmt.Errorf("fetching %s: %w", u, no.error)
			}
			var lack *fault.Shortage
			if errors.As(err, &lack) {
				return nil, fmt.Errorf("fetching %s: %w", u, lack)
			}
			return nil, fail(classify(err), err)
		}
		if c.signer != nil && c.signer.Asked(c.request(u, r, header), resp.Status, resp.Header, signed) {
			signed = true
			c.Retried()
			continue
		}
		location := resp.Header.Get("Location")
		if !resp.Redirects() || r.MaxRedirects < 0 || r.Body != nil {
			resp.FinalURL = u.String()
			resp.Elapsed = r.Timeout - left
			return resp, nil
		}
		status = resp.Status
		seen = append(seen, u.String())
		if len(seen) > r.MaxRedirects {
			return nil, fail(KindRedirect, fmt.Errorf("more than %d redirects", r.MaxRedirects))
		}
		next, err := u.Parse(strings.TrimSpace(location))
		if err != nil {
			return nil, fail(KindRedirect, fmt.Errorf("reading Location: %w", err))
		}
		next.User, next.Fragment, next.RawFragment = nil, "", ""
		if err := c.guard.url(next); err != nil { // before it is compared or shown to Allow
			u = next
			return nil, fail(KindBlocked, err)
		}
		if slices.Contains(seen, next.String()) {
			return nil, fail(KindRedirect, fmt.Errorf("it leads back to %s", next))
		}
		if r.Allow != nil {
			if err := r.Allow(next); err != nil {
				u = next
				return nil, fail(KindBlocked, err)
			}
		}
		if next.Host != u.Host && len(r.Header) > 0 {
			header = header.Clone()
			for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
				header.Del(secret)
			}
		}
		u, others, signed = next, 0, false
	}
}

func (r Request) method() string {
	if r.Body != nil {
		return http.MethodPost
	}
	return http.MethodGet
}

// notAllowed is the error of Client.Allow or Request.Turn.
type notAllowed struct{ error }

// Redirects reports whether the answer leads to another address.
func (r *Response) Redirects() bool {
	switch r.Status {
	case 301, 302, 303, 307, 308:
		return r.Header.Get("Location") != ""
	}
	return false
}

func (c *Client) request(u *url.URL, r Request, header http.Header) *http.Request {
	return &http.Request{Method: r.method(), URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

func (c *Client) header(r Request) http.Header {
	h := make(http.Header, 3+len(r.Header))
	for name, values := range r.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h["User-Agent"] = []string{c.cfg.UserAgent}
	if c.cfg.From != "" {
		h["From"] = []string{c.cfg.From}
	}
	h["Accept-Encoding"] = []string{acceptEncoding}
	if r.Accept != "" {
		h["Accept"] = []string{r.Accept}
	}
	return h
}

// Site names the unit of pacing: a host, with and without www., over both schemes.
// That is nearly always one server, and a Crawl-delay in one robots.txt is meant
// for the other too. A port other than 80 and 443 is another site.
func Site(u *url.URL) string {
	host, err := asciiHost(u.Hostname())
	if err != nil {
		host = u.Hostname() // the guard refuses it later
	}
	host = strings.TrimSuffix(host, ".")
	if bare, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(bare, ".") { // www.com is no host of a "com"
		host = bare
	}
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		return net.JoinHostPort(host, port)
	}
	return host
}

// hop sends one request when it is its turn, and reads the answer. It subtracts the
// time it needed from left. The error is the transport's, ctx's, or *notAllowed.
func (c *Client) hop(ctx context.Context, u *url.URL, header http.Header, r Request, left *time.Duration, short *lacking) (resp *Response, err error) {
	var via *url.URL
	if c.proxy != nil {
		if via, err = c.proxy(u); err != nil {
			return nil, fmt.Errorf("reading the proxy's address: %w", err)
		}
	}
	var at *addresses
	if r.Turn != nil {
		before := *left
		end, err := r.Turn(ctx, u, func(ctx context.Context) netip.Addr {
			if via != nil {
				return netip.Addr{}
			}
			found := c.addresses(ctx, r.Conns, u)
			at = &found
			return c.server(found.first())
		})
		if err != nil {
			return nil, &notAllowed{err}
		}
		defer func() { end(resp, before-*left) }()
	}
	if err := c.slots.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.slots.release()
	for first := true; first || !c.allowed(ctx); first = false { // after a wait all waiting requests could start at once: pace them again
		if err := c.waitAllowed(ctx); err != nil {
			return nil, err
		}
		if err := c.pace.wait(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if r.Ready != nil {
			kept := r.Ready()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !kept { // it is waited for without the slot: who has it now may need that
				return nil, errTurnLost
			}
		}
		resp, err := c.send(ctx, u, via, at, header, r, left)
		if lack := c.lack(err); lack != nil && ctx.Err() == nil {
			if err := c.outlast(ctx, lack, short); err != nil {
				return nil, err
			}
			if at != nil && at.err != nil { // its server is not known yet, so the turn was not that server's
				return nil, errTurnLost
			}
			continue
		}
		if !errors.Is(err, errNotSent) || ctx.Err() != nil {
			return resp, err
		}
		if err := c.waitAllowed(ctx); err != nil {
			return nil, err
		}
	}
}

// allowed says whether a request may be sent now.
func (c *Client) allowed(ctx context.Context) bool {
	return c.Allow == nil || c.Allow(ctx, false) == nil
}

func (c *Client) waitAllowed(ctx context.Context) error {
	if c.Allow == nil {
		return nil
	}
	if err := c.Allow(ctx, true); err != nil {
		return &notAllowed{err}
	}
	return nil
}

// errNotSent means that a request was not sent, because it was no longer allowed
// when its connection had been made.
var errNotSent = errors.New("it was not allowed when its connection had been made")

// errTurnLost means that a request was not sent, because its turn is over.
var errTurnLost = errors.New("its turn is over")

// errNoStatus means that an answer has a status that ends no exchange: 000, or 101
// although nobody asked for another protocol.
var errNoStatus = errors.New("the answer is not HTTP: it has no final status")

// checkedConn is a connection that calls a function before each write.
type checkedConn struct {
	net.Conn
	check atomic.Pointer[func() error]
}

func (c *checkedConn) Write(p []byte) (int, error) {
	if check := c.check.Load(); check != nil {
		if err := (*check)(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// send sends one request and reads the answer.
func (c *Client) send(ctx context.Context, u, via *url.URL, at *addresses, header http.Header, r Request, left *time.Duration) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, *left)
	defer cancel()
	start := time.Now()
	var refused atomic.Bool
	defer func() {
		if !refused.Load() {
			*left -= time.Since(start)
		}
	}()
	c.requests.Add(1)
	conn, err := c.connection(ctx, r.Conns, u, via, at)
	var other otherAddress
	if errors.As(err, &other) && shortage(err) == nil {
		r.Conns.know(c.lookupName(u), addresses{list: at.list[1:], until: time.Now().Add(addressAge)})
	}
	if err != nil {
		return nil, orDone(ctx, err)
	}
	defer c.release(r.Conns, conn)
	if conn.raw != nil && (c.Allow != nil || r.Still != nil) {
		check := func() error {
			if !c.allowed(ctx) || r.Still != nil && !r.Still() { // the process may have been suspended since it began to connect
				refused.Store(true)
				return errNotSent
			}
			return nil
		}
		conn.raw.check.Store(&check)
	}
	req := c.request(u, r, header).WithContext(ctx)
	if c.signer != nil {
		req.Header = maps.Clone(header)
		if err := c.signer.Sign(req); err != nil {
			return nil, err
		}
	}
	if len(r.Body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	} else if r.Body != nil {
		req.Body = http.NoBody // its length is sent
	}
	answer, err := conn.RoundTrip(req)
	if refused.Load() {
		c.requests.Add(-1)
		if err == nil {
			_ = answer.Body.Close() // of a reader: nothing is lost with its error
		}
		return nil, errNotSent
	}
	if err != nil {
		return nil, orDone(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // of a reader: nothing is lost with its error
	if ctx.Err() != nil {
		// When the connection is closed, a Transport may still return an answer.
		return nil, ctx.Err()
	}
	if answer.StatusCode < http.StatusOK {
		return nil, errNoStatus
	}
	if answer.StatusCode < len(c.byStatus) {
		if n := c.byStatus[answer.StatusCode].Add(1); answer.StatusCode >= 400 && n <= maxTried {
			c.examples.add(strconv.Itoa(answer.StatusCode), anonymous(u))
		}
	}
	resp := &Response{Status: answer.StatusCode, Header: answer.Header}
	wire := &wire{body: answer.Body, left: math.MaxInt64}
	defer func() { c.bytes.Add(wire.n) }()
	if resp.Redirects() {
		// A short body is read so that the connection can be reused; a failure shows in the next hop.
		_, _ = io.CopyN(io.Discard, wire, 2<<10)
		return resp, nil
	}
	body, coded, free := newDecoder(wire, answer.Header["Content-Encoding"])
	defer free()
	if coded {
		wire.left = r.MaxBytes + 64<<10 // compression does not make a body longer by more
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
	}
	resp.Body, resp.Truncated, err = readBody(body, r.MaxBytes)
	switch {
	case wire.err != nil && !resp.Truncated:
		return nil, orDone(ctx, fmt.Errorf("reading the body: %w", wire.err))
	case err != nil: // the compression is broken: keep what was decoded
		resp.Truncated = true
	}
	return resp, nil
}

// orDone returns ctx's error when ctx is done, because that caused the network
// error.
func orDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && classify(err) != KindBlocked {
		return ctx.Err()
	}
	return err
}

// wire counts the received bytes of a body, ends it after left bytes, and remembers
// a network error, which the decoder that reads it may report as something else.
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
