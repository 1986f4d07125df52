package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/article"
	"github.com/newsfork/seed-engine/transforms/canonical"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/sitemap"
	"github.com/newsfork/seed-engine/transforms/untrusted"
)

// candidate is an article that a sitemap names.
type candidate struct {
	url       *url.URL
	canonical string
	published time.Time // by the news extension
	modified  time.Time // lastmod
	at        time.Time // the later of both: newer than ours, it is fetched again
	news      sitemap.News
	order     int
}

// when is what recency goes by.
func (c candidate) when() time.Time {
	if !c.published.IsZero() {
		return c.published
	}
	return c.modified
}

// newer orders by publication, then lastmod, then place in the sitemaps.
func newer(a, b candidate) int {
	if c := b.when().Compare(a.when()); c != 0 {
		return c
	}
	if c := b.modified.Compare(a.modified); c != 0 {
		return c
	}
	return a.order - b.order
}

// child is a sitemap that is still to be read.
type child struct {
	address string
	at      time.Time
	depth   int
}

// roots are the sitemaps to begin with: robots.txt's, else the hints.
func (v *visit) roots() []string {
	if named := v.rules.Sitemaps(); len(named) > 0 {
		return named
	}
	if hints := v.Config.Providers[v.p.ID()].SitemapHints; len(hints) > 0 {
		return hints
	}
	return v.p.SitemapHints()
}

// candidates reads the sitemaps, indexes newest first, until what is left
// cannot be newer than what was found, and gives the articles, newest first.
func (v *visit) candidates(ctx context.Context) ([]candidate, error) {
	var queue []child
	for _, address := range v.roots() {
		queue = append(queue, child{address: address})
	}
	if len(queue) == 0 {
		return nil, &errStop{Skipped, "robots.txt names no sitemap and there are no sitemapHints: add them to the configuration"}
	}
	var found []candidate
	seen := map[string]int{}
	asked := map[string]bool{}
	read := 0
	var lastErr error
	for len(queue) > 0 && len(asked) < maxSitemaps {
		next := queue[0]
		queue = queue[1:]
		if asked[next.address] {
			continue
		}
		if n := v.Config.MaxArticlesPerProvider; next.depth > 0 && !next.at.IsZero() && len(found) >= n {
			slices.SortStableFunc(found, newer)
			if !found[n-1].when().Before(next.at) {
				continue // what it names is not newer than the newest that we have
			}
		}
		asked[next.address] = true
		children, err := v.sitemap(ctx, next, seen, &found)
		var stop *errStop
		if errors.As(err, &stop) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // one sitemap's trouble; others may be good
			lastErr = err
			v.log.Warn("sitemap_failed", "url", ledger.Redact(next.address), "error", ledger.Redact(err.Error()))
			continue
		}
		read++
		slices.SortStableFunc(children, func(a, b child) int { return b.at.Compare(a.at) })
		queue = append(children, queue...)
	}
	if read == 0 {
		return nil, &errStop{Skipped, fmt.Sprintf("none of its sitemaps can be read: %v", lastErr)}
	}
	slices.SortStableFunc(found, newer)
	return found, nil
}

// sitemap reads one sitemap into found, and gives the children of an index.
func (v *visit) sitemap(ctx context.Context, c child, seen map[string]int, found *[]candidate) ([]child, error) {
	base, err := url.Parse(c.address)
	if err != nil {
		return nil, fmt.Errorf("reading the sitemap's address: %w", err)
	}
	r, err := v.get(ctx, c.address, "application/xml,text/xml", maxSitemap, nil)
	if err != nil {
		return nil, err
	}
	if r.Status != 200 {
		return nil, fmt.Errorf("status %d", r.Status)
	}
	var entries []sitemap.Entry
	read, err := sitemap.Scan(r.Body, func(e sitemap.Entry) bool {
		entries = append(entries, e)
		return len(entries) < 100_000
	})
	if err != nil {
		return nil, err
	}
	var children []child
	for _, e := range entries {
		at, _ := article.ParseTime(e.LastMod, v.policy.Zone) // zero where it says none
		if read.Kind == sitemap.Index {
			if u, err := canonical.Address(base, e.Loc, []string{"*"}); err == nil && c.depth < 2 {
				children = append(children, child{u.String(), at, c.depth + 1})
			}
			continue
		}
		u, err := canonical.Address(base, e.Loc, []string{"*"})
		if err != nil || !v.p.IsArticleURL(u) {
			continue
		}
		key, err := v.policy.Canonical(u)
		if err == nil {
			err = errors.Join(untrusted.Key(u.String()), untrusted.Key(key))
		}
		if err != nil {
			v.log.Warn("address_left_out", "url", ledger.Redact(untrusted.Line(e.Loc, 200)), "error", err.Error())
			continue
		}
		one := candidate{url: u, canonical: key, modified: at, news: e.News, order: len(*found)}
		one.published, _ = article.ParseTime(e.News.PublicationDate, v.policy.Zone) // likewise
		one.at = one.modified
		if one.published.After(one.at) {
			one.at = one.published
		}
		if i, twice := seen[key]; twice {
			if newer(one, (*found)[i]) < 0 {
				one.order = (*found)[i].order
				(*found)[i] = one
			}
			continue
		}
		seen[key] = len(*found)
		*found = append(*found, one)
	}
	return children, nil
}

// choose takes the newest articles, and of these those that are new, or newer
// in the sitemap than ours. Those that were refused before come last: one that is
// refused every time must not keep the others from being asked for.
func (v *visit) choose(ctx context.Context, found []candidate) ([]candidate, error) {
	oldest := v.Now().Add(-v.Config.Retention())
	var out, last []candidate
	for _, c := range found[:min(len(found), v.Config.MaxArticlesPerProvider)] {
		if !c.when().IsZero() && c.when().Before(oldest) {
			continue
		}
		if !v.rules.Allowed(v.UserAgent, c.url.String()) {
			v.result.Forbidden++
			continue
		}
		known, err := raw.Remembered(ctx, v.DB, v.p.ID(), c.canonical)
		if err != nil {
			return nil, err
		}
		switch {
		case !known.Fresh(c.at):
		case known.Refusals > 0:
			last = append(last, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, last...), nil
}
