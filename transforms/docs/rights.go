package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// What robots.txt reserves for the run's purpose is not requested. Of a page that its response or its own elements reserve nothing is
// handed on, and what is stored of it is removed as of a deleted page. Its row keeps the lines that say so.

// refusedBy is the end of a page that its robots.txt disallows or reserves.
func (c *crawl) refusedBy(ch *chain, u *url.URL, r *polite.Rules, no error) ending {
	proof := c.gate.Read(r, rights.Rights{}, u.String())
	ch.rights = &proof
	reserved := errors.As(no, new(*rights.Decision))
	return ending{status: Blocked, reason: no.Error(), gone: reserved, reserved: reserved}
}

// said reads what is said about the use of what is at an address: by the robots.txt of a site, if that can be had, in what is
// known already, and by answers. site "": the site is asked for nothing.
func (s *provider) said(ctx context.Context, site string, known rights.Rights, at string, answers ...permit.Answer) (r rights.Rights, err error) {
	var rules *polite.Rules
	if u, err := url.Parse(site); err == nil && u.Host != "" {
		if rules, err = s.client.Robots(ctx, u); err != nil && ctx.Err() != nil {
			return r, ctx.Err()
		}
	}
	return s.gate.Read(rules, known, at, answers...), nil
}

func (s *provider) answerOf(resp *web.Response, html []byte) permit.Answer {
	return permit.Answer{URL: resp.FinalURL, Status: resp.Status, Header: resp.Header, Body: resp.Body, HTML: html, At: s.clock.Now()}
}

// reservedPage reads what a response and the page's HTML say about use. It returns the end of a page that is reserved, nil for another.
func (c *crawl) reservedPage(ctx context.Context, ch *chain, resp *web.Response, html []byte) (_ *ending, err error) {
	of, known := c.answerOf(resp, html), ch.way.said
	of.URL = cmp.Or(of.URL, ch.at.String())
	if resp.Status == http.StatusNotModified {
		if known, err = ch.now.said(); err != nil {
			return nil, err
		}
	}
	site := of.URL
	if ch.way.file != nil {
		site = ""
	}
	proof, err := c.said(ctx, site, known, of.URL, of)
	ch.rights = &proof
	d := proof.Decision(c.cfg.Purpose)
	if d == nil || err != nil {
		return nil, err
	}
	return &ending{status: Skipped, http: resp.Status, reason: d.Error(), gone: true, reserved: true}, nil
}

// said are the rights that were stored with a page.
func (p *page) said() (r rights.Rights, err error) {
	if r, err = permit.Stored(p.rights); err != nil {
		err = fmt.Errorf("reading the rights of %s: %w", p.address, err)
	}
	return r, err
}

// sold returns the end of a page that was for sale and is not requested again yet, nil for another.
func (c *crawl) sold(p *page) (*ending, error) {
	known, err := p.said()
	if err != nil {
		return nil, err
	}
	d := known.Decision(c.cfg.Purpose)
	if sold, again := d.Sold(c.clock.Now()); !sold || again {
		return nil, nil
	}
	return &ending{status: Blocked, reason: d.Error(), gone: true, reserved: true}, nil
}

// ofFile reads what a response says of a file that is no page. why says why the file is reserved, "" if it is not.
func (s *provider) ofFile(ctx context.Context, resp *web.Response) (said rights.Rights, why string) {
	said, err := s.said(ctx, resp.FinalURL, rights.Rights{}, resp.FinalURL, s.answerOf(resp, nil))
	if err != nil {
		return said, err.Error()
	}
	if d := said.Decision(s.cfg.Purpose); d != nil {
		why = d.Error()
	}
	return said, why
}

// withdraw removes what is stored of pages that are reserved by what is known of them and of robots.txt now, as
// with another purpose than before. Pages that were kept out for another purpose are queued again.
func (c *crawl) withdraw(ctx context.Context) error {
	c.part.stats.Purpose = c.cfg.Purpose
	err := c.db.Write(ctx, "queueing pages of "+c.id+" that another purpose kept out", `UPDATE docs_pages SET status = $1, counted = FALSE
		WHERE provider = $2 AND session = $3 AND status IN ($4, $5) AND reason LIKE $6 AND reason NOT LIKE $7`, Queued, c.id, c.part.session, Blocked, Skipped,
		rights.ReservedFor+"%", rights.ReservedFor+string(c.cfg.Purpose)+" %")
	if err != nil || c.cfg.Purpose == "" {
		return err
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
	site := p.address
	if c.files[p.key] != nil || c.filesOnly {
		site = ""
	}
	proof, err := c.said(ctx, site, known, p.address)
	if err != nil {
		return err
	}
	d := proof.Decision(c.cfg.Purpose)
	if d == nil {
		return nil
	}
	c.log.Info("page_withdrawn", "url", p.address, "reason", d.Error())
	return c.close(ctx, &chain{page: p, now: p, rights: &proof}, ending{status: Skipped, reason: d.Error(), gone: true, reserved: true})
}
