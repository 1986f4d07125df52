package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// What robots.txt forbids is not requested. Its rules are kept for 24 hours, also for
// later runs. Without a robots.txt everything is allowed.
func TestRobots(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/robots.txt", text("User-agent: *\nDisallow: /docs/every\n\nUser-agent: APIIntelBot\nDisallow: /docs/secret\nAllow: /docs/secret/open\n"))
		w.set("/docs", doc("seed", "/docs/secret/x", "/docs/secret/open", "/docs/every"))
		w.set("/docs/secret/open", doc("open"))
		w.set("/docs/every", doc("every"))
		asks := func() int {
			return len(slices.DeleteFunc(w.log(), func(a asked) bool { return a.path != "/robots.txt" }))
		}
		w.run()
		require.Equal(t, row{Status: Blocked, Reason: "robots.txt line 5: Disallow: /docs/secret", Depth: 1}, w.row("/docs/secret/x"))
		require.Equal(t, Indexed, w.row("/docs/secret/open").Status)
		require.Equal(t, Indexed, w.row("/docs/every").Status, "the group of the crawler's own name counts, not the star's")
		require.Equal(t, int64(1), w.crawl.part.stats.Blocked)
		require.Equal(t, 1, asks())
		require.Equal(t, "queued robots_check blocked", strings.Trim(fmt.Sprint(w.moves["https://"+host+"/docs/secret/x"]), "[]"))

		w.newSession()
		w.time.Advance(23 * time.Hour)
		w.run()
		require.Equal(t, 0, asks(), "kept for 24 hours, also for the next process")
		w.newSession()
		w.time.Advance(time.Hour)
		w.set("/robots.txt", status(404))
		w.run()
		require.Equal(t, 1, asks())
		require.Equal(t, Failed, w.row("/docs/secret/x").Status, "allowed now, and 404")
	})
}

// What is kept of a robots.txt that is no UTF-8 forbids the same.
func TestRobotsKeptInOtherEncodings(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"Latin-1": "User-agent: *\nDisallow: /docs/caf\xe9\n",
		"UTF-16":  "\xff\xfe" + strings.Join(strings.Split("User-agent: *\nDisallow: /docs/caf%E9\n", ""), "\x00") + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.set("/robots.txt", text(body))
				w.set("/docs", doc("seed", "/docs/caf%E9"))
				for range 2 { // as it came, then as it is kept
					w.run()
					require.Equal(t, Blocked, w.row("/docs/caf%E9").Status)
					w.newSession()
				}
			})
		})
	}
}

// What does not answer at all is left for another day.
func TestRobotsUnreachable(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/robots.txt", breaking)
		w.set("/docs", doc("seed"))
		state, reason := w.run()
		require.Equal(t, Unreachable, state)
		require.Contains(t, reason, "it cannot be reached: its robots.txt: ")
		log := w.log()
		require.Len(t, log, 2)
		require.Equal(t, []time.Duration{30 * time.Second}, gaps(log))

		// The same session, and the next one, ask again.
		state, _ = w.run()
		require.Equal(t, Unreachable, state)
		require.Len(t, w.log(), 2)
		w.newSession()
		w.set("/robots.txt", text(""))
		state, _ = w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs"}, w.paths())
	})
}

// An origin that is not the provider's own, by a link or by a redirect, costs
// its pages only, and is tried once a run: the rest of the provider is crawled.
func TestSideOrigins(t *testing.T) {
	t.Parallel()
	const www = "www." + host
	for name, side := range map[string]http.HandlerFunc{
		"dead":                  nil, // no robots.txt: the connection breaks
		"held by a page":        status(429, "Retry-After", "3600"),
		"held by its robots":    status(429, "Retry-After", "3600"),
		"held, tries used up":   status(503, "Retry-After", "3600"),
		"not there, only there": status(404),
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				var mu sync.Mutex
				robots, pages := 0, 0
				w.sim.Handle(www, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					switch {
					case r.URL.Path != "/robots.txt":
						pages++
						side(rw, r)
					case side == nil:
						robots++
						breaking(rw, r)
					case name == "held by its robots":
						robots++
						side(rw, r)
					default:
						text("")(rw, r)
					}
				}))
				w.set("/docs", doc("seed", "https://"+www+"/docs/x", "/docs/moved", "https://"+www+"/docs/y", "/docs/a"))
				w.set("/docs/moved", status(302, "Location", "https://"+www+"/docs/z"))
				w.set("/docs/a", doc("a", "/docs/b"))
				w.set("/docs/b", doc("b"))
				state, reason := w.run()
				if strings.HasPrefix(name, "held") { // one server: a pause that one name asks for holds for both
					require.Equal(t, Held, state)
					require.Equal(t, []string{"/docs"}, w.paths())
					w.newSession()
					state, _ = w.run()
					require.Equal(t, Held, state)
					require.Empty(t, w.paths())
					require.LessOrEqual(t, robots+pages, 4)
					return
				}
				require.Equal(t, []any{Done, ""}, []any{state, reason})
				require.Equal(t, []string{"/docs", "/docs/moved", "/docs/a", "/docs/b"}, w.paths())
				require.Equal(t, Indexed, w.row("/docs/b").Status)
				for _, path := range []string{"/docs/x", "/docs/y"} {
					require.Equal(t, Failed, w.row(path).Status, path)
				}
				if side == nil {
					require.Contains(t, w.row("/docs/y").Reason, "it cannot be reached: its robots.txt")
					require.Equal(t, []int{2, 0}, []int{robots, pages}, "and a retry")
				}
			})
		})
	}
}

// A seed on a www. that cannot be reached is requested without it, and one of a domain that stands
// alone with it, as its robots.txt allows. A seed of another host has no second name.
func TestSeedHasTwoNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seed, other, robots string
		state               State
		pages               []string
		dead                int
	}{
		{"www." + host, host, "", Done, []string{"/docs", "/docs/a", "/docs/b"}, 2},
		{"www." + host, host, "User-agent: *\nDisallow: /docs/a", Done, []string{"/docs", "/docs/b"}, 2},
		{"example.com", "www.example.com", "", Done, []string{"/docs", "/docs/a", "/docs/b"}, 2},
		{"help.example.com", "www.help.example.com", "", Unreachable, nil, 2},
	} {
		t.Run(fmt.Sprint(tt.seed, len(tt.robots)), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				var mu sync.Mutex
				var dead, asked []string
				w.sim.Handle(tt.seed, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					mu.Lock()
					dead = append(dead, r.URL.Path)
					mu.Unlock()
					breaking(rw, r)
				}))
				w.sim.Handle(tt.other, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/robots.txt":
						text(tt.robots)(rw, r)
					case "/docs":
						doc("seed", "/docs/a", "/docs/b", "https://"+tt.seed+"/docs/c")(rw, r)
					default:
						doc("page "+r.URL.Path)(rw, r)
					}
					mu.Lock()
					defer mu.Unlock()
					if strings.HasPrefix(r.URL.Path, "/docs") {
						asked = append(asked, r.URL.Path)
					}
				}))
				w.policy.SeedURLs = []string{"https://" + tt.seed + "/docs"}
				state, reason := w.run()
				require.Equal(t, tt.state, state, reason)
				require.Equal(t, tt.pages, asked)
				require.Equal(t, slices.Repeat([]string{"/robots.txt"}, tt.dead), dead)
			})
		})
	}
}

// A seed that leads to a dead origin, or answers by errors alone, leaves a
// provider of which nothing is known.
func TestNoSeedAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{"500": status(500), "elsewhere": status(301, "Location", "https://www."+host+"/docs")} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.sim.Handle("www."+host, http.HandlerFunc(breaking))
				w.set("/docs", answer)
				state, reason := w.run()
				require.Equal(t, Unreachable, state)
				require.Equal(t, "it cannot be reached: none of its 1 seeds could be fetched", reason)
				w.set("/docs", doc("seed"))
				w.time.Advance(time.Hour)
				state, _ = w.run() // the same session, continued
				require.Equal(t, Done, state)
				require.Equal(t, Indexed, w.row("/docs").Status)
			})
		})
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) { // gone is an answer
		w := newWorld(t, d)
		w.set("/docs", status(404))
		state, _ := w.run()
		require.Equal(t, Done, state)
	})
}

