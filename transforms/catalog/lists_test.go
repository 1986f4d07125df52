package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// shelf is a shop of 23 products, five on a page, whose list exists in many forms.
const shelfProducts, shelfSize = 23, 5

func shelfPage(after int) (items []map[string]any) {
	for n := after + 1; n <= min(after+shelfSize, shelfProducts); n++ {
		items = append(items, map[string]any{"id": n, "sku": fmt.Sprintf("S-%02d", n), "price": 1.5 * float64(n), "path": fmt.Sprintf("/item/%d", n), "note": "12,5"})
	}
	return items
}

// shelf answers as the shop does; body is what was sent with POST.
func shelf(w http.ResponseWriter, r *http.Request) {
	write := func(v any) { _ = json.NewEncoder(w).Encode(v) } //nolint:errchkjson // the client has closed the connection
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	query := r.URL.Query()
	body, _ := io.ReadAll(r.Body)
	switch path := r.URL.Path; {
	case path == "/robots.txt":
		_, _ = io.WriteString(w, "User-agent: *\nAllow: /\n")
	case path == "/pages":
		page := number(query.Get("page"))
		write(map[string]any{"items": shelfPage((page - 1) * shelfSize), "meta": map[string]any{"pages": 5}})
	case path == "/offsets":
		write(map[string]any{"items": shelfPage(number(query.Get("from"))), "total": shelfProducts})
	case path == "/cursors":
		after := number(strings.TrimPrefix(query.Get("c"), "after/&"))
		out := map[string]any{"items": shelfPage(after), "next": nil}
		if after+shelfSize < shelfProducts {
			out["next"] = fmt.Sprintf("after/&%d", after+shelfSize)
		}
		write(out)
	case path == "/graphql": // as GitHub's, which refuses "" as a cursor
		var ask struct{ Variables struct{ After any } }
		after, is := "", true
		if json.Unmarshal(body, &ask) != nil || ask.Variables.After != nil {
			after, is = ask.Variables.After.(string)
			is = is && strings.HasPrefix(after, "after ")
		}
		if !is {
			write(map[string]any{"data": nil, "errors": []string{"no valid cursor"}})
			return
		}
		next := number(strings.TrimPrefix(after, "after ")) + shelfSize
		write(map[string]any{"data": map[string]any{"items": shelfPage(next - shelfSize), "page": map[string]any{"more": next < shelfProducts, "end": fmt.Sprintf("after %d", next)}}})
	case path == "/relay":
		after := number(query.Get("c"))
		write(map[string]any{"items": shelfPage(after), "page": map[string]any{"more": after+shelfSize < shelfProducts, "end": after + shelfSize}})
	case path == "/zero":
		after := number(query.Get("c"))
		write(map[string]any{"items": shelfPage(after), "next": (after + shelfSize) % (shelfProducts/shelfSize*shelfSize + shelfSize)})
	case path == "/empty":
		after := number(query.Get("c"))
		out := map[string]any{"items": append([]map[string]any{}, shelfPage(after)...), "next": nil}
		if after < shelfProducts {
			out["next"] = strconv.Itoa(after + shelfSize)
		}
		write(out)
	case path == "/search" && r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json":
		var ask struct {
			After string
			Size  int
		}
		if json.Unmarshal(body, &ask) != nil || ask.Size != shelfSize {
			http.Error(w, "bad body", http.StatusBadRequest)
			return
		}
		next := number(strings.Trim(ask.After, `"`)) + shelfSize
		write(map[string]any{"items": shelfPage(next - shelfSize), "next": fmt.Sprintf(`"%d"`, min(next, shelfProducts/shelfSize*shelfSize))}) // the last cursor is its own next
	case path == "/form" && r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded":
		page := number(strings.TrimPrefix(string(body), "page="))
		write(map[string]any{"items": shelfPage((page - 1) * shelfSize)})
	case path == "/links":
		after := number(query.Get("after"))
		out := map[string]any{"items": shelfPage(after)}
		if after+shelfSize < shelfProducts {
			out["next"] = fmt.Sprintf("?after=%d", after+shelfSize)
		}
		write(out)
	case path == "/more":
		after := number(query.Get("after"))
		for _, item := range shelfPage(after) {
			fmt.Fprintf(w, `<div class=card data-price="%v"><a href="%s">x</a></div>`, item["price"], item["path"])
		}
		if after+shelfSize < shelfProducts {
			fmt.Fprintf(w, `<button class=more data-url="/more?after=%d">`, after+shelfSize)
		}
	case path == "/table":
		if number(query.Get("p")) > 5 {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "<table>")
		for _, item := range shelfPage((number(query.Get("p")) - 1) * shelfSize) {
			fmt.Fprintf(w, `<tr data-sku="%s"><td>%v EUR<td>12,5 kg</tr>`, item["sku"], item["price"])
		}
	case path == "/load":
		after := number(query.Get("after"))
		var rows strings.Builder
		for _, item := range shelfPage(after) {
			fmt.Fprintf(&rows, `<tr class=row><td><a href="%s" data-sku="%s">more</a><td class=price>%v EUR`, item["path"], item["sku"], item["price"])
		}
		more := ""
		if after+shelfSize < shelfProducts {
			more = fmt.Sprintf(`<button data-next="/load?after=%d">more</button>`, after+shelfSize)
		}
		write(map[string]any{"html": rows.String(), "parts": []string{"", more}})
	case path == "/sitemap.xml":
		fmt.Fprint(w, `<sitemapindex><sitemap><loc>https://shelf.example/sitemap-1.xml</loc></sitemap><sitemap><loc>https://shelf.example/sitemap-2.xml</loc></sitemap></sitemapindex>`)
	case strings.HasPrefix(path, "/sitemap-"):
		fmt.Fprint(w, `<urlset><url><loc>https://shelf.example/about</loc></url>`)
		for n := 1; n <= shelfProducts; n++ {
			if strconv.Itoa(n%2+1)+".xml" == strings.TrimPrefix(path, "/sitemap-") {
				fmt.Fprintf(w, `<url><loc>https://shelf.example/item/%d</loc></url>`, n)
			}
		}
		fmt.Fprint(w, `</urlset>`)
	case strings.HasPrefix(path, "/item/"):
		n := number(strings.TrimPrefix(path, "/item/"))
		fmt.Fprintf(w, `<p class=sku>S-%02d</p><p class=price>%v</p>`, n, 1.5*float64(n))
	case strings.HasPrefix(path, "/api/item/"):
		n := number(strings.TrimPrefix(path, "/api/item/"))
		write(map[string]any{"sku": fmt.Sprintf("S-%02d", n), "price": 1.5 * float64(n)})
	default:
		http.NotFound(w, r)
	}
}

