package article

import (
	"bytes"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/structured"

	"golang.org/x/net/html"
)

// shortText is the width of a text that is too short for an article: then the page may be
// filled by scripts, and its text be where readers do not see it.
const shortText = 250

// text is the longest text in what strip removed, "" for none.
func (u unseen) text() (longest string) {
	for _, m := range u.markup {
		root, err := html.Parse(strings.NewReader(string(m)))
		if err != nil { // nested too deep
			continue
		}
		r := newReader(root)
		if t := joinLines(r.trim(r.write(r.find(root)))); width(t) > width(longest) {
			longest = t
		}
	}
	for _, s := range u.scripts {
		if t := inData(s); width(t) > width(longest) {
			longest = t
		}
	}
	return longest
}

// inData is the prose in a script's JSON: of the texts at the same place in their lists and
// objects, such as article.body.content, those with most prose. Texts of other articles are
// shorter, or at another place.
func inData(script []byte) string {
	at := dataIn(script)
	if at < 0 {
		return ""
	}
	texts, widths := map[string][]string{}, map[string]int{}
	var walk func(*structured.Item, string)
	walk = func(it *structured.Item, place string) {
		for _, name := range it.Names() {
			below := place + "." + name
			for _, v := range it.Values(name) {
				if v.Item != nil {
					walk(v.Item, below)
					continue
				}
				if t := stripTags(v.Text); width(t) >= 60 && sentence(strings.TrimSpace(t)) && strings.IndexByte(t, '{') < 0 {
					texts[below] = append(texts[below], t)
					widths[below] += width(t)
				}
			}
		}
	}
	for _, it := range structured.Read(nil, script[at:]).Items {
		walk(it, "")
	}
	best := ""
	for place, n := range widths {
		if n > widths[best] || n == widths[best] && place < best {
			best = place
		}
	}
	return strings.Join(texts[best], "\n")
}

// dataIn is where a script's object or list begins: at once, or after a "="; -1 for nowhere.
func dataIn(script []byte) int {
	for at := 0; at < len(script); {
		rest := bytes.TrimLeft(script[at:], " \t\r\n")
		if len(rest) > 1 && (rest[0] == '{' || rest[0] == '[') && (rest[1] == '"' || rest[1] == '{' || rest[1] == '\n' || rest[1] == ' ') {
			return len(script) - len(rest)
		}
		i := bytes.IndexByte(script[at:], '=')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	return -1
}
