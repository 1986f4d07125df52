package sitemap_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// minCases is a floor: it may only rise. It is all rows that are not doubtful.
const minCases = 32

// TestCases compares what the documents hold. The strict option of
// crawler-commons, which drops URLs outside the sitemap's directory, is a
// policy of its callers; in these rows it drops none of the counted ones.
func TestCases(t *testing.T) {
	right := 0
	for _, c := range cases.Rows[struct {
		ID, File, Kind, Doubtful string
		URLs, Children           []string
		NURLs                    int `json:"n_urls"`
		NChildren                int `json:"n_children"`
		Gzip                     bool
	}](t, "sitemaps/cases.jsonl") {
		if c.Doubtful != "" {
			continue
		}
		body := cases.File(t, "sitemaps/"+c.File)
		var urls []string
		r, err := sitemap.Scan(body, func(e sitemap.Entry) bool { urls = append(urls, e.Loc); return true })
		parsed, _ := sitemap.Parse(body, 100)
		countsAlike(t, body)
		if c.Kind == "broken" {
			if !errors.Is(err, sitemap.ErrNotSitemap) {
				t.Errorf("%s: %v, want ErrNotSitemap", c.ID, err)
				continue
			}
			right++
			continue
		}
		want := append(slices.Clone(c.URLs), c.Children...)
		if len(want) < c.NURLs && len(urls) == c.NURLs {
			urls = urls[:len(want)] // long rows list their first URLs only
		}
		if c.Kind == "text" {
			for i := range urls { // the row's URLs are without fragment
				urls[i], _, _ = strings.Cut(urls[i], "#")
			}
		}
		if err != nil || string(r.Kind) != c.Kind || r.Count != c.NURLs+c.NChildren || r.Unpacked != c.Gzip || r.Truncated ||
			!slices.Equal(urls, want) || !slices.Equal(parsed.Children, c.Children) && len(c.Children)+len(parsed.Children) > 0 {
			t.Errorf("%s: %+v %q (%v), want %s %d %q", c.ID, r, urls, err, c.Kind, c.NURLs+c.NChildren, want)
			continue
		}
		right++
	}
	assert.True(t, right >= minCases, "%d rows are right, floor %d", right, minCases)
}

func TestParse(t *testing.T) {
	f := func(body string, kind sitemap.Kind, count int, truncated bool) {
		t.Helper()
		countsAlike(t, []byte(body))
		r, err := sitemap.Parse([]byte(body), 10)
		if errors.Is(err, sitemap.ErrNotSitemap) != (kind == "") || r.Kind != kind || r.Count != count || r.Truncated != truncated {
			t.Errorf("%.200q: %+v (%v), want %s %d truncated %v", body, r, err, kind, count, truncated)
		}
	}
	f("", "", 0, false)
	f("<!DOCTYPE html><html><body>Not found</body></html>", "", 0, false)
	f("see http://a.example/x", "", 0, false)
	f("http://a.example/x\n\nnot a url\nhttps://a.example/y", sitemap.Text, 2, false)
	f("<urlset/>", sitemap.URLSet, 0, false)
	f("<urlset><url><loc>a</loc></url><url><lo", sitemap.URLSet, 2, true)
	f("<s:urlset xmlns:s='x'><s:url a='>'/><s:url></s:url></s:urlset>", sitemap.URLSet, 2, false)
	f("<urlset><!-- <url> --><url><![CDATA[<url>]]></url><urls/></urlset>", sitemap.URLSet, 1, false)
	f("<urlset><url><v:video><v:url>x</v:url></v:video></url></urlset>", sitemap.URLSet, 1, false)
	f("<urlset><url><loc>a</loc><url><loc>b</loc></urlset>", sitemap.URLSet, 2, false)
	f("<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a '<url>'>]><sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>", sitemap.Index, 1, false)
	f("<rdf:RDF><channel/><item/><item><link>a</link></item></rdf:RDF>", sitemap.RSS, 2, false)
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("<?xml version='1.0' encoding='utf-16'?><urlset><url/></urlset>")
	require.NoError(t, err)
	f(utf16, sitemap.URLSet, 1, false)
	// gzip: two members make one document; a broken end counts what it held.
	packed := pack(t, "<urlset><url/>") + pack(t, "<url/></urlset>")
	f(packed, sitemap.URLSet, 2, false)
	f(packed[:len(packed)-9], sitemap.URLSet, 2, true)
	f("\x1f\x8b\x08", "", 0, true)
}

