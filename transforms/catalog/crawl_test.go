package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// visit is a crawl of one of the job's sites without a pipeline around it.
func (j *job) visit(cfg Config, name string) (*visit, *lane.Worker) {
	j.t.Helper()
	w, err := lane.Open(j.t.Context(), cfg.Lane)
	require.NoError(j.t, err)
	j.t.Cleanup(func() { assert.NoError(j.t, lane.Close(cfg.Lane.RunID)) })
	v, err := newVisit(cfg, w, j.db, site(j.t, name), &Stats{})
	require.NoError(j.t, err)
	return v, w
}

// small lays out a list of a few pages in place of the fifty.
func (j *job) small(pages, perPage int) {
	j.use(catalogsim.NewMatter(pages, perPage))
}

// asked are the paths that the site was asked for, in the order of their ends.
func (j *job) asked(host string) (paths []string) {
	for _, r := range j.web.Requests() {
		if r.Host == host && r.Method != "" {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// Each worker alone, with an in-memory queue at each end.
func TestEachWorkerAlone(t *testing.T) {
	t.Parallel()
	j := newJob(t, "", webtest.Options{}, "matter")
	j.small(3, 2)
	v, _ := j.visit(j.config(), "matter")
	require.NoError(t, v.readRobots(t.Context()))
	_, _, err := v.journal.begin(t.Context(), v.reader.seeds(), "", time.Now(), false)
	require.NoError(t, err)

	// alone runs one worker of a stage between two queues.
	alone := func(s *stage, in Task) (out []Task) {
		t.Helper()
		s.size = 1
		at := 0
		var plan []*stage
		for i, k := range []Kind{KindFetchListPage, KindParseListPageHtml, KindFetchProductDetailPage, KindParseProductDetailHtml, KindSaveProduct} {
			plan = append(plan, &stage{name: "end", input: k})
			if k == s.input {
				at, plan[i] = i, s
			}
		}
		e := newEngine(plan, 100, v.state, &memory{})
		e.deadLetter = v.deadLetter
		idle := make(chan struct{})
		e.pending.Add(1)
		s.queue <- in
		close(idle) // it ends once its queue is empty
		e.worker(t.Context(), at, idle)
		for _, end := range plan {
			for len(end.queue) > 0 {
				out = append(out, <-end.queue)
			}
		}
		return out
	}

	fetch := v.reader.seeds()[0].task()
	out := alone(v.listPageFetcher(), fetch)
	require.Len(t, out, 1)
	parse := out[0].(ParseListPageHtml)
	assert.Equal(t, 1, parse.Page)
	assert.Contains(t, parse.HTMLContent, "CSA1600006MAT00006-24")
	assert.EqualValues(t, 1, v.state.Stats.snapshot().ListPagesFetched)

	out = alone(v.listPageParser(), parse)
	product := func(n int) Task {
		return entry{Kind: KindFetchProductDetailPage, URL: "https://" + catalogsim.MatterHost + j.matter.DetailPath(n)}.task()
	}
	assert.Equal(t, []Task{product(6), product(5)}, out)
	assert.EqualValues(t, 2, v.state.Stats.snapshot().ProductURLsFound)
	var waiting int
	require.NoError(t, j.db.QueryRowContext(t.Context(), `SELECT count(*) FROM catalog_tasks WHERE kind = 'FetchListPage' AND state = 0`).Scan(&waiting))
	assert.Equal(t, 2, waiting, "the site says that there are three pages: two more wait in the journal")

	out = alone(v.productDetailFetcher(), out[0])
	require.Len(t, out, 1)
	assert.Contains(t, out[0].(ParseProductDetailHtml).HTMLContent, "Firmware Version")
	assert.EqualValues(t, 1, v.state.Stats.snapshot().DetailPagesFetched)

	out = alone(v.productDetailParser(), out[0])
	require.Len(t, out, 1)
	assert.Equal(t, "CSA1600006MAT00006-24", out[0].(SaveProduct).ProductDetail.Key)
	assert.Equal(t, "Dimmable Light 6", out[0].(SaveProduct).ProductDetail.Fields["name"])

	assert.Empty(t, alone(v.dbSaver(), out[0]))
	assert.EqualValues(t, 1, v.state.Stats.snapshot().ProductsSaved)
	assert.Contains(t, j.products("matter"), "CSA1600006MAT00006-24")
}

// After failures of every stage the counters are exact, and each task that failed for the
// last time has a dead letter that can be replayed.
func TestFailuresRetriesAndReplay(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		j := newJob(t, dsn, webtest.Options{}, "matter")
		j.small(5, 4)
		j.matter.Fail(j.matter.DetailPath(3), 2, 503, "")  // the third try is good
		j.matter.Fail(j.matter.DetailPath(4), -1, 404, "") // final at once
		j.matter.Fail(j.matter.DetailPath(5), -1, 500, "") // three tries
		j.matter.Fail(j.matter.DetailPath(6), -1, 204, "") // fetched, without a key
		j.matter.Fail(j.matter.ListPath(5), -1, 502, "")   // products 1 to 4 are never found
		j.matter.Fail(j.matter.ListPath(2), 1, 429, "0")   // held and asked again
		total := j.run()
		assert.Equal(t, map[string]int64{"list_pages_fetched": 4, "product_urls_found": 16, "detail_pages_fetched": 15, "products_saved": 14,
			"failed_tasks": 3, "products_new": 14, "products_changed": 0, "products_unchanged": 0, "products_gone": 0, "sites": 1, "sites_failed": 0, "sites_held": 0}, reported(total))
		assert.Equal(t, map[string]int64{"failed_list_page_fetcher": 1, "failed_list_page_parser": 0, "failed_product_detail_fetcher": 1, "failed_product_detail_parser": 1, "dead_letters": 3},
			counted(total, "failed_list_page_fetcher", "failed_list_page_parser", "failed_product_detail_fetcher", "failed_product_detail_parser", "dead_letters"))
		assert.EqualValues(t, 2+2+0+1, total.HTTP.Retries, "a page that cannot be read is not fetched again for it")
		assert.Zero(t, j.left())
		times := func(path string) (n int) {
			for _, p := range j.asked(catalogsim.MatterHost) {
				if p == path {
					n++
				}
			}
			return n
		}
		assert.Equal(t, []int{3, 1, 3, 2}, []int{times(j.matter.DetailPath(5)), times(j.matter.DetailPath(6)), times(j.matter.ListPath(5)), times(j.matter.ListPath(2))})

		dead := j.deadLetters()
		var got []string
		for _, l := range dead {
			got = append(got, fmt.Sprint(l.Stage, " ", l.Kind, " ", l.Retryable, " ", l.Input.Source, " ", strings.TrimPrefix(l.Input.URL, "https://"+catalogsim.MatterHost)))
			assert.NotContains(t, l.Error, "<html")
		}
		assert.ElementsMatch(t, []string{
			"ListPageFetcher http_502 true matter " + j.matter.ListPath(5),
			"ProductDetailFetcher http_500 true matter " + j.matter.DetailPath(5),
			"ProductDetailParser missing_key false matter " + j.matter.DetailPath(6)}, got)

		j.matter.Mend()
		j.web.ResetLog()
		require.NoError(t, Reopen(t.Context(), j.db, dead))
		assert.Equal(t, 3, j.left())
		again := j.run()
		assert.EqualValues(t, 20, again.Counts["products_saved"])
		assert.EqualValues(t, 6, again.Counts["products_new"])
		assert.Empty(t, j.deadLetters(), "a success resolves the dead letter")
		assert.Equal(t, 1, times(j.matter.DetailPath(5)), "once, though it is a replay and on a list page")
	})
}

func TestPoliteness(t *testing.T) {
	t.Parallel() // it waits more than it works
	t.Run("disallowed pages are never asked for", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{}, "matter")
		j.small(1, 3)
		j.matter.Robots("User-agent: *\nDisallow: " + j.matter.DetailPath(2) + "\n")
		total := j.run()
		assert.EqualValues(t, 2, total.Counts["products_saved"])
		assert.NotContains(t, j.asked(catalogsim.MatterHost), j.matter.DetailPath(2))
		require.Len(t, j.deadLetters(), 1)
		assert.Equal(t, "robots_disallowed", j.deadLetters()[0].Kind)
	})
	t.Run("a robots.txt that fails is a ban", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{}, "matter", "gadgets")
		j.matter.Fail("/robots.txt", -1, 500, "")
		total := j.run()
		assert.Equal(t, []string{"/robots.txt", "/robots.txt", "/robots.txt"}, j.asked(catalogsim.MatterHost))
		assert.EqualValues(t, 48, total.Counts["products_saved"], "the other site is crawled")
		require.Len(t, j.deadLetters(), 1)
		assert.Equal(t, "robots_unreachable", j.deadLetters()[0].Kind)
		assert.EqualValues(t, 1, total.Counts["failed_orchestrator"])
	})
	t.Run("a site that asks for too long a Crawl-delay is abandoned", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{}, "matter")
		j.matter.Robots("User-agent: *\nCrawl-delay: 60\n")
		j.run()
		assert.Equal(t, []string{"/robots.txt"}, j.asked(catalogsim.MatterHost))
		assert.Equal(t, "crawl_delay", j.deadLetters()[0].Kind)
	})
	for _, status := range []int{429, 503} {
		t.Run(fmt.Sprintf("a site whose %d asks for a long pause is abandoned, and resumed by the next run", status), func(t *testing.T) {
			j := newJob(t, "", webtest.Options{}, "matter", "gadgets")
			j.small(2, 10)
			j.matter.Fail(j.matter.DetailPath(12), 1, status, "3600")
			j.cfg.Lane.Polite.HostDelay = 5 * time.Millisecond // one at a time
			total := j.run()
			var late []string
			for i, r := range j.web.Requests() {
				if r.Status == status {
					for _, r := range j.web.Requests()[i+1:] {
						if r.Host == catalogsim.MatterHost {
							late = append(late, r.Path)
						}
					}
				}
			}
			assert.Empty(t, late, "asked for afterwards")
			require.Len(t, j.deadLetters(), 1)
			assert.Equal(t, "retry_after", j.deadLetters()[0].Kind)
			assert.True(t, j.deadLetters()[0].Retryable)
			saved := total.Counts["products_saved"]
			assert.Less(t, saved, int64(48+20))
			assert.GreaterOrEqual(t, saved, int64(48), "the other site is crawled")
			before := len(j.asked(catalogsim.MatterHost))
			saved += j.run().Counts["products_saved"]
			assert.Len(t, j.asked(catalogsim.MatterHost), before, "the pause outlives the run")
			require.Len(t, j.deadLetters(), 1)
			_, err := j.db.ExecContext(t.Context(), `UPDATE catalog_hosts SET next_at = $1`, db.Micros(time.Now())) // an hour later
			require.NoError(t, err)
			again := j.run()
			assert.Empty(t, j.deadLetters())
			assert.EqualValues(t, 48+48+48+20, saved+again.Counts["products_saved"], "the other site is crawled three times, this one once")
		})
	}
	t.Run("a robots.txt whose answer asks for a long pause is requested once", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{}, "matter")
		j.matter.Fail("/robots.txt", -1, 503, "3600")
		j.run()
		assert.Equal(t, []string{"/robots.txt"}, j.asked(catalogsim.MatterHost))
		require.Len(t, j.deadLetters(), 1)
		assert.Equal(t, "retry_after", j.deadLetters()[0].Kind)
	})
	for name, ask := range map[string]func(j *job){
		"a pause of ours": func(j *job) { j.cfg.Lane.Polite.HostDelay = 3 * time.Second },
		"its Crawl-delay": func(j *job) { j.matter.Robots("User-agent: *\nCrawl-delay: 3\n") },
	} {
		t.Run("one request at a time with "+name, func(t *testing.T) {
			j := newJob(t, "", webtest.Options{}, "matter")
			j.small(2, 4)
			ask(j)
			clock, arrivals := arrivalsAt(j)
			v, w := j.visit(j.config(), "matter")
			w.Pacer.Clock = clock.Polite()
			require.NoError(t, v.run(t.Context()))
			require.Len(t, *arrivals, 1+2+8)
			assert.Equal(t, 1, j.web.MaxInFlight())
			for i := 1; i < len(*arrivals); i++ {
				assert.GreaterOrEqual(t, (*arrivals)[i].Sub((*arrivals)[i-1]), 3*time.Second, "request %d", i)
			}
		})
	}
	for _, status := range []int{429, 500, 503} {
		t.Run(fmt.Sprintf("Retry-After of a %d pauses all fetchers", status), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "", webtest.Options{Latency: 50 * time.Millisecond}, "matter")
			j.small(4, 20) // half a second without the pause
			j.matter.Fail(j.matter.DetailPath(75), 1, status, "1")
			j.run()
			log := j.web.Requests()
			failed := slices.IndexFunc(log, func(r webtest.LoggedRequest) bool { return r.Status == status })
			require.GreaterOrEqual(t, failed, 0)
			inFlight, late := 0, 0
			for _, r := range log {
				switch since := r.Start.Sub(log[failed].End); {
				case since >= 950*time.Millisecond:
					late++
				case since > 0:
					inFlight++
				}
			}
			// Ten fetchers may each have sent a request before the client read the answer.
			assert.LessOrEqual(t, inFlight, 20)
			assert.Greater(t, late, 30)
		})
	}
	t.Run("the HTTP semaphore bounds all fetchers", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{Latency: 5 * time.Millisecond}, "matter", "gadgets")
		j.small(4, 12)
		j.cfg.ListFetchers, j.cfg.DetailFetchers, j.cfg.Lane.Web.Concurrency = 4, 8, 3
		j.run()
		assert.Equal(t, 3, j.web.MaxInFlight())
	})
	t.Run("links to elsewhere and redirects to elsewhere are not followed", func(t *testing.T) {
		j := newJob(t, "", webtest.Options{}, "matter")
		j.web.Handle(catalogsim.MatterHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
			case "/csa_product/away/":
				http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
			default:
				_, _ = fmt.Fprint(w, `<div class=post-feed><article><a href="https://elsewhere.example/x">x</a><a href="/csa_product/away/">y</a></article></div>`)
			}
		}))
		j.run()
		assert.Empty(t, j.asked("elsewhere.example"))
		require.Len(t, j.deadLetters(), 1)
		assert.Equal(t, "blocked", j.deadLetters()[0].Kind)
	})
}

