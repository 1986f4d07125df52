package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/github"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/site"
)

// Headers of a request for a page.
const (
	accept         = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"
	acceptLanguage = "en-US,en;q=0.9,ko;q=0.8"
)

const maxRedirects = 3

// Why a provider's crawl stops although there are more pages.
const (
	reasonMaxPages   = "max_pages"
	reasonSessionMax = "session_max_pages"
)

var (
	errMaxPages   = errors.New("the provider's max_pages is reached")
	errSessionMax = errors.New("the session's max pages are reached")
)

// crawl is the visit of one provider.
type crawl struct {
	cfg    Config
	w      *lane.Worker
	db     *db.DB
	clock  polite.Clock
	policy policy.Policy
	runID  string
	part   part
	client *polite.Client
	github *polite.Client // for GitHub's API

	scope     canonical.Scope
	host      string
	own       map[string]bool   // origins and sites of the seeds; a crawl needs them
	readBy    string            // identifies what turns a page into content
	seen      map[string]bool   // keys of this session
	forbidden map[string]bool   // keys of blocked_urls
	copies    map[string]string // reasons of the pages of this session that are copies of others, by the keys of these pages
	notices   map[string]bool   // texts that came in place of many pages of this session
	replaced  []replacing       // pages with another text than before, in the order in which they came
	marked    time.Time         // the time up to which Stats.Active is counted
	timeout   time.Duration     // of a page
	moved     func(key string, from, to Status)
	tally     func(ledger.Tally) // is called after each page with its counts
	renderer  *browser.Browser   // for a policy with spa_rendering
	judge     *site.Judge
	held      []func(context.Context) error // conclusions about single pages that wait until the site is known to be open

	offers     offered
	twinMisses int // one after another
}

// page is a row of the table pages, as the crawl uses it.
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
	gone               bool // it had content, and was found to be gone
	moved              bool // its redirect is permanent
}

func newCrawl(cfg Config, w *lane.Worker, d *db.DB, p policy.Policy, in part) *crawl {
	v := &crawl{cfg: cfg, w: w, db: d, clock: w.Pacer.Clock, policy: p, runID: cfg.Lane.RunID, part: in, tally: w.Count,
		scope: p.Scope(), host: p.Host(), own: map[string]bool{}, readBy: readBy(p), seen: map[string]bool{}, forbidden: map[string]bool{}, copies: map[string]string{}, notices: map[string]bool{}, marked: w.Pacer.Clock.Now(), timeout: pageTimeout}
	v.client, v.github = v.newClient(), v.newGitHub()
	for _, raw := range p.SeedURLs {
		if u, err := canonical.Address(nil, raw, p.KeepQueryParams); err == nil {
			v.own[origin(u)], v.own[web.Site(u)] = true, true
		}
	}
	return v
}

// reachSeeds requests a seed whose host cannot be reached from the other name of its site: without www.,
// or with it where a domain stands alone. Keys and scope take them for one host. The robots.txt of that
// name is requested first, as anywhere. Errors come again when the seeds are requested.
func (c *crawl) reachSeeds(ctx context.Context) {
	c.policy.SeedURLs = slices.Clone(c.policy.SeedURLs)
	for i, raw := range c.policy.SeedURLs {
		u, err := canonical.Address(nil, raw, c.policy.KeepQueryParams)
		if err != nil {
			continue
		}
		other := *u
		if other.Host = web.Site(u); origin(&other) == origin(u) {
			if alone, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err != nil || alone != u.Host {
				continue
			}
			other.Host = "www." + u.Host
		}
		if _, err := c.robots(ctx, u); !errors.Is(err, errUnreachable) {
			continue
		}
		if _, err := c.robots(ctx, &other); err == nil {
			c.w.Log.Warn("seed_refused", "provider", c.policy.ProviderID, "url", raw,
				"reason", "its host cannot be reached; "+other.String()+" is requested in its place")
			c.policy.SeedURLs[i] = other.String()
			delete(c.own, origin(u))
			c.own[origin(&other)] = true
		}
	}
}

// failsPageOnly reports whether an error of a request for u fails only this page: u
// is not on one of the provider's own origins (a redirect led there), so the other
// pages can still be fetched. A pause applies to the whole site.
func (c *crawl) failsPageOnly(u *url.URL, err error) bool {
	var abandoned *polite.AbandonedError
	return !c.own[origin(u)] && errors.Is(err, errUnreachable) || !c.own[web.Site(u)] && errors.As(err, &abandoned)
}

