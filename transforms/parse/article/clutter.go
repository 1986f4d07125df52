package article

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
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
	case atom.Figure:
		return !dom.Holds(n, atom.Table, atom.Pre)
	case atom.Aside, atom.Form, atom.Figcaption:
		return true
	case atom.Body, atom.Article, atom.Main, atom.Html:
		return false
	}
	if n.DataAtom == 0 && clutterName(n.Data) { // an element of the site's own, such as share-bar
		return true
	}
	for i := range n.Attr {
		a := &n.Attr[i]
		if naming(a.Key) {
			if n.DataAtom != atom.Tr && clutterName(a.Val) && hint(n) != 0 && (!r.inSentence(n) || hides.MatchString(a.Val)) { // a row's name says what its record is of
				return true
			}
			continue
		}
		switch a.Key {
		case "role":
			switch a.Val {
			case "navigation", "search", "banner", "contentinfo", "complementary", "alertdialog", "dialog", "menu", "menubar", "toolbar":
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

// hides is in the names of what is not shown, or only when it is pointed at.
var hides = regexp.MustCompile(`(?i)hid|screen|sr-?only|offscreen|print|tooltip|pop|rollover`)

// inSentence reports whether an element is words within a text.
func (r *reader) inSentence(n *html.Node) bool {
	b, a := n.PrevSibling, n.NextSibling
	return b != nil && a != nil && isText(b) && isText(a) && r.inline(n)
}

// clutterName reports whether a class or id has a name with one of clutterWords. Words end at
// everything but a letter of ASCII, and where a capital follows a small letter. A name that
// does not say what its element is does not count.
func clutterName(val string) bool {
	for name := range strings.FieldsSeq(val) {
		if strings.IndexByte(name, ':') >= 0 { // a style framework's: print:hidden
			continue
		}
		clutter, states := readName(name)
		if rest, ok := strings.CutPrefix(name, "elementor-widget"); ok { // so a page builder calls every block
			clutter, states = readName(rest)
		}
		if clutter && !states || name[0] == 's' && (strings.HasPrefix(name, "sr-only") || strings.HasPrefix(name, "screen-reader")) {
			return true
		}
	}
	return false
}

// readName reports whether a name has one of clutterWords, and whether it has a word that says
// that the element has or can show such a thing, or is about it, rather than is one.
func readName(name string) (clutter, states bool) {
	for i := 0; i < len(name); {
		begin := i
		i = wordEnd(name, i)
		switch {
		case i == begin:
			i++
		case ofWord(name[begin:i], clutterWords, &clutterLengths):
			clutter = true
		case begin == 0 && aboutWords[name[:i]] || stateWords[name[begin:i]]:
			states = true
		}
	}
	return clutter, states
}

var (
	// stateWords are of names such as modal-enabled, comments-open, has-sidebar.
	stateWords = dom.Set("enabled disabled open opened closed has with without can ready loaded allowed label match")
	// aboutWords begin the names of subjects, such as category-social and tag-video.
	aboutWords = dom.Set("category cat tag type format section topic term")
)

// wordEnd returns the end of the word at i in a name. A word ends at everything but a letter of ASCII, and before a capital.
func wordEnd(name string, i int) int {
	for small := false; i < len(name); i++ {
		c := name[i]
		if 'a' <= c && c <= 'z' {
			small = true
		} else if small || c < 'A' || c > 'Z' {
			break
		}
	}
	return i
}

// ofWord returns the value of a word of ASCII letters in words, whose lengthsOf is lengths.
func ofWord[V any](w string, words map[string]V, lengths *[256]uint32) (none V) {
	var buf [24]byte
	if len(w) > len(buf) || lengths[w[0]|0x20]&(1<<len(w)) == 0 {
		return none
	}
	for i := range len(w) {
		buf[i] = w[i] | 0x20
	}
	return words[string(buf[:len(w)])]
}

// surelyClutter reports whether an element is clutter even if it has most of the text.
func surelyClutter(n *html.Node) bool {
	if n.DataAtom == atom.Aside {
		return true
	}
	for _, key := range []string{"class", "id"} {
		for name := range strings.FieldsSeq(dom.Attr(n, key)) {
			clutter, states := readName(name)
			if !clutter || states || strings.IndexByte(name, ':') >= 0 {
				continue
			}
			low := strings.ToLower(name)
			for _, w := range []string{"cookie", "consent", "gdpr", "comments", "disqus", "footer", "modal", "related"} {
				if strings.Contains(low, w) {
					return true
				}
			}
		}
	}
	return false
}

var clutterWords = dom.Set(`ad ads adv advert adverts advertisement advertising adsense adslot adbox adwrap advertorial sponsor sponsored sponsors dfp outbrain taboola criteo promo promos promotion promoted promobox
	nav navi navbar navigation subnav menu submenu breadcrumb breadcrumbs pagination pager paging sidebar footer foot
	share shares sharing shared sharebar sharebox sharebuttons sharelinks social socials sociable sns snsbox addthis sharethis
	related relateds recommend recommended recommendation recommendations recirc recirculation trending popular mostpopular mostread morenews morestories moreon alsoread seealso
	newsletter newsletters subscribe subscription signup paywall offer offers cta donate donation donations
	comment comments commentlist disqus respond reply replies
	cookie cookies consent gdpr modal popup popover rollover hovercard overlay tooltip lightbox
	author authors authorbox authorbio byline bylines bio reporter journalist writer
	tags taglist keywords hashtag hashtags topics
	caption captions credit credits photocredit
	toolbar tools widget widgets teaser teasers carousel
	dateline timestamp pubdate datetime postmeta postmetadata entrymeta articlemeta meta metadata articleinfo
	copyright disclaimer login register search hidden hide print screenreader sronly offscreen visuallyhidden
	rating ratings vote votes poll banner masthead toc feedback report
	embed embedded player video videoplayer audio audioplayer factbox infobox`)

var clutterLengths = lengthsOf(clutterWords)

// lengthsOf has, by the first letter, a bit for each length of a word. Most names have none of the words, and most are
// recognised by that alone.
func lengthsOf[V any](words map[string]V) (bits [256]uint32) {
	for w := range words {
		bits[w[0]] |= 1 << len(w)
	}
	return bits
}
