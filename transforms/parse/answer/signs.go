package answer

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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

//go:embed walls.txt
var walls string

// sign is how a wall is known in one place of an answer.
type sign struct {
	kind   Kind
	vendor string
	most   int    // the most prose of such a page
	text   string // in lower case, or an expression
}

// signs are those of walls.txt, by place.
var signs = sync.OnceValue(func() map[string][]sign {
	all := map[string][]sign{}
	place, s := "", sign{}
	for line := range strings.SplitSeq(walls, "\n") {
		head, isHead := strings.CutPrefix(line, "[")
		switch {
		case line == "" || line[0] == '#':
		case isHead:
			col := append(strings.SplitN(strings.TrimSuffix(head, "]"), " ", 4), "")
			most, err := strconv.Atoi(col[2])
			if err != nil {
				panic(err) // a mistake in the file, which any test finds
			}
			place, s = col[0], sign{kind: Kind(col[1]), most: most, vendor: col[3]}
		default:
			s.text = line
			all[place] = append(all[place], s)
		}
	}
	return all
})

// phrase is the expression of the signs of one head.
type phrase struct {
	sign
	re *regexp.Regexp
}

// phrases compiles the expressions of a place, when the first page needs them.
func phrases(place, before, after string) func() []phrase {
	return sync.OnceValue(func() (all []phrase) {
		texts := ""
		list := signs()[place]
		for i, s := range list {
			texts += "|" + s.text
			s.text = ""
			if next := i + 1; next < len(list) {
				if n := list[next]; n.kind == s.kind && n.vendor == s.vendor && n.most == s.most {
					continue
				}
			}
			all = append(all, phrase{s, regexp.MustCompile(before + texts[1:] + after)})
			texts = ""
		}
		return all
	})
}

var (
	titles  = phrases("title", `^(?:`, `)$`)
	missing = phrases("missing", ``, ``)
	logins  = phrases("login", `^(?:`, `)$`)
	consent = phrases("consent", `^(?:`, `)$`)
	accepts = phrases("accept", ``, ``)
)

// says reports whether one of the expressions matches.
func says(of []phrase, text string) bool {
	return slices.ContainsFunc(of, func(p phrase) bool { return p.re.MatchString(text) })
}

// maxSentence is the most characters of a title or heading that says that a page is missing.
const maxSentence = 70

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
	for _, s := range signs()["markup"] {
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
	for _, s := range signs()["host"] {
		same := to == s.text || strings.HasSuffix(to, "."+s.text) || strings.HasSuffix(s.text, ".") && strings.HasPrefix(to, s.text)
		if same && to != from && p.prose <= s.most {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: "redirected to " + to}
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(part, ".")
		for _, s := range signs()["path"] {
			if s.text == name && p.prose <= s.most && !strings.Contains(fromPath, name) && (s.kind != Login || p.password || p.prose <= fewWords) {
				return Verdict{Kind: s.kind, Evidence: "redirected to " + to + path}
			}
		}
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
	for _, at := range []place{{"text", p.shown}, {"noscript", p.unseen}} {
		for _, s := range signs()[at.name] {
			if p.total <= s.most && strings.Contains(at.text, s.text) {
				return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", s.text)}
			}
		}
	}
	if p.password && p.prose <= someWords {
		return Verdict{Kind: Login, Evidence: "a field for a password and few words"}
	}
	for _, s := range signs()["test"] {
		if p.prose <= s.most && p.bare() && strings.Contains(p.markup, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: "nothing but a test, markup " + s.text}
		}
	}
	return Verdict{}
}

// said tells what one part of a title, heading or short text shows.
func (p page) said(at place, part string) Verdict {
	v := Verdict{Evidence: fmt.Sprintf("%s %q", at.name, at.text)}
	for _, s := range titles() {
		if p.prose <= s.most && s.re.MatchString(part) {
			v.Kind, v.Vendor = s.kind, s.vendor
			return v
		}
	}
	switch {
	case p.prose <= fewWords && utf8.RuneCountInString(part) <= maxSentence && says(missing(), part):
		v.Kind = Soft404
	case at.name == "text":
	case !p.inline && p.prose <= maxLogin && strings.HasPrefix(clean(at.text), part) && says(logins(), part):
		v.Kind = Login
	case p.buttons > 0 && p.links <= 12 && p.prose <= 2*someWords && says(consent(), part) && says(accepts(), p.shown):
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
	for _, s := range signs()["body"] {
		if strings.Contains(text, s.text) {
			return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", text)}
		}
	}
	if onlyError(body) {
		return Verdict{Kind: ErrorPage, Evidence: fmt.Sprintf("text %q", text)}
	}
	for _, part := range parts(first(text)) {
		for _, s := range titles() {
			if s.re.MatchString(part) {
				return Verdict{Kind: s.kind, Vendor: s.vendor, Evidence: fmt.Sprintf("text %q", text)}
			}
		}
		if says(missing(), part) {
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

// things finds the statement of a page that it is about a thing: no wall makes it.
var things = sync.OnceValue(func() *regexp.Regexp {
	const kinds = `(?:product|productgroup|[a-z]*article|blogposting|recipe|event|jobposting|itemlist)\b`
	return regexp.MustCompile(`"@type"\s*:\s*\[?\s*"` + kinds + `|itemtype=https?://schema\.org/` + kinds)
})

// bare reports whether a page has nothing to read or to fill in besides a few words.
func (p page) bare() bool { return p.links <= 3 && p.fields == 0 && p.media <= 3 }
