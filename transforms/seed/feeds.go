package seed

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/feed"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

const (
	maxFeeds    = 10 // addresses that are tried for one domain
	maxHomepage = 5 << 20
)

var usualFeeds = []string{"/feed", "/rss.xml", "/atom.xml", "/feed.xml", "/rss"}

// homepageAndFeeds collects the homepage and the feeds, for --homepage and --feeds. Both obey
// robots.txt.
func (c *collector) homepageAndFeeds(ctx context.Context, f *findings, best exchange) {
	home := c.origin.String() + "/"
	var page exchange
	skipped := string(cmp.Or(f.network, c.abandonedFor(home))) // why the homepage is not fetched
	switch {
	case skipped != "":
	case !c.mayFetch(home):
		skipped = metadata.Disallowed
	default:
		page = c.get(ctx, polite.Request{URL: home, Accept: acceptHTML, Timeout: sitemapTimeout, MaxBytes: maxHomepage, MaxRedirects: maxRedirects})
	}
	if c.cfg.Collect.Homepage {
		status, failure := page.outcome()
		m := &metadata.Homepage{URL: home, StatusCode: status, Error: cmp.Or(skipped, failure), ContentLength: int64(len(page.body)), Exists: page.ok() && len(page.body) > 0}
		if page.final != "" && page.final != home && untrusted.Key(page.final) == nil {
			m.FinalURL = page.final
		}
		m.Truncated, m.ResponseMS = page.truncated, page.milliseconds()
		if m.Exists {
			m.FetchedAt = metadata.Timestamp(page.at)
			f.evidence["homepage.html"] = page
		} else {
			m.ContentLength = 0
		}
		f.metadata.Homepage = m
	}
	if c.cfg.Collect.Feeds && f.network == "" && c.abandonedFor(home) == "" {
		f.metadata.Feeds = c.feeds(ctx, page, f.metadata.Robots.SitemapURLs, best)
	}
}

func (c *collector) mayFetch(at string) bool {
	return c.rules.Allowed(c.client.Agent(c.origin), at)
}

// feeds fetches the addresses where a domain may have feeds, and returns the feeds that
// it finds.
func (c *collector) feeds(ctx context.Context, page exchange, named []string, best exchange) []metadata.Feed {
	var out []metadata.Feed
	for _, u := range c.feedAddresses(ctx, page, named, best) {
		if ctx.Err() != nil {
			break
		}
		got := best
		if u != best.url {
			if c.abandonedFor(u) != "" {
				continue
			}
			got = c.get(ctx, polite.Request{URL: u, Accept: "application/rss+xml, application/atom+xml, " + acceptSitemap, Timeout: sitemapTimeout, MaxBytes: maxSitemap, MaxRedirects: maxRedirects})
		}
		if !got.ok() {
			continue
		}
		end, err := budget.Begin(ctx, len(got.body))
		if err != nil {
			break
		}
		parsed, err := feed.Parse(got.body)
		end()
		if err != nil || parsed.Kind == feed.JSON {
			continue // not RSS or Atom
		}
		kind := parsed.Kind
		if kind == feed.RDF {
			kind = feed.RSS // RSS 1.0
		}
		n := int64(len(parsed.Items))
		out = append(out, metadata.Feed{URL: u, Kind: string(kind), ItemCount: &n, StatusCode: got.status, ContentLength: int64(len(got.body)),
			Exists: true, FetchedAt: metadata.Timestamp(got.at), Truncated: got.truncated, ResponseMS: got.milliseconds()})
	}
	return out
}

// feedAddresses returns the feeds that robots.txt names, the feeds to which the homepage
// links, and the usual paths, in this order, without those that robots.txt disallows. For
// those on other hosts their own robots.txt decides.
func (c *collector) feedAddresses(ctx context.Context, page exchange, named []string, best exchange) (at []string) {
	add := func(u string) {
		if !slices.Contains(at, u) && len(at) < maxFeeds && (!c.sameHost(u) || c.mayFetch(u)) {
			at = append(at, u)
		}
	}
	for _, u := range named {
		if u != best.url || best.result.Kind == sitemap.RSS || best.result.Kind == sitemap.Atom {
			if looksLikeFeed(u) || u == best.url {
				add(u)
			}
		}
	}
	// The target of the homepage's redirect is the site's own host: the usual paths
	// of the other host would lead to the same feeds again.
	base := c.origin.JoinPath("/")
	if final, err := url.Parse(page.final); err == nil && page.ok() && c.sameHost(page.final) {
		base = final
	}
	if page.ok() {
		end, err := budget.Begin(ctx, len(page.body))
		if err != nil {
			return nil // the run stops, so nothing of this visit is stored
		}
		for _, u := range feed.Discover(page.body, base) {
			add(u)
		}
		end()
	}
	for _, p := range usualFeeds {
		add(base.Scheme + "://" + base.Host + p)
	}
	return at
}

var feedPath = regexp.MustCompile(`(?i)rss|atom|feed`)

func looksLikeFeed(u string) bool {
	p, err := url.Parse(u)
	return err == nil && feedPath.MatchString(p.Path)
}
