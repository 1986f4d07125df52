package webtest

import (
	"slices"
	"strings"
)

// Kind names how a simulated site behaves. Where a comment names no path, the rest of the site is that of KindURLSet:
// a robots.txt with a Sitemap line, /sitemap.xml, a homepage, feeds and articles.
type Kind string

// Sites that answer well, and differ in their sitemap.
const (
	KindURLSet        Kind = "urlset"          // the plain case: everything is in order
	KindIndex         Kind = "index"           // /sitemap.xml is an index of urlsets, its last child an index with two more
	KindSitemapGz     Kind = "sitemap_gz"      // gzip by content under the name /sitemap.xml, no Content-Encoding
	KindRSS           Kind = "rss"             // /sitemap.xml is an RSS 2.0 feed
	KindAtom          Kind = "atom"            // /sitemap.xml is an Atom feed
	KindText          Kind = "text"            // a text sitemap at /sitemap.txt, none at /sitemap.xml
	KindNamespaced    Kind = "namespaced"      // <sm:urlset xmlns:sm=…>, with image entries of another namespace
	KindUTF16         Kind = "utf16"           // UTF-16, little endian, with a byte order mark
	KindWrongType     Kind = "wrong_type"      // robots.txt as application/octet-stream, the sitemap as text/html; alias wrong_content_type
	KindBigURLSet     Kind = "big_urlset"      // 50,000 URLs, streamed without Content-Length
	KindNoSitemapLine Kind = "no_sitemap_line" // no Sitemap line; /sitemap.xml is 404, /sitemap_index.xml is there
	KindNoSitemap     Kind = "no_sitemap"      // no sitemap at all
	KindSoft404       Kind = "soft404"         // any unknown path, /sitemap.xml too, is an HTML page with status 200
	KindEUCKR         Kind = "euckr"           // the homepage is EUC-KR, named only in its meta element
	KindGzip          Kind = "gzip"            // Content-Encoding gzip where the client accepts it
	KindDeflate       Kind = "deflate"         // Content-Encoding deflate (zlib) where the client accepts it
	KindBrotli        Kind = "br"              // Content-Encoding br where the client accepts it
	KindZstd          Kind = "zstd"            // Content-Encoding zstd where the client accepts it
)

// Sites with a peculiar robots.txt.
const (
	KindNoRobots       Kind = "no_robots"                   // robots.txt is 404
	KindRobots403      Kind = "robots_403"                  // robots.txt is 403
	KindRobots500      Kind = "robots_500"                  // robots.txt is 500
	KindRobots503Once  Kind = "robots_503_then_ok"          // the first request for robots.txt is answered 503
	KindCrawlDelay     Kind = "crawl_delay"                 // Crawl-delay: 1
	KindCrawlDelayLong Kind = "crawl_delay_long"            // Crawl-delay: 60
	KindHugeRobots     Kind = "huge_robots"                 // 1.5 MiB; one Sitemap line first, another (/sitemap-late.xml) last
	KindForeignSitemap Kind = "robots_with_foreign_sitemap" // the Sitemap line is on one of 16 hosts that many sites share; none of its own
	KindManySitemaps   Kind = "many_sitemaps"               // 30 Sitemap lines /sitemap-1.xml …, of which the first 24 are 404
	KindBadSitemaps    Kind = "robots_bad_sitemap_lines"    // relative, empty, non-http and repeated Sitemap lines, then a good one
	KindDisallowAll    Kind = "disallow_all"                // Disallow: / for everyone
)

// Sites that fail by HTTP status or by redirect.
const (
	KindRateLimited     Kind = "rate_limited"     // the host's first request: 429, Retry-After: 1
	KindAlways503       Kind = "always_503"       // every path: 503
	KindRedirectWWW     Kind = "redirect_www"     // every path: to www.HOST, which is a plain site
	KindRedirectHTTP    Kind = "redirect_http"    // every https path: to http on the same host, which is a plain site
	KindRedirectShort   Kind = "redirect_short"   // every path: 3 hops (?hop=1 …), then the answer
	KindRedirectChain   Kind = "redirect_chain"   // every path: 7 hops, then the answer
	KindRedirectLoop    Kind = "redirect_loop"    // every path: hops without end
	KindRedirectPrivate Kind = "redirect_private" // robots.txt: to http://169.254.169.254/latest/meta-data/, every other path: to http://127.0.0.1/
)

// Sites that fail below HTTP, or by what their body does to the reader.
const (
	KindReset        Kind = "reset"          // the connection is reset (RST) once the request was read
	KindResetOnce    Kind = "reset_once"     // the same, for the host's first request only
	KindHang         Kind = "hang"           // the request is read and never answered
	KindHangTLS      Kind = "hang_tls"       // the ClientHello is read and never answered; plain HTTP hangs as KindHang
	KindHangBody     Kind = "hang_body"      // headers and the first part of the body, then silence
	KindDrip         Kind = "drip"           // the sitemap is 200 MiB, at about 200 KB/s
	KindGzipBomb     Kind = "gzip_bomb"      // /sitemap.xml (Content-Encoding gzip) and /sitemap.xml.gz (a gzip file): 1 GiB unpacked, about 1 MB on the wire
	KindTLSRefused   Kind = "tls_refused"    // the connection is closed on the ClientHello; plain HTTP works
	KindTLSWrongName Kind = "tls_wrong_name" // the certificate is for another name
	KindNoSuchHost   Kind = "no_such_host"   // NXDOMAIN from DNS; reached through the listener anyway: a TLS alert, or a closed connection
	KindRefused      Kind = "refused"        // DNS leads to an address that refuses connections; reached through the listener anyway: as KindNoSuchHost
	KindRebind       Kind = "rebind"         // DNS gives a public address the first time, 127.0.0.1 afterwards
)

