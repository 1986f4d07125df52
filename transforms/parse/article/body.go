package article

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// bodyBy is the article's text: by the publisher's selector, else by the page's
// own structure, else what JSON-LD has.
func (p *Page) bodyBy(c *Compiled, title string) string {
	if p.body == nil {
		return clean(p.ld.body, c.drop)
	}
	r := newReader(p.body)
	r.remove, r.title = c.remove, fold(title)
	if c.body != nil {
		var roots []*html.Node
		for _, n := range cascadia.QueryAll(p.Root, c.body) {
			if len(roots) == 0 || !under(n, roots[len(roots)-1]) {
				roots = append(roots, n)
			}
		}
		r.mine = true
		if text := clean(r.text(roots), c.drop); text != "" {
			return text
		}
		r.mine = false
	}
	roots := r.find(p.body)
	lines := r.trim(r.write(roots))
	if lede := p.lede(roots[0], r); lede != "" && !slices.ContainsFunc(lines[:min(3, len(lines))], func(l written) bool { return strings.Contains(fold(l.text), fold(lede)) }) {
		lines = slices.Insert(lines, 0, written{text: lede})
	}
	text := clean(join(lines), c.drop)
	if own := clean(plain(p.ld.body), c.drop); utf8.RuneCountInString(text)*2 < utf8.RuneCountInString(own) {
		return own // the page is filled by scripts
	}
	return text
}

// plain takes tags out of a text that has some.
func plain(s string) string {
	if !strings.Contains(s, "</") && !strings.Contains(s, "<br") && !strings.Contains(s, "<p>") {
		return s
	}
	n, err := html.Parse(strings.NewReader(s))
	if err != nil {
		return s
	}
	r := newReader(n)
	r.mine = true
	return r.text([]*html.Node{n})
}

func under(n, root *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == root {
			return true
		}
	}
	return false
}

// reader finds the article in a page and writes its text.
type reader struct {
	remove []cascadia.Matcher
	mine   bool // the publisher's selector chose: only what it removes is left out
	title  string

	blocks map[*html.Node]bool // holds blocks
	mass   map[*html.Node]int  // prose below an element
	out    map[*html.Node]bool // left out by name
	kept   map[*html.Node]bool // named like clutter, but most of the page
}

func newReader(root *html.Node) *reader {
	r := &reader{blocks: map[*html.Node]bool{}, mass: map[*html.Node]int{}, out: map[*html.Node]bool{}}
	r.mark(root)
	return r
}

// mark notes the elements below n that hold blocks, and says whether n does. It
// is done once, for to look below each element anew would cost the square of
// how deep they are nested.
func (r *reader) mark(n *html.Node) (holds bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && (r.mark(c) || block(c)) {
			holds = true
		}
	}
	if holds {
		r.blocks[n] = true
	}
	return holds
}

