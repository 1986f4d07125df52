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
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

// advance changes the part's rows and its counts in one transaction.
func (c *crawl) advance(ctx context.Context, do func(*sql.Tx) error) error {
	queued, stats, marked := c.part.queued, c.part.stats, c.marked
	undo := func() { c.part.queued, c.part.stats, c.marked, c.fresh = queued, stats, marked, nil }
	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
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
		if _, err := tx.ExecContext(ctx, `UPDATE docs_runs SET queued = $1, stats = $2, active_at = $3 WHERE session = $4 AND provider = $5`,
			c.part.queued, string(b), db.Micros(now), c.part.session, c.id); err != nil {
			return fmt.Errorf("writing figures: %w", err)
		}
		return nil
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
	var blocks []chunk.Block
	kind := ""
	switch {
	case e.gone:
		kind = "deleted"
	case e.read == nil:
	case p.contentHash == "":
		kind, blocks = "new", e.read.blocks
	case p.contentHash != e.read.hash:
		kind, blocks = "updated", e.read.blocks
	}
	handOff := kind != "" || c.part.stats.Again && e.read != nil
	if handOff {
		if err := c.handOff(ctx, p, e.read, old.ids); err != nil {
			return err
		}
	}
	var sections []chunk.Change
	if kind != "" {
		sections = chunk.Diff(old.blocks, blocks)
	}
	err := c.advance(ctx, func(tx *sql.Tx) error {
		e.count(&c.part.stats, kind)
		if e.read != nil || e.status == NotModified {
			c.part.stats.took(string(ch.way.source))
		}
		if err := c.write(ctx, tx, ch, e, kind, sections, handOff); err != nil {
			return err
		}
		if err := c.api.close(ctx, tx, p.key, e); err != nil {
			return err
		}
		if err := c.queue(ctx, tx, e.onward, ch.page.depth); err != nil {
			return err
		}
		return c.queue(ctx, tx, slices.DeleteFunc(slices.Clone(e.links), func(l link) bool { return l.key == p.key }), ch.page.depth+1)
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.address, err)
	}
	if e.forbid {
		c.forbidden[p.key] = true
	}
	return nil
}
