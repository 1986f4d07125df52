package article

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// shownTime is the time that readers see next to the headline, which is where articles have theirs: in
// the heading, in the texts after it up to the first paragraph, or in the few before it. Other times
// of the page are of other articles, of readers' comments, or today's. It is zero where there is none.
func (p *Page) shownTime(title string, zone calendar) time.Time {
	const after, before = 20, 8 // texts
	h := p.heading(title)
	if h == nil {
		return time.Time{}
	}
	label, headline := "", fold(title)
	look := func(n *html.Node) (t time.Time, end bool) {
		s := strings.TrimSpace(n.Data)
		if len(s) > longText {
			return t, true
		}
		t, what := p.shownIn(n, s, zone)
		before := label
		label = s
		if t.IsZero() || what == modification || what == unsaid && (said(before) == modification || tells(n)) || names(headline, s) || another(n) {
			return time.Time{}, false
		}
		return t, true
	}
	for n := firstText(h, h); n != nil; n = firstText(following(n, h), h) {
		if t, end := look(n); end && !t.IsZero() {
			return t
		}
	}
	n := following(last(h), nil)
	for range after {
		if n = firstText(n, nil); n == nil {
			break
		}
		if t, end := look(n); end {
			if !t.IsZero() {
				return t
			}
			break
		}
		n = following(n, nil)
	}
	n = h
	for range before {
		for n = preceding(n); n != nil && !isText(n); n = preceding(n) {
		}
		if n == nil {
			break
		}
		label = textBefore(n)
		if t, end := look(n); end {
			return t
		}
	}
	return time.Time{}
}

// names reports whether a text with a day is the headline, or much of it.
func names(headline, s string) bool {
	f := fold(s)
	return 2*len(f) > len(headline) && strings.Contains(headline, f)
}

// longText is the length of a text that is no line around a headline: the article's first paragraph.
const longText = 250 // bytes

// shownIn is the time in a text of the page.
func (p *Page) shownIn(n *html.Node, s string, zone calendar) (time.Time, event) {
	if len(s) < 8 || len(s) >= 120 || strings.Contains(s, "©") || strings.Contains(s, "ⓒ") || !dated(s) {
		return time.Time{}, unsaid
	}
	t, what := stated(s, zone)
	if e := n.Parent; e != nil && e.DataAtom == atom.Time {
		exact, event := elementTime(e, zone)
		if what = event; agrees(exact, t) {
			t = exact
		}
	}
	if t.IsZero() && p.dayFirst() && !yearFirst(s, zone.Location) {
		if m := shortDate.FindStringSubmatch(s); m != nil {
			t, _ = date("20"+m[3], m[2], m[1], "", "", "", "", "", zone.Location)
		}
	}
	return t, what
}

// dayFirst reports whether the page's language is known, and one whose short dates begin with the day.
func (p *Page) dayFirst() bool {
	name, _, _ := strings.Cut(strings.ToLower(p.lang), "-")
	return name != "" && name != "ko" && name != "ja" && name != "zh"
}

// dated reports whether a text has enough digits for a day.
func dated(s string) bool {
	digits, least := 0, 4
	for _, c := range s {
		switch {
		case '0' <= c && c <= '9', c >= utf8.RuneSelf && unicode.Is(unicode.Nd, c):
			digits++
		case c == '年': // of an era
			least = 3
		}
	}
	return digits >= least
}

// heading is the element of the headline.
func (p *Page) heading(title string) (found *html.Node) {
	const most = 60
	want := fold(title)
	if p.known.title == want && want != "" {
		return p.known.heading
	}
	defer func() { p.known.title, p.known.heading = want, found }()
	var alone *html.Node
	for _, list := range [][]*html.Node{p.headings, p.subheadings} {
		for _, h := range list[:min(len(list), most)] {
			t := line(h)
			f := fold(t)
			long, part := f, want
			if len(long) < len(part) {
				long, part = part, long
			}
			if part != "" && (long == part || 2*len(part) >= len(long) && (strings.HasSuffix(long, part) || strings.HasPrefix(long, part))) {
				return h
			}
		}
	}
	for _, h := range p.headings[:min(len(p.headings), most)] {
		if !whollyLinked(h) && line(h) != "" {
			if alone != nil {
				return nil
			}
			alone = h
		}
	}
	return alone
}

func isText(n *html.Node) bool {
	return n.Type == html.TextNode && strings.TrimSpace(n.Data) != ""
}

// firstText is the first text from n on, in n's own subtree first; nil after the end of within.
func firstText(n, within *html.Node) *html.Node {
	for n != nil && !isText(n) {
		n = next(n, within)
	}
	return n
}

// next is the node after n in the document, what is below n first; nil after the end of within.
func next(n, within *html.Node) *html.Node {
	if n.FirstChild != nil {
		return n.FirstChild
	}
	return following(n, within)
}

// following is the node after n and what is below it.
func following(n, within *html.Node) *html.Node {
	for ; n != nil && n != within; n = n.Parent {
		if n.NextSibling != nil {
			return n.NextSibling
		}
	}
	return nil
}

// preceding is the node before n in the document.
func preceding(n *html.Node) *html.Node {
	if n.PrevSibling == nil {
		return n.Parent
	}
	return last(n.PrevSibling)
}

// last is the last node below n, n itself where it has none.
func last(n *html.Node) *html.Node {
	for n.LastChild != nil {
		n = n.LastChild
	}
	return n
}
