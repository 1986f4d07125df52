package metadata

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// most is what an ordinary visit writes, with every field set.
func most() Domain {
	d := full()
	d.Feeds, d.Homepage, d.Robots.Error, d.Sitemap.Error = nil, nil, "", ""
	return d
}

func TestUsualTakesTheUsual(t *testing.T) {
	for name, d := range map[string]Domain{"least": least(), "most": most()} {
		assert.True(t, usual(d), "%s is left to the schema", name)
	}
}

// Every field, also one that is added later, gets invalid values in turn: whatever
// usual accepts, the schema accepts.
func TestUsualIsStricterThanTheSchema(t *testing.T) {
	odd := []any{
		"", " ", "x", "A1", "sg", "mil:sg:a.sg", "gov:sg:a", "gov:sg:a.sg\n", "/relative", "//host/", "http:", "https:a%zz", "https://a b/", "https://a/%zz", "https://[::1", "https://a:x/",
		"https://a\x7f/", "https://a/\xff", "ftp://a/", "2026-02-30T10:00:00.000Z", "2026-01-28T10:00:00.000+09:00", "2026-01-28T1:00:00.000Z", "2026-01-28T10:00:00,000Z",
		"2026-01-28T24:00:00.000Z", "0000-01-01T00:00:00.000Z", "html", "no such host", "\x00\xff",
		math.MinInt, -1, 600, math.MaxInt, -0.5, math.MaxFloat64, math.Inf(1), math.NaN(), true, false, nil,
	}
	spoiled := 0
	var walk func(v reflect.Value, path string, d *Domain)
	walk = func(v reflect.Value, path string, d *Domain) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name, d)
			}
			return
		}
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		for _, o := range odd {
			if spoil(v, o) {
				spoiled++
				if usual(*d) {
					assert.NoError(t, validateBySchema(*d), "%s = %#v is usual, and", path, o)
				}
			}
			v.Set(before)
		}
	}
	d := most()
	walk(reflect.ValueOf(&d).Elem(), "Domain", &d)
	assert.GreaterOrEqual(t, spoiled, 300, "only")
}

// spoil sets v, or all values below it of o's type, to o, and reports whether there was one.
func spoil(v reflect.Value, o any) bool {
	if o == nil {
		v.SetZero()
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			to.Elem().Set(v.Elem())
		}
		v.Set(to)
		return spoil(to.Elem(), o)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return spoil(v.Index(0), o)
	case reflect.Struct:
		some := false
		for i := range v.NumField() {
			some = spoil(v.Field(i), o) || some
		}
		return some
	}
	in := reflect.ValueOf(o)
	if in.Kind() != v.Kind() && (!in.CanInt() || !v.CanInt()) {
		return false
	}
	v.Set(in.Convert(v.Type()))
	return true
}

func FuzzUsualIsStricterThanTheSchema(f *testing.F) {
	d := most()
	f.Add(d.DomainID, d.RegistrableDomain, d.Country, d.Category, d.CollectedAt, d.Sitemap.URL, d.Sitemap.Kind, d.Robots.StatusCode, *d.Robots.ResponseMS, *d.Robots.CrawlDelay)
	f.Add("", "", "", "", "", "http://", "html", -1, int64(-1), math.Inf(-1))
	f.Fuzz(func(t *testing.T, id, domain, country, category, at, url, kind string, status int, ms int64, delay float64) {
		d := Domain{
			DomainID: id, RegistrableDomain: domain, Country: country, Category: category, CollectedAt: at,
			Robots:  Robots{StatusCode: status, ContentLength: ms, FetchedAt: at, SitemapURLs: []string{url}, FinalURL: url, CrawlDelay: &delay, ResponseMS: &ms},
			Sitemap: Sitemap{StatusCode: status, ContentLength: ms, FetchedAt: at, URLCount: &ms, URL: url, Kind: kind, ChildCount: &ms, TotalURLCount: &ms, ResponseMS: &ms},
			Source:  &Source{RawFilePath: url, RecordIndex: &status},
		}
		if usual(d) {
			assert.NoError(t, validateBySchema(d))
		}
	})
}
