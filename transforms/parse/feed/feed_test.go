package feed_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/feed"
)

// Floors of TestCases: they may only rise.
const (
	minGofeed     = 53
	minFeedparser = 51 // of 52: IBM861 is in no table we have
	minBase       = 9  // base-href rows of charset/cases.jsonl: all
)

var (
	tags     = regexp.MustCompile(`<[^>]*>`)
	location = regexp.MustCompile(`Content-Location:\s*(\S+)`)
)

// markup says whether a title is what the row's HTML reads as.
func markup(title string, want any) bool {
	w, _ := want.(string)
	return title == w || title == html.UnescapeString(tags.ReplaceAllString(w, ""))
}

// TestCases compares kinds, counts, links and titles. Our titles are text where
// feedparser keeps HTML, and our links are as written: the test resolves them
// against what a row names as its document's address.
func TestCases(t *testing.T) {
	right := map[string]int{}
	all := map[string]int{}
	for _, c := range cases.Rows[struct {
		ID, Source, File string
		Expect           json.RawMessage
	}](t, "sitemaps/feeds_cases.jsonl") {
		body := cases.File(t, "sitemaps/"+c.File)
		got, err := feed.Parse(body)
		var wrong bool
		if c.Source == "gofeed" {
			var want struct {
				FeedType, Title string
				Items           []struct{ Title, Link string }
			}
			require.NoError(t, json.Unmarshal(c.Expect, &want))
			kind := string(got.Kind)
			if kind == "rdf" {
				kind = "rss"
			}
			wrong = kind != want.FeedType || len(got.Items) != len(want.Items) || want.Title != "" && got.Title != want.Title
			for i := range min(len(got.Items), len(want.Items)) {
				w := want.Items[i]
				wrong = wrong || w.Title != "" && w.Title != got.Items[i].Title || w.Link != "" && w.Link != got.Items[i].Link
			}
		} else {
			var want []struct {
				Path  string
				Value any
			}
			require.NoError(t, json.Unmarshal(c.Expect, &want))
			base := &url.URL{Scheme: "http", Host: "127.0.0.1:8097", Path: "/"} // feedparser's own test server
			if m := location.FindSubmatch(body); m != nil {
				base, err = url.Parse(string(m[1]))
				require.NoError(t, err)
			}
			applies := false
			for _, w := range want {
				same := false
				switch w.Path {
				case "feed.title":
					same = markup(got.Title, w.Value)
				case "entries.0.title":
					same = len(got.Items) > 0 && markup(got.Items[0].Title, w.Value)
				case "entries.0.link":
					if len(got.Items) > 0 {
						u, err := base.Parse(got.Items[0].Link)
						same = err == nil && u.String() == w.Value
					}
				default:
					continue
				}
				applies = true
				wrong = wrong || !same
			}
			if !applies {
				continue
			}
		}
		all[c.Source]++
		if wrong {
			t.Logf("%s: %+v (%v), source says %.300s", c.ID, got, err, c.Expect)
			continue
		}
		right[c.Source]++
	}
	t.Logf("right %v of %v", right, all)
	if right["gofeed"] < minGofeed || right["feedparser"] < minFeedparser {
		t.Errorf("right %v, floors %d and %d", right, minGofeed, minFeedparser)
	}
}

func TestParse(t *testing.T) {
	f := func(body string, want feed.Feed) {
		t.Helper()
		got, err := feed.Parse([]byte(body))
		if errors.Is(err, feed.ErrNotFeed) != (want.Kind == "") || got.Kind != want.Kind || got.Title != want.Title || !slices.Equal(got.Items, want.Items) {
			t.Errorf("%q: %+v (%v), want %+v", body, got, err, want)
		}
	}
	f("", feed.Feed{})
	f("<html><title>x</title></html>", feed.Feed{})
	f(`{"version":1}`, feed.Feed{})
	f("<rss><channel><title>T</title><image><title>no</title></image><item><title>A &amp; B</title><guid>http://a.example/1</guid><pubDate>d</pubDate></item><item><link>http://a.exam",
		feed.Feed{Kind: feed.RSS, Title: "T", Items: []feed.Item{{Link: "http://a.example/1", Title: "A & B", Published: "d"}, {}}}) // half an address is none
	f("<feed><title>T</title><entry><link rel='self' href='s'/><link href='l'/><updated>u</updated></entry></feed>",
		feed.Feed{Kind: feed.Atom, Title: "T", Items: []feed.Item{{Link: "l", Updated: "u"}}})
	f(`<feed><title type="text/html" mode="escaped">A &lt;b>B&lt;/b> &amp;amp; C</title><entry><title type="html">&lt;i>x&lt;/i></title></entry><entry><title type="text">1 &lt; 2</title></entry><entry><title mode="base64"> PGI+
eDwvYj4= </title></entry><entry><title mode="base64">not base64!</title></entry></feed>`,
		feed.Feed{Kind: feed.Atom, Title: "A B & C", Items: []feed.Item{{Title: "x"}, {Title: "1 < 2"}, {Title: "x"}, {Title: "not base64!"}}})
	f(`{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"url":"u","title":"t","date_published":"d"}]}`,
		feed.Feed{Kind: feed.JSON, Title: "T", Items: []feed.Item{{Link: "u", Title: "t", Published: "d"}}})
}

