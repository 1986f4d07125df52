package catalog

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/sites"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

const good = `
name: shop
list:
  url: https://shop.example/p/{page}
  product_link: {selector: "a.product"}
key: id
fields:
  id: {selector: "#id"}
  price: {selector: .price, type: number, optional: true}
`

func TestParseSite(t *testing.T) {
	s, err := ParseSite([]byte(good))
	require.NoError(t, err)
	assert.Equal(t, "shop.example", s.Host())
	s.List.URL = "http://www.shop.example:80/other"
	assert.Equal(t, "shop.example", s.Host(), "one lane for all of its names")
	for _, tt := range []struct{ from, to, want string }{
		{"name: shop", "name: Shop!", `name "Shop!"`},
		{"name: shop", "nome: shop", "nome"},
		{"https://shop.example/p/{page}", "ftp://shop.example/{page}", "list.url"},
		{"https://shop.example/p/{page}", "/p/{page}", "list.url"},
		{`"a.product"`, `"a..product"`, `list.product_link.selector "a..product"`},
		{`"a.product"`, `""`, "list.product_link: it has no selector"},
		{"  product_link:", "  link:", "link"},
		{"key: id", "key: sku", `key "sku": there is no such field`},
		{"key: id", "", "key: name the field"},
		{`id: {selector: "#id"}`, `id: {selector: "#id", optional: true}`, "the key cannot be optional"},
		{`id: {selector: "#id"}`, `id: {selector: "#id", type: list}`, "the key cannot be of the type list"},
		{"type: number", "type: float", `fields.price.type "float"`},
		{"selector: .price", "selector: '.price['", "fields.price.selector"},
		{"selector: .price", "selector: .price, regexp: '('", "fields.price.regexp"},
		{"selector: .price", "selector: .price, selectr: x", "selectr"},
		{"list:\n", "list:\n  next_link: {selector: a}\n", "next_link cannot be used with"},
		{"list:\n", "list:\n  pages: 20000\n", "list.pages 20000"},
		{"/p/{page}", "/p/", ""},
	} {
		require.Contains(t, good, tt.from)
		_, err := ParseSite([]byte(strings.Replace(good, tt.from, tt.to, 1)))
		if tt.want == "" {
			assert.NoError(t, err, tt.to)
		} else if assert.Error(t, err, tt.to) {
			assert.Contains(t, err.Error(), tt.want)
		}
	}
}

