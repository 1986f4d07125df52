package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// The states of a row of catalog_tasks. Queries have the first as a literal, by
// which the planner finds the index of the waiting tasks.
const (
	waiting = 0 // for the orchestrator
	begun   = 1 // in a queue or at a worker of this run
	done    = 2 // or failed for good
)

// rows is the journal of one site's crawl, in the database. Each change is one
// transaction, so a killed process leaves each task either done or to be done.
type rows struct {
	db     *db.DB
	site   string
	number int64 // of the crawl that is open
}

// The states of a product, by the latest crawl.
const (
	stateNew       = "new"
	stateChanged   = "changed"
	stateUnchanged = "unchanged"
	stateGone      = "gone"
)

// begin begins a crawl with its first pages, or resumes one that was stopped:
// what had begun there begins again. pending is how many products of it are
// still to be fetched.
func (j *rows) begin(ctx context.Context, seeds []entry, now time.Time, restart bool) (resumed bool, pending int64, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		resumed, pending = false, 0
		var unfinished int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_crawls WHERE site = $1 AND finished_at = 0`, j.site).Scan(&unfinished); err != nil {
			return err
		}
		resumed = unfinished > 0 && !restart
		if resumed {
			if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, fetched = 0 WHERE site = $2 AND state <> $3`, waiting, j.site, done); err != nil {
				return err
			}
		} else {
			keep := waiting // of an earlier crawl only what a replay has reopened
			if restart {
				keep = -1
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1 AND state <> $2`, j.site, keep); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_crawls (site, started_at, finished_at, number) VALUES ($1, $2, 0, 1)
				ON CONFLICT (site) DO UPDATE SET started_at = excluded.started_at, finished_at = 0, number = catalog_crawls.number + 1, partial = 0`, j.site, db.Micros(now)); err != nil {
				return err
			}
			if _, err := j.insert(ctx, tx, seeds); err != nil {
				return err
			}
		}
		if err := tx.QueryRowContext(ctx, `SELECT number FROM catalog_crawls WHERE site = $1`, j.site).Scan(&j.number); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2 AND state <> $3`, j.site, KindFetchProductDetailPage, done).Scan(&pending)
	})
	if err != nil {
		return false, 0, fmt.Errorf("beginning the crawl of %s: %w", j.site, err)
	}
	return resumed, pending, nil
}

// add adds list pages that the crawl does not have.
func (j *rows) add(ctx context.Context, pages []entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := j.insert(ctx, tx, pages)
		return err
	})
}

// crawlEnd is what a crawl comes to at its end.
type crawlEnd struct {
	listed int64 // product pages that its lists named
	gone   int64 // products that they no longer name
	shrunk bool  // so many that the list is to be doubted: none was marked as gone
}

// maxGone is how many products may vanish from a list at once, unless they are
// no more than half of all.
const maxGone = 10

// markPartial notes that the crawl does not read the list to its end, so that
// products which it does not name may still exist.
func (j *rows) markPartial(ctx context.Context) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET partial = 1 WHERE site = $1`, j.site)
		return err
	})
}

const unlisted = ` FROM catalog_products WHERE site = $1 AND state <> 'gone' AND seen_in < $2
	AND NOT EXISTS (SELECT 1 FROM catalog_tasks t WHERE t.url = catalog_products.url AND t.site = $1 AND t.kind = 'FetchProductDetailPage')`

// close ends a complete crawl. Products that a list read to its end no longer
// names are gone.
func (j *rows) close(ctx context.Context, now time.Time) (c crawlEnd, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		c = crawlEnd{}
		var partial int
		var all, missing int64
		if err := errors.Join(
			tx.QueryRowContext(ctx, `SELECT partial FROM catalog_crawls WHERE site = $1`, j.site).Scan(&partial),
			tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2`, j.site, KindFetchProductDetailPage).Scan(&c.listed)); err != nil {
			return err
		}
		if c.listed > 0 && partial == 0 {
			if err := errors.Join(
				tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_products WHERE site = $1 AND state <> 'gone'`, j.site).Scan(&all),
				tx.QueryRowContext(ctx, `SELECT count(*)`+unlisted, j.site, j.number).Scan(&missing)); err != nil {
				return err
			}
			c.shrunk = missing > maxGone && 2*missing > all
			if missing > 0 && !c.shrunk {
				c.gone = missing
				if _, err := tx.ExecContext(ctx, `UPDATE catalog_products SET state = 'gone', gone_at = $3 WHERE (site, product_key) IN (SELECT site, product_key`+unlisted+`)`,
					j.site, j.number, db.Micros(now)); err != nil {
					return err
				}
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1`, j.site); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET finished_at = $1 WHERE site = $2`, db.Micros(now), j.site)
		return err
	})
	if err != nil {
		return crawlEnd{}, fmt.Errorf("closing the crawl of %s: %w", j.site, err)
	}
	return c, nil
}

