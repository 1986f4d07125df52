package structured_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/structured"
)

func read(t testing.TB, page string) *structured.Data {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	return structured.Read(root)
}

func ld(script string) string { return `<script type="application/ld+json">` + script + `</script>` }

// show writes an item with all below it on one line.
func show(it *structured.Item) string {
	var b strings.Builder
	b.WriteString(strings.Join(it.Types, "+") + "{")
	for i, name := range it.Names() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=")
		for j, v := range it.Values(name) {
			if j > 0 {
				b.WriteByte('|')
			}
			if v.Item != nil {
				b.WriteString(show(v.Item))
			} else {
				b.WriteString(v.Text)
			}
		}
	}
	return b.String() + "}"
}

func showAll(d *structured.Data) string {
	var all []string
	for _, it := range d.Items {
		all = append(all, show(it))
	}
	return strings.Join(all, "; ")
}

func TestJSONLD(t *testing.T) {
	for name, row := range cases.Table[map[string]struct {
		Script, Want string
		Broken       int
	}](t, "jsonld.yaml") {
		t.Run(name, func(t *testing.T) {
			d := read(t, ld(row.Script))
			assert.Equal(t, row.Want, showAll(d))
			assert.Equal(t, row.Broken, d.Broken)
			assert.Equal(t, row.Want, showAll(structured.Read(nil, []byte(row.Script))))
		})
	}
}

func TestElements(t *testing.T) {
	for name, row := range cases.Table[map[string]struct{ Page, Want string }](t, "elements.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, row.Want, showAll(read(t, row.Page))) })
	}
}

func TestMeta(t *testing.T) {
	d := read(t, `<meta property="og:image" content="/1.png"><meta property="OG:Image" content=" /2.png "><meta name="description" content="a&amp;amp;b
		c"><meta name=empty content=""><body><meta itemprop="datePublished" content="2026-01-02">`)
	assert.Equal(t, map[string][]string{"og:image": {"/1.png", "/2.png"}, "description": {"a&amp;b\n\t\tc"}, "datepublished": {"2026-01-02"}}, d.Meta)
	assert.Equal(t, "a&b c", d.First("empty", "description", "og:image"))
}

func TestArticle(t *testing.T) {
	a, ok := read(t, ld(`{"@graph":[{"@type":"WebPage","datePublished":"2026-01-01","dateModified":"2026-01-03","inLanguage":"ko-KR","isAccessibleForFree":true},
		{"@type":"BlogPosting","headline":"other"},
		{"@type":["NewsArticle"],"headline":" A &amp; B ","datePublished":"2026-01-02","author":[{"@id":"#p"},"C D","https://example.org/e",{"@type":"Person","name":"C D"}],
		 "image":{"@type":"ImageObject","url":"/i.png?a=1&amp;b=2"},"keywords":"x, y,x","articleSection":["S","T"],"articleBody":"One\n\ntwo","isAccessibleForFree":"False"},
		{"@type":"Person","@id":"#p","name":"P Q"}]}`)).Article()
	require.True(t, ok)
	a.Item = nil
	assert.Equal(t, structured.Article{Headline: "A & B", Section: "S", Body: "One\n\ntwo", Published: "2026-01-02", Modified: "2026-01-03", Language: "ko-KR",
		Authors: []string{"P Q", "C D"}, Keywords: []string{"x", "y"}, Images: []string{"/i.png?a=1&b=2"}, Paid: true}, a)

	one := `<article itemscope itemtype="https://schema.org/NewsArticle"><h1 itemprop=headline>H</h1><time itemprop=datePublished datetime=2026-01-02></time></article>`
	a, ok = read(t, one).Article()
	assert.True(t, ok)
	assert.Equal(t, []string{"H", "2026-01-02"}, []string{a.Headline, a.Published})
	_, ok = read(t, one+one).Article()
	assert.False(t, ok, "cards of a list are not the page's article")
	_, ok = read(t, `<p>x</p>`).Article()
	assert.False(t, ok)
}