// kindCustom is the kind of a host whose answers come from a handler (Handle, Site.Handler). It cannot be drawn or forced.
const kindCustom Kind = "custom"

// defaultMix is the default mix, parts of about a thousand. The shares are estimates of what a crawl of news, government
// and university sites meets; about 2 % of hosts fail by a timeout, as in such crawls.
var defaultMix = []struct {
	kind   Kind
	weight int
}{
	{KindURLSet, 310}, {KindIndex, 140}, {KindSitemapGz, 25}, {KindRSS, 15}, {KindAtom, 10}, {KindText, 10},
	{KindNamespaced, 10}, {KindUTF16, 4}, {KindWrongType, 15}, {KindBigURLSet, 4}, {KindNoSitemapLine, 25},
	{KindNoSitemap, 40}, {KindSoft404, 30}, {KindEUCKR, 15}, {KindGzip, 50}, {KindDeflate, 2}, {KindBrotli, 10}, {KindZstd, 2},
	{KindNoRobots, 55}, {KindRobots403, 15}, {KindRobots500, 8}, {KindRobots503Once, 5}, {KindCrawlDelay, 15}, {KindCrawlDelayLong, 2},
	{KindHugeRobots, 2}, {KindForeignSitemap, 12}, {KindManySitemaps, 2}, {KindBadSitemaps, 8}, {KindDisallowAll, 10},
	{KindRateLimited, 5}, {KindAlways503, 6}, {KindRedirectWWW, 60}, {KindRedirectHTTP, 10}, {KindRedirectShort, 8},
	{KindRedirectChain, 2}, {KindRedirectLoop, 3}, {KindRedirectPrivate, 2}, {KindReset, 4}, {KindResetOnce, 4}, {KindHang, 9},
	{KindHangTLS, 3}, {KindHangBody, 2}, {KindDrip, 1}, {KindGzipBomb, 1}, {KindTLSRefused, 6}, {KindTLSWrongName, 10},
	{KindNoSuchHost, 19}, {KindRefused, 6}, {KindRebind, 1},
}

// Kinds lists every kind that a name can force, in the order of the default mix.
func Kinds() []Kind {
	kinds := make([]Kind, len(defaultMix))
	for i, r := range defaultMix {
		kinds[i] = r.kind
	}
	return kinds
}

// labels maps a kind's name as a host label can carry it (dashes for underscores) to the kind.
var labels = func() map[string]Kind {
	m := map[string]Kind{"wrong-content-type": KindWrongType, "prefixed": KindNamespaced}
	for _, r := range defaultMix {
		m[strings.ReplaceAll(string(r.kind), "_", "-")] = r.kind
	}
	return m
}()

// longestFirst has the keys of labels, the longest first, so that gzip-bomb is tried before gzip.
var longestFirst = func() []string {
	names := make([]string, 0, len(labels))
	for n := range labels {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return names
}()

// forced reads the kind out of a host's first label: "kind-NAME", "kind-NAME-ANYTHING" or "NAME-DIGITS", where NAME is a
// kind with dashes for underscores. A bare NAME forces nothing: text.com and index.hr are names of real sites.
func forced(host string) (Kind, bool) {
	label, _, _ := strings.Cut(host, ".")
	if rest, ok := strings.CutPrefix(label, "kind-"); ok {
		for _, n := range longestFirst {
			if rest == n || strings.HasPrefix(rest, n+"-") {
				return labels[n], true
			}
		}
		return "", false
	}
	i := strings.LastIndexByte(label, '-')
	if i < 0 || i == len(label)-1 || strings.Trim(label[i+1:], "0123456789") != "" {
		return "", false
	}
	k, ok := labels[label[:i]]
	return k, ok
}

// KindOf is the kind of a host: the one set by Handle or Options.Hosts, else the one that its name forces, else one drawn
// by (seed, host). www.HOST has the kind of HOST; of KindRedirectWWW it is the plain site that HOST redirects to.
func (w *Web) KindOf(host string) Kind {
	host = hostName(host)
	if site, ok := w.site(host); ok {
		if site.Handler != nil {
			return kindCustom
		}
		return site.Kind
	}
	bare, www := strings.CutPrefix(host, "www.")
	kind, ok := KindURLSet, false
	if site, listed := w.site(bare); listed && www {
		if site.Handler == nil {
			kind, ok = site.Kind, true
		}
	}
	if !ok {
		kind, ok = forced(bare)
	}
	if !ok {
		kind = w.draw(bare)
	}
	if www && kind == KindRedirectWWW {
		return KindURLSet
	}
	return kind
}

func (w *Web) draw(host string) Kind {
	n := int(w.hash(host, "kind") % uint64(w.totalWeight))
	for _, c := range w.weights {
		if n < c.weight {
			return c.kind
		}
		n -= c.weight
	}
	return KindURLSet
}

// hash is a number that depends on the seed, the host and what it is for, and on nothing else (FNV-1a, then the finalizer
// of SplitMix64, since FNV's low bits alone are too regular to draw from).
func (w *Web) hash(host, what string) uint64 {
	h := uint64(14695981039346656037) ^ w.options.Seed
	h *= 1099511628211
	for i := range len(host) {
		h = (h ^ uint64(host[i])) * 1099511628211
	}
	h = (h ^ 0xff) * 1099511628211
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
