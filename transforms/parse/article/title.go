package article

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// titleBy is the headline: by the publisher's selector, else the h1 that another source
// repeats, because that is what readers see, else what machines are told.
func (p *Page) titleBy(c *Compiled) string {
	if c.title != nil {
		if found := p.Select(c.title); len(found) > 0 {
			return found[0]
		}
		if n := cascadia.Query(p.Root, c.title); n != nil {
			if t := collapse(dom.Attr(n, "content")); t != "" {
				return t
			}
		}
	}
	sites := p.sites(c.site)
	shared := withoutSite(collapse(p.meta["og:title"]), sites, false)
	t := p.headline(sites, shared)
	for _, bare := range []string{shared, p.ld.Headline} {
		kicker := t[:max(0, len(t)-len(bare))]
		if f, all := fold(bare), fold(t); len(f) >= 20 && len(f) < len(all) && strings.HasSuffix(all, f) && !strings.ContainsAny(kicker, "\"“”»«„") {
			return bare
		}
	}
	return t
}

// headline is the page's headline, with its kicker where it has one.
func (p *Page) headline(sites []string, shared string) string {
	if t := p.shown(sites); t != "" {
		return t
	}
	title := withoutSite(p.title, sites, true)
	switch {
	case shared != "" && (title == "" || fold(title) != fold(withoutSite(p.ld.Headline, sites, false))):
		return shared
	case title != "": // also where JSON-LD agrees with it: og:title may be a version for social networks
		return title
	}
	for _, h := range p.headings {
		if t := line(h); t != "" {
			return t
		}
	}
	return p.ld.Headline
}

// shown is the heading that the page's other sources say is its headline; "" where none is.
func (p *Page) shown(sites []string) string {
	others := []string{p.meta["og:title"], p.title, p.ld.Headline, p.meta["twitter:title"]}
	for i, o := range others {
		others[i] = strings.ToValidUTF8(o[:min(len(o), 2000)], "")
	}
	best, most := "", 0
	var alone []string
	for _, h := range p.headings[:min(len(p.headings), 20)] {
		t := headingText(h, others)
		if !short(t) || isSite(t, sites) || whollyLinked(h) && votes(t, others) < 2 {
			continue
		}
		if len(alone) == 0 || fold(alone[0]) != fold(t) {
			alone = append(alone, t)
		}
		if v := votes(t, others); v > most {
			best, most = t, v
		}
	}
	if most > 0 {
		return punctuated(best, others)
	}
	inWords := len(alone) == 1 && slices.ContainsFunc(others, func(o string) bool { return version(alone[0], o) })
	for _, h := range p.subheadings[:min(len(p.subheadings), 40)] {
		t := headingText(h, others)
		switch {
		case !short(t) || isSite(t, sites):
		case others[0] == "" && h.DataAtom == atom.H2 && votes(t, others) > 0,
			len(p.headings) == 0 && fold(t) == fold(others[0]),
			!inWords && wholePart(t, others[0], others[1]):
			return punctuated(t, others)
		}
	}
	if len(alone) != 1 || p.ld.Headline != "" && fold(p.meta["og:title"]) == fold(p.ld.Headline) {
		return ""
	}
	if slices.ContainsFunc(others, func(o string) bool { return version(alone[0], o) || sameSubject(alone[0], o) }) || saysMuch(alone[0], others) {
		return alone[0]
	}
	return ""
}

// punctuated is a heading with the marks that another source has between its parts, which the page may show otherwise.
func punctuated(heading string, others []string) string {
	f := fold(heading)
	for _, o := range others {
		if o = collapse(o); len(o) > len(heading) && o[len(o)-1] == heading[len(heading)-1] && fold(o) == f {
			return o
		}
	}
	return heading
}

// headingText is a heading's text without what has another purpose there: a time, what is not
// shown, and a first part in an element of its own that another text separates from the rest by a mark.
func headingText(h *html.Node, others []string) string {
	all := line(h)
	if dom.Holds(h, atom.Ruby) { // a part of it is no word
		return all
	}
	for h.FirstChild != nil && h.FirstChild.NextSibling == nil && h.FirstChild.Type == html.ElementNode {
		h = h.FirstChild
	}
	var parts []string
	for c := h.FirstChild; c != nil; c = c.NextSibling {
		t := collapse(c.Data)
		if c.Type == html.ElementNode {
			t = ""
			if !notShown(c) {
				t = line(c)
			}
			if t == "" && c.DataAtom != atom.Br { // space between words
				continue
			}
		}
		if len(parts) == 0 && c.Type != html.ElementNode && t != "" {
			parts = append(parts, "") // no element is first
		}
		parts = append(parts, t)
	}
	if len(parts) == 0 {
		return all
	}
	first, rest := parts[0], collapse(strings.Join(parts[1:], " "))
	if rest == "" {
		return collapse(first)
	}
	if f := fold(rest); len(f) >= 20 && !strings.HasPrefix(fold(others[2]), fold(first)) && slices.ContainsFunc(others, func(o string) bool { return fold(o) == f }) {
		return rest
	}
	if _, ok := ParseTime(first, time.UTC); ok && len(first) < 40 {
		return rest
	}
	if strings.HasSuffix(first, ":") || strings.HasPrefix(fold(others[2]), fold(first)) { // JSON-LD has it in the headline
		return collapse(strings.Join(parts, " "))
	}
	for _, o := range others {
		if i := strings.Index(o, first); i >= 0 && first != "" {
			after := strings.TrimLeft(o[i+len(first):], " ")
			switch bare := strings.TrimLeft(after, ":|/-–—•·» "); {
			case bare == after: // no mark
			case strings.HasPrefix(fold(bare), fold(rest)), len(rest) > len(first) && sameSubject(rest, bare):
				return rest
			case strings.HasSuffix(fold(bare), fold(rest)): // the site's name ends both
				return collapse(first)
			}
		}
	}
	return collapse(strings.Join(parts, " "))
}

