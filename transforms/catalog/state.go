package catalog

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/newsfork/seed-engine/io/web/polite"
)

// sharedState is what all workers of a crawl share. Requests in flight are limited by the
// web client, which all fetchers of a process share.
type sharedState struct {
	Control polite.Control
	Stats   *Stats
}

// siteControl stops one site's crawl, together with the run or alone. In both cases the
// next run resumes it.
type siteControl struct {
	polite.Control // of the run
	stopping       context.Context
	stop           context.CancelCauseFunc // stops only this site, with the reason
}

func newSiteControl(of polite.Control) *siteControl {
	s := &siteControl{Control: of}
	s.stopping, s.stop = context.WithCancelCause(of.Stopping())
	return s
}

func (s *siteControl) Stopping() context.Context { return s.stopping }

func (s *siteControl) Proceed(ctx context.Context) bool {
	return s.Control.Proceed(ctx) && s.stopping.Err() == nil
}

// cause returns the reason why only this site was stopped.
func (s *siteControl) cause() error {
	if why := context.Cause(s.stopping); !errors.Is(why, context.Canceled) { // the run's own stop has no other cause
		return why
	}
	return nil
}

// crawlingStats is a snapshot of a crawl's counters.
type crawlingStats struct {
	ListPagesFetched   int64
	ProductURLsFound   int64
	DetailPagesFetched int64
	ProductsSaved      int64
	FailedTasks        int64
	// Counts are all counters that are not 0, by their names in the report.
	Counts map[string]int64
}

// Stats has the counters of a crawl by their names in the report. At the end of a whole one product_urls_found = detail_pages_fetched +
// removed pages + failed_product_detail_fetcher, and detail_pages_fetched = products_saved + products_again + failed_product_detail_parser
// + failed_db_saver.
type Stats struct {
	mu     sync.Mutex
	counts map[string]int64
}

// Count adds to a counter.
func (s *Stats) Count(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int64{}
	}
	s.counts[name] += n
}

// fail counts a failed task, in total and under the count of its stage.
func (s *Stats) fail(count string) {
	s.Count("failed_tasks", 1)
	s.Count(count, 1)
}

// snapshot reads the counters.
func (s *Stats) snapshot() crawlingStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := maps.Clone(s.counts)
	maps.DeleteFunc(c, func(_ string, n int64) bool { return n == 0 })
	return crawlingStats{c["list_pages_fetched"], c["product_urls_found"], c["detail_pages_fetched"], c["products_saved"], c["failed_tasks"], c}
}

// saved counts saved products.
func (s *Stats) saved(o outcome) {
	s.Count("products_saved", int64(o.saved))
	s.Count("products_new", int64(o.added))
	s.Count("products_changed", int64(o.changed))
	s.Count("products_unchanged", int64(o.unchanged))
	s.Count("products_again", int64(o.again))
	s.Count("products_back", int64(o.back))
}

// Kinds of warnings; their source is the site. The first two are of one field.
const (
	neverMatched = "field_never_matched"
	unreadable   = "field_unreadable"
	collided     = "keys_collided"
	listShrunk   = "list_shrunk"
	listShorter  = "list_shorter"
	untagged     = "products_untagged"
	listLimit    = "list_limited"
	listTotal    = "list_total"
	listUnread   = "list_page_unread"
	pageShort    = "list_page_short"
	detailUnread = "product_page_unread"
)