// markGone ends the task of a product page that no longer exists, and says whether
// the page was a product's: then the product's state is gone.
func (j *rows) markGone(ctx context.Context, e entry, now time.Time) (known bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		var n int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_products WHERE site = $1 AND url = $2`, j.site, e.URL).Scan(&n); err != nil {
			return err
		}
		if known = n > 0; !known {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE catalog_products SET state = 'gone', gone_at = $3 WHERE site = $1 AND url = $2 AND state <> 'gone'`, j.site, e.URL, db.Micros(now)); err != nil {
			return err
		}
		return j.set(ctx, tx, []entry{e}, done)
	})
	return known, err
}

// due implements journal.
func (j *rows) due(ctx context.Context, now time.Time, n int) (tasks []entry, next time.Time, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		tasks, next = nil, time.Time{}
		// What has begun is finished first: products before list pages, then the lists in order.
		got, err := tx.QueryContext(ctx, `SELECT kind, url, page, tries, fetched, not_before FROM catalog_tasks WHERE site = $1 AND state = 0 AND not_before <= $2
			ORDER BY kind DESC, page, url LIMIT $3`, j.site, db.Micros(now), n)
		if err != nil {
			return err
		}
		for got.Next() {
			var e entry
			var at int64
			if err := got.Scan(&e.Kind, &e.URL, &e.Page, &e.Tries, &e.Fetched, &at); err != nil {
				return joinClose(err, got)
			}
			tasks = append(tasks, e)
		}
		if err := joinClose(got.Err(), got); err != nil {
			return err
		}
		if len(tasks) == 0 {
			var at sql.NullInt64
			if err := tx.QueryRowContext(ctx, `SELECT min(not_before) FROM catalog_tasks WHERE site = $1 AND state = 0`, j.site).Scan(&at); err != nil {
				return err
			}
			if at.Valid {
				next = db.Time(at.Int64)
			}
			return nil
		}
		return j.set(ctx, tx, tasks, begun)
	})
	return tasks, next, err
}

func joinClose(err error, r *sql.Rows) error {
	if cerr := r.Close(); err == nil {
		return cerr
	}
	return err
}

