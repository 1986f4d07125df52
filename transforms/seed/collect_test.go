package seed_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

const mib = 1 << 20

// want is the outcome of a visit, by the kind of site.
type want struct {
	kind        webtest.Kind
	status      int    // of robots.txt
	robotsError string // "" where robots.txt answered
	sitemap     int    // status
	at          string // of the sitemap: a path at the host, or a whole URL
	form        string // sitemap.kind
	count       int64  // url_count: -1 for what the simulated web says, -2 for none
	sitemapErr  string
	asked       []string // where the requests matter
	check       func(t *testing.T, m metadata.Domain)
}

func host(k webtest.Kind) string { return "kind-" + strings.ReplaceAll(string(k), "_", "-") + "-1.com" }

// The domain redirects everything to another host, which serves the robots.txt. Its
// Crawl-delay applies to all requests to both hosts.
func TestCrawlDelayBehindARedirect(t *testing.T) {
	const delay = 4 * time.Second
	for _, at := range []string{"www.moved.com", "moved.org"} {
		t.Run(at, func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			j.clock = politetest.At(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
			var mu sync.Mutex
			last, n := map[string]time.Time{}, 0
			handle := func(host string, h http.Handler) {
				j.web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					now, site := j.clock.Now(), strings.TrimPrefix(host, "www.")
					if r.URL.Path != "/robots.txt" {
						n++
						assert.GreaterOrEqual(t, now.Sub(last[site]), delay, "%s%s came", host, r.URL.Path)
					}
					last[site] = now
					mu.Unlock()
					h.ServeHTTP(w, r)
				}))
			}
			handle("moved.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+at+r.URL.Path, http.StatusMovedPermanently)
			}))
			handle(at, pages(map[string]string{"/robots.txt": "User-agent: *\nCrawl-delay: 4\nSitemap: https://" + at + "/a.xml\nSitemap: https://" + at + "/b.xml\n"}))
			j.crawl("https://moved.com")
			assert.Equal(t, 2+2*3, n) // the named ones, and the usual ones by way of the apex
		})
	}
}

