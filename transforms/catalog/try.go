package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
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
	Counts trialNumbers `json:"counts"`
	// KeyInRow is true for a product's page of a site whose key is in the rows of the list, and so in another page.
	KeyInRow bool `json:"key_in_row,omitempty"`
	// Tags are what the model of Tagging says of the product; nil: it was not asked, or
	// Untagged says why it gave none.
	Tags     []string `json:"tags,omitempty"`
	Untagged string   `json:"untagged,omitempty"`
}

// trialNumbers count what a page has as a list page.
type trialNumbers struct {
	ProductLinks int    `json:"product_links"`
	Ignored      int    `json:"ignored_links"` // to another host, not HTTP, or too long
	LastPage     int    `json:"last_page,omitempty"`
	NextPage     string `json:"next_page,omitempty"`
	NextCursor   string `json:"next_cursor,omitempty"`
}

// TrialPart is what one selector of the file finds in the page.
type TrialPart struct {
	Name     string   `json:"name"`
	Selector string   `json:"selector"` // or the path
	Elements int      `json:"elements"` // that the selector matches
	Value    any      `json:"value,omitempty"`
	Required bool     `json:"required,omitempty"`
	Why      string   `json:"why,omitempty"`  // there is no value
	Near     []string `json:"near,omitempty"` // what the page has that is similar
}

// Found reports whether the page is one of the site's: it has a product, or links to some.
func (t Trial) Found() bool {
	has := func(f TrialPart) bool { return f.Value != nil }
	return t.Key != "" || t.Counts.ProductLinks > 0 || t.KeyInRow && slices.ContainsFunc(t.Fields, has)
}

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
	if v.tagger != nil {
		defer v.tagger.Close()
	}
	u, err := url.Parse(address)
	if err != nil || !sameHost(u, v.reader.base) {
		return t, fmt.Errorf("%s is not on %s, the host of list.url in the file of %s: give a page of that host", address, v.reader.base.Host, s.Name)
	}
	within, release, err := v.w.Lease(ctx, lease.InDB(fn.db), cfg.LeaseTTL, true, Job+"/"+s.Name)
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
	at, body, format, rendering := address, []byte(nil), v.reader.site.Detail.Format, v.reader.site.Detail.Rendering
	if page, is := v.reader.isList(address); is {
		format, rendering = v.reader.site.List.Format, v.reader.site.List.Rendering
		at, body = v.reader.listRequest(address, page)
	}
	endBrowser, err := v.startBrowser(within)
	if err != nil {
		return t, err
	}
	defer endBrowser()
	got, err := v.fetch(within, at, body, format)
	if err == nil && rendering {
		got.HTMLContent, err = v.render(within, got.at, got.HTMLContent, func(at, text string) bool { return v.reader.showsKey(at, text) || v.reader.showsProducts(at, text) })
	}
	if err != nil {
		return t, fmt.Errorf("fetching %s: %w", address, err)
	}
	if t, err = v.reader.try(address, got.at, got.HTMLContent); err != nil {
		return t, err
	}
	err = v.tryTags(within, &t)
	return t, err
}

// isList reports whether an address is one of the list, by list.url, and of which page.
// A site whose products' pages have the same format needs no answer.
func (r *reader) isList(address string) (page int, is bool) {
	pattern := strings.NewReplacer(regexp.QuoteMeta("{page}"), `(\d+)`, regexp.QuoteMeta("{offset}"), `\d+`, regexp.QuoteMeta("{cursor}"), ".*").Replace(regexp.QuoteMeta(r.site.List.URL))
	re, err := regexp.Compile("^" + pattern + "$")
	if err != nil {
		return 0, false
	}
	at, _, _ := strings.Cut(address, "#")
	m := re.FindStringSubmatch(at)
	page = r.firstPage()
	if len(m) > 1 {
		if n, err := strconv.Atoi(m[1]); err == nil {
			page = n
		}
	}
	return page, m != nil || r.site.List.Format == r.site.Detail.Format && r.site.List.Body == ""
}

// try reads a page both as a list page and as a product's page. A page that has not the
// format of one of them is not read as that. found is where redirects led to.
func (r *reader) try(address, found, text string) (Trial, error) {
	t := Trial{Site: r.site.Name, URL: address}
	asList := r.tryList(&t, redirected(address, found), text)
	asDetail := r.tryDetail(&t, found, text)
	if asList != nil && asDetail != nil {
		return t, asList
	}
	return t, nil
}

