package catalog

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	out "github.com/newsfork/seed-engine/io/rows"
)

// DiffRow is a difference between two times: of a product, or of one of its fields.
type DiffRow = out.Diff

// Diff yields how products differ between two times, by site, product and field. What
// changed and changed back in between is no difference.
func Diff(ctx context.Context, d *db.DB, from, to time.Time) iter.Seq2[DiffRow, error] {
	// A new product has one row without a field. The others have a row for each change.
	steps := db.Select(ctx, d, func(r *sql.Rows) (s diffStep, err error) {
		return s, r.Scan(&s.Site, &s.ProductKey, &s.URL, &s.Field, &s.at, &s.first, &s.Was, &s.Became)
	}, `SELECT site, product_key, url, '' AS field, first_seen AS at, first_seen, NULL AS was, NULL AS became FROM catalog_products WHERE first_seen > $1 AND first_seen <= $2
		UNION ALL SELECT c.site, c.product_key, p.url, c.field, c.changed_at, p.first_seen, c.was, c.became FROM catalog_changes c
			JOIN catalog_products p ON p.site = c.site AND p.product_key = c.product_key WHERE c.changed_at > $1 AND c.changed_at <= $2
		ORDER BY site, product_key, field, at`, db.Micros(from), db.Micros(to))
	return func(yield func(DiffRow, error) bool) {
		var product []diffStep // of one product
		flush := func() bool {
			for _, row := range differences(product, db.Micros(from)) {
				if !yield(row, nil) {
					return false
				}
			}
			product = product[:0]
			return true
		}
		for s, err := range steps {
			if err != nil {
				yield(DiffRow{}, err)
				return
			}
			if len(product) > 0 && (product[0].Site != s.Site || product[0].ProductKey != s.ProductKey) && !flush() {
				return
			}
			product = append(product, s)
		}
		flush()
	}
}

// diffStep is one change of a product.
type diffStep struct {
	DiffRow
	at, first int64 // when; when the product was found
}

// differences makes the steps of one product, by field and time, its differences.
func differences(steps []diffStep, from int64) (all []DiffRow) {
	isNew := len(steps) > 0 && steps[0].first > from
	gone := false
	var fields []DiffRow
	for i := 0; i < len(steps); {
		last := i
		for last+1 < len(steps) && steps[last+1].Field == steps[i].Field {
			last++
		}
		row := steps[i].DiffRow
		row.Became = steps[last].Became
		switch {
		case row.Field == stateField:
			was, is := isText(row.Was, stateGone), isText(row.Became, stateGone)
			gone = is
			if was != is && !isNew {
				row.Kind, row.Field, row.Was, row.Became = stateBack, "", nil, nil
				if is {
					row.Kind = stateGone
				}
				all = append(all, row)
			}
		case row.Field != "" && !isNew && (row.Was == nil || row.Became == nil || *row.Was != *row.Became):
			row.Kind = stateChanged
			fields = append(fields, row)
		}
		i = last + 1
	}
	if isNew && !gone {
		row := steps[0].DiffRow
		return []DiffRow{{Kind: stateNew, Site: row.Site, ProductKey: row.ProductKey, URL: row.URL}}
	}
	return append(all, fields...)
}

func isText(v *string, text string) bool { return v != nil && *v == *quoted(text) }
