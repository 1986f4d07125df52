package docs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

var wholeField = flag.Bool("field", false, "crawl 100 providers of 200 pages with the job's own budgets, which takes minutes")

// fieldSize is a field of providers and the budgets that it is crawled with.
type fieldSize struct{ providers, pages, hour, day int }

// turned is the clock of a crawl of several hosts: it moves to the next end of a
// pause when every host at work is in one. So no time passes while a request is on
// its way or a page is written.
type turned struct {
	*politetest.Clock

	mu      sync.Mutex
	left    int // hosts of the run that have not ended
	pausing []pausing
	stopped bool
}

type pausing struct {
	until time.Time
	over  chan struct{}
}

func (c *turned) begin(hosts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.pausing, c.stopped = hosts, nil, false
}

func (c *turned) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	c.turn()
}

// stop ends all pauses without letting time pass.
func (c *turned) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *turned) turn() {
	if c.stopped || len(c.pausing) == 0 || len(c.pausing) < min(MaxHosts, c.left) {
		return
	}
	next := slices.MinFunc(c.pausing, func(a, b pausing) int { return a.until.Compare(b.until) }).until
	c.Advance(max(0, next.Sub(c.Now())))
	c.pausing = slices.DeleteFunc(c.pausing, func(p pausing) bool {
		if p.until.After(next) {
			return false
		}
		close(p.over)
		return true
	})
}

func (c *turned) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	if c.stopped || ctx.Err() != nil {
		c.mu.Unlock()
		return context.Canceled
	}
	p := pausing{c.Now().Add(d), make(chan struct{})}
	c.pausing = append(c.pausing, p)
	c.turn()
	c.mu.Unlock()
	select {
	case <-p.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endings is a log that tells the clock when a provider has ended.
type endings struct {
	slog.Handler
	clock *turned
}

func (endings) Enabled(context.Context, slog.Level) bool { return true }

func (e endings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "provider_ended" || r.Message == "provider_done_before" {
		e.clock.ended()
	}
	return nil
}

// fieldRequest is a request as its site saw it.
type fieldRequest struct {
	at   time.Time
	run  int
	host int
	path string
}

// field is the simulated sites, and what they saw.
type field struct {
	fieldSize
	t     *testing.T
	clock *turned
	cfg   Config
	sim   *webtest.Web
	runs  int

	mu      sync.Mutex
	seen    []fieldRequest
	now     map[int]int // requests in flight by host
	atOnce  int         // hosts with a request in flight, at most
	perHost int         // requests in flight at one host, at most
	killAt  int         // the request during which the process is killed
	kill    func()
	dead    bool
	live    uint64 // bytes that the collector found in use, at most
	heap    uint64 // bytes of objects, with garbage, at most
}

func hostOf(i int) string { return fmt.Sprintf("docs.provider-%03d.example", i) }

// every second provider's policy asks only for pages, the others look for lists and
// descriptions too, that these sites do not have.
func probed(i int) bool { return i%2 == 1 }

func delayOf(i int) int { return 1000 + i%5*500 }

// probes are the places at which a provider without any list or description is asked:
// llms.txt in the folder and at the root, the catalog of APIs, and the two usual names of
// descriptions in the folder. Those at the root are outside of the allowed paths.
const probes = 2 + 1 + 2

func newField(t *testing.T, size fieldSize) *field {
	f := &field{fieldSize: size, t: t, sim: webtest.New(webtest.Options{LogLimit: -1}), now: map[int]int{},
		clock: &turned{Clock: politetest.At(time.Date(2026, 2, 23, 3, 0, 7, 0, time.UTC))}}
	require.NoError(t, f.sim.Start())
	t.Cleanup(func() { require.NoError(t, f.sim.Close()) })
	f.cfg = Config{DB: dbtest.SQLite(t), Lanes: 1, HourBudget: size.hour, DayBudget: size.day,
		Lane: lane.Config{Job: Job, Store: t.TempDir(), Slots: 1, LogFormat: "json", LogLevel: 12, Web: Web(web.Config{ConnectTo: f.sim.Addr(), RootCAs: f.sim.CAPEM()})}}
	for i := range size.providers {
		text := fmt.Sprintf("provider_id: provider-%03d\nname: Provider %d\nseed_urls: [https://%s/docs]\nallowed_path_patterns: [/docs/**]\nmax_pages: %d\nrequest_delay_ms: %d\n", i, i, hostOf(i), size.pages, delayOf(i))
		if !probed(i) {
			text += "sources: [html]\n"
		}
		p, err := policy.Parse("p.yaml", []byte(text), time.Now())
		require.NoError(t, err)
		f.cfg.Policies = append(f.cfg.Policies, p)
		f.sim.Handle(hostOf(i), f.site(i))
	}
	return f
}

// site is a tree of pages: each of them links to the next eight, so that a page's
// number says its depth, and back to the first.
func (f *field) site(host int) http.Handler {
	const branches = 8
	name := func(n int) string {
		if n == 0 {
			return "/docs"
		}
		return fmt.Sprintf("/docs/p%d", n)
	}
	pages := map[string]int{}
	for n := range f.pages {
		pages[name(n)] = n
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer f.saw(host, r.URL.Path)()
		n, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		links := []string{"/docs"}
		for child := n*branches + 1; child <= n*branches+branches && child < f.pages; child++ {
			links = append(links, name(child))
		}
		doc(fmt.Sprintf("chapter %d of provider %d", n, host), links...)(w, r)
	})
}

