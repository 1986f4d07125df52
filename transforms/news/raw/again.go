package raw

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
)

// Reopen lets the next run of each publisher request the articles of dead letters again.
func Reopen(ctx context.Context, d *db.DB, dead []ledger.DeadLetter) error {
	return d.Do(ctx, "reopening the inputs of dead letters", func(tx *sql.Tx) error {
		for _, l := range dead {
			if l.Input.Source == "" || l.Input.URL == "" || l.Stage == "Sitemap" {
				continue // a kept page that is damaged: each --reparse tries it again; each run reads the sitemaps
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO news_again (source, url) VALUES ($1, $2) ON CONFLICT DO NOTHING`, l.Input.Source, l.Input.URL); err != nil {
				return err
			}
		}
		return nil
	})
}

// Again returns the addresses of a publisher that Reopen has recorded, in their order.
func Again(ctx context.Context, d *db.DB, source string) ([]string, error) {
	urls, err := db.Texts(ctx, d, `SELECT url FROM news_again WHERE source = $1 ORDER BY url`, source)
	if err != nil {
		return nil, fmt.Errorf("reading what is requested again: %w", err)
	}
	return urls, nil
}

// Requested removes an address that Reopen has recorded.
func Requested(ctx context.Context, d *db.DB, source, address string) error {
	return d.Write(ctx, "recording what was requested again", `DELETE FROM news_again WHERE source = $1 AND url = $2`, source, address)
}
