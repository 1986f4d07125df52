package botauth

import (
	"bytes"
	_ "embed" // for page.html
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
	var page bytes.Buffer
	link := b.Contact
	if m := b.Mail(); m != "" {
		link = "mailto:" + m
	}
	agents := b.agents()
	err := form.Execute(&page, map[string]any{"Bot": b, "Link": link, "Agents": agents, "Robots": leaveOut(agents),
		"Keys": directoryPath, "List": addressesPath})
	return Document{Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: page.Bytes()}, err
}

// leaveOut is a robots.txt that leaves out these crawlers and no others.
func leaveOut(agents []Agent) string {
	var b strings.Builder
	for _, a := range agents {
		fmt.Fprintf(&b, "User-agent: %s\n", a.Token())
	}
	return b.String() + "Disallow: /\n"
}

//go:embed page.html
var text string

var form = template.Must(template.New("").Parse(text))
