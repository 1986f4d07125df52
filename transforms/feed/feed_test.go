package feed_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/feed"
)

const casesDir = "../../../shared/cases/sitemaps"

// Floors of TestCases: they may only rise.
const (
	minGofeed     = 53
	minFeedparser = 28
)

func TestCases(t *testing.T) {
	f, err := os.Open(filepath.Join(casesDir, "feeds_cases.jsonl"))
	if err != nil {
		t.Skipf("the shared cases are absent: %v", err)
	}
	defer f.Close()
	right := map[string]int{}
	all := map[string]int{}
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var c struct {
			ID, Source, File string
			Expect           json.RawMessage
		}
		if err := json.Unmarshal(scan.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(casesDir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := feed.Parse(body)
		var wrong bool
		if c.Source == "gofeed" {
			var want struct {
				FeedType, Title string
				Items           []struct{ Title, Link string }
			}
			if err := json.Unmarshal(c.Expect, &want); err != nil {
				t.Fatal(err)
			}
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
			if err := json.Unmarshal(c.Expect, &want); err != nil {
				t.Fatal(err)
			}
			applies := false
			for _, w := range want {
				var have string
				switch {
				case w.Path == "feed.title":
					have = got.Title
				case w.Path == "entries.0.title" && len(got.Items) > 0:
					have = got.Items[0].Title
				case w.Path == "entries.0.link" && len(got.Items) > 0:
					have = got.Items[0].Link
				default:
					continue
				}
				applies = true
				wrong = wrong || have != w.Value
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
		feed.Feed{Kind: feed.RSS, Title: "T", Items: []feed.Item{{Link: "http://a.example/1", Title: "A & B", Published: "d"}, {Link: "http://a.exam"}}})
	f("<feed><title>T</title><entry><link rel='self' href='s'/><link href='l'/><updated>u</updated></entry></feed>",
		feed.Feed{Kind: feed.Atom, Title: "T", Items: []feed.Item{{Link: "l", Published: "u"}}})
	f(`{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"url":"u","title":"t","date_published":"d"}]}`,
		feed.Feed{Kind: feed.JSON, Title: "T", Items: []feed.Item{{Link: "u", Title: "t", Published: "d"}}})
}

func TestDiscover(t *testing.T) {
	base, err := url.Parse("https://a.example/dir/")
	if err != nil {
		t.Fatal(err)
	}
	got := feed.Discover([]byte(`<script><link rel=alternate type=application/rss+xml href=no></script><!-- <base href=no> -->
<LINK REL="Alternate home" TYPE="application/RSS+xml; charset=utf-8" HREF=" rss.xml "><link rel=alternate type=text/html href=x>
<base href="//b.example/"><link rel=alternate type=application/atom+xml href=atom?a=1&amp;b=2><link rel=alternate type=application/atom+xml href=/atom?a=1&b=2>`), base)
	if want := []string{"https://a.example/dir/rss.xml", "https://b.example/atom?a=1&b=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("<rss><channel><title>T<b/></title><item><link>x</link></item>"))
	f.Add([]byte("<feed><entry><link href='x'/></entry></feed>"))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1"}`))
	f.Add([]byte("<link rel=alternate type=application/rss+xml href=%zz>"))
	base := &url.URL{Scheme: "https", Host: "a.example", Path: "/"}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := feed.Parse(body); (err == nil) != (got.Kind != "") {
			t.Errorf("%+v with %v", got, err)
		}
		for _, u := range feed.Discover(body, base) {
			if !strings.HasPrefix(u, "http") {
				t.Errorf("%q is not absolute", u)
			}
		}
	})
}
