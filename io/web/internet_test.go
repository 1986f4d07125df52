package web

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
)

func internet(t *testing.T) (w *webtest.Web, resolver string) {
	t.Helper()
	w = webtest.New(webtest.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		assert.NoError(t, w.Close())
	})
	resolver, err := w.DNS()
	require.NoError(t, err)
	return w, resolver
}

// Each kind of failure below HTTP has its own name in reports.
func TestSimulatedFailures(t *testing.T) {
	w, resolver := internet(t)
	c := client(t, Config{ConnectTo: w.Addr(), Resolver: resolver, RootCAs: w.CAPEM()})
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
			scheme = "http://" // only its TLS fails
		}
		r, err := c.Get(t.Context(), Request{URL: scheme + host + "/robots.txt"})
		assert.True(t, err == nil && r.Status == 200, "%s: %+v, %v", host, r, err)
	}
}

func TestConnectThroughProxy(t *testing.T) {
	w, _ := internet(t)
	t.Setenv("HTTP_PROXY", "http://"+w.Addr())
	t.Setenv("HTTPS_PROXY", "http://user:secret@"+w.Addr())
	t.Setenv("NO_PROXY", "")
	c := client(t, Config{RootCAs: w.CAPEM()})
	var conns Conns
	get := func(u, body string, asked ...string) {
		t.Helper()
		w.ResetLog()
		r, err := c.Get(t.Context(), Request{URL: u, MaxRedirects: 5, Conns: &conns})
		assert.True(t, err == nil && r.Status == 200 && strings.Contains(string(r.Body), body), "%s: %+v, %v; want %q", u, r, err, body)
		var got []string
		for _, q := range w.Requests() {
			got = append(got, q.Method+" "+q.Scheme+" "+q.Host)
		}
		assert.Equal(t, asked, got, "%s: the proxy was asked for", u)
	}
	get("https://urlset-1.com/robots.txt", "# robots.txt of urlset-1.com\n", "CONNECT http urlset-1.com", "GET https urlset-1.com")
	get("https://urlset-1.com/sitemap.xml", "https://urlset-1.com/articles/1.html", "GET https urlset-1.com") // by the same tunnel
	get("http://urlset-1.com/robots.txt", "# robots.txt of urlset-1.com\n", "GET http urlset-1.com")
	get("https://redirect-www-1.com/robots.txt", "# robots.txt of www.redirect-www-1.com\n",
		"CONNECT http redirect-www-1.com", "GET https redirect-www-1.com", "CONNECT http www.redirect-www-1.com", "GET https www.redirect-www-1.com")
	// Through a proxy the site's certificate is still verified, and the guard still works.
	for u, want := range map[string]Kind{"https://tls-wrong-name-1.com/": KindTLS, "https://10.0.0.1/": KindBlocked, "https://redirect-private-1.com/robots.txt": KindBlocked} {
		_, err := c.Get(t.Context(), Request{URL: u, MaxRedirects: 5})
		wantKind(t, err, want)
	}
	assert.NoError(t, w.Close()) // and the proxy with it
	_, err := c.Get(t.Context(), Request{URL: "https://urlset-2.com/"})
	e := wantKind(t, err, KindConnect)
	assert.True(t, e == nil || !strings.Contains(e.Error(), "secret"), "%v shows the proxy's password", e)
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
	ours := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ours, w.CAPEM(), 0o600))
	for file, want := range map[string]string{ours: "kind: none", "": "kind: tls"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCertificateFile$", "-test.v")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NO_PROXY=") || strings.HasPrefix(v, "no_proxy=") })
		cmd.Env = append(cmd.Env, fetchAsChild+"=https://urlset-1.com/robots.txt", "HTTPS_PROXY=http://"+w.Addr(), "SSL_CERT_FILE="+file)
		out, err := cmd.CombinedOutput()
		assert.True(t, err == nil && strings.Contains(string(out), want), "SSL_CERT_FILE=%s: %v, want %q in\n%s", file, err, want, out)
	}
}
