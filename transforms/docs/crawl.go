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
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// Headers of a request for a page.
const (
	accept         = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"
	acceptLanguage = "en-US,en;q=0.9,ko;q=0.8"
)

const maxRedirects = 3

// Why a provider stops though there is more to ask.
const (
	reasonMaxPages   = "max_pages"
	reasonSessionMax = "session_max_pages"
)

var (
	errMaxPages   = errors.New("the provider's max_pages is reached")
	errSessionMax = errors.New("the session's max pages are reached")
)

// crawl is one provider's visit.
type crawl struct {
	cfg    Config
	w      *lane.Worker
	db     *db.DB
	clock  polite.Clock
	policy policy.Policy
	runID  string
	part   part
	client *polite.Client

	scope     canonical.Scope
	host      string
	own       map[string]bool // origins and sites of the seeds: without them there is no crawl
	readBy    string          // what makes content of a page
	seen      map[string]bool // keys of this session
	forbidden map[string]bool // keys of blocked_urls
	marked    time.Time       // until when Active is counted
	timeout   time.Duration   // of a page
	moved     func(key string, from, to Status)
	tally     func(ledger.Tally) // takes what was done, page by page
	renderer  *renderer          // of a policy with spa_rendering
}

// page is a row of pages as the crawl uses it.
type page struct {
	key, address       string
	depth              int
	status             Status
	counted            bool
	retries            int
	etag, lastModified string
	contentHash        string
	readBy             string
	fetchedAt          int64
	moved              bool // for good, as its redirect says
}

func newCrawl(cfg Config, w *lane.Worker, d *db.DB, p policy.Policy, in part) *crawl {
	v := &crawl{cfg: cfg, w: w, db: d, clock: w.Pacer.Clock, policy: p, runID: cfg.Lane.RunID, part: in, tally: w.Count,
		scope: p.Scope(), host: p.Host(), own: map[string]bool{}, readBy: readBy(p), seen: map[string]bool{}, forbidden: map[string]bool{}, marked: w.Pacer.Clock.Now(), timeout: pageTimeout}
	v.client = v.newClient()
	for _, raw := range p.SeedURLs {
		if u, err := canonical.Address(nil, raw, p.KeepQueryParams); err == nil {
			v.own[origin(u)], v.own[web.Site(u)] = true, true
		}
	}
	return v
}

// costsPage says whether an error that asking u ended in costs the page alone:
// u is not on an origin of the provider's own (its www., where a redirect
// leads), so the other pages can still be had. A pause holds for the whole site.
func (c *crawl) costsPage(u *url.URL, err error) bool {
	var abandoned *polite.AbandonedError
	return !c.own[origin(u)] && errors.Is(err, errUnreachable) || !c.own[web.Site(u)] && errors.As(err, &abandoned)
}

