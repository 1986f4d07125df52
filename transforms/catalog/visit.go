package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// maxInFlight is how long requests in flight may last after a stop, so that the process
// ends within two seconds even on a busy machine.
const maxInFlight = time.Second

// visit is one site's crawl.
type visit struct {
	cfg     Config
	w       *lane.Worker
	log     *slog.Logger
	clock   func() time.Time
	reader  *reader
	journal *rows
	state   *sharedState
	control *siteControl // state.Control
	client  *polite.Client
	quota   lane.Quota
	header  http.Header // of each request, robots.txt apart

	tagging
	rendering
	listing
	known   streak
	ended   streak       // the list's pages, by whether they have products that no earlier page has
	stale   atomic.Int64 // list pages in a row without a product that is new to the crawl
	unread  atomic.Int64 // pages of listed products that could not be read and are of no stored one
	partial atomic.Bool  // the crawl does not see all products; see rows.markPartial
	short   atomic.Bool  // the first list page has far fewer products than list.page_size
	layout  *layout
	limited atomic.Bool        // the list has more pages than are read
	count   func(ledger.Tally) // adds to the lane's counts

	parallel bool // the host has no pause between requests: its pages are fetched in parallel

	learning sync.Mutex   // of reader.visits
	judging  sync.Mutex   // of judge and held
	came     atomic.Int64 // how many answers came
	judge    *judging.Judge
	held     []held
	listless atomic.Bool // the first list page could not be read

	mu     sync.Mutex
	noList error // why the first list page could not be read
}

// listing is what is known of the list.
type listing struct {
	lastPage atomic.Int64
	passed   sync.Map // see passOver: pages by what they have, and numbers of pages
	seed     maphash.Seed

	mu     sync.Mutex
	totals [2]int          // the smallest and the largest number of products that the list states; 0: none
	listed map[uint64]bool // hashes of the product addresses that this process found in the list
}

func newVisit(cfg Config, w *lane.Worker, d *db.DB, s Site, stats *Stats) (*visit, error) {
	r, err := s.compile()
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", s.Name, err)
	}
	v := &visit{cfg: cfg, w: w, log: w.Log.With("site", s.Name), clock: time.Now, reader: r, journal: &rows{db: d, site: s.Name},
		control: newSiteControl(w), layout: &layout{}, count: w.Count, known: streak{first: r.firstPage(), want: cfg.StopAfterKnown},
		ended: streak{first: r.firstPage(), want: maxStale}, judge: judging.Begin(judging.About{}),
		quota: w.Quota(slices.Index(cfg.Order, s.Name), len(cfg.Order))}
	if v.tagger, err = cfg.Tagging.newTagger(); err != nil {
		return nil, fmt.Errorf("tagging: %w", err)
	}
	v.seed, v.listed = maphash.MakeSeed(), map[uint64]bool{}
	v.state, v.client = &sharedState{Control: v.control, Stats: stats}, v.newClient()
	if r.last == nil && !r.bounded() {
		v.raiseLast(r.firstPage() + r.pages() - 1)
	}
	return v, nil
}

// run crawls the site from its first page, or resumes an interrupted crawl.
func (v *visit) run(ctx context.Context) error {
	// Another run may hold the site: then it waits.
	within, release, err := v.w.Lease(ctx, lease.InDB(v.journal.db), cmp.Or(v.cfg.LeaseTTL, DefaultLeaseTTL), false, Job+"/"+v.reader.site.Name)
	if err != nil || within == nil {
		return err
	}
	defer release()
	defer v.client.Close()
	if v.quota.Empty() { // then nothing is requested
		v.state.Stats.Count(ledger.LeftByLimit, 1)
		return nil
	}
	if v.tagger != nil {
		defer v.tagger.Close()
	}
	ctx, cut := context.WithCancel(within)
	defer cut()
	defer v.control.stop(nil)
	defer context.AfterFunc(v.control.Stopping(), func() { time.AfterFunc(maxInFlight, cut) })()
	if v.header, err = v.reader.header(); err != nil {
		return err
	}
	endBrowser, err := v.startBrowser(ctx)
	if err != nil {
		return err
	}
	defer endBrowser()
	if err := v.beginJudging(ctx); err != nil {
		return err
	}
	if err := v.readRobots(ctx); err != nil {
		if errors.Is(err, errStopped) {
			return nil
		}
		return errors.Join(err, v.withoutRobots(ctx, err))
	}
	resumed, pending, err := v.journal.begin(ctx, v.seeds(), v.reader.listHash(), v.clock(), v.cfg.Restart)
	if err != nil {
		return err
	}
	if v.cfg.StopAfterKnown > 0 {
		if err := v.journal.markPartial(ctx, listLimited); err != nil {
			return err
		}
	}
	v.state.Stats.Count("product_urls_found", pending)
	v.log.Info("crawl_start", "resumed", resumed, "products_taken_over", pending)
	complete, err := v.work(ctx)
	if err == nil && complete {
		complete, err = v.askMissing(ctx, v.seeds())
	}
	if err != nil {
		return err
	}
	if complete || errors.Is(v.control.cause(), errNotOpen) {
		err = v.conclude(ctx, complete)
	}
	if !complete && v.quota.Empty() {
		left, err := v.journal.left(ctx)
		if err != nil {
			return err
		}
		v.state.Stats.Count(ledger.LeftByLimit, left)
	}
	v.warn(untagged, "", int(v.state.Stats.snapshot().Counts["products_untagged"]))
	v.log.Info("crawl_end", "complete", complete, "counts", v.state.Stats.snapshot().Counts)
	if cause := v.control.cause(); !errors.Is(cause, errNotOpen) {
		err = errors.Join(err, cause)
	}
	return err
}

