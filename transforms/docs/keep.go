package docs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// contentVersion changes when the same page makes other content than before,
// so that a 304 does not keep what an older program made.
const contentVersion = "3"

// readBy names what makes a page's content: this program's version and the
// policy's selectors.
func readBy(p policy.Policy) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{contentVersion, p.CustomSelectors.Content, fmt.Sprint(p.SPARendering)}, p.CustomSelectors.Remove...), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// link is a page that may be visited: what it is known by, and what is fetched.
type link struct{ key, address string }

// link says which page an href leads to, and why it is not visited, "" when it
// is. A seed need not match the patterns that allow.
func (c *crawl) link(base *url.URL, href string, seed bool) (l link, why string) {
	u, err := canonical.Address(base, href, c.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	key, err := canonical.Key(u, c.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	l = link{key, u.String()}
	if err := cmp.Or(untrusted.Key(l.key), untrusted.Key(l.address)); err != nil {
		return l, "its address: " + err.Error()
	}
	if content.MaskEmails(l.address) != l.address {
		return l, "an e-mail address is part of it"
	}
	if host := canonical.Host(u); host != c.host {
		return l, "another host: " + host
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

// queue puts pages that are new to the session at the end of their depth.
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
		n, err := changed(tx.ExecContext(ctx, `INSERT INTO pages (provider, key, address, status, depth, session, seq, discovered_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (provider, key) DO UPDATE SET address = excluded.address, status = excluded.status, reason = '', depth = excluded.depth,
				session = excluded.session, seq = excluded.seq, counted = 0, retries = 0, http_status = 0 WHERE pages.session <> excluded.session`,
			c.policy.ProviderID, l.key, l.address, Queued, depth, c.part.session, c.part.queued, db.Micros(c.clock.Now())))
		if err != nil {
			return fmt.Errorf("queueing %s: %w", l.address, err)
		}
		c.part.queued += n
	}
	return nil
}

// remember notes as seen what a committed transaction has queued.
func (c *crawl) remember(links []link, depth int) {
	if depth > c.policy.MaxDepth {
		return
	}
	for _, l := range links {
		if len(c.seen) < maxQueued {
			c.seen[l.key] = true
		}
	}
}

// adopt queues a page of an earlier session as it was.
func (c *crawl) adopt(ctx context.Context, tx *sql.Tx, p *page) error {
	_, err := tx.ExecContext(ctx, `UPDATE pages SET status = $1, reason = '', session = $2, seq = $3, counted = 0, retries = 0, http_status = 0 WHERE provider = $4 AND key = $5`,
		Queued, c.part.session, c.part.queued, c.policy.ProviderID, p.key)
	c.part.queued++
	return err
}

// advance changes the part's rows and its figures together, or neither.
func (c *crawl) advance(ctx context.Context, do func(*sql.Tx) error) error {
	queued, stats, marked := c.part.queued, c.part.stats, c.marked
	undo := func() { c.part.queued, c.part.stats, c.marked = queued, stats, marked }
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		undo() // a transaction may be tried again
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

// note writes the part's figures.
func (c *crawl) note(ctx context.Context, tx *sql.Tx) error {
	now := c.clock.Now()
	c.part.stats.Active += now.Sub(c.marked).Microseconds()
	c.marked = now
	b, err := json.Marshal(c.part.stats)
	if err != nil {
		return fmt.Errorf("encoding figures: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE runs SET queued = $1, stats = $2, active_at = $3 WHERE session = $4 AND provider = $5`,
		c.part.queued, string(b), db.Micros(now), c.part.session, c.policy.ProviderID)
	if err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	return nil
}

// reading is what a page's content gave.
type reading struct {
	title  string
	hash   string
	chunks []chunk.Chunk
	blocks []chunk.Block
}

// outline is how many bytes the reading has besides its text.
func (r *reading) outline() (size int) {
	add := func(path []string) {
		size += 2 * sha256.Size
		for _, heading := range path {
			size += len(heading)
		}
	}
	for _, b := range r.blocks {
		add(b.Path)
	}
	for _, k := range r.chunks {
		add(k.Path)
		size += len(r.title)
	}
	return size
}

// ending is how a page ends.
type ending struct {
	status Status
	reason string
	http   int
	gone   bool          // what was kept of it goes, if anything was
	forbid bool          // it is never asked again
	letter bool          // a dead letter was written for a person to look at
	resp   *web.Response // of a page whose content was asked for
	empty  bool          // content was looked for and not found
	read   *reading      // of a page that has content
	links  []link
	onward []link // where the page sends its readers on: in its own place
}

// count adds the page to the figures.
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

// end takes a chain to its end and writes everything of it in one transaction. An
// earlier dead letter of the page goes, as there is nothing to look at any more.
func (c *crawl) end(ctx context.Context, ch *chain, e ending) error {
	if err := c.move(ch, e.status); err != nil {
		return err
	}
	if !e.letter {
		if err := c.w.Resolve(ctx, c.letter(ch.page, "page_failed", "")); err != nil {
			return err
		}
	}
	err := c.close(ctx, ch, e)
	if !db.Rejected(err) {
		return err
	}
	c.w.Log.Warn("page_rejected", "provider", c.policy.ProviderID, "url", ch.at.String(), "error", ledger.Redact(err.Error()))
	letter := c.letter(ch.page, "database_rejected", err.Error())
	letter.Retryable = false
	if err := c.w.DeadLetter(ctx, letter); err != nil {
		return err
	}
	return c.close(ctx, ch, ending{status: Failed, http: e.http, reason: "the database refused what it says"})
}

func (c *crawl) close(ctx context.Context, ch *chain, e ending) error {
	p := ch.now
	for _, left := range append(ch.passed, ch.page) {
		if left == p || left.contentHash == "" || !left.moved && e.http != http.StatusNotFound && e.http != http.StatusGone {
			continue
		}
		// Its content is another page's now, or nobody's.
		if err := c.close(ctx, &chain{page: left, now: left}, ending{status: Skipped, reason: "redirects to " + p.key, gone: true}); err != nil {
			return err
		}
		left.contentHash = ""
	}
	e.gone = e.gone && p.contentHash != ""
	var old kept
	if p.contentHash != "" {
		var err error
		if old, err = c.kept(ctx, p.key); err != nil {
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
	handed := kind != "" || c.part.stats.Again && e.read != nil
	if handed {
		if err := c.handOff(ctx, p, e.read, old.ids); err != nil {
			return err
		}
	}
	links := slices.DeleteFunc(slices.Clone(e.links), func(l link) bool { return l.key == p.key })
	err := c.advance(ctx, func(tx *sql.Tx) error {
		e.count(&c.part.stats, kind)
		if err := c.write(ctx, tx, ch, e, kind, sections, handed); err != nil {
			return err
		}
		if err := c.queue(ctx, tx, e.onward, ch.page.depth); err != nil {
			return err
		}
		return c.queue(ctx, tx, links, ch.page.depth+1)
	})
	if err != nil {
		return fmt.Errorf("keeping %s: %w", p.address, err)
	}
	c.remember(e.onward, ch.page.depth)
	c.remember(links, ch.page.depth+1)
	if e.forbid {
		c.forbidden[p.key] = true
	}
	c.seen[p.key], c.seen[ch.page.key] = true, true
	return nil
}

// write brings the rows of a page up to date; those of its content where that
// was handed over.
func (c *crawl) write(ctx context.Context, tx *sql.Tx, ch *chain, e ending, kind string, sections []chunk.Change, handed bool) error {
	id, p, now := c.policy.ProviderID, ch.now, db.Micros(c.clock.Now())
	exec := func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	for _, left := range append(ch.passed, ch.page) {
		if left == p {
			continue
		}
		if err := exec(`UPDATE pages SET status = $1, reason = $2, http_status = 0 WHERE provider = $3 AND key = $4`, Skipped, "redirects to "+p.key, id, left.key); err != nil {
			return err
		}
	}
	if err := exec(`UPDATE pages SET status = $1, reason = $2, http_status = $3 WHERE provider = $4 AND key = $5`, e.status, content.MaskEmails(clean(e.reason)), e.http, id, p.key); err != nil {
		return err
	}
	if e.forbid {
		if err := exec(`INSERT INTO blocked_urls (provider, key, address, http_status, blocked_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (provider, key) DO NOTHING`,
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
	if handed && kind != "new" {
		for _, table := range []string{"chunks", "docs_blocks"} {
			if err := exec(`DELETE FROM `+table+` WHERE provider = $1 AND key = $2`, id, p.key); err != nil {
				return err
			}
		}
	}
	switch {
	case e.gone:
		if err := exec(`DELETE FROM links WHERE provider = $1 AND from_key = $2`, id, p.key); err != nil {
			return err
		}
		return exec(`UPDATE pages SET content_hash = '', etag = '', last_modified = '', title = '', chunks = 0, gone_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key)
	case e.status == NotModified:
		return exec(`UPDATE pages SET fetched_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key)
	case e.read == nil:
		return nil
	}
	h := e.resp.Header
	if err := exec(`UPDATE pages SET etag = $1, last_modified = $2, content_hash = $3, read_by = $4, title = $5, chunks = $6, fetched_at = $7, gone_at = 0 WHERE provider = $8 AND key = $9`,
		validator(h.Get("ETag")), validator(h.Get("Last-Modified")), e.read.hash, c.readBy, clean(e.read.title), len(e.read.chunks), now, id, p.key); err != nil {
		return err
	}
	if kind != "" {
		if err := exec(`UPDATE pages SET changed_at = $1 WHERE provider = $2 AND key = $3`, now, id, p.key); err != nil {
			return err
		}
	}
	if handed {
		if err := c.writeContent(ctx, tx, p, e.read); err != nil {
			return err
		}
	}
	return c.writeLinks(ctx, tx, p.key, e.links)
}

func (c *crawl) writeContent(ctx context.Context, tx *sql.Tx, p *page, r *reading) error {
	id := c.policy.ProviderID
	blocks, err := json.Marshal(r.blocks)
	if err != nil {
		return fmt.Errorf("encoding blocks: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO docs_blocks (provider, key, blocks) VALUES ($1, $2, $3)`, id, p.key, clean(string(blocks))); err != nil {
		return err
	}
	for _, k := range r.chunks {
		heading, err := json.Marshal(k.Path)
		if err != nil {
			return fmt.Errorf("encoding a heading: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO chunks (provider, key, ordinal, id, heading, tokens, hash, preview) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			id, p.key, k.Ordinal, k.ID, clean(string(heading)), k.Tokens, k.Hash, clean(k.Preview())); err != nil {
			return err
		}
	}
	return nil
}

func (c *crawl) writeLinks(ctx context.Context, tx *sql.Tx, key string, links []link) error {
	id := c.policy.ProviderID
	if _, err := tx.ExecContext(ctx, `DELETE FROM links WHERE provider = $1 AND from_key = $2`, id, key); err != nil {
		return err
	}
	const columns = 5
	for first := 0; first < len(links); first += 50 {
		some := links[first:min(first+50, len(links))]
		var q strings.Builder
		q.WriteString(`INSERT INTO links (provider, from_key, ordinal, to_key, to_address) VALUES `)
		args := make([]any, 0, columns*len(some))
		for i, l := range some {
			if i > 0 {
				q.WriteByte(',')
			}
			n := columns * i
			fmt.Fprintf(&q, "($%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5)
			args = append(args, id, key, first+i, l.key, l.address)
		}
		if _, err := tx.ExecContext(ctx, q.String(), args...); err != nil {
			return fmt.Errorf("keeping links: %w", err)
		}
	}
	return nil
}

// clean makes text fit for a database.
func clean(s string) string { return untrusted.Text(s, 0) }

// validator is a header that a later request sends back: as it came, or not.
func validator(s string) string {
	if untrusted.Key(s) != nil {
		return ""
	}
	return s
}

// stored are the links kept of a page.
func (c *crawl) stored(ctx context.Context, key string) ([]link, error) {
	rows, err := c.db.QueryContext(ctx, `SELECT to_key, to_address FROM links WHERE provider = $1 AND from_key = $2 ORDER BY ordinal`, c.policy.ProviderID, key)
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

// kept is what is remembered of a page's content.
type kept struct {
	blocks []chunk.Block
	ids    []string
}

func (c *crawl) kept(ctx context.Context, key string) (kept, error) {
	var k kept
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
		rows, err = c.db.QueryContext(ctx, `SELECT id FROM chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal`, c.policy.ProviderID, key)
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
		return k, fmt.Errorf("reading what is kept of %s: %w", key, err)
	}
	return k, nil
}

// index reads a page's content and its links, and keeps them.
func (c *crawl) index(ctx context.Context, ch *chain, resp *web.Response) error {
	skipped := ending{status: Skipped, http: resp.Status, resp: resp}
	skip := func(reason string) error {
		skipped.reason = reason
		c.w.Log.Info("page_skipped", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", reason)
		return c.end(ctx, ch, skipped)
	}
	contentType := resp.Header.Get("Content-Type")
	form, media := content.Kind(contentType, resp.Body)
	if form == content.Excluded {
		return skip("not collected: " + media)
	}
	if err := c.move(ch, Parsing); err != nil {
		return err
	}
	body := resp.Body
	if c.renderer != nil && form == content.HTML {
		rendered, err := c.renderer.render(ctx, ch.at, body, contentType)
		switch {
		case err != nil && (ctx.Err() != nil || ends(err)):
			return err
		case err != nil:
			return skip(ledger.Redact(err.Error()))
		}
		body, contentType = []byte(rendered), "text/html; charset=utf-8"
	}
	end, err := budget.Begin(ctx, len(body))
	if err != nil {
		return err
	}
	pg, r, err := c.read(form, body, contentType, ch)
	end()
	switch {
	case err != nil:
		if derr := c.w.DeadLetter(ctx, c.letter(ch.page, "page_unreadable", err.Error())); derr != nil {
			return derr
		}
		skipped.letter = true
		return skip(ledger.Redact(err.Error()))
	case pg.Login:
		skipped.gone = true
		return skip("a login form")
	}
	var page []byte
	if form == content.HTML {
		page = body
	}
	head := pagehead.Read(resp.Header, page, contentType, productToken)
	links := c.links(ch, pg, head)
	onward, why, err := c.elsewhere(ctx, ch, pg, head)
	if err != nil {
		return err
	}
	if why != "" {
		skipped.gone, skipped.links, skipped.onward = true, links, onward
		return skip(why)
	}
	if r == nil {
		skipped.empty = true
		if pg.Script {
			return skip("no content without scripts; spa_rendering: true renders the page")
		}
		return skip("no content")
	}
	if err := c.move(ch, Extracting); err != nil {
		return err
	}
	return c.end(ctx, ch, ending{status: Indexed, http: resp.Status, resp: resp, read: r, links: links})
}

// links are the pages that a page leads to, none where it asks crawlers not to
// follow.
func (c *crawl) links(ch *chain, pg content.Page, head pagehead.Head) (out []link) {
	if head.NoFollow {
		return nil
	}
	has := map[string]bool{}
	for _, href := range pg.Links {
		if l, why := c.link(ch.at, href, false); why == "" && !has[l.key] && len(out) < maxLinks {
			has[l.key] = true
			out = append(out, l)
		}
	}
	return out
}

// maxStub is how long in bytes a page may be that only says that it redirects.
const maxStub = 400

// elsewhere says why a page's content is not for the index by its own word, ""
// where it is: it says so, it sends its readers on, or it is a copy of a page
// that the crawl takes. Those pages are asked for in its place.
func (c *crawl) elsewhere(ctx context.Context, ch *chain, pg content.Page, head pagehead.Head) (onward []link, why string, err error) {
	if to, no := c.link(ch.at, head.Refresh, false); head.Refresh != "" && to.key != ch.now.key {
		if no == "" {
			onward = append(onward, to)
		}
		return onward, fmt.Sprintf("leads on to %.500s by itself", head.Refresh), nil
	}
	if strings.HasPrefix(strings.ToLower(pg.Title), "redirecting") && len(pg.Markdown) <= maxStub {
		return nil, "says only that it redirects", nil
	}
	to, no := c.link(ch.at, head.Canonical, false)
	if head.Canonical != "" && no == "" {
		copied, err := c.copyOf(ctx, ch, to)
		if err != nil {
			return nil, "", err
		}
		if copied {
			return []link{to}, "a copy of " + to.key + ", as its rel=canonical says", nil
		}
	}
	if head.NoIndex {
		return nil, "it asks not to be indexed (noindex)", nil
	}
	return nil, "", nil
}

// copyOf says whether a page may be left out for the one that it names as its
// original. It may not where that led here, or is known to have no content, or
// differs by a query that the policy keeps; nor where it is the site's front
// page, which is named by mistake when all pages share one head.
func (c *crawl) copyOf(ctx context.Context, ch *chain, of link) (bool, error) {
	if slices.ContainsFunc(append(slices.Clone(ch.passed), ch.page, ch.now), func(p *page) bool { return p.key == of.key }) || c.forbidden[of.key] {
		return false, nil
	}
	ours, _, _ := strings.Cut(ch.now.key, "?")
	theirs, _, _ := strings.Cut(of.key, "?")
	if ours == theirs || canonical.Path(of.key) == "/" {
		return false, nil
	}
	var status Status
	var hash string
	err := c.db.QueryRowContext(ctx, `SELECT status, content_hash FROM pages WHERE provider = $1 AND key = $2`, c.policy.ProviderID, of.key).Scan(&status, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for %s: %w", of.key, err)
	}
	return hash != "" || !status.end(), nil
}

// read makes content of a body; nil where there is none. A page that trips a
// bug costs itself only.
func (c *crawl) read(form content.Form, body []byte, contentType string, ch *chain) (pg content.Page, r *reading, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.w.Log.Error("page_panic", "url", ch.at.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug: panic while reading the page: %v", v)
		}
	}()
	pg, err = content.Read(form, body, contentType, content.Options{Base: ch.at, Content: c.policy.CustomSelectors.Content, Remove: c.policy.CustomSelectors.Remove, Keep: c.policy.KeepQueryParams})
	if err != nil || pg.Login || pg.Empty {
		return pg, nil, err
	}
	r = &reading{title: pg.Title, chunks: chunk.Split(ch.now.key, pg.Markdown, pg.Anchors, chunk.Default), blocks: chunk.Blocks(pg.Markdown)}
	if len(r.chunks) == 0 {
		return pg, nil, nil
	}
	if r.outline() > maxOutline {
		return pg, nil, fmt.Errorf("its headings, repeated with each of its %d blocks, are over %d MB", len(r.blocks), maxOutline>>20)
	}
	h := sha256.New()
	for _, b := range r.blocks {
		_, _ = h.Write([]byte(strings.Join(b.Path, "\x00") + "\x01" + b.Hash + "\x02")) // a hash.Hash never fails
	}
	r.hash = hex.EncodeToString(h.Sum(nil))
	return pg, r, nil
}

// handed is a line of the hand-off for the embedding step.
type handed struct {
	Op       string   `json:"op"` // upsert, delete
	ID       string   `json:"id"`
	Provider string   `json:"provider"`
	URL      string   `json:"url"`
	Title    string   `json:"title,omitempty"`
	Path     []string `json:"path,omitempty"`
	Anchor   string   `json:"anchor,omitempty"`
	Ordinal  int      `json:"ordinal"`
	Tokens   int      `json:"tokens,omitempty"`
	Hash     string   `json:"hash,omitempty"`
	Text     string   `json:"text,omitempty"`
}

// handOffPrefix is where the store has a provider's hand-off.
func handOffPrefix(provider string) string { return "handoff/docs/" + provider + "/" }

// handOff writes what the embedding step must do for a page that changed. The
// key is the page's and the session's, so a second try writes the same object.
func (c *crawl) handOff(ctx context.Context, p *page, r *reading, old []string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	now := map[string]bool{}
	if r != nil {
		for _, k := range r.chunks {
			now[k.ID] = true
			if err := e.Encode(handed{"upsert", k.ID, c.policy.ProviderID, p.address, r.title, k.Path, k.Anchor, k.Ordinal, k.Tokens, k.Hash, k.Text}); err != nil {
				return fmt.Errorf("encoding a chunk: %w", err)
			}
		}
	}
	for _, id := range old {
		if !now[id] {
			if err := e.Encode(handed{Op: "delete", ID: id, Provider: c.policy.ProviderID, URL: p.address}); err != nil {
				return fmt.Errorf("encoding a deletion: %w", err)
			}
		}
	}
	sum := sha256.Sum256([]byte(p.key))
	name := hex.EncodeToString(sum[:8])
	if c.part.stats.Again {
		name += "-again" // what the session wrote before may say what to delete
	}
	key := sessionPrefix(c.policy.ProviderID, c.part.session) + name + ".jsonl"
	err := store.Retry(ctx, func() error {
		return c.w.Store.Put(ctx, key, bytes.NewReader(b.Bytes()), store.PutOptions{ContentType: "application/x-ndjson"})
	})
	if err != nil {
		return fmt.Errorf("writing the hand-off of %s: %w", p.address, err)
	}
	return nil
}

// maxSitemaps bounds how many sitemaps one index leads to.
const maxSitemaps = 50

// sitemap lists the pages that the policy's sitemap names. One that cannot be
// read is told and passed over: the links lead on.
func (c *crawl) sitemap(ctx context.Context) ([]link, error) {
	var out []link
	has := map[string]bool{}
	queue := []string{c.policy.SitemapURL}
	for n := 0; len(queue) > 0 && n < maxSitemaps && len(out) < maxQueued; n++ {
		at := queue[0]
		queue = queue[1:]
		body, why, err := c.sitemapBody(ctx, at)
		if err != nil {
			return nil, err
		}
		if why == "" {
			result, err := sitemap.Parse(body, maxSitemaps)
			switch {
			case err != nil:
				why = err.Error()
			case result.Kind == sitemap.Index:
				queue = append(queue, result.Children...)
			default:
				_, _ = sitemap.Scan(body, func(e sitemap.Entry) bool { // Parse has read it to its end
					if l, no := c.link(nil, e.Loc, false); no == "" && !has[l.key] {
						has[l.key] = true
						out = append(out, l)
					}
					return len(out) < maxQueued
				})
			}
		}
		if why != "" {
			c.w.Log.Warn("sitemap_unreadable", "provider", c.policy.ProviderID, "url", at, "reason", ledger.Redact(why))
			continue
		}
	}
	return out, nil
}

func (c *crawl) sitemapBody(ctx context.Context, at string) (body []byte, why string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, "no URL", nil
	}
	if canonical.Host(u) != c.host {
		return nil, "on another host", nil
	}
	resp, err := c.client.Get(ctx, polite.Request{URL: at, Accept: "application/xml, text/xml, text/plain;q=0.8, */*;q=0.5", Timeout: pageTimeout, MaxBytes: 10 * maxPage, MaxRedirects: -1, Once: true})
	err = unreachable(err)
	var failure *web.Error
	var no *polite.DisallowedError
	switch {
	case resp == nil && (errors.As(err, &no) || c.costsPage(u, err) || errors.As(err, &failure)):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case resp.Status != http.StatusOK:
		return nil, "status " + fmt.Sprint(resp.Status), nil
	}
	body, _, _, err = sitemap.Unpack(resp.Body, 10*maxPage)
	if err != nil {
		return nil, err.Error(), nil
	}
	return body, "", nil
}

// SweepHandOff removes hand-off objects and manifests that are older than the
// retention.
func SweepHandOff(ctx context.Context, s store.Store, before time.Time) (removed int, err error) {
	for _, prefix := range []string{"handoff/docs/", manifests} {
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				return removed, fmt.Errorf("listing the hand-off: %w", err)
			}
			if o.ModTime.Before(before) {
				if err := store.Retry(ctx, func() error { return s.Delete(ctx, o.Key) }); err != nil {
					return removed, fmt.Errorf("removing %s: %w", o.Key, err)
				}
				removed++
			}
		}
	}
	return removed, nil
}