func depthOf(path string) int {
	n, depth := 0, 0
	_, _ = fmt.Sscanf(path, "/docs/p%d", &n)
	for ; n > 0; n = (n - 1) / 8 {
		depth++
	}
	return depth
}

// saw counts a request, and ends it. After a kill no request arrives any more.
func (f *field) saw(host int, path string) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		panic(http.ErrAbortHandler)
	}
	f.seen = append(f.seen, fieldRequest{f.clock.Now(), f.runs, host, path})
	f.now[host]++
	f.perHost, f.atOnce = max(f.perHost, f.now[host]), max(f.atOnce, len(f.now))
	live, heap := memoryNow()
	f.live, f.heap = max(f.live, live), max(f.heap, heap)
	if len(f.seen) == f.killAt {
		f.dead = true
		f.kill()
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.now[host]--; f.now[host] == 0 {
			delete(f.now, host)
		}
	}
}

// memoryNow is what the last garbage collection found in use, and the heap with garbage.
func memoryNow() (live, heap uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// run runs the job's graph once.
func (f *field) run() error {
	f.t.Helper()
	f.mu.Lock()
	f.runs++
	f.dead = false
	cfg := f.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), f.runs)
	f.mu.Unlock()
	worker, err := lane.Open(f.t.Context(), cfg.Lane)
	require.NoError(f.t, err)
	f.clock.begin(f.providers)
	worker.Pacer.Clock = polite.Clock{Now: f.clock.Now, Sleep: f.clock.sleep}
	worker.Log = slog.New(endings{slog.DiscardHandler, f.clock})
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	copied := filepath.Join(f.t.TempDir(), "killed.db")
	f.kill = func() { // with f.mu locked
		f.clock.stop()
		// What a process that is killed now leaves in its database. The leases that it held
		// run out on the machine's clock, which this test does not wait for.
		d, err := worker.DB(ctx, cfg.DB, Migrate)
		if err == nil {
			_, err = d.DB.ExecContext(ctx, `VACUUM INTO '`+copied+`'`)
		}
		if err != nil {
			f.t.Error(err)
		}
		cancel()
		worker.Stop(errors.New("killed"))
	}
	p, s := beam.NewPipelineWithRoot()
	hosts, listed := List(s, cfg)
	visited, crawled := Visit(s, cfg, hosts)
	lane.Total(s, cfg.Lane, listed, crawled, Conclude(s, cfg, visited))
	_, err = beam.Run(ctx, "direct", p)
	err = errors.Join(err, worker.Cause(), lane.Close(cfg.Lane.RunID))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		require.Error(f.t, err)
		f.cfg.DB, f.killAt = "sqlite://"+copied, 0
		_, err = openDB(f.t, f.cfg.DB).ExecContext(f.t.Context(), `DELETE FROM leases`)
	}
	return err
}

