//go:build unix

package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// saying are ways in which publishers speak of use, with the purposes that their standards' texts say they reserve.
var saying = []struct{ robots, header, head, reserves string }{
	{},
	{robots: "Content-Signal: search=yes, ai-train=no", reserves: "ai-train"},
	{robots: "Content-Signal: /articles/1 ai-input=no", reserves: "ai-input"},
	{robots: "\nUser-agent: OAI-SearchBot\nDisallow: /", reserves: "search"},
	{robots: "Content-Signal: ai-train=yes\n\nUser-agent: CCBot\nDisallow: /", reserves: "ai-train archive"},
	{robots: "\nUser-agent: CCBot\nDisallow: /old/"},
	{header: "X-Robots-Tag: noai, noarchive", reserves: "ai-train archive"},
	{header: "X-Robots-Tag: otherbot: noai"},
	{header: "Tdm-Reservation: 1", reserves: "ai-train"},
	{head: `<meta name="robots" content="nosnippet">`, reserves: "ai-input"},
	{head: `<meta name="demobot" content="noindex">`, reserves: "search"},
	{head: `<meta name="tdm-reservation" content="0">`},
}

// With a purpose an article that its publisher reserves for it is not requested (robots.txt) or not stored (response,
// page), and others are, by the publisher's own log. What an earlier run without the purpose stored is withdrawn
// without a request, and comes back when the purpose changes.
func TestPurpose(t *testing.T) {
	t.Parallel()
	w := once(t)
	n := 0
	for range 6 { // 288 publishers
		for _, says := range saying {
			for _, purpose := range rights.Purposes {
				n++
				host := fmt.Sprintf("press%d.example.com", n)
				var mu sync.Mutex
				var asked []string
				w.sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					mu.Lock()
					asked = append(asked, r.URL.Path)
					mu.Unlock()
					switch r.URL.Path {
					case "/robots.txt":
						rw.Header().Set("Content-Type", "text/plain")
						_, _ = io.WriteString(rw, "User-agent: *\nAllow: /\n"+says.robots+"\n\nSitemap: https://"+host+"/map/sitemap.xml\n")
					case "/map/sitemap.xml":
						rw.Header().Set("Content-Type", "application/xml")
						_, _ = fmt.Fprintf(rw, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://%s/articles/1</loc><lastmod>2026-03-01</lastmod></url></urlset>`, host)
					case "/articles/1":
						if name, value, ok := strings.Cut(says.header, ": "); ok {
							rw.Header().Set(name, value)
						}
						rw.Header().Set("Content-Type", "text/html; charset=utf-8")
						_, _ = fmt.Fprintf(rw, `<html><head><title>Article of %[1]s</title>%[2]s<meta property="article:published_time" content="2026-03-01T08:00:00Z"></head><body><article><h1>Article of %[1]s</h1><p>%[3]s</p></article></body></html>`,
							host, says.head, strings.Repeat("The text of the article at "+host+" is one of several. ", 20))
					default:
						http.NotFound(rw, r)
					}
				}))
				p, err := provider.Declared(fmt.Appendf(nil, "id: press%d\npress: Press\nbaseUrl: https://%s\nsitemapHints: [\"https://%s/map/sitemap.xml\"]\narticleUrl: ^/articles/(\\d+)\n", n, host, host))
				require.NoError(t, err)
				about := fmt.Sprintf("%s for %s: %+v", host, purpose, says)
				reserved := slices.Contains(strings.Fields(says.reserves), string(purpose))
				where := fmt.Sprintf("source = 'press%d'", n)
				with := func(p rights.Purpose) func(*engine.Engine) { return func(e *engine.Engine) { e.Purpose = p } }
				before := n%2 == 0
				if before {
					w.run(p)
					require.Equal(t, 1, w.count(where), "%s: without a purpose nothing is refused", about)
					asked = nil
				}
				r := w.run(p, with(purpose))
				fetched := slices.Contains(asked, "/articles/1")
				stored := w.count(where) == 1
				require.Equal(t, !reserved, stored, about)
				require.Equal(t, reserved, r.Reserved > 0, about)
				if reserved && says.robots != "" || before {
					require.False(t, fetched, about)
				}
				var decisions int
				require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM news_reserved WHERE source = $1 AND sha256 <> '' AND raw <> '' AND read_at > 0`, p.ID()).Scan(&decisions))
				require.Equal(t, reserved, decisions > 0, about)
				if !reserved {
					continue
				}
				asked = nil
				w.run(p, with(purpose))
				require.NotContains(t, asked, "/articles/1", "%s: it is known to be reserved", about)
				w.run(p)
				require.Equal(t, 1, w.count(where), "%s: without the purpose it comes back", about)
			}
		}
	}
	require.GreaterOrEqual(t, n, 250)
}

// With a purpose an article that answers 402 counts as reserved, and is not requested again for two weeks.
func TestSold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		now := w.now.Format(time.RFC3339)
		sold, all := true, false
		w.sim.Handle("press.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/sitemap.xml":
				rw.Header().Set("Content-Type", "application/xml")
				for n := range 4 {
					_, _ = fmt.Fprintf(rw, `%s<url><loc>/articles/%d</loc><lastmod>%s</lastmod></url>`, map[int]string{0: "<urlset>"}[n], n+1, now)
				}
				_, _ = io.WriteString(rw, "</urlset>")
			case all && strings.HasPrefix(r.URL.Path, "/articles/"), r.URL.Path == "/articles/1" && sold:
				rw.Header().Set("Crawler-Price", "USD 0.01")
				rw.WriteHeader(http.StatusPaymentRequired)
			case strings.HasPrefix(r.URL.Path, "/articles/"):
				rw.Header().Set("Content-Type", "text/html")
				_, _ = fmt.Fprintf(rw, `<html><head><title>Article %[1]s</title></head><body><article><h1>Article %[1]s</h1><p>%[2]s</p></article></body></html>`, r.URL.Path, strings.Repeat("The text of "+r.URL.Path+" is long. ", 30))
			default:
				http.NotFound(rw, r)
			}
		}))
		p, err := provider.Declared([]byte("id: press\npress: Press\nbaseUrl: https://press.example.com\nsitemapHints: [\"https://press.example.com/sitemap.xml\"]\narticleUrl: ^/articles/(\\d+)\n"))
		require.NoError(t, err)
		run := func(asked bool, reserved, failed int64, stored int) {
			t.Helper()
			r := w.run(p, func(e *engine.Engine) { e.Purpose = rights.Archive })
			require.Equal(t, []any{asked, reserved, failed, stored}, []any{slices.Contains(w.paths(), "/articles/1"), r.Reserved, r.Failed, w.count("source = 'press'")})
		}
		require.EqualValues(t, 1, w.run(p).Failed, "without a purpose")
		run(true, 1, 0, 3)
		var why string
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT verdict || ' ' || line || ' ' || raw FROM news_reserved WHERE sha256 <> '' AND url LIKE '%/articles/1'`).Scan(&why))
		require.Equal(t, "reserved 0 402 Payment Required USD 0.01", why)
		sold = false
		run(false, 0, 0, 3)
		w.now = w.now.Add(15 * 24 * time.Hour)
		run(true, 0, 0, 4)
		all = true // a site that sells everything is in question: nothing is concluded
		for range 3 {
			w.now = w.now.Add(24 * time.Hour)
			now = w.now.Format(time.RFC3339)
			r := w.run(p, func(e *engine.Engine) { e.Purpose = rights.Archive })
			require.Equal(t, []any{engine.State("blocked"), int64(0), 4}, []any{r.State, r.Reserved, w.count("source = 'press'")}, r.Reason)
		}
	})
}

