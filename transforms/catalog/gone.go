package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// crawlEnd has the figures of a crawl at its end.
type crawlEnd struct {
	comparison
	gone     int64 // products that are gone since this crawl
	notFound int64 // products that were not found for the first time
	kept     int64 // products that the list does not name, and that are not gone because not all of it was read
	shorter  bool  // more than a tenth of the products are missing
}

const (
	// maxGone is how many products may vanish from a list at once without an alert. More may, up to a tenth.
	maxGone = 10
	// unlistedTerm ends a product that the list does not name but whose page still shows it. A
	// week less a day: the second weekly crawl then ends it, even if it begins a little earlier.
	unlistedTerm = 6 * 24 * time.Hour
)

// How much of the list a crawl has read (catalog_crawls.partial).
const (
	listWhole   = 0
	listLimited = 1 // it ends before the list does
	listFaulty  = 2 // a page of the list, or of a product that it names, could not be read
)

// markPartial records that the crawl does not read all of the list, so that products
// which it does not find may still exist.
func (j *rows) markPartial(ctx context.Context, how int) error {
	_, err := j.db.ExecContext(ctx, `UPDATE catalog_crawls SET partial = $2 WHERE site = $1 AND partial <> 1`, j.site, how)
	return err
}

// The outcomes of a product's page, which the journal has as the number of its page.
const (
	otherProduct = -1 // it shows another product than before
	notFound     = -2 // 404
	goneForGood  = -3 // 410
)

// unlisted are the products that the list does not name. It names one if it has its address,
// unless the page there shows another product, and did so in an earlier crawl, too.
const unlisted = ` FROM catalog_products WHERE site = $1 AND state <> 'gone' AND seen_in < $2
	AND NOT EXISTS (SELECT 1 FROM catalog_tasks t WHERE t.url = catalog_products.url AND t.site = $1 AND t.kind = 'FetchProductDetailPage' AND t.asked = ''
		AND NOT (t.page = -1 AND catalog_products.missing_in > 0 AND catalog_products.missing_in < $2))`

// emptyPage is what the journal has of a numbered list page without products of its own.
const emptyPage = "empty"

// gaps are the pages without products of their own before one that has some.
const gaps = ` FROM catalog_tasks e WHERE e.site = $1 AND e.kind = 'FetchListPage' AND e.list_row = '` + emptyPage + `'
	AND EXISTS (SELECT 1 FROM catalog_tasks n WHERE n.site = $1 AND n.kind = 'FetchListPage' AND n.list_row = '' AND n.page > e.page)`

// markUnread records that the page of a listed product could not be read. If no product has
// that address, it may be that of any which the list seems to name no more: addresses change.
func (j *rows) markUnread(ctx context.Context, url string) (unknown bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		unknown = false
		var known int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_products WHERE site = $1 AND url = $2`, j.site, url).Scan(&known); err != nil || known > 0 {
			return err
		}
		unknown = true
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET partial = $2 WHERE site = $1 AND partial = 0`, j.site, listFaulty)
		return err
	})
	return unknown, err
}

// comparison is what the list names, compared with what is stored.
type comparison struct {
	all, missing int64 // stored products; those that the list does not name
	listed       int64 // product pages in the list
	notThere     int64 // of them, those that do not exist
	asked        int64 // products whose pages were requested because the list does not name them
	pages        int   // of the list
	named        int64 // products in the list by key, with pages that do not exist
	before, left int64 // stored products that the list before named; those that this one names
	how          int   // listWhole …
	thin         bool  // it names so much less that the site may not be what it was
	shrunk       bool  // only one of its pages is left, so it seems incomplete, and no product is marked as gone
}