// answered is errUnreachable where no seed could be had, so that the provider
// may have any number of pages.
func (c *crawl) answered(ctx context.Context) error {
	var seeds, lost int
	err := c.db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = $1 AND (http_status = 0 OR http_status = 429 OR http_status >= 500) THEN 1 ELSE 0 END), 0)
		FROM pages WHERE provider = $2 AND session = $3 AND depth = 0`, Failed, c.policy.ProviderID, c.part.session).Scan(&seeds, &lost)
	switch {
	case err != nil:
		return fmt.Errorf("counting the seeds of %s that answered: %w", c.policy.ProviderID, err)
	case seeds > 0 && seeds == lost:
		return fmt.Errorf("%w: none of its %d seeds could be fetched", errUnreachable, seeds)
	}
	return nil
}

// run asks for the provider's pages until none is left, a limit is reached, or
// the run or the host says stop. It gives the state that the part is left in.
func (c *crawl) run(ctx context.Context) (State, string, error) {
	defer c.client.Close()
	err := c.load(ctx)
	if err == nil && c.policy.SPARendering {
		if c.renderer, err = newRenderer(ctx, c); err == nil {
			defer c.renderer.cancel()
		}
	}
	if err == nil && c.part.fresh {
		err = c.seed(ctx)
	}
	for err == nil {
		var p *page
		if p, err = c.next(ctx); err == nil && p == nil {
			p, err = c.recheck(ctx)
		}
		if err != nil || p == nil {
			break
		}
		err = c.visit(ctx, p)
	}
	if err == nil {
		err = c.answered(ctx)
	}
	state, reason := Done, ""
	var abandoned *polite.AbandonedError
	switch {
	case err == nil:
	case errors.Is(err, errMaxPages):
		reason = reasonMaxPages
		c.w.Log.Warn("max_pages_reached", "provider", c.policy.ProviderID, "max_pages", c.policy.MaxPages)
	case errors.Is(err, errSessionMax):
		state, reason = OutOfBudget, reasonSessionMax
		c.w.Log.Warn("session_max_pages_reached", "provider", c.policy.ProviderID, "session_max_pages", c.sessionMax())
	case errors.Is(err, errUnreachable):
		state, reason = Unreachable, content.MaskEmails(clean(ledger.Redact(err.Error())))
		c.w.Log.Warn("provider_unreachable", "provider", c.policy.ProviderID, "error", ledger.Redact(err.Error()))
	case errors.As(err, &abandoned):
		state, reason = Held, "the host asks for a pause until "+abandoned.Until.UTC().Format(time.RFC3339)
		c.w.Log.Warn("provider_held", "provider", c.policy.ProviderID, "until", abandoned.Until.UTC())
	case errors.Is(err, polite.ErrBudget):
		state, reason = OutOfBudget, err.Error()
		c.w.Log.Warn("provider_out_of_budget", "provider", c.policy.ProviderID, "reason", reason)
	case errors.Is(err, polite.ErrStopped):
		state, reason = Open, err.Error()
		c.w.Log.Warn("provider_left_open", "provider", c.policy.ProviderID, "reason", reason)
	default:
		state, reason = Open, ledger.Redact(err.Error())
	}
	if state != Open || errors.Is(err, polite.ErrStopped) {
		err = nil
	}
	// What failed may be committed all the same; then the figures that were
	// written with it are right, and those in memory are not.
	write := c.advance
	if err != nil {
		write = c.db.Tx
	}
	within := context.WithoutCancel(ctx)
	return state, reason, errors.Join(err, write(within, func(tx *sql.Tx) error { return c.leave(within, tx, state, reason) }))
}

func (c *crawl) sessionMax() int { return cmp.Or(c.cfg.SessionMaxPages, SessionMaxPages) }

// load reads what the session knows of the provider already.
func (c *crawl) load(ctx context.Context) error {
	known := func(into map[string]bool, query string, args ...any) error {
		rows, err := c.db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		return each(rows, func() error {
			var key string
			err := rows.Scan(&key)
			into[key] = true
			return err
		})
	}
	if err := errors.Join(
		known(c.seen, `SELECT key FROM pages WHERE provider = $1 AND session = $2`, c.policy.ProviderID, c.part.session),
		known(c.forbidden, `SELECT key FROM blocked_urls WHERE provider = $1`, c.policy.ProviderID)); err != nil {
		return fmt.Errorf("reading the frontier of %s: %w", c.policy.ProviderID, err)
	}
	return nil
}

// seed queues the seeds and, at depth 1, what the sitemap lists.
func (c *crawl) seed(ctx context.Context) error {
	var seeds []link
	for _, raw := range c.policy.SeedURLs {
		if l, why := c.link(nil, raw, true); why == "" {
			seeds = append(seeds, l)
		} else {
			c.w.Log.Warn("seed_refused", "provider", c.policy.ProviderID, "url", raw, "reason", why)
		}
	}
	var listed []link
	if c.policy.SitemapURL != "" {
		var err error
		if listed, err = c.sitemap(ctx); err != nil {
			return err
		}
	}
	err := c.advance(ctx, func(tx *sql.Tx) error {
		if err := c.queue(ctx, tx, seeds, 0); err != nil {
			return err
		}
		return c.queue(ctx, tx, listed, 1)
	})
	if err != nil {
		return fmt.Errorf("queueing the seeds of %s: %w", c.policy.ProviderID, err)
	}
	c.remember(seeds, 0)
	c.remember(listed, 1)
	return nil
}

const pageColumns = `key, address, depth, status, counted, retries, etag, last_modified, content_hash, read_by, fetched_at`

func scanPage(row interface{ Scan(...any) error }) (*page, error) {
	var p page
	var counted int
	err := row.Scan(&p.key, &p.address, &p.depth, &p.status, &counted, &p.retries, &p.etag, &p.lastModified, &p.contentHash, &p.readBy, &p.fetchedAt)
	p.counted = counted != 0
	return &p, err
}

// next is the first page of the queue: breadth first, in the order of
// discovery within a depth. nil when it is empty.
func (c *crawl) next(ctx context.Context) (*page, error) {
	p, err := scanPage(c.db.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM pages
		WHERE provider = $1 AND session = $2 AND status = $3 ORDER BY depth, seq LIMIT 1`, c.policy.ProviderID, c.part.session, Queued))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("taking the next page of %s: %w", c.policy.ProviderID, err)
	}
	return p, nil
}

