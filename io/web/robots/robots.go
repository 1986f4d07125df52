// Package robots reads robots.txt files and decides by RFC 9309 what a crawler
// may fetch. It is pure: no network, no clock, no logging.
package robots

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	stdunicode "unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// File is a parsed robots.txt. It is read-only after Parse and safe for
// concurrent use.
type File struct {
	rules, delays index

	sitemaps        []string
	invalidSitemaps []string
}

// index has the blocks of one kind of record. A block belongs to the consecutive
// user-agent lines above it and is stored once, however many agents share it, so
// that the memory for a hostile file is proportional to its length.
type index struct {
	blocks  []block
	byToken map[string][]member
	closed  bool // the next user-agent line opens a new block
}

// member is a user-agent line of a block.
type member struct{ block, line int }

type block struct {
	rules    []rule
	delay    time.Duration
	hasDelay bool
}

type rule struct {
	allow   bool
	line    int
	text    string
	pattern pattern
}

// anyAgent is the key of the groups addressed to every crawler.
const anyAgent = "*"

// Parse reads a robots.txt body of any size. Nothing is an error: invalid lines are
// ignored, as RFC 9309 section 2.2 demands.
func Parse(body []byte) *File { return ParseAt(body, nil) }

// ParseAt is Parse for the robots.txt at a URL, against which Sitemap records are
// resolved that are no absolute URL. nil: such records are invalid.
func ParseAt(body []byte, at *url.URL) *File {
	f := &File{rules: newIndex(), delays: newIndex()}
	seen := make(map[string]bool)
	for r := range Records(Text(body)) {
		key, value, number := r.Key, r.Value, r.Line
		switch key {
		case "user-agent":
			f.rules.userAgent(value, number)
			f.delays.userAgent(value, number)
		case "allow", "disallow":
			// The first rule ends the run of user-agent lines. Other records do
			// not: RFC 9309 section 2.2.4 forbids them to interfere.
			f.delays.closed = true
			f.rules.closed = true
			b := f.rules.last()
			if b == nil || value == "" {
				continue
			}
			r := rule{allow: key == "allow", line: number, text: r.Text, pattern: compile(value)}
			b.rules = append(b.rules, r)
			if dir, ok := indexPage(value); ok && r.allow {
				r.pattern = compile(dir + "$")
				b.rules = append(b.rules, r)
			}
		case "crawl-delay":
			if f.delays.last() == nil {
				// The record is none of RFC 9309's, and one above all user-agent lines is
				// meant for every crawler.
				f.delays.userAgent(anyAgent, number)
			}
			f.delays.closed = true
			if b := f.delays.last(); b != nil {
				if d, ok := parseDelay(value); ok && (!b.hasDelay || d > b.delay) {
					b.delay, b.hasDelay = d, true
				}
			}
		case "sitemap":
			for _, value := range splitSitemaps(value) {
				if len(seen) >= maxResolved {
					at = nil
				}
				address, ok := sitemapAddress(value, at)
				if seen[address] {
					continue
				}
				seen[address] = true
				if ok {
					f.sitemaps = append(f.sitemaps, address)
				} else {
					f.invalidSitemaps = append(f.invalidSitemaps, address)
				}
			}
		}
	}
	return f
}

// Record is a line of a robots.txt that this package knows: a record of RFC 9309, or of its extensions.
type Record struct {
	Line       int    // from 1
	Key, Value string // the key in its canonical spelling, the value without a comment
	Text       string // the line as it is written
}

// Records yields the known records of a text.
func Records(text string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for number := 1; text != ""; number++ {
			var line string
			line, text = cutLine(text)
			if key, value := splitRecord(line); key != "" && !yield(Record{number, key, value, strings.TrimSpace(line)}) {
				return
			}
		}
	}
}

// Allowed reports whether agent may fetch rawURLOrPath, an absolute URL or a
// path that begins with a slash. The agent is a product token or a whole
// User-Agent value, of which the leading token counts. The longest matching
// rule decides, allow wins a tie, and a path that matches no rule is allowed
// (RFC 9309 section 2.2.2).
func (f *File) Allowed(agent, rawURLOrPath string) bool {
	_, _, allowed := f.Rule(agent, rawURLOrPath)
	return allowed
}

// Rule is Allowed with its reason: the number (from 1) and text of the line
// that decided. The line is 0 and the text empty where no rule matched.
func (f *File) Rule(agent, rawURLOrPath string) (line int, text string, allowed bool) {
	path := pathOf(rawURLOrPath)
	if path == "/robots.txt" {
		return 0, "", true // RFC 9309 section 2.2.2: implicitly allowed
	}
	target := newTarget(path)
	allowed = true
	longest := -1
	for _, m := range f.rules.lookup(agent) {
		for _, r := range f.rules.blocks[m.block].rules {
			n := r.pattern.length
			if n < longest || n == longest && (allowed || !r.allow) {
				continue
			}
			if r.pattern.match(target) {
				longest, line, text, allowed = n, r.line, r.text, r.allow
			}
		}
	}
	return line, text, allowed
}

