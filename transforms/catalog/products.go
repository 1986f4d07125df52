package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// outcome counts the results of saving products.
type outcome struct {
	saved, added, changed, unchanged int
	again                            int // pages of products that were already saved from another page
	collided                         []collision
}

// collision is a product that was not saved, because another page of this crawl has the
// same key and other values.
type collision struct {
	product
	other string // address of the other page
}

// save writes products and ends their tasks. Before anything is written, judge, if set,
// gets the products and their stored versions; its error cancels everything.
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
		keys := slices.Sorted(maps.Keys(write)) // sorted: two writers lock rows in the same order, and cannot deadlock
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

// pendingWrite is a product to write.
type pendingWrite struct {
	storedProduct
	state   string
	changes []change
}

// stored reads the stored versions of products, by key.
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

// remember writes the changes of products.
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
