//go:build unix

package engine_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// discover makes a site's file without a database, and checks that each request was polite.
func (w *world) discover(host string) (string, error) {
	w.t.Helper()
	w.sim.ResetLog()
	w.slept = nil
	e := w.engine()
	e.DB, e.Store, e.Worker = nil, nil, nil
	file, err := e.Discover(w.t.Context(), &url.URL{Scheme: "https", Host: host})
	requests := w.sim.Requests()
	if assert.NotEmpty(w.t, requests) {
		assert.Equal(w.t, "/robots.txt", requests[0].Path)
	}
	var slept time.Duration
	for _, s := range w.slept {
		slept += s
	}
	assert.GreaterOrEqual(w.t, slept, time.Duration(len(requests)-1)*time.Second, "a pause of a second or more before each request after the first")
	return file, err
}

// lines returns the file's lines that are no comments.
func lines(file string) (out []string) {
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// A publisher's file is made of what its site shows, whatever names its articles, and a run
// by that file fetches them.
func TestDiscover(t *testing.T) {
	for name, tt := range map[string]struct {
		press outlet
		want  []string
	}{
		"a news sitemap": {outlet{Host: "sitemap.example", Path: "/economy/{yyyy}/{mm}/{dd}/demo-%s.html", Language: "fr", Zone: zone(t, "Europe/Paris"), Robots: "User-agent: *\nDisallow: /private/\nSitemap: https://sitemap.example/all.xml\nSitemap: https://sitemap.example/news.xml\n",
			Sources: map[string]string{"/": "home", "/news.xml": "news", "/all.xml": "urlset", "/feed": "rss"}},
			[]string{`id: "sitemap-example"`, `press: "Demo"`, `baseUrl: "https://sitemap.example"`, `articleUrl: "^/economy/20\\d\\d/\\d\\d/\\d\\d/demo-\\d{5,}\\.html"`, `zone: "Etc/GMT-1"`}},
		"an index": {outlet{Host: "index.example", Path: "/articles/%s", Language: "ko", Zone: provider.Seoul, Robots: "Sitemap: https://index.example/sitemaps.xml\n", Sources: map[string]string{"/": "home", "/sitemaps.xml": "index"}},
			[]string{`id: "index-example"`, `press: "Demo"`, `baseUrl: "https://index.example"`, `articleUrl: "^/articles/\\d{5,}"`, `zone: "Asia/Seoul"`}},
		"RSS": {outlet{Host: "rss.example.it", Path: "/notizie/demo_%s", Language: "it", Zone: zone(t, "Europe/Rome"), Sources: map[string]string{"/": "home", "/feed": "rss"}},
			[]string{`id: "rss-example-it"`, `press: "Demo"`, `baseUrl: "https://rss.example.it"`, "feeds:", `- "https://rss.example.it/feed"`, `articleUrl: "^/notizie/demo_\\d{5,}"`, `zone: "Europe/Rome"`}},
		"Atom": {outlet{Host: "atom.example", Path: "/news/view?no=%s", Language: "en", Sources: map[string]string{"/": "home", "/feed": "atom"}},
			[]string{`id: "atom-example"`, `press: "Demo"`, `baseUrl: "https://atom.example"`, "feeds:", `- "https://atom.example/feed"`, `articleUrl: "^/news/view\\?(?:.*&)?no="`, `zone: "UTC"`}},
		"a usual place": {outlet{Host: "usual.example", Path: "/{yyyy}-{mm}-{dd}/demo-%s/", Language: "ja", Zone: zone(t, "Asia/Tokyo"), Sources: map[string]string{"/sitemap_index.xml": "index"}},
			[]string{`id: "usual-example"`, `baseUrl: "https://usual.example"`, "sitemapHints:", `- "https://usual.example/sitemap_index.xml"`, `articleUrl: "^/20\\d\\d-\\d\\d-\\d\\d/demo-\\d{5,}"`, `zone: "Etc/GMT-9"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			w.add(tt.press)
			file, err := w.discover(tt.press.Host)
			require.NoError(t, err)
			assert.Equal(t, tt.want, lines(file), file)
			assert.Equal(t, 2, strings.Count(file, "# tried: https://"+tt.press.Host), file)
			assert.Equal(t, 2, strings.Count(file, `#   title "`), file)
			p := declared(t, file)
			r := w.run(p)
			assert.Equal(t, engine.Ran, r.State, r.Reason)
			assert.EqualValues(t, 12, r.Found)
			assert.EqualValues(t, 10, r.Inserted)
		})
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

// A site that forbids the crawler, or names nothing, is a clear error.
func TestDiscoverNothing(t *testing.T) {
	w := once(t)
	w.add(outlet{Host: "nothing.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/": "page"}})
	w.add(outlet{Host: "closed.example", Path: "/a/%s", Language: "en", Robots: "User-agent: *\nDisallow: /\n", Sources: map[string]string{"/": "home", "/feed": "rss"}})
	w.add(outlet{Host: "refuses.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/": "home"}}).answer("/", 403)
	w.add(outlet{Host: "slow.example", Path: "/a/%s", Language: "en", Robots: "User-agent: *\nCrawl-delay: 3600\n", Sources: map[string]string{"/": "home"}})
	for host, want := range map[string]string{"nothing.example": "no sitemap and no feed", "closed.example": "robots.txt", "refuses.example": "403", "slow.example": "asks for 1h0m0s"} {
		file, err := w.discover(host)
		assert.ErrorContains(t, err, want, host)
		assert.Empty(t, file)
		if host == "closed.example" {
			assert.Equal(t, []string{"/robots.txt"}, w.paths())
		}
	}
}
