package catalog

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A page whose products the site's file leaves out is not the end of the list.
func TestPagesThatAFilterEmpties(t *testing.T) {
	t.Parallel()
	const cups = "cup cup"
	for name, c := range map[string]struct {
		list  string
		pages []string // the types of the products of each page; the last one is repeated for ever
		saved int64
	}{
		"in the middle":          {`rows: {path: "products[?type=='tea']"}, until_empty: true`, []string{"tea tea", cups, "tea cup", ""}, 3},
		"the first":              {`rows: {path: "products[?type=='tea']"}, until_empty: true`, []string{cups, "tea tea", ""}, 2},
		"several":                {`rows: {path: "products[?contains(['tea', 'x]'], type)] | [*]"}, until_empty: true`, []string{"tea", cups, cups, cups, "tea", ""}, 2},
		"by a regexp":            {`product_link: {path: "products[*].link", regexp: ".*-tea$"}, until_empty: true`, []string{"tea tea", cups, "tea", ""}, 3},
		"the last is repeated":   {`rows: {path: "products[?type=='tea']"}, until_empty: true`, []string{"tea", "same"}, 1},
		"numbered, and one gone": {`rows: {path: "products[?type=='tea']"}, last_page: {path: pages}`, []string{"tea tea", cups, "tea cup"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crawl := 1
			j := newSite(t, "name: shop\nkey: id\nfields: {id: {path: id"+strings.Repeat(", from: row", strings.Count(c.list, "rows"))+"}}\nlist: {url: \"https://shop.example/l/{page}\", format: json, "+c.list+
				"}\ndetail: {format: "+map[bool]string{true: "none", false: "json"}[strings.Contains(c.list, "rows")]+"}\n", func(w http.ResponseWriter, r *http.Request) {
				var page int
				if n, _ := fmt.Sscanf(r.URL.Path, "/l/%d", &page); n == 0 {
					_, _ = fmt.Fprintf(w, `{"id": %q}`, r.URL.Path)
					return
				}
				var all []string
				types := c.pages[min(page, len(c.pages))-1]
				for i, kind := range strings.Fields(types) {
					if page == len(c.pages) && crawl == 2 && kind == "tea" {
						continue
					}
					if kind == "same" {
						page = 0
					}
					all = append(all, fmt.Sprintf(`{"id": "%d-%d", "type": %q, "link": "/p/%[1]d-%d-%[3]s"}`, page, i, kind, i))
				}
				_, _ = fmt.Fprintf(w, `{"products": [%s], "pages": %d}`, strings.Join(all, ","), len(c.pages))
			})
			total := j.run()
			assert.Equal(t, map[string]int64{"products_saved": c.saved, "failed_tasks": 0, "sites_failed": 0}, counted(total, "products_saved", "failed_tasks", "sites_failed"))
			assert.LessOrEqual(t, total.Counts["list_pages_fetched"], int64(len(c.pages)+1))
			if strings.HasPrefix(name, "numbered") {
				crawl = 2
				assert.Zero(t, j.run().Counts["products_gone"], "a second crawl decides")
				assert.EqualValues(t, 1, j.run().Counts["products_gone"])
			}
		})
	}
}

func TestUnfiltered(t *testing.T) {
	for in, want := range map[string]string{
		"products[?type=='tea'].url":                 "products[*].url",
		"products[?tags[0]==']'] | [0:5]":            "products[*] | [0:5]",
		"a[?x=='[?'].b[?contains(@, `\"]\"`)][]":     "a[*].b[*][]",
		"'[?'":                                       "'[?'",
		"products[*]":                                "products[*]",
		"sort_by(products[?a && b[?c]], &url)[].url": "sort_by(products[*], &url)[].url",
		"\"a[?\"[?b=='ü\\'']":                        "\"a[?\"[*]",
	} {
		assert.Equal(t, want, unfiltered(in), in)
	}
}
