package catalog

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
)

// newSite is a job with one site, whose host shop.example answers as handle does.
func newSite(t *testing.T, file string, handle http.HandlerFunc) *job {
	t.Helper()
	j := newJob(t, "", webtest.Options{})
	site, err := ParseSite([]byte(file))
	require.NoError(t, err)
	j.cfg.Sites = []Site{site}
	j.web.Handle("shop.example", handle)
	return j
}

// Links are relative to where redirects led to, and not to the address that was asked for.
// A product keeps the address that the list names.
func TestLinksAfterARedirect(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"/de/shop/":        `<a class=p href="item/1">x</a><a class=next href="?page=2">`,
		"/de/shop/?page=2": `<a class=p href="item/2">x</a>`,
		"/de/shop/item/1/": `<p id=id>K1<a class=manual href="manual.pdf">`,
		"/de/shop/item/2":  `<p id=id>K2<a class=manual href="/m/2.pdf">`,
	}
	j := newSite(t, `
name: shop
list: {url: "https://shop.example/shop", product_link: {selector: a.p}, next_link: {selector: a.next}}
key: id
fields:
  id: {selector: "#id"}
  manual: {selector: a.manual, type: url}
`, func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.RequestURI()
		to := map[string]string{"/shop": "/de/shop/", "/de/shop/item/1": "/de/shop/item/1/"}[at]
		switch text, ok := pages[at]; {
		case to != "":
			http.Redirect(w, r, to, http.StatusMovedPermanently)
		case ok:
			_, _ = w.Write([]byte(text))
		default:
			http.NotFound(w, r)
		}
	})
	total := j.run()
	assert.Equal(t, map[string]int64{"products_saved": 2, "failed_tasks": 0}, counted(total, "products_saved", "failed_tasks"))
	saved := j.products("shop")
	for key, want := range map[string][2]string{"K1": {"https://shop.example/de/shop/item/1", "https://shop.example/de/shop/item/1/manual.pdf"}, "K2": {"https://shop.example/de/shop/item/2", "https://shop.example/m/2.pdf"}} {
		assert.Equal(t, want[:], []string{saved[key].URL, saved[key].Detail["manual"].(string)}, key)
	}
}
