package catalog

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html"
)

// frame is what the pages of a list have around their products: classes and ids of HTML,
// and the members of a JSON object. A page without products and without them is none of the
// list, such as a login, or an error with status 200. So it is not the end of the list.
type frame struct {
	mu     sync.Mutex
	common map[string]bool // what each page with products has; nil: there was none
	any    map[string]bool // what some page with products has: members, titles and logins
}

// What a page has that is none of a list whose pages do not have it: the title of a whole
// page where the others are parts of one, and a login.
const (
	hasTitle    = "<title>"
	hasPassword = "<input type=password>"
)

// fits reports whether a page may be one of the list, and remembers what one with products has.
func (f *frame) fits(format string, p listPage) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	telling := func(name string) bool { return format == formatJSON || name == hasTitle || name == hasPassword }
	if len(p.products) == 0 {
		if f.common == nil || p.none {
			return true
		}
		shared := 0
		for name := range p.around {
			if f.common[name] {
				shared++
			}
			if telling(name) && !f.any[name] {
				return false
			}
		}
		return format == formatJSON || 2*shared >= len(f.common)
	}
	if f.common == nil {
		f.common, f.any = p.around, map[string]bool{}
	}
	for name := range f.common {
		if !p.around[name] {
			delete(f.common, name)
		}
	}
	for name := range p.around {
		if telling(name) {
			f.any[name] = true
		}
	}
	return true
}

// around returns what a list page has besides its products.
func (r *reader) around(p *page) map[string]bool {
	names := map[string]bool{}
	if r.site.List.Format == formatJSON {
		object, _ := p.data.(map[string]any)
		for name := range object {
			names[name] = true
		}
		return names
	}
	products := container(cmp.Or(r.rows, r.product).matches(p))
	put := func(sign, name string) {
		if !strings.ContainsAny(name, "0123456789") { // one with a number is of one thing, such as a filter
			names[sign+name] = true
		}
	}
	var add func(parent *html.Node)
	add = func(parent *html.Node) {
		for n := range parent.ChildNodes() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "title" && n.Namespace == "" {
				names[hasTitle] = true
			}
			for _, a := range n.Attr {
				switch {
				case a.Key == "class":
					for class := range strings.FieldsSeq(a.Val) {
						put(".", class)
					}
				case a.Key == "id":
					put("#", a.Val)
				case a.Key == "type" && n.Data == "input" && strings.EqualFold(a.Val, "password"):
					names[hasPassword] = true
				}
			}
			if n != products {
				add(n)
			}
		}
	}
	add(p.root)
	return names
}

// container returns the innermost element that has all of the elements, nil for none.
func container(of []*html.Node) *html.Node {
	if len(of) == 0 {
		return nil
	}
	in := of[0]
	for _, n := range of[1:] {
		var above []*html.Node
		for at := n; at != nil; at = at.Parent {
			above = append(above, at)
		}
		for !slices.Contains(above, in) {
			in = in.Parent
		}
	}
	return in
}
