//go:build unix

package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

const forSale = `<html><head><title>daily.example</title></head><body><h1>daily.example</h1>
<p>This domain is for sale. Buy this domain today.</p></body></html>`

// years is a publisher that publishes an article a day, at noon. Its sitemap names the newest
// twelve and one that robots.txt forbids, its feed the newest four.
type years struct {
	host  string
	day   int    // the newest article
	event string // what happens at the site
}

func (y *years) entry(n int) string {
	return fmt.Sprintf("<url><loc>https://%s/a/%d</loc><lastmod>%s</lastmod></url>", y.host, n, begin.AddDate(0, 0, n).Format(time.RFC3339))
}

func (y *years) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	article, source := strings.HasPrefix(r.URL.Path, "/a/"), r.URL.Path == "/map.xml" || r.URL.Path == "/rss"
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	page := ""
	switch {
	case y.event == "refuses", y.event == "refuses the feed" && r.URL.Path == "/rss":
		http.Error(rw, "no", http.StatusForbidden)
		return
	case y.event == "fails":
		http.Error(rw, "no", http.StatusServiceUnavailable)
		return
	case y.event == "moves":
		http.Redirect(rw, r, "https://new.example"+r.URL.Path, http.StatusMovedPermanently)
		return
	case y.event == "challenges":
		page = challenged
	case y.event == "closes":
		page = forSale
	case y.event == "asks for consent" && article:
		page = consent
	case r.URL.Path == "/robots.txt":
		rw.Header().Set("Content-Type", "text/plain")
		page = "User-agent: *\nDisallow: /a/0\n"
	case source:
		rw.Header().Set("Content-Type", "application/xml")
		most, step := 12, 1
		if r.URL.Path == "/rss" {
			most = 4
		} else if y.event == "shows half" {
			step = 2
		}
		for n := y.day; n > y.day-most; n -= step {
			page += y.entry(n)
		}
		page = "<urlset>" + y.entry(0) + page + "</urlset>"
	case article:
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/a/%d", &n) // 0 otherwise
		page = tale(`<meta property="article:published_time" content="`+begin.AddDate(0, 0, n).Format(time.RFC3339)+`">`, n)
	default:
		http.NotFound(rw, r)
		return
	}
	_, _ = rw.Write([]byte(page)) // it fails only when the client has closed the connection
}

// TestYear follows a publisher for a year, a run a week and each day while something happens.
// Whatever its site shows, each article that it names is stored once it is back, nothing else is, the
// retention holds, each cause is one alert, and the site gets no more requests than it must.
func TestYear(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 13
	p := declared(t, ofA)
	daily := &years{host: "daily.example"}
	w.sim.Handle("daily.example", daily)
	w.sim.Handle("new.example", &years{host: "new.example", day: 400})
	what := func(day int) (event string, state engine.State, requests int) {
		switch {
		case day >= 40 && day < 47:
			return "refuses", blocked, 1
		case day >= 60 && day < 67:
			return "challenges", blocked, 1
		case day >= 90 && day < 97: // each of two files, and the rules of both hosts
			return "moves", moved, 8
		case day >= 120 && day < 127:
			return "closes", closed, 1
		case day >= 150 && day < 153:
			return "asks for consent", blocked, 4
		case day == 180, day == 181:
			return "shows half", thin, 8
		case day == 182: // believed
			return "shows half", engine.Ran, 4
		case day >= 210 && day < 217:
			return "refuses the feed", engine.Ran, 10
		case day >= 240 && day < 242:
			return "fails", down, 3
		}
		return "", engine.Ran, 3 + 12
	}
	before, runs, closed, requests := "", 0, 0, 0
	for day := 20; day < 365; day++ {
		event, state, most := what(day)
		if event == "" && before == "" && day%7 > 0 {
			continue
		}
		daily.day, daily.event, w.now = day, event, begin.AddDate(0, 0, day).Add(time.Hour)
		at := w.now
		_, err := raw.Purge(t.Context(), w.db, at)
		require.NoError(t, err)
		e := w.engine()
		w.sim.ResetLog()
		r, err := e.Run(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, state, r.State, "day %d, %s: %s", day, event, r.Reason)
		require.LessOrEqual(t, len(w.sim.Requests()), most, "day %d: %v", day, w.paths())
		runs, requests = runs+1, requests+len(w.sim.Requests())
		if state != engine.Ran {
			closed++
		}
		require.NotContains(t, w.paths(), "/a/0", "robots.txt forbids it")
		require.Equal(t, w.count("true"), w.count("title LIKE 'Council % decides' AND raw_text LIKE '%council of town number%'"), "day %d", day)
		wrong := fmt.Sprintf("expires_at <= %d OR expires_at > %d", db.Micros(at), db.Micros(at.AddDate(0, 0, 31)))
		require.Zero(t, w.count(wrong), "day %d", day)
		require.Empty(t, w.letters, "day %d", day)
		if state == engine.Ran {
			for n := day; n > day-12 && (event == "" || event == "refuses the feed"); n-- {
				require.Equal(t, 1, w.count(fmt.Sprintf("url = 'https://daily.example/a/%d'", n)), "day %d, article %d", day, n)
			}
		}
		sites, err := ledger.Sites(t.Context(), w.store, "news")
		require.NoError(t, err)
		report := ledger.Report{RunID: e.RunID}
		report.AddSites(sites)
		switch event {
		case "refuses the feed":
			require.Len(t, r.Alerts, 1, day)
			require.Contains(t, r.Alerts[0], "a source of its articles refuses the crawler (it answered 403 for https://daily.example/rss)")
		default:
			require.Empty(t, r.Alerts, "day %d", day)
		}
		if state == engine.Ran {
			require.Empty(t, report.Alerts, day)
		} else {
			text := fmt.Sprintf("1 site is %s; what is stored of it stays: daily-example: %s", state, r.Reason)
			require.Equal(t, []string{text}, report.Alerts, day)
		}
		if event == "moves" {
			require.Equal(t, "daily.example moved to new.example: change baseUrl, feeds, sitemapHints", r.Reason)
		}
		before = event
	}
	st, err := ledger.ReadSite(t.Context(), w.store, "news", "daily-example")
	require.NoError(t, err)
	var was []string
	for _, c := range st.History {
		was = append(was, c.State)
	}
	assert.Equal(t, "open", st.State)
	assert.Equal(t, "down open thin open blocked open closed open moved open blocked open blocked open", strings.Join(was, " "))
	assert.Equal(t, [2]int{94, 35}, [2]int{runs, closed}) // these figures are in docs/operations.md
	t.Logf("%d runs, %d of a site that is not open, %d requests", runs, closed, requests)
}

