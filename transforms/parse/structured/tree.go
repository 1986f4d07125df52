package structured

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// survey is which syntaxes a page's elements have.
type survey struct {
	scripts         []string // of JSON-LD
	microdata, rdfa bool
}

// survey reads the meta elements, and looks for the syntaxes, in one walk.
func (r *reader) survey(n *html.Node, found *survey) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		switch c.DataAtom {
		case atom.Meta:
			r.meta(c)
		case atom.H1:
			if len(r.data.headings) < maxHeads {
				r.data.headings = append(r.data.headings, oneLine(r.text(c, false)))
			}
		case atom.Script:
			if c.FirstChild != nil && strings.Contains(strings.ToLower(dom.Attr(c, "type")), "ld+json") {
				found.scripts = append(found.scripts, c.FirstChild.Data)
			}
		}
		for i := range c.Attr {
			switch c.Attr[i].Key {
			case "itemscope", "itemtype":
				found.microdata = true
			case "typeof":
				found.rdfa = true
			case "prefix":
				r.prefix(c.Attr[i].Val)
			}
		}
		r.survey(c, found)
	}
}

// prefix reads the names that an RDFa prefix attribute gives to schema.org: "s: http://schema.org/".
func (r *reader) prefix(list string) {
	words := strings.Fields(list)
	for i := 0; i+1 < len(words); i += 2 {
		if strings.HasSuffix(words[i], ":") && local(words[i+1]) == "" && !slices.Contains(r.prefixes, words[i]) && len(r.prefixes) < maxPrefixes {
			r.prefixes = append(r.prefixes, words[i])
		}
	}
}

// local is a name without a prefix that stands for schema.org.
func (r *reader) local(name string) string {
	for _, p := range r.prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return rest
		}
	}
	return name
}

func (r *reader) meta(n *html.Node) {
	content := strings.TrimSpace(dom.Attr(n, "content"))
	if content == "" {
		return
	}
	for _, key := range []string{"property", "name", "itemprop"} {
		for name := range strings.FieldsSeq(strings.ToLower(dom.Attr(n, key))) {
			if r.take(len(content)) {
				r.data.Meta[name] = append(r.data.Meta[name], content)
			}
		}
	}
}

// microReader reads microdata, as HTML's standard says.
type microReader struct {
	r    *reader
	root *html.Node
	open map[*html.Node]bool // elements that are being read because an itemref names them, and the items that name them
	left int                 // elements that may still be read because of an itemref: each costs again
}

// walk reads the properties of an item below n, and the items in it. depth is that of items.
func (m *microReader) walk(n *html.Node, in *Item, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			m.element(c, in, depth)
		}
	}
}

func (m *microReader) element(n *html.Node, in *Item, depth int) {
	if len(m.open) > 0 {
		if m.left--; m.left < 0 {
			m.r.data.Cut = true
			return
		}
	}
	names, isProp := dom.Find(n, "itemprop")
	types, typed := dom.Find(n, "itemtype")
	_, scope := dom.Find(n, "itemscope")
	if !scope && !typed {
		if isProp && in != nil {
			m.r.put(in, names, value{Text: m.r.property(n, names)})
		}
		m.walk(n, in, depth)
		return
	}
	if depth >= maxDepth || !m.r.take(len(types)) {
		m.r.data.Cut = true
		return
	}
	it := m.r.item(microdata)
	for t := range strings.FieldsSeq(types) {
		it.Types = append(it.Types, local(t))
	}
	if isProp && in != nil {
		m.r.put(in, names, value{Item: it})
	} else {
		m.r.data.Items = append(m.r.data.Items, it)
	}
	m.walk(n, it, depth+1)
	m.referred(n, it, depth)
	m.r.name(it, dom.Attr(n, "itemid"))
}

// referred reads the elements that an item names by itemref.
func (m *microReader) referred(n *html.Node, it *Item, depth int) {
	ids, ok := dom.Find(n, "itemref")
	if !ok || m.open[n] {
		return
	}
	if m.r.elements == nil {
		m.r.elements = map[string]*html.Node{}
		for e := range m.root.Descendants() {
			if id := dom.Attr(e, "id"); e.Type == html.ElementNode && id != "" && m.r.elements[id] == nil {
				m.r.elements[id] = e
			}
		}
	}
	m.open[n] = true
	read := map[*html.Node]bool{}
	for id := range strings.FieldsSeq(ids) {
		e := m.r.elements[id]
		if e == nil || m.open[e] || read[e] || dom.Attr(e, "itemprop") == "" && dom.Attr(e, "itemtype") != "" || slices.Contains(slices.Collect(n.Ancestors()), e) {
			continue
		}
		read[e], m.open[e] = true, true
		m.element(e, it, depth+1)
		delete(m.open, e)
	}
	delete(m.open, n)
}

