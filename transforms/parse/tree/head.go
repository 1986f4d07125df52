package tree

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	htmlElement, headElement, bodyElement = elementOf["html"], elementOf["head"], elementOf["body"]
	pElement, imgElement                  = elementOf["p"], elementOf["img"]
)

// makesPage reports whether an end tag makes the elements that each page has, where other end tags
// do nothing.
func makesPage(el *element) bool {
	return el.end == root || el.end == body || el.end == lineBreak
}

func (b *builder) initial() bool {
	switch b.kind {
	case text:
		if b.text = strings.TrimLeft(b.text, whitespace); b.text == "" {
			return true
		}
	case comment:
		b.addComment(b.doc)
		return true
	case doctype:
		b.addDoctype()
		b.mode = beforeHTML
		return true
	}
	b.quirks = true
	b.mode = beforeHTML
	return false
}

// addDoctype asks html.Parse for the node, and for quirks: then a paragraph has the table.
func (b *builder) addDoctype() {
	n := b.node()
	appendTo(b.doc, n)
	n.Type, n.Data = html.DoctypeNode, "html"
	if b.text == "html" {
		return
	}
	doc, err := html.Parse(strings.NewReader("<!doctype " + b.text + "><p><table>"))
	if err != nil || doc.FirstChild == nil || doc.FirstChild.Type != html.DoctypeNode {
		b.odd = true
		return
	}
	n.Data, n.Attr = doc.FirstChild.Data, doc.FirstChild.Attr
	for d := range doc.Descendants() {
		if d.DataAtom == atom.Table {
			b.quirks = d.Parent.DataAtom == atom.P
		}
	}
}

func (b *builder) beforeHTML() bool {
	switch b.kind {
	case doctype:
		return true
	case text:
		if b.text = strings.TrimLeft(b.text, whitespace); b.text == "" {
			return true
		}
	case startTag:
		if b.el.start == root {
			b.add()
			b.mode = beforeHead
			return true
		}
	case endTag:
		if b.el != headElement && !makesPage(b.el) {
			return true
		}
	case comment:
		b.addComment(b.doc)
		return true
	}
	b.implied(startTag, htmlElement)
	return false
}

func (b *builder) beforeHead() bool {
	switch b.kind {
	case doctype:
		return true
	case text:
		if b.text = strings.TrimLeft(b.text, whitespace); b.text == "" {
			return true
		}
	case startTag:
		switch b.el {
		case headElement:
			b.head = b.add()
			b.mode = inHead
			return true
		case htmlElement:
			return b.inBody()
		}
	case endTag:
		if b.el != headElement && !makesPage(b.el) {
			return true
		}
	case comment:
		b.addComment(b.top())
		return true
	}
	b.implied(startTag, headElement)
	return false
}

// leadingSpace adds the space that a text begins with, and reports whether that is all of it.
func (b *builder) leadingSpace() bool {
	rest := strings.TrimLeft(b.text, whitespace)
	if len(rest) < len(b.text) {
		b.addText(b.text[:len(b.text)-len(rest)])
		b.text = rest
	}
	return rest == ""
}

func (b *builder) inHead() bool {
	switch b.kind {
	case doctype:
		return true
	case text:
		if b.leadingSpace() {
			return true
		}
	case startTag:
		switch {
		case b.el == htmlElement:
			return b.inBody()
		case b.el == headElement:
			return true
		case b.el.is&inHeadToo != 0 || b.el.atom == atom.Noscript:
			b.addOfHead()
			return true
		}
	case endTag:
		if b.el == headElement {
			b.pop()
			b.mode = afterHead
			return true
		} else if !makesPage(b.el) {
			return true
		}
	case comment:
		b.addComment(b.top())
		return true
	}
	b.pop()
	b.mode = afterHead
	return false
}

// addOfHead adds an element that belongs in the head, wherever it is.
func (b *builder) addOfHead() {
	switch {
	case b.el.start == odd:
		b.odd = true
	case b.el.is&void != 0:
		b.addVoid()
	default:
		b.addRaw()
	}
}

func (b *builder) afterHead() bool {
	switch b.kind {
	case doctype:
		return true
	case text:
		if b.leadingSpace() {
			return true
		}
	case startTag:
		switch {
		case b.el == htmlElement:
			return b.inBody()
		case b.el == bodyElement:
			b.add()
			b.mode = inBody
			return true
		case b.el == headElement:
			return true
		case b.el.is&inHeadToo != 0:
			b.open = append(b.open, entry{b.head, headElement})
			b.addOfHead()
			b.remove(b.head)
			return true
		case b.el.start == odd:
			b.odd = true
			return true
		}
	case endTag:
		if !makesPage(b.el) {
			return true
		}
	case comment:
		b.addComment(b.top())
		return true
	}
	b.implied(startTag, bodyElement)
	return false
}

func (b *builder) afterBody() bool {
	switch b.kind {
	case text:
		if strings.Trim(b.text, whitespace) == "" {
			return b.inBody()
		}
	case startTag:
		if b.el == htmlElement {
			return b.inBody()
		}
	case endTag:
		if b.el == htmlElement {
			b.mode = afterAfterBody
			return true
		}
	case comment:
		b.addComment(b.open[0].node)
		return true
	}
	b.mode = inBody
	return false
}

func (b *builder) afterAfterBody() bool {
	switch b.kind {
	case text:
		if strings.Trim(b.text, whitespace) == "" {
			return b.inBody()
		}
	case startTag:
		if b.el == htmlElement {
			return b.inBody()
		}
	case comment:
		b.addComment(b.doc)
		return true
	case doctype:
		return b.inBody()
	}
	b.mode = inBody
	return false
}
