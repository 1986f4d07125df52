//go:build unix

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/hankyung"
	"github.com/newsfork/seed-engine/transforms/news/mk"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/site"
)

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, provider.Seoul)

// world is what a run meets: a simulated web, a database, a store, and a clock
// that pauses turn.
type world struct {
	t     *testing.T
	dir   string // of the store
	sim   *webtest.Web
	sites map[string]*newssim.Site
	db    *db.DB
	store store.Store
	cfg   provider.Config

	mu      sync.Mutex
	now     time.Time
	slept   []time.Duration
	letters []ledger.DeadLetter
	counted ledger.Tally
}

func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	w := &world{t: t, db: d, sim: webtest.New(webtest.Options{}), cfg: provider.Defaults(), now: begin}
	w.sites = newssim.Install(w.sim.Handle, begin)
	require.NoError(t, w.sim.Start())
	t.Cleanup(func() { assert.NoError(t, w.sim.Close()) })
	require.NoError(t, raw.Migrate(t.Context(), d))
	var err error
	w.dir = t.TempDir()
	w.store, err = store.Open(t.Context(), w.dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.store.Close()) })
	return w
}

// The states of sites.
const (
	blocked = engine.State(site.Blocked)
	moved   = engine.State(site.Moved)
	closed  = engine.State(site.Closed)
	thin    = engine.State(site.Thin)
	down    = engine.State(site.Down)
)

// process is a worker of which the world knows the dead letters.
type process struct {
	*lane.Worker
	w *world
}

func (p process) DeadLetter(ctx context.Context, d ledger.DeadLetter) error {
	p.w.mu.Lock()
	p.w.letters = append(p.w.letters, d)
	p.w.mu.Unlock()
	return p.Worker.DeadLetter(ctx, d)
}

// runIDs tells the runs of all worlds apart.
var runIDs atomic.Int64

func (w *world) engine() *engine.Engine {
	w.t.Helper()
	id := fmt.Sprintf("run-%d", runIDs.Add(1))
	worker, err := lane.Open(w.t.Context(), lane.Config{Job: "news", RunID: id, Store: w.dir, Slots: 1, LogFormat: "json", LogLevel: 12, Web: web.Config{ConnectTo: w.sim.Addr(), RootCAs: w.sim.CAPEM()}})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, lane.Close(id)) })
	worker.Pacer.Clock = w.clock()
	return &engine.Engine{Job: "news", RunID: id, Config: w.cfg, UserAgent: "DemoBot", Web: worker.Web, Store: w.store, DB: w.db,
		Log: slog.New(slog.DiscardHandler), Options: engine.Options{LeaseTTL: 2 * time.Second}, Worker: process{worker, w}, Pacer: &worker.Pacer,
		Count: func(t ledger.Tally) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.counted.Add(t)
		}}
}

func (w *world) clock() polite.Clock {
	return polite.Clock{
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.slept = append(w.slept, d)
			w.now = w.now.Add(d)
			return nil
		}}
}

func (w *world) run(p provider.Provider, change ...func(*engine.Engine)) engine.Result {
	w.t.Helper()
	w.sim.ResetLog()
	e := w.engine()
	for _, c := range change {
		c(e)
	}
	r, err := e.Run(w.t.Context(), p)
	require.NoError(w.t, err)
	return r
}

func keepHTML(e *engine.Engine) { e.KeepHTML = true }
func reparse(e *engine.Engine)  { e.Reparse = true }

// paths are the requests of the last run, in order.
func (w *world) paths() (out []string) {
	for _, r := range w.sim.Requests() {
		out = append(out, r.Path)
	}
	return out
}

func (w *world) count(where string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.db.QueryRowContext(w.t.Context(), `SELECT count(*) FROM news_articles WHERE `+where).Scan(&n))
	return n
}

func all(t testing.TB) map[string]provider.Provider {
	t.Helper()
	declared, _, err := provider.ReadDeclarations(publishers.Files)
	require.NoError(t, err)
	out := map[string]provider.Provider{}
	for _, p := range append(declared, mk.Provider{}, hankyung.Provider{}) {
		out[p.ID()] = p
	}
	return out
}

