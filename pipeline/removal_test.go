package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// tablesOf are the tables of a database with their columns; of each column, whether it is a number.
func tablesOf(t *testing.T, d *db.DB) map[string]map[string]bool {
	t.Helper()
	query := `SELECT m.name, c.name, lower(c.type) FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`
	if d.Dialect == db.Postgres {
		query = `SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
			WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`
	}
	rows, err := d.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	all := map[string]map[string]bool{}
	for rows.Next() {
		var table, column, kind string
		require.NoError(t, rows.Scan(&table, &column, &kind))
		if strings.HasPrefix(table, "goose_") || strings.HasPrefix(table, "search_") { // the index has its own test
			continue
		}
		if all[table] == nil {
			all[table] = map[string]bool{}
		}
		all[table][column] = kind != "text" && !strings.HasPrefix(kind, "json")
	}
	require.NoError(t, rows.Err())
	return all
}

// having returns the tables with a row that has a text.
func having(t *testing.T, d *db.DB, text string) (tables []string) {
	t.Helper()
	for table, columns := range tablesOf(t, d) {
		for column := range columns {
			var n int
			query := fmt.Sprintf(`SELECT COUNT(*) FROM %s WHERE CAST(%s AS TEXT) LIKE '%%%s%%'`, table, column, text)
			require.NoError(t, d.QueryRowContext(t.Context(), query).Scan(&n))
			if n > 0 && !slices.Contains(tables, table) {
				tables = append(tables, table)
			}
		}
	}
	slices.Sort(tables)
	return tables
}

// fill inserts a row of a source into each table of a job, also into those that its Removal does not list.
func fill(t *testing.T, d *db.DB, job, name string) {
	t.Helper()
	page := "https://" + name + ".example/page"
	own := map[string]any{"provider": name, "site": name, "source": name, "article_id": name + "-1", "id": name + "-1", "address": page, "url": page,
		"origin": "https://" + name + ".example", "host": name + ".example", "hash": name, "type": "image/png", "unique_by": name}
	for table, columns := range tablesOf(t, d) {
		if !strings.HasPrefix(table, job+"_") || table == "docs_providers" || table == "docs_sessions" || table == "docs_budget" {
			continue
		}
		var names, marks []string
		var values []any
		for column, number := range columns {
			value := own[column]
			switch {
			case number:
				value = 1
			case value == nil:
				value = "{}" // also in a column of JSON
			}
			names, values = append(names, column), append(values, value)
			marks = append(marks, fmt.Sprintf("$%d", len(values)))
		}
		_, err := d.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "), strings.Join(marks, ", ")), values...)
		require.NoError(t, err, table)
	}
}

// TestRemovalsLeaveNothing fills every table of each job's database, the store and the dead letters with two sources, removes
// one of them, and looks for its name everywhere.
func TestRemovalsLeaveNothing(t *testing.T) {
	for _, j := range All() {
		w, gone, stays := j.Removal, "gone-one", "stays"
		if w == nil {
			continue
		}
		if j.Name == "seed" {
			gone, stays = "gone-one.com", "stays.com"
		}
		t.Run(j.Name, func(t *testing.T) {
			ctx := t.Context()
			var d *db.DB
			var err error
			if w.Migrate != nil {
				d, err = openDB(ctx, dbtest.SQLite(t), w.Migrate)
				require.NoError(t, err)
				defer func() { require.NoError(t, d.Close()) }()
			}
			if j.Name == "docs" {
				x, err := index.Open(ctx, d, "")
				require.NoError(t, err)
				require.NoError(t, x.Apply(ctx, index.Change{Whole: true, Put: []index.Chunk{{ID: "c", Provider: "gone-one", Text: "text"}}}))
			}
			s, err := store.Open(ctx, t.TempDir())
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			object := map[string]string{"docs": "handoff/docs/%s/1/pages.jsonl", "news": "evidence/news/%s/2026-01-01/1.warc.gz", "catalog": "images/sha256/%.2[1]s/%[1]s.png",
				"seed": "processing/country=sg/category=news/date=2026-01-28/%s/domain_metadata.json"}[j.Name]
			for _, name := range []string{gone, stays} {
				if d != nil {
					fill(t, d, j.Name, name)
				}
				require.NoError(t, store.Write(ctx, s, fmt.Sprintf(object, name), []byte("x"), store.PutOptions{}))
				require.NoError(t, ledger.KeepSite(ctx, s, ledger.SiteState{Job: j.Name, Site: name, State: "open"}, time.Now()))
				require.NoError(t, ledger.Put(ctx, s, ledger.DeadLetter{Job: j.Name, RunID: "r", Kind: "k", Input: ledger.Input{Source: name, URL: "https://" + name}}))
				_, err := removal.Record(ctx, s, removal.Request{Job: j.Name, Provider: name}, time.Now())
				require.NoError(t, err)
			}
			at := removal.Source{Name: gone, Store: s, DB: d}
			var before []string
			if d != nil {
				before = having(t, d, stays)
			}
			r, receipts, err := w.Remove(ctx, at, "test", time.Now())
			require.NoError(t, err)
			require.Len(t, receipts, 1)
			for table, n := range r.Rows {
				require.Equal(t, d != nil, n == 1, table) // nothing is packed here
			}
			require.Equal(t, []int64{1, 1}, []int64{r.Objects, r.DeadLetters})
			if d != nil {
				require.Equal(t, slices.DeleteFunc([]string{"docs_providers"}, func(string) bool { return j.Name != "docs" }), append([]string{}, having(t, d, gone)...),
					"only that it is not crawled again")
				require.Equal(t, slices.DeleteFunc(before, func(table string) bool { return table == w.Hosts }), having(t, d, stays))
			}
			for o, err := range s.List(ctx, "") {
				require.NoError(t, err)
				b, err := store.ReadAll(ctx, s, o.Key, 1<<20)
				require.NoError(t, err)
				if !strings.HasPrefix(o.Key, "removals/") && !strings.HasPrefix(o.Key, "handoff/docs/deletions/") {
					require.NotContains(t, o.Key+" "+string(b), "gone-one")
				}
			}
			for _, key := range []string{fmt.Sprintf(object, stays), "sites/" + j.Name + "/" + stays + ".json"} {
				there, err := store.Has(ctx, s, key)
				require.NoError(t, err)
				require.True(t, there, key)
			}
		})
	}
}

// TestEveryTableIsListed fails for a table of a job that no Removal lists, as one with a source's rows or as one without.
func TestEveryTableIsListed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		listed := []string{lease.Table}
		for _, j := range All() {
			if j.Removal == nil || j.Removal.Migrate == nil { // in the store alone
				continue
			}
			require.NoError(t, j.Removal.Migrate(t.Context(), d))
			listed = append(append(listed, j.Removal.Others...), j.Removal.Hosts)
			for _, table := range j.Removal.Tables {
				listed = append(listed, table.Name)
			}
		}
		require.NoError(t, lease.Forget(context.Background(), d, "none")) // makes the table
		for table := range tablesOf(t, d) {
			require.Contains(t, listed, table, "which rows of it are a source's? list it in its job's Removal")
			listed = slices.DeleteFunc(listed, func(name string) bool { return name == table })
		}
		require.Empty(t, listed, "there are no such tables")
	})
}