func TestCollect(t *testing.T) {
	var tests []want
	for _, k := range []webtest.Kind{webtest.KindURLSet, webtest.KindSitemapGz, webtest.KindNamespaced, webtest.KindUTF16, webtest.KindWrongType,
		webtest.KindBigURLSet, webtest.KindGzip, webtest.KindDeflate, webtest.KindBrotli, webtest.KindZstd, webtest.KindRobots503Once,
		webtest.KindBadSitemaps, webtest.KindDisallowAll, webtest.KindRateLimited, webtest.KindResetOnce, webtest.KindRedirectShort, webtest.KindEUCKR} {
		tests = append(tests, want{kind: k, status: 200, sitemap: 200, at: "/sitemap.xml", form: "urlset", count: -1})
	}
	for k, status := range map[webtest.Kind]int{webtest.KindNoRobots: 404, webtest.KindRobots403: 403, webtest.KindRobots500: 500} {
		tests = append(tests, want{kind: k, status: status, sitemap: 200, at: "/sitemap.xml", form: "urlset", count: -1})
	}
	for _, k := range []webtest.Kind{webtest.KindRedirectChain, webtest.KindRedirectLoop} {
		tests = append(tests, want{kind: k, status: 302, robotsError: "redirect", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "redirect"})
	}
	// A dead host costs one robots.txt and one retry; a certificate does not get better.
	tests = append(tests,
		want{kind: webtest.KindReset, robotsError: "reset", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "reset", asked: []string{"/robots.txt", "/robots.txt"}},
		want{kind: webtest.KindTLSWrongName, robotsError: "tls", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "tls", asked: []string{""}},
		want{kind: webtest.KindTLSRefused, robotsError: "reset", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "reset", asked: []string{"", ""}},
		want{kind: webtest.KindNoSuchHost, robotsError: "dns", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "dns", asked: []string{}},
		want{kind: webtest.KindRefused, robotsError: "connect", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "connect", asked: []string{}},
		// Its name leads astray the first time only: what the guard says is no verdict on the host.
		want{kind: webtest.KindRebind, robotsError: "blocked", sitemap: 200, at: "/sitemap.xml", form: "urlset", count: -1, asked: []string{"/sitemap.xml"}},

		want{kind: webtest.KindIndex, status: 200, sitemap: 200, at: "/sitemap.xml", form: "index", count: -1},
		want{kind: webtest.KindRSS, status: 200, sitemap: 200, at: "/sitemap.xml", form: "rss", count: 10},
		want{kind: webtest.KindAtom, status: 200, sitemap: 200, at: "/sitemap.xml", form: "atom", count: 10},
		want{kind: webtest.KindText, status: 200, sitemap: 200, at: "/sitemap.txt", form: "text", count: -1},
		want{kind: webtest.KindNoSitemapLine, status: 200, sitemap: 200, at: "/sitemap_index.xml", form: "urlset", count: -1,
			asked: []string{"/robots.txt", "/sitemap.xml", "/sitemap_index.xml"}},
		want{kind: webtest.KindNoSitemap, status: 200, sitemap: 404, at: "/sitemap.xml", count: -2,
			asked: []string{"/robots.txt", "/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml"}},
		// None parses: the first 2xx is evidence, without a count.
		want{kind: webtest.KindSoft404, status: 200, sitemap: 200, at: "/sitemap.xml", form: "soft_404", count: -2,
			asked: []string{"/robots.txt", "/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml"}},
		want{kind: webtest.KindManySitemaps, status: 200, sitemap: 404, at: "/sitemap-1.xml", count: -2, check: func(t *testing.T, m metadata.Domain) {
			assert.Equal(t, 30, len(m.Robots.SitemapURLs))
		}, asked: func() []string {
			paths := []string{"/robots.txt"}
			for n := range 20 { // candidates at most
				paths = append(paths, fmt.Sprintf("/sitemap-%d.xml", n+1))
			}
			return paths
		}()},
		want{kind: webtest.KindHugeRobots, status: 200, sitemap: 200, at: "/sitemap.xml", form: "urlset", count: -1, check: func(t *testing.T, m metadata.Domain) {
			assert.True(t, m.Robots.Truncated && m.Robots.ContentLength == mib && len(m.Robots.SitemapURLs) == 1, "robots of 1.5 MiB: %+v", m.Robots)
		}},
		want{kind: webtest.KindCrawlDelay, status: 200, sitemap: 200, at: "/sitemap.xml", form: "urlset", count: -1, check: func(t *testing.T, m metadata.Domain) {
			assert.True(t, m.Robots.CrawlDelay != nil && *m.Robots.CrawlDelay == 1, "crawl_delay %v, want 1", m.Robots.CrawlDelay)
		}},
		want{kind: webtest.KindCrawlDelayLong, status: 200, sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "crawl_delay", asked: []string{"/robots.txt"}, check: func(t *testing.T, m metadata.Domain) {
			assert.True(t, m.Robots.CrawlDelay != nil && *m.Robots.CrawlDelay == 60, "crawl_delay %v, want 60", m.Robots.CrawlDelay)
		}},
		want{kind: webtest.KindAlways503, status: 503, sitemap: 404, at: "/sitemap.xml", count: -2, form: "error_page", sitemapErr: "http_503",
			asked: []string{"/robots.txt", "/robots.txt", "/sitemap.xml", "/sitemap.xml", "/sitemap_index.xml", "/sitemap_index.xml", "/sitemaps.xml", "/sitemaps.xml"}},
		want{kind: webtest.KindRedirectWWW, status: 200, sitemap: 200, at: "https://www." + host(webtest.KindRedirectWWW) + "/sitemap.xml", form: "urlset", count: -1, check: func(t *testing.T, m metadata.Domain) {
			assert.Equal(t, "https://www."+host(webtest.KindRedirectWWW)+"/robots.txt", m.Robots.FinalURL, "final_url")
		}},
		want{kind: webtest.KindRedirectHTTP, status: 200, sitemap: 200, at: "http://" + host(webtest.KindRedirectHTTP) + "/sitemap.xml", form: "urlset", count: -1},
		want{kind: webtest.KindRedirectPrivate, status: 302, robotsError: "blocked", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "blocked"},
		// Both of its sitemaps have 1 GiB: 10 MiB are kept, and their URLs are counted.
		want{kind: webtest.KindGzipBomb, status: 200, sitemap: 200, at: "/sitemap.xml.gz", form: "urlset", count: 1, check: func(t *testing.T, m metadata.Domain) {
			assert.True(t, m.Sitemap.Truncated && m.Sitemap.ContentLength == 10*mib, "bomb: %+v", m.Sitemap)
		}},
	)

	seen := map[webtest.Kind]bool{webtest.KindForeignSitemap: true, webtest.KindHang: true, webtest.KindHangTLS: true, webtest.KindHangBody: true, webtest.KindDrip: true} // in tests of their own
	for _, tt := range tests {
		seen[tt.kind] = true
	}
	for _, k := range webtest.Kinds() {
		assert.True(t, seen[k], "no test visits a host of kind %s", k)
	}
	j := newJob(t, webtest.Options{Seed: 1})
	j.cfg.Collect.StrictHosts = true
	total := j.visit(raw, tests)

	n := int64(len(tests))
	if c := total.Counts; c["domains_unique"] != n || c["domains_collected"] != n || c["domains_failed"] != 0 || total.Timings.Count != n {
		t.Errorf("counts %v, %d timings, want %d domains", c, total.Timings.Count, n)
	}
	assert.True(t, j.exists(raw+".success"), "the file is not complete")
	b := j.read(out(raw, host(webtest.KindSitemapGz), "sitemap.xml"))
	assert.True(t, bytes.HasPrefix(b, []byte("<?xml")), "a .gz sitemap is kept unpacked, not %q…", b[:8])
	b = j.read(out(raw, host(webtest.KindUTF16), "sitemap.xml"))
	assert.True(t, bytes.HasPrefix(b, []byte{0xff, 0xfe}), "the charset is left as it came, not %q…", b[:8])
	for name, wants := range map[string]int{"robots_file_too_large": 1, "sitemap_file_too_large": 1, "domain_collector_start": len(tests), "robots_fetched": len(tests),
		"sitemap_fetched": len(tests), "domain_collector_complete": len(tests), "domains_extracted": 1, "file_processing_complete": 1, "orchestrator_start": 1,
		"files_found": 1, "queue_messages_sent": 1, "file_processor_start": 1} {
		assert.Equal(t, wants, len(j.events(name)))
	}
	assert.NotEmpty(t, j.events("invalid_sitemap_url_in_robots"), "bad Sitemap lines are not logged")
	for _, r := range j.web.Requests() {
		assert.True(t, r.Method == "" || r.UserAgent == "Newsfork-SeedEngine/1.0", "%s%s was asked as %q", r.Host, r.Path, r.UserAgent)
	}
}

