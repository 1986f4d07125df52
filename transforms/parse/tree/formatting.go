package tree

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func (b *builder) startFormatting() {
	switch b.el.start {
	case link:
		for i := len(b.formats) - 1; i >= 0 && b.formats[i] != nil; i-- {
			if n := b.formats[i]; n.DataAtom == atom.A {
				b.endFormatting(b.el)
				b.remove(n)
				b.forget(n)
				break
			}
		}
	case nobr:
		b.reopen()
		if b.within(isNobr, endsScope) >= 0 {
			b.endFormatting(b.el)
		}
	}
	b.reopen()
	n := b.add()
	// html.Parse sorts them too.
	slices.SortFunc(n.Attr, func(a, b html.Attribute) int { return strings.Compare(a.Key, b.Key) })
	same := 0
	for i := len(b.formats) - 1; i >= 0 && b.formats[i] != nil; i-- {
		if f := b.formats[i]; f.DataAtom == n.DataAtom && slices.Equal(f.Attr, n.Attr) {
			if same++; same >= 3 {
				b.formats = slices.Delete(b.formats, i, i+1)
			}
		}
	}
	b.formats = append(b.formats, n)
}

func (b *builder) forget(n *html.Node) {
	if i := slices.Index(b.formats, n); i >= 0 {
		b.formats = slices.Delete(b.formats, i, i+1)
	}
}

// toMarker removes the active formatting elements up to the last marker.
func (b *builder) toMarker() {
	for i := len(b.formats) - 1; i >= 0; i-- {
		if b.formats[i] == nil {
			b.formats = b.formats[:i]
			return
		}
	}
	b.odd = true
}

// endFormatting ends a formatting element. One with a block in it that is still open would have to
// be split.
func (b *builder) endFormatting(el *element) {
	top := b.open[len(b.open)-1]
	if top.el == el && !slices.Contains(b.formats, top.node) {
		b.pop()
		return
	}
	var n *html.Node
	for i := len(b.formats) - 1; i >= 0 && b.formats[i] != nil; i-- {
		if b.formats[i].DataAtom == el.atom {
			n = b.formats[i]
			break
		}
	}
	if n == nil {
		was := b.el
		b.el = el
		b.endOther()
		b.el = was
		return
	}
	at := b.index(n)
	if at < 0 {
		b.forget(n)
		return
	}
	if b.find(el, endsScope) < 0 {
		return
	}
	for _, e := range b.open[at:] {
		if e.el.is&special != 0 {
			b.odd = true
			return
		}
	}
	b.close(at)
	b.forget(n)
}
