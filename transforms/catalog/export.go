package catalog

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	out "github.com/newsfork/seed-engine/io/rows"
)

// Filter chooses rows of the database; an empty field chooses all.
type Filter struct {
	Sites []string
	Since time.Time // that changed then or later
	Look  db.Look
}

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

// Products yields products by site and key.
func Products(ctx context.Context, d *db.DB, f Filter) iter.Seq2[ProductRow, error] {
	return selected(ctx, d, f, func(r *sql.Rows) (p ProductRow, err error) {
		var first, last, changed, gone int64
		err = r.Scan(&p.Site, &p.ProductKey, &p.URL, &p.State, &first, &last, &changed, &gone, &p.Fields, &p.Kept, &p.ContentHash)
		p.FirstSeen, p.LastSeen, p.ChangedAt, p.GoneAt = db.Time(first), db.Time(last), db.Time(changed), db.OptionalTime(gone)
		return p, err
	}, `SELECT site, product_key, url, state, first_seen, last_seen, changed_at, gone_at, detail, kept, content_hash FROM catalog_products`,
		`OR gone_at >= $3 OR state = 'back' AND last_seen >= $3`, `ORDER BY site, product_key`)
}

// Changes yields the changes of products' values by site, product and time.
func Changes(ctx context.Context, d *db.DB, f Filter) iter.Seq2[ChangeRow, error] {
	return selected(ctx, d, f, func(r *sql.Rows) (c ChangeRow, err error) {
		var at int64
		err = r.Scan(&c.Site, &c.ProductKey, &at, &c.Field, &c.Was, &c.Became, &c.RunID)
		c.ChangedAt = db.Time(at)
		return c, err
	}, `SELECT site, product_key, changed_at, field, was, became, run_id FROM catalog_changes`, ``, `ORDER BY site, product_key, changed_at, field`)
}

// selected yields the rows of a query; or is one more condition about time.
func selected[T any](ctx context.Context, d *db.DB, f Filter, scan func(*sql.Rows) (T, error), query, or, order string) iter.Seq2[T, error] {
	var since int64
	if !f.Since.IsZero() {
		since = db.Micros(f.Since)
	}
	where := ` WHERE (CAST($1 AS BIGINT) = 0 OR site ` + d.AnyOf(2) + `) AND (CAST($3 AS BIGINT) = 0 OR changed_at >= $3 ` + or + `) `
	and, limit, args := f.Look.SQL(int64(len(f.Sites)), d.List(f.Sites), since)
	return db.Select(ctx, d, scan, query+where+and+" "+order+limit, args...)
}

// SitesThere returns the names of the sites that the database knows.
func SitesThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT site FROM catalog_crawls ORDER BY site`)
}