func each(t *testing.T, test func(t *testing.T, w *world)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, newWorld(t, d)) })
}

// once is for what does not touch the database's dialect.
func once(t *testing.T) *world {
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return newWorld(t, d)
}

type counts struct{ Found, Fetched, Inserted, Changed, Same, Empty, Failed int64 }

func countsOf(r engine.Result) counts {
	return counts{r.Found, r.Fetched, r.Inserted, r.Changed, r.Same, r.Empty, r.Failed}
}

// Each publisher's ten newest articles come once; an edit comes again as a change.
func TestEveryPublisherTwice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		hosts := map[string]string{"mk": newssim.MK, "hankyung": newssim.Hankyung, "demo-economy": newssim.Economy, "demo-local": newssim.Local}
		for id, p := range all(t) {
			first := w.run(p)
			assert.Equal(t, engine.Ran, first.State, id)
			assert.Empty(t, first.Reason, id)
			found := int64(12)
			assert.Equal(t, counts{Found: found, Fetched: 10, Inserted: 10}, countsOf(first), id)
			assert.Equal(t, raw.Health{Parsed: 10, Titled: 10, Bodied: 10, Dated: 10}, first.Health, id)
			assert.Equal(t, 10, w.count("source = '"+id+"'"))

			again := w.run(p)
			assert.Equal(t, counts{Found: found}, countsOf(again), id)
			for _, at := range w.paths() {
				assert.True(t, at == "/robots.txt" || strings.Contains(at, "sitemap"), "%s: %s is fetched again", id, at)
			}

			site := w.sites[hosts[id]]
			site.Edit(12)
			third := w.run(p)
			assert.Equal(t, counts{Found: found, Fetched: 1, Changed: 1}, countsOf(third), "%s: an edit", id)
			assert.Equal(t, site.Path(12), w.paths()[len(w.paths())-1])
			assert.Equal(t, 10, w.count("source = '"+id+"'"), "%s: a title's change is an update", id)
			assert.Equal(t, 1, w.count("source = '"+id+"' AND title LIKE '%(수정 1)'"))
		}

		var title, text, press, canonical, external, authors string
		var published int64
		path := w.sites[newssim.MK].Path(5)
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT title, raw_text, press, canonical_url, external_id, authors, published_at FROM news_articles WHERE source = 'mk' AND url = $1`,
			"https://www.mk.co.kr"+path).Scan(&title, &text, &press, &canonical, &external, &authors, &published))
		assert.Equal(t, "데모 기사 5: 한국은행, 기준금리 5차 동결", title, "EUC-KR, without the site's name")
		assert.Equal(t, "한국은행 금융통화위원회가 데모 5차 회의에서 기준금리를 연 3.50%로 동결했다고 www.mk.co.kr의 시범 자료가 전했다.\n"+
			"시장에서는 물가 상승률이 3.5%까지 내려온 뒤에야 인하를 논의할 것으로 보고 있다는 설명이 이어졌다.\n"+
			"이 기사는 시험을 위한 가상의 자료이며 실제로 일어난 일을 다루지 않는다는 점을 밝혀 둔다.", text)
		assert.Equal(t, "매일경제", press)
		assert.Equal(t, "https://mk.co.kr"+path, canonical)
		assert.Equal(t, "202603020005", external)
		assert.Equal(t, "2026-03-01T18:41:00+09:00", db.Time(published).In(provider.Seoul).Format(time.RFC3339))
	})
}

// The pauses are those of the configuration, by our clock and by the server's.
func TestPauses(t *testing.T) {
	w := once(t)
	w.run(mk.Provider{})
	require.Len(t, w.slept, 11, "before every request but the first")
	for _, d := range w.slept {
		assert.True(t, d > 900*time.Millisecond && d <= 3*time.Second, "a pause of %v", d)
	}
	w.run(mk.Provider{})
	assert.Len(t, w.slept, 11+2, "and before the first of the next run")
	assert.Greater(t, slices.Max(w.slept)-slices.Min(w.slept), 100*time.Millisecond, "pauses are drawn")
	w.sim.ResetLog()
	_, err := w.engine().Run(t.Context(), hankyung.Provider{})
	require.NoError(t, err)
	require.Len(t, w.sim.Requests(), 14)
	for i, r := range w.sim.Requests() {
		assert.Equal(t, web.DefaultUserAgent, r.UserAgent)
		if i > 0 {
			assert.False(t, r.Start.Before(w.sim.Requests()[i-1].End), "one request at a time")
		}
	}

	// The same by the server's clock, at a twentieth of the pauses.
	w.cfg.DelaySeconds, w.cfg.MaxArticlesPerProvider = 0.1, 4
	w.sim.ResetLog()
	e := w.engine()
	e.Pacer.Clock = polite.SystemClock
	w.now = time.Now()
	_, err = e.Run(t.Context(), hankyung.Provider{}) // its articles of a past day are old now
	require.NoError(t, err)
	log := w.sim.Requests()
	require.GreaterOrEqual(t, len(log), 3)
	for i := 1; i < len(log); i++ {
		gap := log[i].Start.Sub(log[i-1].End)
		assert.GreaterOrEqual(t, gap, 49*time.Millisecond, "between %s and %s", log[i-1].Path, log[i].Path)
	}
}

// twin is another publisher on the same host.
type twin struct{ mk.Provider }

func (twin) ID() string { return "twin" }

// Two publishers of one host that are crawled at once keep one pause between all
// of their requests.
func TestTwoPublishersOnOneHost(t *testing.T) {
	w := once(t)
	var arrivals []time.Time
	site := w.sites[newssim.MK]
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		arrivals = append(arrivals, w.now)
		w.mu.Unlock()
		site.ServeHTTP(rw, r)
	}))
	e := w.engine()
	var runs sync.WaitGroup
	for _, p := range []provider.Provider{mk.Provider{}, twin{}} {
		runs.Go(func() {
			r, err := e.Run(t.Context(), p)
			assert.NoError(t, err)
			assert.Equal(t, int64(10), r.Fetched)
		})
	}
	runs.Wait()
	require.Len(t, arrivals, 2*12)
	for i := 1; i < len(arrivals); i++ {
		assert.GreaterOrEqual(t, arrivals[i].Sub(arrivals[i-1]), time.Second, "request %d", i)
	}
}

// A site whose robots.txt cannot be fetched is down; a missing one has no rules.
func TestRobots(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.MK]
	site.Answer("/robots.txt", 503)
	r := w.run(mk.Provider{})
	assert.Equal(t, down, r.State)
	assert.Equal(t, "www.mk.co.kr does not answer as it should (503 for robots.txt): the next run asks again; look at this machine's network if other sites fail too", r.Reason)
	assert.Equal(t, []string{"/robots.txt", "/robots.txt", "/robots.txt"}, w.paths(), "tried again, and nothing else asked for")

	site.Answer("/robots.txt", 0)
	site.Robots("User-agent: *\nDisallow: /news/\nSitemap: https://www.mk.co.kr/sitemap/latest-articles/\n")
	r = w.run(mk.Provider{})
	assert.Equal(t, int64(10), r.Forbidden)
	assert.Equal(t, counts{Found: 12}, countsOf(r))

	site.Robots("User-agent: DemoBot\nCrawl-delay: 7\nSitemap: https://www.mk.co.kr/sitemap/latest-articles/\n")
	w.slept = nil
	w.run(mk.Provider{})
	assert.GreaterOrEqual(t, slices.Max(w.slept), 7*time.Second-time.Second/2, "Crawl-delay is longer than ours")
}

// A host that asks for too long a pause is abandoned.
func TestLongPauses(t *testing.T) {
	for _, tt := range []struct {
		name, robots, busy string
		state              engine.State
		reason             string
		asked              int
	}{
		{"crawl-delay", "User-agent: *\nCrawl-delay: 86400\nSitemap: https://www.mk.co.kr/sitemap/\n", "", engine.Skipped, "robots.txt asks for 24h0m0s between two requests, more than --max-crawl-delay (30s)", 1},
		{"robots.txt", "", "/robots.txt", engine.Stopped, "it answered 503 for https://www.mk.co.kr/robots.txt and asks for a pause of 1h0m0s", 1},
		{"sitemap", "Sitemap: https://www.mk.co.kr/sitemap/\nSitemap: https://www.mk.co.kr/other/\n", "/sitemap/", engine.Stopped, "it answered 503 for https://www.mk.co.kr/sitemap/ and asks for a pause of 1h0m0s", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := once(t)
			var asked []string
			w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				if r.URL.Path == tt.busy {
					rw.Header().Set("Retry-After", "3600")
					rw.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_, _ = rw.Write([]byte(tt.robots))
			}))
			e := w.engine()
			e.Polite.MaxPause = 30 * time.Second
			r, err := e.Run(t.Context(), mk.Provider{})
			require.NoError(t, err)
			assert.Equal(t, tt.state, r.State)
			assert.Equal(t, tt.reason, r.Reason)
			assert.Len(t, asked, tt.asked, "%s", asked)
		})
	}
}

// What is no page is no article: a picture's bytes are no text.
func TestNotAPage(t *testing.T) {
	w := once(t)
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			_, _ = rw.Write([]byte("Sitemap: https://www.mk.co.kr/sitemap/\n"))
		case r.URL.Path == "/sitemap/":
			_, _ = rw.Write([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.mk.co.kr/news/economy/11000001</loc></url><url><loc>https://www.mk.co.kr/news/economy/11000002</loc></url></urlset>`))
		case strings.HasSuffix(r.URL.Path, "1"):
			rw.Header().Set("Content-Type", "image/png")
			_, _ = rw.Write([]byte("\x89PNG\r\n"))
		default:
			rw.Header()["Content-Type"] = nil // found out by its bytes
			_, _ = rw.Write([]byte("%PDF-1.7\n"))
		}
	}))
	r := w.run(mk.Provider{})
	assert.Equal(t, counts{Found: 2, Failed: 2}, countsOf(r))
	require.Len(t, w.letters, 2)
	for _, l := range w.letters {
		assert.Equal(t, "not_html", l.Kind)
		assert.False(t, l.Retryable)
	}
}

