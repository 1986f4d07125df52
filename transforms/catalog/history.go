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

// ErrNoProduct means that the database has no such product or site.
var ErrNoProduct = errors.New("the database has no product of it")

// Product is a product as the database has it.
type Product struct {
	Site, Key, URL, State string
	FirstSeen, LastSeen   time.Time
	ChangedAt, GoneAt     time.Time                  // GoneAt is zero if it is not gone
	Fields                map[string]json.RawMessage // by name
	Kept                  map[string]time.Time       // fields that the page no longer has, and since when; their values are older
}

// Change is a change of a value; nil means no value.
type Change struct {
	Site, Key, Field, RunID string
	At                      time.Time
	Was, Became             *string // JSON
}

// maxChanges is the maximum number of changes that History returns.
const maxChanges = 1000

// History returns the latest changes, newest first: of all sites, of one site, or of one
// product. In the last case it returns the product too.
func History(ctx context.Context, d *db.DB, site, key string) (p *Product, changes []Change, err error) {
	err = d.Tx(ctx, func(tx *sql.Tx) error {
		p, changes = nil, nil
		if site != "" {
			if p, err = look(ctx, tx, site, key); err != nil {
				return err
			}
		}
		got, err := tx.QueryContext(ctx, `SELECT site, product_key, field, run_id, changed_at, was, became FROM catalog_changes
			WHERE ($1 = '' OR site = $1) AND ($2 = '' OR product_key = $2) ORDER BY changed_at DESC, site, product_key, field LIMIT $3`, site, key, maxChanges)
		if err != nil {
			return err
		}
		for got.Next() {
			var c Change
			var at int64
			if err := got.Scan(&c.Site, &c.Key, &c.Field, &c.RunID, &at, &c.Was, &c.Became); err != nil {
				return joinClose(err, got)
			}
			c.At = db.Time(at)
			changes = append(changes, c)
		}
		return joinClose(got.Err(), got)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("looking up changes: %w", err)
	}
	return p, changes, nil
}

// look reads a product; without a key it only checks that the site has one.
func look(ctx context.Context, tx *sql.Tx, site, key string) (*Product, error) {
	p := &Product{Site: site}
	var first, last, changed, gone int64
	var detail, kept string
	err := tx.QueryRowContext(ctx, `SELECT product_key, url, state, first_seen, last_seen, changed_at, gone_at, detail, kept FROM catalog_products
		WHERE site = $1 AND ($2 = '' OR product_key = $2) LIMIT 1`, site, key).Scan(&p.Key, &p.URL, &p.State, &first, &last, &changed, &gone, &detail, &kept)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoProduct
	}
	if err != nil || key == "" {
		return nil, err
	}
	p.FirstSeen, p.LastSeen, p.ChangedAt = db.Time(first), db.Time(last), db.Time(changed)
	if gone > 0 {
		p.GoneAt = db.Time(gone)
	}
	since := map[string]int64{}
	if err := errors.Join(json.Unmarshal([]byte(detail), &p.Fields), json.Unmarshal([]byte(kept), &since)); err != nil {
		return nil, fmt.Errorf("reading product %s: %w", key, err)
	}
	p.Kept = map[string]time.Time{}
	for name, at := range since {
		p.Kept[name] = db.Time(at)
	}
	return p, nil
}

// Text writes a product for a person.
func (p *Product) Text() string {
	var b strings.Builder
	day := func(t time.Time) string { return t.Format(time.RFC3339) }
	fmt.Fprintf(&b, "%s/%s  %s\n  %s\n  first seen %s, last seen %s, changed %s\n", p.Site, p.Key, p.State, p.URL, day(p.FirstSeen), day(p.LastSeen), day(p.ChangedAt))
	if !p.GoneAt.IsZero() {
		fmt.Fprintf(&b, "  gone since %s\n", day(p.GoneAt))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		fmt.Fprintf(&b, "  %-22s %s", name, string(p.Fields[name]))
		if at, ok := p.Kept[name]; ok {
			fmt.Fprintf(&b, "  (an earlier value: its page lacks it since %s)", day(at))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Text writes a change for a person, on one line.
func (c Change) Text() string {
	value := func(v *string) string {
		if v == nil {
			return "(none)"
		}
		return *v
	}
	return fmt.Sprintf("%s  %s/%s  %s: %s -> %s  (run %s)\n", c.At.Format(time.RFC3339), c.Site, c.Key, c.Field, value(c.Was), value(c.Became), c.RunID)
}
