package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/jmespath-community/go-jmespath"
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

// parseJSON reads a document of JSON. Numbers are float64, so that expressions can compare
// them, or, where that would change their digits (long identifiers), json.Number.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("parsing JSON: there is more text after its end")
	}
	return exact(v), nil
}

func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = exact(e)
		}
	case []any:
		for i, e := range v {
			v[i] = exact(e)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && plainNumber(f) == v.String() {
			return f
		}
	}
	return v
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// query is a compiled JMESPath expression.
type query struct {
	compiled jmespath.JMESPath
	whole    jmespath.JMESPath // the same without its filters, nil if it has none
}

func compilePath(expression string) (p *query, err error) {
	defer recovered(&err)
	compiled, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	q := &query{compiled: compiled}
	if all := unfiltered(expression); all != expression {
		if whole, err := jmespath.Compile(all); err == nil {
			q.whole = whole
		}
	}
	return q, nil
}

// quotedTexts matches what an expression has between quotation marks.
var quotedTexts = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|` + "`(?:[^`\\\\]|\\\\.)*`")

// unfiltered returns an expression that finds all elements where the given one has a filter:
// products[*].url of products[?type=='tea'].url.
func unfiltered(expression string) string {
	plain := quotedTexts.ReplaceAllStringFunc(expression, func(s string) string { return strings.Repeat("_", len(s)) })
	var b strings.Builder
	for at := 0; at < len(plain); {
		if !strings.HasPrefix(plain[at:], "[?") {
			b.WriteByte(expression[at])
			at++
			continue
		}
		b.WriteString("[*]")
		for depth := 0; at < len(plain); {
			depth += strings.Count(plain[at:at+1], "[") - strings.Count(plain[at:at+1], "]")
			if at++; depth == 0 {
				break
			}
		}
	}
	return b.String()
}

// search returns what the expression finds; nil if that is nothing.
func (p *query) search(data any) (found any, err error) {
	defer recovered(&err)
	return p.compiled.Search(data)
}

// unfiltered returns the query without its filters.
func (p *query) unfiltered() *query {
	if p == nil || p.whole == nil {
		return p
	}
	return &query{compiled: p.whole}
}

// recovered makes an error of a panic of the library: some of its functions panic where
// an array has null.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("the expression cannot be evaluated: %v", v)
	}
}

// items returns what the expression finds: the elements of an array, or the one value.
func (p *query) items(data any) []any {
	found, err := p.search(data)
	if err != nil || found == nil {
		return nil
	}
	if all, ok := found.([]any); ok {
		return all
	}
	return []any{found}
}

// scalars returns the texts, numbers, true and false among the items; objects have no text.
func (p *query) scalars(data any) iter.Seq[scalar] {
	return func(yield func(scalar) bool) {
		for _, v := range p.items(data) {
			if !yieldScalars(v, yield) {
				return
			}
		}
	}
}

func yieldScalars(v any, yield func(scalar) bool) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !yieldScalars(e, yield) {
				return false
			}
		}
	case string:
		return yield(scalar{text: v})
	case float64:
		return yield(scalar{plainNumber(v), true})
	case json.Number:
		return yield(scalar{v.String(), true})
	case bool:
		return yield(scalar{text: strconv.FormatBool(v)})
	}
	return true
}
