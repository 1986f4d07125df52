package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// crawlEnd has the figures of a crawl at its end.
type crawlEnd struct {
	listed int64 // product pages in its lists
	gone   int64 // products that are no longer in its lists
	shrunk bool  // so many are missing, or all pages but one, that the list seems incomplete, so none was marked as gone
	kept   int64 // products that the list does not name, and that are not gone because not all of it was read
	moved  int64 // products that were not found, and whose pages show others for the first time
}

// maxGone is how many products may vanish from a list at once. More may vanish if they
// are at most half of all products.
const maxGone = 10

// markPartial records that the crawl does not read all of the list, so that products
// which it does not find may still exist.
func (j *rows) markPartial(ctx context.Context) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET partial = 1 WHERE site = $1`, j.site)
		return err
	})
}

// unlisted are the products that the list does not name. It names one if it has its address,
// unless the page there shows another product, and did so in an earlier crawl, too.
const unlisted = ` FROM catalog_products WHERE site = $1 AND state <> 'gone' AND seen_in < $2
	AND NOT EXISTS (SELECT 1 FROM catalog_tasks t WHERE t.url = catalog_products.url AND t.site = $1 AND t.kind = 'FetchProductDetailPage'
		AND NOT (t.page = -1 AND catalog_products.missing_in > 0 AND catalog_products.missing_in < $2))`

// otherProduct is what the journal has, as the number of its page, of a product's task whose
// page shows another product than before.
const otherProduct = -1

// displaced are the products whose pages show others for the first time.
const displaced = ` FROM catalog_products WHERE site = $1 AND state <> 'gone' AND missing_in = $2
	AND EXISTS (SELECT 1 FROM catalog_tasks t WHERE t.url = catalog_products.url AND t.site = $1 AND t.kind = 'FetchProductDetailPage' AND t.page = -1)`

// emptyPage is what the journal has of a numbered list page without products.
const emptyPage = "empty"

// gaps are the pages without products before one that has some.
const gaps = ` FROM catalog_tasks e WHERE e.site = $1 AND e.kind = 'FetchListPage' AND e.list_row = '` + emptyPage + `'
	AND EXISTS (SELECT 1 FROM catalog_tasks n WHERE n.site = $1 AND n.kind = 'FetchListPage' AND n.list_row = '' AND n.page > e.page)`

// markUnread records that the page of a listed product could not be read. If no product has
// that address, it may be that of any which the list seems to name no more: addresses change.
func (j *rows) markUnread(ctx context.Context, url string) (unknown bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET partial = 1 WHERE site = $1 AND NOT EXISTS (SELECT 1 FROM catalog_products WHERE site = $1 AND url = $2)`, j.site, url)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		unknown = n > 0
		return err
	})
	return unknown, err
}

// readAgain begins a second reading of a list that no longer names some products, and
// reports how many. A list may change while its pages are read one after the other, so that a product
// moves to a page that was read before, and a page may be a wrong one for a moment. Only
// what neither reading finds is gone.
func (j *rows) readAgain(ctx context.Context, seeds []entry) (missing int64, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		missing = 0
		var partial, first, pages int
		var listed int64
		if err := errors.Join(
			tx.QueryRowContext(ctx, `SELECT partial, first_reading FROM catalog_crawls WHERE site = $1`, j.site).Scan(&partial, &first),
			tx.QueryRowContext(ctx, `SELECT COALESCE(sum(CASE WHEN kind = $2 THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN kind <> $2 THEN 1 ELSE 0 END), 0) FROM catalog_tasks WHERE site = $1`, j.site, KindFetchListPage).Scan(&pages, &listed)); err != nil {
			return err
		}
		if partial != 0 || first > 0 || listed == 0 {
			return nil
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*)`+unlisted, j.site, j.number).Scan(&missing); err != nil || missing == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchListPage); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET first_reading = $2 WHERE site = $1`, j.site, pages); err != nil {
			return err
		}
		j.firstReading = pages
		_, err := j.insert(ctx, tx, seeds)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the list of %s again: %w", j.site, err)
	}
	return missing, nil
}

// missing returns how many products the list does not name so far.
func (j *rows) missing(ctx context.Context) (n int64, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT count(*)`+unlisted, j.site, j.number).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("counting what the list of %s does not name: %w", j.site, err)
	}
	return n, nil
}

// close ends a complete crawl. If all of the list was read, products that are no longer
// in it are gone. believed means that the list is complete, however many are missing.
func (j *rows) close(ctx context.Context, now time.Time, runID string, believed bool) (c crawlEnd, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		c = crawlEnd{}
		var partial, before, pages int
		var all, missing, gap int64
		if err := errors.Join(
			tx.QueryRowContext(ctx, `SELECT partial, list_pages FROM catalog_crawls WHERE site = $1`, j.site).Scan(&partial, &before),
			tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchListPage).Scan(&pages),
			tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchProductDetailPage).Scan(&c.listed)); err != nil {
			return err
		}
		if c.listed > 0 {
			if err := errors.Join(
				tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_products WHERE site = $1 AND state <> 'gone'`, j.site).Scan(&all),
				tx.QueryRowContext(ctx, `SELECT count(*)`+unlisted, j.site, j.number).Scan(&missing),
				tx.QueryRowContext(ctx, `SELECT count(*)`+displaced, j.site, j.number).Scan(&c.moved),
				tx.QueryRowContext(ctx, `SELECT count(*)`+gaps, j.site).Scan(&gap)); err != nil {
				return err
			}
			c.shrunk = !believed && partial == 0 && gap == 0 && missing > 0 && (missing > maxGone && 2*missing > all || pages == 1 && before > 1)
			switch {
			case missing == 0 || c.shrunk:
			case partial != 0 || gap > 0:
				c.kept = missing
			default:
				c.gone = missing
				if err := j.gone(ctx, tx, now, runID, `(site, product_key) IN (SELECT site, product_key`+unlisted+`)`, j.number); err != nil {
					return err
				}
			}
		}
		if missing == 0 {
			pages = max(pages, j.firstReading) // the second reading ended as soon as it had found what was missing
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1`, j.site); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET finished_at = $1, list_pages = $3 WHERE site = $2`, db.Micros(now), j.site, pages)
		return err
	})
	if err != nil {
		return crawlEnd{}, fmt.Errorf("closing the crawl of %s: %w", j.site, err)
	}
	return c, nil
}

