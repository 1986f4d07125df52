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

// maxOwnHosts is how many hosts of records are requested in place of their domain.
const maxOwnHosts = 2

// ownHosts are the hosts that the records of open requests name besides the domain and its www.
func ownHosts(requests []request) (hosts []string) {
	for _, q := range requests {
		if own := sourceOf(q.source, "").Host; q.state == unfinished && own != "" && len(hosts) < maxOwnHosts && !slices.Contains(hosts, own) {
			hosts = append(hosts, own)
		}
	}
	return hosts
}

// others are where a domain is requested that does not answer at apex, the hosts of its records first.
func others(name string, own []string) (all []*url.URL) {
	hosts := slices.Clip(own)
	if !strings.HasPrefix(name, "www.") {
		hosts = append(hosts, "www."+name)
	}
	for _, h := range hosts {
		all = append(all, &url.URL{Scheme: "https", Host: h})
	}
	for _, h := range append([]string{name}, hosts...) {
		all = append(all, &url.URL{Scheme: "http", Host: h})
	}
	return all
}
