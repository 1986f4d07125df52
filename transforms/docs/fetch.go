package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/github"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// Headers of a request for a page.
const (
	accept         = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"
	acceptLanguage = "en-US,en;q=0.9,ko;q=0.8"
)

const maxRedirects = 3

// way is how the text of a page is got.
type way struct {
	source policy.Source
	reason string
	twin   *url.URL // asked for instead of the page
	accept string
	text   string // of a page in a llms-full.txt
	same   bool   // the text has not changed since it was read
	whole  bool   // it is asked for without conditions
	file   *repoFile
}

// id tells ways apart by which the same page may have another text.
func (w way) id() string {
	at := w.twin
	switch {
	case w.source == policy.LLMsFull:
		return "/full"
	case w.file != nil:
		at = w.file.at
	case at == nil && w.accept == acceptMarkdown:
		return "/accept"
	case at == nil:
		return ""
	}
	sum := sha256.Sum256([]byte(at.String()))
	return "/" + hex.EncodeToString(sum[:6])
}

// media is what the way knows better than the answer's Content-Type.
func (w way) media(contentType string) string {
	if w.twin == nil && w.text == "" {
		return contentType
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		params = nil
	}
	return mime.FormatMediaType("text/markdown", params)
}

// byHTML is the way of a page that is asked for itself.
func byHTML(reason string) way { return way{source: policy.HTML, reason: reason, accept: accept} }

// wayTo chooses the best source of a page.
func (c *crawl) wayTo(ctx context.Context, p *page) (way, error) {
	if w, ok := c.repo.way(p); ok {
		return w, nil
	}
	if w, ok := c.api.way(p); ok {
		return w, nil
	}
	if c.policy.SPARendering {
		return byHTML("the policy renders pages"), nil
	}
	why := "nothing else has it"
	if p.depth == 0 {
		return byHTML("a seed, whose navigation names pages that a list may leave out"), nil
	}
	for _, s := range c.policy.Order() {
		switch s {
		case policy.LLMsFull:
			if w, ok := c.lists.fullWay(p); ok {
				return w, nil
			}
		case policy.Markdown:
			w, no, err := c.lists.markdownWay(ctx, p)
			if err != nil || no == "" {
				return w, err
			}
			why = no
		case policy.HTML:
			return byHTML(why), nil
		case policy.OpenAPI, policy.GitHub: // they have pages of their own
		}
	}
	return byHTML(why), nil
}

