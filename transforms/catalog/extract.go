package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/untrusted"
)

// errNoKey is a product's page that does not say which product it is of.
var errNoKey = errors.New("the page does not have the key field")

// listPage is what a list page says.
type listPage struct {
	products []string // absolute, each once, in the page's order
	foreign  int      // links left out: of another host, no HTTP, or too long
	last     int      // number of the last page, 0 when it is not said
	next     string
}

// readList reads a list page that was found at address.
func (r *reader) readList(address, text string) (listPage, error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return listPage{}, fmt.Errorf("parsing the page: %w", err)
	}
	at, err := url.Parse(address)
	if err != nil {
		return listPage{}, fmt.Errorf("parsing the page's address: %w", err)
	}
	base := baseOf(root, at)
	var p listPage
	seen := map[string]bool{}
	for _, href := range r.product.all(root) {
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
		for _, s := range r.last.all(root) {
			if n, err := strconv.Atoi(strings.NewReplacer(",", "", ".", "", " ", "").Replace(s)); err == nil {
				p.last = max(p.last, n)
			}
		}
	}
	if r.next != nil {
		if href, ok := r.next.first(root); ok {
			p.next, _ = r.follow(base, href)
		}
	}
	return p, nil
}

// follow makes a link of the site's own host absolute.
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

var baseElement = cascadia.MustCompile("base[href]")

// baseOf is what the page's links are relative to (HTML, 4.2.3).
func baseOf(root *html.Node, at *url.URL) *url.URL {
	n := cascadia.Query(root, baseElement)
	if n == nil {
		return at
	}
	for _, a := range n.Attr {
		if a.Key == "href" {
			if u, err := at.Parse(strings.TrimSpace(a.Val)); err == nil {
				return u
			}
		}
	}
	return at
}

// readDetail reads a product's page. missing are the fields that it lacks.
func (r *reader) readDetail(address, text string) (_ ProductDetail, missing []string, _ error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return ProductDetail{}, nil, fmt.Errorf("parsing the page: %w", err)
	}
	p := ProductDetail{URL: address, Fields: make(map[string]any, len(r.fields))}
	for _, f := range r.fields {
		v, ok := f.read(root)
		if !ok {
			missing = append(missing, f.name)
			continue
		}
		p.Fields[f.name] = v
		if f.name == r.site.Key {
			p.Key = fmt.Sprint(v)
		}
	}
	if p.Key == "" || len(p.Key) > 500 {
		return ProductDetail{}, missing, fmt.Errorf("%w %s", errNoKey, r.site.Key)
	}
	return p, missing, nil
}

func (f fieldReader) read(root *html.Node) (any, bool) {
	if f.Type == "list" {
		all := f.all(root)
		return all, len(all) > 0
	}
	s, ok := f.first(root)
	if !ok {
		return nil, false
	}
	return typed(f.Type, s)
}

// typed turns a text into a field's type; false where it is not of that type.
func typed(kind, s string) (any, bool) {
	switch kind {
	case "integer":
		s = strings.NewReplacer(",", "", "_", "", " ", "").Replace(s)
		base := 10
		if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
			s, base = hex, 16
		}
		n, err := strconv.ParseInt(s, base, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(strings.NewReplacer(",", "", " ", "").Replace(s), 64)
		return n, err == nil && n-n == 0 // neither infinite nor NaN: JSON has none
	case "date":
		for _, layout := range []string{time.DateOnly, "01/02/2006", "January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006", "2006.01.02", "2006/01/02", time.RFC3339} {
			if t, err := time.Parse(layout, s); err == nil {
				return t.Format(time.DateOnly), true
			}
		}
		return nil, false
	case "boolean":
		switch strings.ToLower(s) {
		case "yes", "true", "1", "y":
			return true, true
		case "no", "false", "0", "n":
			return false, true
		}
		return nil, false
	}
	return s, true
}

// first is the first non-empty text that the finder finds.
func (f finder) first(root *html.Node) (string, bool) {
	for n := range root.Descendants() {
		if !f.group.Match(n) {
			continue
		}
		if s, ok := f.text(n); ok {
			return s, true
		}
	}
	return "", false
}

func (f finder) all(root *html.Node) []string {
	var out []string
	for _, n := range cascadia.QueryAll(root, f.group) {
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
	s = squeeze(s)
	if f.part != nil {
		s = squeeze(part(f.part, s))
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

// maxField bounds the text of one field, in bytes.
const maxField = 64 << 10

// squeeze makes what an element says one line that can be kept.
func squeeze(s string) string { return untrusted.Line(s, maxField) }
