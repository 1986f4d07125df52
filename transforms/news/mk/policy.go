package mk

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// Articles are /news/{section}/{number}, where home is no section but leads to articles of before, and before 2022
// /newsRead.php?year={year}&no={number}.
var path = regexp.MustCompile(`^/news/([a-z-]+)/(\d{6,})/?$`)

func isArticle(u *url.URL) bool {
	return provider.Hosts(Provider{}.BaseURL(), u) && externalID(u) != ""
}

func externalID(u *url.URL) string {
	if m := path.FindStringSubmatch(u.Path); m != nil && m[1] != "home" {
		return m[2]
	}
	if q := u.Query(); strings.EqualFold(u.Path, "/newsRead.php") && q.Get("no") != "" {
		return q.Get("year") + "-" + q.Get("no")
	}
	return ""
}
