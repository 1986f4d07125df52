package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// Audit calls found for images whose rows have no bytes in the store, and how to mend it.
func Audit(ctx context.Context, s store.Store, d *db.DB, found func(what, key, mend string)) error {
	if d == nil {
		return nil
	}
	there, err := d.HasTable(ctx, "catalog_images")
	if err != nil || !there {
		return err
	}
	kept, err := store.Keys(ctx, s, ImagePrefix)
	if err != nil {
		return err
	}
	for key, err := range db.Select(ctx, d, func(r *sql.Rows) (string, error) {
		var hash, kind string
		err := r.Scan(&hash, &kind)
		return imageKey(hash, kind), err
	}, `SELECT DISTINCT hash, type FROM catalog_images WHERE hash <> '' ORDER BY hash`) {
		if err != nil {
			return fmt.Errorf("reading the images: %w", err)
		}
		if _, there := slices.BinarySearch(kept, key); there {
			continue
		}
		there, err := store.Has(ctx, s, key) // a run may have stored it since the listing
		if err != nil {
			return fmt.Errorf("looking at %s: %w", key, err)
		}
		if !there {
			found("rows of images without bytes", key, "restore them from a backup; or set hash = '' in catalog_images, and catalog --images requests them again")
		}
	}
	return nil
}