// visit runs the job over one host of each kind and compares what it says of them.
func (j *job) visit(raw string, tests []want) ledger.Tally {
	t := j.t
	t.Helper()
	var urls []string
	for _, tt := range tests {
		urls = append(urls, "https://"+host(tt.kind)+"/about")
	}
	total := j.crawl(urls...)
	for i, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			name := host(tt.kind)
			m := j.metadata(raw, name)
			assert.True(t, m.DomainID == "com:sg:"+name && m.RegistrableDomain == name && m.Country == "SG" && m.Category == "news",
				"identity %+v", m)
			assert.True(t, m.Source != nil && m.Source.RawFilePath == raw && m.Source.RecordIndex != nil && *m.Source.RecordIndex == i,
				"source %+v, want %s, %d", m.Source, raw, i)
			assert.True(t, j.done(raw, name), "no .success")

			r := m.Robots
			if exists := tt.status == 200; r.StatusCode != tt.status || r.Error != tt.robotsError || r.Exists != exists || (r.ContentLength > 0) != exists || (r.FetchedAt != "") != exists {
				t.Errorf("robots %+v, want status %d, error %q", r, tt.status, tt.robotsError)
			}
			if j.exists(out(raw, name, "robots.txt")) != r.Exists {
				t.Error("evidence robots.txt must be there just when robots.exists")
			} else if r.Exists && int64(len(j.read(out(raw, name, "robots.txt")))) != r.ContentLength {
				t.Error("content_length is not that of the evidence")
			}

			s := m.Sitemap
			at := tt.at
			if strings.HasPrefix(at, "/") {
				at = "https://" + name + at
			}
			if exists := tt.sitemap == 200; s.StatusCode != tt.sitemap || s.Error != tt.sitemapErr || s.Exists != exists || s.URL != at || s.Kind != tt.form || (s.ContentLength > 0) != exists || (s.FetchedAt != "") != exists {
				t.Errorf("sitemap %+v, want status %d, kind %q, error %q, %s", s, tt.sitemap, tt.form, tt.sitemapErr, at)
			}
			count := tt.count
			if count == -1 {
				count = int64(j.web.Count(name))
			}
			switch {
			case count == -2 && s.URLCount != nil:
				t.Errorf("url_count %d, want none", *s.URLCount)
			case count != -2 && (s.URLCount == nil || *s.URLCount != count):
				t.Errorf("url_count %v, want %d", s.URLCount, count)
			}
			if j.exists(out(raw, name, "sitemap.xml")) != s.Exists {
				t.Error("evidence sitemap.xml must be there just when sitemap.exists")
			} else if s.Exists && int64(len(j.read(out(raw, name, "sitemap.xml")))) != s.ContentLength {
				t.Error("content_length is not that of the evidence")
			}
			assert.True(t, tt.asked == nil || slices.Equal(j.asked(name), tt.asked), "asked for %q, want %q", j.asked(name), tt.asked)
			if tt.check != nil {
				tt.check(t, m)
			}
		})
	}
	return total
}

// Hosts that take a connection and then keep us waiting: a dead one costs one
// time-out of robots.txt and one retry, a slow sitemap the same.
func TestCollectSlow(t *testing.T) {
	seed.ShortTimeouts(t, 400*time.Millisecond)
	j := newJob(t, webtest.Options{Seed: 1})
	j.cfg.Collect.StrictHosts = true
	twice := []string{"/robots.txt", "/robots.txt"}
	total := j.visit(day+"raw_0001.json", []want{
		{kind: webtest.KindHang, robotsError: "timeout", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "timeout", asked: twice},
		{kind: webtest.KindHangTLS, robotsError: "timeout", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "timeout"},
		{kind: webtest.KindHangBody, robotsError: "timeout", sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "timeout", asked: twice},
		{kind: webtest.KindDrip, status: 200, sitemap: 404, at: "/sitemap.xml", count: -2, sitemapErr: "timeout",
			asked: []string{"/robots.txt", "/sitemap.xml", "/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml"}},
	})
	assert.EqualValues(t, 4, total.HTTP.Failures["timeout"])
}

