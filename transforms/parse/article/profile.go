package article

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// Type is what a page is. Each type has a rule of its own for the main part. The zero value is an article.
type Type string

// The types besides an article.
const (
	Forum         Type = "forum"         // posts of several authors, each with its time: all of them
	List          Type = "list"          // links with teasers: they are the text
	Product       Type = "product"       // with a price and a way to buy: names, values and descriptions, without other products
	Documentation Type = "documentation" // code and parameters: also short lines and headings that link
	Service       Type = "service"       // short sections below headings, by nobody and of no day: all of them
)

// profile is what a page's structure says of it.
type profile struct {
	Type
	parts []*html.Node // posts, or teasers
}

// below sums up the text below an element.
type below struct {
	width, linked          int // of the text, and of that in links
	author, time, headed   bool
	code, headings, prices int
}

func (b *below) add(c below) {
	b.width, b.linked = b.width+c.width, b.linked+c.linked
	b.author, b.time, b.headed = b.author || c.author, b.time || c.time, b.headed || c.headed
	b.code, b.headings, b.prices = b.code+c.code, b.headings+c.headings, b.prices+c.prices
}

// shapes finds elements of one parent and one name that repeat.
type shapes struct {
	posts, teasers         []*html.Node
	postWidth, teaserWidth int
	teaserPrices           int
	seen                   int // elements, so that the cost is bounded
	buys, parameters       bool
}

// maxShapes bounds the elements whose children are compared.
const maxShapes = 50_000

// profile tells the type of a page: by what it says for machines, where that is sure, else by its structure.
func (p *Page) profile() profile {
	if p.body == nil {
		return profile{}
	}
	is := func(types ...string) bool {
		for range p.Data.All(types...) {
			return true
		}
		return false
	}
	product, isProduct := p.Data.Product()
	isProduct = isProduct && len(product.Offers) > 0
	news := p.ld.Item != nil && !p.ld.Item.Is("TechArticle", "SocialMediaPosting", "WebPage") || p.meta["article:published_time"] != "" || p.meta["og:type"] == "article"
	if news && !isProduct && !is("DiscussionForumPosting", "QAPage") {
		return profile{}
	}
	s := shapes{}
	all := s.walk(p.body)
	switch {
	case len(s.posts) >= 3 && s.postWidth*10 >= (all.width-s.teaserWidth)*6, len(s.posts) >= 2 && is("DiscussionForumPosting", "QAPage"):
		return profile{Forum, s.posts}
	case isProduct && len(s.teasers) < 3 || s.buys && all.prices > s.teaserPrices && all.headings > 0, isProduct && s.buys:
		return profile{Product, s.teasers}
	case p.meta["author"] != "" || all.author && all.time: // of somebody and of a day
		return profile{}
	case len(s.teasers) >= 5 && s.teaserWidth*10 >= all.width*6:
		return profile{List, s.teasers}
	case all.code >= 3 && (s.parameters || all.code*120 >= all.width/4), is("APIReference", "TechArticle") && all.code > 0:
		return profile{Documentation, nil}
	case is("Service", "LocalBusiness", "Organization") && !all.time && all.headings >= 4 && all.width < 500*all.headings:
		return profile{Service, nil}
	}
	return profile{}
}

var (
	price = regexp.MustCompile(`^\W*(?:[$€£¥₩₹₽]|USD|EUR|GBP|CHF|kr|zł)\s?\d[\d.,\s]*$|^\W*\d[\d.,\s]*(?:[$€£¥₩₹₽]|円|원|USD|EUR|GBP|CHF|kr|zł)\W*$`)
	// buying is in the names of what puts a product into a basket.
	buying = regexp.MustCompile(`(?i)(?:add[-_]?to[-_]?|shopping[-_]?)(?:cart|basket|bag)|buy[-_]?(?:now|box)|/(?:cart|basket|checkout)/(?:add|item)|warenkorb`)
)

// walk sums up what is below n, and compares its children.
func (s *shapes) walk(n *html.Node) (sum below) {
	var groups map[string][]int
	var each []below
	var nodes []*html.Node
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			w := width(c.Data)
			sum.width += w
			if w >= 2 && w < 24 && price.MatchString(strings.TrimSpace(c.Data)) {
				sum.prices++
			}
		case c.Type != html.ElementNode || neverText(c) || surelyClutter(c) && c.DataAtom != atom.Main:
		default:
			b := s.walk(c)
			s.name(c, &b)
			sum.add(b)
			if s.seen++; s.seen < maxShapes && (block(c) || c.DataAtom == atom.Li || c.DataAtom == atom.Tr || c.DataAtom == atom.A) && b.width > 0 {
				class, _, _ := strings.Cut(strings.TrimSpace(dom.Attr(c, "class")), " ")
				if groups == nil {
					groups = map[string][]int{}
				}
				key := c.Data + " " + class
				groups[key] = append(groups[key], len(each))
				each, nodes = append(each, b), append(nodes, c)
			}
		}
	}
	for _, members := range groups {
		if len(members) >= 2 {
			s.group(members, each, nodes)
		}
	}
	return sum
}

