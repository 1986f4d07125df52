//go:build unix

package seed_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// What a site says about use is read from the answers of an ordinary visit; a wall, a page or nothing in place of robots.txt says nothing.
func TestRights(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("says.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("X-Robots-Tag", "noindex") // about robots.txt itself
			_, _ = io.WriteString(w, "User-agent: *\nContent-Signal: search=yes,ai-train=yes\nAllow: /\n\nUser-agent: GPTBot\nUser-agent: ChatGPT-User\nDisallow: /\n")
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><head>\n<meta name=robots content=noarchive></head><body>Welcome to the site of says.com</body></html>")
		default:
			http.NotFound(w, r)
		}
	}))
	page := "<html><head><title>Start</title></head><body><p>Welcome.</p>\n<p>\nUser-agent: GPTBot\nDisallow: /\n</p></body></html>"
	wall := `<html><head><title>Just a moment...</title></head><body>User-agent: *<br>Content-Signal: ai-train=yes<script src="/cdn-cgi/challenge-platform/x.js"></script></body></html>`
	for name, body := range map[string]string{"page.com": page, "wall.com": wall} {
		j.web.Handle(name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Tdm-Reservation", "1")
			_, _ = io.WriteString(w, body)
		}))
	}
	j.cfg.Collect.Homepage = true
	total := j.crawl("https://says.com", "https://wall.com", "https://page.com", "https://kind-no-such-host-1.com")
	r := j.metadata(raw, "says.com").Rights
	require.NotNil(t, r)
	require.Equal(t, rights.Verdicts{Search: rights.Allowed, AIInput: rights.Reserved, AITrain: rights.Contradictory, Archive: rights.Unsaid}, r.Verdicts)
	require.Equal(t, []rights.Statement{
		{Source: "https://says.com/robots.txt", Line: 2, Raw: "Content-Signal: search=yes,ai-train=yes", Says: "search=allowed ai-train=allowed"},
		{Source: "https://says.com/robots.txt", Line: 7, Raw: "Disallow: /", Says: "ai-train=reserved ai-input=reserved", Agents: []string{"GPTBot", "ChatGPT-User"}},
		{Source: "https://says.com/robots.txt", Raw: "X-Robots-Tag: noindex", Says: "search=reserved", Only: "document"},
		{Source: "https://says.com/", Line: 2, Raw: "<meta name=robots content=noarchive>", Says: "archive=reserved", Only: "document"},
	}, r.Statements)
	require.Len(t, r.Documents, 2)
	row := j.row("says.com", "2026-01-28")
	require.Equal(t, []string{"allowed", "reserved", "contradictory", "unsaid"}, []string{row.Search, row.AIInput, row.AITrain, row.Archive})
	require.Equal(t, []string{"/robots.txt", "/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml", "/"}, j.asked("says.com"))
	require.Equal(t, []int64{1, 0, 1}, []int64{total.Counts["rights_reserved_ai_input"], total.Counts["rights_reserved_search"], total.Counts["rights_contradictory"]})
	unsaid := rights.Verdicts{Search: rights.Unsaid, AIInput: rights.Unsaid, AITrain: rights.Unsaid, Archive: rights.Unsaid}
	for name, why := range map[string]string{"wall.com": "challenge in place of robots.txt", "kind-no-such-host-1.com": "no answer for robots.txt"} {
		r := j.metadata(raw, name).Rights
		require.Equal(t, unsaid, r.Verdicts, name)
		require.Equal(t, why, r.Why, name)
		require.Empty(t, r.Statements, name)
	}
	r = j.metadata(raw, "page.com").Rights
	require.Contains(t, r.Why, "in place of robots.txt")
	require.Equal(t, rights.Verdicts{Search: rights.Unsaid, AIInput: rights.Unsaid, AITrain: rights.Reserved, Archive: rights.Unsaid}, r.Verdicts, "by the homepage's tdm-reservation")
}
