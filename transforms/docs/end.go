package docs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/pdf"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

// advance changes the part's rows and its counts in one transaction, as db.Do does.
func (c *crawl) advance(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	queued, stats, marked := c.part.queued, c.part.stats, c.marked
	undo := func() { c.part.queued, c.part.stats, c.marked, c.fresh = queued, stats, marked, nil }
	err := c.db.Do(ctx, doing, func(tx *sql.Tx) error {
		undo() // a transaction may run more than once
		if err := do(tx); err != nil {
			return err
		}
		now := c.clock.Now()
		c.part.stats.Active += now.Sub(c.marked).Microseconds()
		c.marked = now
		b, err := json.Marshal(c.part.stats)
		if err != nil {
			return fmt.Errorf("encoding figures: %w", err)
		}
		_, err = tx.ExecContext(ctx, `UPDATE docs_runs SET queued = $1, stats = $2, active_at = $3 WHERE session = $4 AND provider = $5`,
			c.part.queued, string(b), db.Micros(now), c.part.session, c.id)
		return err
	})
	if err != nil {
		undo()
		return err
	}
	for _, key := range c.fresh {
		c.seen[key] = true
	}
	c.fresh = nil
	c.tally(ledger.Tally{Counts: c.part.stats.since(stats)})
	return nil
}

// index reads a page's content and its links, and stores them.
func (c *crawl) index(ctx context.Context, ch *chain, resp *web.Response) error {
	r := &reading{resp: resp, contentType: ch.way.media(resp.Header.Get("Content-Type")), body: resp.Body}
	var media string
	if r.form, media = content.Kind(r.contentType, resp.Body); r.form == content.Excluded {
		return c.skip(ctx, ch, resp, ending{reason: "not collected: " + media})
	}
	if err := c.move(ch, Parsing); err != nil {
		return err
	}
	var html []byte // as the site sent it
	if text, _, err := charset.Bytes(r.body, r.contentType); err == nil && r.form == content.HTML {
		r.body, r.contentType, html = text, media+"; charset=utf-8", text
	}
	why, err := c.render(ctx, ch, r)
	switch {
	case err != nil:
		return err
	case why != "":
		return c.skip(ctx, ch, resp, ending{reason: why})
	case ch.replaced():
		c.hold(ch, ending{status: Failed, http: resp.Status, reason: "no page but " + string(ch.answer.Kind) + ": " + ch.answer.Evidence})
		return nil
	case r.form == content.HTML && ch.answer.Kind == answer.Login:
		return c.skip(ctx, ch, resp, ending{reason: aLogin, gone: true})
	}
	switch err := c.guard(ctx, ch.at, len(r.body), func() error { return c.read(ctx, ch, r) }); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		e := ending{reason: ledger.Redact(err.Error()), deadLetter: !pdf.Refused(err)}
		if e.deadLetter {
			if err := c.w.DeadLetter(ctx, c.deadLetter(ch.page, "page_unreadable", err.Error())); err != nil {
				return err
			}
		}
		return c.skip(ctx, ch, resp, e)
	}
	if err := c.learn(ctx, ch, r); err != nil {
		return err
	}
	e, err := c.reservedPage(ctx, ch, resp, html)
	if err != nil {
		return err
	}
	if e != nil {
		e.links = r.links
		return c.skip(ctx, ch, resp, *e)
	}
	return c.decide(ctx, ch, r)
}

