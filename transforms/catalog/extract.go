package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

const (
	maxKey   = 500      // bytes of a product's key
	maxField = 64 << 10 // bytes of a field's text
)

// errNoKey means that a product's page does not identify its product.
var errNoKey = errors.New("the page does not have the key field")

// listPage is what was read from a list page.
type listPage struct {
	products []string // absolute, each once, in the page's order
	foreign  int      // number of ignored links: to another host, not HTTP, or too long
	last     int      // number of the last page, 0 if the page does not show it
	next     string
}

// readList reads a list page that was found at address.
func (r *reader) readList(address, text string) (listPage, error) {
	read, err := parsePage(text)
	if err != nil {
		return listPage{}, fmt.Errorf("parsing the page: %w", err)
	}
	at, err := url.Parse(address)
	if err != nil {
		return listPage{}, fmt.Errorf("parsing the page's address: %w", err)
	}
	base := read.base(at)
	var p listPage
	seen := map[string]bool{}
	for _, href := range r.product.all(read) {
		link, ok := r.follow(base, href)
		switch {
		case !ok:
			p.foreign++
		case !seen[link]:
			seen[link] = true
			p.products = append(p.products, link)
		}
	}
	if r.last != nil {
		for _, s := range r.last.all(read) {
			if n, err := strconv.Atoi(strings.NewReplacer(",", "", ".", "", " ", "").Replace(s)); err == nil {
				p.last = max(p.last, n)
			}
		}
	}
	if r.next != nil {
		if href, ok := r.next.first(read); ok {
			p.next, _ = r.follow(base, href)
		}
	}
	return p, nil
}

// follow makes a link absolute, if it is on the site's own host.
func (r *reader) follow(base *url.URL, href string) (string, bool) {
	u, err := base.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !sameHost(u, r.base) {
		return "", false
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	s := u.String()
	return s, untrusted.Key(s) == nil
}

func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(strings.TrimPrefix(a.Host, "www."), strings.TrimPrefix(b.Host, "www."))
}

// base returns the base address of the page's links (HTML, 4.2.3).
func (p *page) base(at *url.URL) *url.URL {
	for _, n := range p.nodes {
		if n.Type != html.ElementNode || n.Data != "base" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key != "href" {
				continue
			}
			if u, err := at.Parse(strings.TrimSpace(a.Val)); err == nil {
				return u
			}
			return at
		}
	}
	return at
}

// lack is a field that a page does not have.
type lack struct {
	field string
	why   string // why it cannot be read; "": the page does not have it
}

func (l lack) String() string {
	if l.why != "" {
		return fmt.Sprintf("field %s cannot be read: %s", l.field, l.why)
	}
	return fmt.Sprintf("field %s is not found", l.field)
}

// readDetail reads a product's page.
func (r *reader) readDetail(address, text string) (ProductDetail, error) {
	read, err := parsePage(text)
	if err != nil {
		return ProductDetail{}, fmt.Errorf("parsing the page: %w", err)
	}
	at, err := url.Parse(address)
	if err != nil {
		return ProductDetail{}, fmt.Errorf("parsing the page's address: %w", err)
	}
	base := read.base(at)
	p := ProductDetail{URL: address, Fields: make(map[string]any, len(r.fields))}
	noKey := fmt.Errorf("%w %s", errNoKey, r.site.Key)
	for _, f := range r.fields {
		v, err := f.read(read, base)
		if err != nil || v == nil {
			l := lack{field: f.name}
			if err != nil {
				l.why = err.Error()
			}
			p.lacks = append(p.lacks, l)
			if f.name == r.site.Key && err != nil {
				noKey = fmt.Errorf("%w: %w", noKey, err)
			}
			continue
		}
		p.Fields[f.name] = v
		if f.name == r.site.Key {
			p.Key = fmt.Sprint(v)
		}
	}
	switch {
	case p.Key == "":
		return ProductDetail{}, noKey
	case len(p.Key) > maxKey:
		return ProductDetail{}, fmt.Errorf("%w: it is longer than %d bytes", noKey, maxKey)
	}
	return p, nil
}

// read returns a field's value; nil if the page does not have it.
func (f fieldReader) read(p *page, base *url.URL) (any, error) {
	if f.Type == "list" {
		if all := f.all(p); len(all) > 0 {
			return all, nil
		}
		return nil, nil
	}
	s, ok := f.first(p)
	if !ok {
		return nil, nil
	}
	v, err := f.typed(s, base)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// typed converts a text to a field's type.
func (f fieldReader) typed(s string, base *url.URL) (any, error) {
	switch f.Type {
	case "integer":
		return value.Integer(s, f.locale)
	case "number":
		return value.Number(s, f.locale)
	case "money":
		return value.Money(s, f.locale, f.Currency)
	case "date":
		return value.Date(s, f.locale, f.zone)
	case "url":
		u, err := base.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("%q is no address of a page", s)
		}
		u.User = nil
		if err := untrusted.Key(u.String()); err != nil {
			return nil, fmt.Errorf("its address: %w", err)
		}
		return u.String(), nil
	case "boolean":
		switch strings.ToLower(s) {
		case "yes", "true", "1", "y":
			return true, nil
		case "no", "false", "0", "n":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither yes nor no", s)
	}
	return s, nil
}

// first returns the first non-empty text that the finder finds.
func (f finder) first(p *page) (string, bool) {
	for _, n := range p.candidates(f) {
		if !p.matches(f, n) {
			continue
		}
		if s, ok := f.text(n); ok {
			return s, true
		}
	}
	return "", false
}

func (f finder) all(p *page) []string {
	var out []string
	for _, n := range p.candidates(f) {
		if !p.matches(f, n) {
			continue
		}
		if s, ok := f.text(n); ok {
			out = append(out, s)
		}
	}
	return out
}

func (f finder) text(n *html.Node) (string, bool) {
	var s string
	if f.attribute != "" {
		for _, a := range n.Attr {
			if a.Key == f.attribute {
				s = a.Val
			}
		}
	} else {
		var b strings.Builder
		collect(&b, n)
		s = b.String()
	}
	s = untrusted.Line(s, maxField)
	if f.part != nil {
		s = untrusted.Line(part(f.part, s), 0)
	}
	return s, s != ""
}

func part(re *regexp.Regexp, s string) string {
	m := re.FindStringSubmatch(s)
	switch {
	case m == nil:
		return ""
	case len(m) > 1:
		return m[1]
	}
	return m[0]
}

func collect(b *strings.Builder, n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		b.WriteString(n.Data)
		return
	case n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style" || n.Data == "template"):
		return
	case n.Type == html.ElementNode && n.Data == "br":
		b.WriteByte(' ')
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		collect(b, c)
	}
}