func TestStopAfterKnown(t *testing.T) {
	j := newJob(t, "", webtest.Options{}, "matter")
	j.small(10, 4)
	j.cfg.ListFetchers = 1
	j.run()
	j.matter.SetPages(11) // four new products: the first page is all new
	j.cfg.StopAfterKnown = 2
	j.web.ResetLog()
	total := j.run()
	assert.EqualValues(t, 4, total.Counts["products_new"])
	lists := total.Counts["list_pages_fetched"]
	if lists < 3 || lists > 6 { // those on their way when the third was read are read too
		t.Errorf("%d list pages fetched, want about 3 of 11", lists)
	}
	assert.Equal(t, total.Counts["product_urls_found"], total.Counts["products_saved"])
	assert.Zero(t, j.left())
	assert.Len(t, j.products("matter"), 44)
}

// A run that is killed anywhere is resumed: nothing is lost, nothing is
// saved twice, and only what was in flight is fetched twice.
func TestKilledRunIsResumed(t *testing.T) {
	t.Parallel()
	eachDBs(t, func(t *testing.T, dsn func(testing.TB) string) {
		for _, after := range []int{1, 5, 20, 45} {
			j := newJob(t, dsn(t), webtest.Options{Latency: 2 * time.Millisecond}, "matter")
			j.small(6, 8)
			cfg := j.config()
			v, _ := j.visit(cfg, "matter")
			ctx, kill := context.WithCancel(t.Context()) // as a kill: no grace, no goodbye
			go func() {
				for len(j.web.Requests()) < after && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				kill()
			}()
			if err := v.run(ctx); err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			kill()
			first := v.state.Stats.snapshot()
			inFlight := int64(cfg.DetailFetchers + cfg.ListFetchers + cfg.DetailParsers + 3*cfg.QueueLength) // fetched, and not saved yet

			v, _ = j.visit(j.config(), "matter")
			require.NoError(t, v.run(t.Context()))
			second := v.state.Stats.snapshot()
			assert.Equal(t, second.ProductURLsFound, second.DetailPagesFetched)
			assert.Equal(t, second.DetailPagesFetched, second.ProductsSaved)
			// The break may cut the database's answer to a transaction that it has done: at most 48 are counted, and 48 are there.
			assert.Equal(t, first.Counts["products_new"]+second.Counts["products_new"], first.ProductsSaved+second.ProductsSaved, "none is saved twice")
			assert.LessOrEqual(t, first.ProductsSaved+second.ProductsSaved, int64(48), "after %d requests: %+v then %+v", after, first, second)
			assert.Len(t, j.products("matter"), 48)
			assert.Zero(t, j.left())
			assert.LessOrEqual(t, int64(len(j.asked(catalogsim.MatterHost)))-2-6-48, inFlight)
		}
	})
}

