package catalog

import (
	"cmp"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

// reader reads the pages of a site.
type reader struct {
	site    Site
	base    *url.URL
	delay   time.Duration
	headers http.Header // with the names of environment variables
	rows    *finder
	product *finder
	last    *finder
	visits  atomic.Pointer[map[string]bool] // parameters of products' links that are of one visit; nil: not known yet
	total   *finder                         // the number of products
	next    *finder
	cursor  *finder
	lines   *finder       // of the product's page
	fields  []fieldReader // by name

	numbered bool // the list has {page} or {offset}
	offset   bool // it has {offset}
	inRows   bool // a field is in the rows of the list
}

// fieldReader reads a field, or a part of a group, of which Field has only what belongs to its Select and Many.
type fieldReader struct {
	name     string
	required bool
	Field
	finder
	kind
	parts []fieldReader // of a group
}

// The formats of pages.
const (
	formatHTML    = "html"
	formatJSON    = "json"
	formatSitemap = "sitemap"
	formatNone    = "none"
)

// The places of a field.
const (
	fromPage = "page"
	fromRow  = "row"
	// fromStructured is what the page says about its product for machines.
	fromStructured = "structured"
)

func (s Site) compile() (*reader, error) {
	if !siteName.MatchString(s.Name) {
		return nil, wrong("name", "name %q: want small letters, digits, - and _", s.Name)
	}
	s.List.Format, s.Detail.Format = cmp.Or(s.List.Format, formatHTML), cmp.Or(s.Detail.Format, formatHTML)
	r := &reader{site: s}
	var err error
	if r.delay, err = polite.ReadPause(s.Delay, polite.MaxDelay); err != nil {
		return nil, wrong("delay", "delay %q: %w", s.Delay, err)
	}
	for _, check := range []func() error{r.compileHeaders, r.compileAddresses, r.compileList, r.compileFields} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// secretName matches the names of headers whose values are secrets.
var secretName = regexp.MustCompile(`(?i)auth|cookie|key|token|secret|password|session`)

// ownHeaders are the headers that the crawler sets itself.
var ownHeaders = []string{"User-Agent", "From", "Host", "Accept-Encoding", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Upgrade", "Proxy-Authorization", "Range"}

func (r *reader) compileHeaders() error {
	r.headers = http.Header{}
	for name, v := range r.site.Headers {
		key := "headers." + name
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch names := variables(v); {
		case !httpguts.ValidHeaderFieldName(name):
			return wrong(key, "%s: want a name of letters, digits and -", key)
		case slices.Contains(ownHeaders, canonical):
			return wrong(key, "%s: the crawler sets it itself; leave it out (bot: in the --config file says who crawls)", key)
		case !httpguts.ValidHeaderFieldValue(v):
			return wrong(key, "%s: want a value of one line", key)
		case secretName.MatchString(name) && len(names) == 0:
			return wrong(key, "%s: a key or password does not belong in this file; write ${SITE_KEY}, and set the environment variable SITE_KEY", key)
		default:
			for _, n := range names {
				if !strings.HasPrefix(n, "SITE_") {
					return wrong(key, "%s: ${%s}: want the name of an environment variable that begins with SITE_, such as ${SITE_%s}", key, n, n)
				}
			}
		}
		r.headers[canonical] = []string{v}
	}
	return nil
}

func (r *reader) compileAddresses() error {
	l := r.site.List
	u, err := url.Parse(strings.NewReplacer("{page}", "1", "{offset}", "0", "{cursor}", "").Replace(l.URL))
	if err != nil {
		return wrong("list.url", "list.url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return wrong("list.url", "list.url %q: want http:// or https:// and a host", l.URL)
	}
	u.Fragment = ""
	r.base = u
	if len(r.headers) > 0 && u.Scheme != "https" && slices.ContainsFunc(slices.Collect(maps.Values(r.headers)), func(v []string) bool { return len(variables(v[0])) > 0 }) {
		return wrong("list.url", "list.url %q: want https://, because headers has secrets", l.URL)
	}
	if !slices.Contains([]string{formatHTML, formatJSON, formatSitemap}, l.Format) {
		return wrong("list.format", "list.format %q: want html, json or sitemap", l.Format)
	}
	if !slices.Contains([]string{"", "json", "form"}, l.BodyType) {
		return wrong("list.body_type", "list.body_type %q: want json or form", l.BodyType)
	}
	d := r.site.Detail
	if !slices.Contains([]string{formatHTML, formatJSON, formatNone}, d.Format) {
		return wrong("detail.format", "detail.format %q: want html, json or none", d.Format)
	}
	if d.URL == "" {
		return nil
	}
	at, err := url.Parse(strings.ReplaceAll(d.URL, "{link}", "1"))
	switch {
	case err != nil:
		return wrong("detail.url", "detail.url: %w", err)
	case !strings.Contains(d.URL, "{link}"):
		return wrong("detail.url", "detail.url %q: want {link} in it, where the text that list.product_link finds belongs", d.URL)
	case at.Scheme != "http" && at.Scheme != "https" || !sameHost(at, u):
		return wrong("detail.url", "detail.url %q: want an address on the host of list.url, %s", d.URL, u.Host)
	}
	return nil
}

// compileList checks how the list's pages are found.
func (r *reader) compileList() error {
	l := r.site.List
	has := func(placeholder string) bool {
		return strings.Contains(l.URL, placeholder) || strings.Contains(l.Body, placeholder)
	}
	r.offset = has("{offset}")
	r.numbered = has("{page}") || r.offset
	sized := l.PageSize > 0
	switch {
	case l.NextLink != nil && (l.LastPage != nil || r.numbered || has("{cursor}")):
		return wrong("list.next_link", "list: next_link cannot be used with last_page, or with {page}, {offset} or {cursor} in url")
	case l.NextLink != nil && l.Body != "":
		return wrong("list.next_link", "list: next_link cannot be used with body: use next_cursor, and {cursor} in body")
	case has("{cursor}") != (l.NextCursor != nil):
		return wrong("list.next_cursor", "list: next_cursor and {cursor} (in url or body) belong together; one of them is missing")
	case l.NextCursor != nil && (r.numbered || l.LastPage != nil):
		return wrong("list.next_cursor", "list: next_cursor cannot be used with last_page, or with {page} or {offset}")
	case l.LastPage != nil && !r.numbered:
		return wrong("list.last_page", "list: last_page needs {page} in url, or in body")
	case l.Total != nil && r.numbered && !sized && l.LastPage == nil && !l.UntilEmpty && l.Pages == 0:
		return wrong("list.total", "list: total needs page_size, and {page} or {offset} in url or body")
	case l.UntilEmpty && !r.numbered && l.NextCursor == nil && l.NextLink == nil:
		return wrong("list.until_empty", "list: until_empty needs {page}, {offset}, next_cursor or next_link")
	case r.offset && !sized:
		return wrong("list.page_size", "list: {offset} needs page_size, the number of products on a page")
	case l.PageSize < 0 || l.PageSize > 10_000:
		return wrong("list.page_size", "list.page_size %d: want 1 to 10000", l.PageSize)
	case l.Pages < 0 || l.Pages > maxListPages:
		return wrong("list.pages", "list.pages %d: want 1 to %d", l.Pages, maxListPages)
	case l.Format == formatSitemap && (l.Body != "" || l.Rows != nil || l.NextLink != nil || l.NextCursor != nil ||
		l.Total != nil || r.numbered || l.UntilEmpty):
		return wrong("list.format", "list.format sitemap: it has only url, pages and product_link.regexp")
	case l.Rendering && (l.Format != formatHTML || l.Body != ""):
		return wrong("list.rendering", "list.rendering: only HTML pages without body are rendered")
	case r.site.Detail.Rendering && r.site.Detail.Format != formatHTML:
		return wrong("detail.rendering", "detail.rendering: only HTML pages are rendered")
	case r.site.Detail.Format == formatNone && l.Rows == nil:
		return wrong("detail.format", "detail.format none: it needs list.rows, in which the fields then are")
	case l.ProductLink == nil && l.Format != formatSitemap && r.site.Detail.Format != formatNone:
		return wrong("list", "list.product_link: name what finds the links to the products")
	}
	return r.compileSelects(l)
}

func (r *reader) compileSelects(l list) error {
	for _, part := range []struct {
		name string
		of   *Select
		to   **finder
		link bool
	}{{"rows", l.Rows, &r.rows, false}, {"product_link", l.ProductLink, &r.product, true}, {"last_page", l.LastPage, &r.last, false},
		{"total", l.Total, &r.total, false}, {"next_link", l.NextLink, &r.next, true}, {"next_cursor", l.NextCursor, &r.cursor, false}} {
		if part.of == nil {
			continue
		}
		s, format := *part.of, l.Format
		if part.of == l.ProductLink && l.Rows != nil {
			format = l.Rows.inside(format)
		}
		if part.link && s.ofElement(format) {
			s.Attribute = cmp.Or(s.Attribute, "href")
		}
		f, err := s.compile("list."+part.name, format)
		if err != nil {
			return err
		}
		f.apart = part.of == l.LastPage || part.of == l.Total
		*part.to = &f
	}
	return nil
}

func (r *reader) compileFields() error {
	s := r.site
	if len(s.Fields) == 0 {
		return wrong("fields", "fields: there is none; name at least the key's field")
	}
	key, ok := s.Fields[s.Key]
	switch {
	case s.Key == "":
		return wrong("key", "key: name the field that is different for each product")
	case !ok:
		return wrong("key", "key %q: there is no such field", s.Key)
	case key.Optional || key.Volatile:
		return wrong("fields."+s.Key, "fields.%s: the key cannot be optional or volatile", s.Key)
	case key.Many:
		return wrong("fields."+s.Key+".many", "fields.%s: the key has one value; leave many out", s.Key)
	case slices.Contains([]string{"list", "money", "quantity", "group"}, key.Type):
		return wrong("fields."+s.Key+".type", "fields.%s: the key cannot be of the type %s", s.Key, key.Type)
	}
	if zone := s.TimeZone; zone != "" {
		if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
			return wrong("timezone", "timezone %q: want a name of the IANA database, such as Asia/Seoul", zone)
		}
	}
	if _, err := value.ParseLocale(s.Locale); err != nil {
		return &keyError{"locale", err}
	}
	if err := value.ParseCurrency(s.Currency); err != nil {
		return &keyError{"currency", err}
	}
	if lines := (Select{Selector: s.Detail.Lines}); s.Detail.Lines != "" {
		if s.Detail.Format != formatHTML {
			return wrong("detail.lines", "detail.lines: only an HTML page has lines; write detail.format: html, or leave it out")
		}
		found, err := lines.compile("detail.lines", formatHTML)
		if err != nil {
			return err
		}
		r.lines = &found
	}
	for _, name := range sortedNames(s.Fields) {
		compiled, err := r.compileField(name, s.Fields[name])
		if err != nil {
			return err
		}
		r.fields = append(r.fields, compiled)
	}
	return nil
}

func (r *reader) compileField(name string, f Field) (fieldReader, error) {
	s, where := r.site, "fields."+name
	var none fieldReader
	if !fieldName.MatchString(name) {
		return none, wrong(where, "%s: want a name of small letters, digits and _", where)
	}
	k, err := r.compileKind(where, f.Type, f.Locale, f.TimeZone, f.Currency, f.Unit, Field{From: f.From})
	if err != nil {
		return none, err
	}
	if f.Many && f.Type == "list" {
		return none, wrong(where+".many", "%s.many: the type list has all values already", where)
	}
	place, format := fromPage, s.Detail.Format
	if format == formatNone {
		place = fromRow
	}
	f.From = cmp.Or(f.From, place)
	switch {
	case !slices.Contains([]string{fromPage, fromRow, fromStructured}, f.From):
		return none, wrong(where+".from", "%s.from %q: want page, row or structured", where, f.From)
	case f.From != fromRow && place == fromRow:
		return none, wrong(where+".from", "%s.from %s: detail.format is none, so there is no product's page; write row", where, f.From)
	case f.From == fromRow && s.List.Rows == nil:
		return none, wrong(where+".from", "%s.from row: it needs list.rows, which finds the products in a list page", where)
	case f.From == fromRow:
		format, r.inRows = s.List.Rows.inside(s.List.Format), true
	case f.From == fromStructured && format != formatHTML:
		return none, wrong(where+".from", "%s.from structured: only an HTML page has structured data; write path alone", where)
	case f.From == fromStructured:
		format = formatJSON
	}
	chosen := f.Select
	if f.Label != nil {
		chosen.Selector = cmp.Or(f.Selector, "*")
	}
	chosen.Attribute = defaultAttribute(chosen, f.Type, format)
	f.Attribute = chosen.Attribute
	parts, err := r.compileParts(where, f, format)
	if err != nil {
		return none, err
	}
	found, err := r.compileLabels(where, f, chosen, format)
	if err != nil {
		return none, err
	}
	found.apart = k.hasDigits()
	return fieldReader{name: name, required: !f.Optional && !f.Volatile, Field: f, finder: found, kind: k, parts: parts}, nil
}

// compileKind checks a type and what belongs to it. What a part of a group does not say, the
// group says; of another field group has only its From.
func (r *reader) compileKind(where, name, locale, zone, money, unit string, group Field) (k kind, err error) {
	s := r.site
	if !slices.Contains(fieldTypes, name) {
		return k, wrong(where+".type", "%s.type %q: want one of %s", where, name, strings.Join(fieldTypes[1:], ", "))
	}
	k = kind{name: name, money: cmp.Or(money, group.Currency, s.Currency), unit: unit}
	if own := cmp.Or(locale, group.Locale); own == "" && group.From == fromStructured {
		k.locale = value.Programs
	} else if k.locale, err = value.ParseLocale(cmp.Or(own, s.Locale)); err != nil {
		return k, wrong(where+".locale", "%s: %w", where, err)
	}
	if err := value.ParseCurrency(money); err != nil {
		return k, wrong(where+".currency", "%s: %w", where, err)
	}
	if err := value.ParseUnit(unit); err != nil {
		return k, wrong(where+".unit", "%s: %w", where, err)
	}
	if unit != "" && name != "quantity" {
		return k, wrong(where+".unit", "%s: unit belongs to the type quantity", where)
	}
	if zone = cmp.Or(zone, group.TimeZone, s.TimeZone); zone != "" {
		if k.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
			return k, wrong(where+".timezone", "%s: timezone %q: want a name of the IANA database, such as Asia/Seoul", where, zone)
		}
	}
	return k, nil
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
