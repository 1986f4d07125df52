package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/io/web"
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
	// The least pause between two requests to the site, such as 5s, up to 1h.
	Delay string `yaml:"delay" pattern:"^[0-9][0-9a-zµ.]*$"`
	// Headers of each request to the site, by name. ${SITE_NAME} stands for the environment
	// variable SITE_NAME of the process that sends it: keys and passwords are only there.
	Headers map[string]string `yaml:"headers" pattern:"^[A-Za-z0-9-]+$"`
	// Where the list of products is.
	List list `yaml:"list" jsonschema:"required"`
	// How a product's own page is read.
	Detail detail `yaml:"detail"`
	// The tags among which --tag-url's model chooses. Without them it is free.
	Tags []string `yaml:"tags"`
	// The field that is different for each product. It cannot be optional or volatile,
	// nor of the type list or money.
	Key string `yaml:"key" jsonschema:"required" pattern:"^[a-z][a-z0-9_]{0,63}$"`
	// The fields of a product by name: small letters, digits and _.
	Fields map[string]Field `yaml:"fields" jsonschema:"required,minProperties=1" pattern:"^[a-z][a-z0-9_]{0,63}$"`
}

// list says how the pages of a product list are found: by number up to the last page that
// the site shows, by number up to pages or to a page without products, by a cursor, or by
// next links; or that the list is a sitemap.
type list struct {
	// The address of a page. {page} stands for its number, {offset} for the number of
	// products before it, {cursor} for the cursor that the page before it has. Without
	// them, here and in body, the URL of the first page.
	URL string `yaml:"url" jsonschema:"required" pattern:"^https?://"`
	// What a list page is. With sitemap, url is a sitemap or an index of sitemaps.
	Format string `yaml:"format" jsonschema:"enum=html,enum=json,enum=sitemap,default=html"`
	// If it is there, pages are requested with POST, with this text as the body. It may
	// have {page}, {offset} and {cursor}, too. In JSON, {cursor} without quotes is null on
	// the first page, unless there is first_cursor, and then a number or a text.
	Body string `yaml:"body"`
	// What body is. A cursor is escaped for it.
	BodyType string `yaml:"body_type" jsonschema:"enum=json,enum=form,default=json"`
	// Number of the first page.
	FirstPage *int `yaml:"first_page" jsonschema:"default=1"`
	// The number of products on a page, for {offset} and total.
	PageSize int `yaml:"page_size" jsonschema:"minimum=0,maximum=10000"`
	// How many list pages are read at most. Default 50, or 10000 where the site says
	// where the list ends (last_page, total, next_link, next_cursor, until_empty, sitemap);
	// 1 for a list without numbers, links and cursors.
	Pages int `yaml:"pages" jsonschema:"minimum=0,maximum=10000"`
	// Finds the products on a page; fields with from: row are read inside them. Without
	// it, product_link finds the products.
	Rows *Select `yaml:"rows"`
	// Finds the links to the products, in rows if there are rows. The attribute is href
	// unless it is named. It is needed unless detail.format is none; of a sitemap
	// only its regexp counts, which chooses the addresses.
	ProductLink *Select `yaml:"product_link"`
	// Finds the number of the last page: the largest number counts ("Page 1 of 20"), of an
	// attribute the first. It needs {page} or {offset}.
	LastPage *Select `yaml:"last_page"`
	// Finds the number of all products, the largest in the text ("1–24 of 1 204"), which says with page_size
	// how many pages of numbered ones there are. In the end it is compared with the products that the list names.
	Total *Select `yaml:"total"`
	// The list ends at the first page without products. Pages are then read one after the other.
	UntilEmpty bool `yaml:"until_empty" jsonschema:"default=false"`
	// Finds the link to the next page, or the address that a button loads more from. Not
	// together with last_page, {page} or {offset}.
	NextLink *Select `yaml:"next_link"`
	// Finds the cursor of the next page, for {cursor}. The list ends at a page without one, or
	// where it is false or the number 0.
	NextCursor *Select `yaml:"next_cursor"`
	// Stands for {cursor} on the first page.
	FirstCursor string `yaml:"first_cursor"`
	// Only scripts make the list's pages: a browser runs them first.
	Rendering bool `yaml:"rendering" jsonschema:"default=false"`
}

// detail says how a product's own page is read.
type detail struct {
	// The address of a product's page, where it is not the product's link: {link} stands
	// for what product_link finds, such as a number.
	URL string `yaml:"url" pattern:"^https?://"`
	// What a product's page is; none: all fields are in the rows of the list, and no
	// product's page is fetched.
	Format string `yaml:"format" jsonschema:"enum=html,enum=json,enum=none,default=html"`
	// CSS of the lines of an HTML page in which fields with label are: items of a list, rows
	// of a table, or dt.
	Lines string `yaml:"lines"`
	// Only scripts make the products' pages: a browser runs them first.
	Rendering bool `yaml:"rendering" jsonschema:"default=false"`
}

// Select finds a text in a page.
type Select struct {
	// CSS, and also :contains("text") and :matches(regexp), of an HTML page. Of a field the first
	// element that matches and has a text counts; with the type list, all of them.
	Selector string `yaml:"selector"`
	// An attribute whose value is used instead of the element's text. With the type url
	// it is href unless it is named, with the type image src.
	Attribute string `yaml:"attribute"`
	// A JMESPath expression: where the text is in JSON. With a selector, the JSON is
	// the text of that element (such as a script), or the value of its attribute; where
	// the page is JSON, path finds HTML, and selector and attribute are of it.
	Path string `yaml:"path"`
	// Matches the part of the text that is used: its first group, or all of it.
	Regexp string `yaml:"regexp"`
}

