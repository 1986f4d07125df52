package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

const (
	pageTimeout  = 30 * time.Second
	maxPage      = 10 << 20
	maxRobots    = 500 << 10 // RFC 9309 section 2.5 requires as much
	maxRedirects = 5
	acceptHTML   = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"

	// maxInFlight is how long requests in flight last after a stop, so that the
	// process ends within two seconds.
	maxInFlight = 1500 * time.Millisecond
)

// visit is one site's crawl.
type visit struct {
	cfg     Config
	w       *lane.Worker
	log     *slog.Logger
	clock   func() time.Time
	reader  *reader
	journal *rows
	state   *SharedState
	control *siteControl // state.Control, once the crawl runs
	rules   *robots.File

	known    streak
	lastPage highest
	partial  atomic.Bool // a list page was read that does not name all; see journal.markPartial
	layout   *layout

	stopped  context.Context // done once nothing new may begin
	parallel bool            // the host has no pause between requests: its pages are fetched in parallel

	mu          sync.Mutex
	pausedUntil time.Time // Retry-After: nothing is sent before
	noList      error     // why the first list page could not be read
}

// errUnreachable is a site whose robots.txt fails: RFC 9309 section 2.3.1.4
// disallows everything then.
var errUnreachable = errors.New("its robots.txt cannot be reached, so nothing may be fetched")

func newVisit(cfg Config, w *lane.Worker, d *db.DB, s Site, stats *Stats) (*visit, error) {
	r, err := s.compile()
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", s.Name, err)
	}
	v := &visit{cfg: cfg, w: w, log: w.Log.With("site", s.Name), clock: time.Now, reader: r, journal: &rows{db: d, site: s.Name},
		state: &SharedState{Control: w, Stats: stats}, layout: &layout{}, known: streak{first: r.firstPage(), want: cfg.StopAfterKnown}}
	if r.last == nil {
		v.lastPage.raise(r.firstPage() + r.pages() - 1)
	}
	return v, nil
}

// run crawls the site: from its first page, or from where a stopped run ended.
func (v *visit) run(ctx context.Context) error {
	ctx, release, ok, err := v.lease(ctx)
	if err != nil || !ok {
		return err
	}
	defer release()
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	v.stopped = stopped
	all := v.state.Control
	v.control = newSiteControl(all)
	v.state.Control = v.control
	go func() {
		select {
		case <-all.Stopping():
			v.control.stop(nil)
		case <-ctx.Done():
		}
	}()
	go func() {
		select {
		case <-v.control.Stopping():
			stop()
			defer time.AfterFunc(maxInFlight, cut).Stop()
			<-ctx.Done()
		case <-ctx.Done():
		}
	}()
	if err := v.readRobots(ctx); err != nil {
		if errors.Is(err, errStopped) {
			return nil
		}
		return err
	}
	resumed, pending, err := v.journal.begin(ctx, v.seeds(), v.clock(), v.cfg.Restart)
	if err != nil {
		return err
	}
	if v.cfg.StopAfterKnown > 0 {
		if err := v.journal.markPartial(ctx); err != nil {
			return err
		}
	}
	v.state.Stats.productURLsFound.Add(pending)
	v.log.Info("crawl_start", "resumed", resumed, "products_taken_over", pending)
	e := newEngine(v.plan(), v.cfg.QueueLength, v.state, v.journal)
	e.deadLetter, e.now = v.deadLetter, v.clock
	e.backoff = func(tries int) time.Duration { // called once before each further try
		v.w.Web.Retried()
		return v.backoff(tries)
	}
	complete, err := e.run(ctx)
	if err != nil {
		return err
	}
	if complete {
		err = v.close(ctx)
	}
	v.log.Info("crawl_end", "complete", complete, "counts", v.state.Stats.Snapshot().counts())
	return errors.Join(err, v.control.cause())
}

// close ends a crawl that read its list to the end. One without products is an error.
func (v *visit) close(ctx context.Context) error {
	c, err := v.journal.close(ctx, v.clock())
	if err != nil {
		return err
	}
	stats, site := v.state.Stats, v.reader.site.Name
	stats.productsGone.Add(c.gone)
	if c.shrunk {
		v.log.Warn("list_shrunk", "reason", "the list no longer names most of the products; none was called gone")
		stats.warned(ListShrunk+site, 1)
	}
	for _, field := range v.layout.never() {
		v.log.Warn("field_never_matched", "field", field)
		stats.warned(NeverMatched+site+"."+field, 1)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.noList != nil:
		return &failure{kind: "no_list", err: fmt.Errorf("its first list page cannot be read: %w", v.noList)}
	case c.listed == 0:
		return &failure{kind: "no_products", err: errors.New("no list page that could be read leads to a product: see the dead letters of its list pages")}
	}
	return nil
}