// countsAlike compares three ways through a document: only counting, which skips what
// cannot matter; counting after the first entries were read; reading every entry.
func countsAlike(t testing.TB, body []byte) {
	t.Helper()
	counted, countErr := sitemap.Parse(body, 0)
	mixed, mixedErr := sitemap.Parse(body, 2)
	visited := 0
	read, readErr := sitemap.Scan(body, func(sitemap.Entry) bool { visited++; return true })
	mixed.Children = nil
	if !reflect.DeepEqual(counted, read) || !reflect.DeepEqual(mixed, read) || (countErr == nil) != (readErr == nil) || (mixedErr == nil) != (readErr == nil) ||
		readErr == nil && visited != read.Count {
		t.Errorf("%.300q: counted %+v (%v), after two children %+v (%v), read %+v (%v) with %d visits", body, counted, countErr, mixed, mixedErr, read, readErr, visited)
	}
}

// Counting skips tags by their first letter; what else begins or looks like them must
// not change the count.
func TestCountingSkipsNothingThatCounts(t *testing.T) {
	f := func(count int, truncated bool, parts ...string) {
		t.Helper()
		for _, root := range []string{"urlset", "s:urlset"} {
			body := "<" + root + ">" + strings.Join(parts, "")
			r, err := sitemap.Parse([]byte(body), 0)
			if err != nil || r.Count != count || r.Truncated != truncated {
				t.Errorf("%q: %+v (%v), want %d, truncated %v", body, r, err, count, truncated)
			}
			countsAlike(t, []byte(body))
		}
	}
	const end = "</urlset></s:urlset>"
	f(1, false, "<url></url>", end)
	f(1, false, "<url\t></url\n>", end)
	f(2, false, "<x:url/><y:url a='1'/>", end)
	f(1, false, "<urls/><ur/><url-x/><url.y/><url/>", end)
	f(1, false, `<a b="<url>"/><a b='>' c="</urlset>"><x:url/>`, end)
	f(1, false, "<!-- <url> --><![CDATA[<url>]]><?x <url> ?><!D [<url>]><z:url>", end)
	f(2, false, "<a<url/><a b<url/>", end)
	f(1, false, `<a"b":url/>`, end)
	f(0, false, `<a":url"/><:a/><:/></></ x></a:b:url>`, end)
	f(1, false, "<url><loc>a</loc></urls><z:url/></url>", end)
	f(2, false, "<url></url><z:url/>", end)
	f(0, true, "<a b='<url/>", end)
	f(1, true, "<url/><a")
	f(1, true, "<url/><")
	f(1, true, "<url/></")
	f(1, true, "<url/><x:")
}

func TestScan(t *testing.T) {
	const body = `<urlset xmlns:news="n"><url><loc> http://a.example/?a=1&amp;b=&own;2 </loc><lastmod>2026-01-02</lastmod>
<image:image><image:loc>http://i.example/</image:loc><image:title>no</image:title></image:image>
<news:news><news:publication><news:name>N</news:name><news:language>ko</news:language></news:publication>
<news:publication_date>2026-01-03</news:publication_date><news:title>제목 <![CDATA[<1>]]></news:title></news:news></url><url><loc>b</loc></url></urlset>`
	var got []sitemap.Entry
	r, err := sitemap.Scan([]byte(body), func(e sitemap.Entry) bool { got = append(got, e); return false })
	want := sitemap.Entry{Loc: "http://a.example/?a=1&b=2", LastMod: "2026-01-02", News: sitemap.News{Publication: "N", Language: "ko", Title: "제목 <1>", PublicationDate: "2026-01-03"}}
	assert.True(t, err == nil && r.Count == 2 && len(got) == 1 && got[0] == want, "%+v %+v (%v), want one %+v of 2", r, got, err, want)
}

