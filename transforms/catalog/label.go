package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// line is a label and what stands under it, such as an item of a list or a row of a table.
type line struct {
	label string       // folded
	value []*html.Node // what stands under it
	colon bool         // label and value are one text, with a colon between them
}

// errLabels means that a page says different things under the labels of one field.
var errLabels = errors.New("different values stand under its labels: use many, or choose fewer lines by detail.lines or fewer labels")

// foldLabel returns a label as labels are compared: without white space and a colon around it, and in small letters.
func foldLabel(s string) string {
	return strings.ToLower(strings.Trim(untrusted.Line(s, maxField), " :："))
}

// compileLabels compiles a field's Select, and its labels if it has some.
func (r *reader) compileLabels(where string, f Field, s Select, format string) (found finder, err error) {
	if f.Label == nil {
		return s.compile(where, format)
	}
	where += ".label"
	switch {
	case f.From != fromPage || format != formatHTML || f.Path != "":
		return found, wrong(where, "%s: only an HTML page of a product has labels, without from and path", where)
	case r.lines == nil:
		return found, wrong(where, "%s: it needs detail.lines, the selector of the lines in which labels and values stand", where)
	}
	if found, err = s.compile(strings.TrimSuffix(where, ".label"), format); err != nil {
		return found, err
	}
	if f.Selector == "" {
		found.group = nil // it has the label alone
	}
	found.lines = r.lines
	for _, name := range f.Label {
		folded := foldLabel(name)
		if folded == "" || slices.Contains(found.labels, folded) {
			return found, wrong(where, "%s: %q is empty or there twice, case and colon apart: leave it out", where, name)
		}
		found.labels = append(found.labels, folded)
	}
	if found.labels == nil {
		return found, wrong(where, "%s: there is none; name at least one", where)
	}
	return found, nil
}

// String returns what a person looks for in the page.
func (f Field) String() string {
	s := f.Select.String()
	if f.Label == nil {
		return s
	}
	return strings.TrimSuffix("label "+strings.Join(f.Label, " | ")+", else "+s, ", else ")
}

// linesOf returns the lines of a page that a finder selects; of one page all finders are the same.
func (p *page) linesOf(f *finder) []line {
	if p.lines == nil {
		p.lines = []line{}
		for _, n := range f.matches(p) {
			p.lines = append(p.lines, linesIn(n)...)
		}
	}
	return p.lines
}

// linesIn returns the lines of an element: of a dt one with each dd after it, of a table's row
// its first two cells, and else the first element and what follows it, or what stands around a colon.
func linesIn(n *html.Node) (out []line) {
	in := partsOf(n, n.DataAtom == atom.Tr)
	for n.DataAtom != atom.Dt && len(in) == 1 && in[0].Type == html.ElementNode {
		n = in[0]
		in = partsOf(n, false)
	}
	switch {
	case n.DataAtom == atom.Dt:
		for at := n.NextSibling; at != nil && at.DataAtom != atom.Dt; at = at.NextSibling {
			if at.DataAtom == atom.Dd {
				out = append(out, line{label: labelOf(n), value: []*html.Node{at}})
			}
		}
	case len(in) == 0:
	case in[0].Type == html.TextNode:
		label, _, found := strings.Cut(finder{}.textOf(n), ":")
		if found {
			out = append(out, line{foldLabel(label), []*html.Node{n}, true})
		}
	case n.DataAtom == atom.Tr:
		out = append(out, line{label: labelOf(in[0]), value: in[1:2]})
	default:
		out = append(out, line{label: labelOf(in[0]), value: in[1:]})
	}
	return out
}

func labelOf(n *html.Node) string { return foldLabel(finder{}.textOf(n)) }

// partsOf returns the elements and texts in an element, without white space; of a table's row its cells.
func partsOf(n *html.Node, row bool) (out []*html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		text := c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" && !row
		if text || c.Type == html.ElementNode && (row || strings.TrimSpace(finder{}.textOf(c)) != "") {
			out = append(out, c)
		}
	}
	return out
}

// textOf returns the text of elements as it is.
func (f finder) textOf(nodes ...*html.Node) string {
	c := collector{apart: f.apart}
	for _, n := range nodes {
		c.add(n)
	}
	return c.String()
}

// under returns the texts under the finder's labels; nil: no line of the page has one of them.
func (f finder) under(p *page) (all []scalar) {
	if f.lines == nil {
		return nil
	}
	for _, l := range p.linesOf(f.lines) {
		if !slices.Contains(f.labels, l.label) {
			continue
		}
		text := f.textOf(l.value...)
		if l.colon {
			_, text, _ = strings.Cut(text, ":")
		}
		if f.attribute != "" {
			text = firstAttribute(l.value, f.attribute)
		}
		if s, ok := f.clean(strings.TrimLeft(text, " \t\r\n:：")); ok {
			all = append(all, scalar{text: s})
		}
	}
	return all
}

// firstAttribute returns the first value of an attribute in elements.
func firstAttribute(nodes []*html.Node, name string) string {
	for _, n := range nodes {
		for _, in := range pageOf(n).nodes {
			if v := attribute(in, name); v != "" {
				return v
			}
		}
	}
	return ""
}

// same returns the value that all texts under a field's labels have.
func (k kind) same(under []scalar, base *url.URL) (v any, err error) {
	for i, s := range under {
		other, err := k.typed(s, base)
		if err != nil {
			return nil, err
		}
		if i > 0 && !reflect.DeepEqual(v, other) {
			return nil, fmt.Errorf("%w: %v, %v", errLabels, v, other)
		}
		v = other
	}
	return v, nil
}

// missingLine says why a page has no line with the finder's labels, and which labels it has.
func (f finder) missingLine(p *page) (why string, near []string) {
	for _, l := range p.linesOf(f.lines) {
		if slices.Contains(f.labels, l.label) {
			return "the line with its label has no such text", nil
		}
		near = append(near, untrusted.Line("label "+l.label, maxShown))
	}
	if near == nil {
		return "no element matches detail.lines", nil
	}
	return "no line has its label", near
}
