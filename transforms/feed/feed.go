// Package feed reads the items of RSS, RDF, Atom and JSON feeds and finds the
// feeds a web page names. It is pure: no network, no clock, no logging.
package feed

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/charset"
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

// ErrNotFeed says that a body is something else.
var ErrNotFeed = errors.New("not a feed")

// Feed is a feed's head and items, in the document's order.
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

// Parse reads a feed in any encoding. What a document that breaks off held
// until then is returned without error; the error is ErrNotFeed.
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
		Items          []struct {
			URL, Title string
			Published  string `json:"date_published"`
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return Feed{}, errors.Join(ErrNotFeed, err)
	}
	if !strings.Contains(doc.Version, "jsonfeed.org/version/") {
		return Feed{}, ErrNotFeed
	}
	f := Feed{Kind: JSON, Title: doc.Title}
	for _, i := range doc.Items {
		f.Items = append(f.Items, Item{Link: i.URL, Title: i.Title, Published: i.Published})
	}
	return f, nil
}

// parseXML reads leniently and by local names: the namespaces of feeds are as
// often wrong as right.
func parseXML(text string) (Feed, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // text is decoded already
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
				}
				path = path[:n-1]
			}
		}
	}
}

// field is where an element's content belongs, nil for nowhere. Only direct
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
		var href, rel string
		for _, a := range t.Attr {
			switch a.Name.Local {
			case "href":
				href = strings.TrimSpace(a.Value)
			case "rel":
				rel = a.Value
			}
		}
		if href != "" {
			if item.Link == "" && (rel == "" || rel == "alternate") {
				item.Link = href
			}
			return nil
		}
		if f.Kind != Atom {
			return &item.Link
		}
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

// extension tells titles of other vocabularies (media:title, itunes:title).
func extension(t xml.StartElement) bool {
	return strings.Contains(t.Name.Space, "search.yahoo.com") || strings.Contains(t.Name.Space, "itunes") || t.Name.Space == "media"
}

// content reads up to the end of the element just begun, markup dropped.
func content(d *xml.Decoder) string {
	var b strings.Builder
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			break // the caller meets the same error at its next token
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

// atomText is the text of a construct that may hold escaped HTML (RFC 4287
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
	for z := html.NewTokenizer(strings.NewReader(s)); ; {
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
