package answer

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

const (
	maxBody    = 1 << 20   // bytes of a body that are read
	maxToken   = 256 << 10 // bytes of a tag, text or script; reading ends at a longer one
	maxMarkup  = 256 << 10 // bytes of markup that are searched
	maxShown   = 8 << 10   // bytes of text that are searched
	maxTitle   = 300       // bytes of a title or heading
	maxHeads   = 5
	enough     = 8000 // weight of prose from which on a page is content
	wideWeight = 2    // weight of a letter of a script that writes a word in few letters
)

// page is what a page of HTML shows, and what it is made of.
type page struct {
	title    string
	headings []string // the first ones
	shown    string   // the text that is shown, in lower case, links included
	unseen   string   // the text for browsers without scripts, in lower case
	markup   string   // scripts, and attributes of elements other than links to read, in lower case
	prose    int      // weight of the text outside links, menus and forms
	total    int      // weight of all text that is shown
	links    int
	sections int  // headings outside menus, headers and footers
	password bool // a field for a password, outside menus, headers and boxes
	fields   int  // to fill in
	buttons  int
	code     bool // a block of code
	inline   bool // code in a line
	media    int  // pictures, videos, frames
	scripts  int
}

// reader reads a page token by token: a tree would take sixty times its size.
type reader struct {
	page

	skip   string // the name of the element whose content is not shown
	depth  int    // how many elements of that name are open
	around int    // how many menus, headers and footers are open
	box    string // the name of the dialog that is open
	boxes  int    // how many elements of that name are open
	link   int
	script bool
	head   string // the heading that is open
	line   strings.Builder
	text   strings.Builder
	noText strings.Builder
	marks  strings.Builder
	outer  int // weight of the text in menus, headers and footers outside links
}

// read reads the first MiB of a page.
func read(body []byte, contentType string) page {
	body = body[:min(len(body), maxBody)]
	text, _, err := charset.Bytes(body, contentType)
	if err != nil {
		text = body
	}
	r := reader{}
	z := html.NewTokenizer(bytes.NewReader(text))
	z.SetMaxBuf(maxToken)
	for r.prose < enough {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		switch kind {
		case html.TextToken:
			r.words(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			r.start(z, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			r.end(string(name))
		}
	}
	r.close()
	if r.outer > enough/2 { // no menu has as much
		r.prose += r.outer
	}
	r.shown, r.unseen, r.markup = clean(r.text.String()), clean(r.noText.String()), strings.ToLower(r.marks.String())
	return r.page
}

// hides lists the elements whose content is not shown, with those that a tokenizer reads as text.
var hides = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "svg": true, "title": true,
	"textarea": true, "select": true, "iframe": true, "object": true, "noembed": true, "noframes": true}

// closed lists the elements that need an end tag, so that a hidden one can be told to end.
var closed = map[string]bool{"div": true, "section": true, "span": true, "form": true, "dialog": true, "aside": true, "article": true,
	"ul": true, "ol": true, "button": true, "nav": true, "footer": true, "header": true, "main": true, "a": true, "table": true,
	"h1": true, "h2": true, "h3": true}

// boxes matches the classes of dialogs and menus that a page opens over its content.
var boxes = regexp.MustCompile(`(?i)modal|popup|drop-?down|navbar|offcanvas`)

// attributes adds the attributes of a tag to the markup. It returns whether the element is hidden, its type, and
// whether it is a dialog.
func (r *reader) attributes(z *html.Tokenizer, name string, more bool) (hidden bool, kind string, box bool) {
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		k := string(key)
		switch {
		case k == "hidden", k == "style" && hiding(value):
			hidden = true
		case k == "type":
			kind = strings.ToLower(string(value))
		case k == "role" && string(value) == "dialog", k == "class" && boxes.MatchString(string(value)):
			box = closed[name]
		}
		if r.marks.Len() < maxMarkup && (name != "a" || k != "href") {
			r.mark(k)
			r.mark("=")
			r.mark(string(value))
			r.mark("\n")
		}
	}
	return hidden, kind, box
}