// A robots.txt that never arrives is requested three times, with pauses between the tries, and no page is.
func TestRobotsNeverArrives(t *testing.T) {
	for kind, fail := range map[string]func(*http.Request){"reset": func(*http.Request) {}, "timeout": func(r *http.Request) { <-r.Context().Done() }} {
		t.Run(kind, func(t *testing.T) {
			w := once(t)
			w.sim.Handle(newssim.MK, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/robots.txt", r.URL.Path)
				fail(r)
				panic(http.ErrAbortHandler) // to return would be to answer
			}))
			e := w.engine()
			e.Timeout = 100 * time.Millisecond
			r, err := e.Run(t.Context(), mk.Provider{})
			require.NoError(t, err)
			assert.EqualValues(t, 2, e.Web.Stats().Retries, "as the report has them")
			assert.Equal(t, down, r.State)
			assert.Contains(t, r.Reason, "("+kind+" for robots.txt)")
			assert.Equal(t, counts{}, countsOf(r))
			assert.Len(t, w.slept, 2, "three tries")
			assert.Empty(t, w.letters)
			assert.Zero(t, w.count("true"))
		})
	}
}

// Redirects are followed to the publisher's own pages that robots.txt allows,
// and to no others.
func TestRedirects(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.MK]
	to := map[string]string{site.Path(12): site.Path(12) + "?utm_source=moved", site.Path(11): "https://elsewhere.example/11", site.Path(10): "/search?q=10"}
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if at := to[r.URL.RequestURI()]; at != "" {
			http.Redirect(rw, r, at, http.StatusMovedPermanently)
			return
		}
		site.ServeHTTP(rw, r)
	}))
	r := w.run(mk.Provider{})
	assert.Equal(t, engine.Ran, r.State)
	assert.Equal(t, counts{Found: 12, Fetched: 8, Inserted: 8, Failed: 2}, countsOf(r))
	assert.Equal(t, 1, w.count("url LIKE '%"+site.Path(12)+"%'"))
	for _, l := range w.letters {
		assert.Equal(t, "blocked", l.Kind)
		assert.Contains(t, l.Error, "it redirects to an address that may not be requested")
	}
	for _, r := range w.sim.Requests() {
		assert.Equal(t, newssim.MK, r.Host)
		assert.NotEqual(t, "/search", r.Path)
	}
}

