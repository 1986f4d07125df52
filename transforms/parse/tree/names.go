package tree

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// element is what the rules say of all elements with a name.
type element struct {
	name  string
	atom  atom.Atom
	is    flags
	start rule // of its start tag in the body
	end   rule // of its end tag in the body
	ruled bool // one of elements
}

type flags uint32

const (
	special flags = 1 << iota
	endsScope
	isButton
	isList   // ol, ul
	endsRows // html, table, template: the scope of tables
	impliedEnd
	isP
	isLi
	isDd // dd, dt
	isHeading
	isSelect
	isRuby
	isNobr
	isOption
	isTable
	isRow
	isRows // tbody, thead, tfoot
	isCell
	isCaption
	isHTML
	isBody
	plainBlock // address, div, p: a list item may begin in one
	inHeadToo  // may be in the head
	void       // base, link, meta
	raw        // its content is text
	unescaped  // title, textarea: text with entities

	endsButtonScope = endsScope | isButton
	endsListScope   = endsScope | isList
)

type rule uint8

const (
	other rule = iota
	ignored
	odd
	block
	heading
	preformatted
	formRule
	item
	definition
	button
	link
	formatting
	nobr
	marker
	table
	voidElement
	input
	plainVoid
	ruler
	image
	rawElement
	rawBlock // xmp
	selects
	option
	group
	ruby
	rubyText
	foreign
	ofHead
	root
	body
	paragraph
	lineBreak
)

// elements are those that a rule names.
var elements = func() []*element {
	byName := map[string]*element{}
	set := func(names string, do func(*element)) {
		for name := range strings.FieldsSeq(names) {
			el := byName[name]
			if el == nil {
				el = &element{name: name, atom: atom.Lookup([]byte(name)), ruled: true}
				byName[name] = el
			}
			do(el)
		}
	}
	flag := func(f flags, names string) { set(names, func(el *element) { el.is |= f }) }
	start := func(r rule, names string) { set(names, func(el *element) { el.start = r }) }
	end := func(r rule, names string) { set(names, func(el *element) { el.end = r }) }

	flag(special, `address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup
		dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
		iframe img input keygen li link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre
		script section select source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp`)
	flag(endsScope, "applet caption html table td th marquee object template select")
	flag(isButton, "button")
	flag(isList, "ol ul")
	flag(endsRows, "html table template")
	flag(impliedEnd, "dd dt li optgroup option p rb rp rt rtc")
	flag(isP, "p")
	flag(isLi, "li")
	flag(isDd, "dd dt")
	flag(isHeading, "h1 h2 h3 h4 h5 h6")
	flag(isSelect, "select")
	flag(isRuby, "ruby")
	flag(isNobr, "nobr")
	flag(isOption, "option")
	flag(isTable, "table")
	flag(isRow, "tr")
	flag(isRows, "tbody tfoot thead")
	flag(isCell, "td th")
	flag(isCaption, "caption")
	flag(isHTML, "html")
	flag(isBody, "body")
	flag(plainBlock, "address div p")
	flag(inHeadToo, "base basefont bgsound link meta noframes script style template title")
	flag(void, "base basefont bgsound link meta")
	flag(raw, "iframe noembed noframes noscript script style textarea title xmp")
	flag(unescaped, "textarea title")

	const blocks = `address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup
		main menu nav ol search section summary ul`
	start(block, blocks+" p")
	start(heading, "h1 h2 h3 h4 h5 h6")
	start(preformatted, "pre listing")
	start(formRule, "form")
	start(item, "li")
	start(definition, "dd dt")
	start(button, "button")
	start(link, "a")
	start(formatting, "b big code em font i s small strike strong tt u")
	start(nobr, "nobr")
	start(marker, "applet marquee object")
	start(table, "table")
	start(voidElement, "area br embed img keygen wbr")
	start(input, "input")
	start(plainVoid, "param source track")
	start(ruler, "hr")
	start(image, "image")
	start(rawElement, "textarea iframe noembed noscript")
	start(rawBlock, "xmp")
	start(selects, "select")
	start(option, "option")
	start(group, "optgroup")
	start(ruby, "rb rtc")
	start(rubyText, "rp rt")
	start(foreign, "math svg")
	start(ofHead, "base basefont bgsound link meta noframes script style title")
	start(ignored, "caption col colgroup frame head tbody td tfoot th thead tr")
	start(root, "html")
	start(body, "body")
	start(odd, "frameset plaintext template")

	end(block, blocks+" button listing pre select")
	end(heading, "h1 h2 h3 h4 h5 h6")
	end(formRule, "form")
	end(paragraph, "p")
	end(item, "li")
	end(definition, "dd dt")
	end(formatting, "a b big code em font i nobr s small strike strong tt u")
	end(marker, "applet marquee object")
	end(lineBreak, "br")
	end(root, "html")
	end(body, "body")

	all := make([]*element, 0, len(byName))
	for _, el := range byName {
		all = append(all, el)
	}
	return all
}()

// elementOf finds an element of elements by its name.
var elementOf = func() map[string]*element {
	m := make(map[string]*element, len(elements))
	for _, el := range elements {
		m[el.name] = el
	}
	return m
}()

// slots has elements by their hash; two of one hash are next to each other.
var slots = func() (table [1 << 10]*element) {
	for _, el := range elements {
		h := hash(el.name)
		for table[h%uint32(len(table))] != nil {
			h++
		}
		table[h%uint32(len(table))] = el
	}
	return table
}()

func hash[T string | []byte](name T) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// named is the element of a name in lower case, made for a name that has no rules.
func named(name []byte) *element {
	for h := hash(name); ; h++ {
		el := slots[h%uint32(len(slots))]
		if el == nil {
			break
		}
		if el.name == string(name) {
			return el
		}
	}
	return &element{name: string(name), atom: atom.Lookup(name)}
}
