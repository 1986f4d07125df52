// Package sitemap counts and reads sitemaps: urlsets and indexes
// (sitemaps.org/protocol.html), RSS and Atom feeds and lists of URLs used as
// such. It is pure: no network, no clock, no logging.
package sitemap

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/feed"
	"github.com/newsfork/seed-engine/transforms/parse/xmltext"
)

// Kind is the form of a sitemap.
type Kind string

// The forms that the protocol accepts.
const (
	URLSet Kind = "urlset"
	Index  Kind = "index"
	RSS    Kind = "rss"
	Atom   Kind = "atom"
	Text   Kind = "text"
	JSON   Kind = "json" // only of ScanAny
)

// ErrNotSitemap says that a body is not a sitemap: a web page in place of a 404, an
// unknown document, an empty body. The caller tries the next candidate.
var ErrNotSitemap = errors.New("not a sitemap")

// MaxUnpacked is the maximum length in bytes to which Parse and Scan unpack a gzip
// body. The protocol allows 50 MB, and some sitemaps exceed it.
const MaxUnpacked = 64 << 20

// Result describes a sitemap.
type Result struct {
	Kind Kind
	// Count is the number of url elements of a urlset, sitemap elements of an
	// index, items of a feed or URLs of a list. Elements of extensions (image,
	// video, news) do not count.
	Count int
	// Children are the sitemaps that an index lists, in order, each once, at most the
	// maxChildren of Parse.
	Children []string
	// Unpacked says that the body itself was a gzip file.
	Unpacked bool
	// Truncated says that the body ended before its root element or its gzip stream,
	// or that it was cut at MaxUnpacked; Count has what came before.
	Truncated bool
}

// Entry is one url, sitemap, item or line. Its strings are those of the document
// with references resolved and outer space removed; dates are not parsed.
type Entry struct {
	Loc     string
	LastMod string // of RSS the pubDate, of Atom updated, else published
	News    News   // from the elements of Google's news extension
}

// News is the news extension of an entry, or title and date of a feed item.
type News struct {
	Publication, Language, Title, PublicationDate string
}

// Parse counts the entries of body and collects at most maxChildren different
// sitemaps of an index. It returns ErrNotSitemap where body is not a sitemap; a
// truncated body is no error, if it has the root element.
func Parse(body []byte, maxChildren int) (Result, error) {
	var children []string
	var visit func(Kind, Entry) bool
	if maxChildren > 0 {
		seen := map[string]bool{"": true}
		visit = func(k Kind, e Entry) bool {
			if k == Index && !seen[e.Loc] {
				seen[e.Loc] = true
				children = append(children, e.Loc)
			}
			return k == Index && len(children) < maxChildren
		}
	}
	r, err := scan(body, visit)
	r.Children = children
	return r, err
}

// Scan is Parse with a visitor: it calls visit with every entry in the document's
// order, until visit returns false. Result.Count covers the whole body in any case;
// Children is empty.
func Scan(body []byte, visit func(Entry) bool) (Result, error) {
	return scan(body, func(_ Kind, e Entry) bool { return visit(e) })
}

// ScanAny is Scan for whatever names pages: it reads a JSON Feed too, which the protocol does not
// accept.
func ScanAny(body []byte, visit func(Entry) bool) (Result, error) {
	r, wrong := Scan(body, visit)
	if wrong == nil {
		return r, nil
	}
	body, unpacked, truncated, err := Unpack(body, MaxUnpacked)
	var text string
	if err == nil {
		text, _, err = xmltext.Decode(body)
	}
	if err != nil || !strings.HasPrefix(text, "{") {
		return r, wrong
	}
	f, whole, err := feed.ReadJSON(text)
	if err != nil {
		return r, wrong
	}
	for _, i := range f.Items {
		if !visit(ofFeed(i)) {
			break
		}
	}
	return Result{Kind: JSON, Count: len(f.Items), Unpacked: unpacked, Truncated: truncated || !whole}, nil
}

func scan(body []byte, visit func(Kind, Entry) bool) (Result, error) {
	body, unpacked, truncated, err := Unpack(body, MaxUnpacked)
	r := Result{Unpacked: unpacked, Truncated: truncated}
	if err != nil {
		return r, errors.Join(ErrNotSitemap, err)
	}
	text, isXML, err := xmltext.Decode(body)
	if err != nil {
		return r, errors.Join(ErrNotSitemap, err)
	}
	if isXML {
		err = scanXML(text, &r, visit)
	} else {
		err = scanText(text, &r, visit)
	}
	return r, err
}

