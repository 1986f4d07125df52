package content

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// conceal takes the text out of a page that the page hides from people, by attributes, inline styles or style elements, so that nobody can
// speak to a language model past them. Links stay, and so does what a person can open: tab panels, details, what a control or another rule
// shows.
func conceal(root *html.Node) {
	c := concealer{root: root}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Style && n.Namespace == "" && n.FirstChild != nil && !strings.Contains(dom.Attr(n, "media"), "print") {
			c.read(withoutComments(n.FirstChild.Data), false)
		}
	}
	c.order()
	c.walk(root, inherited{})
}

type concealer struct {
	root     *html.Node
	rules    []rule // that set something about hiding, in the order in which later ones win
	hiding   []rule // those of rules that hide
	depth    int    // of the style sheet's blocks
	steps    int    // of matching, see maxMatching
	controls map[string]bool
	marks    []*html.Node // the first and the last element of the page's content; see whole
}

// rule is one selector of a style sheet with its declarations.
type rule struct {
	text string
	last string           // the part of the selector that names the element itself
	tail cascadia.Matcher // last; nil: the selector is long, or depends on what a person does
	on   cascadia.Sel
	set  declarations
}

// The most rules about hiding that are read of a page's style sheets, and the most steps for
// matching them. What is beyond is not hidden.
const (
	maxRules    = 2000
	maxMatching = 20_000_000
)

func (c *concealer) matches(r rule, n *html.Node) bool {
	if c.steps++; c.steps > maxMatching || !r.tail.Match(n) {
		return false
	}
	c.steps += 100 // for the elements around it
	return r.on.Match(n)
}

// inherited is what an element's text takes from the elements around it.
type inherited struct {
	invisible, tiny, faded bool
	background             string // "" for unknown
}

// walk visits the tree once. Its depth is bounded by the parser.
func (c *concealer) walk(n *html.Node, in inherited) {
	for k := n.FirstChild; k != nil; k = k.NextSibling {
		switch {
		case k.Type == html.TextNode && (in.invisible || in.tiny || in.faded):
			k.Data = ""
		case k.Type != html.ElementNode || k.DataAtom == atom.Head || k.DataAtom == atom.Style || k.DataAtom == atom.Script:
		default:
			c.element(k, in)
		}
	}
}

func (c *concealer) element(n *html.Node, in inherited) {
	if dom.Attr(n, "aria-hidden") == "true" && (isPanel(n) || c.opened(n)) { // until it is chosen
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "aria-hidden" })
	}
	d := c.declared(n, in)
	if d == nil && !in.invisible && !dom.HasAttr(n, "hidden") {
		c.walk(n, in)
		return
	}
	hidden := d.gone() || dom.HasAttr(n, "hidden") && dom.Attr(n, "hidden") != "until-found"
	invisible := d["visibility"] == "hidden" || d["visibility"] == "collapse"
	if (hidden || invisible || d.tiny() || d.faded(in.background)) && c.shown(n) {
		hidden, d = false, nil
	}
	if hidden || in.invisible && n.DataAtom == atom.Img && d["visibility"] != "visible" {
		empty(n)
		return
	}
	if v := d["visibility"]; v != "" && v != "inherit" {
		in.invisible = v == "hidden" || v == "collapse"
	}
	if v := d["font-size"]; v != "" && (!in.tiny || !strings.HasSuffix(v, "em") && !strings.HasSuffix(v, "%") || strings.HasSuffix(v, "rem")) {
		in.tiny = d.tiny()
	}
	if b := d.background(); b != "" {
		in.background = b
	}
	if d["color"] != "" {
		in.faded = d.faded(in.background)
	}
	c.walk(n, in)
}

// empty leaves nothing of an element but the links in it.
func empty(n *html.Node) {
	var links []*html.Node
	for k := range n.Descendants() {
		if href := dom.Attr(k, "href"); k.DataAtom == atom.A && href != "" {
			links = append(links, &html.Node{Type: html.ElementNode, DataAtom: atom.A, Data: "a", Attr: []html.Attribute{{Key: "href", Val: href}}})
		}
	}
	if href := dom.Attr(n, "href"); n.DataAtom != atom.A {
		n.DataAtom, n.Data, n.Attr = atom.Span, "span", nil
	} else {
		n.Attr = []html.Attribute{{Key: "href", Val: href}}
	}
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	for _, k := range links {
		n.AppendChild(k)
	}
}

