// Package feed reads the items of RSS, RDF, Atom and JSON feeds and finds the
// feeds that a web page links to. It is pure: no network, no clock, no logging.
package feed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// Kind is the family of a feed's format.
type Kind string

// The families: RSS 0.9x and 2.0; RSS 1.0 and 0.90, which are RDF; Atom 0.3 and
// 1.0; JSON Feed.
const (
	RSS  Kind = "rss"
	RDF  Kind = "rdf"
	Atom Kind = "atom"
	JSON Kind = "json"
)

// ErrNotFeed says that a body is not a feed.
var ErrNotFeed = errors.New("not a feed")

// The limits of a document. Documents are untrusted, and a few kilobytes on the wire
// can unpack to ten megabytes. At a limit the document counts as ending there.
const (
	maxDepth = 1024     // elements within each other; libxml2 takes 256
	maxTag   = 64 << 10 // bytes of one tag with its attributes
	maxItems = 50_000   // as many as a sitemap may have
)

// Feed is a feed's head and items, in the document's order: 50,000 at most.
type Feed struct {
	Kind  Kind
	Title string
	Items []Item
}

// Item is one entry. Link is as written, it may be relative; Title is text,
// without the markup it had; Published is the date as written, of Atom the
// published, else the updated one.
type Item struct {
	Link, Title, Published string
}

// Parse reads a feed in any encoding. Of a truncated document it returns what came
// before its end, without error. The only error is ErrNotFeed.
func Parse(body []byte) (Feed, error) {
	text, _, err := charset.Decode(body, "")
	if err != nil {
		return Feed{}, errors.Join(ErrNotFeed, err)
	}
	text = strings.TrimLeft(text, " \t\r\n\ufeff\x00")
	if strings.HasPrefix(text, "{") {
		return parseJSON(text)
	}
	return parseXML(text)
}

func parseJSON(text string) (Feed, error) {
	var doc struct {
		Version, Title string
		Items          jsonItems
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return Feed{}, errors.Join(ErrNotFeed, err)
	}
	if !strings.Contains(doc.Version, "jsonfeed.org/version/") {
		return Feed{}, ErrNotFeed
	}
	return Feed{Kind: JSON, Title: doc.Title, Items: doc.Items}, nil
}

// jsonItems reads a JSON Feed's items one at a time.
type jsonItems []Item

func (items *jsonItems) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("items is no array"), err)
	}
	for d.More() && len(*items) < maxItems {
		var i struct {
			URL, Title string
			Published  string `json:"date_published"`
		}
		if err := d.Decode(&i); err != nil {
			return err
		}
		*items = append(*items, Item{Link: i.URL, Title: i.Title, Published: i.Published})
	}
	return nil
}

// tokens is an XML decoder that ends where a document exceeds the limits.
type tokens struct {
	*xml.Decoder
	text  string
	in    reader
	depth int
}

// reader ends at a limit that moves with the tokens.
type reader struct {
	strings.Reader
	left int
}

func (r *reader) ReadByte() (byte, error) {
	if r.left--; r.left < 0 {
		return 0, errHostile
	}
	return r.Reader.ReadByte()
}

var errHostile = errors.New("the document is nested too deep or has too long a tag")

func newTokens(text string) *tokens {
	t := &tokens{text: text}
	t.in.Reset(text)
	t.Decoder = xml.NewDecoder(&t.in)
	t.Strict = false
	t.Entity = xml.HTMLEntity
	t.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // text is decoded already
	return t
}

// Token returns the next token. A tag is limited by how much the decoder may read,
// because the decoder allocates for each attribute; other tokens are plain text.
func (t *tokens) Token() (xml.Token, error) {
	t.in.left = len(t.text)
	if rest := t.text[min(int(t.InputOffset()), len(t.text)):]; len(rest) > 1 && rest[0] == '<' && rest[1] != '!' && rest[1] != '?' {
		t.in.left = maxTag
	}
	token, err := t.Decoder.Token()
	switch token.(type) {
	case xml.StartElement:
		if t.depth++; t.depth > maxDepth {
			return nil, errHostile
		}
	case xml.EndElement:
		t.depth--
	}
	return token, err
}