// A redirect keeps the pause that robots.txt asks for, on www. and off it.
func TestRedirectsArePaced(t *testing.T) {
	const apex = "mk.co.kr"
	w := once(t)
	site := w.sites[newssim.MK]
	site.Robots("User-agent: *\nCrawl-delay: 0.05\nSitemap: https://www.mk.co.kr/sitemap/latest-articles/\n")
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == site.Path(12) && r.URL.RawQuery == "" {
			http.Redirect(rw, r, "https://"+apex+site.Path(12)+"?moved", http.StatusFound)
			return
		}
		site.ServeHTTP(rw, r)
	}))
	w.sim.Handle(apex, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "https://"+newssim.MK+r.URL.RequestURI(), http.StatusFound)
	}))
	w.cfg.DelaySeconds = 0.02
	e := w.engine()
	e.Polite.MaxPause = time.Second
	since := time.Now()
	e.Pacer.Clock.Now, e.Pacer.Clock.Sleep = func() time.Time { return begin.Add(time.Since(since)) }, polite.SystemClock.Sleep
	_, err := e.Run(t.Context(), mk.Provider{})
	require.NoError(t, err)
	log := w.sim.Requests()
	hops := 0
	for i := 1; i < len(log); i++ {
		if strings.HasPrefix(log[i].Path, site.Path(12)+"?") {
			hops++
		}
		assert.GreaterOrEqual(t, log[i].Start.Sub(log[i-1].End), 50*time.Millisecond, log[i].Host+log[i].Path)
	}
	assert.Equal(t, 2, hops)
}

