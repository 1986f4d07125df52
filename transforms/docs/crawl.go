package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/site"
)

// Why a provider's crawl stops although there are more pages.
const (
	reasonMaxPages = "max_pages"
	reasonLimit    = "limit"
)

var (
	errMaxPages = errors.New("the provider's max_pages is reached")
	errLimit    = errors.New("the run's limit of pages is reached")
)

// crawl is the visit of one provider: it takes pages from the frontier, requests them by the way that
// the best source has, and ends them.
type crawl struct {
	*sources
	notices  map[string]bool   // texts that came in place of many pages of this session
	replaced []replacing       // pages with another text than before, in the order in which they came
	copied   map[string]string // reasons of copies whose originals were looked at, by key
	fresh    []string          // keys that the transaction at work queues
	marked   time.Time         // the time up to which Stats.Active is counted
	moved    func(key string, from, to Status)
	tally    func(ledger.Tally) // is called after each page with its counts
	judge    *site.Judge
	// standsFor is the answer for robots.txt. Where it Ends nothing else is requested.
	standsFor site.Answer
	held      []func(context.Context) error // conclusions about single pages that wait until the site is known to be open
}

func newCrawl(cfg Config, w *lane.Worker, d *db.DB, p policy.Policy, in part) *crawl {
	s := newProvider(cfg, w, d, p, in)
	c := &crawl{sources: &sources{provider: s, lists: &lists{provider: s}, repo: newRepository(s), api: newDescriptions(s)},
		notices: map[string]bool{}, copied: map[string]string{}, marked: s.clock.Now(), tally: w.Count}
	c.client.Policy.WaitForBudget, c.repo.api.Policy.WaitForBudget = c.waitForBudget, c.waitForBudget
	return c
}

// run requests the provider's pages until none is left, a limit is reached, the run is stopped, or the host asks for a long pause. It
// returns the new state, and the reason.
func (c *crawl) run(ctx context.Context) (State, string, error) {
	defer c.client.Close()
	defer c.repo.api.Close()
	err := c.open(ctx)
	if c.renderer != nil {
		defer c.renderer.Close()
	}
	for again := true; err == nil && again && !c.refused(); {
		again, err = c.step(ctx)
	}
	if (err == nil || errors.Is(err, errMaxPages)) && !c.refused() {
		err = cmp.Or(c.endReplacing("", func(p replacing) error { return p.end() }), err)
	}
	verdict, err := c.conclude(ctx, err)
	if err == nil && (verdict.State == site.Open || verdict.State == site.Down) {
		err = c.checkSeeds(ctx)
	}
	state, reason := c.state(verdict, err)
	if state != Open || errors.Is(err, polite.ErrStopped) {
		err = nil
	}
	// A transaction that failed may still have been committed. Then the counts in the
	// database are right, and those in memory are not.
	write := c.advance
	if err != nil {
		write = c.db.Do
	}
	within := context.WithoutCancel(ctx)
	return state, reason, errors.Join(err, write(within, "ending the crawl of "+c.id, func(tx *sql.Tx) error {
		var finished int64
		if state == Done {
			finished = db.Micros(c.clock.Now())
		}
		_, err := tx.ExecContext(within, `UPDATE docs_runs SET state = $1, reason = $2, finished_at = $3 WHERE session = $4 AND provider = $5`,
			state, reason, finished, c.part.session, c.id)
		return err
	}))
}

// open reads what earlier runs left, and queues the seeds of a new part.
func (c *crawl) open(ctx context.Context) error {
	for _, load := range []func(context.Context) error{c.load, c.repo.load, c.api.load, c.withdraw} {
		if err := load(ctx); err != nil {
			return err
		}
	}
	if c.policy.SPARendering {
		var err error
		c.renderer, err = browser.Start(ctx, browser.Config{Unsandboxed: c.cfg.UnsandboxedBrowser, UserAgent: c.client.Agent(&url.URL{Host: c.host}),
			MaxPage: maxPage, Log: c.w.Log, Part: c.pagePart})
		if err != nil {
			return err
		}
	}
	if err := c.readRobots(ctx); err != nil {
		return err
	}
	if !c.standsFor.Ends {
		if err := c.lists.load(ctx); err != nil {
			return err
		}
		if c.part.fresh {
			if err := c.seed(ctx); err != nil {
				return err
			}
		}
	}
	return c.beginJudging(ctx)
}

