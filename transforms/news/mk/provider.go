// Package mk is 매일경제 (Maeil Business Newspaper, mk.co.kr) as a news provider:
// this file implements provider.Provider, parser.go reads its pages, policy.go its addresses.
// No promise: see docs/library.md.
package mk

import (
	"net/url"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Provider is 매일경제. Its zero value is ready.
type Provider struct{}

func (Provider) ID() string      { return "mk" }
func (Provider) Press() string   { return press }
func (Provider) BaseURL() string { return "https://www.mk.co.kr" }
func (Provider) SitemapHints() []string {
	return []string{"https://www.mk.co.kr/sitemap/latest-articles/"}
}
func (Provider) IsArticleURL(u *url.URL) bool { return isArticle(u) }

func (Provider) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	return provider.Read(page, contentType, rules, press, externalID(u))
}

func (Provider) Policy() provider.Policy {
	return provider.Policy{Unique: provider.ByURL, Keep: []string{"no", "year"}, Zone: provider.Seoul}
}
