package webtest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/korean"
)

const (
	bigCount         = 50_000 // URLs of a KindBigURLSet, the maximum of sitemaps.org for one file
	feedItems        = 10
	manySitemapLines = 30
	manyAbsent       = 24
	nestedCount      = 2
	foreignHosts     = 16
	hugeRobots       = 3 << 19
	bombMembers      = 1024 // of 1 MiB each
	xmlHead          = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	urlsetOpen       = xmlHead + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	urlsetClose      = "</urlset>\n"
	indexOpen        = xmlHead + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	prefixedOpen     = xmlHead + `<sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">` + "\n"
	prefixedClose    = "</sm:urlset>\n"
)

// count is the number of URLs in each of the host's urlsets: 10 to 329, or bigCount.
func (w *Web) count(host string) int {
	if w.KindOf(host) == KindBigURLSet {
		return bigCount
	}
	return 10 + int(w.hash(host, "count")%320)
}

// children is the number of an index's children, 3 to 6; the last one is an index itself.
func (w *Web) children(host string) int { return 3 + int(w.hash(host, "children")%4) }

// Count is the number of entries in the host's own first sitemap: URLs of a urlset or a text sitemap, children of an
// index, items of a feed; 0 where the kind has no readable one.
func (w *Web) Count(host string) int {
	host = hostName(host)
	switch w.KindOf(host) {
	case KindIndex:
		return w.children(host)
	case KindRSS, KindAtom:
		return feedItems
	case KindNoSitemap, KindSoft404, KindAlways503, KindRedirectChain, KindRedirectLoop, KindRedirectPrivate, KindReset, KindHang,
		KindHangTLS, KindHangBody, KindDrip, KindGzipBomb, KindTLSRefused, KindTLSWrongName, KindNoSuchHost, KindRefused, kindCustom,
		KindForeignSitemap, KindManySitemaps:
		return 0
	case KindRedirectWWW:
		return w.count("www." + host)
	}
	return w.count(host)
}

// day is a date in 2024 or 2025.
func day(h uint64) time.Time {
	return time.Date(2024, 1, 1, int(h>>20%24), int(h>>30%60), 0, 0, time.UTC).AddDate(0, 0, int(h%700))
}

func ok(mediaType string, body []byte) *answer {
	return &answer{status: http.StatusOK, mediaType: mediaType, body: body}
}

func (q request) robots() *answer {
	switch q.kind {
	case KindNoRobots:
		return failure(http.StatusNotFound)
	case KindRobots403:
		return failure(http.StatusForbidden)
	case KindRobots500:
		return failure(http.StatusInternalServerError)
	}
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# robots.txt of %s", q.host)
	if q.kind == KindHugeRobots {
		line("Sitemap: %s/sitemap.xml", q.base)
	}
	line("User-agent: *")
	switch q.kind {
	case KindDisallowAll:
		line("Disallow: /")
	case KindCrawlDelay:
		line("Crawl-delay: 1")
	case KindCrawlDelayLong:
		line("Crawl-delay: 60")
	case KindHugeRobots:
		for n := 0; b.Len() < hugeRobots; n++ {
			line("Disallow: /archive/%d/print", n)
		}
	}
	if q.kind != KindDisallowAll {
		line("Disallow: /admin/\nDisallow: /search?\nAllow: /admin/public/")
	}
	line("\nUser-agent: BadBot\nDisallow: /\n")
	switch q.kind {
	case KindNoSitemapLine, KindNoSitemap, KindSoft404:
	case KindText:
		line("Sitemap: %s/sitemap.txt", q.base)
	case KindHugeRobots:
		line("Sitemap: %s/sitemap-late.xml", q.base)
	case KindGzipBomb:
		line("Sitemap: %s/sitemap.xml.gz\nSitemap: %[1]s/sitemap.xml", q.base)
	case KindForeignSitemap:
		scheme, _, _ := strings.Cut(q.base, ":")
		line("Sitemap: %s://%s/sitemap.xml?of=%s", scheme, foreignHost(q.web.hash(q.host, "foreign")), q.host)
	case KindManySitemaps:
		for n := range manySitemapLines {
			line("Sitemap: %s/sitemap-%d.xml", q.base, n+1)
		}
	case KindBadSitemaps:
		line("Sitemap: /sitemap.xml\nSitemap: sitemap.xml\nSitemap:\nSITEMAP: ftp://%s/sitemap.xml\nsitemap: http//%[1]s/s.xml\n"+
			"Sitemap: https://\nSitemap: http://[::1/sitemap.xml\nsiteMap :  %s/sitemap.xml  # the good one\nSitemap: %[2]s/sitemap.xml", q.host, q.base)
	default:
		line("Sitemap: %s/sitemap.xml", q.base)
	}
	if q.kind == KindWrongType {
		return ok("application/octet-stream", b.Bytes())
	}
	return ok(plainType, b.Bytes())
}

