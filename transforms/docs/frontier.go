package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// page is a row of the table pages, as the crawl uses it.
type page struct {
	key, address       string
	depth              int
	status             Status
	counted            bool
	retries            int
	etag, lastModified string
	contentHash        string
	readBy             string
	fetchedAt          int64
	gone               bool // it had content, and was found to be gone
	moved              bool // its redirect is permanent
	reason             string
	source             policy.Source // of its stored content
	twin               string        // the address of its Markdown, where a list names that
	rights             string        // a rights.Rights as JSON; "": a version without them read it
}

const selectPage = `SELECT p.key, p.address, p.depth, p.status, p.counted, p.retries, p.etag, p.last_modified, p.content_hash, p.read_by,
	p.fetched_at, p.gone_at, p.reason, COALESCE(o.source, ''), COALESCE(o.twin, ''), p.rights
	FROM docs_pages p LEFT JOIN docs_page_sources o ON o.provider = p.provider AND o.key = p.key `

func scanPage(row interface{ Scan(...any) error }) (*page, error) {
	var p page
	var goneAt int64
	err := row.Scan(&p.key, &p.address, &p.depth, &p.status, &p.counted, &p.retries, &p.etag, &p.lastModified, &p.contentHash, &p.readBy,
		&p.fetchedAt, &goneAt, &p.reason, &p.source, &p.twin, &p.rights)
	p.gone = goneAt != 0
	return &p, err
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
		if len(c.seen)+len(c.fresh) >= maxQueued {
			return nil
		}
		n, err := db.Changed(tx.ExecContext(ctx, `INSERT INTO docs_pages (provider, key, address, status, depth, session, seq, discovered_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (provider, key) DO UPDATE SET address = excluded.address, status = excluded.status, reason = '', depth = excluded.depth,
				session = excluded.session, seq = excluded.seq, counted = FALSE, retries = 0, http_status = 0
				WHERE docs_pages.session <> excluded.session`,
			c.id, l.key, l.address, Queued, depth, c.part.session, c.part.queued, db.Micros(c.clock.Now())))
		if err != nil {
			return fmt.Errorf("queueing %s: %w", l.address, err)
		}
		if n > 0 {
			c.fresh = append(c.fresh, l.key)
			c.part.queued++
		}
		if l.twin == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO docs_page_sources (provider, key, twin) VALUES ($1, $2, $3)
			ON CONFLICT (provider, key) DO UPDATE SET twin = excluded.twin WHERE docs_page_sources.twin <> excluded.twin`,
			c.id, l.key, l.twin); err != nil {
			return fmt.Errorf("recording the Markdown of %s: %w", l.address, err)
		}
	}
	return nil
}

// load reads which pages of the provider the session already has.
func (c *crawl) load(ctx context.Context) error {
	seen, err := db.Texts(ctx, c.db, `SELECT key FROM docs_pages WHERE provider = $1 AND session = $2`, c.id, c.part.session)
	forbidden, ferr := db.Texts(ctx, c.db, `SELECT key FROM docs_blocked_urls WHERE provider = $1`, c.id)
	if err := errors.Join(err, ferr, c.loadNotices(ctx)); err != nil {
		return fmt.Errorf("reading the frontier of %s: %w", c.id, err)
	}
	for _, key := range seen {
		c.seen[key] = true
	}
	for _, key := range forbidden {
		c.forbidden[key] = true
	}
	return nil
}

// seed queues the seeds and, at depth 1, the pages of the sitemap.
func (c *crawl) seed(ctx context.Context) error {
	var seeds []link
	for _, raw := range c.policy.SeedURLs {
		if l, why := c.link(nil, raw, true); why == "" {
			seeds = append(seeds, l)
		} else if !c.filesOnly {
			c.log.Warn("seed_refused", "url", raw, "reason", why)
		}
	}
	var listed []link
	if c.policy.SitemapURL != "" && !c.filesOnly {
		var err error
		if listed, err = c.sitemap(ctx); err != nil {
			return err
		}
	}
	if len(listed) > 0 && !c.onlyHTML() {
		c.lists.list = c.policy.SitemapURL
		if err := c.note(ctx, listSitemap, c.policy.SitemapURL, "found", fmt.Sprintf("it lists %d pages", len(listed)), nil); err != nil {
			return err
		}
	}
	more, err := c.lists.discover(ctx)
	if err != nil {
		return err
	}
	listed = slices.Concat(c.repo.pages, c.api.places, more, listed) // the llms.txt knows the Markdown of its pages
	return c.advance(ctx, "queueing the seeds of "+c.id, func(tx *sql.Tx) error {
		if err := c.queue(ctx, tx, seeds, 0); err != nil {
			return err
		}
		return c.queue(ctx, tx, listed, 1)
	})
}

// next returns the first page of the queue, nil when it is empty. The order is breadth
// first, and within a depth by discovery.
func (s *provider) next(ctx context.Context) (*page, error) {
	p, err := scanPage(s.db.QueryRowContext(ctx, selectPage+`WHERE p.provider = $1 AND p.session = $2 AND p.status = $3
		ORDER BY p.depth, p.seq LIMIT 1`, s.id, s.part.session, Queued))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the next page of %s: %w", s.id, err)
	}
	return p, nil
}

// forbiddenKept is the session, counted from the one that got a 403 for a page, in which the
// page's text is removed.
const forbiddenKept = 3

// recheck queues one page of an earlier crawl to which no link led in this one: it may be gone. Pages that the policy no longer allows are
// dropped.
func (c *crawl) recheck(ctx context.Context) (*page, error) {
	for {
		p, err := scanPage(c.db.QueryRowContext(ctx, selectPage+`WHERE p.provider = $1 AND p.session <> $2 AND p.content_hash <> ''
			AND NOT EXISTS (SELECT 1 FROM docs_blocked_urls b WHERE b.provider = p.provider AND b.key = p.key
				AND (SELECT COUNT(*) FROM docs_sessions s WHERE s.started_at >= b.blocked_at) < $3) ORDER BY p.depth, p.seq, p.key LIMIT 1`,
			c.id, c.part.session, forbiddenKept))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("looking for pages that were not reached: %w", err)
		}
		l, why := c.link(nil, p.address, p.depth == 0)
		if why == "" && c.forbidden[p.key] {
			why = answered403
		}
		if why == "" && l.key != p.key {
			why = "its key is now " + l.key
		}
		if err := c.requeue(ctx, p.key); err != nil {
			return nil, err
		}
		if why == "" {
			p.status, p.counted, p.retries = Queued, false, 0
			return p, nil
		}
		c.log.Warn("page_dropped", "url", p.address, "reason", why)
		if err := c.close(ctx, &chain{page: p, now: p}, ending{status: Deleted, reason: why, gone: true}); err != nil {
			return nil, err
		}
	}
}

// requeue queues a page once more, with its stored content.
func (c *crawl) requeue(ctx context.Context, key string) error {
	return c.advance(ctx, "queueing "+key+" again", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE docs_pages SET status = $1, reason = '', session = $2, seq = $3, counted = FALSE, retries = 0, http_status = 0
			WHERE provider = $4 AND key = $5`,
			Queued, c.part.session, c.part.queued, c.id, key)
		c.part.queued++
		c.fresh = append(c.fresh, key)
		return err
	})
}

