package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// The states of a row of catalog_tasks. Queries have the first as a literal, by
// which the planner finds the index of those that wait.
const (
	waits = 0
	begun = 1
	done  = 2
)

// rows is the journal of one site's crawl, in the database. Each change is one
// transaction, so a killed process leaves each task either done or to be done.
type rows struct {
	db   *db.DB
	site string
}

// open begins a crawl with its first pages, or goes on with one that was
// stopped: what had begun there begins again. taken is how many products of it
// are still to be fetched.
func (j *rows) open(ctx context.Context, seeds []entry, now time.Time, anew bool) (resumed bool, taken int64, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		resumed, taken = false, 0
		var unfinished int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_crawls WHERE site = $1 AND finished_at = 0`, j.site).Scan(&unfinished); err != nil {
			return err
		}
		resumed = unfinished > 0 && !anew
		if resumed {
			if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, fetched = 0 WHERE site = $2 AND state <> $3`, waits, j.site, done); err != nil {
				return err
			}
		} else {
			keep := waits // of an earlier crawl only what a replay has opened
			if anew {
				keep = -1
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1 AND state <> $2`, j.site, keep); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_crawls (site, started_at, finished_at) VALUES ($1, $2, 0)
				ON CONFLICT (site) DO UPDATE SET started_at = excluded.started_at, finished_at = 0`, j.site, db.Micros(now)); err != nil {
				return err
			}
			if _, err := j.insert(ctx, tx, seeds); err != nil {
				return err
			}
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2 AND state <> $3`, j.site, KindFetchProductDetailPage, done).Scan(&taken)
	})
	if err != nil {
		return false, 0, fmt.Errorf("opening the crawl of %s: %w", j.site, err)
	}
	return resumed, taken, nil
}

// add lets list pages wait, unless the crawl has them.
func (j *rows) add(ctx context.Context, pages []entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := j.insert(ctx, tx, pages)
		return err
	})
}

// close ends a complete crawl.
func (j *rows) close(ctx context.Context, now time.Time) error {
	err := j.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1`, j.site); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE catalog_crawls SET finished_at = $1 WHERE site = $2`, db.Micros(now), j.site)
		return err
	})
	if err != nil {
		return fmt.Errorf("closing the crawl of %s: %w", j.site, err)
	}
	return nil
}

// due implements journal.
func (j *rows) due(ctx context.Context, now time.Time, n int) (tasks []entry, next time.Time, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		tasks, next = nil, time.Time{}
		// What was begun is finished first: products before list pages, then the lists in order.
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
			waits, e.Tries, fetched, db.Micros(at), j.site, e.Kind, e.URL)
		return err
	})
}

// bury implements journal.
func (j *rows) bury(ctx context.Context, e entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error { return j.set(ctx, tx, []entry{e}, done) })
}

// listed ends list pages and begins what they led to: products at once, further
// list pages by way of the orchestrator. fresh are the products that this
// crawl had not met before, known those that the database has had before; they
// are looked up only where the caller asks.
func (j *rows) listed(ctx context.Context, pages []listed, ask bool) (fresh, known map[string]bool, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		fresh, known = map[string]bool{}, map[string]bool{}
		var from, found []entry
		for _, p := range pages {
			from = append(from, p.from)
			found = append(found, p.found...)
		}
		if ask {
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

// chunk is how many rows one statement takes: SQLite looks a parameter's name
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
		state := waits
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

// saved upserts products and ends their tasks. It gives how many are new and
// how many have changed.
func (j *rows) saved(ctx context.Context, products []product, now time.Time) (added, changed int, err error) {
	at := db.Micros(now)
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		added, changed = 0, 0
		from := make([]entry, 0, len(products))
		for _, p := range products {
			from = append(from, p.from)
		}
		for rest := products; len(rest) > 0; {
			n := distinct(rest)
			a, c, err := j.upsert(ctx, tx, rest[:n], at)
			if err != nil {
				return err
			}
			added, changed, rest = added+a, changed+c, rest[n:]
		}
		return j.set(ctx, tx, from, done)
	})
	return added, changed, err
}

// distinct is how many of the first products have different keys: one statement
// cannot write a row twice.
func distinct(products []product) int {
	seen := make(map[string]bool, len(products))
	for i, p := range products {
		if seen[p.key] || i == chunk {
			return i
		}
		seen[p.key] = true
	}
	return len(products)
}

// later is the last_seen of an update: past the old one, whatever the clock
// says, so that an update is told from an insert, and a change from none.
const later = `CASE WHEN excluded.last_seen > catalog_products.last_seen THEN excluded.last_seen ELSE catalog_products.last_seen + 1 END`

func (j *rows) upsert(ctx context.Context, tx *sql.Tx, products []product, at int64) (added, changed int, err error) {
	var b strings.Builder
	b.WriteString(`INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at) VALUES `)
	args := []any{j.site, at}
	for i, p := range products {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "($1, %s, $2, $2, $2)", places(len(args)+1, 4))
		args = append(args, p.key, p.url, p.detail, p.hash)
	}
	b.WriteString(` ON CONFLICT (site, product_key) DO UPDATE SET url = excluded.url, detail = excluded.detail, content_hash = excluded.content_hash,
		last_seen = ` + later + `,
		changed_at = CASE WHEN catalog_products.content_hash <> excluded.content_hash THEN ` + later + ` ELSE catalog_products.changed_at END
		RETURNING first_seen, last_seen, changed_at`)
	got, err := tx.QueryContext(ctx, b.String(), args...)
	if err != nil {
		return 0, 0, err
	}
	for got.Next() {
		var first, last, change int64
		if err := got.Scan(&first, &last, &change); err != nil {
			return 0, 0, joinClose(err, got)
		}
		switch {
		case first == last:
			added++
		case change == last:
			changed++
		}
	}
	return added, changed, joinClose(got.Err(), got)
}
