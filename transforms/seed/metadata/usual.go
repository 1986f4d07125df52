package metadata

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// usual reports whether d is certainly valid by the schema. Validation by the schema
// takes a tenth of the time of a visit, so the common values are checked here.
// Others (errors, feeds, homepages, uncommon URLs) are left to the schema.
func usual(d Domain) bool {
	return d.Feeds == nil && d.Homepage == nil && d.Site == nil &&
		compiled().Properties["domain_id"].Pattern.MatchString(d.DomainID) &&
		d.RegistrableDomain != "" && d.Category != "" && (d.Web == "" || d.Web == "demo") &&
		len(d.Country) == 2 && isUpper(d.Country[0]) && isUpper(d.Country[1]) &&
		usualTime(d.CollectedAt) && d.Robots.usual() && d.Sitemap.usual() &&
		(d.Source == nil || d.Source.usual()) && (d.Rights == nil || usualRights(d.Rights))
}

func usualRights(r *rights.Rights) bool {
	return r.Statements != nil && r.More >= 0 && !slices.ContainsFunc(rights.Purposes, func(p rights.Purpose) bool {
		return !slices.Contains([]string{rights.Allowed, rights.Reserved, rights.Unsaid, rights.Contradictory}, r.Verdicts.Of(p))
	}) && !slices.ContainsFunc(r.Statements, func(s rights.Statement) bool { return s.Line < 0 }) &&
		!slices.ContainsFunc(r.Documents, func(d rights.Document) bool { return !usualTime(d.At) })
}

func (s *Source) usual() bool {
	return (s.RecordIndex == nil || *s.RecordIndex >= 0) && (s.Confidence == nil || *s.Confidence >= 0 && *s.Confidence <= 1)
}

func (r *Robots) usual() bool {
	return usualStatus(r.StatusCode) && r.ContentLength >= 0 && (r.FetchedAt == "" || usualTime(r.FetchedAt)) &&
		!slices.ContainsFunc(r.SitemapURLs, unusualURL) && r.Error == "" && usualStatus(r.LastStatus) && slices.Contains([]string{"", "robots", "page", "error_page"}, r.Kind) && (r.FinalURL == "" || !unusualURL(r.FinalURL)) &&
		(r.CrawlDelay == nil || *r.CrawlDelay >= 0 && *r.CrawlDelay <= math.MaxFloat64) && usualCount(r.ResponseMS)
}

func (s *Sitemap) usual() bool {
	return usualStatus(s.StatusCode) && s.ContentLength >= 0 && (s.FetchedAt == "" || usualTime(s.FetchedAt)) &&
		usualCount(s.URLCount) && !unusualURL(s.URL) && s.Error == "" &&
		slices.Contains(usualKinds, s.Kind) &&
		usualStatus(s.LastStatus) && (s.FinalURL == "" || !unusualURL(s.FinalURL)) &&
		!slices.ContainsFunc(s.Sitemaps, Counted.unusual) && usualCount(s.ChildCount) && usualCount(s.TotalURLCount) && usualCount(s.ResponseMS)
}

func (c Counted) unusual() bool {
	return unusualURL(c.URL) || !slices.Contains(usualKinds, c.Kind) || !usualCount(c.Count)
}

var usualKinds = []string{"", "urlset", "index", "rss", "atom", "text", "page", "error_page"}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func usualStatus(code int) bool { return code >= 0 && code <= 599 }

func usualCount(n *int64) bool { return n == nil || *n >= 0 }

// usualTime accepts only what Timestamp writes: time.Parse alone accepts more.
func usualTime(s string) bool {
	t, err := time.Parse(timestamp, s)
	return err == nil && Timestamp(t) == s
}

func unusualURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return !ok || strings.ContainsFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '-' || r > '9') && r != '?' && r != '=' && r != '&' && r != '_'
	})
}
