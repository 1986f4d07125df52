package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
	"github.com/newsfork/seed-engine/transforms/catalog/sites"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
)

func TestMain(m *testing.M) { lanetest.Main(m) }

// job is a bucket, a simulated web, a database and a configuration: what one
// command of the catalog job meets.
type job struct {
	t       testing.TB
	store   store.Store
	web     *webtest.Web
	matter  *faultySite
	gadgets *catalogsim.Site
	db      *db.DB
	cfg     Config
	runs    int
	runner  string
}

// faultySite is the simulated register of Matter. Its answers can be replaced.
type faultySite struct {
	*catalogsim.Site
	mu     sync.Mutex
	faults map[string]*setAnswer // by path, without or with its query
}

type setAnswer struct {
	times, status    int // below 0: all times
	retryAfter, body string
}

// use puts a register in the place of the one before.
func (j *job) use(s *catalogsim.Site) {
	j.matter = &faultySite{Site: s, faults: map[string]*setAnswer{}}
	j.web.Handle(catalogsim.MatterHost, j.matter)
}

// Fail sets the status of the next answers for a path; times below 0 means all.
func (r *faultySite) Fail(path string, times, status int, retryAfter string) {
	r.set(path, setAnswer{times, status, retryAfter, ""})
}

func (r *faultySite) Robots(text string) {
	r.set("/robots.txt", setAnswer{-1, http.StatusOK, "", text})
}

func (r *faultySite) set(path string, f setAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[path] = &f
}

// Mend undoes Fail and Robots.
func (r *faultySite) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.faults)
}

func (r *faultySite) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var hit setAnswer
	r.mu.Lock()
	for _, at := range []string{q.URL.Path, q.URL.RequestURI()} {
		if f := r.faults[at]; f != nil && f.times != 0 {
			f.times--
			hit = *f
			break
		}
	}
	r.mu.Unlock()
	if hit.status == 0 {
		r.Site.ServeHTTP(w, q)
		return
	}
	if hit.retryAfter != "" {
		w.Header().Set("Retry-After", hit.retryAfter)
	}
	w.WriteHeader(hit.status)
	_, _ = io.WriteString(w, hit.body) // the client may have gone
}

// shipped are the sites that ship, and those of the demo.
func shipped(t testing.TB) []Site {
	t.Helper()
	demo, err := fs.Sub(sites.Files, "demo")
	require.NoError(t, err)
	var all []Site
	for _, files := range []fs.FS{sites.Files, demo} {
		s, _, err := ReadSites(files)
		require.NoError(t, err)
		all = append(all, s...)
	}
	return all
}

func site(t testing.TB, name string) Site {
	t.Helper()
	for _, s := range shipped(t) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no site %s", name)
	return Site{}
}

func newJob(t testing.TB, dsn string, o webtest.Options, names ...string) *job {
	t.Helper()
	j := &job{t: t, web: webtest.New(o), runner: "direct"}
	var matter *catalogsim.Site
	matter, j.gadgets = catalogsim.Install(j.web.Handle)
	j.use(matter)
	require.NoError(t, j.web.Start())
	t.Cleanup(func() { assert.NoError(t, j.web.Close()) })
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	j.store = s
	if dsn == "" {
		dsn = "sqlite://" + filepath.Join(t.TempDir(), "catalog.db")
	}
	j.db, err = db.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, j.db.Close()) })
	require.NoError(t, Migrate(t.Context(), j.db))
	j.cfg = Config{
		Lanes: 1, DB: dsn, ListFetchers: 2, ListParsers: 1, DetailFetchers: 8, DetailParsers: 2, Savers: 1, QueueLength: 16, LeaseTTL: 5 * time.Second,
		Lane: lane.Config{Job: Job, Store: dir, Slots: 1, LogFormat: "json", LogLevel: 100, Grace: 2 * time.Second,
			Polite: polite.Config{RetryBackoff: time.Millisecond, MaxPause: 5 * time.Second}, Web: web.Config{UserAgent: web.DefaultUserAgent, Concurrency: 64,
				ConnectTo: j.web.Addr(), RootCAs: j.web.CAPEM()}},
	}
	for _, n := range names {
		j.cfg.Sites = append(j.cfg.Sites, site(t, n))
	}
	return j
}

// config is the job's with a run id of its own.
func (j *job) config() Config {
	j.runs++
	cfg := j.cfg
	cfg.Lane.RunID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), j.runs)
	return cfg
}

// run runs the job's graph once, as one command does, and gives its total.
func (j *job) run() ledger.Tally {
	j.t.Helper()
	total, cause := j.try(j.config())
	require.NoError(j.t, cause)
	return total
}

func (j *job) try(cfg Config) (_ ledger.Tally, cause error) {
	j.t.Helper()
	w, err := lane.Open(j.t.Context(), cfg.Lane)
	require.NoError(j.t, err)
	p, s := beam.NewPipelineWithRoot()
	// pipeline.Catalog, which cannot be imported: its package holds the whole program.
	lane.Total(s, cfg.Lane, Visit(s, cfg, Sites(s, cfg)))
	result, err := beam.Run(context.Background(), j.runner, p)
	require.NoError(j.t, errors.Join(err, lane.Close(cfg.Lane.RunID)))
	total, err := ledger.ReadTotal(context.Background(), j.store, cfg.Lane.RunID)
	require.NoError(j.t, err)
	shown := lanetest.Shown(j.runner, result)
	for _, name := range Counts() {
		require.Equal(j.t, total.Counts[name], shown[name], name)
	}
	return total, w.Cause()
}