// Warnings returns the texts of alerts for the job's kinds of warnings.
func Warnings() map[string]string {
	return map[string]string{
		neverMatched: "field {field} is on none of the pages; is its selector right?",
		unreadable:   "field {field} cannot be read on {n} pages; the dead letters of kind unreadable_field say why",
		collided:     "{n} pages have the key of another page with other values; the dead letters of kind key_collision name them",
		listShrunk:   "its list has lost all of its pages but one, so no product was marked as gone; is all of it read? If they are gone indeed, a run with --force marks them",
		listLimit:    "its list has more pages than are read, so products may be missing, and none is marked as gone because the list does not name it: let list.pages in its file be larger (if it is meant so, the next runs do not say it again), or let last_page, total, next_link or until_empty say where the list ends",
		listTotal:    "its list states a number of products that differs by {n} from the products found in it: is all of the list read (list.pages, list.product_link), and does list.total find the right number?",
		listShorter:  "its list names a tenth fewer products than are stored, or less; the pages of the missing ones were requested, and those that show their products stay",
		listUnread:   "{n} pages of its list could not be read, so products may be missing, and a missing one is gone only if its own page does not exist in two crawls; their dead letters say why",
		pageShort:    "its list's first page has fewer products than list.page_size says, and more follow, so products between the pages are left out, and none that is missing was marked as gone: let page_size be the number that a page has",
		detailUnread: "{n} pages to which its list leads could not be read, and any of them may be that of a product that the list seems to name no more, so a missing one is gone only if its own page does not exist in two crawls; their dead letters say why",
		untagged:     "{n} products have no new tags, because the model gave no answer that can be used; the run's log says why (tagging_failed)",
	}
}

// Counts of sites.
const (
	SitesCrawled = "sites"
	SitesFailed  = "sites_failed" // sites that were not crawled to their end
	SitesHeld    = "sites_held"   // of them, those whose pages can no longer be read as their files say
)

// Kind names a kind of task.
type Kind string

// All kinds of tasks.
const (
	KindFetchListPage          Kind = "FetchListPage"
	KindParseListPageHtml      Kind = "ParseListPageHtml"
	KindFetchProductDetailPage Kind = "FetchProductDetailPage"
	KindParseProductDetailHtml Kind = "ParseProductDetailHtml"
	KindSaveProduct            Kind = "SaveProduct"
)

// Task is one action of the crawler, which one worker does.
type Task interface {
	Kind() Kind
	// stored returns the task as the journal stores it, for another try after a failure:
	// the page to fetch, never its text.
	stored() entry
}

// entry is a task as the journal stores it.
type entry struct {
	Kind    Kind
	URL     string
	Page    int    // of the list, 0 for a product
	Tries   int    // number of failed tries
	Fetched bool   // this run has fetched it before, so it is counted already
	Row     string // of a product: what its row of the list says, see rowValues
	Asked   string // key of a stored product that the list does not name, see askMissing
	Known   bool   // a stored product has this address
	Skip    bool   // its page is not fetched, see Config.Details
}

func (e entry) stored() entry { return e }

// task returns the task of an entry.
func (e entry) task() Task {
	if e.Kind == KindFetchListPage {
		return fetchListPage{e}
	}
	return FetchProductDetailPage{e}
}

// asFetched returns the entry of the tasks that follow from its page.
func (e entry) asFetched() entry {
	e.Fetched = true
	return e
}

// fetchListPage fetches one page of the product list.
type fetchListPage struct{ entry }

// ParseListPageHtml finds the product URLs on a list page.
type ParseListPageHtml struct {
	entry
	fetched
}

// FetchProductDetailPage fetches the page of one product.
type FetchProductDetailPage struct{ entry }

// ParseProductDetailHtml makes a product of its page.
type ParseProductDetailHtml struct {
	entry
	fetched
}

// SaveProduct writes a product to the database.
type SaveProduct struct {
	entry
	ProductDetail ProductDetail
}

// ProductDetail is what was read from a product's page.
type ProductDetail struct {
	URL    string
	Key    string         // unique at its site
	Fields map[string]any // by the names of the site's file: string, int64, float64, bool, value.Amount, []string or, of a row, JSON
	lacks  []lack         // fields that the page does not have
}

func (fetchListPage) Kind() Kind          { return KindFetchListPage }
func (ParseListPageHtml) Kind() Kind      { return KindParseListPageHtml }
func (FetchProductDetailPage) Kind() Kind { return KindFetchProductDetailPage }
func (ParseProductDetailHtml) Kind() Kind { return KindParseProductDetailHtml }
func (SaveProduct) Kind() Kind            { return KindSaveProduct }
