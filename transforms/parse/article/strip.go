package article

import (
	"bytes"
	"io"
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

// pieces reads the parts of a page that strip keeps, one after another, without putting
// them together.
type pieces [][]byte

func (p *pieces) Read(b []byte) (n int, err error) {
	for n < len(b) && len(*p) > 0 {
		k := copy(b[n:], (*p)[0])
		n += k
		if (*p)[0] = (*p)[0][k:]; len((*p)[0]) == 0 {
			*p = (*p)[1:]
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
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
func strip(text []byte) (page pieces, gone unseen) {
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
			end := -1
			if !open["--"] {
				end = bytes.Index(rest[2:], []byte("-->"))
			}
			if end < 0 {
				open["--"] = true
				at += 4
				continue
			}
			remove(at, at+2+end+3)
			at = done
			continue
		}
		name := rawName(rest)
		if name == "" || open[name] {
			at++
			continue
		}
		tag := bytes.IndexByte(rest, '>') + 1
		if tag == 0 {
			break
		}
		if name == "img" || name == "link" { // they have no end
			wanted := name == "link" && bytes.Contains(bytes.ToLower(rest[:tag]), []byte("canonical"))
			if !wanted && bytes.Count(rest[:tag], []byte{'"'})%2 == 0 && bytes.Count(rest[:tag], []byte{'\''})%2 == 0 { // else the > may be in an attribute's value
				remove(at, at+tag)
			}
			at += tag
			continue
		}
		end := closing(rest[tag:], name)
		if end < 0 {
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
		remove(at, at+tag+end+len("</>")+len(name))
		if !spaced {
			page = append(page, []byte{' '})
			spaced = true
		}
		at = done
	}
	return append(page, text[done:]), gone
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

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

// closing is where "</name>" begins in s, in upper or lower case, -1 for nowhere.
func closing(s []byte, name string) int {
	for at := 0; ; {
		i := bytes.Index(s[at:], []byte("</"))
		if i < 0 {
			return -1
		}
		at += i
		if len(s) >= at+3+len(name) && equalFold(s[at+2:at+2+len(name)], name) && s[at+2+len(name)] == '>' {
			return at
		}
		at += 2
	}
}
