// Package engine crawls one news provider: robots.txt, sitemaps, and the newest
// articles, with one request at a time. It knows nothing about the pages of publishers,
// and a provider knows nothing about HTTP, storage and duplicates. No promise: see docs/library.md.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/site"
)

const (
	maxRobots   = 500 << 10 // RFC 9309 section 2.5
	maxSitemap  = 50 << 20  // sitemaps.org
	maxPage     = 5 << 20
	timeout     = 20 * time.Second
	tries       = 3
	maxSitemaps = 20   // asked for in one run, indexes too
	maxMissed   = 1000 // counted in one run
	maxEntries  = 100_000
	maxDepth    = 2 // of indexes in indexes
	leaseTTL    = 30 * time.Second
)

// Options are what a run may do otherwise.
type Options struct {
	Purpose  rights.Purpose // what is reserved for it is not fetched, or not stored; "": everything is recorded only
	KeepHTML bool           // keep each article's page in the store
	Images   bool           // fetch the images that articles name
	Reparse  bool           // read the stored pages again, and fetch nothing
	NoDelay  bool           // no pauses: for simulated sites only
	OnlyDue  bool           // publishers that are not due, by how often they publish, are not asked
	LeaseTTL time.Duration
}

// Engine is what a run of the job has for all its providers.
type Engine struct {
	Job, RunID string
	Config     provider.Config
	UserAgent  string // as robots.txt files name it
	Web        *web.Client
	Store      store.Store
	DB         *db.DB
	Log        *slog.Logger
	Options
	Timeout time.Duration // of one try of a request; 0: 20 s
	// Polite has the longest Crawl-delay or Retry-After that the engine waits; with a
	// longer one the provider is abandoned for this run. The gap between two requests is
	// Config's.
	Polite polite.Config

	Worker worker
	// Quota is how many articles may still be requested, by the run's limit; nil: as many as there are.
	Quota interface {
		Take() bool
		Empty() bool
	}
	// Count is called with the counts since its last call, while a provider is crawled.
	Count func(ledger.Tally)
	// Pacer makes the pauses between requests to a host, for all providers. Its
	// clock is the engine's.
	Pacer *polite.Pacer
}

// worker is what the engine needs of a lane.Worker.
type worker interface {
	polite.Control
	Lease(_ context.Context, _ lease.Place, ttl time.Duration, giveUp bool, names ...string) (within context.Context, release func(), err error)
	Unit(context.Context, ledger.Input) (within context.Context, end func(), err error)
	DeadLetter(context.Context, ledger.DeadLetter) error
	Resolve(context.Context, ledger.DeadLetter) error
	Site(ctx context.Context, name string) (site.Streak, error)
	KeepSite(ctx context.Context, name string, v site.Verdict) error
}

func (e *Engine) now() time.Time { return e.Pacer.Clock.Now() }

// State says how a provider's part of a run ended: one of these, or the site.State of a site that
// is not open. Then nothing is concluded about single articles, and the next run asks again.
type State string

// The states of a provider.
const (
	Ran     State = "run"     // to its end
	Skipped State = "skipped" // nothing was requested, or none of its sources can be read
	Stopped State = "stopped" // it refused one article, answered 429, or asked for a long pause
	Cut     State = "cut"     // the run was stopped
	NotDue  State = "not_due" // it publishes too rarely to be asked again already
	Left    State = "left"    // the run's limit was used up before it
)

// told reports whether the reason of a state is an alert.
func (s State) told() bool { return !slices.Contains([]State{Ran, Skipped, Cut, NotDue, Left}, s) }

