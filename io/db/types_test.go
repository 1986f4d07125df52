package db_test

import (
	"database/sql"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// The program reads and writes the same values on both databases; PostgreSQL has its own types.
func TestTypes(t *testing.T) {
	files := fstest.MapFS{
		"sqlite/00001_t.sql":   {Data: []byte("-- +goose Up\nCREATE TABLE t (id TEXT PRIMARY KEY, at BIGINT NOT NULL, flag INTEGER NOT NULL, doc TEXT, n INTEGER NOT NULL);\n")},
		"postgres/00001_t.sql": {Data: []byte("-- +goose Up\nCREATE TABLE t (id TEXT PRIMARY KEY, at TIMESTAMPTZ, flag BOOLEAN NOT NULL, doc JSONB, n INTEGER NOT NULL);\n")},
	}
	at := time.Date(2026, 1, 28, 9, 0, 0, 123457000, time.UTC)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		require.NoError(t, d.Migrate(t.Context(), "types", files))
		doc := `{"b":"\u003c","aa":1.50,"c":[true,null]}`
		columns := []string{"id", "at", "flag", "doc", "n"}
		require.NoError(t, d.Tx(t.Context(), func(tx *sql.Tx) error {
			if err := d.InsertRows(t.Context(), tx, "t", columns, [][]any{{"a", db.Micros(at), int64(1), doc, int64(7)}, {"b", int64(0), int64(0), (*string)(nil), int64(0)}}, ""); err != nil {
				return err
			}
			return d.InsertNew(t.Context(), tx, "t", columns, [][]any{{"a", int64(0), int64(0), "{}", int64(0)}, {"c", int64(0), int64(0), "[]", int64(0)}}, func(first string) { assert.Equal(t, "c", first) })
		}))
		_, err := d.ExecContext(t.Context(), `INSERT INTO t (id, at, flag, doc, n) VALUES ($1, $2, $3, $4, 1)`, "d", db.Micros(at)+1, true, "1")
		require.NoError(t, err)
		type row struct {
			id   string
			at   int64
			flag bool
			doc  sql.NullString
			n    int
		}
		var got []row
		for r, err := range db.Select(t.Context(), d, func(rows *sql.Rows) (r row, err error) {
			return r, rows.Scan(&r.id, &r.at, &r.flag, &r.doc, &r.n)
		}, `SELECT id, at, flag, doc, n FROM t WHERE (at >= $1 OR `+d.Never("at")+`) ORDER BY id`, db.Micros(at)) {
			require.NoError(t, err)
			got = append(got, r)
		}
		if d.Dialect == db.Postgres { // which has its own order of names
			doc = `{"aa":1.50,"b":"\u003c","c":[true,null]}`
		}
		assert.Equal(t, []row{{"a", db.Micros(at), true, sql.NullString{String: doc, Valid: true}, 7}, {id: "b"}, {id: "c", doc: sql.NullString{String: "[]", Valid: true}},
			{"d", db.Micros(at) + 1, true, sql.NullString{String: "1", Valid: true}, 1}}, got)

		_, err = d.ExecContext(t.Context(), `UPDATE t SET at = $1, doc = `+d.JSON(`'"' || id || '"'`)+` WHERE flag AND NOT `+d.Never("at"), 0)
		require.NoError(t, err)
		texts, err := db.Texts(t.Context(), d, `SELECT doc FROM t WHERE flag AND `+d.Never("at")+` ORDER BY id`)
		require.NoError(t, err)
		assert.Equal(t, []string{`"a"`, `"d"`}, texts)
		var none int64
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COALESCE(MAX(at), $1) FROM t`, 0).Scan(&none))
		assert.Zero(t, none)
	})
}
