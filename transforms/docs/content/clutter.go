package content

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// clutter decides which elements are dropped: the frame of the site, and what the
// policy's remove selectors match.
type clutter struct {
	remove []cascadia.Matcher
}

// dropped are the class names of clutter: first the common names, then those of
// certain site generators.
var dropped = dom.Set(`ad ads advertisement
	sidebar toc table-of-contents breadcrumb breadcrumbs pagination pager
	cta banner announcement alert-banner promo
	feedback feedback-widget thumbs-up-down was-helpful
	cookie-banner cookie-consent gdpr-banner

	skip-link skiplink skip-nav skip-to-content
	copybtn copy-button clipboard-button
	edit-this-page edit-page edit-link
	sphinxsidebar sphinxsidebarwrapper wy-nav-side rst-versions navbar navheader navfooter
	tocCollapsible theme-doc-toc-mobile
	srclink viewcode-link viewcode-back view-source-button copy-popup-wrapper summary_toggle inheritanceTree search-results
	sl-banner col-sidebar big-circle sd-hide-link-text material-icons material-icons-outlined material-symbols-outlined
	ttc topNav bottomNav subNav legalCopy`)

// sidebars are the class names of boxes next to a text or a page.
var sidebars = dom.Set("sidebar")

// unseen are the class names of texts that only screen readers tell, such as "Section titled
// …" next to a heading. Where they stand for an icon in a table's cell, they are its text.
var unseen = dom.Set(`sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only`)

// roles are the landmarks (WAI-ARIA 1.2 section 5.3.4) that surround content.
var roles = dom.Set(`navigation search banner contentinfo complementary alertdialog dialog menu menubar toolbar tablist`)

// drops reports whether an element is left out with all that is in it. A header is
// not left out, because its headings are kept.
func (c clutter) drops(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Object, atom.Embed, atom.Template,
		atom.Nav, atom.Footer,
		atom.Input, atom.Select, atom.Textarea, atom.Datalist, atom.Dialog, atom.Svg, atom.Canvas, atom.Audio, atom.Video,
		atom.Head, atom.Link, atom.Meta, atom.Title:
		return true
	}
	note := n.DataAtom == atom.Aside && belongs(n) || n.Parent != nil && dom.HasClass(n, sidebars) && c.inText(n)
	if n.DataAtom == atom.Aside && !note {
		return true
	}
	for i := range n.Attr {
		a := &n.Attr[i]
		switch a.Key {
		case "class":
			for word := range strings.FieldsSeq(a.Val) {
				if dropped[word] && (!note || !sidebars[word]) || strings.HasSuffix(word, "-breadcrumb") || strings.HasSuffix(word, "-breadcrumbs") || unseen[word] && !dom.IsHeading(n) && !inCell(n) {
					return true
				}
			}
		case "data-ad", "data-adunit":
			return true
		case "role":
			if roles[a.Val] && !note {
				return true
			}
		case "aria-hidden":
			if a.Val == "true" { // what a control shows has it no more, see conceal
				return true
			}
		}
	}
	for _, m := range c.remove {
		if m.Match(n) {
			return true
		}
	}
	return false
}

// inCell reports whether an element is in a table's cell.
func inCell(n *html.Node) bool { return cellOf(n) != nil }

// cellOf returns the table's cell in which an element is, nil for none.
func cellOf(n *html.Node) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Td || p.DataAtom == atom.Th {
			return p
		}
	}
	return nil
}

// inText reports whether a sidebar is part of the text: paragraphs stand next to it, and it tells more than it links to.
func (c clutter) inText(n *html.Node) bool {
	flows := false
	for s := n.Parent.FirstChild; s != nil && !flows; s = s.NextSibling {
		flows = s.DataAtom == atom.P
	}
	if !flows || !dom.Any(n, func(d *html.Node) bool { return d.DataAtom == atom.P && sentence.MatchString(line(d)) }) {
		return false
	}
	inside := outside{clutter: c}
	inside.add(n, false)
	return inside.text > inside.links
}

// stamped matches a line that says when a page was changed, asked one that asks whether it
// helped, and leads the first words of a link to the page before or after it, or to its source.
var (
	stamped = regexp.MustCompile(`(?i)^(?:(?:this )?page )?(?:was )?(?:last|최종|마지막(?:으로)?) ?(?:updated|modified|edited|changed|reviewed|published|수정|업데이트|변경)[^.]{0,20}(?:[0-9]|ago\b|today|yesterday|전$)`)
	asked   = regexp.MustCompile(`(?i)^(?:(?:was|is|did) (?:this|the) (?:(?:page|article|section|content|topic|document) ?)?(?:helpful|useful|help(?: you)?) ?\?|(?:이 (?:페이지|문서)[가는이] )?도움이 (?:되었|됐)나요 ?\?)(?:[ ·/|]*(?:yes|no|네|아니요))*$`)
	leads   = regexp.MustCompile(`(?i)^[←‹«\s]*(?:previous|prev|next|이전|다음|improve this doc|edit (?:this page|on github)|view source)[\s:→›»]*$`)
)

// The most of a line that is about the page: bytes, and nodes in its element.
const (
	maxLine  = 120
	maxNodes = 100
)

// aboutPage reports whether an element has one line that is about the page and not about
// what it tells of: the line would be in a chunk, and change when the page does not.
func (w *writer) aboutPage(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.Section, atom.Small, atom.Span:
	default:
		return false
	}
	var l pageLine
	if w.cell || w.heading || !l.read(n, nil) || len(l.words) == 0 {
		return false
	}
	text := strings.Join(l.words, " ")
	return l.leads || stamped.MatchString(text) || asked.MatchString(text)
}

