// Package botpage writes the page that the crawlers' User-Agent names: who crawls, why,
// how to reach them, and how to be left out. No promise: see docs/library.md.
package botpage

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
)

// Page is what the operator of the crawlers says of them.
type Page struct {
	Operator  string   `yaml:"operator"`  // who crawls
	Contact   string   `yaml:"contact"`   // an e-mail address or a URL
	Addresses []string `yaml:"addresses"` // IP addresses and networks that requests come from; none: not said
}

// Agent is a crawler under its product token, which rules in robots.txt name.
type Agent struct{ Token, For string }

// Agents are the crawlers of this program.
var Agents = []Agent{
	{"APIIntelBot", "reads public documentation of APIs, cuts it into short parts and links to the originals, so that developers find them"},
	{"Newsfork-SeedEngine", "reads robots.txt, sitemaps and front pages of sites, public product lists and news pages, to know what is published where"},
}

// Check refuses a page that does not say who crawls and how to reach them.
func (p Page) Check() error {
	switch _, err := mail.ParseAddress(p.Contact); {
	case strings.TrimSpace(p.Operator) == "":
		return errors.New("operator: say who crawls, such as a company's name")
	case err != nil && !isURL(p.Contact):
		return fmt.Errorf("contact: %q is neither an e-mail address nor an https URL; write one that somebody reads", p.Contact)
	}
	for _, a := range p.Addresses {
		_, err := netip.ParseAddr(a)
		if _, nerr := netip.ParsePrefix(a); err != nil && nerr != nil {
			return fmt.Errorf("addresses: %q is no IP address or network; write such as 192.0.2.7 or 2001:db8::/48", a)
		}
	}
	return nil
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// HTML is the page. It needs no other file, and has no script and no style.
func (p Page) HTML() ([]byte, error) {
	var b bytes.Buffer
	link := p.Contact
	if !isURL(link) {
		link = "mailto:" + link
	}
	err := page.Execute(&b, map[string]any{"Page": p, "Link": link, "Agents": Agents, "Robots": Robots()})
	return b.Bytes(), err
}

// Robots is a robots.txt that leaves out these crawlers and no others.
func Robots() string {
	var b strings.Builder
	for _, a := range Agents {
		fmt.Fprintf(&b, "User-agent: %s\n", a.Token)
	}
	return b.String() + "Disallow: /\n"
}

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The crawlers of {{.Page.Operator}}</title>
</head>
<body>
<main>
<h1>The crawlers of {{.Page.Operator}}</h1>
<p>You found this page in the log of your web server. The requests came from these programs:</p>
<dl>{{range .Agents}}
<dt><code>{{.Token}}</code></dt><dd>It {{.For}}.</dd>{{end}}
</dl>
<h2>How they behave</h2>
<ul>
<li>They obey robots.txt (RFC 9309), with <code>Crawl-delay</code>, and read it again at least every day.</li>
<li>They send one request at a time to a host, with pauses, and wait when a server asks for it (<code>Retry-After</code>).</li>
<li>They do not sign in, send no forms, and keep no cookies.</li>
</ul>
<h2>How to be left out</h2>
<p>Put this into the file <code>/robots.txt</code> of your site. It counts within a day, and for these crawlers only:</p>
<pre>{{.Robots}}</pre>
<p>Name a path in place of <code>/</code> to leave out a part of the site. Pages with <code>noindex</code> (a robots meta element, or the header
<code>X-Robots-Tag</code>) are not kept as documentation.</p>
<h2>How to reach us</h2>
<p>Write to <a href="{{.Link}}">{{.Page.Contact}}</a>: with questions, when a crawler is a burden, or to have what we keep of your documentation removed. We remove it within 48 hours.</p>
{{if .Page.Addresses}}<h2>Addresses</h2>
<p>Requests come from these addresses only; others use our name without being us:</p>
<ul>{{range .Page.Addresses}}
<li><code>{{.}}</code></li>{{end}}
</ul>
{{end}}</main>
</body>
</html>
`))
