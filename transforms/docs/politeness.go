package docs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

const (
	minGap         = time.Second     // between two requests, whatever the policy says
	robotsErrorGap = 2 * time.Second // while robots.txt answers 5xx

	// maxRetryAfter is the longest pause that the crawl waits when a host asks for it.
	// A longer one ends the provider's crawl for this run.
	maxRetryAfter = 10 * time.Minute
	// defaultRetryAfter is the wait after a 429 that names no time.
	defaultRetryAfter = time.Minute
)

// errUnreachable ends a provider's crawl because its site cannot be reached.
var errUnreachable = errors.New("it cannot be reached")

// ends reports whether an error ends the provider's crawl for this run.
func ends(err error) bool {
	var abandoned *polite.AbandonedError
	return errors.Is(err, polite.ErrStopped) || errors.Is(err, polite.ErrBudget) || errors.Is(err, errUnreachable) || errors.As(err, &abandoned)
}

// politeness is the policy for a provider with this delay. A pause is random, uniform
// from two thirds to four thirds of the delay.
func politeness(cfg Config, delay time.Duration) polite.Policy {
	return polite.Policy{
		Gap:           polite.Range{Min: max(delay*2/3, minGap), Max: delay * 4 / 3},
		MaxRetryAfter: maxRetryAfter,
		Retry:         retry,
		NoDelay:       cfg.NoDelay,
		Robots: polite.Robots{Agent: cmp.Or(cfg.Lane.Web.UserAgent, UserAgent), Accept: "text/plain, */*;q=0.8", Timeout: pageTimeout, MaxBytes: maxRobots, MaxRedirects: 5,
			Retry: retryRobots, OnFailure: withoutRobots, SlowGap: robotsErrorGap},
	}
}

// newClient makes a client that sends requests with pauses of about delay, within the budgets, and none that gate refuses.
func newClient(cfg Config, w *lane.Worker, d *db.DB, delay time.Duration, gate *permit.Gate) *polite.Client {
	c := &polite.Client{Web: w.Web, Pacer: &w.Pacer, Policy: politeness(cfg, delay),
		Memory: memory{polite.InDB{DB: d, Table: "docs_hosts"}, cfg}, Control: w, Log: w.Log}
	gate.Apply(&c.Policy)
	return c
}

// withoutRobots continues slowly while robots.txt fails with a status. This is the
// crawl's own rule: by RFC 9309 section 2.3.1.4 it would stop.
func withoutRobots(status int, kind web.Kind) polite.Verdict {
	switch {
	case status >= 500 || status == http.StatusTooManyRequests:
		return polite.AllowSlowly
	case status == 0:
		return polite.Standard(status, kind)
	}
	return polite.Allow
}

// retry applies the table of backoffs to a page. An answer that ends early counts as
// no answer.
func retry(a polite.Attempt) (wait time.Duration, again bool) {
	switch {
	case a.Failure != nil && !transient(a.Failure.Kind):
		return 0, false
	case a.Failure != nil || brokenOff(a.Response):
		return backoff(0, a.Retries, -1)
	}
	return backoff(a.Response.Status, a.Retries, a.RetryAfter)
}

// retryRobots is the same for robots.txt, except that a 5xx is not tried again: the
// crawl continues slowly.
func retryRobots(a polite.Attempt) (wait time.Duration, again bool) {
	if a.Status() >= 500 {
		return 0, false
	}
	return retry(a)
}

// brokenOff reports whether a page's body ended early, before the limit.
func brokenOff(r *web.Response) bool {
	return r.Status/100 == 2 && r.Truncated && len(r.Body) < maxPage
}

// backoffs are the waits before each further try, by status. 0 stands for no HTTP
// answer: DNS, connection or time-out.
var backoffs = map[int][]time.Duration{
	0:   {30 * time.Second},
	429: {defaultRetryAfter},
	500: {30 * time.Second, time.Minute},
	502: {30 * time.Second, time.Minute},
	503: {30 * time.Second, time.Minute, 2 * time.Minute},
	504: {30 * time.Second, time.Minute},
}