// An error of a site's file says in which line which key is wrong, and what to write.
func TestErrorsOfSites(t *testing.T) {
	t.Parallel()
	f := func(from, to, want string) {
		t.Helper()
		require.Contains(t, good, from)
		_, err := ParseSite([]byte(strings.Replace(good, from, to, 1)))
		assert.EqualError(t, err, want)
	}
	f("type: number", "type: float", `line 9: fields.price.type "float": want one of text, integer, number, quantity, money, date, time, boolean, url, image, list, group`)
	f("  id: {selector: \"#id\"}\n", "  id:\n    selector: '#id'\n    path: 'a['\n", `line 10: fields.id.path "a[": want a JMESPath expression: SyntaxError: Expected TOKStar, received: TOKEOF`)
	f("key: id", "detail: {format: none}\nkey: id", "line 6: detail.format none: it needs list.rows, in which the fields then are")
	f("key: id", "detail: {format: json}\nkey: id", "line 9: fields.id: the page is JSON: use path, a JMESPath expression, in place of selector and attribute")
	f("key: id", "detail: {url: 'https://other.example/{link}'}\nkey: id", `line 6: detail.url "https://other.example/{link}": want an address on the host of list.url, shop.example`)
	f("key: id", "detail: {url: 'https://shop.example/x'}\nkey: id", `line 6: detail.url "https://shop.example/x": want {link} in it, where the text that list.product_link finds belongs`)
	f("key: id", "headers: {X-Token: abc}\nkey: id", "line 6: headers.X-Token: a key or password does not belong in this file; write ${SITE_KEY}, and set the environment variable SITE_KEY")
	f("key: id", "headers: {X-Token: '${AWS_SECRET_ACCESS_KEY}'}\nkey: id", "line 6: headers.X-Token: ${AWS_SECRET_ACCESS_KEY}: want the name of an environment variable that begins with SITE_, such as ${SITE_AWS_SECRET_ACCESS_KEY}")
	f("key: id", "headers: {user-agent: me}\nkey: id", "line 6: headers.user-agent: the crawler sets it itself; leave it out (bot: in the --config file says who crawls)")
	f("key: id", "headers: {X-A: \"a\\r\\nb\"}\nkey: id", "line 6: headers.X-A: want a value of one line")
	f("list:\n", "list:\n  format: xml\n", `line 4: list.format "xml": want html, json or sitemap`)
	f("list:\n", "list:\n  format: sitemap\n", "line 4: list.format sitemap: it has only url, pages and product_link.regexp")
	f("list:\n", "list:\n  format: json\n", "line 6: list.product_link: the page is JSON: use path, a JMESPath expression, in place of selector and attribute")
	f("{page}", "{offset}", "line 3: list: {offset} needs page_size, the number of products on a page")
	f("{page}", "{cursor}", "line 3: list: next_cursor and {cursor} (in url or body) belong together; one of them is missing")
	f("list:\n", "list:\n  total: {selector: b}\n", "line 4: list: total needs page_size, and {page} or {offset} in url or body")
	f("  product_link: {selector: \"a.product\"}\n", "", "line 3: list.product_link: name what finds the links to the products")
	f("id: {selector", "id: {from: row, selector", "line 8: fields.id.from row: it needs list.rows, which finds the products in a list page")
	f("id: {selector", "id: {from: list, selector", `line 8: fields.id.from "list": want page, row or structured`)
}

func TestReadSites(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	_, _, err := ReadSites(fstest.MapFS{})
	assert.ErrorContains(t, err, "no *.yaml")
	_, _, err = ReadSites(fstest.MapFS{"a.yaml": file(good), "b.yaml": file(good)})
	assert.ErrorContains(t, err, "reading site b.yaml: name shop is also the name of a.yaml")
	_, _, err = ReadSites(fstest.MapFS{"a.yaml": file("name: [")})
	assert.ErrorContains(t, err, "reading site a.yaml: parsing YAML")

	shipped, _, err := ReadSites(sites.Files)
	require.NoError(t, err)
	require.Len(t, shipped, 1)
	assert.Equal(t, "matter", shipped[0].Name)
	for _, field := range []string{"certificate_id", "name", "manufacturer", "device_type", "certification_date", "vid", "pid",
		"firmware_version", "hardware_version", "software_version", "transport", "specification_version"} {
		assert.Contains(t, shipped[0].Fields, field)
	}
	demo, err := fs.Sub(sites.Files, "demo")
	require.NoError(t, err)
	_, _, err = ReadSites(demo)
	require.NoError(t, err)
}

func compiled(t testing.TB, text string) *reader {
	t.Helper()
	s, err := ParseSite([]byte(text))
	require.NoError(t, err)
	r, err := s.compile()
	require.NoError(t, err)
	return r
}

