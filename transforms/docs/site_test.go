package docs

import (
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// TestSiteNotOpen has a site that refuses, moves, closes or shows half of its pages for a
// session, and is open again in the next one: nothing is lost.
func TestSiteNotOpen(t *testing.T) {
	t.Parallel()
	pages := []string{"/docs", "/docs/a", "/docs/b", "/docs/c", "/docs/d", "/docs/e", "/docs/f", "/docs/g"}
	away := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://developer.example.com"+r.URL.Path, http.StatusMovedPermanently)
	}
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		from     int // the first page that answers so
		state    State
		reason   string
		requests int
	}{
		"403 for all":   {status(403), 0, siteBlocked, "docs.example.com refuses (403 for 1 of 1 seeds, 5 of 5 known URLs)", 6},
		"403 for pages": {status(403), 1, siteBlocked, "docs.example.com refuses (403 for 5 of 5 known URLs)", 6},
		"moved":         {away, 0, siteMoved, "docs.example.com moved to developer.example.com: change seed_urls", 6},
		"404 for all":   {status(404), 0, siteClosed, "docs.example.com has nothing that was there (404 for 1 of 1 seeds, 5 of 5 known URLs)", 6},
		"soft 404":      {html(`<html><head><title>404 - Page not found</title></head><body><main><h1>Page not found</h1><p>The page you are looking for does not exist.</p></main></body></html>`), 0, siteClosed, "docs.example.com has nothing that was there (soft 404 for 1 of 1 seeds, 5 of 5 known URLs)", 6},
		"a challenge":   {html(`<html><head><title>Just a moment...</title></head><body><h1>docs.example.com</h1><h2>Verifying you are human. This may take a few seconds.</h2><div id="challenge-error-text">Enable JavaScript and cookies to continue</div><script src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1"></script></body></html>`), 0, siteBlocked, "docs.example.com answers with a challenge for bots (Cloudflare)", 6},
		"half of it":    {status(404), 4, siteThin, "docs.example.com shows much less than it did: 4 of 7 known URLs are gone", 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				open := func() {
					w.set("/docs", doc("seed", pages[1:]...))
					for _, p := range pages[1:] {
						w.set(p, doc(p))
					}
				}
				open()
				w.run()
				before := w.stored()
				w.paths()
				for range 2 {
					w.newSession()
					for _, p := range pages[c.from:] {
						w.set(p, c.answer)
					}
					state, reason := w.run()
					require.Equal(t, c.state, state, reason)
					require.Contains(t, reason, c.reason)
					require.Len(t, w.paths(), c.requests)
					require.Equal(t, before, w.stored())
					require.Empty(t, w.strings(`SELECT key FROM docs_blocked_urls`))
				}
				w.newSession()
				open()
				state, reason := w.run()
				require.Equal(t, Done, state, reason)
				require.Len(t, w.paths(), len(pages))
				require.Equal(t, before, w.stored())
			})
		})
	}
}

// TestRefusedRobots names a robots.txt that refuses in the reason.
func TestRefusedRobots(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/robots.txt", status(403))
		w.set("/docs", status(403))
		state, reason := w.run()
		require.Equal(t, siteBlocked, state)
		require.Contains(t, reason, "docs.example.com refuses (403 for 1 of 1 seeds, robots.txt)")
		require.Equal(t, []string{"/docs"}, w.paths())
	})
}