// foreignHost is one of the sitemap hosts that the sites of KindForeignSitemap share.
func foreignHost(h uint64) string {
	return "urlset-" + strconv.FormatUint(h%foreignHosts, 10) + ".sitemaps.example.net"
}

// sitemap is the answer for a path of one of the host's sitemaps, nil for any other path.
func (q request) sitemap() *answer {
	switch q.kind {
	case KindNoSitemap, KindSoft404, KindForeignSitemap:
		return nil
	case KindNoSitemapLine:
		if q.path == "/sitemap_index.xml" {
			return ok(xmlType, q.urlset(0))
		}
		return nil
	case KindText:
		if q.path != "/sitemap.txt" {
			return nil
		}
		var b []byte
		for n := range q.count {
			b = append(q.appendLoc(b, n+1), '\n')
		}
		return ok(plainType, b)
	case KindIndex:
		return q.index()
	case KindManySitemaps:
		if n, isNumbered := numbered(q.path, "/sitemap-", ".xml"); isNumbered && n > manyAbsent && n <= manySitemapLines {
			return ok(xmlType, q.urlset(n))
		}
	case KindGzipBomb:
		if q.path == "/sitemap.xml.gz" {
			return &answer{status: http.StatusOK, mediaType: "application/gzip", stream: bomb}
		}
	case KindHugeRobots:
		if q.path == "/sitemap-late.xml" {
			return ok(xmlType, q.urlset(0))
		}
	}
	if q.path != "/sitemap.xml" || q.kind == KindManySitemaps {
		return nil
	}
	return q.sitemapXML()
}

// sitemapXML is the answer for /sitemap.xml.
func (q request) sitemapXML() *answer {
	switch q.kind {
	case KindSitemapGz:
		return ok(xmlType, gzipped(q.urlset(0)))
	case KindRSS:
		return ok("application/rss+xml; charset=utf-8", q.rss())
	case KindAtom:
		return ok("application/atom+xml; charset=utf-8", q.atom())
	case KindNamespaced:
		b := []byte(prefixedOpen)
		for n := range q.count {
			b = q.appendURL(b, "sm:", n+1)
		}
		return ok(xmlType, append(b, prefixedClose...))
	case KindUTF16:
		text := strings.Replace(string(q.urlset(0)), `encoding="UTF-8"`, `encoding="UTF-16"`, 1)
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(text)) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		return ok("application/xml", b)
	case KindWrongType:
		return ok(htmlType, q.urlset(0))
	case KindBigURLSet:
		return &answer{status: http.StatusOK, mediaType: xmlType, stream: q.streamURLSet}
	case KindGzipBomb:
		return &answer{status: http.StatusOK, mediaType: xmlType, encoding: "gzip", stream: bomb}
	}
	return ok(xmlType, q.urlset(0))
}

// index answers for KindIndex: /sitemap.xml, its children /sitemap-1.xml …, and the nested index's /sitemap-nested-1.xml ….
func (q request) index() *answer {
	children := q.web.children(q.host)
	list := func(n int, name string) []byte {
		b := []byte(indexOpen)
		for i := range n {
			b = fmt.Appendf(b, "<sitemap><loc>%s%s%d.xml</loc><lastmod>2025-06-01</lastmod></sitemap>\n", q.base, name, i+1)
		}
		return append(b, "</sitemapindex>\n"...)
	}
	if q.path == "/sitemap.xml" {
		return ok(xmlType, list(children, "/sitemap-"))
	}
	if n, isNumbered := numbered(q.path, "/sitemap-nested-", ".xml"); isNumbered && n <= nestedCount {
		return ok(xmlType, q.urlset(children+n))
	}
	switch n, isNumbered := numbered(q.path, "/sitemap-", ".xml"); {
	case isNumbered && n == children:
		return ok(xmlType, list(nestedCount, "/sitemap-nested-"))
	case isNumbered && n < children:
		return ok(xmlType, q.urlset(n))
	}
	return nil
}

// urlset lists the host's articles; part makes the urlsets of one host differ.
func (q request) urlset(part int) []byte {
	b := make([]byte, 0, 256+q.count*(len(q.base)+80))
	b = append(b, urlsetOpen...)
	if part > 0 {
		b = fmt.Appendf(b, "<!-- part %d -->\n", part)
	}
	for n := range q.count {
		b = q.appendURL(b, "", n+1)
	}
	return append(b, urlsetClose...)
}