// The sitemap's host is another's: the address is kept as robots.txt names it.
func TestForeignSitemap(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, name := day+"raw_0001.json", host(webtest.KindForeignSitemap)
	j.crawl("https://" + name)
	m := j.metadata(raw, name)
	if len(m.Robots.SitemapURLs) != 1 || m.Sitemap.URL != m.Robots.SitemapURLs[0] || strings.Contains(m.Sitemap.URL, "https://"+name) || m.Sitemap.Kind != "urlset" {
		t.Errorf("%+v", m)
	}
}

func TestMetadataObject(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.crawl("https://kind-urlset-1.com")
	key := out(raw, "kind-urlset-1.com", "domain_metadata.json")
	for name, wants := range map[string]string{"domain_metadata.json": "application/json", "robots.txt": "text/plain", "sitemap.xml": "application/xml"} {
		o, err := j.store.Head(t.Context(), out(raw, "kind-urlset-1.com", name))
		must(t, err)
		assert.Equal(t, wants, o.ContentType, "%s", name)
	}
	o, err := j.store.Head(t.Context(), key)
	must(t, err)
	for k, v := range map[string]string{"domain_id": "com:sg:kind-urlset-1.com", "registrable_domain": "kind-urlset-1.com", "country": "sg", "category": "news", "date": "2026-01-28"} {
		assert.Equal(t, v, o.Metadata[k], "custom metadata %s", k)
	}
	if o, err = j.store.Head(t.Context(), key+".success"); err != nil || o.Size != 0 {
		t.Errorf(".success: %d bytes, %v", o.Size, err)
	}
	var indented bytes.Buffer
	must(t, json.Indent(&indented, j.read(key), "", "  "))
	assert.Equal(t, j.read(key), indented.Bytes(), "the metadata is not indented by two")
}

// pages is a site of a few pages; any other path is 404.
func pages(byPath map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := byPath[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body) // a client that is gone shows on its own side
	})
}

func urlset(n int) string {
	return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + strings.Repeat("<url><loc>https://site.com/a</loc></url>", n) + "</urlset>"
}

func index(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "<sitemap><loc>https://site.com%s</loc></sitemap>", p)
	}
	return `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + b.String() + "</sitemapindex>"
}

func TestFollowIndex(t *testing.T) {
	site := pages(map[string]string{
		"/robots.txt":  "Sitemap: https://site.com/sitemap.xml\n",
		"/sitemap.xml": index("/a.xml", "/more.xml", "/b.xml", "/a.xml", "/gone.xml"),
		"/a.xml":       urlset(3),
		"/more.xml":    strings.Replace(index("/c.xml", "/sitemap.xml"), "https://site.com/c.xml", "c.xml", 1), // the way back is not taken
		"/b.xml":       urlset(5),
		"/c.xml":       urlset(7),
	})
	for _, tt := range []struct {
		most         int
		asked        []string
		child, total int64
	}{
		{50, []string{"/robots.txt", "/sitemap.xml", "/a.xml", "/more.xml", "/b.xml", "/gone.xml", "/c.xml"}, 5, 15},
		{3, []string{"/robots.txt", "/sitemap.xml", "/a.xml", "/more.xml", "/b.xml"}, 3, 8},
		{0, []string{"/robots.txt", "/sitemap.xml"}, -1, -1}, // not asked for
	} {
		j := newJob(t, webtest.Options{})
		j.web.Handle("site.com", site)
		j.cfg.Collect.FollowIndex, j.cfg.Collect.MaxChildSitemaps = tt.most > 0, max(tt.most, 10)
		if tt.most > 0 {
			j.cfg.Collect.MaxChildSitemaps = tt.most
		}
		j.crawl("https://site.com")
		assert.Equal(t, tt.asked, j.asked("site.com"), "at most %d: asked for", tt.most)
		s := j.metadata(raw, "site.com").Sitemap
		number := func(p *int64) int64 {
			if p == nil {
				return -1
			}
			return *p
		}
		if number(s.ChildCount) != tt.child || number(s.TotalURLCount) != tt.total || s.Kind != "index" {
			t.Errorf("at most %d: child_count %d, total_url_count %d, want %d, %d", tt.most, number(s.ChildCount), number(s.TotalURLCount), tt.child, tt.total)
		}
	}
}

// Two spellings of one address are requested once.
func TestSpellings(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Collect.FollowIndex = true
	j.web.Handle("site.com", pages(map[string]string{
		"/robots.txt":        "Sitemap: HTTPS://Site.com/sitemap.xml#a\nSitemap: https://site.com:443/gone.xml\nSitemap: https://site.com/gone.xml\n",
		"/sitemap_index.xml": index(":443/a.xml", "/a.xml#b", "/a.xml", "/sitemap_index.xml#c"),
		"/a.xml":             urlset(3),
	}))
	j.crawl("https://site.com")
	assert.Equal(t, []string{"/robots.txt", "/sitemap.xml", "/gone.xml", "/sitemap_index.xml", "/a.xml"}, j.asked("site.com"))
	s := j.metadata(raw, "site.com").Sitemap
	assert.True(t, s.ChildCount != nil && *s.ChildCount == 1 && *s.TotalURLCount == 3, "sitemap %+v, want one child with 3 URLs", s)
}

const rss = `<rss version="2.0"><channel><title>t</title><item><title>a</title><link>https://site.com/1</link></item></channel></rss>`

