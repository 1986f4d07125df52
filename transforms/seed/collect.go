package seed

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// Limits of one domain.
const (
	maxRobots     = 1 << 20
	maxSitemap    = 10 << 20
	maxCandidates = 20
	maxRedirects  = 5

	maxContentType = 100

	maxLogged = 500 // bytes of a site's text in a log line

	acceptRobots  = "text/plain, */*"
	acceptSitemap = "application/xml, text/xml, */*"
	acceptHTML    = "text/html, application/xhtml+xml, */*"
)

// These are variables only for the tests, which do not wait that long.
var (
	robotsTimeout  = 10 * time.Second
	sitemapTimeout = 15 * time.Second
)

var usualSitemaps = []string{"/sitemap.xml", "/sitemap_index.xml", "/sitemaps.xml"}

// findings are what a visit found out about one registrable domain. They are written
// to each partition that requests the domain.
type findings struct {
	metadata metadata.Domain     // without id, country, category and source
	evidence map[string]exchange // by file name; a file that is not in it is removed from the store
	network  web.Kind            // why robots.txt failed below HTTP, empty for no failure
	doubt    web.Kind            // the same for the outage guard, to which an answer by http is none if a certificate could not be verified
	sum      ledger.Tally
}

// collector is the visit of one domain.
type collector struct {
	cfg      Config
	w        *lane.Worker
	name     string
	own      []string // other hosts that its records name
	client   *polite.Client
	origin   *url.URL            // of the requests to the domain
	sitemaps map[string]exchange // candidates that were requested, by address, without their bodies
	asking   bool                // which host answers, so nothing is tried twice
	rules    *robots.File

	closed atomic.Pointer[polite.AbandonedError] // of a host that gets no request at this hour: nothing is known then
}

// collect fetches a domain's robots.txt and sitemap. Whatever a site does is a finding: the
// errors are that of the context, and of hosts that get no request at this hour.
func (c *collector) collect(ctx context.Context, requests []request) (findings, error) {
	defer c.client.Close()
	c.own = ownHosts(requests)
	log := c.w.Log.With("registrable_domain", c.name)
	for _, q := range requests {
		if q.state == unfinished {
			log = log.With("domain_id", q.id)
			break
		}
	}
	log.Info("domain_collector_start")
	f := findings{evidence: map[string]exchange{}, sum: ledger.Tally{Counts: map[string]int64{}}}

	early, endEarly := c.sitemapEarly(ctx)
	defer endEarly()
	robots, moved := c.collectRobots(ctx, &f, log, endEarly)
	if moved {
		early = nil
	}
	best := c.collectSitemap(ctx, early, &f, log)
	if c.cfg.Collect.Homepage || c.cfg.Collect.Feeds {
		c.homepageAndFeeds(ctx, &f, best)
	}
	c.readRights(&f, robots, best)
	if err := ctx.Err(); err != nil {
		return findings{}, err
	}
	if e := c.closed.Load(); e != nil {
		return findings{}, e
	}
	f.metadata.RegistrableDomain, f.metadata.Web = c.name, c.cfg.Collect.Web
	f.metadata.CollectedAt = metadata.Timestamp(time.Now())
	log.Info("domain_collector_complete", "robots_exists", f.metadata.Robots.Exists, "sitemap_exists", f.metadata.Sitemap.Exists)
	return f, nil
}

// sitemapEarly begins to fetch the usual sitemap, with --parallel-fetch. Nothing of that outlives end.
func (c *collector) sitemapEarly(ctx context.Context) (early chan exchange, end func()) {
	if !c.cfg.Collect.ParallelFetch {
		return nil, func() {}
	}
	early = make(chan exchange, 1)
	within, cancel := context.WithCancel(ctx)
	go func() {
		defer close(early)
		early <- c.sitemap(within, "https://"+c.name+usualSitemaps[0], true)
	}()
	return early, func() {
		cancel()
		for range early {
		}
	}
}

