package catalog

import (
	"context"
	"errors"
	"sync"

	"github.com/newsfork/seed-engine/transforms/parsing"
)

// productDetailFetcher fetches products' pages:
// FetchProductDetailPage → ParseProductDetailHtml.
func (v *visit) productDetailFetcher() *stage {
	return &stage{name: "ProductDetailFetcher", takes: KindFetchProductDetailPage, size: v.cfg.DetailFetchers,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(FetchProductDetailPage)
			text, err := v.fetch(ctx, t.ProductURL)
			if err != nil {
				return nil, err
			}
			if !t.fetched {
				v.state.Stats.detailPagesFetched.Add(1)
			}
			return []Task{ParseProductDetailHtml{ProductURL: t.ProductURL, HTMLContent: text, from: t}}, nil
		}}
}

// productDetailParser reads products' pages: ParseProductDetailHtml → SaveProduct.
func (v *visit) productDetailParser() *stage {
	return &stage{name: "ProductDetailParser", takes: KindParseProductDetailHtml, size: v.cfg.DetailParsers,
		work: func(ctx context.Context, task Task) ([]Task, error) {
			t := task.(ParseProductDetailHtml)
			end, err := parsing.Begin(ctx, len(t.HTMLContent))
			if err != nil {
				return nil, err
			}
			defer end()
			p, missing, err := v.reader.readDetail(t.ProductURL, t.HTMLContent)
			for _, name := range v.layout.page(missing) {
				v.log.Warn("field_stopped_matching", "field", name, "pages", layoutWindow, "url", t.ProductURL)
				v.state.Stats.warned(StoppedMatching + v.reader.site.Name + "." + name)
			}
			switch {
			case errors.Is(err, errNoKey):
				return nil, &failure{kind: "missing_key", err: err}
			case err != nil:
				return nil, &failure{kind: "parse_failed", err: err}
			}
			return []Task{SaveProduct{ProductDetail: p, from: t.from}}, nil
		}}
}

const (
	// layoutWindow is how many pages in a row are looked at for a layout break.
	layoutWindow = 20
	// layoutMissing of them without a field are one. A field that some products
	// lack has to be missing on all of them, after pages that had it.
	layoutMissing = 16
)

// layout notices fields that stop matching: the site has changed its pages.
type layout struct {
	mu     sync.Mutex
	fields []*layoutField
}

type layoutField struct {
	name     string
	optional bool
	seen     bool   // some page had it
	warned   bool   // once a crawl is enough
	window   uint32 // the last pages, a bit each: 1 lacked it
	pages    int
}

func newLayout(r *reader) *layout {
	l := &layout{}
	for _, f := range r.fields {
		l.fields = append(l.fields, &layoutField{name: f.name, optional: f.Optional})
	}
	return l
}

// page notes which fields a page lacks, and gives those that have now stopped
// matching.
func (l *layout) page(missing []string) (stopped []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.fields {
		lacks := false
		for _, m := range missing {
			lacks = lacks || m == f.name
		}
		f.pages++
		f.window = f.window << 1 & (1<<layoutWindow - 1)
		if lacks {
			f.window |= 1
		} else {
			f.seen = true
		}
		n := 0
		for w := f.window; w != 0; w &= w - 1 {
			n++
		}
		broken := n >= layoutMissing
		if f.optional {
			broken = f.seen && n == layoutWindow
		}
		if broken && f.pages >= layoutWindow && !f.warned {
			f.warned = true
			stopped = append(stopped, f.name)
		}
	}
	return stopped
}
