package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/lane"
)

const (
	leastGap       = time.Second     // section 5.2
	robotsErrorGap = 2 * time.Second // section 5.1
)

// Why a provider's crawl ends before its frontier does.
var (
	errStopped     = errors.New("the run was stopped")
	errDayBudget   = errors.New("the day's budget of requests is used up")
	errUnreachable = errors.New("it cannot be reached")
)

// heldError says that the host asked to be left alone for longer than a run waits.
type heldError struct{ until time.Time }

func (e *heldError) Error() string {
	return fmt.Sprintf("the host asked to be left alone until %s", e.until.UTC().Format(time.RFC3339))
}

// ends says whether an error ends the provider's crawl for this run.
func ends(err error) bool {
	var held *heldError
	return errors.Is(err, errStopped) || errors.Is(err, errDayBudget) || errors.Is(err, errUnreachable) || errors.As(err, &held)
}

// manners is how one provider's host is treated: one request at a time, a
// pause of its own between two, and never more than the budgets of all workers.
type manners struct {
	cfg   Config
	w     *lane.Worker
	db    *db.DB
	clock clock
	delay time.Duration // the policy's
	stats *Stats
	// keep writes the provider's figures, so that a kill in a long wait loses none.
	keep func(context.Context) error
	who  string // the provider, for those who watch

	next  map[string]time.Time // by site: nothing is sent before
	rules map[string]rules     // by origin
	lost  map[string]error     // by origin: why its robots.txt was out of reach in this run
}

func newManners(cfg Config, w *lane.Worker, d *db.DB, c clock, delay time.Duration, stats *Stats) *manners {
	return &manners{cfg: cfg, w: w, db: d, clock: c, delay: delay, stats: stats, next: map[string]time.Time{}, rules: map[string]rules{}, lost: map[string]error{}}
}

// gap draws a pause for the site of u: uniform in that part of two to four
// thirds of the policy's delay that is not under a second, the site's
// Crawl-delay, or two seconds where its robots.txt fails. A floor above the
// whole range is the pause itself.
func (m *manners) gap(u *url.URL) time.Duration {
	if m.cfg.Hurry {
		return 0
	}
	asked, failed := m.asked(u)
	least := max(m.delay*2/3, leastGap, asked)
	if failed {
		least = max(least, robotsErrorGap)
	}
	return least + rand.N(max(m.delay*4/3-least, 0)+1)
}

// asked is the longest Crawl-delay that an origin of u's site asks for, and
// whether the robots.txt of one fails.
func (m *manners) asked(u *url.URL) (delay time.Duration, failed bool) {
	for _, r := range m.rules {
		if r.site == web.Site(u) {
			delay, failed = max(delay, r.delay), failed || r.failed
		}
	}
	return delay, failed
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// turn waits until a request may be sent to u, and counts it.
func (m *manners) turn(ctx context.Context, u *url.URL) error {
	host := web.Site(u)
	if _, known := m.next[host]; !known {
		var micros int64
		err := m.db.QueryRowContext(ctx, `SELECT next_at FROM docs_hosts WHERE host = $1`, host).Scan(&micros)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("reading when %s may be asked: %w", host, err)
		}
		m.next[host] = db.Time(micros)
	}
	for {
		if !m.w.Proceed(ctx) {
			return cmp.Or(ctx.Err(), errStopped)
		}
		if d := m.next[host].Sub(m.clock.now()); d > 0 {
			if delay, _ := m.asked(u); d > longestRetryAfter+2*delay {
				return &heldError{until: m.next[host]}
			}
			if err := m.wait(ctx, d); err != nil {
				return err
			}
			continue
		}
		wait, err := m.spend(ctx, host, m.gap(u))
		if err != nil || wait <= 0 {
			return err
		}
		if err := m.waitForBudget(ctx, host, m.clock.now().Add(wait)); err != nil {
			return err
		}
	}
}

// waitForBudget waits for the hour's budget. The figures have what was waited, to
// the minute, also when the process dies in it.
func (m *manners) waitForBudget(ctx context.Context, host string, until time.Time) error {
	at := until.UTC().Format(time.RFC3339)
	m.w.Log.Warn("hour_budget_used_up", "provider", m.who, "host", host, "until", at)
	defer m.w.Waits(fmt.Sprintf("%s waits until %s: the docs job's requests of this hour are used up", m.who, at))()
	for {
		if err := m.keep(ctx); err != nil {
			return err
		}
		began := m.clock.now()
		left := until.Sub(began)
		if left <= 0 {
			return nil
		}
		err := m.wait(ctx, min(left, time.Minute))
		m.stats.Waited += m.clock.now().Sub(began).Microseconds()
		if err != nil {
			return err
		}
	}
}