// recheck queues one page of the last crawl that nothing led to in this one,
// so that a page whose links went with it is still found to be gone. Pages that
// the policy no longer takes are dropped without asking for them.
func (c *crawl) recheck(ctx context.Context) (*page, error) {
	for {
		p, err := scanPage(c.db.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM pages
			WHERE provider = $1 AND session <> $2 AND content_hash <> '' ORDER BY depth, seq, key LIMIT 1`, c.policy.ProviderID, c.part.session))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("looking for pages that were not reached: %w", err)
		}
		l, why := c.link(nil, p.address, p.depth == 0)
		if why == "" && c.forbidden[p.key] {
			why = "it answered 403 before"
		}
		if why == "" && l.key != p.key {
			why = "its key is another one now: " + l.key
		}
		if err := c.advance(ctx, func(tx *sql.Tx) error { return c.adopt(ctx, tx, p) }); err != nil {
			return nil, fmt.Errorf("queueing %s once more: %w", p.address, err)
		}
		c.seen[p.key] = true
		if why == "" {
			p.status, p.counted, p.retries = Queued, false, 0
			return p, nil
		}
		c.w.Log.Warn("page_dropped", "provider", c.policy.ProviderID, "url", p.address, "reason", why)
		if err := c.close(ctx, &chain{page: p, now: p}, ending{status: Deleted, reason: why, gone: true}); err != nil {
			return nil, err
		}
	}
}

// chain is a page being asked for, with the redirects on the way.
type chain struct {
	page   *page // what was queued
	now    *page // what its redirects lead to, of another key perhaps
	at     *url.URL
	hops   int
	passed []*page // left behind by redirects
	status Status
}

func (c *crawl) move(ch *chain, to Status) error {
	next, err := ch.status.move(to)
	if err != nil {
		return fmt.Errorf("%s: %w", ch.page.address, err)
	}
	if c.moved != nil {
		c.moved(ch.page.key, ch.status, to)
	}
	ch.status = next
	return nil
}

// visit takes one page from the queue to one of its ends.
func (c *crawl) visit(ctx context.Context, p *page) error {
	ch := &chain{page: p, now: p, status: Queued}
	if err := c.move(ch, RobotsCheck); err != nil {
		return err
	}
	u, err := url.Parse(p.address)
	if err != nil {
		return fmt.Errorf("reading the address of %s: %w", p.key, err)
	}
	ch.at = u
	r, err := c.robots(ctx, u)
	if c.costsPage(u, err) {
		return c.fail(ctx, ch, 0, err.Error())
	}
	if err != nil {
		return err
	}
	if no := r.Check(u); no != nil {
		return c.end(ctx, ch, ending{status: Blocked, reason: no.Error()})
	}
	if err := c.claim(ctx, p); err != nil {
		return err
	}
	if err := c.move(ch, Fetching); err != nil {
		return err
	}
	for {
		again, err := c.try(ctx, ch)
		if err != nil || !again {
			return err
		}
	}
}

// claim counts a page against the limits when it is first asked for.
func (c *crawl) claim(ctx context.Context, p *page) error {
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		now := db.Micros(c.clock.Now())
		if !p.counted {
			if n, err := changed(tx.ExecContext(ctx, `UPDATE runs SET requested = requested + 1, active_at = $1 WHERE session = $2 AND provider = $3 AND requested < $4`,
				now, c.part.session, c.policy.ProviderID, c.policy.MaxPages)); err != nil || n == 0 {
				return cmp.Or(err, errMaxPages)
			}
			if n, err := changed(tx.ExecContext(ctx, `UPDATE docs_sessions SET requested = requested + 1, active_at = $1 WHERE id = $2 AND requested < $3`,
				now, c.part.session, c.sessionMax())); err != nil || n == 0 {
				return cmp.Or(err, errSessionMax)
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE pages SET status = $1, counted = 1, requested_at = $2 WHERE provider = $3 AND key = $4`, Fetching, now, c.policy.ProviderID, p.key)
		return err
	})
	if err != nil {
		return fmt.Errorf("taking %s: %w", p.address, err)
	}
	p.counted = true
	return nil
}