// robots.txt's sitemaps first, else hints, else the provider is skipped.
func TestSitemapOrder(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.MK]
	site.Robots("")
	r := w.run(mk.Provider{})
	assert.Equal(t, engine.Ran, r.State, "its hints")
	assert.Equal(t, "/sitemap/latest-articles/", w.paths()[1])

	w.cfg.Providers = map[string]provider.Toggles{"mk": {SitemapHints: []string{"https://www.mk.co.kr/other.xml"}}}
	w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			site.ServeHTTP(rw, r)
			return
		}
		_, _ = rw.Write([]byte(story("", prose)))
	}))
	r = w.run(mk.Provider{})
	assert.Equal(t, []string{"/robots.txt", "/other.xml", "/"}, w.paths(), "the operator's hints; the site is not closed")
	assert.Equal(t, engine.Skipped, r.State)
	assert.Equal(t, "none of its sitemaps and feeds can be read: status 404", r.Reason)

	site.Robots("Sitemap: https://www.mk.co.kr/sitemap/latest-articles/\n")
	w.run(mk.Provider{})
	assert.Equal(t, "/sitemap/latest-articles/", w.paths()[1], "robots.txt before any hint")

	w.cfg.Providers = nil
	site.Robots("")
	r = w.run(hintless{})
	assert.Equal(t, engine.Skipped, r.State)
	assert.Contains(t, r.Reason, "names no sitemap and there are no sitemapHints")
	assert.Equal(t, []string{"/robots.txt"}, w.paths())
}

type hintless struct{ mk.Provider }

func (hintless) SitemapHints() []string { return nil }

// The newest come first, an index's newest part is read first, and what cannot
// be newer is not asked for.
func TestRecency(t *testing.T) {
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 3
	site := w.sites[newssim.Hankyung]
	r := w.run(hankyung.Provider{})
	assert.Equal(t, int64(6), r.Found)
	assert.Equal(t, []string{"/robots.txt", "/sitemap/index.xml", "/sitemap/latest.xml", site.Path(12), site.Path(11), site.Path(10)}, w.paths())

	site.Publish(1)
	r = w.run(hankyung.Provider{})
	assert.Equal(t, counts{Found: 7, Fetched: 1, Inserted: 1}, countsOf(r))

	w.now = w.now.Add(31 * 24 * time.Hour)
	site.Publish(1)
	r = w.run(hankyung.Provider{})
	assert.Equal(t, counts{Found: 7}, countsOf(r), "articles older than the retention are passed over")
}