// backoff returns the wait before the next try, after that many retries and an answer with this status (0: none); false: there is no
// further try. after is the Retry-After, below 0 for none: it replaces the wait of a 429, and can only lengthen others.
func backoff(status, retries int, after time.Duration) (wait time.Duration, again bool) {
	if status == 501 || status > 504 {
		status = 500 // all other 5xx have the same backoff
	}
	waits := backoffs[status]
	if retries >= len(waits) {
		return 0, false
	}
	wait = waits[retries]
	if after >= 0 && (status == 429 || after > wait) {
		wait = after
	}
	return wait, true
}

// transient reports whether an exchange that failed below HTTP may succeed later: after
// errors of DNS and connections, and time-outs.
func transient(k web.Kind) bool {
	switch k {
	case web.KindDNS, web.KindConnect, web.KindTimeout, web.KindReset, web.KindTLS:
		return true
	}
	return false
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// memory is kept in the database, for all workers and runs: the time of the next
// request to each host, robots.txt, and the requests of the last hour and day.
type memory struct {
	polite.InDB
	cfg Config
}

// Requested counts one request against the budgets of the last hour and day, over all workers and runs, by minute: a minute counts until
// all of it is outside of the window.
func (m memory) Requested(ctx context.Context, host string, now, next time.Time) (wait time.Duration, err error) {
	minute := now.Unix() / 60
	err = m.DB.Tx(ctx, func(tx *sql.Tx) error {
		wait = 0
		if !m.cfg.NoDelay {
			var hour, day, oldest int64
			if err := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN minute >= $1 THEN requests ELSE 0 END), 0),
				COALESCE(SUM(requests), 0), COALESCE(MIN(CASE WHEN minute >= $1 THEN minute END), 0) FROM docs_budget WHERE minute >= $2`,
				minute-60, minute-24*60).Scan(&hour, &day, &oldest); err != nil {
				return err
			}
			if day >= int64(cmp.Or(m.cfg.DayBudget, DayBudget)) {
				return polite.ErrBudget
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
		return m.Set(ctx, tx, host, next)
	})
	return wait, err
}

func (m memory) Robots(ctx context.Context, origin string, now time.Time) (*polite.RobotsAnswer, error) {
	var (
		a       polite.RobotsAnswer
		body    string
		header  string
		fetched int64
	)
	since := time.Unix(0, 0)
	if !now.IsZero() {
		since = now.Add(-polite.RobotsAge)
	}
	err := m.DB.QueryRowContext(ctx, `SELECT status, body, header, sha256, final_url, fetched_at FROM docs_robots WHERE origin = $1 AND fetched_at > $2`,
		origin, db.Micros(since)).Scan(&a.Status, &body, &header, &a.SHA256, &a.FinalURL, &fetched)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.Body, a.FetchedAt = []byte(body), db.Time(fetched)
	return &a, json.Unmarshal([]byte(header), &a.Header)
}

// keptHeaders are those that say what an answer is, or something about use.
var keptHeaders = append([]string{"Content-Type", "Server", "Cf-Mitigated"}, rights.Headers...)

func (m memory) KeepRobots(ctx context.Context, origin string, a polite.RobotsAnswer) error {
	if a.Kind == web.KindRedirect {
		a.Status = http.StatusNotFound // RFC 9309 section 2.3.1.2: as if there were none
	}
	kept := http.Header{}
	for _, name := range keptHeaders {
		for _, value := range a.Header[name] {
			kept[name] = append(kept[name], clean(value))
		}
	}
	header, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding the headers of a robots.txt: %w", err)
	}
	_, err = m.DB.ExecContext(ctx, `INSERT INTO docs_robots (origin, status, body, header, sha256, final_url, fetched_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (origin) DO UPDATE SET status = excluded.status, body = excluded.body, header = excluded.header, sha256 = excluded.sha256,
			final_url = excluded.final_url, fetched_at = excluded.fetched_at`,
		origin, a.Status, clean(permit.WithoutComments(a.Text())), string(header), a.SHA256, clean(a.FinalURL), db.Micros(a.FetchedAt))
	return err
}

// unreachable turns an error about a robots.txt that cannot be fetched into errUnreachable.
func unreachable(err error) error {
	var robots *polite.RobotsError
	if errors.As(err, &robots) {
		return fmt.Errorf("%w: its robots.txt: %w", errUnreachable, robots.Err)
	}
	return err
}
