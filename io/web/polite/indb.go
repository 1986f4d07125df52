package polite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// InDB is a Memory that keeps in a table of a database when each site may be sent
// the next request. The table has the columns host TEXT PRIMARY KEY and next_at,
// a time.
type InDB struct {
	None
	DB    *db.DB
	Table string
}

// Next implements Memory.
func (m InDB) Next(ctx context.Context, site string) (time.Time, error) {
	var micros int64
	err := m.DB.QueryRowContext(ctx, `SELECT next_at FROM `+m.Table+` WHERE host = $1`, site).Scan(&micros)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("reading %s: %w", m.Table, err)
	}
	return db.Time(micros), nil
}

// Requested implements Memory. Without a gap nothing is kept.
func (m InDB) Requested(ctx context.Context, site string, now, next time.Time) (wait time.Duration, err error) {
	if !next.After(now) {
		return 0, nil
	}
	return 0, m.Set(ctx, m.DB, site, next)
}

// Paused implements Memory.
func (m InDB) Paused(ctx context.Context, site string, until time.Time) error {
	return m.Set(ctx, m.DB, site, until)
}

// Set writes when a site may be sent the next request, on the database or in a
// transaction.
func (m InDB) Set(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, site string, next time.Time) error {
	_, err := on.ExecContext(ctx, `INSERT INTO `+m.Table+` (host, next_at) VALUES ($1, $2) ON CONFLICT (host) DO UPDATE SET next_at = excluded.next_at`,
		site, db.Micros(next)+1) // rounded up: never too early
	if err != nil {
		return fmt.Errorf("writing %s: %w", m.Table, err)
	}
	return nil
}