// plan returns the stages of a site's crawl. A new stage needs its own file and a line
// here. It may wrap the work of an earlier stage, which then leads to it
// (TestAddingAStage).
func (v *visit) plan() []*stage {
	all := []*stage{
		v.listPageFetcher(),
		v.listPageParser(),
		v.productDetailFetcher(),
		v.productDetailParser(),
		v.productTagger(), // nil without --tag-url
		v.imageFetcher(),  // nil without --images
		v.dbSaver(),
	}
	return slices.DeleteFunc(all, func(s *stage) bool { return s == nil })
}

// work does the tasks of the journal, and reports whether all are done.
func (v *visit) work(ctx context.Context) (complete bool, err error) {
	e := newEngine(v.plan(), v.cfg.QueueLength, v.state, v.journal)
	e.deadLetter, e.now = v.deadLetter, v.clock
	e.unit = func(ctx context.Context, of entry) (context.Context, func(), error) {
		return v.w.Unit(ctx, v.deadLetterOf(of).Input)
	}
	e.backoff = func(tries int) time.Duration { // called once before each retry
		v.w.Web.Retried()
		return v.backoff(tries)
	}
	return e.run(ctx)
}

// askMissing requests the own pages of the products that the list does not name. A list that
// seems to have lost most of its products is read a second time before.
func (v *visit) askMissing(ctx context.Context, seeds []entry) (complete bool, err error) {
	n, again, err := v.journal.askMissing(ctx, v.reader, v.cfg.Restart, seeds)
	switch {
	case err != nil, n == 0 && !again:
		return err == nil, err
	case n > 0:
		v.log.Info("missing_products_requested", "count", n)
		v.state.Stats.Count("product_urls_found", int64(n))
		return v.work(ctx)
	}
	v.log.Info("list_read_again")
	v.held = slices.DeleteFunc(v.held, func(h held) bool { return h.Kind == KindFetchListPage })
	v.totals = [2]int{}
	v.stale.Store(0)
	v.ended.reset()
	clear(v.listed)
	if v.reader.last != nil || v.reader.bounded() {
		v.lastPage.Store(0)
	}
	if complete, err = v.work(ctx); err != nil || !complete {
		return complete, err
	}
	return v.askMissing(ctx, nil)
}

// close ends a crawl that read its list to the end. One without products is an error.
func (v *visit) close(ctx context.Context) error {
	c, err := v.journal.close(ctx, v.reader, v.clock(), v.cfg.Lane.RunID, v.cfg.Restart)
	if err != nil {
		return err
	}
	v.state.Stats.Count("products_gone", c.gone)
	v.state.Stats.Count("products_missing", c.notFound)
	if c.shrunk {
		v.log.Warn("list_shrunk", "reason", "the list has lost all pages but one; none was marked as gone")
		v.warn(listShrunk, "", 1)
	}
	if c.shorter {
		v.log.Warn("list_shorter", "reason", "the list has lost more than a tenth of the products")
		v.warn(listShorter, "", 1)
	}
	if c.how == listWhole {
		v.checkTotal(int(c.named))
	}
	if c.kept > 0 {
		v.log.Info("missing_products_kept", "count", c.kept)
		v.warn(detailUnread, "", int(v.unread.Load()))
	}
	for _, field := range v.layout.never() {
		v.log.Warn("field_never_matched", "field", field)
		v.warn(neverMatched, field, 1)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case c.allAbsent():
		return &failure{kind: "layout_break", final: true, err: fmt.Errorf("none of the %d product pages to which its list leads exists; %s", c.listed, whereMoved)}
	case v.noList != nil:
		return &failure{kind: "no_list", err: fmt.Errorf("its first list page cannot be read: %w", v.noList)}
	case c.listed == 0:
		return &failure{kind: "no_products", err: errors.New("no page of the list leads to a product: is list.product_link right? Pages that could not be read are dead letters")}
	}
	return nil
}

