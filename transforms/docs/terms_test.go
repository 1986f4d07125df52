package docs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// legal is a page of terms on the provider's front site. around is what surrounds the
// terms, such as a navigation with the day.
func legal(terms, around string) http.HandlerFunc {
	return html("<!doctype html><html><head><title>Terms</title></head><body><nav><a href=/>" + around + "</a></nav><main><h1>Terms of service</h1><p>" +
		terms + " Whoever uses the service agrees to all of this, and may stop to use it at any time.</p><p>&copy; " + around + " P, all rights reserved</p></main><footer>Printed on " + around + "</footer></body></html>")
}

// The page of the terms is asked for once a session. That its text changed is an alert
// until somebody has read it after that; that it cannot be read fails nothing.
func TestTerms(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const front = "www.example.com"
		w.policy.TermsURL = "https://" + front + "/legal"
		w.set("/docs", doc("seed"))
		var mu sync.Mutex
		var asked []string
		var at []time.Time
		answer := legal("Crawlers are welcome.", "Monday")
		set := func(h http.HandlerFunc) {
			mu.Lock()
			defer mu.Unlock()
			answer = h
		}
		w.sim.Handle(front, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked, at = append(asked, r.URL.Path+" "+r.Header.Get("If-None-Match")), append(at, w.time.Now())
			h := answer
			mu.Unlock()
			if r.URL.Path == "/robots.txt" {
				h = text("User-agent: *\nDisallow: /secret\n")
			}
			h(rw, r)
		}))
		requests := func() string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { asked = nil }()
			return strings.Join(asked, ", ")
		}
		crawl := func(days int) (ProviderReport, []Alert) {
			t.Helper()
			w.time.Advance(time.Duration(days) * 24 * time.Hour)
			w.newSession()
			state, reason := w.run()
			require.Equal(t, []any{Done, ""}, []any{state, reason})
			r := w.report()
			return r.Providers[0], r.Alerts
		}
		p, alerts := crawl(0)
		require.Equal(t, "/robots.txt , /legal ", requests())
		require.GreaterOrEqual(t, at[1].Sub(at[0]), time.Second, "the pause")
		require.Empty(t, alerts)
		require.Nil(t, p.Terms.ChangedAt)
		require.Equal(t, w.time.Now().UTC().Format(time.DateOnly), p.Terms.ReadAt.Format(time.DateOnly))
		w.run()
		require.NoError(t, w.crawl.checkTerms(t.Context())) // as after a kill before the first page
		require.Empty(t, requests(), "once a session")

		// Only the words of the terms count.
		set(tagged(`"t"`, legal("Crawlers <b>are</b> welcome.", "Tuesday")))
		_, alerts = crawl(7)
		require.Empty(t, alerts)
		require.Equal(t, "/robots.txt , /legal ", requests())
		p, _ = crawl(7)
		require.Equal(t, `/robots.txt , /legal "t"`, requests())
		require.Equal(t, "2026-03-09", p.Terms.ReadAt.Format(time.DateOnly), "304: it is still the same")

		for name, c := range map[string]struct {
			answer http.HandlerFunc
			says   string
		}{
			"gone":    {status(404), "status 404"},
			"broken":  {breaking, "reset"},
			"login":   {html("<title>Log in</title><main><h1>Log in</h1><input type=password></main>"), "a login form"},
			"picture": {typed("image/png", "\x89PNG\r\n\x1a\n"), "no page but image/png"},
			"moved":   {status(301, "Location", "https://elsewhere.example/legal"), "write https://elsewhere.example/legal into tos_url"},
			"pause":   {status(503, "Retry-After", "7200"), "pause"},
		} {
			set(c.answer)
			p, alerts = crawl(1)
			require.Empty(t, alerts, name)
			require.Contains(t, p.Terms.Reason, c.says, name)
			require.Equal(t, "2026-03-09", p.Terms.ReadAt.Format(time.DateOnly), name)
		}

		// Another text is an alert, with the days, until it was read after that.
		set(legal("Crawlers are forbidden.", "Monday"))
		p, alerts = crawl(1)
		says := "P: its terms of service changed between 2026-03-09 and 2026-03-16; read https://www.example.com/legal again, and write the day into tos_checked"
		require.Equal(t, []Alert{{Name: "terms", Provider: "p", Text: says}}, alerts)
		require.Equal(t, strings.TrimPrefix(says, "P: "), p.TermsChanged)
		w.policy.TermsDate = "2026-03-10" // before the change
		_, alerts = crawl(1)
		require.Len(t, alerts, 1)
		set(legal("Crawlers are forbidden on Sundays.", "Monday"))
		_, alerts = crawl(1)
		require.Contains(t, alerts[0].Text, "between 2026-03-09 and 2026-03-18", "nobody has read the text of the 16th")
		w.policy.TermsDate = "2026-03-19"
		p, alerts = crawl(1)
		require.Empty(t, alerts)
		require.Empty(t, p.TermsChanged)
		require.NotNil(t, p.Terms.ChangedAt)
		set(legal("Crawlers pay.", "Monday"))
		_, alerts = crawl(0)
		require.Contains(t, alerts[0].Text, "between 2026-03-19 and 2026-03-19", "they were read that day, but which text?")
		w.policy.TermsDate = "2026-03-20"
		_, alerts = crawl(1)
		require.Empty(t, alerts)

		// The page of another address is another page, and what robots.txt forbids is not asked for.
		requests()
		w.policy.TermsURL = "https://" + front + "/secret"
		p, alerts = crawl(1)
		require.Empty(t, alerts)
		require.Equal(t, "/robots.txt ", requests())
		require.Contains(t, p.Terms.Reason, "robots.txt")

		s, err := store.Open(t.Context(), w.dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		removed, err := purge(t, w.db, s, "p", w.time.Now())
		require.NoError(t, err)
		require.EqualValues(t, 1, removed.Rows["docs_terms"])
		require.EqualValues(t, 2, removed.Rows["docs_robots"])
	})
}

// Hosts that are asked for by the providers of several hosts are in one lane.
func TestTermsInOneLane(t *testing.T) {
	t.Parallel()
	var cfg Config
	var hosts []Host
	for i, terms := range []string{"", "https://www.a.example/legal", "https://h6.example/", "https://b.example/legal", "https://h0.example/terms", "https://a.example/legal", "https://b.example/x", "https://h5.example/x"} {
		id := fmt.Sprint("p", i)
		cfg.Policies = append(cfg.Policies, policy.Policy{ProviderID: id, TermsURL: terms})
		hosts = append(hosts, Host{Name: fmt.Sprintf("h%d.example", i), Providers: []string{id}})
	}
	require.Equal(t, []int{0, 1, 2, 2, 0, 1, 2, 1}, cfg.groups(hosts))
}
