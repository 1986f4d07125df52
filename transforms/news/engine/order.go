package engine

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// child is a sitemap that is still to be read.
type child struct {
	address string
	at      time.Time // lastmod, or the end of the time that its name says; zero: neither
	until   time.Time // nothing in it is newer, as lastmod or its name says; zero: neither does
	dated   bool      // until is of lastmod
	place   int       // for those without a time: the distance from the newest end
	depth   int
	invited bool // robots.txt names it, or an index that it names does
	page    bool // it is no sitemap, but the front page or one of its sections
}

// arrange sorts the sitemaps of one index, or the roots, in the order in which they are
// read: the newest first. Without lastmod, dates in the names count if most names have
// one. Without those, the last is taken as the newest, because most indexes grow at
// their end, and the first comes second, in case the index grows at its beginning.
func arrange(children []child, zone *time.Location, now time.Time) {
	undated := 0
	named := map[int]time.Time{}
	for i, c := range children {
		if !c.at.IsZero() {
			continue
		}
		undated++
		if end, ok := periodEnd(c.address, zone, now); ok {
			named[i] = end
		}
	}
	for i := range children {
		c := &children[i]
		if end, ok := named[i]; ok && len(named)*2 >= undated {
			c.at, c.until = end, end.Add(ahead) // its days may be those of another zone
		}
		switch i {
		case 0:
			c.place = 1
		case len(children) - 1:
			c.place = 0
		default:
			c.place = len(children) - i
		}
	}
	slices.SortStableFunc(children, nearer)
}

// nearer orders by time, then by distance from the newest end.
func nearer(a, b child) int {
	return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.place, b.place))
}

// period is a year, a month or a day in a sitemap's name: 2026, 202611,
// 2026-11-22, /2026/11/, ?yyyy=2026&mm=11.
var period = regexp.MustCompile(`(?:^|\D)((?:19|20)\d\d)(?:(?:[-_/.]|&\w+=)?(0[1-9]|1[0-2])(?:(?:[-_/.]|&\w+=)?(0[1-9]|[12]\d|3[01]))?|(?:[-_/.]|&\w+=)([1-9])(?:(?:[-_/.]|&\w+=)(\d{1,2}))?)?(?:\D|$)`)

// periodEnd returns the end of the period in a sitemap's name.
func periodEnd(address string, zone *time.Location, now time.Time) (end time.Time, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return time.Time{}, false
	}
	most := 0
	for _, m := range period.FindAllStringSubmatch(u.RequestURI(), -1) {
		year, month, day := number(m[1]), number(cmp.Or(m[2], m[4])), number(cmp.Or(m[3], m[5]))
		parts := 1 + min(month, 1) + min(day, 1)
		begin := time.Date(year, time.Month(max(month, 1)), max(day, 1), 0, 0, 0, 0, zone)
		if parts < most || day > 31 || begin.After(now.AddDate(0, 0, 1)) {
			continue
		}
		most, ok = parts, true
		switch parts {
		case 1:
			end = begin.AddDate(1, 0, 0)
		case 2:
			end = begin.AddDate(0, 1, 0)
		default:
			end = begin.AddDate(0, 0, 1)
		}
	}
	return end, ok
}

// number returns the value of digits, 0 for an empty text.
func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the expression matches only digits
	return n
}
