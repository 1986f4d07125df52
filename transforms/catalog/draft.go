package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Draft is what a list page shows, to make a site's file of.
type Draft struct {
	address  *url.URL
	page     *page
	list     yamltext.Lines // how the list is read
	Products []string
	Sitemaps []string // that robots.txt names
}

var (
	// errNoList says that a page shows no list of products.
	errNoList = errors.New("no three links of the page look alike and lead to pages of its host: give the address of a list of products")
	// errScript says that scripts make a page's content.
	errScript = errors.New("only scripts make the page's content: it has no list of links before they run. See if the site has a JSON address or a sitemap with the products, " +
		"or write the file by hand, with list.rendering and detail.rendering (docs/add-a-site.md)")

	nextWord   = regexp.MustCompile(`(?i)^\W*(next|older|more|load more|weiter|nächste|suivante?|siguiente|다음|次)\b|^[›»>→]+$`)
	nextClass  = regexp.MustCompile(`(?i)(^|[-_])next($|[-_])`)
	pageNumber = regexp.MustCompile(`^\d{1,5}$`)
	unlikely   = regexp.MustCompile(`(?i)\b(nav|navbar|menu|footer|header|breadcrumbs?|pag(er|ination|inator)|sidebar|cookie|login|cart|related)\b`)
	likely     = regexp.MustCompile(`(?i)product|item|goods|article|card|/p/|/dp/|detail`)
	locale     = regexp.MustCompile(`^[a-z]{2}-[A-Z]{2}$`)
	plainClass = regexp.MustCompile(`^[A-Za-z_-][A-Za-z_-]*$`)
	keyLabel   = regexp.MustCompile(`(?i)\b(certificate id|sku|article (no|number)|item (no|number|code)|model|mpn|isbn|ean|gtin|upc|product (id|code|number)|reference|serial)\b`)
	priceName  = regexp.MustCompile(`(?i)(^|[-_])(price|preis|prix|precio)($|[-_])`)
	keyName    = regexp.MustCompile(`(?i)(^|[-_])(sku|mpn|ean|gtin|isbn|upc)($|[-_])`)
	stockName  = regexp.MustCompile(`(?i)(^|[-_])(stock|availability)($|[-_])`)
)

// minLinks is how many links that look alike are a list.
const minLinks = 3

// NewDraft reads a list page that was found at an address.
func NewDraft(address, text string) (*Draft, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	p, err := parsePage(text)
	if err != nil {
		return nil, err
	}
	d := &Draft{address: at, page: p}
	if err := d.findLinks(); err != nil {
		return nil, err
	}
	d.findPaging()
	return d, nil
}

func siteNameOf(at *url.URL) string {
	name := yamltext.Name(strings.TrimPrefix(strings.ToLower(at.Hostname()), "www."), "-")
	return name[:min(len(name), 64)]
}

// group is the links of a page that stand at the same place of a repeated element.
type group struct {
	nodes []*html.Node
	links []string // each once
	score float64
}

func (d *Draft) findLinks() error {
	groups, base := map[string]*group{}, d.page.base(d.address)
	for _, n := range d.page.nodes {
		href := attribute(n, "href")
		to, err := base.Parse(href)
		if n.DataAtom != atom.A || href == "" || err != nil || !sameHost(to, d.address) ||
			to.Path == d.address.Path || strings.Trim(to.Path, "/") == "" {
			continue
		}
		to.Fragment = ""
		where, context := place(n)
		if unlikely.MatchString(context) {
			continue
		}
		g := groups[where]
		if g == nil {
			g = &group{}
			groups[where] = g
		}
		g.nodes = append(g.nodes, n)
		if !slices.Contains(g.links, to.String()) {
			g.links = append(g.links, to.String())
		}
		if likely.MatchString(context + " " + to.Path) {
			g.score += 0.5
		}
	}
	var best *group
	for _, where := range slices.Sorted(maps.Keys(groups)) {
		g := groups[where]
		if g.score += float64(len(g.links)); len(g.links) >= minLinks && (best == nil || g.score > best.score) {
			best = g
		}
	}
	if best == nil {
		scripts := slices.ContainsFunc(d.page.nodes, func(n *html.Node) bool {
			return n.DataAtom == atom.Script && attribute(n, "type") != "application/ld+json"
		})
		if scripts && len(groups) == 0 {
			return errScript
		}
		return errNoList
	}
	selector := d.page.selectorOf(best.nodes)
	if selector == "" {
		return fmt.Errorf("%d links look like products, but no short selector finds them alone: write the file by hand (docs/add-a-site.md)", len(best.links))
	}
	d.Products = best.links
	d.list.Say("%d links to %d pages stand at the same place of a repeated element, such as %s", len(best.nodes), len(best.links), best.links[0])
	d.list.Put("  product_link: %s", selectYAML(Select{Selector: selector}))
	return nil
}