func (r *reader) tryList(t *Trial, address, text string) error {
	list, err := r.readList(address, text)
	if err != nil {
		return err
	}
	t.Links = list.products[:min(len(list.products), maxLinks)]
	t.Counts = trialNumbers{ProductLinks: len(list.products), Ignored: list.foreign, LastPage: list.last, NextPage: list.next, NextCursor: list.cursor}
	if r.site.List.Format == formatSitemap {
		return nil
	}
	p, base, err := open(address, text, r.site.List.Format)
	if err != nil {
		return err
	}
	within := p
	if r.rows != nil {
		rows := r.rows.pages(p)
		part := TrialPart{Name: "list.rows", Selector: r.site.List.Rows.String(), Elements: len(rows)}
		if len(rows) == 0 {
			part.Why, part.Near = r.rows.missing(*r.site.List.Rows, p)
			within = newPage()
		} else {
			part.Value = fmt.Sprintf("%d rows; the fields are those of the first one", len(rows))
			within = rows[0]
		}
		t.List = append(t.List, part)
	}
	for _, part := range []struct {
		name string
		of   *Select
		f    *finder
		p    *page
	}{{"list.product_link", r.site.List.ProductLink, r.product, within}, {"list.last_page", r.site.List.LastPage, r.last, p}, {"list.total", r.site.List.Total, r.total, p},
		{"list.next_link", r.site.List.NextLink, r.next, p}, {"list.next_cursor", r.site.List.NextCursor, r.cursor, p}} {
		if part.f != nil {
			t.List = append(t.List, part.f.tryAll(part.name, *part.of, part.p))
		}
	}
	if r.rows != nil && len(list.products) > 0 {
		r.tryFields(t, fromRow, within, base)
	}
	return nil
}

func (r *reader) tryDetail(t *Trial, address, text string) error {
	if r.site.Detail.Format == formatNone {
		return nil
	}
	p, base, err := open(address, text, r.site.Detail.Format)
	if err != nil {
		return err
	}
	r.tryFields(t, fromPage, p, base)
	r.tryFields(t, fromStructured, p.described(), base)
	for _, f := range r.fields {
		tried := slices.ContainsFunc(t.Fields, func(part TrialPart) bool { return part.Name == f.name })
		if f.From == fromRow && !tried {
			t.KeyInRow = t.KeyInRow || f.name == r.site.Key
			t.Fields = append(t.Fields, TrialPart{Name: f.name, Selector: f.String(), Why: "it is in the product's row of the list: try a page of the list, " + r.listURL(r.firstPage())})
		}
	}
	return nil
}

// tryFields reads the fields of a product's page, or of its row.
func (r *reader) tryFields(t *Trial, from string, p *page, base *url.URL) {
	for _, f := range r.fields {
		if f.From != from {
			continue
		}
		part := TrialPart{Name: f.name, Selector: f.String(), Required: f.required, Elements: f.count(p)}
		v, err := f.read(p, base)
		switch {
		case err != nil:
			part.Why = err.Error()
		case v == nil:
			part.Why, part.Near = f.missing(f.Select, p)
		default:
			part.Value = v
			if f.name == r.site.Key {
				t.Key = keyText(v)
			}
		}
		t.Fields = append(t.Fields, part)
	}
}

// tryAll is what a selector of the list finds.
func (f finder) tryAll(name string, s Select, p *page) TrialPart {
	part := TrialPart{Name: name, Selector: s.String(), Elements: f.count(p)}
	if found, ok := f.first(p); ok {
		part.Value = untrusted.Line(found.text, maxShown)
	} else {
		part.Why, part.Near = f.missing(s, p)
	}
	return part
}

// count returns how many elements the finder's selector matches, or how many values its
// path has.
func (f finder) count(p *page) int {
	if n := len(f.under(p)); n > 0 || f.group == nil && f.lines != nil {
		return n
	}
	if f.group == nil {
		return len(f.path.items(p.data))
	}
	return len(f.matches(p))
}

