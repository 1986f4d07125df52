//go:build unix

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/news/engine"
)

const (
	challenged = `<!doctype html><html><head><title>Just a moment...</title><meta name="robots" content="noindex,nofollow"></head><body><h1>daily.example</h1>
<p>Checking your browser before you access the site. This process is automatic and your browser will redirect to what you asked for shortly. Please allow up to five seconds, and do not close this window.</p></body></html>`
	consent = `<!doctype html><html lang="en"><head><title>Before you continue</title><script src="https://cdn.privacy-mgmt.com/wrapperMessagingWithoutDetection.js"></script></head><body><h1>Before you continue</h1>
<p>We and our partners use cookies and similar technologies to store and access information on your device. Choose whether you consent.</p><button>Accept all</button><button>Reject all</button></body></html>`
	signIn = `<!doctype html><html lang="en"><head><title>Sign in</title></head><body><h1>Sign in</h1><form action="/login" method="post"><input type="email" name="user"><input type="password" name="password"><button>Sign in</button></form></body></html>`
	absent = `<!doctype html><html lang="en"><head><title>Page not found</title></head><body><h1>404</h1><p>Sorry, the page that you are looking for could not be found.</p><a href="/">Home</a></body></html>`
	locs   = "<urlset><url><loc>https://daily.example/a/3</loc></url><url><loc>https://daily.example/a/2</loc></url><url><loc>https://daily.example/a/1</loc></url></urlset>"
	ofA    = "baseUrl: https://daily.example\narticleUrl: ^/a/\nsitemapHints: [https://daily.example/map.xml]\nfeeds: [https://daily.example/rss]\n"
)

// tale is the page of an article with a text of its own.
func tale(head string, n int) string {
	return strings.ReplaceAll(story(head, fmt.Sprintf("<p>The council of town number %d has decided about %s.</p>", n, strings.Repeat(fmt.Sprintf("matter %d-%d, ", n, n*n), 20))), "A bank keeps its rate", fmt.Sprintf("Council %d decides", n))
}

// A wall in place of a page is never an article. One before the whole site ends the publisher,
// one at an address ends that article.
func TestWalls(t *testing.T) {
	about := story("", "<p>Cloudflare shows the words Just a moment to visitors while it checks their browsers, and a page not found is a 404.</p>"+strings.Repeat("<p>Sites ask for consent to cookies, and readers have to sign in. The court has found that this is against the law of the land, as the paper reported in May.</p>", 8))
	for name, tt := range map[string]struct {
		pages   map[string]string
		state   engine.State
		reason  string // a part of it
		stored  int64
		letter  string
		request int
	}{
		"a challenge":                {map[string]string{"/a/3": challenged}, blocked, "daily.example answers with a challenge for bots (Cloudflare): ", 0, "", 4},
		"a challenge later":          {map[string]string{"/a/2": challenged}, blocked, "daily.example answers with a challenge for bots (Cloudflare): ", 1, "", 5},
		"consent":                    {map[string]string{"/a/3": consent}, blocked, "daily.example shows a consent page in place of its pages: ", 0, "", 4},
		"a challenge for robots.txt": {map[string]string{"/robots.txt": challenged}, blocked, "daily.example answers with a challenge for bots (Cloudflare): ", 0, "", 1},
		"a challenge for the feed":   {map[string]string{"/rss": challenged}, engine.Ran, "", 3, "", 6},
		"all sources":                {map[string]string{"/rss": challenged, "/map.xml": challenged}, blocked, "daily.example answers with a challenge for bots (Cloudflare): ", 0, "", 3},
		"a login":                    {map[string]string{"/a/2": signIn}, engine.Ran, "", 2, "login", 6},
		"not found":                  {map[string]string{"/a/2": absent}, engine.Ran, "", 2, "soft_404", 6},
		"an article about them":      {map[string]string{"/a/2": about}, engine.Ran, "", 3, "", 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			pages := map[string]string{"/map.xml": locs, "/rss": "<rss><channel></channel></rss>", "/a/1": tale("", 1), "/a/2": tale("", 2), "/a/3": tale("", 3)}
			maps.Copy(pages, tt.pages)
			w.serve("daily.example", pages)
			p := declared(t, ofA)
			r := w.run(p)
			assert.Equal(t, tt.state, r.State, r.Reason)
			assert.Contains(t, r.Reason, tt.reason)
			assert.EqualValues(t, tt.stored, w.count("true"))
			assert.Len(t, w.paths(), tt.request)
			for _, l := range w.letters {
				assert.Equal(t, tt.letter, l.Kind)
			}
			assert.Equal(t, tt.letter != "", len(w.letters) == 1)
			assert.Equal(t, tt.state, w.run(p).State, "as it is in a later run")
			assert.Equal(t, w.count("true"), w.count("title LIKE 'Council%' OR raw_text LIKE '%found that this is against the law%'"))
			maps.Copy(pages, map[string]string{"/robots.txt": "User-agent: *\n", "/rss": "<rss><channel></channel></rss>", "/map.xml": locs, "/a/2": tale("", 2), "/a/3": tale("", 3)})
			w.run(p)
			assert.EqualValues(t, 3, w.count("true"), "when it is open again")
		})
	}
}

