package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

const (
	maxKey   = 500      // bytes of a product's key
	maxField = 64 << 10 // bytes of a field's text
)

// errNoKey means that a product's page does not identify its product.
var errNoKey = errors.New("the page does not have the key field")

// listPage is what was read from a list page.
type listPage struct {
	products []string          // absolute, each once, in the page's order
	rows     map[string]string // by product: what its row says, see rowValues
	foreign  int               // number of ignored links: to another host, not HTTP, or too long
	count    int               // number of rows, or of links where there are no rows, with those of one product
	keyless  int               // number of rows without the key, where the rows are all that there is
	last     int               // number of the last page, 0 if the page does not show it
	next     string
	cursor   string
	children []string // sitemaps of an index
	cut      bool     // the page has more than what was read
	none     bool     // the page says itself that it has no products: [] in JSON, and not nothing
	left     string   // what the site's file leaves out of a page that has no other products, "" for nothing
	total    int      // how many products the list has, as the page states it; 0: it does not
	has      map[string]bool
}

// seen reports whether the page had the product before, and remembers it.
func (p *listPage) seen(link string) bool {
	if p.has == nil {
		p.has = map[string]bool{}
	}
	before := p.has[link]
	p.has[link] = true
	return before
}

// open parses a page of a format that was found at address.
func open(address, text, format string) (p *page, base *url.URL, err error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing the page's address: %w", err)
	}
	at.Fragment, at.RawFragment = "", ""
	if format == formatJSON {
		data, err := parseJSON(text)
		return &page{data: data}, at, err
	}
	if p, err = parsePage(text); err != nil {
		return nil, nil, fmt.Errorf("parsing the page: %w", err)
	}
	return p, p.base(at), nil
}

// readList reads a list page that was found at address.
func (r *reader) readList(address, text string) (listPage, error) {
	if r.site.List.Format == formatSitemap {
		return r.readSitemap(address, text)
	}
	read, base, err := open(address, text, r.site.List.Format)
	if err != nil {
		return listPage{}, err
	}
	var p listPage
	if r.rows != nil {
		if err := r.readRows(read, base, &p); err != nil {
			return listPage{}, err
		}
	} else {
		for s := range r.product.values(read) {
			p.count++
			link, ok := r.link(base, s.text)
			switch {
			case !ok:
				p.foreign++
			case !p.seen(link):
				p.products = append(p.products, link)
			}
		}
	}
	if products := cmp.Or(r.rows, r.product); len(p.products) == 0 && p.keyless+p.foreign == 0 && products.group == nil {
		found, err := products.path.search(read.data)
		_, isList := found.([]any)
		p.none = err == nil && isList
	}
	if len(p.products) == 0 {
		p.left = cmp.Or(r.rows, r.product).leftOut(read)
	}
	return p, r.readEnd(address, read, base, &p)
}

// readEnd reads where the list continues, or ends.
func (r *reader) readEnd(address string, read *page, base *url.URL, p *listPage) error {
	if r.last != nil {
		for s := range r.last.values(read) {
			if n, ok := r.last.largest(s, pageNumbers); ok {
				p.last = max(p.last, n)
			}
		}
	}
	if r.total != nil {
		if s, ok := r.total.first(read); ok {
			if n, ok := r.total.largest(s, productNumbers); ok {
				p.total = n
			}
			if size := r.site.List.PageSize; ok && r.bounded() {
				p.last = max(p.last, r.firstPage()-1+(p.total+size-1)/size)
			}
		}
	}
	own, _, _ := strings.Cut(address, "#")
	if r.next != nil {
		if s, ok := r.next.first(read); ok && !s.none() {
			if p.next, _ = r.follow(base, s.text); p.next == own { // the last page of some sites
				p.next = ""
			}
		}
	}
	if r.cursor != nil {
		if s, ok := r.cursor.first(read); ok && !s.none() && s.text != r.cursorOf(address) {
			p.cursor = s.text
			if err := untrusted.Key(r.cursorURL(0, p.cursor)); err != nil {
				return fmt.Errorf("the cursor of the next page: %w", err)
			}
		}
	}
	return nil
}

// maxCount is the largest number of pages or products that is believed.
const maxCount = 1 << 30

// The numbers in the text of a pager: "Page 1 of 1,204", and in that of a count, which may
// have spaces between its groups: "1–24 of 1 204". In a pager these are between pages.
var (
	pageNumbers    = regexp.MustCompile(`\d[\d.,]*`)
	productNumbers = regexp.MustCompile(`\d{1,3}(?:[ .,'’]\d{3})+\b|\d[\d.,]*`)
)

