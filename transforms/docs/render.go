package docs

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// newRenderer starts a browser for a policy with spa_rendering.
func (c *crawl) newRenderer(ctx context.Context) (*browser.Browser, error) {
	return browser.Start(ctx, browser.Config{Unsandboxed: c.cfg.UnsandboxedBrowser, UserAgent: UserAgent, MaxPage: maxPage, Log: c.w.Log, Part: c.pagePart})
}

// pagePart answers a page's request for a script or data of the provider's own host. The
// error ends the crawl.
func (c *crawl) pagePart(ctx context.Context, page, u *url.URL) (answer browser.Asset, refused bool, err error) {
	if u.Scheme != page.Scheme || canonical.Host(u) != c.host {
		return browser.Asset{}, true, nil
	}
	resp, err := c.client.Get(ctx, polite.Request{URL: u.String(), Accept: "*/*", Header: http.Header{"Accept-Language": {acceptLanguage}}, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: -1, Once: true})
	err = unreachable(err)
	var failure *web.Error
	var no *polite.DisallowedError
	switch {
	case err == nil && !resp.Truncated && resp.Status/100 == 2:
	case err == nil, errors.As(err, &no), c.failsPageOnly(u, err), errors.As(err, &failure):
		return browser.Asset{}, true, nil // the page works without it, as in a reader's browser
	default:
		return browser.Asset{}, true, err
	}
	return browser.Asset{Status: resp.Status, Kind: resp.Header.Get("Content-Type"), Body: resp.Body}, false, nil
}
