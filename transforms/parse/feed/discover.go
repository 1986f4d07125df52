package feed

import (
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

const (
	maxLinks = 100     // feeds of one page
	maxToken = 1 << 20 // bytes of one tag or text in a title
)

// Discover lists the feeds that a page links to with <link rel=alternate> and the type
// of RSS or Atom, as canonical.Resolve writes addresses, in order, without repetitions, a hundred
// at most. Relative ones are resolved against the page's first base element, where that names a web
// page, else against base, the page's URL.
func Discover(page []byte, base *url.URL) (found []string) {
	for l := range dom.Links(page, base, "link") {
		mime, _, _ := strings.Cut(strings.ToLower(l.Attr["type"]), ";")
		mime = strings.TrimSpace(mime)
		if mime != "application/rss+xml" && mime != "application/atom+xml" ||
			!slices.Contains(strings.Fields(strings.ToLower(l.Attr["rel"])), "alternate") {
			continue
		}
		if s, err := canonical.Resolve(l.Base, l.Href, []string{"*"}); err == nil && !slices.Contains(found, s) {
			if found = append(found, s); len(found) == maxLinks {
				break
			}
		}
	}
	return found
}