// The budgets of 1,000 requests an hour and 10,000 a day count all processes. When the
// hour's budget is used up, the run waits; when the day's is, the run ends, and a later
// run continues.
func TestBudgets(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.cfg.HourBudget, w.cfg.DayBudget = 5, 8
		var links []string
		for n := range 12 {
			links = append(links, fmt.Sprint("/docs/", n))
			w.set(fmt.Sprint("/docs/", n), doc(fmt.Sprint("page ", n)))
		}
		w.set("/docs", doc("seed", links...))
		state, reason := w.run()
		require.Equal(t, []any{OutOfBudget, polite.ErrBudget.Error()}, []any{state, reason})
		log := w.log()
		require.Len(t, log, 8, "robots.txt counts too")
		require.Less(t, log[4].at.Sub(log[0].at), time.Minute)
		require.GreaterOrEqual(t, log[5].at.Sub(log[0].at), time.Hour, "the sixth waits for the hour")
		require.Less(t, log[5].at.Sub(log[0].at), time.Hour+2*time.Minute)
		require.GreaterOrEqual(t, w.crawl.part.stats.Waited, (58 * time.Minute).Microseconds())

		// The next process finds the day as used up as it is.
		state, _ = w.run()
		require.Equal(t, OutOfBudget, state)
		require.Empty(t, w.log())
		w.time.Advance(24*time.Hour + 2*time.Minute) // a minute counts until all of it is over
		state, _ = w.run()
		require.Equal(t, Done, state)
		second := w.log()
		require.Len(t, second, 7, "robots.txt is a day old, and six pages were left")
		all := map[string]int{}
		for _, a := range append(log, second...) {
			all[a.path]++
		}
		for path, n := range all {
			if path != "/robots.txt" {
				require.Equal(t, 1, n, path)
			}
		}
	})
}

// At most 3 redirects are followed, and each target is checked. The page is stored under
// the final key, and no page is requested twice.
func TestRedirects(t *testing.T) {
	t.Parallel()
	to := func(location string) http.HandlerFunc { return status(302, "Location", location) }
	for _, tt := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		robots  string
		asked   []string // after /docs
		rows    map[string]Status
		reason  string // of /docs/a
	}{
		{"to another page", map[string]http.HandlerFunc{"/docs/a": to("/docs/b"), "/docs/b": doc("b")}, "",
			[]string{"/docs/a", "/docs/b"}, map[string]Status{"/docs/a": Skipped, "/docs/b": Indexed}, "redirects to https://docs.example.com/docs/b"},
		{"to its own key", map[string]http.HandlerFunc{"/docs/a": to("/docs/a/"), "/docs/a/": doc("a")}, "",
			[]string{"/docs/a", "/docs/a/"}, map[string]Status{"/docs/a": Indexed}, ""},
		{"three", map[string]http.HandlerFunc{"/docs/a": to("/docs/1"), "/docs/1": to("/docs/2"), "/docs/2": to("/docs/3"), "/docs/3": doc("3")}, "",
			[]string{"/docs/a", "/docs/1", "/docs/2", "/docs/3"}, map[string]Status{"/docs/a": Skipped, "/docs/1": Skipped, "/docs/2": Skipped, "/docs/3": Indexed}, "redirects to https://docs.example.com/docs/3"},
		{"four", map[string]http.HandlerFunc{"/docs/a": to("/docs/1"), "/docs/1": to("/docs/2"), "/docs/2": to("/docs/3"), "/docs/3": to("/docs/4"), "/docs/4": doc("4")}, "",
			[]string{"/docs/a", "/docs/1", "/docs/2", "/docs/3"}, map[string]Status{"/docs/a": Skipped, "/docs/3": Failed}, "redirects to https://docs.example.com/docs/3"},
		{"out of scope", map[string]http.HandlerFunc{"/docs/a": to("/shop/x"), "/shop/x": doc("x")}, "",
			[]string{"/docs/a"}, map[string]Status{"/docs/a": Skipped}, "redirects to /shop/x: no allowed path pattern matches"},
		{"into a blocked path", map[string]http.HandlerFunc{"/docs/a": to("/docs/old/x")}, "",
			[]string{"/docs/a"}, map[string]Status{"/docs/a": Skipped}, "redirects to /docs/old/x: the blocked path pattern /docs/old/**"},
		{"to another host", map[string]http.HandlerFunc{"/docs/a": to("https://other.example/docs/x")}, "",
			[]string{"/docs/a"}, map[string]Status{"/docs/a": Skipped}, "redirects to https://other.example/docs/x: another host: other.example"},
		{"to what robots.txt forbids", map[string]http.HandlerFunc{"/docs/a": to("/docs/secret")}, "User-agent: *\nDisallow: /docs/secret\n",
			[]string{"/docs/a"}, map[string]Status{"/docs/a": Blocked}, "redirects to https://docs.example.com/docs/secret: robots.txt line 2: Disallow: /docs/secret"},
		{"back to the seed", map[string]http.HandlerFunc{"/docs/a": to("/docs")}, "",
			[]string{"/docs/a"}, map[string]Status{"/docs/a": Skipped, "/docs": Indexed}, "redirects to https://docs.example.com/docs, which this session has already requested"},
		{"in a circle", map[string]http.HandlerFunc{"/docs/a": to("/docs/b"), "/docs/b": to("/docs/a")}, "",
			[]string{"/docs/a", "/docs/b"}, map[string]Status{"/docs/a": Skipped}, ""},
		{"to a page that is 404", map[string]http.HandlerFunc{"/docs/a": to("/docs/none")}, "",
			[]string{"/docs/a", "/docs/none"}, map[string]Status{"/docs/a": Skipped, "/docs/none": Failed}, ""},
		{"to a page that is 403", map[string]http.HandlerFunc{"/docs/a": to("/docs/no"), "/docs/no": status(403)}, "",
			[]string{"/docs/a", "/docs/no"}, map[string]Status{"/docs/no": Failed}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				// Each redirect's target is linked to besides: it must not be asked for again.
				links := []string{"/docs/a"}
				for path := range tt.answers {
					links = append(links, path)
				}
				slices.Sort(links[1:])
				w.set("/docs", doc("seed", links...))
				for path, a := range tt.answers {
					w.set(path, a)
				}
				if tt.robots != "" {
					w.set("/robots.txt", text(tt.robots))
				}
				state, _ := w.run()
				require.Equal(t, Done, state)
				asked := w.paths()[1:]
				rest := asked[min(len(tt.asked), len(asked)):]
				require.Equal(t, tt.asked, asked[:min(len(tt.asked), len(asked))])
				for _, again := range rest { // what only the links led to
					require.NotContains(t, tt.asked, again)
				}
				for path, want := range tt.rows {
					require.Equal(t, want, w.row(path).Status, path)
				}
				if tt.reason != "" {
					require.Equal(t, tt.reason, w.row("/docs/a").Reason)
				}
			})
		})
	}
}

// A page that has moved permanently, or redirects to a page that is gone, is not kept under
// its old key. A page that has moved temporarily is.
func TestMovedPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		to := func(code int, location string) http.HandlerFunc { return status(code, "Location", location) }
		w := newWorld(t, d)
		w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c", "/docs/d", "/docs/e", "/docs/f", "/docs/g"))
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			w.set("/docs/"+name, doc(name))
		}
		w.run()
		first := w.handed()
		require.Len(t, first, 8)
		w.newSession()
		w.set("/docs/a", to(301, "/docs/new")) // to a page that is new
		w.set("/docs/new", doc("a"))
		w.set("/docs/b", to(308, "/docs"))       // to one that was asked for
		w.set("/docs/c", to(302, "/docs/while")) // for a while
		w.set("/docs/while", doc("c, for a while"))
		w.set("/docs/d", to(302, "/docs/none")) // to what is not there
		w.set("/docs/e", to(301, "/docs/e2"))   // over two places, one of them for a while
		w.set("/docs/e2", to(302, "/docs/e3"))
		w.set("/docs/e3", doc("e"))
		w.set("/docs/f", to(302, "/docs/broken")) // to what is broken today
		w.set("/docs/broken", status(400))
		w.run()
		for path, want := range map[string]row{
			"/docs/a": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs/new", Depth: 1},
			"/docs/b": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs, which this session has already requested", Depth: 1},
			"/docs/c": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs/while", Depth: 1, Content: true},
			"/docs/d": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs/none", Depth: 1},
			"/docs/e": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs/e3", Depth: 1},
			"/docs/f": {Status: Skipped, Reason: "redirects to https://docs.example.com/docs/broken", Depth: 1, Content: true},
		} {
			require.Equal(t, want, w.row(path), path)
		}
		s := w.crawl.part.stats
		require.Equal(t, []int64{3, 0, 2, 4}, []int64{s.New, s.Updated, s.Unchanged, s.Deleted})
		_, changes, err := Changes(t.Context(), d, "")
		require.NoError(t, err)
		var said []string
		for _, c := range changes {
			said = append(said, c.Kind+" "+strings.TrimPrefix(c.Key, "https://docs.example.com"))
		}
		require.Equal(t, []string{"deleted /docs/a", "deleted /docs/b", "deleted /docs/d", "deleted /docs/e", "new /docs/e3", "new /docs/new", "new /docs/while"}, said)
		var deleted []string
		for _, h := range w.handed() {
			if h.Op == "delete" {
				deleted = append(deleted, strings.TrimPrefix(h.URL, "https://docs.example.com/docs/"))
			}
		}
		require.Equal(t, []string{"a", "b", "d", "e"}, deleted)
		r := w.report()
		require.Equal(t, []int64{7, 8}, []int64{r.Providers[0].TotalPages, r.Providers[0].PreviousPages})
		require.Equal(t, []string{"7"}, w.strings(`SELECT CAST(COUNT(DISTINCT key) AS TEXT) FROM docs_chunks`))
	})
}