// TestNothingIsConcluded has a site that shows a challenge after a page that is gone and one without
// text: neither is given up, and a replayed dead letter stays one that is requested again.
func TestNothingIsConcluded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		pages := map[string]string{"/rss": "<rss/>", "/map.xml": list("/a/4", "/a/3", "/a/2", "/a/1"),
			"/a/3": "<html><body></body></html>", "/a/2": challenged, "/a/1": challenged}
		w.serve("daily.example", pages)
		p := declared(t, ofA)
		again := []ledger.DeadLetter{{Input: ledger.Input{Source: "daily-example", URL: "https://daily.example/a/2"}}}
		require.NoError(t, raw.Reopen(t.Context(), w.db, again))
		for range 2 {
			r := w.run(p)
			require.Equal(t, blocked, r.State, r.Reason)
			require.Equal(t, []string{"/a/4", "/a/3"}, w.paths()[3:5])
			require.Empty(t, w.letters)
			left, err := raw.Again(t.Context(), w.db, "daily-example")
			require.NoError(t, err)
			require.Equal(t, []string{"https://daily.example/a/2"}, left)
		}
		pages["/a/2"], pages["/a/1"] = tale("", 2), tale("", 1)
		r := w.run(p)
		require.Equal(t, counts{Found: 4, Fetched: 3, Inserted: 2, Empty: 1, Failed: 1}, countsOf(r))
		require.Len(t, w.letters, 1)
		left, err := raw.Again(t.Context(), w.db, "daily-example")
		require.NoError(t, err)
		require.Empty(t, left)
		pages["/a/4"], pages["/a/3"] = tale("", 4), tale("", 3)
		require.Equal(t, counts{Found: 4, Fetched: 1, Inserted: 1}, countsOf(w.run(p)), "the open site had no text there")
	})
}

// TestHalfOfASitemapOfAnIndex has a publisher whose index names a sitemap of the last two days, one of each day and an
// archive. What leaves them with the time is nothing; half of one is.
func TestHalfOfASitemapOfAnIndex(t *testing.T) {
	w := once(t)
	p := declared(t, strings.Replace(ofA, "map.xml", "index.xml", 1))
	day, half := 20, false
	list := func(from, to int) string { // an article each two hours
		page := ""
		for n := from * 12; n < to*12; n++ {
			if half && n%2 == 0 {
				continue
			}
			page += fmt.Sprintf("<url><loc>https://daily.example/a/%d</loc><lastmod>%s</lastmod></url>", n+1, begin.Add(time.Duration(n)*2*time.Hour).Format(time.RFC3339))
		}
		return "<urlset>" + page + "</urlset>"
	}
	w.sim.Handle("daily.example", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		page, n := "", 0
		switch path := r.URL.Path; {
		case path == "/index.xml":
			for _, at := range []string{"/latest.xml", fmt.Sprintf("/day-%d.xml", day-1), fmt.Sprintf("/day-%d.xml", day), "/archive.xml"} {
				page += "<sitemap><loc>https://daily.example" + at + "</loc></sitemap>"
			}
			page = "<sitemapindex>" + page + "</sitemapindex>"
		case path == "/latest.xml":
			page = list(day-1, day+1)
		case path == "/archive.xml":
			was := half
			half = false
			page = list(0, day-1)
			half = was
		case strings.HasPrefix(path, "/a/"):
			_, _ = fmt.Sscanf(path, "/a/%d", &n) // 0 otherwise
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			page = tale(`<meta property="article:published_time" content="`+begin.Add(time.Duration(n)*2*time.Hour).Format(time.RFC3339)+`">`, n)
		default:
			if _, err := fmt.Sscanf(path, "/day-%d.xml", &n); err != nil {
				http.NotFound(rw, r)
				return
			}
			page = list(n, n+1)
		}
		_, _ = rw.Write([]byte(page)) // it fails only when the client has closed the connection
	}))
	for i, c := range []struct {
		day  int
		half bool
		want engine.State
	}{
		{20, false, engine.Ran}, {21, false, engine.Ran}, {22, false, engine.Ran}, {29, false, engine.Ran}, {40, false, engine.Ran},
		{40, true, thin}, {41, true, thin}, {42, true, engine.Ran}, {43, true, engine.Ran}, {44, false, engine.Ran},
	} {
		day, half, w.now = c.day, c.half, begin.AddDate(0, 0, c.day+1).Add(time.Duration(i)*time.Hour) // the clock never goes back
		r, err := w.engine().Run(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, c.want, r.State, "day %d: %s", c.day, r.Reason)
		if c.want == thin {
			require.Contains(t, r.Reason, "daily.example lists much less than it did")
		}
	}
}