func TestHomepageAndFeeds(t *testing.T) {
	home := `<html><head><link rel="alternate" type="application/rss+xml" href="/news.rss"><link rel="alternate" type="application/rss+xml" href="/private/feed"></head></html>`
	site := map[string]string{
		"/robots.txt":     "User-agent: *\nDisallow: /private/\nSitemap: https://site.com/sitemap.xml\nSitemap: https://site.com/named-feed.xml\n",
		"/sitemap.xml":    urlset(1),
		"/named-feed.xml": rss,
		"/":               home,
		"/news.rss":       rss,
		"/private/feed":   rss,
		"/atom.xml":       "<html>not a feed</html>",
	}
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", pages(site))
	j.web.Handle("closed.com", pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /\n", "/": home}))
	j.cfg.Collect.Homepage, j.cfg.Collect.Feeds = true, true
	slow, dead := host(webtest.KindCrawlDelayLong), host(webtest.KindNoSuchHost)
	j.crawl("https://site.com", "https://closed.com", "https://"+slow, "https://"+dead)
	for host, want := range map[string]string{slow: "crawl_delay", dead: "dns"} { // abandoned, and recorded as such
		if m := j.metadata(raw, host); m.Homepage == nil || m.Homepage.Exists || m.Homepage.Error != want || m.Feeds != nil {
			t.Errorf("%s: homepage %+v, feeds %v, want error %q", host, m.Homepage, m.Feeds, want)
		}
	}
	m := j.metadata(raw, "site.com")
	var feeds []string
	for _, f := range m.Feeds {
		feeds = append(feeds, f.URL)
		if f.Kind != "rss" || f.ItemCount == nil || *f.ItemCount != 1 || f.StatusCode != 200 || !f.Exists || f.ContentLength != int64(len(rss)) {
			t.Errorf("feed %+v", f)
		}
	}
	assert.Equal(t, []string{"https://site.com/named-feed.xml", "https://site.com/news.rss"}, feeds, "feeds")
	assert.NotContains(t, j.asked("site.com"), "/private/feed", "robots.txt forbids /private/")
	assert.True(t, m.Homepage != nil && m.Homepage.Exists && m.Homepage.StatusCode == 200 && m.Homepage.ContentLength == int64(len(home)),
		"homepage %+v", m.Homepage)
	assert.Equal(t, home, string(j.read(out(raw, "site.com", "homepage.html"))), "homepage.html")
	assert.Equal(t, []string{"/robots.txt"}, j.asked("closed.com"), "closed.com was asked for")
	if m := j.metadata(raw, "closed.com"); m.Homepage == nil || m.Homepage.Exists || m.Homepage.Error != "robots" || m.Feeds != nil {
		t.Errorf("closed.com: %+v", m)
	}
}

// The robots.txt of another host decides about a homepage that redirects there and about a
// feed there; that of the domain does not.
func TestHomepageOnAnotherHost(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("moved.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "https://closed.com/home", http.StatusFound)
			return
		}
		http.NotFound(w, r)
	}))
	j.web.Handle("site.com", pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /b\n",
		"/": `<html><head><link rel="alternate" type="application/rss+xml" href="https://open.com/b"><link rel="alternate" type="application/rss+xml" href="https://closed.com/feed"></head></html>`}))
	j.web.Handle("open.com", pages(map[string]string{"/b": rss}))
	j.web.Handle("closed.com", pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /\n", "/home": "<html></html>", "/feed": rss}))
	j.cfg.Collect.Homepage, j.cfg.Collect.Feeds = true, true
	j.crawl("https://site.com", "https://moved.com")
	h := j.metadata(raw, "moved.com").Homepage
	assert.True(t, h != nil && h.Error == "robots" && !h.Exists, "homepage on a host that forbids it: %+v", h)
	f := j.metadata(raw, "site.com").Feeds
	assert.True(t, len(f) == 1 && f[0].URL == "https://open.com/b", "feeds %+v, want the one on open.com", f)
	assert.Equal(t, []string{"/robots.txt", "/b"}, j.asked("open.com"), "open.com was asked for")
	assert.Equal(t, []string{"/robots.txt", "/robots.txt"}, j.asked("closed.com"), "closed.com was asked for")
}

