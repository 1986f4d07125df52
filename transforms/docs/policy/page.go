package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// maxOnePage is MaxPages for a single page: it may name another address as its own, and
// the page it names is fetched too.
const maxOnePage = 5

// ForURL makes the policy of an address that no file covers. With depth 0 it is that
// page alone. Otherwise links are followed to that depth, to pages below the address;
// an address of a file, such as /guide/intro.html, stands for its folder. Nobody has
// read the site's terms: they are Unknown.
func ForURL(u *url.URL, depth int) (Policy, error) {
	key, err := canonical.Key(u, []string{"*"})
	if err != nil {
		return Policy{}, err
	}
	p := Policy{RequestDelayMS: DefaultRequestDelay, Channel: Crawl, Terms: Unknown, AllowedPathPatterns: []string{"/**"}, MaxPages: DefaultMaxPages, KeepQueryParams: queryParams(u)}
	if depth > 0 {
		folder := canonical.Path(key)
		if path.Ext(folder) != "" {
			folder = path.Dir(folder)
		}
		p.AllowedPathPatterns = []string{strings.TrimSuffix(literal.Replace(folder), "/") + "/**"}
	}
	return p.From(u, depth), p.Scope().Check()
}

// From narrows a policy to an address on its host: the crawl begins there, and follows
// links to that depth. It is a provider of its own, so its pages are not those of the
// policy's own crawl.
func (p Policy) From(u *url.URL, depth int) Policy {
	address := u.String()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", depth, address))
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, canonical.Host(u))
	p.ProviderID = "url-" + host[:min(len(host), 40)] + "-" + hex.EncodeToString(sum[:6])
	p.Name, p.SeedURLs, p.SitemapURL, p.MaxDepth = address, []string{address}, "", depth
	p.Sources = []Source{HTML} // it is asked for this page, not for what else the site has
	if depth == 0 {
		p.MaxPages = maxOnePage
	}
	return p
}

// literal turns a path into a pattern: the signs of patterns match as any character.
var literal = strings.NewReplacer("*", "?", "[", "?", "]", "?", "{", "?", "}", "?", `\`, "?", ",", "?", "(", "?", "!", "?")

// queryParams are the names in an address's query: they select the page.
func queryParams(u *url.URL) (names []string) {
	for name := range u.Query() {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
