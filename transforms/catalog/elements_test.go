package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// The digits of different elements are never read as one number.
func TestDigitsOfElements(t *testing.T) {
	for _, tt := range cases.Table[[]struct{ Kind, Locale, Of, Want string }](t, "digits.yaml") {
		r := compiled(t, fmt.Sprintf(`
name: shop
locale: %q
timezone: Europe/Berlin
list: {url: "https://shop.test/?page={page}", last_page: {selector: .last}, product_link: {selector: a}}
key: id
fields:
  id: {selector: "#id"}
  v: {selector: "#v", type: %s}
  first: {selector: "#v", type: %[2]s, regexp: '^\D*(\d\d)', optional: true}`, tt.Locale, tt.Kind))
		p, err := r.readDetail("https://shop.test/1", `<p id="id">1</p><div id="v">`+tt.Of+`</div>`, "")
		require.NoError(t, err)
		if tt.Want == "" {
			assert.NotContains(t, p.Fields, "v", "%s %s", tt.Kind, tt.Of)
			continue
		}
		assert.Equal(t, tt.Want, fmt.Sprint(p.Fields["v"]), "%s %s", tt.Kind, tt.Of)
	}
}

// A text that was refused names what it may mean.
func TestReadingsAreNamed(t *testing.T) {
	for _, tt := range []struct{ kind, locale, of, want string }{
		{"money", "", `14<sup>99</sup> €`, "may be 14.99, or 14 and 99"},
		{"money", "de-DE", `14<i>99</i> €`, "may be 14.99, 1499, or 14 and 99"},
		{"number", "de-DE", `14<sup>99</sup>`, "may be 14.99, 1499, or 14 and 99"},
		{"money", "de-DE", `<s>25,00 €</s> <b>19<sup>90</sup> €</b>`, "may be 25,00 or 19,90:"},
		{"money", "ja-JP", `<del>19</del><ins>150</ins> 円`, "may be 19150, or 19 and 150"},
		{"money", "ja-JP", `14<sup>99</sup> 円`, "may be 1499, or 14 and 99, and JPY has no cents"},
	} {
		r := compiled(t, fmt.Sprintf("name: shop\nlocale: %q\nlist: {url: \"https://shop.test/\", product_link: {selector: a}}\nkey: id\nfields: {id: {selector: \"#id\"}, v: {selector: \"#v\", type: %s}}", tt.locale, tt.kind))
		p, err := r.readDetail("https://shop.test/1", `<p id="id">1</p><div id="v">`+tt.of+`</div>`, "")
		require.NoError(t, err)
		require.Len(t, p.lacks, 1, tt.of)
		assert.Contains(t, p.lacks[0].why, tt.want)
	}
}

// Structured data is read as programs write numbers, unless the field's own locale says otherwise.
func TestLocaleOfStructuredData(t *testing.T) {
	for _, tt := range []struct{ locale, price, want string }{
		{"", `"1.299,90"`, "map[]"},
		{"", `"1299.90"`, "map[money:{1299.9 EUR} offers:[map[price:1299.9]] price:1299.9]"},
		{"", `1,299.00`, "map[money:{1299 EUR} offers:[map[price:1299]] price:1299]"},
		{"de-DE", `"1.299,90"`, "map[money:{1299.9 EUR} offers:[map[price:1299.9]] price:1299.9]"},
		{"de-DE", `"1,299.90"`, "map[]"},
		{"de-DE", `1.299`, "map[money:{1299 EUR} offers:[map[price:1299]] price:1299]"},
	} {
		r := compiled(t, fmt.Sprintf(`
name: shop
locale: fr-FR
list: {url: "https://shop.test/", product_link: {selector: a}}
key: id
fields:
  id: {from: structured, path: sku}
  price: {from: structured, path: "offers[0].price", type: number, locale: %q}
  money: {from: structured, path: "offers[0].money", type: money, locale: %[1]q}
  offers: {from: structured, path: offers, type: group, many: true, locale: %[1]q, fields: {price: {path: price, type: number}}}`, tt.locale))
		p, err := r.readDetail("https://shop.test/1", `<script type="application/ld+json">{"@type":"Product","sku":"K","offers":{"price":`+tt.price+`,"priceCurrency":"EUR"}}</script>`, "")
		require.NoError(t, err)
		delete(p.Fields, "id")
		assert.Equal(t, tt.want, fmt.Sprint(p.Fields), "%s %s", tt.locale, tt.price)
	}
}
