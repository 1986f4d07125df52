package seed_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// Where the domain itself fails below HTTP, the record's own host, www. and then http are requested, and what they
// serve is recorded with their host. Hosts that answer get no further request.
func TestHosts(t *testing.T) {
	site := func(host string) http.Handler {
		return pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private\n", "/sitemap.xml": urlset(2), "/": "<html>" + host + "</html>"})
	}
	for _, tt := range []struct {
		name         string
		domain       webtest.Kind // "": it answers
		www          bool         // www. answers
		strict       bool
		docs         bool   // docs. answers
		record       string // "": https://site.com/page
		host, origin string
		asked        map[string][]string
		failure      string
	}{
		{name: "the domain answers", www: true, host: "site.com", origin: "https://site.com", asked: map[string][]string{"site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "no such domain", domain: webtest.KindNoSuchHost, www: true, host: "www.site.com", origin: "https://www.site.com",
			asked: map[string][]string{"www.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "refused", domain: webtest.KindRefused, www: true, host: "www.site.com", origin: "https://www.site.com",
			asked: map[string][]string{"www.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "another's certificate", domain: webtest.KindTLSWrongName, www: true, host: "www.site.com", origin: "https://www.site.com",
			asked: map[string][]string{"site.com": {""}, "www.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "time-out", domain: webtest.KindHang, www: true, host: "www.site.com", origin: "https://www.site.com",
			asked: map[string][]string{"site.com": {"/robots.txt", "/robots.txt"}, "www.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "http alone", domain: webtest.KindTLSWrongName, host: "site.com", origin: "http://site.com",
			asked: map[string][]string{"site.com": {"", "/robots.txt", "/sitemap.xml"}}},
		{name: "none", domain: webtest.KindNoSuchHost, failure: "dns", origin: "https://site.com", asked: map[string][]string{}},
		{name: "a dead server", domain: webtest.KindHang, failure: "timeout", origin: "https://site.com",
			asked: map[string][]string{"site.com": {"/robots.txt", "/robots.txt", "/robots.txt"}}},
		{name: "the record's own host", domain: webtest.KindNoSuchHost, www: true, docs: true, record: "https://docs.site.com/intro", host: "docs.site.com", origin: "https://docs.site.com",
			asked: map[string][]string{"docs.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "its own host is not needed", www: true, docs: true, record: "https://docs.site.com", host: "site.com", origin: "https://site.com",
			asked: map[string][]string{"site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "its own host fails too", domain: webtest.KindRefused, www: true, record: "https://docs.site.com", host: "www.site.com", origin: "https://www.site.com",
			asked: map[string][]string{"www.site.com": {"/robots.txt", "/sitemap.xml"}}},
		{name: "strict with an own host", domain: webtest.KindRefused, docs: true, record: "https://docs.site.com", strict: true, failure: "connect", origin: "https://site.com", asked: map[string][]string{}},
		{name: "strict", domain: webtest.KindRefused, www: true, strict: true, failure: "connect", origin: "https://site.com", asked: map[string][]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.domain == webtest.KindHang {
				seed.ShortTimeouts(t, 400*time.Millisecond)
			}
			o := webtest.Options{Mix: refusing.Mix, Hosts: map[string]webtest.Site{"www.site.com": {Kind: webtest.KindRefused}}}
			if tt.domain != "" {
				o.Hosts["site.com"] = webtest.Site{Kind: tt.domain}
			}
			j := newJob(t, o)
			if tt.domain == "" {
				j.web.Handle("site.com", site("site.com"))
			}
			if tt.www {
				j.web.Handle("www.site.com", site("www.site.com"))
			}
			if tt.docs {
				j.web.Handle("docs.site.com", site("docs.site.com"))
			}
			j.cfg.Collect.StrictHosts = tt.strict
			total := j.crawl(cmp.Or(tt.record, "https://site.com/page"))
			m := j.metadata(raw, "site.com")
			assert.True(t, m.HostUsed == tt.host && m.Robots.Exists == (tt.host != "") && m.Robots.Error == tt.failure,
				"host_used %q, robots %+v, want %q, error %q", m.HostUsed, m.Robots, tt.host, tt.failure)
			assert.True(t, m.Sitemap.URL == tt.origin+"/sitemap.xml" && m.Sitemap.Parsed == (tt.host != ""),
				"sitemap %+v, want that of %s", m.Sitemap, tt.origin)
			asked := map[string][]string{}
			for _, host := range []string{"site.com", "www.site.com", "docs.site.com"} {
				if paths := j.asked(host); len(paths) > 0 && (tt.www || host != "www.site.com") && tt.failure != "dns" {
					asked[host] = paths
				}
			}
			assert.True(t, maps.EqualFunc(asked, tt.asked, slices.Equal), "asked %q, want %q", asked, tt.asked)
			assert.Equal(t, int64(min(len(tt.failure), 1)), total.Counts["hosts_unreachable"])
		})
	}
}

// All sitemaps that robots.txt names are counted, each once, up to a number.
func TestNamedSitemaps(t *testing.T) {
	site := pages(map[string]string{
		"/robots.txt": "Sitemap: /gone.xml\nSitemap: /a.xml /b.xml\nSitemap: https://site.com/a.xml#again\nSitemap: /page.xml\nSitemap: /index.xml\n",
		"/a.xml":      urlset(3), "/b.xml": urlset(4), "/index.xml": index("/c.xml", "/a.xml"), "/c.xml": urlset(10), "/page.xml": "<!DOCTYPE html><html><title>Home</title><p>Hello</p></html>",
	})
	for _, tt := range []struct {
		most    int
		follow  bool
		kinds   []string
		total   int64
		partial bool
		asked   []string
	}{
		{most: 50, kinds: []string{"/gone.xml", "/a.xml urlset", "/b.xml urlset", "/page.xml", "/index.xml index"}, total: 7, partial: true,
			asked: []string{"/robots.txt", "/gone.xml", "/a.xml", "/b.xml", "/page.xml", "/index.xml"}},
		{most: 50, follow: true, kinds: []string{"/gone.xml", "/a.xml urlset", "/b.xml urlset", "/page.xml", "/index.xml index"}, total: 17, partial: true,
			asked: []string{"/robots.txt", "/gone.xml", "/a.xml", "/b.xml", "/page.xml", "/index.xml", "/c.xml"}},
		{most: 2, kinds: []string{"/gone.xml", "/a.xml urlset"}, total: 3, partial: true, asked: []string{"/robots.txt", "/gone.xml", "/a.xml"}},
	} {
		j := newJob(t, refusing)
		j.web.Handle("site.com", site)
		j.cfg.Collect.MaxChildSitemaps, j.cfg.Collect.FollowIndex = tt.most, tt.follow
		j.crawl("https://site.com")
		s := j.metadata(raw, "site.com").Sitemap
		var kinds []string
		for _, one := range s.Sitemaps {
			kind := strings.TrimPrefix(one.URL, "https://site.com")
			if one.Count != nil {
				kind += " " + one.Kind
			}
			kinds = append(kinds, kind)
		}
		if !slices.Equal(kinds, tt.kinds) || s.TotalURLCount == nil || *s.TotalURLCount != tt.total || s.Partial != tt.partial || s.URL != "https://site.com/a.xml" {
			t.Errorf("at most %d: %q, %+v, want %q, in all %d", tt.most, kinds, s, tt.kinds, tt.total)
		}
		asked := j.asked("site.com")
		assert.Equal(t, tt.asked, asked, "at most %d: asked", tt.most)
	}
}