func TestProduct(t *testing.T) {
	offer := func(o structured.Offer) structured.Offer { o.Item = nil; return o }
	offers := func(p structured.Product) (out []structured.Offer) {
		for _, o := range p.Offers {
			out = append(out, offer(o))
		}
		return out
	}
	p, ok := read(t, `<meta property="og:url" content="https://example.org/p/">`+ld(`[{"@type":"Product","name":"Related","offers":{"price":1}},
		{"@type":"WebPage","mainEntity":{"@type":"Product","name":"The one","sku":7,"gtin13":"4006381333931","brand":{"@type":"Brand","name":"B"},"url":"https://example.org/p","image":["/1.png","/2.png"],
		"aggregateRating":{"ratingValue":"4.5","reviewCount":12},
		"offers":{"@type":"AggregateOffer","lowPrice":"9","highPrice":"11","priceCurrency":"EUR","offers":[{"@type":"Offer","priceSpecification":{"price":9,"priceCurrency":"EUR"},"availability":"https://schema.org/InStock","seller":{"name":"S"}}]}}}]`)).Product()
	require.True(t, ok)
	assert.Equal(t, []string{"The one", "7", "4006381333931", "B", "https://example.org/p", "4.5", "12"}, []string{p.Name, p.SKU, p.GTIN, p.Brand, p.URL, p.Rating, p.Reviews})
	assert.Equal(t, []string{"/1.png", "/2.png"}, p.Images)
	assert.Equal(t, []structured.Offer{{Low: "9", High: "11", Currency: "EUR"}, {Price: "9", Currency: "EUR", Availability: "InStock", Seller: "S"}}, offers(p))

	both := ld(`[{"@type":"Product","name":"Related","offers":{"price":1}},{"@type":"Product","name":"The one","offers":{"price":2}}]`)
	for _, shown := range []string{"<h1>Shop</h1><h1> The <b>One</b>\n</h1>", `<meta property="og:title" content="The one">`} {
		p, ok = read(t, both+shown).Product()
		assert.True(t, ok)
		assert.Equal(t, "The one", p.Name, shown)
	}

	p, ok = read(t, `<meta property="og:type" content="product"><meta property="og:title" content="A"><meta property="product:price:amount" content="5.00"><meta property="product:price:currency" content="USD">`).Product()
	assert.True(t, ok)
	assert.Equal(t, "A", p.Name)
	assert.Equal(t, []structured.Offer{{Price: "5.00", Currency: "USD"}}, offers(p))

	p, ok = read(t, ld(`[{"@type":"Product","name":"Circle","offers":{"@id":"#o"}},{"@id":"#o","@type":"Offer","price":3,"offers":[{"@id":"#o"},{"@id":"#q"}]},{"@id":"#q","offers":{"@id":"#o"},"price":4}]`)).Product()
	assert.True(t, ok)
	assert.Equal(t, []structured.Offer{{Price: "3"}, {Price: "4"}}, offers(p))
}

// What is paid is none of the prices next to it.
func TestPriceSpecifications(t *testing.T) {
	for _, tt := range cases.Table[[]struct{ Of, Price, Low, High string }](t, "prices.yaml") {
		p, ok := read(t, ld(`{"@type":"Product","name":"A","offers":{"@type":"Offer","availability":"InStock",`+tt.Of+`}}`)).Product()
		require.True(t, ok, tt.Of)
		require.Len(t, p.Offers, 1, tt.Of)
		assert.Equal(t, []string{tt.Price, tt.Low, tt.High}, []string{p.Offers[0].Price, p.Offers[0].Low, p.Offers[0].High}, tt.Of)
	}
}

func TestProductGroup(t *testing.T) {
	p, ok := read(t, ld(`[{"@type":"ProductGroup","name":"Kettle","productGroupID":"K10","hasVariant":[{"@type":"Product","sku":"K10-R","offers":{"price":"19.90"}},{"@id":"#b"}]},
		{"@id":"#b","@type":"Product","sku":"K10-B","offers":{"price":"21.90","sku":"own"}}]`)+"<h1>Kettle</h1>").Product()
	require.True(t, ok)
	require.Len(t, p.Offers, 2)
	require.Len(t, p.Variants, 2)
	assert.Equal(t, []string{"K10-R", "19.90", "K10-B", "21.90"}, []string{p.Variants[0].SKU, p.Variants[0].Offers[0].Price, p.Variants[1].SKU, p.Variants[1].Offers[0].Price})
	assert.Equal(t, []string{"K10", "K10-R", "19.90", "own", "21.90"}, []string{p.SKU, p.Offers[0].SKU, p.Offers[0].Price, p.Offers[1].SKU, p.Offers[1].Price})
}

