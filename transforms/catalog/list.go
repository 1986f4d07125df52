package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync"

	"github.com/newsfork/seed-engine/transforms/parse/budget"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// listPageFetcher fetches list pages: fetchListPage → ParseListPageHtml.
func (v *visit) listPageFetcher() *stage {
	return &stage{name: "ListPageFetcher", fails: "failed_list_page_fetcher", input: KindFetchListPage, size: v.cfg.ListFetchers, commit: v.journal.commitSkipped,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(fetchListPage)
			if v.known.past(t.Page) || v.ended.past(t.Page) {
				return nil, nil
			}
			if v.listsEnough() {
				return nil, errLeft
			}
			got, err := v.fetchList(ctx, t.entry)
			if err != nil && v.reader.site.List.UntilEmpty && t.Page > v.reader.firstPage() && removed(err) {
				return nil, nil // where other sites show a page without products
			}
			if err != nil {
				return nil, err
			}
			if !t.Fetched {
				v.state.Stats.Count("list_pages_fetched", 1)
			}
			return []Task{ParseListPageHtml{t.asFetched(), got}}, nil
		}}
}

// fetchList fetches a list page.
func (v *visit) fetchList(ctx context.Context, e entry) (fetched, error) {
	at, body := v.reader.listRequest(e.URL, e.Page)
	got, err := v.fetch(ctx, at, body, v.reader.site.List.Format)
	if err == nil && v.reader.site.List.Rendering {
		got.HTMLContent, err = v.render(ctx, got.at, got.HTMLContent, v.reader.showsProducts)
	}
	return got, err
}

// commitSkipped ends the list pages that are not read: the list has ended before them, or they
// do not exist.
func (j *rows) commitSkipped(ctx context.Context, results []result) error {
	for _, r := range results {
		if r.err == nil && len(r.found) == 0 {
			return j.end(ctx, r.task.stored())
		}
	}
	return nil
}

// maxParseBatch is how many list pages a parser puts into one transaction.
const maxParseBatch = 16

// listPageParser finds the products on list pages:
// ParseListPageHtml → FetchProductDetailPage, one for each of them.
func (v *visit) listPageParser() *stage {
	return &stage{name: "ListPageParser", fails: "failed_list_page_parser", input: KindParseListPageHtml, size: v.cfg.ListParsers, batch: maxParseBatch, commit: v.commitLists,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(ParseListPageHtml)
			end, err := budget.Begin(ctx, len(t.HTMLContent))
			if err != nil {
				return nil, err
			}
			defer end()
			p, err := v.parseList(ctx, t)
			if err != nil {
				return nil, err
			}
			v.answered(ctx, t.stored(), judging.Answer{Status: http.StatusOK, Nth: t.nth})
			if p.foreign > 0 {
				v.log.Warn("links_left_out", "url", t.URL, "count", p.foreign, "reason", "of another host, or not http")
			}
			if t.Page != v.reader.firstPage() && len(p.children) > 0 {
				v.log.Warn("links_left_out", "url", t.URL, "count", len(p.children), "reason", "sitemaps of an index to which an index leads")
			}
			v.stated(p)
			if err := v.observeRows(t.URL, p); err != nil {
				return nil, err
			}
			var found []Task
			for _, link := range p.products {
				found = append(found, entry{Kind: KindFetchProductDetailPage, URL: link, Row: p.rows[link]}.task())
			}
			v.passOver(t.Page, &p)
			if len(found) == 0 && len(p.children) == 0 && p.left == "" {
				// A list page without products is the end of the list, or it is no longer a list page.
				v.log.Warn("list_page_without_products", "url", t.URL)
				if t.Page == v.reader.firstPage() {
					return nil, &failure{kind: "no_products", final: true, err: v.reader.noProducts(p)}
				}
			}
			past := v.reader.pastLimit(t.Page, p)
			if past && v.limited.CompareAndSwap(false, true) && (v.reader.site.List.Pages == 0 || !v.journal.limited) {
				v.warn(listLimit, "", 1)
			}
			if past || v.reader.leavesMore(t.Page, p) || p.cut || p.keyless > 0 {
				v.partial.Store(true)
			}
			if v.leavesOut(t.Page, p) {
				v.log.Warn("list_page_short", "url", t.URL, "page_size", v.reader.site.List.PageSize, "reason", "the first page of the list has fewer products, and is not the last, so products between the pages are left out")
				v.warn(pageShort, "", 1)
				v.partial.Store(true)
			}
			for _, e := range v.more(t.Page, p) {
				found = append(found, e.task())
			}
			return found, nil
		}}
}

