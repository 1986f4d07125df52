package docs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// maxSitemaps is the maximum number of sitemaps that are read for one index.
const maxSitemaps = 50

// sitemap lists the pages of the policy's sitemap. A sitemap that cannot be read is
// logged and skipped, because links lead to the pages too.
func (s *provider) sitemap(ctx context.Context) ([]link, error) {
	var out []link
	has := map[string]bool{}
	asked := map[string]bool{s.policy.SitemapURL: true}
	queue := []string{s.policy.SitemapURL}
	for n := 0; len(queue) > 0 && n < maxSitemaps && len(out) < maxQueued; n++ {
		at := queue[0]
		queue = queue[1:]
		body, why, err := s.sitemapBody(ctx, at)
		if err != nil {
			return nil, err
		}
		if why == "" {
			base, _ := url.Parse(at) // sitemapBody has parsed it
			var result sitemap.Result
			why, err = s.reading(ctx, at, len(body), func() (err error) { result, err = sitemap.Parse(body, maxSitemaps); return err })
			switch {
			case err != nil:
				return nil, err
			case why != "":
			case result.Kind == sitemap.Index:
				for _, child := range result.Children {
					// The protocol demands whole addresses; others are relative to the index.
					next := child
					if u, err := canonical.Resolve(base, child, []string{"*"}); err == nil && !strings.Contains(child, "://") {
						next = u
					}
					if !asked[next] {
						asked[next] = true
						queue = append(queue, next)
					}
				}
			default:
				_, _ = sitemap.Scan(body, func(e sitemap.Entry) bool { // Parse has read all of it
					if l, no := s.link(base, e.Loc, false); no == "" && !has[l.key] {
						has[l.key] = true
						out = append(out, l)
					}
					return len(out) < maxQueued
				})
			}
		}
		if why != "" {
			s.log.Warn("sitemap_unreadable", "url", at, "reason", ledger.Redact(why))
		}
	}
	return out, nil
}

func (s *provider) sitemapBody(ctx context.Context, at string) (body []byte, why string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, "no URL", nil
	}
	if canonical.Host(u) != s.host {
		return nil, "on another host", nil
	}
	resp, alone, err := s.get(ctx, "", polite.Request{URL: at, Accept: "application/xml, text/xml, text/plain;q=0.8, */*;q=0.5", Timeout: pageTimeout, MaxBytes: 10 * maxPage, MaxRedirects: -1, Once: true})
	switch {
	case err != nil:
		return nil, "", err
	case alone != nil:
		return nil, alone.Error(), nil
	case resp.Status != http.StatusOK:
		return nil, "status " + fmt.Sprint(resp.Status), nil
	}
	if body, _, _, err = sitemap.Unpack(resp.Body, 10*maxPage); err != nil {
		return nil, err.Error(), nil
	}
	return body, "", nil
}
