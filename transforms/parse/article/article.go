// Package article reads news articles from web pages: title, body, time,
// authors. It knows no publisher: JSON-LD, Open Graph, the time element and
// heuristics over the page's blocks decide, and a publisher's own selectors come
// first where there are any. It is pure: no network, no clock, no logging.
package article

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
	"github.com/newsfork/seed-engine/transforms/parse/language"
	"github.com/newsfork/seed-engine/transforms/parse/structured"
)

// Article is what was read from a page. An absent field is empty, an absent time zero.
type Article struct {
	Title     string    `json:"title"`
	Body      string    `json:"body"` // paragraphs, one a line
	Published time.Time `json:"published,omitzero"`
	Modified  time.Time `json:"modified,omitzero"`
	Authors   []string  `json:"authors,omitempty"`
	Language  string    `json:"language,omitempty"`  // as declared, unless the body is plainly in another: BCP 47
	Canonical string    `json:"canonical,omitempty"` // link rel=canonical, else og:url, as written
	Base      string    `json:"base,omitempty"`      // href of the first base element that has one, as written: to what the page's addresses are relative
	Section   string    `json:"section,omitempty"`
	Type      Type      `json:"type,omitempty"`      // "": an article
	Paywalled bool      `json:"paywalled,omitempty"` // the page says that its article is not free: it shows only the beginning or a note
}

// Rules are a publisher's additions to the defaults. The zero value is
// good for most pages.
type Rules struct {
	// Title, Body, Published are CSS selectors that are tried before the
	// defaults; the matches of Body are joined in the document's order.
	Title, Body, Published string
	// Remove are CSS selectors of elements to drop from the body.
	Remove []string
	// Drop are regular expressions; a line of the body that one matches is left out.
	Drop []string
	// Site is the publisher's name at the end of its titles.
	Site string
	// Zone is the time zone of times without an offset; nil means UTC.
	Zone *time.Location
}

// ErrTooDeep says that a page's elements are nested over 512 deep, which no author does on purpose.
var ErrTooDeep = errors.New("the page's elements are nested too deep")

// Page is a parsed page. It is not safe for concurrent use.
type Page struct {
	Root *html.Node       // without what strip removes: scripts, styles, menus, pictures, comments
	Data *structured.Data // what the page says about itself

	head        *html.Node
	body        *html.Node
	lang        string
	title       string
	meta        map[string]string // by name, property or itemprop, in lower case; the first counts
	links       map[string]string // by rel
	base        *string           // href of the first base element that has one
	headings    []*html.Node      // h1
	subheadings []*html.Node      // h2
	times       []*html.Node      // time elements and itemprop=datePublished
	corrections []*html.Node      // notes that correct the article, by their names
	ld          structured.Article
	gone        unseen

	known struct { // what several fields are read by
		own     string // of sites
		sites   []string
		title   string // of heading
		heading *html.Node
	}
}

// Parse reads an HTML page. contentType is the Content-Type header, for its
// charset. The error is ErrTooDeep or a body whose encoding cannot be decoded.
func Parse(body []byte, contentType string) (*Page, error) {
	text, _, err := charset.Bytes(body, contentType)
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	kept, gone := strip(text)
	root, err := html.Parse(strings.NewReader(kept))
	if err != nil {
		return nil, errors.Join(ErrTooDeep, fmt.Errorf("parsing the page: %w", err))
	}
	p := &Page{Root: root, gone: gone, meta: map[string]string{}, links: map[string]string{}}
	p.survey(root)
	p.Data = structured.Read(root, gone.jsonLD...)
	p.ld, _ = p.Data.Article() // without one its fields are empty
	return p, nil
}

// Extract is Parse and Article in one.
func Extract(body []byte, contentType string, r Rules) (Article, error) {
	p, err := Parse(body, contentType)
	if err != nil {
		return Article{}, err
	}
	return p.Article(r)
}

// Article reads the page by rules; the error is a selector or an expression
// that is malformed.
func (p *Page) Article(r Rules) (Article, error) {
	c, err := r.Compile()
	if err != nil {
		return Article{}, err
	}
	return p.Read(c), nil
}

// Read reads the page by rules that were compiled before.
func (p *Page) Read(c *Compiled) Article {
	a := Article{ // its texts are no parts of the page, which would stay in memory with them
		Title:     strings.Clone(p.titleBy(c)),
		Canonical: strings.Clone(cmp.Or(p.links["canonical"], p.meta["og:url"])),
		Section:   strings.Clone(cmp.Or(p.meta["article:section"], p.ld.Section)),
	}
	if p.base != nil {
		a.Base = strings.TrimSpace(strings.Clone(*p.base))
	}
	a.Paywalled = p.ld.Paid || strings.EqualFold(p.meta["article:content_tier"], "locked")
	for _, name := range p.authors(a.Title, c.site) {
		a.Authors = append(a.Authors, strings.Clone(name))
	}
	zone := p.calendar(c.zone)
	a.Published, a.Modified = p.published(c, zone, a.Title), p.modified(zone)
	kind := p.profile()
	a.Type = kind.Type
	a.Body = p.bodyBy(c, a.Title, kind)
	a.Language = language.Page(cmp.Or(p.lang, p.ld.Language), a.Body)
	return a
}