// parseList reads a list page. It fails if the site shows something else in its place, which is not the end of the list.
func (v *visit) parseList(ctx context.Context, t ParseListPageHtml) (listPage, error) {
	p, err := v.readList(ctx, t)
	var unread *failure
	if errors.As(err, &unread) || errors.Is(err, errStopped) {
		return p, err
	}
	if err != nil || len(p.products)+len(p.children)+p.keyless+p.foreign == 0 && p.left == "" && !p.none {
		later := v.reader.site.List.UntilEmpty && t.Page > v.reader.firstPage()
		if f := wall(t.verdict()); f != nil && (!later || !removed(f)) {
			f.kind = "no_products"
			return p, f
		}
	}
	if err != nil {
		return p, &failure{kind: "parse_failed", final: true, err: err}
	}
	return p, nil
}

// passOver records a page whose products the site's file leaves out, which is not the end of
// the list, unless an earlier page had the same ones.
func (l *listing) passOver(page int, p *listPage) {
	if p.left == "" {
		return
	}
	sum := sha256.Sum256([]byte(p.left))
	if of, had := l.passed.LoadOrStore(sum, page); had && of != page {
		p.left = ""
		return
	}
	l.passed.Store(page, true)
}

// leavesOut reports whether the steps from page to page are larger than the pages: the first has at most three quarters of list.page_size,
// and more follow.
func (v *visit) leavesOut(page int, p listPage) bool {
	l, first := v.reader.site.List, v.reader.firstPage()
	switch {
	case l.PageSize == 0 || page > first+1:
		return false
	case page == first:
		short := p.count > 0 && 4*p.count <= 3*l.PageSize
		v.short.Store(short)
		return short && v.reader.bounded() && p.last > first
	}
	return len(p.products) > 0 && !v.reader.bounded() && v.reader.offset && v.short.Load()
}

// observeRows watches for rows without the key, where the rows are all that there is.
func (v *visit) observeRows(at string, p listPage) error {
	if v.reader.site.Detail.Format != formatNone {
		return nil
	}
	for i := range len(p.products) + p.keyless {
		seen := observation{aspect: aspectKey, has: i < len(p.products), expected: true, url: at, why: "a row has no value for " + v.reader.site.Key}
		if broken := v.layout.observe(seen); broken != nil {
			return v.stopSite(broken)
		}
	}
	if p.keyless > 0 {
		v.log.Warn("rows_without_key", "url", at, "count", p.keyless)
	}
	return nil
}

// noProducts says why the first list page has no product.
func (r *reader) noProducts(p listPage) error {
	l := r.site.List
	switch {
	case p.keyless > 0:
		return fmt.Errorf("%w %s: none of the %d rows of the first list page has it", errNoKey, r.site.Key, p.keyless)
	case l.Format == formatSitemap:
		return errors.New("the sitemap has no address of a product (list.product_link.regexp)")
	case r.rows != nil && p.foreign == 0:
		return fmt.Errorf("the first list page has no row (list.rows: %s)", l.Rows)
	}
	return fmt.Errorf("the first list page has no product link (%s)", l.ProductLink)
}

// more returns the list pages that follow from a list page.
func (v *visit) more(page int, p listPage) []entry {
	r := v.reader
	switch {
	case v.known.past(page + 1), r.site.List.UntilEmpty && len(p.products) == 0 && p.left == "":
		return nil
	case r.site.List.Format == formatSitemap:
		if page != r.firstPage() { // an index does not lead to another
			return nil
		}
		var all []entry
		for i, at := range p.children[:min(len(p.children), r.pages()-1)] {
			all = append(all, entry{Kind: KindFetchListPage, URL: at, Page: page + 1 + i})
		}
		return all
	case r.next != nil || r.cursor != nil:
		return r.following(page, p)
	case r.site.List.UntilEmpty:
		end := r.end()
		if p.last > 0 {
			end = p.last
		}
		return r.numberedPages(page+1, min(page+1, end))
	case v.inOrder():
		v.raiseLast(p.last)
		return r.numberedPages(page+1, min(page+1, int(v.lastPage.Load())))
	case r.last != nil || r.total != nil:
		// The number of the last page may grow while the list is read.
		return r.numberedPages(v.raiseLast(p.last), p.last)
	}
	return nil
}

// inOrder reports whether numbered pages are read one after the other. Only then can the
// list end at a page without new products before later pages are requested.
func (v *visit) inOrder() bool { return v.cfg.StopAfterKnown > 0 && v.reader.numbered }

// seeds returns the list pages with which a crawl begins.
func (v *visit) seeds() []entry {
	all := v.reader.seeds()
	if v.inOrder() {
		return all[:1]
	}
	return all
}