// shown reports whether people see an element all the same: the panel of a tab, what a control opens or scripts show, a formula that is
// drawn in another way, or what is for screen readers (see unseen).
func (c *concealer) shown(n *html.Node) bool {
	return isPanel(n) || dom.Any(n, isTab) || dom.HasClass(n, unseen) || c.opened(n) || dom.Holds(n, atom.Math) || c.whole(n)
}

// opened reports whether a control of the page opens an element.
func (c *concealer) opened(n *html.Node) bool {
	for p := n.PrevSibling; p != nil; p = p.PrevSibling {
		if p.Type == html.ElementNode {
			if dom.HasAttr(p, "onclick") || dom.Attr(p, "aria-expanded") != "" {
				return true
			}
			break
		}
	}
	id := dom.Attr(n, "id")
	return id != "" && c.controlled()[id]
}

// controlling are the attributes in which a control names what it opens.
var controlling = dom.Set(`aria-controls onclick data-target data-bs-target data-tab data-panel`)

// controlled returns the ids that the page's controls name.
func (c *concealer) controlled() map[string]bool {
	if c.controls != nil {
		return c.controls
	}
	c.controls = map[string]bool{}
	for n := range c.root.Descendants() {
		for _, a := range n.Attr {
			if controlling[a.Key] || a.Key == "href" && (dom.Attr(n, "role") == "tab" || dom.HasAttr(n, "data-toggle") || dom.HasAttr(n, "data-bs-toggle")) {
				for _, word := range strings.FieldsFunc(a.Val, func(r rune) bool { return strings.ContainsRune(" #'\"(),;", r) }) {
					c.controls[word] = true
				}
			}
		}
	}
	return c.controls
}

// whole reports whether all of the page's content is in n: its main elements, without such an
// element its articles, or else its first headings.
func (c *concealer) whole(n *html.Node) bool {
	if c.marks == nil {
		found := map[atom.Atom][]*html.Node{}
		for k := range c.root.Descendants() {
			switch a := k.DataAtom; {
			case a != atom.Main && a != atom.Article && a != atom.H1 && a != atom.Body:
			case len(found[a]) < 2:
				found[a] = append(found[a], k)
			default:
				found[a][1] = k
			}
		}
		for _, a := range []atom.Atom{atom.Body, atom.H1, atom.Article, atom.Main} {
			if found[a] != nil {
				c.marks = found[a]
			}
		}
	}
	return !slices.ContainsFunc(c.marks, func(k *html.Node) bool { return k != n && !contains(n, k) })
}

// declared returns what is set about an element's hiding: by the style sheets in which one rule
// hides it or something around it, and by its own attributes.
func (c *concealer) declared(n *html.Node, in inherited) declarations {
	inline := inlineStyle(n)
	if !in.invisible && !in.tiny && !in.faded && !slices.ContainsFunc(c.hiding, func(r rule) bool { return c.matches(r, n) }) {
		return inline
	}
	d := declarations{}
	for _, r := range c.rules {
		if c.matches(r, n) {
			d.add(r.set)
		}
	}
	d.add(inline)
	return d
}

// read reads a style sheet. narrow says that it holds in certain windows only: what it
// shows is shown to somebody, what it hides is not hidden from everybody.
func (c *concealer) read(css string, narrow bool) {
	c.depth++
	defer func() { c.depth-- }()
	for c.depth < 9 && len(c.rules) < maxRules {
		open := strings.IndexByte(css, '{')
		if open < 0 {
			return
		}
		head := css[:open]
		if at := strings.LastIndexByte(head, ';'); at >= 0 { // @import and the like
			head = head[at+1:]
		}
		head = strings.TrimSpace(head)
		block := css[open+1:]
		end := blockEnd(block)
		css = block[min(end+1, len(block)):]
		block = block[:end]
		switch name, condition, _ := strings.Cut(head, " "); {
		case name == "@media" && strings.Contains(condition, "print"):
		case name == "@media", name == "@supports", name == "@container", name == "@layer":
			c.read(block, narrow || name != "@layer")
		case !strings.HasPrefix(head, "@"):
			c.add(head, declare(block), narrow)
		}
	}
}

// add adds the rules of one block.
func (c *concealer) add(selectors string, set declarations, narrow bool) {
	if len(set) == 0 || narrow && set.hides() {
		return
	}
	for s := range strings.SplitSeq(selectors, ",") {
		if len(c.rules) == maxRules {
			return
		}
		r := rule{text: strings.Join(strings.Fields(s), " "), set: set}
		r.last = r.text[strings.LastIndexAny(r.text, " >+~")+1:]
		if near.MatchString(r.text) {
			r.on, _ = cascadia.Parse(r.text)
			if r.on != nil {
				r.tail, _ = cascadia.Parse(r.last)
			}
		}
		// Nothing matches :hover now, but it can show what another rule hides.
		if r.tail != nil || !set.hides() {
			c.rules = append(c.rules, r)
		}
	}
}

