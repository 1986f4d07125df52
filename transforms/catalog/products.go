package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// outcome counts the results of saving products.
type outcome struct {
	saved, added, changed, unchanged int
	back                             int // of unchanged and changed: products that were gone
	again                            int // pages of products that were already saved from another page
	collided                         []collision
}

// collision is a product that was not saved, because another page of this crawl has the
// same key and other values.
type collision struct {
	product
	other string // address of the other page
}

// save writes products and ends their tasks. Before anything is written, judge, if set, gets the
// products that do not collide and their stored versions; its error cancels everything.
func (j *rows) save(ctx context.Context, products []product, now time.Time, runID string, judge func([]product, map[string]storedProduct) error) (o outcome, err error) {
	err = j.db.Tx(ctx, func(tx *sql.Tx) error {
		o = outcome{}
		before, err := j.stored(ctx, tx, products)
		if err != nil {
			return err
		}
		var from []entry
		var shown []product
		write := map[string]pendingWrite{}
		for _, p := range products {
			old, had := before[p.key]
			mine, written := write[p.key]
			if written {
				old = mine.storedProduct
			}
			row, changed, state := p.merge(before[p.key], had, db.Micros(now), j.number)
			back := had && before[p.key].state == stateGone
			if (had || written) && old.crawl == j.number && old.url != p.url {
				if old.hash != row.hash || row.lost(old) {
					o.collided = append(o.collided, collision{p, old.url})
					continue
				}
				o.again++
			} else {
				if !written {
					o.saved++
				}
				write[p.key] = pendingWrite{row, state, changed, back}
			}
			from, shown = append(from, p.from), append(shown, p)
		}
		if judge != nil {
			if err := judge(shown, before); err != nil {
				return err
			}
		}
		changes := o.count(write)
		if err := j.upsert(ctx, tx, write); err != nil {
			return err
		}
		if err := j.displace(ctx, tx, shown); err != nil {
			return err
		}
		if err := j.remember(ctx, tx, changes, runID); err != nil {
			return err
		}
		return j.set(ctx, tx, from, done)
	})
	return o, err
}

// count counts the products to write, and returns their changes.
func (o *outcome) count(write map[string]pendingWrite) (changes []change) {
	for key, w := range write {
		changes = append(changes, w.changes...)
		if w.back {
			changes = append(changes, change{key: key, field: stateField, at: w.last, was: quoted(stateGone), became: quoted(stateBack)})
			o.back++
		}
		switch w.state {
		case stateNew:
			o.added++
		case stateChanged:
			o.changed++
		default:
			o.unchanged++
		}
	}
	return changes
}

// pendingWrite is a product to write.
type pendingWrite struct {
	storedProduct
	state   string
	changes []change
	back    bool // it was gone
}

// shown returns the state that the product's row has.
func (w pendingWrite) shown() string {
	if w.back {
		return stateBack
	}
	return w.state
}

// stored reads the stored versions of products, by key.
func (j *rows) stored(ctx context.Context, tx *sql.Tx, products []product) (map[string]storedProduct, error) {
	keys := make([]string, len(products))
	for i, p := range products {
		keys[i] = p.key
	}
	out := make(map[string]storedProduct, len(products))
	for s, err := range db.Select(ctx, tx, func(r *sql.Rows) (s storedProduct, err error) {
		var kept string
		if err = r.Scan(&s.key, &s.url, &s.hash, &s.first, &s.last, &s.changed, &s.crawl, &s.state, &s.detail, &kept); err == nil {
			err = errors.Join(json.Unmarshal([]byte(s.detail), &s.fields), json.Unmarshal([]byte(kept), &s.kept))
		}
		if err != nil {
			err = fmt.Errorf("reading product %s: %w", s.key, err)
		}
		return s, err
	}, `SELECT product_key, url, content_hash, first_seen, last_seen, changed_at, seen_in, state, detail, kept FROM catalog_products
		WHERE site = $1 AND product_key `+j.db.AnyOf(2), j.site, j.db.List(keys)) {
		if err != nil {
			return nil, err
		}
		out[s.key] = s
	}
	return out, nil
}

// upsert writes products. It sorts them by key: two writers then lock rows in the same
// order, and cannot deadlock.
func (j *rows) upsert(ctx context.Context, tx *sql.Tx, write map[string]pendingWrite) error {
	all := make([][]any, 0, len(write))
	for _, key := range slices.Sorted(maps.Keys(write)) {
		w := write[key]
		kept, err := json.Marshal(w.kept)
		if err != nil {
			return fmt.Errorf("encoding the product: %w", err)
		}
		all = append(all, []any{j.site, key, w.url, w.detail, w.hash, w.first, w.last, w.changed, w.crawl, w.shown(), string(kept), int64(0), int64(0)})
	}
	return j.db.InsertRows(ctx, tx, "catalog_products", []string{"site", "product_key", "url", "detail", "content_hash", "first_seen", "last_seen", "changed_at", "seen_in", "state", "kept", "gone_at", "missing_in"}, all,
		`ON CONFLICT (site, product_key) DO UPDATE SET url = excluded.url, detail = excluded.detail, content_hash = excluded.content_hash,
		last_seen = excluded.last_seen, changed_at = excluded.changed_at, seen_in = excluded.seen_in, state = excluded.state, kept = excluded.kept, gone_at = excluded.gone_at, missing_in = 0`)
}

// remember writes the changes of products.
func (j *rows) remember(ctx context.Context, tx *sql.Tx, changes []change, runID string) error {
	all := make([][]any, len(changes))
	for i, c := range changes {
		all[i] = []any{j.site, runID, c.key, c.at, c.field, c.was, c.became}
	}
	return j.db.InsertRows(ctx, tx, "catalog_changes", []string{"site", "run_id", "product_key", "changed_at", "field", "was", "became"}, all, "")
}
