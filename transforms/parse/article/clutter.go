package article

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isClutter reports whether an element's name or role says that it is not part of the
// article.
func (r *reader) isClutter(n *html.Node) bool {
	if r.kept[n] {
		return false
	}
	for _, m := range r.remove {
		if m.Match(n) {
			return true
		}
	}
	if r.bySelector {
		return false
	}
	switch n.DataAtom {
	case atom.Aside, atom.Form, atom.Figure, atom.Figcaption:
		return true
	case atom.Body, atom.Article, atom.Main, atom.Html:
		return false
	}
	for i := range n.Attr {
		a := &n.Attr[i]
		switch a.Key {
		case "class", "id":
			if clutterName(a.Val) && hint(n) != 0 {
				return true
			}
		case "role":
			switch a.Val {
			case "navigation", "search", "banner", "contentinfo", "complementary", "alertdialog", "dialog", "menu", "menubar", "toolbar", "tablist":
				return true
			}
		case "hidden":
			return a.Val != "until-found"
		case "aria-hidden":
			if a.Val == "true" {
				return true
			}
		case "style":
			if strings.Contains(a.Val, "display:none") || strings.Contains(a.Val, "display: none") || strings.Contains(a.Val, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// clutterName reports whether a class or id contains one of clutterWords. Words end at hyphens, underscores, digits and capitals.
func clutterName(val string) bool {
	start := -1
	prev := rune(0)
	check := func(w string) bool {
		var buf [24]byte
		if len(w) > len(buf) || len(w) < 2 {
			return false
		}
		for i := range len(w) {
			c := w[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			buf[i] = c
		}
		return clutterWords[string(buf[:len(w)])]
	}
	for i, c := range val {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		switch {
		case !letter:
			if start >= 0 && check(val[start:i]) {
				return true
			}
			start = -1
		case start < 0:
			start = i
		case 'A' <= c && c <= 'Z' && 'a' <= prev && prev <= 'z':
			if check(val[start:i]) {
				return true
			}
			start = i
		}
		prev = c
	}
	return start >= 0 && check(val[start:])
}

// surelyClutter reports whether an element is clutter even if it has most of the text.
func surelyClutter(n *html.Node) bool {
	if n.DataAtom == atom.Aside {
		return true
	}
	for _, key := range []string{"class", "id"} {
		low := strings.ToLower(attr(n, key))
		for _, w := range []string{"cookie", "consent", "gdpr", "comments", "disqus", "footer", "modal"} {
			if strings.Contains(low, w) {
				return true
			}
		}
	}
	return false
}

var clutterWords = words(`ad ads adv advert adverts advertisement advertising adsense adslot adbox adwrap advertorial sponsor sponsored sponsors dfp outbrain taboola criteo promo promos promotion promoted promobox
	nav navi navbar navigation subnav menu submenu breadcrumb breadcrumbs pagination pager paging sidebar footer foot
	share shares sharing shared sharebar sharebox sharebuttons sharelinks social socials sociable sns snsbox addthis sharethis
	related relateds recommend recommended recommendation recommendations recirc recirculation trending popular mostpopular mostread readmore morenews morestories moreon alsoread seealso
	newsletter newsletters subscribe subscription signup paywall offer offers
	comment comments commentlist disqus respond reply replies
	cookie cookies consent gdpr modal popup overlay tooltip lightbox
	author authors authorbox authorbio byline bylines bio reporter journalist writer
	tags taglist keywords hashtag hashtags topics
	caption captions credit credits photocredit
	toolbar tools widget widgets teaser teasers carousel
	dateline timestamp pubdate datetime postmeta entrymeta articlemeta meta metadata articleinfo
	copyright disclaimer login register search hidden hide noprint print screenreader sronly offscreen visuallyhidden
	rating ratings vote votes poll banner masthead toc feedback report correction corrections
	embed embedded player video videoplayer audio audioplayer factbox infobox`)
