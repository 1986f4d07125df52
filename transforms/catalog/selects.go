package catalog

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/catalog/value"
)

// finder is a compiled Select.
type finder struct {
	group     cascadia.SelectorGroup // nil: of JSON
	classes   []string               // see classesOf
	labels    []string               // of a field with label, folded
	lines     *finder                // in which a text stands under its label
	attribute string
	path      *query
	markup    bool // the selector is run in the HTML that path finds, not the path in the element that the selector finds
	apart     bool // the digits of different elements are kept apart by value.Apart and value.Raised
	part      *regexp.Regexp
}

// inside returns the format of what a Select finds in a page of a format: JSON in an
// element of HTML, or HTML in a text of JSON, where it has both a selector and a path.
func (s Select) inside(format string) string {
	switch {
	case s.Selector == "" || s.Path == "":
		return format
	case format == formatJSON:
		return formatHTML
	}
	return formatJSON
}

// ofElement reports whether a Select's text is that of an element.
func (s Select) ofElement(format string) bool {
	return s.Selector != "" && s.inside(format) == formatHTML
}

// scalar is a text that a finder found.
type scalar struct {
	text  string
	plain bool // a number as JSON writes it
}

// none reports whether a cursor or a link says that there is none, as some APIs do on the
// last page.
func (s scalar) none() bool { return s.text == "false" || s.plain && s.text == "0" }

// String returns what a person looks for in the page.
func (s Select) String() string {
	if s.Selector != "" && s.Path != "" {
		return s.Selector + " | " + s.Path
	}
	return s.Selector + s.Path
}

// looksFor says for what a field looks, for a person who corrects the site's file.
func (f fieldReader) looksFor() string {
	s := f.Select
	switch {
	case f.From == fromStructured:
		return "path " + s.Path + " in the structured data"
	case f.lines != nil:
		return f.String()
	case s.Selector == "":
		return "path " + s.Path
	case f.attribute != "":
		return fmt.Sprintf("selector %s, attribute %s", s, f.attribute)
	}
	return "selector " + s.String()
}

// compile compiles a Select for pages of a format.
func (s Select) compile(where, format string) (f finder, err error) {
	switch {
	case format == formatSitemap:
		if s.Selector != "" || s.Attribute != "" || s.Path != "" {
			return f, wrong(where, "%s: of a sitemap only regexp can be used: it chooses the addresses", where)
		}
	case format == formatJSON && (s.Selector == "" && s.Attribute != "" || s.Selector != "" && s.Path == ""):
		return f, wrong(where, "%s: the page is JSON: use path, a JMESPath expression, in place of selector and attribute", where)
	case format == formatJSON && s.Path == "":
		return f, wrong(where, "%s: it has no path (the page is JSON)", where)
	case format != formatJSON && s.Selector == "":
		return f, wrong(where, "%s: it has no selector", where)
	}
	if s.Selector != "" {
		if f.group, err = cascadia.ParseGroup(s.Selector); err != nil {
			return f, wrong(where+".selector", "%s.selector %q: %w", where, s.Selector, err)
		}
		f.classes = classesOf(s.Selector, f.group)
	}
	f.attribute, f.markup = strings.ToLower(s.Attribute), format == formatJSON
	if s.Path != "" {
		if f.path, err = compilePath(s.Path); err != nil {
			return f, wrong(where+".path", "%s.path %q: want a JMESPath expression: %w", where, s.Path, err)
		}
	}
	if s.Regexp != "" {
		if f.part, err = regexp.Compile(s.Regexp); err != nil {
			return f, wrong(where+".regexp", "%s.regexp: %w", where, err)
		}
	}
	return f, nil
}

// values returns the non-empty texts that the finder finds, in the page's order.
func (f finder) values(p *page) iter.Seq[scalar] {
	return func(yield func(scalar) bool) {
		under := f.under(p)
		for _, s := range under {
			if !yield(s) {
				return
			}
		}
		if f.group == nil && f.lines == nil {
			f.inData(p.data, yield)
		}
		if f.group == nil || under != nil {
			return
		}
		for _, n := range f.matches(p) {
			if f.path != nil && !f.markup {
				data, err := parseJSON(f.raw(n))
				if err == nil && !f.inData(data, yield) {
					return
				}
				continue
			}
			if s, ok := f.text(n); ok && !yield(scalar{text: s}) {
				return
			}
		}
	}
}

// inData yields the texts to which the finder's path leads.
func (f finder) inData(data any, yield func(scalar) bool) bool {
	for s := range f.path.scalars(data) {
		text, ok := f.clean(s.text)
		if ok && !yield(scalar{text, s.plain}) {
			return false
		}
	}
	return true
}

