package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// Draft is what a documentation's page shows, to make a provider's policy of.
type Draft struct {
	at        *url.URL
	title     string
	generator string
	text      int // characters of text before scripts run
	scripts   int
	links     []*url.URL // on the host, each once
	terms     string

	Delay     time.Duration // of robots.txt
	OpenAPI   []string      // descriptions that the page shows
	LLMsAt    string
	LLMs      []string // links of llms.txt
	SitemapAt string
	inSitemap int
	indexed   int
}

var (
	termsLink = regexp.MustCompile(`(?i)\bterms\b|\btos\b|이용약관|利用規約|nutzungsbedingungen`)
	docsHost  = regexp.MustCompile(`^(docs?|developers?|dev|api|help|support|learn|reference)\.`)
	history   = regexp.MustCompile(`(?i)^(changelog|deprecations|release-notes|releases|whats-new)$`)
)

// thin is how many characters of text a page of documentation has at least, if scripts do not make it.
const thin = 300

// NewDraft reads a page that was found at an address.
func NewDraft(address, page string) (*Draft, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	at.Fragment, at.RawQuery = "", ""
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	d := &Draft{at: at}
	d.read(root, false)
	return d, nil
}

func (d *Draft) read(n *html.Node, hidden bool) {
	attr := map[string]string{}
	for _, a := range n.Attr {
		attr[a.Key] = a.Val
	}
	switch {
	case n.Type == html.TextNode && !hidden:
		d.text += len([]rune(strings.Join(strings.Fields(n.Data), " ")))
	case n.DataAtom == atom.Script:
		d.scripts++
	case n.DataAtom == atom.Title && n.FirstChild != nil && d.title == "":
		d.title = untrusted.Line(n.FirstChild.Data, 100)
	case n.DataAtom == atom.Meta && strings.EqualFold(attr["name"], "generator"):
		d.generator = untrusted.Line(attr["content"], 100)
	case n.DataAtom == atom.Meta && attr["property"] == "og:site_name" && attr["content"] != "":
		d.title = untrusted.Line(attr["content"], 100)
	case n.DataAtom == atom.A && attr["href"] != "":
		to, err := d.at.Parse(attr["href"])
		if err != nil || to.Scheme != "https" && to.Scheme != "http" {
			break
		}
		if d.terms == "" && termsLink.MatchString(to.Path+" "+textOf(n)) {
			d.terms = to.String()
		}
		to.Fragment, to.RawQuery = "", ""
		if canonical.Host(to) == canonical.Host(d.at) && !slices.ContainsFunc(d.links, func(u *url.URL) bool { return u.Path == to.Path }) {
			d.links = append(d.links, to)
		}
	}
	hidden = hidden || slices.Contains([]atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Head}, n.DataAtom)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		d.read(c, hidden)
	}
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// folder is the path below which the documentation is, with a slash at its end.
func (d *Draft) folder() string {
	at := d.at.EscapedPath()
	if path.Ext(at) != "" {
		at = path.Dir(at)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	if first == "" {
		return "/"
	}
	return "/" + first + "/"
}

// Lists returns where llms.txt may be.
func (d *Draft) Lists() []string {
	at := []string{d.at.ResolveReference(&url.URL{Path: d.folder() + "llms.txt"}).String()}
	if d.folder() != "/" {
		at = append(at, d.at.ResolveReference(&url.URL{Path: "/llms.txt"}).String())
	}
	return at
}

// Sitemap returns the usual place of a sitemap.
func (d *Draft) Sitemap() string {
	return d.at.ResolveReference(&url.URL{Path: "/sitemap.xml"}).String()
}

// Likely returns one of an index's sitemaps: that with the documentation's folder in its name, or else the first.
func (d *Draft) Likely(children []string) []string {
	word := strings.Trim(d.folder(), "/")
	i := slices.IndexFunc(children, func(c string) bool { return word != "" && strings.Contains(c, word) || strings.Contains(c, "docs") })
	if len(children) == 0 {
		return nil
	}
	return children[max(i, 0):][:1]
}

// AddSitemap uses a sitemap if it has pages of the documentation.
func (d *Draft) AddSitemap(at string, urls []string) {
	if n := d.within(urls); n > 0 {
		d.SitemapAt, d.inSitemap, d.indexed = at, n, len(urls)
	}
}

// within returns how many addresses are below the folder.
func (d *Draft) within(addresses []string) (n int) {
	for _, a := range addresses {
		u, err := d.at.Parse(a)
		if err == nil && canonical.Host(u) == canonical.Host(d.at) && strings.HasPrefix(u.EscapedPath()+"/", d.folder()) {
			n++
		}
	}
	return n
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a text always can be
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

// Write returns the file, with what speaks for each line as comments.
func (d *Draft) Write(now time.Time) (string, error) {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString("# " + untrusted.Line(fmt.Sprintf(format, args...), 500) + "\n")
	}
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	var addresses []string
	for _, u := range d.links {
		addresses = append(addresses, u.String())
	}
	inLinks := d.within(addresses)
	if inLinks+d.inSitemap+d.within(d.LLMs) == 0 && d.scripts == 0 {
		return "", errors.New("neither the page, nor llms.txt, nor a sitemap names a page below " + d.folder() + " on this host: give the first page of the documentation")
	}
	host := canonical.Host(d.at)
	say("Made from what %s showed on %s. Check each line before you use it: docs --explain=URL --policies=DIRECTORY", d.at, now.UTC().Format(time.DateOnly))
	put("provider_id: %s", strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(host, "-"), "-"))
	if d.title != "" {
		say("by the page (og:site_name, or its title)")
		put("name: %s", quote(d.title))
	}
	if d.generator != "" {
		say("the page was made by %s", d.generator)
	}
	say("nobody has read the terms: read them, then write allowed or prohibited, and tos_checked: YYYY-MM-DD")
	put("tos: unknown")
	if d.terms != "" {
		say("the page links to it")
		put("tos_url: %s", quote(d.terms))
	}
	put("seed_urls:\n  - %s", quote(d.at.String()))
	say("%d of the page's %d links to this host are below %s", inLinks, len(d.links), d.folder())
	if d.folder() == "/" && !docsHost.MatchString(host) {
		say("could not tell: the address names no folder, so all of the host is allowed. Name the folder of the documentation if it has one")
	}
	put("allowed_path_patterns:\n  - %s", quote(literal.Replace(d.folder())+"**"))
	d.writeBlocked(say, put)
	d.writeSources(say, put)
	say("the defaults of depth and pages")
	put("max_depth: %d\nmax_pages: %d", DefaultMaxDepth, DefaultMaxPages)
	delay := min(max(int(d.Delay.Milliseconds()), DefaultRequestDelay), 5000)
	if d.Delay > 0 {
		say("robots.txt has a Crawl-delay of %v, which is obeyed in any case", d.Delay)
	}
	put("request_delay_ms: %d", delay)
	if spa := d.scripts > 0 && d.text < thin; spa {
		say("the page has %d characters of text before its %d scripts run: a browser (Chromium) has to run them", d.text, d.scripts)
		put("spa_rendering: true")
	} else {
		say("the page has %d characters of text before scripts run", d.text)
		put("spa_rendering: false")
	}
	if _, err := Parse("init.yaml", []byte(b.String()), now); err != nil {
		return "", fmt.Errorf("the file that was made is not valid, which is a mistake of this program: %w", err)
	}
	return b.String(), nil
}

