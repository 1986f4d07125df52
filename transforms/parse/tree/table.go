package tree

import "strings"

func (b *builder) inTable() bool {
	switch b.kind {
	case text:
		if strings.Trim(b.text, whitespace) == "" && b.topElement().is&(isTable|isRows|isRow) != 0 {
			b.addText(b.text)
			return true
		}
	case startTag:
		return b.startInTable()
	case endTag:
		switch {
		case b.el.is&isTable != 0:
			if b.close(b.within(isTable, endsRows)) {
				b.resetMode()
			}
			return true
		case b.ofTable(), b.el == bodyElement, b.el == htmlElement:
			return true
		}
	case comment:
		b.addComment(b.top())
		return true
	case doctype:
		return true
	}
	b.odd = true // it belongs before the table
	return true
}

// ofTable reports whether a tag is of a part of a table.
func (b *builder) ofTable() bool {
	return b.el.is&(isRow|isRows|isCell|isCaption) != 0 || b.el.name == "col" || b.el.name == "colgroup"
}

func (b *builder) startInTable() bool {
	switch b.el.name {
	case "caption":
		b.backTo(endsRows)
		b.formats = append(b.formats, nil)
		b.add()
		b.mode = inCaption
	case "colgroup":
		b.backTo(endsRows)
		b.add()
		b.mode = inColumns
	case "col":
		b.implied(startTag, elementOf["colgroup"])
		return false
	case "tbody", "tfoot", "thead":
		b.backTo(endsRows)
		b.add()
		b.mode = inTableBody
	case "td", "th", "tr":
		b.implied(startTag, elementOf["tbody"])
		return false
	case "table":
		if b.close(b.within(isTable, endsRows)) {
			b.resetMode()
			return false
		}
	case "style", "script":
		b.addOfHead()
	case "input":
		if !b.hidden() {
			b.odd = true
			break
		}
		b.addVoid()
	case "form":
		if b.form == nil {
			b.form = b.add()
			b.pop()
		}
	default:
		b.odd = true
	}
	return true
}

func (b *builder) hidden() bool {
	for _, a := range b.attr {
		if a.Key == "type" && strings.EqualFold(a.Val, "hidden") {
			return true
		}
	}
	return false
}

// backTo ends the elements within the innermost one of a kind.
func (b *builder) backTo(which flags) {
	for i := len(b.open) - 1; i >= 0; i-- {
		if b.open[i].el.is&which != 0 {
			b.open = b.open[:i+1]
			return
		}
	}
}

// resetMode finds the mode from the open elements.
func (b *builder) resetMode() {
	for i := len(b.open) - 1; i >= 0; i-- {
		switch is := b.open[i].el.is; {
		case is&isCell != 0:
			b.mode = inCell
		case is&isRow != 0:
			b.mode = inRow
		case is&isRows != 0:
			b.mode = inTableBody
		case is&isCaption != 0:
			b.mode = inCaption
		case is&isTable != 0:
			b.mode = inTable
		case is&isBody != 0:
			b.mode = inBody
		case is&isHTML != 0:
			b.mode = afterHead
		default:
			continue
		}
		return
	}
}

func (b *builder) inCaption() bool {
	if b.kind == startTag && b.ofTable() && b.el.name != "th" || b.kind == endTag && b.el.is&isTable != 0 {
		if !b.close(b.within(isCaption, endsRows)) {
			return true
		}
		b.toMarker()
		b.mode = inTable
		return false
	}
	if b.kind == endTag && b.el.is&isCaption != 0 {
		if b.close(b.within(isCaption, endsRows)) {
			b.toMarker()
			b.mode = inTable
		}
		return true
	}
	if b.kind == endTag && (b.ofTable() || b.el == bodyElement || b.el == htmlElement) {
		return true
	}
	return b.inBody()
}

func (b *builder) inColumns() bool {
	switch b.kind {
	case text:
		if b.leadingSpace() {
			return true
		}
	case comment:
		b.addComment(b.top())
		return true
	case doctype:
		return true
	case startTag:
		switch b.el.name {
		case "html":
			return b.inBody()
		case "col":
			b.addVoid()
			return true
		case "template":
			b.odd = true
			return true
		}
	case endTag:
		switch b.el.name {
		case "colgroup":
			if b.topElement().name == "colgroup" {
				b.pop()
				b.mode = inTable
			}
			return true
		case "col", "template":
			return true
		}
	}
	if b.topElement().name != "colgroup" {
		return true
	}
	b.pop()
	b.mode = inTable
	return false
}

func (b *builder) inTableBody() bool {
	switch b.kind {
	case startTag:
		switch {
		case b.el.is&isRow != 0:
			b.backTo(isRows | isHTML)
			b.add()
			b.mode = inRow
			return true
		case b.el.is&isCell != 0:
			b.implied(startTag, elementOf["tr"])
			return false
		case b.ofTable():
			return b.leaveRows()
		}
	case endTag:
		switch {
		case b.el.is&isRows != 0:
			if b.find(b.el, endsRows) >= 0 {
				b.backTo(isRows)
				b.pop()
				b.mode = inTable
			}
			return true
		case b.el.is&isTable != 0:
			return b.leaveRows()
		case b.ofTable(), b.el == bodyElement, b.el == htmlElement:
			return true
		}
	}
	return b.inTable()
}

// leaveRows ends a tbody, and leaves the token to the table.
func (b *builder) leaveRows() bool {
	if b.close(b.within(isRows, endsRows)) {
		b.mode = inTable
		return false
	}
	return true
}

func (b *builder) inRow() bool {
	switch b.kind {
	case startTag:
		switch {
		case b.el.is&isCell != 0:
			b.backTo(isRow | isHTML)
			b.add()
			b.formats = append(b.formats, nil)
			b.mode = inCell
			return true
		case b.ofTable():
			return b.leaveRow()
		}
	case endTag:
		switch {
		case b.el.is&isRow != 0:
			b.leaveRow()
			return true
		case b.el.is&isTable != 0:
			return b.leaveRow()
		case b.el.is&isRows != 0:
			return b.find(b.el, endsRows) < 0 || b.leaveRow()
		case b.ofTable(), b.el == bodyElement, b.el == htmlElement:
			return true
		}
	}
	return b.inTable()
}

// leaveRow ends a row, and leaves the token to the rows.
func (b *builder) leaveRow() bool {
	if !b.close(b.within(isRow, endsRows)) {
		return true
	}
	b.mode = inTableBody
	return false
}

func (b *builder) inCell() bool {
	switch b.kind {
	case startTag:
		if b.ofTable() {
			return b.leaveCell()
		}
	case endTag:
		switch {
		case b.el.is&isCell != 0:
			if b.close(b.find(b.el, endsRows)) {
				b.toMarker()
				b.mode = inRow
			}
			return true
		case b.el.is&(isTable|isRows|isRow) != 0:
			if b.find(b.el, endsRows) < 0 {
				return true
			}
			if b.close(b.within(isCell, endsRows)) {
				b.toMarker()
			}
			b.mode = inRow
			return false
		case b.ofTable(), b.el == bodyElement, b.el == htmlElement:
			return true
		}
	}
	return b.inBody()
}

// leaveCell ends a cell, and leaves the token to the row.
func (b *builder) leaveCell() bool {
	if !b.close(b.within(isCell, endsRows)) {
		return true
	}
	b.toMarker()
	b.mode = inRow
	return false
}
