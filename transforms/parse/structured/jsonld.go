package structured

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// script reads the JSON-LD of one script. Pages make mistakes that browsers do not show:
// comments, CDATA, commas too many or too few, line ends and quotes within strings, several
// values, entities for quotes, an end that is missing. What was read before a mistake that
// cannot be mended is kept.
func (r *reader) script(s string) {
	p := jsonReader{r: r, s: s}
	found := p.all()
	if !found && strings.Contains(s, "&quot;") {
		p = jsonReader{r: r, s: html.UnescapeString(s)}
		found = p.all()
	}
	if p.bad || !found && strings.TrimSpace(s) != "" {
		r.data.Broken++
	}
}

type jsonReader struct {
	r   *reader
	s   string
	at  int
	bad bool // the rest cannot be read
}

// all reads the values one after another, and reports whether there is an item.
func (p *jsonReader) all() (found bool) {
	for !p.bad {
		p.space(true)
		if p.at >= len(p.s) {
			return found
		}
		if c := p.s[p.at]; c != '{' && c != '[' {
			p.bad = true
			return found
		}
		for _, v := range p.value(0, false) {
			if v.Item != nil && (len(v.Item.Types) > 0 || len(v.Item.names) > 0) {
				found = true
				p.keep(v.Item)
			}
		}
	}
	return found
}

// keep adds an item, or those of its @graph, to the page's.
func (p *jsonReader) keep(it *Item) {
	graph := it.values["@graph"]
	if len(graph) == 0 {
		p.r.data.Items = append(p.r.data.Items, it)
		return
	}
	delete(it.values, "@graph")
	it.names = slices.DeleteFunc(it.names, func(name string) bool { return name == "@graph" })
	if len(it.names) > 0 {
		p.r.data.Items = append(p.r.data.Items, it)
	}
	for _, v := range graph {
		if v.Item != nil {
			p.keep(v.Item)
		}
	}
}

// value reads a value; a list is read as its elements. inObject says what may follow a string.
func (p *jsonReader) value(depth int, inObject bool) []value {
	p.space(false)
	if p.at >= len(p.s) {
		p.bad = true
		return nil
	}
	if depth > maxDepth {
		p.r.data.Cut, p.bad = true, true
		return nil
	}
	switch c := p.s[p.at]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case '"':
		s, ok := p.text(false, inObject)
		if !ok || !p.r.take(len(s)) {
			p.bad = true
			return nil
		}
		return []value{{Text: s}}
	}
	begin := p.at
	for p.at < len(p.s) && (strings.IndexByte(" \t\r\n,:]}[{\"", p.s[p.at]) < 0 || inObject && p.inNumber(begin)) {
		p.at++
	}
	word := p.s[begin:p.at]
	switch {
	case word == "null" || word == "undefined":
		return nil
	case word == "" && strings.IndexByte(",}]", p.s[p.at]) >= 0: // a template had no value to put here
		return nil
	case word == "" || len(word) > 64 || !p.r.take(len(word)):
		p.bad = true
		return nil
	}
	return []value{{Text: word}}
}

// inNumber reports whether the sign here is within a number that a template wrote without quotation marks, and that began before:
// 1,299.00 USD. A name or the end follows other commas.
func (p *jsonReader) inNumber(begin int) bool {
	digit := func(i int) bool { return i < len(p.s) && p.s[i] >= '0' && p.s[i] <= '9' }
	switch {
	case p.at == begin:
		return false
	case p.s[p.at] == ',':
		return digit(p.at-1) && digit(p.at+1)
	case p.s[p.at] != ' ' || strings.TrimLeft(p.s[begin:p.at], "abcdefghijklmnopqrstuvwxyz") == "": // true, null
		return false
	}
	next := strings.TrimLeft(p.s[p.at:], " ")
	return next != "" && strings.IndexByte("\"{}[],:/\r\n\t", next[0]) < 0
}

func (p *jsonReader) list(depth int) (out []value) {
	for p.at++; !p.bad; {
		p.space(false)
		switch {
		case p.at >= len(p.s):
			p.bad = true
		case p.s[p.at] == ']':
			p.at++
			return out
		case p.s[p.at] == '}': // the list's end is missing
			return out
		case p.s[p.at] == ',':
			p.at++
		default:
			out = append(out, p.value(depth+1, false)...)
		}
	}
	return out
}

func (p *jsonReader) object(depth int) []value {
	if !p.r.take(0) {
		p.bad = true
		return nil
	}
	it := p.r.item(JSONLD)
	var text []value // of @value
	id := ""
	for p.at++; !p.bad; {
		p.space(false)
		if p.at >= len(p.s) {
			p.bad = true
			break
		}
		if c := p.s[p.at]; c == '}' {
			p.at++
			break
		} else if c == ',' {
			p.at++
			continue
		} else if c != '"' {
			p.bad = true
			break
		}
		key, ok := p.text(true, true)
		p.space(false)
		if !ok || p.at >= len(p.s) || p.s[p.at] != ':' {
			p.bad = true
			break
		}
		p.at++
		values := p.value(depth+1, true)
		switch key {
		case "@context", "@reverse", "@language":
		case "@type", "type":
			for _, v := range values {
				if v.Text != "" {
					it.Types = append(it.Types, local(v.Text))
				}
			}
			if key == "type" {
				it.addAll(key, values)
			}
		case "@id":
			for _, v := range values {
				id = firstOf(id, v.Text)
			}
		case "@value", "@list", "@set":
			text = append(text, values...)
		default:
			it.addAll(key, values)
		}
	}
	p.r.name(it, id)
	if text != nil && len(it.names) == 0 {
		return text
	}
	return []value{{Item: it}}
}

