package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/removal"
	out "github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

// productRow is a product of a site.
type productRow struct {
	Site        string     `parquet:"site,dict" doc:"the site's name"`
	ProductKey  string     `parquet:"product_key" doc:"the value of the field that identifies it"`
	URL         string     `parquet:"url" doc:"its page"`
	State       string     `parquet:"state,dict" doc:"by the latest crawl: new, changed, unchanged, gone, or back: it was gone"`
	FirstSeen   time.Time  `parquet:"first_seen,timestamp(microsecond)" doc:"when it was found"`
	LastSeen    time.Time  `parquet:"last_seen,timestamp(microsecond)" doc:"when its page was read last"`
	ChangedAt   time.Time  `parquet:"changed_at,timestamp(microsecond)" doc:"when its fields became what they are"`
	GoneAt      *time.Time `parquet:"gone_at,optional,timestamp(microsecond)" doc:"since when it is gone; null: it is not"`
	Fields      out.JSON   `parquet:"fields,json" doc:"the site's fields by name; money is {\"amount\", \"currency\"}"`
	Kept        out.JSON   `parquet:"kept,json" doc:"fields that its page lacks, whose value is an earlier one, with the microseconds since 1970 from which on"`
	ContentHash string     `parquet:"content_hash" doc:"of its fields"`
	Tags        []string   `parquet:"tags,list" doc:"what --tag-url's model says of it"`
}

// imageRow is an image that a product names, or named.
type imageRow struct {
	Site       string     `parquet:"site,dict" doc:"the site's name"`
	ProductKey string     `parquet:"product_key" doc:"the product"`
	URL        string     `parquet:"url" doc:"the image's address"`
	Field      string     `parquet:"field,dict" doc:"the product's field that names it"`
	Position   int64      `parquet:"position" doc:"among the product's images, from 1"`
	FirstSeen  time.Time  `parquet:"first_seen,timestamp(microsecond)" doc:"when the product named it first"`
	LastSeen   time.Time  `parquet:"last_seen,timestamp(microsecond)" doc:"when the product named it last"`
	GoneAt     *time.Time `parquet:"gone_at,optional,timestamp(microsecond)" doc:"since when the product no longer names it; null: it does"`
	Hash       string     `parquet:"hash" doc:"SHA-256 of its bytes, which are the store's object images/sha256/ab/abcd….jpg; empty: they were never received"`
	Type       string     `parquet:"type,dict" doc:"by its bytes: image/jpeg, image/png, image/gif, image/webp or image/avif"`
	Bytes      int64      `parquet:"bytes" doc:"its size"`
	Width      int64      `parquet:"width" doc:"pixels"`
	Height     int64      `parquet:"height" doc:"pixels"`
	FetchedAt  *time.Time `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"when its bytes were received; null: never"`
	Failure    string     `parquet:"failure" doc:"why the last request for it brought nothing; empty: it did"`
}

// changeRow is a change of a product's value.
type changeRow struct {
	Site       string    `parquet:"site,dict" doc:"the site's name"`
	ProductKey string    `parquet:"product_key" doc:"the product"`
	ChangedAt  time.Time `parquet:"changed_at,timestamp(microsecond)" doc:"when"`
	Field      string    `parquet:"field,dict" doc:"name of the field; _state: it was gone, or came back"`
	Was        *string   `parquet:"was,optional" doc:"the value before, as JSON text; null: it had none"`
	Became     *string   `parquet:"became,optional" doc:"the value since then, as JSON text; null: it has none"`
	RunID      string    `parquet:"run_id,dict" doc:"the run that saw it"`
}

// Rows are the kinds of rows that the job finds.
func Rows() []out.What {
	finds := Finds()
	of := out.What{Job: Job, Version: 1, Filters: []string{"site", "since"}, Migrate: Migrate, Names: sitesThere}
	products, changes, images := of, of, of
	products.Name, products.About, products.Since = "products", "The products of sites.", "when the product changed or was gone"
	products.Table, products.Find, products.Changed = "SITE KEY=product_key STATE CHANGED=changed_at URL", &finds, changedProducts
	products.Diff = diffRows
	products.Event = &out.Event{Type: "product.changed", Subject: "url", ID: []string{"site", "product_key", "changed_at", "gone_at"}, Back: "last_seen"}
	changes.Name, changes.About, changes.Since = "product-history", "Each change of a value of those products.", "when the value changed"
	changes.Table = "SITE KEY=product_key AT=changed_at FIELD WAS… BECAME…"
	images.Name, images.About = "product-images", "The images of those products, whose bytes --images keeps in the store."
	images.Since = "when the product named it, the bytes were received, or the product named it no longer"
	images.Table = "SITE KEY=product_key TYPE BYTES URL FAILURE…"
	images.Failed = func(r explore.Record) bool { return r.Column("failure").Value != "" }
	return []out.What{out.InDB(products, productRows), out.InDB(changes, changeRows), out.InDB(images, productImages)}
}

