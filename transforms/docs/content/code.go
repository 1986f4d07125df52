package content

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// pre writes a code block: its lines unchanged, in a fence longer than any in them.
func (w *writer) pre(n *html.Node) {
	var c coder
	c.clutter = w.clutter
	c.children(n)
	text := strings.TrimRight(c.b.String(), " \t\n")
	for { // removes empty lines at the beginning, but not the indentation of the first line
		l, rest, found := strings.Cut(text, "\n")
		if !found || strings.TrimSpace(l) != "" {
			break
		}
		text = rest
	}
	if text == "" {
		return
	}
	if w.cell || w.heading {
		w.inline(strings.Join(strings.Fields(text), " "))
		return
	}
	fence := fenceFor(text)
	w.block()
	w.writePending()
	w.out = append(append(w.out, fence...), language(n)...)
	for l := range strings.SplitSeq(text+"\n"+fence, "\n") {
		w.out = append(w.out, '\n')
		start := len(w.out)
		for _, v := range w.levels {
			if w.markBytes -= len(v.rest); w.markBytes > 0 {
				w.out = append(w.out, v.rest...)
			}
		}
		if l == "" {
			for len(w.out) > start && w.out[len(w.out)-1] == ' ' {
				w.out = w.out[:len(w.out)-1]
			}
		}
		w.out = append(w.out, l...)
	}
	w.fresh = false
	w.block()
}

// coder collects the text of a code block.
type coder struct {
	clutter clutter
	b       strings.Builder
	last    byte
}

func (c *coder) write(s string) {
	if s == "" {
		return
	}
	if strings.ContainsAny(s, "\r\u00a0\u200b\ufeff") {
		s = codeText.Replace(s)
		if s == "" {
			return
		}
	}
	c.b.WriteString(s)
	c.last = s[len(s)-1]
}

var codeText = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u00a0", " ", "\u200b", "", "\ufeff", "")

// newLine ends the line unless it is at its beginning.
func (c *coder) newLine() {
	if c.b.Len() > 0 && c.last != '\n' {
		c.write("\n")
	}
}

func (c *coder) children(n *html.Node) { below(n, c.write, c.element) }

// gutters are the class names of line numbers and prompts next to code.
var gutters = dom.Set(`linenos linenodiv lineno linenumber line-number line-numbers line-numbers-rows line-numbers-wrapper
	hljs-ln-numbers blob-num gutter rouge-gutter ln lnt react-syntax-highlighter-line-number ttc copybtn copy-button clipboard-button`)

func (c *coder) element(n *html.Node) {
	if n.DataAtom == atom.Br {
		c.write("\n")
		return
	}
	isLine, dropped := c.class(n)
	if dropped {
		return
	}
	switch n.DataAtom {
	case atom.Div, atom.P, atom.Li, atom.Tr, atom.Ol, atom.Ul, atom.Table:
		// Each block has its own line, even if it is empty.
		if prev := n.PrevSibling; prev != nil && prev.Type == html.ElementNode && prev.DataAtom == n.DataAtom && n.DataAtom != atom.Table && blank(prev) && !endsInBreak(prev) {
			c.write("\n")
		}
		c.newLine()
		c.children(n)
		c.newLine()
		return
	case atom.Td:
		if dom.HasAttr(n, "data-line-number") {
			return
		}
	}
	if prev := n.PrevSibling; prev != nil && prev.Type == html.ElementNode &&
		(isLine && prev.DataAtom == n.DataAtom || n.DataAtom == atom.Code && prev.DataAtom == atom.Code) {
		// Two elements of lines follow each other; Docusaurus has a br in each.
		if !endsInBreak(prev) {
			c.write("\n")
		}
	}
	c.children(n)
}

