package db_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// Rows, views, indexes and the next numbers come back; a writer that has not committed is not in the snapshot; leases are
// released; a place with tables is refused.
func TestSnapshot(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		number := `INTEGER PRIMARY KEY AUTOINCREMENT`
		if d.Dialect == db.Postgres {
			number = `BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY`
		}
		exec := func(d *db.DB, q string, args ...any) {
			t.Helper()
			_, err := d.ExecContext(ctx, q, args...)
			require.NoError(t, err, q)
		}
		exec(d, `CREATE TABLE "Odd things" (n `+number+`, text TEXT NOT NULL DEFAULT 'it''s', twice TEXT GENERATED ALWAYS AS (text || text) STORED)`)
		exec(d, `CREATE UNIQUE INDEX odd ON "Odd things" (text) WHERE length(text) < 1000`)
		exec(d, `CREATE VIEW odd_view AS SELECT text FROM "Odd things" WHERE text <> ';'`)
		exec(d, `CREATE TABLE leases (name TEXT PRIMARY KEY, expires_at BIGINT NOT NULL)`)
		exec(d, `INSERT INTO leases VALUES ('docs', 99)`)
		texts := []string{`\.`, "a\n--\nb", "tab\t\\N", ";", strings.Repeat("long\\", 1<<19), ""}
		for _, text := range texts {
			exec(d, `INSERT INTO "Odd things" (text) VALUES ($1)`, text)
		}
		exec(d, `DELETE FROM "Odd things" WHERE text = ''`) // its number is not used again

		file := filepath.Join(t.TempDir(), "snapshot")
		require.NoError(t, d.Tx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO "Odd things" (text) VALUES ('not committed')`); err != nil {
				return err
			}
			return d.Snapshot(ctx, file)
		}))
		require.ErrorContains(t, d.Snapshot(ctx, file), "snapshot of the database") // another file is not overwritten

		to := dbtest.SQLite(t)
		if d.Dialect == db.Postgres {
			to = dbtest.Postgres(t)
		}
		require.NoError(t, db.Restore(ctx, to, file))
		require.ErrorIs(t, db.Restore(ctx, to, file), db.ErrNotEmpty)
		r, err := db.Open(ctx, to)
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Close()) }()
		got, err := db.Texts(ctx, r, `SELECT text FROM "Odd things" ORDER BY n`)
		require.NoError(t, err)
		require.Equal(t, texts[:5], got)
		seen, err := db.Texts(ctx, r, `SELECT count(*) FROM odd_view UNION ALL SELECT expires_at FROM leases WHERE name = 'docs'`)
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"4", "0"}, seen)
		_, err = r.ExecContext(ctx, `INSERT INTO "Odd things" (text) VALUES (';')`)
		require.Error(t, err, "the unique index is there")
		exec(r, `INSERT INTO "Odd things" (text) VALUES ('next')`)
		next, err := db.Texts(ctx, r, `SELECT n FROM "Odd things" WHERE twice = 'nextnext'`)
		require.NoError(t, err)
		last := map[db.Dialect]string{db.SQLite: "7", db.Postgres: "9"}[d.Dialect] // PostgreSQL does not use the numbers of failed rows again
		assert.Equal(t, []string{last}, next)
	})
}

// What is damaged is not restored, not even a part of it.
func TestRestoreDamaged(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		for _, q := range []string{`CREATE TABLE a (x TEXT)`, `INSERT INTO a VALUES ('one')`} {
			_, err := d.ExecContext(ctx, q)
			require.NoError(t, err)
		}
		file := filepath.Join(t.TempDir(), "snapshot")
		require.NoError(t, d.Snapshot(ctx, file))
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, b[:map[db.Dialect]int{db.SQLite: len(b) / 2, db.Postgres: len(b) - 6}[d.Dialect]], 0o600))
		to := dbtest.SQLite(t)
		if d.Dialect == db.Postgres {
			to = dbtest.Postgres(t)
		}
		require.Error(t, db.Restore(ctx, to, file))
		r, err := db.Open(ctx, to)
		require.NoError(t, err)
		there, err := r.HasTable(ctx, "a")
		require.NoError(t, err)
		assert.False(t, there)
		require.NoError(t, r.Close())
	})
}
