package seed

import (
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/web"
)

// maxSlowHosts is how many other hosts may time out before no further one is requested.
const maxSlowHosts = 2

// apex is where a domain is requested first.
func apex(name string) *url.URL { return &url.URL{Scheme: "https", Host: name} }

// otherHost requests the next hosts of a domain until one answers, and leaves c.origin
// there. first is what the domain itself came to: a failure below HTTP.
func (c *collector) otherHost(first exchange, next []*url.URL, request func() exchange) (exchange, bool) {
	unknown, slow := map[string]bool{}, 0 // hosts that do not resolve
	rules := c.rules
	c.asking = true
	defer func() { c.asking = false }()
	for failed := first; ; failed = request() {
		if failed.status > 0 {
			return failed, true
		}
		switch failed.kind {
		case web.KindDNS:
			unknown[c.origin.Host] = true
		case web.KindTimeout:
			slow++
		}
		next = slices.DeleteFunc(next, func(u *url.URL) bool { return unknown[u.Host] })
		if len(next) == 0 || slow > maxSlowHosts {
			c.origin, c.rules = apex(c.name), rules
			return exchange{}, false
		}
		c.origin, next = next[0], next[1:]
	}
}

// others are where a domain is requested that does not answer at apex.
func others(name string) (all []*url.URL) {
	www := "www." + name
	plain := &url.URL{Scheme: "http", Host: name}
	if strings.HasPrefix(name, "www.") {
		return []*url.URL{plain}
	}
	return []*url.URL{{Scheme: "https", Host: www}, plain, {Scheme: "http", Host: www}}
}