// step visits the next page; again is false if there is none.
func (c *crawl) step(ctx context.Context) (again bool, err error) {
	p, err := c.next(ctx)
	if err == nil && (p == nil || p.depth > 0) && !c.api.tried {
		return true, c.tryPlaces(ctx)
	}
	if err == nil && p == nil {
		if again, err = c.settleCopies(ctx); again {
			return true, err
		}
	}
	if err == nil && p == nil {
		p, err = c.recheck(ctx)
	}
	if err != nil || p == nil {
		return false, err
	}
	if err = c.visit(ctx, p); err == nil && c.judge.Tired() {
		err = c.askSeed(ctx, c.policy.SeedURLs[0])
	}
	return true, err
}

// state returns the state of the part at its end, and the reason.
func (s *provider) state(verdict site.Verdict, err error) (state State, reason string) {
	state = Done
	var abandoned *polite.AbandonedError
	switch {
	case err == nil && verdict.State == site.Down:
		state, reason = Unreachable, verdict.String()
	case err == nil && verdict.State != site.Open:
		state, reason = State(verdict.State), verdict.String()
	case err == nil:
	case errors.Is(err, errMaxPages):
		reason = reasonMaxPages
		s.log.Warn("max_pages_reached", "max_pages", s.policy.MaxPages)
	case errors.Is(err, errLimit):
		state, reason = OutOfBudget, reasonLimit
		s.log.Info("limit_reached", "limit", s.cfg.Lane.Limit)
	case errors.Is(err, errUnreachable):
		state, reason = Unreachable, content.Clean(ledger.Redact(err.Error()))
		s.log.Warn("provider_unreachable", "error", ledger.Redact(err.Error()))
	case errors.As(err, &abandoned):
		state, reason = Held, "the host asks for a pause until "+abandoned.Until.UTC().Format(time.RFC3339)
		if abandoned.Hours != "" {
			reason = abandoned.Error()
		}
		s.log.Warn("provider_held", "until", abandoned.Until.UTC())
	case errors.Is(err, polite.ErrBudget):
		state, reason = OutOfBudget, err.Error()
		s.log.Warn("provider_out_of_budget", "reason", reason)
	case errors.Is(err, polite.ErrStopped):
		state, reason = Open, err.Error()
		s.log.Warn("provider_left_open", "reason", reason)
	default:
		state, reason = Open, ledger.Redact(err.Error())
	}
	return state, reason
}