// OnlyShown makes the page read as what it shows: without the text that only its scripts,
// its templates or its JSON-LD have.
func (p *Page) OnlyShown() {
	p.ld.Body, p.gone = "", unseen{}
}

// Select returns the texts of a selector's matches, each on one line, for
// publishers' own parsers.
func (p *Page) Select(m cascadia.Matcher) []string {
	var out []string
	for _, n := range cascadia.QueryAll(p.Root, m) {
		if t := line(n); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// Lang is the language that the page's html element declares, as written.
func (p *Page) Lang() string { return p.lang }

// Meta is the content of the first meta element of this name, property or
// itemprop, "" for none.
func (p *Page) Meta(name string) string { return p.meta[strings.ToLower(name)] }

// most is the maximum number of headings, and of times, that are read.
const most = 500

// survey collects the page's metadata in one walk.
func (p *Page) survey(n *html.Node) {
	var next *html.Node
	for c := n.FirstChild; c != nil; c = next {
		next = c.NextSibling
		if c.Type != html.ElementNode {
			continue
		}
		if c.DataAtom == atom.Div && strings.HasPrefix(dom.Attr(c, "id"), "wm-ipp") { // the toolbar of a web archive is not the page's
			n.RemoveChild(c)
			continue
		}
		switch c.DataAtom {
		case atom.Html:
			p.lang = strings.TrimSpace(dom.Attr(c, "lang"))
		case atom.Head:
			p.head = c
		case atom.Body:
			p.body = c
		case atom.Title:
			if p.title == "" && c.Namespace == "" {
				p.title = html.UnescapeString(line(c)) // some are escaped twice
			}
		case atom.Meta:
			p.metaElement(c)
		case atom.Link:
			if rel := strings.ToLower(dom.Attr(c, "rel")); rel != "" && p.links[rel] == "" {
				p.links[rel] = strings.TrimSpace(dom.Attr(c, "href"))
			}
		case atom.Base:
			for i := range c.Attr {
				if c.Attr[i].Key == "href" && c.Namespace == "" && p.base == nil {
					p.base = &c.Attr[i].Val
				}
			}
		case atom.H1:
			if len(p.headings) < most {
				p.headings = append(p.headings, c)
			}
		case atom.H2, atom.H3:
			if len(p.subheadings) < most {
				p.subheadings = append(p.subheadings, c)
			}
		case atom.Time:
			if len(p.times) < most {
				p.times = append(p.times, c)
			}
		default:
			if len(p.corrections) < most && corrects(c) {
				p.corrections = append(p.corrections, c)
			}
			if prop := dom.Attr(c, "itemprop"); prop != "" && strings.Contains(prop, "datePublished") && len(p.times) < most {
				p.times = append(p.times, c)
			}
		}
		p.survey(c)
	}
}

func (p *Page) metaElement(n *html.Node) {
	content := strings.TrimSpace(dom.Attr(n, "content"))
	if content == "" {
		return
	}
	for _, key := range []string{"property", "name", "itemprop", "http-equiv"} {
		for name := range strings.FieldsSeq(strings.ToLower(dom.Attr(n, key))) {
			if _, taken := p.meta[name]; taken {
				continue
			}
			if p.meta[name] = content; strings.HasSuffix(name, ":title") {
				p.meta[name] = html.UnescapeString(content)
			}
		}
	}
}

// Text is the text below n on one line.
func Text(n *html.Node) string { return line(n) }

// line is the text below n on one line.
func line(n *html.Node) string {
	var b strings.Builder
	var add func(*html.Node)
	add = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
			case c.DataAtom == atom.Br:
				b.WriteByte(' ')
			case c.DataAtom == atom.Rt || c.DataAtom == atom.Rp: // how the characters before it are read
			default:
				add(c)
			}
		}
	}
	add(n)
	return collapse(b.String())
}

// collapse writes every run of space as one, and none at the ends.
func collapse(s string) string {
	s = strings.TrimSpace(s)
	space := false
	for _, c := range s { // most texts need no change
		is := isSpace(c)
		if is && (space || c != ' ') {
			return squeeze(s)
		}
		space = is
	}
	return s
}

// squeeze is collapse for a text that needs a change.
func squeeze(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	from := 0 // where the word begins
	word := func(end int) {
		if end > from {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(s[from:end])
		}
	}
	for i, c := range s {
		if isSpace(c) {
			word(i)
			from = i + utf8.RuneLen(c)
		}
	}
	word(len(s))
	return b.String()
}

// isSpace is unicode.IsSpace, quicker for letters: the last space in Unicode is U+3000.
func isSpace(c rune) bool {
	return c <= ' ' && unicode.IsSpace(c) || c > '~' && c <= '\u3000' && unicode.IsSpace(c)
}