// Feeds have the faults of what was put together by hand.
func TestFaultyFeeds(t *testing.T) {
	f := func(body string, want ...feed.Item) {
		t.Helper()
		got, err := feed.Parse([]byte(body))
		assert.True(t, err == nil && slices.Equal(got.Items, want), "%q: %+v (%v), want %+v", body, got.Items, err, want)
	}
	const second = "<item><title>B</title><link>http://a.example/2</link></item></channel></rss>"
	two := func(title string) []feed.Item {
		return []feed.Item{{Link: "http://a.example/1", Title: title}, {Link: "http://a.example/2", Title: "B"}}
	}
	first := func(title string) string {
		return "<rss><channel><item><title>" + title + "</title><link>http://a.example/1</link></item>" + second
	}
	f(first("a\x0bb\x00"), two("a\x0bb\x00")...)
	f(first("a&#x1f;b"), two("a\x1fb")...)
	f(first("a ]]> b < c <3"), two("a ]]> b < c <3")...)
	f(first("a<br>b"), two("ab")...)
	f(first("<b><i>a</b></i>"), two("a")...)
	f(first("AT&amp;amp;T &copy; R&D &copy=1"), two("AT&amp;T © R&D &copy=1")...)
	f("<?xml version='1.1'?><!-- a -- b -->"+first("A"), two("A")...)
	f("<!DOCTYPE rss [<!-- don't --><!ENTITY a 'b'>]>"+first("A"), two("A")...)
	f("<br />\n<b>Warning</b>: fopen() in /a.php\n<?xml version='1.0'?>"+first("A"), two("A")...)
	f("<rss><channel><item><title>A</title><link>http://a.example/1</link>"+second, two("A")...)
	f("<RSS><CHANNEL><ITEM><TITLE>A</TITLE><LINK>http://a.example/1</LINK><pubdate>d</pubdate></ITEM></CHANNEL></RSS>", feed.Item{Link: "http://a.example/1", Title: "A", Published: "d"})

	// Elements within an item's elements are not the item's.
	f("<rss><item><source><title>no</title></source><media:content><link>no</link></media:content><media:title>no</media:title><dc:title>no</dc:title><title>A</title><link>l</link></item></rss>",
		feed.Item{Link: "l", Title: "A"})
	f("<feed><entry><source><title>no</title><link href='no'/><updated>no</updated></source><content><entry><link href='no'/></entry></content><link rel=Alternate href=l?a=1&amp;b /></entry></feed>",
		feed.Item{Link: "l?a=1&b"})

	// Links and what stands for them.
	f("<rss><item><guid isPermaLink='false'>x</guid><pubDate>d</pubDate></item><item><guid>http://g</guid><pubDate>d</pubDate><link>l</link></item><item><link>l</link><link></link></item></rss>",
		feed.Item{Published: "d"}, feed.Item{Link: "l", Published: "d"}, feed.Item{Link: "l"})
	f("<rdf:RDF><item rdf:about='http://a.example/1'><dc:date>d</dc:date></item></rdf:RDF>", feed.Item{Link: "http://a.example/1", Updated: "d"})
	f("<rss><item><atom:link rel='self' href='no'/><atom:link href='l'/></item></rss>", feed.Item{Link: "l"})
}

func TestFaultyJSONFeeds(t *testing.T) {
	f := func(body string, want ...feed.Item) {
		t.Helper()
		got, err := feed.Parse([]byte(body))
		assert.True(t, err == nil && got.Kind == feed.JSON && slices.Equal(got.Items, want), "%s: %+v (%v), want %+v", body, got, err, want)
	}
	const head = `{"version":"https://jsonfeed.org/version/1.1","items":`
	f(head + "null}")
	f(head+`[{"url":"a","title":5,"id":1},2,{"external_url":"b","date_modified":"d"},{"id":"http://c"}]} trailing`,
		feed.Item{Link: "a"}, feed.Item{Link: "b", Updated: "d"}, feed.Item{Link: "http://c"})
	f(head+`[{"url":"a"},{"url":"b`, feed.Item{Link: "a"})
}