func TestReadList(t *testing.T) {
	r := compiled(t, good)
	p, err := r.readList("https://shop.example/p/2", `<base href="/deep/">
		<a class=product href="one">1</a> <a class=product href="/two#top">2</a> <a class=product href="https://shop.example/two">2 again</a>
		<a class=product href="https://www.shop.example/three">3</a> <a class=product href="https://elsewhere.example/x">x</a>
		<a class=product href="javascript:void(0)">x</a> <a class=product>no href</a> <a class=other href="/y">y</a>
		<a class=product href="/`+strings.Repeat("l", 3000)+`">long</a> <a class=product href="http://u:p@shop.example/four">4</a>`)
	require.NoError(t, err)
	assert.Equal(t, []string{"https://shop.example/deep/one", "https://shop.example/two", "https://www.shop.example/three", "http://shop.example/four"}, p.products)
	assert.Equal(t, 3, p.foreign)

	r = compiled(t, strings.Replace(good, "list:\n", "list:\n  last_page: {selector: .pages}\n", 1))
	p, err = r.readList("https://shop.example/p/1", `<b class=pages>1</b><b class=pages>of 476 pages</b><b class=pages>next</b>`)
	require.NoError(t, err)
	assert.Equal(t, 476, p.last)
	assert.Len(t, r.seeds(), 1)
	for text, want := range map[string]int{"Page 1 of 1,204": 1204, "1 2 3 … 99 100 next": 100, "Seite 7.": 7, "first last": 0} {
		p, err = r.readList("https://shop.example/p/1", "<b class=pages>"+text+"</b>")
		require.NoError(t, err)
		assert.Equal(t, want, p.last, text)
	}
	r.last.attribute = "data-last"
	p, err = r.readList("https://shop.example/p/1", `<b class=pages data-last="?page=7&per=100">x</b>`)
	require.NoError(t, err)
	assert.Equal(t, 7, p.last)
	r.last.attribute = ""
	r.total, r.site.List.PageSize = r.last, 10
	r.last = nil
	for text, want := range map[string]int{"Showing 1–24 of 340 products": 34, "1&nbsp;234 produits": 124, "12'345 Artikel": 1235, "3.299 Produkte": 330, "1-12 of 1 204": 121} {
		p, err = r.readList("https://shop.example/p/1", "<b class=pages>"+text+"</b>")
		require.NoError(t, err)
		assert.Equal(t, want, p.last, text)
	}

	r = compiled(t, strings.Replace(strings.Replace(good, "{page}", "", 1), "list:\n", "list:\n  next_link: {selector: a.next}\n", 1))
	p, err = r.readList("https://shop.example/p/", `<a class=next href="?from=12">next</a>`)
	require.NoError(t, err)
	assert.Equal(t, "https://shop.example/p/?from=12", p.next)
	p, err = r.readList("https://shop.example/p/", `<a class=next href="https://elsewhere.example/">next</a>`)
	require.NoError(t, err)
	assert.Empty(t, p.next)
}

func TestSeeds(t *testing.T) {
	r := compiled(t, good)
	assert.Len(t, r.seeds(), 50, "without a last page, the default of fifty")
	assert.Equal(t, entry{Kind: KindFetchListPage, URL: "https://shop.example/p/50", Page: 50}, r.seeds()[49])
	r = compiled(t, strings.Replace(good, "list:\n", "list:\n  first_page: 0\n  pages: 3\n", 1))
	assert.Equal(t, []entry{{Kind: KindFetchListPage, URL: "https://shop.example/p/0"}, {Kind: KindFetchListPage, URL: "https://shop.example/p/1", Page: 1},
		{Kind: KindFetchListPage, URL: "https://shop.example/p/2", Page: 2}}, r.seeds())
}

func TestReadDetail(t *testing.T) {
	r := compiled(t, strings.Replace(good, "fields:\n", "fields:\n  vid: {selector: b, regexp: '0x[0-9a-f]+', type: integer, optional: true}\n", 1))
	p, err := r.readDetail("https://shop.example/x", "<p id=id> A\x00\n1 <script>no</script><p class=price>\t</p><p class=price>1,234.50</p><b>vendor 0x1f</b>", "")
	require.NoError(t, err)
	assert.Equal(t, ProductDetail{URL: "https://shop.example/x", Key: "A 1", Fields: map[string]any{"id": "A 1", "price": 1234.5, "vid": int64(31)}}, p)
	_, err = r.readDetail("https://shop.example/x", "<p class=price>free</p>", "")
	assert.ErrorIs(t, err, errNoKey)
	p, err = r.readDetail("https://shop.example/x", "<p id=id>A<p class=price>1.299", "")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"id": "A"}, p.Fields)
	require.Len(t, p.lacks, 2)
	assert.Equal(t, `field price cannot be read: "1.299": it may be 1.299 or 1299: set the site's or the field's locale`, p.lacks[0].String())
	assert.Equal(t, "field vid is not found", p.lacks[1].String())
}