// scanText reads one URL a line and ignores other lines, but the first line that is
// not empty has to look like a URL: prose with links is no sitemap.
func scanText(text string, r *Result, visit func(Kind, Entry) bool) error {
	plausible := false
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !plausible && (strings.ContainsAny(line, " \t<{") || !strings.Contains(line, ".")) {
			return ErrNotSitemap
		}
		plausible = true
		// The protocol demands whole URLs; a missing scheme is added, as in
		// crawler-commons.
		if host, _, _ := strings.Cut(line, "/"); !strings.Contains(line, "://") && strings.HasPrefix(host, "www.") {
			line = "http://" + line
		}
		u, err := url.Parse(line)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(line, " \t") {
			continue
		}
		r.Count++
		if visit != nil && !visit(Text, Entry{Loc: line}) {
			visit = nil
		}
	}
	if r.Count == 0 {
		return ErrNotSitemap
	}
	r.Kind = Text
	return nil
}

// scanFeed reads a feed that is used as a sitemap.
func scanFeed(text string, r *Result, visit func(Kind, Entry) bool) error {
	f, whole, err := feed.Read(text, func(i feed.Item) bool {
		r.Count++
		if visit != nil && !visit(RSS, ofFeed(i)) {
			visit = nil
		}
		return true
	})
	if err != nil {
		return ErrNotSitemap
	}
	r.Kind = RSS
	if f.Kind == feed.Atom {
		r.Kind = Atom
	}
	r.Truncated = r.Truncated || !whole
	return nil
}

func ofFeed(i feed.Item) Entry {
	return Entry{Loc: i.Link, LastMod: cmp.Or(i.Updated, i.Published), News: News{Title: i.Title, PublicationDate: i.Published}}
}

// scanXML counts the elements below the root. The document need not be well
// formed: everything before an error counts.
func scanXML(text string, r *Result, visit func(Kind, Entry) bool) error {
	x := xmlReader{Scanner: xmltext.Scanner{Text: text}, result: r, visit: visit}
	unpackedInPart := r.Truncated
	for x.advance() {
		t := &x.Token
		switch {
		case t.Kind == xmltext.StartTag && r.Kind == "":
			if !x.root(t) {
				return scanFeed(text, r, visit)
			}
			if t.Empty {
				return nil
			}
			r.Truncated = true // until the root's end tag
		case t.Kind == xmltext.EndTag && r.Kind != "" && t.Local == x.rootName && t.Prefix == x.rootPrefix:
			x.finish()
			r.Truncated = unpackedInPart
			return nil
		case t.Kind == xmltext.StartTag && t.Local == x.entryName && (!x.inEntry || t.Prefix == x.rootPrefix):
			// Inside an entry the same name under another prefix belongs to an
			// extension; under the same prefix, the entry before was not closed.
			x.begin(t)
		case !x.inEntry:
		case t.Kind == xmltext.EndTag && t.Local == x.entryName && t.Prefix == x.entryPrefix:
			x.end()
		case x.visit != nil:
			x.inside(t)
		}
	}
	x.finish()
	if r.Kind == "" {
		return ErrNotSitemap
	}
	return nil
}

// xmlReader is the state of scanXML.
type xmlReader struct {
	xmltext.Scanner
	result *Result
	visit  func(Kind, Entry) bool // nil when no entry is wanted any more

	rootPrefix, rootName   string
	entryPrefix, entryName string
	entryStart, entryEnd   string // the tags of an entry that has the root's prefix and no attributes

	entry     Entry
	inEntry   bool
	news      bool            // within an element of the news extension
	foreign   string          // the element with another default namespace that the current one is within
	field     *string         // of entry, that the current element's text is for
	fieldName string          // the current element
	content   strings.Builder // the current element's text
}