func (r *reader) start(z *html.Tokenizer, selfClosing bool) {
	raw, more := z.TagName()
	name := string(raw)
	hidden, kind, box := r.attributes(z, name, more)
	r.script = name == "script" && !selfClosing
	if r.script {
		r.scripts++
	}
	if r.skip != "" {
		if name == r.skip && !selfClosing {
			r.depth++
		}
		return
	}
	switch {
	case r.box == "" && box && !selfClosing:
		r.box, r.boxes = name, 1
	case r.box == name && !selfClosing:
		r.boxes++
	}
	switch name {
	case "a":
		r.links++
		r.link++
	case "nav", "header", "footer", "aside":
		r.around++
	case "button":
		r.buttons++
	case "textarea":
		r.fields++
	case "input":
		switch {
		case kind == "submit" || kind == "button":
			r.buttons++
		case kind != "hidden" && kind != "checkbox" && !hidden:
			r.fields++
		}
		r.password = r.password || kind == "password" && !hidden && r.around == 0 && r.box == ""
	case "pre":
		r.code = true
	case "code":
		r.inline = true
	case "img", "video", "audio", "picture", "canvas", "svg", "iframe", "frame", "object", "embed":
		r.media++
	case "h1", "h2", "h3":
		r.close()
		if r.head = name; r.around == 0 {
			r.sections++
		}
	}
	if hides[name] && (!selfClosing || name != "svg") || hidden && closed[name] && !selfClosing {
		r.skip, r.depth = name, 1
	}
	r.space(name)
}

func (r *reader) end(name string) {
	r.script = false
	if r.skip != "" {
		if name != r.skip {
			return
		}
		if r.depth--; r.depth > 0 {
			return
		}
		r.skip = ""
	}
	if name == r.box {
		if r.boxes--; r.boxes == 0 {
			r.box = ""
		}
	}
	switch name {
	case "a":
		r.link = 0 // links are never nested
	case "nav", "header", "footer", "aside":
		r.around = max(0, r.around-1)
	case "h1", "h2", "h3":
		r.close()
	}
	r.space(name)
}

// close ends an open heading.
func (r *reader) close() {
	if text := line(r.line.String()); text != "" && r.head != "" && len(r.headings) < maxHeads {
		r.headings = append(r.headings, text)
	}
	r.line.Reset()
	r.head = ""
}

func (r *reader) mark(s string) {
	if space := maxMarkup - r.marks.Len(); space > 0 {
		r.marks.WriteString(s[:min(len(s), space)])
	}
}

// space parts the words of two elements that are not in one line.
func (r *reader) space(name string) {
	switch name {
	case "b", "i", "em", "strong", "span", "a", "font", "u", "code", "small":
		return
	}
	if r.text.Len() < maxShown {
		r.text.WriteByte(' ')
	}
	if r.head != "" && r.line.Len() < maxTitle {
		r.line.WriteByte(' ')
	}
}

func (r *reader) words(text []byte) {
	if r.script {
		r.mark(string(text))
		r.mark("\n")
		return
	}
	switch r.skip {
	case "":
	case "title":
		if r.title == "" {
			r.title = line(string(text[:min(len(text), 4*maxTitle)]))
		}
		return
	case "noscript":
		if r.noText.Len() < maxShown {
			r.noText.Write(text[:min(len(text), maxShown)])
		}
		return
	default:
		return
	}
	weight := weigh(text)
	r.total += weight
	switch {
	case r.link > 0:
	case r.around > 0:
		r.outer += weight
	default:
		r.prose += weight
	}
	if space := maxShown - r.text.Len(); space > 0 {
		r.text.Write(text[:min(len(text), space)])
	}
	if space := 4*maxTitle - r.line.Len(); r.head != "" && space > 0 {
		r.line.Write(text[:min(len(text), space)])
	}
}

// weigh counts the letters of a text; one of Chinese, Japanese or Korean says more than others.
func weigh(text []byte) (weight int) {
	for len(text) > 0 {
		if c := text[0]; c < utf8.RuneSelf {
			if c|0x20 >= 'a' && c|0x20 <= 'z' {
				weight++
			}
			text = text[1:]
			continue
		}
		c, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
			weight += wideWeight
		case unicode.IsLetter(c):
			weight++
		}
	}
	return weight
}

func hiding(style []byte) bool {
	s := strings.ReplaceAll(strings.ToLower(string(style[:min(len(style), 500)])), " ", "")
	return strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden")
}

// line returns text as one clean line with references resolved.
func line(text string) string { return untrusted.Line(html.UnescapeString(text), maxTitle) }

var plainer = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "…", "...", "\u00a0", " ", "\u200b", "", "\u00ad", "")

// clean returns text in the form in which phrases are compared.
func clean(text string) string {
	return strings.Join(strings.Fields(plainer.Replace(strings.ToLower(html.UnescapeString(text)))), " ")
}

// host returns the host of an address in lower case, and the rest of it.
func host(address string) (name, path string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	return strings.ToLower(u.Hostname()), strings.ToLower(u.EscapedPath())
}