// writeBlocked blocks what is about the past.
func (d *Draft) writeBlocked(say, put func(string, ...any)) {
	var blocked []string
	for _, u := range d.links {
		rest, in := strings.CutPrefix(u.EscapedPath(), d.folder())
		first, _, _ := strings.Cut(rest, "/")
		if pattern := literal.Replace(d.folder()+first) + "/**"; in && history.MatchString(first) && !slices.Contains(blocked, pattern) {
			blocked = append(blocked, pattern)
		}
	}
	if len(blocked) > 0 {
		say("the page links to them; they are about the past")
		put("blocked_path_patterns:")
		for _, pattern := range blocked {
			put("  - %s", quote(pattern))
		}
	}
}

// writeSources says where pages come from.
func (d *Draft) writeSources(say, put func(string, ...any)) {
	if d.LLMsAt == "" {
		say("there is no llms.txt at %s", strings.Join(d.Lists(), " nor at "))
	} else {
		say("%s has %d links, %d of them below %s; it is read without being named here", d.LLMsAt, len(d.LLMs), d.within(d.LLMs), d.folder())
	}
	for _, at := range d.OpenAPI {
		say("the page shows the OpenAPI description %s, which is read without being named here", at)
	}
	if d.SitemapAt == "" {
		say("no sitemap with pages below %s was found, by robots.txt or at %s", d.folder(), d.Sitemap())
		put("sitemap_url: null")
		return
	}
	say("%d of its %d addresses are below %s", d.inSitemap, d.indexed, d.folder())
	put("sitemap_url: %s", quote(d.SitemapAt))
}