// commitLists writes the tasks that follow from list pages to the journal, and keeps in
// the results only the products that no earlier page had.
func (v *visit) commitLists(ctx context.Context, results []result) error {
	pages := v.listResults(results)
	if len(pages) == 0 {
		return nil
	}
	if v.partial.CompareAndSwap(true, false) {
		if err := v.journal.markPartial(ctx, listLimited); err != nil {
			return err
		}
	}
	fresh, known, loops, err := v.journal.endLists(ctx, pages, v.reader.skips(v.cfg.Details))
	if err != nil {
		return err
	}
	for _, url := range loops {
		v.log.Warn("list_loops", "url", url, "reason", "it leads to a page that this crawl has read, or three pages in a row have only products of earlier pages; the list has ended")
	}
	for _, p := range pages {
		if p.stale && p.numbered {
			v.log.Warn("list_page_repeated", "url", p.from.URL, "reason", "it has only products of other pages; unless the list ends there, products may be missing")
		}
		kept := p.result.found[:0]
		news := 0
		for i, t := range p.result.found {
			e := p.found[i]
			if e.Kind == KindFetchListPage {
				kept = append(kept, t) // makes the engine read the journal
				continue
			}
			skip, had := known[e.URL]
			if e.Known = had; !had {
				news++
			}
			if fresh[e.URL] && !skip {
				delete(fresh, e.URL) // two pages of this batch may have it
				kept = append(kept, e.task())
				v.state.Stats.Count("product_urls_found", 1)
			}
		}
		p.result.found = kept
		v.resolve(ctx, p.from)
		if v.cfg.StopAfterKnown > 0 && v.known.page(p.from.Page, news > 0) {
			v.log.Info("listing_stopped", "page", p.from.Page, "reason", fmt.Sprintf("%d pages without a new product", v.cfg.StopAfterKnown))
		}
	}
	return nil
}

// listResults are the pages that were read. A page with products of earlier pages only may end the list.
func (v *visit) listResults(results []result) (pages []listResult) {
	for i := range results {
		r := &results[i]
		if r.err != nil {
			continue
		}
		chain := v.reader.next != nil || v.reader.cursor != nil
		l := listResult{from: r.task.stored(), result: r, inOrder: chain || v.reader.site.List.UntilEmpty}
		_, passed := v.passed.Load(l.from.Page)
		l.numbered = v.reader.numbered && !v.reader.site.List.UntilEmpty && !passed
		l.rowsOnly = v.reader.site.Detail.Format == formatNone
		for _, t := range r.found {
			l.found = append(l.found, t.stored())
		}
		l.stale = v.hadAll(l.found)
		if l.inOrder {
			if l.ends = l.stale && v.stale.Add(1) >= maxStale; !l.stale {
				v.stale.Store(0)
			}
		} else if v.ended.page(l.from.Page, !l.stale) {
			v.log.Info("listing_stopped", "page", l.from.Page, "reason", fmt.Sprintf("%d pages with products of earlier pages only", maxStale))
		}
		pages = append(pages, l)
	}
	return pages
}

// listResult has the tasks that follow from a list page.
type listResult struct {
	from   entry
	found  []entry
	result *result

	inOrder bool // the page leads to the next one alone, so that one which the crawl had before is a loop
	stale   bool // the page has products, and earlier pages have all of them
	ends    bool // the list ends here

	rowsOnly bool // the products have no page of their own, and may have one link together
	numbered bool // the page has its number and no other page leads to it: each has products of its own
}

// maxStale pages in a row with products of earlier pages only are beyond the end of the list:
// many shops repeat their last page.
const maxStale = 3

// hadAll reports whether there are products, and earlier list pages had all of them. It remembers them.
func (l *listing) hadAll(found []entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	products, had := 0, 0
	for _, e := range found {
		if e.Kind != KindFetchProductDetailPage {
			continue
		}
		sum := maphash.String(l.seed, e.URL)
		products++
		if l.listed[sum] {
			had++
		}
		l.listed[sum] = true
	}
	return products > 0 && products == had
}

// raiseLast sets the number of the last page if it is higher, and returns the number after the old one.
func (l *listing) raiseLast(n int) (first int) {
	for {
		old := l.lastPage.Load()
		if n <= int(old) || l.lastPage.CompareAndSwap(old, int64(n)) {
			return int(old) + 1
		}
	}
}

// streak finds the page from which on a list has nothing new (--stop-after-known). Pages
// are read in parallel, so it counts by their numbers, not by time.
type streak struct {
	first, want int // number of the first page; number of pages without a new product that end the list, 0: it does not end

	mu   sync.Mutex
	seen map[int]bool // by page: it has a new product
	end  int          // pages from this number on are skipped; 0: none
}

// page records a page, and reports whether it ends the list.
func (s *streak) page(n int, news bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[int]bool{}
	}
	s.seen[n] = news
	if s.end > 0 {
		return false
	}
	run := 0
	for i := s.first; ; i++ {
		news, read := s.seen[i]
		switch {
		case !read:
			return false
		case news:
			run = 0
		default:
			if run++; run >= s.want {
				s.end = i + 1
				return true
			}
		}
	}
}

// reset forgets the pages.
func (s *streak) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.end = nil, 0
}

// past reports whether the list ended before page n.
func (s *streak) past(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end > 0 && n >= s.end
}
