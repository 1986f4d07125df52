package robots_test

import (
	"fmt"

	"github.com/newsfork/seed-engine/io/web/robots"
)

func Example() {
	file := robots.Parse([]byte("User-agent: *\nCrawl-delay: 2\nDisallow: /private\nAllow: /private/press\nSitemap: https://example.org/map.xml\n"))
	fmt.Println(file.Allowed("YourBot/1.0", "https://example.org/private/1"), file.Allowed("YourBot/1.0", "/private/press/2"))
	fmt.Println(file.Rule("YourBot/1.0", "/private/1"))
	fmt.Println(file.CrawlDelay("YourBot"))
	fmt.Println(file.Sitemaps())
	// Output:
	// false true
	// 3 Disallow: /private false
	// 2s true
	// [https://example.org/map.xml]
}
