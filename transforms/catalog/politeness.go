package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/images"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

const (
	pageTimeout     = 30 * time.Second
	maxPage         = 10 << 20
	maxRobots       = 500 << 10 // RFC 9309 section 2.5 requires as much
	maxRedirects    = 5
	maxSitemapBytes = 50 << 20 // sitemaps.org/protocol.html
	acceptHTML      = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
	acceptJSON      = "application/json, */*;q=0.1"
	acceptXML       = "application/xml, text/xml, */*;q=0.1"
)

// errUnreachable means that a site's robots.txt fails: RFC 9309 section 2.3.1.4
// then disallows everything.
var errUnreachable = errors.New("its robots.txt cannot be reached, so nothing may be fetched")

// robotsOf returns the origin whose robots.txt applies: that of the list's host to the
// site with and without www, and of each other host, which may have images, its own.
func (r *reader) robotsOf(u *url.URL) *url.URL {
	if sameHost(u, r.base) {
		return r.base
	}
	return u
}

// newClient makes the client for the pages and images of one site. It does not retry a
// page: the journal schedules the next try, which may be made by a later run.
func (v *visit) newClient() *polite.Client {
	cfg, pause := v.cfg.Lane.Web, v.cfg.Lane.Polite
	return &polite.Client{Web: v.w.Web, Pacer: &v.w.Pacer, Control: v.control, Memory: polite.InDB{DB: v.journal.db, Table: "catalog_hosts"}, Policy: polite.Policy{
		Gap:           polite.Range{Min: max(pause.HostDelay, v.reader.delay), Max: max(pause.HostDelay, v.reader.delay)},
		MaxCrawlDelay: pause.Longest(),
		MaxRetryAfter: pause.Longest(),
		PauseOn:       images.MayPass,
		Retry:         v.retryImage,
		Robots: polite.Robots{Agent: cfg.UserAgent, Accept: "text/plain, */*", Timeout: pageTimeout, MaxBytes: maxRobots, MaxRedirects: maxRedirects,
			For: v.reader.robotsOf, Retry: v.retryRobots, OnFailure: withoutRobots},
	}}
}

// backoff returns how long a request waits after that many tries.
func (v *visit) backoff(tries int) time.Duration {
	return v.cfg.Lane.Polite.Backoff(tries - 1)
}

// retryRobots tries a robots.txt again, unless it was received or is absent.
func (v *visit) retryRobots(a polite.Attempt) (wait time.Duration, again bool) {
	if s := a.Status(); s > 0 && (s < 300 || withoutRobots(s, "") == polite.Allow) {
		return 0, false
	}
	return v.backoff(a.Retries + 1), a.Retries+1 < maxTries
}

// withoutRobots allows everything if there is no robots.txt (RFC 9309 section
// 2.3.1.3), and nothing if it cannot be reached.
func withoutRobots(status int, _ web.Kind) polite.Verdict {
	if status >= 300 && status < 500 && status != 429 {
		return polite.Allow
	}
	return polite.Deny
}

// readRobots fetches the site's robots.txt. Its error says why nothing may be fetched.
func (v *visit) readRobots(ctx context.Context) error {
	rules, err := v.client.Robots(ctx, v.reader.base)
	var abandoned *polite.AbandonedError
	var unread *polite.RobotsError
	switch {
	case err == nil:
		v.parallel = v.client.Policy.Gap.Max <= 0 && rules.Delay <= 0
		a := judging.OfRobots(answer.Response{Status: rules.Status, Header: rules.Header, URL: rules.URL, Final: rules.FinalURL, Body: rules.Body})
		if a.Ends {
			return &failure{kind: "robots_unreachable", err: fmt.Errorf("%w: %s is a page of another kind: %s", errUnreachable, rules.URL, a.Verdict.Kind), answer: &a}
		}
		return nil
	case errors.As(err, &abandoned):
		return v.abandoned(abandoned)
	case errors.As(err, &unread) && unread.Err != nil:
		return &failure{kind: "robots_unreachable", err: fmt.Errorf("%w: %w", errUnreachable, unread.Err),
			answer: &judging.Answer{Failure: string(unread.Err.Kind)}}
	case errors.As(err, &unread):
		return &failure{kind: "robots_unreachable", err: fmt.Errorf("%w: %s answers %d", errUnreachable, unread.URL, unread.Status),
			answer: &judging.Answer{Status: unread.Status}}
	}
	return unlessStopped(ctx, err)
}

// abandoned returns the reason why this run's crawl of the site ends.
func (v *visit) abandoned(e *polite.AbandonedError) error {
	if e.Hours != "" {
		return e
	}
	if e.CrawlDelay > 0 {
		return &failure{kind: "crawl_delay", final: true, err: fmt.Errorf("it asks for %v between two requests, more than --max-crawl-delay (%v)", e.CrawlDelay, v.cfg.Lane.Polite.Longest())}
	}
	return &failure{kind: "retry_after", err: fmt.Errorf("%w; the next run resumes from there", e)}
}

// unlessStopped returns errStopped for a request that was not sent, or was cut off, because of a stop.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, polite.ErrStopped) {
		return errStopped
	}
	return err
}

// fetched is a page that was fetched.
type fetched struct {
	HTMLContent string
	at          string                // after redirects, which is what its links are relative to
	nth         int64                 // see judging.Answer
	verdict     func() answer.Verdict // counts only if the page has none of what it should have
}