// collectRobots returns the answer, and whether another host than the domain's own gave it.
func (c *collector) collectRobots(ctx context.Context, f *findings, log *slog.Logger, endEarly func()) (r exchange, moved bool) {
	r = c.robots(ctx)
	first := r
	if !c.cfg.Collect.StrictHosts && slices.Contains(outageBy, r.kind) && ctx.Err() == nil {
		endEarly()
		if other, ok := c.otherHost(r, others(c.name, c.own), func() exchange { return c.robots(ctx) }); ok && ctx.Err() == nil {
			r, moved = other, true
		}
	}
	if r.status > 0 {
		f.metadata.HostUsed = c.origin.Host
	}
	if c.abandonedFor(r.url) == "" {
		f.network, f.doubt = r.kind, r.kind
	}
	if moved && c.origin.Scheme == "http" && strings.HasPrefix(first.why, "x509: ") {
		f.doubt = first.kind
	}
	f.metadata.Robots = c.robotsMetadata(r)
	if f.metadata.Robots.Exists {
		f.evidence["robots.txt"] = r
		if f.metadata.Robots.Kind == string(answer.Robots) {
			f.sum.Count("robots_found", 1)
		}
		f.metadata.Robots.SitemapURLs = c.rules.Sitemaps()
	}
	for _, bad := range c.rules.InvalidSitemaps() {
		log.Warn("invalid_sitemap_url_in_robots", "url", untrusted.Line(bad, maxLogged))
	}
	if r.truncated && len(r.body) >= maxRobots {
		log.Warn("robots_file_too_large", "limit", maxRobots)
	}
	log.Info("robots_fetched", "status", f.metadata.Robots.StatusCode, "content_length", f.metadata.Robots.ContentLength, "error", string(r.kind))
	if d, ok := c.rules.CrawlDelay(c.client.Agent(c.origin)); ok {
		seconds := d.Seconds()
		f.metadata.Robots.CrawlDelay = &seconds
	}
	return r, moved
}

func (c *collector) collectSitemap(ctx context.Context, early chan exchange, f *findings, log *slog.Logger) exchange {
	best := c.findSitemap(ctx, early, f.metadata.Robots.SitemapURLs, f.network)
	if best.truncated && len(best.body) >= maxSitemap {
		log.Warn("sitemap_file_too_large", "url", best.url, "limit", maxSitemap)
	}
	f.metadata.Sitemap = c.sitemapMetadata(best)
	if f.metadata.Sitemap.Exists {
		f.evidence["sitemap.xml"] = best
	}
	if best.parsed {
		f.sum.Count("sitemaps_found", 1)
	}
	c.countSitemaps(ctx, best, f.metadata.Robots.SitemapURLs, &f.metadata.Sitemap)
	log.Info("sitemap_fetched", "status", f.metadata.Sitemap.StatusCode, "content_length", f.metadata.Sitemap.ContentLength, "url", f.metadata.Sitemap.URL, "url_count", best.result.Count)
	return best
}

// exchange is one request and its answer or failure.
type exchange struct {
	url       string
	status    int
	kind      web.Kind // failure below HTTP
	why       string   // of robots.txt: the same in the words of the network
	header    http.Header
	body      []byte
	sum       string // of a robots.txt: the SHA-256 of its body
	unpacked  bool   // the body that was received was gzip by itself
	truncated bool
	final     string
	at        time.Time
	elapsed   time.Duration

	parsed bool
	result sitemap.Result

	last int    // status of the answer that this 404 stands for
	what string // that answer is
}

// outcome returns the status and the failure as they are written to the metadata. The
// schema allows statuses up to 599, so a higher one, such as LinkedIn's 999, is a
// failure with its own name.
func (f exchange) outcome() (status int, failure string) {
	if f.status > 599 {
		return 0, metadata.StatusOutside(f.status)
	}
	return f.status, string(f.kind)
}

// milliseconds returns how long the exchange took, nil if there was no response.
func (f exchange) milliseconds() *int64 {
	if f.elapsed <= 0 {
		return nil
	}
	ms := f.elapsed.Milliseconds()
	return &ms
}

func (f exchange) ok() bool { return f.status >= 200 && f.status < 300 }

func (c *collector) robotsMetadata(f exchange) metadata.Robots {
	status, failure := f.outcome()
	m := metadata.Robots{StatusCode: status, Error: failure, ContentLength: int64(len(f.body)), Exists: f.ok() && len(f.body) > 0, Truncated: f.truncated}
	if m.Exists {
		m.FetchedAt = metadata.Timestamp(f.at)
	}
	if f.final != "" && f.final != apex(c.name).String()+"/robots.txt" && untrusted.Key(f.final) == nil {
		m.FinalURL = f.final
	}
	m.ResponseMS = f.milliseconds()
	m.LastStatus, m.ContentType = f.status, f.contentType()
	m.Kind = f.is(answer.Robots)
	if m.Error != "" {
		m.ErrorText = f.why
	}
	return m
}

// is tells what the answer is, "" for no answer.
func (f exchange) is(want answer.Kind) string {
	if f.status == 0 || f.kind != "" {
		return ""
	}
	return string(answer.Classify(answer.Response{Status: f.status, Header: f.header, URL: f.url, Final: f.final, Body: f.body, Want: want}).Kind)
}

