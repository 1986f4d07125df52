// Package pagehead reads a page's instructions to crawlers: whether it may be
// indexed, which page it is a copy of (canonical), and where it redirects
// browsers (refresh). It is pure. No promise: see docs/library.md.
package pagehead

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// Head has a page's instructions to crawlers.
type Head struct {
	NoIndex   bool
	NoFollow  bool
	Canonical string // the address as written, "" for none
	Markdown  string // the address of its Markdown (rel=alternate), as written, "" for none
	Refresh   string // where the page redirects by itself, as written, "" for nowhere
	// Describes are the addresses of descriptions of an API (rel=service-desc, RFC 8631),
	// as written, at most maxDescribes.
	Describes []string
}

// maxRefreshDelay is the delay in seconds up to which a refresh is a redirect;
// with a longer delay the page itself is meant to be read.
const maxRefreshDelay = 15

const maxDescribes = 50

// maxTokens bounds the search for the end of the head.
const maxTokens = 5000

// Read reads the header of a response and the head of its body, which is HTML of
// that content type or, where page is nil, something else. agent is the
// crawler's name in robots.txt.
func Read(header map[string][]string, page []byte, contentType, agent string) Head {
	var h Head
	for _, line := range header["X-Robots-Tag"] {
		h.directives(ForAgent(line, agent))
	}
	for _, line := range header["Link"] {
		h.link(line)
	}
	if page == nil {
		return h
	}
	text, _, err := charset.Decode(page, contentType)
	if err != nil {
		return h // the parser of the content reports it
	}
	h.head(text, agent)
	return h
}

// Directives returns the directives of a robots meta element or of ForAgent, in lower case: a word, or name:value. Commas divide
// them; where spaces or semicolons stand in their place, they are meant.
func Directives(list string) (all []string) {
	for part := range strings.SplitSeq(strings.ToLower(list), ",") {
		if name, value, has := strings.Cut(part, ":"); has {
			all = append(all, strings.TrimSpace(name)+":"+strings.TrimSpace(value))
		} else {
			all = append(all, strings.FieldsFunc(part, func(r rune) bool { return r == ';' || unicode.IsSpace(r) })...)
		}
	}
	return all
}

