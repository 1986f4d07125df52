package db

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxEraseWait is how long Erase waits for other users of the tables.
const maxEraseWait = 30 * time.Second

// Erase rewrites the database's files, so that no copy of deleted rows stays on
// disk: on SQLite the whole file and its log, on PostgreSQL the tables, but not the
// server's log and backups. It locks the tables for a moment, and needs as much
// free disk space as they take. After an error the rows are deleted as after any
// DELETE, and Erase can be called again.
func (d *DB) Erase(ctx context.Context, tables ...string) error {
	within, cancel := context.WithTimeout(ctx, maxEraseWait+10*time.Minute) // the wait, and then the work
	defer cancel()
	err := d.erase(within, tables)
	if err != nil {
		return fmt.Errorf("erasing deleted rows from the database's files: %w", err)
	}
	return nil
}

func (d *DB) erase(ctx context.Context, tables []string) error {
	c, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // back to the pool
	if d.Dialect == Postgres {
		if _, err := c.ExecContext(ctx, fmt.Sprintf(`SET lock_timeout = %d`, maxEraseWait.Milliseconds())); err != nil {
			return err
		}
		err := retry(ctx, maxEraseWait, d, func() error {
			return c.Raw(func(driver any) error { return vacuum(ctx, driver.(typedConn).Conn.Conn(), tables) })
		})
		if _, reset := c.ExecContext(context.WithoutCancel(ctx), `RESET lock_timeout`); err == nil {
			err = reset
		}
		return err
	}
	select {
	case d.writing <- struct{}{}:
		defer func() { <-d.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := c.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	var locked, log, moved int
	if err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&locked, &log, &moved); err != nil {
		return err
	}
	if locked != 0 {
		return fmt.Errorf("another process reads the database, so its log (-wal) could not be emptied; call again when it has ended")
	}
	return nil
}

// errStillRead is PostgreSQL's reason to copy deleted rows into the new file.
var errStillRead = errors.New("a transaction that began before rows were deleted can still read them; end it (pg_stat_activity)")

// vacuum rewrites tables, or returns errStillRead.
func vacuum(ctx context.Context, pg *pgx.Conn, tables []string) error {
	data := pg.PgConn().CustomData()
	delete(data, keptRows)
	if _, err := pg.Exec(ctx, `VACUUM (FULL, VERBOSE) `+strings.Join(tables, ", ")); err != nil {
		return err
	}
	if data[keptRows] != nil {
		return errStillRead
	}
	return nil
}

const keptRows = "kept rows"

// noteKept notes in the connection that a VACUUM kept deleted rows: their number is
// the first in the detail, in each language.
func noteKept(c *pgconn.PgConn, n *pgconn.Notice) {
	if number := digits.FindString(n.Detail); number != "" && number != "0" {
		c.CustomData()[keptRows] = number
	}
}

var digits = regexp.MustCompile(`[0-9]+`)
