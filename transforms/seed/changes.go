package seed

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
)

// Change is a domain that differs between the two newest dates of a country and category.
type Change struct {
	Domain
	Kind   string // new, gone or changed
	Before string // the older of the two dates
	What   string // changed: what, such as "robots.txt: 404 -> 200"
}

// Changes yields the domains that are new, gone or changed in the newest date of each country
// and category whose raw files are all done, compared with the date before: their
// robots.txt and their sitemap. Memory does not grow with the domains: they are compared in several passes if they are many.
func Changes(ctx context.Context, s store.Store, f Filter) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		open := map[hive.Partition]int{} // raw files without their mark
		for o, err := range s.List(ctx, hive.Datasets) {
			if err != nil {
				yield(Change{}, fmt.Errorf("listing the raw files: %w", err))
				return
			}
			key, done := strings.CutSuffix(o.Key, hive.Success)
			if r, ok := hive.ParseRaw(key); ok && f.Wants(r.Partition) {
				open[r.Partition]++
				if done {
					open[r.Partition] -= 2
				}
			}
		}
		dates := map[[2]string][]string{}
		for p, n := range open {
			if n == 0 {
				of := [2]string{p.Country, p.Category}
				dates[of] = append(dates[of], p.Date)
			}
		}
		for _, of := range slices.SortedFunc(maps.Keys(dates), func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) }) {
			slices.Sort(dates[of])
			if two := dates[of][max(0, len(dates[of])-2):]; len(two) == 2 {
				c := comparison{ctx: ctx, store: s, older: Filter{Country: of[0], Category: of[1], Date: two[0]}, newer: Filter{Country: of[0], Category: of[1], Date: two[1]}}
				if !c.all(yield) {
					return
				}
			}
		}
	}
}

// look is what is compared of a domain.
type look struct{ robots, index string }

func lookOf(d Domain) look {
	said := func(status int64, failure string) string {
		if failure != "" {
			return failure
		}
		return fmt.Sprint(status)
	}
	l := look{robots: said(int64(d.RobotsStatus), d.RobotsError), index: said(int64(d.SitemapStatus), d.SitemapError)}
	if d.RobotsExists {
		l.robots += fmt.Sprintf(", %d sitemaps", len(d.SitemapURLs))
	}
	if d.SitemapExists {
		l.index += ", " + d.SitemapKind
	}
	return l
}

// since says what differs from an earlier look, "" for nothing.
func (l look) since(was look) string {
	var what []string
	if l.robots != was.robots {
		what = append(what, "robots.txt: "+was.robots+" -> "+l.robots)
	}
	if l.index != was.index {
		what = append(what, "sitemap: "+was.index+" -> "+l.index)
	}
	return strings.Join(what, "; ")
}

type comparison struct {
	ctx          context.Context
	store        store.Store
	older, newer Filter
	passes       uint64
}

func (c *comparison) id(d Domain) visited {
	return visitedAs(hive.Partition{Country: c.older.Country, Category: c.older.Category}, d.RegistrableDomain)
}

// of yields the domains of a pass.
func (c *comparison) of(f Filter, pass uint64) iter.Seq2[Domain, error] {
	return func(yield func(Domain, error) bool) {
		for d, err := range Domains(c.ctx, c.store, f) {
			if err == nil {
				if id := c.id(d); binary.BigEndian.Uint64(id[:])%c.passes != pass {
					continue
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// before returns the older looks of a pass. In the first one it doubles the passes until
// they are few enough.
func (c *comparison) before(pass uint64) (map[visited]look, error) {
	c.passes = max(c.passes, 1)
	texts := map[string]string{} // each once: there are few
	was := map[visited]look{}
	for d, err := range c.of(c.older, pass) {
		if err != nil {
			return nil, err
		}
		l := lookOf(d)
		for _, t := range []*string{&l.robots, &l.index} {
			if _, ok := texts[*t]; !ok {
				texts[*t] = *t
			}
			*t = texts[*t]
		}
		was[c.id(d)] = l
		if pass == 0 && int64(len(was)) > maxCompared {
			c.passes *= 2
			return c.before(0)
		}
	}
	return was, nil
}

// all yields the differences, and reports whether to continue.
func (c *comparison) all(yield func(Change, error) bool) bool {
	c.passes = 1
	for pass := uint64(0); pass < c.passes; pass++ {
		was, err := c.before(pass)
		if err != nil {
			yield(Change{}, err)
			return false
		}
		for d, err := range c.of(c.newer, pass) {
			if err != nil {
				yield(Change{}, err)
				return false
			}
			id := c.id(d)
			before, there := was[id]
			delete(was, id)
			change := Change{Domain: d, Kind: "new", Before: c.older.Date}
			if there {
				change.Kind, change.What = "changed", lookOf(d).since(before)
			}
			if (!there || change.What != "") && !yield(change, nil) {
				return false
			}
		}
		if len(was) == 0 {
			continue
		}
		for d, err := range c.of(c.older, pass) {
			if err != nil {
				yield(Change{}, err)
				return false
			}
			if _, gone := was[c.id(d)]; gone && !yield(Change{Domain: d, Kind: "gone", Before: c.older.Date}, nil) {
				return false
			}
		}
	}
	return true
}
