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

// ErrNotSitemap says that a body is something else: a web page in the place of
// a 404, an unknown document, nothing. The caller tries the next candidate.
var ErrNotSitemap = errors.New("not a sitemap")

// MaxUnpacked bounds in bytes what Parse and Scan unpack of a gzip body; the
// protocol allows 50 MB, and some exceed it.
const MaxUnpacked = 64 << 20

// Result is what a sitemap holds.
type Result struct {
	Kind Kind
	// Count is the number of url elements of a urlset, sitemap elements of an
	// index, items of a feed or URLs of a list. Elements of extensions (image,
	// video, news) do not count.
	Count int
	// Children is the sitemaps an index names, in order, each once, up to the
	// limit asked for.
	Children []string
	// Unpacked says that the body was gzip within its content.
	Unpacked bool
	// Truncated says that the body ended before its root element did, or its
	// gzip stream did, or that it was cut at MaxUnpacked; Count is what was seen.
	Truncated bool
}

// Entry is one url, sitemap, item or line. Strings are as in the document,
// references resolved and outer space removed; dates are not interpreted.
type Entry struct {
	Loc     string
	LastMod string // of RSS the pubDate, of Atom updated, else published
	News    News   // from the elements of Google's news extension
}

// News is the news extension of an entry, or title and date of a feed item.
type News struct {
	Publication, Language, Title, PublicationDate string
}

// Parse counts what body holds and collects at most maxChildren different
// sitemaps of an index. The error is ErrNotSitemap where body is no sitemap; a body that was
// cut is none, as long as its root element is there.
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

// Scan is Parse with a visitor that is given every entry in the document's
// order, while it returns true. Result.Count covers the whole body either way;
// Children stays empty.
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

// scanText reads one URL a line. Lines that are none are passed over, but the
// first that is not empty has to look like one: prose with links is no sitemap.
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
		// The protocol wants whole URLs; crawler-commons supplies a missing
		// scheme, and so do we, to count what the author meant.
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
// formed: what was seen before an error counts.
func scanXML(text string, r *Result, visit func(Kind, Entry) bool) error {
	s := scanner{text: text}
	cut := r.Truncated
	var rootPrefix, rootName, entryName, entryPrefix string
	var entry Entry
	var inEntry, guid bool
	var field *string // where text goes now
	var fieldName string
	var buf strings.Builder

	finish := func() {
		if inEntry && visit != nil {
			if entry.LastMod == "" && r.Kind == Atom {
				entry.LastMod = entry.News.PublicationDate
			}
			if !visit(r.Kind, entry) {
				visit = nil
			}
		}
		inEntry, field = false, nil
	}
	for s.next() {
		t := &s.token
		switch {
		case t.kind == startTag && r.Kind == "":
			switch t.local {
			case "urlset":
				r.Kind, entryName = URLSet, "url"
			case "sitemapindex":
				r.Kind, entryName = Index, "sitemap"
			case "rss", "RDF":
				r.Kind, entryName = RSS, "item"
			case "feed":
				r.Kind, entryName = Atom, "entry"
			default:
				return ErrNotSitemap
			}
			rootPrefix, rootName = t.prefix, t.local
			if t.empty {
				return nil
			}
			r.Truncated = true // until the root's end is seen
		case t.kind == endTag && r.Kind != "" && t.local == rootName && t.prefix == rootPrefix:
			finish()
			r.Truncated = cut
			return nil
		case t.kind == startTag && t.local == entryName && (!inEntry || t.prefix == rootPrefix):
			// Inside an entry the same name under another prefix belongs to an
			// extension; under the same one, the entry before was not closed.
			finish()
			r.Count++
			entry, guid = Entry{}, false
			inEntry, entryPrefix = true, t.prefix
			if r.Kind == Index {
				// The URL as text of the element, without loc, is read too.
				field, fieldName = &entry.Loc, entryName
			}
			buf.Reset()
			if t.empty {
				finish()
			}
		case !inEntry:
		case t.kind == endTag && t.local == entryName && t.prefix == entryPrefix:
			if field != nil && fieldName == entryName && *field == "" {
				*field = strings.TrimSpace(buf.String())
			}
			finish()
		case visit == nil:
			// Only counting.
		case t.kind == startTag:
			if r.Kind == Atom && t.local == "link" && entry.Loc == "" && t.prefix == rootPrefix {
				if rel := t.attr("rel"); rel == "" || rel == "alternate" {
					entry.Loc = strings.TrimSpace(html.UnescapeString(t.attr("href")))
				}
			}
			if f := entry.field(r.Kind, rootPrefix, t); f != nil && !t.empty && (*f == "" || guid && t.local == "link") {
				guid = r.Kind == RSS && t.local == "guid"
				field, fieldName = f, t.local
				buf.Reset()
			}
		case t.kind == endTag && field != nil && t.local == fieldName:
			*field = strings.TrimSpace(buf.String())
			field = nil
		case t.kind == charData && field != nil:
			buf.WriteString(unescape(t.text))
		case t.kind == cdata && field != nil:
			buf.WriteString(t.text)
		}
	}
	finish()
	if r.Kind == "" {
		return ErrNotSitemap
	}
	return nil
}

// field is where the text of an element inside an entry belongs, nil for none.
func (e *Entry) field(k Kind, rootPrefix string, t *token) *string {
	own := t.prefix == rootPrefix || t.prefix == "" // the root of RDF has a prefix, its items none
	switch k {
	case URLSet, Index:
		switch {
		case t.local == "loc" && own:
			return &e.Loc
		case t.local == "lastmod" && own:
			return &e.LastMod
		case t.local == "publication_date":
			return &e.News.PublicationDate
		case t.local == "language":
			return &e.News.Language
		case t.local == "name":
			return &e.News.Publication
		case t.local == "title" && t.prefix == "news":
			return &e.News.Title
		}
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

// unescape resolves the references of XML and HTML. Entities that a document
// declares itself are left out, never expanded.
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
