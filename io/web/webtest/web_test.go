package webtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func start(t testing.TB, o Options) (*Web, *http.Client) {
	t.Helper()
	w := New(o)
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		assert.NoError(t, w.Close())
	})
	return w, client(t, w)
}

// client dials the simulated internet whatever the host, trusts its CA and follows no redirect.
func client(t testing.TB, w *Web) *http.Client {
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(w.CAPEM()), "CAPEM holds no certificate")
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, w.Addr())
		},
		TLSClientConfig:     &tls.Config{RootCAs: pool, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 4,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func get(t testing.TB, c *http.Client, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("User-Agent", "test")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	require.NoError(t, err, url)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err, url)
	return resp, body
}

func TestKindOf(t *testing.T) {
	w := New(Options{Hosts: map[string]Site{"listed.com": {Kind: KindRSS}, "own.com": {Handler: http.NotFoundHandler()}},
		Mix: map[Kind]int{KindAtom: 1}})
	f := func(host string, want Kind) {
		t.Helper()
		assert.Equal(t, want, w.KindOf(host), "KindOf(%q)", host)
	}
	f("kind-gzip-1.example.com", KindGzip)
	f("KIND-Gzip-Bomb.example.com:443", KindGzipBomb)
	f("kind-robots-403.example.com.", KindRobots403)
	f("robots-503-then-ok-12.com", KindRobots503Once)
	f("kind-wrong-content-type.com", KindWrongType)
	f("text.com", KindAtom)
	f("kind-unheard-of.com", KindAtom)
	f("listed.com", KindRSS)
	f("www.listed.com", KindRSS)
	f("own.com", kindCustom)
	f("redirect-www-1.com", KindRedirectWWW)
	f("www.redirect-www-1.com", KindURLSet)
	f("www.hang-1.com", KindHang)
	for _, k := range Kinds() {
		f("kind-"+strings.ReplaceAll(string(k), "_", "-")+"-7.example.com", k)
	}
}

