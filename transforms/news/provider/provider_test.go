package provider_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

const yaml = `
id: demo
press: Demo Daily
baseUrl: https://demo.example
articleUrl: ^/a/(\d+)
excludeUrl: \?print=
externalId: ^/a/(\d+)
body: .text
`

func declared(t testing.TB, text string) provider.Provider {
	t.Helper()
	p, err := provider.Declared([]byte(text))
	require.NoError(t, err)
	return p
}

func TestDeclared(t *testing.T) {
	p := declared(t, yaml)
	assert.Equal(t, provider.ByURL, p.Policy().Unique)
	for address, want := range map[string]bool{
		"https://demo.example/a/12":         true,
		"https://www.demo.example/a/12":     true,
		"https://demo.example/a/12?x=1":     true,
		"https://demo.example/a/12?print=1": false,
		"https://demo.example/b/12":         false,
		"https://other.example/a/12":        false,
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		assert.Equal(t, want, p.IsArticleURL(u), address)
	}
	u, err := url.Parse("https://demo.example/a/12")
	require.NoError(t, err)
	a, err := p.ParseArticle([]byte(`<title>A headline | Demo Daily</title><div class="text">한 줄</div><i>2024.05.03 09:00</i>`), "text/html; charset=utf-8", u)
	require.NoError(t, err)
	assert.Equal(t, "12", a.ExternalID)
	assert.Equal(t, "Demo Daily", a.Press)
	assert.Equal(t, "A headline", a.Title)
	assert.Equal(t, "한 줄", a.Body)
	assert.Equal(t, "2024-05-03T00:00:00Z", a.Published.UTC().Format(time.RFC3339), "Asia/Seoul unless it says another zone")
}