// A 403 or 429 for any request ends this provider at once, and no other.
func TestStop(t *testing.T) {
	for _, status := range []int{403, 429} {
		w := once(t)
		site := w.sites[newssim.MK]
		site.Answer(site.Path(11), status)
		r := w.run(mk.Provider{})
		assert.Equal(t, engine.Stopped, r.State)
		assert.Equal(t, fmt.Sprintf("it answered %d for https://www.mk.co.kr%s", status, site.Path(11)), r.Reason)
		assert.Equal(t, []string{"/robots.txt", "/sitemap/latest-articles/", site.Path(12), site.Path(11)}, w.paths())
		assert.Equal(t, engine.Ran, w.run(hankyung.Provider{}).State)

		site.Answer(site.Path(11), 0)
		r = w.run(mk.Provider{})
		assert.Equal(t, counts{Found: 12, Fetched: 9, Inserted: 9}, countsOf(r), "the next run resumes")
	}
}

// Wherever a run is killed, the next run keeps the pause after its last request, and also a
// pause that the host asked for and that ended the run.
func TestPauseOutlivesTheRun(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		site := w.sites[newssim.MK]
		site.Robots("User-agent: *\nCrawl-delay: 20\nSitemap: https://www.mk.co.kr/sitemap/latest-articles/\n")
		var arrivals []time.Time
		refuse := false
		w.sim.Handle(newssim.MK, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			arrivals = append(arrivals, w.now)
			w.mu.Unlock()
			if refuse && r.URL.Path != "/robots.txt" {
				rw.Header().Set("Retry-After", "3600")
				rw.WriteHeader(http.StatusTooManyRequests)
				return
			}
			site.ServeHTTP(rw, r)
		}))
		for killedAt := range 4 { // its pause
			e := w.engine()
			ctx, kill := context.WithCancel(t.Context())
			e.Pacer.Clock = politetest.Killed(e.Pacer.Clock, killedAt, kill)
			_, err := e.Run(ctx, mk.Provider{})
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, int64(9), w.run(mk.Provider{}).Fetched)
		for i := 1; i < len(arrivals); i++ {
			assert.GreaterOrEqual(t, arrivals[i].Sub(arrivals[i-1]), 20*time.Second, "request %d", i)
		}

		refuse = true
		assert.Equal(t, engine.Stopped, w.run(mk.Provider{}).State)
		before := len(arrivals)
		r := w.run(mk.Provider{})
		assert.NotEqual(t, engine.Ran, r.State, r.Reason)
		assert.Len(t, arrivals, before, "nothing is sent within the hour")
		w.now = w.now.Add(time.Hour)
		refuse = false
		assert.Equal(t, engine.Ran, w.run(mk.Provider{}).State)
	})
}

// One article's trouble is its own.
func TestArticleFailures(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.MK]
	site.Answer(site.Path(12), 404)
	site.Answer(site.Path(11), 500)
	r := w.run(panicky{w: site.Path(10)})
	assert.Equal(t, engine.Ran, r.State)
	assert.Equal(t, counts{Found: 12, Fetched: 8, Inserted: 6, Empty: 1, Failed: 3}, countsOf(r))
	var kinds []string
	for _, l := range w.letters {
		kinds = append(kinds, fmt.Sprint(l.Kind, " ", l.Retryable))
	}
	assert.Equal(t, []string{"http_404 false", "http_500 true", "parse_failed false"}, kinds)

	again := w.run(panicky{w: site.Path(10)})
	assert.Equal(t, int64(1), again.Fetched, "what failed is tried again; the empty one is remembered")
}

// panicky has a bug in its parser for one page, and finds no text in another.
type panicky struct {
	mk.Provider
	w string
}

func (p panicky) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	if u.Path == p.w {
		panic("demo")
	}
	a, err := p.Provider.ParseArticle(page, contentType, u)
	if strings.HasSuffix(u.Path, "0009") {
		a.Body = ""
	}
	return a, err
}