// lede is the paragraph that stands between the headline and the text, outside
// what holds the text: pages repeat it as their description.
func (p *Page) lede(root *html.Node, r *reader) string {
	var wants []string
	for _, s := range []string{p.meta["og:description"], p.meta["description"], p.ld.description} {
		if f := fold(s); len(f) >= 40 {
			wants = append(wants, f)
		}
	}
	if len(wants) == 0 {
		return ""
	}
	var found string
	var look func(*html.Node, int) bool
	look = func(n *html.Node, within int) bool {
		if within > 3 { // phrases in phrases: as long as the text, each of them
			return false
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c == root {
				return true // what comes after the text is no lede
			}
			if c.Type != html.ElementNode || hard(c) {
				continue
			}
			deeper := 0
			if !r.blocks[c] {
				deeper = within + 1
				switch c.DataAtom {
				case atom.P, atom.Div, atom.H2, atom.H3, atom.Span, atom.Strong, atom.Section, atom.Li:
					if l := line(c); len(l) >= 40 && len(l) < 1500 {
						f := fold(l)
						for _, w := range wants {
							if f == w || len(w) > 60 && strings.HasPrefix(f, w[:len(w)*9/10]) && len(f) < 4*len(w) {
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

// find is the elements that hold the article.
func (r *reader) find(body *html.Node) []*html.Node {
	total := r.weigh(body)
	for range 6 { // a name that says "clutter" around most of the text is wrong
		var most *html.Node
		for n := range r.out {
			if !r.kept[n] && r.mass[n] > total && !certain(n) && (most == nil || r.mass[n] > r.mass[most]) {
				most = n
			}
		}
		if most == nil {
			break
		}
		if r.kept == nil {
			r.kept = map[*html.Node]bool{}
		}
		r.kept[most] = true
		clear(r.mass)
		clear(r.out)
		total = r.weigh(body)
	}
	hints := r.hints(body)
	for i, tier := range hints {
		var best *html.Node
		sum := 0
		for _, n := range tier {
			sum += r.mass[n]
			if best == nil || r.mass[n] > r.mass[best] {
				best = n
			}
		}
		if best == nil {
			continue
		}
		if i == 0 { // a text in several parts, between advertisements
			var parts []*html.Node
			for _, n := range tier {
				if n == best || r.mass[n] > 0 && n.DataAtom == best.DataAtom && attr(n, "class") == attr(best, "class") && attr(n, "itemprop") == attr(best, "itemprop") {
					parts = append(parts, n)
				}
			}
			whole := 0
			for _, n := range parts {
				whole += r.mass[n]
			}
			if whole >= 120 && (whole*5 >= total*2 || whole >= 1500) {
				return parts
			}
			continue
		}
		if r.mass[best]*5 < total*2 && r.mass[best] < 1500 || r.mass[best] < 120 {
			continue
		}
		if r.mass[best]*10 < sum*6 { // many of one kind: parts of one article, or a list
			if a := ancestor(tier); a != nil && a != body {
				return []*html.Node{r.tighten(a, 85)}
			}
		}
		return []*html.Node{best}
	}
	return []*html.Node{r.tighten(body, 85)}
}

// tighten goes down while one child has nearly all of the prose.
func (r *reader) tighten(n *html.Node, percent int) *html.Node {
	for {
		var most *html.Node
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode && (most == nil || r.mass[c] > r.mass[most]) {
				most = c
			}
		}
		if most == nil || r.mass[most] == 0 || r.mass[most]*100 < r.mass[n]*percent || leaf(most) {
			return n
		}
		n = most
	}
}

func leaf(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Span, atom.A, atom.Blockquote, atom.Pre, atom.Ul, atom.Ol, atom.Li, atom.Font, atom.B, atom.Strong, atom.Em:
		return true
	}
	return false
}

// ancestor is the nearest element that holds all of nodes.
func ancestor(nodes []*html.Node) *html.Node {
	a := nodes[0].Parent
	for _, n := range nodes[1:] {
		for a != nil && !under(n, a) {
			a = a.Parent
		}
	}
	return a
}

// hints are elements that say that they hold the article, the surest first.
func (r *reader) hints(body *html.Node) (tiers [4][]*html.Node) {
	var walk func(*html.Node, int)
	walk = func(n *html.Node, depth int) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.ElementNode || r.out[c] {
				continue
			}
			if t := hint(c); t >= 0 && r.mass[c] > 0 {
				tiers[t] = append(tiers[t], c)
				if t == 0 {
					continue
				}
			}
			walk(c, depth+1)
		}
	}
	walk(body, 0)
	for i := range tiers { // the outermost of each
		var outer []*html.Node
		for _, n := range tiers[i] {
			if len(outer) == 0 || !under(n, outer[len(outer)-1]) {
				outer = append(outer, n)
			}
		}
		tiers[i] = outer
	}
	return tiers
}

// hint says how surely an element holds the article: 0 is the surest, -1 not at all.
func hint(n *html.Node) int {
	switch n.DataAtom {
	case atom.Article:
		return 1
	case atom.Main:
		return 2
	case atom.Div, atom.Section, atom.Td, atom.Span:
	default:
		return -1
	}
	for i := range n.Attr {
		a := &n.Attr[i]
		switch a.Key {
		case "itemprop":
			if strings.EqualFold(a.Val, "articleBody") {
				return 0
			}
		case "role":
			switch a.Val {
			case "article":
				return 1
			case "main":
				return 2
			}
		case "id", "class":
			if n.DataAtom == atom.Span {
				continue
			}
			for w := range strings.FieldsSeq(a.Val) {
				if bodyName(w) {
					return 0
				}
			}
		}
	}
	return -1
}

// bodyName reports whether a class or id is one of bodies, however it is hyphenated.
func bodyName(name string) bool {
	var buf [32]byte
	n := 0
	for i := range len(name) {
		c := name[i]
		if c == '-' || c == '_' {
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if n == len(buf) {
			return false
		}
		buf[n] = c
		n++
	}
	return bodies[string(buf[:n])]
}

// bodies are the usual names of the element that holds an article's text,
// without hyphens.
var bodies = words(`articlebody articletext articlecontent articlecontents entrycontent postcontent postbody posttext postentry
	storybody storycontent storytext articlebodycontent articlebodytext articlemaincontent articlecontainerbody bodytext newsbody newscontent newstext newsarticle
	articlebodywrapper articlecopy fieldnamebody singlecontent articlewrapbody articlebodybox articleview articleviewcontent newscttext artext arttext
	newsviewbody viewcontent articletxt articlecont articlebodycontents articletextbody contentbody contenttext richtextbody storydetail`)

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// weigh notes for each element how much prose is below it, and which are left
// out; what these hold does not count for what is around them.
func (r *reader) weigh(n *html.Node) int {
	sum, direct := 0, 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			direct += width(c.Data)
		case html.ElementNode:
			if hard(c) {
				continue
			}
			if r.inline(c) && !r.unlikely(c) {
				direct += prose(c)
				continue
			}
			m := r.weigh(c)
			if r.unlikely(c) {
				r.out[c] = true
				continue
			}
			sum += m
		}
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Figcaption:
		direct = 0
	case atom.Li, atom.Td, atom.Dd:
		if direct < 80 {
			direct = 0
		}
	default:
		if direct < 30 {
			direct = 0
		}
	}
	sum += direct
	if sum > 0 {
		r.mass[n] = sum
	}
	return sum
}

// prose is the text below an inline element that is not in links.
func prose(n *html.Node) int {
	if n.DataAtom == atom.A {
		return 0
	}
	sum := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			sum += width(c.Data)
		case html.ElementNode:
			if !hard(c) {
				sum += prose(c)
			}
		}
	}
	return sum
}

// width is how much a text says: a letter of Chinese, Japanese or Korean says
// more than one of an alphabet.
func width(s string) int {
	sum, space := 0, true
	for _, c := range s {
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\u00a0':
			if !space {
				sum++
			}
			space = true
		case c >= 0x2e80:
			sum += 2
			space = false
		default:
			sum++
			space = false
		}
	}
	return sum
}