func (q request) streamURLSet(out io.Writer) error {
	b := append(make([]byte, 0, 64<<10), urlsetOpen...)
	for n := range q.count {
		b = q.appendURL(b, "", n+1)
		if len(b) > 60<<10 {
			if _, err := out.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := out.Write(append(b, urlsetClose...))
	return err
}

func (q request) appendLoc(b []byte, n int) []byte {
	b = append(append(b, q.base...), "/articles/"...)
	return append(strconv.AppendInt(b, int64(n), 10), ".html"...)
}

func (q request) appendURL(b []byte, prefix string, n int) []byte {
	b = append(append(append(append(append(b, '<'), prefix...), "url><"...), prefix...), "loc>"...)
	b = q.appendLoc(b, n)
	b = append(append(append(append(append(b, "</"...), prefix...), "loc><"...), prefix...), "lastmod>2025-"...)
	b = append(b, '0'+byte(n%12+1)/10, '0'+byte(n%12+1)%10, '-', '0'+byte(n%28+1)/10, '0'+byte(n%28+1)%10)
	b = append(append(append(b, "</"...), prefix...), "lastmod>"...)
	if prefix != "" {
		b = append(b, "<image:image><image:loc>/logo.png</image:loc></image:image>"...)
	}
	return append(append(append(b, "</"...), prefix...), "url>\n"...)
}

// bomb writes a gzip file of 1 GiB: a short urlset, then the same member of 1 MiB of blanks many times (RFC 1952 section 2.2).
func bomb(out io.Writer) error {
	if _, err := out.Write(gzipped([]byte(urlsetOpen + "<url><loc>https://bomb.example.com/</loc></url>\n"))); err != nil {
		return err
	}
	member := gzipped(bytes.Repeat([]byte(" "), 1<<20))
	for range bombMembers {
		if _, err := out.Write(member); err != nil {
			return err
		}
	}
	return nil
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	// Writing to a bytes.Buffer never fails.
	_, _ = z.Write(b)
	_ = z.Close()
	return buf.Bytes()
}

func (q request) rss() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, xmlHead+`<rss version="2.0"><channel><title>%s</title><link>%s/</link><description>News of %[1]s</description>`+"\n", q.host, q.base)
	for n := range feedItems {
		fmt.Fprintf(&b, "<item><title>Article %d</title><link>%s/articles/%[1]d.html</link><guid>%[2]s/articles/%[1]d.html</guid><pubDate>%s</pubDate></item>\n",
			n+1, q.base, q.date(n+1).Format(time.RFC1123Z))
	}
	b.WriteString("</channel></rss>\n")
	return b.Bytes()
}

func (q request) atom() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, xmlHead+`<feed xmlns="http://www.w3.org/2005/Atom"><title>%s</title><id>%s/</id><updated>%s</updated><link rel="self" href="%[2]s/atom.xml"/>`+"\n",
		q.host, q.base, q.date(1).Format(time.RFC3339))
	for n := range feedItems {
		fmt.Fprintf(&b, "<entry><title>Article %d</title><id>%s/articles/%[1]d.html</id><link href=\"%[2]s/articles/%[1]d.html\"/><updated>%s</updated></entry>\n",
			n+1, q.base, q.date(n+1).Format(time.RFC3339))
	}
	b.WriteString("</feed>\n")
	return b.Bytes()
}

func (q request) date(n int) time.Time { return day(q.web.hash(q.host, "article "+strconv.Itoa(n))) }

func (q request) homepage() *answer {
	title, charset, mediaType := "News of "+q.host, "utf-8", htmlType
	if q.kind == KindEUCKR {
		title, charset, mediaType = "대한민국 정책브리핑 "+q.host, "euc-kr", "text/html"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html><head><meta charset="%s"><title>%s</title>
<link rel="alternate" type="application/rss+xml" title="RSS" href="/feed">
<link rel="alternate" type="application/atom+xml" title="Atom" href="%s/atom.xml">
<link rel="canonical" href="%[3]s/"></head>
<body><h1>%[2]s</h1><ul>
`, charset, title, q.base)
	for n := range feedItems {
		fmt.Fprintf(&b, "<li><a href=\"/articles/%d.html\">Article %[1]d</a></li>\n", n+1)
	}
	b.WriteString("</ul></body></html>\n")
	if q.kind == KindEUCKR {
		encoded, err := korean.EUCKR.NewEncoder().Bytes(b.Bytes())
		if err != nil {
			return failure(http.StatusInternalServerError) // a host name outside EUC-KR: none can come in a Host header
		}
		return ok(mediaType, encoded)
	}
	return ok(mediaType, b.Bytes())
}

func (q request) article(n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Article %d</title>"+
		"<link rel=\"canonical\" href=\"%s/articles/%[1]d.html\"></head>\n<body><article><h1>Article %[1]d</h1><time datetime=\"%s\"></time>\n",
		n, q.base, q.date(n).Format(time.RFC3339))
	for p := range 3 + q.web.hash(q.host, "length "+strconv.Itoa(n))%5 {
		fmt.Fprintf(&b, "<p>Paragraph %d of article %d at %s tells what the council decided on item %d and why.</p>\n",
			p+1, n, q.host, q.web.hash(q.host, strconv.Itoa(n))%1000+p)
	}
	b.WriteString("</article></body></html>\n")
	return b.Bytes()
}