// place returns the tags on the way to an element, and the classes and ids on it.
func place(n *html.Node) (where, context string) {
	var tags, names []string
	for at := n; at != nil && at.Type == html.ElementNode; at = at.Parent {
		tags, names = append(tags, at.Data), append(names, attribute(at, "class"), attribute(at, "id"), attribute(at, "role"))
	}
	return strings.Join(tags, " "), strings.Join(append(tags, names...), " ")
}

// selectorOf returns the shortest selector that finds these elements and no others, "" for none.
func (p *page) selectorOf(nodes []*html.Node) string {
	at := slices.Clone(nodes)
	selector := ""
	for range 6 {
		step := at[0].Data
		several := slices.ContainsFunc(at, func(n *html.Node) bool { return n != at[0] })
		if id := attribute(at[0], "id"); !several && plainClass.MatchString(id) {
			step = "#" + id
		} else {
			common := slices.DeleteFunc(strings.Fields(attribute(at[0], "class")), func(class string) bool {
				lacks := func(n *html.Node) bool { return !slices.Contains(strings.Fields(attribute(n, "class")), class) }
				return !plainClass.MatchString(class) || slices.ContainsFunc(at, lacks)
			})
			for _, class := range common[:min(len(common), 2)] {
				step += "." + class
			}
		}
		if selector = step + selector; p.finds(selector, nodes) {
			return selector
		}
		for i, n := range at {
			if at[i] = n.Parent; n.Parent == nil || n.Parent.Type != html.ElementNode {
				return ""
			}
		}
		selector = " > " + selector
	}
	return ""
}

// finds reports whether a selector finds these elements and no others.
func (p *page) finds(selector string, nodes []*html.Node) bool {
	c, err := cascadia.ParseGroup(selector)
	return err == nil && slices.Equal(cascadia.QueryAll(p.root, c), nodes)
}

// findPaging finds how the list continues.
func (d *Draft) findPaging() {
	base := d.page.base(d.address)
	numbers := 0
	for _, n := range d.page.nodes {
		if n.DataAtom != atom.A && n.DataAtom != atom.Link || attribute(n, "href") == "" {
			continue
		}
		text := strings.TrimSpace(finder{}.textOf(n))
		to, err := base.Parse(attribute(n, "href"))
		if err != nil || !sameHost(to, d.address) || to.String() == d.address.String() {
			continue
		}
		if pageNumber.MatchString(text) {
			numbers++
		}
		own := attribute(n, "class")
		if n.Parent != nil {
			own += " " + attribute(n.Parent, "class")
		}
		rel := attribute(n, "rel") == "next"
		next := rel || n.DataAtom == atom.A && (nextWord.MatchString(text) || nextWord.MatchString(attribute(n, "aria-label")) ||
			slices.ContainsFunc(strings.Fields(own), nextClass.MatchString))
		if !next || slices.Contains(d.Products, to.String()) {
			continue
		}
		selector := d.page.selectorOf([]*html.Node{n})
		if rel && d.page.finds(n.Data+`[rel="next"]`, []*html.Node{n}) {
			selector = n.Data + `[rel="next"]`
		}
		if selector != "" {
			d.list.Say("it leads to %s", to)
			d.list.Put("  next_link: %s", selectYAML(Select{Selector: selector}))
			return
		}
	}
	d.list.Say("could not tell: no link to a next page was seen, so the file reads this page alone. A list with numbers needs {page} in url, and last_page or until_empty")
	if numbers > 0 {
		d.list.Say("%d links have a number as their text: the list has pages by number", numbers)
	}
}

func selectYAML(s Select) string {
	out := "{selector: " + yamltext.Quote(s.Selector)
	if s.Attribute != "" {
		out += ", attribute: " + s.Attribute
	}
	return out + "}"
}

// candidate is a field that may be in a product's page.
type candidate struct {
	name, yaml, why string
	key             bool // it may be the key
	optional        bool // products may lack it
}

