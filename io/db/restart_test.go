package db_test

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// counting opens a database, with a table that contains one 0.
func counting(t *testing.T, dsn string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	_, err = d.ExecContext(t.Context(), `CREATE TABLE counts (n INTEGER NOT NULL)`)
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `INSERT INTO counts (n) VALUES (0)`)
	require.NoError(t, err)
	return d
}

func count(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT n FROM counts`).Scan(&n))
	return n
}

// A restart of PostgreSQL between two statements, in a transaction and while statements
// run ends nothing, and no transaction is made twice or lost.
func TestRestart(t *testing.T) {
	dsn, control := dbtest.Controlled(t)
	restart := func(mode string) { control("restart", mode) }
	ctx := t.Context()
	d := counting(t, dsn)
	const add = `UPDATE counts SET n = n + 1`
	want := 0
	for _, mode := range []string{"fast", "immediate"} {
		restart(mode)
		_, err := d.ExecContext(ctx, add)
		require.NoError(t, err, mode)
		want++
		restart(mode)
		require.Equal(t, want, count(t, d), mode)
		restart(mode)
		texts, err := db.Texts(ctx, d, `SELECT CAST(n AS TEXT) FROM counts`)
		require.NoError(t, err, mode)
		require.Len(t, texts, 1)

		restart(mode)
		runs := 0
		require.NoError(t, d.Tx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, add); err != nil {
				return err
			}
			if runs++; runs == 1 {
				restart(mode)
			}
			return nil
		}), mode)
		want++
		assert.Equal(t, 2, runs, mode)
		require.Equal(t, want, count(t, d), mode)

		down := make(chan struct{})
		done := make(chan int)
		go func() {
			n := 0
			for {
				if _, err := d.ExecContext(ctx, add); !assert.NoError(t, err, mode) {
					break
				}
				n++
				select {
				case <-down:
					done <- n
					return
				default:
				}
			}
			done <- n
		}()
		restart(mode)
		close(down)
		want += <-done
		require.Equal(t, want, count(t, d), mode)
	}
}

// cut passes connections on to a server, until it cuts off one that commits: before the
// server hears of the commit, or before the client hears of the answer.
type cut struct {
	server string
	before bool
	armed  atomic.Bool
}

func (c *cut) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go c.pass(client)
	}
}

func (c *cut) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool
	go func() {
		defer client.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if err != nil || deaf.Load() { // what is read is the answer to the commit
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("commit\x00")) && c.armed.CompareAndSwap(true, false) {
			if c.before {
				return
			}
			deaf.Store(true)
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

// Of a commit without an answer PostgreSQL itself says whether it was made.
func TestCommitWithoutAnswer(t *testing.T) {
	for name, before := range map[string]bool{"not made": true, "made": false} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(dbtest.Postgres(t))
			require.NoError(t, err)
			c := &cut{server: u.Host, before: before}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			go c.serve(l)
			u.Host = l.Addr().String()
			ctx := t.Context()
			d := counting(t, u.String())
			runs := 0
			add := func(ctx context.Context) error {
				return d.Tx(ctx, func(tx *sql.Tx) error {
					runs++
					_, err := tx.ExecContext(ctx, `UPDATE counts SET n = n + 1`)
					return err
				})
			}
			c.armed.Store(true)
			require.NoError(t, add(ctx))
			assert.False(t, c.armed.Load(), "nothing was cut off, so nothing was proved")
			assert.Equal(t, 1, count(t, d))
			if before {
				assert.Equal(t, 2, runs)
			} else {
				assert.Equal(t, 1, runs)
			}
		})
	}
}
