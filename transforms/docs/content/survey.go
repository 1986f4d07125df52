package content

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// survey collects in one walk what Extract needs to know about a page.
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
	language  string
	h1        *html.Node // the first h1 outside of the site's frame
	body      *html.Node
	own       []*html.Node                  // matches of the policy's selector
	found     [len(candidates)][]*html.Node // outermost matches
	scripts   int
	shell     bool // there is an element that scripts fill, or a note that scripts are needed
	candidate [len(candidates)]bool
	inOwn     bool
}

// The bits of a node's position.
const (
	inFrame = 1 << iota // in an element that surrounds the content: nav, aside, footer
	inHeader
)

// walk visits the tree once. Its depth is bounded by the parser.
func (s *survey) walk(n *html.Node, position int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		if c.Namespace != "" {
			if c.DataAtom != atom.Svg { // the titles and links of an svg are not the page's
				s.walk(c, position)
			}
			continue
		}
		here := position
		switch c.DataAtom {
		case atom.Script:
			s.scripts++
			continue
		case atom.Style, atom.Template:
			continue
		case atom.Noscript:
			s.noscript(c)
			continue
		case atom.Title:
			if s.title == "" {
				s.title = line(c)
			}
			continue
		case atom.Html:
			s.language = cmp.Or(Language(dom.Attr(c, "lang")), Language(dom.Attr(c, "xml:lang")))
		case atom.Meta:
			if s.language == "" && strings.EqualFold(dom.Attr(c, "http-equiv"), "Content-Language") {
				s.language = Language(dom.Attr(c, "content"))
			}
		case atom.Base:
			s.rebase(dom.Attr(c, "href"))
		case atom.A, atom.Area:
			s.link(dom.Attr(c, "href"))
		case atom.Body:
			s.body = c
		case atom.Nav, atom.Aside, atom.Footer:
			here |= inFrame
		case atom.Header:
			here |= inHeader
		case atom.H1:
			// A heading in the page's header is the site's name, unless the title
			// begins with it.
			if s.h1 == nil && position&inFrame == 0 && (position&inHeader == 0 || s.beginsTitle(c)) {
				s.h1 = c
			}
		case atom.Article, atom.Main, atom.Section:
			here &^= inHeader // a header in it is the content's own, not the site's
		}
		s.visit(c, here)
	}
}

// noscript checks whether a noscript element says that the page needs scripts.
func (s *survey) noscript(n *html.Node) {
	if t := n.FirstChild; t != nil && t.Type == html.TextNode && strings.Contains(strings.ToLower(t.Data), "javascript") {
		s.shell = true
	}
}

// beginsTitle reports whether the page's title begins with a heading's text.
func (s *survey) beginsTitle(h *html.Node) bool {
	text := strings.TrimSuffix(line(h), "¶")
	return len(text) > 2 && strings.HasPrefix(s.title, text)
}

// visit records what n is, and walks below it.
func (s *survey) visit(n *html.Node, position int) {
	inOwn, candidate := s.inOwn, s.candidate
	if s.custom != nil && !s.inOwn && s.custom.Match(n) {
		s.own = append(s.own, n)
		s.inOwn = true
	}
	if position&(inFrame|inHeader) == 0 {
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
	s.walk(n, position)
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
