package content

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// table writes a table of plain cells as a GFM table, and any other table as text:
// a row with spanning cells on one line, and cells with blocks as these blocks.
func (w *writer) table(n *html.Node) {
	if w.cell || w.heading {
		w.space = true
		w.children(n)
		w.space = true
		return
	}
	t := scanTable(n)
	w.block()
	if t.caption != nil {
		w.element(t.caption)
	}
	switch {
	case len(t.rows) == 0:
	case w.notes > 0 && len(t.rows) == 1 && len(t.rows[0]) == 2 && dom.HasClass(t.rows[0][0], icons):
		if kind := icon(t.rows[0][0]); kind != "" && !w.kindTold {
			w.kind(kind)
		}
		w.children(t.rows[0][1])
	case t.numbered():
		w.children(t.rows[0][1])
	case t.width < 2 || dom.Attr(n, "role") == "presentation" && t.blocks:
		for _, row := range t.rows {
			for _, cell := range row {
				w.block()
				w.children(cell)
			}
		}
	case t.spans || t.blocks || t.width*len(t.rows) > 4*t.cells+maxPadding:
		w.flat(t)
	default:
		w.grid(t)
	}
	w.block()
}

// cellTable has a table's rows of cells, without those of tables in it.
type cellTable struct {
	caption *html.Node
	rows    [][]*html.Node
	head    bool // the first row is headings
	width   int
	cells   int
	spans   bool // a cell spans others
	blocks  bool // a cell has code, a table or a heading
}

// maxPadding bounds the missing cells of a grid's rows: one long row
// among many short ones would make it grow without bound.
const maxPadding = 1000

func scanTable(n *html.Node) *cellTable {
	t := new(cellTable)
	t.scan(n, false)
	return t
}

func (t *cellTable) scan(n *html.Node, head bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.DataAtom {
		case atom.Caption:
			t.caption = c
		case atom.Thead:
			t.scan(c, true)
		case atom.Tbody, atom.Tfoot:
			t.scan(c, false)
		case atom.Tr:
			t.row(c, head)
		}
	}
}

func (t *cellTable) row(tr *html.Node, head bool) {
	var row []*html.Node
	headings, text := 0, false
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		row = append(row, c)
		if c.DataAtom == atom.Th {
			headings++
		}
		t.spans = t.spans || span(c, "colspan") || span(c, "rowspan")
		blocks := hasBlocks(c)
		t.blocks = t.blocks || blocks
		text = text || blocks || dom.Any(c, func(d *html.Node) bool { return d.DataAtom == atom.Img || d.Type == html.TextNode && hasSigns(d.Data) })
	}
	if !text {
		return
	}
	if len(t.rows) == 0 {
		t.head = head || headings == len(row)
	}
	t.rows = append(t.rows, row)
	t.width = max(t.width, len(row))
	t.cells += len(row)
}

// hasBlocks reports whether a cell has code, a table or a heading.
func hasBlocks(cell *html.Node) bool {
	return dom.Any(cell, func(c *html.Node) bool { return c.DataAtom == atom.Pre || c.DataAtom == atom.Table || dom.IsHeading(c) })
}

// span reports whether a cell spans others: 0 is up to the end.
func span(n *html.Node, key string) bool {
	v := strings.TrimSpace(dom.Attr(n, key))
	return v != "" && v != "1"
}

// numbered reports whether a table is code next to its line numbers.
func (t *cellTable) numbered() bool {
	if len(t.rows) != 1 || len(t.rows[0]) != 2 {
		return false
	}
	numbers := line(t.rows[0][0])
	if numbers == "" || strings.Trim(numbers, "0123456789 ") != "" {
		return false
	}
	return dom.Holds(t.rows[0][1], atom.Pre)
}

func (w *writer) grid(t *cellTable) {
	if !t.head {
		w.row(nil, t.width)
		w.delimiter(t.width)
	}
	for i, row := range t.rows {
		w.row(row, t.width)
		if i == 0 && t.head {
			w.delimiter(t.width)
		}
	}
}

func (w *writer) row(cells []*html.Node, width int) {
	w.writePending()
	w.out = append(w.out, '|')
	for i := range width {
		w.out = append(w.out, ' ')
		if i < len(cells) {
			w.inCell(cells[i])
		}
		w.out = append(w.out, " |"...)
	}
	w.fresh = false
	w.gap = newLine
}

func (w *markdown) delimiter(width int) {
	w.writePending()
	w.out = append(append(w.out, '|'), strings.Repeat(" --- |", width)...)
	w.fresh = false
	w.gap = newLine
}

// inCell writes a cell's content on one line.
func (w *writer) inCell(n *html.Node) {
	if w.clutter.drops(n) {
		return
	}
	marks := w.marks
	w.marks = nil
	w.cell, w.fresh, w.space = true, true, false
	w.children(n)
	w.cell, w.space = false, false
	w.marks = marks
}

// flat writes a table that is no grid as text.
func (w *writer) flat(t *cellTable) {
	for _, row := range t.rows {
		if slices.ContainsFunc(row, hasBlocks) {
			for _, cell := range row {
				w.block()
				w.children(cell)
			}
			w.block()
			continue
		}
		w.writePending()
		for i, cell := range row {
			if i > 0 {
				w.out = append(w.out, " | "...)
			}
			w.opens = i == 0
			w.inCell(cell)
			w.opens = false
		}
		w.fresh = false
		w.gap = newLine
	}
}