// Kept pages are read again without a request; what a better parser finds is a change.
func TestReparse(t *testing.T) {
	w := once(t)
	w.run(titleless{}, keepHTML)
	assert.Equal(t, 10, w.count("title = ''"))

	assert.Equal(t, counts{Changed: 10}, countsOf(w.run(mk.Provider{}, reparse)))
	assert.Empty(t, w.paths())
	assert.Equal(t, 0, w.count("title = ''"))
	assert.Equal(t, counts{Same: 10}, countsOf(w.run(mk.Provider{}, reparse)))

	w.now = w.now.Add(30 * 24 * time.Hour)
	n, err := raw.Purge(t.Context(), w.db, w.now)
	require.NoError(t, err)
	assert.Equal(t, int64(10), n)
	assert.Equal(t, counts{}, countsOf(w.run(mk.Provider{}, reparse)), "evidence of a purged article brings nothing back")
	assert.Equal(t, 0, w.count("1 = 1"))
}

type titleless struct{ mk.Provider }

func (p titleless) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	a, err := p.Provider.ParseArticle(page, contentType, u)
	a.Title = ""
	return a, err
}

// A layout that changed is an alarm that names the field, after the provider's own past.
func TestFieldAlarm(t *testing.T) {
	w := once(t)
	site := w.sites[newssim.Economy]
	p := all(t)["demo-economy"]
	assert.Empty(t, w.run(p).Alerts)
	site.Break(true)
	site.Publish(8)
	r := w.run(p)
	assert.Equal(t, []string{"provider demo-economy: field date was found on 0% of 8 pages, in earlier runs on 100%; has its layout changed?"}, r.Alerts)

	r = w.run(failing{})
	assert.Equal(t, "provider mk: 100% of 10 pages could not be read", r.Alerts[0])
}

type failing struct{ mk.Provider }

func (failing) ParseArticle([]byte, string, *url.URL) (provider.Article, error) {
	return provider.Article{}, errors.New("demo")
}

// Two runs never crawl one publisher at the same time, and store each article once.
func TestTwoRunsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var runs sync.WaitGroup
		results := make([]engine.Result, 2)
		for i := range results {
			e := w.engine()
			runs.Go(func() {
				var err error
				results[i], err = e.Run(t.Context(), mk.Provider{})
				assert.NoError(t, err)
			})
		}
		runs.Wait()
		assert.Equal(t, int64(10), results[0].Inserted+results[1].Inserted)
		assert.Equal(t, int64(10), results[0].Fetched+results[1].Fetched)
		assert.Equal(t, 10, w.count("1 = 1"))
		log := w.sim.Requests()
		for i := 1; i < len(log); i++ {
			assert.False(t, log[i].Start.Before(log[i-1].End), "one request at a time")
		}
	})
}

// A run keeps the lease of a publisher as long as it crawls it: another run waits for the
// lease, sees that it is renewed, and gives up. At the end the lease is released.
func TestLeaseLastsAsLongAsTheRun(t *testing.T) {
	w := once(t)
	e := w.engine()
	e.LeaseTTL = 300 * time.Millisecond
	var other engine.Result
	var err error
	sleep, pauses := e.Pacer.Clock.Sleep, 0
	e.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		if pauses++; pauses == 3 {
			within, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			second := w.engine()
			second.LeaseTTL = e.LeaseTTL
			other, err = second.Run(within, mk.Provider{})
		}
		return sleep(ctx, d)
	}
	r, ran := e.Run(t.Context(), mk.Provider{})
	require.NoError(t, ran)
	require.NoError(t, err)
	assert.Equal(t, engine.Result{Provider: "mk", State: engine.Skipped, Reason: other.Reason}, other)
	assert.Contains(t, other.Reason, "another run is at work on it: run "+e.RunID+" (host ")
	assert.Equal(t, counts{Found: 12, Fetched: 10, Inserted: 10}, countsOf(r))
	var held int
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM leases WHERE expires_at > 0`).Scan(&held))
	assert.Zero(t, held, "leases that nobody gave back")
}

// A run that lost its publisher to another one sends nothing more.
func TestLostLeaseEndsTheVisit(t *testing.T) {
	w := once(t)
	e := w.engine()
	e.LeaseTTL = 300 * time.Millisecond
	pauses, sent := 0, 0
	sleep := e.Pacer.Clock.Sleep
	e.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		if pauses++; pauses != 3 {
			return sleep(ctx, d)
		}
		// It was away for so long that the other run is through.
		_, err := w.db.ExecContext(t.Context(), `UPDATE leases SET expires_at = 0`) // not under the lease
		require.NoError(t, err)
		second, err := w.engine().Run(t.Context(), mk.Provider{})
		require.NoError(t, err)
		assert.Equal(t, engine.Ran, second.State)
		sent = len(w.sim.Requests())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
			return nil // nobody told it
		}
	}
	r, err := e.Run(t.Context(), mk.Provider{})
	require.NoError(t, err)
	assert.Equal(t, engine.Cut, r.State)
	assert.Equal(t, "another run took it over", r.Reason)
	assert.Len(t, w.sim.Requests(), sent, "requests after the other run's last")
	assert.Equal(t, 10, w.count("1 = 1"))
}

// A lease that nobody took over is lost when its database is: the visit fails.
func TestLeaseOfALostDatabase(t *testing.T) {
	w := once(t)
	e := w.engine()
	e.LeaseTTL = 100 * time.Millisecond
	var file string
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT file FROM pragma_database_list`).Scan(&file))
	e.Pacer.Clock.Sleep = func(ctx context.Context, _ time.Duration) error {
		assert.NoError(t, os.Rename(file, file+".away"))
		<-ctx.Done()
		assert.NoError(t, os.Rename(file+".away", file)) // too late
		return ctx.Err()
	}
	_, err := e.Run(t.Context(), mk.Provider{})
	require.ErrorContains(t, err, "was deleted")
	assert.True(t, fault.Stops(err))
}

