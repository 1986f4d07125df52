package catalog

import (
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
			fresh, _, _, _, err := j.endLists(t.Context(), []listResult{page}, false)
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
		SELECT 'shop', 'FetchProductDetailPage', 'https://shop.example/earlier/' || n, 0, 2, 0, 0, 0 FROM generate_series(1, 20000) n`)
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