const jsonRowFields = `
detail: {format: none}
key: sku
fields:
  sku: {path: sku}
  price: {path: price, type: number}
`

// shelfForm is a form of a list: the file without its name, and how many list pages are requested.
type shelfForm struct {
	File  string
	Lists int
}

func shelves(t testing.TB) map[string]shelfForm {
	return cases.Table[map[string]shelfForm](t, "shelves.yaml")
}

func (j *job) shelf(t testing.TB, file string) {
	s, err := ParseSite([]byte("name: shelf\n" + file))
	require.NoError(t, err)
	j.cfg.Sites = []Site{s}
	j.web.Handle("shelf.example", http.HandlerFunc(shelf))
}

func (j *job) checkShelf(t testing.TB) {
	t.Helper()
	got := j.products("shelf")
	assert.Len(t, got, shelfProducts)
	for n := 1; n <= shelfProducts; n++ {
		sku := fmt.Sprintf("S-%02d", n)
		assert.Equal(t, map[string]any{"sku": sku, "price": 1.5 * float64(n)}, got[sku].Detail)
	}
}

// Each form of list leads to all products, a second run finds nothing new, and a product
// that is no longer in the list is gone: each list was read to its end.
func TestFormsOfLists(t *testing.T) {
	t.Parallel()
	for name, form := range shelves(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "", webtest.Options{})
			j.shelf(t, form.File)
			total := j.run()
			details := int64(shelfProducts)
			if strings.Contains(form.File, "format: none") {
				details = 0
			}
			lists := int64(form.Lists)
			if strings.Contains(name, "does not exist") {
				lists-- // the last one is not counted: it does not exist
			}
			assert.Equal(t, map[string]int64{"list_pages_fetched": lists, "product_urls_found": shelfProducts, "detail_pages_fetched": details, "products_saved": shelfProducts,
				"failed_tasks": 0, "products_new": shelfProducts, "products_changed": 0, "products_unchanged": 0, "products_gone": 0, "sites": 1, "sites_failed": 0, "sites_held": 0}, reported(total))
			assert.Equal(t, int64(form.Lists)+details+1, total.HTTP.Requests)
			assert.Empty(t, j.deadLetters())
			j.checkShelf(t)
			_, err := j.db.ExecContext(t.Context(), `INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at) VALUES ('shelf', 'old', 'https://shelf.example/old', '{}', '', 1, 1, 1)`)
			require.NoError(t, err)
			if details == 0 { // it has no page that could be requested, so a second crawl decides
				assert.EqualValues(t, 1, j.run().Counts["products_missing"])
			}
			assert.Equal(t, map[string]int64{"products_unchanged": shelfProducts, "products_gone": 1}, counted(j.run(), "products_unchanged", "products_gone"))
		})
	}
}

