package article

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
	"github.com/newsfork/seed-engine/transforms/parse/structured"
)

// bodyBy is the article's text: by the publisher's selector, else by the page's
// own structure, else what JSON-LD has.
func (p *Page) bodyBy(c *Compiled, title string, kind profile) string {
	if p.body == nil {
		return clean(html.UnescapeString(p.ld.Body), c.drop)
	}
	r := newReader(p.body)
	r.remove, r.title = c.remove, fold(title)
	if c.body != nil {
		var roots []*html.Node
		for _, n := range cascadia.QueryAll(p.Root, c.body) {
			if len(roots) == 0 || !dom.Below(n, roots[len(roots)-1]) {
				roots = append(roots, n)
			}
		}
		r.bySelector = true
		if text := cleanLines(r.write(roots), c.drop); text != "" {
			return text
		}
		r.bySelector = false
	}
	if kind.Type != "" {
		if text := cleanLines(kind.main(r, p.body), c.drop); text != "" {
			return text
		}
		r = newReader(p.body)
		r.remove, r.title = c.remove, fold(title)
	}
	roots := r.find(p.body)
	lines := r.trim(r.write(roots))
	intro := slices.DeleteFunc(r.introduced(p.body, roots[0]), func(l textLine) bool { return repeated(lines, l.text) }) // else a quotation, or a highlight
	if lede := p.lede(roots[0], r); lede != "" && !repeated(intro, lede) && !repeated(lines[:min(3, len(lines))], lede) {
		intro = []textLine{{text: lede}}
	}
	lines = append(intro, lines...)
	lines = append(lines, p.corrected(r, roots, lines)...)
	text := cleanLines(lines, c.drop)
	if own := clean(stripTags(html.UnescapeString(p.ld.Body)), c.drop); utf8.RuneCountInString(text)*2 < utf8.RuneCountInString(own) {
		return own // the page is filled by scripts
	}
	if width(text) < shortText {
		if found := clean(p.gone.text(), c.drop); width(found) >= 2*width(text) && width(found) >= shortText {
			return found
		}
	}
	return text
}

// repeated reports whether one of lines has a text.
func repeated(lines []textLine, text string) bool {
	f := fold(text)
	return slices.ContainsFunc(lines, func(l textLine) bool { return len(l.text) >= len(f) && strings.Contains(fold(l.text), f) })
}

// corrects reports whether an element is named as a note that corrects an article.
func corrects(n *html.Node) bool {
	for i := range n.Attr {
		if a := &n.Attr[i]; (a.Key == "class" || a.Key == "id" || a.Key == "itemprop") && (strings.Contains(a.Val, "orre") || strings.Contains(a.Val, "rrat") || strings.Contains(a.Val, "rific") || strings.Contains(a.Val, "ctific")) {
			for name := range strings.FieldsSeq(a.Val) {
				for at := 0; at < len(name); {
					begin := at
					if at = wordEnd(name, at); at == begin {
						at++
					} else if ofWord(name[begin:at], correctionWords, &correctionLengths) {
						return true
					}
				}
			}
		}
	}
	return false
}

// corrected returns the corrections that stand outside the element of the text, or in a box or footer of it.
func (p *Page) corrected(r *reader, roots []*html.Node, lines []textLine) (more []textLine) {
	const least, most = 30, 1000 // width, without links
	article := roots[0]
	for article.Parent != nil && article.DataAtom != atom.Article && article.DataAtom != atom.Main && article != p.body {
		article = article.Parent
	}
	for _, n := range p.corrections {
		t := line(n)
		if w := prose(n); w < least || w > most || !sentence(t) || asksReaders(t) || !dom.Below(n, article) || dom.Holds(n, atom.H1, atom.Article) || repeated(lines, t) || repeated(more, t) {
			continue
		}
		own := newReader(n)
		for _, l := range own.write([]*html.Node{n}) {
			if !repeated(lines, l.text) {
				more = append(more, l)
			}
		}
	}
	return more
}

var (
	correctionWords   = dom.Set("correction corrections corrected erratum errata clarification clarifications korrektur korrekturhinweis rectificatif rectificacion correzione")
	correctionLengths = lengthsOf(correctionWords)
)

// stripTags removes the tags from a text that contains HTML.
func stripTags(s string) string {
	if !strings.Contains(s, "</") && !strings.Contains(s, "<br") && !strings.Contains(s, "<p>") {
		return s
	}
	n, err := html.Parse(strings.NewReader(s))
	if err != nil {
		return s
	}
	r := newReader(n)
	r.bySelector = true
	return r.text([]*html.Node{n})
}

// sameItem reports whether two elements are of the same item of microdata.
func sameItem(a, b *html.Node) bool {
	item := func(n *html.Node) *html.Node {
		for n = n.Parent; n != nil; n = n.Parent {
			for i := range n.Attr {
				if n.Attr[i].Key == "itemscope" {
					return n
				}
			}
		}
		return nil
	}
	i := item(a)
	return i != nil && i == item(b)
}

// lede is the introduction between the headline and the text, outside the element of
// the text. It is found because pages repeat it as their description.
func (p *Page) lede(root *html.Node, r *reader) string {
	var wants []string
	described := []string{p.meta["og:description"], p.meta["description"]}
	if p.ld.Item != nil && p.ld.Item.Syntax == structured.JSONLD { // in microdata the mark says nothing new: the text itself is found
		described = append(described, p.ld.Description)
	}
	for _, s := range described {
		if f := fold(s); len(f) >= 40 {
			wants = append(wants, f)
		}
	}
	var found string
	var look func(*html.Node, int) bool
	look = func(n *html.Node, within int) bool {
		if within > 3 { // inline elements nested deeper repeat the same text
			return false
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c == root {
				return true // a paragraph after the text is no lede
			}
			if c.Type != html.ElementNode || neverText(c) {
				continue
			}
			if dom.Attr(c, "itemprop") == "description" {
				if l := line(c); len(l) >= 40 && len(l) < 1500 && sameItem(c, root) {
					found = l
					return true
				}
			}
			deeper := 0
			if len(wants) > 0 && !r.blocks[c] {
				deeper = within + 1
				switch c.DataAtom {
				case atom.P, atom.Div, atom.H2, atom.H3, atom.Span, atom.Strong, atom.Section, atom.Li:
					if l := line(c); len(l) >= 40 && len(l) < 1500 {
						f := fold(l)
						for _, w := range wants {
							if f == w || strings.HasPrefix(f, w[:len(w)*9/10]) && len(f) < 4*len(w) {
								found = l
								return true
							}
						}
					}
				}
			}
			if look(c, deeper) {
				return true
			}
		}
		return false
	}
	look(p.body, 0)
	return found
}
