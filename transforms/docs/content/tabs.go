package content

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// In MkDocs' pages the labels of tabs and their panels are known by their classes alone.
var (
	tabLabels = words("tabbed-labels")
	tabPanels = words("tabbed-block")
)

func listsTabs(n *html.Node) bool {
	return attr(n, "role") == "tablist" || hasClass(n, tabLabels)
}

// tabs finds the panels of a list of tabs, so that each begins with the label of its tab:
// what a panel says is often true of what its tab names alone. The panels are those that
// follow the list, up to the next one. Where the page has one panel of several, it is that
// of the selected tab, unless all tabs show parts of it. It reports whether n is such a list, with as many panels as tabs.
func (w *writer) tabs(n *html.Node) bool {
	if !listsTabs(n) {
		return false
	}
	var labels, selected, others []string // others are the panels of the tabs that are not selected
	for c := range n.Descendants() {
		if attr(c, "role") != "tab" && c.DataAtom != atom.Label {
			continue
		}
		labels = append(labels, line(c))
		if attr(c, "aria-selected") == "true" {
			selected = append(selected, line(c))
		} else {
			others = append(others, attr(c, "aria-controls"))
		}
	}
	var p panels
	for around, up := n, 0; around != nil && up < 3 && p.found == nil && !p.ended; around, up = around.Parent, up+1 {
		for s := around.NextSibling; s != nil; s = s.NextSibling {
			p.add(s)
		}
	}
	if len(p.found) == 1 && len(selected) == 1 && (attr(p.found[0], "id") == "" || !slices.Contains(others, attr(p.found[0], "id"))) {
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
	case attr(n, "role") == "tabpanel", hasClass(n, tabPanels):
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
