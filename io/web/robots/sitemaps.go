package robots

import (
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	quotes = "\"'`<>“”„‘’«»"
	// maxResolved is how many Sitemap records of one file are resolved: a short record
	// can become a long URL.
	maxResolved = 1000
)

// nextSitemap is what separates two values of one Sitemap record, and the second one's
// first letters.
var nextSitemap = regexp.MustCompile(`(?i)([\s,;]+(?:site-?map\s*:\s*)?|site-?map\s*:\s*)(["']?(?:https?:/)?/)`)

// misspelt is the scheme of a URL without its colon or with one slash.
var misspelt = regexp.MustCompile(`(?i)^(https?)(?::/?|//)([^/:])`)

// splitSitemaps returns the values of a Sitemap record: some files have several in a line.
func splitSitemaps(value string) (values []string) {
	add := func(v string) {
		if v = strings.Trim(trim(v), quotes); v != "" {
			values = append(values, v)
		}
	}
	begin := 0
	for _, at := range nextSitemap.FindAllStringSubmatchIndex(value, -1) {
		if strings.Contains(value[begin:at[0]], "?") && !strings.ContainsAny(value[at[2]:at[3]], " \t") {
			continue // a query may contain a URL
		}
		add(value[begin:at[0]])
		begin = at[4]
	}
	add(value[begin:])
	return values
}

// sitemapAddress returns the URL that a value of a Sitemap record names in a file at a URL;
// false, and the value, if it names none.
func sitemapAddress(value string, at *url.URL) (string, bool) {
	if absoluteHTTP(value) {
		return value, len(value) <= untrusted.MaxKey
	}
	ref := misspelt.ReplaceAllString(value, "$1://$2")
	if absoluteHTTP(ref) {
		return ref, len(ref) <= untrusted.MaxKey
	}
	if namesHost(ref) {
		ref = "//" + ref
	}
	u, err := url.Parse(ref)
	if at == nil || err != nil || u.Scheme != "" {
		return value, false
	}
	address := at.ResolveReference(u).String()
	return address, absoluteHTTP(address) && len(address) <= untrusted.MaxKey
}

// namesHost reports whether a URL without a scheme begins with a host and not with a folder.
func namesHost(s string) bool {
	host, _, ok := strings.Cut(s, "/")
	host = strings.ToLower(host)
	if !ok || !strings.Contains(host, ".") {
		return false
	}
	_, icann := publicsuffix.PublicSuffix(host)
	return icann && !strings.HasPrefix(host, ".")
}