// A page that is now behind a login is no longer public, so its stored content is removed.
// The content of a page that is only broken or empty today stays.
func TestBehindLogin(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c"))
		for _, name := range []string{"a", "b", "c"} {
			w.set("/docs/"+name, doc(name))
		}
		w.run()
		w.newSession()
		w.set("/docs/a", status(401))
		w.set("/docs/b", html(`<html><body><form action="/login"><input name="user"><input type="password" name="p"><button>Sign in</button></form></body></html>`))
		w.set("/docs/c", html("<html><body><main></main></body></html>"))
		w.run()
		require.Equal(t, row{Status: Skipped, Reason: "behind a login", Depth: 1, HTTP: 401}, w.row("/docs/a"))
		require.Equal(t, row{Status: Skipped, Reason: "a login form", Depth: 1, HTTP: 200}, w.row("/docs/b"))
		require.Equal(t, row{Status: Skipped, Reason: "no content", Depth: 1, HTTP: 200, Content: true}, w.row("/docs/c"))
		s := w.crawl.part.stats
		require.Equal(t, []int64{2, 1, 1}, []int64{s.Deleted, s.Skipped, s.Unchanged})
		require.Equal(t, []string{"https://docs.example.com/docs", "https://docs.example.com/docs/c"}, w.strings(`SELECT DISTINCT key FROM docs_chunks ORDER BY key`))
		w.newSession()
		w.set("/docs/a", doc("a"))
		w.run()
		require.Equal(t, int64(1), w.crawl.part.stats.New)
	})
}

// A dead letter is removed when there is nothing left to look at: the page was fetched, or
// is known not to be a page.
func TestDeadLettersEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   int
	}{
		"read":      {doc("x"), 0},
		"gone":      {status(404), 0},
		"forbidden": {status(403), 0},
		"a login":   {status(401), 0},
		"elsewhere": {status(302, "Location", "/pricing"), 0},
		"a picture": {func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Content-Type", "image/png") }, 0},
		"broken":    {status(502), 1},
		"unread":    {html("<main>" + strings.Repeat("<div>", 10_000) + "deep"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := db.Open(t.Context(), dbtest.SQLite(t))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			w := newWorld(t, d)
			w.set("/docs", doc("seed", "/docs/x"))
			w.set("/docs/x", status(500))
			w.run()
			require.Len(t, w.deadLetters(), 1)
			w.newSession()
			w.set("/docs/x", tt.answer)
			w.run()
			require.Len(t, w.deadLetters(), tt.want)
		})
	}
}

// A page that answered 403 is never requested again. Its text stays for three sessions, and a person can lift the block.
func TestForbidden(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.pages("a")
		w.run()
		w.newSession()
		w.set("/docs/a", status(403))
		w.run()
		require.Equal(t, []string{"https://docs.example.com/docs/a 403"}, w.strings(`SELECT key || ' ' || http_status FROM docs_blocked_urls`))
		require.Equal(t, row{Status: Failed, Reason: "403: never requested again", Depth: 1, HTTP: 403, Content: true}, w.row("/docs/a"))
		require.Equal(t, []int64{1, 0}, []int64{w.crawl.part.stats.Blocked, w.crawl.part.stats.Deleted})
		w.paths()
		w.set("/docs/a", doc("a"))
		for _, deleted := range []int64{0, 0, 1} { // the text stays for three sessions
			w.newSession()
			w.run()
			require.Equal(t, deleted, w.crawl.part.stats.Deleted)
			require.Equal(t, []string{"/docs"}, w.paths())
		}
		n, err := Unblock(t.Context(), w.db, w.policy.ProviderID, "https://docs.example.com/docs/a")
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		w.newSession()
		w.run()
		require.Equal(t, []string{"/docs", "/docs/a"}, w.paths())
		require.True(t, w.row("/docs/a").Content)
	})
}

// A 304 keeps a page and its links, so that the crawl continues with them. 404 and 410
// remove the stored content. A page to which no link leads any more is requested once, to
// see whether it is gone.
func TestSecondCrawl(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", tagged(`"s"`, doc("seed", "/docs/a", "/docs/b", "/docs/c", "/docs/d")))
		w.set("/docs/a", doc("a", "/docs/e"))
		w.set("/docs/b", doc("b"))
		w.set("/docs/c", doc("c"))
		w.set("/docs/d", tagged(`"d"`, doc("d", "/docs/lost", "/docs/kept")))
		w.set("/docs/e", doc("e"))
		w.set("/docs/lost", doc("lost"))
		w.set("/docs/kept", doc("kept"))
		w.run()
		first := w.paths()
		require.Equal(t, []string{"/docs", "/docs/a", "/docs/b", "/docs/c", "/docs/d", "/docs/e", "/docs/lost", "/docs/kept"}, first)
		s := w.crawl.part.stats
		require.Equal(t, []int64{8, 0, 0, 0}, []int64{s.New, s.Updated, s.Unchanged, s.Deleted})

		w.newSession()
		w.set("/docs/a", doc("a, with more to say", "/docs/e", "/docs/new"))
		w.set("/docs/b", status(404))
		w.set("/docs/c", status(410))
		w.set("/docs/d", doc("d, without its links"))
		w.set("/docs/lost", status(404))
		w.set("/docs/new", doc("new"))
		w.run()
		require.Equal(t, []string{"/docs", "/docs/a", "/docs/b", "/docs/c", "/docs/d", "/docs/e", "/docs/new", "/docs/lost", "/docs/kept"}, w.paths())
		s = w.crawl.part.stats
		require.Equal(t, []int64{1, 2, 3, 3}, []int64{s.New, s.Updated, s.Unchanged, s.Deleted})
		require.Equal(t, map[string]string{"/docs": "not_modified", "/docs/b": "deleted", "/docs/c": "deleted", "/docs/lost": "deleted", "/docs/a": "indexed"},
			map[string]string{"/docs": string(w.row("/docs").Status), "/docs/b": string(w.row("/docs/b").Status), "/docs/c": string(w.row("/docs/c").Status),
				"/docs/lost": string(w.row("/docs/lost").Status), "/docs/a": string(w.row("/docs/a").Status)})
		require.Empty(t, w.strings(`SELECT key FROM docs_chunks WHERE key IN ('https://docs.example.com/docs/b', 'https://docs.example.com/docs/lost')`))
		_, err := w.db.ExecContext(t.Context(), `UPDATE docs_pages SET address = 'http://docs.example.com/docs/a' WHERE key = 'https://docs.example.com/docs/a'`)
		require.NoError(t, err)
		_, changes, err := Changes(t.Context(), w.db, "")
		require.NoError(t, err)
		var said []string
		for _, c := range changes {
			said = append(said, c.Kind+" "+strings.TrimPrefix(c.URL, "https://docs.example.com"))
		}
		require.Equal(t, []string{"updated http://docs.example.com/docs/a", "deleted /docs/b", "deleted /docs/c", "updated /docs/d", "deleted /docs/lost", "new /docs/new"}, said)
		var deleted int
		for _, h := range w.handed() {
			if h.Op == "delete" {
				deleted++
				require.Empty(t, h.Text)
			}
		}
		require.Equal(t, 5, deleted, "the chunks of a, b, c, d and lost as they were")

		r := w.report()
		row := r.Providers[0]
		require.Equal(t, []int64{6, 8, 1, 2, 3, 0}, []int64{row.TotalPages, row.PreviousPages, row.New, row.Updated, row.Deleted, row.NotReached})
		require.Equal(t, []float64{100, 66.7, 33.3}, []float64{row.ChangeRate, row.SuccessRate, row.ErrorRate})
	})
}

