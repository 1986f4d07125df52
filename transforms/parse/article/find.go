package article

import (
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// reader finds the article in a page and writes its text.
type reader struct {
	remove     []cascadia.Matcher
	bySelector bool // the publisher's selector found the text: only its own removals apply
	title      string
	whole      bool // links, cards and short lines are text: the page is no article
	documented bool // headings that link are text

	blocks     map[*html.Node]bool // contains blocks
	proseWidth map[*html.Node]int  // width of the prose below an element
	out        map[*html.Node]bool // left out because of their names
	leftOut    []*html.Node        // the same in the order of the page
	kept       map[*html.Node]bool // with names of clutter, but most of the page
}

func newReader(root *html.Node) *reader {
	r := &reader{blocks: map[*html.Node]bool{}, proseWidth: map[*html.Node]int{}, out: map[*html.Node]bool{}}
	r.markBlocks(root)
	return r
}

// markBlocks records the elements below n that contain blocks, and reports whether n
// does. It runs once: searching below each element again would cost the square of
// the nesting depth.
func (r *reader) markBlocks(n *html.Node) (holds bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && (r.markBlocks(c) || block(c)) {
			holds = true
		}
	}
	if holds {
		r.blocks[n] = true
	}
	return holds
}

// find returns the elements that contain the article's text.
func (r *reader) find(body *html.Node) []*html.Node {
	total := r.weighAgain(body)
	for i, tier := range r.hints(body) {
		if len(tier) == 0 {
			continue
		}
		best, sum := r.heaviest(tier)
		most := r.proseWidth[best]
		if i == 0 {
			if parts := r.parts(tier, best, total); parts != nil {
				return parts
			}
			continue
		}
		if titled := r.titled(tier); titled != nil && titled != best && r.proseWidth[titled] >= 5*minArticle {
			return []*html.Node{titled}
		}
		if most*5 < total*2 && (most < 1500 || most*10 < sum*6) || most < minArticle { // one of many, or too little
			continue
		}
		return []*html.Node{best}
	}
	return []*html.Node{r.narrow(body, 85)}
}

// titled is the first of several nodes with the page's headline, nil for none.
func (r *reader) titled(nodes []*html.Node) *html.Node {
	if i := slices.IndexFunc(nodes, r.headlined); i >= 0 && len(nodes) > 1 {
		return nodes[i]
	}
	return nil
}

// Find returns the elements below body that have the text of a page, by their names and
// by how much prose they have.
func Find(body *html.Node) []*html.Node { return newReader(body).find(body) }

// minArticle is the least width of prose in the element of an article.
const minArticle = 120

// maxKept bounds how many elements weighAgain keeps, as each costs a walk.
const maxKept = 6

// weighAgain weighs the page. An element with a name of clutter that has more prose
// than all the rest is kept after all, and the page weighed again.
func (r *reader) weighAgain(body *html.Node) (total int) {
	total = r.weigh(body)
	if around := r.keepAround(); r.keepIntroductions() || around {
		total = r.weighOnce(body)
	}
	for range maxKept {
		var most *html.Node
		for _, n := range r.leftOut {
			if !r.kept[n] && r.proseWidth[n] > total && !surelyClutter(n) && (most == nil || r.proseWidth[n] > r.proseWidth[most]) {
				most = n
			}
		}
		if most == nil {
			break
		}
		for n := most; n != nil; n = n.Parent { // what is around it too, else it would be left out with that
			if r.out[n] && (n == most || !surelyClutter(n)) {
				r.keep(n)
			}
		}
		total = r.weighOnce(body)
	}
	if r.keepAlike(total) {
		total = r.weighOnce(body)
	}
	return total
}

func (r *reader) keep(n *html.Node) {
	if r.kept == nil {
		r.kept = map[*html.Node]bool{}
	}
	r.kept[n] = true
}

// weighOnce weighs the page again, from nothing.
func (r *reader) weighOnce(body *html.Node) int {
	clear(r.proseWidth)
	clear(r.out)
	r.leftOut = r.leftOut[:0]
	return r.weigh(body)
}

// keepAround keeps elements with a name of clutter that contain an element that is named as
// the article's text.
func (r *reader) keepAround() (any bool) {
	const text = 5 * minArticle
	left := 2 * maxKept
	for _, n := range r.leftOut {
		if left == 0 {
			break
		}
		if r.proseWidth[n] < text || surelyClutter(n) {
			continue
		}
		left--
		for d := range n.Descendants() {
			if d.Type == html.ElementNode && r.proseWidth[d] >= text && hint(d) == 0 {
				r.keep(n)
				any = true
				break
			}
		}
	}
	return any
}

// keepIntroductions keeps elements that are named as teasers but are a sentence without links, and not
// one of many with the same name, as the teasers of other articles are.
func (r *reader) keepIntroductions() (any bool) {
	const prose = 80
	named := map[string]int{}
	for _, n := range r.leftOut {
		if r.proseWidth[n] >= prose && teases(n) {
			named[dom.Attr(n, "class")]++
		}
	}
	left := maxKept
	for _, n := range r.leftOut {
		if left > 0 && r.proseWidth[n] >= prose && teases(n) && named[dom.Attr(n, "class")] == 1 {
			left--
			if !dom.Holds(n, atom.A) && sentence(line(n)) {
				r.keep(n)
				any = true
			}
		}
	}
	return any
}

// heaviest returns the first node with the most prose, and the prose of all.
func (r *reader) heaviest(nodes []*html.Node) (best *html.Node, sum int) {
	for _, n := range nodes {
		sum += r.proseWidth[n]
		if best == nil || r.proseWidth[n] > r.proseWidth[best] {
			best = n
		}
	}
	return best, sum
}

