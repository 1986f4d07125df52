package catalog

import (
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/structured"
)

// The limits of what a page says for machines about its product.
const (
	maxItemDepth  = 6 // of items in items, which may name each other in a circle
	maxItemValues = 5000
)

// described returns what the page says about its product for machines, as JSON: the names
// of structured.Product in small letters, and in item all of schema.org's properties.
func (p *page) described() *page {
	if p.machine == nil {
		p.machine = &page{}
		if product, ok := structured.Read(p.root).Product(); ok {
			left := maxItemValues
			p.machine.data = productData(product, &left)
		}
	}
	return p.machine
}

func productData(p structured.Product, left *int) map[string]any {
	out := texts("name", p.Name, "description", p.Description, "sku", p.SKU, "gtin", p.GTIN, "mpn", p.MPN, "brand", p.Brand, "category", p.Category, "url", p.URL,
		"rating", p.Rating, "rating_count", p.RatingCount, "reviews", p.Reviews)
	var images []any
	for _, s := range p.Images {
		images = append(images, s)
	}
	var offers, variants []any
	for _, o := range p.Offers {
		money := ""
		if o.Price != "" {
			money = strings.TrimSpace(o.Price + " " + o.Currency)
		}
		offers = append(offers, texts("price", o.Price, "low", o.Low, "high", o.High, "currency", o.Currency, "money", money, "availability", o.Availability, "condition", o.Condition,
			"url", o.URL, "seller", o.Seller, "sku", o.SKU, "expiry", o.Expiry))
	}
	for _, v := range p.Variants {
		variants = append(variants, productData(v, left))
	}
	out["images"], out["offers"], out["variants"] = images, offers, variants
	if p.Item != nil {
		out["item"] = itemData(p.Item, maxItemDepth, left)
	}
	return out
}

// texts makes an object of names and texts, without empty ones.
func texts(pairs ...string) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

// itemData makes an object of an item: a property with one value is that value, else an array.
func itemData(it *structured.Item, depth int, left *int) map[string]any {
	out := map[string]any{}
	for _, name := range it.Names() {
		var all []any
		for _, v := range it.Values(name) {
			if *left--; *left < 0 {
				return out
			}
			switch {
			case v.Item == nil:
				all = append(all, v.Text)
			case depth > 0:
				all = append(all, itemData(v.Item, depth-1, left))
			}
		}
		switch len(all) {
		case 0:
		case 1:
			out[name] = all[0]
		default:
			out[name] = all
		}
	}
	return out
}
