package raw

import (
	"context"
	"database/sql"
	"encoding/json"
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
// an earlier one, how many are new, and what the sources named. Repeated calls for one run count once.
func NoteYield(
	ctx context.Context, d *db.DB, source, runID string, there bool, inserted int64, named Named, now time.Time,
) (y Yield, err error) {
	sources, err := json.Marshal(named)
	if err != nil {
		return y, fmt.Errorf("writing what the sources of %s named: %w", source, err)
	}
	err = d.Do(ctx, fmt.Sprintf("recording what %s brought", source), func(tx *sql.Tx) error {
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
		y.NewAt = timeOf(newAt)
		_, err = tx.ExecContext(ctx, `INSERT INTO news_yield (source, run_id, barren, stale, new_at, sources) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (source) DO UPDATE SET run_id = excluded.run_id, barren = excluded.barren, stale = excluded.stale, new_at = excluded.new_at,
				sources = excluded.sources`,
			source, runID, y.Barren, y.Stale, newAt, string(sources))
		return err
	})
	return y, err
}

// Named is how many articles the sources of a publisher named in a run, by address. Of a sitemap of an index it is those
// of the days before the run: other runs need not read the archive.
type Named struct {
	At      time.Time      `json:"at"`
	Sources map[string]int `json:"sources"`
}

// Past returns how many articles of a publisher are stored, and what its sources named in the last run.
func Past(ctx context.Context, d *db.DB, source string) (stored int, named Named, err error) {
	var sources string
	err = d.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM news_articles WHERE source = $1),
		COALESCE((SELECT sources FROM news_yield WHERE source = $1), '{}')`, source).Scan(&stored, &sources)
	if err == nil {
		err = json.Unmarshal([]byte(sources), &named)
	}
	if err != nil {
		return 0, Named{}, fmt.Errorf("reading what %s brought before: %w", source, err)
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
	return timeOf(at), nil
}