// row is a product as it lies in the database.
type row struct {
	URL, Hash            string
	First, Last, Changed int64
	Detail               map[string]any
}

func (j *job) products(site string) map[string]row {
	j.t.Helper()
	got, err := j.db.QueryContext(context.Background(), `SELECT product_key, url, content_hash, first_seen, last_seen, changed_at, detail FROM catalog_products WHERE site = $1`, site)
	require.NoError(j.t, err)
	defer got.Close()
	out := map[string]row{}
	for got.Next() {
		var key, detail string
		var r row
		require.NoError(j.t, got.Scan(&key, &r.URL, &r.Hash, &r.First, &r.Last, &r.Changed, &detail))
		require.NoError(j.t, json.Unmarshal([]byte(detail), &r.Detail))
		out[key] = r
	}
	require.NoError(j.t, got.Err())
	return out
}

func (j *job) deadLetters() (all []ledger.DeadLetter) {
	j.t.Helper()
	for d, err := range ledger.ListDeadLetters(context.Background(), j.store, Job, "") {
		require.NoError(j.t, err)
		all = append(all, d)
	}
	return all
}

// left is how many rows of the durable queue there are.
func (j *job) left() (n int) {
	j.t.Helper()
	require.NoError(j.t, j.db.QueryRowContext(context.Background(), `SELECT count(*) FROM catalog_tasks`).Scan(&n))
	return n
}

func counted(total ledger.Tally, names ...string) map[string]int64 {
	out := map[string]int64{}
	for _, n := range names {
		out[n] = total.Counts[n]
	}
	return out
}

func reported(total ledger.Tally) map[string]int64 { return counted(total, Counts()...) }

// each runs a test on both databases and both local runners: which of them meet makes no difference.
func each(t *testing.T, test func(t *testing.T, dsn, runner string)) {
	for runner, database := range map[string]func(testing.TB) string{"direct": dbtest.SQLite, "prism": dbtest.Postgres} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			test(t, database(t), runner)
		})
	}
}

func TestWholeSite(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dsn, runner string) {
		j := newJob(t, dsn, webtest.Options{}, "matter", "gadgets")
		j.runner = runner
		j.cfg.Lanes = 4

		first := j.run()
		assert.Equal(t, map[string]int64{"list_pages_fetched": 58, "product_urls_found": 648, "detail_pages_fetched": 648, "products_saved": 648,
			"failed_tasks": 0, "products_new": 648, "products_changed": 0, "products_unchanged": 0, "products_gone": 0, "sites": 2, "sites_failed": 0, "sites_held": 0}, reported(first))
		assert.Equal(t, int64(58+648+2), first.HTTP.Requests)
		assert.Zero(t, j.left())
		before := j.products("matter")
		require.Len(t, before, 600)
		require.Len(t, j.products("gadgets"), 48)
		p := before["CSA1700007MAT00007-24"]
		assert.Equal(t, "https://csa-iot.org/csa_product/demo-product-00007/", p.URL)
		assert.Equal(t, map[string]any{"certificate_id": "CSA1700007MAT00007-24", "name": "Smart Plug 7", "manufacturer": "Nordlicht GmbH", "device_type": "Smart Plug",
			"certification_date": "2022-11-11", "vid": "0x1001", "firmware_version": "4.7.0", "hardware_version": "2.0", "software_version": "16007",
			"transport": "Thread, Bluetooth", "specification_version": "1.3", "family_id": "FAM00007",
			"family_sku": "SKU-7", "family_variant_sku": "SKU-7-A",
			"tis_trp_tested": "No", "primary_device_type_id": "0x0101", "program_type": "Matter", "application_categories": []any{"Smart Plug"},
			"description": "Demo data no. 7.", "compliance_document_url": "https://csa-iot.org/wp-content/uploads/7.zip"}, p.Detail)
		assert.True(t, p.First == p.Last && p.First == p.Changed)
		assert.Equal(t, map[string]any{"sku": "G-0005", "title": "Gadget no. 5", "price": 5.9, "in_stock": false, "rating": 1.0, "tags": []any{"demo", "gadget"}},
			j.products("gadgets")["G-0005"].Detail)

		again := j.run()
		assert.Equal(t, map[string]int64{"list_pages_fetched": 58, "product_urls_found": 648, "detail_pages_fetched": 648, "products_saved": 648,
			"failed_tasks": 0, "products_new": 0, "products_changed": 0, "products_unchanged": 648, "products_gone": 0, "sites": 2, "sites_failed": 0, "sites_held": 0}, reported(again), "the second time nothing is new")
		for key, now := range j.products("matter") {
			was := before[key]
			require.True(t, now.First == was.First && now.Changed == was.Changed && now.Hash == was.Hash && now.Last > was.Last,
				"%s: %+v, was %+v: only last_seen may move", key, now, was)
		}

		j.matter.Change()
		third := j.run()
		assert.Equal(t, counted(third, "products_saved", "products_new", "products_changed"),
			map[string]int64{"products_saved": 648, "products_new": 0, "products_changed": 60})
		changed := 0
		for key, now := range j.products("matter") {
			if now.Changed != before[key].Changed {
				changed++
				assert.Equal(t, now.Last, now.Changed)
				assert.NotEqual(t, now.Hash, before[key].Hash)
			}
		}
		assert.Equal(t, 60, changed)
	})
}