const typed = `
name: shop
locale: de-DE
timezone: Asia/Seoul
currency: EUR
list: {url: "https://shop.example/", product_link: {selector: a}}
key: id
fields:
  id: {selector: "#id", type: integer}
  weight: {selector: .weight, type: number}
  width: {selector: "[itemprop=width]", attribute: content, type: number, locale: en}
  price: {selector: .price, type: money}
  dollars: {selector: .dollars, type: money, currency: USD, locale: en-US}
  manual: {selector: a.manual, type: url}
  picture: {selector: img, attribute: src, type: url}
  since: {selector: time, attribute: datetime, type: date}
  made: {selector: .made, type: date}
  stock: {selector: .stock, type: boolean}
`

// Values are read by the site's locale, currency and zone, or by the field's own.
func TestTypes(t *testing.T) {
	r := compiled(t, typed)
	p, err := r.readDetail("https://shop.example/p/7?x=1", `<base href="/de/"><p id=id>1.234<p class=weight>2,5&nbsp;kg<meta itemprop=width content="1.299">
		<p class=price>€ 3.299,00<p class=dollars>$1,299.50<a class=manual href="docs/7.pdf#a">x</a><img src="//cdn.example/7.jpg">
		<time datetime="2026-11-02T23:30:00Z">x</time><p class=made>03.04.2026<p class=stock>Yes`, "")
	require.NoError(t, err)
	assert.Empty(t, p.lacks)
	assert.Equal(t, map[string]any{"id": int64(1234), "weight": 2.5, "width": 1.299, "price": value.Amount{Amount: 3299, Currency: "EUR"}, "dollars": value.Amount{Amount: 1299.5, Currency: "USD"},
		"manual": "https://shop.example/de/docs/7.pdf#a", "picture": "https://cdn.example/7.jpg", "since": "2026-11-03", "made": "2026-04-03", "stock": true}, p.Fields)
	assert.Equal(t, "1234", p.Key)

	p, err = r.readDetail("https://shop.example/p/7", `<p id=id>7<p class=weight>2 x 5<p class=price>5 £ or 6 €<a class=manual href="javascript:void(0)">x</a><p class=made>soon<p class=stock>maybe`, "")
	require.NoError(t, err)
	var unreadable []string
	for _, l := range p.lacks {
		if l.why != "" {
			unreadable = append(unreadable, l.field)
		}
	}
	assert.Equal(t, []string{"made", "manual", "price", "stock", "weight"}, unreadable)

	for from, to := range map[string]string{"locale: de-DE": "locale: x!", "timezone: Asia/Seoul": "timezone: Seoul", "currency: EUR": "currency: euro", "locale: en-US": "locale: ?",
		"type: integer": "type: money", "selector: \"#id\"": "volatile: true, selector: \"#id\""} {
		require.Contains(t, typed, from)
		_, err := ParseSite([]byte(strings.Replace(typed, from, to, 1)))
		assert.Error(t, err, to)
	}
}

func TestLayout(t *testing.T) {
	l := &layout{}
	say := func(n int, o observation) (stopped int) {
		for i := range n {
			if err := l.observe(o); err != nil {
				return i + 1
			}
		}
		return 0
	}
	has := observation{aspect: "price", has: true, expected: true}
	lacks, dropped, optional := observation{aspect: "price", expected: true}, observation{aspect: "price", drop: true}, observation{aspect: "price"}
	assert.Equal(t, minBreak, say(100, lacks), "no page had it")
	l = &layout{}
	assert.Zero(t, say(100, optional), "an optional field that never was there")
	assert.Equal(t, []string{"price"}, l.never())
	assert.Zero(t, say(1, has))
	assert.Empty(t, l.never())
	assert.Equal(t, minAnyBreak, say(100, lacks), "products that never had it may be of another kind")
	assert.Zero(t, say(1, has))
	assert.Equal(t, minBreak, say(100, dropped), "products that had it")
	l = &layout{}
	for range 50 { // some lack it here and there
		require.Zero(t, say(minBreak-1, dropped))
		require.Zero(t, say(1, has))
	}
	assert.Zero(t, say(50, optional), "nobody expects it of them")

	l = &layout{}
	for range 9 {
		require.NoError(t, l.keys(1, 1))
	}
	assert.ErrorContains(t, l.keys(1, 1), "10 of 20 product pages have the key of another page")
	l = &layout{}
	require.NoError(t, l.keys(1000, 0))
	for range 20 {
		require.NoError(t, l.keys(1, 1), "a few among many")
	}
}