// notShown reports whether an element in a heading is a time, or for screen readers or machines only.
func notShown(n *html.Node) bool {
	if n.DataAtom == atom.Time || dom.Attr(n, "aria-hidden") == "true" || dom.HasAttr(n, "hidden") {
		return true
	}
	class := strings.ToLower(dom.Attr(n, "class"))
	return strings.Contains(class, "hidden") || strings.Contains(class, "invisible") || strings.Contains(class, "sr-only") || strings.Contains(class, "screen-reader")
}

// whollyLinked reports whether all of an element's text is in one link, as a site's name is.
func whollyLinked(n *html.Node) bool {
	return dom.Inside(n, atom.A) || width(line(n)) > 0 && prose(n) == 0
}

// isPart reports whether a part of a title between its marks is a heading: the first, or one
// after a mark that headlines come after. Others are sections, and the site.
func isPart(heading, title string) bool {
	from, after := 0, ""
	for at := 0; at < len(title); at++ {
		i := slices.IndexFunc(marks, func(m string) bool { return strings.HasPrefix(title[at:], m) })
		if i < 0 {
			continue
		}
		if (from == 0 && marks[i] != " » " || after == " » " || after == ": ") && fold(title[from:at]) == heading {
			return true
		}
		after = marks[i]
		from = at + len(after)
		at = from - 1
	}
	return (after == " » " || after == ": ") && fold(title[from:]) == heading
}

// wholePart reports whether a heading is all that each of the titles has between two of its sure
// marks, and no shorter than their other parts.
func wholePart(heading string, titles ...string) (found bool) {
	f := fold(heading)
	for _, title := range titles {
		if title == "" {
			continue
		}
		found = false
		for part := range strings.SplitSeq(atSureMarks.Replace(title), "\n") {
			p := fold(withoutNote(part))
			found = found || p == f
			if len(p) > len(f) {
				return false
			}
		}
		if !found {
			return false
		}
	}
	return found
}

// withoutNote is a title without what its first brackets have, such as a number or a year, where nothing
// or a mark comes after them.
func withoutNote(title string) string {
	head, rest, _ := strings.Cut(title, " (")
	_, after, ok := strings.Cut(rest, ")")
	after = strings.TrimSpace(after)
	if ok && (after == "" || strings.TrimLeft(after, ":|/-–—•·»") != after) {
		return head
	}
	return title
}

// version reports whether two headlines say the same in other words: they have most of their
// sequences of three letters in common, and about the same length.
func version(a, b string) bool {
	x, y := sequences(a), sequences(b)
	both := 0
	for s := range x {
		if y[s] {
			both++
		}
	}
	short, long := min(len(x), len(y)), max(len(x), len(y))
	return short > 5 && 2*short >= long && 5*both >= 3*short
}

// saysMuch reports whether a heading is too long for the name of a site, and says more than
// the titles, which say too little for a headline.
func saysMuch(heading string, others []string) bool {
	const words = 4
	return len(strings.Fields(heading)) >= words && !slices.ContainsFunc(others, func(o string) bool {
		return len(strings.Fields(withoutSite(o, nil, true))) >= words || strings.Contains(fold(o), fold(heading))
	})
}

// sameSubject reports whether a heading is long enough for a headline, and a title has a quarter
// of its longer words.
func sameSubject(heading, title string) bool {
	const words, letters, part = 3, 5, 4
	if len(strings.Fields(heading)) < words {
		return false
	}
	all := fold(title)
	long, both := 0, 0
	for w := range strings.FieldsSeq(heading) {
		if f := fold(w); utf8.RuneCountInString(f) >= letters {
			long++
			if strings.Contains(all, f) { // compounds have words in words
				both++
			}
		}
	}
	return both > 0 && part*both >= long
}

func sequences(t string) map[string]bool {
	all := map[string]bool{}
	letters := []rune(fold(t))
	for i := range max(0, min(len(letters), 400)-2) {
		all[string(letters[i:i+3])] = true
	}
	return all
}

// short reports whether a text is no longer than a headline.
func short(t string) bool {
	const long = 400 // characters
	f := fold(t)
	return f != "" && utf8.RuneCountInString(t) <= long
}