func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// header is what is sent for a page: its conditions hold only for content that
// this policy and this program made.
func (c *crawl) header(p *page) http.Header {
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if c.part.stats.Again || p.contentHash == "" || p.readBy != c.readBy || c.policy.SPARendering { // a rendered page's shell stays the same
		return h
	}
	if p.etag != "" {
		h.Set("If-None-Match", p.etag)
	}
	h.Set("If-Modified-Since", cmp.Or(p.lastModified, db.Time(p.fetchedAt).Format(http.TimeFormat)))
	return h
}

// try asks for a page until there is an answer, and does what it says: the page
// ends, or what it redirects to is asked for.
func (c *crawl) try(ctx context.Context, ch *chain) (again bool, err error) {
	var last polite.Attempt // that a retry follows
	waits := false
	resp, err := c.client.Get(ctx, polite.Request{URL: ch.at.String(), Accept: accept, Header: c.header(ch.now),
		Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: -1, Retries: ch.page.retries,
		OnRetry: func(ctx context.Context, a polite.Attempt, wait time.Duration) error {
			if waits {
				if err := c.move(ch, Fetching); err != nil {
					return err
				}
			}
			last, waits = a, true
			c.count(a.Response)
			return c.later(ctx, ch, a, wait)
		}})
	err = unreachable(err)
	var abandoned *polite.AbandonedError
	var failure *web.Error
	errors.As(err, &abandoned)
	errors.As(err, &failure)
	final := failure != nil || resp != nil && resp != last.Response
	if err != nil && !final {
		if c.costsPage(ch.at, err) {
			return false, c.fail(ctx, ch, last.Status(), err.Error())
		}
		return false, err
	}
	if waits {
		if err := c.move(ch, Fetching); err != nil {
			return false, err
		}
	}
	c.count(resp)
	switch {
	case failure != nil:
		return false, c.fail(ctx, ch, 0, failure.Error())
	case abandoned != nil: // the page is given up, and the pause holds
		if err := c.fail(ctx, ch, resp.Status, strconv.Itoa(resp.Status)); err != nil || c.costsPage(ch.at, abandoned) {
			return false, err
		}
		return false, abandoned
	case isRedirect(resp):
		return c.follow(ctx, ch, resp.Header.Get("Location"), resp.Status == http.StatusMovedPermanently || resp.Status == http.StatusPermanentRedirect)
	}
	status := strconv.Itoa(resp.Status)
	switch {
	case resp.Status == http.StatusNotModified && ch.now.contentHash != "":
		links, err := c.stored(ctx, ch.now.key)
		if err != nil {
			return false, err
		}
		return false, c.end(ctx, ch, ending{status: NotModified, http: resp.Status, links: links})
	case resp.Status/100 == 2 && resp.Truncated && len(resp.Body) >= maxPage:
		c.w.Log.Warn("page_too_large", "provider", c.policy.ProviderID, "url", ch.at.String(), "limit", maxPage)
		return false, c.end(ctx, ch, ending{status: TooLarge, http: resp.Status, reason: "longer than 5 MB"})
	case brokenOff(resp):
		return false, c.fail(ctx, ch, 0, "the answer breaks off")
	case resp.Status/100 == 2:
		return false, c.index(ctx, ch, resp)
	case resp.Status == http.StatusUnauthorized:
		return false, c.end(ctx, ch, ending{status: Skipped, http: resp.Status, reason: "behind a login", gone: true})
	case resp.Status == http.StatusForbidden:
		c.w.Log.Warn("page_forbidden", "provider", c.policy.ProviderID, "url", ch.at.String())
		return false, c.end(ctx, ch, ending{status: Failed, http: resp.Status, reason: "403: never asked again", gone: true, forbid: true})
	case (resp.Status == http.StatusNotFound || resp.Status == http.StatusGone) && ch.now.contentHash != "":
		return false, c.end(ctx, ch, ending{status: Deleted, http: resp.Status, reason: status, gone: true})
	}
	return false, c.fail(ctx, ch, resp.Status, status)
}

