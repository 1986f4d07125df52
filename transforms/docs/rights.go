package docs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// What is reserved for the run's purpose in robots.txt is not requested. Of a page that is reserved by its
// response or its own elements nothing is handed on: no text, title, chunk or hand-off is stored, and what is
// stored of it is removed as of a deleted page. Its row keeps the lines that say so.

// refusedBy is the end of a page that its robots.txt disallows or reserves.
func (c *crawl) refusedBy(ch *chain, u *url.URL, r *polite.Rules, no error) ending {
	proof := c.gate.Ledger(r).Proof(u.String())
	ch.rights = &proof
	reserved := errors.As(no, new(*rights.Decision))
	return ending{status: Blocked, reason: no.Error(), gone: reserved, reserved: reserved}
}

// ledger begins with what the site of an address says, if its robots.txt can be had.
func (s *provider) ledger(ctx context.Context, at string) (*rights.Ledger, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return s.gate.Ledger(nil), nil //nolint:nilerr // a response without an address is of no site
	}
	r, err := s.client.Robots(ctx, u)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.gate.Ledger(r), nil
}

// reservedPage reads what a response says about use. It returns the end of a page that is reserved, nil for another.
func (c *crawl) reservedPage(ctx context.Context, ch *chain, resp *web.Response, form content.Form) (*ending, error) {
	of := *resp
	of.FinalURL = cmp.Or(of.FinalURL, ch.at.String())
	before, err := ch.now.said()
	if err != nil {
		return nil, err
	}
	if ch.way.text != "" {
		before = ch.way.said
	} else if resp.Status != http.StatusNotModified {
		before = rights.Rights{}
	}
	l := c.gate.Ledger(nil)
	if ch.way.file == nil {
		if l, err = c.ledger(ctx, of.FinalURL); err != nil {
			return nil, err
		}
	}
	l.Kept(before)
	at := cmp.Or(before.Page(), of.FinalURL)
	read := l.Answer
	if form == content.HTML {
		read = l.Page
	}
	read(of.FinalURL, of.Status, of.Header, of.Body, c.clock.Now())
	proof := l.Proof(at)
	ch.rights = &proof
	d := proof.Decision(c.cfg.Purpose)
	if d == nil {
		return nil, nil
	}
	return &ending{status: Skipped, http: resp.Status, reason: d.Error(), gone: true, reserved: true}, nil
}

// said are the rights that were stored with a page.
func (p *page) said() (r rights.Rights, err error) {
	if p.rights == "" {
		return r, nil
	}
	if err = json.Unmarshal([]byte(p.rights), &r); err != nil {
		err = fmt.Errorf("reading the rights of %s: %w", p.address, err)
	}
	return r, err
}

// ofFile reads what a response says of a file that is no page. why says why the file is reserved, "" if it is not.
func (s *provider) ofFile(ctx context.Context, resp *web.Response) (said rights.Rights, why string) {
	l, err := s.ledger(ctx, resp.FinalURL)
	if err != nil {
		return said, err.Error()
	}
	l.Answer(resp.FinalURL, resp.Status, resp.Header, resp.Body, s.clock.Now())
	said = l.Proof(resp.FinalURL)
	if d := said.Decision(s.cfg.Purpose); d != nil {
		why = d.Error()
	}
	return said, why
}

// withdraw removes what is stored of pages that are reserved by what is known of them and of robots.txt now, as
// with another purpose than before. Pages that were kept out for another purpose are queued again.
func (c *crawl) withdraw(ctx context.Context) error {
	c.part.stats.Purpose = c.cfg.Purpose
	if _, err := c.db.ExecContext(ctx, `UPDATE docs_pages SET status = $1, counted = FALSE WHERE provider = $2 AND session = $3 AND status IN ($4, $5)
		AND reason LIKE $6 AND reason NOT LIKE $7`, Queued, c.id, c.part.session, Blocked, Skipped,
		rights.ReservedFor+"%", rights.ReservedFor+string(c.cfg.Purpose)+" %"); err != nil {
		return fmt.Errorf("queueing pages of %s that another purpose kept out: %w", c.id, err)
	}
	if c.cfg.Purpose == "" {
		return nil
	}
	var stored []*page
	for p, err := range db.Select(ctx, c.db, func(r *sql.Rows) (*page, error) { return scanPage(r) },
		selectPage+`WHERE p.provider = $1 AND p.content_hash <> '' ORDER BY p.key`, c.id) {
		if err != nil {
			return fmt.Errorf("reading the stored pages of %s: %w", c.id, err)
		}
		stored = append(stored, p)
	}
	for _, p := range stored {
		if err := c.withdrawPage(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *crawl) withdrawPage(ctx context.Context, p *page) error {
	known, err := p.said()
	if err != nil {
		return err
	}
	l := c.gate.Ledger(nil)
	if c.files[p.key] == nil && !c.filesOnly {
		if l, err = c.ledger(ctx, p.address); err != nil {
			return err
		}
	}
	l.Kept(known)
	for _, at := range []string{p.address, cmp.Or(known.Page(), p.address)} { // its text may come from its Markdown
		proof := l.Proof(at)
		if d := proof.Decision(c.cfg.Purpose); d != nil {
			c.log.Info("page_withdrawn", "url", p.address, "reason", d.Error())
			return c.close(ctx, &chain{page: p, now: p, rights: &proof}, ending{status: Skipped, reason: d.Error(), gone: true, reserved: true})
		}
	}
	return nil
}