// predicted is what the policies and the budgets say of a field's session.
type predicted struct {
	requests int           // robots.txt, probes and pages, each once
	days     int           // with a run each
	pauses   time.Duration // of all hosts, as many at once as may be
	took     time.Duration // of all runs together, without the nights between them
}

// predict has no figure that was measured. A burst of the hour's requests goes out as
// quickly as the pauses of three hosts let it; the next one may begin 61 minutes after
// the minute in which it began.
func (f *field) predict() (p predicted) {
	var pauses time.Duration
	for i := range f.providers {
		n := 1 + f.pages
		if probed(i) {
			n += probes
		}
		p.requests += n
		least, most := gapOf(i)
		pauses += time.Duration(n) * (least + most) / 2
	}
	p.pauses = pauses / time.Duration(min(MaxHosts, f.providers))
	each := p.pauses / time.Duration(p.requests)
	for left := p.requests; left > 0; left -= f.day {
		p.days++
		n := min(left, f.day)
		bursts := (n - 1) / f.hour
		p.took += max(time.Duration(n)*each, time.Duration(bursts)*61*time.Minute+time.Duration(n-bursts*f.hour)*each)
	}
	return p
}

// gapOf is the range of the pauses of a host.
func gapOf(host int) (least, most time.Duration) {
	d := time.Duration(delayOf(host)) * time.Millisecond
	return max(d*2/3, time.Second), d * 4 / 3
}

