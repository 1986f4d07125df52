package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/github"
)

// Headers of a request for a page.
const (
	accept         = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"
	acceptLanguage = "en-US,en;q=0.9,ko;q=0.8"
)

const maxRedirects = 3

// header returns the headers of a request for a page. The request is conditional only
// if the stored content was made with the same policy and version of the program.
func (s *provider) header(p *page, w way) http.Header {
	h := http.Header{"Accept-Language": {acceptLanguage}}
	// The shell of a rendered page does not change with its content.
	if s.part.stats.Again || p.contentHash == "" || p.rights == "" || p.readBy != s.readBy+w.id() || s.policy.SPARendering {
		return h
	}
	setIf(h, "If-None-Match", p.etag)
	h.Set("If-Modified-Since", cmp.Or(p.lastModified, db.Time(p.fetchedAt).Format(http.TimeFormat)))
	return h
}

// request requests a page until there is a final answer, or a failure. The page has ended if there is neither.
func (c *crawl) request(ctx context.Context, ch *chain) (resp *web.Response, failed *web.Error, held *polite.AbandonedError, err error) {
	var last polite.Attempt // the last one that a retry follows
	waits := false
	at := cmp.Or(ch.way.twin, ch.at)
	client, req := c.client, polite.Request{URL: at.String(), Accept: ch.way.accept, Header: c.header(ch.now, ch.way),
		Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: -1, Probe: ch.way.twin != nil}
	if ch.way.file != nil {
		client, req = c.repo.api, c.repo.request(c.repo.Blob(ch.way.file.SHA), github.Raw, "")
	}
	req.Retries = ch.page.retries
	req.OnRetry = func(ctx context.Context, a polite.Attempt, wait time.Duration) error {
		if waits {
			if err := c.move(ch, Fetching); err != nil {
				return err
			}
		}
		last, waits = a, true
		c.part.stats.count(a.Response)
		c.part.stats.asked(string(ch.way.source))
		return c.later(ctx, ch, a, wait)
	}
	resp, err = client.Get(ctx, req)
	err = unreachable(err)
	errors.As(err, &held)
	errors.As(err, &failed)
	if err != nil && failed == nil && (resp == nil || resp == last.Response) {
		if c.failsPageOnly(ch.at, err) {
			err = c.fail(ctx, ch, last.Status(), err.Error())
		}
		return nil, nil, nil, err
	}
	if waits {
		if err := c.move(ch, Fetching); err != nil {
			return nil, nil, nil, err
		}
	}
	// It is no failure that a twin is not there, or that a page still is gone to which a list or a link leads.
	if ch.way.twin == nil && !ch.now.gone || !missing(resp) {
		c.part.stats.count(resp)
	}
	if resp != nil {
		ch.answered(resp)
	}
	if ch.way.file == nil && ch.way.twin == nil {
		c.judgeAnswer(ch, resp, failed)
	}
	c.part.stats.asked(string(ch.way.source))
	return resp, failed, held, nil
}

// try requests a page, and processes the answer. again means that the answer was a redirect, and
// its target must be requested, or that the page is requested in another way.
func (c *crawl) try(ctx context.Context, ch *chain) (again bool, err error) {
	resp, failure, abandoned, err := c.request(ctx, ch)
	switch {
	case err != nil || resp == nil && failure == nil:
		return false, err
	case failure != nil:
		return false, c.fail(ctx, ch, 0, failure.Error())
	case ch.way.file != nil:
		if err := c.receiveFile(ctx, ch, resp); err != nil || abandoned == nil {
			return false, err
		}
		return false, abandoned
	case abandoned != nil: // the page fails, and the pause applies to its site
		if err := c.fail(ctx, ch, resp.Status, strconv.Itoa(resp.Status)); err != nil || c.failsPageOnly(ch.at, abandoned) {
			return false, err
		}
		return false, abandoned
	}
	if fails, err := c.lists.fails(ctx, ch, resp); fails || err != nil {
		return fails, err
	}
	if isRedirect(resp) {
		permanent := resp.Status == http.StatusMovedPermanently || resp.Status == http.StatusPermanentRedirect
		return c.follow(ctx, ch, resp.Header.Get("Location"), permanent)
	}
	return false, c.receive(ctx, ch, resp)
}