// What a page leaves out the news sitemap says; the alarm comes all the same.
func TestNewsSitemapFillsIn(t *testing.T) {
	w := once(t)
	w.sites[newssim.Hankyung].Break(true)
	r := w.run(hankyung.Provider{})
	assert.Equal(t, counts{Found: 12, Fetched: 10, Inserted: 10}, countsOf(r))
	assert.Equal(t, []string{"provider hankyung: no page has a date; are its selectors right?"}, r.Alerts)
	var published int64
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT published_at FROM news_articles WHERE external_id = '202603020012'`).Scan(&published))
	assert.Equal(t, "2026-03-01T23:00:00+09:00", db.Time(published).In(provider.Seoul).Format(time.RFC3339))
}

// A page's own canonical address counts where it is an article's; the sitemap's
// is remembered too.
func TestCanonicalOfThePage(t *testing.T) {
	w := once(t)
	r := w.run(canonical{})
	assert.Equal(t, int64(10), r.Inserted)
	assert.Equal(t, 9, w.count(`canonical_url LIKE 'https://mk.co.kr/newsRead.php?no=2026030200__&year=2026'`))
	assert.Equal(t, 1, w.count(`canonical_url = 'https://mk.co.kr/news/economy/202603020012'`), "a homepage is no article's address")
	assert.Equal(t, counts{Found: 12}, countsOf(w.run(canonical{})))
}

type canonical struct{ mk.Provider }

func (p canonical) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	a, err := p.Provider.ParseArticle(page, contentType, u)
	a.Canonical = "/newsRead.php?year=2026&no=" + a.ExternalID + "&utm_source=x"
	if a.ExternalID == "202603020012" {
		a.Canonical = "https://www.mk.co.kr/"
	}
	return a, err
}

// A provider counts article by article: each pause knows of those before it.
func TestCountsArticleByArticle(t *testing.T) {
	w := once(t)
	e := w.engine()
	var inserted []int64
	sleep := e.Pacer.Clock.Sleep
	e.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		w.mu.Lock()
		inserted = append(inserted, w.counted.Counts["articles_inserted"])
		w.mu.Unlock()
		return sleep(ctx, d)
	}
	r, err := e.Run(t.Context(), all(t)["demo-economy"])
	require.NoError(t, err)
	require.Greater(t, r.Inserted, int64(2))
	require.Equal(t, []int64{r.Inserted - 2, r.Inserted - 1}, inserted[len(inserted)-2:])
	require.Equal(t, ledger.Tally{}.Minus(r.Tally()).Counts, ledger.Tally{}.Minus(w.counted).Counts)
}
