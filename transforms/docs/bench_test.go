//go:build unix

package docs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
)

var (
	crawlPages   = flag.Int("pages", 3000, "pages of BenchmarkCrawl, over fifteen providers")
	crawlLatency = flag.Duration("latency", 50*time.Millisecond, "how long each answer takes in BenchmarkCrawl")
	crawlRounds  = flag.Int("rounds", 1, "rounds of BenchmarkCrawl; medians are printed")
)

// BenchmarkCrawl crawls 3,000 pages of fifteen providers with the delays turned
// to zero, and lets a plain pool of http.Clients send the same requests: three
// hosts at once, one request a host, bodies read and thrown away. The ratio is
// the pool's time through the crawl's, which also reads, cuts, keeps and hands
// off the pages and writes down where it stands before and after each. The CPU
// time of a page, which a busy machine does not change much, is that of this
// process, so it has the simulated web in it on both sides.
func BenchmarkCrawl(b *testing.B) {
	var crawl, pool, ratio, crawlCPU, poolCPU []float64
	for range *crawlRounds {
		j := newJob(b, dbtest.SQLite(b), webtest.Options{Latency: *crawlLatency})
		j.cfg.Lanes = 1
		each := *crawlPages / len(j.cfg.Policies)
		for i := range j.cfg.Policies {
			p := &j.cfg.Policies[i]
			p.MaxPages = each
			enlarge(j.sites[siteHost(j, p.SeedURLs[0])], each)
		}
		begin, before := time.Now(), cpu(b)
		_, total := j.run("direct")
		took, spent := time.Since(begin).Seconds(), cpu(b)-before
		pages := each * len(j.cfg.Policies)
		require.EqualValues(b, pages, total.Counts["pages_new"])
		log := j.sim.Requests()
		slices.SortFunc(log, func(x, y webtest.LoggedRequest) int { return x.Start.Compare(y.Start) })
		require.Len(b, log, pages+len(j.cfg.Policies), "a robots.txt a host besides")
		before = cpu(b)
		plain := plainPool(b, j, log)
		crawlCPU, poolCPU = append(crawlCPU, spent.Seconds()*1e3/float64(pages)), append(poolCPU, (cpu(b)-before).Seconds()*1e3/float64(pages))
		b.Logf("%d pages: crawl %.1f s, pool %.1f s", pages, took, plain)
		crawl, pool, ratio = append(crawl, float64(pages)/took), append(pool, float64(pages)/plain), append(ratio, plain/took)
	}
	b.ReportMetric(middle(crawl), "pages/s-crawl")
	b.ReportMetric(middle(pool), "pages/s-pool")
	b.ReportMetric(middle(ratio), "ratio")
	b.ReportMetric(middle(crawlCPU), "crawl-cpu-ms/page")
	b.ReportMetric(middle(poolCPU), "pool-cpu-ms/page")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// siteHost is the simulated site of a seed.
func siteHost(j *job, seed string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(seed, "https://"), "/")
	require.Contains(j.t, j.sites, host)
	return host
}

// enlarge makes a site of so many pages: its chapters say what they said, and
// the first page leads to all of them.
func enlarge(s *docsim.Site, pages int) {
	paths := slices.DeleteFunc(s.Paths(), func(p string) bool { return p == s.Seed })
	first, _ := s.Page(s.Seed)
	chapter, _ := s.Page(paths[0])
	for _, p := range paths {
		s.Remove(p)
	}
	first.Links = nil
	for n := range pages - 1 {
		at := fmt.Sprintf("%s/chapter-%d", strings.TrimRight(s.Seed, "/"), n)
		first.Links = append(first.Links, at)
		page := chapter
		page.Title = fmt.Sprintf("%s %d", chapter.Title, n)
		page.Links = nil
		for _, k := range []int{n + 1, n + 7, n + 31} {
			page.Links = append(page.Links, fmt.Sprintf("%s/chapter-%d", strings.TrimRight(s.Seed, "/"), k%(pages-1)))
		}
		s.Set(at, page)
	}
	s.Set(s.Seed, first)
}

// plainPool sends the requests of a log again, as many hosts at once as the
// crawl asks, and gives the seconds that it takes.
func plainPool(b *testing.B, j *job, log []webtest.LoggedRequest) float64 {
	roots := x509.NewCertPool()
	require.True(b, roots.AppendCertsFromPEM(j.sim.CAPEM()))
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	client := &http.Client{Timeout: pageTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, j.sim.Addr())
		},
		TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 1,
	}}
	defer client.CloseIdleConnections()
	byHost := map[string][]string{}
	var hosts []string
	for _, r := range log {
		if byHost[r.Host] == nil {
			hosts = append(hosts, r.Host)
		}
		byHost[r.Host] = append(byHost[r.Host], "https://"+r.Host+r.Path)
	}
	work := make(chan []string)
	begin := time.Now()
	var workers sync.WaitGroup
	for range MaxHosts {
		workers.Go(func() {
			for urls := range work {
				for _, u := range urls {
					resp, err := client.Get(u)
					if err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
					if err != nil {
						b.Errorf("%s: %v", u, err)
					}
				}
			}
		})
	}
	for _, h := range hosts {
		work <- byHost[h]
	}
	close(work)
	workers.Wait()
	return time.Since(begin).Seconds()
}