// put adds a value to the properties that an attribute names.
func (r *reader) put(it *Item, names string, v value) {
	if v.Item == nil && v.Text == "" {
		return
	}
	for name := range strings.FieldsSeq(names) {
		if !r.take(len(v.Text)) {
			return
		}
		it.add(r.local(name), v)
	}
}

// rdfa reads RDFa Lite below n: vocab, typeof, property, resource and prefix. A name without a
// vocabulary is taken for one of schema.org, which it nearly always is.
func (r *reader) rdfa(n *html.Node, in *Item, vocab string, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		inside, vocab := in, vocab
		if v, ok := dom.Find(c, "vocab"); ok {
			vocab = v
		}
		names, isProp := dom.Find(c, "property")
		types, typed := dom.Find(c, "typeof")
		switch {
		case typed:
			if depth >= maxDepth || !r.take(len(types)) {
				r.data.Cut = true
				continue
			}
			it := r.item(rdfa)
			for t := range strings.FieldsSeq(types) {
				it.Types = append(it.Types, term(r.local(t), vocab))
			}
			if isProp && in != nil {
				r.put(in, names, value{Item: it})
			} else {
				r.data.Items = append(r.data.Items, it)
			}
			r.rdfa(c, it, vocab, depth+1)
			r.name(it, firstOf(dom.Attr(c, "resource"), dom.Attr(c, "about")))
			continue
		case isProp && in != nil:
			r.put(in, names, value{Text: r.property(c, names)})
		}
		r.rdfa(c, inside, vocab, depth)
	}
}

// term is a type's name by its vocabulary.
func term(name, vocab string) string {
	if vocab == "" || strings.ContainsAny(name, ":/") {
		return local(name)
	}
	return local(vocab + name)
}

// property is the value of a property's element.
func (r *reader) property(n *html.Node, names string) string {
	if s, ok := dom.Find(n, "content"); ok { // on every element, as search engines read it
		return strings.TrimSpace(s)
	}
	key := ""
	switch n.DataAtom {
	case atom.A, atom.Area, atom.Link:
		key = "href"
	case atom.Img, atom.Audio, atom.Embed, atom.Iframe, atom.Source, atom.Track, atom.Video:
		key = "src"
	case atom.Object:
		key = "data"
	case atom.Data, atom.Meter:
		key = "value"
	case atom.Time:
		key = "datetime"
	}
	if s, ok := dom.Find(n, key); ok && key != "" {
		return strings.TrimSpace(s)
	}
	if s, ok := dom.Find(n, "resource"); ok {
		return strings.TrimSpace(s)
	}
	return r.text(n, numeric.MatchString(names))
}

// numeric matches the names of properties that are numbers.
var numeric = regexp.MustCompile(`(?i)(price|value|count|quantity|depth|height|width|weight)$`)

const blanks = " \t\n\r\f\u00a0"

// text is an element's text. With apart it has ¦ between digits of different elements, or ↑ if the second ones are raised.
func (r *reader) text(n *html.Node, apart bool) string {
	var b strings.Builder
	digit := func(s string, i int) bool { return s != "" && s[i] >= '0' && s[i] <= '9' }
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.DataAtom != atom.Script && d.Parent.DataAtom != atom.Style {
			if b.Len()+len(d.Data) > r.bytes {
				r.data.Cut = true
				break
			}
			s := strings.TrimLeft(d.Data, blanks)
			b.WriteString(d.Data[:len(d.Data)-len(s)])
			if apart && digit(s, 0) && (d.PrevSibling == nil || d.PrevSibling.Type != html.CommentNode) {
				if before := strings.TrimRight(b.String(), blanks+"€$£¥"); digit(before, len(before)-1) {
					b.WriteString(boundary(n, d))
				}
			}
			b.WriteString(s)
		} else if d.DataAtom == atom.Br || d.DataAtom == atom.P {
			b.WriteByte('\n')
		}
	}
	// Each element within another copies its text again.
	r.bytes -= b.Len()
	return strings.TrimSpace(b.String())
}

// boundary is the mark in front of the digits of d, a text in n.
func boundary(n, d *html.Node) string {
	for of := range d.Ancestors() {
		if of.DataAtom == atom.Sup {
			return "↑"
		} else if of == n {
			break
		}
	}
	return "¦"
}
