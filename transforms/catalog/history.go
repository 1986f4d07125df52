package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	out "github.com/newsfork/seed-engine/io/rows"
)

// ErrNoProduct means that the database has no such product or site.
var ErrNoProduct = errors.New("the database has no product of it")

// maxChanges is the maximum number of changes that History returns.
const maxChanges = 1000

// History returns the latest changes, newest first: of all sites, of one site, or of one
// product. In the last case it returns the product too.
func History(ctx context.Context, d *db.DB, site, key string) (p *ProductRow, changes []ChangeRow, err error) {
	of := out.Filter{Look: db.Look{Equal: append(explore.Chosen("site", site), explore.Chosen("product_key", key)...), Limit: 1}}
	if site != "" {
		found, err := explore.One(Products(ctx, d, of))
		if errors.Is(err, explore.ErrNone) {
			return nil, nil, ErrNoProduct
		}
		if err != nil {
			return nil, nil, fmt.Errorf("looking up the product: %w", err)
		}
		if key != "" {
			p = &found
		}
	}
	of.Look.Limit = maxChanges
	for c, err := range changesBy(ctx, d, of, "changed_at DESC, site, product_key, field") {
		if err != nil {
			return nil, nil, fmt.Errorf("looking up changes: %w", err)
		}
		changes = append(changes, c)
	}
	return p, changes, nil
}

// Text writes a product for a person.
func (p ProductRow) Text() (string, error) {
	var fields map[string]json.RawMessage
	var kept map[string]int64
	if err := errors.Join(json.Unmarshal([]byte(p.Fields), &fields), json.Unmarshal([]byte(p.Kept), &kept)); err != nil {
		return "", fmt.Errorf("reading product %s: %w", p.ProductKey, err)
	}
	var b strings.Builder
	day := func(t time.Time) string { return t.Format(time.RFC3339) }
	fmt.Fprintf(&b, "%s/%s  %s\n  %s\n  first seen %s, last seen %s, changed %s\n", p.Site, p.ProductKey, p.State, p.URL, day(p.FirstSeen), day(p.LastSeen), day(p.ChangedAt))
	if p.GoneAt != nil {
		fmt.Fprintf(&b, "  gone since %s\n", day(*p.GoneAt))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "  %-22s %s", name, fields[name])
		if at, ok := kept[name]; ok {
			fmt.Fprintf(&b, "  (an earlier value: its page lacks it since %s)", day(db.Time(at)))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// Text writes a change for a person, on one line.
func (c ChangeRow) Text() string {
	value := func(v *string) string {
		if v == nil {
			return "(none)"
		}
		return *v
	}
	return fmt.Sprintf("%s  %s/%s  %s: %s -> %s  (run %s)\n", c.ChangedAt.Format(time.RFC3339), c.Site, c.ProductKey, c.Field, value(c.Was), value(c.Became), c.RunID)
}
