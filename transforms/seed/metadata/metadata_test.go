package metadata

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

var update = flag.Bool("update", false, "write the goldens")

func ptr[T any](v T) *T { return &v }

func least() Domain {
	return Domain{
		DomainID: "gov:sg:mom.gov.sg", RegistrableDomain: "mom.gov.sg", Country: "SG", Category: "news",
		CollectedAt: Timestamp(time.Date(2026, 1, 28, 19, 30, 0, 5e6, time.FixedZone("KST", 9*3600))),
		Sitemap:     Sitemap{StatusCode: 404, URL: "https://mom.gov.sg/sitemap.xml"},
	}
}

func full() Domain {
	d := least()
	at := d.CollectedAt
	d.Robots = Robots{StatusCode: 200, ContentLength: 120, Exists: true, FetchedAt: at, SitemapURLs: []string{"https://mom.gov.sg/s.xml?a=1&b=2"},
		Error: "timeout", Truncated: true, FinalURL: "https://www.mom.gov.sg/robots.txt", CrawlDelay: ptr(1.5), ResponseMS: ptr[int64](31),
		Kind: "robots", ContentType: "text/plain", LastStatus: 200}
	d.HostUsed = "www.mom.gov.sg"
	d.Sitemap = Sitemap{StatusCode: 200, ContentLength: 9000, Exists: true, FetchedAt: at, URLCount: ptr[int64](0), URL: "https://mom.gov.sg/s.xml?a=1&b=2",
		Error: "http_503", Kind: "index", Truncated: true, ChildCount: ptr[int64](2), TotalURLCount: ptr[int64](150), ResponseMS: ptr[int64](0),
		Parsed: true, ContentType: "application/xml", LastStatus: 200, FinalURL: "https://www.mom.gov.sg/s.xml",
		Partial: true, Sitemaps: []Counted{{URL: "https://mom.gov.sg/s.xml?a=1&b=2", Kind: "index", Count: ptr[int64](2)}, {URL: "https://mom.gov.sg/t.xml"}}}
	d.Source = &Source{RawFilePath: "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", RecordIndex: ptr(0),
		DomainID: "ngo:intl:mom.gov.sg", Confidence: ptr(0.95), LivenessStatus: "alive", ContentHints: []string{"news", "policy"}, DiscoveryMethod: "crtsh"}
	d.Feeds = []Feed{{URL: "https://mom.gov.sg/rss", StatusCode: 200, ContentLength: 7, Exists: true, FetchedAt: at, Kind: "rss", ItemCount: ptr[int64](3),
		Error: "reset", Truncated: true, ResponseMS: ptr[int64](4)}}
	d.Homepage = &Homepage{URL: "https://mom.gov.sg/", StatusCode: 200, ContentLength: 5, Exists: true, FetchedAt: at, Error: "tls", Truncated: true,
		FinalURL: "https://www.mom.gov.sg/", ResponseMS: ptr[int64](9)}
	d.Rights = &rights.Rights{Statements: []rights.Statement{{Source: "https://mom.gov.sg/robots.txt", Line: 3, Raw: "Disallow: /", Says: "ai-train=reserved",
		Agents: []string{"GPTBot"}, Only: "document"}}, Verdicts: rights.Verdicts{Search: "unsaid", AIInput: "allowed", AITrain: "reserved", Archive: "contradictory"},
		Documents: []rights.Document{{Source: "https://mom.gov.sg/robots.txt", SHA256: "00", At: at}}, Why: "challenge", More: 1}
	return d
}

func TestGoldens(t *testing.T) {
	for name, d := range map[string]Domain{"least": least(), "full": full()} {
		got, err := Marshal(d)
		require.NoError(t, err)
		path := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.WriteFile(path, got, 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%s", path)
		assert.NoError(t, Validate(d), name)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		path  string
		spoil func(*Domain)
	}{
		{"/domain_id", func(d *Domain) { d.DomainID = "mil:sg:mom.gov.sg" }},
		{"/domain_id", func(d *Domain) { d.DomainID = "gov:SG:mom.gov.sg" }},
		{"/domain_id", func(d *Domain) { d.DomainID = "gov:sg:localhost" }},
		{"/registrable_domain", func(d *Domain) { d.RegistrableDomain = "" }},
		{"/country", func(d *Domain) { d.Country = "sg" }},
		{"/country", func(d *Domain) { d.Country = "SGP" }},
		{"/category", func(d *Domain) { d.Category = "" }},
		{"/collected_at", func(d *Domain) { d.CollectedAt = "" }},
		{"/collected_at", func(d *Domain) { d.CollectedAt = "2026-02-30T10:00:00Z" }},
		{"/collected_at", func(d *Domain) { d.CollectedAt = "2026-01-28T10:00:00+09:00" }},
		{"/robots/status_code", func(d *Domain) { d.Robots.StatusCode = 600 }},
		{"/robots/status_code", func(d *Domain) { d.Robots.StatusCode = -1 }},
		{"/robots/content_length", func(d *Domain) { d.Robots.ContentLength = -1 }},
		{"/robots/error", func(d *Domain) { d.Robots.Error = "no such host" }},
		{"/robots/sitemap_urls/1", func(d *Domain) { d.Robots.SitemapURLs = []string{"https://a.sg/", "/relative"} }},
		{"/robots/crawl_delay", func(d *Domain) { d.Robots.CrawlDelay = ptr(-1.0) }},
		{"/sitemap/url", func(d *Domain) { d.Sitemap.URL = "" }},
		{"/sitemap/url_count", func(d *Domain) { d.Sitemap.URLCount = ptr[int64](-1) }},
		{"/sitemap/kind", func(d *Domain) { d.Sitemap.Kind = "html" }},
		{"/source/record_index", func(d *Domain) { d.Source.RecordIndex = ptr(-1) }},
		{"/feeds/0/url", func(d *Domain) { d.Feeds[0].URL = "x" }},
		{"/rights/verdicts/search", func(d *Domain) { d.Rights.Verdicts.Search = "perhaps" }},
		{"/rights/statements/0/line", func(d *Domain) { d.Rights.Statements[0].Line = -1 }},
		{"/homepage/fetched_at", func(d *Domain) { d.Homepage.FetchedAt = "yesterday" }},
	} {
		d := full()
		c.spoil(&d)
		err := Validate(d)
		var broken *Error
		assert.True(t, errors.As(err, &broken) && len(broken.Fields) != 0 && broken.Fields[0].Path == c.path && broken.Fields[0].Reason != "",
			"%s: %v", c.path, err)
	}
}

// The struct and the schema have the same fields, and unknown fields are refused.
func TestSchemaIsClosed(t *testing.T) {
	var value map[string]any
	text, err := Marshal(full())
	require.NoError(t, err)
	for _, at := range []string{"", "robots", "sitemap", "source", "homepage", "rights"} {
		require.NoError(t, json.Unmarshal(text, &value))
		target := value
		if at != "" {
			target = value[at].(map[string]any)
		}
		target["surprise"] = true
		assert.Error(t, compiled().Validate(value), "%q takes an unknown field", at)
		delete(target, "surprise")
	}
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil || schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("schema: %v, %v", schema["$schema"], err)
	}
}

func BenchmarkValidate(b *testing.B) {
	for name, d := range map[string]Domain{"least": least(), "full": full()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, Validate(d))
			}
		})
	}
}
