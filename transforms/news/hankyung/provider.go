// Package hankyung is 한국경제 (The Korea Economic Daily, hankyung.com) as a news
// provider: this file implements provider.Provider, parser.go reads its pages, policy.go its addresses.
// No promise: see docs/library.md.
package hankyung

import (
	"net/url"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Provider is 한국경제. Its zero value is ready.
type Provider struct{}

func (Provider) ID() string      { return "hankyung" }
func (Provider) Press() string   { return press }
func (Provider) BaseURL() string { return "https://www.hankyung.com" }
func (Provider) SitemapHints() []string {
	return []string{"https://www.hankyung.com/sitemap/latest-article.xml"}
}
func (Provider) IsArticleURL(u *url.URL) bool { return isArticle(u) }

func (Provider) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	return provider.Read(page, contentType, rules, press, externalID(u))
}

// Policy: an article may move to another section, but it keeps its number.
func (Provider) Policy() provider.Policy {
	return provider.Policy{Unique: provider.ByExternalID, Keep: []string{}, Zone: provider.Seoul}
}
