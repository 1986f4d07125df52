package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// The states of a row of catalog_tasks. Queries have the first one as a literal, because
// only then the planner uses the index of the waiting tasks.
const (
	waiting = 0 // for feed
	begun   = 1 // in a queue or at a worker of this run
	done    = 2 // done, or failed for the last time
)

// rows is the journal of one site's crawl, in the database. Each change is one
// transaction, so after a kill each task is either done or not done.
type rows struct {
	db      *db.DB
	site    string
	number  int64 // of the open crawl
	limited bool  // the crawl before, by the same file, did not read the whole list
	about   judging.About

	mu        sync.Mutex
	displaces map[string]int // by key: how many products' pages show this product in their place
}

// The states of a product, by the latest crawl.
const (
	stateNew       = "new"
	stateChanged   = "changed"
	stateUnchanged = "unchanged"
	stateGone      = "gone"
	stateBack      = "back" // it was gone
)

// begin begins a crawl with its first pages, or resumes an interrupted one, unless another file found its list: file is the hash. pending
// is how many products must still be fetched.
func (j *rows) begin(ctx context.Context, seeds []entry, file string, now time.Time, restart bool) (resumed bool, pending int64, err error) {
	err = j.db.Do(ctx, "beginning the crawl of "+j.site, func(tx *sql.Tx) error {
		resumed, pending = false, 0
		var unfinished, others, before int
		if err := tx.QueryRowContext(ctx, `SELECT count(*), COALESCE(sum(CASE WHEN file NOT IN ('', $2) THEN 1 ELSE 0 END), 0) FROM catalog_crawls WHERE site = $1 AND `+j.db.Never("finished_at"), j.site, file).Scan(&unfinished, &others); err != nil {
			return err
		}
		restart = restart || others > 0
		resumed = unfinished > 0 && !restart
		if resumed {
			if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, fetched = FALSE WHERE site = $2 AND state <> $3`, waiting, j.site, done); err != nil {
				return err
			}
		} else {
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_crawls WHERE site = $1 AND file = $2 AND partial = $3`, j.site, file, listLimited).Scan(&before); err != nil {
				return err
			}
			keep := waiting // of an earlier crawl only tasks that a replay has reopened
			if restart {
				keep = -1
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1 AND state <> $2`, j.site, keep); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO catalog_crawls (site, started_at, finished_at, number, file) VALUES ($1, $2, $4, 1, $3)
				ON CONFLICT (site) DO UPDATE SET started_at = excluded.started_at, finished_at = excluded.finished_at, number = catalog_crawls.number + 1, partial = 0, file = excluded.file`, j.site, db.Micros(now), file, int64(0)); err != nil {
				return err
			}
			if _, err := j.insert(ctx, tx, seeds); err != nil {
				return err
			}
		}
		j.limited = before > 0
		if err := tx.QueryRowContext(ctx, `SELECT number FROM catalog_crawls WHERE site = $1`, j.site).Scan(&j.number); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2 AND state <> $3`, j.site, KindFetchProductDetailPage, done).Scan(&pending)
	})
	return resumed, pending, err
}

// add adds list pages that the crawl does not have yet.
func (j *rows) add(ctx context.Context, pages []entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := j.insert(ctx, tx, pages)
		return err
	})
}

// leave ends a crawl of a site that is not open, and concludes nothing: the next run resumes it with what failed, what was not there, and
// the first list page. It reads the whole list if whole is true or no product was listed.
func (j *rows) leave(ctx context.Context, first string, whole bool, now time.Time) error {
	return j.db.Do(ctx, "ending the crawl of "+j.site, func(tx *sql.Tx) error {
		var listed int64
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2 AND asked = ''`,
			j.site, KindFetchProductDetailPage).Scan(&listed)
		if err != nil {
			return err
		}
		if listed > 0 && !whole {
			_, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, tries = 0, not_before = $6,
				page = CASE WHEN page < 0 THEN 0 ELSE page END WHERE site = $2 AND (state <> $3 OR page < 0 OR kind = $4 AND url = $5)`,
				waiting, j.site, done, KindFetchListPage, first, anyTime)
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM catalog_tasks WHERE site = $1`, j.site); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE catalog_crawls SET finished_at = $1 WHERE site = $2`, db.Micros(now), j.site)
		return err
	})
}

// some returns up to n stored products as tasks.
func (j *rows) some(ctx context.Context, n int) (tasks []entry, err error) {
	return db.All(ctx, j.db, func(r *sql.Rows) (entry, error) {
		e := entry{Kind: KindFetchProductDetailPage}
		err := r.Scan(&e.Asked, &e.URL)
		return e, err
	}, `SELECT product_key, url FROM catalog_products WHERE site = $1 AND state <> 'gone' ORDER BY last_seen DESC, product_key LIMIT $2`, j.site, n)
}

// due implements journal.
func (j *rows) due(ctx context.Context, now time.Time, n int) (tasks []entry, next time.Time, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		next = time.Time{}
		// Products come before list pages, and list pages in their order, so that work in progress is completed first.
		tasks, err = db.All(ctx, tx, func(r *sql.Rows) (e entry, err error) {
			err = r.Scan(&e.Kind, &e.URL, &e.Page, &e.Tries, &e.Fetched, &e.Row, &e.Asked, &e.Known)
			return e, err
		}, `SELECT kind, url, page, tries, fetched, list_row, asked,
			EXISTS (SELECT 1 FROM catalog_products p WHERE p.site = catalog_tasks.site AND p.url = catalog_tasks.url AND p.state <> 'gone')
			FROM catalog_tasks WHERE site = $1 AND state = 0 AND not_before <= $2
			ORDER BY kind DESC, page, url LIMIT $3`, j.site, db.Micros(now), n)
		if err != nil {
			return err
		}
		if len(tasks) == 0 {
			var at sql.NullInt64
			if err := tx.QueryRowContext(ctx, `SELECT min(not_before) FROM catalog_tasks WHERE site = $1 AND state = 0`, j.site).Scan(&at); err != nil {
				return err
			}
			if at.Int64 > 0 {
				next = db.Time(at.Int64)
			}
			return nil
		}
		return j.set(ctx, tx, tasks, begun)
	})
	return tasks, next, err
}

// left returns how many products wait for the next run, at least one: list pages may wait in place of them.
func (j *rows) left(ctx context.Context) (n int64, err error) {
	err = j.db.QueryRowContext(ctx, `SELECT count(*) FROM catalog_tasks WHERE site = $1 AND kind = $2 AND state <> $3`, j.site, KindFetchProductDetailPage, done).Scan(&n)
	if err != nil {
		err = fmt.Errorf("counting the tasks of %s: %w", j.site, err)
	}
	return max(n, 1), err
}

// retry implements journal.
func (j *rows) retry(ctx context.Context, e entry, at time.Time) error {
	_, err := j.db.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1, tries = $2, fetched = $3, not_before = $4 WHERE site = $5 AND kind = $6 AND url = $7`,
		waiting, e.Tries, e.Fetched, db.Micros(at), j.site, e.Kind, e.URL)
	return err
}