func (r *reader) inline(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd,
		atom.Mark, atom.Nobr, atom.Q, atom.Ruby, atom.Rp, atom.Rt, atom.Rb, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Br, atom.Acronym, atom.Label:
		return !r.blocks[n]
	}
	return n.DataAtom == 0 && strings.IndexByte(n.Data, '-') < 0 && !r.blocks[n]
}

func block(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Ul, atom.Ol, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre, atom.Figure, atom.Dl, atom.Hr, atom.Header, atom.Footer, atom.Main, atom.Aside, atom.Nav, atom.Form:
		return true
	}
	return false
}

// hard reports elements that never hold an article's text.
func hard(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Object, atom.Embed, atom.Template, atom.Nav, atom.Footer,
		atom.Input, atom.Select, atom.Textarea, atom.Datalist, atom.Dialog, atom.Svg, atom.Canvas, atom.Audio, atom.Video, atom.Button,
		atom.Head, atom.Link, atom.Meta, atom.Title, atom.Menu, atom.Img, atom.Picture:
		return true
	}
	return false
}

// unlikely reports whether an element's name or role says that it surrounds the article.
func (r *reader) unlikely(n *html.Node) bool {
	if r.kept[n] {
		return false
	}
	for _, m := range r.remove {
		if m.Match(n) {
			return true
		}
	}
	if r.mine {
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

// clutterName reports whether a class or id has a word of what surrounds
// articles. Words end at hyphens, underscores, digits and capitals.
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
		return clutter[string(buf[:len(w)])]
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

// certain reports whether an element is clutter however much text it has.
func certain(n *html.Node) bool {
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

var clutter = words(`ad ads adv advert adverts advertisement advertising adsense adslot adbox adwrap advertorial sponsor sponsored sponsors dfp outbrain taboola criteo promo promos promotion promoted promobox
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

// written is a line of the text and what kind of block it was.
type written struct {
	text    string
	heading bool
	item    bool // of a list
}

func join(lines []written) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return b.String()
}

// write gives what is below roots, one block a line.
func (r *reader) write(roots []*html.Node) []written {
	w := writer{r: r, seen: map[string]bool{}, lists: map[*html.Node]listed{}}
	for _, n := range roots {
		w.block(n)
		w.flush(false)
	}
	return w.lines
}

// text is what write gives, in one.
func (r *reader) text(roots []*html.Node) string { return join(r.write(roots)) }

// trim takes off what stands around the text inside the element that holds it:
// dates, names and labels before its first paragraph, headings and labels after
// its last one, and what follows an announcement of other articles.
func (r *reader) trim(lines []written) []written {
	sum := 0
	for _, l := range lines {
		sum += len(l.text)
	}
	before := 0
	for i, l := range lines {
		if before*10 >= sum*8 && len(l.text) < 80 && others.MatchString(l.text) {
			lines = lines[:i]
			break
		}
		before += len(l.text)
	}
	begin := 0
	for i, l := range lines {
		if i > 8 {
			break
		}
		if paragraph(l) || l.item {
			begin = i
			break
		}
	}
	kept := lines[begin:]
	for len(kept) > 1 {
		last := kept[len(kept)-1]
		if last.item || !last.heading && (paragraph(last) || sentence(last.text) && width(last.text) >= 12) {
			break
		}
		kept = kept[:len(kept)-1]
	}
	out := make([]written, 0, len(kept))
	for i, l := range kept {
		if l.heading && i+1 < len(kept) && kept[i+1].heading && others.MatchString(l.text) {
			continue
		}
		out = append(out, l)
	}
	return out
}

// paragraph reports whether a line is prose, by its length or as a sentence.
func paragraph(l written) bool {
	n := width(l.text)
	return !l.heading && (n >= 100 || n >= 30 && sentence(l.text))
}

// sentence reports whether a text ends as sentences do.
func sentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’»)]』」 ")
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?…。！？:;।۔؟", last) || strings.HasSuffix(s, "다") // also without its full stop
}

// writer gathers the inline text of a block until the block ends.
type writer struct {
	r     *reader
	lines []written
	item  int // how deep in lists
	seen  map[string]bool
	lists map[*html.Node]listed
	now   strings.Builder
	links int // width of the text of links in now
	// linked says that a link without blocks is open. All of it is one run of
	// inline text: whatever elements it holds, now does not end before the link.
	linked bool
}

func (w *writer) block(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			w.now.WriteString(c.Data)
		case html.ElementNode:
			w.element(c)
		}
	}
}

func (w *writer) element(n *html.Node) {
	if hard(n) || w.r.unlikely(n) {
		return
	}
	switch n.DataAtom {
	case atom.Br:
		w.now.WriteByte('\v')
		return
	case atom.A:
		if !w.r.blocks[n] {
			if w.linked { // its text is counted with that of the outer link
				w.block(n)
				return
			}
			w.linked = true
			before := w.now.Len()
			w.block(n)
			w.links += width(w.now.String()[before:])
			w.linked = false
			return
		}
	case atom.Article:
		if !w.r.mine && len(w.lines) > 0 && w.r.mass[n] < 1200 { // the card of another article
			w.flush(false)
			return
		}
	case atom.Ul, atom.Ol, atom.Dl, atom.Table:
		if !w.r.mine && w.linkList(n) {
			w.flush(false)
			return
		}
		w.flush(false)
		w.item++
		w.block(n)
		w.flush(false)
		w.item--
		return
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.flush(false)
		w.block(n)
		w.flush(true)
		return
	case atom.Td, atom.Th:
		w.now.WriteByte(' ')
		w.block(n)
		w.now.WriteByte(' ')
		return
	}
	switch {
	case w.r.inline(n), w.linked && n.DataAtom == 0:
		w.block(n)
	case w.linked:
		w.now.WriteByte(' ')
		w.block(n)
		w.now.WriteByte(' ')
	default:
		w.flush(false)
		w.block(n)
		w.flush(false)
	}
}

// linkList reports whether a list shows mostly links.
func (w *writer) linkList(n *html.Node) bool {
	l := w.listed(n)
	return l.all > 0 && l.free*10 < l.all*4
}

// listed is the width of the text below an element, and of what is not in links.
type listed struct{ all, free int }

// listed measures each list once, also those within another.
func (w *writer) listed(n *html.Node) (l listed) {
	if l, known := w.lists[n]; known {
		return l
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			k := width(c.Data)
			l.all, l.free = l.all+k, l.free+k
		case html.ElementNode:
			below := w.listed(c)
			l.all += below.all
			if c.DataAtom != atom.A && c.DataAtom != atom.Button {
				l.free += below.free
			}
		}
	}
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Dl, atom.Table:
		w.lists[n] = l
	}
	return l
}

// breaks are two line breaks or more, which stand for a paragraph's end.
var breaks = regexp.MustCompile(`\v(\s*\v)+`)

// flush ends a block.
func (w *writer) flush(heading bool) {
	s := w.now.String()
	links := w.links
	w.now.Reset()
	w.links = 0
	parts := []string{s}
	if strings.IndexByte(s, '\v') >= 0 {
		parts = breaks.Split(s, -1)
	}
	for _, l := range parts {
		l = collapse(strings.Map(visible, l))
		if l == "" {
			continue
		}
		if !w.r.mine {
			n := width(l)
			if links*10 > n*7 && (n < 200 || links*10 > n*9) { // a line of links
				continue
			}
			if heading && links*10 > n*5 {
				continue
			}
			if !strings.ContainsFunc(l, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
				continue
			}
			if w.r.title != "" && len(w.lines) < 3 && fold(l) == w.r.title {
				continue
			}
			if n > 30 && (heading || links > 0) { // teasers come twice
				if w.seen[l] {
					continue
				}
				w.seen[l] = true
			}
		}
		w.lines = append(w.lines, written{l, heading, w.item > 0})
	}
}

// visible takes out characters that have no width.
func visible(c rune) rune {
	switch c {
	case '\u00ad', '\u200b', '\u200c', '\u200e', '\u200f', '\u2060', '\ufeff':
		return -1
	}
	return c
}

// fold is a text's letters and digits in small letters, to compare by.
func fold(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, s)
}