// votes counts how many of the texts that name the page are a heading, or begin or end with
// it. A shorter heading counts where a mark separates it from the rest.
func votes(heading string, others []string) (votes int) {
	f := fold(heading)
	for _, other := range others {
		o := fold(other)
		switch {
		case o == f:
			votes += 2
		case 2*len(f) >= len(o) && (strings.HasPrefix(o, f) || strings.HasSuffix(o, f)):
			votes++
		case strings.Contains(o, f) && (isPart(f, other) || fold(withoutNote(other)) == f):
			votes++
		}
	}
	return votes
}

var (
	// sureMarks separate a headline from a site's name.
	sureMarks = []string{" | ", " - ", " – ", " — ", " :: ", " : ", "｜", "_", " -- "}
	// marks are those, and some that are also marks of headlines: of these only a known name
	// is cut off.
	marks = slices.Concat(sureMarks, []string{" * ", "ㅣ", " · ", " • ", " » ", " « ", " < ", " > ", "|", " ‹ ", " › ", "：", ": "})
	// atSureMarks writes a line's end for each of sureMarks.
	atSureMarks = func() *strings.Replacer {
		var pairs []string
		for _, m := range sureMarks {
			pairs = append(pairs, m, "\n")
		}
		return strings.NewReplacer(pairs...)
	}()
)

// sites are the names that the page's site may have in its titles.
func (p *Page) sites(own string) (out []string) {
	if p.known.sites != nil && p.known.own == own {
		return p.known.sites
	}
	defer func() { p.known.own, p.known.sites = own, out }()
	for _, s := range []string{own, p.meta["og:site_name"], p.meta["application-name"], p.meta["twitter:site"], p.meta["al:ios:app_name"]} {
		if s = fold(s); s != "" {
			out = append(out, s)
		}
	}
	for _, h := range p.headings[:min(len(p.headings), 20)] {
		if linksHome(h) {
			out = append(out, fold(line(h)))
		}
	}
	if u, err := p.address(); err == nil && u.Host != "" {
		host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
		out = append(out, fold(host))
		for label := range strings.SplitSeq(host, ".") {
			if len(label) >= 4 {
				out = append(out, fold(label))
			}
		}
	}
	return out
}

// linksHome reports whether a heading is one link to the site's first page.
func linksHome(h *html.Node) bool {
	for h != nil && h.DataAtom != atom.A {
		for h = h.FirstChild; h != nil && (h.Type != html.ElementNode || line(h) == ""); h = h.NextSibling {
			if isText(h) {
				return false
			}
		}
	}
	if h == nil {
		return false
	}
	u, err := url.Parse(strings.TrimSpace(dom.Attr(h, "href")))
	return err == nil && (u.Path == "/" || u.Path == "" && u.Host != "") && u.RawQuery == ""
}

func isSite(s string, sites []string) bool {
	f := fold(s)
	for _, name := range sites {
		if f == name {
			return true
		}
	}
	return false
}

// withoutSite cuts the site's name off a title's end or beginning; where guess is set, also a
// short last part whose name is not known.
func withoutSite(t string, sites []string, guess bool) string {
	for range 3 { // a title may end in the names of a section and of the site
		cut := t
		for _, m := range marks {
			if head, tail, ok := cutLast(t, m); ok && isSite(tail, sites) {
				cut = head
				break
			}
			if head, tail, ok := cutFirst(t, m); ok && isSite(tail, sites) {
				cut = head
				break
			}
			if head, tail, ok := cutFirst(t, m); ok && isSite(head, sites) {
				cut = tail
				break
			}
		}
		if cut == t {
			break
		}
		t, guess = cut, false
	}
	if !guess {
		return t
	}
	for _, m := range slices.Concat(sureMarks, []string{"-"}) {
		head, tail, ok := cutLast(t, m)
		if m == "-" { // without spaces only between words of a script that has none
			if before, _ := utf8.DecodeLastRuneInString(head); !ok || before < 0x2e80 || strings.ContainsFunc(tail, func(c rune) bool { return c < 0x2e80 }) || utf8.RuneCountInString(tail) > 10 {
				continue
			}
			return head
		}
		if !ok || utf8.RuneCountInString(tail) > 30 || utf8.RuneCountInString(head) <= utf8.RuneCountInString(tail) {
			continue
		}
		if m == "_" { // of Chinese titles: headline_section_site
			return withoutSite(head, sites, true)
		}
		return head
	}
	return t
}

func cutLast(t, mark string) (head, tail string, ok bool) {
	return cutAt(t, strings.LastIndex(t, mark), len(mark))
}

func cutFirst(t, mark string) (head, tail string, ok bool) {
	return cutAt(t, strings.Index(t, mark), len(mark))
}

// cutAt cuts a text at a mark, if there is something on both sides of it.
func cutAt(t string, at, mark int) (head, tail string, ok bool) {
	if at <= 0 {
		return t, "", false
	}
	head, tail = strings.TrimSpace(t[:at]), strings.TrimSpace(t[at+mark:])
	return head, tail, head != "" && tail != ""
}