// root reads the root's start tag; it is false where that is no urlset's and no index's.
func (x *xmlReader) root(t *xmltext.Token) bool {
	switch t.Local {
	case "urlset":
		x.result.Kind, x.entryName = URLSet, "url"
	case "sitemapindex":
		x.result.Kind, x.entryName = Index, "sitemap"
	default:
		return false
	}
	x.rootPrefix, x.rootName = t.Prefix, t.Local
	name := x.entryName
	if t.Prefix != "" {
		name = t.Prefix + ":" + name
	}
	x.entryStart, x.entryEnd = "<"+name+">", "</"+name+">"
	return true
}

// advance reads the next token, where entries are only counted the next that may begin
// or end an entry or the root. It counts entries without attributes itself, because
// to compare their tags costs less than to take them apart.
func (x *xmlReader) advance() bool {
	if x.visit != nil || x.result.Kind == "" {
		return x.Next()
	}
	for {
		x.SkipTags(x.entryName[0], x.rootName[0])
		rest := x.Text[x.Pos:]
		switch {
		case strings.HasPrefix(rest, x.entryStart):
			x.result.Count++
			x.inEntry, x.entryPrefix = true, x.rootPrefix
			x.Pos += len(x.entryStart)
		case x.inEntry && strings.HasPrefix(rest, x.entryEnd) && x.entryPrefix == x.rootPrefix:
			x.inEntry = false
			x.Pos += len(x.entryEnd)
		default:
			return x.Next()
		}
	}
}

// begin starts an entry.
func (x *xmlReader) begin(t *xmltext.Token) {
	x.finish()
	x.result.Count++
	x.entry, x.news, x.foreign = Entry{}, false, ""
	x.inEntry, x.entryPrefix = true, t.Prefix
	if x.result.Kind == Index {
		// The URL as text of the element, without loc, is read too.
		x.field, x.fieldName = &x.entry.Loc, x.entryName
	}
	x.content.Reset()
	if t.Empty {
		x.finish()
	}
}

// inside reads a token inside an entry.
func (x *xmlReader) inside(t *xmltext.Token) {
	switch {
	case t.Kind == xmltext.StartTag:
		if f := x.fieldOf(t); f != nil && !t.Empty && *f == "" {
			x.keep() // of an element that was not closed
			x.field, x.fieldName = f, t.Local
			x.content.Reset()
		}
		if t.Empty {
			return
		}
		x.news = x.news || t.Local == "news"
		if space := t.Attr("xmlns"); x.foreign == "" && space != "" && !strings.Contains(space, "schemas/sitemap/") {
			x.foreign = t.Local
		}
	case t.Kind == xmltext.EndTag:
		if x.field != nil && t.Local == x.fieldName {
			x.keep()
		}
		x.news = x.news && t.Local != "news"
		if t.Local == x.foreign {
			x.foreign = ""
		}
	case x.field == nil:
	case t.Kind == xmltext.CharData:
		x.content.WriteString(xmltext.Unescape(t.Text))
	case t.Kind == xmltext.CDATA:
		x.content.WriteString(t.Text)
	}
}

// keep writes the current element's text to its field.
func (x *xmlReader) keep() {
	if x.field != nil && *x.field == "" {
		*x.field = strings.TrimSpace(x.content.String())
	}
	x.field = nil
}

// end reads an entry's end tag.
func (x *xmlReader) end() {
	x.keep()
	x.finish()
}

// finish ends the entry, if there is one, and passes it to visit.
func (x *xmlReader) finish() {
	if x.inEntry && x.visit != nil {
		if !x.visit(x.result.Kind, x.entry) {
			x.visit = nil
		}
	}
	x.inEntry, x.field = false, nil
}

// fieldOf is the field of the entry for the text of an element, nil for none.
func (x *xmlReader) fieldOf(t *xmltext.Token) *string {
	e := &x.entry
	// The element is the protocol's and not an extension's.
	own := x.foreign == "" && (t.Prefix == x.rootPrefix || t.Prefix == x.entryPrefix || t.Prefix == "")
	news := x.news || t.Prefix == "news"
	switch t.Local {
	case "loc":
		if own {
			return &e.Loc
		}
	case "lastmod":
		if own {
			return &e.LastMod
		}
	case "publication_date":
		if news {
			return &e.News.PublicationDate
		}
	case "language":
		if news {
			return &e.News.Language
		}
	case "name":
		if news {
			return &e.News.Publication
		}
	case "title":
		if news {
			return &e.News.Title
		}
	}
	return nil
}
