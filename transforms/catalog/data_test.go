package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A number of JSON keeps all of its digits, and can be compared where that is exact.
func TestPaths(t *testing.T) {
	t.Parallel()
	f := func(expression, text string, want ...scalar) {
		t.Helper()
		q, err := compilePath(expression)
		require.NoError(t, err)
		data, err := parseJSON(text)
		require.NoError(t, err)
		assert.Equal(t, want, slices.Collect(q.scalars(data)), expression)
	}
	f("a", `{"a": 12345678901234567890}`, scalar{"12345678901234567890", true})
	f("a", `{"a": 12.50}`, scalar{"12.50", true})
	f("a", `{"a": 0.1}`, scalar{"0.1", true})
	f("a", `{"a": 1e3}`, scalar{"1e3", true})
	f("a", `{"a": null}`)
	f("a", `{"a": {"b": 1}}`)
	f("a", `{"a": ["x", [true, null, {"y": 1}]]}`, scalar{text: "x"}, scalar{text: "true"})
	f("a[?n > `2`].n", `{"a": [{"n": 1}, {"n": 3}, {}, null]}`, scalar{"3", true})
	f("variants[?sku=='b'].price | [0]", `{"variants": [{"sku": "a", "price": 1}, {"sku": "b", "price": 2}]}`, scalar{"2", true})
	f("max_by(a, &n).n", `{"a": [{"n": 1}, null]}`) // an error of the expression is no value
	for _, bad := range []string{`{"a": 1} x`, `{"a": 1`, "", "<html>"} {
		_, err := parseJSON(bad)
		assert.ErrorContains(t, err, "parsing JSON", bad)
	}
}

func FuzzPaths(f *testing.F) {
	f.Add("a[?b > `1`].c | [0]", `{"a": [{"b": 2, "c": 3}, null]}`)
	f.Add("max_by(a, &b)", `{"a": [null, 1]}`)
	f.Add("join(',', a[].b)", `{"a": [{"b": 1e99}]}`)
	f.Add("a[1:9:2].*.b[]", `{"a": [[], {"c": {"b": [1]}}]}`)
	f.Fuzz(func(t *testing.T, expression, text string) {
		q, err := compilePath(expression)
		if err != nil {
			return
		}
		data, err := parseJSON(text)
		if err != nil {
			return
		}
		before, err := json.Marshal(data)
		require.NoError(t, err)
		for s := range q.scalars(data) {
			assert.True(t, !s.plain || json.Valid([]byte(s.text)), "%q is no number", s.text)
		}
		after, err := json.Marshal(data)
		assert.True(t, err == nil && string(after) == string(before), "%q changes its data", expression)
	})
}

