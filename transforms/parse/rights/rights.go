// Package rights reads what a site says about the use of what it shows: in robots.txt
// (Content-Signal, Content-Usage, License, groups of AI agents), in response headers (X-Robots-Tag,
// TDMRep, Link) and in pages (meta robots). It records preferences and is no legal advice.
//
//	l := rights.Ledger{Agent: "mybot"}
//	l.Requested(r, answer.Classify(r).Kind, false, at, "") // robots.txt
//	l.Answer("https://example.org/", resp.Status, resp.Header, body, at)
//	l.HTML(page)
//	found := l.Rights("https://example.org/")
//
// It is pure: no network, no clock, no log. No promise: see docs/library.md.
package rights

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

// Purpose is what a page may be used for.
type Purpose string

// The purposes, as contentsignals.org defines the first three.
const (
	Search  Purpose = "search"   // an index with links and short excerpts
	AIInput Purpose = "ai-input" // input of a model, such as for an answer with sources
	AITrain Purpose = "ai-train" // training or tuning of a model
	Archive Purpose = "archive"  // a copy that is shown later
)

// Purposes are all purposes.
var Purposes = []Purpose{Search, AIInput, AITrain, Archive}

// The verdicts.
const (
	Allowed       = "allowed"
	Reserved      = "reserved"
	Unsaid        = "unsaid"
	Contradictory = "contradictory" // allowed by one statement, reserved by another
)

// UsageDraft is the draft of the IETF that defines Content-Usage. Its lines are kept; no verdict follows from them.
const UsageDraft = "draft-ietf-aipref-attach-05"

// The words of Statement.Says about no purpose. A purpose stands there as search=allowed or search=reserved.
const (
	saysUsage    = "content-usage:" + UsageDraft
	saysLicense  = "license"
	saysPolicy   = "tdm-policy"
	saysPayment  = "payment"           // 402
	NoImages     = "image-ai=reserved" // noimageai: no model may have the page's images
	saysSnippet  = "snippet=reserved"  // nosnippet, max-snippet:0
	saysPart     = "part-snippet=reserved"
	saysUnknown  = "unknown" // something that this list lacks
	saysTDM      = "tdm=reserved"
	saysTDMOpen  = "tdm=allowed"
	useImmediate = "use=immediate"
	useReference = "use=reference"
	useFull      = "use=full"
)

const (
	maxStatements = 60  // of one Ledger; the others count for the verdicts
	maxRaw        = 300 // bytes of a line
	maxOnly       = 300
)

// Statement is one thing that a site said.
type Statement struct {
	Source string `json:"source"` // URL of the document with the statement
	Line   int    `json:"line"`   // its line, from 1; 0: a header or the status
	Raw    string `json:"raw"`    // the line, cleaned, at most 300 bytes
	Says   string `json:"says"`   // words of a closed set, with spaces between them
	// Agents are the AI agents of the list to which the line disallows everything.
	Agents []string `json:"agents,omitempty"`
	// Only is what it is limited to: a path, "document" for its source alone, or the user agents of another group. "": nothing.
	Only string `json:"only,omitempty"`
}

// entry is a statement with what follows from it.
type entry struct {
	Statement
	said   []claim
	signal bool   // a Content-Signal
	path   string // of Only
	away   bool   // it counts for no verdict
}

// claim is what a statement says about one purpose.
type claim struct {
	purpose Purpose
	allowed bool
}

// claims returns what the words of Statement.Says say about purposes. What a site sells it reserves for each.
func claims(says string) (all []claim) {
	for _, word := range strings.Fields(says) {
		for _, p := range Purposes {
			if word == saysPayment || word == string(p)+"="+Reserved {
				all = append(all, claim{p, false})
			} else if word == string(p)+"="+Allowed {
				all = append(all, claim{p, true})
			}
		}
	}
	return all
}

// Document is where statements stand.
type Document struct {
	Source string `json:"source"`
	SHA256 string `json:"sha256"`     // of its bytes as received
	At     string `json:"fetched_at"` // RFC 3339 UTC
}

// Verdicts has allowed, reserved, unsaid or contradictory for each purpose. It is also the columns of rows about a site or a page.
type Verdicts struct {
	Search  string `json:"search" parquet:"rights_search,dict" doc:"what the site says about search indexes: allowed, reserved, unsaid, or contradictory; empty: it was not read, or by an older version"`
	AIInput string `json:"ai-input" parquet:"rights_ai_input,dict" doc:"the same about input of models, such as for answers"`
	AITrain string `json:"ai-train" parquet:"rights_ai_train,dict" doc:"the same about training of models"`
	Archive string `json:"archive" parquet:"rights_archive,dict" doc:"the same about archives"`
}

// Of returns the verdict about a purpose.
func (v Verdicts) Of(p Purpose) string {
	switch p {
	case Search:
		return v.Search
	case AIInput:
		return v.AIInput
	case AITrain:
		return v.AITrain
	}
	return v.Archive
}