// A site that refuses for longer than an article's tries loses no article that it still names.
func TestBlockedForAWeek(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		pages := map[string]string{"/map.xml": locs, "/rss": "403", "/a/1": tale("", 1), "/a/2": "403", "/a/3": "403"}
		w.serve("daily.example", pages)
		p := declared(t, ofA)
		pages["/a/1"] = "403"
		for range 7 * 4 {
			r := w.run(p)
			assert.Equal(t, blocked, r.State)
			assert.Empty(t, r.Alerts, "the reason is the alert")
			assert.Len(t, w.paths(), 4, "robots.txt, the sources, one article")
			w.now = w.now.Add(6 * time.Hour)
		}
		for n := 1; n <= 3; n++ {
			pages[fmt.Sprint("/a/", n)] = tale("", n)
		}
		assert.EqualValues(t, 3, w.run(p).Inserted)
	})
}

// A page's own date obeys retention where the sitemap has none, and one that is ahead of now is
// not believed.
func TestDatesOfPages(t *testing.T) {
	w := once(t)
	dated := func(at time.Time) string {
		return `<meta property="article:published_time" content="` + at.Format(time.RFC3339) + `">`
	}
	w.serve("daily.example", map[string]string{"/map.xml": locs, "/rss": "<rss><channel></channel></rss>", "/a/1": tale(dated(begin.AddDate(0, -3, 0)), 1), "/a/2": tale(dated(begin.AddDate(1, 0, 0)), 2), "/a/3": tale(dated(begin.Add(-time.Hour)), 3)})
	p := declared(t, ofA)
	r := w.run(p)
	assert.Equal(t, counts{Found: 3, Fetched: 3, Inserted: 2}, countsOf(r))
	assert.Equal(t, []string{"1 articles have a date of publication that is ahead of now: it was left out"}, r.Limits)
	assert.Equal(t, 2, r.Health.Dated)
	rows, err := db.Texts(t.Context(), w.db, `SELECT url || ' ' || published_at FROM news_articles ORDER BY url`)
	require.NoError(t, err)
	assert.Equal(t, []string{"https://daily.example/a/2 0", fmt.Sprint("https://daily.example/a/3 ", begin.Add(-time.Hour).UnixMicro())}, rows)
	assert.Equal(t, counts{Found: 3}, countsOf(w.run(p)), "what is too old is not requested again")
}

// Each reason in the log has a code next to its sentence.
func TestCodes(t *testing.T) {
	empty := `<!doctype html><html lang="en"><head><title>Council 2 decides</title></head><body><article></article></body></html>`
	for name, tt := range map[string]struct {
		pages map[string]string
		codes []string
	}{
		"articles": {map[string]string{"/robots.txt": "User-agent: *\nDisallow: /a/3\n", "/map.xml": list("/a/1", "/a/2", "/a/3", "/a/4?skin=a", "/a/4?skin=b", "/a/5", "/a/6"),
			"/a/1": tale("", 1), "/a/2": empty, "/a/4?skin=a": tale("", 4), "/a/4?skin=b": tale("", 4), "/a/5": signIn, "/rss": "<rss/>"},
			[]string{"duplicate", "empty_content", "http_404", "robots_deny", "wall"}},
		"a wall":     {map[string]string{"/map.xml": challenged, "/rss": challenged}, []string{"site_blocked", "wall"}},
		"no sources": {map[string]string{"/map.xml": "no sitemap", "/robots.txt": "User-agent: *\nDisallow: /rss\n"}, []string{"robots_deny", "unreadable"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := once(t)
			w.serve("daily.example", tt.pages)
			var b bytes.Buffer
			w.run(declared(t, ofA), func(e *engine.Engine) { e.Log = slog.New(slog.NewJSONHandler(&b, nil)) })
			var codes []string
			for line := range strings.Lines(b.String()) {
				var said struct{ Msg, Code, Reason, Error string }
				require.NoError(t, json.Unmarshal([]byte(line), &said))
				assert.Equal(t, said.Reason+said.Error != "", said.Code != "", line)
				if said.Code != "" && !slices.Contains(codes, said.Code) {
					codes = append(codes, said.Code)
				}
			}
			slices.Sort(codes)
			assert.Equal(t, tt.codes, codes)
		})
	}
	w := once(t)
	site := w.add(outlet{Host: "daily.example", Path: "/a/%s", Language: "en", Sources: map[string]string{"/map.xml": "urlset", "/rss": "rss"}})
	site.answer("*", 429)
	var b bytes.Buffer
	w.run(declared(t, ofA), func(e *engine.Engine) { e.Log = slog.New(slog.NewJSONHandler(&b, nil)) })
	assert.Contains(t, b.String(), `"code":"http_429"`)
}