// A mistake in a publisher's file is refused, and the error names the key.
func TestDeclarationsAreChecked(t *testing.T) {
	for more, want := range map[string]string{
		"selector: x":                 "unknown field",
		"unique: title":               "unique",
		"zone: Asia/Nowhere":          "zone",
		"title: 'h1['":                "title selector",
		"drop: ['(']":                 "drop expression",
		"sitemapHints: [sitemap.xml]": "sitemapHints",
	} {
		_, err := provider.Declared([]byte(yaml + more + "\n"))
		assert.ErrorContains(t, err, want, more)
	}
	for text, want := range map[string]string{
		"id: demo\npress: D\narticleUrl: x":                                                         "baseUrl",
		"baseUrl: https://a.example\nfeeds: [rss.xml]":                                              "feeds",
		"id: Demo\npress: D\nbaseUrl: https://a.example\narticleUrl: x":                             "provider id",
		"id: demo\npress: D\nbaseUrl: a.example\narticleUrl: x":                                     "baseUrl",
		"id: demo\npress: D\nbaseUrl: https://a.example\narticleUrl: x\nunique: external_id":        "externalId",
		"id: demo\npress: D\nbaseUrl: https://a.example\narticleUrl: x\nexternalId: no parentheses": "parentheses",
		"id: demo\npress: D\nbaseUrl: https://a.example\narticleUrl: '('":                           "articleUrl",
	} {
		_, err := provider.Declared([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
	_, _, err := provider.ReadDeclarations(fstest.MapFS{"a.yaml": {Data: []byte(yaml)}, "b.yaml": {Data: []byte(yaml)}})
	assert.ErrorContains(t, err, "two providers have this id")
	shipped, _, err := provider.ReadDeclarations(publishers.Files)
	require.NoError(t, err)
	assert.Len(t, shipped, 2)
}

// A publisher needs no more than its base URL.
func TestBaseURLOnly(t *testing.T) {
	for base, want := range map[string][2]string{
		"https://www.daily-news.example/world": {"daily-news-example", "Asia/Seoul"},
		"https://presse.example.de":            {"presse-example-de", "Europe/Berlin"},
	} {
		p := declared(t, "baseUrl: "+base)
		assert.Equal(t, want, [2]string{p.ID(), p.Policy().Zone.String()})
		assert.True(t, p.Policy().Discover)
	}
	p := declared(t, "baseUrl: https://daily.example\nexcludeUrl: ^/promo/")
	for at, want := range cases.Table[map[string]bool](t, "addresses.yaml") {
		u, err := url.Parse("https://daily.example")
		require.NoError(t, err)
		u, err = u.Parse(at)
		require.NoError(t, err)
		assert.Equal(t, want, p.IsArticleURL(u), at)
	}
}

func TestConfig(t *testing.T) {
	ids := []string{"mk", "demo-local"}
	c, err := provider.ReadConfig(nil, nil, ids)
	require.NoError(t, err)
	assert.Equal(t, provider.Config{DelaySeconds: 2, MaxArticlesPerProvider: 10, RawTextMaxLength: 2000, RawRetentionDays: 30}, c)
	assert.Equal(t, 30*24*time.Hour, c.Retention())

	c, err = provider.ReadConfig([]byte("delaySeconds: 3.5\nrawRetentionDays: 7\nproviders:\n  mk:\n    enabled: false\n    sitemapHints: [https://a.example/s.xml]\n"),
		[]string{"PATH=x", "NEWS_RAW_RETENTION_DAYS=9", "NEWS_PROVIDERS_MK_ENABLED=true", "NEWS_PROVIDERS_DEMO_LOCAL_ENABLED=false", "NEWS_PROVIDERS_DEMO_LOCAL_SITEMAP_HINTS=https://b.example/1,https://b.example/2", "NEWS_DELAY_SECONDS="}, ids)
	require.NoError(t, err)
	assert.Equal(t, 3.5, c.DelaySeconds, "an empty variable counts as not set")
	assert.Equal(t, 9, c.RawRetentionDays, "the environment overrides the file")
	assert.True(t, c.Enabled("mk"))
	assert.False(t, c.Enabled("demo-local"))
	assert.Equal(t, []string{"https://a.example/s.xml"}, c.Providers["mk"].SitemapHints, "values that the environment does not set stay")
	assert.Equal(t, []string{"https://b.example/1", "https://b.example/2"}, c.Providers["demo-local"].SitemapHints)

	for text, want := range map[string]string{
		"delaySecond: 1":                           "unknown field",
		"userAgent: DemoBot":                       "unknown field", // bot: in the --config file names all jobs' crawler
		"providers: {mk: {on: true}}":              "unknown field",
		"providers: {nobody: {enabled: true}}":     "providers.nobody",
		"delaySeconds: 0":                          "delaySeconds",
		"maxArticlesPerProvider: 0":                "maxArticlesPerProvider",
		"rawTextMaxLength: 0":                      "rawTextMaxLength",
		"rawRetentionDays: 0":                      "rawRetentionDays",
		"providers: {mk: {sitemapHints: [a.xml]}}": "sitemapHints",
	} {
		_, err := provider.ReadConfig([]byte(text), nil, ids)
		assert.ErrorContains(t, err, want, text)
	}
	for _, v := range []string{"NEWS_DELAY=1", "NEWS_DELAY_SECONDS=x", "NEWS_PROVIDERS_NOBODY_ENABLED=true", "NEWS_PROVIDERS_MK_ENABLED=perhaps", "NEWS_PROVIDERS_MK_COLOUR=red"} {
		_, err := provider.ReadConfig(nil, []string{v}, ids)
		assert.ErrorContains(t, err, "environment variable", v)
	}
}

// A snapshot is the page as it is and what is read from it.
func TestSnapshot(t *testing.T) {
	p := declared(t, yaml)
	dir := t.TempDir()
	page := []byte(`<title>A &lt; B | Demo Daily</title><div class="text">한 줄</div><time datetime="2024-05-03T09:00:00+09:00">x</time>`)
	_, err := provider.Take(p, page, "text/html; charset=utf-8", "https://demo.example/b/12")
	assert.ErrorContains(t, err, "is no article")
	s, err := provider.Take(p, page, "text/html; charset=utf-8", "https://demo.example/a/12")
	require.NoError(t, err)
	require.NoError(t, s.Write(dir, "one", page))
	saved, err := os.ReadFile(filepath.Join(dir, "one.html"))
	require.NoError(t, err)
	assert.Equal(t, page, saved)
	written, err := os.ReadFile(filepath.Join(dir, "one.json"))
	require.NoError(t, err)
	assert.Contains(t, string(written), `"title": "A < B",`)
	assert.Contains(t, string(written), `"published": "2024-05-03T09:00:00+09:00"`)
}

// Whatever a publisher's file contains, it is read or refused.
func FuzzDeclared(f *testing.F) {
	f.Add([]byte(yaml))
	f.Add([]byte("id: [\n"))
	f.Add([]byte("unique: 3\narticleUrl: (?P<\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := provider.Declared(text)
		if err == nil {
			require.NoError(t, provider.Check([]provider.Provider{p}))
		}
	})
}