// largest returns the largest number of a text, or what the finder's own regexp chooses; of
// an attribute the first one, since an address has numbers of other things after it.
func (f *finder) largest(s scalar, numbers *regexp.Regexp) (n int, ok bool) {
	if f.part != nil || s.plain {
		return count(s)
	}
	all := numbers.FindAllString(s.text, -1)
	if f.attribute != "" {
		all = all[:min(len(all), 1)]
	}
	for _, text := range all {
		if m, is := count(scalar{text: text}); is {
			n, ok = max(n, m), true
		}
	}
	return n, ok
}

func count(s scalar) (int, bool) {
	text := s.text
	if !s.plain {
		text = strings.NewReplacer(",", "", ".", "", " ", "", "'", "", "’", "").Replace(text)
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= maxCount
}

// readSitemap reads a sitemap, or an index of sitemaps, as a list page.
func (r *reader) readSitemap(address, text string) (listPage, error) {
	at, err := url.Parse(address)
	if err != nil {
		return listPage{}, fmt.Errorf("parsing the page's address: %w", err)
	}
	var p listPage
	var found []string
	result, err := sitemap.Scan([]byte(text), func(e sitemap.Entry) bool {
		found = append(found, e.Loc)
		return len(found) < maxSitemap
	})
	if err != nil {
		return p, err
	}
	p.cut = result.Truncated || result.Count > maxSitemap
	index := result.Kind == sitemap.Index
	for _, s := range found {
		if !index && r.product != nil && r.product.part != nil && !r.product.part.MatchString(s) {
			continue
		}
		link, ok := r.follow(at, s)
		switch {
		case !ok:
			p.foreign++
			p.cut = p.cut || index // its products are not read
		case p.seen(link):
		case index:
			p.children = append(p.children, link)
		default:
			p.products = append(p.products, link)
		}
	}
	return p, nil
}

// maxSitemap is how many addresses a sitemap may have (sitemaps.org/protocol.html).
const maxSitemap = 50_000

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
	field  string
	why    string // why it cannot be read; "": the page does not have it
	unseen bool   // what should have it was not read, so nothing is known
}

func (l lack) String() string {
	if l.why != "" {
		return fmt.Sprintf("field %s cannot be read: %s", l.field, l.why)
	}
	return fmt.Sprintf("field %s is not found", l.field)
}

// noKey is the error of a page without the key.
func (r *reader) noKey() error {
	for _, f := range r.fields {
		if f.name == r.site.Key {
			return fmt.Errorf("%w %s (%s)", errNoKey, r.site.Key, f.looksFor())
		}
	}
	return errNoKey
}

// keyText returns the key of a product whose key field has the value v: a number without an
// exponent, as the site writes it.
func keyText(v any) string {
	if f, ok := v.(float64); ok {
		return plainNumber(f)
	}
	return fmt.Sprint(v)
}

// readDetail reads a product's page. row is what the journal has of its row in the list.
func (r *reader) readDetail(address, text, row string) (ProductDetail, error) {
	read, base, err := open(address, text, r.site.Detail.Format)
	if err != nil {
		return ProductDetail{}, err
	}
	p := ProductDetail{URL: address, Fields: make(map[string]any, len(r.fields))}
	noKey := r.noKey()
	for _, f := range r.fields {
		if f.From == fromRow {
			continue
		}
		v, err := f.read(f.source(read), base)
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
			p.Key = keyText(v)
		}
	}
	if err := p.addRow(r, row); err != nil {
		return ProductDetail{}, err
	}
	switch {
	case p.Key == "":
		return ProductDetail{}, noKey
	case len(p.Key) > maxKey:
		return ProductDetail{}, fmt.Errorf("%w: it is longer than %d bytes", noKey, maxKey)
	}
	return p, nil
}

// source returns where the field is read in a page.
func (f fieldReader) source(p *page) *page {
	if f.From == fromStructured {
		return p.described()
	}
	return p
}

// maxRow is the maximum number of bytes that the journal stores of a row.
const maxRow = 64 << 10

// rowValues is what a row of the list says about its product.
type rowValues struct {
	Key    string                     `json:"key,omitempty"`
	Fields map[string]json.RawMessage `json:"fields"`
	Lacks  map[string]string          `json:"lacks,omitempty"` // fields without a value, and why as in lack
}

