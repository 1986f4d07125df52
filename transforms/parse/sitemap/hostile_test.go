package sitemap_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// What ten megabytes cost stays in the order of their own size, whatever they
// hold: total allocations bound both memory and copying.
func TestHostileSitemaps(t *testing.T) {
	const size = 10 << 20
	fill := func(head, part string) []byte { return []byte(head + strings.Repeat(part, (size-len(head))/len(part))) }
	for name, body := range map[string][]byte{
		"nested":       fill("<urlset><url><loc>a</loc></url>", "<a>"),
		"entries":      fill("<urlset>", "<url>"),
		"attributes":   fill("<urlset><url><loc>a</loc></url><url ", "a=b "),
		"entities":     fill("<sitemapindex><sitemap><loc>", "&zz;"),
		"ampersands":   fill("<sitemapindex><sitemap><loc>", "&&zz; "),
		"quotes":       fill("<sitemapindex><sitemap><loc>", `<a "<a '`),
		"one child":    fill("<sitemapindex>", "<sitemap><loc>a</loc></sitemap>"),
		"lines":        fill("http://a.example/\n", "http://a.example/\n"),
		"declarations": fill("<sitemapindex><sitemap>", "<!a"),
		"JSON items":   append(fill(`{"version":"https://jsonfeed.org/version/1","items":[{}`, ",{}"), "]}"...),
		"JSON nested":  fill(`{"version":"https://jsonfeed.org/version/1","a":`, "["),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = sitemap.Parse(body, 50)
			_, _ = sitemap.ScanAny(body, func(sitemap.Entry) bool { return true })
			runtime.ReadMemStats(&after)
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 2*12*size>>20 {
				t.Errorf("%d MiB for twice %d MiB", n, size>>20)
			}
		})
	}
}
