package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones are then known on every machine

	"github.com/andybalholm/cascadia"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Site is the YAML file of a shop or register: it says where the products are and how
// their pages are read. The comments and tags of the fields are the reference page of the
// file and its JSON Schema (pipeline/reference).
type Site struct {
	// Name of the site in rows and reports.
	Name string `yaml:"name" jsonschema:"required" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$"`
	// How the site writes numbers and dates: a BCP 47 tag such as de-DE. Without it only
	// texts that can be read in one way alone have a value.
	Locale string `yaml:"locale"`
	// Which day a point in time belongs to, where a text gives time and offset: a name of
	// the IANA database such as Asia/Seoul.
	TimeZone string `yaml:"timezone"`
	// Of prices without a currency, or with a sign that several currencies share: an
	// ISO 4217 code.
	Currency string `yaml:"currency" pattern:"^[A-Z]{3}$"`
	// Where the list of products is.
	List List `yaml:"list" jsonschema:"required"`
	// The field that is different for each product. It cannot be optional or volatile,
	// nor of the type list or money.
	Key string `yaml:"key" jsonschema:"required" pattern:"^[a-z][a-z0-9_]{0,63}$"`
	// The fields of a product by name: small letters, digits and _.
	Fields map[string]Field `yaml:"fields" jsonschema:"required,minProperties=1" pattern:"^[a-z][a-z0-9_]{0,63}$"`
}

// List says how the pages of a product list are found: by number up to the last page that
// the site shows, by number up to pages, or by next links.
type List struct {
	// {page} stands for the page's number. Without it, the URL of the first page.
	URL string `yaml:"url" jsonschema:"required" pattern:"^https?://"`
	// Number of the first page.
	FirstPage *int `yaml:"first_page" jsonschema:"default=1"`
	// How many list pages are read at most. Default 50, or 10000 with last_page or
	// next_link; 1 for a url without {page}.
	Pages int `yaml:"pages" jsonschema:"minimum=0,maximum=10000"`
	// Finds the links to the products. The attribute is href unless it is named.
	ProductLink Select `yaml:"product_link" jsonschema:"required"`
	// Finds the number of the last page: the largest number counts. It needs {page} in url.
	LastPage *Select `yaml:"last_page"`
	// Finds the link to the next page. Not together with last_page or {page}.
	NextLink *Select `yaml:"next_link"`
}

// Select finds a text in a page.
type Select struct {
	// CSS, and also :contains("text") and :matches(regexp).
	Selector string `yaml:"selector" jsonschema:"required,minLength=1"`
	// An attribute whose value is used instead of the element's text.
	Attribute string `yaml:"attribute"`
	// Matches the part of the text that is used: its first group, or all of it.
	Regexp string `yaml:"regexp"`
}

// Field is one property of a product.
type Field struct {
	// CSS, and also :contains("text") and :matches(regexp). The first element that
	// matches and has a text counts; with the type list, all of them.
	Selector string `yaml:"selector" jsonschema:"required,minLength=1"`
	// An attribute whose value is used instead of the element's text. With the type url
	// it is href unless it is named.
	Attribute string `yaml:"attribute"`
	// Matches the part of the text that is used: its first group, or all of it.
	Regexp string `yaml:"regexp"`
	// How the text is read.
	Type string `yaml:"type" jsonschema:"enum=text,enum=integer,enum=number,enum=money,enum=date,enum=boolean,enum=url,enum=list,default=text"`
	// How this field writes numbers and dates, if not as the site.
	Locale string `yaml:"locale"`
	// Of this field's prices, if not the site's.
	Currency string `yaml:"currency" pattern:"^[A-Z]{3}$"`
	// Many products lack the field.
	Optional bool `yaml:"optional" jsonschema:"default=false"`
	// The saved value is removed when the page no longer has it.
	Volatile bool `yaml:"volatile" jsonschema:"default=false"`
}

// The default and the maximum of List.Pages.
const (
	defaultPages = 50
	maxListPages = 10_000
)

