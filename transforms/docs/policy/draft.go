package policy

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// draft is what a documentation's page shows, to make a provider's policy of.
type draft struct {
	at        *url.URL
	title     string
	generator string
	text      int // characters of text before scripts run
	scripts   int
	links     []*url.URL                 // on the host, each once
	query     url.Values                 // of the page's own address
	queries   map[string]map[string]bool // values by the parameter that a link below the folder has alone
	terms     string

	Delay     time.Duration // of robots.txt
	OpenAPI   []string      // descriptions that the page shows
	LLMsAt    string
	LLMs      []string // links of llms.txt
	SitemapAt string
	// LLMsUntold and SitemapUntold say why requests could not tell if something is there.
	LLMsUntold, SitemapUntold []string

	inSitemap int
	indexed   int
}

var (
	termsLink = regexp.MustCompile(`(?i)\bterms\b|\btos\b|이용약관|利用規約|nutzungsbedingungen`)
	docsHost  = regexp.MustCompile(`^(docs?|developers?|dev|api|help|support|learn|reference)\.`)
	history   = regexp.MustCompile(`(?i)^(changelog|deprecations|release-notes|releases|whats-new)$`)
)

// noPage is a parameter that shows a page in another way.
var noPage = regexp.MustCompile(`(?i)^(hl|lang|language|locale|sort|order|theme|view|print|version)$`)

// minValues is how many values a parameter has at least that selects a page.
const minValues = 3

// thin is how many characters of text a page of documentation has at least, if scripts do not make it.
const thin = 300

// NewDraft reads a page that was found at an address.
func NewDraft(address, page string) (*draft, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	query := at.Query()
	at.Fragment, at.RawQuery = "", ""
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	d := &draft{at: at, query: query, queries: map[string]map[string]bool{}}
	d.read(root, false)
	return d, nil
}

func (d *draft) read(n *html.Node, hidden bool) {
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
		if d.terms == "" && termsLink.MatchString(to.Path+" "+article.Text(n)) {
			d.terms = to.String()
		}
		d.readQuery(to)
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

// readQuery remembers the value of a link's parameter, if it is the only one.
func (d *draft) readQuery(to *url.URL) {
	if query := to.Query(); len(query) == 1 && d.within([]string{to.String()}) == 1 {
		for name := range query {
			if d.queries[name] == nil {
				d.queries[name] = map[string]bool{}
			}
			d.queries[name][query.Get(name)] = true
		}
	}
}

// selecting returns the parameters that select a page, by at least minValues values that the page's links have.
func (d *draft) selecting() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(d.queries)) {
		if len(d.queries[name]) >= minValues && name != "" && !noPage.MatchString(name) && !canonical.Tracking(name, "") {
			names = append(names, name)
		}
	}
	return names
}

