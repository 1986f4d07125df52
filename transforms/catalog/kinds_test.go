package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

const kindsFile = `
name: shop
locale: de-DE
timezone: Europe/Berlin
currency: EUR
list: {url: "https://shop.example/", product_link: {selector: a}}
key: id
fields:
  id: {selector: "#id"}
  weight: {selector: .weight, type: quantity, unit: kg}
  screen: {selector: .screen, type: quantity}
  sizes: {selector: .size, type: integer, many: true}
  picture: {selector: img, type: image}
  pictures: {selector: "img.more", type: image, many: true, optional: true}
  seen: {selector: .seen, type: time}
  since: {selector: .since, type: time, timezone: Asia/Seoul, locale: ko-KR}
  state: {selector: "script#data", path: "page.stock[0].count", type: integer}
  made: {selector: "script#data", path: page.made, type: time}
  size: {selector: ".dimensions", type: group, fields: {width: {selector: .w, type: quantity, unit: cm}, note: {selector: .note}}}
  variants: {selector: "table.variants tr", type: group, many: true, fields: {sku: {selector: tr, attribute: data-sku}, price: {selector: .p, type: money}, colors: {selector: i, type: list}}}
  options: {selector: "script#data", path: "page.options", type: group, many: true, fields: {name: {path: name}, price: {path: price, type: number}}}
  offer: {from: structured, path: "offers[0].money", type: money}
  brand: {from: structured, path: brand}
  color: {from: structured, path: "item.additionalProperty[?name=='color'].value | [0]"}
`

// Values of all kinds, as pages and their scripts have them.
func TestKinds(t *testing.T) {
	t.Parallel()
	r := compiled(t, kindsFile)
	p, err := r.readDetail("https://shop.example/p/7", `<head><script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product", "name": "Lamp", "brand": {"@type": "Brand", "name": "Licht"},
		"offers": {"@type": "Offer", "price": "1299.50", "priceCurrency": "EUR"}, "additionalProperty": [{"@type": "PropertyValue", "name": "size", "value": "L"}, {"@type": "PropertyValue", "name": "color", "value": "blue"}]}</script></head>
		<p id=id>7<p class=weight>2.500,5 g<p class=screen>15,6"</p><b class=size>42</b><b class=size>44</b><img src="data:image/gif;base64,R0lGODlh"><img src="/7.jpg"><img class=more src="DATA:,"><img class=more src="//cdn.example/7b.jpg">
		<p class=seen>3. März 2026, 14:05 Uhr<p class=since>2026년 11월 3일 오후 2:05<script id=data>{"page": {"stock": [{"count": 12}], "made": 1772542800000, "options": [{"name": "a", "price": 12.5}, {"name": "b"}, {}]}}</script>
		<div class=dimensions><i class=w>1,2 m</i><i class=note>ca.</i></div>
		<table class=variants><tr data-sku=A><td class=p>3,50<td><i>x</i><i>y</i><tr data-sku=B><td class=p>US$ 4,00<tr></table>`, "")
	require.NoError(t, err)
	assert.Empty(t, p.lacks)
	assert.Equal(t, map[string]any{
		"id": "7", "weight": value.Measure{Value: 2.5005, Unit: "kg"}, "screen": value.Measure{Value: 15.6, Unit: "in"}, "sizes": []any{int64(42), int64(44)},
		"picture": "https://shop.example/7.jpg", "pictures": []any{"https://cdn.example/7b.jpg"}, "seen": "2026-03-03T14:05:00+01:00", "since": "2026-11-03T14:05:00+09:00",
		"state": int64(12), "made": "2026-03-03T14:00:00+01:00", "size": map[string]any{"width": value.Measure{Value: 120, Unit: "cm"}, "note": "ca."},
		"variants": []any{map[string]any{"sku": "A", "price": value.Amount{Amount: 3.5, Currency: "EUR"}, "colors": []string{"x", "y"}}, map[string]any{"sku": "B", "price": value.Amount{Amount: 4, Currency: "USD"}}},
		"options":  []any{map[string]any{"name": "a", "price": 12.5}, map[string]any{"name": "b"}},
		"offer":    value.Amount{Amount: 1299.5, Currency: "EUR"}, "brand": "Licht", "color": "blue",
	}, p.Fields)

	p, err = r.readDetail("https://shop.example/p/8", `<p id=id>8<p class=weight>2 m<p class=screen>15 parsec</p><b class=size>42</b><b class=size>L</b><img src="data:,"><p class=seen>3. März 2026<p class=since>오후 13:05 2026-11-03</p>
		<script id=data>{"page": {"made": 12}}</script><table class=variants><tr data-sku=A><td class=p>free`, "")
	require.NoError(t, err)
	why := map[string]string{}
	for _, l := range p.lacks {
		why[l.field] = l.why
	}
	assert.Equal(t, map[string]string{
		"weight": `"2 m" is in m, which cannot be converted to kg`, "screen": why["screen"], "sizes": `"L" has no number`, "picture": "", "pictures": "",
		"seen": `"3. März 2026" has no time of day: use the type date`, "since": `"오후 13:05 2026-11-03" has no time of day`, "state": "", "made": "12 is no time in seconds or milliseconds since 1970",
		"size": "", "variants": `price: "free" has no number`, "options": "", "offer": "", "brand": "", "color": "",
	}, why)
	assert.Contains(t, why["screen"], `"15 parsec" names no unit that is known (%, A, Ah, `)
}