// A page in place of robots.txt has no rules, so its site is crawled. A wall that no site has before a single page says nothing
// of what the site allows, so nothing is requested.
func TestPageForRobots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		state State
	}{
		"challenge":   {`<html><head><title>Just a moment...</title></head><body><div id="challenge-error-text">Enable JavaScript and cookies to continue</div><script src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1"></script></body></html>`, siteBlocked},
		"parked":      {`<html><head><title>example.com is for sale</title></head><body><h1>This domain is for sale</h1><a href="https://www.sedo.com/">Buy this domain</a></body></html>`, siteClosed},
		"consent":     {`<html><head><title>Before you continue</title></head><body><div id="onetrust-consent-sdk"><h1>We value your privacy</h1><p>We and our partners use cookies.</p><button>Accept all</button></div></body></html>`, siteBlocked},
		"maintenance": {`<html><head><title>Down for maintenance</title></head><body><h1>We are down for scheduled maintenance</h1><p>We will be back soon.</p></body></html>`, Unreachable},
		"front page":  {`<!doctype html><html><head><title>Docs</title></head><body><main><h1>Docs</h1><p>User-agent: a word of this page</p></main></body></html>`, Done},
		"error page":  {`<html><head><title>500 Internal Server Error</title></head><body><h1>500 Internal Server Error</h1></body></html>`, Done},
		"soft 404":    {`<html><head><title>404 - Page not found</title></head><body><h1>Page not found</h1></body></html>`, Done},
		"login":       {`<html><head><title>Sign in</title></head><body><form action="/login"><input name="user"><input type="password" name="password"></form></body></html>`, Done},
		"with a rule": {"User-agent: *\nDisallow: /docs\n", Done},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := db.Open(t.Context(), dbtest.SQLite(t))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			w := newWorld(t, d)
			w.pages("a")
			w.set("/robots.txt", html(c.body))
			w.policy.Sources = nil
			w.policy.SitemapURL = "https://" + host + "/sitemap.xml"
			state, reason := w.run()
			require.Equal(t, c.state, state, reason)
			asked := w.paths()
			if c.state != Done {
				require.Empty(t, asked)
			}
			require.Equal(t, c.state == Done && name != "with a rule", slices.Contains(asked, "/docs/a"), asked)
		})
	}
}

// TestRefusedMidway has a site that refuses from the 41st request on. Ten refusals later the seed is
// requested once more, and no other page.
func TestRefusedMidway(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, pages := noticeWorld(t, d, 60, numbered)
		before, n := w.stored(), 0
		limited := func(h http.HandlerFunc) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				if n++; n > 40 {
					h = status(403)
				}
				h(rw, r)
			}
		}
		w.set("/docs", limited(doc("seed", pages...)))
		for i, p := range pages {
			w.set(p, limited(numbered(i)))
		}
		state, reason := w.run()
		require.Equal(t, siteBlocked, state, reason)
		asked := w.paths()
		require.Len(t, asked, 51)
		require.Equal(t, "/docs", asked[50])
		require.Equal(t, before, w.stored())
		require.Empty(t, w.strings(`SELECT key FROM docs_blocked_urls`))
	})
}

// TestDeathsAtLists reads the pages although processes died at the sitemap and the llms.txt of their
// site. Each has a dead letter, and is read again when its deaths are forgotten.
func TestDeathsAtLists(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := offering(t, d)
		const at = "https://" + host
		w.policy.SitemapURL = at + "/sitemap.xml"
		w.set("/sitemap.xml", typed("application/xml", `<urlset><url><loc>`+at+`/docs/b</loc></url></urlset>`))
		w.set("/llms.txt", typed("text/plain", "# Demo\n- [C](/docs/c)\n"))
		w.set("/docs/c", doc("c"))
		lists := []string{at + "/llms.txt", at + "/sitemap.xml"}
		s, err := store.Open(t.Context(), w.dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for _, list := range lists {
			for process, alone := range map[string]bool{"first": false, "second": true} {
				require.NoError(t, ledger.SayBegun(t.Context(), s, Job, ledger.Unit(Job, ledger.Input{URL: list, Source: w.policy.ProviderID}), process, alone))
			}
		}
		stored := func() []string { return w.strings(`SELECT key FROM docs_pages WHERE content_hash <> '' ORDER BY key`) }
		state, reason := w.run()
		require.Equal(t, Done, state, reason)
		require.Equal(t, []string{at + "/docs", at + "/docs/a", at + "/docs/hidden"}, stored())
		var letters []ledger.DeadLetter
		var died []string
		for l, err := range ledger.ListDeadLetters(t.Context(), s, Job, "") {
			require.NoError(t, err)
			letters, died = append(letters, l), append(died, l.Kind+" "+l.Input.URL)
		}
		require.ElementsMatch(t, []string{ledger.Died + " " + lists[0], ledger.Died + " " + lists[1]}, died)
		require.NoError(t, ledger.ForgetDeaths(t.Context(), s, letters))
		w.newSession()
		w.run()
		require.Equal(t, []string{at + "/docs", at + "/docs/a", at + "/docs/b", at + "/docs/c", at + "/docs/hidden"}, stored())
	})
}

