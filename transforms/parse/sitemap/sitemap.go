// Package sitemap counts and reads sitemaps: urlsets and indexes
// (sitemaps.org/protocol.html), RSS and Atom feeds and lists of URLs used as
// such. It is pure: no network, no clock, no logging.
package sitemap

import (
	"errors"
	"html"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
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

func scan(body []byte, visit func(Kind, Entry) bool) (Result, error) {
	body, unpacked, truncated, err := Unpack(body, MaxUnpacked)
	r := Result{Unpacked: unpacked, Truncated: truncated}
	if err != nil {
		return r, errors.Join(ErrNotSitemap, err)
	}
	text, _, err := charset.Decode(body, "")
	if err != nil {
		return r, errors.Join(ErrNotSitemap, err)
	}
	trimmed := strings.TrimLeft(text, " \t\r\n\ufeff\x00")
	if strings.HasPrefix(trimmed, "<") {
		err = scanXML(trimmed, &r, visit)
	} else {
		err = scanText(trimmed, &r, visit)
	}
	return r, err
}

// scanText reads one URL a line and ignores other lines, but the first line that is
// not empty has to look like a URL: prose with links is no sitemap.
func scanText(text string, r *Result, visit func(Kind, Entry) bool) error {
	plausible := false
	for line := range strings.Lines(text) {
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

// scanXML counts the elements below the root. The document need not be well
// formed: everything before an error counts.
func scanXML(text string, r *Result, visit func(Kind, Entry) bool) error {
	x := xmlReader{scanner: scanner{text: text}, result: r, visit: visit}
	unpackedInPart := r.Truncated
	for x.advance() {
		t := &x.token
		switch {
		case t.kind == startTag && r.Kind == "":
			if !x.root(t) {
				return ErrNotSitemap
			}
			if t.empty {
				return nil
			}
			r.Truncated = true // until the root's end tag
		case t.kind == endTag && r.Kind != "" && t.local == x.rootName && t.prefix == x.rootPrefix:
			x.finish()
			r.Truncated = unpackedInPart
			return nil
		case t.kind == startTag && t.local == x.entryName && (!x.inEntry || t.prefix == x.rootPrefix):
			// Inside an entry the same name under another prefix belongs to an
			// extension; under the same prefix, the entry before was not closed.
			x.begin(t)
		case !x.inEntry:
		case t.kind == endTag && t.local == x.entryName && t.prefix == x.entryPrefix:
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
	scanner
	result *Result
	visit  func(Kind, Entry) bool // nil when no entry is wanted any more

	rootPrefix, rootName   string
	entryPrefix, entryName string
	entryStart, entryEnd   string // the tags of an entry that has the root's prefix and no attributes

	entry     Entry
	inEntry   bool
	guid      bool            // entry.Loc is a guid, which a link replaces
	field     *string         // of entry, that the current element's text is for
	fieldName string          // the current element
	content   strings.Builder // the current element's text
}

// root reads the root's start tag; it is false where that is no sitemap's.
func (x *xmlReader) root(t *token) bool {
	switch t.local {
	case "urlset":
		x.result.Kind, x.entryName = URLSet, "url"
	case "sitemapindex":
		x.result.Kind, x.entryName = Index, "sitemap"
	case "rss", "RDF":
		x.result.Kind, x.entryName = RSS, "item"
	case "feed":
		x.result.Kind, x.entryName = Atom, "entry"
	default:
		return false
	}
	x.rootPrefix, x.rootName = t.prefix, t.local
	name := x.entryName
	if t.prefix != "" {
		name = t.prefix + ":" + name
	}
	x.entryStart, x.entryEnd = "<"+name+">", "</"+name+">"
	return true
}

// advance reads the next token, where entries are only counted the next that may begin
// or end an entry or the root. It counts entries without attributes itself, because
// to compare their tags costs less than to take them apart.
func (x *xmlReader) advance() bool {
	if x.visit != nil || x.result.Kind == "" {
		return x.next()
	}
	for {
		x.skipTags(x.entryName[0], x.rootName[0])
		rest := x.text[x.pos:]
		switch {
		case strings.HasPrefix(rest, x.entryStart):
			x.result.Count++
			x.inEntry, x.entryPrefix = true, x.rootPrefix
			x.pos += len(x.entryStart)
		case x.inEntry && strings.HasPrefix(rest, x.entryEnd) && x.entryPrefix == x.rootPrefix:
			x.inEntry = false
			x.pos += len(x.entryEnd)
		default:
			return x.next()
		}
	}
}

// begin starts an entry.
func (x *xmlReader) begin(t *token) {
	x.finish()
	x.result.Count++
	x.entry, x.guid = Entry{}, false
	x.inEntry, x.entryPrefix = true, t.prefix
	if x.result.Kind == Index {
		// The URL as text of the element, without loc, is read too.
		x.field, x.fieldName = &x.entry.Loc, x.entryName
	}
	x.content.Reset()
	if t.empty {
		x.finish()
	}
}

// inside reads a token inside an entry.
func (x *xmlReader) inside(t *token) {
	kind := x.result.Kind
	switch {
	case t.kind == startTag:
		if kind == Atom && t.local == "link" && x.entry.Loc == "" && t.prefix == x.rootPrefix {
			if rel := t.attr("rel"); rel == "" || rel == "alternate" {
				x.entry.Loc = strings.TrimSpace(html.UnescapeString(t.attr("href")))
			}
		}
		if f := x.entry.field(kind, x.rootPrefix, t); f != nil && !t.empty && (*f == "" || x.guid && t.local == "link") {
			x.guid = kind == RSS && t.local == "guid"
			x.field, x.fieldName = f, t.local
			x.content.Reset()
		}
	case x.field == nil:
	case t.kind == endTag && t.local == x.fieldName:
		*x.field = strings.TrimSpace(x.content.String())
		x.field = nil
	case t.kind == charData:
		x.content.WriteString(unescape(t.text))
	case t.kind == cdata:
		x.content.WriteString(t.text)
	}
}

// end reads an entry's end tag.
func (x *xmlReader) end() {
	if x.field != nil && x.fieldName == x.entryName && *x.field == "" {
		*x.field = strings.TrimSpace(x.content.String())
	}
	x.finish()
}

// finish ends the entry, if there is one, and passes it to visit.
func (x *xmlReader) finish() {
	if x.inEntry && x.visit != nil {
		if x.entry.LastMod == "" && x.result.Kind == Atom {
			x.entry.LastMod = x.entry.News.PublicationDate
		}
		if !x.visit(x.result.Kind, x.entry) {
			x.visit = nil
		}
	}
	x.inEntry, x.field = false, nil
}

// field is the field of an entry for the text of an element, nil for none.
func (e *Entry) field(k Kind, rootPrefix string, t *token) *string {
	own := t.prefix == rootPrefix || t.prefix == "" // the root of RDF has a prefix, its items have none
	switch k {
	case URLSet, Index:
		return e.urlField(t, own)
	case RSS:
		switch {
		case (t.local == "link" || t.local == "guid") && own:
			return &e.Loc
		case t.local == "pubDate" && own, t.local == "date" && t.prefix == "dc":
			return &e.LastMod
		case t.local == "title" && own:
			return &e.News.Title
		}
	case Atom:
		switch {
		case t.local == "updated" && own:
			return &e.LastMod
		case t.local == "published" && own:
			return &e.News.PublicationDate
		case t.local == "title" && own:
			return &e.News.Title
		}
	}
	return nil
}

// urlField is field for sitemaps and indexes; own says that the element is the
// protocol's and not an extension's.
func (e *Entry) urlField(t *token, own bool) *string {
	switch t.local {
	case "loc":
		if own {
			return &e.Loc
		}
	case "lastmod":
		if own {
			return &e.LastMod
		}
	case "publication_date":
		return &e.News.PublicationDate
	case "language":
		return &e.News.Language
	case "name":
		return &e.News.Publication
	case "title":
		if t.prefix == "news" {
			return &e.News.Title
		}
	}
	return nil
}

// unescape resolves the references of XML and HTML. Entities that the document itself
// declares are removed, never expanded.
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	var out strings.Builder
	for rest := html.UnescapeString(s); ; {
		before, after, found := strings.Cut(rest, "&")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		n := strings.IndexFunc(after, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
		})
		if n > 0 && after[n] == ';' {
			rest = after[n+1:]
			continue
		}
		out.WriteByte('&')
		rest = after
	}
}