func isRedirect(r *web.Response) bool {
	return r.Status/100 == 3 && r.Status != http.StatusNotModified && r.Header.Get("Location") != ""
}

// count counts a try by its answer, nil for a failure below HTTP. Redirects count
// once, at their end.
func (c *crawl) count(resp *web.Response) {
	s := &c.part.stats
	if resp == nil {
		s.Requests++
		return
	}
	s.Answered++
	s.Elapsed += resp.Elapsed.Microseconds()
	if isRedirect(resp) {
		return
	}
	s.Requests++
	switch {
	case resp.Status/100 == 2 || resp.Status == http.StatusNotModified:
		s.Succeeded++
	case resp.Status >= 400:
		s.Errors++
	}
}

// later keeps that a page is asked for once more after a wait.
func (c *crawl) later(ctx context.Context, ch *chain, a polite.Attempt, wait time.Duration) error {
	status, reason := a.Status(), strconv.Itoa(a.Status())
	switch {
	case a.Failure != nil:
		reason = a.Failure.Error()
	case brokenOff(a.Response):
		status, reason = 0, "the answer breaks off"
	}
	to := Retry
	if status == http.StatusTooManyRequests {
		to = RateLimited
	}
	if err := c.move(ch, to); err != nil {
		return err
	}
	c.w.Log.Warn("page_retry", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", ledger.Redact(reason), "wait_s", wait.Seconds(), "retries", ch.page.retries)
	if wait <= maxRetryAfter { // else the try is for a later run to make
		ch.page.retries++
	}
	if _, err := c.db.ExecContext(ctx, `UPDATE pages SET status = $1, retries = $2, http_status = $3 WHERE provider = $4 AND key = $5`,
		to, ch.page.retries, status, c.policy.ProviderID, ch.page.key); err != nil {
		return fmt.Errorf("keeping the retry of %s: %w", ch.page.address, err)
	}
	c.part.stats.Retries++
	return nil
}

// fail ends a page that could not be had, and keeps it for a person where
// another day may help.
func (c *crawl) fail(ctx context.Context, ch *chain, status int, reason string) error {
	c.w.Log.Warn("page_failed", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", ledger.Redact(reason))
	again := status == 0 || status == http.StatusTooManyRequests || status >= 500
	if again {
		if err := c.w.DeadLetter(ctx, c.letter(ch.page, "page_failed", reason)); err != nil {
			return err
		}
	}
	return c.end(ctx, ch, ending{status: Failed, http: status, reason: ledger.Redact(reason), letter: again})
}

func (c *crawl) letter(p *page, kind, reason string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: c.runID, Stage: "visit", Kind: kind, Retryable: true, Error: reason,
		Input: ledger.Input{URL: p.address, Source: c.policy.ProviderID}}
}

// follow takes the chain to where a redirect leads, if that may be visited.
// forGood says that the page will not come back to where it was.
func (c *crawl) follow(ctx context.Context, ch *chain, location string, forGood bool) (again bool, err error) {
	if err := c.move(ch, Redirecting); err != nil {
		return false, err
	}
	s := &c.part.stats
	if ch.hops++; ch.hops > maxRedirects {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Failed, reason: fmt.Sprintf("more than %d redirects", maxRedirects)})
	}
	to, why := c.link(ch.at, location, false)
	u, perr := url.Parse(to.address)
	if why == "" && perr != nil {
		why = perr.Error()
	}
	if why == "" && to.key != ch.page.key && c.forbidden[to.key] {
		why = "it answered 403 before"
	}
	if why != "" {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Skipped, reason: fmt.Sprintf("redirects to %.500s: %s", location, why)})
	}
	r, err := c.robots(ctx, u)
	if c.costsPage(u, err) {
		s.Requests++
		return false, c.fail(ctx, ch, 0, fmt.Sprintf("redirects to %s: %s", to.address, err))
	}
	if err != nil {
		return false, err
	}
	if no := r.Check(u); no != nil {
		s.Requests++
		return false, c.end(ctx, ch, ending{status: Blocked, reason: fmt.Sprintf("redirects to %s: %s", to.address, no)})
	}
	if to.key != ch.now.key {
		target, taken, err := c.target(ctx, to, ch.page.depth)
		if err != nil {
			return false, err
		}
		if taken {
			s.Requests++
			return false, c.end(ctx, ch, ending{status: Skipped, reason: "redirects to " + to.key + ", which this session has asked for", gone: forGood})
		}
		ch.now.moved = forGood
		if ch.now != ch.page {
			ch.passed = append(ch.passed, ch.now)
		}
		ch.now = target
	}
	ch.at = u
	return true, c.move(ch, Fetching)
}

