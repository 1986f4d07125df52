package sitemap_test

import (
	"fmt"

	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

func Example() {
	body := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://example.org/a&amp;b</loc><lastmod>2026-01-02</lastmod></url></urlset>`
	result, err := sitemap.Scan([]byte(body), func(e sitemap.Entry) bool {
		fmt.Println(e.Loc, e.LastMod)
		return true
	})
	fmt.Println(result.Kind, result.Count, err)
	// Output:
	// https://example.org/a&b 2026-01-02
	// urlset 1 <nil>
}