// Group names the group whose rules hold for agent: its own product token in lower
// case, "*", or "" where no group is for it. lines are the numbers of the user-agent
// lines that address it, one in each part of the file with rules for it.
func (f *File) Group(agent string) (token string, lines []int) {
	members := f.rules.lookup(agent)
	if len(members) == 0 {
		return "", nil
	}
	token = anyAgent
	if own := ProductToken(agent); len(f.rules.byToken[own]) > 0 {
		token = own
	}
	for _, m := range members {
		lines = append(lines, m.line)
	}
	return token, lines
}

// Closed reports whether the file names agent and disallows everything to it: a rule forbids
// every path, none allows any. It returns the number and text of that rule.
func (f *File) Closed(agent string) (line int, text string, closed bool) {
	for _, m := range f.rules.byToken[ProductToken(agent)] {
		for _, r := range f.rules.blocks[m.block].rules {
			if r.allow {
				return 0, "", false
			}
			if !closed && r.pattern.all() {
				line, text, closed = r.line, r.text, true
			}
		}
	}
	return line, text, closed
}

// CrawlDelay is the minimum pause between two requests of agent by the file's
// Crawl-delay records, and whether there is one. The record is an extension outside
// RFC 9309. Of several for one agent the longest counts; the delay of the "*"
// group applies only to agents that have no group of their own.
func (f *File) CrawlDelay(agent string) (time.Duration, bool) {
	var longest time.Duration
	var found bool
	for _, m := range f.delays.lookup(agent) {
		if b := f.delays.blocks[m.block]; b.hasDelay {
			longest, found = max(longest, b.delay), true
		}
	}
	return longest, found
}

// Sitemaps returns the http and https URLs of at most untrusted.MaxKey bytes that the
// Sitemap records name, in the file's order and without repetitions. Absolute URLs are
// unchanged; others are resolved, see ParseAt.
func (f *File) Sitemaps() []string { return f.sitemaps }

// InvalidSitemaps returns the other values of Sitemap records, for the log.
func (f *File) InvalidSitemaps() []string { return f.invalidSitemaps }

func newIndex() index { return index{byToken: make(map[string][]member), closed: true} }

// userAgent adds a user-agent line to the current block, or begins a new block.
func (x *index) userAgent(value string, line int) {
	if x.closed {
		x.blocks = append(x.blocks, block{})
		x.closed = false
	}
	current := len(x.blocks) - 1
	for _, token := range LineTokens(value) { // none: no crawler matches this group, but its rules belong to no other group
		if blocks := x.byToken[token]; len(blocks) == 0 || blocks[len(blocks)-1].block != current {
			x.byToken[token] = append(x.byToken[token], member{current, line})
		}
	}
}

// LineTokens returns the product tokens, or "*", of a user-agent line's value. RFC 9309 has one token on a line and gives a crawler no
// rule for more. If commas divide nothing but tokens, such as "GPTBot, CCBot", the group is meant for each of them. Of any other
// value the leading token counts, as in "Googlebot Images".
func LineTokens(value string) (tokens []string) {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		token := ProductToken(name)
		if name == anyAgent {
			token = anyAgent
		}
		if len(token) != len(name) {
			return leading(value)
		}
		if token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

func leading(value string) []string {
	token := ProductToken(value)
	if rest, ok := strings.CutPrefix(value, anyAgent); ok && ProductToken(rest) == "" {
		token = anyAgent
	}
	if token == "" {
		return nil
	}
	return []string{token}
}

// last is the block that new records belong to, nil before any user-agent line.
func (x *index) last() *block {
	if len(x.blocks) == 0 {
		return nil
	}
	return &x.blocks[len(x.blocks)-1]
}

// lookup merges the groups of one product token (RFC 9309 section 2.2.1).
func (x *index) lookup(agent string) []member {
	if blocks, ok := x.byToken[ProductToken(agent)]; ok {
		return blocks
	}
	return x.byToken[anyAgent]
}

// ProductToken is the leading token of a User-Agent or of a user-agent line in lower case. Digits count as part of it, in
// addition to RFC 9309's letters, underscores and hyphens: names such as MJ12bot
// are common, and must not be cut to their first letters.
func ProductToken(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
	if end < 0 {
		end = len(s)
	}
	return strings.ToLower(s[:end])
}

// Text is a body as UTF-8, for a caller that keeps it as text: Parse finds the same rules in
// it. Bytes that are no UTF-8 are percent-encoded, the form in which rules are compared.
//
// RFC 9309 demands UTF-8; a file in UTF-16, as Windows editors write it, states its rules as
// clearly, and to find none in it would allow everything. It is known by its mark, or by the NUL
// in each of its first characters.
func Text(body []byte) string {
	order := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		order = unicode.BigEndian
	case len(body) > 3 && body[0] != 0 && body[1] == 0 && body[2] != 0 && body[3] == 0:
	case len(body) > 3 && body[0] == 0 && body[1] != 0 && body[2] == 0 && body[3] != 0:
		order = unicode.BigEndian
	default:
		return utf8Text(trimBOM(body))
	}
	text, err := unicode.UTF16(order, unicode.UseBOM).NewDecoder().Bytes(body)
	if err != nil {
		return utf8Text(body) // in which the lines that can be read count
	}
	return string(text)
}