// listsEnough reports whether no more list pages need to be read, because the products found so far use up the run's limit.
func (v *visit) listsEnough() bool {
	limit := int64(v.cfg.Lane.Limit)
	return v.quota.Empty() || limit > 0 && v.state.Stats.snapshot().ProductURLsFound >= limit
}

// warn counts a warning about the site, or about a field if field is not "".
func (v *visit) warn(kind, field string, n int) {
	if n == 0 {
		return
	}
	var t ledger.Tally
	t.Warn(kind, v.reader.site.Name, field, int64(n))
	v.count(t)
}

// deadLetterOf makes the dead letter of a task: what is needed to do it again, never the page's text.
func (v *visit) deadLetterOf(e entry) ledger.DeadLetter {
	d := ledger.DeadLetter{Job: Job, RunID: v.cfg.Lane.RunID, Input: ledger.Input{Source: v.reader.site.Name, URL: e.URL}}
	if e.Kind == KindFetchListPage {
		d.Input.Index = &e.Page
	}
	return d
}

// notThere are the failures of a product's page that say that no product is to be found there, or
// which one is.
var notThere = map[string]bool{"http_404": true, "http_410": true, "robots_disallowed": true, string(web.KindBlocked): true, string(web.KindRedirect): true, "key_collision": true}

// deadLetter implements engine's: a failure that may be the whole site's is held.
func (v *visit) deadLetter(ctx context.Context, e entry, stage string, f *failure) error {
	if e.Kind == KindFetchListPage {
		if err := v.listUnread(ctx, e); err != nil {
			return err
		}
	}
	if f.answer == nil {
		return v.letter(ctx, e, stage, f)
	}
	v.log.Warn("task_failed", "stage", stage, "kind", f.kind, "url", e.URL, "tries", e.Tries, "error", ledger.Redact(f.Error()))
	v.judging.Lock()
	v.held = append(v.held, held{e, stage, f})
	v.judging.Unlock()
	v.answered(ctx, e, *f.answer)
	return errHeld
}

// letter writes a dead letter for a task that is not tried again.
func (v *visit) letter(ctx context.Context, e entry, stage string, f *failure) error {
	d := v.deadLetterOf(e)
	d.Stage, d.Kind, d.Retryable, d.Error = stage, f.kind, !f.final, f.Error()
	switch {
	case e.Kind == KindFetchListPage && e.Page == v.reader.firstPage():
		v.mu.Lock()
		v.noList = fmt.Errorf("%s: %w", e.URL, f)
		v.mu.Unlock()
	case e.Kind == KindFetchListPage:
		v.warn(listUnread, "", 1)
	}
	if e.Kind == KindFetchProductDetailPage && e.Asked == "" && !notThere[f.kind] {
		unknown, err := v.journal.markUnread(ctx, e.URL)
		if err != nil {
			return err
		}
		if unknown {
			v.unread.Add(1)
		}
	}
	if f.answer == nil {
		v.log.Warn("task_failed", "stage", stage, "kind", f.kind, "url", e.URL, "tries", e.Tries, "error", ledger.Redact(f.Error()))
	}
	return v.w.DeadLetter(ctx, d)
}

// listUnread records that a list page could not be read. Without the first one, some stored products show whether
// the site is there.
func (v *visit) listUnread(ctx context.Context, e entry) error {
	how := listFaulty
	if e.Page == v.reader.firstPage() {
		v.listless.Store(true)
		if v.reader.site.Detail.Format != formatNone {
			tasks, err := v.journal.some(ctx, maxAsked)
			if err == nil {
				err = v.journal.add(ctx, tasks)
			}
			if err != nil {
				return fmt.Errorf("choosing products of %s: %w", v.journal.site, err)
			}
		}
		how = listLimited
	}
	if v.inOrder() { // it cannot lead to the next one
		if err := v.journal.add(ctx, v.reader.numberedPages(e.Page+1, min(e.Page+1, int(v.lastPage.Load())))); err != nil {
			return err
		}
	}
	return v.journal.markPartial(ctx, how)
}

