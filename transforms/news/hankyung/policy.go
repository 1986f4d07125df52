package hankyung

import (
	"net/url"
	"regexp"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Articles are /article/{number} and /{section}/article/{number}; the number
// begins with the day, and may end in a letter.
var path = regexp.MustCompile(`^(?:/[a-z-]+)?/article/(\d{10,}[0-9a-z]?)/?$`)

func isArticle(u *url.URL) bool {
	return provider.Hosts(Provider{}.BaseURL(), u) && externalID(u) != ""
}

func externalID(u *url.URL) string {
	if m := path.FindStringSubmatch(u.Path); m != nil {
		return m[1]
	}
	return ""
}
