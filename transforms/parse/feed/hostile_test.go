package feed_test

import (
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/feed"
)

const mib = 1 << 20

// allocated is what work takes of the heap in all, whether it is freed
// meanwhile or not: a bound on it bounds both memory and copying.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Ten kilobytes of gzip unpack to ten megabytes like these. What they cost must
// stay in the order of their own size.
func TestHostileFeeds(t *testing.T) {
	const size = 10 * mib
	fill := func(head, part string) string { return head + strings.Repeat(part, (size-len(head))/len(part)) }
	for name, tt := range map[string]struct {
		body  string
		items int // at least
	}{
		"nested":               {fill("<rss><channel><item><title>a</title></item>", "<a>"), 1},
		"nested in an item":    {fill("<rss><channel><item><title>a</title></item><item>", "<a>"), 1},
		"nested in a title":    {fill("<rss><channel><item><title>a</title></item><item><title>", "<a>"), 1},
		"ends of nothing":      {fill("<rss><channel><item><title>a</title></item>"+strings.Repeat("<a>", 200), "</b>"), 1},
		"attributes":           {fill("<rss><channel><item><title>a</title></item><item ", "a "), 1},
		"items":                {fill("<rss><channel>", "<item/>"), 50_000},
		"JSON items":           {fill(`{"version":"https://jsonfeed.org/version/1","items":[{}`, ",{}") + "]}", 50_000},
		"JSON nested":          {fill(`{"version":"https://jsonfeed.org/version/1","a":`, "["), 0},
		"names":                {fill("<feed><entry><title>a</title></entry>", "<"+strings.Repeat("a", mib)+"/>"), 1},
		"Atom HTML":            {fill("<feed><entry><title>a</title></entry><entry><title type='html'>", "&lt;a "), 1},
		"Atom HTML attributes": {fill("<feed><entry><title>a</title></entry><entry><title type='html'>&lt;b ", "a "), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var f feed.Feed
			var err error
			n := allocated(func() { f, err = feed.Parse([]byte(tt.body)) })
			assert.True(t, n <= 12*size, "%d MiB for %d MiB", n/mib, size/mib)
			assert.True(t, len(f.Items) >= tt.items, "%d items (%v), want those before the hostile part: %d", len(f.Items), err, tt.items)
		})
	}
}

func TestHostilePages(t *testing.T) {
	const size = 5 * mib
	link := "<link rel=alternate type=application/rss+xml href=/feed>"
	for name, body := range map[string]string{
		"attributes":       link + "<a " + strings.Repeat("a ", size/2),
		"a link's":         link + "<link " + strings.Repeat("a=b ", size/4),
		"many other links": link + strings.Repeat("<link rel=alternate type=application/rss+xml href='https://a.example/"+strings.Repeat("x", 900)+"'>", size/1000),
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			n := allocated(func() {
				found = feed.Discover([]byte(body), &url.URL{Scheme: "https", Host: "a.example", Path: "/"})
			})
			assert.True(t, n <= 12*size, "%d MiB for %d MiB", n/mib, size/mib)
			if len(found) == 0 || found[0] != "https://a.example/feed" {
				t.Errorf("found %.3q, want the one before the hostile part", found)
			}
		})
	}
}

// Markup is deep in real feeds too, by tags that nobody closed.
func TestUnclosedTagsAreRead(t *testing.T) {
	body := "<rss><channel><item><title>a" + strings.Repeat("<br>b", 200) + "</title><link>https://a.example/1</link></item><item><link>https://a.example/2</link></item></channel></rss>"
	f, err := feed.Parse([]byte(body))
	if err != nil || len(f.Items) != 2 || f.Items[1].Link != "https://a.example/2" || f.Items[0].Title != "a"+strings.Repeat("b", 200) {
		t.Errorf("%+v (%v)", f, err)
	}
}