// What an optional extra meets must not cost the domain its metadata.
func TestHomepageOutsideTheSchema(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.WriteHeader(999)
			return
		}
		http.NotFound(w, r)
	}))
	j.web.Handle("moved.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/home", http.StatusFound)
		case "/home":
			_, _ = io.WriteString(w, "<html>"+strings.Repeat(" ", 6*mib)) // a client that is gone shows on its own side
		default:
			http.NotFound(w, r)
		}
	}))
	j.cfg.Collect.Homepage = true
	j.crawl("https://site.com", "https://moved.com")
	require.Empty(t, j.deadLetters(), "dead letters")
	if h := j.metadata(raw, "site.com").Homepage; h == nil || h.StatusCode != 0 || h.Error != "http_999" || h.Exists {
		t.Errorf("homepage of status 999: %+v", h)
	}
	h := j.metadata(raw, "moved.com").Homepage
	if h == nil || h.StatusCode != 200 || h.FinalURL != "https://moved.com/home" || !h.Truncated || h.ContentLength != 5*mib || h.ResponseMS == nil {
		t.Errorf("homepage of 6 MiB after a redirect: %+v", h)
	}
}

// A body whose compression breaks off is cut, but it was not too large.
func TestBrokenCompression(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.Repeat("Disallow: /x\n", 1000)) // to memory
	_ = z.Close()
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes()[:packed.Len()/2])
	}))
	j.crawl("https://site.com")
	m := j.metadata(raw, "site.com")
	assert.True(t, m.Robots.Truncated && m.Sitemap.Truncated, "robots %+v, sitemap %+v, want both truncated", m.Robots, m.Sitemap)
	assert.Equal(t, 0, len(j.events("robots_file_too_large"))+len(j.events("sitemap_file_too_large")))
}

// A status that HTTP does not have, such as LinkedIn's 999, is a finding too.
func TestRobotsOutsideTheSchema(t *testing.T) {
	j := newJob(t, webtest.Options{})
	for host, status := range map[string]int{"s600.com": 600, "s999.com": 999} {
		j.web.Handle(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
	}
	j.crawl("https://s600.com", "https://s999.com")
	require.Empty(t, j.deadLetters(), "dead letters")
	for host, name := range map[string]string{"s600.com": "http_600", "s999.com": "http_999"} {
		r := j.metadata(raw, host).Robots
		assert.True(t, r.StatusCode == 0 && r.Error == name && !r.Exists, "robots of %s: %+v, want error %s", host, r, name)
		assert.True(t, j.done(raw, host), "%s is not done", host)
	}
}

// A host that asks for too long a pause gets no more requests in this visit, not even a
// retry.
func TestLongRetryAfter(t *testing.T) {
	busy := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	for _, tt := range []struct {
		name   string
		busyAt string   // the path that answers 429; another host's for "cdn"
		asked  []string // of site.com
		robots int
	}{
		{"robots", "/robots.txt", []string{"/robots.txt"}, 429},
		{"first sitemap", "/a.xml", []string{"/robots.txt", "/a.xml"}, 200},
		{"homepage", "/", []string{"/robots.txt", "/a.xml", "/b.xml", "/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml", "/"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			j.cfg.Collect.Homepage, j.cfg.Collect.Feeds = true, true
			j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case tt.busyAt:
					busy(w)
				case "/robots.txt":
					_, _ = io.WriteString(w, "Sitemap: https://site.com/a.xml\nSitemap: https://site.com/b.xml\n")
				default:
					http.NotFound(w, r)
				}
			}))
			j.crawl("https://site.com")
			assert.Equal(t, tt.asked, j.asked("site.com"), "asked for")
			m := j.metadata(raw, "site.com")
			assert.True(t, m.Robots.StatusCode == tt.robots && m.Sitemap.StatusCode == 404, "robots %+v, sitemap %+v", m.Robots, m.Sitemap)
			assert.True(t, tt.busyAt == "/" || (m.Sitemap.Error == "retry_after" && m.Homepage.Error == "retry_after"),
				"sitemap error %q, homepage error %q, want retry_after", m.Sitemap.Error, m.Homepage.Error)
		})
	}
	t.Run("a foreign host", func(t *testing.T) {
		j := newJob(t, webtest.Options{})
		j.web.Handle("cdn.com", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { busy(w) }))
		j.web.Handle("site.com", pages(map[string]string{
			"/robots.txt":  "Sitemap: https://cdn.com/a.xml\nSitemap: https://cdn.com/b.xml\nSitemap: https://www.cdn.com/c.xml\n",
			"/sitemap.xml": urlset(3),
		}))
		j.crawl("https://site.com")
		assert.Equal(t, []string{"/a.xml"}, j.asked("cdn.com"), "asked cdn.com for")
		s := j.metadata(raw, "site.com").Sitemap
		assert.True(t, s.URLCount != nil && *s.URLCount == 3, "sitemap %+v, want the host's own with 3 URLs", s)
	})
	t.Run("a foreign host of two domains", func(t *testing.T) {
		j := newJob(t, webtest.Options{})
		j.web.Handle("cdn.com", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { busy(w) }))
		var urls []string
		for _, name := range []string{"one.com", "two.com"} {
			j.web.Handle(name, pages(map[string]string{"/robots.txt": "Sitemap: https://cdn.com/" + name + "\n", "/sitemap.xml": urlset(3)}))
			urls = append(urls, "https://"+name)
		}
		j.crawl(urls...)
		assert.Len(t, j.asked("cdn.com"), 1, "cdn.com got the requests")
		for _, name := range []string{"one.com", "two.com"} {
			s := j.metadata(raw, name).Sitemap
			assert.True(t, s.URLCount != nil && *s.URLCount == 3, "%s: sitemap %+v, want the host's own with 3 URLs", name, s)
		}
	})
}

