package content

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
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
	return around != nil && s.clutter.prose(around) > most*own+minRest
}

// headed reports whether there is a heading below n.
func headed(n *html.Node) bool {
	for c := range n.Descendants() {
		if isHeading(c) {
			return true
		}
	}
	return false
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
