package catalog

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// market is a shop of 40 products, ten on each page of its list, that changes while it is
// read.
type market struct {
	mu    sync.Mutex
	crawl int
	asked map[string]int // by path, in this crawl
}

func (m *market) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crawl++
	m.asked = map[string]int{}
}

func (m *market) crawlIs(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crawl == n
}

const marketSize = 10

func marketPage(page int, leave ...int) string {
	var products []int
	for n := 1; n <= 4*marketSize; n++ {
		products = append(products, n)
	}
	for _, n := range leave {
		products = append(products[:n-1:n-1], products[n:]...)
	}
	var b strings.Builder
	for i := (page - 1) * marketSize; i < min(page*marketSize, len(products)); i++ {
		fmt.Fprintf(&b, "<a class=p href=/item/%d>x</a>", products[i])
	}
	return b.String()
}

func sitemapOf(element string, paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "<%s><loc>https://shop.example%s</loc></%s>", element, p, element)
	}
	return b.String()
}

const (
	framedList = `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, until_empty: true}`
	framedData = `{url: "https://shop.example/l/{page}", format: json, product_link: {path: "data.items[]"}, until_empty: true}`
)

// framed is a page of a shop that has more than its products.
func framed(content string) string {
	return "<title>Shop</title><header id=head class=top><nav class=menu></nav></header><main class=content>" + content + "</main><footer class=foot>"
}

// framedAnswer is a list page of the market, or what other is where it is another.
func framedAnswer(path string, isOther bool, other string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(path, "/l/"))
	switch {
	case err != nil:
		return ""
	case isOther:
		return other
	case n > 4:
		return framed("<p class=none>There are no products here.</p>")
	}
	return framed("<ul class=grid>" + marketPage(n) + "</ul><nav class=pager>")
}

// dataAnswer is a list page of the market as JSON, without the product leave.
func dataAnswer(path string, leave int) string {
	n, err := strconv.Atoi(strings.TrimPrefix(path, "/l/"))
	switch {
	case err != nil:
		return ""
	case n > 4:
		return `{"data": null}`
	}
	var items []string
	for i := (n-1)*marketSize + 1; i <= n*marketSize; i++ {
		if i != leave {
			items = append(items, fmt.Sprintf(`"/item/%d"`, i))
		}
	}
	return `{"data": {"items": [` + strings.Join(items, ",") + `]}, "took": 3}`
}