// Rights is what is known of a site or a page.
type Rights struct {
	Statements []Statement `json:"statements"`
	Verdicts   Verdicts    `json:"verdicts"`
	Documents  []Document  `json:"documents,omitempty"`
	Why        string      `json:"why,omitempty"`  // why nothing was read from robots.txt
	More       int         `json:"more,omitempty"` // statements that are left out
}

// Ledger collects statements. The zero Ledger is that of a crawler without a name.
type Ledger struct {
	Agent string // the crawler's product token, or a User-Agent that begins with it

	all       []entry
	documents []Document
	why       string

	// The document that is being read. It is listed with its first statement, a robots.txt in any case.
	source string
	body   []byte
	sum    string // of body; "": not computed
	at     time.Time
}

// Clone returns a copy, to which statements of a page can be added.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.all, c.documents = slices.Clip(c.all), slices.Clip(c.documents)
	return &c
}

// Headers are the response headers that Answer reads.
var Headers = []string{"X-Robots-Tag", "Tdm-Reservation", "Tdm-Policy", "Content-Usage", "Link", "Crawler-Price"}

// Requested reads the answer to a request for robots.txt, of the kind that answer.Classify finds. Of a wall, a page or nothing
// in its place nothing is concluded. cut: the body is the beginning of a longer one. sum is the SHA-256 of the body as received,
// "" for that of r.Body.
func (l *Ledger) Requested(r answer.Response, kind answer.Kind, cut bool, at time.Time, sum string) {
	l.sum = sum
	defer func() { l.sum = "" }()
	source := cmp.Or(r.Final, r.URL)
	switch {
	case r.Status == 0:
		l.unread("no answer for robots.txt")
	case r.Status/100 != 2:
		l.unread(fmt.Sprintf("status %d for robots.txt", r.Status))
	case kind != answer.Robots:
		l.unread(string(kind) + " in place of robots.txt")
	default:
		l.robots(source, r.Body, cut, at)
	}
	if kind == answer.Robots || r.Status == http402 {
		l.Answer(source, r.Status, r.Header, r.Body, at)
	}
}

const http402 = 402 // Payment Required

// unread records why there is no robots.txt to read.
func (l *Ledger) unread(why string) { l.why = untrusted.Line(why, maxRaw) }

// robots reads the robots.txt of a URL, and nothing of a web page.
func (l *Ledger) robots(source string, body []byte, cut bool, at time.Time) {
	l.source, l.body, l.at = source, body, at
	l.document()
	text := robots.Text(body)
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		l.unread("a web page in place of robots.txt")
		return
	}
	if cut {
		text = text[:strings.LastIndexAny(text, "\r\n")+1]
	}
	file := robots.Parse([]byte(text))
	l.signals(text, file)
	l.agents(file)
}