// checkSeeds returns errUnreachable if no seed could be fetched: then nothing is
// known about the provider's pages.
func (c *crawl) checkSeeds(ctx context.Context) error {
	var seeds, lost int
	err := c.db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = $1 AND (http_status = 0 OR http_status = 429 OR http_status >= 500 OR reason LIKE $4) THEN 1 ELSE 0 END), 0)
		FROM docs_pages WHERE provider = $2 AND session = $3 AND depth = 0`, Failed, c.policy.ProviderID, c.part.session, noticeBegins+"%").Scan(&seeds, &lost)
	switch {
	case err != nil:
		return fmt.Errorf("counting the seeds of %s that answered: %w", c.policy.ProviderID, err)
	case seeds > 0 && seeds == lost:
		return fmt.Errorf("%w: none of its %d seeds could be fetched", errUnreachable, seeds)
	}
	return nil
}

// run requests the provider's pages until none is left, a limit is reached, the run
// is stopped, or the host asks for a long pause. It returns the new state of the
// provider's part, and the reason.
func (c *crawl) run(ctx context.Context) (State, string, error) {
	defer c.client.Close()
	defer c.github.Close()
	err := c.load(ctx)
	if err == nil {
		err = c.loadOffers(ctx)
	}
	if err == nil && c.policy.SPARendering {
		if c.renderer, err = c.newRenderer(ctx); err == nil {
			defer c.renderer.Close()
		}
	}
	if err == nil && !c.offers.filesOnly {
		c.reachSeeds(ctx)
	}
	if err == nil && c.part.fresh {
		err = c.seed(ctx)
	}
	if err == nil {
		err = c.beginJudging(ctx)
	}
	for err == nil && !c.refused() {
		var p *page
		if p, err = c.next(ctx); err == nil && (p == nil || p.depth > 0) && !c.offers.placesTried {
			if err = c.tryPlaces(ctx); err == nil {
				continue
			}
		}
		if err == nil && p == nil {
			var again bool
			if again, err = c.settleCopies(ctx); again {
				continue
			}
		}
		if err == nil && p == nil {
			p, err = c.recheck(ctx)
		}
		if err != nil || p == nil {
			break
		}
		if err = c.visit(ctx, p); err == nil && c.judge.Tired() {
			err = c.askSeed(ctx, c.policy.SeedURLs[0])
		}
	}
	if (err == nil || errors.Is(err, errMaxPages)) && !c.refused() {
		err = cmp.Or(c.endReplacing("", func(p replacing) error { return p.end() }), err)
	}
	verdict, err := c.conclude(ctx, err)
	if err == nil && (verdict.State == site.Open || verdict.State == site.Down) {
		err = c.checkSeeds(ctx)
	}
	state, reason := Done, ""
	var abandoned *polite.AbandonedError
	switch {
	case err == nil && verdict.State == site.Down:
		state, reason = Unreachable, verdict.String()
	case err == nil && verdict.State != site.Open:
		state, reason = State(verdict.State), verdict.String()
	case err == nil:
	case errors.Is(err, errMaxPages):
		reason = reasonMaxPages
		c.w.Log.Warn("max_pages_reached", "provider", c.policy.ProviderID, "max_pages", c.policy.MaxPages)
	case errors.Is(err, errSessionMax):
		state, reason = OutOfBudget, reasonSessionMax
		c.w.Log.Warn("session_max_pages_reached", "provider", c.policy.ProviderID, "session_max_pages", c.sessionMax())
	case errors.Is(err, errUnreachable):
		state, reason = Unreachable, content.Clean(ledger.Redact(err.Error()))
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
	// A transaction that failed may still have been committed. Then the counts in the
	// database are right, and those in memory are not.
	write := c.advance
	if err != nil {
		write = c.db.Tx
	}
	within := context.WithoutCancel(ctx)
	return state, reason, errors.Join(err, write(within, func(tx *sql.Tx) error { return c.leave(within, tx, state, reason) }))
}

func (c *crawl) sessionMax() int { return cmp.Or(c.cfg.SessionMaxPages, SessionMaxPages) }

// chain is the work on one page, with the redirects on the way.
type chain struct {
	page   *page // what was queued
	now    *page // where its redirects lead, maybe a page with another key
	at     *url.URL
	hops   int
	passed []*page // pages that redirected to the next one
	status Status
	way    way
	answer answer.Verdict // the last one
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

// visit processes one page of the queue until it has a final status.
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
	ctx, endUnit, err := c.w.Unit(ctx, c.deadLetter(p, "", "").Input)
	if err != nil {
		return c.lost(ctx, ch, 0, c.deadLetter(p, ledger.Died, err.Error()))
	}
	defer endUnit()
	if c.offers.files[p.key] == nil { // otherwise the site is asked for nothing
		r, err := c.robots(ctx, u)
		if c.failsPageOnly(u, err) {
			return c.fail(ctx, ch, 0, err.Error())
		}
		if err != nil {
			return err
		}
		if no := r.Check(u); no != nil {
			return c.end(ctx, ch, ending{status: Blocked, reason: no.Error()})
		}
	}
	if ch.way, err = c.wayTo(ctx, p); err != nil {
		return err
	}
	if err := c.claim(ctx, p); err != nil {
		return err
	}
	if err := c.move(ch, Fetching); err != nil {
		return err
	}
	if done, err := c.given(ctx, ch); done {
		return err
	}
	for {
		again, err := c.try(ctx, ch)
		if err != nil || !again {
			return err
		}
	}
}

// claim counts a page against the limits when it is requested for the first time.
func (c *crawl) claim(ctx context.Context, p *page) error {
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		now := db.Micros(c.clock.Now())
		if !p.counted {
			if n, err := changed(tx.ExecContext(ctx, `UPDATE docs_runs SET requested = requested + 1, active_at = $1 WHERE session = $2 AND provider = $3 AND requested < $4`,
				now, c.part.session, c.policy.ProviderID, c.policy.MaxPages)); err != nil || n == 0 {
				return cmp.Or(err, errMaxPages)
			}
			if n, err := changed(tx.ExecContext(ctx, `UPDATE docs_sessions SET requested = requested + 1, active_at = $1 WHERE id = $2 AND requested < $3`,
				now, c.part.session, c.sessionMax())); err != nil || n == 0 {
				return cmp.Or(err, errSessionMax)
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, counted = TRUE, requested_at = $2 WHERE provider = $3 AND key = $4`, Fetching, now, c.policy.ProviderID, p.key)
		return err
	})
	if err != nil {
		return fmt.Errorf("claiming %s: %w", p.address, err)
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

// header returns the headers of a request for a page. The request is conditional only
// if the stored content was made with the same policy and version of the program.
func (c *crawl) header(p *page, w way) http.Header {
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if c.part.stats.Again || w.whole || p.contentHash == "" || p.readBy != c.readBy+w.id() || c.policy.SPARendering { // the shell of a rendered page does not change with its content
		return h
	}
	if p.etag != "" {
		h.Set("If-None-Match", p.etag)
	}
	h.Set("If-Modified-Since", cmp.Or(p.lastModified, db.Time(p.fetchedAt).Format(http.TimeFormat)))
	return h
}

// try requests a page until there is a final answer, and processes it. again means
// that the answer was a redirect, and its target must be requested.
func (c *crawl) try(ctx context.Context, ch *chain) (again bool, err error) {
	var last polite.Attempt // the last one that a retry follows
	waits := false
	at := ch.at
	if ch.way.twin != nil {
		at = ch.way.twin
	}
	client, req := c.client, polite.Request{URL: at.String(), Accept: ch.way.accept, Header: c.header(ch.now, ch.way),
		Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: -1, Probe: ch.way.twin != nil}
	if ch.way.file != nil {
		client, req = c.github, c.gitHubRequest(c.repository().Blob(ch.way.file.SHA), github.Raw, "")
	}
	req.Retries = ch.page.retries
	req.OnRetry = func(ctx context.Context, a polite.Attempt, wait time.Duration) error {
		if waits {
			if err := c.move(ch, Fetching); err != nil {
				return err
			}
		}
		last, waits = a, true
		c.count(a.Response)
		c.part.stats.asked(string(ch.way.source))
		return c.later(ctx, ch, a, wait)
	}
	resp, err := client.Get(ctx, req)
	err = unreachable(err)
	var abandoned *polite.AbandonedError
	var failure *web.Error
	errors.As(err, &abandoned)
	errors.As(err, &failure)
	final := failure != nil || resp != nil && resp != last.Response
	if err != nil && !final {
		if c.failsPageOnly(ch.at, err) {
			return false, c.fail(ctx, ch, last.Status(), err.Error())
		}
		return false, err
	}
	if waits {
		if err := c.move(ch, Fetching); err != nil {
			return false, err
		}
	}
	// It is no failure that a twin is not there, or that a page still is gone to which a list or a link leads.
	if ch.way.twin == nil && !ch.now.gone || !missing(resp) {
		c.count(resp)
	}
	if resp != nil {
		c.answered(ch, resp)
	}
	if ch.way.file == nil && ch.way.twin == nil {
		c.judgeAnswer(ch, resp, failure)
	}
	c.part.stats.asked(string(ch.way.source))
	if resp != nil && ch.way.file != nil {
		if err := c.receiveFile(ctx, ch, resp); err != nil || abandoned == nil {
			return false, err
		}
		return false, abandoned
	}
	if resp != nil && abandoned == nil {
		if fails, err := c.twinFails(ctx, ch, resp); fails || err != nil {
			return fails, err
		}
		if again, done, err := c.wholeAgain(ctx, ch, resp); done {
			return again, err
		}
	}
	switch {
	case failure != nil:
		return false, c.fail(ctx, ch, 0, failure.Error())
	case abandoned != nil: // the page fails, and the pause applies to its site
		if err := c.fail(ctx, ch, resp.Status, strconv.Itoa(resp.Status)); err != nil || c.failsPageOnly(ch.at, abandoned) {
			return false, err
		}
		return false, abandoned
	case isRedirect(resp):
		return c.follow(ctx, ch, resp.Header.Get("Location"), resp.Status == http.StatusMovedPermanently || resp.Status == http.StatusPermanentRedirect)
	}
	return false, c.receive(ctx, ch, resp)
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
		return c.end(ctx, ch, ending{status: NotModified, http: resp.Status, links: links})
	case resp.Status/100 == 2 && resp.Truncated && len(resp.Body) >= maxPage:
		c.w.Log.Warn("page_too_large", "provider", c.policy.ProviderID, "url", ch.at.String(), "limit", maxPage)
		return c.end(ctx, ch, ending{status: TooLarge, http: resp.Status, reason: "longer than 5 MB"})
	case brokenOff(resp):
		return c.fail(ctx, ch, 0, "the answer ends early")
	case resp.Status/100 == 2:
		return c.index(ctx, ch, resp)
	case resp.Status == http.StatusUnauthorized:
		c.hold(ch, ending{status: Skipped, http: resp.Status, reason: "behind a login", gone: true})
		return nil
	case resp.Status == http.StatusForbidden:
		c.w.Log.Warn("page_forbidden", "provider", c.policy.ProviderID, "url", ch.at.String())
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

// count counts a try by its answer, nil for a failure below HTTP. A chain of redirects
// counts once, at its end.
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
	c.w.Log.Warn("page_retry", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", ledger.Redact(reason), "wait_s", wait.Seconds(), "retries", ch.page.retries)
	if wait <= maxRetryAfter { // otherwise a later run makes this try
		ch.page.retries++
	}
	if _, err := c.db.ExecContext(ctx, `UPDATE docs_pages SET status = $1, retries = $2, http_status = $3 WHERE provider = $4 AND key = $5`,
		to, ch.page.retries, status, c.policy.ProviderID, ch.page.key); err != nil {
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
	reason := letter.Error
	c.w.Log.Warn("page_failed", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", ledger.Redact(reason))
	again := status == 0 || status/100 == 2 || status == http.StatusTooManyRequests || status >= 500
	if again {
		if err := c.w.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	return c.end(ctx, ch, ending{status: Failed, http: status, reason: ledger.Redact(reason), deadLetter: again})
}

func (c *crawl) deadLetter(p *page, kind, reason string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: c.runID, Stage: "visit", Kind: kind, Retryable: true, Error: reason,
		Input: ledger.Input{URL: p.address, Source: c.policy.ProviderID}}
}

// leave writes the state of the provider's part.
func (c *crawl) leave(ctx context.Context, tx *sql.Tx, state State, reason string) error {
	var finished int64
	if state == Done {
		finished = db.Micros(c.clock.Now())
	}
	_, err := tx.ExecContext(ctx, `UPDATE docs_runs SET state = $1, reason = $2, finished_at = $3 WHERE session = $4 AND provider = $5`,
		state, reason, finished, c.part.session, c.policy.ProviderID)
	if err != nil {
		return fmt.Errorf("ending the crawl of %s: %w", c.policy.ProviderID, err)
	}
	return nil
}
