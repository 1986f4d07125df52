package raw

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Yield says for how many runs a publisher has brought no article, or no new one.
type Yield struct {
	Barren int       // runs in a row after which none of the newest articles was stored, this one included
	Stale  int       // runs in a row without a new article, this one included
	NewAt  time.Time // when the last new article was stored; zero: never
}

// NoteYield counts a run: whether its newest articles are stored, from this run or
// an earlier one, and how many are new. Repeated calls for one run count once. named is how many
// articles the largest source names, below 0 if that is unknown.
func NoteYield(
	ctx context.Context, d *db.DB, source, runID string, there bool, inserted int64, named int, now time.Time,
) (y Yield, err error) {
	err = d.Tx(ctx, func(tx *sql.Tx) error {
		y = Yield{}
		var last string
		var newAt int64
		err := tx.QueryRowContext(ctx, `SELECT run_id, barren, stale, new_at FROM news_yield WHERE source = $1`, source).Scan(&last, &y.Barren, &y.Stale, &newAt)
		if errors.Is(err, sql.ErrNoRows) { // the articles may be older than the table
			err = tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(collected_at), $2) FROM news_articles WHERE source = $1`, source, newAt).Scan(&newAt)
		}
		if err != nil {
			return err
		}
		if last != runID {
			y.Barren, y.Stale = y.Barren+1, y.Stale+1
		}
		if there {
			y.Barren = 0
		}
		if inserted > 0 {
			y.Stale, newAt = 0, db.Micros(now)
		}
		if newAt > 0 {
			y.NewAt = db.Time(newAt)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO news_yield (source, run_id, barren, stale, new_at, named) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (source) DO UPDATE SET run_id = excluded.run_id, barren = excluded.barren, stale = excluded.stale, new_at = excluded.new_at,
				named = CASE WHEN excluded.named >= 0 THEN excluded.named ELSE news_yield.named END`,
			source, runID, y.Barren, y.Stale, newAt, named)
		return err
	})
	if err != nil {
		return Yield{}, fmt.Errorf("recording what %s brought: %w", source, err)
	}
	return y, nil
}

// Past returns how many articles of a publisher are stored, and how many its largest source named in the
// last run that could tell; below 1: unknown.
func Past(ctx context.Context, d *db.DB, source string) (stored, named int, err error) {
	err = d.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM news_articles WHERE source = $1),
		COALESCE((SELECT named FROM news_yield WHERE source = $1), 0)`, source).Scan(&stored, &named)
	if err != nil {
		return 0, 0, fmt.Errorf("reading what %s brought before: %w", source, err)
	}
	return stored, named, nil
}

// Newest returns when the newest stored article of a publisher was published; zero if
// there is none. One whose page has a date after until does not count.
func Newest(ctx context.Context, d *db.DB, source string, until time.Time) (time.Time, error) {
	var at int64
	if err := d.QueryRowContext(ctx, `SELECT COALESCE(MAX(published_at), $3) FROM news_articles WHERE source = $1 AND published_at <= $2`, source, db.Micros(until), at).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("looking for the newest article of %s: %w", source, err)
	}
	if at == 0 {
		return time.Time{}, nil
	}
	return db.Time(at), nil
}
