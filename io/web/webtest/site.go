package webtest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	xmlType   = "application/xml; charset=utf-8"
	htmlType  = "text/html; charset=utf-8"
	plainType = "text/plain; charset=utf-8"

	shortHops = 3
	chainHops = 7

	dripTotal    = 200 << 20
	dripChunk    = 4 << 10
	dripInterval = 20 * time.Millisecond
)

// answer is a whole response; only small ones are cached. A status other than 200 has neither ETag nor Last-Modified.
type answer struct {
	status    int
	mediaType string
	encoding  string // Content-Encoding
	body      []byte
	modified  time.Time
	etag      string
	stream    func(io.Writer) error // in place of body
}

// request is what an answer may depend on.
type request struct {
	web   *Web
	kind  Kind
	host  string // as by hostName
	base  string // scheme://host[:port], for links
	path  string
	count int // URLs in the host's urlset
}

func (w *Web) serve(rw http.ResponseWriter, r *http.Request) {
	w.busy.Add(1)
	defer w.busy.Done()
	x := w.begin(rw, r)
	defer x.finish()
	if r.Method == http.MethodConnect {
		w.tunnel(x)
		return
	}
	if d := w.options.Latency; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			x.abort()
		}
	}
	host := x.entry.Host
	if s, ok := w.site(host); ok && s.Handler != nil {
		s.Handler.ServeHTTP(x, r)
		return
	}
	kind := w.KindOf(host)
	if w.misbehave(x, r, kind) {
		return
	}
	q := request{web: w, kind: kind, host: host, base: scheme(r) + "://" + r.Host, path: r.URL.Path, count: w.count(host)}
	if location := q.redirect(r); location != "" {
		x.Header().Set("Location", location)
		write(x, r, &answer{status: http.StatusFound, mediaType: htmlType, body: []byte("<a href=\"" + location + "\">Found</a>\n")})
		return
	}
	if q.path == "/robots.txt" && kind == KindRobots503Once && w.first("robots", host) {
		write(x, r, failure(http.StatusServiceUnavailable))
		return
	}
	if q.path == "/sitemap.xml" && kind == KindDrip {
		drip(x, r, q)
		return
	}
	a := w.cachedAnswer(q)
	if a.status == http.StatusOK {
		a = encode(a, kind, r.Header.Get("Accept-Encoding"))
	}
	write(x, r, a)
}

// misbehave does what the kind does to every path. It reports whether that ended the request.
func (w *Web) misbehave(x *exchange, r *http.Request, kind Kind) bool {
	switch kind {
	case KindReset:
		x.reset()
	case KindResetOnce:
		if !w.first("reset", x.entry.Host) {
			return false
		}
		x.reset()
	case KindHang, KindHangTLS:
		<-r.Context().Done()
		x.abort()
	case KindHangBody:
		x.Header().Set("Content-Type", plainType)
		x.Header().Set("Content-Length", "65536")
		if _, err := io.WriteString(x, strings.Repeat("# the rest never comes\n", 40)); err == nil {
			x.Flush()
			<-r.Context().Done()
		}
		x.abort()
	case KindNoSuchHost, KindRefused:
		x.abort()
	case KindAlways503:
		write(x, r, failure(http.StatusServiceUnavailable))
	case KindRateLimited:
		if !w.first("rate", x.entry.Host) {
			return false
		}
		x.Header().Set("Retry-After", "1")
		write(x, r, failure(http.StatusTooManyRequests))
	default:
		return false
	}
	return true
}

// abort ends the request in the middle of its response; net/http closes the connection.
func (x *exchange) abort() {
	x.aborted = true
	panic(http.ErrAbortHandler)
}

// reset takes the connection from net/http and resets it below TLS, so that no alert precedes the RST.
func (x *exchange) reset() {
	x.aborted = true
	raw, _, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil {
		x.abort()
	}
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	x.finish() // the log must contain it before the client sees the reset
	raw.(*conn).reset()
}

// tunnel makes the listener a proxy for https as well (RFC 9110 section 9.3.6):
// every CONNECT leads to the listener itself.
func (w *Web) tunnel(x *exchange) {
	var d net.Dialer
	inner, err := d.DialContext(w.ctx, "tcp", w.Addr())
	if err != nil {
		write(x, &http.Request{Method: http.MethodConnect}, failure(http.StatusBadGateway))
		return
	}
	defer func() { _ = inner.Close() }() // nothing is buffered
	outer, sent, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil {
		x.abort()
	}
	defer func() { _ = outer.Close() }()
	x.finish() // the client may act on the next line before this goroutine runs again
	if _, err := io.WriteString(outer, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(inner, sent) // ends with either connection
		_ = inner.Close()
	}()
	_, _ = io.Copy(outer, inner)
}

// redirect is the URL that the kind redirects this request to, "" for none.
func (q request) redirect(r *http.Request) string {
	uri := r.URL.RequestURI()
	hop, _ := strconv.Atoi(r.URL.Query().Get("hop")) // absent is hop 0
	next := q.base + q.path + "?hop=" + strconv.Itoa(hop+1)
	switch {
	case q.kind == KindRedirectWWW:
		return scheme(r) + "://www." + r.Host + uri
	case q.kind == KindRedirectHTTP && r.TLS != nil:
		return "http://" + r.Host + uri
	case q.kind == KindRedirectLoop,
		q.kind == KindRedirectShort && hop < shortHops,
		q.kind == KindRedirectChain && hop < chainHops:
		return next
	case q.kind == KindRedirectPrivate && q.path == "/robots.txt":
		return "http://169.254.169.254/latest/meta-data/"
	case q.kind == KindRedirectPrivate:
		return "http://127.0.0.1/"
	}
	return ""
}

