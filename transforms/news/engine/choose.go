package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// candidate is an article in a sitemap.
type candidate struct {
	url       *url.URL
	canonical string
	published time.Time // by the news extension
	modified  time.Time // lastmod
	at        time.Time // the later of both; if it is newer than the stored one, the article is fetched again
	news      sitemap.News
	order     int
}

// when returns the time by which candidates are sorted.
func (c candidate) when() time.Time {
	if !c.published.IsZero() {
		return c.published
	}
	return c.modified
}

// newer orders by publication, then lastmod, then position in the sitemaps.
func newer(a, b candidate) int {
	if c := b.when().Compare(a.when()); c != 0 {
		return c
	}
	if c := b.modified.Compare(a.modified); c != 0 {
		return c
	}
	return a.order - b.order
}

// candidates reads the sitemaps, the newest of an index first, until the others cannot
// have newer articles than those found. It returns the articles, newest first.
func (v *visit) candidates(ctx context.Context) ([]candidate, error) {
	var queue []child
	roots, err := v.roots(ctx)
	if err != nil {
		return nil, err
	}
	if len(roots) > maxSitemaps {
		arrange(roots, v.policy.Zone, v.now())
	}
	var found []candidate
	seen := map[string]int{}
	asked := map[string]bool{}
	var enough time.Time // the wanted number of articles is at least as new as this; zero: there are fewer
	most := maxSitemaps
	if !v.Backfill.IsZero() {
		most = maxBackfill
	}
	needless := func(c child) bool {
		if !v.Backfill.IsZero() {
			return asked[c.address] || c.depth > 0 && !c.at.IsZero() && c.at.Before(v.Backfill.From)
		}
		return asked[c.address] || c.depth > 0 && !c.at.IsZero() && !enough.IsZero() && !enough.Before(c.at)
	}
	read := 0
	var lastErr error
	for len(roots)+len(queue) > 0 && len(asked) < most {
		from := &queue
		// Every root is read before any child, because one index must not keep the other roots
		// from being read. But half of the requests are for children.
		if len(roots) > 0 && (len(queue) == 0 || len(asked) < most/2) {
			from = &roots
		}
		next := (*from)[0]
		*from = (*from)[1:]
		if needless(next) {
			continue
		}
		asked[next.address] = true
		children, err := v.sitemap(ctx, next, seen, &found)
		var stop *errStop
		if errors.As(err, &stop) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // the other sitemaps may be readable
			lastErr = err
			v.log.Warn("sitemap_failed", "url", ledger.Redact(next.address), "error", ledger.Redact(err.Error()))
			continue
		}
		read++
		enough = nth(found, v.Config.MaxArticlesPerProvider)
		arrange(children, v.policy.Zone, v.now())
		queue = append(children, queue...)
		if next.depth == 0 {
			slices.SortStableFunc(queue, nearer)
		}
	}
	if read == 0 {
		return nil, &errStop{Skipped, fmt.Sprintf("none of its sitemaps and feeds can be read: %v", lastErr)}
	}
	if left := slices.DeleteFunc(append(roots, queue...), needless); len(left) > 0 {
		v.limit(fmt.Sprintf("%d sitemaps were read, the maximum for a run; %d more were left out, such as %.200s", most, len(left), ledger.Redact(left[0].address)))
	}
	if !v.Backfill.IsZero() {
		found = slices.DeleteFunc(found, func(c candidate) bool { return !v.Backfill.Contains(c.when()) })
	}
	slices.SortStableFunc(found, newer)
	return found, nil
}

