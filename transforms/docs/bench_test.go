//go:build unix

package docs

import (
	"flag"
	"fmt"
	"slices"
	"strings"
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

// BenchmarkCrawl crawls 3,000 pages of fifteen providers with the delays turned to zero. The CPU
// time of a page, which a busy machine does not change much, is that of this process, so it has
// the simulated web in it.
func BenchmarkCrawl(b *testing.B) {
	var crawl, crawlCPU []float64
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
		b.Logf("%d pages: %.1f s, %.2f s of CPU", pages, took, spent.Seconds())
		crawl, crawlCPU = append(crawl, float64(pages)/took), append(crawlCPU, spent.Seconds()*1e3/float64(pages))
	}
	b.ReportMetric(middle(crawl), "pages/s-crawl")
	b.ReportMetric(middle(crawlCPU), "crawl-cpu-ms/page")
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
