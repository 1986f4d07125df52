// Package tree reads an HTML page into the nodes of golang.org/x/net/html: the same tree as
// html.Parse, in less than half the time. It has the rules for what pages have, and leaves a page
// that needs others (frames, templates, text in a table outside its cells) to html.Parse. It is pure.
package tree

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Parse reads a page. The nodes' texts are parts of page, which stays in memory as long as they do.
// The error is that of html.Parse: elements nested over 512 deep.
func Parse(page string) (*html.Node, error) {
	if root := quick(page); root != nil {
		return root, nil
	}
	return html.Parse(strings.NewReader(page))
}

// maxDepth is html.Parse's limit of open elements.
const maxDepth = 512

// builder makes a tree from tokens, by the rules of the HTML standard's section on tree
// construction as html.Parse has them. What it calls odd it leaves to html.Parse.
type builder struct {
	tokens

	doc     *html.Node
	open    []entry
	formats []*html.Node // the active formatting elements; nil is a marker
	head    *html.Node
	form    *html.Node
	mode    mode
	quirks  bool
	texts   map[*html.Node][]byte // of text nodes that were put together from several tokens
	nodes   []html.Node           // to be used
}

// entry is an open element.
type entry struct {
	node *html.Node
	el   *element
}

type mode uint8

const (
	initial mode = iota
	beforeHTML
	beforeHead
	inHead
	afterHead
	inBody
	inTable
	inCaption
	inColumns
	inTableBody
	inRow
	inCell
	afterBody
	afterAfterBody
)

// quick returns nil for a page that is odd.
func quick(page string) *html.Node {
	if strings.IndexByte(page, 0) >= 0 {
		return nil
	}
	if strings.IndexByte(page, '\r') >= 0 {
		page = strings.ReplaceAll(strings.ReplaceAll(page, "\r\n", "\n"), "\r", "\n")
	}
	b := builder{tokens: tokens{page: page}, doc: &html.Node{Type: html.DocumentNode}, open: make([]entry, 0, 64)}
	for b.next() {
		b.token()
		if b.odd {
			return nil
		}
	}
	if b.end(); b.odd {
		return nil
	}
	for n, text := range b.texts {
		n.Data = string(text)
	}
	return b.doc
}

// token handles a token in one mode after another, until one has consumed it.
func (b *builder) token() {
	for done := false; !done && !b.odd; {
		if b.inForeign() {
			done = b.inForeignContent()
		} else if !b.odd {
			done = b.step()
		}
	}
}

func (b *builder) step() bool {
	switch b.mode {
	case initial:
		return b.initial()
	case beforeHTML:
		return b.beforeHTML()
	case beforeHead:
		return b.beforeHead()
	case inHead:
		return b.inHead()
	case afterHead:
		return b.afterHead()
	case inBody:
		return b.inBody()
	case inTable:
		return b.inTable()
	case inCaption:
		return b.inCaption()
	case inColumns:
		return b.inColumns()
	case inTableBody:
		return b.inTableBody()
	case inRow:
		return b.inRow()
	case inCell:
		return b.inCell()
	case afterBody:
		return b.afterBody()
	default:
		return b.afterAfterBody()
	}
}

// end makes the elements that each page has.
func (b *builder) end() {
	if b.mode < inBody {
		b.kind, b.el = endTag, elementOf["body"] // it makes them and adds nothing
		b.token()
	}
}

// implied handles a tag that the page does not have.
func (b *builder) implied(kind kind, el *element) {
	k, e, a := b.kind, b.el, b.attr
	b.kind, b.el, b.attr = kind, el, nil
	b.token()
	b.kind, b.el, b.attr = k, e, a
}

func (b *builder) top() *html.Node {
	if n := len(b.open); n > 0 {
		return b.open[n-1].node
	}
	return b.doc
}

// topElement is that of the top; every mode that asks has open elements.
func (b *builder) topElement() *element { return b.open[len(b.open)-1].el }