// compare compares the list that was read with what is stored.
func (j *rows) compare(ctx context.Context, tx *sql.Tx, believed bool) (c comparison, err error) {
	var before, gap int
	var lost, unnamed int64
	if err := errors.Join(
		tx.QueryRowContext(ctx, `SELECT partial, list_pages FROM catalog_crawls WHERE site = $1`, j.site).Scan(&c.how, &before),
		tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchListPage).Scan(&c.pages),
		tx.QueryRowContext(ctx, `SELECT COALESCE(sum(CASE WHEN asked = '' THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN asked <> '' THEN 1 ELSE 0 END), 0),
			COALESCE(sum(CASE WHEN asked = '' AND page IN (-2, -3) THEN 1 ELSE 0 END), 0) FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchProductDetailPage).Scan(&c.listed, &c.asked, &c.notThere),
		tx.QueryRowContext(ctx, `SELECT count(*), COALESCE(sum(CASE WHEN `+j.db.Never("unlisted_at")+`
			AND first_seen < (SELECT started_at FROM catalog_crawls WHERE site = $1) THEN 1 ELSE 0 END), 0)
			FROM catalog_products WHERE site = $1 AND state <> 'gone'`, j.site).Scan(&c.all, &c.before),
		tx.QueryRowContext(ctx, `SELECT count(DISTINCT product_key) FROM catalog_products p
			JOIN catalog_tasks t ON t.site = p.site AND t.kind = 'FetchProductDetailPage' AND t.url = p.url AND t.asked = ''
			WHERE p.site = $1 AND p.state <> 'gone'`, j.site).Scan(&c.named),
		tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks t
			WHERE t.site = $1 AND t.kind = 'FetchProductDetailPage' AND t.asked = '' AND t.page IN (-2, -3) AND NOT EXISTS (SELECT 1 FROM catalog_products p WHERE p.site = t.site AND p.url = t.url AND p.state <> 'gone')`, j.site).Scan(&lost),
		tx.QueryRowContext(ctx, `SELECT count(*), COALESCE(sum(CASE WHEN `+j.db.Never("unlisted_at")+` THEN 1 ELSE 0 END), 0)`+unlisted,
			j.site, j.number).Scan(&c.missing, &unnamed),
		tx.QueryRowContext(ctx, `SELECT count(*)`+gaps, j.site).Scan(&gap)); err != nil {
		return c, err
	}
	if gap > 0 && c.how == listWhole {
		c.how = listFaulty
	}
	c.named += lost
	c.left = c.before - unnamed
	c.thin = !believed && c.how == listWhole && j.thin(c)
	c.shrunk = !believed && c.how != listLimited && c.missing > 0 && c.pages == 1 && before > 1
	return c, nil
}

// allAbsent reports whether none of the pages exists to which the list leads.
func (c comparison) allAbsent() bool { return c.listed >= minBreak && c.notThere == c.listed }

// compared is compare in a transaction of its own.
func (j *rows) compared(ctx context.Context, believed bool) (c comparison, err error) {
	err = j.db.Do(ctx, fmt.Sprintf("comparing the list of %s with what is stored", j.site), func(tx *sql.Tx) (err error) {
		c, err = j.compare(ctx, tx, believed)
		return err
	})
	return c, err
}

// thin reports whether the site would be thin by what its list names alone.
func (j *rows) thin(c comparison) bool {
	judge := judging.Begin(j.about)
	judge.Listed(int(c.left), int(c.before))
	return judge.Verdict().State == judging.Thin
}

// askMissing adds the pages of the products that the list does not name, and reports how many: a list may change while it is read.
// believed means that it is complete. A list that lost most of its products is read again instead, unless seeds is nil.
func (j *rows) askMissing(ctx context.Context, r *reader, believed bool, seeds []entry) (n int, again bool, err error) {
	err = j.db.Do(ctx, fmt.Sprintf("comparing the list of %s with what is stored", j.site), func(tx *sql.Tx) error {
		n, again = 0, false
		c, err := j.compare(ctx, tx, believed)
		if again = err == nil && (c.shrunk || c.thin) && seeds != nil && c.notThere < c.listed; again {
			if _, err = tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchListPage); err == nil {
				_, err = j.insert(ctx, tx, seeds)
			}
			return err
		}
		if err != nil || r.site.Detail.Format == formatNone || c.listed == 0 || c.missing == 0 || c.shrunk || c.thin || believed ||
			c.how == listLimited || c.notThere == c.listed {
			return err
		}
		tasks, err := db.All(ctx, tx, func(got *sql.Rows) (entry, error) {
			e := entry{Kind: KindFetchProductDetailPage}
			var detail string
			err := got.Scan(&e.Asked, &e.URL, &detail)
			if err == nil {
				e.Row, err = r.storedRow(e.Asked, detail)
			}
			return e, err
		}, `SELECT product_key, url, detail`+unlisted+` AND NOT EXISTS (SELECT 1`+task+`)`, j.site, j.number)
		if err != nil {
			return err
		}
		n = len(tasks)
		_, err = j.insert(ctx, tx, tasks)
		return err
	})
	return n, again, err
}

