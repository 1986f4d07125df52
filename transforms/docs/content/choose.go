package content

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// choose returns the match of a selector that has at least half of the text of all
// matches. If there is none, the page is a list, and choose returns all matches.
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

// around returns the innermost element around all matches: of parts that are alike, what stands before and between them belongs
// to the page too.
func (s *survey) around(matches []*html.Node) *html.Node {
	n := matches[0].Parent
	for n != s.body && n.Parent != nil && slices.ContainsFunc(matches, func(m *html.Node) bool { return !contains(n, m) }) {
		n = n.Parent
	}
	return n
}

// isCard reports whether a candidate is a card on a page whose main part is
// elsewhere: a wider candidate around it has over four times its text.
func (s *survey) isCard(roots []*html.Node, i int) bool {
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

// minRest is the number of bytes of text next to the match of a class or id from
// which on that text matters.
const minRest = 200

// areBoxes reports whether the matches of a class or id leave out most of the text
// around them: they are boxes in a text, such as listings, and not its parts.
func (s *survey) areBoxes(matches, roots []*html.Node) bool {
	around, most := s.body, 4
	if len(matches) > 1 {
		most = 2
		for around = matches[0].Parent; around != nil && !contains(around, matches[len(matches)-1]); {
			around = around.Parent
		}
	}
	if !slices.ContainsFunc(roots, func(r *html.Node) bool { return !listing(r) }) {
		return true
	}
	if len(matches) > 1 && around != nil && !slices.ContainsFunc(matches, headed) && headed(around) {
		return true // the headings of the text are outside
	}
	own := 0
	for _, r := range roots {
		own += s.clutter.prose(r)
	}
	if !slices.ContainsFunc(matches, headed) {
		for _, wide := range slices.Concat(s.found[4:]...) { // its headings are outside of the boxes in it
			if contains(wide, matches[0]) && contains(wide, matches[len(matches)-1]) && headed(wide) && (len(matches) > 1 || s.clutter.prose(wide) > 2*own) {
				return true
			}
		}
	}
	return around != nil && s.clutter.prose(around) > most*own+minRest
}

// listing reports whether an element is a code block and nothing more.
func listing(n *html.Node) bool {
	for n.DataAtom != atom.Pre {
		var only *html.Node
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode && strings.TrimSpace(c.Data) == "" || c.Type == html.CommentNode {
				continue
			}
			if only != nil || c.Type != html.ElementNode {
				return false
			}
			only = c
		}
		if only == nil {
			return false
		}
		n = only
	}
	return true
}

// minLinks is the number of bytes of links from which on they are a site's navigation.
const minLinks = 200

// minProse is the number of bytes of text from which on it can be a page's content: a
// page with less may be an index, whose links are the content.
const minProse = 600

// byProse returns the elements with the prose of a page without marks, where what is
// around them is the site's navigation: more text in links than not, although the frame is
// left out. Otherwise it returns nil: the whole body is the content.
func (s *survey) byProse() []*html.Node {
	roots := article.Find(s.body)
	around := outside{clutter: s.clutter, roots: roots, framing: framing(s.body)}
	around.add(s.body, false)
	own := 0
	for _, r := range roots {
		own += s.clutter.prose(r)
	}
	if own < minProse || around.links < minLinks || around.links < around.text {
		return nil
	}
	return roots
}

// outside counts the text that is not in roots.
type outside struct {
	clutter     clutter
	roots       []*html.Node
	framing     map[*html.Node]struct{}
	links, text int // in bytes
}

func (o *outside) add(n *html.Node, inLink bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && inLink:
			o.links += len(strings.TrimSpace(c.Data))
		case c.Type == html.TextNode:
			o.text += len(strings.TrimSpace(c.Data))
		case c.Type != html.ElementNode, slices.Contains(o.roots, c), o.clutter.drops(c):
		default:
			if _, framed := o.framing[c]; !framed {
				o.add(c, inLink || c.DataAtom == atom.A)
			}
		}
	}
}
