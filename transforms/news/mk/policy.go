package mk

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Articles are /news/{section}/{number}, and before 2022
// /newsRead.php?year={year}&no={number}.
var path = regexp.MustCompile(`^/news/[a-z-]+/(\d{6,})/?$`)

func isArticle(u *url.URL) bool {
	return provider.Hosts(Provider{}.BaseURL(), u) && externalID(u) != ""
}

func externalID(u *url.URL) string {
	if m := path.FindStringSubmatch(u.Path); m != nil {
		return m[1]
	}
	if q := u.Query(); strings.EqualFold(u.Path, "/newsRead.php") && q.Get("no") != "" {
		return q.Get("year") + "-" + q.Get("no")
	}
	return ""
}
