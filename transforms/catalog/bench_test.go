package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

// endless is a journal that gives n list pages.
type endless struct {
	memory
	left int
}

func (j *endless) due(_ context.Context, _ time.Time, n int) (tasks []entry, _ time.Time, _ error) {
	n = min(n, j.left)
	j.left -= n
	tasks = make([]entry, n)
	for i := range tasks {
		tasks[i] = entry{Kind: KindFetchListPage, URL: "u", Page: j.left + i}
	}
	return tasks, time.Time{}, nil
}

// BenchmarkTasksInMemory sends tasks that do nothing through the five stages:
// one operation is one list page, with the one product on it, from the first
// queue to the last worker. The goal is 500,000 of them a second on two cores.
func BenchmarkTasksInMemory(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	j := &endless{left: b.N}
	plan := empty([5]int{1, 1, 1, 1, 1}, 0, 0, &j.memory, func(Task) {})
	plan[1].work = func(_ context.Context, t Task) ([]Task, error) {
		return []Task{FetchProductDetailPage{entry{URL: "p"}}}, nil
	}
	e := newEngine(plan, 1024, &sharedState{Control: newHand(), Stats: &Stats{}}, j)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	b.ResetTimer()
	complete, err := e.run(b.Context())
	b.StopTimer()
	runtime.ReadMemStats(&after)
	require.True(b, complete && err == nil, "%v %v", complete, err)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chains/s")
	b.ReportMetric(float64(after.HeapSys)/(1<<20), "heap-MiB")
}

// durable is a crawl over the journal in a database whose tasks do nothing.
func durable(b *testing.B, d *db.DB, products int) {
	const fan = 12
	pages := (products + fan - 1) / fan
	v := &visit{cfg: Config{ListFetchers: 2, ListParsers: 4, DetailFetchers: 2, DetailParsers: 2, Savers: 2}, journal: &rows{db: d, site: "bench"},
		state: &sharedState{Control: newHand(), Stats: &Stats{}}, clock: time.Now, reader: &reader{site: Site{Name: "bench"}}}
	seeds := make([]entry, pages)
	for i := range seeds {
		seeds[i] = entry{Kind: KindFetchListPage, URL: "https://shop.example/list/" + strconv.Itoa(i), Page: i}
	}
	if _, _, err := v.journal.begin(b.Context(), seeds, "", time.Now(), true); err != nil {
		b.Fatal(err)
	}
	plan := empty([5]int{2, 4, 2, 2, 2}, fan, 0, &memory{}, func(Task) {})
	plan[1].work = func(_ context.Context, t Task) ([]Task, error) {
		p := t.(ParseListPageHtml)
		found := make([]Task, fan)
		for i := range found {
			found[i] = entry{Kind: KindFetchProductDetailPage, URL: "https://shop.example/product/" + strconv.Itoa(p.Page*fan+i)}.task()
		}
		return found, nil
	}
	plan[1].batch = maxParseBatch
	plan[1].commit = func(ctx context.Context, results []result) error {
		var l []listResult
		for _, r := range results {
			one := listResult{from: r.task.stored()}
			for _, t := range r.found {
				one.found = append(one.found, t.stored())
			}
			l = append(l, one)
		}
		_, _, _, err := v.journal.endLists(ctx, l, nil)
		return err
	}
	plan[4].batch = maxSaveBatch
	plan[4].commit = func(ctx context.Context, results []result) error {
		from := make([]entry, 0, len(results))
		for _, r := range results {
			from = append(from, r.task.stored())
		}
		return v.journal.db.Tx(ctx, func(tx *sql.Tx) error { return v.journal.set(ctx, tx, from, done) })
	}
	e := newEngine(plan, 512, v.state, v.journal)
	b.ResetTimer()
	complete, err := e.run(b.Context())
	b.StopTimer()
	require.True(b, complete && err == nil, "%v %v", complete, err)
	var left int
	err = d.QueryRowContext(b.Context(), `SELECT count(*) FROM catalog_tasks WHERE state <> 2`).Scan(&left)
	require.True(b, err == nil && left <= 0, "%d tasks left, %v", left, err)
	b.ReportMetric(float64(pages*fan)/b.Elapsed().Seconds(), "products/s")
}

// BenchmarkTasksDurable is the same with the durable queue in a database: each
// product's task is written when it is found, and again when it is done. The
// goal is 20,000 a second on SQLite.
func BenchmarkTasksDurable(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			d, err := db.Open(b.Context(), dsn(b))
			require.NoError(b, err)
			defer func() { _ = d.Close() }()
			require.NoError(b, Migrate(b.Context(), d))
			durable(b, d, b.N)
		})
	}
}

// BenchmarkSite crawls the 50×12 site at 20 ms an answer with eight detail
// fetchers. "of-ideal" is all requests × latency ÷ 8 over the time that it took;
// "of-detail-ideal" counts the product pages only, as list pages have two
// fetchers of their own.
func BenchmarkSite(b *testing.B) {
	const latency, fetchers = 20 * time.Millisecond, 8
	for _, scheme := range []string{"http", "https"} {
		b.Run(scheme, func(b *testing.B) {
			var took time.Duration
			for range b.N {
				j := newJob(b, "", webtest.Options{Latency: latency, LogLimit: -1}, "matter")
				s := site(b, "matter")
				if scheme == "http" {
					s = inHTTP(s)
					j.web.Handle(catalogsim.MatterHost, plainly(catalogsim.NewMatter(catalogsim.Pages, catalogsim.PerPage)))
				}
				cfg := j.config()
				_, w := j.visit(cfg, "matter")
				v, err := newVisit(cfg, w, j.db, s, &Stats{})
				require.NoError(b, err)
				begin := time.Now()
				require.NoError(b, v.run(b.Context()))
				took += time.Since(begin)
				if s := v.state.Stats.snapshot(); s.ProductsSaved != 600 {
					b.Fatalf("%+v", s)
				}
			}
			const details = catalogsim.Pages * catalogsim.PerPage
			ideal := func(requests int) float64 {
				return float64(requests) * float64(latency) / fetchers * float64(b.N) / float64(took)
			}
			b.ReportMetric(ideal(details+catalogsim.Pages+1), "of-ideal")
			b.ReportMetric(ideal(details), "of-detail-ideal")
		})
	}
}

func inHTTP(s Site) Site {
	s.List.URL = strings.Replace(s.List.URL, "https://", "http://", 1)
	return s
}

// plainly answers with links in plain HTTP.
func plainly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &buffered{header: w.Header(), status: http.StatusOK}
		h.ServeHTTP(rec, r)
		body := bytes.ReplaceAll(rec.body.Bytes(), []byte("https://"), []byte("http://"))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(rec.status)
		_, _ = w.Write(body)
	})
}

type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(s int)           { b.status = s }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