// Selectors run in HTML that a text of JSON has, in a product's fields and in the parts of
// a group; --try says what such HTML lacks.
func TestHTMLInJSON(t *testing.T) {
	t.Parallel()
	s, err := ParseSite([]byte(`
name: shop
locale: de-DE
list: {url: "https://shop.example/", format: json, rows: {path: "items[].card", selector: div}, product_link: {selector: a}}
detail: {format: json}
key: id
fields:
  id: {path: id}
  badge: {from: row, selector: .badge}
  weight: {path: body, selector: ".weight", type: number}
  manual: {path: body, selector: a.manual, type: url}
  color: {path: body, selector: "[data-color]", attribute: data-color, regexp: "^\\w+"}
  sizes:
    path: "blocks[].html"
    selector: tr
    type: group
    many: true
    fields:
      name: {selector: th}
      picture: {selector: img, type: image}
  none: {path: body, selector: .none, optional: true}
`))
	require.NoError(t, err)
	r, err := s.compile()
	require.NoError(t, err)
	list, err := r.readList("https://shop.example/", `{"items": [{"card": "<div><a href=/p/1>A</a><b class=badge>new</b></div>"}, {"card": "<div><a href='/p/2'>B</a></div>"}, {"card": 7}]}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"https://shop.example/p/1", "https://shop.example/p/2"}, list.products)
	const page = `{"id": 1, "body": "<p class=weight>2,5 kg</p><a class=manual href='m.pdf'>x</a><i data-color='red and blue'></i>",
		"blocks": [{"html": "<tr><th>S<td><img src=/s.jpg>"}, {"html": "<tr><th>M</tr><tr><th>L"}]}`
	p, err := r.readDetail("https://shop.example/p/1", page, list.rows["https://shop.example/p/1"])
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"id": "1", "badge": json.RawMessage(`"new"`), "weight": 2.5, "manual": "https://shop.example/p/m.pdf", "color": "red",
		"sizes": []any{map[string]any{"name": "S", "picture": "https://shop.example/s.jpg"}, map[string]any{"name": "M"}, map[string]any{"name": "L"}}}, p.Fields)
	trial, err := r.try("https://shop.example/p/1", "https://shop.example/p/1", page)
	require.NoError(t, err)
	for _, f := range trial.Fields {
		if f.Name == "none" {
			assert.Equal(t, TrialPart{Name: "none", Selector: ".none | body", Why: "no element matches the selector"}, f)
		}
	}
}

// Variants are read as groups wherever shops write them.
func TestVariants(t *testing.T) {
	const at = "https://shop.test/"
	for name, tt := range map[string]struct{ field, page, want string }{
		"ProductGroup": {`{from: structured, path: variants, type: group, many: true, fields: {sku: {path: sku}, price: {path: "offers[0].money", type: money}, color: {path: item.color}, in: {path: "offers[0].availability", type: boolean}}}`,
			`<script type="application/ld+json">{"@type":"ProductGroup","productGroupID":"G","variesBy":["https://schema.org/color"],"hasVariant":[{"@type":"Product","sku":"G-1","color":"red","offers":{"@type":"Offer","price":1,299.00,"priceCurrency":"EUR","availability":"https://schema.org/InStock"}},
			{"@type":"Product","sku":"G-2","color":"blue","offers":[{"priceSpecification":[{"price":"20","priceType":"https://schema.org/StrikethroughPrice"},{"price":"15","priceCurrency":"EUR"}],"availability":"SoldOut"}]}]}</script>`,
			"[map[color:red in:true price:{1299 EUR} sku:G-1] map[color:blue in:false price:{15 EUR} sku:G-2]]"},
		"WooCommerce": {`{selector: form.variations_form, attribute: data-product_variations, path: "[*]", type: group, many: true, currency: EUR, fields: {sku: {path: sku}, price: {path: display_price, type: money}, shown: {path: price_html, selector: ins, type: money, locale: de-DE}, color: {path: "attributes.\"attribute_pa_größe\""}, in: {path: is_in_stock, type: boolean}, image: {path: image.src, type: image}}}`,
			`<form class="variations_form cart" data-product_id="7" data-product_variations="[{&quot;attributes&quot;:{&quot;attribute_pa_gr\u00f6\u00dfe&quot;:&quot;XL&quot;},&quot;display_price&quot;:1299.5,&quot;display_regular_price&quot;:1499,&quot;image&quot;:{&quot;src&quot;:&quot;\/xl.jpg&quot;},&quot;is_in_stock&quot;:true,&quot;price_html&quot;:&quot;&lt;span class=\&quot;price\&quot;&gt;&lt;del&gt;1.499,00 \u20ac&lt;\/del&gt; &lt;ins&gt;&lt;bdi&gt;1.299,50&amp;nbsp;&lt;span&gt;&amp;euro;&lt;\/span&gt;&lt;\/bdi&gt;&lt;\/ins&gt;&lt;\/span&gt;&quot;,&quot;sku&quot;:&quot;W-XL&quot;}]"></form>`,
			"[map[color:XL image:https://shop.test/xl.jpg in:true price:{1299.5 EUR} shown:{1299.5 EUR} sku:W-XL]]"},
		"WooCommerce, too many for the page": {`{selector: form, attribute: data-product_variations, path: "[*]", type: group, many: true, fields: {sku: {path: sku}}}`,
			`<form data-product_variations="false"></form>`, "<nil>"},
		"Magento": {`{selector: "script[type='text/x-magento-init']", path: "*.*.jsonConfig.optionPrices[][].*[]", type: group, many: true, currency: USD, fields: {old: {path: oldPrice.amount, type: money}, price: {path: finalPrice.amount, type: money}}}`,
			`<script type="text/x-magento-init">{"[data-role=swatch-options]":{"Magento_Swatches/js/swatch-renderer":{"jsonConfig":{"optionPrices":{"52":{"oldPrice":{"amount":29},"finalPrice":{"amount":24.5}}}}}}}</script>`,
			"[map[old:{29 USD} price:{24.5 USD}]]"},
		"Shopify": {`{selector: "script[data-product-json]", path: "variants[*]", type: group, many: true, fields: {sku: {path: sku}, in: {path: available, type: boolean}, cents: {path: price, type: integer}}}`,
			`<script type="application/json" data-product-json>{"variants":[{"sku":"S-1","available":false,"price":1999}]}</script>`, "[map[cents:1999 in:false sku:S-1]]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := compiled(t, "name: shop\nlist: {url: \""+at+"\", product_link: {selector: a}}\nkey: id\nfields:\n  id: {selector: b}\n  v: "+tt.field+"\n")
			p, err := r.readDetail(at+"1", "<b>1</b>"+tt.page, "")
			require.NoError(t, err)
			assert.Equal(t, tt.want, fmt.Sprint(p.Fields["v"]), "%v", p.lacks)
		})
	}
}

// A product's page of a site whose key is in the list's rows can be tried, and so can its list.
func TestTryKeyInRow(t *testing.T) {
	r := compiled(t, `
name: shop
list: {url: "https://shop.test/list", rows: {selector: tr}, product_link: {selector: a}}
key: no
fields:
  "no": {from: row, selector: .no}
  price: {selector: .price, type: money}
`)
	trial, err := r.try("https://shop.test/1", "https://shop.test/1", `<p class=price>5 EUR</p>`)
	require.NoError(t, err)
	assert.True(t, trial.Found())
	assert.True(t, trial.KeyInRow)
	require.Len(t, trial.Fields, 2)
	assert.Equal(t, "price", trial.Fields[0].Name)
	assert.Equal(t, TrialPart{Name: "no", Selector: ".no", Why: "it is in the product's row of the list: try a page of the list, https://shop.test/list"}, trial.Fields[1])
	trial, err = r.try("https://shop.test/2", "https://shop.test/2", `<p>nothing</p>`)
	require.NoError(t, err)
	assert.False(t, trial.Found())
	trial, err = r.try("https://shop.test/list", "https://shop.test/list", `<table><tr><td class=no>7</td><td><a href=/7>x</a></td></table>`)
	require.NoError(t, err)
	assert.Equal(t, []any{"7", false, true}, []any{trial.Key, trial.KeyInRow, trial.Found()})
}