func TestDiscover(t *testing.T) {
	base, err := url.Parse("https://a.example/dir/")
	require.NoError(t, err)
	got := feed.Discover([]byte(`<script><link rel=alternate type=application/rss+xml href=no></script><!-- <base href=no> -->
<LINK REL="Alternate home" TYPE="application/RSS+xml; charset=utf-8" HREF=" rss.xml "><link rel=alternate type=text/html href=x>
<base href="//b.example/"><link rel=alternate type=application/atom+xml href=atom?a=1&amp;b=2><link rel=alternate type=application/atom+xml href=/atom?a=1&b=2>`), base)
	want := []string{"https://a.example/dir/rss.xml", "https://b.example/atom?a=1&b=2"}
	assert.True(t, slices.Equal(got, want), "%q, want %q", got, want)
}

// Addresses are read as browsers read them.
func TestDiscoverAddresses(t *testing.T) {
	base, err := url.Parse("https://a.example/dir/")
	require.NoError(t, err)
	f := func(page, href string, want ...string) {
		t.Helper()
		got := feed.Discover([]byte(page+"<link rel=alternate type=application/rss+xml href=\""+href+"\">"), base)
		assert.True(t, slices.Equal(got, want), "%s %q: %q, want %q", page, href, got, want)
	}
	f("", "f\n.xml", "https://a.example/dir/f.xml")
	f("", `\f`, "https://a.example/f")
	f("", "/100%", "https://a.example/100%25")
	f("", "//X.한국.kr:443/f#a", "https://x.xn--3e0b707e.kr/f")
	f("", "feed:x")
	f("<base href='javascript:x'><base href=/b/>", "f", "https://a.example/dir/f")
	f("<base target=x><base href=/b/><base href=/c/>", "f", "https://a.example/b/f")
}

// The rows of w3lib on base elements; links that come after one are resolved
// against it.
func TestBaseCases(t *testing.T) {
	rows := 0
	for _, c := range cases.Rows[struct {
		ID, Kind, HTML, Base string
		BaseURL              string `json:"base_url"`
	}](t, "charset/cases.jsonl") {
		if c.Kind != "base-href" {
			continue
		}
		rows++
		base, err := url.Parse(c.Base)
		require.NoError(t, err)
		// What ends the row's open comment or script is text in the others.
		got := feed.Discover([]byte(c.HTML+`--></script><link rel=alternate type=application/rss+xml href="?feed">`), base)
		var want []string
		if c.BaseURL != "" {
			if strings.Count(c.BaseURL, "/") == 2 {
				c.BaseURL += "/" // a host's root
			}
			want = []string{c.BaseURL + "?feed"}
		}
		assert.True(t, slices.Equal(got, want), "%s: %q, want %q", c.ID, got, want)
	}
	assert.True(t, rows >= minBase, "%d rows were read, floor %d", rows, minBase)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("<rss><channel><title>T<b/></title><item><link>x</link></item>"))
	f.Add([]byte("<feed><entry><link href='x'/></entry></feed>"))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1"}`))
	f.Add([]byte("<link rel=alternate type=application/rss+xml href=%zz>"))
	base := &url.URL{Scheme: "https", Host: "a.example", Path: "/"}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := feed.Parse(body)
		assert.Equal(t, got.Kind != "", err == nil, "%+v with %v", got, err)
		for _, u := range feed.Discover(body, base) {
			assert.True(t, strings.HasPrefix(u, "http"), "%q is not absolute", u)
		}
	})
}

// Addresses are relative to the innermost xml:base, and to the feed where there is none.
func TestBase(t *testing.T) {
	const text = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://a.example/en/">
<entry><link href="1"/></entry>
<entry xml:base="world/"><link href="2"/></entry>
<entry xml:base="/de/x"><link xml:base="y/z" href="3"/></entry>
<entry xml:base="https://b.example"><link href="/4?a=b&amp;c"/></entry>
<entry><content xml:base="https://c.example/"/><link href="https://a.example/5"/></entry></feed>`
	f, err := feed.Parse([]byte(text))
	require.NoError(t, err)
	var got []string
	for _, i := range f.Items {
		got = append(got, i.Link)
	}
	want := []string{"https://a.example/en/1", "https://a.example/en/world/2", "https://a.example/de/y/3", "https://b.example/4?a=b&c", "https://a.example/5"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)

	f, err = feed.Parse([]byte(`<rss xml:base="en/"><channel><item><link>1</link></item><item xml:base="x"><link>2</link></item></channel></rss><a>`))
	require.NoError(t, err)
	if want := []feed.Item{{Link: "en/1"}, {Link: "en/2"}}; !slices.Equal(f.Items, want) {
		t.Errorf("got %q, want %q", f.Items, want)
	}
}
