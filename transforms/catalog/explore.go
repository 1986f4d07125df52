package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	out "github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

const (
	// maxHistory is how many changes of a product are shown.
	maxHistory = 500
	// maxPriceChanges is how many changes of all products of a list are drawn.
	maxPriceChanges = 20_000
	// maxTitle is how many bytes of a product's name are its title.
	maxTitle = 200
)

// bySite are the fields of a search that a list is counted by.
var bySite = []explore.By{{Field: "site", Column: "site"}, {Field: "state", Column: "state"}}

// Finds are the products, for those who look at one.
func Finds() explore.Kind {
	site := explore.Field{Name: "site", Label: "Site", Hint: "its name in the configuration"}
	one := site
	one.Required = true
	return explore.Kind{Name: "products", Title: "Products", One: "product", SQL: true,
		About: "Products of sites by a part of their key, their URL or their fields, each with its history.",
		Fields: []explore.Field{{Name: "text", Label: "Text in the key, the URL or a field"}, site,
			{Name: "state", Label: "State", Choices: productStates, About: "By the latest crawl."}},
		Keys:  []explore.Field{one, {Name: "product", Label: "Product", Required: true}},
		Shown: []string{"site", "product_key", "state", "changed_at", "last_seen"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.ChosenBy(q, bySite...), Text: q["text"], Columns: []string{"product_key", "url", "detail"}}
			list, err := explore.Rows(ctx, src.DB, "catalog_products", q, look, []db.Match{{Column: "site"}, {Column: "product_key"}},
				func(l db.Look) iter.Seq2[ProductRow, error] { return Products(ctx, src.DB, out.Filter{Look: l}) },
				func(p ProductRow) []string { return []string{p.Site, p.ProductKey} }, productItem)
			if err != nil {
				return list, err
			}
			return list, addPrices(ctx, src.DB, list.Items)
		},
		Count: countProducts,
		Show:  showProduct,
	}
}

func showProduct(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
	look := db.Look{Equal: []db.Match{{Column: "site", Value: q["site"]}, {Column: "product_key", Value: q["product"]}}, Limit: maxHistory}
	p, err := explore.One(Products(ctx, src.DB, out.Filter{Look: look}))
	if err != nil {
		return item, err
	}
	items := []explore.Item{productItem(p)}
	if err := addPrices(ctx, src.DB, items); err != nil {
		return item, err
	}
	item = items[0]
	history, err := out.Part("history", "History", []string{"changed_at", "field", "was", "became", "run_id"}, Changes(ctx, src.DB, out.Filter{Look: look}), "No value of it has changed.")
	if err != nil {
		return item, err
	}
	if len(history.Rows) == maxHistory {
		history.Note = "Its first 500 changes; export has all."
	}
	images, err := out.Part("images", "Images", []string{"position", "url", "type", "width", "height", "bytes", "gone_at", "failure"}, productImages(ctx, src.DB, out.Filter{Look: look}),
		"None: its page names none, or its site is crawled without --images.")
	if err != nil {
		return item, err
	}
	item.Parts = []explore.Part{history, images}
	return item, nil
}

func productItem(p ProductRow) explore.Item {
	item := explore.Item{Key: explore.Query{"site": p.Site, "product": p.ProductKey}, Title: p.ProductKey, Record: out.Record(p),
		URL: p.URL, At: p.LastSeen, Failures: p.URL}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Fields), &fields) != nil {
		return item // it has no name then
	}
	for _, name := range []string{"title", "name", "product_name"} {
		if text := ""; json.Unmarshal(fields[name], &text) == nil && strings.TrimSpace(text) != "" {
			item.Title = untrusted.Line(text, maxTitle)
			break
		}
	}
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range append([]string{"price"}, names...) {
		if v, ok := priceOf(name, fields[name]); ok {
			item.Series = &explore.Series{Name: name, Unit: v.Currency,
				Points: []explore.Point{{At: p.FirstSeen, Value: v.Amount}, {At: p.LastSeen, Value: v.Amount}}}
			break
		}
	}
	return item
}

// priceOf reads a price: money, or a number in a field that is named price.
func priceOf(field string, text []byte) (v value.Amount, ok bool) {
	if json.Unmarshal(text, &v) == nil && v.Currency != "" {
		return v, true
	}
	v = value.Amount{}
	var n *float64
	if field != "price" || json.Unmarshal(text, &n) != nil || n == nil {
		return v, false
	}
	return value.Amount{Amount: *n}, true
}

// addPrices adds the earlier prices of products, of which their series have the present one.
func addPrices(ctx context.Context, d *db.DB, items []explore.Item) error {
	by, among := map[[2]string]*explore.Series{}, []string{}
	var args []any
	for _, item := range items {
		if s := item.Series; s != nil {
			by[[2]string{item.Key["site"], item.Key["product"]}] = s
			args = append(args, item.Key["site"], item.Key["product"], s.Name)
			among = append(among, fmt.Sprintf(`site = CAST($%d AS TEXT) AND product_key = CAST($%d AS TEXT) AND field = CAST($%d AS TEXT)`, len(args)-2, len(args)-1, len(args)))
		}
	}
	if len(by) == 0 {
		return nil
	}
	type step struct {
		of          [2]string
		at          int64
		was, became sql.NullString
	}
	for c, err := range db.Select(ctx, d, func(r *sql.Rows) (c step, err error) {
		return c, r.Scan(&c.of[0], &c.of[1], &c.at, &c.was, &c.became)
	}, fmt.Sprintf(`SELECT site, product_key, changed_at, was, became FROM catalog_changes WHERE %s ORDER BY changed_at DESC LIMIT %d`,
		strings.Join(among, " OR "), maxPriceChanges), args...) { // the newest first: each change says what was before it
		if err != nil {
			return fmt.Errorf("looking up earlier prices: %w", err)
		}
		s := by[c.of]
		if v, ok := priceOf(s.Name, []byte(c.became.String)); ok && v.Currency == s.Unit {
			s.Points = slices.Insert(s.Points, 1, explore.Point{At: db.Time(c.at), Value: v.Amount})
		}
		if v, ok := priceOf(s.Name, []byte(c.was.String)); ok && v.Currency == s.Unit {
			s.Points[0].Value = v.Amount
		}
	}
	return nil
}

// countProducts counts products by site and state.
func countProducts(ctx context.Context, src explore.Source, q explore.Query) (c explore.Counts, err error) {
	c.At = src.DB.Now()
	groups, facets, err := explore.GroupsOf(ctx, src.DB, explore.Counted{From: "catalog_products", Newest: "last_seen"}, q, bySite...)
	if c.Facets = facets; err != nil || facets == nil {
		return c, err
	}
	c.Picture = &explore.Picture{Title: "Products by site and state", Row: "site", Column: "state", Columns: productStates,
		Measures: []explore.Measure{{Name: "products", Title: "Products"}}}
	for _, g := range groups {
		if i := slices.Index(productStates, g.Values[1]); i >= 0 {
			c.Picture.Add(g.Values[0], i, "products", g.N).See(g.Newest)
		}
	}
	return c, nil
}

var productStates = []string{stateNew, stateChanged, stateUnchanged, stateGone, stateBack}
