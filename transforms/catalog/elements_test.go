package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The digits of different elements are never read as one number.
func TestDigitsOfElements(t *testing.T) {
	for _, tt := range []struct{ kind, locale, of, want string }{
		{"money", "fr-FR", `<span>14</span><sup>99</sup><span>€</span>`, "{14.99 EUR}"},
		{"money", "de-DE", `1.299<sup>00</sup> €`, "{1299 EUR}"},
		{"money", "en-US", `US$14 <sup><small>99</small></sup>`, "{14.99 USD}"},
		{"money", "de-DE", `14,<sup>99</sup> €`, "{14.99 EUR}"},
		{"money", "fr-FR", `14€<sup>99</sup>`, "{14.99 EUR}"},
		{"money", "fr-FR", `<b>1 249<span>€</span></b><sup>90</sup> TTC`, "{1249.9 EUR}"},
		{"money", "en-US", `<sup>US$</sup><b>3</b><span><sup>49</sup></span>`, "{3.49 USD}"},
		{"money", "cs-CZ", `<b>1 299</b><sup>00</sup> Kč`, "{1299 CZK}"},
		{"money", "de-DE", `19,90 €<sup>1</sup>`, ""},
		{"money", "de-DE", `19 €<sup>12</sup>`, "{19.12 EUR}"},
		{"money", "de-DE", `<span>14</span><span class="cents">99</span> €`, ""},
		{"money", "fr-FR", `14<span>€</span>99`, ""},
		{"money", "de-DE", `<s>25,00 €</s><b>19,90 €</b>`, ""},
		{"money", "de-DE", `19,90 €<small>1,99 €/100 g</small>`, ""},
		{"money", "ar-KW", `5<sup>25</sup> KWD`, ""},
		{"money", "", `14<sup>99</sup> €`, ""},
		{"money", "ja-JP", `14<sup>99</sup> 円`, ""},
		{"money", "de-DE", `14,50<sup>99</sup> €`, ""},
		{"money", "de-DE", `14<sup>9</sup> €`, ""},
		{"money", "de-DE", `14<sup>995</sup> €`, ""},
		{"number", "de-DE", `14<sup>99</sup>`, ""},
		{"number", "de-DE", `2,5<sup>1</sup>`, ""},
		{"money", "de-DE", `<del>19</del><ins>15</ins> €`, ""},
		{"money", "fr-FR", `<s>19</s> <b>150</b> €`, ""},
		{"money", "fr-FR", `19<br>150 €`, ""},
		{"money", "fr-FR", "<p>19</p>\n<p>150 €</p>", ""},
		{"money", "de-DE", `<span class="old">19,00</span><span>15,00</span> €`, ""},
		{"money", "en-US", `<span hidden>$14.99</span><span aria-hidden="true">14.99</span>`, ""},
		{"number", "en-US", `<span>1</span><span>,</span><span>299</span>`, "1299"},
		{"number", "en-US", `<span>1</span><span>299</span>`, ""},
		{"number", "en-US", `1<wbr>299<!-- -->.5`, "1299.5"},
		{"number", "fr-FR", `<b>1 299</b><i>,5</i>`, "1299.5"},
		{"integer", "en-US", `<b>1</b><b>2</b>`, ""},
		{"quantity", "en-US", `<b>2.5</b><i>kg</i><sup>1</sup>`, ""},
		{"quantity", "en-US", `<b>2.5</b> m<sup>2</sup>`, "{2.5 m²}"},
		{"date", "en-US", `<b>March</b> <b>5</b> <b>2026</b>`, "2026-03-05"},
		{"date", "de-DE", `<b>1</b><b>2</b>.3.2026`, ""},
		{"date", "de-DE", `<b>5.3.2026</b><b>6.3.2026</b>`, ""},
		{"time", "de-DE", `<b>5.3.2026</b> <b>14:05</b>`, "2026-03-05T14:05:00+01:00"},
		{"text", "de-DE", `<b>AB1</b><b>2</b>`, "AB12"},
	} {
		r := compiled(t, fmt.Sprintf(`
name: shop
locale: %q
timezone: Europe/Berlin
list: {url: "https://shop.test/?page={page}", last_page: {selector: .last}, product_link: {selector: a}}
key: id
fields:
  id: {selector: "#id"}
  v: {selector: "#v", type: %s}
  first: {selector: "#v", type: %[2]s, regexp: '^\D*(\d\d)', optional: true}`, tt.locale, tt.kind))
		p, err := r.readDetail("https://shop.test/1", `<p id="id">1</p><div id="v">`+tt.of+`</div>`, "")
		require.NoError(t, err)
		if tt.want == "" {
			assert.NotContains(t, p.Fields, "v", "%s %s", tt.kind, tt.of)
			continue
		}
		assert.Equal(t, tt.want, fmt.Sprint(p.Fields["v"]), "%s %s", tt.kind, tt.of)
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
