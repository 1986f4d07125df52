package seed

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// newClient makes the client for the requests of one visit. Only requests for the
// homepage and feeds are checked against robots.txt, also where they are on another host or
// redirect there: every crawler may read robots.txt and sitemaps.
func (c *collector) newClient() *polite.Client {
	cfg, pause := c.cfg.Lane.Web, c.cfg.Lane.Polite
	c.origin = apex(c.name)
	client := &polite.Client{Web: c.w.Web, Pacer: &c.w.Pacer, Memory: &c.w.Pauses, Policy: polite.Policy{
		Gap:           polite.Range{Min: pause.HostDelay, Max: pause.HostDelay},
		MaxCrawlDelay: pause.Longest(),
		MaxRetryAfter: pause.Longest(),
		Retry:         c.retry,
		Robots: polite.Robots{Agent: cfg.UserAgent, Accept: acceptRobots, Timeout: robotsTimeout, MaxBytes: maxRobots, MaxRedirects: maxRedirects,
			Retry: c.retry, OnFailure: func(int, web.Kind) polite.Verdict { return polite.Allow },
			For: func(u *url.URL) *url.URL {
				if web.Site(u) == web.Site(c.origin) {
					return c.origin
				}
				return u
			}},
	}}
	if c.cfg.Collect.RobotsCache > 0 {
		client.Memory = robotsCache{Pauses: &c.w.Pauses, w: c.w, name: c.name, age: c.cfg.Collect.RobotsCache, writeOnly: c.cfg.ForceID != ""}
	}
	return client
}

// retry tries once more after a failure that may be temporary.
func (c *collector) retry(a polite.Attempt) (wait time.Duration, again bool) {
	kinds, statuses := []web.Kind{web.KindTimeout, web.KindReset}, []int{429, 502, 503, 504}
	again = a.Retries == 0 && !c.asking && (slices.Contains(kinds, a.Kind()) || slices.Contains(statuses, a.Status()))
	if a.RetryAfter > 0 {
		return 0, again // the host says how long
	}
	return c.cfg.Lane.Polite.Backoff(a.Retries), again
}

// get makes a request that robots.txt allows, or does not apply to.
func (c *collector) get(ctx context.Context, r polite.Request) exchange {
	resp, err := c.client.Get(ctx, r)
	f := exchange{url: r.URL, at: time.Now()}
	if resp != nil {
		f.status, f.header, f.body, f.truncated, f.final, f.elapsed = resp.Status, resp.Header, resp.Body, resp.Truncated, resp.FinalURL, resp.Elapsed
	}
	c.failed(&f, err, resp != nil)
	return f
}

// robots fetches the domain's robots.txt, or finds it in the cache.
func (c *collector) robots(ctx context.Context) exchange {
	at := c.origin.JoinPath("/robots.txt")
	rules, err := c.client.Robots(ctx, at)
	f := exchange{url: at.String(), at: time.Now()}
	c.rules = robots.Parse(nil)
	if rules != nil {
		c.rules = rules.File
		f = exchange{url: rules.URL, status: rules.Status, kind: rules.Kind, why: rules.Why, header: rules.Header, body: rules.Body, sum: rules.SHA256,
			truncated: rules.Truncated, final: rules.FinalURL, at: rules.FetchedAt, elapsed: rules.Elapsed}
	}
	c.failed(&f, err, rules != nil)
	return f
}

// The reasons why a host gets no request. The metadata has these words in place of a
// failure below HTTP.
const (
	abandonedByCrawlDelay web.Kind = metadata.CrawlDelay
	abandonedByRetryAfter web.Kind = metadata.RetryAfter
	disallowed            web.Kind = metadata.Disallowed
)