// matches returns the elements that the finder's selector matches, in the page's order.
func (f finder) matches(p *page) (out []*html.Node) {
	for _, in := range f.in(p) {
		for _, n := range in.candidates(f) {
			if f.group.Match(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// in returns the pages in which the finder's selector is run: the page, or the HTML that
// its path finds in it.
func (f finder) in(p *page) (all []*page) {
	if !f.markup {
		return []*page{p}
	}
	for s := range f.path.scalars(p.data) {
		if in := p.fragment(s.text); in != nil {
			all = append(all, in)
		}
	}
	return all
}

// first returns the first non-empty text that the finder finds.
func (f finder) first(p *page) (scalar, bool) {
	for s := range f.values(p) {
		return s, true
	}
	return scalar{}, false
}

func (f finder) all(p *page) (out []string) {
	for s := range f.values(p) {
		out = append(out, s.text)
	}
	return out
}

// leftOut returns what the finder would find in a page without its filters and its regexp, if
// these leave nothing.
func (f finder) leftOut(p *page) string {
	whole := f
	whole.path, whole.part = f.path.unfiltered(), nil
	if whole.path == f.path && f.part == nil {
		return ""
	}
	var all []any
	if f.group == nil {
		all = whole.path.items(p.data)
	}
	for s := range whole.values(p) {
		all = append(all, s.text)
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprint(all...)
}

// pages returns the parts of a page that the finder finds, each as a page.
func (f finder) pages(p *page) (out []*page) {
	if f.group == nil {
		for _, data := range f.path.items(p.data) {
			out = append(out, &page{data: data})
		}
		return out
	}
	for _, n := range f.matches(p) {
		if f.path == nil || f.markup {
			out = append(out, pageOf(n))
			continue
		}
		data, err := parseJSON(f.raw(n))
		if err != nil {
			continue
		}
		for _, d := range f.path.items(data) {
			out = append(out, &page{data: d})
		}
	}
	return out
}

// text returns the text of an element, or of its attribute.
func (f finder) text(n *html.Node) (string, bool) {
	if f.attribute != "" {
		return f.clean(attribute(n, f.attribute))
	}
	return f.clean(f.textOf(n))
}

// raw returns the text of an element as it is, also of a script.
func (f finder) raw(n *html.Node) string {
	if f.attribute != "" {
		return attribute(n, f.attribute)
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func attribute(n *html.Node, name string) (value string) {
	for _, a := range n.Attr {
		if a.Key == name {
			value = a.Val
		}
	}
	return value
}

// clean bounds a text, and takes the part that the finder's regexp matches.
func (f finder) clean(s string) (string, bool) {
	s = untrusted.Line(s, maxField)
	if f.part != nil {
		s = untrusted.Line(part(f.part, s), 0)
	}
	return s, s != ""
}

// part returns what the expression matches in a text without its marks, with the marks.
func part(re *regexp.Regexp, s string) string {
	m := re.FindStringSubmatchIndex(marks.Replace(s))
	if m == nil {
		return ""
	}
	if len(m) > 2 {
		m = m[2:]
	}
	var b strings.Builder
	at := 0 // in the text without marks
	for _, r := range s {
		mark := r == value.Apart || r == value.Raised
		if at >= m[0] && at < m[1] && (!mark || b.Len() > 0) {
			b.WriteRune(r)
		}
		if !mark {
			at += utf8.RuneLen(r)
		}
	}
	return b.String()
}

var marks = strings.NewReplacer(string(value.Apart), "", string(value.Raised), "")

// collector writes the text of an element.
type collector struct {
	strings.Builder
	apart bool
	last  rune // that is neither white space nor the sign of a currency
	mark  rune // for the boundary of elements after last, 0: there is none
}

func (c *collector) add(n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		c.text(n.Data)
		return
	case n.Type != html.ElementNode || n.Data == "wbr": // it is no boundary
	case n.Data == "script" || n.Data == "style" || n.Data == "template":
		return
	case n.Data == "sup":
		c.mark = value.Raised
	case c.mark != value.Raised:
		c.mark = value.Apart
	}
	if n.Type == html.ElementNode && n.Data == "br" {
		c.WriteByte(' ')
	}
	for in := n.FirstChild; in != nil; in = in.NextSibling {
		c.add(in)
	}
	if n.Type == html.ElementNode && n.Data != "wbr" {
		c.mark = value.Apart
	}
}

// text writes a text, with a mark in front of a digit that follows one of another element.
func (c *collector) text(s string) {
	for _, r := range s {
		if !unicode.IsSpace(r) && !unicode.Is(unicode.Sc, r) {
			if c.apart && c.mark != 0 && unicode.IsDigit(c.last) && unicode.IsDigit(r) {
				c.WriteRune(c.mark)
			}
			c.last, c.mark = r, 0
		}
		c.WriteRune(r)
	}
}
