package content

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// maxHref is the most bytes of a link's target that is written.
const maxHref = 2 << 10

// plainTarget escapes what would end a target in Markdown, or the cell of a table.
var plainTarget = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "|", "%7C", " ", "%20", "`", "%60", `\`, "%5C", "\n", "", "\t", "")

// absolute returns where a link leads as a target in Markdown, "" for what is no page.
func absolute(base *url.URL, href string) string {
	href = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(href), "<"), ">"))
	if base == nil || href == "" || len(href) > maxHref {
		return ""
	}
	u, err := base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.User = nil
	return plainTarget.Replace(u.String())
}

// link renders a link: its text, and where links are asked for its target. Of a link around blocks the first one leads there.
func (w *writer) link(a *html.Node) {
	target := absolute(w.base, dom.Attr(a, "href"))
	if target == "" || w.inLink || w.linkBytes < len(target) || !hasSigns(line(a)) {
		w.children(a)
		return
	}
	if first := firstBlock(a); first != nil {
		inside := &html.Node{Type: html.ElementNode, DataAtom: atom.A, Data: "a", Attr: slices.Clone(a.Attr)}
		for _, c := range take(first) {
			inside.AppendChild(c)
		}
		first.AppendChild(inside)
		w.children(a)
		return
	}
	w.linkBytes -= len(target)
	w.begin('[')
	w.out = append(w.out, '[')
	w.inLink, w.fresh, w.bracket = true, false, len(w.out)
	w.children(a)
	w.inLink = false
	w.out = append(append(append(w.out, "]("...), target...), ')')
}

// firstBlock returns the first block below n that has words and no block in it, nil for none.
func firstBlock(n *html.Node) *html.Node {
	for c := range n.Descendants() {
		if isBlock(c) && hasWords(line(c)) && !dom.Any(c, isBlock) {
			return c
		}
	}
	return nil
}

func isBlock(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd, atom.Pre, atom.Table, atom.Blockquote, atom.Figure, atom.Header:
		return true
	}
	return dom.IsHeading(n)
}