// Field is one property of a product.
type Field struct {
	// Where the field is: on the product's page, in its row of the list, or in what the
	// page says for machines (JSON-LD, microdata, RDFa, Open Graph), which path then
	// leads through. Default page, or row where detail.format is none.
	From string `yaml:"from" jsonschema:"enum=page,enum=row,enum=structured"`
	// The field stands in the line of detail.lines that has one of these labels, whatever
	// their case and a colon after them. Different values under them are an error. A page
	// without such a line is read by selector, if the field has one.
	Label  []string `yaml:"label"`
	Select `yaml:",inline"`
	// How the text is read.
	Type string `yaml:"type" jsonschema:"enum=text,enum=integer,enum=number,enum=quantity,enum=money,enum=date,enum=time,enum=boolean,enum=url,enum=image,enum=list,enum=group,default=text"`
	// All values that are found, in an array, and not the first one alone.
	Many bool `yaml:"many" jsonschema:"default=false"`
	// How this field writes numbers and dates, if not as the site. Numbers of JSON are
	// always read as JSON writes them.
	Locale string `yaml:"locale"`
	// Of this field's dates and times, if not the site's.
	TimeZone string `yaml:"timezone"`
	// Of this field's prices, if not the site's.
	Currency string `yaml:"currency" pattern:"^[A-Z]{3}$"`
	// Of the type quantity: values are converted to this unit (kg, cm, l, W …), which is also
	// the unit of a text without one. Without it a value keeps the unit that it is written with.
	Unit string `yaml:"unit"`
	// The parts of the type group, by name. They are read inside the element, or the part of
	// the JSON, that the field finds, and become an object.
	Fields map[string]Part `yaml:"fields" pattern:"^[a-z][a-z0-9_]{0,63}$"`
	// Many products lack the field.
	Optional bool `yaml:"optional" jsonschema:"default=false"`
	// The saved value is removed when the page no longer has it.
	Volatile bool `yaml:"volatile" jsonschema:"default=false"`
}

// Part is one part of a field of the type group.
type Part struct {
	Select `yaml:",inline"`
	// As of a field.
	Type string `yaml:"type" jsonschema:"enum=text,enum=integer,enum=number,enum=quantity,enum=money,enum=date,enum=time,enum=boolean,enum=url,enum=image,enum=list,default=text"`
	// As of a field.
	Many bool `yaml:"many" jsonschema:"default=false"`
	// As of a field.
	Locale string `yaml:"locale"`
	// As of a field.
	Currency string `yaml:"currency" pattern:"^[A-Z]{3}$"`
	// As of a field.
	Unit string `yaml:"unit"`
}

// The default and the maximum of List.Pages.
const (
	defaultPages = 50
	maxListPages = 10_000
)

var (
	siteName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	fieldName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	fieldTypes = []string{"", "text", "integer", "number", "quantity", "money", "date", "time", "boolean", "url", "image", "list", "group"}
)

// ReadSites reads every *.yaml of files, sorted by name. An error names the file, the
// key and what is wrong with it.
func ReadSites(files fs.FS) (sites []Site, texts []string, err error) {
	names, err := yamltext.Files(files)
	if err != nil {
		return nil, nil, fmt.Errorf("listing sites: %w", err)
	}
	if len(names) == 0 {
		return nil, nil, errors.New("there is no *.yaml in it: a site is one YAML file")
	}
	from := map[string]string{}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a site: %w", err)
		}
		s, err := ParseSite(b)
		if err != nil {
			return nil, nil, fmt.Errorf("reading site %s: %w", path.Base(name), err)
		}
		if other, taken := from[s.Name]; taken {
			return nil, nil, fmt.Errorf("reading site %s: name %s is also the name of %s", path.Base(name), s.Name, other)
		}
		from[s.Name] = name
		sites, texts = append(sites, s), append(texts, string(b))
	}
	return sites, texts, nil
}

// ParseSite reads one site and checks what can be checked without its pages.
func ParseSite(text []byte) (Site, error) {
	var s Site
	if err := yamltext.Strict(text, &s); err != nil {
		return Site{}, fmt.Errorf("parsing YAML: %w", err)
	}
	_, err := s.compile()
	var wrong *keyError
	if errors.As(err, &wrong) {
		if line := yamltext.Line(text, strings.Split(wrong.key, ".")...); line > 0 {
			err = fmt.Errorf("line %d: %w", line, err)
		}
	}
	return s, err
}

// keyError says what is wrong with the value of a key of a site's file.
type keyError struct {
	key string // such as list.url
	err error
}

func (e *keyError) Error() string { return e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// wrong makes the error of a key. Its text names the key and says what to write.
func wrong(key, format string, args ...any) error {
	return &keyError{key, fmt.Errorf(format, args...)}
}

// Host returns the site's web.Site, which determines its lane.
func (s Site) Host() string {
	u, err := url.Parse(s.List.URL)
	if err != nil {
		return s.Name
	}
	return web.Site(u)
}
