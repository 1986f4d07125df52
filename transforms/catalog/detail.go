package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

// productDetailFetcher fetches products' pages:
// FetchProductDetailPage → ParseProductDetailHtml, or SaveProduct where all fields are in
// the list (detail.format: none).
func (v *visit) productDetailFetcher() *stage {
	return &stage{name: "ProductDetailFetcher", fails: "failed_product_detail_fetcher", input: KindFetchProductDetailPage, size: v.cfg.DetailFetchers, commit: v.commitAbsent,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(FetchProductDetailPage)
			if !v.quota.Take() {
				return nil, errLeft
			}
			if v.reader.site.Detail.Format == formatNone {
				p := ProductDetail{URL: t.URL, Fields: map[string]any{}}
				if err := p.addRow(v.reader, t.Row); err != nil {
					return nil, &failure{kind: "parse_failed", final: true, err: err}
				}
				if p.Key == "" { // a dead letter's: only the list has it
					return nil, &failure{kind: "missing_key", final: true, err: fmt.Errorf("%w %s: its row of the list is not known any more; the next crawl reads the list again", errNoKey, v.reader.site.Key)}
				}
				return []Task{SaveProduct{t.asFetched(), p}}, nil
			}
			got, err := v.fetch(ctx, t.URL, nil, v.reader.site.Detail.Format)
			if err == nil && v.reader.site.Detail.Rendering {
				got.HTMLContent, err = v.render(ctx, got.at, got.HTMLContent, v.reader.showsKey)
			}
			if t.Asked == "" && (err == nil || removed(err)) {
				seen := observation{aspect: aspectPage, has: err == nil, expected: true, url: t.URL}
				if err != nil {
					seen.why = err.Error()
				}
				if broken := v.layout.observe(seen); broken != nil {
					return nil, v.stopSite(broken)
				}
			}
			if err != nil {
				return nil, err
			}
			if !t.Fetched {
				v.state.Stats.Count("detail_pages_fetched", 1)
			}
			return []Task{ParseProductDetailHtml{t.asFetched(), got}}, nil
		}}
}

// removed reports whether an error means that a page no longer exists.
func removed(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.kind == "http_404" || f.kind == "http_410")
}

// outcomeOf returns what an error says of a product: its page does not exist, or shows another
// one. A page that is requested because the list does not name it may do so in more ways.
func outcomeOf(t Task, err error) (outcome int, absent bool) {
	var f *failure
	switch {
	case !errors.As(err, &f):
		return 0, false
	case f.kind == "http_410":
		return goneForGood, true
	case f.kind == "http_404":
		return notFound, true
	}
	return otherProduct, t.stored().Asked != "" && (f.kind == "missing_key" || f.kind == "other_product" || f.kind == string(web.KindRedirect))
}

// commitAbsent records the products whose pages do not show them. A listed page that never
// existed stays a failure: the list has a wrong link.
func (v *visit) commitAbsent(ctx context.Context, results []result) error {
	for i := range results {
		r := &results[i]
		outcome, absent := outcomeOf(r.task, r.err)
		if !absent {
			continue
		}
		var f *failure
		e := r.task.stored()
		if errors.As(r.err, &f) && f.answer != nil && (e.Asked == "" || v.listless.Load()) { // else the list agrees
			v.answered(ctx, e, *f.answer)
		}
		known, err := v.journal.markAbsent(ctx, e, outcome)
		if err != nil {
			return fmt.Errorf("recording that a product's page does not show it: %w", err)
		}
		if known {
			r.err = nil
			v.resolve(ctx, e)
		}
	}
	return nil
}

// productDetailParser reads products' pages: ParseProductDetailHtml → SaveProduct.
func (v *visit) productDetailParser() *stage {
	return &stage{name: "ProductDetailParser", fails: "failed_product_detail_parser", input: KindParseProductDetailHtml, size: v.cfg.DetailParsers, commit: v.commitAbsent,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(ParseProductDetailHtml)
			end, err := budget.Begin(ctx, len(t.HTMLContent))
			if err != nil {
				return nil, err
			}
			defer end()
			p, err := v.reader.readDetail(t.at, t.HTMLContent, t.Row)
			p.URL = t.URL // the link in the list, wherever it leads
			if err != nil {
				if f := wall(t.verdict()); f != nil {
					return nil, f
				}
			}
			v.answered(ctx, t.stored(), judging.Answer{Status: http.StatusOK, Nth: t.nth})
			seen := observation{aspect: aspectKey, has: err == nil, expected: true, url: t.URL}
			if err != nil {
				seen.why = err.Error()
			}
			if t.Asked == "" {
				if broken := v.layout.observe(seen); broken != nil {
					return nil, v.stopSite(broken)
				}
			}
			// Another try would read the same page in the same way: the page or the site's file must change first.
			switch {
			case errors.Is(err, errNoKey):
				return nil, &failure{kind: "missing_key", final: true, err: err}
			case err != nil:
				return nil, &failure{kind: "parse_failed", final: true, err: err}
			case t.Asked != "" && p.Key != t.Asked:
				return nil, &failure{kind: "other_product", final: true, err: fmt.Errorf("it shows the product %s, and not %s", p.Key, t.Asked)}
			}
			return []Task{SaveProduct{t.entry, p}}, nil
		}}
}

// stopSite ends this run's crawl of the site. Queued tasks wait for the next run.
func (v *visit) stopSite(why error) error {
	v.control.stop(why)
	return errStopped
}
