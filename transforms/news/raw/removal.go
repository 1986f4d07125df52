package raw

import (
	"context"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
)

// Removal says what is kept of a publisher by a job.
func Removal(job string) removal.What {
	return removal.What{Job: job, Kind: "publisher", Migrate: Migrate, Objects: removal.Under(evidencePrefix, Images.Root()), Hosts: "news_hosts", Lease: job + "/provider/",
		Tables: append(removal.Rows("source", "news_articles", "news_urls", "news_runs", "news_yield", "news_schedule", "news_again", "news_reserved", "news_images"),
			removal.Table{Name: "news_versions", Column: "article_id", Of: func(ctx context.Context, src removal.Source) ([]string, error) {
				return db.Texts(ctx, src.DB, `SELECT id FROM news_articles WHERE source = $1`, src.Name)
			}})}
}