// A page that is gone counts once, however often a list still leads to it: it is no failure of
// later sessions.
func TestGoneCountsOnce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.policy.SitemapURL = "https://" + host + "/sitemap.xml"
		w.set("/sitemap.xml", typed("application/xml", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://`+host+`/docs/c</loc></url><url><loc>https://`+host+`/docs/never</loc></url></urlset>`))
		w.set("/docs", doc("seed"))
		w.set("/docs/c", doc("c"))
		w.set("/docs/never", status(410))
		w.run()
		w.paths()
		w.set("/docs/c", status(410))
		var got [][]int64
		for range 3 {
			w.newSession()
			w.run()
			require.Equal(t, []string{"/sitemap.xml", "/docs", "/docs/c", "/docs/never"}, w.paths())
			require.Equal(t, row{Deleted, "410", 1, 410, false}, w.row("/docs/c"))
			s := w.crawl.part.stats
			got = append(got, []int64{s.Deleted, s.Failed, s.Errors, s.Requests})
		}
		require.Equal(t, [][]int64{{1, 1, 2, 3}, {0, 1, 1, 2}, {0, 1, 1, 2}}, got)
		require.Equal(t, row{Failed, "410", 1, 410, false}, w.row("/docs/never"))

		w.newSession()
		w.set("/docs/c", doc("c"))
		w.run()
		require.Equal(t, []int64{1, 0}, []int64{w.crawl.part.stats.New, w.crawl.part.stats.Deleted})
	})
}

// A page gone and back is new; a page behind max_pages is not gone.
func TestGoneAndNotReached(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.pages("a", "b")
		w.run()
		w.newSession()
		w.set("/docs/a", status(404))
		w.policy.MaxPages = 2
		w.run()
		require.Equal(t, int64(1), w.crawl.part.stats.Deleted)
		require.Equal(t, row{Status: Queued, Depth: 1, Content: true}, w.row("/docs/b"))
		r := w.report()
		require.Equal(t, []int64{2, 1}, []int64{r.Providers[0].TotalPages, r.Providers[0].Deleted})
		w.newSession()
		w.policy.MaxPages = 200
		w.set("/docs/a", doc("a"))
		w.run()
		require.Equal(t, []int64{1, 2}, []int64{w.crawl.part.stats.New, w.crawl.part.stats.Unchanged})
	})
}

// Pages that the policy no longer allows are removed without a request.
func TestPolicyNarrowed(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.pages("a")
		w.run()
		w.paths()
		w.newSession()
		w.policy.BlockedPathPatterns = []string{"/docs/a"}
		w.run()
		require.Equal(t, []string{"/docs"}, w.paths())
		require.Equal(t, row{Status: Deleted, Reason: "the blocked path pattern /docs/a", Depth: 1}, w.row("/docs/a"))
	})
}

// The headers of a request. It is conditional only if the stored content was made with the
// same selectors.
func TestHeaders(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		dated := func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Last-Modified", "Mon, 16 Feb 2026 03:00:00 GMT")
			rw.Header().Set("ETag", `W/"1"`)
			rw.Header().Add("Set-Cookie", "id=1")
			doc("seed", "/docs/plain")(rw, r)
		}
		w.set("/docs", dated)
		w.set("/docs/plain", doc("plain"))
		w.run()
		h := w.log()[1].header
		require.Equal(t, http.Header{"User-Agent": {"APIIntelBot/1.0 (+https://api-intel.vercel.app/bot)"}, "Accept": {"text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"},
			"Accept-Language": {"en-US,en;q=0.9,ko;q=0.8"}, "Accept-Encoding": {"gzip, deflate, br, zstd"}}, h)
		w.newSession()
		w.run()
		log := w.log()
		require.Equal(t, []string{`W/"1"`, "Mon, 16 Feb 2026 03:00:00 GMT", ""}, []string{log[0].header.Get("If-None-Match"), log[0].header.Get("If-Modified-Since"), log[0].header.Get("Cookie")})
		require.Contains(t, log[1].header.Get("If-Modified-Since"), "Mon, 23 Feb 2026 03:00:0", "when it was last crawled, where the page names no date")
		w.newSession()
		w.policy.CustomSelectors.Content = "main"
		w.run()
		again := w.log()[0].header
		require.Equal(t, []string{"", ""}, []string{again.Get("If-None-Match"), again.Get("If-Modified-Since")})
	})
}

// answered is a page and what becomes of it.
type answered struct {
	name   string
	answer http.HandlerFunc
	end    Status
	reason string
}

func as(kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		_, _ = fmt.Fprint(rw, body)
	}
}

func whatIsRead(t *testing.T, pages []answered) {
	eachWorld(t, func(t *testing.T, w *world) {
		var links []string
		skipped := 0
		for i, p := range pages {
			links = append(links, fmt.Sprint("/docs/", i))
			w.set(links[i], p.answer)
			if p.end != Indexed {
				skipped++
			}
		}
		w.set("/docs", doc("seed", links...))
		w.run()
		for i, p := range pages {
			r := w.row(links[i])
			require.Equal(t, p.end, r.Status, "%s: %s", p.name, r.Reason)
			require.True(t, strings.HasPrefix(r.Reason, p.reason), "%s: %s", p.name, r.Reason)
			require.Equal(t, p.end == Indexed, r.Content, p.name)
		}
		require.EqualValues(t, skipped, w.crawl.part.stats.Skipped)
	})
}

// What is read, and what is left.
func TestWhatIsRead(t *testing.T) {
	long := "<html><body><main><h1>Long</h1><p>" + strings.Repeat("many words ", 5<<20/11+1) + "</p></main></body></html>"
	spec := `{"openapi":"3.1.0","info":{"title":"Pets","version":"1"},"paths":{"/pets":{"get":{"summary":"List pets","responses":{"200":{"description":"ok"}}}}}}`
	whatIsRead(t, []answered{
		{"html", doc("x"), Indexed, ""},
		{"plain text", as("text/plain", "Plain words of a plain document, enough of them to be content."), Indexed, ""},
		{"openapi", as("application/json", spec), Indexed, ""},
		{"swagger", as("application/json", strings.Replace(spec, `"openapi":"3.1.0"`, `"swagger":"2.0"`, 1)), Indexed, ""},
		{"other json", as("application/json", `{"a":1}`), Skipped, "not collected: application/json"},
		{"image", as("image/png", "\x89PNG\r\n\x1a\n"), Skipped, "not collected: image/png"},
		{"video", as("video/mp4", "….."), Skipped, "not collected: video/mp4"},
		{"zip", as("application/zip", "PK\x03\x04"), Skipped, "not collected: application/zip"},
		{"binary", as("application/octet-stream", "\x00\x01\x02\x03"), Skipped, "not collected: application/octet-stream"},
		{"html that says binary", as("application/octet-stream", "<!doctype html><html><body><main><h1>X</h1><p>Some words here.</p></main></body></html>"), Indexed, ""},
		{"longer than 5 MB", as("text/html", long), TooLarge, "longer than 5 MB"},
		{"a login form", as("text/html", `<html><body><form action="/login"><input name="user"><input type="password" name="p"><button>Sign in</button></form></body></html>`), Skipped, "a login form"},
		{"empty", as("text/html", "<html><body><main> </main></body></html>"), Skipped, "no content"},
		{"behind a login", status(401), Skipped, "behind a login"},
	})
}