// contentType returns the media type that the answer states, if it states one.
func (f exchange) contentType() string {
	t, _, err := mime.ParseMediaType(f.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return untrusted.Line(t, maxContentType)
}

// candidates returns the sitemap addresses of a domain in the order in which they are
// tried. A usual path that robots.txt disallows is not tried, unless robots.txt itself
// names it.
func (c *collector) candidates(named []string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(u string) {
		if len(out) == maxCandidates {
			return
		}
		if key := address(u); !seen[key] {
			seen[key] = true
			out = append(out, u)
		}
	}
	for _, u := range named {
		add(u)
	}
	for _, p := range usualSitemaps {
		if u := c.origin.String() + p; c.mayFetch(u) {
			add(u)
		}
	}
	return out
}

// address returns the same text for all spellings of a URL.
func address(at string) string {
	if u, err := canonical.Resolve(nil, at, []string{"*"}); err == nil {
		return u
	}
	return at
}

func (c *collector) findSitemap(ctx context.Context, early chan exchange, named []string, network web.Kind) exchange {
	all := c.candidates(named)
	first := exchange{url: c.origin.String() + usualSitemaps[0]}
	if len(all) > 0 {
		first.url = all[0]
	}
	var evidence, parallel, telling *exchange
	var kind web.Kind
	for _, at := range all {
		if ctx.Err() != nil {
			break
		}
		own := c.sameHost(at)
		if own && network != "" && network != web.KindRedirect && network != web.KindBlocked {
			kind = cmp.Or(kind, network)
			continue // a host that does not answer gets no further request
		}
		if why := c.abandonedFor(at); why != "" {
			kind = cmp.Or(kind, why)
			continue
		}
		if early != nil && own && parallel == nil {
			f := <-early
			parallel = &f
		}
		var f exchange
		if parallel != nil && (at == parallel.url || at == parallel.final) { // robots.txt may name the target of the usual path's redirect
			f = *parallel
			f.url = at
		} else {
			f = c.sitemap(ctx, at, false)
		}
		c.remember(at, f)
		if f.status != 0 && f.kind == "" && (telling == nil || telling.none()) {
			telling = &f
		}
		switch {
		case f.parsed:
			return f
		case f.ok() && evidence == nil:
			evidence = &f
		case f.kind != "":
			kind = cmp.Or(kind, f.kind)
		}
	}
	if evidence != nil {
		return *evidence
	}
	if len(all) == 0 {
		kind = disallowed
	}
	first.status, first.kind = http.StatusNotFound, kind
	if telling == nil {
		return first
	}
	if first.last = telling.status; telling.none() {
		return first
	}
	first.kind = cmp.Or(kind, web.Kind(metadata.StatusOutside(telling.status)))
	first.header, first.what = telling.header, telling.what
	if telling.final != telling.url {
		first.final = telling.final
	}
	return first
}

func (c *collector) remember(at string, f exchange) {
	if f.ok() && !f.parsed {
		f.what = f.is(answer.Sitemap)
	}
	f.body = nil
	if c.sitemaps == nil {
		c.sitemaps = map[string]exchange{}
	}
	c.sitemaps[address(at)] = f
}

// none reports whether the answer says that nothing is there.
func (f exchange) none() bool { return f.status == http.StatusNotFound || f.status == http.StatusGone }

func (c *collector) sameHost(at string) bool {
	u, err := url.Parse(at)
	return err == nil && web.Site(u) == web.Site(c.origin)
}

func (c *collector) sitemap(ctx context.Context, at string, parallel bool) exchange {
	f := c.get(ctx, polite.Request{URL: at, Accept: acceptSitemap, Timeout: sitemapTimeout, MaxBytes: maxSitemap, MaxRedirects: maxRedirects, Invited: true, Parallel: parallel})
	if !f.ok() {
		f.what, f.body = f.is(answer.Sitemap), nil
		return f
	}
	size := len(f.body)
	if bytes.HasPrefix(f.body, []byte{0x1f, 0x8b}) { // its unpacked size is unknown before
		size = maxSitemap
	}
	end, err := budget.Begin(ctx, size)
	if err != nil {
		f.body = nil
		return f // the run stops, so nothing of this visit is stored
	}
	defer end()
	if body, unpacked, cut, err := sitemap.Unpack(f.body, maxSitemap); err == nil && unpacked {
		f.body, f.truncated, f.unpacked = body, f.truncated || cut, true
	}
	if len(f.body) == 0 {
		return f
	}
	result, err := sitemap.Parse(f.body, c.cfg.Collect.MaxChildSitemaps)
	// A document that ends before its root element is broken, unless the download was cut off at the limit.
	f.parsed, f.result = err == nil && (f.truncated || !result.Truncated), result
	return f
}

func (c *collector) sitemapMetadata(f exchange) metadata.Sitemap {
	m := metadata.Sitemap{StatusCode: f.status, Error: string(f.kind), ContentLength: int64(len(f.body)), Exists: f.ok() && len(f.body) > 0, URL: f.url, Truncated: f.truncated}
	if m.Exists {
		m.FetchedAt = metadata.Timestamp(f.at)
	}
	m.ResponseMS = f.milliseconds()
	m.LastStatus, m.ContentType, m.Kind = f.last, f.contentType(), f.what
	if f.final != "" && f.final != f.url && untrusted.Key(f.final) == nil {
		m.FinalURL = f.final
	}
	if f.ok() {
		m.LastStatus, m.Kind = f.status, f.is(answer.Sitemap)
	}
	if m.Parsed = f.parsed; f.parsed {
		m.Kind = string(f.result.Kind)
		n := int64(f.result.Count)
		m.URLCount = &n
	}
	return m
}

// children are the addresses of an index's sitemaps. The protocol demands whole ones; those
// without scheme and host are relative to the index.
func (f exchange) children() []string {
	out := slices.Clone(f.result.Children)
	base, err := url.Parse(cmp.Or(f.final, f.url))
	if err != nil {
		return out // it has been fetched, so it is a URL
	}
	for i, at := range out {
		if u, err := canonical.Resolve(base, at, []string{"*"}); err == nil && !strings.Contains(at, "://") {
			out[i] = u
		}
	}
	return out
}

// countSitemaps counts the sitemaps that robots.txt names if the domain has one, and with
// --follow-index those of indexes, breadth first.
func (c *collector) countSitemaps(ctx context.Context, best exchange, named []string, m *metadata.Sitemap) {
	most := c.cfg.Collect.MaxChildSitemaps
	var queue []string
	var total *int64
	seen := map[string]bool{}
	count := func(f exchange) {
		switch {
		case !f.parsed:
			m.Partial = m.Partial || !f.none()
		case f.result.Kind == sitemap.Index:
			m.Partial = m.Partial || !c.cfg.Collect.FollowIndex || f.truncated || len(f.result.Children) == most && f.result.Count > most
			queue = append(queue, f.children()...)
		default:
			m.Partial = m.Partial || f.truncated
			if total == nil {
				total = new(int64)
			}
			*total += int64(f.result.Count)
		}
	}
	if best.parsed {
		seen[address(best.url)] = true
		count(best)
	}
	for _, at := range named {
		f, known := c.sitemaps[address(at)]
		switch {
		case len(m.Sitemaps) == most || ctx.Err() != nil || !known && (!best.parsed || c.abandonedFor(at) != ""):
			m.Partial = true
			continue
		case !known:
			f = c.sitemap(ctx, at, false)
		}
		one := metadata.Counted{URL: at, Kind: f.what}
		if f.parsed {
			n := int64(f.result.Count)
			one.Kind, one.Count = string(f.result.Kind), &n
		}
		m.Sitemaps = append(m.Sitemaps, one)
		if key := address(at); !seen[key] {
			seen[key] = true
			count(f)
		}
	}
	if c.cfg.Collect.FollowIndex && len(queue) > 0 {
		m.ChildCount = new(int64)
	}
	for len(queue) > 0 && ctx.Err() == nil {
		at := queue[0]
		queue = queue[1:]
		key := address(at)
		if !c.cfg.Collect.FollowIndex || seen[key] {
			continue
		}
		if *m.ChildCount == int64(most) || c.abandonedFor(at) != "" {
			m.Partial = true
			continue
		}
		seen[key] = true
		*m.ChildCount++
		count(c.sitemap(ctx, at, false))
	}
	if best.parsed && (len(m.Sitemaps) > 0 || m.ChildCount != nil) {
		m.TotalURLCount = total
	} else {
		m.Partial = false
	}
}

// invalidError means that metadata breaks its schema, which a person must look at.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return fmt.Sprintf("invalid domain metadata: %v", e.err) }
func (e *invalidError) Unwrap() error { return e.err }

// readRights adds what the site says about the use of its pages, as read from the answers of the visit. Of anything else
// than a robots.txt nothing is concluded.
func (c *collector) readRights(f *findings, robots, sitemap exchange) {
	l := rights.Ledger{Agent: c.client.Agent(c.origin)}
	l.Requested(answer.Response{Status: robots.status, Header: robots.header, URL: robots.url, Final: robots.final, Body: robots.body},
		answer.Kind(f.metadata.Robots.Kind), robots.truncated, robots.at, robots.sum)
	if sitemap.ok() && !answer.Kind(f.metadata.Sitemap.Kind).Wall() {
		l.Answer(cmp.Or(sitemap.final, sitemap.url), sitemap.status, sitemap.header, sitemap.body, sitemap.at)
	}
	if home := f.evidence["homepage.html"]; home.is(answer.Page) == string(answer.Page) {
		l.Page(cmp.Or(home.final, home.url), home.status, home.header, home.body, home.at)
	}
	r := l.Rights("")
	f.metadata.Rights = &r
	f.sum.Add(ledger.Tally{Counts: r.Counts()})
}