// class reports whether an element is a line of the code, and whether it is no code at all.
func (c *coder) class(n *html.Node) (isLine, dropped bool) {
	switch n.DataAtom {
	case atom.Button, atom.Script, atom.Style, atom.Svg, atom.Input, atom.Textarea, atom.Template:
		return false, true
	}
	for word := range strings.FieldsSeq(dom.Attr(n, "class")) {
		if gutters[word] {
			return false, true
		}
		isLine = isLine || word == "line" || word == "token-line" || word == "code-line" || word == "view-line" || word == "highlight-line"
	}
	if dom.Attr(n, "aria-hidden") == "true" {
		return isLine, true
	}
	for _, m := range c.clutter.remove {
		if m.Match(n) {
			return isLine, true
		}
	}
	return isLine, false
}

func endsInBreak(n *html.Node) bool {
	for l := n.LastChild; l != nil; l = l.LastChild {
		if l.DataAtom == atom.Br || l.Type == html.TextNode && strings.HasSuffix(l.Data, "\n") {
			return true
		}
	}
	return false
}

// namesLanguage reports whether an element only names the language of the code block after it.
func namesLanguage(n *html.Node) bool {
	if n.DataAtom != atom.Span && n.DataAtom != atom.Div {
		return false
	}
	pre := after(n)
	if pre == nil || !listing(pre) {
		return false
	}
	text := line(n)
	if text == "" || len(text) > maxLanguage {
		return false
	}
	for pre.DataAtom != atom.Pre {
		pre = after(&html.Node{NextSibling: pre.FirstChild})
	}
	labels := dom.HasClass(n, languageLabels) || dom.Any(n, func(c *html.Node) bool { return dom.HasClass(c, languageLabels) })
	return labels || strings.EqualFold(text, language(pre))
}

// languageLabels are the class names of labels of code blocks.
var languageLabels = dom.Set("lang language code-lang")

// maxLanguage is the most bytes of a language's name.
const maxLanguage = 24

// tree writes code that is a list of lines with lists of lines in it, as Redoc does with JSON.
func (w *writer) tree(n *html.Node) {
	c := coder{clutter: w.clutter}
	c.children(n)
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(c.b.String()), "", "  "); err != nil {
		w.pre(n)
		return
	}
	text := &html.Node{Type: html.TextNode, Data: indented.String()}
	w.pre(&html.Node{Type: html.ElementNode, DataAtom: atom.Pre, Data: "pre", Attr: []html.Attribute{{Key: "data-lang", Val: "json"}}, FirstChild: text})
}

// code writes inline code.
func (w *writer) code(n *html.Node) {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.DataAtom == atom.Pre || c.DataAtom == atom.Table {
			w.children(n) // a block in an inline element
			return
		}
		if c.DataAtom == atom.Ul && !w.cell && !w.heading {
			w.tree(n)
			return
		}
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
		} else if c.DataAtom == atom.Br {
			text.WriteByte(' ')
		}
	}
	s := codeText.Replace(text.String())
	if s != "" && blankAt(s) > 0 {
		w.space = true
	}
	w.inline(strings.Join(strings.Fields(s), " "))
	if s != "" && blankAt(s[len(s)-1:]) > 0 {
		w.space = true
	}
}

// inline writes a line of text in as many backticks as it needs.
func (w *markdown) inline(text string) {
	if text == "" {
		return
	}
	if w.cell {
		text = strings.ReplaceAll(text, "|", `\|`)
	}
	w.begin('`')
	w.fresh = false
	if !strings.Contains(text, "`") {
		if w.codeEnd > 0 && w.codeEnd == len(w.out) { // adjacent code is joined
			w.out = w.out[:len(w.out)-1]
		} else {
			w.out = append(w.out, '`')
		}
		w.out = append(append(w.out, text...), '`')
		w.codeEnd = len(w.out)
		return
	}
	if w.codeEnd > 0 && w.codeEnd == len(w.out) {
		w.out = append(w.out, ' ')
	}
	runs, n := ticks(text), 1
	for runs[n] {
		n++
	}
	fence := strings.Repeat("`", n)
	w.out = append(w.out, fence...)
	if text[0] == '`' || text[len(text)-1] == '`' {
		text = " " + text + " "
	}
	w.out = append(append(w.out, text...), fence...)
}

