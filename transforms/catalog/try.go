package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/untrusted"
)

// Trial is what a site's file reads from one page. Nothing is saved.
type Trial struct {
	Site   string       `json:"site"`
	URL    string       `json:"url"`
	Key    string       `json:"key"` // of the product; "": the page has none
	List   []TrialPart  `json:"list"`
	Fields []TrialPart  `json:"fields"`
	Links  []string     `json:"product_links"` // the page's first ones, as a list page
	Counts TrialNumbers `json:"counts"`
}

// TrialNumbers count what a page has as a list page.
type TrialNumbers struct {
	ProductLinks int    `json:"product_links"`
	Ignored      int    `json:"ignored_links"` // to another host, not HTTP, or too long
	LastPage     int    `json:"last_page,omitempty"`
	NextPage     string `json:"next_page,omitempty"`
}

// TrialPart is what one selector of the file finds in the page.
type TrialPart struct {
	Name     string   `json:"name"`
	Selector string   `json:"selector"`
	Elements int      `json:"elements"` // that the selector matches
	Value    any      `json:"value,omitempty"`
	Required bool     `json:"required,omitempty"`
	Why      string   `json:"why,omitempty"`  // there is no value
	Near     []string `json:"near,omitempty"` // what the page has that is similar
}

// Found reports whether the page is one of the site's: it has a product, or links to some.
func (t Trial) Found() bool { return t.Key != "" || t.Counts.ProductLinks > 0 }

const (
	maxShown = 200 // characters of a page's text that a person sees
	maxLinks = 5
)

// Try fetches one page of a site, and its robots.txt, as a crawl would, and reads it by
// the site's file. A site that a run is crawling is not tried.
func Try(ctx context.Context, cfg Config, s Site, address string) (t Trial, err error) {
	fn := visitFn{Config: cfg}
	err = fn.Setup(ctx)
	defer func() { err = errors.Join(err, fn.Teardown()) }()
	if err != nil {
		return t, err
	}
	v, err := newVisit(cfg, fn.Worker, fn.db, s, &Stats{})
	if err != nil {
		return t, err
	}
	defer v.client.Close()
	u, err := url.Parse(address)
	if err != nil || !sameHost(u, v.reader.base) {
		return t, fmt.Errorf("%s is not on %s, the host of list.url in the file of %s: give a page of that host", address, v.reader.base.Host, s.Name)
	}
	within, release, err := v.w.Lease(ctx, lease.InDB(fn.db), cfg.LeaseTTL, true, nil, Job+"/"+s.Name)
	var inUse *lease.InUseError
	switch {
	case errors.As(err, &inUse):
		return t, fmt.Errorf("%s is being crawled (%s), and its host gets one request at a time: try it when that run has ended", s.Name, inUse.Holder)
	case err != nil:
		return t, err
	}
	defer release()
	if err := v.readRobots(within); err != nil {
		return t, err
	}
	text, err := v.fetch(within, address)
	if err != nil {
		return t, fmt.Errorf("fetching %s: %w", address, err)
	}
	return v.reader.try(address, text)
}

// try reads a page both as a list page and as a product's page.
func (r *reader) try(address, text string) (Trial, error) {
	t := Trial{Site: r.site.Name, URL: address}
	list, err := r.readList(address, text)
	if err != nil {
		return t, err
	}
	t.Links = list.products[:min(len(list.products), maxLinks)]
	t.Counts = TrialNumbers{ProductLinks: len(list.products), Ignored: list.foreign, LastPage: list.last, NextPage: list.next}
	p, err := parsePage(text)
	if err != nil {
		return t, err
	}
	at, err := url.Parse(address)
	if err != nil {
		return t, err
	}
	base := p.base(at)
	t.List = append(t.List, r.product.tryAll("list.product_link", r.site.List.ProductLink.Selector, p))
	if r.last != nil {
		t.List = append(t.List, r.last.tryAll("list.last_page", r.site.List.LastPage.Selector, p))
	}
	if r.next != nil {
		t.List = append(t.List, r.next.tryAll("list.next_link", r.site.List.NextLink.Selector, p))
	}
	for _, f := range r.fields {
		part := TrialPart{Name: f.name, Selector: f.Selector, Required: f.required, Elements: len(f.matches(p))}
		v, err := f.read(p, base)
		switch {
		case err != nil:
			part.Why = err.Error()
		case v == nil:
			part.Why, part.Near = f.missing(f.Selector, p)
		default:
			part.Value = v
			if f.name == r.site.Key {
				t.Key = fmt.Sprint(v)
			}
		}
		t.Fields = append(t.Fields, part)
	}
	return t, nil
}

// tryAll is what a selector of the list finds.
func (f finder) tryAll(name, selector string, p *page) TrialPart {
	part := TrialPart{Name: name, Selector: selector, Elements: len(f.matches(p))}
	if all := f.all(p); len(all) > 0 {
		part.Value = untrusted.Line(all[0], maxShown)
	} else {
		part.Why, part.Near = f.missing(selector, p)
	}
	return part
}

// matches returns the elements that the finder's selector matches.
func (f finder) matches(p *page) (out []*html.Node) {
	for _, n := range p.candidates(f) {
		if p.matches(f, n) {
			out = append(out, n)
		}
	}
	return out
}

// missing says why a finder finds no text in a page, and what the page has instead.
func (f finder) missing(selector string, p *page) (why string, near []string) {
	found := f.matches(p)
	if len(found) == 0 {
		return "no element matches the selector", p.similar(selector)
	}
	has := func(n *html.Node) bool {
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == f.attribute })
	}
	if f.attribute != "" && !slices.ContainsFunc(found, has) {
		for _, a := range found[0].Attr {
			near = append(near, untrusted.Line(fmt.Sprintf("attribute %s: %s", a.Key, a.Val), maxShown))
		}
		return fmt.Sprintf("the element has no attribute %q", f.attribute), near[:min(len(near), maxNear)]
	}
	if f.part != nil {
		whole := f
		whole.part = nil
		if s, ok := whole.text(found[0]); ok {
			return fmt.Sprintf("the text does not match the regexp %s", f.part), []string{"text " + untrusted.Line(s, maxShown)}
		}
	}
	return "the element has no text", nil
}