// Each format's name in the metadata; a JSON feed is neither RSS nor Atom.
func TestFeedKinds(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", pages(map[string]string{
		"/feed":     `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel/><item/><item/></rdf:RDF>`,
		"/rss.xml":  rss,
		"/atom.xml": `<feed xmlns="http://www.w3.org/2005/Atom"><entry/></feed>`,
		"/feed.xml": `{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"https://site.com/1"}]}`,
	}))
	j.cfg.Collect.Feeds = true
	j.crawl("https://site.com")
	require.Empty(t, j.deadLetters(), "dead letters")
	var got []string
	for _, f := range j.metadata(raw, "site.com").Feeds {
		got = append(got, fmt.Sprintf("%s %s %d", f.URL, f.Kind, *f.ItemCount))
	}
	assert.Equal(t, []string{"https://site.com/feed rss 2", "https://site.com/rss.xml rss 1", "https://site.com/atom.xml atom 1"}, got,
		"feeds")
}

// robots.txt answers only once the sitemap was asked for.
func TestParallelFetch(t *testing.T) {
	asked := make(chan struct{})
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			select {
			case <-asked:
			case <-r.Context().Done():
			}
			http.NotFound(w, r)
		case "/sitemap.xml":
			close(asked) // a second request would panic
			_, _ = io.WriteString(w, urlset(2))
		}
	}))
	j.cfg.Collect.ParallelFetch = true
	j.crawl("https://site.com")
	m := j.metadata(raw, "site.com")
	assert.True(t, m.Robots.StatusCode == 404 && m.Sitemap.URLCount != nil && *m.Sitemap.URLCount == 2, "%+v", m)
}

// A visit of a host that does not answer for robots.txt is over. The request for the sitemap
// that was sent in parallel is not tried again then.
func TestParallelFetchEndsWithItsVisit(t *testing.T) {
	var robots, sitemaps atomic.Int64
	again, failed, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt" && sitemaps.Add(1) == 1:
			<-again
			close(failed)
		case r.URL.Path == "/robots.txt" && robots.Add(1) == 2:
			close(again)
			<-failed
			close(over)
		}
		panic(http.ErrAbortHandler)
	}))
	j.web.Handle("other.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-over // the run lasts for three pauses more
		http.NotFound(w, r)
	}))
	j.cfg.Collect.ParallelFetch = true
	j.cfg.Lane.Polite.HostDelay = 50 * time.Millisecond
	j.crawl("https://site.com", "https://other.com")
	m := j.metadata(raw, "site.com")
	assert.True(t, m.Robots.Error == "reset" && m.Sitemap.StatusCode == 404 && m.Sitemap.Error == "reset", "%+v", m)
	assert.EqualValues(t, 1, sitemaps.Load(), "the sitemap was asked for")
}

// A visit keeps its connection while it waits for the host's gap, however many
// others are waiting: a TLS handshake costs more than the rest of an exchange.
func TestOneHandshakeForEachHost(t *testing.T) {
	j := newJob(t, webtest.Options{Mix: map[webtest.Kind]int{webtest.KindURLSet: 4, webtest.KindNoSitemap: 2, webtest.KindIndex: 1,
		webtest.KindGzip: 2, webtest.KindBrotli: 2, webtest.KindZstd: 2, webtest.KindDeflate: 1, webtest.KindRedirectWWW: 2}})
	j.cfg.Lane.Web.Concurrency, j.cfg.Lane.Polite.HostDelay = 4, 50*time.Millisecond
	var urls []string
	for n := range 64 {
		urls = append(urls, fmt.Sprintf("https://site-of-%d.com/", n+1))
	}
	j.crawl(urls...)
	hosts := map[string]bool{}
	requests := j.web.Requests()
	for _, r := range requests {
		hosts[r.Host] = true
	}
	require.GreaterOrEqual(t, len(hosts), len(urls))
	n, _ := j.web.Handshakes()
	assert.LessOrEqual(t, float64(n), 1.1*float64(len(hosts)), "%d TLS handshakes for %d requests to %d hosts", n, len(requests), len(hosts))
}

