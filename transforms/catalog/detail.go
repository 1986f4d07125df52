package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

// productDetailFetcher fetches products' pages:
// FetchProductDetailPage → ParseProductDetailHtml.
func (v *visit) productDetailFetcher() *stage {
	return &stage{name: "ProductDetailFetcher", takes: KindFetchProductDetailPage, size: v.cfg.DetailFetchers, settle: v.settleRemoved,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(FetchProductDetailPage)
			text, err := v.fetch(ctx, t.ProductURL)
			if err == nil || removed(err) {
				seen := sight{aspect: aspectPage, has: err == nil, expected: true, url: t.ProductURL}
				if err != nil {
					seen.why = err.Error()
				}
				if broken := v.layout.note([]sight{seen}); broken != nil {
					return nil, v.holdSite(broken)
				}
			}
			if err != nil {
				return nil, err
			}
			if !t.fetched {
				v.state.Stats.detailPagesFetched.Add(1)
			}
			return []Task{ParseProductDetailHtml{ProductURL: t.ProductURL, HTMLContent: text, from: t}}, nil
		}}
}

// removed says whether a page is not there any more.
func removed(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.kind == "http_404" || f.kind == "http_410")
}

// settleRemoved ends the products whose pages are not there any more. A page
// that never was there stays a failure: the list leads to nowhere.
func (v *visit) settleRemoved(ctx context.Context, results []result) error {
	for i := range results {
		r := &results[i]
		if !removed(r.err) {
			continue
		}
		known, err := v.journal.gone(ctx, r.task.entry(), v.clock())
		if err != nil {
			return fmt.Errorf("noting that a product is gone: %w", err)
		}
		if known {
			r.err = nil
			v.state.Stats.productsGone.Add(1)
			v.forgive(ctx, r.task.entry())
		}
	}
	return nil
}

// productDetailParser reads products' pages: ParseProductDetailHtml → SaveProduct.
func (v *visit) productDetailParser() *stage {
	return &stage{name: "ProductDetailParser", takes: KindParseProductDetailHtml, size: v.cfg.DetailParsers,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(ParseProductDetailHtml)
			end, err := budget.Begin(ctx, len(t.HTMLContent))
			if err != nil {
				return nil, err
			}
			defer end()
			p, err := v.reader.readDetail(t.ProductURL, t.HTMLContent)
			seen := sight{aspect: aspectKey, has: err == nil, expected: true, url: t.ProductURL}
			if err != nil {
				seen.why = err.Error()
			}
			if broken := v.layout.note([]sight{seen}); broken != nil {
				return nil, v.holdSite(broken)
			}
			// The same page would be read the same way: another try needs another page or another file.
			switch {
			case errors.Is(err, errNoKey):
				return nil, &failure{kind: "missing_key", final: true, err: err}
			case err != nil:
				return nil, &failure{kind: "parse_failed", final: true, err: err}
			}
			return []Task{SaveProduct{ProductDetail: p, from: t.from}}, nil
		}}
}

// holdSite ends this run's crawl of the site. What is queued waits for the next run.
func (v *visit) holdSite(why error) error {
	v.own.stop(why)
	return errHeld
}
