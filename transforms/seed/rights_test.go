//go:build unix

package seed_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
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
	require.Equal(t, []string{"allowed", "reserved", "contradictory", "unsaid"}, []string{row.RightsSearch, row.RightsAIInput, row.RightsAITrain, row.RightsArchive})
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

// The ledger takes at most a tenth of the CPU of a whole visit. The whole includes the simulated site's own work.
func TestShareOfRights(t *testing.T) {
	const domains = 60
	text := "User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=no\n" + strings.Repeat("Disallow: /private/*/x\n", 40) + strings.Repeat("\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n", 10)
	page := `<html><head><title>Start</title><meta name="robots" content="noai"></head><body>` + strings.Repeat(`<div class="teaser"><a href="/x">An article</a></div>`, 600) + `</body></html>`
	urls := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + strings.Repeat(`<url><loc>https://d.com/articles/1</loc><lastmod>2026-01-28</lastmod></url>`, 500) + `</urlset>`
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	cpu := func() float64 {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		if kind := map[string]string{"/robots.txt": "text/plain", "/sitemap.xml": "application/xml", "/": "text/html; charset=utf-8"}[r.URL.Path]; kind != "" {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, map[string]string{"/robots.txt": text, "/sitemap.xml": urls, "/": page}[r.URL.Path])
		} else {
			http.NotFound(w, r)
		}
	}
	j := newJob(t, webtest.Options{})
	var names []string
	for n := range domains {
		names = append(names, fmt.Sprintf("https://d%d.com", n))
		j.web.Handle(names[n][8:], http.HandlerFunc(serve))
	}
	j.cfg.Collect.Homepage = true
	j.put(day+"raw_0001.json", rawFile(names...))
	begin := cpu()
	require.EqualValues(t, domains, j.run().Counts["rights_stated"])
	visits := cpu() - begin
	begin = cpu()
	for _, name := range names {
		l := rights.Ledger{Agent: "mybot"}
		l.Requested(answer.Response{Status: http.StatusOK, URL: name + "/robots.txt", Body: []byte(text)}, answer.Robots, false, time.Unix(0, 0), "0")
		l.Answer(name+"/sitemap.xml", http.StatusOK, nil, []byte(urls), time.Unix(0, 0))
		l.Page(name+"/", http.StatusOK, header, []byte(page), time.Unix(0, 0))
		l.Rights("")
	}
	share := (cpu() - begin) / visits
	t.Logf("%.1f %%", 100*share)
	require.Less(t, share, 0.1)
}
