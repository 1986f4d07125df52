package article

import (
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// introduced returns the introduction by its place: the paragraphs between the headline and
// the element of the text, where nothing else of the article is. They are sentences without
// links, which dates, authors and captions are not. Right below the headline a line or
// a list of a few points is one too.
func (r *reader) introduced(body, root *html.Node) (lines []textLine) {
	const least = 60      // width of an introduction's paragraph
	points := 0           // lines that are points of a list, less one for each list
	var around *html.Node // the headline, once it is found
	var look func(*html.Node) bool
	look = func(n *html.Node) bool {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c == root {
				return true
			}
			if c.Type != html.ElementNode || neverText(c) {
				continue
			}
			switch c.DataAtom {
			case atom.H1, atom.H2, atom.H3:
				if f := fold(line(c)); f != "" && (f == r.title || c.DataAtom == atom.H1 && len(f) > 20 && (strings.Contains(r.title, f) || strings.Contains(f, r.title))) {
					around, lines, points = c, nil, 0
					continue
				}
			case atom.Ul, atom.Ol, atom.Table, atom.Dl:
				if !dom.Below(root, c) {
					if all := r.points(c); around != nil && len(all) > 0 {
						lines, points = append(lines, all...), points+len(all)-1
					}
					continue
				}
			}
			if r.isClutter(c) && !dom.Below(root, c) {
				continue
			}
			if r.blocks[c] || dom.Below(root, c) {
				if look(c) {
					return true
				}
				continue
			}
			if around == nil {
				continue
			}
			t := line(c)
			w := width(t)
			if (w < least || !sentence(t) || prose(c)*10 < w*8) && !r.below(around, c, t) {
				continue
			}
			if _, dated := ParseTime(t, time.UTC); dated && w < 2*least { // when something was sent, or changed
				continue
			}
			lines = append(lines, textLine{text: t})
		}
		return false
	}
	if r.title == "" || !look(body) || len(lines)-points > 2 { // more is a summary, or another text
		return nil
	}
	return lines
}

// points returns the points of a list that sums up an article: a few phrases without links.
func (r *reader) points(list *html.Node) (lines []textLine) {
	const least, most = 25, 6 // width, points
	if r.isClutter(list) || dom.Holds(list, atom.A) {
		return nil
	}
	for c := range list.ChildNodes() {
		if c.DataAtom != atom.Li {
			continue
		}
		t := line(c)
		if _, dated := ParseTime(t, time.UTC); width(t) < least || dated || mayLabel(t) {
			return nil
		}
		lines = append(lines, textLine{text: t, item: true})
	}
	if len(lines) < 2 || len(lines) > most {
		return nil
	}
	return lines
}

// below reports whether a paragraph right below the headline is its second line: some words
// without a link or a time that say something else.
func (r *reader) below(headline, n *html.Node, text string) bool {
	const least, words = 25, 4
	if adjacent(n, false) != headline || n.DataAtom != atom.P || width(text) < least || strings.Count(text, " ") < words ||
		dom.Holds(n, atom.A, atom.Time) || mayLabel(text) || announcesOthers(text) || strings.Contains(r.title, fold(text)) {
		return false
	}
	_, dated := ParseTime(text, time.UTC)
	return !dated
}

// teases reports whether all that makes an element clutter is a name that also introductions have.
func teases(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.P, atom.H2, atom.H3, atom.Section, atom.Header, atom.Span, atom.Strong:
	default:
		return false
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "class", "id":
			for name := range strings.FieldsSeq(a.Val) {
				if clutterName(name) && !strings.Contains(strings.ToLower(name), "teaser") {
					return false
				}
			}
		case "role", "hidden", "aria-hidden", "style":
			return false
		}
	}
	return true
}