// A killed crawl of each form of list is resumed where it was: no page of the list that
// led to its products is read again.
func TestKilledListIsResumed(t *testing.T) {
	t.Parallel()
	eachDBs(t, func(t *testing.T, dsn func(testing.TB) string) {
		for name, form := range shelves(t) {
			t.Run(name, func(t *testing.T) {
				j := newJob(t, dsn(t), webtest.Options{}, "matter")
				j.shelf(t, form.File)
				j.cfg.ListFetchers, j.cfg.Sites = 1, slices.Clone(j.cfg.Sites)
				ctx, kill := context.WithCancel(t.Context())
				lists := 0
				j.web.Handle("shelf.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.Contains(r.URL.Path, "item") && r.URL.Path != "/robots.txt" {
						if lists++; lists == 3 {
							kill()
						}
					}
					shelf(w, r)
				}))
				v := j.visitOf(j.config(), j.cfg.Sites[0])
				if err := v.run(ctx); err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				kill()
				require.Less(t, lists, form.Lists+1)
				total := j.run()
				j.checkShelf(t)
				assert.LessOrEqual(t, lists, form.Lists+2, "the third one, and one in the parser, again")
				assert.Zero(t, total.Counts["failed_tasks"])
				assert.Zero(t, j.left())
			})
		}
	})
}

// Lists that never end are left, and say so: nothing is called gone.
func TestListsThatLoop(t *testing.T) {
	t.Parallel()
	f := func(name, file string, requests int, list http.HandlerFunc) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "", webtest.Options{})
			j.shelf(t, file+jsonRowFields)
			j.web.Handle("shelf.example", list)
			_, err := j.db.ExecContext(t.Context(), `INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at) VALUES ('shelf', 'old', 'https://shelf.example/old', '{}', '', 1, 1, 1)`)
			require.NoError(t, err)
			total := j.run()
			assert.EqualValues(t, requests, total.HTTP.Requests)
			assert.Equal(t, map[string]int64{"products_gone": 0, "failed_tasks": 0}, counted(total, "products_gone", "failed_tasks"))
		})
	}
	one := func(w io.Writer, sku any, next string) {
		fmt.Fprintf(w, `{"items": [{"sku": "%v", "price": 1}], "next": %q}`, sku, next)
	}
	f("a cursor of an earlier page", `list: {url: "https://shelf.example/?c={cursor}", format: json, rows: {path: items}, next_cursor: {path: next}}`, 4, func(w http.ResponseWriter, r *http.Request) {
		c := r.URL.Query().Get("c")
		one(w, "S"+c, map[string]string{"": "a", "a": "b", "b": "a"}[c])
	})
	f("links in a circle", `list: {url: "https://shelf.example/?c=0", format: json, rows: {path: items}, next_link: {path: next}}`, 4, func(w http.ResponseWriter, r *http.Request) {
		c, _ := strconv.Atoi(r.URL.Query().Get("c"))
		one(w, c, fmt.Sprintf("/?c=%d", (c+1)%3))
	})
	f("the last page again and again", `list: {url: "https://shelf.example/?c={page}", format: json, rows: {path: items}, until_empty: true}`, 7, func(w http.ResponseWriter, r *http.Request) {
		c, _ := strconv.Atoi(r.URL.Query().Get("c"))
		one(w, min(c, 3), "")
	})
	f("new cursors with the same products", `list: {url: "https://shelf.example/?c={cursor}", format: json, rows: {path: items}, next_cursor: {path: next}}`, 5, func(w http.ResponseWriter, r *http.Request) {
		one(w, "S", r.URL.Query().Get("c")+"x")
	})
	f("new links with the same products", `list: {url: "https://shelf.example/?c=0", format: json, rows: {path: items}, next_link: {path: next}}`, 5, func(w http.ResponseWriter, r *http.Request) {
		c, _ := strconv.Atoi(r.URL.Query().Get("c"))
		one(w, min(c/10, 1), fmt.Sprintf("/?c=%d", c+1))
	})
	f("new cursors without end", `list: {url: "https://shelf.example/?c={cursor}", pages: 7, format: json, rows: {path: items}, next_cursor: {path: next}}`, 8, func(w http.ResponseWriter, r *http.Request) {
		c := r.URL.Query().Get("c")
		one(w, "S"+c, c+"x")
	})
}