// readRow reads the fields of a row.
func (r *reader) readRow(row *page, base *url.URL) (rowValues, error) {
	out := rowValues{Fields: map[string]json.RawMessage{}}
	size := 0
	for _, f := range r.fields {
		if f.From != fromRow {
			continue
		}
		v, err := f.read(row, base)
		var b []byte
		if err == nil && v != nil {
			b, err = json.Marshal(v)
		}
		if size += len(b); err == nil && size > maxRow {
			err = fmt.Errorf("the fields of its row have more than %d bytes", maxRow)
		}
		if err != nil || v == nil {
			if out.Lacks == nil {
				out.Lacks = map[string]string{}
			}
			out.Lacks[f.name] = ""
			if err != nil {
				out.Lacks[f.name] = err.Error()
			}
			continue
		}
		out.Fields[f.name] = b
		if f.name == r.site.Key {
			out.Key = keyText(v)
		}
	}
	if len(out.Key) > maxKey {
		return out, fmt.Errorf("%w: it is longer than %d bytes", errNoKey, maxKey)
	}
	return out, nil
}

// keyOfRow returns the key of what the journal has of a row, "" if there is none.
func keyOfRow(text string) string {
	var row rowValues
	if json.Unmarshal([]byte(text), &row) != nil {
		return ""
	}
	return row.Key
}

// addRow adds what the journal has of a product's row to the product. A row that is not
// known, because the page is fetched again for a dead letter, says nothing about its fields.
func (p *ProductDetail) addRow(r *reader, text string) error {
	if !r.inRows {
		return nil
	}
	var row rowValues
	if text != "" {
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return fmt.Errorf("reading its row of the list: %w", err)
		}
	}
	for _, f := range r.fields {
		if f.From != fromRow {
			continue
		}
		if v, ok := row.Fields[f.name]; ok {
			p.Fields[f.name] = v
			continue
		}
		p.lacks = append(p.lacks, lack{field: f.name, why: row.Lacks[f.name], unseen: text == ""})
	}
	if row.Key != "" {
		p.Key = row.Key
	}
	return nil
}

// readRows reads the rows of a list page.
func (r *reader) readRows(p *page, base *url.URL, out *listPage) error {
	out.rows = map[string]string{}
	keys := map[string]string{} // by link
	for _, row := range r.rows.pages(p) {
		out.count++
		var read rowValues
		if r.inRows {
			var err error
			if read, err = r.readRow(row, base); err != nil && !errors.Is(err, errNoKey) {
				return err
			}
		}
		link, ok := r.rowLink(row, base, read.Key)
		switch {
		case r.site.Detail.Format == formatNone && read.Key == "":
			out.keyless++
			continue
		case !ok:
			out.foreign++
			continue
		}
		if r.site.Detail.Format == formatNone {
			if of, had := keys[link]; had && of != read.Key {
				link = withKey(link, read.Key)
			}
			keys[link] = read.Key
		}
		if out.seen(link) {
			continue
		}
		out.products = append(out.products, link)
		if r.inRows {
			b, err := json.Marshal(read)
			if err != nil {
				return fmt.Errorf("encoding a row: %w", err)
			}
			out.rows[link] = string(b)
		}
	}
	return nil
}

// rowLink returns the address of a row's product.
func (r *reader) rowLink(row *page, base *url.URL, key string) (string, bool) {
	if r.product != nil {
		if s, ok := r.product.first(row); ok {
			return r.link(base, s.text)
		}
		if r.site.Detail.Format != formatNone {
			return "", false
		}
	}
	u := *r.base // the same address for the same product, whichever page of the list has it
	u.Fragment = key
	s := u.String()
	return s, untrusted.Key(s) == nil
}

// withKey returns the address of a product whose row has the link of another product.
func withKey(link, key string) string {
	link, _, _ = strings.Cut(link, "#")
	return link + "#" + (&url.URL{Fragment: key}).EscapedFragment()
}

// link returns the address of a product, of which the list has a link or, for detail.url,
// a part.
func (r *reader) link(base *url.URL, s string) (string, bool) {
	s = strings.TrimSpace(s)
	if template := r.site.Detail.URL; template != "" {
		before, after, _ := strings.Cut(template, "{link}")
		if strings.Contains(before, "?") {
			s = url.QueryEscape(s)
		} else {
			s = url.PathEscape(s)
		}
		return r.follow(base, before+s+after)
	}
	if r.site.Detail.Format == formatNone { // it is not fetched, so it may be of any host
		u, err := base.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", false
		}
		u.User = nil
		return u.String(), untrusted.Key(u.String()) == nil
	}
	at, ok := r.follow(base, s)
	return r.plain(at), ok
}
