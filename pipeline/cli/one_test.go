package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
)

// site writes a site's file for the simulated shop.
func site(t *testing.T, fields string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`name: mine
list:
  url: https://gadgets.example/shop/
  product_link: {selector: "ol.goods > li > h3 > a"}
  next_link: {selector: "ul.pager li.next a"}
key: sku
fields:
`+fields), 0o600))
	return file
}

// --try prints what a site's file reads from one page: the values, the selectors that
// match nothing, and what the page has in their place.
func TestCatalogTry(t *testing.T) {
	emptyEnv(t)
	file := site(t, `  sku: {selector: "[itemprop=sku]", attribute: content}
  title: {selector: "#Product header h2"}
  price: {selector: ".prices"}
  in_stock: {selector: "td.stock", type: integer}
  rating: {selector: "p.stars", attribute: rating, optional: true}
  size: {selector: h2, regexp: '\d+ cm', optional: true}
`)
	got := here(t, "--job=catalog --web=demo --store="+t.TempDir()+" --log-level=error --try=https://gadgets.example/shop/item/7 --site="+file)
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, `https://gadgets.example/shop/item/7, read by the file of mine

as a list page: 0 links to products, 0 other links ignored
    list.product_link  no element matches the selector
      selector ol.goods > li > h3 > a matches 0
    list.next_link     no element matches the selector
      selector ul.pager li.next a matches 0

as a product's page: key G-0007
  ✗ in_stock           "Yes" has no number
      selector td.stock matches 1
  ✗ price              no element matches the selector
      selector .prices matches 0
      near: .prices is not in the page, but .price is (1 element)
    rating             the element has no attribute "rating"
      selector p.stars matches 1
      near: attribute class: stars
      near: attribute data-rating: 3
    size               the text does not match the regexp \d+ cm
      selector h2 matches 1
      near: text Gadget no. 7
  ✓ sku                "G-0007"
      selector [itemprop=sku] matches 1
  ✗ title              no element matches the selector
      selector #Product header h2 matches 0
      near: h2 matches 1 element
      near: #Product is not in the page, but #product is (1 element)
`, got.stdout)

	got = here(t, "--job=catalog --web=demo --store="+t.TempDir()+" --log-level=error --try=https://gadgets.example/shop/")
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "as a list page: 6 links to products")
}

// With --tag-url, --try asks the model once, and shows the rest when it does not answer.
func TestCatalogTryTags(t *testing.T) {
	emptyEnv(t)
	var asked atomic.Int64
	var told atomic.Value
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Messages []struct{ Content string } }
		if asked.Add(1); json.NewDecoder(r.Body).Decode(&ask) != nil || len(ask.Messages) != 2 || r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		told.Store(ask.Messages[1].Content)
		_, _ = io.WriteString(w, `{"choices": [{"message": {"content": "{\"tags\": [\"Lamp\", \"garden\"]}"}}]}`)
	}))
	defer model.Close()
	file := site(t, "  sku: {selector: \"[itemprop=sku]\", attribute: content}\n  price: {selector: .price, type: money, volatile: true}\n")
	try := func(page, endpoint string) string {
		got := here(t, "--job=catalog --web=demo --store="+t.TempDir()+" --log-level=error --tag-model=m --tag-url="+model.URL+endpoint+" --try=https://gadgets.example/shop/"+page+" --site="+file)
		assert.Equal(t, exitOK, got.code, got.stderr)
		return got.stdout
	}
	const fields = `  ✓ sku                "G-0007"
      selector [itemprop=sku] matches 1
`
	assert.Contains(t, try("item/7", "/v1"), fields+"\ntags: lamp, garden\n")
	assert.Equal(t, `{"sku":"G-0007"}`, told.Load(), "as a crawl tells it, without the volatile price")
	assert.EqualValues(t, 1, asked.Load())
	assert.Contains(t, try("item/7", "/broken"), fields+"\nno tags: asking "+model.URL+"/broken/chat/completions: it answers with status 500")
	assert.EqualValues(t, 2, asked.Load())
	assert.NotContains(t, try("", "/v1"), "tags")
	assert.EqualValues(t, 2, asked.Load(), "a list page has no product to tag")
}

