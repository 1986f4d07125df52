//go:build unix

package reference

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// column is a column of a table or view.
type column struct{ table, name, kind string }

// columns are those of all tables and views in a database that the jobs made.
func columns(t *testing.T, d *db.DB) (all []column) {
	t.Helper()
	require.NoError(t, docs.Migrate(t.Context(), d))
	require.NoError(t, catalog.Migrate(t.Context(), d))
	require.NoError(t, raw.Migrate(t.Context(), d))
	_, err := lease.Acquire(t.Context(), lease.InDB(d), "reference", lease.Holder{}, time.Minute)
	require.NoError(t, err)
	query := `SELECT m.name, c.name, lower(c.type) FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`
	if d.Dialect == db.Postgres {
		query = `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`
	}
	rows, err := d.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var c column
		require.NoError(t, rows.Scan(&c.table, &c.name, &c.kind))
		if !strings.HasPrefix(c.table, "goose_") {
			all = append(all, c)
		}
	}
	require.NoError(t, rows.Err())
	return all
}

// TestTables keeps the page of the tables and views, from the database that the migrations
// make. Both databases have the same columns.
func TestTables(t *testing.T) {
	names, kinds := map[db.Dialect][]string{}, map[string]map[db.Dialect]string{}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, c := range columns(t, d) {
			name := c.table + "." + c.name
			names[d.Dialect] = append(names[d.Dialect], name)
			if kinds[name] == nil {
				kinds[name] = map[db.Dialect]string{}
			}
			kinds[name][d.Dialect] = strings.Replace(c.kind, "timestamp with time zone", "timestamptz", 1)
		}
	})
	if names[db.Postgres] == nil {
		t.Skip("there is no PostgreSQL; with CI=true that fails")
	}
	require.ElementsMatch(t, names[db.SQLite], names[db.Postgres])
	exported := map[string]bool{} // columns of views that the schemas of exports explain
	var rows, views, more [][]string
	for _, what := range slices.Sorted(maps.Keys(viewOf)) {
		w, err := export.Named(what)
		require.NoError(t, err)
		for _, c := range w.Columns() {
			name := viewOf[what] + "." + c.Name
			require.Contains(t, names[db.Postgres], name, "each column of an export is in its view")
			exported[name] = true
		}
		views = append(views, []string{code(viewOf[what]), "[columns](../schemas/" + what + ".schema.json) of the export `" + what + "`"})
	}
	for _, name := range names[db.Postgres] {
		of, column, _ := strings.Cut(name, ".")
		switch last := len(rows) - 1; {
		case exported[name]:
		case strings.HasSuffix(of, "_view"):
			more = append(more, []string{code(name), kinds[name][db.Postgres]})
		case last >= 0 && rows[last][0] == code(of):
			rows[last][1] += ", " + code(column)
		default:
			rows = append(rows, []string{code(of), code(column)})
		}
	}
	require.Greater(t, len(rows), 25)
	table{page: "tables.md", name: "views", rows: views}.check(t)
	table{page: "tables.md", name: "more views", rows: more, byHand: true}.check(t)
	table{page: "tables.md", name: "tables", rows: rows, byHand: true}.check(t)
}

// viewOf names the views that have the rows of an export.
var viewOf = map[string]string{"pages": "docs_pages_view", "chunks": "docs_chunks_view", "links": "docs_links_view",
	"products": "catalog_products_view", "product-history": "catalog_changes_view", "product-images": "catalog_images_view", "articles": "news_articles_view", "article-images": "news_images_view", "article-versions": "news_versions_view",
	"articles-reserved": "news_reserved_view"}
