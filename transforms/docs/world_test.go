package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// asked is a request as the site saw it, at the test clock's time.
type asked struct {
	at     time.Time
	path   string
	header http.Header
}

// world is a site, a database and a crawler on a test clock.
type world struct {
	t       *testing.T
	sim     *webtest.Web
	db      *db.DB
	dir     string
	time    *politetest.Clock
	cfg     Config
	policy  policy.Policy
	session string
	timeout time.Duration // of a page; 0: the job's own
	runs    int
	answers map[string]http.HandlerFunc // by path with query; the rest is 404

	mu       sync.Mutex
	requests []asked
	moves    map[string][]Status // of the last run, by key
	crawl    *crawl              // of the last run
	waits    func()              // called in each pause, if set
	live     ledger.Tally        // what the last run's worker had counted at its end
}

const host = "docs.example.com"

func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	require.NoError(t, Migrate(t.Context(), d))
	return newWorldOn(t, d)
}

// eachWorld runs a test in a world of its own with each kind of database.
func eachWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, newWorld(t, d)) })
}

// pages sets the seed, and the pages to which it links.
func (w *world) pages(names ...string) {
	links := make([]string, len(names))
	for i, name := range names {
		links[i] = "/docs/" + name
		w.set(links[i], doc(name))
	}
	w.set("/docs", doc("seed", links...))
}

// report is the session's.
func (w *world) report() crawlReport {
	w.t.Helper()
	r, err := buildReport(w.t.Context(), w.db, []policy.Policy{w.policy}, w.session, alert.Defaults(alert.PageRules()...))
	require.NoError(w.t, err)
	return r
}

// newWorldOn is a world on a database that has its tables.
func newWorldOn(t *testing.T, d *db.DB) *world {
	t.Helper()
	w := &world{t: t, db: d, dir: t.TempDir(), sim: webtest.New(webtest.Options{}), answers: map[string]http.HandlerFunc{},
		time: politetest.At(time.Date(2026, 2, 23, 3, 0, 0, 0, time.UTC)), moves: map[string][]Status{}}
	require.NoError(t, w.sim.Start())
	t.Cleanup(func() { require.NoError(t, w.sim.Close()) })
	w.handle(host)
	w.cfg = Config{Lane: lane.Config{Job: Job, Store: w.dir, Slots: 1, LogFormat: "json", LogLevel: 12,
		Web: Web(web.Config{ConnectTo: w.sim.Addr(), RootCAs: w.sim.CAPEM()})}}
	w.policy = worldPolicy(t)
	w.newSession()
	return w
}

func worldPolicy(t *testing.T) policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte("provider_id: p\nname: P\nseed_urls: [https://"+host+"/docs]\nallowed_path_patterns: [/docs/**]\nblocked_path_patterns: [/docs/old/**]\nsources: [html]\n"), time.Now())
	require.NoError(t, err)
	return p
}

func (w *world) handle(host string) {
	w.sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		uri := r.URL.RequestURI()
		w.mu.Lock()
		w.requests = append(w.requests, asked{w.time.Now(), uri, r.Header.Clone()})
		answer := w.answers[uri]
		w.mu.Unlock()
		if answer == nil {
			http.NotFound(rw, r)
			return
		}
		answer(rw, r)
	}))
}

// doc answers with HTML whose main content has a text of its own and links.
func doc(text string, links ...string) http.HandlerFunc {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html><head><title>%s</title></head><body><nav><a href=\"/pricing\">Pricing</a></nav><main><h1>%s</h1><p>The page tells of %s at some length, so that it has something to say to its reader.</p>", text, text, text)
	for _, l := range links {
		fmt.Fprintf(&b, "<p>See <a href=%q>%s</a>.</p>", l, "that page")
	}
	b.WriteString("</main></body></html>")
	return html(b.String())
}

func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// sequence answers with one after another, and with the last from then on.
func sequence(answers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		a := answers[min(n, len(answers)-1)]
		n++
		mu.Unlock()
		a(w, r)
	}
}

// tagged answers 304 to a request that names the page's ETag.
func tagged(etag string, with http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		with(w, r)
	}
}

func (w *world) set(path string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[path] = h
}

func (w *world) newSession() {
	w.t.Helper()
	if w.session != "" {
		require.NoError(w.t, endSession(w.t.Context(), w.db, w.session, w.time.Now()))
	}
	w.runs++
	var err error
	w.session, _, err = beginSession(w.t.Context(), w.db, fmt.Sprintf("run-%d", w.runs), w.time.Now())
	require.NoError(w.t, err)
}

