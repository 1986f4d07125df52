package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// The most prose that a page may have which a sign is believed of.
const (
	fewWords  = 300  // where the phrase may stand anywhere
	someWords = 650  // where it is a title or a heading
	maxLogin  = 250  // where it is a title or heading that says login
	longWall  = 3000 // where markup or the address shows a vendor: consent pages explain much
)

// sign is how one vendor's wall is known by markup that has no other use.
type sign struct {
	kind   Kind
	vendor string
	text   string // in lower case
	most   int    // the most prose of such a page
}

// phrase is how a wall is known by what it says to people. pattern is of one whole part of a title or heading, where parts
// are what stands between dashes, bars and colons.
type phrase struct {
	kind    Kind
	vendor  string
	pattern string
	most    int
}

// byHeader tells what only the header shows.
func byHeader(r Response) Verdict {
	for _, s := range headers {
		value := strings.ToLower(r.header(s.name))
		if value == "" || !strings.Contains(value, s.value) || s.refused && r.Status < 400 {
			continue
		}
		return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("header %s: %s", strings.ToLower(s.name), value)}
	}
	return Verdict{}
}

var headers = []struct {
	kind        Kind
	vendor      string
	name, value string // the value contains this
	refused     bool   // only with a status over 399: other answers have the header too
}{
	{Challenge, "Cloudflare", "Cf-Mitigated", "challenge", false},
	{Challenge, "AWS WAF", "X-Amzn-Waf-Action", "", false},
	{Challenge, "DataDome", "X-Dd-B", "", true},
	{Challenge, "DataDome", "X-Datadome", "", true},
	{Challenge, "Sucuri", "X-Sucuri-Block", "", false},
	{Challenge, "Vercel", "X-Vercel-Mitigated", "", false},
	{Challenge, "SiteGround", "Sg-Captcha", "challenge", false},
	{Challenge, "Kasada", "X-Kpsdk-Ct", "", true},
	{Login, "", "Www-Authenticate", "", true},
}

// html tells what a page of HTML is, "" for a page.
func (r Response) html(body []byte) Verdict {
	p := read(body, r.header("Content-Type"))
	if p.prose >= longWall {
		return Verdict{}
	}
	if v := r.byAddress(p); v.Kind != "" {
		return v
	}
	for _, s := range marks {
		if p.prose <= s.most && strings.Contains(p.markup, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: "markup " + s.text}
		}
	}
	if v := p.byPhrase(); v.Kind != "" {
		return v
	}
	if p.total == 0 && p.unseen == "" && p.scripts == 0 && p.media == 0 && p.links == 0 && p.title == "" {
		return Verdict{Kind: Empty, Evidence: "no text, script or picture"}
	}
	return Verdict{}
}

// byAddress tells what the address shows to which a request was redirected.
func (r Response) byAddress(p page) Verdict {
	if r.Final == "" || r.Final == r.URL {
		return Verdict{}
	}
	from, fromPath := host(r.URL)
	to, path := host(r.Final)
	for _, s := range hosts {
		same := to == s.text || strings.HasSuffix(to, "."+s.text) || strings.HasSuffix(s.text, ".") && strings.HasPrefix(to, s.text)
		if same && to != from && p.prose <= s.most {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: "redirected to " + to}
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(part, ".")
		kind := paths[name]
		if kind == "" || strings.Contains(fromPath, name) || kind == Login && !p.password && p.prose > fewWords ||
			kind != Consent && p.prose > someWords {
			continue
		}
		return Verdict{Kind: kind, Evidence: "redirected to " + to + path}
	}
	return Verdict{}
}

// place is a text of a page that says what the page is.
type place struct{ name, text string }

// places returns the title, the first headings, and of a short page all that it shows.
func (p page) places() []place {
	all := []place{{"title", p.title}}
	for i, h := range p.headings[:min(len(p.headings), 2)] {
		if i == 0 || p.sections <= 2 { // otherwise it may be one of many sections
			all = append(all, place{"heading", h})
		}
	}
	if p.total <= fewWords && len(p.headings) == 0 {
		all = append(all, place{"text", strings.ToValidUTF8(p.shown[:min(len(p.shown), maxTitle)], "")})
	} else if len(p.headings) == 0 {
		all = append(all, place{"text", first(p.shown)})
	}
	return all
}