// lease makes sure that no other run is at this site, and waits for one that is.
func (v *visit) lease(ctx context.Context) (_ context.Context, release func(), ok bool, err error) {
	ttl := cmp.Or(v.cfg.LeaseTTL, DefaultLeaseTTL)
	within, release, err := v.w.Lease(ctx, lease.InDB(v.journal.db), ttl, false, nil, Job+"/"+v.reader.site.Name)
	return within, release, within != nil, err
}

// wait sleeps, and is false when the run stops meanwhile.
func (v *visit) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-v.state.Control.Stopping():
	case <-ctx.Done():
	}
	return false
}

// readRobots fetches the site's robots.txt and obeys its rules and pauses.
func (v *visit) readRobots(ctx context.Context) error {
	base := v.reader.base
	final := ""
	at := (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/robots.txt"}).String()
	for try := 1; ; try++ {
		resp, err := v.get(ctx, web.Request{URL: at, Accept: "text/plain, */*", Timeout: pageTimeout, MaxBytes: maxRobots, MaxRedirects: maxRedirects})
		switch {
		case errors.Is(err, errStopped):
			return err
		case err == nil && resp.Status < 300:
			v.rules, final = robots.Parse(resp.Body), resp.FinalURL
		case err == nil && resp.Status >= 300 && resp.Status < 500 && resp.Status != 429:
			v.rules = robots.Parse(nil) // RFC 9309 section 2.3.1.3
		case err == nil && resp.RetryAfter > v.longestPause():
			return tooLong(resp)
		case try < maxTries:
			if !v.wait(ctx, v.backoff(try)) {
				return errStopped
			}
			v.w.Web.Retried()
			continue
		case err != nil:
			return &failure{kind: "robots_unreachable", err: fmt.Errorf("%w: %w", errUnreachable, err)}
		default:
			return &failure{kind: "robots_unreachable", err: fmt.Errorf("%w: %s answers %d", errUnreachable, at, resp.Status)}
		}
		break
	}
	delay, ok := v.rules.CrawlDelay(v.cfg.Lane.Web.UserAgent)
	if most := v.longestPause(); delay > most {
		return &failure{kind: "crawl_delay", final: true, err: fmt.Errorf("it asks for %v between two requests, more than --max-crawl-delay (%v)", delay, most)}
	}
	if ok {
		v.w.Web.SetCrawlDelay(delay, at, final)
	}
	v.parallel = v.cfg.Lane.Web.HostDelay <= 0 && delay <= 0
	return nil
}

// fetch gives the text of a page.
func (v *visit) fetch(ctx context.Context, at string) (string, error) {
	if line, rule, ok := v.rules.Rule(v.cfg.Lane.Web.UserAgent, at); !ok {
		return "", &failure{kind: "robots_disallowed", final: true, err: fmt.Errorf("robots.txt, line %d, disallows it: %s", line, rule)}
	}
	resp, err := v.get(ctx, web.Request{URL: at, Accept: acceptHTML, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: maxRedirects, Beside: v.parallel, Allow: v.allow})
	var below *web.Error
	switch {
	case errors.As(err, &below):
		return "", &failure{kind: string(below.Kind), final: below.Kind == web.KindBlocked || below.Kind == web.KindRedirect, err: below}
	case err != nil:
		return "", err
	}
	switch s := resp.Status; {
	case s >= 200 && s < 300:
	case s == 408 || s == 429 || s >= 500:
		if resp.RetryAfter > v.longestPause() {
			v.control.stop(tooLong(resp))
			return "", errStopped
		}
		if d, ok := web.ParseRetryAfter(resp.Header.Get("Retry-After"), v.clock()); ok {
			v.pause(d)
		}
		return "", &failure{kind: fmt.Sprintf("http_%d", s), err: fmt.Errorf("the site answers with status %d", s)}
	default:
		return "", &failure{kind: fmt.Sprintf("http_%d", s), final: true, err: fmt.Errorf("the site answers with status %d", s)}
	}
	if resp.Truncated {
		return "", &failure{kind: "too_large", err: fmt.Errorf("the page is cut off, or over %d MiB", maxPage>>20)}
	}
	text, _, err := charset.Decode(resp.Body, resp.Header.Get("Content-Type"))
	if err != nil {
		return "", &failure{kind: "bad_charset", final: true, err: err}
	}
	return text, nil
}

// longestPause is the longest Crawl-delay or Retry-After that is waited for.
func (v *visit) longestPause() time.Duration {
	return cmp.Or(v.cfg.Lane.Web.MaxCrawlDelay, web.DefaultMaxCrawlDelay)
}

// tooLong is the end of this run's crawl of a site.
func tooLong(resp *web.Response) error {
	return &failure{kind: "retry_after", err: fmt.Errorf("it answers %d and asks for a pause of %v; the next run resumes there", resp.Status, resp.RetryAfter)}
}

// allow keeps redirects at the site and to what its robots.txt allows.
func (v *visit) allow(u *url.URL) error {
	if !sameHost(u, v.reader.base) {
		return fmt.Errorf("it redirects to another host, %s", u.Host)
	}
	if line, rule, ok := v.rules.Rule(v.cfg.Lane.Web.UserAgent, u.String()); !ok {
		return fmt.Errorf("it redirects to where robots.txt, line %d, disallows: %s", line, rule)
	}
	return nil
}

// pause sends no request to the host for so long.
func (v *visit) pause(d time.Duration) {
	until := v.clock().Add(min(d, v.longestPause()))
	v.mu.Lock()
	defer v.mu.Unlock()
	if until.After(v.pausedUntil) {
		v.pausedUntil = until
	}
}

// get sends a request, unless the run is paused or stopped: then it waits, or
// returns errStopped. A request waits for its turn at the host, in the client; a
// pause or a stop keeps it from being sent there too.
func (v *visit) get(ctx context.Context, r web.Request) (*web.Response, error) {
	for {
		if !v.state.Control.Proceed(ctx) {
			return nil, errStopped
		}
		v.mu.Lock()
		off := v.pausedUntil.Sub(v.clock())
		v.mu.Unlock()
		if off > 0 {
			if !v.wait(ctx, off) {
				return nil, errStopped
			}
			continue
		}
		resp, err, stopped := v.send(ctx, r)
		if err != nil && (ctx.Err() != nil || stopped) {
			return nil, errStopped
		}
		return resp, err
	}
}

// send gives stopped where the stop came before the request was sent.
func (v *visit) send(ctx context.Context, r web.Request) (_ *web.Response, err error, stopped bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	sent := false
	unhook := context.AfterFunc(v.stopped, func() {
		mu.Lock()
		defer mu.Unlock()
		if !sent {
			cancel(errStopped)
		}
	})
	defer unhook()
	r.Ready = func() { // its turn has come; called again for each hop of a redirect
		if !v.state.Control.Proceed(ctx) {
			cancel(errStopped)
			return
		}
		mu.Lock()
		sent = true
		mu.Unlock()
	}
	resp, err := v.w.Web.Get(ctx, r)
	return resp, err, errors.Is(context.Cause(ctx), errStopped)
}

// backoff is how long a task waits for its next try.
func (v *visit) backoff(tries int) time.Duration {
	d := cmp.Or(v.cfg.Lane.Web.RetryBackoff, web.DefaultRetryBackoff) << min(tries-1, 10)
	return d*3/4 + rand.N(d/2+1) // ± 25 %
}

// deadLetterOf is the dead letter of a task: what is needed to do it again, never the page's text.
func (v *visit) deadLetterOf(e entry) ledger.DeadLetter {
	d := ledger.DeadLetter{Job: Job, RunID: v.cfg.Lane.RunID, Input: ledger.Input{Source: v.reader.site.Name, URL: e.URL}}
	if e.Kind == KindFetchListPage {
		d.Input.Index = &e.Page
	}
	return d
}

// deadLetter keeps a task that failed for good, for a person.
func (v *visit) deadLetter(ctx context.Context, e entry, stage string, f *failure) error {
	d := v.deadLetterOf(e)
	d.Stage, d.Kind, d.Retryable, d.Error = stage, f.kind, !f.final, f.Error()
	if e.Kind == KindFetchListPage {
		if err := v.listUnread(ctx, e, f); err != nil {
			return err
		}
	}
	v.log.Warn("task_failed", "stage", stage, "kind", f.kind, "url", e.URL, "tries", e.Tries, "error", ledger.Redact(f.Error()))
	return v.w.DeadLetter(ctx, d)
}

// listUnread notes that a list page could not be read.
func (v *visit) listUnread(ctx context.Context, e entry, f *failure) error {
	if e.Page == v.reader.firstPage() {
		v.mu.Lock()
		v.noList = fmt.Errorf("%s: %w", e.URL, f)
		v.mu.Unlock()
	}
	if v.inOrder() { // it cannot lead to the next one
		if err := v.journal.add(ctx, v.reader.numberedPages(e.Page+1, min(e.Page+1, v.lastPage.get()))); err != nil {
			return err
		}
	}
	return v.journal.markPartial(ctx)
}

// resolve removes the dead letter of a task that succeeded.
func (v *visit) resolve(ctx context.Context, e entry) {
	if err := v.w.Forgive(ctx, v.deadLetterOf(e)); err != nil && ctx.Err() == nil {
		v.log.Warn("dead_letter_stays", "url", e.URL, "error", ledger.Redact(err.Error()))
	}
}
