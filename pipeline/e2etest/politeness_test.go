//go:build e2e

package e2etest

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

	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

const agent = "Newsfork-SeedEngine/1.0"

// politenessKinds are the steady kinds of hosts and those that make the client
// try again. Kinds whose answer is cut off are left out, because the server sees
// the end of such an answer later than the client does.
var politenessKinds = append(slices.Clone(steadyKinds), "robots-503-then-ok", "rate-limited", "always-503", "reset", "reset-once",
	"index", "many-sitemaps", "big-urlset")

func TestPoliteness(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay time.Duration
		args  []string
		most  int // requests in flight
		rate  int // requests a second, 0: not checked
	}{
		{"direct", 50 * time.Millisecond, []string{"--concurrency=8"}, 8, 0},
		{"sixteen lanes on prism", 50 * time.Millisecond, []string{"--runner=prism", "--lanes=16", "--concurrency=4"}, 4, 0},
		{"rate", 5 * time.Millisecond, []string{"--rate=60"}, 64, 60},
		{"rate over sixteen lanes on prism", 5 * time.Millisecond, []string{"--runner=prism", "--lanes=16", "--rate=60"}, 64, 60},
		{"everything on", 20 * time.Millisecond, []string{"--feeds", "--homepage", "--follow-index"}, 64, 0},
		{"in parallel", 20 * time.Millisecond, []string{"--parallel-fetch", "--concurrency=8"}, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rig.StartWeb(t, webtest.Options{Seed: 3, Latency: 3 * time.Millisecond})
			b := generate(2*len(politenessKinds), politenessKinds)
			dir := rig.Directory(t, b.files)
			run(t, w, dir, append(c.args, "--host-delay="+c.delay.String())...)
			log := w.Requests()
			if n := w.MaxInFlight(); n > c.most {
				t.Errorf("%d requests in flight, want at most %d", n, c.most)
			}
			parallel := slices.Contains(c.args, "--parallel-fetch")
			fetchedOnce(t, log)
			pausesKept(t, log, c.delay, parallel)
			if c.rate > 0 {
				rateKept(t, log, c.rate)
			}
			for _, r := range log {
				if r.Method != "" && (r.UserAgent != agent || r.Method != http.MethodGet) {
					t.Errorf("%s %s%s was sent as %q", r.Method, r.Host, r.Path, r.UserAgent)
				}
			}
			if !parallel { // in parallel, the default sitemap is requested before robots.txt is known
				robotsObeyed(t, w, log)
			}
		})
	}
}

// fetchedOnce checks that nothing is fetched twice, except after a transient failure.
func fetchedOnce(t *testing.T, log []webtest.LoggedRequest) {
	t.Helper()
	type resource struct{ scheme, host, path string }
	before := map[resource][]int{}
	for _, r := range log {
		if r.Method == "" {
			continue // a handshake
		}
		at := resource{r.Scheme, r.Host, r.Path}
		if earlier := before[at]; len(earlier) > 0 {
			if last := earlier[len(earlier)-1]; len(earlier) > 1 || !slices.Contains([]int{0, 429, 502, 503, 504}, last) {
				t.Errorf("%v was fetched again after %v", at, earlier)
			}
		}
		before[at] = append(before[at], r.Status)
	}
	if len(before) == 0 {
		t.Error("no request was sent")
	}
}

// pausesKept checks that a host gets one request at a time, with a pause between the
// end of one and the start of the next.
func pausesKept(t *testing.T, log []webtest.LoggedRequest, delay time.Duration, parallel bool) {
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

// rateKept checks that no second has more requests than the rate. It allows one
// more, because both ends of the window count, and a few for delays on the way
// to the server.
func rateKept(t *testing.T, log []webtest.LoggedRequest, rate int) {
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

// robotsObeyed checks that hosts which forbid everything get requests only for
// robots.txt and the sitemaps that it names.
func robotsObeyed(t *testing.T, w rig.Web, log []webtest.LoggedRequest) {
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

func sitemapsNamedBy(t *testing.T, w rig.Web, host string) []string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.CAPEM())
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", w.Addr())
	}
	defer tr.CloseIdleConnections()
	r, err := (&http.Client{Transport: tr}).Get("https://" + host + "/robots.txt")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return robots.Parse(body).Sitemaps()
}

func TestCrawlDelayIsObeyed(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 3})
	b := generate(3, []string{"crawl-delay", "crawl-delay-long", "disallow-all"})
	dir := rig.Directory(t, b.files)
	run(t, w, dir, "--feeds", "--homepage")
	log := w.Requests()
	fetchedOnce(t, log)
	pausesKept(t, log, 5*time.Millisecond, false)
	robotsObeyed(t, w, log)
	asked := map[string]int{}
	for _, r := range log {
		asked[r.Host]++
	}
	if asked["crawl-delay-1.com"] < 2 {
		t.Errorf("crawl-delay-1.com got %d requests, want more than the one for robots.txt", asked["crawl-delay-1.com"])
	}
	if n := asked["crawl-delay-long-2.com"]; n != 1 {
		t.Errorf("crawl-delay-long-2.com asks for a longer pause than the program waits, and got %d requests, want 1", n)
	}
}
