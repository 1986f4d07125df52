package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	e := newEngine(plan, 1024, &SharedState{Control: newHand(), Stats: &Stats{}}, j)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	b.ResetTimer()
	complete, err := e.run(b.Context())
	b.StopTimer()
	runtime.ReadMemStats(&after)
	if !complete || err != nil {
		b.Fatal(complete, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chains/s")
	b.ReportMetric(float64(after.HeapSys)/(1<<20), "heap-MiB")
}

// durable is a crawl over the journal in a database whose tasks do nothing.
func durable(b *testing.B, d *db.DB, products int) {
	const fan = 12
	pages := (products + fan - 1) / fan
	v := &visit{cfg: Config{ListFetchers: 2, ListParsers: 4, DetailFetchers: 2, DetailParsers: 2, Savers: 2}, journal: &rows{db: d, site: "bench"},
		state: &SharedState{Control: newHand(), Stats: &Stats{}}, clock: time.Now, reader: &reader{site: Site{Name: "bench"}}}
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
	if !complete || err != nil {
		b.Fatal(complete, err)
	}
	var left int
	if err := d.QueryRowContext(b.Context(), `SELECT count(*) FROM catalog_tasks WHERE state <> 2`).Scan(&left); err != nil || left > 0 {
		b.Fatalf("%d tasks left, %v", left, err)
	}
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
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			if err := Migrate(b.Context(), d); err != nil {
				b.Fatal(err)
			}
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
					var asked atomic.Int64
					j.web.Handle(catalogsim.MatterHost, plainly(catalogsim.NewMatter(catalogsim.Pages, catalogsim.PerPage), &asked))
				}
				cfg := j.config()
				_, w := j.visit(cfg, "matter")
				v, err := newVisit(cfg, w, j.db, s, &Stats{})
				if err != nil {
					b.Fatal(err)
				}
				begin := time.Now()
				if err := v.run(b.Context()); err != nil {
					b.Fatal(err)
				}
				took += time.Since(begin)
				if s := v.state.Stats.Snapshot(); s.ProductsSaved != 600 {
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

// BenchmarkBesideScrapy crawls the same site at 0 ms with this job and with
// Scrapy, over plain HTTP, one after the other; "x-scrapy" is the ratio of pages
// a second. SCRAPY names its program; without it the benchmark is skipped.
func BenchmarkBesideScrapy(b *testing.B) {
	scrapy := os.Getenv("SCRAPY")
	if scrapy == "" {
		b.Skip("set SCRAPY to the scrapy program: python3 -m venv v && v/bin/pip install scrapy")
	}
	if err := exec.Command(scrapy, "version").Run(); err != nil {
		b.Fatal(err)
	}
	var ours, theirs float64 // pages a second
	for range b.N {
		j := newJob(b, "", webtest.Options{LogLimit: -1}, "matter")
		plain := inHTTP(site(b, "matter"))
		sim := catalogsim.NewMatter(catalogsim.Pages, catalogsim.PerPage)
		var asked atomic.Int64
		j.web.Handle(catalogsim.MatterHost, plainly(sim, &asked))
		cfg := j.config()
		_, w := j.visit(cfg, "matter")
		v, err := newVisit(cfg, w, j.db, plain, &Stats{})
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		if err := v.run(b.Context()); err != nil {
			b.Fatal(err)
		}
		ours += float64(asked.Swap(0)) / time.Since(begin).Seconds()
		if s := v.state.Stats.Snapshot(); s.ProductsSaved != 600 {
			b.Fatalf("%+v", s)
		}
		pages, seconds := runScrapy(b, scrapy, j.web.Addr(), plain)
		if n := asked.Load(); n < 650 {
			b.Fatalf("Scrapy asked for %d pages", n)
		}
		theirs += pages / seconds
	}
	b.ReportMetric(ours/float64(b.N), "pages/s")
	b.ReportMetric(theirs/float64(b.N), "scrapy-pages/s")
	b.ReportMetric(ours/theirs, "x-scrapy")
}

// plainly answers with links in plain HTTP.
func plainly(h http.Handler, asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
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

// spider does in Scrapy what the job does: the same pages, fields and SQLite
// upserts, eight requests at a time, robots.txt obeyed.
const spider = `
import json, sqlite3, time, scrapy
SITE = json.load(open("site.json"))
class Spider(scrapy.Spider):
    name = "matter"
    custom_settings = dict(CONCURRENT_REQUESTS=10, CONCURRENT_REQUESTS_PER_DOMAIN=10, DOWNLOAD_DELAY=0, ROBOTSTXT_OBEY=True, LOG_LEVEL="ERROR",
        TELNETCONSOLE_ENABLED=False, ITEM_PIPELINES={"__main__.Save" if __name__ == "__main__" else __name__ + ".Save": 1})
    async def start(self):
        self.begin = time.time()
        yield self.page(1)
    def page(self, n):
        return scrapy.Request(SITE["list"].replace("{page}", str(n)), self.parse, meta={"proxy": SITE["proxy"]}, cb_kwargs={"n": n})
    def parse(self, response, n):
        if n == 1:
            last = max(int(t) for t in response.css(SITE["last"]).xpath("string()").re(r"^\s*(\d+)\s*$"))
            for p in range(2, last + 1):
                yield self.page(p)
        for href in response.css(SITE["link"]).xpath("@href").getall():
            yield scrapy.Request(response.urljoin(href), self.detail, meta={"proxy": SITE["proxy"]})
    def detail(self, response):
        item = {}
        for name, selector in SITE["fields"].items():
            found = response.css(selector).xpath("string()").get()
            if found:
                item[name] = " ".join(found.split())
        yield {"key": item["certificate_id"], "url": response.url, "detail": json.dumps(item)}
    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        json.dump({"pages": stats.get("response_received_count", 0), "items": stats.get("item_scraped_count", 0), "seconds": time.time() - self.begin}, open("result.json", "w"))
class Save:
    def open_spider(self, spider):
        self.db = sqlite3.connect("scrapy.db")
        self.db.execute("CREATE TABLE p (k TEXT PRIMARY KEY, url TEXT, detail TEXT, seen REAL)")
    def process_item(self, item, spider):
        self.db.execute("INSERT INTO p VALUES (?,?,?,?) ON CONFLICT (k) DO UPDATE SET url=excluded.url, detail=excluded.detail, seen=excluded.seen", (item["key"], item["url"], item["detail"], time.time()))
        return item
    def close_spider(self, spider):
        self.db.commit()
`

// runScrapy gives the pages and the seconds between the first request and the
// end, as Scrapy itself counts them: starting Python is not held against it.
func runScrapy(b *testing.B, scrapy, addr string, s Site) (pages, seconds float64) {
	b.Helper()
	dir := b.TempDir()
	fields := map[string]string{}
	for name, f := range s.Fields {
		fields[name] = f.Selector
	}
	conf, err := json.Marshal(map[string]any{"list": s.List.URL, "link": s.List.ProductLink.Selector, "last": s.List.LastPage.Selector, "fields": fields, "proxy": "http://" + addr})
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"site.json": string(conf), "spider.py": spider} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.CommandContext(b.Context(), scrapy, "runspider", "spider.py")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("scrapy: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		b.Fatalf("scrapy: %v\n%s", err, out)
	}
	var r struct{ Pages, Items, Seconds float64 }
	if err := json.Unmarshal(text, &r); err != nil {
		b.Fatal(err)
	}
	if r.Items != 600 {
		b.Fatal(fmt.Errorf("scrapy saved %v products of 600\n%s", r.Items, out))
	}
	return r.Pages, r.Seconds
}
