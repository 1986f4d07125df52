package catalog

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// Session parameters do not make products of their own: by name, and by a value that changes between two readings.
func TestSessionParameters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		link  string // %d is the product, %s what is new in each answer
		lists int    // 30 products, 9 on a page, and three that repeat the last one
		saved string // the address of K1
	}{
		"SID":               {"/p/%d?SID=%s", 8, "/p/1"},
		"cid between":       {"/p?id=%d&cid=%s&color=red", 8, "/p?id=1&color=red"},
		"PHPSESSID":         {"/p/%d?PHPSESSID=%s", 7, "/p/1"},
		"osCsid":            {"/p?id=%d&amp;osCsid=%s", 7, "/p?id=1"},
		"jsessionid":        {"/p/%d;jsessionid=%s.node1?a=b", 7, "/p/1?a=b"},
		"other in the path": {"/p/%d;vid=%s/show", 8, "/p/1/show"},
		"ASP.NET":           {"/(S(%[2]s))/p/%[1]d", 7, "/p/1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lists, items, answers atomic.Int64
			j := newSite(t, `name: shop
key: id
fields: {id: {selector: "#id"}}
list: {url: "https://shop.example/12-lights?page={page}", product_link: {selector: a.p}, until_empty: true, page_size: 9}
`, func(w http.ResponseWriter, r *http.Request) {
				visit := fmt.Sprintf("%08xa1", 7919*answers.Add(1))
				switch {
				case r.URL.Path == "/12-lights":
					lists.Add(1)
					n, _ := strconv.Atoi(r.URL.Query().Get("page"))
					for i := 9*min(n, 4) - 8; i <= min(9*min(n, 4), 30); i++ {
						_, _ = fmt.Fprintf(w, "<a class=p href='"+c.link+"'>x</a>", i, visit)
					}
				case strings.Contains(r.URL.Path, "/p"):
					items.Add(1)
					id := r.URL.Query().Get("id")
					if id == "" {
						id, _, _ = strings.Cut(strings.TrimSuffix(r.URL.Path[strings.Index(r.URL.Path, "/p/")+3:], "/show"), ";")
					}
					_, _ = fmt.Fprintf(w, "<p id=id>K%s", id)
				default:
					http.NotFound(w, r)
				}
			})
			j.cfg.ListFetchers = 1
			for range 2 {
				lists.Store(0)
				items.Store(0)
				total := j.run()
				assert.Equal(t, map[string]int64{"products_saved": 30, "products_again": 0, "products_gone": 0}, counted(total, "products_saved", "products_again", "products_gone"))
				assert.Equal(t, []int64{int64(c.lists), 30}, []int64{lists.Load(), items.Load()})
			}
			assert.Equal(t, "https://shop.example"+c.saved, j.products("shop")["K1"].URL)
		})
	}
}

// A parameter that tells products apart, or that stays the same, is no session.
func TestParametersThatStay(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"/p?id=%02d00ab99cd", "/p?sid=%d", "/p?id=%d&ref=a1b2c3d4e5", "/p/%d;color=red"} {
		j := newSite(t, "name: shop\nkey: id\nfields: {id: {selector: \"#id\"}}\nlist: {url: \"https://shop.example/l\", product_link: {selector: a}}\n", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/l" {
				for i := range 5 {
					_, _ = fmt.Fprintf(w, "<a href='"+link+"'>x</a>", i)
				}
				return
			}
			_, _ = fmt.Fprintf(w, "<p id=id>%s", r.URL.RequestURI())
		})
		j.run()
		assert.Equal(t, "https://shop.example"+fmt.Sprintf(link, 3), j.products("shop")[fmt.Sprintf(link, 3)].URL)
	}
}