// A site gives fewer products on a page than list.page_size says, as sites do that limit it:
// the products between the pages are left out, which is an alert.
func TestPagesThatAreShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list  string
		short bool
	}{
		"an offset and total":     {`{url: "https://shelf.example/offsets?from={offset}", format: json, page_size: 8, rows: {path: items}, total: {path: total}}`, true},
		"an offset, until empty":  {`{url: "https://shelf.example/offsets?from={offset}", format: json, page_size: 8, rows: {path: items}, until_empty: true}`, true},
		"a page and total":        {`{url: "https://shelf.example/pages?page={page}", format: json, page_size: 8, rows: {path: items}, total: {path: "meta.pages && '23'"}}`, true},
		"a list of one page":      {`{url: "https://shelf.example/offsets?from={offset}", format: json, page_size: 30, rows: {path: items}, until_empty: true}`, false},
		"a smaller size":          {`{url: "https://shelf.example/offsets?from={offset}", format: json, page_size: 4, rows: {path: items}, until_empty: true}`, false},
		"a size that is not used": {`{url: "https://shelf.example/pages?page={page}", format: json, page_size: 8, rows: {path: items}, last_page: {path: meta.pages}}`, false},
		"the right size":          {`{url: "https://shelf.example/pages?page={page}", format: json, page_size: 5, rows: {path: items}, total: {path: "meta.pages && '23'"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "", webtest.Options{})
			j.shelf(t, "list: "+c.list+jsonRowFields)
			_, err := j.db.ExecContext(t.Context(), `INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at) VALUES ('shelf', 'old', 'https://shelf.example/old', '{}', '', 1, 1, 1)`)
			require.NoError(t, err)
			if !c.short && name != "a list of one page" {
				assert.Zero(t, j.run().Counts["products_gone"], "a second crawl decides")
			}
			total := j.run()
			want, gone := []ledger.Warning(nil), int64(1)
			if c.short {
				want, gone = []ledger.Warning{{Kind: "list_page_short", Source: "shelf", Count: 1}}, 0
			}
			assert.Equal(t, want, total.Warnings)
			if name != "a list of one page" {
				assert.Equal(t, gone, total.Counts["products_gone"])
			}
		})
	}
}

// What {cursor} is in a body of JSON.
func TestCursorInABody(t *testing.T) {
	f := func(body, first, cursor, want string) {
		t.Helper()
		r := &reader{site: Site{List: list{URL: "https://shelf.example/", Body: body, FirstCursor: first}}}
		at, got := r.listRequest(r.cursorURL(2, cursor), 2)
		assert.Equal(t, "https://shelf.example/", at)
		assert.Equal(t, want, string(got))
	}
	f(`{"a": "{cursor}"}`, "", `x"\y`, `{"a": "x\"\\y"}`)
	f(`{"a": "{cursor}"}`, "", "", `{"a": ""}`)
	f(`{"a": {cursor}, "p": {page}}`, "", "", `{"a": null, "p": 2}`)
	f(`{"a": {cursor}}`, "", `x"{page}`, `{"a": "x\"{page}"}`)
	f(`{"a": {cursor}}`, "", "17", `{"a": 17}`)
	f(`{"q": "say \"{cursor}\" {", "a": {cursor}}`, "", "x", `{"q": "say \"x\" {", "a": "x"}`)
}

// visitOf is a crawl of any site without a pipeline around it.
func (j *job) visitOf(cfg Config, s Site) *visit {
	j.t.Helper()
	_, w := j.visit(cfg, "matter")
	v, err := newVisit(cfg, w, j.db, s, &Stats{})
	require.NoError(j.t, err)
	return v
}

// The headers of a site's file are sent to the site, with the secrets of the environment
// in them; they are in no redirect to http, and in no log and no dead letter.
func TestHeaders(t *testing.T) {
	file := `name: shelf
