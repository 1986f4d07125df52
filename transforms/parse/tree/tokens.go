package tree

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

type kind uint8

const (
	text kind = iota
	startTag
	endTag
	comment
	doctype
)

// tokens reads the tokens of a page, as html.Tokenizer does. Line ends are \n, and there is no NUL.
type tokens struct {
	page string
	at   int
	odd  bool // the page needs a rule that is not here

	// The token.
	kind kind
	el   *element         // of a tag
	attr []html.Attribute // of a start tag
	text string           // of a text, comment or doctype

	selfClosing bool // a start tag that ends with />

	found   []html.Attribute // of the tag being read
	attrs   []html.Attribute // to be used
	lastEnd int              // where the last one's value ends; a / before it is part of it
}

// next reads a token, and reports whether there is one.
func (t *tokens) next() bool {
	if t.odd || t.at >= len(t.page) {
		return false
	}
	for at := t.at; ; at++ {
		i := strings.IndexByte(t.page[at:], '<')
		if i < 0 || at+i+1 >= len(t.page) {
			t.textTo(len(t.page))
			return true
		}
		at += i
		c := t.page[at+1]
		if !isLetter(c) && c != '/' && c != '!' && c != '?' {
			continue
		}
		if at > t.at {
			t.textTo(at)
			return true
		}
		return t.markup(c)
	}
}

func (t *tokens) textTo(end int) {
	t.kind, t.text = text, unescape(t.page[t.at:end])
	t.at = end
}

// unescape is html.UnescapeString, which is slow where there is nothing to do.
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	return html.UnescapeString(s)
}

// markup reads a token that begins with < and c.
func (t *tokens) markup(c byte) bool {
	rest := t.page[t.at+2:]
	switch c {
	case '/':
		if rest == "" {
			t.odd = true
			return false
		}
		if isLetter(rest[0]) {
			t.kind = endTag
			return t.tag(t.at+2, false)
		}
		return t.bogus(t.at + 2)
	case '?':
		return t.bogus(t.at + 1)
	case '!':
		return t.declaration(rest)
	}
	t.kind = startTag
	return t.tag(t.at+1, true)
}

// declaration reads a comment or doctype; rest is what follows <!.
func (t *tokens) declaration(rest string) bool {
	switch {
	case len(rest) < len("doctype"):
		t.odd = true
		return false
	case strings.HasPrefix(rest, "--"):
		return t.comment()
	case strings.EqualFold(rest[:len("doctype")], "doctype"):
		if !t.bogus(t.at + len("<!doctype")) {
			return false
		}
		t.kind, t.text = doctype, strings.TrimLeft(t.text, whitespace)
		return true
	}
	return t.bogus(t.at + 2)
}

// bogus reads a comment that is none: all from a place to the next >.
func (t *tokens) bogus(from int) bool {
	end := strings.IndexByte(t.page[from:], '>')
	if end < 0 {
		t.odd = true
		return false
	}
	t.kind, t.text = comment, unescape(t.page[from:from+end])
	t.at = from + end + 1
	return true
}

func (t *tokens) comment() bool {
	from := t.at + len("<!--")
	for at := from; ; at++ {
		i := strings.IndexByte(t.page[at:], '>')
		if i < 0 {
			t.odd = true
			return false
		}
		at += i
		in, whole := strings.CutSuffix(t.page[from:at], "--")
		if !whole {
			in, whole = strings.CutSuffix(in, "--!")
		}
		if !whole && (in == "" || in == "-") {
			in, whole = "", true
		}
		if whole {
			t.kind, t.text = comment, unescape(in)
			t.at = at + 1
			return true
		}
	}
}

// maxAttributes bounds the search for names that a tag has twice.
const maxAttributes = 100

// tag reads a tag whose name is at a place. keep says that its attributes are wanted.
func (t *tokens) tag(at int, keep bool) bool {
	var buf [32]byte
	name := buf[:0]
	for ; at < len(t.page) && !ends(t.page[at], nameEnd); at++ {
		c := t.page[at]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		name = append(name, c)
	}
	t.el, t.attr = named(name), nil
	t.found = t.found[:0]
	t.lastEnd = -1
	for {
		if at = t.space(at); at >= len(t.page) {
			t.at = at // a tag without end is no token
			return false
		}
		if t.page[at] == '>' {
			break
		}
		at = t.attribute(at, keep)
	}
	t.selfClosing = t.page[at-1] == '/' && at != t.lastEnd
	t.at = at + 1
	if n := len(t.found); n > maxAttributes {
		t.odd = true
	} else if n > 0 {
		if len(t.attrs) < n {
			t.attrs = make([]html.Attribute, maxAttributes)
		}
		t.attr = t.attrs[:n:n]
		t.attrs = t.attrs[n:]
		copy(t.attr, t.found)
	}
	return !t.odd
}