// target claims the page that a redirect leads to, without counting it, and
// says whether this session has asked for it already.
func (c *crawl) target(ctx context.Context, to link, depth int) (p *page, taken bool, err error) {
	err = c.db.Tx(ctx, func(tx *sql.Tx) error {
		now := db.Micros(c.clock.Now())
		if err := c.queue(ctx, tx, []link{to}, depth); err != nil {
			return err
		}
		var err error
		p, err = scanPage(tx.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM pages WHERE provider = $1 AND key = $2`, c.policy.ProviderID, to.key))
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
		_, err = tx.ExecContext(ctx, `UPDATE pages SET status = $1, counted = 1, requested_at = $2 WHERE provider = $3 AND key = $4`, Fetching, now, c.policy.ProviderID, to.key)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("taking %s: %w", to.address, err)
	}
	return p, taken, nil
}

// leave writes how the provider's part stands.
func (c *crawl) leave(ctx context.Context, tx *sql.Tx, state State, reason string) error {
	var finished int64
	if state == Done {
		finished = db.Micros(c.clock.Now())
	}
	_, err := tx.ExecContext(ctx, `UPDATE runs SET state = $1, reason = $2, finished_at = $3 WHERE session = $4 AND provider = $5`,
		state, reason, finished, c.part.session, c.policy.ProviderID)
	if err != nil {
		return fmt.Errorf("ending the crawl of %s: %w", c.policy.ProviderID, err)
	}
	return nil
}
