package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

// newClient makes the client for all requests of a provider's crawl. A pause is random,
// from half of the configured delay to one and a half: one to three seconds by default.
func (v *visit) newClient() *polite.Client {
	d := time.Duration(v.Config.DelaySeconds * float64(time.Second))
	p := polite.Policy{
		Gap:           polite.Range{Min: max(d/2, v.policy.Delay), Max: max(d*3/2, v.policy.Delay)},
		MaxCrawlDelay: v.Polite.Longest(),
		MaxRetryAfter: v.Polite.Longest(),
		Abandon:       func(status int) bool { return status == http.StatusTooManyRequests },
		Retry:         retry,
		NoDelay:       v.NoDelay,
		Robots: polite.Robots{Agent: v.UserAgent, Accept: "text/plain", Timeout: cmp.Or(v.Timeout, timeout), MaxBytes: maxRobots, MaxRedirects: 5,
			Retry: retry, OnFailure: withoutRobots, For: func(u *url.URL) *url.URL {
				if provider.Hosts(v.p.BaseURL(), u) {
					return v.base
				}
				return u // of a feed, or where a redirect leads; sitemaps that robots.txt names are invited
			}},
	}
	v.gate.Apply(&p)
	c := &polite.Client{Web: v.Web, Pacer: v.Pacer, Policy: p, Control: v.Worker}
	if v.DB != nil { // Discover has none
		c.Memory = polite.InDB{DB: v.DB, Table: "news_hosts"}
	}
	return c
}

// retry makes up to three tries after failures that may be temporary, with a gap between them.
func retry(a polite.Attempt) (wait time.Duration, again bool) {
	may := a.Status() >= 500 || a.Kind() == web.KindTimeout || a.Kind() == web.KindReset || a.Response != nil && brokenOff(a.Response)
	return 0, may && a.Retries+1 < tries
}

// brokenOff reports whether an answer ends early, before the limit of a page.
func brokenOff(r *web.Response) bool {
	return r.Status == http.StatusOK && r.Truncated && len(r.Body) < maxPage
}

// withoutRobots allows everything if there is no robots.txt (RFC 9309 section 2.3.1.3),
// and nothing if it cannot be fetched, also because of too many redirects, or is refused.
func withoutRobots(status int, _ web.Kind) polite.Verdict {
	if status >= 400 && status < 500 && !refuses(status) {
		return polite.Allow
	}
	return polite.Deny
}

// refuses reports whether an answer with this status keeps the crawler out.
func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// refusedError says that the site refuses one address, or that a wall before the whole site
// answers. It ends a source alone, and the provider if the address is an article's.
type refusedError struct {
	address string
	status  int
	wall    answer.Verdict
}

func (e *refusedError) Error() string {
	said := fmt.Sprintf("it answered %d for %s", e.status, ledger.Redact(e.address))
	if e.wall.Kind == "" || e.wall.Kind == answer.ErrorPage {
		return said
	}
	return fmt.Sprintf("%s: %s", said, shown(e.wall))
}

// shown tells a person what answered.
func shown(w answer.Verdict) string {
	return fmt.Sprintf("%s in place of what is there (%s)", strings.TrimSpace(w.Vendor+" "+string(w.Kind)), w.Evidence)
}

// inPlace reports whether a wall is in place of one page.
func inPlace(w answer.Verdict) bool {
	return w.Kind == answer.Login || w.Kind == answer.Soft404 || w.Kind == answer.ErrorPage
}

// classify tells what answered, and returns a *refusedError if it keeps the crawler out.
func classify(r *web.Response, address string, want answer.Kind) (answer.Verdict, error) {
	w := answer.Classify(answer.Response{Status: r.Status, Header: r.Header, URL: address, Final: r.FinalURL, Body: r.Body, Want: want})
	closed := w.Kind == answer.Challenge || r.Status == http.StatusOK && (w.Kind == answer.Consent || w.Kind == answer.Parked || w.Kind == answer.Maintenance)
	if closed || refuses(r.Status) {
		return w, &refusedError{address, r.Status, w}
	}
	return w, nil
}

// keepsOut reports whether an error is an answer that keeps the crawler out.
func keepsOut(err error) bool {
	var abandoned *polite.AbandonedError
	return errors.As(err, new(*refusedError)) || errors.As(err, &abandoned) && abandoned.Hours == ""
}

// get sends a request. An *errStop ends the crawl of the provider: after 429, or a pause
// longer than a run waits. A *refusedError is an answer that refuses.
func (v *visit) get(ctx context.Context, r polite.Request, want answer.Kind) (*web.Response, answer.Verdict, error) {
	r.Timeout, r.MaxRedirects = cmp.Or(v.Timeout, timeout), 5
	resp, err := v.client.Get(ctx, r)
	if err != nil {
		return nil, answer.Verdict{}, v.ended(ctx, err)
	}
	wall, err := classify(resp, r.URL, want)
	return resp, wall, err
}

// ended makes an *errStop of an error that ends the provider.
func (v *visit) ended(ctx context.Context, err error) error {
	var abandoned *polite.AbandonedError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &abandoned) && abandoned.Site != web.Site(v.base):
		return err // of another host, where only this file is
	case errors.Is(err, polite.ErrStopped):
		return &errStop{Cut, err.Error(), "stopped"}
	case errors.As(err, &abandoned):
		return &errStop{Stopped, ledger.Redact(abandoned.Error()), code(err)}
	}
	return err
}
