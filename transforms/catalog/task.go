package catalog

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