// TestSphinxSources does not request the sources that Sphinx publishes next to its pages.
func TestSphinxSources(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", doc("seed", "/docs/_sources/index.rst.txt", "/docs/sources.txt"))
		w.set("/docs/sources.txt", doc("sources"))
		w.run()
		require.Equal(t, []string{"/docs", "/docs/sources.txt"}, w.paths())
	})
}

// TestIndexPages stores one of the pages that show a folder's text, in whatever order they come, and
// both if an earlier version stored both.
func TestIndexPages(t *testing.T) {
	t.Parallel()
	for name, links := range map[string][]string{"folder first": {"/docs/a/", "/docs/a/index.html", "/docs/a/default.aspx", "/docs/b/index.html"}, "index first": {"/docs/a/index.html", "/docs/b/index.html", "/docs/a/"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.set("/docs", doc("seed", links...))
				same := html("<title>A</title><main><h1>A</h1><p>The text of the folder.</p></main>")
				for _, at := range []string{"/docs/a/", "/docs/a/index.html", "/docs/a/default.aspx"} {
					w.set(at, same)
				}
				w.set("/docs/b/", doc("b"))
				w.set("/docs/b/index.html", doc("another b", "/docs/b/"))
				want := []string{"https://docs.example.com/docs", "https://docs.example.com/docs/a", "https://docs.example.com/docs/b", "https://docs.example.com/docs/b/index.html"}
				stored := func() []string { return w.strings(`SELECT key FROM docs_pages WHERE content_hash <> '' ORDER BY key`) }
				for range 3 {
					state, reason := w.run()
					require.Equal(t, Done, state, reason)
					require.Equal(t, want, stored())
					require.Equal(t, row{Status: Skipped, Reason: "a copy of https://docs.example.com/docs/a, which has the same text", Depth: 1, HTTP: 200}, w.row("/docs/a/index.html"))
					w.newSession()
				}
				s, err := store.Open(t.Context(), w.dir)
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				dir := t.TempDir()
				n, err := WriteFolder(t.Context(), d, s, dir, []string{w.policy.ProviderID}, func(string) bool { return true }, true, io.Discard)
				require.NoError(t, err)
				files := 0
				require.NoError(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						files++
					}
					return err
				}))
				require.Equal(t, []int{len(want), len(want)}, []int{n, files})
			})
		})
	}
}

// TestRedirectsToStored takes a page for a copy that redirects to a stored one, also for a while. The
// start page is no original: sites show it in place of anything.
func TestRedirectsToStored(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c"))
		for _, name := range []string{"a", "b", "c"} {
			w.set("/docs/"+name, doc(name))
		}
		w.run()
		w.newSession()
		w.set("/docs/b", status(307, "Location", "/docs/a"))
		w.set("/docs/c", status(302, "Location", "/docs"))
		w.run()
		require.Equal(t, row{Status: Skipped, Reason: "redirects to https://docs.example.com/docs/a, which this session has already requested", Depth: 1}, w.row("/docs/b"))
		require.Equal(t, row{Status: Skipped, Reason: "redirects to https://docs.example.com/docs, which this session has already requested", Depth: 1, Content: true}, w.row("/docs/c"))
	})
}