// run crawls the provider once in the session, in a process of its own as far
// as memory goes.
func (w *world) run() (State, string) {
	w.t.Helper()
	state, reason, err := w.try(w.t.Context())
	require.NoError(w.t, err)
	return state, reason
}

func (w *world) try(ctx context.Context) (State, string, error) {
	w.t.Helper()
	w.runs++
	cfg := w.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), w.runs)
	worker, err := lane.Open(w.t.Context(), cfg.Lane)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, lane.Close(cfg.Lane.RunID)) }()
	in, err := enter(w.t.Context(), w.db, w.session, w.policy.ProviderID, cfg.Lane.RunID, w.time.Now())
	require.NoError(w.t, err)
	c := w.time.Polite()
	sleep := c.Sleep
	c.Sleep = func(ctx context.Context, d time.Duration) error {
		if w.waits != nil {
			w.waits()
		}
		return sleep(ctx, d)
	}
	worker.Pacer.Clock = c
	w.crawl = newCrawl(cfg, worker, w.db, w.policy, in)
	w.crawl.timeout = cmp.Or(w.timeout, w.crawl.timeout)
	clear(w.moves)
	w.crawl.moved = func(key string, from, to Status) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.moves[key]) == 0 {
			w.moves[key] = []Status{from}
		}
		w.moves[key] = append(w.moves[key], to)
	}
	defer func() { w.live = worker.Live() }()
	return w.crawl.run(ctx)
}

// paths are the pages asked for since the last call, without robots.txt.
func (w *world) paths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []string{}
	for _, r := range w.requests {
		if r.path != "/robots.txt" {
			out = append(out, r.path)
		}
	}
	w.requests = nil
	return out
}

// log gives all requests since the last call.
func (w *world) log() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.requests
	w.requests = nil
	return out
}

// row is a page's row.
type row struct {
	Status  Status
	Reason  string
	Depth   int
	HTTP    int
	Content bool
}

func (w *world) row(path string) row {
	w.t.Helper()
	var r row
	var hash string
	err := w.db.QueryRowContext(w.t.Context(), `SELECT status, reason, depth, http_status, content_hash FROM docs_pages WHERE provider = $1 AND key = $2`, w.policy.ProviderID, "https://"+host+path).
		Scan(&r.Status, &r.Reason, &r.Depth, &r.HTTP, &hash)
	require.NoError(w.t, err, path)
	r.Content = hash != ""
	return r
}

// strings reads one column.
func (w *world) strings(query string, args ...any) []string {
	w.t.Helper()
	out, err := db.Texts(w.t.Context(), w.db, query, args...)
	require.NoError(w.t, err)
	if out == nil {
		out = []string{}
	}
	return out
}

// deadLetters are the store's: kind, URL and error of each.
func (w *world) deadLetters() (out []string) {
	s, err := store.Open(w.t.Context(), w.dir)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, s.Close()) }()
	for l, err := range ledger.ListDeadLetters(w.t.Context(), s, Job, "") {
		require.NoError(w.t, err)
		out = append(out, l.Kind+" "+l.Input.URL+": "+l.Error)
	}
	return out
}

// handed reads the lines of the hand-off, in no order.
func (w *world) handed() (out []handOffLine) { return handedIn(w.t, w.dir) }

func handedIn(t *testing.T, dir string) (out []handOffLine) {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for o, err := range s.List(t.Context(), "handoff/docs/") {
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(o.Key, ".jsonl"), o.Key)
		body, err := s.Open(t.Context(), o.Key)
		require.NoError(t, err)
		for dec := json.NewDecoder(body); dec.More(); {
			var h handOffLine
			require.NoError(t, dec.Decode(&h))
			out = append(out, h)
		}
		require.NoError(t, body.Close())
	}
	slices.SortFunc(out, func(a, b handOffLine) int { return strings.Compare(a.Op+a.URL+a.ID, b.Op+b.URL+b.ID) })
	return out
}

// everything is all text in the database's tables and the store's files, for
// what must be nowhere.
func (w *world) everything() string {
	w.t.Helper()
	var b strings.Builder
	for _, q := range []string{`SELECT key || address || title || reason FROM docs_pages`, `SELECT preview || heading FROM docs_chunks`, `SELECT blocks FROM docs_blocks`,
		`SELECT sections FROM docs_changes`, `SELECT to_address FROM docs_links`, `SELECT body FROM docs_robots`} {
		b.WriteString(strings.Join(w.strings(q), "\n"))
	}
	require.NoError(w.t, fsWalk(w.dir, &b))
	return b.String()
}

func fsWalk(dir string, into *strings.Builder) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := dir + "/" + e.Name()
		if e.IsDir() {
			err = fsWalk(at, into)
		} else {
			var text []byte
			text, err = os.ReadFile(at)
			into.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