// waitForBudget waits for the hour's budget. It counts the wait minute by minute, so
// that the count is right even if the process dies meanwhile.
func (c *crawl) waitForBudget(ctx context.Context, host string, until time.Time, wait func(time.Duration) error) error {
	at := until.UTC().Format(time.RFC3339)
	c.log.Warn("hour_budget_used_up", "host", host, "until", at)
	defer c.w.Waits(fmt.Sprintf("%s waits until %s: the docs job's requests of this hour are used up", c.id, at))()
	for {
		if err := c.advance(ctx, "counting the wait of "+c.id, func(*sql.Tx) error { return nil }); err != nil {
			return err
		}
		began := c.clock.Now()
		left := until.Sub(began)
		if left <= 0 {
			return nil
		}
		err := wait(min(left, time.Minute))
		c.part.stats.Waited += c.clock.Now().Sub(began).Microseconds()
		if err != nil {
			return err
		}
	}
}

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
	rights *rights.Rights // of the page that the chain has now; nil: nothing is known of them

	failure string // the kind of its dead letter; "": page_failed
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
		ch.failure = ledger.Died
		return c.fail(ctx, ch, 0, err.Error())
	}
	defer endUnit()
	if c.files[p.key] == nil { // otherwise the site is asked for nothing
		r, err := c.robots(ctx, u)
		if c.failsPageOnly(u, err) {
			return c.fail(ctx, ch, 0, err.Error())
		}
		if err != nil {
			return err
		}
		if no := r.Check(u); no != nil {
			return c.end(ctx, ch, c.refusedBy(ch, u, r, no))
		}
		if e, err := c.sold(p); e != nil || err != nil {
			if err == nil {
				err = c.end(ctx, ch, *e)
			}
			return err
		}
	}
	if ch.way, err = c.wayTo(ctx, p); err != nil {
		return err
	}
	if err := c.claim(ctx, ch); err != nil {
		return err
	}
	switch resp := ch.given(); {
	case resp != nil:
		return c.receive(ctx, ch, resp)
	case ch.way.file != nil && ch.way.file.Size > maxPage:
		return c.end(ctx, ch, ending{status: TooLarge, reason: "longer than 5 MB"})
	}
	for {
		again, err := c.try(ctx, ch)
		if err != nil || !again {
			return err
		}
	}
}

// claim counts a page against the limits when it is requested for the first time.
func (c *crawl) claim(ctx context.Context, ch *chain) error {
	p := ch.page
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		now := db.Micros(c.clock.Now())
		if !p.counted {
			if n, err := db.Changed(tx.ExecContext(ctx, `UPDATE docs_runs SET requested = requested + 1, active_at = $1
				WHERE session = $2 AND provider = $3 AND requested < $4`,
				now, c.part.session, c.id, c.policy.MaxPages)); err != nil || n == 0 {
				return cmp.Or(err, errMaxPages)
			}
			if n, err := db.Changed(tx.ExecContext(ctx, `UPDATE docs_sessions SET requested = requested + 1, active_at = $1
				WHERE id = $2 AND ($3 = 0 OR requested < $3)`,
				now, c.part.session, c.cfg.Lane.Limit)); err != nil || n == 0 {
				return cmp.Or(err, errLimit)
			}
		}
		_, err := tx.ExecContext(ctx, claims, Fetching, now, c.id, p.key)
		return err
	})
	if err != nil {
		return fmt.Errorf("claiming %s: %w", p.address, err)
	}
	p.counted = true
	return c.move(ch, Fetching)
}

const claims = `UPDATE docs_pages SET status = $1, counted = TRUE, requested_at = $2 WHERE provider = $3 AND key = $4`

// tryPlaces queues the descriptions that are where sites usually have them. If the answer is
// one, its page is done with this one request.
func (c *crawl) tryPlaces(ctx context.Context) error {
	links, reason, resp, err := c.api.look(ctx)
	if err != nil || len(links) == 0 {
		return err
	}
	if err := c.advance(ctx, "queueing descriptions of "+c.id, func(tx *sql.Tx) error { return c.queue(ctx, tx, links, 1) }); err != nil {
		return err
	}
	for _, l := range links {
		if err := c.note(ctx, string(policy.OpenAPI), l.address, "found", reason, nil); err != nil {
			return err
		}
	}
	if resp == nil {
		return nil
	}
	at, err := url.Parse(links[0].address)
	if err != nil {
		return fmt.Errorf("reading the address of %s: %w", links[0].key, err)
	}
	p := &page{key: links[0].key, address: links[0].address, depth: 1, status: Queued}
	ch := &chain{page: p, now: p, status: Queued, at: at, way: way{source: policy.OpenAPI, reason: reason, accept: acceptAPI}}
	if err := c.move(ch, RobotsCheck); err != nil {
		return err
	}
	if err := c.claim(ctx, ch); err != nil {
		return err
	}
	c.part.stats.count(resp)
	return c.receive(ctx, ch, resp)
}
