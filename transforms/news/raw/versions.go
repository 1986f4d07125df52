package raw

import (
	"context"
	"database/sql"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// maxVersions is how many earlier versions of an article are kept: a live blog has a new
// one in every run.
const maxVersions = 20

// keepVersion keeps the present version of an article, which is about to change.
func keepVersion(ctx context.Context, tx *sql.Tx, id string, now time.Time) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO news_versions (article_id, version, title, raw_text, published_at, content_hash, until_at)
		SELECT id, version, title, raw_text, published_at, content_hash, $2 FROM news_articles WHERE id = $1 ON CONFLICT DO NOTHING`, id, db.Micros(now)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM news_versions WHERE article_id = $1 AND version <= (SELECT version FROM news_articles WHERE id = $1) - $2`, id, maxVersions)
	return err
}