func TestRobotsCache(t *testing.T) {
	var status atomic.Int64
	var asked atomic.Int64
	var blocked atomic.Bool
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		if blocked.Load() {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, captcha) // a client that is gone shows on its own side
			return
		}
		w.WriteHeader(int(status.Load()))
		fmt.Fprintf(w, "# answer %d\n", asked.Load())
	}))
	j.cfg.Collect.RobotsCache = 24 * time.Hour
	n := 0
	visit := func(why string, wantAsked int64, wantBody string) {
		t.Helper()
		n++
		raw := fmt.Sprintf("datasets/country=sg/category=news/date=2026-01-%02d/raw_0001.json", n)
		j.put(raw, rawFile("https://site.com"))
		j.cfg.Files = []string{raw}
		j.run()
		assert.Equal(t, wantAsked, asked.Load(), "%s: robots.txt was asked for", why)
		m := j.metadata(raw, "site.com")
		assert.True(t, (m.Robots.StatusCode == int(status.Load()) || wantBody != "") && m.Robots.Exists == (wantBody != ""),
			"%s: %+v", why, m.Robots)
		if wantBody != "" {
			assert.Equal(t, wantBody, string(j.read(out(raw, "site.com", "robots.txt"))), why)
		}
	}
	status.Store(403)
	visit("first", 1, "")
	status.Store(200)
	visit("a failure is never kept", 2, "# answer 2\n")
	visit("a fresh one is used", 2, "# answer 2\n")
	j.cfg.ForceID = "forced"
	visit("--force passes it by", 3, "# answer 3\n")
	j.cfg.ForceID = ""
	visit("what --force fetched is kept", 3, "# answer 3\n")
	old, err := json.Marshal(map[string]any{"fetched_at": time.Now().Add(-25 * time.Hour), "status": 200, "body": []byte("# old\n")})
	must(t, err)
	j.put("cache/robots/site.com.json", string(old))
	visit("one of yesterday is too old", 4, "# answer 4\n")
	j.put("cache/robots/site.com.json", "{broken")
	visit("a broken one is none", 5, "# answer 5\n")
	must(t, j.store.Delete(t.Context(), "cache/robots/site.com.json"))
	blocked.Store(true)
	visit("a challenge", 6, captcha)
	blocked.Store(false)
	visit("a challenge is never kept", 7, "# answer 7\n")
	j.cfg.Collect.RobotsCache = 0
	visit("switched off", 8, "# answer 8\n")
}

// A sitemap that ends in the middle does not count: the next candidate may be complete. For
// one that was cut off at the limit, the URLs before the cut are counted.
func TestBrokenSitemap(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("broken.com", pages(map[string]string{"/sitemap.xml": strings.TrimSuffix(urlset(3), "</urlset>"), "/sitemap_index.xml": urlset(5)}))
	j.web.Handle("only.com", pages(map[string]string{"/sitemap.xml": `<urlset><url><loc>https://only.com/a</loc></url><url><lo`}))
	j.web.Handle("long.com", pages(map[string]string{"/sitemap.xml": urlset(300_000)}))
	j.crawl("https://broken.com", "https://only.com", "https://long.com")
	m := j.metadata(raw, "broken.com").Sitemap
	assert.True(t, m.URL == "https://broken.com/sitemap_index.xml" && m.URLCount != nil && *m.URLCount == 5, "%+v, want the whole one", m)
	if m := j.metadata(raw, "only.com").Sitemap; m.StatusCode != 200 || !m.Exists || m.URLCount != nil || m.Parsed || m.Kind != "sitemap" {
		t.Errorf("%+v, want evidence without a count", m)
	}
	m = j.metadata(raw, "long.com").Sitemap
	assert.True(t, m.Truncated && m.URLCount != nil && *m.URLCount >= 200_000, "%+v, want what ten megabytes hold", m)
}

// Evidence is removed where an earlier try can have left it, and nowhere else.
func TestNothingIsRemovedFromAnEmptyPartition(t *testing.T) {
	j := newJob(t, webtest.Options{})
	total := j.crawl("https://kind-no-such-host-1.com", "https://kind-no-such-host-2.com", "https://kind-urlset-1.com")
	assert.EqualValues(t, 0, total.Store["delete"], "store calls %v, want no delete", total.Store)
	j.put(raw, rawFile("https://kind-no-such-host-3.com"))
	must(t, j.store.Delete(t.Context(), raw+".success"))
	total = j.run()
	assert.EqualValues(t, 2, total.Store["delete"], "store calls %v, want two deletes in a partition that has something", total.Store)
}