// end implements journal.
func (j *rows) end(ctx context.Context, e entry) error {
	return j.db.Tx(ctx, func(tx *sql.Tx) error { return j.set(ctx, tx, []entry{e}, done) })
}

// endLists ends list pages and begins the tasks that follow from them. fresh are the products that are new to this crawl; had is known of
// them; loops are the pages that lead only to what the crawl had before.
func (j *rows) endLists(ctx context.Context, pages []listResult, skips func(detail string) bool) (fresh, had map[string]bool, loops []string, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		fresh, loops = map[string]bool{}, nil
		if err := j.tellApart(ctx, tx, pages); err != nil {
			return err
		}
		var from, found []entry
		for _, p := range pages {
			from = append(from, p.from)
			found = append(found, ofKind(p.found, KindFetchProductDetailPage)...)
		}
		if had, err = j.known(ctx, tx, found, skips); err != nil {
			return err
		}
		for i := range found {
			found[i].Skip = had[found[i].URL]
		}
		added, err := j.insert(ctx, tx, found)
		if err != nil {
			return err
		}
		for _, url := range added {
			fresh[url] = true
		}
		for _, p := range pages {
			loop, err := j.insertLists(ctx, tx, p)
			if err != nil {
				return err
			}
			if loop {
				loops = append(loops, p.from.URL)
			}
		}
		if err := j.markEmpty(ctx, tx, pages); err != nil {
			return err
		}
		return j.set(ctx, tx, from, done)
	})
	return fresh, had, loops, err
}

