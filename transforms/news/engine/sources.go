package engine

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/feed"
	"github.com/newsfork/seed-engine/transforms/site"
)

const acceptPage = "text/html,application/xhtml+xml"

// maxFeeds is how many of the feeds that a site links to are read: the first ones are
// those of all its news, the others those of sections.
const maxFeeds = 5

// roots returns the feeds, and the first sitemaps: those in robots.txt, or else the hints, also when
// nothing could be read of the former.
func (s *search) roots(ctx context.Context) (out []child, err error) {
	named, hints := s.rules.File.Sitemaps(), s.Config.Providers[s.p.ID()].SitemapHints
	if len(hints) == 0 {
		hints = s.p.SitemapHints()
	}
	add := func(addresses []string, invited bool) {
		for _, address := range addresses {
			if !s.requested[address] {
				out = append(out, child{address: address, invited: invited})
			}
		}
	}
	home := child{address: s.base.JoinPath("/").String(), page: true}
	add(s.policy.Feeds, false)
	add(named, true)
	if len(named) == 0 || len(s.requested) > 0 {
		add(hints, false)
	}
	if s.policy.Homepage && !s.requested[home.address] {
		out = append(out, home)
	}
	usual := s.base.JoinPath("/sitemap.xml").String()
	switch {
	case len(out) > 0 || !s.policy.Discover:
	case !s.requested[usual]:
		if out, err = s.discover(ctx, usual); err != nil {
			return nil, err
		}
	case !s.requested[home.address]:
		out = append(out, home)
	}
	if len(out) == 0 && len(s.requested) == 0 {
		return nil, &errStop{Skipped, "robots.txt names no sitemap and there are no sitemapHints and no feeds: add them to the configuration, or homepage: true", "no_source"}
	}
	return out, nil
}

// discover returns the feeds that the page at the base URL links to, or the usual
// address of a sitemap.
func (s *search) discover(ctx context.Context, usual string) (out []child, err error) {
	r, home, err := s.front(ctx)
	var stop *errStop
	switch {
	case errors.As(err, &stop) || ctx.Err() != nil:
		return nil, err
	case err != nil:
		s.log.Warn("home_page_failed", "code", code(err), "url", ledger.Redact(home.String()), "error", ledger.Redact(err.Error()))
	case r.Status == http.StatusOK && isPage(r):
		if final, err := url.Parse(r.FinalURL); err == nil {
			home = final
		}
		found := feed.Discover(r.Body, home)
		found = found[:min(len(found), maxFeeds)]
		for _, address := range found {
			out = append(out, child{address: address})
		}
	}
	if len(out) == 0 {
		out = append(out, child{address: usual})
	}
	return out, nil
}

// front requests the page at the base URL.
func (v *visit) front(ctx context.Context) (*web.Response, *url.URL, error) {
	home := v.base.JoinPath("/")
	r, wall, err := v.get(ctx, polite.Request{URL: home.String(), Accept: acceptPage, MaxBytes: maxPage}, answer.Page)
	a := site.Answer{Role: site.Seed, URL: home.String(), Verdict: wall}
	if r != nil && v.leaves(a.URL, r.FinalURL) {
		a.To = r.FinalURL
	}
	v.answered(a, r, err)
	return r, home, err
}