// storedRow returns a product's row of the list as it is stored.
func (r *reader) storedRow(key, detail string) (string, error) {
	if !r.inRows {
		return "", nil
	}
	row := rowValues{Fields: map[string]json.RawMessage{}}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal([]byte(detail), &stored); err != nil {
		return "", fmt.Errorf("reading product %s: %w", key, err)
	}
	for _, f := range r.fields {
		if v, ok := stored[f.name]; ok && f.From == fromRow {
			row.Fields[f.name] = v
			if f.name == r.site.Key {
				row.Key = key
			}
		}
	}
	b, err := json.Marshal(row)
	return string(b), err
}

// close ends a complete crawl, and marks as gone what the list and the products' own pages
// say is gone. believed means that the list is complete, however many are missing.
func (j *rows) close(ctx context.Context, r *reader, now time.Time, runID string, believed bool) (c crawlEnd, err error) {
	err = j.db.Do(ctx, "closing the crawl of "+j.site, func(tx *sql.Tx) (err error) {
		c = crawlEnd{}
		if c.comparison, err = j.compare(ctx, tx, believed); err != nil {
			return err
		}
		whole, missing := c.how == listWhole && !c.shrunk, max(c.missing, c.asked)
		c.shorter = !believed && whole && missing > maxGone && 10*missing > c.all
		if c.listed > 0 && !c.allAbsent() {
			for _, s := range j.conclusions(whole, whole && believed, r.site.Detail.Format == formatNone) {
				if err := j.conclude(ctx, tx, s, now, runID, &c); err != nil {
					return err
				}
			}
			if c.how != listWhole {
				if err := tx.QueryRowContext(ctx, `SELECT count(*)`+unlisted, j.site, j.number).Scan(&c.kept); err != nil {
					return err
				}
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1`, j.site); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE catalog_crawls SET finished_at = $1, list_pages = $3 WHERE site = $2`, db.Micros(now), j.site, c.pages)
		return err
	})
	return c, err
}

// conclusion is one rule of what becomes of products that were not found.
type conclusion struct {
	becomes  string // gone, missing, unlisted or listed
	products string // a condition of SQL; $1 is the site, $2 the number of the crawl
}

const (
	task   = ` FROM catalog_tasks t WHERE t.url = catalog_products.url AND t.site = $1 AND t.kind = 'FetchProductDetailPage'`
	absent = `seen_in < $2 AND EXISTS (SELECT 1` + task + ` AND t.asked IN ('', product_key) AND t.page `
	// ripe are those that an earlier crawl did not find either.
	ripe = ` AND missing_in > 0 AND missing_in < $2`
	// unnamed are those that the list does not name, whether their pages show them or not.
	unnamed = `((site, product_key) IN (SELECT site, product_key` + unlisted + `) OR EXISTS (SELECT 1` + task + ` AND t.asked = product_key))`
)

// conclusions returns the rules in their order. A product is gone when its page answers 410; with 404 at once if the list does not name
// it, else, as with another product or no key, in the second crawl; without a page of its own in the second crawl that does not list it;
// and after unlistedTerm.
func (j *rows) conclusions(whole, believed, rowsOnly bool) (all []conclusion) {
	all = []conclusion{{stateGone, absent + `= -3)`}, {stateGone, absent + `= -2)` + ripe}}
	if whole {
		all = append(all, conclusion{stateGone, absent + `= -2 AND t.asked <> '')`}, conclusion{stateGone, absent + `= -1)` + ripe})
	}
	if believed {
		all = append(all, conclusion{stateGone, unnamed})
	}
	if whole && rowsOnly {
		all = append(all, conclusion{stateGone, unnamed + ripe}, conclusion{"missing", unnamed})
	}
	if whole {
		all = append(all, conclusion{stateGone, unnamed + ` AND unlisted_at <= $3 AND NOT ` + j.db.Never("unlisted_at")}, conclusion{"unlisted", unnamed})
	}
	return append(all, conclusion{"listed", `NOT ` + unnamed}, conclusion{"missing", absent + `< 0)`})
}

// conclude follows a rule.
func (j *rows) conclude(ctx context.Context, tx *sql.Tx, s conclusion, now time.Time, runID string, c *crawlEnd) error {
	args, set := []any{j.site, j.number}, ""
	switch s.becomes {
	case stateGone:
		n, err := j.gone(ctx, tx, now, runID, s.products)
		c.gone += n
		return err
	case "missing":
		set = `missing_in = $2 WHERE missing_in = 0`
	case "unlisted":
		args, set = append(args, db.Micros(now)), `unlisted_at = $3 WHERE `+j.db.Never("unlisted_at")
	case "listed":
		args, set = append(args, int64(0)), `unlisted_at = $3 WHERE NOT `+j.db.Never("unlisted_at")
	}
	n, err := db.Changed(tx.ExecContext(ctx, `UPDATE catalog_products SET `+set+` AND site = $1 AND state <> 'gone' AND `+s.products, args...))
	if s.becomes == "missing" {
		c.notFound += n
	}
	return err
}

// stateField is the name under which a product's history has that it was gone or came
// back. No field of a site's file has such a name.
const stateField = "_state"

// gone marks the site's products of a condition as gone, in their history too.
func (j *rows) gone(ctx context.Context, tx *sql.Tx, now time.Time, runID, condition string) (n int64, err error) {
	condition = ` FROM catalog_products WHERE site = $1 AND state <> 'gone' AND CAST($2 AS BIGINT) >= 0 AND CAST($3 AS TIMESTAMPTZ) IS NOT NULL AND ` + condition
	if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id)
		SELECT site, product_key, CAST($4 AS TIMESTAMPTZ), CAST($5 AS TEXT), `+j.db.JSON(`'"' || state || '"'`)+`, `+j.db.JSON(`'"gone"'`)+`, CAST($6 AS TEXT)`+condition+` ON CONFLICT DO NOTHING`,
		j.site, j.number, db.Micros(now.Add(-unlistedTerm)), db.Micros(now), stateField, runID); err != nil {
		return 0, err
	}
	return db.Changed(tx.ExecContext(ctx, `UPDATE catalog_products SET state = 'gone', gone_at = $4, missing_in = 0, unlisted_at = $5 WHERE (site, product_key) IN (SELECT site, product_key`+condition+`)`,
		j.site, j.number, db.Micros(now.Add(-unlistedTerm)), db.Micros(now), int64(0)))
}

// markAbsent ends the task of a page that does not show its product. known means that it was
// the page of a stored product.
func (j *rows) markAbsent(ctx context.Context, e entry, outcome int) (known bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) > 0 FROM catalog_products WHERE site = $1 AND url = $2`, j.site, e.URL).Scan(&known); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, page = $2 WHERE site = $3 AND kind = $4 AND url = $5`, done, outcome, j.site, e.Kind, e.URL)
		return err
	})
	return known, err
}

// displace records which products are no longer on their pages, which show others: they are missing, as with 404, unless this crawl finds
// them elsewhere.
func (j *rows) displace(ctx context.Context, tx *sql.Tx, shown []product) error {
	if j.number == 1 { // no crawl was before
		return nil
	}
	on, urls := map[string]string{}, make([]string, len(shown))
	for i, p := range shown {
		on[p.url], urls[i] = p.key, p.url
	}
	var at []string
	for p, err := range db.Select(ctx, tx, func(r *sql.Rows) (p product, err error) {
		err = r.Scan(&p.key, &p.url)
		return p, err
	}, `SELECT product_key, url FROM catalog_products WHERE site = $1 AND url `+j.db.AnyOf(2)+` AND state <> 'gone' AND seen_in < $3`, j.site, j.db.List(urls), j.number) {
		if err != nil {
			return err
		}
		if p.key != on[p.url] && j.mayDisplace(on[p.url]) {
			at = append(at, p.url)
		}
	}
	if len(at) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET page = $1 WHERE site = $2 AND kind = $3 AND url `+j.db.AnyOf(4), otherProduct, j.site, KindFetchProductDetailPage, j.db.List(at))
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
