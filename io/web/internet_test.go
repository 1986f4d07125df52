package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/web/webtest"
)

func internet(t *testing.T) (w *webtest.Web, resolver string) {
	t.Helper()
	w = webtest.New(webtest.Options{})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	resolver, err := w.DNS()
	if err != nil {
		t.Fatal(err)
	}
	return w, resolver
}

// Each way to fail below HTTP, by its kind's host and its name in reports.
func TestSimulatedFailures(t *testing.T) {
	w, resolver := internet(t)
	c := client(t, Config{ConnectTo: w.Addr(), Resolver: resolver, RootCAs: w.CAPEM(), RetryBackoff: time.Millisecond})
	for _, tt := range []struct {
		url  string
		want Kind
	}{
		{"https://no-such-host-1.com/robots.txt", KindDNS},
		{"http://no-such-host-1.com/robots.txt", KindDNS},
		{"https://refused-1.com/robots.txt", KindConnect},
		{"http://refused-1.com/robots.txt", KindConnect},
		{"https://hang-1.com/robots.txt", KindTimeout},
		{"http://hang-1.com/robots.txt", KindTimeout},
		{"https://hang-tls-1.com/robots.txt", KindTimeout},
		{"https://hang-body-1.com/robots.txt", KindTimeout},
		{"https://drip-1.com/sitemap.xml", KindTimeout},
		{"https://reset-1.com/robots.txt", KindReset},
		{"https://tls-wrong-name-1.com/robots.txt", KindTLS},
		{"https://redirect-loop-1.com/robots.txt", KindRedirect},
		{"https://redirect-chain-1.com/robots.txt", KindRedirect},
		{"https://redirect-private-1.com/robots.txt", KindBlocked},
		{"https://rebind-1.com/robots.txt", KindBlocked}, // its first address is not on this machine
		{"https://8.8.8.8/robots.txt", KindBlocked},
	} {
		t.Run(tt.url, func(t *testing.T) {
			_, err := c.Get(t.Context(), Request{URL: tt.url, Timeout: 500 * time.Millisecond, MaxRedirects: 5})
			wantKind(t, err, tt.want)
		})
	}
	for _, host := range []string{"urlset-1.com", "rebind-1.com", "tls-refused-1.com"} {
		scheme := "https://"
		if host == "tls-refused-1.com" {
			scheme = "http://" // it has no TLS, and that is all that is wrong
		}
		if r, err := c.Get(t.Context(), Request{URL: scheme + host + "/robots.txt"}); err != nil || r.Status != 200 {
			t.Errorf("%s: %+v, %v", host, r, err)
		}
	}
}

// relay is an HTTP proxy that leads every CONNECT and every request to one address.
type relay struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // method and target
	auth  []string
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	p := &relay{}
	forward := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.URL.Host+r.URL.Path)
		p.auth = append(p.auth, r.Header.Get("Proxy-Authorization"))
		p.mu.Unlock()
		if r.Method != http.MethodConnect {
			answer, err := forward.RoundTrip(r)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body) // a client that is gone shows on its own side
			return
		}
		outward, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		inward, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(outward, buffered); _ = outward.Close() }()
		_, _ = io.Copy(inward, outward)
		_, _ = inward.Close(), outward.Close()
	}))
	t.Cleanup(p.Close)
	t.Cleanup(forward.CloseIdleConnections)
	return p
}

// seen are what the proxy was asked for since the last call.
func (p *relay) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.asked
	p.asked = nil
	return out
}

func TestConnectThroughProxy(t *testing.T) {
	w, _ := internet(t)
	p := newRelay(t, w.Addr())
	t.Setenv("HTTP_PROXY", p.URL)
	t.Setenv("HTTPS_PROXY", strings.Replace(p.URL, "http://", "http://user:secret@", 1))
	t.Setenv("NO_PROXY", "")
	c := client(t, Config{RootCAs: w.CAPEM()})
	get := func(u, body string, asked ...string) {
		t.Helper()
		r, err := c.Get(t.Context(), Request{URL: u, MaxRedirects: 5})
		if err != nil || r.Status != 200 || !strings.Contains(string(r.Body), body) {
			t.Errorf("%s: %+v, %v; want %q", u, r, err, body)
		}
		if got := p.seen(); !slices.Equal(got, asked) {
			t.Errorf("%s: the proxy was asked for %q, want %q", u, got, asked)
		}
	}
	get("https://urlset-1.com/robots.txt", "# robots.txt of urlset-1.com\n", "CONNECT urlset-1.com:443")
	get("https://urlset-1.com/sitemap.xml", "https://urlset-1.com/articles/1.html") // by the same tunnel
	get("http://urlset-1.com/robots.txt", "# robots.txt of urlset-1.com\n", "GET urlset-1.com/robots.txt")
	get("https://redirect-www-1.com/robots.txt", "# robots.txt of www.redirect-www-1.com\n", "CONNECT redirect-www-1.com:443", "CONNECT www.redirect-www-1.com:443")
	for i, a := range p.auth {
		if tunnel := i != 1; (a == "Basic dXNlcjpzZWNyZXQ=") != tunnel {
			t.Errorf("request %d to the proxy has Proxy-Authorization %q", i, a)
		}
	}
	for _, r := range w.Requests() {
		if r.Host == "" || r.UserAgent != DefaultUserAgent {
			t.Errorf("through the proxy came %+v", r)
		}
	}
	// The certificate is still the site's, and the guard still at its place.
	for u, want := range map[string]Kind{"https://tls-wrong-name-1.com/": KindTLS, "https://10.0.0.1/": KindBlocked, "https://redirect-private-1.com/robots.txt": KindBlocked} {
		_, err := c.Get(t.Context(), Request{URL: u, MaxRedirects: 5})
		wantKind(t, err, want)
	}
	p.Close()
	_, err := c.Get(t.Context(), Request{URL: "https://urlset-2.com/"})
	if e := wantKind(t, err, KindConnect); e != nil && strings.Contains(e.Error(), "secret") {
		t.Errorf("%v tells the proxy's password", e)
	}
}

const fetchAsChild = "WEB_TEST_FETCH"

// TestCertificateFile runs this test binary again, because a process reads
// SSL_CERT_FILE once.
func TestCertificateFile(t *testing.T) {
	if u := os.Getenv(fetchAsChild); u != "" {
		c := client(t, Config{})
		_, err := c.Get(t.Context(), Request{URL: u, Timeout: 20 * time.Second})
		var failure *Error
		switch {
		case errors.As(err, &failure):
			t.Log("kind:", failure.Kind)
		case err != nil:
			t.Fatal(err)
		default:
			t.Log("kind: none")
		}
		return
	}
	w, _ := internet(t)
	p := newRelay(t, w.Addr())
	ours := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ours, w.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{ours: "kind: none", filepath.Join(t.TempDir(), "absent"): "kind: tls", "": "kind: tls"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCertificateFile$", "-test.v")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NO_PROXY=") || strings.HasPrefix(v, "no_proxy=") })
		cmd.Env = append(cmd.Env, fetchAsChild+"=https://urlset-1.com/robots.txt", "HTTPS_PROXY="+p.URL, "SSL_CERT_FILE="+file)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("SSL_CERT_FILE=%s: %v, want %q in\n%s", file, err, want, out)
		}
	}
}
