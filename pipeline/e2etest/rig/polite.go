//go:build e2e

package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// PausesKept checks that a host gets one request at a time, with a pause between the
// end of one and the start of the next.
func PausesKept(t testing.TB, log []webtest.LoggedRequest, delay time.Duration, parallel bool) {
	t.Helper()
	byHost := map[string][]webtest.LoggedRequest{}
	for _, r := range log {
		// The default sitemap that is requested in parallel with robots.txt waits for
		// nobody, and a client that gets no processor learns of its end late: the others
		// are compared with one another. (The gap after it is package polite's test.)
		if parallel && strings.HasPrefix(r.Path, "/sitemap.xml") {
			continue
		}
		byHost[r.Host] = append(byHost[r.Host], r)
	}
	for host, rs := range byHost {
		want := delay
		if strings.HasPrefix(strings.TrimPrefix(host, "www."), "crawl-delay-") {
			want = time.Second
		}
		slices.SortFunc(rs, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
		for i, r := range rs[1:] {
			if r.Method == "" || rs[i].Method == "" {
				continue // a handshake that failed is a part of its request
			}
			if gap := r.Start.Sub(rs[i].End); gap < want-time.Millisecond {
				t.Errorf("%s: %s %v after the end of %s, want %v", host, r.Path, gap, rs[i].Path, want)
			}
		}
	}
}

// RateKept checks that no second has more requests than the rate. It allows one
// more, because both ends of the window count, and a few for delays on the way
// to the server.
func RateKept(t testing.TB, log []webtest.LoggedRequest, rate int) {
	t.Helper()
	var starts []time.Time
	for _, r := range log {
		if r.Method != "" {
			starts = append(starts, r.Start)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	most := 0
	for i, j := 0, 0; j < len(starts); j++ {
		for starts[j].Sub(starts[i]) > time.Second {
			i++
		}
		most = max(most, j-i+1)
	}
	if most > rate+rate/10+1 {
		t.Errorf("%d requests within a second, want %d", most, rate)
	}
	if took := starts[len(starts)-1].Sub(starts[0]); len(starts) > rate && took < time.Duration(len(starts)-rate)*time.Second/time.Duration(rate) {
		t.Errorf("%d requests took %v, too fast for %d a second", len(starts), took, rate)
	}
}

// RobotsObeyed checks that hosts which forbid everything get requests only for
// robots.txt and the sitemaps that it names.
func RobotsObeyed(t testing.TB, w Web, log []webtest.LoggedRequest) {
	t.Helper()
	named := map[string][]string{}
	for _, r := range log {
		if !strings.HasPrefix(r.Host, "disallow-all-") || r.Path == "/robots.txt" {
			continue
		}
		if named[r.Host] == nil {
			named[r.Host] = sitemapsNamedBy(t, w, r.Host)
		}
		if !slices.Contains(named[r.Host], r.Scheme+"://"+r.Host+r.Path) {
			t.Errorf("%s forbids everything and got a request for %s; it names %v", r.Host, r.Path, named[r.Host])
		}
	}
}

func sitemapsNamedBy(t testing.TB, w Web, host string) []string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.CAPEM())
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", w.Addr())
	}
	defer tr.CloseIdleConnections()
	r, err := (&http.Client{Transport: tr}).Get("https://" + host + "/robots.txt")
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	_ = r.Body.Close()
	return robots.Parse(body).Sitemaps()
}
