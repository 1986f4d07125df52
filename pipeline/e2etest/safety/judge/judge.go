// Package judge holds a simulated web, and judges crawlers by its log alone. It knows no
// crawler and imports nothing but the standard library.
//
// The rules are those of the IETF's draft "Crawler best practices" (numbers in docs/politeness.md)
// and of the RFCs it names. In doubt the crawler is right: a limit is the loosest one that the
// text allows, and slack covers what a busy machine does to clocks.
//
// No promise: see docs/library.md.
package judge

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Rule names a kind of fault.
type Rule string

// The rules, with the part of the draft, and what it refers to.
const (
	Disallowed Rule = "robots"      // 2.1, RFC 9309 2.2.2: a page that robots.txt disallows, also by a redirect
	Unread     Rule = "unread"      // 2.1, RFC 9309 2.3.1.4: a page of a site whose robots.txt was not requested before, or answers 5xx
	Tagged     Rule = "x-robots"    // 2.1: a link of a page with X-Robots-Tag: nofollow
	Unnamed    Rule = "agent"       // 2.2: another user agent than the one with the bot's name and address
	BackOff    Rule = "back-off"    // 2.3, RFC 9110 10.2.3 and 15.6: before Retry-After is over, or a failed page again within a second
	Fast       Rule = "crawl-delay" // 2.3: less than Crawl-delay between the starts of two requests
	Overload   Rule = "overload"    // 2.3: a third request in flight at a small shared server, or one URL twice at a time
	Repeated   Rule = "repeated"    // 2.3: a URL more than five times
	Forced     Rule = "access"      // 2.3: 401 or 403 requested again, or another method than GET
)

// All lists the rules in the order of the table.
var All = []Rule{Disallowed, Unread, Tagged, Unnamed, BackOff, Fast, Overload, Repeated, Forced}

// Verdict is what a log shows.
type Verdict struct {
	Broken   map[Rule][]Entry
	Again    []Entry  // 2.4: a page that was sent with 200 before, or a robots.txt twice in one life of the crawler
	Lost     []string // pages that the crawler must have, neither fetched nor named with a reason
	Requests int
	Seconds  float64 // from the first request to the last response
	Read     []Entry // responses for robots.txt
}

const (
	slack   = 100 * time.Millisecond // of clocks and schedulers
	grace   = time.Second            // in which a crawler may not know yet what it was sent
	mostly  = 5                      // requests for one URL
	workers = 2                      // requests that the small server answers at a time
)

// Judge judges a log that is sorted by Start. reasons has the URLs, without the port, that the
// crawler itself names as not fetched.
func Judge(sites map[string]*Site, log []Entry, kills []time.Time, reasons map[string]bool) Verdict {
	v := Verdict{Broken: map[Rule][]Entry{}, Requests: len(log)}
	byHost, have := map[string][]Entry{}, map[string]bool{}
	for _, e := range log {
		v.Seconds = max(v.Seconds, e.End.Sub(log[0].Start).Seconds())
		byHost[e.Host] = append(byHost[e.Host], e)
		if e.Status == http.StatusOK {
			have[e.Host+e.Path] = true
		}
		if !strings.Contains(e.Agent, Agent) {
			v.broken(Unnamed, e)
		}
		if e.Rules != nil {
			v.Read = append(v.Read, e)
		}
		if e.Method != http.MethodGet {
			v.broken(Forced, e)
		}
	}
	for host, all := range byHost {
		for i, e := range all {
			v.robots(sites[host], all, e)
			v.pauses(all[:i], e)
			v.again(all[:i], e, kills)
		}
	}
	v.overload(sites, log)
	for _, host := range slices.Sorted(maps.Keys(sites)) {
		for _, path := range sites[host].Pages {
			if !have[host+path] && !reasons[host+path] {
				v.Lost = append(v.Lost, host+path)
			}
		}
	}
	return v
}

func (v *Verdict) broken(r Rule, e Entry) { v.Broken[r] = append(v.Broken[r], e) }

// robots compares a page request with what the crawler was sent as robots.txt. If a robots.txt
// was fetched before and fails now, the earlier one holds.
func (v *Verdict) robots(site *Site, all []Entry, e Entry) {
	if e.Rules != nil || e.Path == "/robots.txt" {
		return
	}
	if matches(site.Hidden, e.Path) {
		v.broken(Tagged, e)
	}
	known := func(at time.Time) (r *Rules) {
		for _, o := range all {
			if o.Rules != nil && !o.End.After(at) && (r == nil || r.Status >= 500 || o.Status < 500) {
				r = o.Rules
			}
		}
		return r
	}
	now, before := known(e.Start), known(e.Start.Add(-grace))
	switch {
	case now == nil || now.Status >= 500:
		v.broken(Unread, e)
	case matches(now.Closed, e.Path) && (before == nil || matches(before.Closed, e.Path)):
		v.broken(Disallowed, e)
	}
}

// pauses compares the time of a request with what the responses before it ask for.
func (v *Verdict) pauses(before []Entry, e Entry) {
	for _, o := range before {
		since := e.Start.Sub(o.End)
		failed := (o.Status >= 500 || o.Status == http.StatusTooManyRequests) && o.Rules == nil
		switch {
		case since < slack: // both were in flight
		case since < o.Pause-slack, failed && o.Pause == 0 && o.Path == e.Path && since < grace-slack:
			v.broken(BackOff, e)
			return
		}
	}
	if len(before) == 0 || e.Rules != nil {
		return
	}
	last := before[len(before)-1]
	for _, o := range slices.Backward(before) {
		if o.Rules != nil && !o.End.After(e.Start) {
			if last.Rules == nil && e.Start.Sub(last.Start) < o.Rules.Delay-slack {
				v.broken(Fast, e)
			}
			return
		}
	}
}

// again finds requests for what the crawler has, or must not have. A page that was on its way
// when the crawler was killed may be requested once more.
func (v *Verdict) again(before []Entry, e Entry, kills []time.Time) {
	times, has, refused := 0, false, false
	for _, o := range before {
		if o.Path != e.Path || e.Rules != nil && o.Life != e.Life {
			continue
		}
		times++
		if slices.ContainsFunc(kills, func(at time.Time) bool { return o.End.After(at.Add(-grace)) && o.Start.Before(at) && e.Start.After(at) }) {
			continue
		}
		has = has || o.Status == http.StatusOK
		refused = refused || e.Rules == nil && (o.Status == http.StatusUnauthorized || o.Status == http.StatusForbidden)
	}
	if has {
		v.Again = append(v.Again, e)
	}
	if refused {
		v.broken(Forced, e)
	}
	if times >= mostly {
		v.broken(Repeated, e)
	}
}

// overload counts requests in flight at the shared servers and for single URLs.
func (v *Verdict) overload(sites map[string]*Site, log []Entry) {
	for i, e := range log {
		server, inFlight, same := sites[e.Host].Server, 0, false
		for _, o := range log[:i] {
			if o.End.After(e.Start) && o.Life == e.Life {
				same = same || o.Host+o.Path == e.Host+e.Path
				if server != "" && sites[o.Host].Server == server {
					inFlight++
				}
			}
		}
		if same || inFlight >= workers {
			v.broken(Overload, e)
		}
	}
}