func (it *Item) addAll(name string, values []value) {
	for _, v := range values {
		it.add(name, v)
	}
}

// text reads a string. A quote within it that was not escaped is known by what follows it.
func (p *jsonReader) text(key, inObject bool) (string, bool) {
	p.at++
	begin := p.at
	var b *strings.Builder // where the string is not as written
	for from := begin; ; {
		i := strings.IndexAny(p.s[p.at:], "\"\\")
		if i < 0 {
			p.at = len(p.s)
			return "", false
		}
		p.at += i
		if p.s[p.at] == '"' {
			if !p.ends(p.at+1, key, inObject) {
				p.at++
				continue
			}
			last := p.s[from:p.at]
			p.at++
			if b != nil {
				b.WriteString(last)
				last = b.String()
			}
			return strings.ToValidUTF8(last, "\ufffd"), true
		}
		if b == nil {
			b = &strings.Builder{}
		}
		b.WriteString(p.s[from:p.at])
		p.escape(b)
		from = p.at
	}
}

// ends reports whether a quote before at ends a string.
func (p *jsonReader) ends(at int, key, inObject bool) bool {
	next := p.next(at)
	if next >= len(p.s) {
		return true
	}
	switch c := p.s[next]; {
	case key:
		return c == ':'
	case c == '}' || c == ']' || strings.HasPrefix(p.s[next:], "//") || strings.HasPrefix(p.s[next:], "/*"):
		return true
	case c == ',' && inObject: // then a name, or nothing
		after := p.next(next + 1)
		return after >= len(p.s) || strings.IndexByte("\"},/", p.s[after]) >= 0
	case c == ',':
		return true
	case c == '"': // a comma is missing between two lines
		return strings.IndexByte(p.s[at:next], '\n') >= 0
	}
	return false
}

// next is where the space that begins at i ends.
func (p *jsonReader) next(i int) int {
	for i < len(p.s) && (p.s[i] == ' ' || p.s[i] == '\n' || p.s[i] == '\t' || p.s[i] == '\r') {
		i++
	}
	return i
}

// escape reads an escaped character.
func (p *jsonReader) escape(b *strings.Builder) {
	p.at++
	if p.at >= len(p.s) {
		return
	}
	c := p.s[p.at]
	p.at++
	switch c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r', 'b', 'f':
		b.WriteByte(' ')
	case 'u':
		r, ok := p.hex(4)
		if !ok {
			return
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.at:], `\u`) {
			back := p.at
			p.at += 2
			low, _ := p.hex(4)
			if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
				p.at = back
			}
		}
		b.WriteRune(r)
	case 'x': // of JavaScript
		r, ok := p.hex(2)
		if !ok {
			b.WriteString(`\x`)
			return
		}
		b.WriteRune(r)
	default:
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte('\\') // no escape, but a path of Windows
		}
		b.WriteByte(c) // \" \\ \/ and \'
	}
}

// hex reads a number of n hexadecimal digits.
func (p *jsonReader) hex(n int) (r rune, ok bool) {
	if p.at+n > len(p.s) {
		return 0, false
	}
	v, err := strconv.ParseUint(p.s[p.at:p.at+n], 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += n
	return rune(v), true
}

// space passes space and comments; outside of all values also what surrounds a script.
func (p *jsonReader) space(outside bool) {
	for p.at < len(p.s) {
		rest := p.s[p.at:]
		c := rest[0]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == 0:
			p.at++
		case strings.HasPrefix(rest, "/*"):
			p.pass("*/")
		case outside && strings.HasPrefix(rest, "//<![CDATA["), outside && strings.HasPrefix(rest, "// <![CDATA["):
			p.pass("[CDATA[")
		case strings.HasPrefix(rest, "//"):
			p.pass("\n")
		case outside && (c == ';' || c == ','):
			p.at++
		case outside && strings.HasPrefix(rest, "<!--"):
			p.at += len("<!--")
		case outside && strings.HasPrefix(rest, "<![CDATA["):
			p.at += len("<![CDATA[")
		case outside && (strings.HasPrefix(rest, "-->") || strings.HasPrefix(rest, "]]>")):
			p.at += len("-->")
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' && r != '\u200b' && r != '\u2028' && r != '\u2029' {
				return
			}
			p.at += n
		default:
			return
		}
	}
}

// pass goes behind the next end.
func (p *jsonReader) pass(end string) {
	_, rest, _ := strings.Cut(p.s[p.at:], end)
	p.at = len(p.s) - len(rest)
}