// Result is what became of a provider.
type Result struct {
	Provider string `json:"provider"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	// Found counts the article addresses of the sitemaps, Failed the articles
	// that could not be fetched or read.
	Found     int64            `json:"articles_found"`
	Fetched   int64            `json:"articles_fetched"`
	Inserted  int64            `json:"articles_inserted"`
	Changed   int64            `json:"articles_changed"`
	Same      int64            `json:"articles_same"`
	Empty     int64            `json:"articles_empty"`
	Paywalled int64            `json:"articles_paywalled"` // the page shows only a part of the text to readers without a subscription
	Failed    int64            `json:"articles_failed"`
	Forbidden int64            `json:"articles_forbidden"`          // by robots.txt
	Reserved  int64            `json:"articles_reserved,omitempty"` // for the run's purpose: not fetched, or not stored
	Missed    int64            `json:"articles_missed"`             // published since the last run, and left out because of maxArticlesPerProvider
	Copies    int64            `json:"articles_copies"`             // articles found to have nearly the text of another publisher's earlier one
	Left      int64            `json:"left_by_limit,omitempty"`
	DueAt     time.Time        `json:"due_at,omitzero"` // when a run with OnlyDue asks it again
	Health    raw.Health       `json:"health"`
	Images    map[string]int64 `json:"images,omitempty"` // what became of the articles' images, under the report's names
	// Limits say what was left out because a run reads no more.
	Limits []string `json:"limits,omitempty"`
	Alerts []string `json:"alerts,omitempty"`
	// Rights is what robots.txt says about the use of the site, Withheld the first decisions by it or by an article,
	// and Said how many articles say what, under the report's names.
	Rights   *rights.Rights   `json:"rights,omitempty"`
	Withheld []withheld       `json:"withheld,omitempty"`
	Said     map[string]int64 `json:"said,omitempty"`
}

// Tally returns the result's counts.
func (r Result) Tally() ledger.Tally {
	t := ledger.Tally{Counts: ledger.Counts{"articles_found": r.Found, "articles_fetched": r.Fetched, "articles_inserted": r.Inserted,
		"articles_changed": r.Changed, "articles_same": r.Same, "articles_empty": r.Empty, "articles_paywalled": r.Paywalled, "articles_failed": r.Failed, "articles_forbidden": r.Forbidden, "articles_copies": r.Copies, "articles_missed": r.Missed, "articles_reserved": r.Reserved,
		ledger.LeftByLimit: r.Left}}
	maps.Copy(t.Counts, r.Said)
	maps.Copy(t.Counts, r.Images)
	return t
}

// errStop ends the crawl of a provider. The report has its reason.
type errStop struct {
	state        State
	reason, code string
}

func (e *errStop) Error() string { return e.reason }

func (e *Engine) visit(p provider.Provider) *visit {
	v := &visit{Engine: e, reader: reader{p, p.Policy(), e.Log.With("provider", p.ID())}, result: Result{Provider: p.ID(), State: Ran},
		gate: &permit.Gate{Purpose: e.Purpose}, withheld: map[string]bool{}}
	v.keeper = &keeper{visit: v}
	if v.policy.Zone == nil {
		v.policy.Zone = time.UTC
	}
	return v
}

// Run crawls one provider, or reads its stored pages again. The error is never the
// provider's: it is an error of the database or the store, or that of ctx.
func (e *Engine) Run(ctx context.Context, p provider.Provider) (Result, error) {
	v := e.visit(p)
	defer v.count()
	within, release, err := v.acquire(ctx)
	if v.leased = err == nil; v.leased {
		err = func() error {
			defer release() // also when the engine panics
			if e.Reparse {
				return v.keeper.reparse(within)
			}
			v.client = v.newClient()
			defer v.client.Close()
			if err := v.conclude(within, v.crawl(within)); err != nil {
				return err
			}
			return v.images(within)
		}()
	}
	var stop *errStop
	if err != nil && within != nil && ctx.Err() == nil && errors.Is(context.Cause(within), lease.ErrLost) {
		if _, lack := fault.Of(fault.Database, context.Cause(within)); lack != nil {
			return v.result, lack
		}
		err = &errStop{Cut, "another run took it over", "lease_lost"}
	}
	if errors.As(err, &stop) {
		v.result.State, v.result.Reason = stop.state, stop.reason
		if stop.state == NotDue {
			return v.result, nil
		}
		if stop.state != Left {
			v.log.Warn("provider_ended", "state", stop.state, "code", stop.code, "reason", ledger.Redact(stop.reason))
		}
		err = nil
	}
	if err == nil && v.leased {
		v.result.Copies, err = raw.MarkCopies(ctx, v.DB, p.ID())
	}
	if err != nil {
		return v.result, err
	}
	return v.result, v.examine(ctx)
}

// reader reads pages as the publisher does.
type reader struct {
	p      provider.Provider
	policy provider.Policy
	log    *slog.Logger
}

// visit is one provider's part of a run.
type visit struct {
	*Engine
	reader
	base     *url.URL
	client   *polite.Client
	rules    *polite.Rules
	gate     *permit.Gate
	withheld map[string]bool // articles of this run that are reserved, by the hash of their address
	result   Result
	counted  ledger.Tally // the part of the result that was passed to Count

	judge    *site.Judge                   // nil where nothing is judged
	before   site.State                    // of the site, in the last run
	onceOpen []func(context.Context) error // what is concluded if the site is open
	readable child                         // one that was read
	known    int                           // articles that are stored
	named    raw.Named                     // what the sources of this run name
	was      raw.Named                     // the same of the last run
	refused  *candidate                    // the article that ended the crawl, if one did
	oneText  string                        // see minSame

	keeper  *keeper
	notices int // pages that are no articles, by their text

	leased bool // this run had the lease
	asked  time.Time

	listed   int      // addresses in the sitemaps
	other    string   // the first of them that is no article
	refusing []string // answers of sources that keep the crawler out

	old     int  // how many of the newest articles are older than the retention
	expired int  // how many of them were stored and have expired
	ahead   int  // how many pages have a date of publication that is ahead of now
	stored  bool // at least one of them is stored
}

// count passes the counts since its last call to Count.
func (v *visit) count() {
	now := v.result.Tally()
	v.Count(now.Minus(v.counted))
	v.counted = now
}

// acquire acquires the provider's lease: two runs never crawl one publisher at the same time.
func (v *visit) acquire(ctx context.Context) (within context.Context, release func(), err error) {
	within, release, err = v.Worker.Lease(ctx, lease.InDB(v.DB), cmp.Or(v.LeaseTTL, leaseTTL), true, v.Job+"/provider/"+v.p.ID())
	var inUse *lease.InUseError
	switch {
	case errors.As(err, &inUse):
		err = &errStop{Skipped, "another run is at work on it: " + inUse.Holder.String(), "in_use"}
	case err == nil && within == nil:
		err = &errStop{Cut, "the run was stopped", "stopped"}
	}
	return within, release, err
}

// crawl reads robots.txt and the sitemaps, and fetches the newest articles.
func (v *visit) crawl(ctx context.Context) error {
	var err error
	if v.base, err = url.Parse(v.p.BaseURL()); err != nil {
		return &errStop{Skipped, "its base URL: " + err.Error(), "bad_url"}
	}
	if v.Quota != nil && v.Quota.Empty() {
		v.result.Left = 1
		return &errStop{Left, "the run's limit is used up", "limit"}
	}
	if err := v.due(ctx); err != nil {
		return err
	}
	if err := v.beginJudging(ctx); err != nil {
		return err
	}
	if err := v.robots(ctx); err != nil {
		return err
	}
	v.site()
	if err := v.judgeStored(ctx); err != nil {
		return err
	}
	candidates, err := v.candidates(ctx)
	if err != nil {
		return err
	}
	chosen, err := v.choose(ctx, candidates)
	if err != nil {
		return err
	}
	if err := v.scheduled(ctx, candidates); err != nil {
		return err
	}
	v.log.Info("articles_chosen", "found", v.result.Found, "to_fetch", len(chosen))
	err = v.articles(ctx, chosen)
	if err == nil && v.result.Left > 0 {
		err = v.scheduled(ctx, candidates)
	}
	if ctx.Err() == nil {
		err = errors.Join(err, v.keeper.settleAll(ctx))
	}
	return err
}

// articles fetches articles, and stores them or holds their pages.
func (v *visit) articles(ctx context.Context, chosen []candidate) error {
	for i, c := range chosen {
		v.count()
		if v.judge.Stop() {
			return nil
		}
		if v.Quota != nil && !v.Quota.Take() {
			v.result.Left = int64(len(chosen) - i)
			return nil
		}
		if len(v.onceOpen) > maxHeld && !v.judge.Doubtful() && v.judge.Verdict().State == site.Open {
			if err := v.settleOpen(ctx); err != nil {
				return err
			}
		}
		err := v.article(ctx, c)
		var stop *errStop
		if c.again != "" && (err == nil || errors.As(err, &stop) && stop.state == Stopped) {
			err = errors.Join(err, v.ifOpen(ctx, func(ctx context.Context) error { return raw.Requested(ctx, v.DB, v.p.ID(), c.again) }))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// robots reads the publisher's robots.txt. If it cannot be fetched, nothing is allowed.
func (v *visit) robots(ctx context.Context) (err error) {
	v.rules, err = v.client.Robots(ctx, v.base)
	var no *polite.RobotsError
	var abandoned *polite.AbandonedError
	switch {
	case errors.As(err, &no) && no.Err == nil:
		v.answered(site.Answer{Role: site.Robots, URL: no.URL}, &web.Response{Status: no.Status}, nil)
		return &errStop{Skipped, no.Error(), code(err)}
	case errors.As(err, &no):
		v.answered(site.Answer{Role: site.Robots, URL: no.URL}, nil, no.Err)
		return &errStop{Skipped, no.Error(), code(err)}
	case errors.As(err, &abandoned) && abandoned.CrawlDelay > 0:
		return &errStop{Skipped, fmt.Sprintf("robots.txt asks for %v between two requests, more than --max-crawl-delay (%v)", abandoned.CrawlDelay, v.Polite.Longest()), code(err)}
	}
	if err == nil {
		r := v.rules
		a := site.OfRobots(answer.Response{Status: r.Status, Header: r.Header, URL: r.URL, Final: r.FinalURL, Body: r.Body})
		if a.Ends {
			v.answered(a, &web.Response{Status: r.Status}, nil)
			err = &refusedError{r.URL, r.Status, a.Verdict}
			return &errStop{Stopped, err.Error(), code(err)}
		}
	}
	return v.ended(ctx, err)
}

// article fetches, reads and stores one article. A failure of the article is not an error.
func (v *visit) article(ctx context.Context, c candidate) error {
	address := c.url.String()
	letter := ledger.DeadLetter{Job: v.Job, RunID: v.RunID, Stage: "Fetch", Input: ledger.Input{URL: address, Source: v.p.ID()}}
	ctx, end, err := v.Worker.Unit(ctx, letter.Input)
	if err != nil {
		letter.Kind = ledger.Died
		return v.failed(ctx, letter, err)
	}
	defer end()
	r, why, err := v.page(ctx, address, c.refusals > 0)
	letter.Kind, letter.Retryable = why.kind, why.retryable
	var stop *errStop
	if errors.As(err, &stop) && stop.state == Stopped {
		v.refused = &c
	}
	if stop != nil || ctx.Err() != nil {
		return err
	}
	if is, rerr := v.disallowed(ctx, err, address, c.canonical); is {
		return rerr
	}
	if err != nil {
		if is, rerr := v.sold(ctx, r, c); is || rerr != nil {
			return rerr
		}
		return v.failed(ctx, letter, err)
	}
	v.result.Fetched++
	now := v.now()
	e := raw.Evidence{Source: v.p.ID(), URL: r.FinalURL, Requested: address, ContentType: r.Header.Get("Content-Type"), FetchedAt: now, SitemapAt: c.at, News: c.news, HTML: r.Body, Header: r.Header, Truncated: r.Truncated}
	later, ended := v.more(ctx, &e)
	if ctx.Err() != nil || errors.As(ended, &stop) && stop.state == Cut {
		return ended
	}
	if later != nil { // the article is requested again in the next run
		known, err := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		switch {
		case err != nil:
			return err
		case known.State != "stored":
			e.SitemapAt = time.Time{}
		case ended != nil: // what is stored may have all pages
			return ended
		default:
			letter.Kind, letter.Retryable = "article_failed", true
			return v.failed(ctx, letter, later)
		}
	}
	said := v.saidOf(e)
	e.Rights, v.result.Said = &said, permit.Sum(v.result.Said, said.Counts())
	if err := v.keeper.save(ctx, e, letter); err != nil {
		return err
	}
	return ended
}

// more fetches the further pages of an article. ended is what ends the provider; a page that
// fails ends the article, which is kept as far as it was read. later says that the page may
// be available later.
func (v *visit) more(ctx context.Context, e *raw.Evidence) (later, ended error) {
	asked := []string{e.URL}
	page := raw.Page{URL: e.URL, HTML: e.HTML}
	for len(asked) < provider.MaxPages {
		u, err := url.Parse(page.URL)
		if err != nil {
			return nil, nil //nolint:nilerr // save reports it
		}
		next := provider.NextPage(page.HTML, u)
		if next == "" {
			return nil, nil
		}
		r, why, err := v.page(ctx, next, false)
		var stop *errStop
		switch {
		case errors.As(err, &stop) || ctx.Err() != nil:
			return err, err
		case err != nil:
			v.log.Warn("next_page_failed", "code", code(err), "url", ledger.Redact(next), "error", ledger.Redact(err.Error()))
			if why.retryable {
				later = fmt.Errorf("its page %.200s: %w", next, err)
			}
			return later, nil
		case slices.Contains(asked, r.FinalURL): // it leads back
			return nil, nil
		}
		page = raw.Page{URL: r.FinalURL, ContentType: r.Header.Get("Content-Type"), FetchedAt: v.now(), HTML: r.Body, Header: r.Header, Truncated: r.Truncated}
		e.More, asked = append(e.More, page), append(asked, page.URL)
	}
	v.limit(fmt.Sprintf("an article was read up to its page number %d: %.200s", provider.MaxPages, ledger.Redact(e.URL)))
	return nil, nil
}

// lost says of an article that could not be fetched which kind of failure it is, and
// whether it may be available later.
type lost struct {
	kind      string
	retryable bool
}

// page fetches the page of an article. before says that it was refused in an earlier run.
func (v *visit) page(ctx context.Context, address string, before bool) (*web.Response, lost, error) {
	r, wall, err := v.get(ctx, polite.Request{URL: address, Accept: acceptPage, MaxBytes: maxPage, Scope: v.within(func(u *url.URL) bool { return provider.Hosts(v.p.BaseURL(), u) })}, answer.Page)
	why := lost{kind: "article_failed"}
	var failed *web.Error
	var refused *refusedError
	ends := errors.As(err, &refused)
	// That one article is refused again says nothing about the site, unless it refused all before.
	if !ends || !before || v.before == site.Blocked {
		v.answered(site.Answer{Role: site.Known, URL: address, Verdict: wall, Ends: ends}, r, err)
	}
	switch {
	case ends:
		err = &errStop{Stopped, refused.Error(), code(err)}
	case errors.As(err, &failed):
		why = lost{string(failed.Kind), true}
	case err != nil:
	case r.Status != http.StatusOK:
		err, why = checkStatus(r.Status), lost{ofStatus(r.Status), r.Status >= 500}
	case brokenOff(r): // half an article is not stored as a whole one
		err, why = errors.New("the answer ends early"), lost{string(web.KindReset), true}
	case !isPage(r):
		err, why = fmt.Errorf("it is no page but %.60q", r.Header.Get("Content-Type")), lost{kind: "not_html"}
	case inPlace(wall):
		err, why = errors.New(shown(wall)), lost{kind: string(wall.Kind)}
	case r.FinalURL != address:
		if err = v.isArticle(address, r.FinalURL); err != nil {
			why.kind = "not_an_article"
		}
	}
	return r, why, err
}

// failed writes a dead letter for one article, if the site is open; the crawl of the others continues.
func (v *visit) failed(ctx context.Context, letter ledger.DeadLetter, err error) error {
	v.result.Failed++
	letter.Error = err.Error()
	v.log.Warn(letter.Kind, "code", codeOf(letter.Kind, err), "url", ledger.Redact(letter.Input.URL), "error", ledger.Redact(letter.Error))
	write := func(ctx context.Context) error { return v.Worker.DeadLetter(ctx, letter) }
	if letter.Kind == ledger.Died {
		return write(ctx)
	}
	return v.ifOpen(ctx, write)
}

// isArticle returns an error if the target of an address's redirects is not an article of
// this provider: publishers redirect removed articles to their homepage, and those that
// are not free to a login, which leads back to them.
func (r reader) isArticle(address, final string) error {
	from, err := url.Parse(address)
	if err != nil {
		return err
	}
	u, err := url.Parse(final)
	if err == nil {
		err = untrusted.Key(final)
	}
	if err == nil && leadsBack(u, from) {
		err = errors.New("which asks for something first, such as a login")
	}
	if err == nil && !r.p.IsArticleURL(u) {
		err = errors.New("which is not an article's address; if it is one, change articleUrl")
	}
	if err != nil {
		return fmt.Errorf("it redirects to %.200s: %w", final, err)
	}
	return nil
}

// leadsBack reports whether a parameter of a page's address is the address of another page.
func leadsBack(u, to *url.URL) bool {
	if u.Path == to.Path || strings.Trim(to.Path, "/") == "" {
		return false
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if _, path, _ := strings.Cut(value, to.Host); value != "" && (strings.HasPrefix(value, to.Path) || strings.HasPrefix(path, to.Path)) {
				return true
			}
		}
	}
	return false
}

// isPage reports whether an answer can be read as a page: HTML, XHTML, or text, because
// some servers send HTML as text.
func isPage(r *web.Response) bool {
	kind := cmp.Or(r.Header.Get("Content-Type"), http.DetectContentType(r.Body))
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	kind = strings.TrimSpace(kind)
	return strings.Contains(kind, "html") || strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "xml")
}