// byPhrase tells what title, headings and text show.
func (p page) byPhrase() Verdict {
	if p.code || things().MatchString(p.markup) {
		return Verdict{}
	}
	places := p.places()
	for _, place := range places {
		for _, part := range parts(place.text) {
			if v := p.said(place, part); v.Kind != "" {
				return v
			}
		}
	}
	for _, s := range says {
		text := p.shown
		if s.unseen {
			text = p.unseen
		}
		if p.total <= cmp.Or(s.most, fewWords) && strings.Contains(text, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", s.text)}
		}
	}
	if p.password && p.prose <= someWords {
		return Verdict{Kind: Login, Evidence: "a field for a password and few words"}
	}
	for _, s := range captchas {
		if p.prose <= s.most && p.bare() && strings.Contains(p.markup, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: "nothing but a test, markup " + s.text}
		}
	}
	return Verdict{}
}

// said tells what one part of a title, heading or short text shows.
func (p page) said(at place, part string) Verdict {
	v := Verdict{Evidence: fmt.Sprintf("%s %q", at.name, at.text)}
	for _, s := range phrases() {
		if p.prose <= s.most && s.re.MatchString(part) {
			v.Kind, v.Vendor = s.kind, s.vendor
			return v
		}
	}
	switch {
	case p.prose <= fewWords && utf8.RuneCountInString(part) <= maxSentence && missing().MatchString(part):
		v.Kind = Soft404
	case at.name == "text":
	case !p.inline && p.prose <= maxLogin && strings.HasPrefix(clean(at.text), part) && loginTitle().MatchString(part):
		v.Kind = Login
	case p.buttons > 0 && p.links <= 12 && p.prose <= 2*someWords && aboutConsent().MatchString(part) && accepts().MatchString(p.shown):
		v.Kind = Consent
		v.Evidence += " and a button to accept"
	}
	return v
}

// text tells what a plain text or a JSON object is, "" for what it is.
func (r Response) text(body []byte) Verdict {
	if len(body) > maxShown {
		return Verdict{}
	}
	text := clean(string(body))
	if weigh([]byte(text)) > maxSmall {
		return Verdict{}
	}
	for _, s := range bodies {
		if strings.Contains(text, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", text)}
		}
	}
	if onlyError(body) {
		return Verdict{Kind: ErrorPage, Evidence: fmt.Sprintf("text %q", text)}
	}
	for _, part := range parts(first(text)) {
		for _, s := range phrases() {
			if s.re.MatchString(part) {
				return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", text)}
			}
		}
		if missing().MatchString(part) {
			return Verdict{Kind: Soft404, Evidence: fmt.Sprintf("text %q", text)}
		}
	}
	return Verdict{}
}

// onlyError reports whether a body is a JSON object with an error and no data: {"data": null, "errors": [{"message": …}]}.
func onlyError(body []byte) bool {
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		return false
	}
	failed := false
	for name, v := range object {
		list, isList := v.([]any)
		part, isObject := v.(map[string]any)
		has := len(list)+len(part) > 0
		switch name {
		case "error", "errors":
			text, isText := v.(string)
			failed = failed || has || isText && text != "" || v == true
		default:
			if (isList || isObject) && has {
				return false
			}
		}
	}
	return failed
}

// first returns the first sentence of a text.
func first(text string) string {
	if at := strings.IndexAny(text, ".!\n。"); at > 0 {
		text = text[:at]
	}
	return strings.ToValidUTF8(text[:min(len(text), maxTitle)], "")
}

var separators = regexp.MustCompile(`\s+[|\-–—·•:»«/]+\s+|\s*[|｜»«]\s*|[:：]\s+|\s*[!！。]+\s*|\.\s+`)

// codes is a status at the end of a title.
var codes = regexp.MustCompile(`\s*\((?:error )?\d{3}\)[.!]*$`)

// parts returns a title and what stands between its separators, in the form in which patterns are compared.
func parts(title string) (found []string) {
	title = clean(title)
	for i, part := range append([]string{title}, separators.Split(title, -1)...) {
		part = strings.Trim(codes.ReplaceAllString(part, ""), " .!?:;,-–—()[]\"'*#~|。！？、")
		if part != "" && (i == 0 || part != found[0]) {
			found = append(found, part)
		}
	}
	return found
}

type compiled struct {
	phrase
	re *regexp.Regexp
}

// phrases compiles the patterns when the first page needs them.
var phrases = sync.OnceValue(func() []compiled {
	var all []compiled
	for _, p := range wallPhrases {
		all = append(all, compiled{p, regexp.MustCompile(`^(?:` + p.pattern + `)$`)})
	}
	return all
})

// things finds the statement of a page that it is about a thing: no wall makes it.
var things = sync.OnceValue(func() *regexp.Regexp {
	const kinds = `(?:product|productgroup|[a-z]*article|blogposting|recipe|event|jobposting|itemlist)\b`
	return regexp.MustCompile(`"@type"\s*:\s*\[?\s*"` + kinds + `|itemtype=https?://schema\.org/` + kinds)
})

var loginTitle = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + loginPattern + `)$`) })