headers: {X-Api-Key: "key ${SITE_SHELF_KEY}", Accept-Language: de}
` + shelves(t)["cursor in a body"].File
	j := newJob(t, "", webtest.Options{})
	j.shelf(t, strings.TrimPrefix(file, "name: shelf\n"))
	seen := map[string]int{}
	j.web.Handle("shelf.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Api-Key")+" "+r.Header.Get("Accept-Language")]++
		shelf(w, r)
	}))
	_, cause := j.try(j.config())
	require.NoError(t, cause)
	letters := j.deadLetters()
	require.Len(t, letters, 1)
	assert.Equal(t, "missing_environment", letters[0].Kind)
	assert.Equal(t, "headers.X-Api-Key of its file needs the environment variable SITE_SHELF_KEY, which is not set where the crawl runs: set it and start the same command again", letters[0].Error)
	assert.Empty(t, seen, "without the key nothing is sent")

	t.Setenv("SITE_SHELF_KEY", "s3cret")
	j.run()
	j.checkShelf(t)
	assert.Equal(t, map[string]int{"GET /robots.txt  ": 1, "POST /search key s3cret de": 5}, seen)

	j.web.Handle("shelf.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, "http://shelf.example/plain", http.StatusTemporaryRedirect)
	}))
	require.NoError(t, func() error { _, err := j.try(j.config()); return err }())
	for _, l := range j.deadLetters() {
		assert.NotContains(t, l.Error, "s3cret")
	}
	for _, r := range j.web.Requests() {
		assert.NotEqual(t, "/plain", r.Path)
	}
}

// Products whose rows have one link together are different products, also where one list
// page ends and the next one begins, and whatever their order is.
func TestRowsWithOneLink(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		j := newJob(t, dsn, webtest.Options{})
		j.shelf(t, `list: {url: "https://shelf.example/variants?p={page}", format: json, rows: {path: items}, product_link: {path: page}, until_empty: true}`+jsonRowFields)
		backwards := false
		j.web.Handle("shelf.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("p"))
			items := []map[string]any{}
			for n := (page-1)*5 + 1; n >= 1 && n <= min(page*5, shelfProducts); n++ {
				of := n
				if backwards {
					of = shelfProducts + 1 - n
				}
				items = append(items, map[string]any{"sku": fmt.Sprintf("S-%02d", of), "price": 1.5 * float64(of), "page": fmt.Sprintf("/lamp-%d", (of-1)/3)})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"items": items}) //nolint:errchkjson // the client has closed the connection
		}))
		for i := range 4 {
			backwards = i > 1
			total := j.run()
			j.checkShelf(t)
			fresh := int64(0)
			if i == 0 {
				fresh = shelfProducts
			}
			assert.Equal(t, map[string]int64{"product_urls_found": shelfProducts, "products_new": fresh, "products_saved": shelfProducts, "products_gone": 0, "products_missing": 0, "failed_tasks": 0},
				counted(total, "product_urls_found", "products_new", "products_saved", "products_gone", "products_missing", "failed_tasks"))
		}
	})
}