// What stands in which element, whatever its name.
func TestScanEntries(t *testing.T) {
	f := func(body string, want ...sitemap.Entry) {
		t.Helper()
		countsAlike(t, []byte(body))
		var got []sitemap.Entry
		r, err := sitemap.Scan([]byte(body), func(e sitemap.Entry) bool { got = append(got, e); return true })
		if err != nil || r.Truncated || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, truncated %v (%v), want %+v", body, got, r.Truncated, err, want)
		}
	}
	f("<urlset><s:url><s:loc>a</s:loc><s:lastmod>d</s:lastmod></s:url></urlset>", sitemap.Entry{Loc: "a", LastMod: "d"})
	f(`<urlset><url><image xmlns="http://www.google.com/schemas/sitemap-image/1.1"><loc>no</loc></image><loc xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">a</loc></url></urlset>`, sitemap.Entry{Loc: "a"})
	f("<urlset><url><loc>a</loc><v:video><v:title>no</v:title><v:publication_date>no</v:publication_date></v:video></url></urlset>", sitemap.Entry{Loc: "a"})
	f("<urlset><url><loc>a</loc><n:news><n:title>T</n:title><n:publication_date>d</n:publication_date></n:news><n:title>no</n:title></url></urlset>", sitemap.Entry{Loc: "a", News: sitemap.News{Title: "T", PublicationDate: "d"}})
	f("<urlset><url><loc>a<lastmod>d</lastmod></url><url><loc>b</url></urlset>", sitemap.Entry{Loc: "a", LastMod: "d"}, sitemap.Entry{Loc: "b"})
	f("<urlset><url><loc>/?a=1&copy=2&amp;amp;b&lt;</loc></url></urlset>", sitemap.Entry{Loc: "/?a=1&copy=2&amp;b<"})
	f("<!DOCTYPE urlset [<!-- it's -->]><urlset><url><loc>a</loc></url></urlset>", sitemap.Entry{Loc: "a"})
	f("<b>Warning</b>: x\n<?xml version='1.0'?><urlset><url><loc>a</loc></url></urlset>", sitemap.Entry{Loc: "a"})
	f("http://a.example/1\rhttp://a.example/2\r", sitemap.Entry{Loc: "http://a.example/1"}, sitemap.Entry{Loc: "http://a.example/2"})
	f(pack(t, "<urlset><url><loc>a</loc></url></urlset>")+"\x00\x00\x00", sitemap.Entry{Loc: "a"})
	f("<rss><item><guid>http://g</guid><title>T</title><pubDate>p</pubDate><link>l</link></item></rss>", sitemap.Entry{Loc: "l", LastMod: "p", News: sitemap.News{Title: "T", PublicationDate: "p"}})
	f("<feed><entry><updated>u</updated><published>p</published><link href='l'/></entry></feed>", sitemap.Entry{Loc: "l", LastMod: "u", News: sitemap.News{PublicationDate: "p"}})
	f("<urlset></urlset>")
}

// A JSON Feed names pages, and is no sitemap.
func TestScanAny(t *testing.T) {
	f := func(body string, r sitemap.Result, want ...sitemap.Entry) {
		t.Helper()
		var got []sitemap.Entry
		read, err := sitemap.ScanAny([]byte(body), func(e sitemap.Entry) bool { got = append(got, e); return len(got) < 2 })
		if err != nil || !reflect.DeepEqual(read, r) || !slices.Equal(got, want) {
			t.Errorf("%q: %+v %+v (%v), want %+v %+v", body, read, got, err, r, want)
		}
	}
	const head = `{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1","url":"a","title":"A","date_published":"p","date_modified":"m"},{"url":"b","date_published":"p"}`
	a, b := sitemap.Entry{Loc: "a", LastMod: "m", News: sitemap.News{Title: "A", PublicationDate: "p"}}, sitemap.Entry{Loc: "b", LastMod: "p", News: sitemap.News{PublicationDate: "p"}}
	f(head+"]}", sitemap.Result{Kind: sitemap.JSON, Count: 2}, a, b)
	f("\xef\xbb\xbf\n"+head+`,{"url":"c"}]}`, sitemap.Result{Kind: sitemap.JSON, Count: 3}, a, b)
	f(head+`,{"url":"c`, sitemap.Result{Kind: sitemap.JSON, Count: 2, Truncated: true}, a, b)
	f(pack(t, head+"]}"), sitemap.Result{Kind: sitemap.JSON, Count: 2, Unpacked: true}, a, b)
	f("<urlset><url><loc>a</loc></url></urlset>", sitemap.Result{Kind: sitemap.URLSet, Count: 1}, sitemap.Entry{Loc: "a"})
	for _, body := range []string{"", "{", `{"items":[{"url":"a"}]}`, "<html>", head + "]}"} {
		_, err := sitemap.Scan([]byte(body), func(sitemap.Entry) bool { return true })
		assert.ErrorIs(t, err, sitemap.ErrNotSitemap, "%q: %v, want ErrNotSitemap", body, err)
		if body == head+"]}" {
			continue
		}
		if _, err := sitemap.ScanAny([]byte(body), func(sitemap.Entry) bool { return true }); !errors.Is(err, sitemap.ErrNotSitemap) {
			t.Errorf("%q: %v, want ErrNotSitemap", body, err)
		}
	}
}

