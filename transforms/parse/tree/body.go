package tree

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func (b *builder) inBody() bool {
	switch b.kind {
	case text:
		b.textInBody()
	case startTag:
		return b.startInBody()
	case endTag:
		return b.endInBody()
	case comment:
		b.addComment(b.top())
	}
	return true
}

func (b *builder) textInBody() {
	s := b.text
	if top := b.top(); (top.DataAtom == atom.Pre || top.DataAtom == atom.Listing) && top.FirstChild == nil {
		s = withoutLineEnd(s)
	}
	if s != "" {
		b.reopen()
		b.addText(s)
	}
}

func (b *builder) startInBody() bool {
	switch b.el.start {
	case other:
		b.reopen()
		b.add()
	case block, preformatted:
		b.closeP()
		b.add()
	case heading:
		b.closeP()
		if b.topElement().is&isHeading != 0 {
			b.pop()
		}
		b.add()
	case item:
		b.addItem(isLi)
	case definition:
		b.addItem(isDd)
	case link, formatting, nobr:
		b.startFormatting()
	case voidElement:
		b.reopen()
		b.addVoid()
	case plainVoid:
		b.addVoid()
	case rawElement:
		b.addRaw()
	case rawBlock:
		b.closeP()
		b.reopen()
		b.addRaw()
	case ofHead:
		b.addOfHead()
	case table:
		if !b.quirks {
			b.closeP()
		}
		b.add()
		b.mode = inTable
	case image:
		b.el = imgElement
		return false
	case odd:
		b.odd = true
	case foreign:
		b.reopen()
		b.addForeign(b.el.name)
	case root, body:
		b.moreAttributes()
	case ignored:
	default:
		b.startControl()
	}
	return true
}

// startControl is startInBody for forms and what is rarer.
func (b *builder) startControl() {
	switch b.el.start {
	case formRule:
		if b.form == nil {
			b.closeP()
			b.form = b.add()
		}
	case button:
		if i := b.within(isButton, endsScope); i >= 0 {
			b.endImplied(nil)
			b.close(b.within(isButton, endsScope))
		}
		b.reopen()
		b.add()
	case input:
		b.close(b.within(isSelect, endsScope))
		b.reopen()
		b.addVoid()
	case ruler:
		if b.within(isP, endsButtonScope) >= 0 {
			b.endImplied(pElement)
			b.close(b.within(isP, endsScope))
		}
		if b.within(isSelect, endsScope) >= 0 {
			b.endImplied(nil)
		}
		b.addVoid()
	case selects:
		if !b.close(b.within(isSelect, endsScope)) {
			b.reopen()
			b.add()
		}
	case option, group:
		if b.within(isSelect, endsScope) >= 0 {
			var except *element
			if b.el.start == option {
				except = elementOf["optgroup"]
			}
			b.endImplied(except)
		} else if b.topElement().is&isOption != 0 {
			b.pop()
		}
		b.reopen()
		b.add()
	case ruby, rubyText:
		if b.within(isRuby, endsScope) >= 0 {
			var except *element
			if b.el.start == rubyText {
				except = elementOf["rtc"]
			}
			b.endImplied(except)
		}
		b.add()
	case marker:
		b.reopen()
		b.add()
		b.formats = append(b.formats, nil)
	}
}

// addItem adds an item of a list; which are the items that it ends.
func (b *builder) addItem(which flags) {
	for i := len(b.open) - 1; i >= 0; i-- {
		is := b.open[i].el.is
		if is&which != 0 {
			b.close(i)
			break
		}
		if is&special != 0 && is&plainBlock == 0 {
			break
		}
	}
	b.closeP()
	b.add()
}

// moreAttributes gives the html or body element attributes that it does not have yet.
func (b *builder) moreAttributes() {
	n := b.open[0].node
	if b.el == bodyElement {
		if len(b.open) < 2 || b.open[1].el != bodyElement {
			return
		}
		n = b.open[1].node
	}
	for _, a := range b.attr {
		has := false
		for _, have := range n.Attr {
			has = has || have.Key == a.Key
		}
		if !has {
			n.Attr = append(n.Attr, a)
		}
	}
}

func (b *builder) endInBody() bool {
	switch b.el.end {
	case other:
		b.endOther()
	case block:
		if b.find(b.el, endsScope) >= 0 {
			b.endImplied(nil)
			b.close(b.find(b.el, endsScope))
		}
	case paragraph:
		if b.within(isP, endsButtonScope) < 0 {
			b.implied(startTag, pElement)
		}
		b.closeP()
	case item:
		b.close(b.within(isLi, endsScope|isList))
	case definition:
		b.close(b.find(b.el, endsScope))
	case heading:
		b.close(b.within(isHeading, endsScope))
	case formatting:
		b.endFormatting(b.el)
	case marker:
		if b.close(b.find(b.el, endsScope)) {
			b.toMarker()
		}
	case formRule:
		b.endForm()
	case lineBreak:
		b.kind, b.attr = startTag, nil
		return false
	case root:
		if b.within(isBody, endsScope) >= 0 {
			b.mode = afterBody
			return false
		}
	case body:
		if b.within(isBody, endsScope) >= 0 {
			b.mode = afterBody
		}
	}
	return true
}

func (b *builder) endForm() {
	form := b.form
	b.form = nil
	i := b.find(elementOf["form"], endsScope)
	if form == nil || i < 0 || b.open[i].node != form {
		return
	}
	b.endImplied(nil)
	b.remove(form)
}

// endOther ends the innermost element of the name, unless a special one is nearer.
func (b *builder) endOther() {
	for i := len(b.open) - 1; i >= 0; i-- {
		if el := b.open[i].el; el == b.el || el.name == b.el.name {
			b.close(i)
			return
		} else if el.is&special != 0 {
			return
		}
	}
}

// reopen opens the formatting elements again that were ended by others.
func (b *builder) reopen() {
	last := len(b.formats) - 1
	if last < 0 || b.formats[last] == nil || b.index(b.formats[last]) >= 0 {
		return
	}
	i := last
	for i > 0 && b.formats[i-1] != nil && b.index(b.formats[i-1]) < 0 {
		i--
	}
	for ; i <= last && !b.odd; i++ {
		b.formats[i] = b.addCopy(b.formats[i])
	}
}

// addCopy adds an element like another, and leaves it open.
func (b *builder) addCopy(of *html.Node) *html.Node {
	n := b.node()
	n.Type, n.DataAtom, n.Data = of.Type, of.DataAtom, of.Data
	n.Attr = append(make([]html.Attribute, 0, len(of.Attr)), of.Attr...)
	b.push(n, elementOf[of.Data])
	return n
}