// candidates looks for fields in a product's page; lines is the selector of the lines with labels that they need.
func candidates(p *page) (all []candidate, lines string) {
	for _, f := range [][2]string{{"sku", "sku"}, {"gtin", "gtin"}, {"title", "name"}, {"price", "'offers[0].money', type: money"},
		{"availability", "'offers[0].availability', volatile: true"}, {"brand", "brand"}, {"image", "'images[0]', type: image"}} {
		all = append(all, candidate{name: f[0], yaml: "{from: structured, path: " + f[1] + "}", key: f[0] == "sku" || f[0] == "gtin",
			why: "by what the page says for machines (JSON-LD, microdata, Open Graph)"})
	}
	itemprops := map[string]string{"sku": "sku", "productID": "sku", "mpn": "mpn", "gtin13": "gtin", "isbn": "isbn", "name": "title", "price": "price"}
	for _, n := range p.nodes {
		prop := attribute(n, "itemprop")
		name := itemprops[prop]
		if name == "" {
			continue
		}
		delete(itemprops, prop) // its first element counts
		s := Select{Selector: "[itemprop=" + prop + "]"}
		if attribute(n, "content") != "" {
			s.Attribute = "content"
		}
		all = append(all, candidate{name: name, yaml: selectYAML(s), why: "by the attribute itemprop", key: name != "title" && name != "price"})
	}
	for _, tag := range []atom.Atom{atom.H1, atom.H2} {
		for _, n := range p.nodes {
			if n.DataAtom != tag {
				continue
			}
			if _, context := place(n); unlikely.MatchString(context) || strings.TrimSpace(finder{}.textOf(n)) == "" {
				continue
			}
			if s := p.selectorOf([]*html.Node{n}); s != "" {
				all = append(all, candidate{name: "title", yaml: selectYAML(Select{Selector: s}), why: "by the page's heading"})
			}
			break
		}
	}
	if y := p.named(keyName); y != "" {
		all = append(all, candidate{name: "sku", yaml: y + "}", why: "by a class or id", key: true})
	}
	if y := p.named(priceName); y != "" {
		all = append(all, candidate{name: "price", yaml: y + ", type: money}", why: "by a class or id"},
			candidate{name: "price", yaml: y + `, regexp: '[\d.,]+', type: number}`, why: "by a class or id; no currency was seen"})
	}
	if y := p.named(stockName); y != "" {
		all = append(all, candidate{name: "availability", yaml: y + ", volatile: true}", why: "by a class or id"})
	}
	labelled, lines := labels(p)
	return append(all, labelled...), lines
}

// named returns the YAML, without its end, that selects the first innermost element with such a class or id, "" for none. The shortest
// class is best: others, such as in-stock, differ from product to product.
func (p *page) named(name *regexp.Regexp) string {
	names := func(n *html.Node) []string {
		return slices.DeleteFunc(strings.Fields(attribute(n, "class")+" "+attribute(n, "id")), func(s string) bool { return !name.MatchString(s) })
	}
	is := func(n *html.Node) bool { return len(names(n)) > 0 }
	for _, n := range p.nodes {
		if !is(n) || slices.ContainsFunc(slices.Collect(n.Descendants()), is) {
			continue
		}
		short := slices.MinFunc(names(n), func(a, b string) int { return len(a) - len(b) })
		s := n.Data + "." + short
		if !plainClass.MatchString(short) || !p.finds(s, []*html.Node{n}) {
			s = p.selectorOf([]*html.Node{n})
		}
		if s == "" {
			return ""
		}
		return strings.TrimSuffix(selectYAML(Select{Selector: s}), "}")
	}
	return ""
}

// labels returns fields for the labels of a page's properties. If the page has several kinds of lists of properties, the one with the
// most labels counts. lines is its selector.
func labels(p *page) (best []candidate, lines string) {
	for _, selector := range []string{"dl dt", "table tr", "li"} {
		var all []candidate
		seen := map[string]bool{}
		for _, n := range cascadia.QueryAll(p.root, cascadia.MustCompile(selector)) {
			_, context := place(n)
			for _, l := range linesIn(n) {
				name := yamltext.Name(l.label, "_")
				if seen[name] || len(l.label) > 40 || !fieldName.MatchString(name) || unlikely.MatchString(context) ||
					strings.TrimSpace(finder{}.textOf(l.value...)) == "" {
					continue
				}
				seen[name] = true
				all = append(all, candidate{name: name, yaml: "{label: [" + yamltext.Quote(l.label) + "]}", why: "by its label in " + selector,
					key: keyLabel.MatchString(l.label), optional: true})
			}
		}
		if len(all) > max(1, len(best)) {
			best, lines = all, selector
		}
	}
	return best, lines
}