// The limit is on different sitemaps: an index that repeats one must not hide
// the others.
func TestChildrenLimit(t *testing.T) {
	f := func(limit int, want []string, named ...string) {
		t.Helper()
		body := "<sitemapindex>"
		for _, n := range named {
			body += "<sitemap><loc>" + n + "</loc></sitemap>"
		}
		r, err := sitemap.Parse([]byte(body+"<sitemap/></sitemapindex>"), limit)
		if err != nil || r.Count != len(named)+1 || !slices.Equal(r.Children, want) {
			t.Errorf("at most %d of %q: %+v (%v), want %d with children %q", limit, named, r, err, len(named)+1, want)
		}
	}
	f(0, nil, "a", "b")
	f(1, []string{"a"}, "a", "b")
	f(2, []string{"a", "b"}, "a", "a", " a ", "b", "c")
	f(9, []string{"b", "a"}, "b", "a", "b", "a")
}

func TestUnpack(t *testing.T) {
	bomb := pack(t, strings.Repeat("x", 1<<20))
	out, unpacked, truncated, err := sitemap.Unpack([]byte(bomb), 1000)
	if len(out) != 1000 || !unpacked || !truncated || err != nil {
		t.Errorf("%d bytes, unpacked %v, truncated %v, %v; want 1000 of a cut gzip", len(out), unpacked, truncated, err)
	}
	out, unpacked, truncated, err = sitemap.Unpack([]byte("plain"), 1)
	if string(out) != "plain" || unpacked || truncated || err != nil {
		t.Errorf("%q, unpacked %v, truncated %v, %v; want the body as it was", out, unpacked, truncated, err)
	}
}

// A file that is gzip by its content, from Scrapy's tests.
func TestUnpackCases(t *testing.T) {
	files := 0
	for _, c := range cases.Rows[struct {
		ID, Kind, File string
		Plain          string `json:"plain_sha256"`
	}](t, "charset/cases.jsonl") {
		if c.Kind != "gzip-file" {
			continue
		}
		files++
		out, unpacked, truncated, err := sitemap.Unpack(cases.File(t, "charset/"+c.File), sitemap.MaxUnpacked)
		if sum := fmt.Sprintf("%x", sha256.Sum256(out)); sum != c.Plain || !unpacked || truncated || err != nil {
			t.Errorf("%s: %d bytes with SHA-256 %s, unpacked %v, truncated %v, %v; want %s", c.ID, len(out), sum, unpacked, truncated, err, c.Plain)
		}
	}
	assert.True(t, files >= 1, "no row was read")
}

func pack(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("<?xml?><!DOCTYPE a [<!ENTITY b 'c'>]><a:urlset><a:url><loc>&b;<![CDATA[x]]></loc></a:url></a:urlset>"))
	f.Add([]byte("<feed><entry><link href='x'/></entry></feed>"))
	f.Add([]byte("<s:urlset><s:url a='>'><s:loc>x</s:loc></s:url><x:url/><![CDATA[<url>]]><a<url></a></s:urlset>"))
	f.Add([]byte("http://a.example/\n"))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"a"},{}]}`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := sitemap.Parse(body, 2)
		if (err == nil) != (r.Kind != "") || err != nil && r.Count != 0 || len(r.Children) > min(2, r.Count) {
			t.Errorf("%+v with %v", r, err)
		}
		countsAlike(t, body)
		visited := 0
		all, err := sitemap.ScanAny(body, func(sitemap.Entry) bool { visited++; return true })
		if (err == nil) != (all.Kind != "") || err == nil && (visited != all.Count || r.Kind != "" && all.Kind != r.Kind) {
			t.Errorf("%+v with %v and %d visits", all, err, visited)
		}
	})
}