var (
	siteName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	fieldName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	fieldTypes = []string{"", "text", "integer", "number", "money", "date", "boolean", "url", "list"}
)

// ReadSites reads every *.yaml of files, sorted by name. An error names the file, the
// key and what is wrong with it.
func ReadSites(files fs.FS) ([]Site, error) {
	names, err := yamltext.Files(files)
	if err != nil {
		return nil, fmt.Errorf("listing sites: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New("there is no *.yaml in it: a site is one YAML file")
	}
	var sites []Site
	from := map[string]string{}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading a site: %w", err)
		}
		s, err := ParseSite(b)
		if err != nil {
			return nil, fmt.Errorf("reading site %s: %w", path.Base(name), err)
		}
		if other, taken := from[s.Name]; taken {
			return nil, fmt.Errorf("reading site %s: name %s is also the name of %s", path.Base(name), s.Name, other)
		}
		from[s.Name] = name
		sites = append(sites, s)
	}
	return sites, nil
}

// ParseSite reads one site and checks what can be checked without its pages.
func ParseSite(text []byte) (Site, error) {
	var s Site
	if err := yamltext.Strict(text, &s); err != nil {
		return Site{}, fmt.Errorf("parsing YAML: %w", err)
	}
	_, err := s.compile()
	return s, err
}

// Host returns the site's web.Site, which determines its lane.
func (s Site) Host() string {
	u, err := url.Parse(s.List.URL)
	if err != nil {
		return s.Name
	}
	return web.Site(u)
}

// reader reads the pages of a site.
type reader struct {
	site     Site
	base     *url.URL
	product  finder
	last     *finder
	next     *finder
	fields   []fieldReader // by name
	numbered bool
}

type fieldReader struct {
	name     string
	required bool
	Field
	finder
	locale value.Locale
	zone   *time.Location // nil: the zone in each text
}

// finder is a compiled Select.
type finder struct {
	group     cascadia.SelectorGroup
	classes   []string // see classesOf
	labels    []label  // of classesOf
	attribute string
	part      *regexp.Regexp
}