// failed notes in f the error of a request that may have been answered all the same.
func (c *collector) failed(f *exchange, err error, answered bool) {
	var failure *web.Error
	var pause *polite.AbandonedError
	var no *polite.DisallowedError
	switch {
	case err == nil:
	case errors.As(err, &pause):
		if why := c.why(pause); !answered {
			f.kind = why
		}
	case errors.As(err, &no):
		f.kind = disallowed
	case errors.As(err, &failure):
		f.kind = failure.Kind
		if f.kind == web.KindRedirect || f.kind == web.KindBlocked {
			f.status = failure.Status // of the last redirect that was followed
		}
	default: // the context's
		f.kind = web.KindTimeout
	}
}

// why returns the reason why a host gets no more requests in this visit.
func (c *collector) why(e *polite.AbandonedError) web.Kind {
	if e.Hours != "" {
		c.closed.Store(e)
	}
	if e.CrawlDelay > 0 {
		return abandonedByCrawlDelay
	}
	return abandonedByRetryAfter
}

// abandonedFor returns why the host of at gets no more requests, "" if it does.
func (c *collector) abandonedFor(at string) web.Kind {
	if u, err := url.Parse(at); err == nil {
		if e := c.client.Abandoned(u); e != nil {
			return c.why(e)
		}
	}
	return ""
}

// robotsCache is the Memory of --robots-cache: a domain's robots.txt, for other
// partitions and later runs.
type robotsCache struct {
	*lane.Pauses
	w         *lane.Worker
	name      string
	age       time.Duration // the maximum age of an entry
	writeOnly bool          // a forced run fetches it again
}

// cachedRobots is a robots.txt as the store has it.
type cachedRobots struct {
	FetchedAt time.Time `json:"fetched_at"`
	Status    int       `json:"status"`
	FinalURL  string    `json:"final_url,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Body      []byte    `json:"body"`
}

func (m robotsCache) origin() string { return "https://" + m.name }

func (m robotsCache) key() string { return robotsPrefix + m.name + ".json" }

const robotsPrefix = "cache/robots/"

// Robots implements polite.Memory. An entry that cannot be read counts as none.
func (m robotsCache) Robots(ctx context.Context, origin string, now time.Time) (*polite.RobotsAnswer, error) {
	if m.writeOnly || origin != m.origin() {
		return nil, nil
	}
	body, err := m.w.Store.Open(ctx, m.key())
	if err != nil {
		if !errors.Is(err, store.ErrNotExist) {
			m.w.Log.Warn("robots_cache_unreadable", "registrable_domain", m.name, "error", ledger.Redact(err.Error()))
		}
		return nil, nil
	}
	defer func() { _ = body.Close() }() // only read
	var a cachedRobots
	if err := json.NewDecoder(io.LimitReader(body, 4*maxRobots)).Decode(&a); err != nil {
		m.w.Log.Warn("robots_cache_unreadable", "registrable_domain", m.name, "error", err.Error())
		return nil, nil
	}
	if age := now.Sub(a.FetchedAt); age < 0 || age > m.age {
		return nil, nil
	}
	return &polite.RobotsAnswer{FinalURL: a.FinalURL, Status: a.Status, Body: a.Body, Truncated: a.Truncated, FetchedAt: a.FetchedAt}, nil
}

// KeepRobots implements polite.Memory. Only a 2xx is kept, and no wall: the site itself would not be asked until it is old.
func (m robotsCache) KeepRobots(ctx context.Context, origin string, a polite.RobotsAnswer) error {
	is := answer.Response{Status: a.Status, Header: a.Header, URL: a.URL, Final: a.FinalURL, Body: a.Body, Want: answer.Robots}
	if a.Status/100 != 2 || origin != m.origin() || answer.Classify(is).Kind.Wall() {
		return nil
	}
	kept := cachedRobots{FetchedAt: a.FetchedAt, Status: a.Status, FinalURL: a.FinalURL, Truncated: a.Truncated, Body: a.Body}
	if err := store.WriteJSON(ctx, m.w.Store, m.key(), kept); err != nil {
		m.w.Log.Warn("robots_cache_unwritten", "registrable_domain", m.name, "error", ledger.Redact(err.Error()))
	}
	return nil
}
