package catalog

// Kind names a kind of task.
type Kind string

// The closed set of tasks.
const (
	KindFetchListPage          Kind = "FetchListPage"
	KindParseListPageHtml      Kind = "ParseListPageHtml"
	KindFetchProductDetailPage Kind = "FetchProductDetailPage"
	KindParseProductDetailHtml Kind = "ParseProductDetailHtml"
	KindSaveProduct            Kind = "SaveProduct"
)

// Task is one action of the crawler, on its own and done by one worker.
type Task interface {
	Kind() Kind
	// entry is the task that the journal keeps and that is done again when this
	// one fails: the page that has to be fetched, never its text.
	entry() entry
}

// entry is a task as the journal keeps it.
type entry struct {
	Kind    Kind
	URL     string
	Page    int  // of the list, 0 for a product
	Tries   int  // that failed before
	Fetched bool // this run has fetched it before, so it is counted
}

// task is the entry as its stage takes it.
func (e entry) task() Task {
	if e.Kind == KindFetchListPage {
		return FetchListPage{Page: e.Page, URL: e.URL, tries: e.Tries, fetched: e.Fetched}
	}
	return FetchProductDetailPage{ProductURL: e.URL, tries: e.Tries, fetched: e.Fetched}
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
	from        FetchListPage
}

// FetchProductDetailPage fetches the page of one product.
type FetchProductDetailPage struct {
	ProductURL string
	tries      int
	fetched    bool
}

// ParseProductDetailHtml makes a product of its page.
type ParseProductDetailHtml struct {
	ProductURL  string
	HTMLContent string
	from        FetchProductDetailPage
}

// SaveProduct writes a product to the database.
type SaveProduct struct {
	ProductDetail ProductDetail
	from          FetchProductDetailPage
}

// ProductDetail is what a product's page says.
type ProductDetail struct {
	URL    string
	Key    string         // unique at its site
	Fields map[string]any // by the names of the site's file: string, int64, float64, bool, value.Amount or []string
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
	return entry{Kind: KindFetchProductDetailPage, URL: t.ProductURL, Tries: t.tries, Fetched: t.fetched}
}

func (t ParseProductDetailHtml) entry() entry { return asFetched(t.from.entry()) }

func (t SaveProduct) entry() entry { return asFetched(t.from.entry()) }

func asFetched(e entry) entry {
	e.Fetched = true
	return e
}