// retry implements journal.
func (j *rows) retry(ctx context.Context, e entry, at time.Time) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		fetched := 0
		if e.Fetched {
			fetched = 1
		}
		_, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, tries = $2, fetched = $3, not_before = $4 WHERE site = $5 AND kind = $6 AND url = $7`,
			waiting, e.Tries, fetched, db.Micros(at), j.site, e.Kind, e.URL)
		return err
	})
}

// end implements journal.
func (j *rows) end(ctx context.Context, e entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error { return j.set(ctx, tx, []entry{e}, done) })
}

// endLists ends list pages and begins what they led to: products at once, further
// list pages by way of feed. fresh are the products that this crawl had not met
// before; known, which withKnown adds, those that the database had before.
func (j *rows) endLists(ctx context.Context, pages []listResult, withKnown bool) (fresh, known map[string]bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		fresh, known = map[string]bool{}, map[string]bool{}
		var from, found []entry
		for _, p := range pages {
			from = append(from, p.from)
			found = append(found, p.found...)
		}
		if withKnown {
			if err := j.known(ctx, tx, found, known); err != nil {
				return err
			}
		}
		added, err := j.insert(ctx, tx, found)
		if err != nil {
			return err
		}
		for _, url := range added {
			fresh[url] = true
		}
		return j.set(ctx, tx, from, done)
	})
	return fresh, known, err
}

func (j *rows) known(ctx context.Context, tx *sql.Tx, found []entry, known map[string]bool) error {
	for part := range slices.Chunk(found, chunk) {
		args := []any{j.site}
		for _, e := range part {
			args = append(args, e.URL)
		}
		got, err := tx.QueryContext(ctx, `SELECT url FROM catalog_products WHERE site = $1 AND url IN (`+places(2, len(part))+`)`, args...)
		if err != nil {
			return err
		}
		for got.Next() {
			var url string
			if err := got.Scan(&url); err != nil {
				return joinClose(err, got)
			}
			known[url] = true
		}
		if err := joinClose(got.Err(), got); err != nil {
			return err
		}
	}
	return nil
}

// chunk is how many rows one statement input: SQLite looks a parameter's name
// up among all of the statement's, so longer ones cost more a row.
const chunk = 50

// places writes "$2, $3, …" for n values from number first on.
func places(first, n int) string {
	b := make([]byte, 0, 6*n)
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, '$'), int64(first+i), 10)
	}
	return string(b)
}

// insert adds tasks that the crawl does not have, and gives the addresses of
// the products among them.
func (j *rows) insert(ctx context.Context, tx *sql.Tx, tasks []entry) (products []string, err error) {
	for _, kind := range []Kind{KindFetchListPage, KindFetchProductDetailPage} {
		state := waiting
		if kind == KindFetchProductDetailPage {
			state = begun
		}
		var own []entry
		for _, e := range tasks {
			if e.Kind == kind {
				own = append(own, e)
			}
		}
		for part := range slices.Chunk(own, chunk) {
			var b strings.Builder
			b.WriteString(`INSERT INTO catalog_tasks (site, kind, state, url, page, tries, fetched, not_before) VALUES `)
			args := []any{j.site, kind, state}
			for i, e := range part {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "($1, $2, $3, %s, 0, 0, 0)", places(len(args)+1, 2))
				args = append(args, e.URL, e.Page)
			}
			b.WriteString(` ON CONFLICT DO NOTHING RETURNING url`)
			got, err := tx.QueryContext(ctx, b.String(), args...)
			if err != nil {
				return nil, err
			}
			for got.Next() {
				var url string
				if err := got.Scan(&url); err != nil {
					return nil, joinClose(err, got)
				}
				if kind == KindFetchProductDetailPage {
					products = append(products, url)
				}
			}
			if err := joinClose(got.Err(), got); err != nil {
				return nil, err
			}
		}
	}
	return products, nil
}

// set moves tasks of one or both kinds to a state.
func (j *rows) set(ctx context.Context, tx *sql.Tx, tasks []entry, state int) error {
	for _, kind := range []Kind{KindFetchListPage, KindFetchProductDetailPage} {
		var urls []any
		for _, e := range tasks {
			if e.Kind == kind {
				urls = append(urls, e.URL)
			}
		}
		for part := range slices.Chunk(urls, chunk) {
			args := append([]any{state, j.site, kind}, part...)
			if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1 WHERE site = $2 AND kind = $3 AND url IN (`+places(4, len(part))+`)`, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome is what saving products came to.
type outcome struct {
	saved, added, changed, unchanged int
	again                            int // pages of products that another page has given already
	collided                         []collision
}

// collision is a product that was not saved: another page of this crawl has its
// key, and other values.
type collision struct {
	product
	other string // address of that page
}

