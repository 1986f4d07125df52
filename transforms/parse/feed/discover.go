package feed

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

const (
	maxLinks = 100     // feeds of one page
	maxToken = 1 << 20 // bytes of one tag, script or text of HTML; reading ends at a longer one
)

// Discover lists the feeds that a page links to with <link rel=alternate> and the type
// of RSS or Atom, as canonical.Resolve writes addresses, in order, without repetitions, a hundred
// at most. Relative ones are resolved against the page's first base element, where that names a web
// page, else against base, the page's URL.
func Discover(page []byte, base *url.URL) []string {
	var found []string
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(maxToken)
	based := false
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return found // the end of the page, or of what can be read
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		element := string(name)
		if element != "link" && element != "base" {
			continue
		}
		attrs := dom.Attributes(z, more)
		href := strings.TrimSpace(attrs["href"])
		if href == "" {
			continue
		}
		if element == "base" {
			if u, err := canonical.Address(base, href, []string{"*"}); err == nil && !based {
				base = u
			}
			based = true
			continue
		}
		mime, _, _ := strings.Cut(strings.ToLower(attrs["type"]), ";")
		mime = strings.TrimSpace(mime)
		if (mime != "application/rss+xml" && mime != "application/atom+xml") ||
			!slices.Contains(strings.Fields(strings.ToLower(attrs["rel"])), "alternate") {
			continue
		}
		if s, err := canonical.Resolve(base, href, []string{"*"}); err == nil && !slices.Contains(found, s) {
			found = append(found, s)
			if len(found) == maxLinks {
				return found
			}
		}
	}
}