// near matches selectors of an element, and perhaps of one around it: matching longer ones
// takes too long where a page means harm.
var near = regexp.MustCompile(`^[^\s>+~()]+(?:[\s>]+[^\s>+~()]+)?$`)

// order sorts the rules. It drops a rule if it hides an element that another rule shows in another state.
func (c *concealer) order() {
	all := c.rules
	toggled := func(r rule) bool {
		return r.set.hides() && slices.ContainsFunc(all, func(by rule) bool {
			at := strings.Index(by.last, r.last)
			if at < 0 || by.set.hides() || by.text == r.text {
				return false
			}
			rest := by.last[at+len(r.last):]
			same := false
			for key := range r.set {
				same = same || by.set[key] != ""
			}
			return same && (rest == "" || strings.ContainsRune(".#:[", rune(rest[0])))
		})
	}
	c.rules = nil
	for _, r := range all {
		if r.tail != nil && !toggled(r) {
			c.rules = append(c.rules, r)
		}
	}
	slices.SortStableFunc(c.rules, func(a, b rule) int {
		x, y := a.on.Specificity(), b.on.Specificity()
		return slices.Compare(x[:], y[:])
	})
	for _, r := range c.rules {
		if r.set.hides() {
			c.hiding = append(c.hiding, r)
		}
	}
}

// blockEnd returns the offset of the brace that ends a block, or its length.
func blockEnd(css string) int {
	depth, quote := 0, byte(0)
	for i := range len(css) {
		switch b := css[i]; {
		case quote != 0:
			if b == quote && css[i-1] != '\\' || b == '\n' {
				quote = 0
			}
		case b == '"', b == '\'':
			quote = b
		case b == '{':
			depth++
		case b == '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(css)
}

func withoutComments(css string) string {
	return comment.ReplaceAllString(css, " ")
}

var comment = regexp.MustCompile(`(?s)/\*.*?(?:\*/|$)`)

// declarations are the values of the properties that can hide text. The key "!" + property
// marks an important value, which a later one without the mark does not replace.
type declarations map[string]string

// properties are the names that declare reads. Other properties are ignored.
var properties = dom.Set(`display visibility content-visibility opacity font-size color background background-color
	background-clip -webkit-background-clip position left right top bottom margin-left margin-top text-indent transform
	clip clip-path width height max-width max-height overflow`)

func declare(block string) declarations {
	var d declarations
	for part := range strings.SplitSeq(block, ";") {
		key, value, found := strings.Cut(part, ":")
		if key = strings.ToLower(strings.TrimSpace(key)); !found || !properties[key] {
			continue
		}
		if d == nil {
			d = declarations{}
		}
		value = strings.ToLower(strings.Join(strings.Fields(value), " "))
		plain, important := strings.CutSuffix(value, "!important")
		d.set(key, strings.TrimSpace(plain), important)
	}
	return d
}

func (d declarations) set(key, value string, important bool) {
	if d["!"+key] != "" && !important {
		return
	}
	if d[key] = value; important {
		d["!"+key] = "!"
	}
}

// add lets other declarations win, where those before are not important.
func (d declarations) add(other declarations) {
	for key, value := range other {
		if key[0] != '!' {
			d.set(key, value, other["!"+key] != "")
		}
	}
}

func inlineStyle(n *html.Node) (d declarations) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "style":
			own := declare(withoutComments(a.Val))
			if d == nil {
				d = own
			} else {
				d.add(own)
			}
		case a.Key == "bgcolor", a.Key == "color" && n.DataAtom == atom.Font:
			if d == nil {
				d = declarations{}
			}
			d.set(map[string]string{"bgcolor": "background", "color": "color"}[a.Key], strings.ToLower(a.Val), false)
		}
	}
	return d
}

// hides reports whether these declarations alone hide text.
func (d declarations) hides() bool {
	return d.gone() || d["visibility"] == "hidden" || d["visibility"] == "collapse" || d.tiny() || d.faded("")
}

