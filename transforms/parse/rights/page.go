package rights

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

// maxTags bounds the search for elements of a page.
const maxTags = 20_000

// licenseType is the type of a script element that contains a licence of RSL 1.0.
const licenseType = "application/rsl+xml"

// Answer reads the status and headers of an answer with a body. What robots directives say
// is about this document alone; the reservation of TDMRep is about the site too.
func (l *Ledger) Answer(source string, status int, header map[string][]string, body []byte, at time.Time) {
	l.source, l.body, l.at = source, body, at
	if status == http402 {
		raw := "402 Payment Required " + strings.Join(header["Crawler-Price"], ", ")
		l.add(entry{Statement: Statement{Raw: raw, Says: saysPayment, Only: document}, said: claims(saysPayment)})
	}
	for _, line := range header["X-Robots-Tag"] {
		l.directives(0, "X-Robots-Tag: "+line, pagehead.ForAgent(line, robots.ProductToken(l.Agent)))
	}
	for _, name := range []string{"Tdm-Reservation", "Tdm-Policy"} {
		for _, value := range header[name] {
			l.tdm(0, strings.ToLower(name), value, strings.ToLower(name)+": "+value)
		}
	}
	for _, line := range header["Content-Usage"] {
		l.add(entry{Statement: Statement{Raw: "Content-Usage: " + line, Says: saysUsage, Only: document}})
	}
	for _, line := range header["Link"] {
		for _, link := range pagehead.Links(line) {
			if pagehead.HasWord(link.Params["rel"], "license") {
				l.add(entry{Statement: Statement{Raw: "Link: " + link.Raw, Says: saysLicense, Only: document}})
			}
		}
	}
}

const document = "document"

// Page reads an answer as Answer does, and its body, which is HTML.
func (l *Ledger) Page(source string, status int, header map[string][]string, body []byte, at time.Time) {
	l.Answer(source, status, header, body, at)
	if text, _, err := charset.Bytes(body, strings.Join(header["Content-Type"], "")); err == nil {
		l.HTML(text)
	}
}

// directives adds what robots directives say, if it is about use.
func (l *Ledger) directives(line int, raw, list string) {
	s := entry{Statement: Statement{Line: line, Raw: raw, Only: document}}
	for _, one := range pagehead.Directives(list) {
		switch one {
		case "noindex", "none":
			s.claim(Search, false)
		case "noai":
			s.claim(AITrain, false)
		case "noimageai":
			s.say(NoImages)
		case "noarchive", "nocache":
			s.claim(Archive, false)
		case "nosnippet", "max-snippet:0": // Google's page: it also keeps a page from being direct input of answers by AI
			s.say(saysSnippet)
			s.claim(AIInput, false)
		}
	}
	if expired(list, l.at) {
		s.claim(Search, false)
	}
	if s.Says != "" {
		l.add(s)
	}
}

var unavailable = regexp.MustCompile(`(?i)\bunavailable_after[ \t]*:[ \t]*((?:[a-z]+,[ \t]*)?[^,;]+)`)

// expired reports whether robots directives say that search results may show the page until a time that is over. The zone of
// a date may be lost: that is some hours.
func expired(list string, at time.Time) bool {
	m := unavailable.FindStringSubmatch(list)
	if m == nil {
		return false
	}
	for _, form := range []string{time.RFC1123, time.RFC1123Z, time.RFC850, "2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2-Jan-06 15:04:05 MST",
		"2-Jan-2006 15:04:05 MST", "2 Jan 2006", time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if until, err := time.Parse(form, strings.TrimSpace(m[1])); err == nil {
			return until.Before(at)
		}
	}
	return false
}

// tdm adds a property of TDMRep: 1 reserves text and data mining, 0 does not, other values are errors and count as unset.
func (l *Ledger) tdm(line int, name, value, raw string) {
	s := entry{Statement: Statement{Line: line, Raw: raw}}
	switch value = strings.TrimSpace(value); {
	case name == "tdm-policy":
		s.Says, s.Only = saysPolicy, document
	case value == "1":
		s.say(saysTDM)
		s.claim(AITrain, false)
	case value == "0":
		s.say(saysTDMOpen)
		s.claim(AITrain, true)
	default:
		s.Says = saysUnknown
	}
	l.add(s)
}

// HTML reads the elements of the page that the last Answer had, a text in UTF-8.
func (l *Ledger) HTML(page []byte) {
	z := html.NewTokenizer(bytes.NewReader(page))
	line, parts, left := 1, false, last(page)
	for range maxTags {
		kind := z.Next()
		if kind == html.ErrorToken || left < 0 {
			return
		}
		raw := string(z.Raw())
		left -= len(raw)
		at := line
		line += strings.Count(raw, "\n")
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		part := !parts && strings.Contains(raw, "data-nosnippet")
		if !part && !slices.Contains([]string{"meta", "link", "script"}, string(name)) {
			continue
		}
		attr := dom.Attributes(z, more)
		if _, has := attr["data-nosnippet"]; part && has {
			parts = true
			l.add(entry{Statement: Statement{Line: at, Raw: raw, Says: saysPart, Only: document}})
		}
		switch key := strings.ToLower(strings.TrimSpace(attr["name"])); {
		// RSL 1.0 has these two. An a element with rel=license may be about a picture next to it: it is not read.
		case string(name) == "link" && pagehead.HasWord(attr["rel"], "license"), string(name) == "script" && strings.EqualFold(attr["type"], licenseType):
			l.add(entry{Statement: Statement{Line: at, Raw: raw, Says: saysLicense, Only: document}})
		case string(name) != "meta":
		case key == "robots", l.Agent != "" && key == robots.ProductToken(l.Agent):
			l.directives(at, raw, attr["content"])
		case key == "tdm-reservation", key == "tdm-policy":
			l.tdm(at, key, attr["content"], raw)
		}
	}
}

// last returns where the last element starts that HTML may read, or contains what it reads; -1 for none. Most pages have none
// after their head, and the rest is not tokenized.
func last(page []byte) int {
	end := max(bytes.LastIndex(page, []byte("data-nosnippet")), bytes.LastIndex(page, []byte(licenseType)))
	for i := len(page); ; {
		i = bytes.LastIndexByte(page[:i], '<')
		if i <= end {
			return end
		}
		if name := string(page[i+1 : min(i+5, len(page))]); strings.EqualFold(name, "meta") || strings.EqualFold(name, "link") {
			return i
		}
	}
}
