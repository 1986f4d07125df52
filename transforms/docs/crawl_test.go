package docs

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
)

// Near pages first, in the order of discovery; each page
// once; nothing out of scope; no deeper than max_depth. Also where there are no
// pauses.
func TestBreadthFirst(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.policy.MaxDepth = 2
		w.set("/docs", doc("seed", "/docs/b", "/docs/a", "https://"+host+"/docs/b/?utm_source=x#top", "#here", "mailto:a@b.example", "javascript:void(0)", "tel:1", "data:,x",
			"https://other.example/docs/x", "/pricing", "/docs/old/x", "/docs/c?page=2"))
		w.set("/docs/b", doc("b", "/docs/b/1", "/docs", "/docs/a"))
		w.set("/docs/a", doc("a", "/docs/a/1", "/docs/b/1"))
		w.set("/docs/c?page=2", doc("c"))
		w.set("/docs/b/1", doc("b1", "/docs/deep"))
		w.set("/docs/a/1", doc("a1"))
		w.set("/docs/deep", doc("deep"))
		for _, noDelay := range []bool{false, true} {
			w.cfg.NoDelay = noDelay
			state, reason := w.run()
			require.Equal(t, []any{Done, ""}, []any{state, reason})
			// The address is the link as found: the query is asked for, but is no part of the key.
			require.Equal(t, []string{"/docs", "/docs/b", "/docs/a", "/docs/c?page=2", "/docs/b/1", "/docs/a/1"}, w.paths())
			require.Equal(t, []string{"https://docs.example.com/docs 0", "https://docs.example.com/docs/a 1", "https://docs.example.com/docs/a/1 2", "https://docs.example.com/docs/b 1",
				"https://docs.example.com/docs/b/1 2", "https://docs.example.com/docs/c 1"}, w.strings(`SELECT key || ' ' || depth FROM docs_pages WHERE status = 'indexed' ORDER BY key`))
			w.newSession()
		}
	})
}

// max_pages 200 is 200 requests, never 201. Retries, redirect hops
// and robots.txt do not count.
func TestMaxPages(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.cfg.HourBudget = 5000
		var links []string
		for n := range 250 {
			at := fmt.Sprintf("/docs/%03d", n)
			links = append(links, at)
			w.set(at, doc(fmt.Sprint("page ", n)))
		}
		w.set("/docs", doc("seed", links...))
		w.set("/docs/000", sequence(status(500), doc("page 0")))
		w.set("/docs/001", status(302, "Location", "/docs/moved"))
		w.set("/docs/moved", doc("moved"))
		state, reason := w.run()
		require.Equal(t, []any{Done, reasonMaxPages}, []any{state, reason})
		paths := w.paths()
		require.Len(t, paths, 200+1+1, "one retry, one redirect hop")
		require.Equal(t, int64(200), w.crawl.part.stats.Requests-w.crawl.part.stats.Retries)
		require.Equal(t, int64(1), w.crawl.w.Web.Stats().Retries, "for the report's http.retries")
		slices.Sort(paths)
		require.Len(t, slices.Compact(paths), 201)
		require.Equal(t, []string{"200 200"}, w.strings(`SELECT (SELECT requested FROM docs_runs) || ' ' || requested FROM docs_sessions`))
	})
}

// A frontier of exactly max_pages reaches no limit.
func TestMaxPagesExactly(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.policy.MaxPages = 3
		w.pages("a", "b")
		_, reason := w.run()
		require.Equal(t, "", reason)
		require.Len(t, w.paths(), 3)
	})
}

// The run's limit counts the pages of all providers.
func TestLimit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.cfg.Lane.Limit = 3
		w.pages("a")
		_, reason := w.run()
		require.Equal(t, "", reason)
		w.policy.ProviderID = "q"
		state, reason := w.run()
		require.Equal(t, []any{OutOfBudget, reasonLimit}, []any{state, reason})
		require.Equal(t, []string{"/docs", "/docs/a", "/docs"}, w.paths())
		w.newSession() // continues it
		state, _ = w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs/a"}, w.paths())
	})
}