// name adds what an element itself is.
func (s *shapes) name(n *html.Node, b *below) {
	switch n.DataAtom {
	case atom.A:
		b.linked = b.width
	case atom.Time:
		b.time = true
	case atom.Pre:
		b.code++
	case atom.Dl:
		s.parameters = s.parameters || b.code > 0 || dom.Holds(n, atom.Code)
	case atom.Table:
		s.parameters = s.parameters || dom.Holds(n, atom.Code)
	case atom.Form, atom.Input:
		s.buys = s.buys || buying.MatchString(dom.Attr(n, "action")+" "+dom.Attr(n, "name"))
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		b.headings++
		b.headed = b.headed || b.linked > 0
	}
	if mark := markOf(n, false); mark&ofAuthor != 0 || n.DataAtom == atom.A && !b.author && isUser(dom.Attr(n, "href")) {
		b.author = true
	}
	if class := dom.Attr(n, "class"); class != "" {
		b.time = b.time || b.width > 0 && b.width < 40 && dateName.MatchString(class)
		s.buys = s.buys || b.width < 40 && buying.MatchString(class)
	}
}

var (
	dateName = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:date|time|timestamp|datetime|posted|ago)(?:$|[\s_-])`)
	userPath = regexp.MustCompile(`(?i)(?:^|/)(?:users?|members?|profiles?|u|@[\w.-]+)(?:[/.?=]|$)`)
)

// isUser reports whether a link is to the page of a member.
func isUser(href string) bool {
	return (strings.Contains(href, "/u") || strings.Contains(href, "ser") || strings.Contains(href, "ember") || strings.Contains(href, "rofile") || strings.Contains(href, "@")) && userPath.MatchString(href)
}

// group adds children of one parent and one name to the posts or the teasers, if most of them are such.
func (s *shapes) group(members []int, each []below, nodes []*html.Node) {
	const post, teaser, link = 40, 700, 12 // least width of a post's text, most of a teaser, least of its link
	var posts, teasers []*html.Node
	postWidth, teaserWidth, linked, prices := 0, 0, 0, 0
	for _, i := range members {
		b, n := &each[i], nodes[i]
		switch {
		case b.author && b.time && b.width-b.linked >= post && !b.headed:
			posts, postWidth = append(posts, n), postWidth+b.width
		case b.linked >= link && b.width < teaser:
			teasers, teaserWidth, linked, prices = append(teasers, n), teaserWidth+b.width, linked+b.linked, prices+b.prices
		}
	}
	if len(posts)*3 >= len(members)*2 && len(posts) >= 2 && postWidth > s.postWidth {
		s.posts, s.postWidth = posts, postWidth
	}
	// Links alone are a menu.
	if len(teasers)*3 >= len(members)*2 && len(teasers) >= 3 && teaserWidth-linked >= 15*len(teasers) {
		s.teasers, s.teaserWidth, s.teaserPrices = append(s.teasers, teasers...), s.teaserWidth+teaserWidth, s.teaserPrices+prices
	}
}

// main returns the lines of the main part of a page that is no article.
func (k profile) main(r *reader, body *html.Node) []textLine {
	r.whole = true
	r.weigh(body)
	switch k.Type {
	case Forum:
		for _, n := range k.parts {
			r.keep(n)
		}
		return r.write(slices.Concat(r.topics(body, k.parts), k.parts))
	case List:
		for _, n := range k.parts {
			r.keep(n)
		}
		return r.write(k.parts)
	case Product:
		for _, n := range k.parts {
			r.remove = append(r.remove, only{n})
		}
	case Documentation:
		r.whole = false
		r.documented = true
		return r.write(r.find(body))
	}
	root := r.narrow(body, 85)
	for root != body && !dom.Holds(root, atom.H1) {
		root = root.Parent
	}
	return r.write([]*html.Node{root})
}

// topics returns the first post of a forum's page where it is no sibling of the answers: the prose before them that is next to
// them, or to what is around them.
func (r *reader) topics(body *html.Node, posts []*html.Node) (all []*html.Node) {
	for n := posts[0]; n != body && n != nil && len(all) == 0; n = n.Parent {
		for b := n.PrevSibling; b != nil; b = b.PrevSibling {
			if r.proseWidth[b] >= minArticle/2 && b.DataAtom != atom.Header && !r.isClutter(b) {
				all = append(all, b)
			}
		}
	}
	slices.Reverse(all)
	return all
}

// only matches one element.
type only struct{ n *html.Node }

// Match implements cascadia.Matcher.
func (o only) Match(n *html.Node) bool { return n == o.n }