// settleCopies ends the pages that were skipped for their originals, when no page is left to ask for. If the original has no content, they
// are queued once more: again says so.
func (c *crawl) settleCopies(ctx context.Context) (again bool, err error) {
	copies, err := c.copies(ctx)
	for _, p := range copies {
		if err != nil || c.copied[p.key] == p.reason {
			continue
		}
		c.copied[p.key] = p.reason
		var status Status
		var has bool
		status, has, err = c.hasContent(ctx, original(p.reason), p.key)
		switch {
		case err != nil:
		case has && p.contentHash != "":
			err = c.close(ctx, &chain{page: p, now: p}, ending{status: Skipped, http: http.StatusOK, reason: p.reason, gone: true})
		case !has && status.end():
			again = true
			err = c.requeue(ctx, p.key)
		}
	}
	if err != nil {
		return false, fmt.Errorf("ending copies of pages of %s: %w", c.id, err)
	}
	return again, nil
}

// maxSitemaps is the maximum number of sitemaps that are read for one index.
const maxSitemaps = 50

// sitemap lists the pages of the policy's sitemap. A sitemap that cannot be read is
// logged and skipped, because links lead to the pages too.
func (s *provider) sitemap(ctx context.Context) ([]link, error) {
	var out []link
	has := map[string]bool{}
	asked := map[string]bool{s.policy.SitemapURL: true}
	queue := []string{s.policy.SitemapURL}
	for n := 0; len(queue) > 0 && n < maxSitemaps && len(out) < maxQueued; n++ {
		at := queue[0]
		queue = queue[1:]
		body, why, err := s.sitemapBody(ctx, at)
		if err != nil {
			return nil, err
		}
		if why == "" {
			base, _ := url.Parse(at) // sitemapBody has parsed it
			var result sitemap.Result
			why, err = s.reading(ctx, at, len(body), func() (err error) { result, err = sitemap.Parse(body, maxSitemaps); return err })
			switch {
			case err != nil:
				return nil, err
			case why != "":
			case result.Kind == sitemap.Index:
				for _, child := range result.Children {
					// The protocol demands whole addresses; others are relative to the index.
					next := child
					if u, err := canonical.Resolve(base, child, []string{"*"}); err == nil && !strings.Contains(child, "://") {
						next = u
					}
					if !asked[next] {
						asked[next] = true
						queue = append(queue, next)
					}
				}
			default:
				_, _ = sitemap.Scan(body, func(e sitemap.Entry) bool { // Parse has read all of it
					if l, no := s.link(base, e.Loc, false); no == "" && !has[l.key] {
						has[l.key] = true
						out = append(out, l)
					}
					return len(out) < maxQueued
				})
			}
		}
		if why != "" {
			s.log.Warn("sitemap_unreadable", "url", at, "reason", ledger.Redact(why))
		}
	}
	return out, nil
}

func (s *provider) sitemapBody(ctx context.Context, at string) (body []byte, why string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, "no URL", nil
	}
	if canonical.Host(u) != s.host {
		return nil, "on another host", nil
	}
	resp, alone, err := s.get(ctx, "", polite.Request{URL: at, Accept: "application/xml, text/xml, text/plain;q=0.8, */*;q=0.5",
		Timeout: pageTimeout, MaxBytes: 10 * maxPage, MaxRedirects: -1, Once: true})
	switch {
	case err != nil:
		return nil, "", err
	case alone != nil:
		return nil, alone.Error(), nil
	case resp.Status != http.StatusOK:
		return nil, "status " + fmt.Sprint(resp.Status), nil
	}
	if body, _, _, err = sitemap.Unpack(resp.Body, 10*maxPage); err != nil {
		return nil, err.Error(), nil
	}
	return body, "", nil
}