// No e-mail address is stored, no text of a page in the database
// but previews of at most 500 characters, all of it in the hand-off.
func TestNothingPersonalIsKept(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", html(`<html><head><title>Ask jane.doe@mail.com</title></head><body><main><h1>Write to jane.doe@mail.com</h1><p>Or to <a href="mailto:support@corp.io">support@corp.io</a>.</p>
			<p>jim<b>@home.org</b></p><p>By <a href="/docs/u?mail=jack@box.com">address</a>, <a href="/docs/june@box.com">another</a>, <a href="/docs/jill%40box.com">a third</a>, <a href="/docs/old">the old page</a>, <a href="/docs/away">away</a>.</p>
			<pre><code>curl -u root@db.net</code></pre><p>`+strings.Repeat("A long paragraph with many words. ", 60)+`The very last words.</p></main></body></html>`))
		w.policy.BlockedPathPatterns = nil
		w.set("/docs/old", status(302, "Location", "mailto:jake@box.com"))
		w.set("/docs/away", status(302, "Location", "/docs/jean@box.com"))
		w.set("/robots.txt", text("# Questions to joan@box.com\nUser-agent: *   # and jeff@box.com\nDisallow: /docs/x"))
		w.run()
		require.Equal(t, []string{"/docs", "/docs/old", "/docs/away"}, w.paths(), "an address in a URL is nobody's page")
		require.Equal(t, "redirects to mailto:[email]: link \"mailto:[email]\": the link is not http or https", w.row("/docs/old").Reason)
		all := w.everything()
		require.Contains(t, all, "[email]")
		for _, address := range []string{"jane.doe@", "support@corp", "root@db", "@home", "@box", "%40box"} {
			require.NotContains(t, all, address)
		}
		for _, p := range w.strings(`SELECT preview FROM docs_chunks`) {
			require.LessOrEqual(t, len([]rune(p)), 500)
		}
		var texts string
		for _, h := range w.handed() {
			texts += h.Text
			require.LessOrEqual(t, h.Tokens, 500)
		}
		require.Contains(t, texts, "The very last words.")
	})
}

// Wherever a crawl is killed, the next run has the same result, and requests no page twice
// except one whose answer the kill cut off.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for name, noDelay := range map[string]bool{"with pauses": false, "no delay": true} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) { killedAnywhere(t, d, noDelay) })
		})
	}
}

func killedAnywhere(t *testing.T, d *db.DB, noDelay bool) {
	w := newWorld(t, d)
	w.cfg.NoDelay = noDelay
	var links []string
	for n := range 10 {
		links = append(links, fmt.Sprint("/docs/", n))
		w.set(fmt.Sprint("/docs/", n), doc(fmt.Sprint("page ", n), fmt.Sprint("/docs/", n, "/below")))
		w.set(fmt.Sprint("/docs/", n, "/below"), doc(fmt.Sprint("below ", n)))
	}
	w.set("/docs", doc("seed", links...))
	died := 0
	for n := 0; ; n++ {
		require.Less(t, n, 60)
		ctx, cancel := context.WithCancel(t.Context())
		// Dies as the site gets the n-th request of this process.
		count := 0
		limit := n%3 + 1
		w.sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/robots.txt" {
				if count++; count > limit {
					cancel()
					panic(http.ErrAbortHandler) // unanswered: it does not count as asked
				}
			}
			w.mu.Lock()
			w.requests = append(w.requests, asked{w.time.Now(), r.URL.RequestURI(), r.Header.Clone()})
			answer := w.answers[r.URL.RequestURI()]
			w.mu.Unlock()
			if answer == nil {
				http.NotFound(rw, r)
				return
			}
			answer(rw, r)
		}))
		state, _, err := w.try(ctx)
		cancel()
		if state == Done {
			require.NoError(t, err)
			break
		}
		died++
	}
	require.Greater(t, died, 5)
	paths := w.paths()
	require.Len(t, paths, 21)
	slices.Sort(paths)
	require.Len(t, slices.Compact(paths), 21)
	require.Equal(t, []string{"21"}, w.strings(`SELECT CAST(COUNT(*) AS TEXT) FROM docs_pages WHERE status = 'indexed'`))
	require.Equal(t, int64(21), w.crawl.part.stats.New)
	require.Equal(t, []string{"21"}, w.strings(`SELECT CAST(requested AS TEXT) FROM docs_runs`), "an interrupted page counts once")
}

// A retry that a kill interrupted has used up its tries.
func TestRetriesOutliveTheProcess(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", status(503))
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		w.set("/docs", func(rw http.ResponseWriter, r *http.Request) {
			if n++; n == 2 {
				cancel()
			}
			rw.WriteHeader(503)
		})
		_, _, err := w.try(ctx)
		require.Error(t, err)
		first := w.log()
		state, _ := w.run()
		require.Equal(t, Unreachable, state, "its only seed has failed")
		require.LessOrEqual(t, len(first)+len(w.log()), 1+4+1, "robots.txt, the request and three retries, the interrupted one perhaps once more")
		require.Equal(t, Failed, w.row("/docs").Status)
	})
}

// The allowed changes of state are covered by the crawl's own tests; here is the
// rest: every other one is refused.
func TestTransitions(t *testing.T) {
	all := []Status{Queued, RobotsCheck, Fetching, Redirecting, RateLimited, Retry, Parsing, Extracting, Blocked, Failed, Skipped, Indexed, NotModified, Deleted, TooLarge}
	arrows := 0
	for _, from := range append(all, "") {
		for _, to := range all {
			next, err := from.move(to)
			if slices.Contains(transitions[from], to) {
				require.NoError(t, err)
				require.Equal(t, to, next)
				arrows++
				continue
			}
			require.Error(t, err, "%s to %s", from, to)
			require.Equal(t, from, next)
		}
	}
	require.Equal(t, 27, arrows)
	for _, s := range []Status{Blocked, Failed, Skipped, Indexed, NotModified, Deleted, TooLarge} {
		require.True(t, s.end())
	}
}

// A purge takes everything and leaves a list of the chunks' ids.
func TestPurge(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", doc("seed", "/docs/a", "/docs/bad", "/docs/no"))
		w.set("/docs/a", doc("a"))
		w.set("/docs/bad", status(500))
		w.set("/docs/no", status(403))
		w.run()
		ids := w.strings(`SELECT id FROM docs_chunks ORDER BY id`)
		require.NotEmpty(t, ids)
		s, err := store.Open(t.Context(), w.dir)
		require.NoError(t, err)
		p, err := purge(t, w.db, s, "p", w.time.Now())
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"docs_pages": 4, "docs_sources": 0, "docs_page_sources": 0, "docs_repository_files": 0, "docs_links": 3, "docs_chunks": 2, "docs_blocks": 2, "docs_changes": 2, "docs_blocked_urls": 1, "docs_runs": 1, "docs_robots": 1}, p.Rows)
		require.Empty(t, w.strings(`SELECT origin FROM docs_robots`))
		require.Equal(t, []string{host}, w.strings(`SELECT host FROM docs_hosts`), "when it may be asked again still holds")
		require.Equal(t, []int64{2, 1, 2}, []int64{p.Objects, p.DeadLetters, p.Chunks})
		for _, table := range tables()[:7] {
			require.Equal(t, []string{"0"}, w.strings(`SELECT CAST(COUNT(*) AS TEXT) FROM `+table), table)
		}
		var listed []string
		for _, h := range w.handed() { // the list is all that is left
			require.Equal(t, []string{"delete", ""}, []string{h.Op, h.Text})
			listed = append(listed, h.ID)
		}
		slices.Sort(listed)
		require.Equal(t, ids, listed)
		off, err := removal.Purged(t.Context(), w.db)
		require.NoError(t, err)
		require.Equal(t, map[string]bool{"p": true}, off)
		was, err := Enable(t.Context(), w.db, "p")
		require.NoError(t, err)
		require.True(t, was)
		was, err = Enable(t.Context(), w.db, "p")
		require.NoError(t, err)
		require.False(t, was)

		// The retention empties the hand-off.
		n, err := sweepHandOff(t.Context(), s, time.Now().Add(-time.Hour))
		require.NoError(t, err)
		require.Equal(t, 0, n)
		n, err = sweepHandOff(t.Context(), s, time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Empty(t, w.handed())
		require.NoError(t, s.Close())
	})
}

// A page that says noindex, that is a copy by its rel=canonical, or that only
// sends its readers on is not handed to the embedding step; what was handed on
// of it before is taken back, and the pages that it leads to are crawled.
func TestNotForTheIndex(t *testing.T) {
	t.Parallel()
	head := func(head string, h http.HandlerFunc) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h(rec, r)
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(rw, strings.Replace(rec.Body.String(), "</head>", head+"</head>", 1))
		}
	}
	canonical := func(to string) string { return `<link rel="canonical" href="` + to + `">` }
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.policy.MaxDepth = 1
		w.set("/docs", doc("seed", "/docs/noindex", "/docs/tagged", "/docs/nofollow", "/docs/v1/a", "/docs/itself", "/docs/front", "/docs/away", "/docs/lost", "/docs/missing", "/docs/old-name", "/docs/js", "/docs/payments", "/docs/turn", "/docs/was", "/docs/soft", "/docs/script"))
		w.set("/docs/noindex", head(`<meta name="robots" content="noindex">`, doc("hidden one", "/docs/deeper")))
		w.set("/docs/tagged", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("X-Robots-Tag", "apiintelbot: noindex")
			doc("hidden two")(rw, r)
		})
		w.set("/docs/nofollow", head(`<meta name="robots" content="nofollow">`, doc("shown one", "/docs/unfollowed")))
		w.set("/docs/v1/a", head(canonical("/docs/latest/a"), doc("hidden copy")))
		w.set("/docs/latest/a", head(canonical("/docs/latest/a"), doc("shown original")))
		w.set("/docs/itself", head(canonical("https://www."+host+"/docs/itself/?utm_source=x"), doc("shown itself")))
		w.set("/docs/front", head(canonical("/"), doc("shown front")))
		w.set("/docs/away", head(canonical("https://elsewhere.example/docs/away"), doc("shown away")))
		w.set("/docs/lost", status(404))
		w.set("/docs/missing", head(canonical("/docs/lost"), doc("shown missing")))
		w.set("/docs/old-name", html(`<!doctype html><html><head><title>x</title><meta http-equiv="refresh" content="0; url=/docs/new-name"></head><body><p>hidden stub, go to <a href="/docs/new-name">the page</a></p></body></html>`))
		w.set("/docs/new-name", doc("shown new name"))
		w.set("/docs/js", html(`<!doctype html><html><head><title>Redirecting…</title><script>location = "/docs/new-name"</script></head><body><p>hidden script stub</p></body></html>`))
		w.set("/docs/payments", html(`<!doctype html><html><head><title>Redirecting customers</title></head><body><main><h1>Redirecting customers</h1>`+strings.Repeat("<p>shown payments, which are about redirecting customers to a page.</p>", 10)+`</main></body></html>`))
		w.set("/docs/turn", head(canonical("/docs/turn/back"), doc("hidden turn")))
		w.set("/docs/turn/back", head(canonical("/docs/turn"), doc("shown turn")))
		w.set("/docs/was", doc("taken back"))
		w.set("/docs/soft", html(`<!doctype html><title>Page not found</title><main><h1>Page not found</h1><p>hidden soft 404</p></main>`))
		w.set("/docs/script", html(`<!doctype html><title>x</title><script>window.location.replace("by-script")</script><p>hidden script</p>`))
		w.set("/docs/by-script", doc("shown by script"))
		w.run()
		for path, want := range map[string]row{
			"/docs/noindex":   {Skipped, "it asks not to be indexed (noindex)", 1, 200, false},
			"/docs/tagged":    {Skipped, "it asks not to be indexed (noindex)", 1, 200, false},
			"/docs/v1/a":      {Skipped, "a copy of https://" + host + "/docs/latest/a, as its rel=canonical says", 1, 200, false},
			"/docs/latest/a":  {Indexed, "", 1, 200, true}, // in the copy's place, not a level below it
			"/docs/old-name":  {Skipped, "redirects to /docs/new-name by itself", 1, 200, false},
			"/docs/new-name":  {Indexed, "", 1, 200, true},
			"/docs/js":        {Skipped, "says only that it redirects", 1, 200, false},
			"/docs/soft":      {Skipped, "it says that it was not found (a soft 404)", 1, 200, false},
			"/docs/script":    {Skipped, "redirects to by-script by a script", 1, 200, false},
			"/docs/by-script": {Indexed, "", 1, 200, true},
			"/docs/turn":      {Skipped, "a copy of https://" + host + "/docs/turn/back, as its rel=canonical says", 1, 200, false},
		} {
			require.Equal(t, want, w.row(path), path)
		}
		shown := func() (out []string) {
			for _, h := range w.handed() {
				for _, word := range []string{"hidden", "shown", "taken"} {
					if i := strings.Index(h.Text, "tells of "+word); i >= 0 {
						said, _, _ := strings.Cut(h.Text[i+len("tells of "):], " at some")
						out = append(out, said)
					}
				}
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
		require.Equal(t, []string{"shown away", "shown by script", "shown front", "shown itself", "shown missing", "shown new name", "shown one", "shown original", "shown turn", "taken back"}, shown())
		require.Equal(t, Indexed, w.row("/docs/payments").Status)
		asked := w.paths()
		require.NotContains(t, asked, "/docs/unfollowed")
		require.NotContains(t, asked, "/docs/deeper", "too deep")

		w.policy.MaxDepth = 2
		w.set("/docs/was", head(`<meta name="robots" content="noindex">`, doc("taken back")))
		w.newSession()
		w.run()
		require.Contains(t, w.paths(), "/docs/deeper", "noindex does not say nofollow")
		require.Equal(t, row{Skipped, "it asks not to be indexed (noindex)", 1, 200, false}, w.row("/docs/was"))
		deleted := 0
		for _, h := range w.handed() {
			if h.Op == "delete" {
				deleted++
				require.Equal(t, "https://"+host+"/docs/was", h.URL)
			}
		}
		require.Equal(t, 1, deleted)
		require.Equal(t, int64(1), w.crawl.part.stats.Deleted)
	})
}

// The text of a page that names an original is lost neither when the original has none, nor
// before that is known.
func TestCopiesWithoutOriginal(t *testing.T) {
	t.Parallel()
	copyOf := func(of, text string) http.HandlerFunc {
		return html(`<!doctype html><title>` + text + `</title><link rel="canonical" href="` + of + `"><main><h1>` + text + `</h1><p>The page tells of ` + text + `, and names another one.</p></main>`)
	}
	kinds := func(w *world) (out []string) {
		t.Helper()
		return w.strings(`SELECT kind || ' ' || key FROM docs_changes WHERE session = $1 ORDER BY key`, w.session)
	}
	at := "https://" + host + "/docs"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c", "/docs/p", "/docs/q"))
		w.set("/docs/a", copyOf("/docs/gone", "a"))
		w.set("/docs/b", copyOf("/docs/b.html", "b"))
		w.set("/docs/b.html", status(301, "Location", "/docs/b"))
		w.set("/docs/c", doc("c"))
		w.set("/docs/p", doc("p"))
		w.set("/docs/q", copyOf("/docs/p", "q"))
		w.run()
		require.Equal(t, []string{"new " + at, "new " + at + "/a", "new " + at + "/b", "new " + at + "/c", "new " + at + "/p"}, kinds(w))
		require.Equal(t, []string{"/docs", "/docs/a", "/docs/b", "/docs/c", "/docs/p", "/docs/q", "/docs/gone", "/docs/b.html", "/docs/a", "/docs/b"}, w.paths())

		w.set("/docs/c", copyOf("/docs/nowhere", "c")) // and had content before
		w.set("/docs/p", copyOf("/docs/latest", "p"))
		w.set("/docs/latest", doc("latest"))
		w.newSession()
		w.run()
		require.Equal(t, []string{"updated " + at + "/c", "new " + at + "/latest", "deleted " + at + "/p"}, kinds(w))
		for path, want := range map[string]Status{"/docs/a": Indexed, "/docs/b": Indexed, "/docs/c": Indexed, "/docs/p": Skipped, "/docs/q": Skipped} {
			require.Equal(t, want, w.row(path).Status, path)
		}

		w.newSession()
		w.run()
		require.Empty(t, kinds(w))
	})
}

// Nothing that a page said can be read from the database's file once its
// provider is purged, also where another process has the file open.
func TestPurgeErases(t *testing.T) {
	t.Parallel()
	dsn := dbtest.SQLite(t)
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	w := newWorld(t, d)
	_, err = d.ExecContext(t.Context(), `PRAGMA secure_delete = 0`) // as an older program had it, on one connection
	require.NoError(t, err)
	var links []string
	for n := range 20 {
		links = append(links, fmt.Sprint("/docs/", n))
		w.set(fmt.Sprint("/docs/", n), doc(fmt.Sprint("zanzibar ", n)))
	}
	w.set("/docs", doc("zanzibar", links...))
	w.run()
	w.newSession()
	w.set("/docs", doc("zanzibar again", links...))
	w.run()
	other, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	file := func() (all string) {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(strings.TrimPrefix(dsn, "sqlite://") + suffix)
			require.NoError(t, err)
			all += string(b)
		}
		return all
	}
	require.Contains(t, file(), "zanzibar")
	s, err := store.Open(t.Context(), w.dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = purge(t, d, s, "p", w.time.Now())
	require.NoError(t, err)
	require.NotContains(t, file(), "zanzibar")

	// Where somebody reads on, it says what is left to do, and a second purge does it.
	w.set("/docs", doc("zanzibar"))
	w.newSession()
	w.run()
	d.SetMaxOpenConns(1)
	_, err = d.ExecContext(t.Context(), `PRAGMA busy_timeout = 20`) // waits no longer than that for readers
	require.NoError(t, err)
	reading, err := other.QueryContext(t.Context(), `SELECT key FROM docs_pages`)
	require.NoError(t, err)
	require.True(t, reading.Next())
	_, err = purge(t, d, s, "p", w.time.Now())
	require.ErrorIs(t, err, removal.ErrNotErased)
	require.Equal(t, []string{"0"}, w.strings(`SELECT CAST(COUNT(*) AS TEXT) FROM docs_pages`))
	require.NoError(t, reading.Close())
	_, err = purge(t, d, s, "p", w.time.Now())
	require.NoError(t, err)
	require.NotContains(t, file(), "zanzibar")
}

// The block's form, to the letter: scripts read it.
func TestReportText(t *testing.T) {
	r := providerReport{Name: "OpenAI", FinishedAt: time.Date(2026, 2, 23, 3, 0, 0, 0, time.UTC), TotalPages: 187, New: 5, Updated: 12, Deleted: 2,
		ChangeRate: percent(19, 187), SuccessRate: 98.4, AvgResponseMS: 340, Duration: 272}
	require.Equal(t, `[2026-02-23 03:00:00] [CRAWL_REPORT] Provider: OpenAI
  - Total Pages: 187
  - New: 5, Updated: 12, Deleted: 2
  - Change Rate: 10.2%
  - Success Rate: 98.4%
  - Avg Response Time: 340ms
  - Duration: 4m 32s
`, r.Text())
	require.Equal(t, "59s", brief(59*time.Second))
	require.Equal(t, "3h 0m 1s", brief(3*time.Hour+time.Second))
}

// The seven alerts, each at its threshold and past it.
func TestAlerts(t *testing.T) {
	fine := providerReport{Provider: "p", Name: "P", State: Done, TotalPages: 100, PreviousPages: 100, SuccessRate: 90, ErrorRate: 20, AvgResponseMS: 5000, EmptyRate: 10, RetryRate: 15}
	names := func(change func(*providerReport)) (out []string) {
		r := fine
		change(&r)
		for _, a := range r.alerts(stats{Requests: 10}, alert.Defaults(alert.PageRules()...)) {
			require.Equal(t, "p", a.Provider)
			require.Contains(t, a.Text, "P: ")
			out = append(out, a.Name)
		}
		return out
	}
	require.Empty(t, names(func(*providerReport) {}))
	for want, change := range map[string]func(*providerReport){
		"success_rate":  func(r *providerReport) { r.SuccessRate = 89.9 },
		"pages_change":  func(r *providerReport) { r.TotalPages = 50 },
		"mean_response": func(r *providerReport) { r.AvgResponseMS = 5001 },
		"error_rate":    func(r *providerReport) { r.ErrorRate = 20.1 },
		"empty_rate":    func(r *providerReport) { r.EmptyRate = 10.1 },
		"retry_rate":    func(r *providerReport) { r.RetryRate = 15.1 },
	} {
		require.Equal(t, []string{want}, names(change))
	}
	require.Equal(t, []string{"pages_change"}, names(func(r *providerReport) { r.TotalPages = 150 }))
	require.Empty(t, names(func(r *providerReport) { r.TotalPages = 149 }))
	require.Empty(t, names(func(r *providerReport) { r.TotalPages, r.PreviousPages = 5, 0 }), "a first crawl is no change")
	down := providerReport{Provider: "p", Name: "P", State: Unreachable, TotalPages: 100, PreviousPages: 100}
	require.Equal(t, []crawlAlert{{Name: "success_rate", Provider: "p", Limit: 90, Text: "P: it cannot be reached"}}, down.alerts(stats{}, alert.Defaults(alert.PageRules()...)))
	require.Empty(t, down.alerts(stats{}, alert.Thresholds{}), "turned off")
	require.Empty(t, sessionAlerts(crawlReport{Duration: 3 * 3600}, alert.Defaults(alert.PageRules()...)))
	require.Equal(t, "duration", sessionAlerts(crawlReport{Duration: 3*3600 + 1}, alert.Defaults(alert.PageRules()...))[0].Name)
}

// The report uses the thresholds of the settings; 0 turns an alert off.
func TestThresholds(t *testing.T) {
	bad := providerReport{Provider: "p", State: Done, TotalPages: 10, PreviousPages: 100, ErrorRate: 100, AvgResponseMS: 1e6, EmptyRate: 100, RetryRate: 100, Duration: 1e6}
	require.Len(t, bad.alerts(stats{Requests: 10}, alert.Defaults(alert.PageRules()...)), 6)
	require.Empty(t, bad.alerts(stats{Requests: 10}, alert.Thresholds{}), "0 turns an alert off")
	require.Empty(t, sessionAlerts(crawlReport{Duration: 1e6}, alert.Thresholds{}))
	require.Len(t, providerReport{AvgResponseMS: 1}.alerts(stats{}, alert.Thresholds{"mean_response": 500e-6}), 1)
}

// A session is resumed after a kill, but not after three days.
func TestSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		require.NoError(t, Migrate(t.Context(), d))
		now := time.Date(2026, 2, 23, 3, 0, 0, 0, time.UTC)
		for _, tt := range []struct {
			run     string
			after   time.Duration
			end     bool
			session string
			resumed bool
		}{
			{"a", 0, false, "a", false},
			{"b", time.Hour, true, "a", true},
			{"c", 2 * time.Hour, false, "c", false},
			{"d", 73 * time.Hour, false, "c", true},
			{"e", 146 * time.Hour, false, "e", false},
		} {
			id, resumed, err := beginSession(t.Context(), d, tt.run, now.Add(tt.after))
			require.NoError(t, err)
			require.Equal(t, []any{tt.session, tt.resumed}, []any{id, resumed}, tt.run)
			if tt.end {
				require.NoError(t, endSession(t.Context(), d, id, now.Add(tt.after)))
			}
		}
	})
}

// --explain names the rule that decides, and fetches robots.txt at most.
func TestExplain(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/robots.txt", text("User-agent: *\nDisallow: /docs/secret\n"))
		w.set("/docs", doc("seed", "/docs/no"))
		w.set("/docs/no", status(403))
		w.run()
		w.log()
		cfg := w.cfg
		cfg.Lane.RunID = "explain"
		cfg.Policies = []policy.Policy{w.policy}
		worker, err := lane.Open(t.Context(), cfg.Lane)
		require.NoError(t, err)
		defer func() { require.NoError(t, lane.Close("explain")) }()
		worker.Pacer.Clock = w.time.Polite()
		for _, tt := range []struct{ url, rule, says string }{
			{"https://docs.example.com/docs", "", ""},
			{"http://www.docs.example.com/docs/x?utm_source=a#b", "", ""},
			{"https://docs.example.com/docs/secret", "robots", "robots.txt line 2: Disallow: /docs/secret"},
			{"https://docs.example.com/docs/old/1", "pattern", "the blocked path pattern /docs/old/**"},
			{"https://docs.example.com/docs/blog/1", "pattern", `the personal-data block "blog" (/*/{blog,blogs}/**)`},
			{"https://docs.example.com/pricing", "pattern", "no allowed path pattern matches"},
			{"https://docs.example.com/docs/no", "known", "it answered 403 and is never requested again (docs_blocked_urls)"},
			{"https://other.example/docs", "host", "no policy has a seed on it; pages of other hosts are never requested"},
			{"ftp://docs.example.com/docs", "scheme", ""},
		} {
			found, err := explain(t.Context(), cfg, worker, w.db, tt.url)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, tt.rule == "", found[0].Accepted, tt.url)
			var stops []string
			for _, f := range found[0].Findings {
				if f.Stop {
					stops = append(stops, f.Rule)
					if tt.says != "" {
						require.Equal(t, tt.says, f.Says)
					}
				}
				require.LessOrEqual(t, len([]rune(f.Says)), 400)
			}
			if tt.rule != "" {
				require.Equal(t, []string{tt.rule}, stops, tt.url)
			}
		}
		for _, a := range w.log() {
			require.Equal(t, "/robots.txt", a.path)
		}

		// Who does not want to be visited is not asked for that either.
		w.time.Advance(25 * time.Hour) // what is kept of robots.txt is too old
		cfg.Policies[0].Terms = policy.Prohibited
		found, err := explain(t.Context(), cfg, worker, w.db, "https://docs.example.com/docs")
		require.NoError(t, err)
		require.False(t, found[0].Accepted)
		require.Contains(t, found[0].String(), "not fetched, because the provider is not crawled")
		require.Empty(t, w.log())
	})
}

// Two providers on one host that are crawled at the same time keep one pause between all of
// their requests.
func TestTwoProvidersOnOneHost(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	w := newWorld(t, d)
	w.set("/docs", doc("A page", "/docs/a", "/docs/b"))
	w.set("/docs/a", doc("Another page"))
	w.set("/docs/b", doc("A third page"))
	cfg := w.cfg
	cfg.Lane.RunID = "two"
	worker, err := lane.Open(t.Context(), cfg.Lane)
	require.NoError(t, err)
	defer func() { require.NoError(t, lane.Close("two")) }()
	worker.Pacer.Clock = w.time.Polite()
	var runs sync.WaitGroup
	for _, id := range []string{"p", "q"} {
		p := w.policy
		p.ProviderID, p.RequestDelayMS = id, 4500
		in, err := enter(t.Context(), w.db, w.session, p.ProviderID, cfg.Lane.RunID, w.time.Now())
		require.NoError(t, err)
		c := newCrawl(cfg, worker, w.db, p, in)
		runs.Go(func() {
			state, _, err := c.run(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, Done, state)
		})
	}
	runs.Wait()
	log := w.log()
	require.GreaterOrEqual(t, len(log), 7) // one robots.txt, where the second finds it in the database
	for i := 1; i < len(log); i++ {
		require.GreaterOrEqual(t, log[i].at.Sub(log[i-1].at), 3*time.Second, "%d: %s", i, log[i].path)
	}
}

// The client's limits are the job's.
func TestWeb(t *testing.T) {
	require.Equal(t, web.Config{UserAgent: UserAgent, Concurrency: 3}, Web(web.Config{Concurrency: 64}))
	require.Equal(t, web.Config{UserAgent: "AcmeBot/1.0", Concurrency: 3}, Web(web.Config{UserAgent: "AcmeBot/1.0"}))
}

// A session queues at most maxQueued pages, also of one list.
func TestFrontierIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openDB(t, dbtest.SQLite(t)))
	w.policy.SitemapURL, w.policy.MaxPages = "https://"+host+"/sitemap.xml", 1
	var b strings.Builder
	for n := range maxQueued {
		fmt.Fprintf(&b, "<url><loc>https://%s/docs/p%d</loc></url>", host, n)
	}
	w.set("/docs", doc("seed"))
	w.set("/sitemap.xml", typed("application/xml", "<urlset>"+b.String()+"</urlset>"))
	_, reason := w.run()
	require.Equal(t, reasonMaxPages, reason)
	require.Equal(t, []string{fmt.Sprint(maxQueued)}, w.strings(`SELECT CAST(COUNT(*) AS TEXT) FROM docs_pages`))
}

// Which providers a run crawls.
func TestCrawled(t *testing.T) {
	for _, tt := range []struct {
		channel  policy.Channel
		terms    policy.Terms
		fallback bool
		has      string
		want     bool
	}{
		{policy.Crawl, policy.Unknown, false, "", true},
		{policy.Crawl, policy.Allowed, false, "", true},
		{policy.Crawl, policy.Prohibited, true, "", false},
		{policy.Crawl, policy.Allowed, false, "Context7 has it", false},
		{policy.Context7, policy.Allowed, false, "", true},
		{policy.Context7, policy.Allowed, false, "Context7 has it", false},
		{policy.Context7, policy.Allowed, true, "Context7 has it", true},
		{policy.Context7, policy.Prohibited, true, "", false},
	} {
		reason, ok := Config{Fallback: tt.fallback}.crawled(policy.Policy{ProviderID: "a", Channel: tt.channel, Terms: tt.terms}, map[string]string{"a": tt.has})
		require.Equal(t, tt.want, ok)
		require.Equal(t, tt.want, reason == "")
	}
}

// The hand-off says where on its page each chunk is.
func TestHandOffPlace(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	w := newWorld(t, d)
	text := strings.Repeat("Some words about it. ", 20)
	w.set("/docs", html(`<html lang="en"><title>Charges | Example</title><main><h1>Charges</h1><p>`+text+`</p><h2 id="make">Make one</h2><p>`+text+`</p></main>`))
	w.run()
	var places []string
	for _, h := range w.handed() {
		places = append(places, strings.Join(h.Path, "/")+"#"+h.Anchor+" "+h.Context)
		require.Equal(t, "en", h.Language)
		require.WithinDuration(t, w.time.Now(), *h.FetchedAt, time.Minute)
	}
	require.ElementsMatch(t, []string{"Charges# Charges | Example", "Charges/Make one#make Charges | Example > Make one"}, places)
}

// A wait for the hour's budget is shown while it lasts, and what was waited and
// worked before it is kept when the process dies in it.
func TestWaitForBudgetIsShownAndKept(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.cfg.HourBudget, w.cfg.DayBudget = 3, 100
		w.set("/docs", doc("seed", "/docs/1", "/docs/2"))
		w.set("/docs/1", doc("one"))
		w.set("/docs/2", doc("two"))
		kept := func() (s stats) {
			var text string
			require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT stats FROM docs_runs WHERE session = $1`, w.session).Scan(&text))
			require.NoError(t, json.Unmarshal([]byte(text), &s))
			return s
		}
		begun := w.time.Now()
		var shown []string
		var half stats
		var worked time.Duration
		w.waits = func() {
			now := w.time.Now()
			if half.Waited > 0 || now.Sub(begun) < 30*time.Minute {
				return
			}
			half, worked = kept(), now.Sub(begun)
			require.NoError(t, w.crawl.w.RunLane(t.Context(), 0, 1, 1, func(ledger.Tally) {}, func(context.Context, *lane.Lane) error { return nil }))
			progress, err := ledger.ReadProgress(t.Context(), w.crawl.w.Store, w.crawl.cfg.Lane.RunID)
			require.NoError(t, err)
			shown = progress.Lanes[0].Waits
		}
		state, _ := w.run()
		require.Equal(t, Done, state)
		all := w.crawl.part.stats
		require.Greater(t, half.Waited, (28 * time.Minute).Microseconds())
		require.InDelta(t, worked.Microseconds(), half.Active, float64((2 * time.Minute).Microseconds()), "at work and waiting so far")
		require.Greater(t, all.Waited, (58 * time.Minute).Microseconds())
		require.Less(t, all.Active-all.Waited, time.Minute.Microseconds(), "work alone")
		require.Equal(t, []string{"p waits until 2026-02-23T04:01:00Z: the docs job's requests of this hour are used up"}, shown)
	})
}

// A provider counts page by page, not at its end, and what an earlier run of the
// session counted is not counted again.
func TestCountsPageByPage(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.cfg.DayBudget = 4
		var fetched []int64
		var links []string
		for n := range 5 {
			links = append(links, fmt.Sprint("/docs/", n))
			w.set(fmt.Sprint("/docs/", n), func(rw http.ResponseWriter, r *http.Request) {
				fetched = append(fetched, w.crawl.w.Live().Counts["pages_fetched"])
				doc(r.URL.Path)(rw, r)
			})
		}
		w.set("/docs", doc("seed", links...))
		state, _ := w.run()
		require.Equal(t, OutOfBudget, state)
		require.Equal(t, []int64{1, 2}, fetched)
		require.EqualValues(t, 3, w.live.Counts["pages_new"])
		w.time.Advance(25 * time.Hour)
		state, _ = w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []int64{1, 2, 0, 1, 2}, fetched)
		require.EqualValues(t, 3, w.live.Counts["pages_new"])
		require.EqualValues(t, 6, w.crawl.part.stats.New)
	})
}