// receiveFile processes GitHub's answer for a file.
func (c *crawl) receiveFile(ctx context.Context, ch *chain, resp *web.Response) error {
	as, why, wrong, err := c.repo.page(ctx, ch, resp)
	switch {
	case err != nil:
		return err
	case wrong:
		ch.failure = "wrong_content"
	case why == "":
		return c.index(ctx, ch, as)
	}
	return c.fail(ctx, ch, resp.Status, why)
}

// receive processes the final answer for a page: the page gets its final status.
func (c *crawl) receive(ctx context.Context, ch *chain, resp *web.Response) error {
	status := strconv.Itoa(resp.Status)
	switch {
	case resp.Status == http.StatusNotModified && ch.now.contentHash != "":
		links, err := c.stored(ctx, ch.now.key)
		if err != nil {
			return err
		}
		e, err := c.reservedPage(ctx, ch, resp, nil)
		if err != nil {
			return err
		}
		if e == nil {
			e = &ending{status: NotModified, http: resp.Status, links: links}
		}
		return c.end(ctx, ch, *e)
	case resp.Status/100 == 2 && resp.Truncated && len(resp.Body) >= maxPage:
		return c.end(ctx, ch, ending{status: TooLarge, http: resp.Status, reason: "longer than 5 MB"})
	case brokenOff(resp):
		return c.fail(ctx, ch, 0, "the answer ends early")
	case resp.Status/100 == 2:
		return c.index(ctx, ch, resp)
	case resp.Status == http.StatusPaymentRequired:
		if e, err := c.reservedPage(ctx, ch, resp, nil); e != nil || err != nil {
			if err == nil {
				c.hold(ch, *e)
			}
			return err
		}
	case resp.Status == http.StatusUnauthorized:
		c.hold(ch, ending{status: Skipped, http: resp.Status, reason: "behind a login", gone: true})
		return nil
	case resp.Status == http.StatusForbidden:
		c.log.Warn("page_forbidden", "url", ch.at.String())
		c.hold(ch, ending{status: Failed, http: resp.Status, reason: "403: never requested again", forbid: true})
		return nil
	case missing(resp) && (ch.now.contentHash != "" || ch.now.gone):
		c.hold(ch, ending{status: Deleted, http: resp.Status, reason: status, gone: true})
		return nil
	}
	return c.fail(ctx, ch, resp.Status, status)
}

// missing reports whether an answer says that there is no such page.
func missing(resp *web.Response) bool {
	return resp != nil && (resp.Status == http.StatusNotFound || resp.Status == http.StatusGone)
}

func isRedirect(r *web.Response) bool {
	return r.Status/100 == 3 && r.Status != http.StatusNotModified && r.Header.Get("Location") != ""
}

// later records that a page is requested again after a wait.
func (c *crawl) later(ctx context.Context, ch *chain, a polite.Attempt, wait time.Duration) error {
	status, reason := a.Status(), strconv.Itoa(a.Status())
	switch {
	case a.Failure != nil:
		reason = a.Failure.Error()
	case brokenOff(a.Response):
		status, reason = 0, "the answer ends early"
	}
	to := Retry
	if status == http.StatusTooManyRequests {
		to = RateLimited
	}
	if err := c.move(ch, to); err != nil {
		return err
	}
	c.log.Warn("page_retry", "url", ch.at.String(), "reason", ledger.Redact(reason), "wait_s", wait.Seconds(), "retries", ch.page.retries)
	if wait <= maxRetryAfter { // otherwise a later run makes this try
		ch.page.retries++
	}
	c.part.stats.Retries++
	return c.db.Write(ctx, "recording the retry of "+ch.page.address, `UPDATE docs_pages SET status = $1, retries = $2, http_status = $3 WHERE provider = $4 AND key = $5`,
		to, ch.page.retries, status, c.id, ch.page.key)
}