// A product that a crawl does not find in the list may still be there: the list changed
// while its pages were read one after the other, one page was a wrong one, or the
// product's own page could not be read. Only what is missing for sure is gone.
func TestMissingProductsAreNotGone(t *testing.T) {
	t.Parallel()
	const numbered = `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, last_page: {selector: a.last}}`
	const pager = "<a class=last>4</a>"
	number := func(path string) int { n, _ := strconv.Atoi(path[strings.LastIndexByte(path, '/')+1:]); return n }
	type answer func(path string, crawl, asked, lists int) string
	const sorry = "<title>Sorry</title><h1>Temporarily unavailable"
	third := func(other string) answer { // what the list is from its third page on
		return func(path string, crawl, _, _ int) string {
			return framedAnswer(path, crawl == 2 && number(path) > 2, other)
		}
	}
	const sitemapList = `{url: "https://shop.example/index.xml", format: sitemap}`
	sitemaps := func(index, second string) answer { // the index of the second crawl, and the second sitemap if it is another one
		return func(path string, crawl, _, _ int) string {
			switch {
			case path == "/index.xml" && crawl == 2:
				return "<sitemapindex>" + index + "</sitemapindex>"
			case path == "/index.xml":
				return "<sitemapindex>" + sitemapOf("sitemap", "/b.xml", "/a.xml") + "</sitemapindex>"
			case path == "/b.xml" && crawl == 2 && second != "":
				return second
			case path == "/a.xml":
				return "<urlset>" + sitemapOf("url", "/item/1", "/item/2") + "</urlset>"
			case path == "/b.xml":
				return "<urlset>" + sitemapOf("url", "/item/3") + "</urlset>"
			}
			return ""
		}
	}
	for name, c := range map[string]struct {
		list   string
		answer answer // "" answers as the market does without a fault
		gone   int64
		saved  int64 // 0: not looked at
	}{
		"a product before it is taken out while the list is read": {list: numbered, answer: func(path string, crawl, _, lists int) string {
			if crawl == 2 && strings.HasPrefix(path, "/l/") && lists > 1 {
				return marketPage(number(path), 2) + pager
			}
			return ""
		}},
		"it moves to a page that was read before": {list: numbered, answer: func(path string, crawl, asked, _ int) string {
			switch {
			case crawl == 2 && path == "/l/3" && asked == 1:
				return strings.ReplaceAll(marketPage(3), "/item/25>", "/item/20>") + pager
			case crawl == 2 && path == "/l/1" && asked == 2:
				return marketPage(1) + "<a class=p href=/item/25>x</a>" + pager
			}
			return ""
		}},
		"a page shows an error and says 200": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, until_empty: true}`, answer: func(path string, crawl, asked, _ int) string {
			if crawl == 2 && path == "/l/3" && asked == 1 {
				return "<h1>Something went wrong"
			}
			return ""
		}},
		"a login from the third page on":                  {list: framedList, answer: third(framed("<form class=login><input type=password></form>"))},
		"an error with status 200 from the third page on": {list: framedList, answer: third(sorry)},
		"a login in place of a part of a page": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, until_empty: true}`, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && strings.HasPrefix(path, "/l/") && number(path) > 2 {
				return "<title>Welcome</title><h1>Please sign in"
			}
			return ""
		}},
		"an error from the third of a fixed number of pages on": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, pages: 6}`, answer: third(sorry)},
		"an error of an API from the third page on": {list: framedData, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && strings.HasPrefix(path, "/l/") && number(path) > 2 {
				return `{"data": null, "errors": [{"message": "sign in"}]}`
			}
			return dataAnswer(path, 0)
		}},
		"it is taken out of an API whose end has no list": {list: framedData, gone: 1, answer: func(path string, crawl, _, _ int) string {
			return dataAnswer(path, 2*(crawl-1))
		}},
		"it is taken out of a list whose end says so": {list: framedList, gone: 1, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && strings.HasPrefix(path, "/l/") && number(path) <= 4 {
				return framed("<ul class=grid>" + marketPage(number(path), 2) + "</ul><nav class=pager>")
			}
			return framedAnswer(path, false, "")
		}},
		"an error page in a list with numbers": {list: numbered, saved: 40, answer: func(path string, crawl, asked, _ int) string {
			if crawl == 2 && path == "/l/3" && asked < 3 {
				return "<title>Sorry</title><h1>Something went wrong"
			}
			return ""
		}},
		"a page does not exist for a moment": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, until_empty: true}`, answer: func(path string, crawl, asked, _ int) string {
			if crawl == 2 && path == "/l/3" && asked == 1 {
				return "404"
			}
			return ""
		}},
		"the pager is missing once": {list: numbered, saved: 40, answer: func(path string, crawl, asked, _ int) string {
			if crawl == 2 && path == "/l/1" && asked == 1 {
				return marketPage(1)
			}
			return ""
		}},
		"the pager is missing from now on": {list: numbered, answer: func(path string, crawl, _, _ int) string {
			switch {
			case path == "/l/1" && crawl == 1:
				return marketPage(1) + marketPage(2) + marketPage(3) + "<a class=last>2</a>"
			case path == "/l/1":
				return marketPage(1) + marketPage(2) + marketPage(3)
			case path == "/l/2":
				return marketPage(4) + "<a class=last>2</a>"
			}
			return ""
		}},
		"the number of products is missing": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, total: {selector: .total}, page_size: 20}`, answer: func(path string, crawl, _, _ int) string {
			if crawl == 1 && strings.HasPrefix(path, "/l/") {
				return marketPage(2*number(path)-1) + marketPage(2*number(path)) + "<b class=total>40</b>"
			}
			if path == "/l/1" {
				return marketPage(1) + marketPage(2)
			}
			return ""
		}},
		"a page in the middle is another one": {list: numbered, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && path == "/l/3" {
				return marketPage(1) + pager
			}
			return ""
		}},
		"a page in the middle of a fixed number is empty": {list: `{url: "https://shop.example/l/{page}", product_link: {selector: a.p}, pages: 5}`, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && path == "/l/3" {
				return "<h1>Something went wrong"
			}
			return ""
		}},
		"its address has changed, and its page fails": {list: `{url: "https://shop.example/all", product_link: {selector: a.p}}`, answer: func(path string, crawl, _, _ int) string {
			switch path {
			case "/all":
				return strings.ReplaceAll(marketPage(1)+marketPage(2), "/item/", fmt.Sprintf("/session%d/item/", crawl))
			case "/session2/item/7":
				return "500"
			case "/session2/item/8":
				return "<h1>Please sign in"
			}
			return ""
		}},
		"an index names an index":                  {list: sitemapList, answer: sitemaps(sitemapOf("sitemap", "/a.xml", "/b.xml"), "<sitemapindex>"+sitemapOf("sitemap", "/c.xml")+"</sitemapindex>")},
		"a sitemap is on another host":             {list: sitemapList, answer: sitemaps(sitemapOf("sitemap", "/a.xml")+"<sitemap><loc>https://cdn.example/b.xml</loc></sitemap>", "")},
		"an index has more sitemaps than are read": {list: `{url: "https://shop.example/index.xml", format: sitemap, pages: 2}`, answer: sitemaps(sitemapOf("sitemap", "/a.xml", "/b.xml"), "")},
		"it is taken out": {list: numbered, gone: 1, answer: func(path string, crawl, _, _ int) string {
			if crawl == 2 && strings.HasPrefix(path, "/l/") {
				return marketPage(number(path), 2) + pager
			}
			return ""
		}},
		"it is taken out of a list with a dead link": {list: numbered, gone: 1, answer: func(path string, crawl, _, _ int) string {
			switch {
			case path == "/dead":
				return "404"
			case strings.HasPrefix(path, "/l/") && crawl == 2:
				return marketPage(number(path), 2) + pager + "<a class=p href=/dead>x</a>"
			}
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &market{}
			j := newSite(t, "name: shop\nkey: id\nfields: {id: {selector: \"#id\"}}\nlist: "+c.list, func(w http.ResponseWriter, r *http.Request) {
				path := r.URL.Path
				if path == "/robots.txt" {
					http.NotFound(w, r)
					return
				}
				m.mu.Lock()
				m.asked[path]++
				if strings.HasPrefix(path, "/l/") {
					m.asked["list"]++
				}
				text := c.answer(path, m.crawl, m.asked[path], m.asked["list"])
				m.mu.Unlock()
				switch status, err := strconv.Atoi(text); {
				case err == nil:
					w.WriteHeader(status)
				case text != "":
					_, _ = fmt.Fprint(w, text)
				case strings.HasPrefix(path, "/l/"):
					if number(path) <= 4 {
						_, _ = fmt.Fprint(w, marketPage(number(path))+pager)
					}
				case strings.Contains(path, "/item/") && (c.gone == 0 || m.crawlIs(1) || number(path) != 2):
					_, _ = fmt.Fprintf(w, "<p id=id>K%d", number(path))
				default:
					http.NotFound(w, r)
				}
			})
			j.cfg.ListFetchers = 1 // page after page
			m.again()
			first := j.run()
			require.Zero(t, first.Counts["products_gone"])
			m.again()
			second := j.run()
			assert.Equal(t, c.gone, second.Counts["products_gone"])
			if c.saved > 0 {
				assert.Equal(t, c.saved, second.Counts["products_saved"])
			}
			assert.Zero(t, j.left())
		})
	}
}

// The tasks of a crawl are what the site's file found. When its list is another one, the next run
// reads it from the first page, and does not ask for the addresses that were wrong.
func TestCorrectedListIsReadFromItsFirstPage(t *testing.T) {
	t.Parallel()
	const links = `<a class=old href=/old/%d>x</a><a class=p href=/item/%d>x</a>`
	file := "name: shop\nkey: id\nfields: {id: {selector: \"#id\"}}\nlist: {url: \"https://shop.example/\", product_link: {selector: a.old}}\n"
	j := newSite(t, file, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/":
			for n := range 20 {
				_, _ = fmt.Fprintf(w, links, n, n)
			}
		case strings.HasPrefix(path, "/item/"):
			_, _ = fmt.Fprintf(w, "<p id=id>K%s", path[len("/item/"):])
		default:
			http.NotFound(w, r)
		}
	})
	held := j.run()
	require.Equal(t, map[string]int64{"sites_held": 1, "products_saved": 0}, counted(held, "sites_held", "products_saved"))
	site, err := ParseSite([]byte(strings.Replace(file, "a.old", "a.p", 1)))
	require.NoError(t, err)
	j.cfg.Sites = []Site{site}
	total := j.run()
	assert.Equal(t, map[string]int64{"sites_held": 0, "failed_tasks": 0, "products_saved": 20}, counted(total, "sites_held", "failed_tasks", "products_saved"))
}

// An error page with status 200 in the middle of a list is asked for again, and the list is
// then read to its end.
func TestListPageThatIsAnotherOne(t *testing.T) {
	t.Parallel()
	wrong := 0
	j := newSite(t, "name: shop\nkey: id\nfields: {id: {selector: \"#id\"}}\nlist: "+framedList, func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if strings.HasPrefix(path, "/item/") {
			_, _ = fmt.Fprintf(w, "<p id=id>K%s", path[len("/item/"):])
			return
		}
		if path == "/l/3" {
			wrong++
		}
		_, _ = fmt.Fprint(w, framedAnswer(path, path == "/l/3" && wrong <= 2, "<title>Sorry</title><h1>Temporarily unavailable"))
	})
	total := j.run()
	assert.Equal(t, map[string]int64{"products_saved": 40, "failed_tasks": 0, "list_pages_fetched": 5}, counted(total, "products_saved", "failed_tasks", "list_pages_fetched"))
	wrong = -100
	total = j.run()
	assert.Equal(t, map[string]int64{"products_saved": 40, "products_gone": 0, "failed_tasks": 1}, counted(total, "products_saved", "products_gone", "failed_tasks"))
	letters := j.deadLetters()
	require.Len(t, letters, 1)
	assert.Equal(t, []string{"no_products", "https://shop.example/l/3"}, []string{letters[0].Kind, letters[0].Input.URL})
	assert.Equal(t, []ledger.Warning{{Kind: "list_page_unread", Source: "shop", Count: 1}}, total.Warnings)
}

// A product whose page shows another one is missing, as if the page had answered 404: it is
// gone when two crawls have not found it anywhere. Nothing else of the site is.
func TestPageThatShowsAnotherProduct(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		at := map[int]string{}
		lay := func() {
			s.lay(12, func(i int) string {
				if text, is := at[i]; is {
					return text
				}
				return whole(i)
			})
		}
		states := func() string {
			return s.one(`SELECT (SELECT count(*) FROM catalog_products WHERE state = 'gone') || ' gone of ' || count(*) FROM catalog_products`)
		}
		run := func(missing, gone int64) {
			t.Helper()
			lay()
			total := s.run()
			assert.Equal(t, map[string]int64{"products_missing": missing, "products_gone": gone, "sites_failed": 0}, counted(total, "products_missing", "products_gone", "sites_failed"))
			assert.Zero(t, s.left())
		}
		lay()
		s.run()

		at[1] = whole(50) // another product
		at[2] = whole(3)  // as a redirect to another product of the list
		at[4], at[5] = whole(5), whole(4)
		at[6] = "<p id=no>K06" // the key cannot be read
		run(2, 0)
		assert.Equal(t, "0 gone of 13", states())
		at[7] = "" // 404
		run(1, 2)
		assert.Equal(t, "2 gone of 13", states())
		assert.Equal(t, "K01 K02", s.one(`SELECT min(product_key) || ' ' || max(product_key) FROM catalog_products WHERE state = 'gone'`))
		assert.Equal(t, map[string]any{"id": "K50", "price": 51.5, "label": "L50", "offer": "O"}, s.products("shop")["K50"].Detail)
		assert.Equal(t, "https://shop.example/p/01", s.products("shop")["K50"].URL)

		delete(at, 7)
		at[1] = "" // the address of two products, of which one is gone
		run(1, 0)
		assert.Equal(t, "2 gone of 13", states(), "one 404 may be a mistake")
		at[1] = whole(50)
		at[2] = whole(1) // it is back, on another page
		run(0, 0)
		assert.Equal(t, "1 gone of 13", states())
		assert.Equal(t, "back", s.one(`SELECT state FROM catalog_products WHERE product_key = 'K01'`))
	})
}

// One page in place of many is not what became of their products.
func TestOnePageInPlaceOfMany(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", shopFile)
	s.lay(30, whole)
	s.run()
	s.lay(30, func(i int) string {
		if i < 12 {
			return whole(50)
		}
		return whole(i)
	})
	s.run()
	total := s.run()
	assert.LessOrEqual(t, total.Counts["products_gone"], int64(minBreak))
}

// A product that is on another page than before may be on one that was not read.
func TestAnotherProductInAPartialList(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", strings.Replace(shopFile, "}}", `}, pages: 1, next_link: {selector: a.next}}`, 1))
	s.lay(12, whole)
	s.run()
	s.lay(12, func(i int) string {
		if i == 1 {
			return whole(50)
		}
		return whole(i)
	})
	s.pages["/"] += "<a class=next href=/2>"
	for range 3 {
		assert.Zero(t, s.run().Counts["products_gone"])
	}
	s.pages["/"] = strings.Replace(s.pages["/"], "<a class=next href=/2>", "", 1)
	assert.EqualValues(t, 1, s.run().Counts["products_gone"])
}
