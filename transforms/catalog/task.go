package catalog

import "github.com/newsfork/seed-engine/transforms/parse/answer"

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
	// entry returns the task as the journal stores it, for another try after a failure:
	// the page to fetch, never its text.
	entry() entry
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

// task returns the task of an entry.
func (e entry) task() Task {
	if e.Kind == KindFetchListPage {
		return FetchListPage{Page: e.Page, URL: e.URL, tries: e.Tries, fetched: e.Fetched}
	}
	return FetchProductDetailPage{ProductURL: e.URL, tries: e.Tries, fetched: e.Fetched, row: e.Row, asked: e.Asked, known: e.Known}
}

// FetchListPage fetches one page of the product list.
type FetchListPage struct {
	Page    int
	URL     string // of that page
	tries   int
	fetched bool
}

// ParseListPageHtml finds the product URLs on a list page.
type ParseListPageHtml struct {
	Page        int
	HTMLContent string
	at          string // where the page was found, after redirects
	verdict     func() answer.Verdict
	from        FetchListPage
}

// FetchProductDetailPage fetches the page of one product.
type FetchProductDetailPage struct {
	ProductURL string
	tries      int
	fetched    bool
	row        string
	asked      string // key of the product that should be there, if the list does not name the page
	known      bool   // a stored product has this address
}

// ParseProductDetailHtml makes a product of its page.
type ParseProductDetailHtml struct {
	ProductURL  string
	HTMLContent string
	at          string // where the page was found, after redirects
	verdict     func() answer.Verdict
	from        FetchProductDetailPage
}

// SaveProduct writes a product to the database.
type SaveProduct struct {
	ProductDetail ProductDetail
	from          FetchProductDetailPage
}

// ProductDetail is what was read from a product's page.
type ProductDetail struct {
	URL    string
	Key    string         // unique at its site
	Fields map[string]any // by the names of the site's file: string, int64, float64, bool, value.Amount, []string or, of a row, JSON
	lacks  []lack         // fields that the page does not have
}

func (FetchListPage) Kind() Kind          { return KindFetchListPage }
func (ParseListPageHtml) Kind() Kind      { return KindParseListPageHtml }
func (FetchProductDetailPage) Kind() Kind { return KindFetchProductDetailPage }
func (ParseProductDetailHtml) Kind() Kind { return KindParseProductDetailHtml }
func (SaveProduct) Kind() Kind            { return KindSaveProduct }

func (t FetchListPage) entry() entry {
	return entry{Kind: KindFetchListPage, URL: t.URL, Page: t.Page, Tries: t.tries, Fetched: t.fetched}
}

func (t ParseListPageHtml) entry() entry { return asFetched(t.from.entry()) }

func (t FetchProductDetailPage) entry() entry {
	return entry{Kind: KindFetchProductDetailPage, URL: t.ProductURL, Tries: t.tries, Fetched: t.fetched, Row: t.row, Asked: t.asked, Known: t.known}
}

func (t ParseProductDetailHtml) entry() entry { return asFetched(t.from.entry()) }

func (t SaveProduct) entry() entry { return asFetched(t.from.entry()) }

func asFetched(e entry) entry {
	e.Fetched = true
	return e
}