func TestDrawFollowsWeights(t *testing.T) {
	w, seen := New(Options{Seed: 3}), map[Kind]int{}
	for i := range 20_000 {
		seen[w.KindOf(fmt.Sprintf("site%d.com", i))]++
	}
	for _, c := range w.weights {
		want := 20_000 * c.weight / w.totalWeight
		got := seen[c.kind]
		assert.True(t, got >= want/2-15 && got <= want*2+15, "%s drawn %d times, want about %d", c.kind, got, want)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	_, a := start(t, Options{Seed: 7})
	_, b := start(t, Options{Seed: 7})
	_, other := start(t, Options{Seed: 8})
	differ := false
	for _, kind := range []string{"urlset", "index", "rss", "atom", "utf16", "sitemap-gz", "euckr", "big-urlset", "huge-robots", "robots-with-foreign-sitemap"} {
		for _, path := range []string{"/robots.txt", "/sitemap.xml", "/", "/articles/2.html"} {
			url := "http://" + kind + "-1.com" + path
			ra, ba := get(t, a, url)
			rb, bb := get(t, b, url)
			assert.True(t, bytes.Equal(ba, bb) && ra.StatusCode == rb.StatusCode && ra.Header.Get("ETag") == rb.Header.Get("ETag"),
				"%s differs between two of one seed", url)
			_, bo := get(t, other, url)
			differ = differ || !bytes.Equal(ba, bo)
		}
	}
	assert.True(t, differ, "another seed gives the same bytes everywhere")
}

func TestLog(t *testing.T) {
	w, c := start(t, Options{LogLimit: 3})
	_, body := get(t, c, "http://urlset-1.com:80/robots.txt?x=1")
	got := w.Requests()
	require.Len(t, got, 1)
	assert.True(t, !got[0].End.Before(got[0].Start) && !got[0].Start.IsZero(), "from %v to %v", got[0].Start, got[0].End)
	first := got[0]
	first.Start, first.End = time.Time{}, time.Time{}
	want := (LoggedRequest{Scheme: "http", Host: "urlset-1.com", Path: "/robots.txt?x=1", Method: "GET", UserAgent: "test", Status: 200, Bytes: int64(len(body))})
	assert.True(t, first == want, "logged %+v, want %+v", first, want)
	for i := range 9 {
		get(t, c, fmt.Sprintf("https://urlset-1.com/articles/%d.html", i+1))
	}
	got = w.Requests()
	assert.True(t, len(got) == 3 && got[2].Path == "/articles/9.html" && got[2].Scheme == "https", "kept %+v, want the last 3", got)
	w.ResetLog()
	n := len(w.Requests())
	assert.True(t, n == 0 && w.MaxInFlight() == 0, "%d requests, %d in flight after ResetLog", n, w.MaxInFlight())
}

func TestHandleAndLatency(t *testing.T) {
	w, c := start(t, Options{Latency: 30 * time.Millisecond})
	w.Handle("Own.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "mine "+r.URL.Path) }))
	begin := time.Now()
	_, body := get(t, c, "https://own.example.com/x")
	assert.Equal(t, "mine /x", string(body), "body %q", body)
	d := time.Since(begin)
	assert.True(t, d >= 30*time.Millisecond, "answered after %v, before the latency", d)
}

// TestClose calls Close with requests in every state that a kind can leave them in, and wants no goroutine afterwards.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	w := New(Options{})
	require.NoError(t, w.Start())
	if _, err := w.DNS(); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", w.Addr())
	require.NoError(t, err)
	c := client(t, w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	hanging := []string{"http://hang-1.com/", "https://hang-1.com/", "https://hang-tls-1.com/", "https://hang-body-1.com/", "https://drip-1.com/sitemap.xml"}
	for _, url := range hanging {
		go func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				ended <- err
				return
			}
			resp, err := c.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			ended <- err
		}()
	}
	get(t, c, "https://urlset-1.com/") // an idle connection
	for w.MaxInFlight() < 4 {
		runtime.Gosched()
	}
	assert.NoError(t, w.Close())
	for range hanging {
		assert.Error(t, <-ended, "a request without an end ended well")
	}
	cancel()
	_ = silent.Close()
	c.CloseIdleConnections()
	assert.Equal(t, 0, len(w.conns))
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

func TestClientLeavesDrip(t *testing.T) {
	w, c := start(t, Options{})
	resp, err := c.Get("https://drip-1.com/sitemap.xml")
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, resp.Body, 6000)
	assert.True(t, err == nil && resp.ContentLength == 200<<20, "length %d, %v", resp.ContentLength, err)
	_ = resp.Body.Close()
	w.busy.Wait()
	got := w.Requests()
	assert.True(t, len(got) == 1 && got[0].Bytes >= 6000 && got[0].Bytes <= 1<<20, "logged %+v, want one request cut early", got)
}

func TestDNS(t *testing.T) {
	w, _ := start(t, Options{})
	addr, err := w.DNS()
	require.NoError(t, err)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", addr)
	}}
	f := func(host, want string) {
		t.Helper()
		got, err := resolver.LookupHost(t.Context(), host)
		var dns *net.DNSError
		assert.True(t, want != "" || (errors.As(err, &dns) && dns.IsNotFound), "%s: %v, %v; want not found", host, got, err)
		assert.True(t, want == "" || (err == nil && len(got) == 1 && got[0] == want), "%s: %v, %v; want %s", host, got, err, want)
	}
	f("urlset-1.com.", "127.0.0.1")
	f("no-such-host-1.com.", "")
	f("refused-1.com.", "::1")
	f("rebind-1.com.", rebindPublic)
	f("rebind-1.com.", "127.0.0.1")
	// The resolver takes an empty answer for "not found" as well: look at the code itself.
	for host, want := range map[string]dnsmessage.RCode{"no-such-host-1.com.": dnsmessage.RCodeNameError, "urlset-1.com.": dnsmessage.RCodeSuccess} {
		m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(host), Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET}}}
		query, err := m.Pack()
		require.NoError(t, err)
		reply, err := w.resolve(query)
		require.NoError(t, err)
		if err := m.Unpack(reply); err != nil || m.RCode != want || len(m.Answers) != 0 {
			t.Errorf("%s AAAA: %v with %d answers, %v; want %v and none", host, m.RCode, len(m.Answers), err, want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	w := New(Options{})
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x03com\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, query []byte) {
		reply, err := w.resolve(query)
		assert.True(t, err != nil || (len(reply) >= 12 && reply[2]&0x80 != 0), "%x answered by %x, no response", query, reply)
	})
}