// What --try cannot do says what to do, and sends nothing.
func TestCatalogTryRefused(t *testing.T) {
	emptyEnv(t)
	file := site(t, "  sku: {selector: .nothing}\n")
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"--try=gadgets.example":                                         {exitUsage, "write the URL of a page"},
		"--try=https://other.example/x":                                 {exitUsage, "no site's file has a list on that host"},
		"--try=https://gadgets.example/x --site=gadgets,matter":         {exitUsage, "name one with --site"},
		"--try=https://gadgets.example/x --site=none.yaml":              {exitUsage, "none.yaml"},
		"--try=https://gadgets.example/x --history":                     {exitUsage, "use one at a time"},
		"--try=https://gadgets.example/shop/item/7 --site=" + file:      {exitFailed, "has neither the key of a product (sku) nor links to products"},
		"--try=https://gadgets.example/shop/item/999999 --site=" + file: {exitFailed, "the site answers with status 404"},
		"--web=live --try=https://gadgets.example/shop/item/7":          {exitUsage, "add --contact=URL"},
	} {
		got := here(t, "--job=catalog --web=demo --log-level=error --store="+t.TempDir()+" "+args)
		assert.Equal(t, want.code, got.code, "%s: %s", args, got.stderr)
		assert.Contains(t, got.stderr, want.says, args)
	}
}

// --url prints one article as JSON: by the publisher of its host, or by the default
// extractor. Nothing is stored.
func TestNewsURL(t *testing.T) {
	emptyEnv(t)
	sites := newssim.Install(func(string, http.Handler) {}, time.Now())
	other := t.TempDir()
	writeFile(t, filepath.Join(other, "a.yaml"), "id: other\npress: P\nbaseUrl: https://other.example\narticleUrl: x\n")
	dir := t.TempDir()
	base := "--job=news --web=demo --log-level=error --store=" + dir + " --url=https://" + newssim.Economy
	for args, want := range map[string][]string{"": {"demo-economy", "데모 경제"}, " --publishers=" + other: {"url", newssim.Economy}} {
		got := here(t, base+sites[newssim.Economy].Path(3)+args)
		require.Equal(t, exitOK, got.code, got.stderr)
		var one engine.One
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &one), got.stdout)
		assert.Equal(t, want, []string{one.Provider, one.Press})
		assert.Equal(t, "https://"+newssim.Economy+sites[newssim.Economy].Path(3), one.URL)
		assert.Equal(t, "데모 기사 3: 항만 3곳 컨테이너 늘어", one.Title)
		assert.Contains(t, one.Body, "컨테이너가 한 해 전보다 늘어")
	}
	settings := filepath.Join(t.TempDir(), "news.conf")
	require.NoError(t, os.WriteFile(settings, []byte("rawTextMaxLength: 10\n"), 0o600))
	got := here(t, base+sites[newssim.Economy].Path(3)+" --news-config="+settings)
	assert.Contains(t, got.stdout, `"body": "전국 항만 3곳이",`)
	assert.Contains(t, got.stdout, `"body_cut": true`)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "no run, no article")

	for args, want := range map[string]struct {
		code int
		says string
	}{
		"/private/x --publishers=" + other:            {exitFailed, "robots.txt line 2: Disallow: /private/"},
		"/articles/1 --publishers=" + other:           {exitFailed, "status 404"},
		"/private/x":                                  {exitUsage, "for demo-economy that is no article's address (articleUrl)"},
		sites[newssim.Economy].Path(3) + " --reparse": {exitUsage, "leave --purge-expired, --reparse, --keep-html and --publisher out"},
	} {
		got := here(t, base+args)
		assert.Equal(t, want.code, got.code, "%s: %s", args, got.stderr)
		assert.Contains(t, got.stderr, want.says)
		assert.Empty(t, got.stdout)
	}
}