func changedProducts(ctx context.Context, src out.Source) iter.Seq2[out.Change, error] {
	return out.Map(productRows(ctx, src.DB, out.Filter{Since: src.Since}), func(p productRow) out.Change {
		kind := out.KindOf(!p.FirstSeen.Before(src.Since), p.GoneAt != nil)
		if kind == "changed" && p.State == "back" {
			kind = p.State
		}
		return out.Change{Kind: kind, Source: p.Site, Item: p.ProductKey, What: p.URL}
	})
}

// productRows yields products by site and key.
func productRows(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[productRow, error] {
	return out.Select[productRow](ctx, d, f, "site", "changed_at >= $3 OR gone_at >= $3 OR state = 'back' AND last_seen >= $3",
		`SELECT site, product_key, url, state, first_seen, last_seen, changed_at, gone_at, detail, kept, content_hash,
		COALESCE((SELECT t.tags FROM catalog_tags t WHERE t.site = catalog_products.site AND t.product_key = catalog_products.product_key), '[]') FROM catalog_products
		WHERE %s ORDER BY site, product_key`)
}

// changeRows yields the changes of products' values by site, product and time.
func changeRows(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[changeRow, error] {
	return changesBy(ctx, d, f, "site, product_key, changed_at, field")
}

func changesBy(ctx context.Context, d *db.DB, f out.Filter, order string) iter.Seq2[changeRow, error] {
	return out.Select[changeRow](ctx, d, f, "site", "changed_at >= $3", `SELECT site, product_key, changed_at, field, was, became, run_id FROM catalog_changes
		WHERE %s ORDER BY `+order)
}

// productImages yields the images of products by site, product and position.
func productImages(ctx context.Context, d *db.DB, f out.Filter) iter.Seq2[imageRow, error] {
	return out.Select[imageRow](ctx, d, f, "site", "changed_at >= $3 OR fetched_at >= $3",
		`SELECT site, product_key, url, field, position, first_seen, last_seen, gone_at, hash, type, bytes, width, height, fetched_at, failure FROM (
		SELECT n.site, n.product_key, n.url, n.field, n.position, n.first_seen, n.last_seen, n.gone_at, COALESCE(i.hash, '') AS hash, COALESCE(i.type, '') AS type, COALESCE(i.bytes, 0) AS bytes,
			COALESCE(i.width, 0) AS width, COALESCE(i.height, 0) AS height, i.fetched_at, COALESCE(i.failure, '') AS failure,
			CASE WHEN n.gone_at > n.first_seen THEN n.gone_at ELSE n.first_seen END AS changed_at
		FROM catalog_product_images n LEFT JOIN catalog_images i ON i.site = n.site AND i.url = n.url) AS images WHERE %s ORDER BY site, product_key, position, url`)
}

// sitesThere returns the names of the sites that the database knows.
func sitesThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT site FROM catalog_crawls ORDER BY site`)
}

// ErrNoProduct means that the database has no such product or site.
var ErrNoProduct = errors.New("the database has no product of it")

// maxChanges is the maximum number of changes that History returns.
const maxChanges = 1000

// History returns the latest changes, newest first: of all sites, of one site, or of one
// product. In the last case it returns the product too.
func History(ctx context.Context, d *db.DB, site, key string) (p *productRow, changes []changeRow, err error) {
	of := out.Filter{Look: db.Look{Equal: append(explore.Chosen("site", site), explore.Chosen("product_key", key)...), Limit: 1}}
	if site != "" {
		found, err := explore.One(productRows(ctx, d, of))
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
func (p productRow) Text() (string, error) {
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
func (c changeRow) Text() string {
	value := func(v *string) string {
		if v == nil {
			return "(none)"
		}
		return *v
	}
	return fmt.Sprintf("%s  %s/%s  %s: %s -> %s  (run %s)\n", c.ChangedAt.Format(time.RFC3339), c.Site, c.ProductKey, c.Field, value(c.Was), value(c.Became), c.RunID)
}

// diffRow is a difference between two times: of a product, or of one of its fields.
type diffRow = out.Diff

// diffRows yields how products differ between two times, by site, product and field. What
// changed and changed back in between is no difference.
func diffRows(ctx context.Context, d *db.DB, from, to time.Time) iter.Seq2[diffRow, error] {
	// A new product has one row without a field. The others have a row for each change.
	steps := db.Select(ctx, d, func(r *sql.Rows) (s diffStep, err error) {
		return s, r.Scan(&s.Site, &s.ProductKey, &s.URL, &s.Field, &s.at, &s.first, &s.Was, &s.Became)
	}, `SELECT site, product_key, url, '' AS field, first_seen AS at, first_seen, NULL AS was, NULL AS became FROM catalog_products WHERE first_seen > $1 AND first_seen <= $2
		UNION ALL SELECT c.site, c.product_key, p.url, c.field, c.changed_at, p.first_seen, c.was, c.became FROM catalog_changes c
			JOIN catalog_products p ON p.site = c.site AND p.product_key = c.product_key WHERE c.changed_at > $1 AND c.changed_at <= $2
		ORDER BY site, product_key, field, at`, db.Micros(from), db.Micros(to))
	return func(yield func(diffRow, error) bool) {
		var product []diffStep // of one product
		flush := func() bool {
			for _, row := range differences(product, db.Micros(from)) {
				if !yield(row, nil) {
					return false
				}
			}
			product = product[:0]
			return true
		}
		for s, err := range steps {
			if err != nil {
				yield(diffRow{}, err)
				return
			}
			if len(product) > 0 && (product[0].Site != s.Site || product[0].ProductKey != s.ProductKey) && !flush() {
				return
			}
			product = append(product, s)
		}
		flush()
	}
}

// diffStep is one change of a product.
type diffStep struct {
	diffRow
	at, first int64 // when; when the product was found
}

// differences makes the steps of one product, by field and time, its differences.
func differences(steps []diffStep, from int64) (all []diffRow) {
	isNew := len(steps) > 0 && steps[0].first > from
	gone := false
	var fields []diffRow
	for i := 0; i < len(steps); {
		last := i
		for last+1 < len(steps) && steps[last+1].Field == steps[i].Field {
			last++
		}
		row := steps[i].diffRow
		row.Became = steps[last].Became
		switch {
		case row.Field == stateField:
			was, is := isText(row.Was, stateGone), isText(row.Became, stateGone)
			gone = is
			if was != is && !isNew {
				row.Kind, row.Field, row.Was, row.Became = stateBack, "", nil, nil
				if is {
					row.Kind = stateGone
				}
				all = append(all, row)
			}
		case row.Field != "" && !isNew && (row.Was == nil || row.Became == nil || *row.Was != *row.Became):
			row.Kind = stateChanged
			fields = append(fields, row)
		}
		i = last + 1
	}
	if isNew && !gone {
		row := steps[0].diffRow
		return []diffRow{{Kind: stateNew, Site: row.Site, ProductKey: row.ProductKey, URL: row.URL}}
	}
	return append(all, fields...)
}

func isText(v *string, text string) bool { return v != nil && *v == *quoted(text) }

// Removal says what is kept of a site.
func Removal() removal.What {
	return removal.What{Job: Job, Kind: "site", Migrate: Migrate, Objects: Images.Objects, Hosts: "catalog_hosts", Lease: Job + "/", Tables: removal.Rows("site",
		"catalog_products", "catalog_changes", "catalog_tags", "catalog_product_images", "catalog_images", "catalog_tasks", "catalog_crawls")}
}

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
				func(l db.Look) iter.Seq2[productRow, error] { return productRows(ctx, src.DB, out.Filter{Look: l}) },
				func(p productRow) []string { return []string{p.Site, p.ProductKey} }, productItem)
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
	p, err := explore.One(productRows(ctx, src.DB, out.Filter{Look: look}))
	if err != nil {
		return item, err
	}
	items := []explore.Item{productItem(p)}
	if err := addPrices(ctx, src.DB, items); err != nil {
		return item, err
	}
	item = items[0]
	history, err := out.Part("history", "History", []string{"changed_at", "field", "was", "became", "run_id"}, changeRows(ctx, src.DB, out.Filter{Look: look}), "No value of it has changed.")
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

func productItem(p productRow) explore.Item {
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
