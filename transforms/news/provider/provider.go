// Package provider has what is needed to add a news publisher: the interface that the engine
// uses, publishers that are one YAML file, and tests with snapshots of pages.
// A provider knows its publisher's pages and addresses. It never sends a request,
// stores, or looks for duplicates. It is pure: no network, no clock, no logging. No promise: see docs/library.md.
package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// Provider is a publisher. Its methods may be called from several goroutines.
type Provider interface {
	// ID is the key of its rows and reports: lower-case letters, digits, '-' and '_'.
	ID() string
	// BaseURL is the address of the host with its robots.txt: https://host.
	BaseURL() string
	// SitemapHints are sitemaps to read when robots.txt names none, or when nothing else can be read.
	SitemapHints() []string
	// IsArticleURL reports whether an address of a sitemap is an article.
	IsArticleURL(u *url.URL) bool
	// ParseArticle reads an article's page; contentType is the HTTP header. It fails
	// when the page cannot be read. A page without text is no error.
	ParseArticle(page []byte, contentType string, u *url.URL) (Article, error)
	// Policy has the publisher's settings for the engine.
	Policy() Policy
}

// Article is what a provider reads from a page.
type Article struct {
	article.Article
	// ExternalID is the publisher's own id of the article, if it has one.
	ExternalID string `json:"external_id,omitempty"`
	// Press is the publisher's name.
	Press string `json:"press"`
	// Description is the page's own summary.
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Images      []string `json:"images,omitempty"` // addresses, as written
	// Live: the article is still being written, an entry at a time.
	Live bool `json:"live,omitempty"`
	// Metered: its publisher says that it is not free, and the text is the part for everybody,
	// or one that everybody may read some of (article:content_tier metered).
	Metered bool `json:"metered,omitempty"`
}

// Read reads an article from a publisher's page by its rules.
func Read(page []byte, contentType string, rules *article.Compiled, press, externalID string) (Article, error) {
	p, err := article.Parse(page, contentType)
	if err != nil {
		return Article{}, err
	}
	paid := none
	if said, _ := p.Data.Article(); said.Paid || locked(p) { // what subscribers read may be in the page all the same
		p.OnlyShown()
		paid = remove(p.Root, said.PaidParts)
	}
	a := Article{Article: p.Read(rules), ExternalID: externalID, Press: press}
	a.describe(p)
	a.access(p, paid)
	return a, nil
}

// Unique names the key that is unique for each article of a provider in the
// database.
type Unique string

// The keys.
const (
	ByURL            Unique = "url"             // (source, canonical URL)
	ByExternalID     Unique = "external_id"     // (source, external id); without one, ByTitlePublished
	ByTitlePublished Unique = "title_published" // (source, title hash, published at); without a time, ByURL
)

// Policy has a publisher's settings for the engine.
type Policy struct {
	Unique Unique
	// Keep are the query parameters that select a page; "*", the default, means all
	// that do not track visitors.
	Keep []string
	// Zone is the time zone of times that have no offset.
	Zone *time.Location
	// Feeds are RSS, Atom and JSON feeds to read as well as the sitemaps.
	Feeds []string
	// Discover looks for feeds and a sitemap on the site when none is named, and reads its front page when it has none.
	Discover bool
	// Homepage reads the links of the front page and its sections as well.
	Homepage bool
	// Teasers stores what a page shows of an article that is not free.
	Teasers bool
	// Delay is the least pause between two requests, 0 for the job's.
	Delay time.Duration
	// Often bounds how often the publisher is asked; the zero value is the default.
	Often interval
}

// interval bounds the time between two runs that ask a publisher.
type interval struct{ Min, Max time.Duration }

// The bounds that stand for zero ones.
const (
	minInterval = 15 * time.Minute
	maxInterval = 6 * time.Hour
)

// Clamp returns the time within the bounds that is nearest to d.
func (i interval) Clamp(d time.Duration) time.Duration {
	least := cmp.Or(i.Min, minInterval)
	return max(least, min(d, max(least, cmp.Or(i.Max, maxInterval))))
}

// read reads the bounds as a file has them.
func (i *interval) read(least, most string) (err error) {
	for _, b := range []struct {
		key, text string
		to        *time.Duration
	}{{"minInterval", least, &i.Min}, {"maxInterval", most, &i.Max}} {
		if b.text == "" {
			continue
		}
		if *b.to, err = time.ParseDuration(b.text); err != nil || *b.to < time.Minute || *b.to > 30*24*time.Hour {
			return fmt.Errorf("%s: %q: write a time from 1m to 720h, such as 30m", b.key, b.text)
		}
	}
	if low, high := cmp.Or(i.Min, minInterval), cmp.Or(i.Max, maxInterval); low > high {
		return fmt.Errorf("minInterval %v is more than maxInterval %v", low, high)
	}
	return nil
}

// Canonical returns an address's identity under a policy (canonical.Key).
func (p Policy) Canonical(u *url.URL) (string, error) {
	keep := p.Keep
	if keep == nil {
		keep = []string{"*"}
	}
	return canonical.Key(u, keep)
}

// Hosts reports whether u is on the host of base, ignoring www.
func Hosts(base string, u *url.URL) bool {
	b, err := url.Parse(base)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && canonical.Host(b) == canonical.Host(u)
}

// Seoul is the time zone of Korean publishers. Korea has had no summer time since
// 1988, so no time zone database is needed.
var Seoul = time.FixedZone("KST", 9*60*60)

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Check reports what is wrong with a set of providers: malformed or repeated ids,
// invalid base URLs.
func Check(all []Provider) error {
	seen := map[string]bool{}
	for _, p := range all {
		if !idForm.MatchString(p.ID()) {
			return fmt.Errorf("provider id %q: want lower-case letters, digits, - and _", p.ID())
		}
		if seen[p.ID()] {
			return fmt.Errorf("provider %s: two providers have this id; rename one", p.ID())
		}
		seen[p.ID()] = true
		if err := absolute(p.BaseURL()); err != nil {
			return fmt.Errorf("provider %s: baseUrl: %w", p.ID(), err)
		}
		for _, h := range p.SitemapHints() {
			if err := absolute(h); err != nil {
				return fmt.Errorf("provider %s: sitemapHints: %w", p.ID(), err)
			}
		}
		for _, f := range p.Policy().Feeds {
			if err := absolute(f); err != nil {
				return fmt.Errorf("provider %s: feeds: %w", p.ID(), err)
			}
		}
		if !slices.Contains([]Unique{ByURL, ByExternalID, ByTitlePublished}, p.Policy().Unique) {
			return fmt.Errorf("provider %s: unique %q: want url, external_id or title_published", p.ID(), p.Policy().Unique)
		}
	}
	return nil
}

// IDs returns the ids of providers, in their order.
func IDs(all []Provider) (ids []string) {
	for _, p := range all {
		ids = append(ids, p.ID())
	}
	return ids
}

func absolute(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("%q: want https:// and a host", strings.ToValidUTF8(s, "?"))
	}
	return nil
}