// What the sitemap lists joins at depth 1, behind the seed and
// in the sitemap's order, and is crawled like a link of the seed; the sitemap
// itself is no page.
func TestSitemap(t *testing.T) {
	t.Parallel()
	urlset := func(locs ...string) http.HandlerFunc {
		var b strings.Builder
		for _, l := range locs {
			fmt.Fprintf(&b, "<url><loc>%s</loc></url>", l)
		}
		return xml(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + b.String() + `</urlset>`)
	}
	at := "https://" + host
	for _, tt := range []struct {
		name     string
		sitemaps map[string]http.HandlerFunc
		robots   string
		asked    []string       // in this order, sitemaps too
		depths   map[string]int // of the pages
	}{
		{"a list", map[string]http.HandlerFunc{"/sitemap.xml": urlset(at+"/docs/deep/down/here", at+"/docs/a", at+"/docs", at+"/pricing", at+"/docs/old/x", "https://other.example/docs/x", at+"/docs/a?utm_source=s")}, "",
			[]string{"/sitemap.xml", "/docs", "/docs/deep/down/here", "/docs/a", "/docs/linked", "/docs/below"},
			map[string]int{"/docs": 0, "/docs/deep/down/here": 1, "/docs/a": 1, "/docs/linked": 1, "/docs/below": 2}},
		{"an index", map[string]http.HandlerFunc{"/sitemap.xml": xml(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>` + at + `/one.xml</loc></sitemap><sitemap><loc>https://other.example/two.xml</loc></sitemap><sitemap><loc>` + at + `/none.xml</loc></sitemap></sitemapindex>`),
			"/one.xml": urlset(at + "/docs/a")}, "",
			[]string{"/sitemap.xml", "/one.xml", "/none.xml", "/docs", "/docs/a", "/docs/linked"}, map[string]int{"/docs": 0, "/docs/a": 1, "/docs/linked": 1}},
		{"an index that names itself and what is relative to it", map[string]http.HandlerFunc{"/sitemap.xml": xml(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>` + at + `/sitemap.xml</loc></sitemap><sitemap><loc>one.xml</loc></sitemap><sitemap><loc>` + at + `/one.xml</loc></sitemap></sitemapindex>`),
			"/one.xml": urlset("/docs/a")}, "",
			[]string{"/sitemap.xml", "/one.xml", "/docs", "/docs/a", "/docs/linked"}, map[string]int{"/docs": 0, "/docs/a": 1, "/docs/linked": 1}},
		{"broken", map[string]http.HandlerFunc{"/sitemap.xml": xml("no sitemap")}, "", []string{"/sitemap.xml", "/docs", "/docs/linked"}, map[string]int{"/docs": 0, "/docs/linked": 1}},
		{"packed", map[string]http.HandlerFunc{"/sitemap.xml": packed(urlset(at + "/docs/a"))}, "", []string{"/sitemap.xml", "/docs", "/docs/a", "/docs/linked"}, map[string]int{"/docs": 0, "/docs/a": 1, "/docs/linked": 1}},
		{"forbidden", map[string]http.HandlerFunc{"/sitemap.xml": urlset(at + "/docs/a")}, "User-agent: *\nDisallow: /sitemap.xml\n", []string{"/docs", "/docs/linked"}, map[string]int{"/docs": 0, "/docs/linked": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.policy.SitemapURL = at + "/sitemap.xml"
				w.policy.MaxDepth = 2
				w.pages("linked")
				w.set("/docs/a", doc("a", "/docs/linked"))
				w.set("/docs/deep/down/here", doc("here", "/docs/below"))
				w.set("/docs/below", doc("below"))
				w.set("/robots.txt", text(tt.robots))
				for path, h := range tt.sitemaps {
					w.set(path, h)
				}
				state, _ := w.run()
				require.Equal(t, Done, state)
				log := w.log()
				for _, g := range gaps(log) {
					require.GreaterOrEqual(t, g, time.Second, "a sitemap gets its pause too")
				}
				var asked []string
				for _, a := range log[1:] {
					asked = append(asked, a.path)
				}
				require.Equal(t, tt.asked, asked)
				got := map[string]int{}
				for path := range tt.depths {
					require.Equal(t, Indexed, w.row(path).Status, path)
					got[path] = w.row(path).Depth
				}
				require.Equal(t, tt.depths, got)
				require.Equal(t, []string{fmt.Sprint(len(tt.depths))}, w.strings(`SELECT CAST(requested AS TEXT) FROM docs_runs`), "a sitemap is no page")
				require.Equal(t, []string{fmt.Sprint(len(log))}, w.strings(`SELECT CAST(SUM(requests) AS TEXT) FROM docs_budget`), "but a request")
			})
		})
	}
}

// packed is a sitemap.xml.gz: gzip is its form, not its transport.
func packed(of http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		plain := httptest.NewRecorder()
		of(plain, r)
		w.Header().Set("Content-Type", "application/gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(plain.Body.Bytes()) // a client that is gone is the test's failure
		_ = z.Close()
	}
}

func xml(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = fmt.Fprint(w, body)
	}
}

// gaps are the pauses between the requests of a log.
func gaps(log []asked) (out []time.Duration) {
	for i := 1; i < len(log); i++ {
		out = append(out, log[i].at.Sub(log[i-1].at))
	}
	return out
}

// A Crawl-delay of one origin of a site applies to the others too.
func TestDelayOfASite(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	w := newWorld(t, d)
	w.handle("www." + host)
	w.set("/robots.txt", sequence(text("User-agent: *\nCrawl-delay: 7\n"), text("")))
	w.set("/docs", doc("seed", "https://www."+host+"/docs/1", "/docs/2"))
	w.set("/docs/1", doc("one", "https://"+host+"/docs/3", "https://www."+host+"/docs/4"))
	for _, n := range []string{"2", "3", "4"} {
		w.set("/docs/"+n, doc("page "+n))
	}
	w.run()
	log := w.log()
	var paths []string
	for _, a := range log {
		paths = append(paths, a.path)
	}
	require.ElementsMatch(t, []string{"/robots.txt", "/robots.txt", "/docs", "/docs/1", "/docs/2", "/docs/3", "/docs/4"}, paths)
	for i, g := range gaps(log) {
		require.GreaterOrEqual(t, g, 7*time.Second, paths[i+1])
	}
}

// A random pause around the policy's delay, robots.txt
// included, and who may lengthen it.
func TestDelay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		delay       int
		robots      http.HandlerFunc
		least, most time.Duration
	}{
		{"1500", 1500, nil, time.Second, 2 * time.Second},
		{"3000", 3000, nil, 2 * time.Second, 4 * time.Second},
		{"never under a second", 1000, nil, time.Second, 1334 * time.Millisecond},
		{"crawl-delay within the range", 3000, text("User-agent: *\nCrawl-delay: 3\n"), 3 * time.Second, 4 * time.Second},
		{"crawl-delay", 1500, text("User-agent: *\nCrawl-delay: 7\n"), 7 * time.Second, 7 * time.Second},
		{"a short crawl-delay", 1500, text("User-agent: APIIntelBot\nCrawl-delay: 0.1\n"), time.Second, 2 * time.Second},
		{"robots.txt 503", 1500, status(503), 2 * time.Second, 2 * time.Second},
		{"robots.txt 500 and a long delay", 4500, status(500), 3 * time.Second, 6 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.policy.RequestDelayMS = tt.delay
				if tt.robots != nil {
					w.set("/robots.txt", tt.robots)
				}
				var links []string
				for n := range 40 {
					links = append(links, fmt.Sprint("/docs/", n))
					w.set(fmt.Sprint("/docs/", n), doc(fmt.Sprint("page ", n)))
				}
				w.set("/docs", doc("seed", links...))
				w.run()
				all := gaps(w.log())
				require.Len(t, all, 41)
				distinct := map[time.Duration]int{}
				for _, g := range all {
					require.GreaterOrEqual(t, g, tt.least)
					require.LessOrEqual(t, g, tt.most)
					distinct[g]++
				}
				if tt.least < tt.most {
					for g, n := range distinct {
						require.LessOrEqual(t, n, 3, "%s, %d times of %d: the pauses are spread over the range", g, n, len(all))
					}
				}
			})
		})
	}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	}
}

// breaking ends the connection in the middle of an answer. (Where not a byte of
// it came, net/http itself asks once more on a new connection.)
func breaking(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = fmt.Fprint(w, "<html>")
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
	panic(http.ErrAbortHandler)
}

// For each status: the waits before the next tries, and the final status of the page. The
// waits are those of the table; the pause between two requests is not added to them.
func TestBackoffTable(t *testing.T) {
	t.Parallel()
	s, m := time.Second, time.Minute
	now := time.Date(2026, 2, 23, 3, 0, 0, 0, time.UTC)
	type backoffRow struct {
		name   string
		answer http.HandlerFunc
		waits  []time.Duration
		end    Status
		moves  string
	}
	rows := func() []backoffRow {
		return []backoffRow{
			{"200", doc("x"), nil, Indexed, "queued robots_check fetching parsing extracting indexed"},
			{"403", status(403), nil, Failed, "queued robots_check fetching failed"},
			{"404", status(404), nil, Failed, "queued robots_check fetching failed"},
			{"410", status(410), nil, Failed, "queued robots_check fetching failed"},
			{"400", status(400), nil, Failed, "queued robots_check fetching failed"},
			{"401", status(401), nil, Skipped, "queued robots_check fetching skipped"},
			{"429 without Retry-After", sequence(status(429), doc("x")), []time.Duration{m}, Indexed, "queued robots_check fetching rate_limited fetching parsing extracting indexed"},
			{"429 with seconds", sequence(status(429, "Retry-After", "90"), doc("x")), []time.Duration{90 * s}, Indexed, ""},
			{"429 with few seconds", sequence(status(429, "Retry-After", "5"), doc("x")), []time.Duration{5 * s}, Indexed, ""},
			{"429 with a date", sequence(func(w http.ResponseWriter, r *http.Request) {
				status(429, "Retry-After", now.Add(5*m).Format(http.TimeFormat), "Date", "")(w, r) // the simulated web has another clock
			}, doc("x")), []time.Duration{-1}, Indexed, ""},
			{"429 twice", status(429), []time.Duration{m}, Failed, "queued robots_check fetching rate_limited fetching failed"},
			{"500", sequence(status(500), status(500), doc("x")), []time.Duration{30 * s, m}, Indexed, "queued robots_check fetching retry fetching retry fetching parsing extracting indexed"},
			{"500 for good", status(500), []time.Duration{30 * s, m}, Failed, "queued robots_check fetching retry fetching retry fetching failed"},
			{"501", status(501), []time.Duration{30 * s, m}, Failed, ""},
			{"502", status(502), []time.Duration{30 * s, m}, Failed, ""},
			{"504", status(504), []time.Duration{30 * s, m}, Failed, ""},
			{"503", sequence(status(503), status(503), status(503), doc("x")), []time.Duration{30 * s, m, 2 * m}, Indexed, ""},
			{"503 for good", status(503), []time.Duration{30 * s, m, 2 * m}, Failed, ""},
			{"503 with a longer Retry-After", sequence(status(503, "Retry-After", "100"), doc("x")), []time.Duration{100 * s}, Indexed, ""},
			{"503 with a shorter Retry-After", sequence(status(503, "Retry-After", "1"), doc("x")), []time.Duration{30 * s}, Indexed, ""},
			{"connection", sequence(breaking, doc("x")), []time.Duration{30 * s}, Indexed, "queued robots_check fetching retry fetching parsing extracting indexed"},
			{"connection for good", breaking, []time.Duration{30 * s}, Failed, "queued robots_check fetching retry fetching failed"},
		}
	}
	for i, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				tt := rows()[i] // its answers count, so each database has its own
				w := newWorld(t, d)
				w.time = politetest.At(now)
				w.set("/docs", doc("seed", "/docs/x", "/docs/y"))
				w.set("/docs/x", tt.answer)
				w.set("/docs/y", doc("y"))
				state, _ := w.run()
				require.Equal(t, Done, state)
				log := w.log() // robots.txt, /docs, /docs/x and its retries, /docs/y
				require.Len(t, log, 4+len(tt.waits))
				for i, g := range gaps(log[2:]) {
					if i == len(tt.waits) {
						break
					}
					if tt.waits[i] < 0 { // a date
						require.Equal(t, now.Add(5*m), log[3].at)
						continue
					}
					require.Equal(t, tt.waits[i], g, "wait %d", i)
				}
				require.Equal(t, "/docs/y", log[len(log)-1].path, "while a URL waits, the whole host waits")
				require.Equal(t, tt.end, w.row("/docs/x").Status)
				if tt.moves != "" {
					require.Equal(t, tt.moves, strings.Trim(fmt.Sprint(w.moves["https://"+host+"/docs/x"]), "[]"))
				}
			})
		})
	}
}

// names is a name server. The next so many look-ups of an address fail: there
// is no such name, or its address refuses connections.
type names struct {
	conn *net.UDPConn

	mu      sync.Mutex
	fail    int
	refuses bool
	asked   int
}

func newNames(t *testing.T) *names {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	n := &names{conn: conn}
	served := make(chan struct{})
	go func() { defer close(served); n.serve() }()
	t.Cleanup(func() { require.NoError(t, conn.Close()); <-served })
	return n
}

func (n *names) serve() {
	buf := make([]byte, 4096)
	for {
		k, from, err := n.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var p dnsmessage.Parser
		head, herr := p.Start(buf[:k])
		q, qerr := p.Question()
		if err != nil || herr != nil || qerr != nil {
			continue
		}
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true}, Questions: []dnsmessage.Question{q}}
		if q.Type == dnsmessage.TypeA {
			at, ok := n.look()
			if !ok {
				m.RCode = dnsmessage.RCodeNameError
			} else {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: at}}}
			}
		}
		if reply, err := m.Pack(); err == nil {
			_, _ = n.conn.WriteToUDPAddrPort(reply, from) // a lost datagram is asked for again
		}
	}
}

func (n *names) look() (at [4]byte, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	at = [4]byte{127, 0, 0, 1}
	if n.fail == 0 {
		return at, true
	}
	n.fail--
	at[3] = 2 // nobody listens there
	return at, n.refuses
}

// What fails below HTTP, by the real client: a name that does not resolve,
// an address that refuses, a page that does not answer in time. Each is tried
// once more after 30 seconds and then passed over.
func TestBelowHTTP(t *testing.T) {
	t.Parallel()
	require.Equal(t, 30*time.Second, pageTimeout)
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tt := range []struct {
		name    string
		fail    int // look-ups
		refuses bool
		answers func() http.HandlerFunc // of /docs/x
		reached int                     // requests for it that the site saw
		end     Status
		reason  string
	}{
		{"dns", 1, false, func() http.HandlerFunc { return doc("x") }, 1, Indexed, ""},
		{"dns for good", 2, false, func() http.HandlerFunc { return doc("x") }, 0, Failed, "dns"},
		{"refused", 1, true, func() http.HandlerFunc { return doc("x") }, 1, Indexed, ""},
		{"refused for good", 2, true, func() http.HandlerFunc { return doc("x") }, 0, Failed, "connect"},
		{"timeout", 0, false, func() http.HandlerFunc { return sequence(silent, doc("x")) }, 2, Indexed, ""},
		{"timeout for good", 0, false, func() http.HandlerFunc { return silent }, 2, Failed, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w, n := newWorld(t, d), newNames(t)
				w.cfg.Lane.Web.Resolver = n.conn.LocalAddr().String()
				w.timeout = 2 * time.Second
				if tt.fail == 0 {
					w.timeout = 300 * time.Millisecond
				}
				lone := func(h http.HandlerFunc) http.HandlerFunc { // each request looks the name up
					return func(rw http.ResponseWriter, r *http.Request) {
						rw.Header().Set("Connection", "close")
						h(rw, r)
					}
				}
				w.set("/robots.txt", lone(text("")))
				w.set("/docs", lone(func(rw http.ResponseWriter, r *http.Request) {
					n.mu.Lock()
					n.fail, n.refuses = tt.fail, tt.refuses
					n.mu.Unlock()
					doc("seed", "/docs/x", "/docs/y")(rw, r)
				}))
				w.set("/docs/x", lone(tt.answers()))
				w.set("/docs/y", lone(doc("y")))
				state, _ := w.run()
				require.Equal(t, Done, state)
				log := w.log()
				require.Len(t, log, 3+tt.reached, "robots.txt, /docs, /docs/x, /docs/y")
				last := log[len(log)-1]
				require.Equal(t, "/docs/y", last.path)
				waited := last.at.Sub(log[1].at)
				require.GreaterOrEqual(t, waited, 31*time.Second, "the host waits 30 s, and its pause before the first try")
				require.Less(t, waited, 36*time.Second, "once")
				require.Equal(t, int64(1), w.crawl.part.stats.Retries)
				require.Equal(t, []any{tt.end, 0}, []any{w.row("/docs/x").Status, map[Status]int{Indexed: w.row("/docs/x").HTTP - 200, Failed: w.row("/docs/x").HTTP}[tt.end]})
				require.Contains(t, w.row("/docs/x").Reason, tt.reason)
				require.Equal(t, Indexed, w.row("/docs/y").Status)
			})
		})
	}
}

// The table's times for what fails below HTTP.
func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		status, retries int
		after           time.Duration
		wait            time.Duration
		again           bool
	}{
		{0, 0, -1, 30 * time.Second, true}, {0, 1, -1, 0, false},
		{429, 0, -1, time.Minute, true}, {429, 0, 0, 0, true}, {429, 0, time.Hour, time.Hour, true}, {429, 1, -1, 0, false},
		{503, 2, -1, 2 * time.Minute, true}, {503, 3, -1, 0, false},
		{520, 1, -1, time.Minute, true}, {404, 0, -1, 0, false}, {301, 0, -1, 0, false},
	} {
		wait, again := backoff(tt.status, tt.retries, tt.after)
		require.Equal(t, []any{tt.wait, tt.again}, []any{wait, again}, "%+v", tt)
	}
}

// A Retry-After over ten minutes ends the provider for this run. The next run resumes the
// crawl, but not before that time.
func TestLongRetryAfter(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.set("/docs", doc("seed", "/docs/x", "/docs/y"))
		w.set("/docs/x", sequence(status(429, "Retry-After", "3600"), doc("x")))
		w.set("/docs/y", doc("y"))
		state, _ := w.run()
		require.Equal(t, Held, state)
		require.Equal(t, []string{"/docs", "/docs/x"}, w.paths())
		require.Equal(t, RateLimited, w.row("/docs/x").Status)

		w.time.Advance(30 * time.Minute)
		state, _ = w.run()
		require.Equal(t, Held, state)
		require.Empty(t, w.log(), "half of the time is not enough")

		// Within ten minutes of the end the run waits, also in a new session.
		w.newSession()
		end := w.time.Now().Add(30 * time.Minute)
		w.time.Advance(25 * time.Minute)
		state, _ = w.run()
		require.Equal(t, Done, state)
		log := w.log()
		require.Equal(t, "/docs/x", log[0].path)
		require.False(t, log[0].at.Before(end), "asked at %v, %v before the time", log[0].at, end.Sub(log[0].at))
		require.Equal(t, "/docs/y", log[1].path)
		require.Len(t, log, 2)
		require.Equal(t, Indexed, w.row("/docs/x").Status)
	})
}