// save writes products and ends the tasks of those that it wrote. judge, when set,
// gets them and what the database has of them before anything is written; its
// error undoes everything.
func (j *rows) save(ctx context.Context, products []product, now time.Time, runID string, judge func([]product, map[string]storedProduct) error) (o outcome, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		o = outcome{}
		before, err := j.stored(ctx, tx, products)
		if err != nil {
			return err
		}
		if judge != nil {
			if err := judge(products, before); err != nil {
				return err
			}
		}
		var from []entry
		var changes []change
		write := map[string]pendingWrite{}
		for _, p := range products {
			old, had := before[p.key]
			mine, written := write[p.key]
			if written {
				old = mine.storedProduct
			}
			row, changed, state, err := p.merge(before[p.key], had, db.Micros(now), j.number)
			if err != nil {
				return err
			}
			if (had || written) && old.crawl == j.number && old.url != p.url {
				if old.hash != row.hash {
					o.collided = append(o.collided, collision{p, old.url})
					continue
				}
				o.again++
			} else {
				if !written {
					o.saved++
				}
				write[p.key] = pendingWrite{row, state, changed}
			}
			from = append(from, p.from)
		}
		for _, w := range write {
			changes = append(changes, w.changes...)
			switch w.state {
			case stateNew:
				o.added++
			case stateChanged:
				o.changed++
			default:
				o.unchanged++
			}
		}
		keys := slices.Sorted(maps.Keys(write)) // in one order: two writers do not lock each other out
		for part := range slices.Chunk(keys, chunk) {
			if err := j.upsert(ctx, tx, part, write); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(changes, chunk) {
			if err := j.remember(ctx, tx, part, runID); err != nil {
				return err
			}
		}
		return j.set(ctx, tx, from, done)
	})
	return o, err
}

// pendingWrite is a product as it is to be written.
type pendingWrite struct {
	storedProduct
	state   string
	changes []change
}

// stored reads what the database has of products, by key.
func (j *rows) stored(ctx context.Context, tx *sql.Tx, products []product) (map[string]storedProduct, error) {
	out := make(map[string]storedProduct, len(products))
	for part := range slices.Chunk(products, chunk) {
		args := []any{j.site}
		for _, p := range part {
			args = append(args, p.key)
		}
		got, err := tx.QueryContext(ctx, `SELECT product_key, url, content_hash, first_seen, last_seen, changed_at, seen_in, detail, kept FROM catalog_products
			WHERE site = $1 AND product_key IN (`+places(2, len(part))+`)`, args...)
		if err != nil {
			return nil, err
		}
		for got.Next() {
			var s storedProduct
			var key, detail, kept string
			err := got.Scan(&key, &s.url, &s.hash, &s.first, &s.last, &s.changed, &s.crawl, &detail, &kept)
			if err == nil {
				err = errors.Join(json.Unmarshal([]byte(detail), &s.fields), json.Unmarshal([]byte(kept), &s.kept))
			}
			if err != nil {
				return nil, joinClose(fmt.Errorf("reading product %s: %w", key, err), got)
			}
			out[key] = s
		}
		if err := joinClose(got.Err(), got); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (j *rows) upsert(ctx context.Context, tx *sql.Tx, keys []string, write map[string]pendingWrite) error {
	var b strings.Builder
	b.WriteString(`INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at, seen_in, state, kept, gone_at) VALUES `)
	args := []any{j.site}
	for i, key := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		w := write[key]
		detail, err := w.detail()
		if err != nil {
			return err
		}
		kept, err := json.Marshal(w.kept)
		if err != nil {
			return fmt.Errorf("encoding the product: %w", err)
		}
		fmt.Fprintf(&b, "($1, %s, 0)", places(len(args)+1, 10))
		args = append(args, key, w.url, detail, w.hash, w.first, w.last, w.changed, w.crawl, w.state, string(kept))
	}
	b.WriteString(` ON CONFLICT (site, product_key) DO UPDATE SET url = excluded.url, detail = excluded.detail, content_hash = excluded.content_hash,
		last_seen = excluded.last_seen, changed_at = excluded.changed_at, seen_in = excluded.seen_in, state = excluded.state, kept = excluded.kept, gone_at = 0`)
	_, err := tx.ExecContext(ctx, b.String(), args...)
	return err
}

// remember keeps the values that products no longer have.
func (j *rows) remember(ctx context.Context, tx *sql.Tx, changes []change, runID string) error {
	var b strings.Builder
	b.WriteString(`INSERT INTO catalog_changes (site, run_id, product_key, changed_at, field, was, became) VALUES `)
	args := []any{j.site, runID}
	for i, c := range changes {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "($1, $2, %s)", places(len(args)+1, 5))
		args = append(args, c.key, c.at, c.field, c.was, c.became)
	}
	_, err := tx.ExecContext(ctx, b.String(), args...)
	return err
}
