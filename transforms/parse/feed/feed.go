// Package feed reads the items of RSS, RDF, Atom and JSON feeds and finds the
// feeds that a web page links to. It is pure: no network, no clock, no logging. No promise: see docs/library.md.
package feed

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/xmltext"
)

// kind is the family of a feed's format.
type kind string

// The families: RSS 0.9x and 2.0; RSS 1.0 and 0.90, which are RDF; Atom 0.3 and
// 1.0; JSON Feed.
const (
	RSS  kind = "rss"
	RDF  kind = "rdf"
	Atom kind = "atom"
	JSON kind = "json"
)

// ErrNotFeed says that a body is not a feed.
var ErrNotFeed = errors.New("not a feed")

// The limits of a document. Documents are untrusted, and a few kilobytes on the wire
// can unpack to ten megabytes. At a limit the document counts as ending there.
const (
	maxDepth = 256    // elements within each other, as in libxml2
	maxItems = 50_000 // as many as a sitemap may have
)

// Feed is a feed's head and items, in the document's order: 50,000 at most.
type Feed struct {
	Kind  kind
	Title string
	Items []Item
}

// Item is one entry. Link is as written, it may be relative, but where the document says by
// xml:base to what; Title is text,
// without the markup it had. Published and Updated are dates as written, of RSS 1.0 and of
// Dublin Core's date the second.
type Item struct {
	Link, Title, Published, Updated string
}

// Parse reads a feed in any encoding. Of a truncated document it returns what came
// before its end, without error. The only error is ErrNotFeed.
func Parse(body []byte) (Feed, error) {
	text, isXML, err := xmltext.Decode(body)
	switch {
	case err != nil:
		return Feed{}, errors.Join(ErrNotFeed, err)
	case strings.HasPrefix(text, "{"):
		f, _, err := ReadJSON(text)
		return f, err
	case !isXML:
		return Feed{}, ErrNotFeed
	}
	var items []Item
	f, _, err := Read(text, func(i Item) bool {
		items = append(items, i)
		return len(items) < maxItems
	})
	f.Items = items
	return f, err
}

// Read reads the XML of a feed and calls visit with every item in the document's order, until
// visit returns false. The feed that it returns has the head alone; whole says that the root's end
// was reached. The only error is ErrNotFeed.
func Read(text string, visit func(Item) bool) (f Feed, whole bool, err error) {
	r := reader{Scanner: xmltext.Scanner{Text: text}, visit: visit}
	for !r.over && r.Next() {
		switch t := &r.Token; t.Kind {
		case xmltext.StartTag:
			r.start(t)
		case xmltext.EndTag:
			r.end(t)
		case xmltext.CharData:
			if r.field != nil {
				r.content.WriteString(xmltext.Unescape(t.Text))
			}
		case xmltext.CDATA:
			if r.field != nil {
				r.content.WriteString(t.Text)
			}
		}
	}
	if r.feed.Kind == "" {
		return Feed{}, false, ErrNotFeed
	}
	if !r.over { // the document has no end, and half an address is none
		if r.item != nil && (r.field == &r.item.Link || r.field == &r.guid) {
			r.field = nil
		}
		r.close(0)
		r.whole = false
	}
	return r.feed, r.whole, nil
}

// reader reads leniently and by local names in lower case: the namespaces of feeds are as
// often wrong as right, their elements as often not closed.
type reader struct {
	xmltext.Scanner
	visit func(Item) bool
	feed  Feed
	path  []string // the elements that are open, from the root
	bases []string // of each of them: what addresses in it are relative to, by xml:base; "" for the feed
	over  bool     // nothing is read any more
	whole bool

	item   *Item
	inItem int    // the length of path inside the item
	guid   string // an address, the item's where it has no link
	rank   int    // of the item's title: see title

	field   *string // for the text of the element that is read, nil for none
	fieldAt int     // the length of path inside that element
	tag     xmltext.Token
	content strings.Builder
}

// start reads a start tag.
func (r *reader) start(t *xmltext.Token) {
	name := strings.ToLower(t.Local)
	parent := ""
	if len(r.path) > 0 {
		parent = r.path[len(r.path)-1]
	} else if !r.root(name) {
		r.over = true
		return
	}
	if name == r.entry() && parent == name { // the item before was not closed
		r.close(r.inItem - 1)
	}
	if len(r.path) == maxDepth {
		r.close(0)
		r.whole = false
		return
	}
	base := ""
	if len(r.bases) > 0 {
		base = r.bases[len(r.bases)-1]
	}
	if strings.Contains(t.Text, "xml:base") {
		base = resolve(base, strings.TrimSpace(t.Attr("xml:base")))
	}
	r.path, r.bases = append(r.path, name), append(r.bases, base)
	switch {
	case name == r.entry() && r.item == nil:
		r.item, r.inItem, r.guid, r.rank = new(Item), len(r.path), "", 0
		if about := t.Attr("rdf:about"); strings.HasPrefix(about, "http") {
			r.guid = about
		}
	case r.field == nil:
		if r.field = r.fieldOf(name, parent, t); r.field != nil {
			r.fieldAt, r.tag = len(r.path), *t
			r.content.Reset()
		}
	}
	if t.Empty || void[name] {
		r.close(len(r.path) - 1)
	}
}