// nth returns the time of the n-th newest candidate, zero if there are fewer.
func nth(found []candidate, n int) time.Time {
	if len(found) < n {
		return time.Time{}
	}
	times := make([]time.Time, len(found))
	for i := range found {
		times[i] = found[i].when()
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[n-1]
}

// limit records once what was left out because of a limit.
func (v *visit) limit(text string) {
	if !slices.Contains(v.result.Limits, text) {
		v.result.Limits = append(v.result.Limits, text)
		v.log.Warn("limit_reached", "limit", text)
	}
}

// sitemap reads one sitemap into found, and returns the children of an index.
func (v *visit) sitemap(ctx context.Context, c child, seen map[string]int, found *[]candidate) ([]child, error) {
	base, err := url.Parse(c.address)
	if err != nil {
		return nil, fmt.Errorf("reading the sitemap's address: %w", err)
	}
	r, err := v.get(ctx, polite.Request{URL: c.address, Accept: "application/xml,text/xml,application/rss+xml,application/atom+xml", MaxBytes: maxSitemap, Invited: c.invited})
	if err != nil {
		return nil, err
	}
	if r.Status != 200 {
		return nil, fmt.Errorf("status %d", r.Status)
	}
	var entries []sitemap.Entry
	read, err := sitemap.Scan(r.Body, func(e sitemap.Entry) bool {
		entries = append(entries, e)
		return len(entries) < maxEntries
	})
	if errors.Is(err, sitemap.ErrNotSitemap) {
		return nil, fmt.Errorf("%s is neither a sitemap nor a feed, but %.60q", ledger.Redact(c.address), cmp.Or(r.Header.Get("Content-Type"), http.DetectContentType(r.Body)))
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(entries) >= maxEntries:
		v.limit(fmt.Sprintf("a sitemap was read up to its address number %d: %.200s", maxEntries, ledger.Redact(c.address)))
	case r.Truncated:
		v.limit(fmt.Sprintf("a sitemap was read up to its first %d MiB, or ends early: %.200s", maxSitemap>>20, ledger.Redact(c.address)))
	}
	var children []child
	for _, e := range entries {
		at, _ := article.ParseTime(e.LastMod, v.policy.Zone) // zero if there is none
		if read.Kind == sitemap.Index {
			u, err := canonical.Address(base, e.Loc, []string{"*"})
			switch {
			case err != nil:
			case c.depth == maxDepth:
				if !v.deep {
					v.limit(fmt.Sprintf("an index in an index in an index was not followed: %.200s", ledger.Redact(c.address)))
				}
				v.deep = true
			default:
				children = append(children, child{address: u.String(), at: at, depth: c.depth + 1, invited: c.invited})
			}
			continue
		}
		v.listed++
		u, err := canonical.Address(base, e.Loc, []string{"*"})
		if err != nil || !v.p.IsArticleURL(u) {
			if v.other == "" {
				v.other = untrusted.Line(e.Loc, 200)
			}
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
		one.published, _ = article.ParseTime(e.News.PublicationDate, v.policy.Zone) // also zero if there is none
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

// choose returns those of the newest articles that are new, or newer in the sitemap than
// the stored version. Articles that were refused before come last: one that is refused
// every time must not keep the others from being requested.
func (v *visit) choose(ctx context.Context, found []candidate) ([]candidate, error) {
	oldest, most := v.now().Add(-v.Config.Retention()), min(len(found), v.Config.MaxArticlesPerProvider)
	if !v.Backfill.IsZero() {
		oldest, most = v.Backfill.From, len(found)
	}
	var out, last []candidate
	for _, c := range found[:most] {
		if !c.when().IsZero() && c.when().Before(oldest) {
			v.old++
			continue
		}
		if v.rules.Check(c.url) != nil {
			v.result.Forbidden++
			continue
		}
		known, err := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		if err != nil {
			return nil, err
		}
		if known.State == "stored" {
			v.stored = true
		}
		switch {
		case !known.Fresh(c.at):
		case known.Refusals > 0:
			last = append(last, c)
		default:
			out = append(out, c)
		}
	}
	if v.Backfill.IsZero() {
		if err := v.missed(ctx, found[most:]); err != nil {
			return nil, err
		}
	}
	return append(out, last...), nil
}

// missed counts the articles that were published since the newest that is stored, and
// that this run leaves out: runs are too rare for the publisher, or
// maxArticlesPerProvider is too small.
func (v *visit) missed(ctx context.Context, rest []candidate) error {
	newest, err := raw.Newest(ctx, v.DB, v.p.ID())
	if err != nil || newest.IsZero() {
		return err
	}
	for _, c := range rest[:min(len(rest), maxMissed)] {
		if !c.when().After(newest) { // the newest come first
			return nil
		}
		known, err := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		if err != nil {
			return err
		}
		if known.State == "" {
			v.result.Missed++
		}
	}
	return nil
}
