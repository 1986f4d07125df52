package raw

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Twin is a stored article with the title and text of another page.
type Twin struct {
	ID, URL   string
	Published time.Time // zero: unknown
}

// SameText returns a stored article with an article's title and text at another address than
// these, and with another external id; its ID is "" if there is none.
func SameText(ctx context.Context, d *db.DB, source string, a provider.Article, textMaxLength int, canonical, asked string) (t Twin, err error) {
	var at int64
	err = d.QueryRowContext(ctx, `SELECT id, url, published_at FROM news_articles WHERE source = $1 AND title_hash = $2 AND raw_text = $3 AND canonical_url NOT IN ($4, $5)
		AND (external_id = '' OR external_id <> $6) ORDER BY collected_at, id LIMIT 1`, source, titleHash(a.Title), Cut(a.Body, textMaxLength), canonical, asked, a.ExternalID).
		Scan(&t.ID, &t.URL, &at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Twin{}, fmt.Errorf("looking for a text at another address: %w", err)
	}
	if at != 0 {
		t.Published = db.Time(at)
	}
	return t, nil
}

func titleHash(title string) string {
	return Hash(strings.ToLower(strings.Join(strings.Fields(title), " ")))
}

// NoteNotice records that a text is no article's.
func NoteNotice(ctx context.Context, d *db.DB, source, text string, now time.Time) error {
	err := d.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at) VALUES ($1, $2, 'notice', $4, $3) ON CONFLICT DO NOTHING`, source, text, db.Micros(now), int64(0))
		return err
	})
	if err != nil {
		return fmt.Errorf("recording a notice: %w", err)
	}
	return nil
}

// IsNotice reports whether NoteNotice has recorded a text.
func IsNotice(ctx context.Context, d *db.DB, source, text string) (is bool, err error) {
	if err = d.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM news_urls WHERE source = $1 AND url_hash = $2 AND state = 'notice')`, source, text).Scan(&is); err != nil {
		return false, fmt.Errorf("looking for a notice: %w", err)
	}
	return is, nil
}