// resolve removes the dead letter of a task that succeeded.
func (v *visit) resolve(ctx context.Context, e entry) {
	if err := v.w.Resolve(ctx, v.deadLetterOf(e)); err != nil && ctx.Err() == nil {
		v.log.Warn("dead_letter_stays", "url", e.URL, "error", ledger.Redact(err.Error()))
	}
}

// maxTabs is how many pages of a site are rendered at the same time.
const maxTabs = 2

// rendering is a visit's browser, for a site whose pages only scripts make.
type rendering struct {
	browser *browser.Browser
	tabs    chan struct{}
}

// Renders reports whether a browser renders pages of the site.
func (s Site) Renders() bool { return s.List.Rendering || s.Detail.Rendering }

// startBrowser starts the browser of a site that needs one.
func (v *visit) startBrowser(ctx context.Context) (end func(), err error) {
	if !v.reader.site.Renders() {
		return func() {}, nil
	}
	v.tabs = make(chan struct{}, maxTabs)
	v.browser, err = browser.Start(ctx, browser.Config{Unsandboxed: v.cfg.UnsandboxedBrowser, UserAgent: v.client.Agent(v.reader.base),
		MaxPage: maxPage, Log: v.log, Part: v.pagePart})
	if err != nil {
		return nil, fmt.Errorf("rendering pages of %s: %w", v.reader.site.Name, err)
	}
	return v.browser.Close, nil
}

// keyWaits is how long a page may take until it shows what it is for. It is rendered once more if it does not.
var keyWaits = [...]time.Duration{3 * time.Second, 15 * time.Second}

// render returns a page's HTML after its scripts have run, and it shows what it is for, such as the key of a product.
func (v *visit) render(ctx context.Context, at, text string, shows func(at, text string) bool) (rendered string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", fmt.Errorf("parsing the page's address: %w", err)
	}
	select {
	case v.tabs <- struct{}{}:
		defer func() { <-v.tabs }()
	case <-v.control.Stopping().Done():
		return "", errStopped
	case <-ctx.Done():
		return "", errStopped
	}
	shown := false
	for i := 0; i < len(keyWaits) && err == nil && !shown; i++ {
		rendered, err = v.browser.Render(ctx, u, []byte(text), "text/html; charset=utf-8", browser.Until{For: keyWaits[i], Shown: func(html string) bool {
			shown = shows(at, html)
			return shown
		}})
	}
	var failed *failure
	switch {
	case err == nil:
		return rendered, nil
	case errors.As(err, &failed):
		return "", failed
	case ctx.Err() != nil, errors.Is(err, errStopped):
		return "", errStopped
	}
	return "", &failure{kind: "rendering_failed", err: err}
}

// showsProducts reports whether a list page has products.
func (r *reader) showsProducts(at, text string) bool {
	list, err := r.readList(at, text)
	return err == nil && list.count > 0
}

// showsKey reports whether a product's page has its key or, if that is in the list, any field.
func (r *reader) showsKey(at, text string) bool {
	p, base, err := open(at, text, formatHTML)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(r.fields, func(f fieldReader) bool {
		if f.From == fromRow || f.name != r.site.Key && r.site.Fields[r.site.Key].From != fromRow {
			return false
		}
		v, err := f.read(f.source(p), base)
		return err == nil && v != nil
	})
}

// pagePart answers a page's request for a script or data of the site's own host. A page
// whose request fails but may succeed later is fetched again: it would lack fields.
func (v *visit) pagePart(ctx context.Context, page, u *url.URL) (answer browser.Asset, refused bool, err error) {
	if u.Scheme != page.Scheme || !sameHost(u, v.reader.base) {
		return browser.Asset{}, true, nil
	}
	resp, err := v.get(ctx, polite.Request{URL: u.String(), Accept: "*/*", Header: v.header, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: maxRedirects, Once: true, Scope: v.scope})
	if err == nil && resp.Status/100 != 2 {
		err = badStatus("it", resp)
	}
	var f *failure
	switch {
	case errors.As(err, &f) && !f.final:
		return answer, true, &failure{kind: f.kind, err: fmt.Errorf("its scripts need %s: %w", ledger.Redact(u.String()), f.err)}
	case f == nil && err != nil:
		return answer, true, err
	case err != nil, resp.Truncated:
		return answer, true, nil // the page works without it, as in a reader's browser
	}
	return browser.Asset{Status: resp.Status, Kind: resp.Header.Get("Content-Type"), Body: resp.Body}, false, nil
}