// gone reports whether nothing that is in the element can be seen.
func (d declarations) gone() bool {
	if len(d) == 0 {
		return false
	}
	if d["display"] == "none" || d["content-visibility"] == "hidden" {
		return true
	}
	if n, _, ok := length(d["opacity"]); ok && n < 0.05 {
		return true
	}
	if d["overflow"] == "hidden" || d["overflow"] == "clip" {
		for _, key := range []string{"width", "height", "max-width", "max-height"} {
			if n, _, ok := length(d[key]); ok && n <= 1 && !strings.HasSuffix(d[key], "%") {
				return true
			}
		}
	}
	if part := moved.FindStringSubmatch(d["transform"]); part != nil {
		if n, px, _ := length(part[2]); part[1] == "scale" && n == 0 || part[1] == "translate" && px <= offScreen {
			return true
		}
	}
	away := []string{"text-indent", "margin-left", "margin-top"}
	if p := d["position"]; p == "absolute" || p == "fixed" {
		away = append(away, "left", "right", "top", "bottom")
		if clip := strings.ReplaceAll(d["clip"], " ", ""); strings.HasPrefix(clip, "rect(0") || strings.HasPrefix(clip, "rect(1px") {
			return true
		}
	}
	for _, key := range away {
		if _, px, ok := length(d[key]); ok && px <= offScreen {
			return true
		}
	}
	return cut.MatchString(d["clip-path"])
}

// offScreen is the number of pixels to the left or above from which on text is not on the screen.
const offScreen = -900

var (
	moved = regexp.MustCompile(`(scale|translate)\w*\( ?(-?[0-9.]+[a-z%]*)`)
	cut   = regexp.MustCompile(`^(?:inset\((?:50|100)%|circle\(0)`)
)

// tiny reports whether the size of letters is too small to see them.
func (d declarations) tiny() bool {
	n, px, ok := length(d["font-size"])
	return ok && (px <= 1 || strings.HasSuffix(d["font-size"], "%") && n <= 6)
}

// faded reports whether the letters have the color of what is behind them.
func (d declarations) faded(background string) bool {
	color := solid(d["color"])
	if color == "transparent" {
		return cmp.Or(d["background-clip"], d["-webkit-background-clip"]) != "text"
	}
	return color != "" && color == cmp.Or(d.background(), background)
}

// background returns the background's color, "" if none is set, "?" for an image or a name
// that means something else.
func (d declarations) background() string {
	value := cmp.Or(d["background-color"], d["background"])
	switch {
	case value == "", value == "transparent", value == "inherit", value == "none":
		return ""
	case strings.Contains(value, "url(") || strings.Contains(value, "gradient("):
		return "?"
	}
	return cmp.Or(solid(value), solid(strings.Fields(value)[0]), "?")
}

// solid returns a color in one way of writing, "" if it is none.
func solid(value string) string {
	value = strings.ReplaceAll(value, " ", "")
	if hex, is := colors[value]; is {
		return hex
	}
	if part := hexColor.FindStringSubmatch(value); part != nil {
		hex := part[1]
		if len(hex) == 3 || len(hex) == 4 {
			double := ""
			for _, c := range hex {
				double += string(c) + string(c)
			}
			hex = double
		}
		if len(hex) == 8 && strings.HasSuffix(hex, "00") {
			return "transparent"
		}
		return hex[:min(len(hex), 6)]
	}
	if part := rgb.FindStringSubmatch(value); part != nil {
		if n, _, ok := length(part[4]); ok && n == 0 {
			return "transparent"
		}
		out := ""
		for _, p := range part[1:4] {
			n, _ := strconv.Atoi(p)
			out += fmt.Sprintf("%02x", n)
		}
		return out
	}
	return ""
}

var (
	hexColor = regexp.MustCompile(`^#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$`)
	rgb      = regexp.MustCompile(`^rgba?\((\d+),(\d+),(\d+)(?:,([0-9.]+%?))?\)$`)
	colors   = map[string]string{"transparent": "transparent", "white": "ffffff", "black": "000000", "red": "ff0000", "lime": "00ff00",
		"blue": "0000ff", "yellow": "ffff00", "gray": "808080", "grey": "808080", "silver": "c0c0c0", "navy": "000080", "green": "008000"}
)

// length reads a number with a unit, and turns it into pixels for letters of 16 pixels. A
// share of the window or of the element counts as 9 pixels for each hundredth.
func length(value string) (n, px float64, ok bool) {
	at := strings.LastIndexAny(value, "0123456789.") + 1
	if at == 0 {
		return 0, 0, false
	}
	n, err := strconv.ParseFloat(value[:at], 64)
	if err != nil {
		return 0, 0, false
	}
	switch value[at:] {
	case "", "px", "pt":
		return n, n, true
	case "em", "rem", "ch", "ex":
		return n, 16 * n, true
	case "%", "vw", "vh":
		return n, 9 * n, true
	}
	return n, n, false
}