// fail ends a page that could not be fetched. It writes a dead letter if the page may
// be available later.
func (c *crawl) fail(ctx context.Context, ch *chain, status int, reason string) error {
	letter := c.deadLetter(ch.page, cmp.Or(ch.failure, "page_failed"), reason)
	reason = ledger.Redact(reason)
	c.log.Warn("page_failed", "url", ch.at.String(), "reason", reason)
	again := status == 0 || status/100 == 2 || status == http.StatusTooManyRequests || status >= 500
	if again {
		if err := c.w.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	return c.end(ctx, ch, ending{status: Failed, http: status, reason: reason, deadLetter: again})
}

// follow moves the chain to the target of a redirect, if that may be visited.
func (c *crawl) follow(ctx context.Context, ch *chain, location string, permanent bool) (again bool, err error) {
	if err := c.move(ch, Redirecting); err != nil {
		return false, err
	}
	stop := func(e ending) (bool, error) {
		c.part.stats.Requests++
		return false, c.end(ctx, ch, e)
	}
	if ch.hops++; ch.hops > maxRedirects {
		return stop(ending{status: Failed, reason: fmt.Sprintf("more than %d redirects", maxRedirects)})
	}
	to, why := c.link(ch.at, location, false)
	u, perr := url.Parse(to.address)
	if why == "" && perr != nil {
		why = perr.Error()
	}
	if why == "" && to.key != ch.page.key && c.forbidden[to.key] {
		why = answered403
	}
	if why != "" {
		return stop(ending{status: Skipped, reason: fmt.Sprintf("redirects to %.500s: %s", location, why)})
	}
	r, err := c.robots(ctx, u)
	if c.failsPageOnly(u, err) {
		c.part.stats.Requests++
		return false, c.fail(ctx, ch, 0, fmt.Sprintf("redirects to %s: %s", to.address, err))
	}
	if err != nil {
		return false, err
	}
	if no := r.Check(u); no != nil {
		e := c.refusedBy(ch, u, r, no)
		if !e.reserved {
			e.reason = fmt.Sprintf("redirects to %s: %s", to.address, no)
		}
		return stop(e)
	}
	if to.key != ch.now.key {
		target, taken, err := c.target(ctx, to, ch.page.depth)
		if err != nil {
			return false, err
		}
		if taken {
			return stop(ending{status: Skipped, reason: "redirects to " + to.key + ", which this session has already requested",
				gone: permanent || target.contentHash != "" && (target.contentHash == ch.now.contentHash || target.depth > 0)})
		}
		ch.now.moved = permanent
		if ch.now != ch.page {
			ch.passed = append(ch.passed, ch.now)
		}
		ch.now = target
	}
	ch.at = u
	return true, c.move(ch, Fetching)
}

// target claims the page to which a redirect leads, without counting it. taken means
// that this session has requested it already.
func (c *crawl) target(ctx context.Context, to link, depth int) (p *page, taken bool, err error) {
	err = c.advance(ctx, "claiming "+to.address, func(tx *sql.Tx) (err error) {
		if err := c.queue(ctx, tx, []link{to}, depth); err != nil {
			return err
		}
		p, err = scanPage(tx.QueryRowContext(ctx, selectPage+`WHERE p.provider = $1 AND p.key = $2`, c.id, to.key))
		if errors.Is(err, sql.ErrNoRows) { // the frontier is full
			taken = true
			return nil
		}
		if err != nil {
			return err
		}
		if taken = p.status != Queued || p.counted; taken {
			return nil
		}
		p.status, p.counted = Fetching, true
		_, err = tx.ExecContext(ctx, claims, Fetching, db.Micros(c.clock.Now()), c.id, to.key)
		return err
	})
	return p, taken, err
}
