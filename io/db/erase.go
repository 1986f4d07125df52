package db

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// eraseWithin is how long Erase waits for others that use the tables.
const eraseWithin = 30 * time.Second

// Erase rewrites what the database keeps on disk, so that rows which were
// deleted from the tables leave no copy behind there: on SQLite the whole file
// and its log, on PostgreSQL the tables, whose log and backups are the server's
// own business. It needs the tables for itself for a moment, and as much free
// disk as they take. After its error the rows are as gone as after any DELETE,
// and it can be called again.
func (d *DB) Erase(ctx context.Context, tables ...string) error {
	within, cancel := context.WithTimeout(ctx, eraseWithin+10*time.Minute) // the wait, and then the work
	defer cancel()
	err := d.erase(within, tables)
	if err != nil {
		return fmt.Errorf("erasing what was deleted from the database's files: %w", err)
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
		if _, err := c.ExecContext(ctx, fmt.Sprintf(`SET lock_timeout = %d`, eraseWithin.Milliseconds())); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, `VACUUM (FULL) `+strings.Join(tables, ", "))
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
	var busy, log, moved int
	if err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("another process reads the database, so its log (-wal) could not be emptied")
	}
	return nil
}