func (b *builder) node() *html.Node {
	if len(b.nodes) == 0 {
		b.nodes = make([]html.Node, 128)
	}
	n := &b.nodes[0]
	b.nodes = b.nodes[1:]
	return n
}

// appendTo is parent.AppendChild(n), for a node that is new.
func appendTo(parent, n *html.Node) {
	last := parent.LastChild
	if last != nil {
		last.NextSibling = n
	} else {
		parent.FirstChild = n
	}
	parent.LastChild = n
	n.Parent, n.PrevSibling = parent, last
}

// add adds the element of the token, and leaves it open.
func (b *builder) add() *html.Node {
	n := b.node()
	n.Type, n.DataAtom, n.Data, n.Attr = html.ElementNode, b.el.atom, b.el.name, b.attr
	b.push(n, b.el)
	return n
}

func (b *builder) push(n *html.Node, el *element) {
	appendTo(b.top(), n)
	b.open = append(b.open, entry{n, el})
	if len(b.open) > maxDepth {
		b.odd = true
	}
}

func (b *builder) pop() { b.open = b.open[:len(b.open)-1] }

// addVoid adds an element that has no content.
func (b *builder) addVoid() {
	b.add()
	b.pop()
}

// addRaw adds an element whose content is text, whatever it looks like.
func (b *builder) addRaw() {
	el := b.el
	b.add()
	text, ok := b.rawText(el)
	if !ok {
		b.odd = true
		return
	}
	if el.atom == atom.Textarea {
		text = withoutLineEnd(text)
	}
	if text != "" {
		b.addText(text)
	}
	b.pop()
}

// withoutLineEnd is a text without the line end that it begins with.
func withoutLineEnd(s string) string {
	return strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
}

func (b *builder) addText(text string) {
	top := b.top()
	if last := top.LastChild; last != nil && last.Type == html.TextNode {
		if b.texts == nil {
			b.texts = map[*html.Node][]byte{}
		}
		all, known := b.texts[last]
		if !known {
			all = []byte(last.Data)
		}
		b.texts[last] = append(all, text...)
		return
	}
	n := b.node()
	n.Type, n.Data = html.TextNode, text
	appendTo(top, n)
}

func (b *builder) addComment(parent *html.Node) {
	n := b.node()
	n.Type, n.Data = html.CommentNode, b.text
	appendTo(parent, n)
}

// within returns where the innermost open element is that has one of these kinds, and -1 where an
// element that ends the scope is nearer.
func (b *builder) within(which, scope flags) int {
	for i := len(b.open) - 1; i >= 0; i-- {
		if is := b.open[i].el.is; is&which != 0 {
			return i
		} else if is&scope != 0 {
			return -1
		}
	}
	return -1
}

// find is within for one element.
func (b *builder) find(el *element, scope flags) int {
	for i := len(b.open) - 1; i >= 0; i-- {
		if e := b.open[i].el; e == el {
			return i
		} else if e.is&scope != 0 {
			return -1
		}
	}
	return -1
}

// close ends all elements from the i-th on; a negative i is none.
func (b *builder) close(i int) bool {
	if i < 0 {
		return false
	}
	b.open = b.open[:i]
	return true
}

func (b *builder) closeP() { b.close(b.within(isP, endsButtonScope)) }

// endImplied ends the innermost elements that need no end tag, up to one that is not of them or
// that is except.
func (b *builder) endImplied(except *element) {
	i := len(b.open)
	for i > 0 && b.open[i-1].el.is&impliedEnd != 0 && b.open[i-1].el != except {
		i--
	}
	b.open = b.open[:i]
}

// index is where an element is open, -1 for nowhere.
func (b *builder) index(n *html.Node) int {
	for i := len(b.open) - 1; i >= 0; i-- {
		if b.open[i].node == n {
			return i
		}
	}
	return -1
}

func (b *builder) remove(n *html.Node) {
	if i := b.index(n); i >= 0 {
		b.open = append(b.open[:i], b.open[i+1:]...)
	}
}