// ForAgent returns the part of an X-Robots-Tag that a crawler is meant by: what stands before all names of crawlers, and after its own.
func ForAgent(line, agent string) string {
	var mine []string
	is := true
	for part := range strings.SplitSeq(line, ",") {
		name, rest, named := strings.Cut(part, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if named && !strings.ContainsAny(name, " \t") && !hasValue[name] {
			is, part = name == strings.ToLower(agent) || name == "*", rest
		}
		if is {
			mine = append(mine, part)
		}
	}
	return strings.Join(mine, ",")
}

func (h *Head) directives(list string) {
	for _, one := range Directives(list) {
		h.NoIndex = h.NoIndex || one == "noindex" || one == "none"
		h.NoFollow = h.NoFollow || one == "nofollow" || one == "none"
	}
}

// hasValue are the directives that have a value of their own after a colon.
var hasValue = map[string]bool{"unavailable_after": true, "max-snippet": true, "max-image-preview": true, "max-video-preview": true}

// link reads a Link header for its canonical address and its Markdown.
func (h *Head) link(line string) {
	for _, l := range Links(line) {
		h.related(l.Params["rel"], l.Params["type"], l.Target)
	}
}

// link is a link of a link header.
type link struct {
	Raw, Target string            // as written; the target without spaces around it
	Params      map[string]string // by names in lower case; of several with one name the first
}

// Links reads a Link header (RFC 8288 appendix B.2). What stands outside of links is ignored.
func Links(line string) (all []link) {
	for {
		begin := strings.IndexByte(line, '<')
		end := strings.IndexByte(line, '>')
		if begin < 0 || end < begin {
			return all
		}
		l := link{Target: strings.TrimSpace(line[begin+1 : end]), Params: map[string]string{}}
		rest := line[end+1:]
		for more := true; more; {
			rest, more = l.param(rest)
		}
		l.Raw = strings.TrimSpace(line[begin : len(line)-len(rest)])
		if comma := strings.IndexByte(rest, ','); comma >= 0 {
			rest = rest[comma:]
		} else {
			rest = ""
		}
		all, line = append(all, l), rest
	}
}

// param reads the parameter at the beginning of a text; more is false if there is none.
func (l *link) param(text string) (rest string, more bool) {
	text, more = strings.CutPrefix(strings.TrimLeft(text, " \t"), ";")
	if !more {
		return text, false
	}
	end := cmp.Or(strings.IndexAny(text, "=;,")+1, len(text)+1) - 1
	name, value := strings.ToLower(strings.TrimSpace(text[:end])), ""
	if text = text[end:]; strings.HasPrefix(text, "=") {
		text = strings.TrimLeft(text[1:], " \t")
		if strings.HasPrefix(text, `"`) {
			value, text = quoted(text[1:])
		} else {
			end := cmp.Or(strings.IndexAny(text, ";,")+1, len(text)+1) - 1
			value, text = strings.TrimSpace(text[:end]), text[end:]
		}
	}
	if _, twice := l.Params[name]; !twice {
		l.Params[name] = value
	}
	return text, true
}

// quoted reads a quoted string after its first quote.
func quoted(text string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

// related reads what a Link header or a link element says of an address.
func (h *Head) related(rel, media, address string) {
	if h.Canonical == "" && HasWord(rel, "canonical") {
		h.Canonical = address
	}
	if h.Markdown == "" && HasWord(rel, "alternate") && strings.EqualFold(strings.TrimSpace(media), "text/markdown") {
		h.Markdown = address
	}
	if HasWord(rel, "service-desc") && address != "" && len(h.Describes) < maxDescribes && !slices.Contains(h.Describes, address) {
		h.Describes = append(h.Describes, address)
	}
}

// HasWord reports whether a list with spaces, such as the value of rel, has a word in any case.
func HasWord(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// head reads the elements before the body. It ignores those in noscript and template,
// which are not for crawlers.
func (h *Head) head(text, agent string) {
	z := html.NewTokenizer(strings.NewReader(text))
	aside := 0
	for range maxTokens {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken && kind != html.EndTagToken {
			continue
		}
		name, more := z.TagName()
		switch element := string(name); {
		case element == "body" || kind == html.EndTagToken && element == "head":
			return
		case element == "noscript" || element == "template":
			if kind == html.EndTagToken {
				aside = max(0, aside-1)
			} else {
				aside++
			}
		case aside > 0 || kind == html.EndTagToken:
		case element == "meta":
			h.meta(dom.Attributes(z, more), agent)
		case element == "link":
			a := dom.Attributes(z, more)
			h.related(a["rel"], a["type"], strings.TrimSpace(a["href"]))
		}
	}
}

func (h *Head) meta(a map[string]string, agent string) {
	if name := strings.TrimSpace(a["name"]); strings.EqualFold(name, "robots") || strings.EqualFold(name, agent) {
		h.directives(a["content"])
	}
	if !strings.EqualFold(strings.TrimSpace(a["http-equiv"]), "refresh") || h.Refresh != "" {
		return
	}
	m := refresh.FindStringSubmatch(a["content"])
	if m == nil {
		return
	}
	if seconds, err := strconv.Atoi(cmp.Or(m[1], "0")); err != nil || seconds > maxRefreshDelay {
		return
	}
	at := m[2]
	if at[0] == '"' || at[0] == '\'' {
		at, _, _ = strings.Cut(at[1:], at[:1])
	}
	h.Refresh = strings.TrimSpace(at)
}

// refresh has the seconds and the address, as HTML's standard finds them: "url=" may be absent.
var refresh = regexp.MustCompile(`(?is)^\s*(?:([0-9]+)|\.)[0-9.]*(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(\S.*)$`)
