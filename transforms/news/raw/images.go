package raw

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane/images"
)

// Images is where what is known of articles' images is, and their bytes. Publishers share none, so that those of one
// can be removed.
var Images = images.Table{Name: "news_images", Source: "source", Prefix: "images/news/{source}/"}

// Pictured is a stored article that names images.
type Pictured struct {
	URL, Rights            string // Rights as the export has them
	Images                 []string
	CollectedAt, ChangedAt time.Time
}

// WithImages returns the articles of a publisher that name images, the newest first.
func WithImages(ctx context.Context, d *db.DB, source string) ([]Pictured, error) {
	all, err := db.All(ctx, d, func(r *sql.Rows) (p Pictured, err error) {
		var list string
		var collected, changed int64
		if err = r.Scan(&p.URL, &p.Rights, &list, &collected, &changed); err == nil {
			err = json.Unmarshal([]byte(list), &p.Images)
		}
		p.CollectedAt, p.ChangedAt = db.Time(collected), db.Time(changed)
		return p, err
	}, `SELECT url, rights, images, collected_at, changed_at FROM news_articles WHERE source = $1 AND images <> '[]' ORDER BY collected_at DESC, id`, source)
	if err != nil {
		return nil, fmt.Errorf("reading which images the articles of %s name: %w", source, err)
	}
	return all, nil
}

// SweepImages removes the images that no stored article names.
func SweepImages(ctx context.Context, d *db.DB, s store.Store) error {
	return Images.Sweep(ctx, d, s, func(ctx context.Context, source string) (urls []string, err error) {
		articles, err := WithImages(ctx, d, source)
		for _, a := range articles {
			urls = append(urls, a.Images...)
		}
		return urls, err
	})
}
