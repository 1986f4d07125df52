package content

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// The classes of lists of tabs, of tabs and of their panels, where no role says what they are: in the pages of MkDocs, Antora,
// VitePress and Bootstrap.
var (
	tabLists  = dom.Set("tabbed-labels tablist tabs nav-tabs")
	tabItems  = dom.Set("tab")
	tabPanels = dom.Set("tabbed-block tabpanel tab-pane")
)

func listsTabs(n *html.Node) bool {
	return dom.Attr(n, "role") == "tablist" || dom.HasClass(n, tabLists) && dom.Any(n, isTab)
}

func isTab(n *html.Node) bool {
	toggle := dom.Attr(n, "data-toggle") + dom.Attr(n, "data-bs-toggle")
	return dom.Attr(n, "role") == "tab" || n.DataAtom == atom.Label || toggle == "tab" || toggle == "pill" || n.DataAtom == atom.Li && dom.HasClass(n, tabItems)
}

func isPanel(n *html.Node) bool {
	return dom.Attr(n, "role") == "tabpanel" || dom.HasClass(n, tabPanels)
}

// opensNext reports whether a label is the tab of the panel after it, as a radio button before it shows.
func opensNext(label *html.Node) bool {
	p := label.PrevSibling
	for p != nil && p.Type == html.TextNode && strings.TrimSpace(p.Data) == "" {
		p = p.PrevSibling
	}
	next := after(label)
	return p != nil && p.DataAtom == atom.Input && dom.Attr(p, "type") == "radio" && next != nil && (next.DataAtom == atom.Div || next.DataAtom == atom.Section)
}

// tabs finds the panels of a list of tabs, so that each begins with the label of its tab. The panels follow the list, up to the next one,
// or are the blocks of the element after it. A single panel is that of the selected tab, unless all tabs show parts of it. It reports
// whether n is such a list, with as many panels as tabs.
func (w *writer) tabs(n *html.Node) bool {
	if !listsTabs(n) {
		return false
	}
	var labels, selected, others []string // others are the panels of the tabs that are not selected
	for c := range n.Descendants() {
		if !isTab(c) || dom.Any(c, isTab) {
			continue
		}
		labels = append(labels, line(c))
		if dom.Attr(c, "aria-selected") == "true" {
			selected = append(selected, line(c))
		} else {
			others = append(others, dom.Attr(c, "aria-controls"))
		}
	}
	var p panels
	for around, up := n, 0; around != nil && up < 3 && p.found == nil && !p.ended; around, up = around.Parent, up+1 {
		for s := around.NextSibling; s != nil; s = s.NextSibling {
			p.add(s)
		}
	}
	if next := after(n); p.found == nil && next != nil && dom.Holds(n, atom.Input) {
		for c := next.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode {
				p.found = append(p.found, c)
			}
		}
	}
	if len(p.found) == 1 && len(selected) == 1 && (dom.Attr(p.found[0], "id") == "" || !slices.Contains(others, dom.Attr(p.found[0], "id"))) {
		labels = selected
	}
	if len(labels) == 0 || len(p.found) != len(labels) {
		return false
	}
	if w.labels == nil {
		w.labels = make(map[*html.Node]string)
	}
	for i, panel := range p.found {
		w.labels[panel] = labels[i]
	}
	return true
}

// panels are the panels of tabs in a part of a page, up to the next list of tabs.
type panels struct {
	found []*html.Node
	ended bool
}

func (p *panels) add(n *html.Node) {
	switch {
	case p.ended || n.Type != html.ElementNode:
	case isPanel(n):
		p.found = append(p.found, n)
	case listsTabs(n):
		p.ended = true
	default:
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			p.add(c)
		}
	}
}

// label writes the label of a panel's tab.
func (w *writer) label(panel *html.Node) {
	if text := w.labels[panel]; text != "" {
		w.block()
		w.marked(&html.Node{FirstChild: &html.Node{Type: html.TextNode, Data: text}}, "**")
		w.block()
	}
}