// fenceFor returns a fence longer than any in text.
func fenceFor(text string) string {
	longest := 2
	for n := range ticks(text) {
		longest = max(longest, n)
	}
	return strings.Repeat("`", longest+1)
}

// ticks returns the lengths of the runs of backticks in text.
func ticks(text string) map[int]bool {
	runs := make(map[int]bool)
	for {
		i := strings.IndexByte(text, '`')
		if i < 0 {
			return runs
		}
		text = text[i:]
		n := len(text) - len(strings.TrimLeft(text, "`"))
		runs[n] = true
		text = text[n:]
	}
}

// noLanguage are the names that mean "no language".
var noLanguage = dom.Set("default none text txt plain plaintext plain-text no-highlight nohighlight auto undefined null output")

// language returns the language that a code block's element, its code element or
// an element around it names in its class, "" for none.
func language(pre *html.Node) string {
	listing := strings.Contains(dom.Attr(pre, "class"), "programlisting")
	for c := range pre.Descendants() {
		if c.DataAtom == atom.Code || c.DataAtom == atom.Pre {
			if l := hint(c, true); l != "" {
				return named(l)
			}
			if words := strings.Fields(dom.Attr(c, "class")); listing && len(words) == 1 { // as in DocBook
				return named(languageName(words[0]))
			}
		}
	}
	if l := hint(pre, true); l != "" {
		return named(l)
	}
	for n, depth := pre.Parent, 0; n != nil && depth < 8; n, depth = n.Parent, depth+1 {
		switch n.DataAtom {
		case atom.Div, atom.Figure, atom.Span, atom.Td, atom.Tr, atom.Tbody, atom.Table:
			if l := hint(n, false); l != "" {
				return named(l)
			}
		default:
			if !strings.Contains(n.Data, "-") { // not an element of the site's own
				return ""
			}
			if l := hint(n, false); l != "" {
				return named(l)
			}
		}
	}
	return ""
}

func named(l string) string {
	if noLanguage[l] {
		return ""
	}
	return l
}

// hint reads a language from classes and data attributes. own says that the element
// is the code's own, in which short forms mean a language too.
func hint(n *html.Node, own bool) string {
	for _, key := range []string{"data-lang", "data-language", "language", "syntax"} {
		if l := languageName(dom.Attr(n, key)); l != "" {
			return l
		}
	}
	if l := languageName(dom.Attr(n, "lang")); own && l != "" && l != "en" && !strings.Contains(l, "-") { // else of its words
		return l
	}
	bare, brush := false, false
	var other string
	for word := range strings.FieldsSeq(dom.Attr(n, "class")) {
		for _, prefix := range []string{"language-", "highlight-source-", "highlight-", "lang-", "brush:"} {
			if rest, ok := strings.CutPrefix(word, prefix); ok && (own || prefix != "lang-") {
				if end := strings.IndexAny(rest, "{:"); end > 0 { // marked lines, a file's name
					rest = rest[:end]
				}
				if l := languageName(rest); l != "" {
					return l
				}
			}
		}
		if brush {
			return languageName(word)
		}
		brush = word == "brush:"
		switch word {
		case "hljs", "sourceCode", "programlisting", "src":
			bare = true
		default:
			if other == "" {
				other = word
			}
		}
	}
	if rest, ok := strings.CutPrefix(other, "src-"); ok {
		other = rest
	}
	if own && bare {
		return languageName(other)
	}
	if own {
		for word := range strings.FieldsSeq(dom.Attr(n, "class")) {
			if languages[word] {
				return word
			}
		}
	}
	return ""
}

// languages are the names that mean a language where they are a class of their own.
var languages = dom.Set(`bash c c++ clojure cpp csharp css dart diff dockerfile elixir erlang fortran go graphql groovy haskell html http
	ini java javascript js json jsonc jsx kotlin lisp lua makefile markdown nginx ocaml perl php powershell proto protobuf python
	r ruby rust scala scheme scss sh shell sql swift toml ts tsx typescript xml yaml yml zig zsh`)

func languageName(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, ";"))
	if len(s) > 20 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+#-_.") != "" {
		return ""
	}
	return s
}
