package catalog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// page is a parsed page. Its elements are found by class, because most selectors end with
// one, and to try each of them on each element costs more than to parse the page.
type page struct {
	nodes   []*html.Node     // in the page's order
	byClass map[string][]int // numbers of nodes
	lines   []line           // of linesOf
	data    any              // of JSON; it has no nodes
	root    *html.Node       // of an HTML page
	machine *page            // of described
	markup  map[string]*page // of fragment
}

func parsePage(text string) (*page, error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	p := newPage()
	p.root = root
	p.add(root)
	return p, nil
}

// fragment parses a text of JSON that is HTML, such as the rows that a list's button
// loads: rows of a table, too, are kept without their table. nil: it cannot be parsed.
func (p *page) fragment(text string) *page {
	in, had := p.markup[text]
	if had {
		return in
	}
	nodes, err := html.ParseFragment(strings.NewReader(text), &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template})
	if err == nil {
		in = newPage()
		in.root = &html.Node{Type: html.DocumentNode}
		for _, n := range nodes {
			in.root.AppendChild(n)
		}
		in.add(in.root)
	}
	if p.markup == nil {
		p.markup = map[string]*page{}
	}
	p.markup[text] = in
	return in
}

func newPage() *page { return &page{byClass: map[string][]int{}} }

// pageOf returns an element, with all that is in it, as a page.
func pageOf(n *html.Node) *page {
	p := newPage()
	p.addNode(n)
	return p
}

func (p *page) add(parent *html.Node) {
	for n := parent.FirstChild; n != nil; n = n.NextSibling {
		p.addNode(n)
	}
}

func (p *page) addNode(n *html.Node) {
	for _, a := range n.Attr {
		if a.Key == "class" {
			for class := range strings.FieldsSeq(a.Val) {
				p.byClass[class] = append(p.byClass[class], len(p.nodes))
			}
		}
	}
	p.nodes = append(p.nodes, n)
	p.add(n)
}

// candidates returns nodes in the page's order, among them all that f selects.
func (p *page) candidates(f finder) []*html.Node {
	if f.classes == nil {
		return p.nodes
	}
	var at []int
	for _, class := range f.classes {
		at = append(at, p.byClass[class]...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	nodes := make([]*html.Node, len(at))
	for i, n := range at {
		nodes[i] = p.nodes[n]
	}
	return nodes
}

// lastClass matches a selector that ends with a class, after nothing or what is not an
// escape.
var lastClass = regexp.MustCompile(`(?:^|[^\\])\.([A-Za-z_][A-Za-z0-9_-]*)$`)

// classesOf returns for each selector of a group a class, which every element has that the
// selector matches; nil if the classes are not known.
func classesOf(selector string, group cascadia.SelectorGroup) (classes []string) {
	parts := strings.Split(selector, ",")
	if len(parts) != len(group) {
		return nil
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		alone, err := cascadia.Parse(part)
		class := lastClass.FindStringSubmatch(part)
		if err != nil || class == nil || alone.String() != group[i].String() { // a comma was in a text
			return nil
		}
		classes = append(classes, class[1])
	}
	return classes
}
