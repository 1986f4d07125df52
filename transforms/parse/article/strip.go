package article

import (
	"bytes"
	"strings"
)

// raw are the elements that contain nothing of the article, and no element of their own
// kind; they are most of a page's bytes.
var raw = [...]string{"script", "style", "svg", "noscript", "iframe", "template", "nav", "select", "button", "picture", "video", "img", "link"}

// rawByLetter are the names in raw by their first letter.
var rawByLetter = func() (by [256][]string) {
	for _, name := range raw {
		by[name[0]] = append(by[name[0]], name)
	}
	return by
}()

// pieces are the parts of a page that strip keeps.
type pieces [][]byte

// String puts them together. Together they are often less than half of the page.
func (p pieces) String() string {
	n := 0
	for _, piece := range p {
		n += len(piece)
	}
	var b strings.Builder
	b.Grow(n)
	for _, piece := range p {
		b.Write(piece)
	}
	return b.String()
}

// unseen are parts of a page that strip removed and that may be its text all the same.
type unseen struct {
	jsonLD  [][]byte
	scripts [][]byte // those that are long enough for data
	markup  [][]byte // in noscript and template
}

// strip removes from a page what no reader sees, before the parser makes a tree
// of it. That halves the time for a page.
// An element without an end stays. Publishers' selectors do not
// see what strip removes. Of space that only tags separate, the first is kept: it
// separates words as well as all of it, and each would be a node of the tree.
func strip(text []byte) (string, unseen) {
	var page pieces
	var gone unseen
	done := 0
	remove := func(from, to int) {
		page = append(page, text[done:from])
		done = to
	}
	spaced := false           // since the last space there were only tags
	open := map[string]bool{} // elements without an end in the rest of the page: searched for once
	for at := 0; at < len(text); {
		i := bytes.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		at += i
		begin := at // of the space before the tag
		for begin > done && blank(text[begin-1]) {
			begin--
		}
		switch between := begin > 0 && text[begin-1] == '>'; {
		case begin == at:
			spaced = spaced && between
		case spaced && between:
			remove(begin, at)
		default:
			spaced = true
		}
		rest := text[at:]
		if bytes.HasPrefix(rest, []byte("<!--")) {
			end := commentEnd(rest)
			if end < 0 { // to the parser the rest of the page is this comment
				break
			}
			remove(at, at+end)
			at = done
			continue
		}
		name := rawName(rest)
		if name == "button" && inHeading(text[done:at]) { // a question that opens its answer
			name = ""
		}
		if name == "" || open[name] {
			n := whole(rest)
			if n < 0 {
				break
			}
			at += n
			continue
		}
		tag := tagEnd(rest)
		if tag < 0 {
			break
		}
		if name == "img" || name == "link" { // they have no end
			wanted := name == "link" && bytes.Contains(bytes.ToLower(rest[:tag]), []byte("canonical"))
			if !wanted {
				remove(at, at+tag)
			}
			at += tag
			continue
		}
		end, after := closing(rest[tag:], name)
		if end < 0 {
			if name == "script" || name == "style" || name == "iframe" { // to the parser the rest of the page is in it
				break
			}
			open[name] = true
			at += tag
			continue
		}
		switch inner := rest[tag : tag+end]; {
		case name == "script" && bytes.Contains(rest[:tag], []byte("ld+json")):
			gone.jsonLD = append(gone.jsonLD, inner)
		case end < shortText:
		case name == "script":
			gone.scripts = append(gone.scripts, inner)
		case name == "noscript", name == "template":
			gone.markup = append(gone.markup, inner)
		}
		remove(at, at+tag+after)
		if !spaced {
			page = append(page, []byte{' '})
			spaced = true
		}
		at = done
	}
	return append(page, text[done:]).String(), gone
}