// attribute reads an attribute, and returns where it ends.
func (t *tokens) attribute(at int, keep bool) int {
	page := t.page
	from, upper := at, false
	for ; at < len(page); at++ {
		c := page[at]
		if ends(c, keyEnd) && (c != '=' || at > from) {
			break
		}
		upper = upper || 'A' <= c && c <= 'Z'
	}
	key, value, end := page[from:at], "", at
	if at = t.space(at); at >= len(page) {
		return at
	}
	switch page[at] {
	case '/':
		at++
	case '=':
		if at = t.space(at + 1); at >= len(page) {
			return at
		}
		switch c := page[at]; c {
		case '>':
		case '"', '\'':
			n := strings.IndexByte(page[at+1:], c)
			if n < 0 {
				return len(page)
			}
			value = page[at+1 : at+1+n]
			end = at + 1 + n
			at = end + 1
		default:
			from := at
			for at < len(page) && !ends(page[at], valueEnd) {
				at++
			}
			value, end = page[from:at], at
		}
	}
	if keep && key != "" && len(t.found) <= maxAttributes {
		if upper {
			key = lower(key)
		}
		for i := range t.found {
			if t.found[i].Key == key {
				return at
			}
		}
		t.lastEnd = end
		t.found = append(t.found, html.Attribute{Key: key, Val: unescapeValue(value)})
	}
	return at
}

func (t *tokens) space(at int) int {
	for at < len(t.page) && ends(t.page[at], isBlank) {
		at++
	}
	return at
}

// rawText reads the content of a raw element and its end tag. ok is false for a script that only
// html.Parse can read.
func (t *tokens) rawText(el *element) (content string, ok bool) {
	rest := t.page[t.at:]
	end := closing(rest, el.name)
	content = rest[:end]
	if el.name == "script" && strings.Contains(content, "<!--") && hides(content) {
		return "", false
	}
	if t.at += end; end < len(rest) {
		kind, element := t.kind, t.el
		t.tag(t.at+2, false)
		t.kind, t.el = kind, element
	}
	if el.is&unescaped != 0 {
		content = unescape(content)
	}
	return content, true
}

// hides reports whether a script with a comment may begin another script in it, whose end is
// not its own.
func hides(script string) bool {
	for at := 0; ; at++ {
		i := strings.IndexByte(script[at:], '<')
		if i < 0 {
			return false
		}
		if at += i; len(script) > at+len("script") && strings.EqualFold(script[at+1:at+1+len("script")], "script") {
			return true
		}
	}
}

// closing is where the end tag of a raw element begins in s, at its end for none.
func closing(s, name string) int {
	for at := 0; ; at += 2 {
		i := strings.Index(s[at:], "</")
		if i < 0 {
			return len(s)
		}
		at += i
		if after := at + 2 + len(name); after < len(s) && ends(s[after], nameEnd) && equalFold(s[at+2:after], name) {
			return at
		}
	}
}

// equalFold is for a name of ASCII letters.
func equalFold(word, name string) bool {
	for i := range len(name) {
		if word[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

const whitespace = " \t\n\f\r"

// What a character ends.
const (
	isBlank uint8 = 1 << iota
	nameEnd
	keyEnd
	valueEnd
)

var classes = func() (of [256]uint8) {
	for _, c := range []byte(whitespace) {
		of[c] = isBlank | nameEnd | keyEnd | valueEnd
	}
	of['/'] = nameEnd | keyEnd
	of['>'] = nameEnd | keyEnd | valueEnd
	of['='] = keyEnd
	return of
}()

func ends(c, what uint8) bool { return classes[c]&what != 0 }

// lower makes ASCII's capitals small; strings.ToLower would change others too.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// unescapeValue is html.UnescapeString for the value of an attribute. There a name without ";"
// must be whole, and no "=" may follow it: "?a=1&copy=2" stays as it is.
func unescapeValue(s string) string {
	amp := strings.IndexByte(s, '&')
	if amp < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for amp >= 0 {
		b.WriteString(s[:amp])
		s = s[amp:]
		n := 1
		for n < len(s) && (isLetter(s[n]) || '0' <= s[n] && s[n] <= '9' || n == 1 && s[n] == '#') {
			n++
		}
		semicolon := n < len(s) && s[n] == ';'
		if semicolon {
			n++
		}
		name := s[:n]
		plain := name
		switch {
		case strings.HasPrefix(name, "&#"):
			plain = html.UnescapeString(name) // what follows the digits stays behind them
		case name == "&amp;":
			plain = "&"
		case semicolon: // otherwise the beginning of the name was one, and ";" is left
			if p := html.UnescapeString(name); p == ";" || !strings.HasSuffix(p, ";") {
				plain = p
			}
		case n < len(s) && s[n] == '=':
		default:
			if p := html.UnescapeString(name); utf8.RuneCountInString(p) == 1 {
				plain = p
			}
		}
		b.WriteString(plain)
		s = s[n:]
		amp = strings.IndexByte(s, '&')
	}
	b.WriteString(s)
	return b.String()
}
