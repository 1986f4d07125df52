package article_test

import (
	"fmt"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

func Example() {
	page := `<html lang=en><head><title>Rain at last - The Paper</title><meta property="article:published_time" content="2026-01-02T08:00:00+09:00"></head>
<body><nav><a href=/>Home</a></nav><article><p>It rained on Friday for the first time since May, and the fields were green again within a week.</p>
<p>Farmers said that they had nearly given up hope of a harvest this year.</p></article></body></html>`
	read, err := article.Extract([]byte(page), "text/html; charset=utf-8", article.Rules{Site: "The Paper"})
	fmt.Println(err)
	fmt.Println(read.Title, read.Published.UTC().Format("2006-01-02 15:04"))
	fmt.Println(read.Body)
	// Output:
	// <nil>
	// Rain at last 2026-01-01 23:00
	// It rained on Friday for the first time since May, and the fields were green again within a week.
	// Farmers said that they had nearly given up hope of a harvest this year.
}
