package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPeriodEnd(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for address, want := range map[string]string{
		"/sitemap-2026-11.xml":               "2026-12-01",
		"/sitemap_202611.xml.gz":             "2026-12-01",
		"/sitemap-2026-11-22.xml":            "2026-11-23",
		"/news20261122.xml":                  "2026-11-23",
		"/sitemaps/2026/11/":                 "2026-12-01",
		"/2026/sitemap-2026-11.xml":          "2026-12-01",
		"/sitemap.xml?yyyy=2026&mm=11&dd=21": "2026-11-22",
		"/sitemap?date=2026.1.5":             "2026-01-06",
		"/sitemap-2026.xml":                  "2027-01-01",
		"/sitemap-2026-12.xml":               "", // to come
		"/sitemap-20123.xml":                 "",
		"/sitemap-120261122.xml":             "",
		"/sitemap-57.xml":                    "",
		"/news.xml":                          "",
	} {
		end, ok := periodEnd("https://demo2024.example"+address, time.UTC, now)
		assert.Equal(t, want != "", ok, address)
		if ok {
			assert.Equal(t, want, end.Format(time.DateOnly), address)
		}
	}
}

func TestArrange(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	for name, c := range map[string]struct{ in, want []child }{
		"lastmod": {[]child{{address: "a", at: day(3)}, {address: "b", at: day(1)}, {address: "c"}}, []child{{address: "b"}, {address: "a"}, {address: "c"}}},
		"dates in names": {[]child{{address: "/2026-01.xml"}, {address: "/2026-11.xml"}, {address: "/2026-10.xml"}, {address: "/pages.xml"}},
			[]child{{address: "/2026-11.xml"}, {address: "/2026-10.xml"}, {address: "/2026-01.xml"}, {address: "/pages.xml"}}},
		"numbers are no dates": {[]child{{address: "/1.xml"}, {address: "/2.xml"}, {address: "/2000.xml"}, {address: "/4.xml"}, {address: "/5.xml"}},
			[]child{{address: "/5.xml"}, {address: "/1.xml"}, {address: "/4.xml"}, {address: "/2000.xml"}, {address: "/2.xml"}}},
		"one": {[]child{{address: "/a.xml"}}, []child{{address: "/a.xml"}}},
	} {
		arrange(c.in, time.UTC, now)
		names := func(all []child) (out []string) {
			for _, c := range all {
				out = append(out, c.address)
			}
			return out
		}
		assert.Equal(t, names(c.want), names(c.in), name)
	}
	var many []child
	for range 3 {
		many = append(many, child{address: "/x.xml"})
	}
	arrange(many, time.UTC, now)
	assert.True(t, slices.IsSortedFunc(many, nearer))
}
