package catalog

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// What PostgreSQL reads for a task does not grow with the crawl. It did: the
// plans that it kept from the empty table read every task of the site for each batch.
func TestPostgresReadsFewRowsForATask(t *testing.T) {
	d, err := db.Open(t.Context(), dbtest.Postgres(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	d.SetMaxOpenConns(1) // its figures are its own
	require.NoError(t, Migrate(t.Context(), d))
	const pages, perPage = 20, 50
	j := &rows{db: d, site: "shop"}
	list := func(n int) entry {
		return entry{Kind: KindFetchListPage, URL: "https://shop.example/list/" + strconv.Itoa(n), Page: n}
	}
	var seeds []entry
	for n := range pages {
		seeds = append(seeds, list(n))
	}
	_, _, err = j.begin(t.Context(), seeds, "", time.Now(), false)
	require.NoError(t, err)
	crawl := func(from, to int) {
		for n := from; n < to; n++ {
			_, _, err := j.due(t.Context(), time.Now(), 1)
			require.NoError(t, err)
			page := listResult{from: list(n)}
			var products []product
			for i := range perPage {
				key := strconv.Itoa(n*perPage + i)
				e := entry{Kind: KindFetchProductDetailPage, URL: "https://shop.example/product/" + key}
				page.found = append(page.found, e)
				products = append(products, product{key: key, url: e.URL, from: e})
			}
			fresh, _, _, err := j.endLists(t.Context(), []listResult{page}, nil)
			require.NoError(t, err)
			require.Len(t, fresh, perPage)
			o, err := j.save(t.Context(), products, time.Now(), "r", nil)
			require.NoError(t, err)
			require.Equal(t, outcome{saved: perPage, added: perPage}, o)
		}
	}
	read := func() (tuples int64) {
		_, err := d.ExecContext(t.Context(), `SELECT pg_stat_force_next_flush()`)
		require.NoError(t, err)
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables WHERE relname = 'catalog_tasks' AND schemaname = current_schema()`).Scan(&tuples))
		return tuples
	}
	crawl(0, pages/2)
	_, err = d.ExecContext(t.Context(), `INSERT INTO catalog_tasks (site, kind, url, page, state, tries, fetched, not_before)
		SELECT 'shop', 'FetchProductDetailPage', 'https://shop.example/earlier/' || n, 0, 2, 0, FALSE, to_timestamp(0) FROM generate_series(1, 20000) n`)
	require.NoError(t, err)
	before := read()
	crawl(pages/2, pages)
	const tasks = pages / 2 * (perPage + 1)
	assert.Less(t, read()-before, int64(5*tasks), "rows read for %d tasks", tasks)
}

// A database that an older program began keeps what waits in it.
func TestMigrateKeepsWaitingTasks(t *testing.T) {
	t.Parallel()
	text, err := migrations.ReadFile("migrations/00001_catalog.sql")
	require.NoError(t, err)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		require.NoError(t, d.Migrate(t.Context(), Job, fstest.MapFS{"00001_catalog.sql": {Data: text}}))
		_, err := d.ExecContext(t.Context(), `INSERT INTO catalog_tasks (site, kind, url, page, state, tries, fetched, not_before) VALUES
			('shop', 'FetchListPage', 'https://shop.example/list/2', 2, 0, 1, 1, 1000000), ('shop', 'FetchProductDetailPage', 'https://shop.example/7', 0, 1, 0, 0, 0),
			('other', 'FetchListPage', 'https://shop.example/list/2', 2, 0, 0, 0, 0)`)
		require.NoError(t, err)
		_, err = d.ExecContext(t.Context(), `INSERT INTO catalog_crawls (site, started_at, finished_at) VALUES ('shop', 1, 0)`)
		require.NoError(t, err)
		require.NoError(t, Migrate(t.Context(), d))

		j := &rows{db: d, site: "shop"}
		resumed, taken, err := j.begin(t.Context(), nil, "", time.Now(), false)
		require.NoError(t, err)
		assert.True(t, resumed)
		assert.EqualValues(t, 1, taken)
		tasks, _, err := j.due(t.Context(), time.Now(), 10)
		require.NoError(t, err)
		assert.Equal(t, []entry{{Kind: KindFetchProductDetailPage, URL: "https://shop.example/7"},
			{Kind: KindFetchListPage, URL: "https://shop.example/list/2", Page: 2, Tries: 1}}, tasks)
	})
}

// Keys that are numbers of seven digits or more were written with an exponent. A product
// keeps its history, its tags and its images under the plain key, and is not new.
func TestMigratePlainKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		files, err := fs.Sub(migrations, "migrations")
		require.NoError(t, err)
		before := fstest.MapFS{}
		for _, dialect := range []string{".", "sqlite", "postgres"} {
			names, err := fs.Glob(files, path.Join(dialect, "*.sql"))
			require.NoError(t, err)
			for _, name := range names {
				if path.Base(name) < "00013" {
					text, err := fs.ReadFile(files, name)
					require.NoError(t, err)
					before[name] = &fstest.MapFile{Data: text}
				}
			}
		}
		require.NoError(t, d.Migrate(t.Context(), Job, before))
		put := func(statement string, args ...any) {
			t.Helper()
			_, err := d.ExecContext(t.Context(), statement, args...)
			require.NoError(t, err)
		}
		const product = `INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at) VALUES ($1, $2, $3, $4, '', 1, 1, 1)`
		for key, detail := range map[string]string{
			"1.234567e+06":          `{"id":1234567,"name":"a"}`,
			"1e+06":                 `{"id":1000000}`,
			"1.2345678905e+06":      `{"id":1234567.8905}`,
			"9.007199254740991e+15": `{"id":9007199254740991}`,
			"1e+20":                 `{"id":100000000000000000000}`,
			"123456":                `{"id":123456}`,
			"2e+06":                 `{"id":"2e+06","pieces":2}`, // a text
			"3e+06":                 `{"id":3000000}`,            // there is one with the plain key
			"3000000":               `{"id":"3000000"}`,
			"A1e+06":                `{"id":"A1e+06"}`,
		} {
			put(product, "shop", key, "https://shop.example/list#"+key, detail)
		}
		put(product, "other", "4e+06", "https://other.example/4e+06", `{"id":4000000}`)
		put(`INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id) VALUES ('shop', '1.234567e+06', 1, 'name', '"b"', '"a"', 'r'), ('shop', '2e+06', 1, 'name', '"b"', '"a"', 'r')`)
		put(`INSERT INTO catalog_tags (site, product_key, asked, model, tags, tagged_at) VALUES ('shop', '1.234567e+06', '', '', '[]', 1)`)
		put(`INSERT INTO catalog_product_images (site, product_key, url, field, position, first_seen, last_seen, gone_at) VALUES ('shop', '1.234567e+06', 'u', 'f', 1, 1, 1, 0)`)
		put(`INSERT INTO catalog_crawls (site, started_at, finished_at, number, file) VALUES ('shop', 1, 0, 1, 'f'), ('other', 1, 0, 1, 'f'), ('done', 1, 2, 1, 'f')`)
		put(`INSERT INTO catalog_tasks (site, kind, url, page, state, tries, fetched, not_before, list_row) VALUES ('shop', 'FetchProductDetailPage', 'u', 0, 0, 0, 0, 0, '{"key":"5e+06","fields":{"id":5000000}}'),
			('other', 'FetchProductDetailPage', 'u', 0, 0, 0, 0, 0, '{"key":"A-1","fields":{}}')`)

		require.NoError(t, Migrate(t.Context(), d))
		texts := func(query string) []string {
			t.Helper()
			all, err := db.Texts(t.Context(), d, query)
			require.NoError(t, err)
			return all
		}
		assert.ElementsMatch(t, []string{"1234567", "1000000", "1234567.8905", "9007199254740991", "100000000000000000000", "123456", "2e+06", "3e+06", "3000000", "A1e+06", "4000000"}, texts(`SELECT product_key FROM catalog_products`))
		assert.Equal(t, []string{"https://other.example/4e+06", "https://shop.example/list#1000000"}, texts(`SELECT url FROM catalog_products WHERE product_key IN ('1000000', '4000000') ORDER BY url`))
		for _, table := range []string{"catalog_changes", "catalog_tags", "catalog_product_images"} {
			assert.Contains(t, texts(`SELECT product_key FROM `+table), "1234567", table)
		}
		assert.Len(t, texts(`SELECT product_key FROM catalog_changes WHERE product_key = '2e+06'`), 1)
		assert.Equal(t, []string{"done f", "other f", "shop keys"}, texts(`SELECT site || ' ' || file FROM catalog_crawls ORDER BY site`))
	})
}

// A key of the type number is written as the site writes it.
func TestKeyThatIsANumber(t *testing.T) {
	t.Parallel()
	for _, detail := range []string{"html", "none"} {
		t.Run(detail, func(t *testing.T) {
			t.Parallel()
			field := `{selector: "#id", type: number}`
			if detail == "none" {
				field = `{selector: a, attribute: data-id, type: number}`
			}
			j := newSite(t, `
name: shop
list: {url: "https://shop.example/", rows: {selector: li}, product_link: {selector: a}}
detail: {format: `+detail+`}
key: id
fields: {id: `+field+`}
`, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					_, _ = fmt.Fprint(w, "<li><a href=/a data-id=1234567>x</a><li><a href=/b data-id=20000000>x</a>")
					return
				}
				_, _ = fmt.Fprint(w, map[string]string{"/a": "<p id=id>1234567", "/b": "<p id=id>20000000"}[r.URL.Path])
			})
			j.run()
			assert.ElementsMatch(t, []string{"1234567", "20000000"}, slices.Collect(maps.Keys(j.products("shop"))))
		})
	}
}
