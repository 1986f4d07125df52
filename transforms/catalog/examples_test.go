package catalog

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

// The example files read all products of the simulated shops in their layouts, and a
// second run finds nothing new.
func TestExamples(t *testing.T) {
	t.Parallel()
	j := newJob(t, "", webtest.Options{})
	catalogsim.InstallShops(j.web.Handle)
	var err error
	j.cfg.Sites, _, err = ReadSites(os.DirFS("sites/examples"))
	require.NoError(t, err)
	const all = 3 * catalogsim.ShopProducts
	total := j.run()
	assert.Equal(t, map[string]int64{"list_pages_fetched": 4 + 3 + 3, "product_urls_found": all, "detail_pages_fetched": all - catalogsim.ShopProducts, "products_saved": all,
		"failed_tasks": 0, "products_new": all, "products_changed": 0, "products_unchanged": 0, "products_gone": 0, "sites": 3, "sites_failed": 0, "sites_held": 0}, reported(total))
	assert.Empty(t, total.Warnings)
	assert.Empty(t, j.deadLetters())
	euro := func(n float64) map[string]any { return map[string]any{"amount": n, "currency": "EUR"} }
	assert.Equal(t, map[string]any{"id": "7000000000004", "title": "Brick 4", "vendor": "Maple & Oak Home", "tags": []any{"demo", "brick"}, "picture": "https://cdn.bricks.example/4.jpg",
		"variants": []any{map[string]any{"sku": "B-4-S", "price": euro(4.5), "weight": map[string]any{"value": 0.04, "unit": "kg"}}, map[string]any{"sku": "B-4-L", "price": euro(4.9), "weight": map[string]any{"value": 0.08, "unit": "kg"}}}},
		j.products("bricks")["7000000000004"].Detail)
	assert.Equal(t, map[string]any{"sku": "BK007", "title": "Book 7", "price": map[string]any{"amount": 7.9, "currency": "GBP"}, "availability": "InStock", "pages": 107.0}, j.products("books")["BK007"].Detail)
	assert.Equal(t, map[string]any{"sku": "L-08", "price": euro(8.5), "watt": map[string]any{"value": 8.0, "unit": "W"}, "updated": "2026-03-03T22:00:00+01:00", "stock": 1.0}, j.products("lamps")["L-08"].Detail)
	assert.Equal(t, map[string]int64{"products_unchanged": all, "failed_tasks": 0}, counted(j.run(), "products_unchanged", "failed_tasks"))
}
