package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// maxTabs is how many pages of a site are rendered at the same time.
const maxTabs = 2

// rendering is a visit's browser, for a site whose pages only scripts make.
type rendering struct {
	browser *browser.Browser
	tabs    chan struct{}
}

// Renders reports whether a browser renders pages of the site.
func (s Site) Renders() bool { return s.List.Rendering || s.Detail.Rendering }

// startBrowser starts the browser of a site that needs one.
func (v *visit) startBrowser(ctx context.Context) (end func(), err error) {
	if !v.reader.site.Renders() {
		return func() {}, nil
	}
	v.tabs = make(chan struct{}, maxTabs)
	v.browser, err = browser.Start(ctx, browser.Config{Unsandboxed: v.cfg.UnsandboxedBrowser, UserAgent: v.client.Agent(v.reader.base),
		MaxPage: maxPage, Log: v.log, Part: v.pagePart})
	if err != nil {
		return nil, fmt.Errorf("rendering pages of %s: %w", v.reader.site.Name, err)
	}
	return v.browser.Close, nil
}

// render returns a page's HTML after its scripts have run.
func (v *visit) render(ctx context.Context, at, text string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", fmt.Errorf("parsing the page's address: %w", err)
	}
	select {
	case v.tabs <- struct{}{}:
		defer func() { <-v.tabs }()
	case <-v.control.Stopping().Done():
		return "", errStopped
	case <-ctx.Done():
		return "", errStopped
	}
	rendered, err := v.browser.Render(ctx, u, []byte(text), "text/html; charset=utf-8")
	var failed *failure
	switch {
	case err == nil:
		return rendered, nil
	case errors.As(err, &failed):
		return "", failed
	case ctx.Err() != nil, errors.Is(err, errStopped):
		return "", errStopped
	}
	return "", &failure{kind: "rendering_failed", err: err}
}

// pagePart answers a page's request for a script or data of the site's own host. A page
// whose request fails but may succeed later is fetched again: it would lack fields.
func (v *visit) pagePart(ctx context.Context, page, u *url.URL) (answer browser.Asset, refused bool, err error) {
	if u.Scheme != page.Scheme || !sameHost(u, v.reader.base) {
		return browser.Asset{}, true, nil
	}
	resp, err := v.get(ctx, polite.Request{URL: u.String(), Accept: "*/*", Header: v.header, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: maxRedirects, Once: true, Scope: v.scope})
	if err == nil && resp.Status/100 != 2 {
		err = badStatus("it", resp)
	}
	var f *failure
	switch {
	case errors.As(err, &f) && !f.final:
		return answer, true, &failure{kind: f.kind, err: fmt.Errorf("its scripts need %s: %w", ledger.Redact(u.String()), f.err)}
	case f == nil && err != nil:
		return answer, true, err
	case err != nil, resp.Truncated:
		return answer, true, nil // the page works without it, as in a reader's browser
	}
	return browser.Asset{Status: resp.Status, Kind: resp.Header.Get("Content-Type"), Body: resp.Body}, false, nil
}
