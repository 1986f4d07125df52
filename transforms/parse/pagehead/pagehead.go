// Package pagehead reads what a page says of itself to crawlers: whether it
// wants to be indexed, which page it is a copy of, and where it sends its
// readers on. It is pure.
package pagehead

import (
	"mime"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// Head is what a page says of itself.
type Head struct {
	NoIndex   bool
	NoFollow  bool
	Canonical string // the address as it is written, "" for none
	Refresh   string // where the page leads on by itself, as it is written, "" for nowhere
}

// longestRefresh is the delay in seconds up to which a refresh is a redirect;
// past it a page is there to be read.
const longestRefresh = 15

// maxTokens bounds the search for the end of the head.
const maxTokens = 5000

// Read reads the header of an answer and the head of its body, which is HTML of
// that content type or, where page is nil, something else. agent is the
// crawler's name, as robots.txt has it.
func Read(header map[string][]string, page []byte, contentType, agent string) Head {
	var h Head
	for _, line := range header["X-Robots-Tag"] {
		h.tag(line, agent)
	}
	for _, line := range header["Link"] {
		h.link(line)
	}
	if page == nil {
		return h
	}
	text, _, err := charset.Decode(page, contentType)
	if err != nil {
		return h // who reads the content says so
	}
	h.head(text, agent)
	return h
}

// directives are those of a robots meta element or of X-Robots-Tag.
func (h *Head) directives(list string) {
	for one := range strings.SplitSeq(list, ",") {
		switch strings.ToLower(strings.TrimSpace(one)) {
		case "noindex":
			h.NoIndex = true
		case "nofollow":
			h.NoFollow = true
		case "none":
			h.NoIndex, h.NoFollow = true, true
		}
	}
}

// tag reads an X-Robots-Tag, which may begin with the name of the crawler that
// it is for.
func (h *Head) tag(line, agent string) {
	name, rest, named := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	switch {
	case !named || strings.ContainsAny(name, ", ") || valued[strings.ToLower(name)]:
		h.directives(line)
	case strings.EqualFold(name, agent):
		h.directives(rest)
	}
}

// valued are the directives that have a value of their own after a colon.
var valued = map[string]bool{"unavailable_after": true, "max-snippet": true, "max-image-preview": true, "max-video-preview": true}

// link reads a Link header for its canonical address.
func (h *Head) link(line string) {
	for _, m := range links.FindAllStringSubmatch(line, -1) {
		_, params, err := mime.ParseMediaType("x/x" + m[2])
		if err == nil && h.Canonical == "" && hasWord(params["rel"], "canonical") {
			h.Canonical = strings.TrimSpace(m[1])
		}
	}
}

var links = regexp.MustCompile(`<([^>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s,;"]+))*)`)

func hasWord(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// head reads the elements up to the body. What stands in noscript or template
// is for other readers.
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
		t := z.Token()
		switch {
		case t.Data == "body" || kind == html.EndTagToken && t.Data == "head":
			return
		case t.Data == "noscript" || t.Data == "template":
			if kind == html.EndTagToken {
				aside = max(0, aside-1)
			} else {
				aside++
			}
		case aside > 0 || kind == html.EndTagToken:
		case t.Data == "meta":
			h.meta(attributes(t), agent)
		case t.Data == "link":
			if a := attributes(t); h.Canonical == "" && hasWord(a["rel"], "canonical") {
				h.Canonical = strings.TrimSpace(a["href"])
			}
		}
	}
}

func attributes(t html.Token) map[string]string {
	out := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		if _, twice := out[a.Key]; !twice {
			out[a.Key] = a.Val
		}
	}
	return out
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
	if seconds, err := strconv.ParseFloat(m[1], 64); err == nil && seconds <= longestRefresh {
		h.Refresh = strings.TrimSpace(strings.Trim(strings.TrimSpace(m[2]), `'"`))
	}
}

var refresh = regexp.MustCompile(`(?is)^\s*([0-9]+(?:\.[0-9]*)?)\s*[;,]?\s*url\s*=\s*(.+)$`)
