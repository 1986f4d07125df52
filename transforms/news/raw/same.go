package raw

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

func titleHash(title string) string {
	return Hash(strings.ToLower(strings.Join(strings.Fields(title), " ")))
}

// NoteNotice records that a text is no article's.
func NoteNotice(ctx context.Context, d *db.DB, source, text string, now time.Time) error {
	return d.Write(ctx, "recording a notice", `INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at) VALUES ($1, $2, 'notice', $4, $3) ON CONFLICT DO NOTHING`,
		source, text, db.Micros(now), int64(0))
}

// IsNotice reports whether NoteNotice has recorded a text.
func IsNotice(ctx context.Context, d *db.DB, source, text string) (is bool, err error) {
	if err = d.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM news_urls WHERE source = $1 AND url_hash = $2 AND state = 'notice')`, source, text).Scan(&is); err != nil {
		return false, fmt.Errorf("looking for a notice: %w", err)
	}
	return is, nil
}