// parseXML reads leniently and by local names: the namespaces of feeds are as
// often wrong as right.
func parseXML(text string) (Feed, error) {
	d := newTokens(text)
	var f Feed
	var path []string
	var item *Item
	var guid, updated string
	for {
		t, err := d.Token()
		if err != nil {
			if item != nil {
				f.add(item, guid, updated)
			}
			if f.Kind == "" {
				return f, ErrNotFeed
			}
			return f, nil
		}
		switch t := t.(type) {
		case xml.StartElement:
			name := t.Name.Local
			if len(path) == 0 && f.Kind == "" {
				switch strings.ToLower(name) {
				case "rss":
					f.Kind = RSS
				case "rdf":
					f.Kind = RDF
				case "feed":
					f.Kind = Atom
				default:
					return f, ErrNotFeed
				}
			}
			if item == nil && (name == "item" && f.Kind != Atom || name == "entry" && f.Kind == Atom) {
				item, guid, updated = new(Item), "", ""
				path = append(path, name)
				continue
			}
			field := f.field(item, path, t, &guid, &updated)
			if field == nil {
				path = append(path, name)
				continue
			}
			*field = content(d)
			if name == "title" && f.Kind == Atom {
				*field = atomText(t, *field)
			}
		case xml.EndElement:
			if n := len(path); n > 0 {
				if item != nil && (path[n-1] == "item" || path[n-1] == "entry") {
					f.add(item, guid, updated)
					item = nil
					if len(f.Items) == maxItems {
						return f, nil
					}
				}
				path = path[:n-1]
			}
		}
	}
}

// field is the field for an element's content, nil for none. Only direct
// children of the head or of an item count.
func (f *Feed) field(item *Item, path []string, t xml.StartElement, guid, updated *string) *string {
	if len(path) == 0 {
		return nil
	}
	parent := path[len(path)-1]
	if item == nil {
		if t.Name.Local == "title" && f.Title == "" && (parent == "channel" || parent == "feed") && !extension(t) {
			return &f.Title
		}
		return nil
	}
	if parent != "item" && parent != "entry" {
		return nil
	}
	switch t.Name.Local {
	case "title":
		if item.Title == "" && !extension(t) {
			return &item.Title
		}
	case "link":
		return f.link(item, t)
	case "guid":
		for _, a := range t.Attr {
			if a.Name.Local == "isPermaLink" && a.Value == "false" {
				return nil
			}
		}
		return guid
	case "pubDate", "published", "issued":
		return &item.Published
	case "updated", "modified", "date":
		return updated
	}
	return nil
}

// link reads an item's link: an address in href, else, except in Atom, the
// element's content.
func (f *Feed) link(item *Item, t xml.StartElement) *string {
	var href, rel string
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "href":
			href = strings.TrimSpace(a.Value)
		case "rel":
			rel = a.Value
		}
	}
	switch {
	case href != "":
		if item.Link == "" && (rel == "" || rel == "alternate") {
			item.Link = href
		}
		return nil
	case f.Kind != Atom:
		return &item.Link
	}
	return nil
}

// extension reports whether a title is of another vocabulary (media:title, itunes:title).
func extension(t xml.StartElement) bool {
	return strings.Contains(t.Name.Space, "search.yahoo.com") || strings.Contains(t.Name.Space, "itunes") || t.Name.Space == "media"
}

// content reads the text of the current element up to its end, without markup.
func content(d *tokens) string {
	var b strings.Builder
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			break // the caller gets the same error at its next token
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			b.Write(t)
		}
	}
	return strings.TrimSpace(b.String())
}

// atomText is the text of a construct that may be escaped HTML (RFC 4287
// section 3.1.1; text/html with mode escaped in Atom 0.3) or, in Atom 0.3 and
// in feeds that borrow from the content element (section 4.1.3.3), base64.
func atomText(t xml.StartElement, s string) string {
	var mime, mode string
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "type":
			mime = strings.ToLower(strings.TrimSpace(a.Value))
		case "mode":
			mode = a.Value
		}
	}
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

func (f *Feed) add(item *Item, guid, updated string) {
	if item.Link == "" && strings.HasPrefix(guid, "http") {
		item.Link = guid
	}
	if item.Published == "" {
		item.Published = updated
	}
	f.Items = append(f.Items, *item)
}