// BenchmarkRights measures the ledger's share of the CPU that an article's page takes: of the ledger and the reading of the
// article alone, so less of a whole visit, which has requests and rows too.
func BenchmarkRights(b *testing.B) {
	robots := "User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=no\n" + strings.Repeat("\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n", 10)
	page := []byte(`<html><head><title>An article of the press</title><meta name="robots" content="noai"></head><body>` + strings.Repeat(`<div class="teaser"><a href="/x">Another article</a></div>`, 300) +
		`<article><h1>An article of the press</h1>` + strings.Repeat(`<p>The council of the town met again to speak of the bridge, <a href="/x">which</a> was closed.</p>`, 60) + `</article></body></html>`)
	var site rights.Ledger
	site.Agent = "demobot"
	site.Requested(answer.Response{Status: http.StatusOK, URL: "https://a.example/robots.txt", Body: []byte(robots)}, answer.Robots, false, time.Unix(0, 0), "")
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	var ledger, all time.Duration
	for b.Loop() {
		begin := time.Now()
		l := site.Clone()
		l.Page("https://a.example/1", http.StatusOK, header, page, begin)
		l.Proof("https://a.example/1")
		ledger += time.Since(begin)
		if _, err := article.Extract(page, "text/html; charset=utf-8", article.Rules{}); err != nil {
			b.Fatal(err)
		}
		all += time.Since(begin)
	}
	b.ReportMetric(100*ledger.Seconds()/all.Seconds(), "%ledger")
}
