// Package structured reads what a page says about itself for machines: JSON-LD, microdata and
// RDFa Lite with schema.org's words, and Open Graph with the other meta elements. It returns what
// was written. Whether that is true is for the job to judge: where a page shows its readers
// something else, what it shows counts. It is pure, and bounded in depth, number and size.
//
//	data := structured.Read(root)          // a page that html.Parse has read
//	if p, ok := data.Product(); ok { … }   // also Article
//	for it := range data.All("Event") { … it.Text("name") … } No promise: see docs/library.md.
package structured

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// syntax is the way in which an item was written.
type syntax int

// The syntaxes, in the order in which Data.Items has them.
const (
	JSONLD syntax = iota
	microdata
	rdfa
)

// Data is what a page says about itself.
type Data struct {
	Items  []*Item             // those that no other item contains; those of an @graph one by one
	Meta   map[string][]string // meta elements by property, name or itemprop in lower case: og:title, product:price:amount
	Broken int                 // scripts of JSON-LD that could not be read to their end
	Cut    bool                // the page has more than the limits of this package allow

	ids      map[string]*Item
	headings []string // of the first level, as readers see them
}

// Item is a thing that a page describes, such as a product.
type Item struct {
	Types  []string // schema.org's names without the address; names of other vocabularies as written
	ID     string   // @id, itemid or resource, as written
	Syntax syntax

	names  []string // in the page's order
	values map[string][]value
	ids    map[string]*Item
}

// value is a text or an item.
type value struct {
	Text string // as written: may have entities, tags and line ends
	Item *Item
}

// Limits of one page. An ordinary page is far below.
const (
	maxDepth  = 64      // of items and lists in each other
	maxValues = 20_000  // of all items, and of meta elements
	maxBytes  = 4 << 20 // of texts
	maxHeads  = 8       // headings

	maxPrefixes = 8 // names of schema.org
)

// Read reads a page. scripts are texts of JSON-LD that the caller took out of the page before it
// was parsed; root may be nil where there is nothing else.
func Read(root *html.Node, scripts ...[]byte) *Data {
	r := reader{data: &Data{Meta: map[string][]string{}, ids: map[string]*Item{}}, values: maxValues, bytes: maxBytes}
	var found survey
	if root != nil {
		r.survey(root, &found)
	}
	for _, s := range found.scripts {
		r.script(s)
	}
	for _, s := range scripts {
		r.script(string(s))
	}
	if found.microdata {
		m := microReader{r: &r, root: root, open: map[*html.Node]bool{}, left: maxValues}
		m.walk(root, nil, 0)
	}
	if found.rdfa {
		r.rdfa(root, nil, "", 0)
	}
	return r.data
}

// reader counts what may still be read of a page.
type reader struct {
	data          *Data
	values, bytes int
	elements      map[string]*html.Node // by id; made when an itemref asks for one
	prefixes      []string              // of RDFa for schema.org, with their colons
}

// take reports whether one more value of n bytes may be kept.
func (r *reader) take(n int) bool {
	if r.values <= 0 || r.bytes < n {
		r.data.Cut = true
		return false
	}
	r.values--
	r.bytes -= n
	return true
}

func (r *reader) item(s syntax) *Item {
	return &Item{Syntax: s, values: map[string][]value{}, ids: r.data.ids}
}

// name gives an item the id that others may name it by.
func (r *reader) name(it *Item, id string) {
	it.ID = id
	if _, taken := r.data.ids[id]; id != "" && !taken && (len(it.Types) > 0 || len(it.names) > 0) {
		r.data.ids[id] = it
	}
}

func (it *Item) add(name string, v value) {
	if name = local(name); name == "" {
		return
	}
	if _, known := it.values[name]; !known {
		it.names = append(it.names, name)
	}
	it.values[name] = append(it.values[name], v)
}