func (s Site) compile() (*reader, error) {
	if !siteName.MatchString(s.Name) {
		return nil, fmt.Errorf("name %q: want small letters, digits, - and _", s.Name)
	}
	u, err := url.Parse(strings.ReplaceAll(s.List.URL, "{page}", "1"))
	if err != nil {
		return nil, fmt.Errorf("list.url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("list.url %q: want http:// or https:// and a host", s.List.URL)
	}
	r := &reader{site: s, base: u, numbered: strings.Contains(s.List.URL, "{page}")}
	switch {
	case s.List.NextLink != nil && (s.List.LastPage != nil || r.numbered):
		return nil, errors.New("list: next_link cannot be used with last_page or with {page} in url")
	case s.List.LastPage != nil && !r.numbered:
		return nil, errors.New("list: last_page needs {page} in url")
	case s.List.Pages < 0 || s.List.Pages > maxListPages:
		return nil, fmt.Errorf("list.pages %d: want 1 to %d", s.List.Pages, maxListPages)
	}
	link := s.List.ProductLink
	link.Attribute = cmp.Or(link.Attribute, "href")
	if r.product, err = link.compile("list.product_link"); err != nil {
		return nil, err
	}
	if s.List.LastPage != nil {
		f, err := s.List.LastPage.compile("list.last_page")
		if err != nil {
			return nil, err
		}
		if f.part == nil {
			f.part = regexp.MustCompile(`\d+`)
		}
		r.last = &f
	}
	if s.List.NextLink != nil {
		link := *s.List.NextLink
		link.Attribute = cmp.Or(link.Attribute, "href")
		f, err := link.compile("list.next_link")
		if err != nil {
			return nil, err
		}
		r.next = &f
	}
	if err := r.compileFields(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *reader) compileFields() error {
	s := r.site
	if len(s.Fields) == 0 {
		return errors.New("fields: there is none; name at least the key's field")
	}
	key, ok := s.Fields[s.Key]
	switch {
	case s.Key == "":
		return errors.New("key: name the field that is different for each product")
	case !ok:
		return fmt.Errorf("key %q: there is no such field", s.Key)
	case key.Optional || key.Volatile:
		return fmt.Errorf("fields.%s: the key cannot be optional or volatile", s.Key)
	case key.Type == "list" || key.Type == "money":
		return fmt.Errorf("fields.%s: the key cannot be of the type %s", s.Key, key.Type)
	}
	var zone *time.Location
	if s.TimeZone != "" {
		var err error
		if zone, err = time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
			return fmt.Errorf("timezone %q: want a name of the IANA database, such as Asia/Seoul", s.TimeZone)
		}
	}
	if _, err := value.ParseLocale(s.Locale); err != nil {
		return err
	}
	if err := value.ParseCurrency(s.Currency); err != nil {
		return err
	}
	for name, f := range s.Fields {
		if !fieldName.MatchString(name) {
			return fmt.Errorf("fields.%s: want a name of small letters, digits and _", name)
		}
		if !slices.Contains(fieldTypes, f.Type) {
			return fmt.Errorf("fields.%s.type %q: want one of %s", name, f.Type, strings.Join(fieldTypes[1:], ", "))
		}
		locale, err := value.ParseLocale(cmp.Or(f.Locale, s.Locale))
		if err != nil {
			return fmt.Errorf("fields.%s: %w", name, err)
		}
		if err := value.ParseCurrency(f.Currency); err != nil {
			return fmt.Errorf("fields.%s: %w", name, err)
		}
		f.Currency = cmp.Or(f.Currency, s.Currency)
		if f.Type == "url" {
			f.Attribute = cmp.Or(f.Attribute, "href")
		}
		found, err := Select{f.Selector, f.Attribute, f.Regexp}.compile("fields." + name)
		if err != nil {
			return err
		}
		r.fields = append(r.fields, fieldReader{name: name, required: !f.Optional && !f.Volatile, Field: f, finder: found, locale: locale, zone: zone})
	}
	slices.SortFunc(r.fields, func(a, b fieldReader) int { return strings.Compare(a.name, b.name) })
	return nil
}

func (s Select) compile(where string) (finder, error) {
	if s.Selector == "" {
		return finder{}, fmt.Errorf("%s: it has no selector", where)
	}
	group, err := cascadia.ParseGroup(s.Selector)
	if err != nil {
		return finder{}, fmt.Errorf("%s.selector %q: %w", where, s.Selector, err)
	}
	classes, labels := classesOf(s.Selector, group)
	f := finder{group: group, classes: classes, labels: labels, attribute: strings.ToLower(s.Attribute)}
	if s.Regexp != "" {
		if f.part, err = regexp.Compile(s.Regexp); err != nil {
			return finder{}, fmt.Errorf("%s.regexp: %w", where, err)
		}
	}
	return f, nil
}

func (r *reader) firstPage() int {
	if r.site.List.FirstPage != nil {
		return *r.site.List.FirstPage
	}
	return 1
}

// pages returns the maximum number of list pages of a crawl.
func (r *reader) pages() int {
	switch {
	case r.site.List.Pages > 0:
		return r.site.List.Pages
	case r.last != nil || r.next != nil:
		return maxListPages
	case !r.numbered:
		return 1
	}
	return defaultPages
}

// listURL returns the address of a numbered page.
func (r *reader) listURL(page int) string {
	return strings.ReplaceAll(r.site.List.URL, "{page}", strconv.Itoa(page))
}

// seeds returns the list pages that are known before any page is read.
func (r *reader) seeds() []entry {
	n := 1
	if r.last == nil && r.next == nil {
		n = r.pages()
	}
	return r.numberedPages(r.firstPage(), r.firstPage()+n-1)
}

// numberedPages returns the list pages from first to last.
func (r *reader) numberedPages(first, last int) []entry {
	last = min(last, r.firstPage()+r.pages()-1)
	var out []entry
	for page := first; page <= last; page++ {
		out = append(out, entry{Kind: KindFetchListPage, URL: r.listURL(page), Page: page})
	}
	return out
}