func TestStreak(t *testing.T) {
	for _, tt := range []struct {
		want  int
		pages string // in the order in which they are read: page number and n(ew) or k(nown)
		end   int
	}{
		{0, "", 0},
		{2, "1n 2k 3k", 4},
		{2, "1n 2k 3n 4k 5k", 6},
		{2, "3k 2k 1n", 4},
		{2, "1k 3k 4k", 0}, // page 2 is not read yet
		{2, "1k 3k 4k 2n", 5},
		{1, "1k", 2},
	} {
		s := streak{first: 1, want: tt.want}
		ends := 0
		for _, p := range strings.Fields(tt.pages) {
			if s.page(int(p[0]-'0'), p[1] == 'n') {
				ends++
			}
		}
		assert.Equal(t, tt.end, s.end, "%d %s", tt.want, tt.pages)
		assert.Equal(t, tt.end > 0, ends == 1)
		if tt.end > 0 {
			assert.True(t, s.past(tt.end))
			assert.False(t, s.past(tt.end-1))
		}
	}
}

func FuzzParseSite(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSite(b)
		if err != nil {
			return
		}
		_, err = s.compile()
		assert.NoError(t, err, "a site that was accepted does not compile")
	})
}

func FuzzReadPages(f *testing.F) {
	s, err := ParseSite([]byte(good))
	require.NoError(f, err)
	r, err := s.compile()
	require.NoError(f, err)
	row := compiled(f, `
name: shop
list: {url: "https://shop.example/?c={cursor}", format: json, rows: {path: "data.items[?id] || items"}, product_link: {path: link}, next_cursor: {path: next}}
detail: {format: none}
key: id
fields:
  id: {path: id}
  price: {path: "price[0] || price", type: number, optional: true}
  names: {path: "names[].*", type: list, optional: true}
`)
	markup := compiled(f, `
name: shop
list: {url: "https://shop.example/", format: json, rows: {path: "html || items", selector: "li, tr"}, product_link: {selector: a}, next_link: {path: more, selector: a}}
detail: {format: none}
key: id
fields:
  id: {selector: a}
`)
	f.Add(`{"html": "<li><a href=/1>1</a><tr><a href=/2>2</a><template><tr><td><a href=3>3", "more": "<a href='?page=2'>"}`)
	f.Add(`<a class=product href="one">1</a><p id=id>1<p class=price>2`)
	f.Add(`{"items": [{"id": 1, "link": "/x", "price": [1.5, null], "names": [{"a": "b"}, null]}, null, 3], "next": "x"}`)
	f.Add(`{"data": {"items": [null, {"id": 12345678901234567890.10}, {"id": "a"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := r.readList("https://shop.example/", text)
		if err == nil {
			for _, link := range p.products {
				assert.True(t, strings.Contains(link, "shop.example") && untrusted.Key(link) == nil, "%q leaves the site", link)
			}
		}
		for _, r := range []*reader{row, markup} {
			p, err := r.readList("https://shop.example/", text)
			if err != nil {
				continue
			}
			for _, link := range p.products {
				d := ProductDetail{URL: link, Fields: map[string]any{}}
				err := d.addRow(r, p.rows[link])
				assert.True(t, err == nil && d.Key != "" && untrusted.Key(link) == nil, "%s: %+v: %v", link, d, err)
			}
		}
		d, err := r.readDetail("https://shop.example/", text, "")
		if err == nil {
			_, err := r.asProduct(d, entry{})
			assert.True(t, err == nil && d.Key != "" && !strings.ContainsRune(d.Key, 0), "%+v: %v", d, err)
		}
	})
}