func utf8Text(body []byte) string {
	if utf8.Valid(body) {
		return string(body)
	}
	var b strings.Builder
	b.Grow(len(body) + len(body)/8)
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", body[0])
		} else {
			b.Write(body[:n])
		}
		body = body[n:]
	}
	return b.String()
}

// Whole is the text of a file that was cut off, without a last line that is wrong where it is cut:
// half an allowed path allows more, and half an address is another. Half a forbidden path forbids
// more, and stays.
func Whole(text string) string {
	begin := strings.LastIndexAny(text, "\r\n") + 1
	switch key, _ := splitRecord(text[begin:]); key {
	case "allow", "sitemap":
		return text[:begin]
	}
	return text
}

// trimBOM removes a UTF-8 byte order mark, also an incomplete one, and one that was taken for
// Latin-1 and written as UTF-8 again.
func trimBOM(body []byte) []byte {
	for _, mark := range []string{"\xef\xbb\xbf", "\xef\xbb", "\xef", "\xc3\xaf\xc2\xbb\xc2\xbf"} {
		if rest, ok := bytes.CutPrefix(body, []byte(mark)); ok {
			return rest
		}
	}
	return body
}

// cutLine splits the first line off the text; CR, LF and CRLF each end a line.
func cutLine(text string) (line, rest string) {
	i := strings.IndexAny(text, "\r\n")
	if i < 0 {
		return text, ""
	}
	rest = text[i+1:]
	if text[i] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	return text[:i], rest
}

// splitRecord splits a line into its key, in the canonical spelling, and its
// value without comment. The key is empty where the line is no known record.
func splitRecord(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	line = cutTags(trim(line))
	before, after, ok := strings.Cut(line, ":")
	if key = canonicalKey(before); ok && key != "" {
		return key, trim(after)
	}
	// A missing colon is tolerated where the line has exactly two words.
	if words := strings.Fields(line); len(words) == 2 {
		return canonicalKey(words[0]), words[1]
	}
	return "", ""
}

// canonicalKey is the name of a record as RFC 9309 or the file's extensions spell it, "" for others.
func canonicalKey(key string) string {
	switch key = strings.ToLower(trim(key)); key {
	case "user-agent", "allow", "disallow", "sitemap", "crawl-delay", "content-signal", "content-usage", "license":
		return key
	case "useragent", "user agent":
		return "user-agent"
	case "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return "disallow" // the misspellings that google/robotstxt accepts
	case "site-map", "site map":
		return "sitemap"
	case "crawldelay", "crawl delay":
		return "crawl-delay"
	}
	return ""
}

// cutTags removes the tags at a line's ends, of a robots.txt served as a web page.
func cutTags(line string) string {
	for strings.HasPrefix(line, "<") {
		end := strings.IndexAny(line[1:], "<>") + 1
		if end < 1 || !isTag(line[:end+1]) {
			break
		}
		line = trim(line[end+1:])
	}
	for strings.HasSuffix(line, ">") {
		begin := strings.LastIndexAny(line[:len(line)-1], "<>")
		if begin < 0 || !isTag(line[begin:]) {
			break
		}
		line = trim(line[:begin])
	}
	return line
}

// isTag reports whether a text from one of < and > to the next is a tag.
func isTag(s string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(s, "<"), "/")
	if _, _, ok := strings.Cut(name[:min(len(name), len("https://"))], "://"); ok {
		return false // a URL
	}
	return s[0] == '<' && s[len(s)-1] == '>' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// trim removes what nobody sees around a text: white space of any alphabet, such as the
// no-break space of word processors, and NUL.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r == 0 || r == '\u200b' || stdunicode.IsSpace(r) })
}

// indexPage returns the directory of a rule for its index page. Allowing the page
// allows its directory, as in google/robotstxt and the other implementations.
func indexPage(value string) (dir string, ok bool) {
	i := strings.LastIndexByte(value, '/')
	if i < 0 || !strings.HasPrefix(value[i:], "/index.htm") {
		return "", false
	}
	return value[:i+1], true
}

// parseDelay reads seconds, with a fraction after a point or a comma, and ignores what follows them.
func parseDelay(value string) (time.Duration, bool) {
	value = strings.Replace(strings.TrimPrefix(value, "+"), ",", ".", 1)
	end := strings.IndexFunc(value, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(value)
	}
	seconds, err := strconv.ParseFloat(value[:end], 64)
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func absoluteHTTP(s string) bool {
	u, err := url.Parse(s)
	// A zone (RFC 6874) names a network interface of this machine.
	return err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), "%") && (u.Scheme == "http" || u.Scheme == "https")
}

// pathOf is the part of a URL that rules are matched against: path and query.
func pathOf(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	if !strings.HasPrefix(raw, "/") {
		_, rest, ok := strings.Cut(raw, "://")
		if !ok {
			rest = raw
		}
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			raw = rest[i:]
		} else {
			raw = ""
		}
	}
	if !strings.HasPrefix(raw, "/") {
		raw = "/" + raw
	}
	return raw
}