// TestYear follows a site for 52 weekly sessions. It refuses, moves, closes, hides pages, shows a
// consent page and gets a new version; after each it is whole again, and what is really gone goes.
func TestYear(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		away := func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://developer.example.com"+r.URL.Path, http.StatusFound)
		}
		consent := html(`<html><head><title>Before you continue</title></head><body><form action="https://consent.example.com/save"><h1>Before you continue</h1><p>We use cookies. Accept all cookies to continue to the site.</p><button>Accept all</button><button>Reject all</button></form></body></html>`)
		site := func(base string, from int) { // all pages from one on, those before answer 404
			var links []string
			for i, n := range names {
				if w.set("/docs/"+base+n, status(404)); i >= from {
					w.set("/docs/"+base+n, doc(n))
					links = append(links, "/docs/"+base+n)
				}
			}
			w.set("/docs", doc("seed", links...))
		}
		all := func(h http.HandlerFunc) {
			w.set("/docs", h)
			for _, n := range names {
				w.set("/docs/"+n, h)
			}
		}
		want := map[int]State{5: siteBlocked, 10: siteMoved, 11: siteMoved, 16: siteClosed, 20: siteThin, 24: siteBlocked, 30: siteThin, 31: siteThin}
		var whole string
		var total int
		var notOpen []int // requests of each session in which the site is not open
		for week := range 52 {
			switch {
			case week == 5:
				all(status(403))
			case week == 10, week == 11:
				all(away)
			case week == 16:
				all(status(404))
			case week == 20, week >= 30 && week < 40:
				site("", 4)
			case week == 24:
				all(consent)
			case week == 40: // a new version, redirects for a while
				site("v2/", 4)
				for _, n := range names[4:] {
					w.set("/docs/"+n, status(302, "Location", "/docs/v2/"+n))
				}
			case week < 30:
				site("", 0)
			}
			state, reason := w.run()
			expected := Done
			if s, bad := want[week]; bad {
				expected = s
			}
			require.Equal(t, expected, state, "week %d: %s", week, reason)
			requests := len(w.paths())
			require.LessOrEqual(t, requests, 2*len(names)+2, week)
			if total += requests; expected != Done {
				notOpen = append(notOpen, requests)
			}
			switch {
			case week == 0:
				whole = w.stored()
			case week < 32 && want[week] == siteThin: // the seed lists fewer pages
				require.Len(t, w.strings(`SELECT DISTINCT key FROM docs_chunks`), 9, week)
			case week < 32:
				require.Equal(t, whole, w.stored(), week)
			case week >= 32:
				require.Len(t, w.strings(`SELECT DISTINCT key FROM docs_chunks`), 5, week)
			}
			w.time.Advance(7 * 24 * time.Hour)
			w.newSession()
		}
		require.Equal(t, []string{"https://docs.example.com/docs", "https://docs.example.com/docs/v2/e", "https://docs.example.com/docs/v2/f", "https://docs.example.com/docs/v2/g", "https://docs.example.com/docs/v2/h"},
			w.strings(`SELECT DISTINCT key FROM docs_chunks ORDER BY key`))
		require.Empty(t, w.strings(`SELECT key FROM docs_blocked_urls`))
		s, err := store.Open(t.Context(), w.dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		st, err := ledger.ReadSite(t.Context(), s, Job, w.policy.ProviderID)
		require.NoError(t, err)
		var was []string
		for _, c := range st.History {
			was = append(was, c.State)
		}
		require.Equal(t, "open", st.State)
		require.Equal(t, 381, total) // these figures are in docs/operations.md
		require.Equal(t, []int{6, 6, 6, 6, 9, 6, 9, 9}, notOpen)
		require.Equal(t, []string{"thin", "open", "blocked", "open", "thin", "open", "closed", "open", "moved", "open", "blocked", "open"}, was)
	})
}