// arrivalsAt returns a clock that only pauses move, and by it the times of the requests
// that will reach the site matter.
func arrivalsAt(j *job) (clock *politetest.Clock, arrivals *[]time.Time) {
	clock, arrivals = politetest.At(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)), new([]time.Time)
	var mu sync.Mutex
	j.web.Handle(catalogsim.MatterHost, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*arrivals = append(*arrivals, clock.Now())
		mu.Unlock()
		j.matter.ServeHTTP(rw, r)
	}))
	return clock, arrivals
}

// Wherever a run is killed, the next one keeps the pause that the killed one owed
// the host: by the host's own clock, which only pauses move.
func TestPauseOutlivesAKill(t *testing.T) {
	t.Parallel()
	eachDBs(t, func(t *testing.T, dsn func(testing.TB) string) {
		for killedAt := range 4 { // its pause
			j := newJob(t, dsn(t), webtest.Options{}, "matter")
			j.small(1, 3)
			j.matter.Robots("User-agent: *\nCrawl-delay: 4\n")
			j.cfg.Lane.Polite.HostDelay = time.Second
			clock, requests := arrivalsAt(j)
			run := func(killedAt int) error {
				v, w := j.visit(j.config(), "matter")
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				w.Pacer.Clock = politetest.Killed(clock.Polite(), killedAt, kill)
				return v.run(ctx)
			}
			if err := run(killedAt); err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			require.Len(t, *requests, 1+killedAt)
			require.NoError(t, run(100))
			require.Len(t, j.products("matter"), 3)
			for arrivals, i := *requests, 1; i < len(arrivals); i++ {
				assert.GreaterOrEqual(t, arrivals[i].Sub(arrivals[i-1]), 4*time.Second, "killed in pause %d: request %d", killedAt, i)
			}
		}
	})
}