// One session of many providers is crawled in the order, with the pauses and in the
// time and memory that its policies and the budgets say, also if its process is killed
// in the middle. All times are the test clock's, when the sites saw the requests.
func TestField(t *testing.T) {
	size := fieldSize{providers: 12, pages: 20, hour: 40, day: 130}
	if *wholeField {
		size = fieldSize{100, 200, HourBudget, DayBudget}
	} else {
		t.Parallel()
	}
	f := newField(t, size)
	want := f.predict()
	f.killAt = want.requests / 3
	before, _ := memoryNow()
	began := time.Now()
	var took time.Duration
	days, kills := 1, 0
	for {
		from := f.clock.Now()
		err := f.run()
		took += f.clock.Now().Sub(from)
		if f.dead {
			require.NoError(t, err)
			kills++
			continue
		}
		require.NoError(t, err)
		done := f.count(`SELECT COUNT(*) FROM docs_runs WHERE state = $1`, Done)
		if done == f.providers {
			break
		}
		require.Equal(t, f.providers-done, f.count(`SELECT COUNT(*) FROM docs_runs WHERE state = $1`, OutOfBudget))
		days++
		require.LessOrEqual(t, days, want.days, "runs")
		f.clock.Advance(24*time.Hour + time.Minute)
	}
	require.Equal(t, 1, kills)
	got := f.check()
	again := f.asked() - want.requests
	stored := f.count(`SELECT COUNT(*) FROM docs_pages WHERE status = $1 AND content_hash <> ''`, Indexed)
	mb := func(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
	row := func(what, predicted, measured any) { t.Logf("| %v | %v | %v |", what, predicted, measured) }
	row(fmt.Sprintf("%d providers of %d pages", f.providers, f.pages), "predicted", "measured")
	row("runs, one a day", want.days, days)
	row("simulated time of the runs", want.took.Round(time.Second), took.Round(time.Second))
	row("of it the pauses need", want.pauses.Round(time.Second), "")
	row("requests", fmt.Sprintf("%d to %d", want.requests, want.requests+MaxHosts*days), f.asked())
	row("pages stored", f.providers*f.pages, stored)
	row("pages asked for again after the kill", fmt.Sprintf("at most %d", MaxHosts), got.twice)
	row("requests in 61 minutes, at most", f.hour, got.hour)
	row("requests in a day and a minute, at most", f.day, got.day)
	row("hosts begun and not ended, at most", MaxHosts, got.hosts)
	row("hosts asked at the same time, at most", MaxHosts, f.atOnce)
	row("requests to a host at the same time, at most", 1, f.perHost)
	row("pages asked for after a deeper one of their provider", 0, got.shallower)
	row("pauses shorter than their policy's", 0, got.short)
	row("pauses longer than their policy's, outside of the hour's budget", 0, got.long)
	row("heap in use, at most, above the beginning", "at most 40.0 MB", mb(f.live-before))
	row("heap with garbage, at most", "", mb(f.heap))
	row("machine's time", "", time.Since(began).Round(time.Second))

	require.Equal(t, want.days, days)
	require.InEpsilon(t, want.took.Seconds(), took.Seconds(), 0.03)
	require.GreaterOrEqual(t, again, 0)
	require.LessOrEqual(t, again, MaxHosts*days, "what was on its way at the kill, and a day later the robots.txt of hosts under way")
	require.Equal(t, f.providers*f.pages, stored)
	require.Equal(t, 1, f.count(`SELECT COUNT(*) FROM docs_sessions`))
	require.Equal(t, 1, f.count(`SELECT COUNT(*) FROM docs_sessions WHERE finished_at > 0`))
	require.LessOrEqual(t, got.twice, MaxHosts)
	require.Zero(t, got.thrice)
	require.Equal(t, f.providers*f.pages, got.pages)
	require.LessOrEqual(t, got.hour, f.hour)
	require.LessOrEqual(t, got.day, f.day)
	require.LessOrEqual(t, got.hosts, MaxHosts)
	require.LessOrEqual(t, f.atOnce, MaxHosts)
	require.Equal(t, 1, f.perHost)
	require.Zero(t, got.shallower)
	require.Zero(t, got.short)
	require.Zero(t, got.long)
	if *wholeField { // alone in its process
		require.LessOrEqual(t, f.live-before, uint64(40e6))
	}
}

// asked is how many requests the sites saw.
func (f *field) asked() int { return len(f.seen) }

func (f *field) count(query string, args ...any) (n int) {
	f.t.Helper()
	d, err := db.Open(f.t.Context(), f.cfg.DB)
	require.NoError(f.t, err)
	defer func() { require.NoError(f.t, d.Close()) }()
	require.NoError(f.t, d.QueryRowContext(f.t.Context(), query, args...).Scan(&n))
	return n
}

// seenByAll is what the log of all sites together shows.
type seenByAll struct {
	pages, twice, thrice   int // pages asked for once and more, twice, and more often
	hour, day              int // requests in the budgets' windows, at most
	hosts                  int // begun and not ended in a run, at most
	shallower, short, long int
}

func (f *field) check() (s seenByAll) {
	type visit struct{ run, host int }
	var (
		times       = map[string]int{} // of each page
		minutes     = map[int64]int{}  // requests up to now
		deepest     = map[int]int{}    // by host
		last        = map[int]fieldRequest{}
		first, ends = map[visit]int{}, map[visit]int{}
	)
	window := func(minute, back int64) (n int) {
		for m := minute - back; m <= minute; m++ {
			n += minutes[m]
		}
		return n
	}
	for i, r := range f.seen {
		minute := r.at.Unix() / 60
		v := visit{r.run, r.host}
		if _, in := first[v]; !in {
			first[v] = i
		}
		ends[v] = i
		if before, in := last[r.host]; in {
			least, most := gapOf(r.host)
			switch gap := r.at.Sub(before.at); {
			case gap < least:
				s.short++
			case gap > most && before.run == r.run:
				// The hour's budget allows requests again when its oldest minute has left the window.
				if r.at.Unix()%60 != 0 || window(minute-1, 60) < f.hour {
					s.long++
				}
			}
		}
		last[r.host] = r
		minutes[minute]++
		if i == len(f.seen)-1 || f.seen[i+1].at.Unix()/60 != minute {
			s.hour, s.day = max(s.hour, window(minute, 60)), max(s.day, window(minute, 24*60))
		}
		if r.path != "/docs" && !strings.HasPrefix(r.path, "/docs/p") {
			continue
		}
		times[fmt.Sprint(r.host, r.path)]++
		if depth := depthOf(r.path); depth < deepest[r.host] {
			s.shallower++
		} else {
			deepest[r.host] = depth
		}
	}
	for _, n := range times {
		s.pages++
		switch {
		case n == 2:
			s.twice++
		case n > 2:
			s.thrice++
		}
	}
	for v, at := range first {
		n := 0
		for o, begun := range first {
			if o.run == v.run && begun <= at && at <= ends[o] {
				n++
			}
		}
		s.hosts = max(s.hosts, n)
	}
	return s
}