// fetch returns a page of a format. A request with a body is a POST.
func (v *visit) fetch(ctx context.Context, at string, body []byte, format string) (f fetched, err error) {
	resp, err := v.request(ctx, at, body, format)
	if err != nil {
		return f, err
	}
	text, header := string(resp.Body), resp.Header
	if format == formatHTML { // JSON is UTF-8, and the reader of sitemaps finds out their encoding itself
		media := header.Get("Content-Type")
		if text, _, err = charset.Decode(resp.Body, media); err != nil {
			return f, &failure{kind: "bad_charset", final: true, err: err}
		}
		if media, _, _ = strings.Cut(media, ";"); media != "" {
			header = header.Clone()
			header.Set("Content-Type", media+"; charset=utf-8")
		}
	}
	status, final := resp.Status, resp.FinalURL
	return fetched{text, final, v.came.Add(1), func() answer.Verdict {
		return answer.Classify(answer.Response{Status: status, Header: header, URL: at, Final: final, Body: []byte(text)})
	}}, nil
}

// kindWall is the failure of a page in whose place the site shows something else.
const kindWall = "not_the_page"

// wall returns the failure of a page that has none of what it should have, nil if nothing else is in its place.
func wall(v answer.Verdict) *failure {
	f := &failure{kind: kindWall, answer: &judging.Answer{Status: http.StatusOK, Verdict: v}}
	switch v.Kind {
	case answer.Challenge, answer.Consent, answer.Login, answer.Parked:
		f.final = true
	case answer.Soft404:
		f.kind, f.final = "http_404", true
	case answer.Maintenance, answer.ErrorPage:
	default:
		return nil
	}
	f.err = fmt.Errorf("the site shows something else in its place (%s): %s", strings.ReplaceAll(string(v.Kind), "_", " "), v.Evidence)
	return f
}

// request returns the answer to a request, which has all of the page.
func (v *visit) request(ctx context.Context, at string, body []byte, format string) (*web.Response, error) {
	r := polite.Request{URL: at, Accept: acceptHTML, Header: v.header, Body: body, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: maxRedirects, Parallel: v.parallel, Once: true, Scope: v.scope}
	switch format {
	case formatJSON:
		r.Accept = acceptJSON
	case formatSitemap:
		r.Accept, r.MaxBytes = acceptXML, maxSitemapBytes
	}
	if body != nil {
		r.Header = v.header.Clone()
		if _, own := r.Header["Content-Type"]; !own {
			r.Header["Content-Type"] = []string{v.reader.site.List.contentType()}
		}
	}
	resp, err := v.get(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case resp.Status/100 != 2:
		f := badStatus("the site", resp)
		f.answer = &judging.Answer{Status: resp.Status, Verdict: answer.Classify(answer.Response{Status: resp.Status, Header: resp.Header, URL: at, Final: resp.FinalURL, Body: resp.Body})}
		return nil, f
	case resp.Truncated:
		return nil, &failure{kind: "too_large", err: fmt.Errorf("the page is cut off, or over %d MiB", r.MaxBytes>>20)}
	}
	return resp, nil
}

// get sends a request. Its error is a failure, errStopped, or one of the database. It stops the site if the site abandons the run.
func (v *visit) get(ctx context.Context, r polite.Request) (*web.Response, error) {
	resp, err := v.client.Get(ctx, r)
	var abandoned *polite.AbandonedError
	var disallowed *polite.DisallowedError
	var unread *polite.RobotsError
	var below *web.Error
	switch {
	case err == nil:
		return resp, nil
	case errors.As(err, &abandoned) && abandoned.Site == web.Site(v.reader.base):
		return nil, v.stopSite(v.abandoned(abandoned))
	case errors.As(err, &abandoned): // the host of an image
		return nil, &failure{kind: "retry_after", err: abandoned}
	case errors.As(err, &unread):
		return nil, &failure{kind: "robots_unreachable", final: unread.Err != nil && unread.Err.Kind == web.KindBlocked, err: unread}
	case errors.As(err, &below):
		f := &failure{kind: string(below.Kind), final: below.Kind == web.KindBlocked || below.Kind == web.KindRedirect, err: below,
			answer: &judging.Answer{Failure: string(below.Kind)}}
		var away *elsewhereError
		if errors.As(err, &away) {
			f.answer.Status, f.answer.To = http.StatusFound, away.to
		}
		return nil, f
	case errors.As(err, &disallowed):
		return nil, &failure{kind: "robots_disallowed", final: true, err: fmt.Errorf("robots.txt, line %d, disallows it: %s", disallowed.Line, disallowed.Rule)}
	}
	return nil, unlessStopped(ctx, err)
}

// badStatus returns the failure of an answer without what was requested.
func badStatus(what string, resp *web.Response) *failure {
	return &failure{kind: fmt.Sprintf("http_%d", resp.Status), final: !images.MayPass(resp.Status), err: fmt.Errorf("%s answers with status %d", what, resp.Status)}
}

// scope refuses redirects to other hosts, and to addresses where others could read the
// secrets of the site's headers.
func (v *visit) scope(u *url.URL) error {
	if len(v.header) > 0 && u.Scheme != v.reader.base.Scheme {
		return fmt.Errorf("it redirects from %s to %s, and the headers of the site's file are not sent there", v.reader.base.Scheme, u.Scheme)
	}
	if !sameHost(u, v.reader.base) {
		return &elsewhereError{u.String(), u.Host}
	}
	return nil
}

// elsewhereError refuses a redirect to another host.
type elsewhereError struct{ to, host string }

func (e *elsewhereError) Error() string { return "it redirects to another host, " + e.host }
