package catalog

import (
	"context"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	out "github.com/newsfork/seed-engine/io/rows"
)

// ProductRow is a product of a site.
type ProductRow struct {
	Site        string     `parquet:"site,dict" doc:"the site's name"`
	ProductKey  string     `parquet:"product_key" doc:"the value of the field that identifies it"`
	URL         string     `parquet:"url" doc:"its page"`
	State       string     `parquet:"state,dict" doc:"by the latest crawl: new, changed, unchanged, gone, or back: it was gone"`
	FirstSeen   time.Time  `parquet:"first_seen,timestamp(microsecond)" doc:"when it was found"`
	LastSeen    time.Time  `parquet:"last_seen,timestamp(microsecond)" doc:"when its page was read last"`
	ChangedAt   time.Time  `parquet:"changed_at,timestamp(microsecond)" doc:"when its fields became what they are"`
	GoneAt      *time.Time `parquet:"gone_at,optional,timestamp(microsecond)" doc:"since when it is gone; null: it is not"`
	Fields      out.JSON   `parquet:"fields,json" doc:"the site's fields by name; money is {\"amount\", \"currency\"}"`
	Kept        out.JSON   `parquet:"kept,json" doc:"fields that its page lacks, whose value is an earlier one, with the microseconds since 1970 from which on"`
	ContentHash string     `parquet:"content_hash" doc:"of its fields"`
	Tags        []string   `parquet:"tags,list" doc:"what --tag-url's model says of it"`
}

// ImageRow is an image that a product names, or named.
type ImageRow struct {
	Site       string     `parquet:"site,dict" doc:"the site's name"`
	ProductKey string     `parquet:"product_key" doc:"the product"`
	URL        string     `parquet:"url" doc:"the image's address"`
	Field      string     `parquet:"field,dict" doc:"the product's field that names it"`
	Position   int64      `parquet:"position" doc:"among the product's images, from 1"`
	FirstSeen  time.Time  `parquet:"first_seen,timestamp(microsecond)" doc:"when the product named it first"`
	LastSeen   time.Time  `parquet:"last_seen,timestamp(microsecond)" doc:"when the product named it last"`
	GoneAt     *time.Time `parquet:"gone_at,optional,timestamp(microsecond)" doc:"since when the product no longer names it; null: it does"`
	Hash       string     `parquet:"hash" doc:"SHA-256 of its bytes, which are the store's object images/sha256/ab/abcd….jpg; empty: they were never received"`
	Type       string     `parquet:"type,dict" doc:"by its bytes: image/jpeg, image/png, image/gif, image/webp or image/avif"`
	Bytes      int64      `parquet:"bytes" doc:"its size"`
	Width      int64      `parquet:"width" doc:"pixels"`
	Height     int64      `parquet:"height" doc:"pixels"`
	FetchedAt  *time.Time `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"when its bytes were received; null: never"`
	Failure    string     `parquet:"failure" doc:"why the last request for it brought nothing; empty: it did"`
}

// ChangeRow is a change of a product's value.
type ChangeRow struct {
	Site       string    `parquet:"site,dict" doc:"the site's name"`
	ProductKey string    `parquet:"product_key" doc:"the product"`
	ChangedAt  time.Time `parquet:"changed_at,timestamp(microsecond)" doc:"when"`
	Field      string    `parquet:"field,dict" doc:"name of the field; _state: it was gone, or came back"`
	Was        *string   `parquet:"was,optional" doc:"the value before, as JSON text; null: it had none"`
	Became     *string   `parquet:"became,optional" doc:"the value since then, as JSON text; null: it has none"`
	RunID      string    `parquet:"run_id,dict" doc:"the run that saw it"`
}

// Rows are the kinds of rows that the job finds.
func Rows() []out.What {
	finds := Finds()
	of := out.What{Job: Job, Version: 1, Filters: []string{"site", "since"}, Migrate: Migrate, Names: SitesThere}
	products, changes, images := of, of, of
	products.Name, products.About, products.Since = "products", "The products of sites.", "when the product changed or was gone"
	products.Table, products.Find, products.Changed = "SITE KEY=product_key STATE CHANGED=changed_at URL", &finds, changedProducts
	products.Diff = Diff
	changes.Name, changes.About, changes.Since = "product-history", "Each change of a value of those products.", "when the value changed"
	changes.Table = "SITE KEY=product_key AT=changed_at FIELD WAS… BECAME…"
	images.Name, images.About = "product-images", "The images of those products, whose bytes --images keeps in the store."
	images.Since = "when the product named it, the bytes were received, or the product named it no longer"
	images.Table = "SITE KEY=product_key TYPE BYTES URL FAILURE…"
	images.Failed = func(r explore.Record) bool { return r.Column("failure").Value != "" }
	return []out.What{out.InDB(products, Products), out.InDB(changes, Changes), out.InDB(images, ProductImages)}
}

func changedProducts(ctx context.Context, src out.Source) iter.Seq2[out.Change, error] {
	return out.Map(Products(ctx, src.DB, out.Filter{Since: src.Since}), func(p ProductRow) out.Change {
		kind := out.KindOf(!p.FirstSeen.Before(src.Since), p.GoneAt != nil)
		if kind == "changed" && p.State == "back" {
			kind = p.State
		}
		return out.Change{Kind: kind, Source: p.Site, Item: p.ProductKey, What: p.URL}
	})
}

// Products yields products by site and key.
func Products(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[ProductRow, error] {
	return out.Select[ProductRow](ctx, d, f, "site", "changed_at >= $3 OR gone_at >= $3 OR state = 'back' AND last_seen >= $3",
		`SELECT site, product_key, url, state, first_seen, last_seen, changed_at, gone_at, detail, kept, content_hash,
		COALESCE((SELECT t.tags FROM catalog_tags t WHERE t.site = catalog_products.site AND t.product_key = catalog_products.product_key), '[]') FROM catalog_products
		WHERE %s ORDER BY site, product_key`)
}

// Changes yields the changes of products' values by site, product and time.
func Changes(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[ChangeRow, error] {
	return changesBy(ctx, d, f, "site, product_key, changed_at, field")
}

func changesBy(ctx context.Context, d *db.DB, f out.Filter, order string) iter.Seq2[ChangeRow, error] {
	return out.Select[ChangeRow](ctx, d, f, "site", "changed_at >= $3", `SELECT site, product_key, changed_at, field, was, became, run_id FROM catalog_changes
		WHERE %s ORDER BY `+order)
}

// ProductImages yields the images of products by site, product and position.
func ProductImages(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[ImageRow, error] {
	return out.Select[ImageRow](ctx, d, f, "site", "changed_at >= $3 OR fetched_at >= $3",
		`SELECT site, product_key, url, field, position, first_seen, last_seen, gone_at, hash, type, bytes, width, height, fetched_at, failure FROM (
		SELECT n.site, n.product_key, n.url, n.field, n.position, n.first_seen, n.last_seen, n.gone_at, COALESCE(i.hash, '') AS hash, COALESCE(i.type, '') AS type, COALESCE(i.bytes, 0) AS bytes,
			COALESCE(i.width, 0) AS width, COALESCE(i.height, 0) AS height, i.fetched_at, COALESCE(i.failure, '') AS failure,
			CASE WHEN n.gone_at > n.first_seen THEN n.gone_at ELSE n.first_seen END AS changed_at
		FROM catalog_product_images n LEFT JOIN catalog_images i ON i.site = n.site AND i.url = n.url) AS images WHERE %s ORDER BY site, product_key, position, url`)
}

// SitesThere returns the names of the sites that the database knows.
func SitesThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT site FROM catalog_crawls ORDER BY site`)
}