func (l *Ledger) document() {
	source := cleanURL(l.source)
	if !slices.ContainsFunc(l.documents, func(d Document) bool { return d.Source == source }) {
		hash := l.sum
		if hash == "" {
			sum := sha256.Sum256(l.body)
			hash = hex.EncodeToString(sum[:])
		}
		l.documents = append(l.documents, Document{source, hash, l.at.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
}

func (l *Ledger) add(s entry) {
	s.Source, s.Raw, s.Only = cleanURL(l.source), untrusted.Line(s.Raw, maxRaw), untrusted.Line(s.Only, maxOnly)
	l.document()
	same := func(o entry) bool {
		return o.Source == s.Source && o.Line == s.Line && o.Raw == s.Raw && o.Says == s.Says
	}
	if s.Line > 0 || !slices.ContainsFunc(l.all, same) { // a 304 may repeat the headers of the answer before
		l.all = append(l.all, s)
	}
}

func cleanURL(s string) string { return untrusted.Line(s, untrusted.MaxKey) }

// signals reads the records of robots.txt that are about use.
func (l *Ledger) signals(text string, file *robots.File) {
	own := robots.ProductToken(l.Agent)
	if group, _ := file.Group(l.Agent); group != own || own == "" {
		own = "*"
	}
	var group []string // the user agents of the group; none: above all groups, for everybody
	closed := true
	for r := range robots.Records(text) {
		s := entry{Statement: Statement{Line: r.Line, Raw: r.Text}}
		switch r.Key {
		case "user-agent":
			if closed {
				group, closed = nil, false
			}
			group = append(group, groupTokens(r.Value)...)
			continue
		case "allow", "disallow", "crawl-delay":
			closed = true
			continue
		case "license": // RSL 1.0: it belongs to no group
			s.Says = saysLicense
			if !strings.Contains(r.Value, "://") {
				s.Says = saysUnknown
			}
		case "content-usage":
			closed, s.Says = true, saysUsage
		case "content-signal":
			closed = true
			s.read(r.Value)
		default:
			continue
		}
		if r.Key != "license" && group != nil && !slices.Contains(group, own) {
			s.Only, s.away = strings.Join(group, " "), true
		}
		l.add(s)
	}
}

// groupTokens returns the product tokens of a user-agent line. A line without one names nobody: its value stands for it.
func groupTokens(value string) []string {
	if tokens := robots.LineTokens(value); len(tokens) > 0 {
		return tokens
	}
	return []string{cmp.Or(strings.Join(strings.Fields(value), "_"), "nobody")}
}

// equals is what stands between the name and the value of a signal.
var equals = regexp.MustCompile(`[ \t]*=[ \t]*`)

// read reads the value of a Content-Signal, which may begin with a path. Commas divide signals; where spaces or semicolons
// stand in their place, they are meant.
func (s *entry) read(value string) {
	s.signal = true
	if strings.HasPrefix(value, "/") {
		end := cmp.Or(strings.IndexAny(value, " \t")+1, len(value)+1) - 1
		s.path, value = value[:end], value[end:]
		if s.path == "/" || s.path == "/*" {
			s.path = ""
		}
		s.Only = s.path
	}
	value = equals.ReplaceAllString(strings.ToLower(value), "=")
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(",; \t", r) }) {
		key, value, _ := strings.Cut(part, "=")
		value = strings.Trim(value, `"'`)
		p := Purpose(key)
		switch known := p == Search || p == AIInput || p == AITrain; {
		case known && (value == "yes" || value == "no"):
			s.claim(p, value == "yes")
		case key == "use" && slices.Contains([]string{useImmediate, useReference, useFull}, "use="+value):
			s.say("use=" + value)
		default:
			s.say(saysUnknown)
		}
	}
	if s.Says == "" {
		s.say(saysUnknown)
	}
}

func (s *entry) claim(p Purpose, allowed bool) {
	word := Reserved
	if allowed {
		word = Allowed
	}
	s.say(string(p) + "=" + word)
	s.said = append(s.said, claim{p, allowed})
}

// say adds a word once.
func (s *entry) say(word string) {
	if !slices.Contains(strings.Fields(s.Says), word) {
		s.Says = strings.TrimSpace(s.Says + " " + word)
	}
}

//go:embed agents.tsv
var agentsText string

type agent struct {
	name     string
	purposes []Purpose
}

// agents are those of the list.
var agents = sync.OnceValue(func() (all []agent) {
	for line := range strings.Lines(agentsText) {
		if row := strings.Split(strings.TrimSpace(line), "\t"); len(row) == 5 {
			a := agent{name: row[0]}
			for _, p := range strings.Fields(row[1]) {
				a.purposes = append(a.purposes, Purpose(p))
			}
			all = append(all, a)
		}
	}
	return all
})

// agents adds the rules that disallow everything to AI agents: a statement for each line.
func (l *Ledger) agents(file *robots.File) {
	found := map[int]*entry{}
	for _, a := range agents() {
		line, text, closed := file.Closed(a.name)
		if !closed {
			continue
		}
		s := found[line]
		if s == nil {
			s = &entry{Statement: Statement{Line: line, Raw: text}}
			found[line] = s
		}
		s.Agents = append(s.Agents, a.name)
		for _, p := range a.purposes {
			if !slices.Contains(s.said, claim{p, false}) {
				s.claim(p, false)
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(found)) {
		l.add(*found[line])
	}
}

// Rights returns what was said about a page, or with "" about the site as a whole: then a
// statement about one path or one document counts for no verdict.
func (l *Ledger) Rights(page string) Rights {
	r := Rights{Statements: []Statement{}, Documents: l.documents, Why: l.why, More: max(0, len(l.all)-maxStatements), Verdicts: l.verdicts(page)}
	for _, s := range l.all[:min(len(l.all), maxStatements)] {
		r.Statements = append(r.Statements, s.Statement)
	}
	return r
}

func (l *Ledger) verdicts(page string) Verdicts {
	return Verdicts{l.verdict(Search, page), l.verdict(AIInput, page), l.verdict(AITrain, page), l.verdict(Archive, page)}
}

func (l *Ledger) verdict(p Purpose, page string) string {
	allowed, reserved := l.counting(p, page)
	switch {
	case allowed != nil && reserved != nil:
		return Contradictory
	case allowed != nil:
		return Allowed
	case reserved != nil:
		return Reserved
	}
	return Unsaid
}

// counting returns the first statements that allow and reserve a purpose, nil for none.
func (l *Ledger) counting(p Purpose, page string) (allowed, reserved *entry) {
	longest := 0 // path of the signals that hold for the page: the others give way to it
	for i := range l.all {
		if s := &l.all[i]; !s.away && s.path != "" && s.about(p) && s.holds(page) {
			longest = max(longest, len(s.path))
		}
	}
	for i := range l.all {
		s := &l.all[i]
		if s.away || s.Only == document && cleanURL(page) != s.Source || s.path != "" && (!s.holds(page) || len(s.path) < longest) ||
			s.path == "" && s.signal && longest > 0 {
			continue
		}
		if allowed == nil && slices.Contains(s.said, claim{p, true}) {
			allowed = s
		}
		if reserved == nil && slices.Contains(s.said, claim{p, false}) {
			reserved = s
		}
	}
	return allowed, reserved
}

func (s *entry) about(p Purpose) bool {
	return slices.ContainsFunc(s.said, func(c claim) bool { return c.purpose == p })
}

// holds reports whether the path of a signal matches a page.
func (s *entry) holds(page string) bool {
	return page != "" && !robots.Parse([]byte("User-agent: *\nDisallow: "+s.path)).Allowed("x", page)
}