// local is a name of schema.org without its address or prefix: Product for http://schema.org/Product.
// Other names stay as they are.
func local(name string) string {
	name = strings.TrimSpace(name)
	low := name
	if len(low) > 24 {
		low = low[:24]
	}
	low = strings.ToLower(low)
	for _, prefix := range []string{"https://schema.org/", "http://schema.org/", "https://www.schema.org/", "http://www.schema.org/", "//schema.org/", "schema.org/", "schema:"} {
		if strings.HasPrefix(low, prefix) {
			return strings.TrimLeft(name[len(prefix):], "/#")
		}
	}
	return name
}

// Is reports whether the item is of one of these types.
func (it *Item) Is(types ...string) bool {
	return slices.ContainsFunc(it.Types, func(t string) bool { return slices.Contains(types, t) })
}

// Names are the names of the item's properties in the page's order.
func (it *Item) Names() []string { return it.names }

// Values are those of a property as written. An item that is only named by its id is the item of that id.
func (it *Item) Values(name string) []value {
	values, ours := it.values[name], false
	for i, v := range values {
		if whole := it.meant(v.Item); whole != v.Item {
			if !ours {
				values, ours = slices.Clone(values), true
			}
			values[i].Item = whole
		}
	}
	return values
}

// meant is the item that another only names.
func (it *Item) meant(named *Item) *Item {
	if named == nil || named.ID == "" || len(named.names) > 0 {
		return named
	}
	if whole := it.ids[named.ID]; whole != nil {
		return whole
	}
	return named
}

// Items are the items among a property's values.
func (it *Item) Items(name string) []*Item {
	var out []*Item
	for _, v := range it.Values(name) {
		if v.Item != nil {
			out = append(out, v.Item)
		}
	}
	return out
}

// texts are a property's values, each on one line and without entities. That of an item is its name.
func (it *Item) texts(name string) []string {
	var out []string
	for _, v := range it.Values(name) {
		s := v.Text
		if v.Item != nil {
			s = v.Item.plain("name")
		}
		if s = oneLine(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Text is the first of Texts, "" for none.
func (it *Item) Text(name string) string {
	if all := it.texts(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// urls are some properties' addresses as written, each once. That of an item is its url, contentUrl or id.
func (it *Item) urls(names ...string) (out []string) {
	for _, name := range names {
		for _, v := range it.Values(name) {
			s := v.Text
			if v.Item != nil {
				s = firstOf(v.Item.plain("url"), v.Item.plain("contentUrl"), v.Item.ID)
			}
			s = strings.TrimSpace(strings.ReplaceAll(s, "&amp;", "&"))
			if s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// URL is the first of URLs, "" for none.
func (it *Item) URL(name string) string {
	if all := it.urls(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// plain is the first text of a property as written.
func (it *Item) plain(name string) string {
	for _, v := range it.values[name] {
		if strings.TrimSpace(v.Text) != "" {
			return v.Text
		}
	}
	return ""
}

// All are the items of these types, those in other items too, each after the one that contains it;
// without types all items.
func (d *Data) All(types ...string) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for it := range d.walk(maxDepth+1, (*Item).Names) {
			if (len(types) == 0 || it.Is(types...)) && !yield(it) {
				return
			}
		}
	}
}

// walk yields the items, each before those in its properties of some names, down to a depth.
func (d *Data) walk(most int, names func(*Item) []string) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		var walk func(*Item, int) bool
		walk = func(it *Item, depth int) bool {
			if !yield(it) {
				return false
			}
			if depth == most {
				return true
			}
			for _, name := range names(it) {
				for _, v := range it.values[name] {
					if v.Item != nil && !walk(v.Item, depth+1) {
						return false
					}
				}
			}
			return true
		}
		for _, it := range d.Items {
			if !walk(it, 0) {
				return
			}
		}
	}
}

// First is the first text of these meta elements that is not empty.
func (d *Data) First(meta ...string) string {
	for _, name := range meta {
		for _, s := range d.Meta[name] {
			if s = oneLine(s); s != "" {
				return s
			}
		}
	}
	return ""
}

func oneLine(s string) string {
	if strings.IndexByte(s, '&') >= 0 {
		s = html.UnescapeString(s)
	}
	return strings.Join(strings.Fields(s), " ")
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}
