package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/browser/browsertest"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

const scriptsFile = `
name: scripts
list:
  url: https://scripts.example/shop?page={page}
  rendering: true
  product_link: {selector: "li > a"}
  last_page: {selector: .last}
detail: {rendering: true}
key: sku
fields:
  sku: {selector: .sku}
  price: {selector: .price, type: money, currency: EUR, locale: de-DE}
`

// scripts is a shop of 5 products, 3 on a page, whose pages are empty until their scripts
// have asked for data. Some of its parts are on other hosts, or not for crawlers.
type scripts struct {
	mu    sync.Mutex
	asked []string
	busy  bool // the next request for data is answered with 503
}

func (s *scripts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.RequestURI())
	busy := s.busy && strings.HasPrefix(r.URL.Path, "/data/item/2")
	s.busy = s.busy && !busy
	s.mu.Unlock()
	write := func(kind, text string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text)
	}
	switch path := r.URL.Path; {
	case path == "/robots.txt":
		write("text/plain", "User-agent: *\nDisallow: /private/\n")
	case path == "/shop" || strings.HasPrefix(path, "/item/"):
		write("text/html; charset=utf-8", `<!doctype html><title>App</title><link rel=stylesheet href=/app.css><div id=root></div><img src=/logo.png>
			<script src="https://tracker.example/t.js"></script><script src="/app.js"></script>`)
	case path == "/app.js":
		write("text/javascript", `fetch("/private/me.json").catch(() => 0); fetch("https://api.other.example/x.json").catch(() => 0);
			const root = document.getElementById("root");
			fetch("/data" + location.pathname + ".json" + location.search).then(r => r.json()).then(d => { root.innerHTML = d.items
				? "<ul>" + d.items.map(n => "<li><a href='/item/" + n + "'>" + n + "</a>").join("") + "</ul><b class=last>" + d.pages + "</b>"
				: "<b class=sku>" + d.sku + "</b><i class=price>" + d.price + "</i>"; })`)
	case path == "/data/shop.json":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		items := []int{}
		for n := 3*page - 2; n <= min(3*page, 5); n++ {
			items = append(items, n)
		}
		b, _ := json.Marshal(map[string]any{"items": items, "pages": 2})
		write("application/json", string(b))
	case busy:
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasPrefix(path, "/data/item/"):
		n := strings.TrimSuffix(strings.TrimPrefix(path, "/data/item/"), ".json")
		write("application/json", fmt.Sprintf(`{"sku": "S%s", "price": "1.%s00,50"}`, n, n))
	default:
		http.NotFound(w, r)
	}
}

// Pages that only scripts make are read after a browser has run them. What the scripts ask
// for is asked politely, and on the site's own host alone; a page whose data could not be
// had is fetched again.
func TestRenderedShop(t *testing.T) {
	t.Parallel()
	browsertest.Want(t)
	j := newJob(t, "", webtest.Options{})
	site, err := ParseSite([]byte(scriptsFile))
	require.NoError(t, err)
	j.cfg.Sites, j.cfg.UnsandboxedBrowser = []Site{site}, os.Geteuid() == 0
	s := &scripts{busy: true}
	j.web.Handle("scripts.example", s)
	total := j.run()
	assert.Equal(t, map[string]int64{"list_pages_fetched": 2, "product_urls_found": 5, "products_saved": 5, "failed_tasks": 0}, counted(total, "list_pages_fetched", "product_urls_found", "products_saved", "failed_tasks"))
	got := j.products("scripts")
	for n := 1; n <= 5; n++ {
		assert.Equal(t, map[string]any{"sku": fmt.Sprint("S", n), "price": map[string]any{"amount": 1000.5 + 100*float64(n), "currency": "EUR"}}, got[fmt.Sprint("S", n)].Detail)
	}
	slices.Sort(s.asked)
	assert.Equal(t, []string{"/app.js", "/data/item/1.json", "/data/item/2.json", "/data/item/2.json", "/data/item/3.json", "/data/item/4.json", "/data/item/5.json", "/data/shop.json?page=1", "/data/shop.json?page=2",
		"/item/1", "/item/2", "/item/2", "/item/3", "/item/4", "/item/5", "/robots.txt", "/shop?page=1", "/shop?page=2"}, s.asked, "one app.js, nothing of /private/, no picture, no style")
	for _, r := range j.web.Requests() {
		assert.Equal(t, "scripts.example", r.Host)
	}

	j.cfg.Sites[0].Detail.Rendering = false
	j.run()
	assert.Equal(t, "missing_key", j.deadLetters()[0].Kind, "without rendering the pages are empty")
}

// Pages that show their products late are waited for, and one without its key is rendered once more.
func TestRenderedLate(t *testing.T) {
	t.Parallel()
	browsertest.Want(t)
	j := newJob(t, "", webtest.Options{})
	site, err := ParseSite([]byte(scriptsFile))
	require.NoError(t, err)
	j.cfg.Sites, j.cfg.UnsandboxedBrowser = []Site{site}, os.Geteuid() == 0
	j.web.Handle("scripts.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/shop":
			_, _ = io.WriteString(w, `<body><script>setTimeout(() => document.body.innerHTML = "<ul><li><a href=/item/1>1</a><li><a href=/item/2>2</a></ul><b class=last>1</b>", 1200)</script>`)
		case "/item/1": // its price comes first
			_, _ = io.WriteString(w, `<body><i class=price>5,00</i><script>setTimeout(() => document.body.innerHTML += "<b class=sku>S1</b>", 1200)</script>`)
		default: // its first rendering shows nothing
			_, _ = io.WriteString(w, `<body><i class=price>6,00</i><script>if (localStorage.seen) document.body.innerHTML += "<b class=sku>S2</b>"; localStorage.seen = 1</script>`)
		}
	}))
	total := j.run()
	assert.Equal(t, map[string]int64{"products_saved": 2, "failed_tasks": 0}, counted(total, "products_saved", "failed_tasks"))
	assert.Len(t, j.web.Requests(), 4, "robots.txt, the list and two products: a page is not fetched again to be rendered again")
}

// A site that needs a browser is not crawled without one, or without its sandbox.
func TestRenderingNeedsABrowser(t *testing.T) {
	j := newJob(t, "", webtest.Options{})
	site, err := ParseSite([]byte(scriptsFile))
	require.NoError(t, err)
	s := &scripts{}
	j.web.Handle("scripts.example", s)
	if _, err := browser.Find(false); err != nil {
		require.ErrorIs(t, j.visitOf(j.config(), site).run(t.Context()), err)
	}
	t.Setenv("PATH", t.TempDir())
	j.cfg.UnsandboxedBrowser = true
	require.ErrorIs(t, j.visitOf(j.config(), site).run(t.Context()), browser.ErrMissing)
	assert.Empty(t, s.asked)
}

func TestRenderingOfWhat(t *testing.T) {
	t.Parallel()
	f := func(list, detail, want string) {
		t.Helper()
		_, err := ParseSite([]byte("name: a\nlist: {url: \"https://a.example/\", product_link: " + list + "}\ndetail: {" + detail + "}\nkey: k\nfields: {k: {selector: b, path: k}}\n"))
		require.ErrorContains(t, err, want)
	}
	f("{path: a}, format: json, rendering: true", "", "line 2: list.rendering: only HTML pages without body are rendered")
	f("{selector: a}, body: x, rendering: true", "", "line 2: list.rendering: only HTML pages without body are rendered")
	f("{selector: a}", "format: json, rendering: true", "line 3: detail.rendering: only HTML pages are rendered")
}
