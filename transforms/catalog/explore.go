package catalog

import (
	"context"
	"iter"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	out "github.com/newsfork/seed-engine/io/rows"
)

// maxHistory is how many changes of a product are shown.
const maxHistory = 500

// Finds are the products, for those who look at one.
func Finds() explore.Kind {
	site := explore.Field{Name: "site", Label: "Site", Hint: "its name in the configuration"}
	one := site
	one.Required = true
	return explore.Kind{Name: "products", Title: "Products", One: "product", SQL: true, About: "Products of sites by a part of their key, their URL or their fields, each with its history.",
		Fields: []explore.Field{{Name: "text", Label: "Text in the key, the URL or a field"}, site},
		Keys:   []explore.Field{one, {Name: "product", Label: "Product", Required: true}},
		Shown:  []string{"site", "state", "changed_at", "last_seen", "url"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (explore.List, error) {
			look := db.Look{Equal: explore.Chosen("site", q["site"]), Text: q["text"], Columns: []string{"product_key", "url", "detail"}}
			return explore.Rows(ctx, src.DB, "catalog_products", q, look, []db.Match{{Column: "site"}, {Column: "product_key"}}, func(l db.Look) iter.Seq2[ProductRow, error] { return Products(ctx, src.DB, out.Filter{Look: l}) },
				func(p ProductRow) []string { return []string{p.Site, p.ProductKey} }, productItem)
		},
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
			look := db.Look{Equal: []db.Match{{Column: "site", Value: q["site"]}, {Column: "product_key", Value: q["product"]}}, Limit: maxHistory}
			p, err := explore.One(Products(ctx, src.DB, out.Filter{Look: look}))
			if err != nil {
				return item, err
			}
			item = productItem(p)
			history, err := out.Part("history", "History", []string{"changed_at", "field", "was", "became", "run_id"}, Changes(ctx, src.DB, out.Filter{Look: look}), "No value of it has changed.")
			if err != nil {
				return item, err
			}
			if len(history.Rows) == maxHistory {
				history.Note = "Its first 500 changes; export has all."
			}
			images, err := out.Part("images", "Images", []string{"position", "url", "type", "width", "height", "bytes", "gone_at", "failure"}, ProductImages(ctx, src.DB, out.Filter{Look: look}),
				"None: its page names none, or its site is crawled without --images.")
			if err != nil {
				return item, err
			}
			item.Parts = []explore.Part{history, images}
			return item, nil
		},
	}
}

func productItem(p ProductRow) explore.Item {
	return explore.Item{Key: explore.Query{"site": p.Site, "product": p.ProductKey}, Title: p.ProductKey, Record: out.Record(p), URL: p.URL, At: p.LastSeen, Failures: p.URL}
}