// stateField is the name under which a product's history has that it was gone or came
// back. No field of a site's file has such a name.
const stateField = "_state"

// gone marks the site's products of a condition as gone, in their history too.
func (j *rows) gone(ctx context.Context, tx *sql.Tx, now time.Time, runID, condition string, arg any) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id)
		SELECT site, product_key, CAST($3 AS BIGINT), CAST($4 AS TEXT), '"' || state || '"', '"gone"', CAST($5 AS TEXT) FROM catalog_products WHERE site = $1 AND state <> 'gone' AND `+condition+` ON CONFLICT DO NOTHING`,
		j.site, arg, db.Micros(now), stateField, runID); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE catalog_products SET state = 'gone', gone_at = $3, missing_in = 0 WHERE site = $1 AND state <> 'gone' AND `+condition, j.site, arg, db.Micros(now))
	return err
}

// markMissing ends the task of a product page that no longer exists. known means that it
// was the page of stored products, and gone that the state of each is now gone: the site
// says that it is gone for good, or an earlier crawl did not find it either.
func (j *rows) markMissing(ctx context.Context, e entry, forGood bool, now time.Time, runID string) (known, gone bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		var there, missing int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*), COALESCE(sum(CASE WHEN state = 'gone' OR missing_in > 0 AND missing_in < $3 THEN 1 ELSE 0 END), 0) FROM catalog_products
			WHERE site = $1 AND url = $2`, j.site, e.URL, j.number).Scan(&there, &missing); err != nil {
			return err
		}
		if known, gone = there > 0, forGood || missing == there; !known {
			return nil
		}
		ripe := `url = $2`
		if !forGood { // of two products that had the page one after the other, one may be gone before
			ripe += ` AND missing_in > 0 AND missing_in < (SELECT c.number FROM catalog_crawls c WHERE c.site = $1)`
		}
		if err := j.gone(ctx, tx, now, runID, ripe, e.URL); err != nil {
			return err
		}
		if !gone {
			if _, err := tx.ExecContext(ctx, `UPDATE catalog_products SET missing_in = $3 WHERE site = $1 AND url = $2 AND state <> 'gone' AND missing_in = 0`, j.site, e.URL, j.number); err != nil {
				return err
			}
		}
		return j.set(ctx, tx, []entry{e}, done)
	})
	return known, gone, err
}

// displace records which products are no longer on their pages, which show others: like one
// whose page answers 404 they are missing, unless this crawl finds them elsewhere, and gone
// if the next crawl does not find them either.
func (j *rows) displace(ctx context.Context, tx *sql.Tx, shown []product) error {
	if j.number == 1 { // no crawl was before
		return nil
	}
	on, urls := map[string]string{}, make([]string, len(shown))
	for i, p := range shown {
		on[p.url], urls[i] = p.key, p.url
	}
	got, err := tx.QueryContext(ctx, `SELECT product_key, url FROM catalog_products WHERE site = $1 AND url `+j.db.AnyOf(2)+` AND state <> 'gone' AND seen_in < $3`, j.site, j.db.List(urls), j.number)
	if err != nil {
		return err
	}
	var keys, at []string
	for got.Next() {
		var key, url string
		if err := got.Scan(&key, &url); err != nil {
			return joinClose(err, got)
		}
		if key != on[url] && j.mayDisplace(on[url]) {
			keys, at = append(keys, key), append(at, url)
		}
	}
	if err := joinClose(got.Err(), got); err != nil || len(keys) == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET page = $1 WHERE site = $2 AND kind = $3 AND url `+j.db.AnyOf(4), otherProduct, j.site, KindFetchProductDetailPage, j.db.List(at)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE catalog_products SET missing_in = $1 WHERE site = $2 AND missing_in = 0 AND seen_in < $1 AND product_key `+j.db.AnyOf(3), j.number, j.site, j.db.List(keys))
	return err
}

// mayDisplace reports whether a product may be what another one's page shows now. One that the
// pages of many products show is what a site shows in place of any page, such as a refusal.
func (j *rows) mayDisplace(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.displaces == nil {
		j.displaces = map[string]int{}
	}
	j.displaces[key]++
	return j.displaces[key] <= minBreak
}
