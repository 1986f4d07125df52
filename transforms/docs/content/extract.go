package content

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// Extract reads an HTML page. contentType is the Content-Type header, for its
// charset. Broken HTML is read as browsers read it; the error is ErrTooDeep, a
// malformed selector, or a body whose encoding cannot be decoded.
func Extract(body []byte, contentType string, o Options) (Page, error) {
	content, remove, err := o.selectors()
	if err != nil {
		return Page{}, err
	}
	text, _, err := charset.Decode(body, contentType)
	if err != nil {
		return Page{}, fmt.Errorf("reading the page: %w", err)
	}
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return Page{}, errors.Join(ErrTooDeep, fmt.Errorf("parsing the page: %w", err))
	}
	s := survey{size: len(text), options: o, clutter: clutter{remove}, custom: content, seen: make(map[string]bool)}
	if o.Base != nil {
		s.base = o.Base
	}
	s.walk(root, 0)
	return s.page(), nil
}

// candidates are the selectors of the main content, tried in this order after the
// policy's own.
var candidates = [...]string{"article", "main", `[role="main"]`, ".content", ".docs-body", "#content", ".markdown-body"}

// survey is what one walk over a page finds.
type survey struct {
	size    int // bytes of the page
	options Options
	clutter clutter
	custom  cascadia.Matcher

	base  *url.URL
	based bool
	seen  map[string]bool
	links []string

	title     string
	h1        *html.Node // the first that is no part of the site's frame
	body      *html.Node
	own       []*html.Node                  // matches of the policy's selector
	found     [len(candidates)][]*html.Node // outermost matches
	password  bool
	scripts   int
	shell     bool // an element that scripts fill, or a word that they must run
	candidate [len(candidates)]bool
	inOwn     bool
}

// frame says where a node stands, as bits.
const (
	inHead  = 1 << iota
	inFrame // of what surrounds the content: nav, aside, footer
	inHeader
)

// walk visits the tree once. Its depth is bounded by the parser.
func (s *survey) walk(n *html.Node, where int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		if c.Namespace != "" {
			if c.DataAtom != atom.Svg { // svg has titles and links of its own
				s.walk(c, where)
			}
			continue
		}
		here := where
		switch c.DataAtom {
		case atom.Script:
			s.scripts++
			continue
		case atom.Style, atom.Template:
			continue
		case atom.Noscript:
			if t := c.FirstChild; t != nil && t.Type == html.TextNode && strings.Contains(strings.ToLower(t.Data), "javascript") {
				s.shell = true
			}
			continue
		case atom.Title:
			if s.title == "" {
				s.title = line(c)
			}
			continue
		case atom.Base:
			s.rebase(attr(c, "href"))
		case atom.A, atom.Area:
			s.link(attr(c, "href"))
		case atom.Body:
			s.body = c
		case atom.Nav, atom.Aside, atom.Footer:
			here |= inFrame
		case atom.Header:
			here |= inHeader
		case atom.Input:
			s.password = s.password || strings.EqualFold(attr(c, "type"), "password")
		case atom.H1:
			// One in the page's header is the site's name, unless the title begins
			// with it.
			if s.h1 == nil && where&inFrame == 0 && (where&inHeader == 0 || s.titled(c)) {
				s.h1 = c
			}
		case atom.Article, atom.Main, atom.Section:
			here &^= inHeader // a header in it is the content's, not the site's
		}
		s.visit(c, here)
	}
}

// titled reports whether the page's title begins with a heading's text.
func (s *survey) titled(h *html.Node) bool {
	text := strings.TrimSuffix(line(h), "¶")
	return len(text) > 2 && strings.HasPrefix(s.title, text) && text != s.title
}