// Of two runs at the same time the second waits for the site, and does nothing twice.
func TestOneRunASite(t *testing.T) {
	t.Parallel() // it waits more than it works
	j := newJob(t, "", webtest.Options{Latency: time.Millisecond}, "matter")
	j.small(3, 8)
	j.cfg.DetailFetchers, j.cfg.ListFetchers = 1, 1
	var all sync.WaitGroup
	for range 2 {
		v, _ := j.visit(j.config(), "matter")
		all.Go(func() { assert.NoError(t, v.run(t.Context())) })
	}
	all.Wait()
	assert.Equal(t, 1, j.web.MaxInFlight()/2+j.web.MaxInFlight()%2, "never more than one run's two fetchers")
	assert.Len(t, j.asked(catalogsim.MatterHost), 2*(1+3+24), "one after the other")
}

// The upsert itself, without a lease: two writers over the same keys.
func TestUpsertByTwoAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		require.NoError(t, Migrate(t.Context(), d))
		j := &rows{db: d, site: "s"}
		const n = 60
		products := func(version string) (out []product) {
			for i := range n {
				out = append(out, product{url: fmt.Sprint("u", i), key: fmt.Sprint("k", i), fields: map[string]json.RawMessage{"v": json.RawMessage(`"` + version + `"`)}})
			}
			return out
		}
		at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		var mu sync.Mutex
		var added, changed int
		save := func(version string, at time.Time, backwards bool) {
			p := products(version)
			if backwards {
				slices.Reverse(p)
			}
			for part := range slices.Chunk(p, 7) {
				o, err := j.save(t.Context(), part, at, "r", nil)
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				added, changed = added+o.added, changed+o.changed
				mu.Unlock()
			}
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { save("1", at.Add(time.Duration(i)), i%2 == 1) })
		}
		all.Wait()
		assert.Equal(t, []int{n, 0}, []int{added, changed}, "each is new to one of the four writers")
		save("1", at.Add(time.Hour), false)
		assert.Equal(t, []int{n, 0}, []int{added, changed})
		save("2", at.Add(2*time.Hour), false)
		assert.Equal(t, []int{n, n}, []int{added, changed})
		var first, last, change int64
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT min(first_seen), min(last_seen), min(changed_at) FROM catalog_products`).Scan(&first, &last, &change))
		assert.Equal(t, db.Micros(at), first)
		assert.Equal(t, db.Micros(at.Add(2*time.Hour)), last)
		assert.Equal(t, last, change)

		twice := products("3")[:2]
		twice = append(twice, twice...) // one statement cannot write a row twice
		o, err := j.save(t.Context(), twice, at.Add(3*time.Hour), "r", nil)
		require.NoError(t, err)
		assert.Equal(t, 2, o.changed)
	})
}

// Fifty requests hang. After the stop no request leaves within 100 ms, the
// crawl ends within two seconds, and what is queued is kept.
func TestCancelOnAHangingSite(t *testing.T) {
	for name, delay := range map[string]time.Duration{"in parallel": 0, "waiting for their turn": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, "", webtest.Options{}, "matter")
			j.small(10, 12)
			j.cfg.DetailFetchers, j.cfg.ListFetchers, j.cfg.Lane.Polite.HostDelay = 50, 1, delay
			want := 50
			if delay > 0 {
				want = 1
			}
			j.web.Handle(catalogsim.MatterHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/csa_product/") {
					<-r.Context().Done()
					return
				}
				j.matter.ServeHTTP(w, r)
			}))
			v, w := j.visit(j.config(), "matter")
			ended := make(chan error)
			go func() { ended <- v.run(t.Context()) }()
			require.Eventually(t, func() bool { return j.web.MaxInFlight() >= want }, 20*time.Second, 5*time.Millisecond)
			before := w.Web.Stats().Requests
			w.Stop(nil)
			require.NoError(t, <-ended)
			assert.Equal(t, before, w.Web.Stats().Requests, "requests after the stop")
			assert.Zero(t, w.Web.Stats().Failures["timeout"], "the run waited for requests that hung")
			assert.Positive(t, j.left())

			j.web.Handle(catalogsim.MatterHost, j.matter)
			j.cfg.Lane.Polite.HostDelay = 0
			total := j.run()
			assert.Len(t, j.products("matter"), 120)
			assert.EqualValues(t, total.Counts["product_urls_found"], total.Counts["products_saved"])
		})
	}
}

// Paused through the ledger, as `runs pause` does it: nothing is sent, and the
// run resumes where it was.
func TestPauseThroughTheLedger(t *testing.T) {
	t.Parallel() // it waits more than it works
	j := newJob(t, "", webtest.Options{Latency: 20 * time.Millisecond}, "matter")
	j.small(5, 12)
	j.cfg.DetailFetchers, j.cfg.ListFetchers, j.cfg.Lane.Polite.HostDelay = 2, 1, 5*time.Millisecond
	cfg := j.config()
	v, w := j.visit(cfg, "matter")
	ended := make(chan error)
	go func() { ended <- v.run(t.Context()) }()
	require.Eventually(t, func() bool { return len(j.web.Requests()) > 10 }, 20*time.Second, 5*time.Millisecond)
	ask := func(a ledger.Action) {
		require.NoError(t, ledger.WriteControl(t.Context(), j.store, cfg.Lane.RunID, ledger.Control{Action: a, At: time.Now()}))
		require.NoError(t, w.Obey(t.Context()))
	}
	ask(ledger.ActionPause)
	quiet := func(d time.Duration) bool { // nothing sent for so long
		n := w.Web.Stats().Requests
		time.Sleep(d)
		return w.Web.Stats().Requests == n
	}
	require.Eventually(t, func() bool { return quiet(300 * time.Millisecond) }, 10*time.Second, time.Millisecond)
	require.NoError(t, w.Obey(t.Context()), "the next poll")
	assert.True(t, quiet(time.Second), "a paused run sends nothing")
	saved := v.state.Stats.snapshot().ProductsSaved
	assert.Less(t, saved, int64(60))
	ask(ledger.ActionRun)
	require.NoError(t, <-ended)
	s := v.state.Stats.snapshot()
	assert.EqualValues(t, 60, s.ProductsSaved)
	assert.Zero(t, s.FailedTasks)
	assert.Len(t, j.asked(catalogsim.MatterHost), 1+5+60, "nothing was asked for twice")
}