// --details=new fetches what is not stored, --details=incomplete also what lacks a field; both read the whole list, and
// what it no longer names is asked.
func TestDetails(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		page := func(i int) string {
			if i == 3 {
				return "<p id=id>K03<p class=label>L" // no price
			}
			return whole(i)
		}
		s.lay(10, page)
		s.run()
		run := func(details string, lay func(), requested ...string) ledger.Tally {
			t.Helper()
			s.lay(12, page)
			lay()
			s.web.ResetLog()
			s.cfg.Details = details
			total := s.run()
			var products []string
			for _, p := range s.asked("shop.example") {
				if strings.HasPrefix(p, "/p/") {
					products = append(products, p)
				}
			}
			assert.ElementsMatch(t, requested, products, details)
			assert.Zero(t, s.left())
			assert.Empty(t, total.Warnings)
			return total
		}
		total := run(DetailsNew, func() {}, "/p/10", "/p/11")
		assert.Equal(t, map[string]int64{"products_new": 2, "products_saved": 2, "products_gone": 0}, counted(total, "products_new", "products_saved", "products_gone"))
		run(DetailsNew, func() {})
		total = run(DetailsIncomplete, func() { s.pages["/p/03"] = whole(3) }, "/p/03")
		assert.EqualValues(t, 1, total.Counts["products_changed"])
		assert.Equal(t, 4.5, s.products("shop")["K03"].Detail["price"])
		total = run(DetailsNew, func() {
			s.pages["/"] = strings.Replace(s.pages["/"], "<a class=p href=/p/07>x</a>", "", 1)
			delete(s.pages, "/p/07")
		}, "/p/07")
		assert.EqualValues(t, 1, total.Counts["products_gone"])
		total = run(DetailsNew, func() {}, "/p/07")
		assert.EqualValues(t, 1, total.Counts["products_back"])
	})
}

// The number of products that a list states is compared with those that it names, by key; it may change meanwhile.
func TestTotal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stated, list string
		want         []ledger.Warning
	}{
		"right":               {"<b>10 products</b>", "", nil},
		"more":                {"<b>13 products</b>", "", []ledger.Warning{{Kind: "list_total", Source: "shop", Count: 3}}},
		"fewer":               {"<b>9 products</b>", "", []ledger.Warning{{Kind: "list_total", Source: "shop", Count: 1}}},
		"two links, one key":  {"<b>10 products</b>", "<a class=p href=/p/03?again>x</a>", nil},
		"a link without page": {"<b>11 products</b>", "<a class=p href=/p/99>x</a>", nil},
		"none":                {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, "", strings.Replace(shopFile, "a.p}}", "a.p}, total: {selector: b}}", 1))
			s.lay(10, whole)
			s.pages["/"] += c.stated + c.list
			s.pages["/p/03?again"] = whole(3)
			s.run()
			assert.Equal(t, c.want, s.run().Warnings)
		})
	}
}

// A list that has more pages than are read is an alert.
func TestListWithMorePagesThanAreRead(t *testing.T) {
	t.Parallel()
	for list, pages := range map[string]string{
		"until_empty: true, pages: 3":                   "",
		"pages: 3":                                      "",
		"last_page: {selector: a.last}, pages: 3":       "pager",
		"last_page: {selector: a.last}, pages: 6":       "whole",
		"until_empty: true, pages: 7":                   "whole",
		"total: {selector: b}, page_size: 10, pages: 3": "",
	} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			s := &bazaar{perPage: 10, listed: numbers(1, 60), pager: true}
			j := newSite(t, "name: shop\nkey: id\nfields: {id: {selector: \"#id\"}}\nlist: {url: \"https://shop.example/l/{page}\", product_link: {selector: a.p}, "+list+"}\n", func(w http.ResponseWriter, r *http.Request) {
				if n, _ := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]); strings.HasPrefix(r.URL.Path, "/l/") && n > 6 {
					return // an empty page
				}
				s.ServeHTTP(w, r)
			})
			want := []ledger.Warning{{Kind: "list_limited", Source: "shop", Count: 1}}
			if pages == "whole" {
				want = nil
			}
			require.Equal(t, want, j.run().Warnings)
			require.Empty(t, j.run().Warnings, "the owner knows it")
		})
	}
}