// decide decides what becomes of a page that was read.
func (c *crawl) decide(ctx context.Context, ch *chain, r *reading) error {
	skip := func(e ending) error { return c.skip(ctx, ch, r.resp, e) }
	onward, why, kept, err := c.elsewhere(ctx, ch, r.page, r.head, r.html)
	switch {
	case err != nil:
		return err
	case why != "":
		e := ending{reason: why, gone: !kept, links: r.links, onward: onward}
		if why == noIndex && r.text != nil && r.form == content.HTML {
			return c.replace(ctx, ch, r, func() error { return skip(e) })
		}
		return skip(e)
	case r.text == nil && r.page.Script:
		return skip(ending{reason: "no content without scripts; spa_rendering: true renders the page", empty: true})
	case r.text == nil:
		return skip(ending{reason: "no content", empty: true})
	}
	if ch.way.source == policy.OpenAPI {
		other, err := c.api.same(ctx, ch.now.key, r.text.hash)
		if err != nil {
			return err
		}
		if other != "" {
			return skip(ending{reason: "the same description as " + other, gone: true})
		}
	}
	of, err := c.sameAs(ctx, ch.now.key, r.text.hash)
	if err != nil {
		return fmt.Errorf("looking for the folder of %s: %w", ch.now.address, err)
	}
	if of != "" {
		return skip(ending{reason: copyBegins + of + copySame, gone: true, links: r.links})
	}
	r.text.language = cmp.Or(r.page.Language, content.Language(r.resp.Header.Get("Content-Language")))
	r.text.fetched = c.clock.Now().UTC().Truncate(time.Second)
	store := func() error {
		if err := c.move(ch, Extracting); err != nil {
			return err
		}
		return c.end(ctx, ch, ending{status: Indexed, http: r.resp.Status, resp: r.resp, read: r.text, links: r.links})
	}
	if r.form == content.HTML {
		return c.replace(ctx, ch, r, store)
	}
	return store()
}

// skip ends a page whose answer is not stored.
func (c *crawl) skip(ctx context.Context, ch *chain, resp *web.Response, e ending) error {
	e.status, e.http, e.resp = Skipped, resp.Status, resp
	c.log.Info("page_skipped", "url", ch.at.String(), "reason", e.reason)
	if e.gone && len(e.onward) == 0 && ch.answer.Kind.Wall() {
		c.hold(ch, e)
		return nil
	}
	return c.end(ctx, ch, e)
}

// ending is the final result of a page.
type ending struct {
	status     Status
	reason     string
	http       int
	gone       bool          // its stored content is removed, if there is any
	forbid     bool          // it is never requested again
	reserved   bool          // for the run's purpose
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

// change returns what becomes of the stored content of a page: new, updated, deleted, or "" for nothing.
func (e ending) change(p *page, old []chunk.Block) (kind string, sections []chunk.Change) {
	switch {
	case e.gone:
		return "deleted", chunk.Diff(old, nil)
	case e.read == nil || p.contentHash == e.read.hash:
		return "", nil
	case p.contentHash == "":
		return "new", chunk.Diff(nil, e.read.blocks)
	}
	return "updated", chunk.Diff(old, e.read.blocks)
}

// count adds the page to the counts.
func (e ending) count(s *stats, kind string) {
	if e.reserved {
		s.Reserved++
	}
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

// end gives the page of a chain its final status in one transaction, and removes its dead letter unless there is a new one.
func (c *crawl) end(ctx context.Context, ch *chain, e ending) error {
	if e.status == TooLarge {
		c.log.Warn("page_too_large", "url", ch.at.String(), "limit", maxPage)
	}
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
	c.log.Warn("page_rejected", "url", ch.at.String(), "error", ledger.Redact(err.Error()))
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
		over := left.moved || e.http == http.StatusNotFound || e.http == http.StatusGone || e.copied(p, left)
		if left == p || left.contentHash == "" || !over {
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
	kind, sections := e.change(p, old.blocks)
	handOff := kind != "" || c.part.stats.Again && e.read != nil
	if handOff {
		if err := c.handOff(ctx, p, e.read, old.ids); err != nil {
			return err
		}
	}
	if err := c.keep(ctx, p, e); err != nil {
		return err
	}
	return c.advance(ctx, "writing "+p.address, func(tx *sql.Tx) error {
		e.count(&c.part.stats, kind)
		if ch.rights != nil {
			c.part.stats.Said = permit.Sum(c.part.stats.Said, ch.rights.Counts())
		}
		if e.read != nil || e.status == NotModified {
			c.part.stats.took(string(ch.way.source))
		}
		if err := c.write(ctx, tx, ch, e, kind, sections, handOff); err != nil {
			return err
		}
		if err := c.queue(ctx, tx, e.onward, ch.page.depth); err != nil {
			return err
		}
		return c.queue(ctx, tx, slices.DeleteFunc(slices.Clone(e.links), func(l link) bool { return l.key == p.key }), ch.page.depth+1)
	})
}
