package engine

import (
	"fmt"
	"net/url"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// maxSections is how many of a front page's sections are read: those with most articles on it.
const maxSections = 10

// frontLinks reads the articles to which a front page, or a section, links, in its order. It returns the sections
// of a front page.
func (s *search) frontLinks(c child, r *web.Response, at *url.URL) (sections []child, err error) {
	if !isPage(r) {
		return nil, fmt.Errorf("%s is no page but %.60q", ledger.Redact(c.address), r.Header.Get("Content-Type"))
	}
	var articles, others []*url.URL
	for _, u := range provider.Links(r.Body, at) {
		switch {
		case !provider.Hosts(s.base.String(), u):
		case !s.p.IsArticleURL(u):
			others = append(others, u)
		default:
			if one, ok := s.listedArticle(at, sitemap.Entry{Loc: u.String()}); ok {
				articles = append(articles, u)
				s.found.add(one)
			}
		}
	}
	if c.depth > 0 {
		return nil, nil
	}
	for _, u := range provider.Sections(others, articles, maxSections) {
		sections = append(sections, child{address: u.String(), depth: c.depth + 1, page: true, place: len(sections)})
	}
	return sections, nil
}