// pageLine is what aboutPage reads of an element.
type pageLine struct {
	words       []string
	size, nodes int
	leads       bool // all words are in links, each of which says that it leads on
	link        *html.Node
}

// read reports whether the element is no more than a line.
func (l *pageLine) read(n, link *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if l.nodes++; l.nodes > maxNodes {
			return false
		}
		if c.Type == html.TextNode {
			if !hasWords(c.Data) {
				continue
			}
			words := strings.FieldsFunc(c.Data, space)
			if link != l.link || link == nil { // the first words of a link, or words outside of one
				l.leads = (l.leads || len(l.words) == 0) && link != nil && (leads.MatchString(c.Data) || isControl(link))
				l.link = link
			}
			l.words = append(l.words, words...)
			if l.size += len(c.Data); l.size > maxLine {
				return false
			}
			continue
		}
		within := link
		switch {
		case c.Type != html.ElementNode:
			continue
		case dom.IsHeading(c):
			return false
		case c.DataAtom == atom.A:
			within = c
		case c.DataAtom == atom.Pre, c.DataAtom == atom.Table, c.DataAtom == atom.Img, c.DataAtom == atom.Code:
			return false
		}
		if !l.read(c, within) {
			return false
		}
	}
	return true
}

// frames are the ids of what surrounds the content of pages that have no
// semantic elements, in place of nav, header, footer and aside.
var frames = dom.Set(`header page-header site-header hd masthead top-bar topbar
	footer page-footer site-footer ft
	nav navbar navigation menu main-menu sidebar side-bar leftnav left-nav toc table-of-contents breadcrumb breadcrumbs
	titlearea nav-path mbrsel`)

// frameClasses are the class names of what surrounds the content of such pages.
var frameClasses = dom.Set(`footer page-footer site-footer navigation navpath`)

// ways are the words next to the links that lead from page to page.
var ways = dom.Set(`next previous prev up top contents index home`)

// relations are the link types of such links in HTML 4.01.
var relations = dom.Set(`next prev previous up start contents index`)

// framing finds the elements of the site's frame below root, on a page without
// semantic elements: by their ids, or because they show only links.
func framing(root *html.Node) map[*html.Node]struct{} {
	found := make(map[*html.Node]struct{})
	frame(root, found, false)
	return found
}

// part is what frame finds out about an element.
type part struct {
	links int
	only  bool // all words are in links, or say where they lead
	ways  bool // a link leads from page to page of a book
}

// frame looks for the elements of the site's frame below n. headed says that n is what
// a heading is about: links alone may be content there, as under "See also".
func frame(n *html.Node, found map[*html.Node]struct{}, headed bool) part {
	p := part{only: true}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			p.only = p.only && onlyWays(c.Data)
			continue
		case c.Type != html.ElementNode, c.DataAtom == atom.Script, c.DataAtom == atom.Style:
			continue
		case c.DataAtom == atom.A:
			p.links++
			p.ways = p.ways || relations[dom.Attr(c, "rel")]
			continue
		}
		under := headed || begins(before(c))
		below := frame(c, found, under)
		p.links += below.links
		p.ways = p.ways || below.ways
		bare := below.only && below.links > 1 && (!under || below.ways)
		switch c.DataAtom {
		case atom.Div, atom.Table, atom.Ul, atom.Ol, atom.Address:
			if frames[dom.Attr(c, "id")] || dom.HasClass(c, frameClasses) || bare {
				found[c] = struct{}{}
			}
		case atom.P, atom.Td, atom.Section, atom.Center, atom.Dl:
			if bare {
				found[c] = struct{}{}
			}
		case atom.Pre, atom.Img, atom.H1, atom.H2, atom.H3:
			below.only = false
		}
		p.only = p.only && below.only
	}
	return p
}

// begins reports whether an element is the heading of what follows: TypeDoc has headings in
// summaries, Doxygen the page's title in elements of its own.
func begins(n *html.Node) bool {
	if n == nil || dom.IsHeading(n) {
		return n != nil
	}
	return dom.Any(n, func(c *html.Node) bool {
		return dom.HasClass(c, titleArea) || n.DataAtom == atom.Summary && dom.IsHeading(c)
	})
}

// onlyWays reports whether all words of a text are about where links lead.
func onlyWays(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !ways[strings.ToLower(word)] {
			return false
		}
	}
	return true
}

// before returns the element before n, nil if there is other text in between.
func before(n *html.Node) *html.Node {
	for p := n.PrevSibling; p != nil; p = p.PrevSibling {
		switch {
		case p.Type == html.TextNode && strings.TrimSpace(p.Data) != "":
			return nil
		case p.Type == html.ElementNode && (dom.IsHeading(p) || !blank(p)):
			return p
		}
	}
	return nil
}

// hasWords reports whether text has a letter or a digit.
func hasWords(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// prose returns the length in bytes of the text below n that is neither in links nor dropped.
func (c clutter) prose(n *html.Node) int {
	sum := 0
	for k := n.FirstChild; k != nil; k = k.NextSibling {
		switch k.Type {
		case html.TextNode:
			sum += len(strings.TrimSpace(k.Data))
		case html.ElementNode:
			if k.DataAtom != atom.A && !c.drops(k) {
				sum += c.prose(k)
			}
		}
	}
	return sum
}
