package catalog

import (
	"context"
	"database/sql"
	"iter"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// Removal says what is kept of a site.
func Removal() removal.What {
	return removal.What{Job: Job, Kind: "site", Migrate: Migrate, Objects: imagesOf, Hosts: "catalog_hosts", Lease: Job + "/", Tables: removal.Rows("site",
		"catalog_products", "catalog_changes", "catalog_tags", "catalog_product_images", "catalog_images", "catalog_tasks", "catalog_crawls")}
}

// imagesOf yields the images that no other site's products name.
func imagesOf(ctx context.Context, src removal.Source) iter.Seq2[store.Object, error] {
	scan := func(r *sql.Rows) (o store.Object, err error) {
		var hash, kind string
		err = r.Scan(&hash, &kind)
		o.Key, o.ETag = ImageKey(hash, kind), hash
		return o, err
	}
	return db.Select(ctx, src.DB, scan, `SELECT DISTINCT hash, type FROM catalog_images i WHERE site = $1 AND hash <> ''
		AND NOT EXISTS (SELECT 1 FROM catalog_images o WHERE o.hash = i.hash AND o.site <> i.site) ORDER BY hash, type`, src.Name)
}
