package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// counter counts what is prepared on its connections and what of that is closed.
type counter struct {
	driver.Connector
	prepared map[string]int
	open     int
}

func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countedConn{connection: made.(connection), c: c}, nil
}

type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type countedConn struct {
	connection
	c *counter
}

func (c *countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.connection.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.c.prepared[query]++
	c.c.open++
	return countedStmt{s, s.(driver.StmtExecContext), s.(driver.StmtQueryContext), c.c}, nil
}

type countedStmt struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	c *counter
}

func (s countedStmt) Close() error {
	s.c.open--
	return s.Stmt.Close()
}

func openCounted(t *testing.T) (*sql.DB, *counter) {
	t.Helper()
	base, err := sqlite.NewConnector("file://" + t.TempDir() + "/x.db")
	require.NoError(t, err)
	c := &counter{Connector: base, prepared: map[string]int{}}
	pool := sql.OpenDB(statements{c})
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	_, err = pool.ExecContext(t.Context(), `CREATE TABLE shops (name TEXT NOT NULL PRIMARY KEY)`)
	require.NoError(t, err)
	return pool, c
}

func count(t *testing.T, rows *sql.Rows) (n int) {
	t.Helper()
	for rows.Next() {
		n++
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	return n
}

func TestStatementsAreKept(t *testing.T) {
	pool, c := openCounted(t)
	const insert, all = `INSERT INTO shops (name) VALUES ($1)`, `SELECT * FROM shops`
	for i := range 5 {
		_, err := pool.ExecContext(t.Context(), insert, fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, err := pool.ExecContext(t.Context(), insert, "0")
	require.ErrorContains(t, err, "UNIQUE")
	_, err = pool.ExecContext(t.Context(), insert, "5")
	require.NoError(t, err, "a statement that failed runs again")
	assert.Equal(t, 1, c.prepared[insert])

	tx, err := pool.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	outer, err := tx.QueryContext(t.Context(), all)
	require.NoError(t, err)
	require.True(t, outer.Next())
	inner, err := tx.QueryContext(t.Context(), all)
	require.NoError(t, err)
	assert.Equal(t, 6, count(t, inner))
	assert.Equal(t, 5, count(t, outer), "one row was read before")
	require.NoError(t, tx.Commit())
	assert.Equal(t, 2, c.prepared[all], "two at a time")

	_, err = pool.ExecContext(t.Context(), `ALTER TABLE shops ADD COLUMN open INTEGER NOT NULL DEFAULT 1`)
	require.NoError(t, err)
	rows, err := pool.QueryContext(t.Context(), all)
	require.NoError(t, err)
	columns, err := rows.Columns()
	require.NoError(t, err)
	assert.Equal(t, []string{"name", "open"}, columns, "after the schema has changed")
	assert.Equal(t, 6, count(t, rows))
	assert.Equal(t, 2, c.prepared[all])

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pool.QueryContext(cancelled, all)
	require.ErrorIs(t, err, context.Canceled)
	rows, err = pool.QueryContext(t.Context(), all)
	require.NoError(t, err)
	assert.Equal(t, 6, count(t, rows))
}

func TestFewStatementsAreKept(t *testing.T) {
	pool, c := openCounted(t)
	for i := range 3 * keptStatements {
		rows, err := pool.QueryContext(t.Context(), fmt.Sprintf(`SELECT %d FROM shops`, i))
		require.NoError(t, err)
		assert.Zero(t, count(t, rows))
	}
	assert.Equal(t, keptStatements, c.open)
	for range 2 {
		_, err := pool.ExecContext(t.Context(), `PRAGMA foreign_keys = ON`)
		require.NoError(t, err)
	}
	assert.Equal(t, 2, c.prepared[`PRAGMA foreign_keys = ON`])
	assert.Equal(t, keptStatements, c.open)
	require.NoError(t, pool.Close())
	assert.Zero(t, c.open)
}