// tellApart gives products of rows an address of their own if another product of the crawl,
// which an earlier page had, has theirs.
func (j *rows) tellApart(ctx context.Context, tx *sql.Tx, pages []listResult) error {
	var found []*entry
	var urls []string
	for _, p := range pages {
		for i := range p.found {
			if e := &p.found[i]; p.rowsOnly && e.Kind == KindFetchProductDetailPage {
				found, urls = append(found, e), append(urls, e.URL)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	keys := map[string]string{}
	for e, err := range db.Select(ctx, tx, func(r *sql.Rows) (e entry, err error) {
		err = r.Scan(&e.URL, &e.Row)
		return e, err
	}, `SELECT url, list_row FROM catalog_tasks WHERE site = $1 AND kind = $2 AND url `+j.db.AnyOf(3), j.site, KindFetchProductDetailPage, j.db.List(urls)) {
		if err != nil {
			return err
		}
		keys[e.URL] = keyOfRow(e.Row)
	}
	for _, e := range found {
		key := keyOfRow(e.Row)
		if of, had := keys[e.URL]; had && of != key {
			e.URL = withKey(e.URL, key)
		}
		keys[e.URL] = key
	}
	return nil
}

// markEmpty records which numbered pages have no product of their own, for gaps.
func (j *rows) markEmpty(ctx context.Context, tx *sql.Tx, pages []listResult) error {
	var empty []entry
	for _, p := range pages {
		if p.numbered && (p.stale || len(ofKind(p.found, KindFetchProductDetailPage)) == 0) {
			empty = append(empty, p.from)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET list_row = $1 WHERE site = $2 AND kind = $3 AND url `+j.db.AnyOf(4), emptyPage, j.site, KindFetchListPage, j.db.List(urlsOf(empty)))
	return err
}

// insertLists adds the list pages to which a list page leads, unless it is a loop.
func (j *rows) insertLists(ctx context.Context, tx *sql.Tx, p listResult) (loop bool, err error) {
	lists := ofKind(p.found, KindFetchListPage)
	if len(lists) == 0 {
		return false, nil
	}
	if p.ends {
		return true, nil
	}
	added, err := j.insert(ctx, tx, lists)
	return p.inOrder && len(added) == 0, err
}

// known returns the addresses at which the database has products, and whether their pages are not fetched: skips, if any,
// judges that for products that are not gone and that no crawl has missed, by their fields as JSON.
func (j *rows) known(ctx context.Context, tx *sql.Tx, found []entry, skips func(detail string) bool) (map[string]bool, error) {
	detail := "''"
	if skips != nil {
		detail = "detail"
	}
	all := map[string]bool{}
	type stored struct {
		url, detail string
		sure        bool
	}
	for s, err := range db.Select(ctx, tx, func(r *sql.Rows) (s stored, err error) {
		err = r.Scan(&s.url, &s.detail, &s.sure)
		return s, err
	}, `SELECT url, `+detail+`, state <> 'gone' AND missing_in = 0 FROM catalog_products WHERE site = $1 AND url `+j.db.AnyOf(2), j.site, j.db.List(urlsOf(found))) {
		if err != nil {
			return nil, err
		}
		skipped, two := all[s.url] // then one of the products may be anywhere
		all[s.url] = skips != nil && s.sure && (skipped || !two) && skips(s.detail)
	}
	return all, nil
}

func urlsOf(tasks []entry) []string {
	urls := make([]string, len(tasks))
	for i, e := range tasks {
		urls[i] = e.URL
	}
	return urls
}

// kinds are the kinds of tasks in the journal.
var kinds = []Kind{KindFetchListPage, KindFetchProductDetailPage}

func ofKind(tasks []entry, kind Kind) (own []entry) {
	for _, e := range tasks {
		if e.Kind == kind {
			own = append(own, e)
		}
	}
	return own
}

// anyTime is the time before which a task that is due at once waits.
const anyTime = 1

// insert adds tasks that the crawl does not have yet, and returns their addresses.
func (j *rows) insert(ctx context.Context, tx *sql.Tx, tasks []entry) (added []string, err error) {
	for _, kind := range kinds {
		own := ofKind(tasks, kind)
		if len(own) == 0 {
			continue
		}
		all := make([][]any, len(own))
		for i, e := range own {
			state := waiting
			switch {
			case e.Skip:
				state = done
			case kind == KindFetchProductDetailPage && e.Asked == "":
				state = begun
			}
			all[i] = []any{e.URL, j.site, string(kind), int64(e.Page), int64(state), int64(0), int64(0), int64(anyTime), e.Row, e.Asked}
		}
		err := j.db.InsertNew(ctx, tx, "catalog_tasks", []string{"url", "site", "kind", "page", "state", "tries", "fetched", "not_before", "list_row", "asked"}, all, func(url string) { added = append(added, url) })
		if err != nil {
			return nil, err
		}
	}
	return added, nil
}

// set moves tasks of one or both kinds to a state.
func (j *rows) set(ctx context.Context, tx *sql.Tx, tasks []entry, state int) error {
	for _, kind := range kinds {
		own := ofKind(tasks, kind)
		if len(own) == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE catalog_tasks SET state = $1 WHERE site = $2 AND kind = $3 AND url `+j.db.AnyOf(4), state, j.site, kind, j.db.List(urlsOf(own))); err != nil {
			return err
		}
	}
	return nil
}