// visit walks below n, having noted what n is.
func (s *survey) visit(n *html.Node, where int) {
	inOwn, candidate := s.inOwn, s.candidate
	if s.custom != nil && !s.inOwn && s.custom.Match(n) {
		s.own = append(s.own, n)
		s.inOwn = true
	}
	if where&(inFrame|inHeader) == 0 {
		mark := func(i int) {
			if !s.candidate[i] {
				s.found[i] = append(s.found[i], n)
				s.candidate[i] = true
			}
		}
		switch n.DataAtom {
		case atom.Article:
			mark(0)
		case atom.Main:
			mark(1)
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "role":
				if a.Val == "main" {
					mark(2)
				}
			case "class":
				for word := range strings.FieldsSeq(a.Val) {
					switch word {
					case "content":
						mark(3)
					case "docs-body":
						mark(4)
					case "markdown-body":
						mark(6)
					}
				}
			case "id":
				switch a.Val {
				case "content":
					mark(5)
				case "root", "app", "__next", "__nuxt", "___gatsby", "svelte":
					if n.FirstChild == nil || blank(n) {
						s.shell = true
					}
				}
			}
		}
	}
	s.walk(n, where)
	s.inOwn, s.candidate = inOwn, candidate
}

func (s *survey) rebase(href string) {
	if href == "" || s.based || s.base == nil {
		return
	}
	if u, err := s.base.Parse(strings.TrimSpace(href)); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		s.base, s.based = u, true
	}
}

func (s *survey) link(href string) {
	if href == "" || href[0] == '#' || s.base == nil || len(s.links) == MaxLinks {
		return
	}
	address, err := canonical.Resolve(s.base, href, s.options.Keep)
	if err != nil || s.seen[address] {
		return // no page to visit, or found before
	}
	s.seen[address] = true
	s.links = append(s.links, address)
}

// page renders the first candidate that has something to say.
func (s *survey) page() Page {
	p := Page{Title: s.title, Links: s.links}
	if roots := s.choose(s.own); roots != nil {
		s.render(&p, roots, true, false)
		p.Selector = s.options.Content
	}
	for i, name := range candidates {
		if p.Markdown != "" {
			break
		}
		if roots := s.choose(s.found[i]); roots != nil && !s.slight(roots, i) && (i <= 2 || !s.boxes(s.found[i], roots)) {
			s.render(&p, roots, true, i > 2)
			p.Selector = name
		}
	}
	if p.Markdown == "" && s.body != nil {
		s.render(&p, []*html.Node{s.body}, false, true)
		p.Selector = "body"
	}
	p.Markdown = MaskEmails(p.Markdown)
	if p.Title == "" {
		p.Title = firstHeading(p.Markdown)
	}
	p.Title = shortTitle(p.Title)

	letters := 0
	for _, r := range p.Markdown {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letters++
		}
	}
	p.Login = s.login(p, letters)
	p.Script = s.scripts > 0 && s.shell && letters < 200
	p.Empty = letters == 0 || p.Script && letters < 40
	return p
}

// choose picks of several matches of one selector the one that has most of
// their text; where none has half of it the page is a list and all are kept.
func (s *survey) choose(matches []*html.Node) []*html.Node {
	if len(matches) < 2 {
		return matches
	}
	sum, most, best := 0, -1, 0
	for i, m := range matches {
		n := s.clutter.prose(m)
		sum += n
		if n > most {
			most, best = n, i
		}
	}
	if 2*most >= sum {
		return matches[best : best+1]
	}
	return matches
}

// slight reports whether a candidate is a card on a page whose main part is
// elsewhere: a wider candidate around it has over four times its text.
func (s *survey) slight(roots []*html.Node, i int) bool {
	own := 0
	for _, r := range roots {
		own += s.clutter.prose(r)
	}
	for j := range candidates {
		if j == i {
			continue
		}
		for _, wide := range s.found[j] {
			if contains(wide, roots[0]) && s.clutter.prose(wide) > 4*own {
				return true
			}
		}
	}
	return false
}

// minRest is how many bytes of text beside a match of a name are never missed.
const minRest = 200