// rest begins the pause after a request to u.
func (m *manners) rest(u *url.URL) {
	m.next[web.Site(u)] = m.clock.now().Add(m.gap(u))
}

// hold keeps everybody off a site, also in runs to come.
func (m *manners) hold(ctx context.Context, u *url.URL, d time.Duration) error {
	host := web.Site(u)
	if m.cfg.Hurry {
		d /= 1000
	}
	m.next[host] = m.clock.now().Add(d)
	_, err := m.db.ExecContext(ctx, `INSERT INTO docs_hosts (host, next_at) VALUES ($1, $2) ON CONFLICT (host) DO UPDATE SET next_at = excluded.next_at`,
		host, db.Micros(m.next[host])+1) // rounded up: never too early
	if err != nil {
		return fmt.Errorf("keeping off %s: %w", host, err)
	}
	if d > longestRetryAfter {
		return &heldError{until: m.next[host]}
	}
	return nil
}

// wait sleeps, until the run is told to stop.
func (m *manners) wait(ctx context.Context, d time.Duration) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.w.Stopping():
			cancel()
		case <-within.Done():
		}
	}()
	if err := m.clock.sleep(within, d); err != nil {
		return cmp.Or(ctx.Err(), errStopped)
	}
	return nil
}

// spend takes one request off the budgets of the last hour and the last day,
// which are counted over all workers and runs, by minutes: a minute counts
// until all of it is out of the window. Where the hour has none left it gives
// the time until it has; where the day has none, errDayBudget.
func (m *manners) spend(ctx context.Context, host string, gap time.Duration) (wait time.Duration, err error) {
	err = m.db.Tx(ctx, func(tx *sql.Tx) error {
		now := m.clock.now()
		minute := now.Unix() / 60
		wait = 0
		if !m.cfg.Hurry {
			var hour, day, oldest int64
			if err := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN minute >= $1 THEN requests ELSE 0 END), 0),
				COALESCE(SUM(requests), 0), COALESCE(MIN(CASE WHEN minute >= $1 THEN minute END), 0) FROM docs_budget WHERE minute >= $2`,
				minute-60, minute-24*60).Scan(&hour, &day, &oldest); err != nil {
				return err
			}
			if day >= int64(cmp.Or(m.cfg.DayBudget, DayBudget)) {
				return errDayBudget
			}
			if hour >= int64(cmp.Or(m.cfg.HourBudget, HourBudget)) {
				wait = time.Unix((oldest+61)*60, 0).Sub(now)
				return nil
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM docs_budget WHERE minute < $1`, minute-48*60); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO docs_budget (minute, requests) VALUES ($1, 1) ON CONFLICT (minute) DO UPDATE SET requests = docs_budget.requests + 1`, minute); err != nil {
			return err
		}
		// For the run after a kill: the pause of a request that nobody saw the end of.
		_, err := tx.ExecContext(ctx, `INSERT INTO docs_hosts (host, next_at) VALUES ($1, $2) ON CONFLICT (host) DO UPDATE SET next_at = excluded.next_at`,
			host, db.Micros(now.Add(gap))+1)
		return err
	})
	if err != nil && !errors.Is(err, errDayBudget) {
		return 0, fmt.Errorf("counting a request to %s: %w", host, err)
	}
	return wait, err
}

// rules is what an origin's robots.txt says.
type rules struct {
	site   string // of the origin
	since  time.Time
	file   *robots.File
	status int           // 0: no answer
	failed bool          // 5xx: go on, but slowly
	delay  time.Duration // Crawl-delay
}

// allowed says whether u may be asked for, and the line that forbids it.
func (r rules) allowed(u *url.URL) (line string, ok bool) {
	n, text, ok := r.file.Rule(UserAgent, u.String())
	if ok {
		return "", true
	}
	return fmt.Sprintf("robots.txt line %d: %s", n, text), false
}

func (m *manners) read(u *url.URL, status int, body string, since time.Time) rules {
	r := rules{site: web.Site(u), since: since, file: robots.Parse(nil), status: status, failed: status >= 500 || status == http.StatusTooManyRequests}
	if status >= 200 && status < 300 {
		r.file = robots.Parse([]byte(body))
		r.delay, _ = r.file.CrawlDelay(UserAgent)
	}
	return r
}

// robots gives the rules of u's origin: those of the last 24 hours, or fresh
// ones. The error is errUnreachable where nothing answers.
func (m *manners) robots(ctx context.Context, u *url.URL) (rules, error) {
	at := origin(u)
	if r, ok := m.rules[at]; ok && m.clock.now().Sub(r.since) < robotsCache {
		return r, nil
	}
	var (
		status  int
		body    string
		fetched int64
	)
	err := m.db.QueryRowContext(ctx, `SELECT status, body, fetched_at FROM docs_robots WHERE origin = $1 AND fetched_at > $2`, at, db.Micros(m.clock.now().Add(-robotsCache))).Scan(&status, &body, &fetched)
	switch {
	case err == nil:
		m.rules[at] = m.read(u, status, body, db.Time(fetched))
		return m.rules[at], nil
	case !errors.Is(err, sql.ErrNoRows):
		return rules{}, fmt.Errorf("reading the robots.txt kept of %s: %w", at, err)
	}
	if err := m.lost[at]; err != nil {
		return rules{}, err
	}
	if status, body, err = m.askRobots(ctx, u); err != nil {
		if errors.Is(err, errUnreachable) {
			m.lost[at] = err // each of its pages would be a wait of 30 seconds
		}
		return rules{}, err
	}
	r := m.read(u, status, body, m.clock.now())
	m.rules[at] = r
	m.rest(u) // once more, as it may ask for a longer pause
	m.w.Log.Info("robots_fetched", "origin", at, "status", status, "crawl_delay_s", r.delay.Seconds())
	if r.failed {
		m.w.Log.Warn("robots_failed", "origin", at, "status", status, "least_gap_s", robotsErrorGap.Seconds())
		return r, nil // the next run asks again
	}
	_, err = m.db.ExecContext(ctx, `INSERT INTO docs_robots (origin, status, body, fetched_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (origin) DO UPDATE SET status = excluded.status, body = excluded.body, fetched_at = excluded.fetched_at`, at, status, clean(comments.ReplaceAllString(body, "")), db.Micros(r.since))
	if err != nil {
		return rules{}, fmt.Errorf("keeping the robots.txt of %s: %w", at, err)
	}
	return r, nil
}

// comments of a robots.txt name people; they are not kept.
var comments = regexp.MustCompile(`#[^\r\n]*`)

// askRobots fetches a robots.txt. What fails below HTTP and 429 are tried once
// more, as a page is; a 5xx is not: the crawl goes on, slowly (section 5.1).
func (m *manners) askRobots(ctx context.Context, u *url.URL) (status int, body string, err error) {
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	for retries := 0; ; retries++ {
		if err := m.turn(ctx, at); err != nil {
			return 0, "", err
		}
		last := at
		resp, err := m.w.Web.Get(ctx, web.Request{URL: at.String(), Accept: "text/plain, */*;q=0.8", Timeout: pageTimeout, MaxBytes: maxRobots, MaxRedirects: 5,
			Allow: func(hop *url.URL) error {
				m.rest(last)
				last = hop
				return m.turn(ctx, hop)
			}})
		m.rest(last)
		var failure *web.Error
		switch {
		case err == nil && resp.Status != http.StatusTooManyRequests:
			return resp.Status, string(resp.Body), nil
		case err == nil:
			after := m.retryAfter(resp)
			wait, again := backoff(resp.Status, retries, after)
			if err := m.hold(ctx, at, max(wait, after)); err != nil {
				return 0, "", err
			}
			if !again {
				return resp.Status, "", nil
			}
		case !errors.As(err, &failure):
			return 0, "", err
		case failure.Kind == web.KindRedirect:
			return http.StatusNotFound, "", nil // RFC 9309 section 2.3.1.2: as if there were none
		default:
			for _, ours := range []error{errStopped, errDayBudget} {
				if errors.Is(err, ours) {
					return 0, "", ours
				}
			}
			var held *heldError
			if errors.As(err, &held) {
				return 0, "", held
			}
			wait, again := backoff(0, retries, -1)
			if !again || !transient(failure.Kind) {
				return 0, "", fmt.Errorf("%w: its robots.txt: %w", errUnreachable, failure)
			}
			if err := m.hold(ctx, at, wait); err != nil {
				return 0, "", err
			}
		}
		m.w.Web.Retried()
		m.w.Log.Warn("robots_retry", "url", at.String(), "retries", retries+1)
	}
}

// retryAfter reads an answer's Retry-After; below 0 where it has none.
func (m *manners) retryAfter(resp *web.Response) time.Duration {
	if d, ok := web.ParseRetryAfter(resp.Header.Get("Retry-After"), m.clock.now()); ok {
		return d
	}
	return -1
}