// inHeading reports whether the last tag before an element begins a heading.
func inHeading(before []byte) bool {
	i := bytes.LastIndexByte(before, '<')
	return i >= 0 && len(before) > i+2 && before[i+1]|0x20 == 'h' && '1' <= before[i+2] && before[i+2] <= '6'
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// whole is where the > is that ends the tag or comment with which s begins, 1 where it is text and
// -1 where it has no end. What another < begins in it is no element.
func whole(s []byte) int {
	if len(s) < 2 {
		return 1
	}
	c := s[1]
	if c == '/' && len(s) > 2 && s[2] != '>' {
		c = s[2]
		if !letter(c) {
			c = '!'
		}
	}
	switch {
	case c == '!' || c == '?': // a doctype, or a comment to the parser
		return bytes.IndexByte(s, '>')
	case !letter(c):
		return 1
	}
	end := bytes.IndexByte(s, '>')
	if end < 0 || bytes.IndexByte(s[1:end], '<') < 0 {
		return end
	}
	return tagEnd(s)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// rawName is the raw element that begins here, "" for none.
func rawName(s []byte) string {
	if len(s) < 2 {
		return ""
	}
	for _, name := range rawByLetter[s[1]|0x20] {
		if len(s) > len(name)+1 && equalFold(s[1:1+len(name)], name) && bytes.IndexByte([]byte(" \t\r\n\f>/"), s[1+len(name)]) >= 0 {
			return name
		}
	}
	return ""
}

// equalFold reports whether a word is name, in lower or upper case. name is ASCII letters.
func equalFold(word []byte, name string) bool {
	for i := range len(name) {
		if word[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

// closing is where the end tag of name begins in s, in upper or lower case, and where it ends;
// -1 for nowhere. As in the parser a script does not end at the end tag of another one
// in its <!-- -->.
func closing(s []byte, name string) (begin, end int) {
	script := name == "script"
	to := 0          // the end of the last <!-- --> in a script
	next := 0        // the end of the next --> that was searched for
	another := false // a script is open in it
	for at := 0; ; at++ {
		i := bytes.IndexByte(s[at:], '<')
		if i < 0 {
			return -1, -1
		}
		at += i
		if another && at >= to {
			another = false
		}
		rest := s[at:]
		switch {
		case named(rest, 2, name) && rest[1] == '/':
			if another {
				another = false
				continue
			}
			if n := tagEnd(rest); n > 0 {
				return at, at + n
			}
			return -1, -1
		case !script:
		case at >= to && bytes.HasPrefix(rest, []byte("<!--")):
			if next < at+len("<!-->") {
				next = len(s)
				if n := bytes.Index(rest[2:], []byte("-->")); n >= 0 {
					next = at + 2 + n + len("-->")
				}
			}
			to = next
		case at < to && named(rest, 1, name):
			another = true
		case at < to && !another && len(rest) > 1 && rest[1] != '/' && !letter(rest[1]): // so html.Parse has it, though no standard
			to = at
		}
	}
}

// named reports whether a name is at s[at:] and ends there.
func named(s []byte, at int, name string) bool {
	end := at + len(name)
	return len(s) > end && equalFold(s[at:end], name) && (blank(s[end]) || s[end] == '>' || s[end] == '/')
}

// commentEnd is where the comment ends with which s begins, -1 for nowhere.
func commentEnd(s []byte) int {
	end, before := bytes.Index(s[2:], []byte("-->")), s // <!--> is a comment too
	if end >= 0 {
		end += 2 + len("-->")
		before = s[:max(end, 4)]
	}
	if bang := bytes.Index(before[4:], []byte("--!>")); bang >= 0 {
		return 4 + bang + len("--!>")
	}
	return end
}

// tagEnd is where the tag ends with which s begins, -1 for nowhere. A > in the quotes of an
// attribute's value does not end it.
func tagEnd(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '>':
			return i + 1
		case c != '=':
			continue
		}
		for i+1 < len(s) && blank(s[i+1]) {
			i++
		}
		if i+1 == len(s) {
			break
		}
		if quote := s[i+1]; quote == '"' || quote == '\'' {
			n := bytes.IndexByte(s[i+2:], quote)
			if n < 0 {
				return -1
			}
			i += 2 + n
			continue
		}
		for i+1 < len(s) && !blank(s[i+1]) && s[i+1] != '>' { // a value without quotes
			i++
		}
	}
	return -1
}
