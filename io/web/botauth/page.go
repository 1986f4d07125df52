package botauth

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/web/robots"
)

// Agent is a crawler by its own User-Agent.
type Agent struct{ Own, For string }

// Token is the name that rules in robots.txt use.
func (a Agent) Token() string { return a.Own[:len(robots.ProductToken(a.Own))] }

// Agents are the crawlers of this program.
var Agents = []Agent{
	{"APIIntelBot/1.0 (+https://api-intel.vercel.app/bot)", "reads public documentation of APIs, cuts it into short parts and links to the originals, so that developers find them"},
	{"Newsfork-SeedEngine/1.0", "reads robots.txt, sitemaps and front pages of sites, public product lists and news pages, to know what is published where"},
}

// agents are the crawlers under the name that the block gives them.
func (b Bot) agents() []Agent {
	if b.Name == "" {
		return Agents
	}
	return []Agent{{b.Name, Agents[0].For + "; and " + Agents[1].For}}
}

// Published is a document about the crawlers, and its path on the page's host.
type Published struct {
	Name, Path string
	Make       func(now time.Time) (Document, error)
}

// Publish returns the documents that a block leads to: the page, and, if it is at an address of its own, the agent's card, the
// key directory of a crawler that signs, and the list of addresses.
func Publish(b *Bot) (all []Published) {
	if b == nil {
		return nil
	}
	all = []Published{{"page", "/bot", b.page}}
	if b.Page == "" {
		return all
	}
	all = append(all, Published{"card", cardPath, b.card})
	if b.Signs() {
		all = append(all, Published{"directory", directoryPath, b.Directory})
	}
	if len(b.Addresses) > 0 {
		all = append(all, Published{"addresses", addressesPath, b.addressList})
	}
	return all
}

// page is the page. It needs no other file, and has no script and no style.
func (b Bot) page(time.Time) (Document, error) {
	var text bytes.Buffer
	link := b.Contact
	if m := b.Mail(); m != "" {
		link = "mailto:" + m
	}
	agents := b.agents()
	err := form.Execute(&text, map[string]any{"Bot": b, "Link": link, "Agents": agents, "Robots": leaveOut(agents),
		"Keys": directoryPath, "List": addressesPath})
	return Document{Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: text.Bytes()}, err
}

// leaveOut is a robots.txt that leaves out these crawlers and no others.
func leaveOut(agents []Agent) string {
	var b strings.Builder
	for _, a := range agents {
		fmt.Fprintf(&b, "User-agent: %s\n", a.Token())
	}
	return b.String() + "Disallow: /\n"
}

var form = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The crawlers of {{.Bot.Operator}}</title>
</head>
<body>
<main>
<h1>The crawlers of {{.Bot.Operator}}</h1>
<p>You found this page in the log of your web server. The requests came from these programs:</p>
<dl>{{range .Agents}}
<dt><code>{{.Token}}</code></dt><dd>It {{.For}}.</dd>{{end}}
</dl>
<h2>How they behave</h2>
<ul>
<li>They obey robots.txt (RFC 9309), with <code>Crawl-delay</code>, and read it again at least every day.</li>
<li>They send one request at a time to a host, with pauses, and wait when a server asks for it (<code>Retry-After</code>).</li>
{{if .Bot.Signs}}<li>Their requests are signed (Web Bot Auth, RFC 9421). The keys are at <a href="{{.Keys}}">{{.Keys}}</a>.</li>
{{end}}<li>They do not sign in, send no forms, and keep no cookies.</li>
</ul>
<h2>How to be left out</h2>
<p>Put this into the file <code>/robots.txt</code> of your site. It counts within a day, and for these crawlers only:</p>
<pre>{{.Robots}}</pre>
<p>Name a path in place of <code>/</code> to leave out a part of the site. Pages with <code>noindex</code> (a robots meta element, or the header
<code>X-Robots-Tag</code>) are not kept as documentation.</p>
<h2>How to reach us</h2>
<p>Write to <a href="{{.Link}}">{{.Bot.Contact}}</a>: with questions, when a crawler is a burden, or to have what we keep of your documentation removed. We remove it within 48 hours.</p>
{{if .Bot.Addresses}}<h2>Addresses</h2>
<p>Requests come from these addresses only; others use our name without being us:</p>
<ul>{{range .Bot.Addresses}}
<li><code>{{.}}</code></li>{{end}}
</ul>
{{if .Bot.Page}}<p>As JSON: <a href="{{.List}}">{{.List}}</a></p>
{{end}}{{end}}</main>
</body>
</html>
`))
