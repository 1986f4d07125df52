package raw

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Asked returns when a publisher was last asked for its news, and when it is due again;
// both are zero if it never was.
func Asked(ctx context.Context, d *db.DB, source string) (asked, due time.Time, err error) {
	var at, next int64
	err = d.QueryRowContext(ctx, `SELECT asked_at, due_at FROM news_schedule WHERE source = $1`, source).Scan(&at, &next)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("reading when %s is due: %w", source, err)
	}
	return db.Time(at), db.Time(next), nil
}

// Ask records that a publisher is asked now, and when it is due again.
func Ask(ctx context.Context, d *db.DB, source string, asked, due time.Time) error {
	return d.Write(ctx, "recording when "+source+" is due", `INSERT INTO news_schedule (source, asked_at, due_at) VALUES ($1, $2, $3)
		ON CONFLICT (source) DO UPDATE SET asked_at = excluded.asked_at, due_at = excluded.due_at`, source, db.Micros(asked), db.Micros(due))
}