// The variants of a group may name it, instead of the group them.
func TestVariantsOfAGroup(t *testing.T) {
	p, ok := read(t, ld(`[{"@type":"ProductGroup","@id":"#g","productGroupID":"G","name":"Shirt"},{"@type":"Product","sku":"S","isVariantOf":{"@id":"#g"}},
		{"@type":"Product","sku":"M","inProductGroupWithID":"G","isVariantOf":{"@type":"ProductGroup"}},{"@type":"Product","sku":"X","isVariantOf":{"@id":"#other"}}]`)+"<h1>Shirt</h1>").Product()
	require.True(t, ok)
	require.Len(t, p.Variants, 2)
	assert.Equal(t, []string{"S", "M"}, []string{p.Variants[0].SKU, p.Variants[1].SKU})
	_, ok = read(t, ld(`{"@type":"ProductGroup","@id":"#g","hasVariant":[{"@id":"#g"},{"@type":"Product","hasVariant":{"@id":"#g"}}]}`)).Product()
	require.True(t, ok)
}

// Offers for everybody are before those for members or for many pieces, and a sale's price of Open Graph before the usual one.
func TestOffersForAll(t *testing.T) {
	p, _ := read(t, ld(`{"@type":"Product","name":"A","offers":[{"price":"15","eligibleQuantity":{"minValue":10}},{"price":"17","validForMemberTier":{"name":"gold"}},{"price":"3","businessFunction":"http://purl.org/goodrelations/v1#LeaseOut"},
		{"price":"19","eligibleQuantity":{"value":1}},{"price":"20"}]}`)).Product()
	var prices []string
	for _, o := range p.Offers {
		prices = append(prices, o.Price)
	}
	assert.Equal(t, []string{"19", "20", "15", "17", "3"}, prices)
	for sale, want := range map[string]string{"7.50": "7.50", "0.00": "9.00", "": "9.00"} {
		p, _ = read(t, `<meta property="og:title" content="A"><meta property="product:price:amount" content="9.00"><meta property="product:price:currency" content="EUR"><meta property="product:sale_price:amount" content="`+sale+`">`).Product()
		require.Len(t, p.Offers, 1, sale)
		assert.Equal(t, structured.Offer{Price: want, Currency: "EUR"}, p.Offers[0])
	}
}

func TestAll(t *testing.T) {
	d := read(t, ld(`{"@type":"ItemList","itemListElement":[{"@type":"ListItem","item":{"@type":"Product","name":"1"}},{"@type":"Product","name":"2"}]}`))
	var names []string
	for it := range d.All("Product") {
		names = append(names, it.Text("name"))
	}
	assert.Equal(t, []string{"1", "2"}, names)
	assert.Equal(t, 4, len(slices.Collect(d.All())))
	_, ok := d.Product()
	assert.False(t, ok, "the products of a list are not the page's product")
}

// Pages that were made to cost much are cut, and cost little.
func TestHostile(t *testing.T) {
	for name, page := range map[string]string{
		"deep lists":               ld(strings.Repeat("[", 100_000)),
		"deep objects":             ld(strings.Repeat(`{"@type":"A","x":`, 100_000)),
		"many values":              ld(`{"@type":"A","x":[` + strings.Repeat("1,", 100_000) + `]}`),
		"large texts":              ld(`{"@type":"A","x":"` + strings.Repeat("x", 5<<20) + `"}`),
		"items in items":           strings.Repeat(`<i itemscope itemprop=a>`, 400),
		"properties in each other": `<p itemscope>` + strings.Repeat(`<i itemprop=a>`, 400) + strings.Repeat("x", 100_000),
		"itemref to each other": func() string {
			var b strings.Builder
			ids := ""
			for i := range 300 {
				ids += fmt.Sprintf(" i%d", i)
			}
			for i := range 300 {
				fmt.Fprintf(&b, `<p id=i%d itemscope itemprop=p itemref="%s"></p>`, i, ids)
			}
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) { assert.True(t, read(t, page).Cut) })
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ld("[}"))
	f.Add(ld(`{"@type":"Product","name":"a \"b\" c","offers":[{"price":1,},]}`))
	f.Add(`<p itemscope itemtype=A itemref="x"><b id=x itemprop=y>z</b><meta property=og:title content=t>`)
	f.Add(`<div vocab="https://schema.org/" typeof="Product"><b property="name">A</b></div>`)
	f.Add(`{"@graph":[{"@id":"#a","offers":{"@id":"#a"}}]}`)
	f.Fuzz(func(t *testing.T, page string) {
		root, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return
		}
		d := structured.Read(root, []byte(page))
		n := 0
		for it := range d.All() {
			n++
			for _, name := range it.Names() {
				_, _ = it.Text(name), it.URL(name)
			}
			_ = it.Product()
		}
		assert.True(t, n <= 20_000, "%d items", n)
		_, _ = d.Article()
		_, _ = d.Product()
	})
}