// boxes reports whether the matches of a name leave out most of the text that
// they stand in: they are boxes in a text, such as listings, and not its parts.
func (s *survey) boxes(matches, roots []*html.Node) bool {
	around, most := s.body, 4
	if len(matches) > 1 {
		most = 2
		for around = matches[0].Parent; around != nil && !contains(around, matches[len(matches)-1]); {
			around = around.Parent
		}
	}
	own := 0
	for _, r := range roots {
		own += s.clutter.prose(r)
	}
	return around != nil && s.clutter.prose(around) > most*own+minRest
}

func contains(outer, n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p == outer {
			return true
		}
	}
	return false
}

// render writes the roots as a page's Markdown. bounded says that they are the content
// and not the whole body, loose that a name guessed them. The page's h1 is set
// before content that lacks one.
func (s *survey) render(p *Page, roots []*html.Node, bounded, loose bool) {
	w := writer{clutter: s.clutter, bounded: bounded, room: s.size/2 + 64<<10}
	if s.h1 != nil && bounded {
		has := false
		for _, r := range roots {
			has = has || contains(r, s.h1) || r == s.h1 || hasH1(r)
		}
		if !has {
			w.element(s.h1)
		}
	}
	for _, r := range roots {
		if loose {
			w.framing = framing(r)
		}
		w.block()
		w.children(r)
		w.block()
	}
	p.Markdown, p.Anchors = w.String(), w.anchors
}

func hasH1(n *html.Node) bool {
	for c := range n.Descendants() {
		if c.DataAtom == atom.H1 {
			return true
		}
	}
	return false
}

// login reports whether a page is a login form and nothing else: it asks for a
// password, or calls itself a login, and has no more text than such a form.
func (s *survey) login(p Page, letters int) bool {
	if strings.Contains(p.Markdown, "```") {
		return false
	}
	if s.password {
		return letters < 600
	}
	heading := strings.ToLower(firstHeading(p.Markdown))
	title := strings.ToLower(p.Title)
	for _, word := range []string{"log in", "login", "sign in", "signin", "로그인"} {
		if letters < 250 && (strings.HasPrefix(heading, word) || strings.HasPrefix(title, word)) {
			return true
		}
	}
	return false
}

// firstHeading is the text of the first heading of Markdown, "" for none.
func firstHeading(markdown string) string {
	for l := range strings.SplitSeq(markdown, "\n") {
		if strings.HasPrefix(l, "```") {
			return ""
		}
		if text := strings.TrimLeft(l, "#"); len(text) < len(l) && strings.HasPrefix(text, " ") {
			return strings.TrimSpace(strings.NewReplacer("`", "", "**", "", `\`, "").Replace(text))
		}
	}
	return ""
}

func attr(n *html.Node, key string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return n.Attr[i].Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return true
		}
	}
	return false
}

// line is the text below n on one line.
func line(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.Join(strings.FieldsFunc(b.String(), space), " ")
}

func blank(n *html.Node) bool {
	for c := range n.Descendants() {
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return false
		}
	}
	return true
}

// space are the characters that HTML and people read as space, and those that
// have no width.
func space(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\f', '\v', '\u00a0', '\u202f', '\u2028', '\u2029':
		return true
	}
	return false
}

// ExtractText reads a plain text document, which is kept as it is but for line
// ends, e-mail addresses, and the space at its ends; in Markdown links become text.
func ExtractText(body []byte, contentType string) (Page, error) {
	text, _, err := charset.Decode(body, contentType)
	if err != nil {
		return Page{}, fmt.Errorf("reading the document: %w", err)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media != "text/plain" && isText(media) {
		text = unlinked(text)
	}
	text = MaskEmails(strings.Trim(strings.ReplaceAll(text, "\x00", string(utf8.RuneError)), "\n \t"))
	return Page{Title: shortTitle(firstHeading(text)), Markdown: text, Empty: text == ""}, nil
}