// folder is the path below which the documentation is, with a slash at its end.
func (d *draft) folder() string {
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
func (d *draft) Lists() []string {
	at := []string{d.at.ResolveReference(&url.URL{Path: d.folder() + "llms.txt"}).String()}
	if d.folder() != "/" {
		at = append(at, d.at.ResolveReference(&url.URL{Path: "/llms.txt"}).String())
	}
	return at
}

// Sitemap returns the usual place of a sitemap.
func (d *draft) Sitemap() string {
	return d.at.ResolveReference(&url.URL{Path: "/sitemap.xml"}).String()
}

// Likely returns one of an index's sitemaps: that with the documentation's folder in its name, or else the first.
func (d *draft) Likely(children []string) []string {
	word := strings.Trim(d.folder(), "/")
	i := slices.IndexFunc(children, func(c string) bool { return word != "" && strings.Contains(c, word) || strings.Contains(c, "docs") })
	if len(children) == 0 {
		return nil
	}
	return children[max(i, 0):][:1]
}

// AddSitemap uses a sitemap if it has pages of the documentation.
func (d *draft) AddSitemap(at string, urls []string) {
	if n := d.within(urls); n > 0 {
		d.SitemapAt, d.inSitemap, d.indexed = at, n, len(urls)
	}
}

// within returns how many addresses are below the folder.
func (d *draft) within(addresses []string) (n int) {
	for _, a := range addresses {
		u, err := d.at.Parse(a)
		if err == nil && canonical.Host(u) == canonical.Host(d.at) && strings.HasPrefix(u.EscapedPath()+"/", d.folder()) {
			n++
		}
	}
	return n
}

// Write returns the file, with what speaks for each line as comments.
func (d *draft) Write(now time.Time) (string, error) {
	var addresses []string
	for _, u := range d.links {
		addresses = append(addresses, u.String())
	}
	inLinks := d.within(addresses)
	if inLinks+d.inSitemap+d.within(d.LLMs) == 0 && d.scripts == 0 {
		why := "neither the page, nor llms.txt, nor a sitemap names a page below " + d.folder() + " on this host: give the first page of the documentation"
		return "", errors.New(strings.Join(slices.Concat([]string{why}, d.LLMsUntold, d.SitemapUntold), "; "))
	}
	host := canonical.Host(d.at)
	var l yamltext.Lines
	l.Say("Made from what %s showed on %s. Check each line before you use it: docs --explain=URL --policies=DIRECTORY", d.at, now.UTC().Format(time.DateOnly))
	l.Put("provider_id: %s", yamltext.Name(host, "-"))
	if d.title != "" {
		l.Say("by the page (og:site_name, or its title)")
		l.Put("name: %s", yamltext.Quote(d.title))
	}
	if d.generator != "" {
		l.Say("the page was made by %s", d.generator)
	}
	l.Say("nobody has read the terms: read them, then write allowed or prohibited, and tos_checked: YYYY-MM-DD")
	l.Put("tos: unknown")
	if d.terms != "" {
		l.Say("the page links to it")
		l.Put("tos_url: %s", yamltext.Quote(d.terms))
	}
	seed, names := *d.at, d.selecting()
	maps.DeleteFunc(d.query, func(name string, _ []string) bool { return !slices.Contains(names, name) })
	seed.RawQuery = d.query.Encode()
	l.Put("seed_urls:\n  - %s", yamltext.Quote(seed.String()))
	for i, name := range names {
		if i == 0 {
			l.Put("keep_query_params:")
		}
		l.Say("the page's links have %d values of it; without this line they would be one page", len(d.queries[name]))
		l.Put("  - %s", yamltext.Quote(name))
	}
	l.Say("%d of the page's %d links to this host are below %s", inLinks, len(d.links), d.folder())
	if d.folder() == "/" && !docsHost.MatchString(host) {
		l.Say("could not tell: the address names no folder, so all of the host is allowed. Name the folder of the documentation if it has one")
	}
	l.Put("allowed_path_patterns:\n  - %s", yamltext.Quote(literal.Replace(d.folder())+"**"))
	d.writeBlocked(&l)
	d.writeSources(&l)
	l.Say("the defaults of depth and pages")
	l.Put("max_depth: %d\nmax_pages: %d", DefaultMaxDepth, DefaultMaxPages)
	delay := min(max(int(d.Delay.Milliseconds()), DefaultRequestDelay), 5000)
	if d.Delay > 0 {
		l.Say("robots.txt has a Crawl-delay of %v, which is obeyed in any case", d.Delay)
	}
	l.Put("request_delay_ms: %d", delay)
	if d.scripts > 0 && d.text < thin {
		l.Say("the page has %d characters of text before its %d scripts run: a browser (Chromium) has to run them", d.text, d.scripts)
		l.Put("spa_rendering: true")
	} else {
		l.Say("the page has %d characters of text before scripts run", d.text)
		l.Put("spa_rendering: false")
	}
	if _, err := Parse("init.yaml", []byte(l.String()), now); err != nil {
		return "", fmt.Errorf("the file that was made is not valid, which is a mistake of this program: %w", err)
	}
	return l.String(), nil
}

// writeBlocked blocks what is about the past.
func (d *draft) writeBlocked(l *yamltext.Lines) {
	var blocked []string
	for _, u := range d.links {
		rest, in := strings.CutPrefix(u.EscapedPath(), d.folder())
		first, _, _ := strings.Cut(rest, "/")
		if pattern := literal.Replace(d.folder()+first) + "/**"; in && history.MatchString(first) && !slices.Contains(blocked, pattern) {
			blocked = append(blocked, pattern)
		}
	}
	if len(blocked) > 0 {
		l.Say("the page links to them; they are about the past")
		l.Put("blocked_path_patterns:")
		for _, pattern := range blocked {
			l.Put("  - %s", yamltext.Quote(pattern))
		}
	}
}

// writeSources says where pages come from.
func (d *draft) writeSources(l *yamltext.Lines) {
	switch {
	case d.LLMsAt == "" && d.LLMsUntold != nil:
		l.Say("could not tell if there is an llms.txt: %s", strings.Join(d.LLMsUntold, "; "))
	case d.LLMsAt == "":
		l.Say("there is no llms.txt at %s", strings.Join(d.Lists(), " nor at "))
	default:
		l.Say("%s has %d links, %d of them below %s; it is read without being named here", d.LLMsAt, len(d.LLMs), d.within(d.LLMs), d.folder())
	}
	for _, at := range d.OpenAPI {
		l.Say("the page shows the OpenAPI description %s, which is read without being named here", at)
	}
	at := "null"
	switch {
	case d.SitemapAt == "" && d.SitemapUntold != nil:
		l.Say("could not tell if a sitemap has pages below %s: %s", d.folder(), strings.Join(d.SitemapUntold, "; "))
	case d.SitemapAt == "":
		l.Say("no sitemap with pages below %s was found, by robots.txt or at %s", d.folder(), d.Sitemap())
	default:
		l.Say("%d of its %d addresses are below %s", d.inSitemap, d.indexed, d.folder())
		at = yamltext.Quote(d.SitemapAt)
	}
	l.Put("sitemap_url: %s", at)
}