// parts returns the elements of a text in several parts, between advertisements:
// those of tier with best's name for the text. It returns nil where they have too
// little of the page's prose.
func (r *reader) parts(tier []*html.Node, best *html.Node, total int) []*html.Node {
	var parts []*html.Node
	whole := 0
	name := bodyNamed(best)
	for _, n := range tier {
		if bodyNamed(n) == name {
			parts = append(parts, n)
			whole += r.proseWidth[n]
		}
	}
	if whole >= minArticle && (whole*5 >= total*2 || whole >= 1500) {
		return parts
	}
	return nil
}

// narrow descends while one child has nearly all of the prose.
func (r *reader) narrow(n *html.Node, percent int) *html.Node {
	for {
		var most *html.Node
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode && (most == nil || r.proseWidth[c] > r.proseWidth[most]) {
				most = c
			}
		}
		if most == nil || r.proseWidth[most] == 0 || leaf(most) || !r.nearlyAll(most, n, percent) {
			return n
		}
		n = most
	}
}

// nearlyAll reports whether an element below n has percent of its prose, or less where it has the headline too.
func (r *reader) nearlyAll(most, n *html.Node, percent int) bool {
	const headlined = 70
	part := r.proseWidth[most] * 100
	return part >= r.proseWidth[n]*percent || part >= r.proseWidth[n]*headlined && r.headlined(most)
}

// headlined reports whether the headline is below n.
func (r *reader) headlined(n *html.Node) bool {
	if r.title == "" {
		return false
	}
	for d := range n.Descendants() {
		switch d.DataAtom {
		case atom.H1, atom.H2, atom.H3:
			if f := fold(line(d)); f != "" && (f == r.title || len(f) > 15 && (strings.Contains(r.title, f) || strings.Contains(f, r.title))) {
				return true
			}
		}
	}
	return false
}

func leaf(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Span, atom.A, atom.Blockquote, atom.Pre, atom.Ul, atom.Ol, atom.Li, atom.Font, atom.B, atom.Strong, atom.Em:
		return true
	}
	return false
}

// hints are the elements whose name or role says that they contain the article, by
// how sure that is.
func (r *reader) hints(body *html.Node) (tiers [4][]*html.Node) {
	var walk func(*html.Node, int)
	walk = func(n *html.Node, depth int) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.ElementNode || r.out[c] {
				continue
			}
			if t := hint(c); t >= 0 && r.proseWidth[c] > 0 {
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
			if len(outer) == 0 || !dom.Below(n, outer[len(outer)-1]) {
				outer = append(outer, n)
			}
		}
		tiers[i] = outer
	}
	return tiers
}

// hint is how surely an element contains the article, by its name: 0 is the surest,
// -1 means not at all.
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
	if n.DataAtom != atom.Span && bodyNamed(n) != "" {
		return 0
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
		}
	}
	return -1
}

// bodyNamed is the first of an element's classes and ids in bodyNames, "" for none.
func bodyNamed(n *html.Node) string {
	for i := range n.Attr {
		if a := &n.Attr[i]; naming(a.Key) {
			for w := range strings.FieldsSeq(a.Val) {
				if bodyName(w) {
					return w
				}
			}
		}
	}
	return ""
}

// naming reports whether an attribute has names that say what its element is. Where a program makes the
// classes, those that tests and components know it by do.
func naming(key string) bool {
	switch key {
	case "class", "id", "data-testid", "data-test-id", "data-test", "data-qa", "data-hook", "data-component", "data-component-name", "data-module":
		return true
	}
	return false
}

// bodyName reports whether a class or id is one of bodyNames, without its hyphens.
func bodyName(name string) bool {
	if len(name) < 6 { // shorter than all of them
		return false
	}
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
	return bodyNames[string(buf[:n])]
}

// bodyNames are common names of the element with an article's text, without hyphens.
var bodyNames = dom.Set(`articlebody articletext articlecontent articlecontents entrycontent postcontent postbody posttext postentry
	storybody storycontent storytext articlebodycontent articlebodytext articlemaincontent articlecontainerbody bodytext newsbody newscontent newstext newsarticle
	articlebodywrapper articlecopy fieldnamebody singlecontent articlewrapbody articlebodybox articleview articleviewcontent newscttext artext arttext
	newsviewbody viewcontent articletxt articlecont articlebodycontents articletextbody contentbody contenttext richtextbody storydetail`)

// keepAlike keeps the elements of one class, left out for its name, that have more than twice the
// prose of all the rest together: the posts of a forum, the texts of a gallery.
func (r *reader) keepAlike(total int) bool {
	const (
		least = 80 // width of the prose of one
		many  = 3
	)
	sums, counts := map[string]int{}, map[string]int{}
	ok := func(n *html.Node) bool {
		if r.proseWidth[n] < least || surelyClutter(n) {
			return false
		}
		for p := n.Parent; p != nil; p = p.Parent {
			if r.out[p] {
				return false
			}
		}
		return true
	}
	for _, n := range r.leftOut {
		if ok(n) {
			sums[dom.Attr(n, "class")] += r.proseWidth[n]
			counts[dom.Attr(n, "class")]++
		}
	}
	best := ""
	for class, sum := range sums {
		if class != "" && counts[class] >= many && sum > 2*total && (sum > sums[best] || sum == sums[best] && class < best) {
			best = class
		}
	}
	if best == "" {
		return false
	}
	for _, n := range r.leftOut {
		if dom.Attr(n, "class") == best && ok(n) {
			r.keep(n)
		}
	}
	return true
}