// missing says why a finder finds no text in a page, and what the page has instead.
func (f finder) missing(s Select, p *page) (why string, near []string) {
	if f.lines != nil && (f.group == nil || len(f.matches(p)) == 0) {
		return f.missingLine(p)
	}
	if f.group == nil {
		return f.missingData(s, p.data)
	}
	in, found := f.in(p), f.matches(p)
	switch {
	case len(in) == 0:
		return f.missingData(s, p.data)
	case len(found) == 0:
		return "no element matches the selector", in[0].similar(s.Selector)
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
	if f.path != nil && !f.markup {
		data, err := parseJSON(f.raw(found[0]))
		if err != nil {
			return "the element has no JSON: " + err.Error(), nil
		}
		return f.missingData(s, data)
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

// missingData is missing for JSON.
func (f finder) missingData(s Select, data any) (why string, near []string) {
	found, err := f.path.search(data)
	switch {
	case err != nil:
		return err.Error(), nil
	case f.part != nil:
		for text := range f.path.scalars(data) {
			return fmt.Sprintf("the text does not match the regexp %s", f.part), []string{"text " + untrusted.Line(text.text, maxShown)}
		}
	}
	if found != nil {
		return "the path leads to no text and no number", members(s.Path, found)
	}
	for at := s.Path; ; {
		cut := strings.LastIndexAny(at, ".[")
		if cut <= 0 {
			return "the path leads to nothing", members("the document", data)
		}
		at = at[:cut]
		if shorter, err := compilePath(at); err == nil {
			if found, err := shorter.search(data); err == nil && found != nil {
				return "the path leads to nothing", members(at, found)
			}
		}
	}
}

// members names the keys of an object, or of the first object of an array.
func members(name string, v any) []string {
	if all, ok := v.([]any); ok && len(all) > 0 {
		name, v = name+"[0]", all[0]
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	keys := slices.Sorted(maps.Keys(object))
	return []string{untrusted.Line(name+" has "+strings.Join(keys, ", "), maxShown)}
}

// maxNear is the maximum number of near misses that are shown for a selector.
const maxNear = 5

// namedIn matches the classes and ids of a selector.
var namedIn = regexp.MustCompile(`[.#][A-Za-z_][A-Za-z0-9_-]*`)

// similar returns what a page has in place of a selector that matches nothing: the
// longest end of the selector that matches, and classes and ids with similar names.
func (p *page) similar(selector string) (near []string) {
	if end, n := p.longestEnd(selector); end != "" {
		near = append(near, fmt.Sprintf("%s matches %s", end, elements(n)))
	}
	names := p.names()
	for _, want := range namedIn.FindAllString(selector, -1) {
		if names[want] > 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if alike(want, name) && len(near) < maxNear {
				near = append(near, fmt.Sprintf("%s is not in the page, but %s is (%s)", want, untrusted.Line(name, 100), elements(names[name])))
			}
		}
	}
	return near
}

func elements(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// names counts the page's classes (".name") and ids ("#name").
func (p *page) names() map[string]int {
	names := map[string]int{}
	for class, at := range p.byClass {
		names["."+class] = len(at)
	}
	for _, n := range p.nodes {
		for _, a := range n.Attr {
			if a.Key == "id" && n.Type == html.ElementNode && a.Val != "" {
				names["#"+a.Val]++
			}
		}
	}
	return names
}

// alike reports whether two names of a class or an id may mean the same: by case, signs, a beginning, or one character.
func alike(a, b string) bool {
	plain := func(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s[1:])) }
	x, y := plain(a), plain(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if x == "" {
		return false
	}
	if x == y || len(x) >= 3 && (strings.HasPrefix(y, x) || strings.HasSuffix(y, x)) {
		return true
	}
	return len(x) >= 4 && oneApart(x, y)
}

// oneApart reports whether y, which is not shorter than x, is x with one character
// inserted or replaced.
func oneApart(x, y string) bool {
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	return len(x) == len(y) && x[i+1:] == y[i+1:] || len(x)+1 == len(y) && x[i:] == y[i+1:]
}

// longestEnd returns the longest end of a selector without commas that matches
// elements of the page, and how many.
func (p *page) longestEnd(selector string) (end string, n int) {
	for _, at := range combinators(selector) {
		end := strings.TrimLeft(selector[at:], " >+~\t\n")
		group, err := cascadia.ParseGroup(end)
		if err != nil || end == "" {
			continue
		}
		if n := len((finder{group: group}).matches(p)); n > 0 {
			return end, n
		}
	}
	return "", 0
}

// combinators returns where the combinators of a selector begin, outside of brackets,
// parentheses and quotes; nil for a group of selectors.
func combinators(selector string) (at []int) {
	depth, quote, between := 0, rune(0), true
	for i, r := range selector {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case depth > 0:
		case r == ',':
			return nil
		case strings.ContainsRune(" >+~\t\n", r):
			if !between {
				at = append(at, i)
			}
			between = true
			continue
		}
		between = false
	}
	return at
}