func failure(status int) *answer {
	return &answer{status: status, mediaType: htmlType,
		body: fmt.Appendf(nil, "<html><head><title>%d %s</title></head><body><h1>%[2]s</h1></body></html>\n", status, http.StatusText(status))}
}

// cachedAnswer returns the cached answer, or generates it and caches it while the cache is not full.
func (w *Web) cachedAnswer(q request) *answer {
	key := q.base + q.path
	if a, ok := w.cache.Load(key); ok {
		return a.(*answer)
	}
	a := q.answer()
	if a.status == http.StatusOK {
		h := w.hash(q.host, q.path)
		a.etag = `"` + strconv.FormatUint(h, 36) + `"`
		a.modified = day(h)
	}
	if a.stream == nil && len(a.body) <= maxCachedBody && a.status == http.StatusOK {
		w.mu.Lock()
		fits := w.cached+len(a.body) <= maxCache
		if fits {
			w.cached += len(a.body) + len(key)
		}
		w.mu.Unlock()
		if fits {
			w.cache.Store(key, a)
		}
	}
	return a
}

// answer is the table of paths.
func (q request) answer() *answer {
	switch q.path {
	case "/robots.txt":
		return q.robots()
	case "/":
		return q.homepage()
	case "/feed", "/rss.xml":
		return &answer{status: http.StatusOK, mediaType: "application/rss+xml; charset=utf-8", body: q.rss()}
	case "/atom.xml":
		return &answer{status: http.StatusOK, mediaType: "application/atom+xml; charset=utf-8", body: q.atom()}
	}
	if a := q.sitemap(); a != nil {
		return a
	}
	if n, ok := numbered(q.path, "/articles/", ".html"); ok && n <= q.count {
		return &answer{status: http.StatusOK, mediaType: htmlType, body: q.article(n)}
	}
	if q.kind == KindSoft404 {
		return &answer{status: http.StatusOK, mediaType: htmlType,
			body: []byte("<!DOCTYPE html><html><head><title>Page not found</title></head><body><p>Sorry, this page does not exist.<br></body></html>\n")}
	}
	return failure(http.StatusNotFound)
}

// numbered reads n out of prefix + n + suffix, n ≥ 1.
func numbered(path, prefix, suffix string) (int, bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	digits, ok2 := strings.CutSuffix(rest, suffix)
	n, err := strconv.Atoi(digits)
	return n, ok && ok2 && err == nil && n > 0
}

// encode applies the Content-Encoding that the kind uses, if the client accepts it.
func encode(a *answer, kind Kind, accept string) *answer {
	switch kind {
	case KindGzip, KindDeflate, KindBrotli, KindZstd:
	default:
		return a
	}
	if a.stream != nil || !strings.Contains(accept, string(kind)) {
		return a
	}
	var buf bytes.Buffer
	var z io.WriteCloser
	switch kind {
	case KindGzip:
		z = gzip.NewWriter(&buf)
	case KindDeflate:
		z = zlib.NewWriter(&buf)
	case KindBrotli:
		z = brotli.NewWriterLevel(&buf, 4)
	case KindZstd:
		e, err := zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(fmt.Errorf("making a zstd writer: %w", err)) // only its own options can be wrong
		}
		z = e
	}
	// Writing to a bytes.Buffer never fails.
	_, _ = z.Write(a.body)
	_ = z.Close()
	b := *a
	b.encoding, b.body = string(kind), buf.Bytes()
	return &b
}

// write sends the answer.
func write(x *exchange, r *http.Request, a *answer) {
	h := x.Header()
	status, body := a.status, a.body
	if a.etag != "" {
		h.Set("ETag", a.etag)
		h.Set("Last-Modified", a.modified.Format(http.TimeFormat))
	}
	h.Set("Content-Type", a.mediaType)
	if a.encoding != "" {
		h.Set("Content-Encoding", a.encoding)
		h.Set("Vary", "Accept-Encoding")
	}
	if a.stream != nil {
		x.WriteHeader(status)
		if r.Method != http.MethodHead && a.stream(x) != nil {
			x.abort() // the client closed the connection
		}
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = x.Write(body) // it fails only when the client closed the connection, and is the last write
	}
}

// drip sends a urlset of dripTotal bytes slowly, until the client closes the connection.
func drip(x *exchange, r *http.Request, q request) {
	x.Header().Set("Content-Type", xmlType)
	x.Header().Set("Content-Length", strconv.Itoa(dripTotal))
	var buf bytes.Buffer
	buf.WriteString(urlsetOpen)
	tick := time.NewTicker(dripInterval)
	defer tick.Stop()
	for sent, n := 0, 1; sent < dripTotal; {
		for ; buf.Len() < dripChunk; n++ {
			buf.Write(q.appendURL(nil, "", n))
		}
		part := buf.Next(min(dripChunk, dripTotal-sent))
		if _, err := x.Write(part); err != nil {
			x.abort()
		}
		sent += len(part)
		x.Flush()
		if !wait(r.Context(), tick.C) {
			x.abort()
		}
	}
}

func wait(ctx context.Context, tick <-chan time.Time) bool {
	select {
	case <-tick:
		return true
	case <-ctx.Done():
		return false
	}
}
