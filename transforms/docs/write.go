package docs

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// advance changes the part's rows and its counts in one transaction.
func (c *crawl) advance(ctx context.Context, do func(*sql.Tx) error) error {
	queued, stats, marked := c.part.queued, c.part.stats, c.marked
	undo := func() { c.part.queued, c.part.stats, c.marked = queued, stats, marked }
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		undo() // a transaction may run more than once
		if err := do(tx); err != nil {
			return err
		}
		return c.note(ctx, tx)
	})
	if err != nil {
		undo()
		return err
	}
	c.tally(ledger.Tally{Counts: c.part.stats.since(stats).counts()})
	return nil
}

// note writes the part's counts.
func (c *crawl) note(ctx context.Context, tx *sql.Tx) error {
	now := c.clock.Now()
	c.part.stats.Active += now.Sub(c.marked).Microseconds()
	c.marked = now
	b, err := json.Marshal(c.part.stats)
	if err != nil {
		return fmt.Errorf("encoding figures: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE docs_runs SET queued = $1, stats = $2, active_at = $3 WHERE session = $4 AND provider = $5`,
		c.part.queued, string(b), db.Micros(now), c.part.session, c.policy.ProviderID)
	if err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	return nil
}

// ending is the final result of a page.
type ending struct {
	status     Status
	reason     string
	http       int
	gone       bool          // its stored content is removed, if there is any
	forbid     bool          // it is never requested again
	deadLetter bool          // a dead letter was written
	resp       *web.Response // the response with the page's content
	empty      bool          // content was looked for and not found
	read       *pageContent  // of a page that has content
	links      []link
	onward     []link // pages to which this page redirects or of which it is a copy; they have its depth
}

// copied reports whether a page that redirects to p is a copy of it, although the redirect is
// for a while: both have the same text, or an earlier session has stored p.
func (e ending) copied(p, left *page) bool {
	if e.read == nil {
		return e.status == NotModified && p.depth > 0
	}
	return e.read.hash == left.contentHash || p.contentHash != "" && p.depth > 0
}

// count adds the page to the counts.
func (e ending) count(s *Stats, kind string) {
	switch {
	case e.status == Blocked, e.forbid:
		s.Blocked++
	case e.status == Failed:
		s.Failed++
	case e.status == Skipped && !e.gone, e.status == TooLarge:
		s.Skipped++
	}
	if e.resp != nil || e.status == NotModified {
		s.Fetched++
	}
	if e.empty || e.read != nil {
		s.Read++
	}
	if e.empty {
		s.Empty++
	}
	switch {
	case kind == "new":
		s.New++
	case kind == "updated":
		s.Updated++
	case kind == "deleted":
		s.Deleted++
	case e.read != nil, e.status == NotModified:
		s.Unchanged++
	}
	if kind != "" && e.read != nil {
		s.Chunks += int64(len(e.read.chunks))
	}
}

// end gives the page of a chain its final status and writes all of it in one
// transaction. It removes an earlier dead letter of the page, unless there is a new
// reason for one.
func (c *crawl) end(ctx context.Context, ch *chain, e ending) error {
	if err := c.move(ch, e.status); err != nil {
		return err
	}
	if !e.deadLetter {
		if err := c.w.Resolve(ctx, c.deadLetter(ch.page, "page_failed", "")); err != nil {
			return err
		}
	}
	err := c.close(ctx, ch, e)
	if !db.Rejected(err) {
		return err
	}
	c.w.Log.Warn("page_rejected", "provider", c.policy.ProviderID, "url", ch.at.String(), "error", ledger.Redact(err.Error()))
	rejected := c.deadLetter(ch.page, "database_rejected", err.Error())
	rejected.Retryable = false
	if err := c.w.DeadLetter(ctx, rejected); err != nil {
		return err
	}
	return c.close(ctx, ch, ending{status: Failed, http: e.http, reason: "the database refused its content"})
}

func (c *crawl) close(ctx context.Context, ch *chain, e ending) error {
	p := ch.now
	for _, left := range append(ch.passed, ch.page) {
		if left == p || left.contentHash == "" || !left.moved && e.http != http.StatusNotFound && e.http != http.StatusGone && !e.copied(p, left) {
			continue
		}
		// It redirects to a page that has the content now, or that is gone.
		if err := c.close(ctx, &chain{page: left, now: left}, ending{status: Skipped, reason: "redirects to " + p.key, gone: true}); err != nil {
			return err
		}
		left.contentHash = ""
	}
	e.gone = e.gone && p.contentHash != ""
	var old storedContent
	if p.contentHash != "" {
		var err error
		if old, err = c.storedContent(ctx, p.key); err != nil {
			return err
		}
	}
	kind, sections := "", []chunk.Change(nil)
	switch {
	case e.gone:
		kind, sections = "deleted", chunk.Diff(old.blocks, nil)
	case e.read != nil && p.contentHash == "":
		kind, sections = "new", chunk.Diff(nil, e.read.blocks)
	case e.read != nil && p.contentHash != e.read.hash:
		kind, sections = "updated", chunk.Diff(old.blocks, e.read.blocks)
	}
	handOff := kind != "" || c.part.stats.Again && e.read != nil
	if handOff {
		if err := c.handOff(ctx, p, e.read, old.ids); err != nil {
			return err
		}
	}
	links := slices.DeleteFunc(slices.Clone(e.links), func(l link) bool { return l.key == p.key })
	err := c.advance(ctx, func(tx *sql.Tx) error {
		e.count(&c.part.stats, kind)
		if e.read != nil || e.status == NotModified {
			c.part.stats.took(string(ch.way.source))
			if err := c.writeSource(ctx, tx, p.key, ch.way); err != nil {
				return err
			}
		}
		if err := c.write(ctx, tx, ch, e, kind, sections, handOff); err != nil {
			return err
		}
		if err := c.closeFiles(ctx, tx, p.key, e); err != nil {
			return err
		}
		if err := c.queue(ctx, tx, e.onward, ch.page.depth); err != nil {
			return err
		}
		return c.queue(ctx, tx, links, ch.page.depth+1)
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.address, err)
	}
	c.remember(e.onward, ch.page.depth)
	c.remember(links, ch.page.depth+1)
	if e.forbid {
		c.forbidden[p.key] = true
	}
	hash := p.contentHash
	if e.read != nil {
		hash = e.read.hash
	}
	if e.status == Indexed || e.status == NotModified {
		if err := c.noteIndexes(ctx, p.key, hash); err != nil {
			return fmt.Errorf("looking for copies of %s: %w", p.address, err)
		}
	}
	c.seen[p.key], c.seen[ch.page.key] = true, true
	return nil
}

// write updates the rows of a page, and those of its content if that was handed over.
func (c *crawl) write(ctx context.Context, tx *sql.Tx, ch *chain, e ending, kind string, sections []chunk.Change, handOff bool) error {
	id, p, now := c.policy.ProviderID, ch.now, db.Micros(c.clock.Now())
	exec := func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	for _, left := range append(ch.passed, ch.page) {
		if left == p {
			continue
		}
		if err := exec(`UPDATE docs_pages SET status = $1, reason = $2, http_status = 0 WHERE provider = $3 AND key = $4`, Skipped, "redirects to "+p.key, id, left.key); err != nil {
			return err
		}
	}
	if err := exec(`UPDATE docs_pages SET status = $1, reason = $2, http_status = $3 WHERE provider = $4 AND key = $5`, e.status, content.Clean(e.reason), e.http, id, p.key); err != nil {
		return err
	}
	if e.forbid {
		if err := exec(`INSERT INTO docs_blocked_urls (provider, key, address, http_status, blocked_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (provider, key) DO NOTHING`,
			id, p.key, ch.at.String(), e.http, now); err != nil {
			return err
		}
	}
	if kind != "" {
		b, err := json.Marshal(sections)
		if err != nil {
			return fmt.Errorf("encoding changes: %w", err)
		}
		if err := exec(`INSERT INTO docs_changes (session, provider, key, kind, sections, at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (session, provider, key) DO UPDATE SET kind = excluded.kind, sections = excluded.sections, at = excluded.at`,
			c.part.session, id, p.key, kind, string(b), now); err != nil {
			return err
		}
	}
	if handOff && kind != "new" {
		for _, table := range []string{"docs_chunks", "docs_blocks"} {
			if err := exec(`DELETE FROM `+table+` WHERE provider = $1 AND key = $2`, id, p.key); err != nil {
				return err
			}
		}
	}
	switch {
	case e.gone:
		if err := exec(`DELETE FROM docs_links WHERE provider = $1 AND from_key = $2`, id, p.key); err != nil {
			return err
		}
		return exec(`UPDATE docs_pages SET content_hash = '', etag = '', last_modified = '', title = '', chunks = 0, gone_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key)
	case e.status == NotModified:
		return exec(`UPDATE docs_pages SET fetched_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key)
	case e.read == nil:
		return nil
	}
	h := e.resp.Header
	if err := exec(`UPDATE docs_pages SET etag = $1, last_modified = $2, content_hash = $3, read_by = $4, title = $5, chunks = $6, fetched_at = $7, gone_at = $10 WHERE provider = $8 AND key = $9`,
		validator(h.Get("ETag")), validator(h.Get("Last-Modified")), e.read.hash, c.readBy+ch.way.id(), clean(e.read.title), len(e.read.chunks), now, id, p.key, int64(0)); err != nil {
		return err
	}
	if kind != "" {
		if err := exec(`UPDATE docs_pages SET changed_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key); err != nil {
			return err
		}
	}
	if handOff {
		if err := c.writeContent(ctx, tx, p, e.read); err != nil {
			return err
		}
	}
	return c.writeLinks(ctx, tx, p.key, e.links)
}

// writeSource records where a page's content comes from.
func (c *crawl) writeSource(ctx context.Context, tx *sql.Tx, key string, w way) error {
	if c.onlyHTML() {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO docs_page_sources (provider, key, source, reason) VALUES ($1, $2, $3, $4) ON CONFLICT (provider, key) DO UPDATE SET source = excluded.source, reason = excluded.reason`,
		c.policy.ProviderID, key, w.source, content.Clean(w.reason))
	return err
}

func (c *crawl) writeContent(ctx context.Context, tx *sql.Tx, p *page, r *pageContent) error {
	id := c.policy.ProviderID
	blocks, err := json.Marshal(r.blocks)
	if err != nil {
		return fmt.Errorf("encoding blocks: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO docs_blocks (provider, key, blocks) VALUES ($1, $2, $3)`, id, p.key, clean(string(blocks))); err != nil {
		return err
	}
	rows := make([][]any, len(r.chunks))
	for i, k := range r.chunks {
		heading, err := json.Marshal(k.Path)
		if err != nil {
			return fmt.Errorf("encoding a heading: %w", err)
		}
		rows[i] = []any{id, p.key, int64(k.Ordinal), k.ID, clean(string(heading)), int64(k.Tokens), k.Hash, clean(k.Preview())}
	}
	return c.db.InsertRows(ctx, tx, "docs_chunks", []string{"provider", "key", "ordinal", "id", "heading", "tokens", "hash", "preview"}, rows, "")
}

func (c *crawl) writeLinks(ctx context.Context, tx *sql.Tx, key string, links []link) error {
	id := c.policy.ProviderID
	if _, err := tx.ExecContext(ctx, `DELETE FROM docs_links WHERE provider = $1 AND from_key = $2`, id, key); err != nil {
		return err
	}
	rows := make([][]any, len(links))
	for i, l := range links {
		rows[i] = []any{id, key, int64(i), l.key, l.address}
	}
	if err := c.db.InsertRows(ctx, tx, "docs_links", []string{"provider", "from_key", "ordinal", "to_key", "to_address"}, rows, ""); err != nil {
		return fmt.Errorf("writing links: %w", err)
	}
	return nil
}

// clean makes text fit for a database.
func clean(s string) string { return untrusted.Text(s, 0) }

// validator returns a header that later requests send back unchanged, or "" if it is not safe to store.
func validator(s string) string {
	if untrusted.Key(s) != nil {
		return ""
	}
	return s
}

// stored returns the stored links of a page.
func (c *crawl) stored(ctx context.Context, key string) ([]link, error) {
	rows, err := c.db.QueryContext(ctx, `SELECT to_key, to_address FROM docs_links WHERE provider = $1 AND from_key = $2 ORDER BY ordinal`, c.policy.ProviderID, key)
	if err != nil {
		return nil, fmt.Errorf("reading the links of %s: %w", key, err)
	}
	var out []link
	err = each(rows, func() error {
		var l link
		err := rows.Scan(&l.key, &l.address)
		if _, why := c.link(nil, l.address, false); why == "" { // the policy may have changed
			out = append(out, l)
		}
		return err
	})
	return out, err
}

// storedContent is what the database has of a page's content.
type storedContent struct {
	blocks []chunk.Block
	ids    []string
}

func (c *crawl) storedContent(ctx context.Context, key string) (storedContent, error) {
	var k storedContent
	rows, err := c.db.QueryContext(ctx, `SELECT blocks FROM docs_blocks WHERE provider = $1 AND key = $2`, c.policy.ProviderID, key)
	if err == nil {
		err = each(rows, func() error {
			var b string
			if err := rows.Scan(&b); err != nil {
				return err
			}
			return json.Unmarshal([]byte(b), &k.blocks)
		})
	}
	if err == nil {
		rows, err = c.db.QueryContext(ctx, `SELECT id FROM docs_chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal`, c.policy.ProviderID, key)
	}
	if err == nil {
		err = each(rows, func() error {
			var id string
			err := rows.Scan(&id)
			k.ids = append(k.ids, id)
			return err
		})
	}
	if err != nil {
		return k, fmt.Errorf("reading the stored content of %s: %w", key, err)
	}
	return k, nil
}