// given ends a page whose text is there without a request of its own. done is false for
// another page.
func (c *crawl) given(ctx context.Context, ch *chain) (done bool, err error) {
	switch {
	case ch.way.same:
		return true, c.unchanged(ctx, ch)
	case ch.way.file != nil && ch.way.file.Size > maxPage:
		return true, c.tooLarge(ctx, ch, 0)
	case ch.way.text != "":
		return true, c.index(ctx, ch, &web.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/markdown; charset=utf-8"}}, Body: []byte(ch.way.text), FinalURL: ch.at.String()})
	}
	resp, err := c.api.resumed(ctx, ch)
	if err != nil || resp == nil {
		return err != nil, err
	}
	return true, c.receive(ctx, ch, resp)
}

// header returns the headers of a request for a page. The request is conditional only
// if the stored content was made with the same policy and version of the program.
func (s *provider) header(p *page, w way) http.Header {
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if s.part.stats.Again || w.whole || p.contentHash == "" || p.readBy != s.readBy+w.id() || s.policy.SPARendering { // the shell of a rendered page does not change with its content
		return h
	}
	setIf(h, "If-None-Match", p.etag)
	h.Set("If-Modified-Since", cmp.Or(p.lastModified, db.Time(p.fetchedAt).Format(http.TimeFormat)))
	return h
}

// request requests a page until there is a final answer, or a failure. The page has ended if there is neither.
func (c *crawl) request(ctx context.Context, ch *chain) (resp *web.Response, failure *web.Error, abandoned *polite.AbandonedError, err error) {
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
	errors.As(err, &abandoned)
	errors.As(err, &failure)
	if err != nil && failure == nil && (resp == nil || resp == last.Response) {
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
		c.judgeAnswer(ch, resp, failure)
	}
	c.part.stats.asked(string(ch.way.source))
	return resp, failure, abandoned, nil
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
	if resp.Status == http.StatusNotModified && ch.now.contentHash != "" && c.api.inFiles[ch.now.key] {
		if ch.way.whole {
			return false, c.fail(ctx, ch, 0, "304 to a request without conditions, while a file of the description has changed")
		}
		if ch.way.whole, err = c.api.changed(ctx, ch); ch.way.whole || err != nil {
			return ch.way.whole, err
		}
	}
	if isRedirect(resp) {
		return c.follow(ctx, ch, resp.Header.Get("Location"), resp.Status == http.StatusMovedPermanently || resp.Status == http.StatusPermanentRedirect)
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
		c.log.Warn("page_failed", "url", ch.at.String(), "reason", why)
		if err := c.w.DeadLetter(ctx, c.deadLetter(ch.page, "wrong_content", why)); err != nil {
			return err
		}
		return c.end(ctx, ch, ending{status: Failed, http: resp.Status, reason: why, deadLetter: true})
	case why != "":
		return c.fail(ctx, ch, resp.Status, why)
	}
	return c.index(ctx, ch, as)
}

// receive processes the final answer for a page: the page gets its final status.
func (c *crawl) receive(ctx context.Context, ch *chain, resp *web.Response) error {
	status := strconv.Itoa(resp.Status)
	switch {
	case resp.Status == http.StatusNotModified && ch.now.contentHash != "":
		return c.unchanged(ctx, ch)
	case resp.Status/100 == 2 && resp.Truncated && len(resp.Body) >= maxPage:
		return c.tooLarge(ctx, ch, resp.Status)
	case brokenOff(resp):
		return c.fail(ctx, ch, 0, "the answer ends early")
	case resp.Status/100 == 2:
		return c.index(ctx, ch, resp)
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

// unchanged ends a page whose stored content is still right.
func (c *crawl) unchanged(ctx context.Context, ch *chain) error {
	links, err := c.stored(ctx, ch.now.key)
	if err != nil {
		return err
	}
	return c.end(ctx, ch, ending{status: NotModified, http: http.StatusNotModified, links: links})
}

func (c *crawl) tooLarge(ctx context.Context, ch *chain, status int) error {
	c.log.Warn("page_too_large", "url", ch.at.String(), "limit", maxPage)
	return c.end(ctx, ch, ending{status: TooLarge, http: status, reason: "longer than 5 MB"})
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
	if _, err := c.db.ExecContext(ctx, `UPDATE docs_pages SET status = $1, retries = $2, http_status = $3 WHERE provider = $4 AND key = $5`,
		to, ch.page.retries, status, c.id, ch.page.key); err != nil {
		return fmt.Errorf("recording the retry of %s: %w", ch.page.address, err)
	}
	c.part.stats.Retries++
	return nil
}

// fail ends a page that could not be fetched. It writes a dead letter if the page may
// be available later.
func (c *crawl) fail(ctx context.Context, ch *chain, status int, reason string) error {
	return c.lost(ctx, ch, status, c.deadLetter(ch.page, "page_failed", reason))
}

// lost is fail with a dead letter of another kind.
func (c *crawl) lost(ctx context.Context, ch *chain, status int, letter ledger.DeadLetter) error {
	reason := ledger.Redact(letter.Error)
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
		return stop(ending{status: Blocked, reason: fmt.Sprintf("redirects to %s: %s", to.address, no)})
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
	err = c.advance(ctx, func(tx *sql.Tx) (err error) {
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
	if err != nil {
		return nil, false, fmt.Errorf("claiming %s: %w", to.address, err)
	}
	return p, taken, nil
}
