//go:build unix

package export

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// viewOf names the view that has the rows of an export, and the folder of its tables.
var viewOf = map[string]string{"pages": "docs_pages_view", "chunks": "docs_chunks_view", "links": "docs_links_view",
	"products": "catalog_products_view", "product-history": "catalog_changes_view", "product-images": "catalog_images_view", "articles": "news_articles_view", "article-images": "news_images_view", "article-versions": "news_versions_view",
	"articles-reserved": "news_reserved_view"}

// A database that an older program made and filled keeps its rows, and the views show
// them with the columns and values of the exports.
func TestViewsOfAnOlderDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for name, folder := range map[string]string{"docs": "docs", "catalog": "catalog", "news": "news/raw"} {
			older := fstest.MapFS{}
			files, err := filepath.Glob("../../transforms/" + folder + "/migrations/*.sql")
			require.NoError(t, err)
			require.NotEmpty(t, files)
			views, err := filepath.Glob("../../transforms/" + folder + "/migrations/sqlite/*.sql")
			require.NoError(t, err)
			require.NotEmpty(t, views)
			for _, f := range files {
				if filepath.Base(f) > filepath.Base(views[0]) { // it came later than the views
					continue
				}
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				older[filepath.Base(f)] = &fstest.MapFile{Data: text}
			}
			require.NoError(t, d.Migrate(t.Context(), name, older))
		}
		d.Now = func() time.Time { return day.Add(24 * time.Hour) }
		fill(t, d)
		for table, column := range map[string]string{"pages": "fetched_at", "catalog_products": "first_seen", "catalog_changes": "changed_at", "news_articles": "collected_at"} {
			_, err := d.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s = %[2]s + 7 WHERE %[2]s > 0`, table, column)) // microseconds
			require.NoError(t, err)
		}
		migrated(t, d)
		fillNewer(t, d)
		for _, w := range All {
			if !w.NeedsDB() {
				continue
			}
			want := plain(t, lines(t, w.Name, Source{DB: d}))
			require.NotEmpty(t, want)
			var got []string
			for _, row := range plain(t, viewed(t, d, viewOf[w.Name])) {
				if !strings.Contains(row, "Expired") { // which an export leaves out
					got = append(got, row)
				}
			}
			require.ElementsMatch(t, want, got, w.Name)
		}
		require.Len(t, viewed(t, d, "docs_runs_view"), 2)
		require.Len(t, viewed(t, d, "catalog_crawls_view"), 2)
		require.Empty(t, viewed(t, d, "docs_changes_view"))
		if d.Dialect == db.Postgres {
			types(t, d)
		}
	})
}

// types checks what one can do with the columns in PostgreSQL.
func types(t *testing.T, d *db.DB) {
	t.Helper()
	var n int
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM catalog_products
		WHERE changed_at >= timestamptz '2026-01-28 09:30:00Z' AND gone_at IS NULL AND (detail->'price'->>'amount')::numeric > 12`).Scan(&n))
	require.Equal(t, 1, n)
	tx, err := d.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	_, err = tx.ExecContext(t.Context(), `SET LOCAL enable_seqscan = off`) // the tables are too small for an index otherwise
	require.NoError(t, err)
	for index, where := range map[string]string{"docs_pages_changed": "docs_pages WHERE changed_at", "catalog_products_changed": "catalog_products WHERE changed_at",
		"news_articles_published": "news_articles WHERE published_at", "news_articles_collected": "news_articles WHERE collected_at"} {
		var plan []byte
		require.NoError(t, tx.QueryRowContext(t.Context(), `EXPLAIN (FORMAT JSON) SELECT * FROM `+where+` > timestamptz '2026-01-28'`).Scan(&plan))
		require.Contains(t, string(plan), `"`+index+`"`)
	}
}

// viewed returns the rows of a view by the names of its columns.
func viewed(t *testing.T, d *db.DB, view string) (all []map[string]any) {
	t.Helper()
	if d.Dialect == db.Postgres { // the program's own connections have no times and booleans
		texts, err := db.Texts(t.Context(), d, `SELECT to_jsonb(v) FROM `+view+` v`)
		require.NoError(t, err, view)
		for _, text := range texts {
			var row map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &row))
			all = append(all, row)
		}
		return all
	}
	rows, err := d.QueryContext(t.Context(), `SELECT * FROM `+view)
	require.NoError(t, err, view)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range to {
			to[i] = &values[i]
		}
		require.NoError(t, rows.Scan(to...))
		row := map[string]any{}
		for i, name := range columns {
			row[name] = values[i]
		}
		all = append(all, row)
	}
	require.NoError(t, rows.Err())
	return all
}

// plain writes rows in one form, whatever gave them: times in UTC, JSON as values.
func plain(t *testing.T, all []map[string]any) (texts []string) {
	t.Helper()
	for _, row := range all {
		for name, v := range row {
			if at, ok := v.(time.Time); ok {
				v = at.UTC().Format(time.RFC3339Nano)
			}
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			if text, ok := v.(string); ok {
				var inner any
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					v = at.UTC().Format(time.RFC3339Nano)
				} else if json.Unmarshal([]byte(text), &inner) == nil {
					v = inner
				}
			}
			row[name] = v
		}
		b, err := json.Marshal(row)
		require.NoError(t, err)
		texts = append(texts, string(b))
	}
	return texts
}