// Write returns the file, made of the list and of some of its products' pages by address. Each field is read of all of them.
func (d *Draft) Write(products map[string]string) (string, error) {
	order := slices.Sorted(maps.Keys(products))
	if len(order) == 0 {
		return "", errors.New("no product's page was read")
	}
	var pages []productPage
	for _, at := range order {
		p, base, err := open(at, products[at], formatHTML)
		if err != nil {
			return "", err
		}
		pages = append(pages, productPage{p, base})
	}
	all, lines := candidates(pages[0].page)
	head := d.head(lines)
	var fields, said yamltext.Lines
	key, taken := "", map[string]bool{}
	for _, c := range all {
		if taken[c.name] {
			continue
		}
		values := valuesOf(head, c, pages)
		distinct := slices.Compact(slices.Sorted(slices.Values(values)))
		if len(values) == 0 || len(values) < len(order) && !c.optional {
			continue
		}
		taken[c.name] = true
		isKey := c.key && key == "" && len(values) == len(order) && len(distinct) == len(order)
		y := c.yaml
		if !strings.Contains(y, ", type: ") && !slices.ContainsFunc(distinct, notBoolean) {
			y = strings.TrimSuffix(y, "}") + ", type: boolean}"
		}
		switch {
		case isKey:
			key = c.name
		case c.optional: // other products may lack it
			y = strings.TrimSuffix(y, "}") + ", optional: true}"
		}
		fields.Say("%s; read of %d pages: %s", c.why, len(values), strings.Join(distinct, " | "))
		fields.Put("  %s: %s", c.name, y)
	}
	if key == "" && taken["title"] {
		key = "title"
		said.Say("could not tell: no number was seen that is different for each product. Two products with one title would be one: look for a better key")
	}
	if key == "" {
		return "", errors.New("the products' pages have neither a number nor a title in their HTML: are they made by scripts? Write the file by hand (docs/add-a-site.md)")
	}
	if len(order) < 2 {
		said.Say("one product's page alone was read: whether the key is different for each product is not known")
	}
	file := slices.Concat(head, said, yamltext.Lines{"key: " + key, "fields:"}, fields).String()
	if _, err := ParseSite([]byte(file)); err != nil {
		return "", fmt.Errorf("the file that was made is not valid, which is a mistake of this program: %w", err)
	}
	return file, nil
}

// notBoolean reports whether a value, as JSON, is no word that means yes or no.
func notBoolean(v string) bool {
	text, err := strconv.Unquote(v)
	if err == nil {
		_, err = value.Boolean(text)
	}
	return err != nil || !strings.ContainsFunc(text, unicode.IsLetter)
}

// head returns the file's lines above the key.
func (d *Draft) head(lines string) (l yamltext.Lines) {
	l.Say("Made from what %s showed. Check each line before you use it: catalog --site=FILE --try=URL", d.address)
	l.Put("name: %s", siteNameOf(d.address))
	for _, n := range d.page.nodes {
		if lang := attribute(n, "lang"); n.DataAtom == atom.Html && locale.MatchString(lang) {
			l.Say("the page's lang; it says how numbers and dates are read")
			l.Put("locale: %s", lang)
		}
	}
	for _, s := range d.Sitemaps[:min(len(d.Sitemaps), 3)] {
		l.Say("robots.txt names the sitemap %s: if it has the products, list.format: sitemap needs fewer requests", s)
	}
	l.Put("list:\n  url: %s", yamltext.Quote(d.address.String()))
	l = append(l, d.list...)
	if lines != "" {
		l.Say("the lines in which labels and values stand")
		l.Put("detail:\n  lines: %s", yamltext.Quote(lines))
	}
	return l
}

// productPage is a page of a product, and what its addresses are relative to.
type productPage struct {
	*page
	base *url.URL
}

// valuesOf returns the values of a field in the pages that have it.
func valuesOf(head yamltext.Lines, c candidate, pages []productPage) (values []string) {
	file := append(slices.Clone(head), "key: own_key", "fields:", "  own_key: {selector: html}", "  "+c.name+": "+c.yaml)
	s, err := ParseSite([]byte(file.String()))
	if err != nil {
		return nil
	}
	r, err := s.compile()
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(r.fields, func(f fieldReader) bool { return f.name == c.name })
	if i < 0 { // YAML reads the name as something else, such as null
		return nil
	}
	f := r.fields[i]
	for _, p := range pages {
		if v, err := f.read(f.source(p.page), p.base); err == nil && v != nil {
			b, _ := json.Marshal(v) // it is stored as JSON
			values = append(values, untrusted.Line(string(b), 60))
		}
	}
	return values
}