// void are elements of HTML without content, which nobody closes.
var void = map[string]bool{"br": true, "hr": true, "img": true}

// end reads an end tag: it ends the innermost element of that name and those in it.
func (r *reader) end(t *xmltext.Token) {
	name := strings.ToLower(t.Local)
	for i := len(r.path) - 1; i >= 0; i-- {
		if r.path[i] == name {
			r.close(i)
			return
		}
	}
}

// close ends all elements but the outermost n.
func (r *reader) close(n int) {
	if r.field != nil && n < r.fieldAt {
		r.keep(strings.TrimSpace(r.content.String()))
		r.field = nil
	}
	if r.item != nil && n < r.inItem {
		if r.item.Link == "" {
			r.item.Link = r.guid
		}
		r.over = r.over || !r.visit(*r.item)
		r.item = nil
	}
	r.path, r.bases = r.path[:n], r.bases[:n]
	r.whole, r.over = n == 0, r.over || n == 0
}

// root reads the root element; it is false where that is no feed's.
func (r *reader) root(name string) bool {
	switch name {
	case "rss":
		r.feed.Kind = RSS
	case "rdf":
		r.feed.Kind = RDF
	case "feed":
		r.feed.Kind = Atom
	default:
		return false
	}
	return true
}

// entry is the name of the element of an item.
func (r *reader) entry() string {
	if r.feed.Kind == Atom {
		return "entry"
	}
	return "item"
}

// fieldOf is where an element's text goes, nil for nowhere. Only direct
// children of the head or of an item count.
func (r *reader) fieldOf(name, parent string, t *xmltext.Token) *string {
	if r.item == nil {
		if name == "title" && r.feed.Title == "" && (parent == "channel" || parent == "feed") && !extension(t) {
			return &r.feed.Title
		}
		return nil
	}
	if len(r.path) != r.inItem+1 || extension(t) {
		return nil
	}
	switch name {
	case "title":
		// The feed's own title goes before one of Dublin Core.
		rank := 1
		if t.Prefix == "" || r.feed.Kind == Atom {
			rank = 2
		}
		if rank > r.rank {
			r.rank = rank
			return &r.item.Title
		}
	case "link":
		return r.link(t)
	case "guid":
		return &r.guid
	case "pubdate", "published", "issued":
		return &r.item.Published
	case "updated", "modified", "date":
		return &r.item.Updated
	}
	return nil
}

// link reads an item's link: an address in href, else, except in Atom, the
// element's content.
func (r *reader) link(t *xmltext.Token) *string {
	if href := strings.TrimSpace(t.Attr("href")); href != "" {
		rel := strings.ToLower(t.Attr("rel"))
		if r.item.Link == "" && (rel == "" || strings.TrimPrefix(rel, "http://www.iana.org/assignments/relation/") == "alternate") {
			r.item.Link = resolve(r.bases[len(r.bases)-1], href)
		}
		return nil
	}
	if r.feed.Kind == Atom {
		return nil
	}
	return &r.item.Link
}

// keep writes the text of an element to its field.
func (r *reader) keep(text string) {
	switch {
	case r.field == &r.guid && !strings.HasPrefix(text, "http"):
		return // no address
	case r.item != nil && r.field == &r.item.Link:
		text = resolve(r.bases[r.fieldAt-1], text)
	case r.feed.Kind == Atom && strings.EqualFold(r.tag.Local, "title"):
		text = atomText(&r.tag, text)
	}
	if text != "" {
		*r.field = text
	}
}

// resolve returns an address as base has it, which may be relative itself.
func resolve(base, address string) string {
	b, err := url.Parse(base)
	u, wrong := url.Parse(address)
	switch {
	case base == "" || err != nil || wrong != nil || u.IsAbs():
		return address
	case b.IsAbs() || strings.HasPrefix(base, "/") || strings.HasPrefix(address, "/"):
		return b.ResolveReference(u).String()
	}
	return base[:strings.LastIndexByte(base, '/')+1] + address
}

// extension reports whether an element is of a vocabulary that has titles and links of its own
// (media:title, itunes:title).
func extension(t *xmltext.Token) bool {
	space := t.Attr("xmlns")
	return t.Prefix == "media" || t.Prefix == "itunes" || strings.Contains(space, "search.yahoo.com") || strings.Contains(space, "itunes")
}

// atomText is the text of a construct that may be escaped HTML (RFC 4287
// section 3.1.1; text/html with mode escaped in Atom 0.3) or, in Atom 0.3 and
// in feeds that borrow from the content element (section 4.1.3.3), base64.
func atomText(t *xmltext.Token, s string) string {
	mime, mode := strings.ToLower(strings.TrimSpace(t.Attr("type"))), t.Attr("mode")
	markup := mime == "html" || mime == "text/html"
	if mode == "base64" || strings.Contains(mime, "/") && !strings.HasPrefix(mime, "text/") && !strings.HasSuffix(mime, "xml") {
		if plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), "")); err == nil {
			s, markup = strings.ToValidUTF8(string(plain), "\ufffd"), true
		}
	}
	if !markup {
		return s
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	z.SetMaxBuf(maxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String()) // the end of the text, or of what can be read
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}
