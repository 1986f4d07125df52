package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// link is a page that may be visited: its key, its address, and the address of its
// Markdown where a list names that.
type link struct{ key, address, twin string }

// sphinxSource matches the sources of pages that Sphinx publishes next to them.
var sphinxSource = regexp.MustCompile(`/_sources/.*\.(?:txt|rst|md|ipynb)$`)

// link returns the page to which an href leads, and why it is not visited, "" if it
// is. A seed need not match an allowed pattern.
func (c *crawl) link(base *url.URL, href string, seed bool) (l link, why string) {
	u, err := canonical.Address(base, href, c.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	key, err := canonical.Key(u, c.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	l = link{key: key, address: u.String()}
	if err := cmp.Or(untrusted.Key(l.key), untrusted.Key(l.address)); err != nil {
		return l, "its address: " + err.Error()
	}
	if content.MaskEmails(l.address) != l.address {
		return l, "an e-mail address is part of it"
	}
	if host := canonical.Host(u); host != c.host {
		return l, "another host: " + host
	}
	if !seed && sphinxSource.MatchString(u.Path) {
		return l, "the source of a page that Sphinx made"
	}
	if c.offers.filesOnly && c.offers.files[key] == nil {
		return l, "the repository does not have it"
	}
	pattern, in := c.scope.Rule(canonical.Path(key))
	switch {
	case in, seed && pattern == "":
		return l, ""
	case pattern == "":
		return l, "no allowed path pattern matches"
	case c.policy.Personal(pattern) != "":
		return l, fmt.Sprintf("the personal-data block %q (%s)", c.policy.Personal(pattern), pattern)
	}
	return l, "the blocked path pattern " + pattern
}

// queue adds pages that are new to the session at the end of their depth.
func (c *crawl) queue(ctx context.Context, tx *sql.Tx, links []link, depth int) error {
	if depth > c.policy.MaxDepth {
		return nil
	}
	for _, l := range links {
		if c.seen[l.key] || c.forbidden[l.key] {
			continue
		}
		if len(c.seen) >= maxQueued {
			return nil
		}
		n, err := changed(tx.ExecContext(ctx, `INSERT INTO docs_pages (provider, key, address, status, depth, session, seq, discovered_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (provider, key) DO UPDATE SET address = excluded.address, status = excluded.status, reason = '', depth = excluded.depth,
				session = excluded.session, seq = excluded.seq, counted = FALSE, retries = 0, http_status = 0 WHERE docs_pages.session <> excluded.session`,
			c.policy.ProviderID, l.key, l.address, Queued, depth, c.part.session, c.part.queued, db.Micros(c.clock.Now())))
		if err != nil {
			return fmt.Errorf("queueing %s: %w", l.address, err)
		}
		c.part.queued += n
		if l.twin == "" || l.twin == c.offers.twins[l.key] {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO docs_page_sources (provider, key, twin) VALUES ($1, $2, $3) ON CONFLICT (provider, key) DO UPDATE SET twin = excluded.twin`,
			c.policy.ProviderID, l.key, l.twin); err != nil {
			return fmt.Errorf("recording the Markdown of %s: %w", l.address, err)
		}
	}
	return nil
}

// remember marks pages as seen after a transaction has queued them.
func (c *crawl) remember(links []link, depth int) {
	if depth > c.policy.MaxDepth {
		return
	}
	for _, l := range links {
		if len(c.seen) < maxQueued {
			c.seen[l.key] = true
		}
		if l.twin != "" {
			c.offers.twins[l.key] = l.twin
		}
	}
}

// adopt queues a page of an earlier session with its stored content.
func (c *crawl) adopt(ctx context.Context, tx *sql.Tx, p *page) error {
	_, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, reason = '', session = $2, seq = $3, counted = FALSE, retries = 0, http_status = 0 WHERE provider = $4 AND key = $5`,
		Queued, c.part.session, c.part.queued, c.policy.ProviderID, p.key)
	c.part.queued++
	return err
}

// load reads which pages of the provider the session already has.
func (c *crawl) load(ctx context.Context) error {
	known := func(into map[string]bool, query string, args ...any) error {
		rows, err := c.db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		return each(rows, func() error {
			var key string
			err := rows.Scan(&key)
			into[key] = true
			return err
		})
	}
	if err := errors.Join(
		known(c.seen, `SELECT key FROM docs_pages WHERE provider = $1 AND session = $2`, c.policy.ProviderID, c.part.session),
		known(c.forbidden, `SELECT key FROM docs_blocked_urls WHERE provider = $1`, c.policy.ProviderID),
		c.loadCopies(ctx), c.loadNotices(ctx)); err != nil {
		return fmt.Errorf("reading the frontier of %s: %w", c.policy.ProviderID, err)
	}
	return c.liftLost(ctx)
}

// liftLost lets a provider be requested again whose seeds are all forbidden: its site refused
// for a while, which an earlier version took for a refusal of each page.
func (c *crawl) liftLost(ctx context.Context) error {
	for _, raw := range c.policy.SeedURLs {
		if l, why := c.link(nil, raw, true); why != "" || !c.forbidden[l.key] {
			return nil
		}
	}
	if len(c.forbidden) == 0 {
		return nil
	}
	if _, err := Unblock(ctx, c.db, c.policy.ProviderID, ""); err != nil {
		return err
	}
	clear(c.forbidden)
	return nil
}

// seed queues the seeds and, at depth 1, the pages of the sitemap.
func (c *crawl) seed(ctx context.Context) error {
	if err := c.checkTerms(ctx); err != nil {
		return err
	}
	var seeds []link
	for _, raw := range c.policy.SeedURLs {
		if l, why := c.link(nil, raw, true); why == "" {
			seeds = append(seeds, l)
		} else if !c.offers.filesOnly {
			c.w.Log.Warn("seed_refused", "provider", c.policy.ProviderID, "url", raw, "reason", why)
		}
	}
	var listed []link
	if c.policy.SitemapURL != "" && !c.offers.filesOnly {
		var err error
		if listed, err = c.sitemap(ctx); err != nil {
			return err
		}
	}
	if len(listed) > 0 && !c.onlyHTML() {
		c.offers.list = c.policy.SitemapURL
		if err := c.noteOffer(ctx, listSitemap, c.policy.SitemapURL, "found", fmt.Sprintf("it lists %d pages", len(listed)), nil); err != nil {
			return err
		}
	}
	more, err := c.discover(ctx)
	if err != nil {
		return err
	}
	listed = slices.Concat(c.offers.filePages, c.offers.places, more, listed) // the llms.txt knows the Markdown of its pages
	err = c.advance(ctx, func(tx *sql.Tx) error {
		if err := c.queue(ctx, tx, seeds, 0); err != nil {
			return err
		}
		return c.queue(ctx, tx, listed, 1)
	})
	if err != nil {
		return fmt.Errorf("queueing the seeds of %s: %w", c.policy.ProviderID, err)
	}
	c.remember(seeds, 0)
	c.remember(listed, 1)
	return nil
}

const pageColumns = `key, address, depth, status, counted, retries, etag, last_modified, content_hash, read_by, fetched_at, gone_at`

func scanPage(row interface{ Scan(...any) error }) (*page, error) {
	var p page
	var goneAt int64
	err := row.Scan(&p.key, &p.address, &p.depth, &p.status, &p.counted, &p.retries, &p.etag, &p.lastModified, &p.contentHash, &p.readBy, &p.fetchedAt, &goneAt)
	p.gone = goneAt != 0
	return &p, err
}

// next returns the first page of the queue, nil when it is empty. The order is breadth
// first, and within a depth by discovery.
func (c *crawl) next(ctx context.Context) (*page, error) {
	p, err := scanPage(c.db.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM docs_pages
		WHERE provider = $1 AND session = $2 AND status = $3 ORDER BY depth, seq LIMIT 1`, c.policy.ProviderID, c.part.session, Queued))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the next page of %s: %w", c.policy.ProviderID, err)
	}
	return p, nil
}

// forbiddenKept is the session, counted from the one that got a 403 for a page, in which the
// page's text is removed.
const forbiddenKept = 3

// recheck queues one page of an earlier crawl to which no link led in this one, so
// that a page is found to be gone even if all links to it are gone too. Pages that
// the policy no longer allows are dropped without a request.
func (c *crawl) recheck(ctx context.Context) (*page, error) {
	for {
		p, err := scanPage(c.db.QueryRowContext(ctx, `SELECT `+pageColumns+` FROM docs_pages
			WHERE provider = $1 AND session <> $2 AND content_hash <> '' AND NOT EXISTS (SELECT 1 FROM docs_blocked_urls b WHERE b.provider = docs_pages.provider AND b.key = docs_pages.key
				AND (SELECT COUNT(*) FROM docs_sessions s WHERE s.started_at >= b.blocked_at) < $3) ORDER BY depth, seq, key LIMIT 1`, c.policy.ProviderID, c.part.session, forbiddenKept))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("looking for pages that were not reached: %w", err)
		}
		l, why := c.link(nil, p.address, p.depth == 0)
		if why == "" && c.forbidden[p.key] {
			why = "it answered 403 before"
		}
		if why == "" && l.key != p.key {
			why = "its key is now " + l.key
		}
		if err := c.advance(ctx, func(tx *sql.Tx) error { return c.adopt(ctx, tx, p) }); err != nil {
			return nil, fmt.Errorf("queueing %s again: %w", p.address, err)
		}
		c.seen[p.key] = true
		if why == "" {
			p.status, p.counted, p.retries = Queued, false, 0
			return p, nil
		}
		c.w.Log.Warn("page_dropped", "provider", c.policy.ProviderID, "url", p.address, "reason", why)
		if err := c.close(ctx, &chain{page: p, now: p}, ending{status: Deleted, reason: why, gone: true}); err != nil {
			return nil, err
		}
	}
}
