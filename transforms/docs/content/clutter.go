package content

import (
	"strings"
	"unicode"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// clutter decides which elements are dropped: the frame of the site, and what the
// policy's remove selectors match.
type clutter struct {
	remove []cascadia.Matcher
}

// dropped are the class names of clutter: first the common names, then those of
// certain site generators.
var dropped = words(`ad ads advertisement
	sidebar toc table-of-contents breadcrumb breadcrumbs pagination pager
	cta banner announcement alert-banner promo
	feedback feedback-widget thumbs-up-down was-helpful
	cookie-banner cookie-consent gdpr-banner

	skip-link skiplink skip-nav skip-to-content
	copybtn copy-button clipboard-button
	edit-this-page edit-page edit-link
	sphinxsidebar sphinxsidebarwrapper wy-nav-side rst-versions navbar navheader navfooter
	tocCollapsible theme-doc-toc-mobile`)

// roles are the landmarks (WAI-ARIA 1.2 section 5.3.4) that surround content.
var roles = words(`navigation search banner contentinfo complementary alertdialog dialog menu menubar toolbar tablist`)

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

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
	note := n.DataAtom == atom.Aside && belongs(n)
	if n.DataAtom == atom.Aside && !note {
		return true
	}
	for i := range n.Attr {
		a := &n.Attr[i]
		switch a.Key {
		case "class":
			for word := range strings.FieldsSeq(a.Val) {
				if dropped[word] {
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
			if a.Val == "true" {
				return true
			}
		case "hidden":
			// All panels of tabs except the first are hidden until they are chosen.
			if a.Val != "until-found" && attr(n, "role") != "tabpanel" {
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

// frames are the ids of what surrounds the content of pages that have no
// semantic elements, in place of nav, header, footer and aside.
var frames = words(`header page-header site-header hd masthead top-bar topbar
	footer page-footer site-footer ft
	nav navbar navigation menu main-menu sidebar side-bar leftnav left-nav toc table-of-contents breadcrumb breadcrumbs`)

// framing finds the elements of the site's frame below root, on a page without
// semantic elements: by their ids, or because they show only links.
func framing(root *html.Node) map[*html.Node]struct{} {
	found := make(map[*html.Node]struct{})
	frame(root, found)
	return found
}

// frame counts the links below n and reports whether all words there are in links.
func frame(n *html.Node, found map[*html.Node]struct{}) (links int, only bool) {
	only = true
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			only = only && !hasWords(c.Data)
			continue
		case c.Type != html.ElementNode, c.DataAtom == atom.Script, c.DataAtom == atom.Style:
			continue
		case c.DataAtom == atom.A:
			links++
			continue
		}
		below, all := frame(c, found)
		links += below
		switch c.DataAtom {
		case atom.Div, atom.Table, atom.Ul, atom.Ol:
			if frames[attr(c, "id")] || all && below > 1 {
				found[c] = struct{}{}
			}
		case atom.P, atom.Td, atom.Section, atom.Center, atom.Dl:
			if all && below > 1 {
				found[c] = struct{}{}
			}
		case atom.Pre, atom.Img, atom.H1, atom.H2, atom.H3:
			all = false
		}
		only = only && all
	}
	return links, only
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
