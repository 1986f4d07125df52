package catalog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// page is a parsed page. Its elements are found by class, because most selectors end with
// one, and to try each of them on each element costs more than to parse the page.
type page struct {
	nodes   []*html.Node     // in the page's order
	byClass map[string][]int // numbers of nodes
}

func parsePage(text string) (*page, error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	p := &page{byClass: map[string][]int{}}
	p.add(root)
	return p, nil
}

func (p *page) add(parent *html.Node) {
	for n := parent.FirstChild; n != nil; n = n.NextSibling {
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

// classesOf returns a class for each selector of a group, which every element has that the
// selector matches; nil if that is not known.
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
