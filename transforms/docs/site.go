package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/site"
)

// The states of a provider's part whose site is not the one that was known. Nothing stored
// of it is removed, and the next session asks again.
const (
	siteBlocked State = State(site.Blocked)
	siteMoved   State = State(site.Moved)
	siteClosed  State = State(site.Closed)
	siteThin    State = State(site.Thin)
)

// notOpen reports whether a part ended because its site is not open.
func (s State) notOpen() bool {
	return s == siteBlocked || s == siteMoved || s == siteClosed || s == siteThin
}

// beginJudging begins to judge the provider's site by the answers of this run.
func (c *crawl) beginJudging(ctx context.Context) error {
	about := site.About{Name: c.host, SeedKey: "seed_urls", ScopeKey: "allowed_path_patterns"}
	err := c.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN depth = 0 AND session = $1 AND status = $2 THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN content_hash <> '' THEN 1 ELSE 0 END), 0) FROM docs_pages WHERE provider = $3`,
		c.part.session, Queued, c.id).Scan(&about.Seeds, &about.Known)
	if err != nil {
		return fmt.Errorf("counting the pages of %s: %w", c.id, err)
	}
	if about.Before, err = c.w.Site(ctx, c.id); err != nil {
		return err
	}
	c.judge = site.Begin(about)
	if a := c.standsFor; a.Ends || a.Verdict.Kind == answer.Challenge || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
		c.judge.Add(a)
	}
	return nil
}

// readRobots reads what answers for robots.txt, before any list or page of the site is requested.
func (c *crawl) readRobots(ctx context.Context) error {
	if c.filesOnly {
		return nil
	}
	c.reachSeeds(ctx)
	u, err := url.Parse(c.policy.SeedURLs[0])
	if err != nil {
		return err
	}
	if r, err := c.robots(ctx, u); err == nil && r != nil { // otherwise the first page gets the same error
		c.standsFor = site.OfRobots(answer.Response{Status: r.Status, Header: r.Header, URL: r.URL, Final: r.FinalURL, Body: r.Body})
	}
	return nil
}

// judgeAnswer adds the final answer for a page to the judgement, a nil response for a failure.
func (c *crawl) judgeAnswer(ch *chain, resp *web.Response, failure *web.Error) {
	a := site.Answer{Role: site.New, URL: ch.at.String()}
	switch {
	case ch.page.depth == 0:
		a.Role, a.URL = site.Seed, ch.page.address
	case ch.page.contentHash != "" || ch.now.contentHash != "":
		a.Role, a.URL = site.Known, ch.page.address
	}
	if failure != nil {
		a.Failure = string(failure.Kind)
	}
	if resp != nil {
		a.Status = resp.Status
		a.Verdict = answer.Classify(answer.Response{Status: resp.Status, Header: resp.Header, URL: ch.at.String(), Body: resp.Body})
		ch.answer = a.Verdict
		if isRedirect(resp) {
			to, err := ch.at.Parse(resp.Header.Get("Location"))
			if err != nil {
				return
			}
			if _, why := c.link(ch.at, to.String(), false); why == "" {
				return // its target is judged
			}
			a.To = to.String()
		}
	}
	c.judge.Add(a)
}

// refused reports whether no more requests should be sent. A site that is down is read to
// its end: each page has retries of its own.
func (c *crawl) refused() bool {
	return c.judge != nil && c.judge.Stop() && (c.standsFor.Ends || c.judge.Verdict().State != site.Down)
}

// replaced reports whether a site shows something in place of all its pages. What is stored
// stays. If a page had a text before, replace finds notices.
func (ch *chain) replaced() bool {
	switch ch.answer.Kind {
	case answer.Challenge, answer.Consent, answer.Parked:
		return true
	case answer.Maintenance, answer.ErrorPage:
		return ch.now.contentHash == ""
	}
	return false
}

// hold keeps a conclusion about a page until the site is known to be open. If it is not, or
// after a kill, the page is requested again.
func (c *crawl) hold(ch *chain, e ending) {
	c.held = append(c.held, func(ctx context.Context) error { return c.end(ctx, ch, e) })
}

// conclude judges the site at the end of the part, and applies what was held if it is open. If refusals came last, it requests a seed once
// more. A part that a later run continues is not judged: ended is why.
func (c *crawl) conclude(ctx context.Context, ended error) (v site.Verdict, err error) {
	whole := ended == nil || errors.Is(ended, errMaxPages) || errors.Is(ended, errLimit)
	if c.judge == nil || !whole && (!ends(ended) || errors.Is(ended, errUnreachable)) {
		return v, ended
	}
	if whole && len(c.held) > 0 && c.judge.Doubtful() {
		if err := c.askSeed(ctx, c.policy.SeedURLs[0]); err != nil {
			return v, err
		}
	}
	if v = c.judge.Verdict(); v.State == site.Down && !c.standsFor.Ends && c.checkSeeds(ctx) == nil { // single pages fail
		v = site.Verdict{State: site.Open}
	}
	if whole {
		if err := c.w.KeepSite(ctx, c.id, v); err != nil {
			return v, err
		}
	}
	switch {
	case v.State != site.Open && whole:
		return v, nil
	case v.State != site.Open:
		return v, ended
	}
	for _, end := range c.held {
		if err := end(context.WithoutCancel(ctx)); err != nil {
			return v, err
		}
	}
	c.held = nil
	return v, ended
}

// askSeed requests a seed once more, only to judge the site.
func (c *crawl) askSeed(ctx context.Context, seed string) error {
	u, err := url.Parse(seed)
	if err != nil {
		return fmt.Errorf("reading the seed %s: %w", seed, err)
	}
	resp, err := c.client.Get(ctx, polite.Request{URL: u.String(), Accept: accept, Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: -1})
	var failure *web.Error
	if !errors.As(err, &failure) && resp == nil {
		return unreachable(err)
	}
	p := &page{address: seed}
	c.judgeAnswer(&chain{page: p, now: p, at: u}, resp, failure)
	return nil
}

// A site that is closed for a while, or refuses crawlers, may answer each request with one notice and status 200. Pages that had texts of
// their own do not get one short text in the same session.

const (
	// maxNotice is the most letters of a notice.
	maxNotice = 1000
	// minNoticed is how many texts one text takes the place of when it is a notice. A smaller
	// site may have changed so.
	minNoticed = 3
	// maxReplacing is how many different texts wait until they are known to be no notices. A
	// site whose pages all have new texts has many.
	maxReplacing = 10
)

// replacing is a page that has nothing of its stored text any more. It is stored when it is
// known that other pages do not have its text. After a kill it is asked for again.
type replacing struct {
	text  string // which text it has now
	title string // of that text
	chain *chain
	http  int // the status of the answer
	end   func() error
}

// noticeBegins begins the reason of a page that a notice took the place of. Which text that
// is follows, and its title.
const noticeBegins = "other pages, which had other texts, got the same text: "

// noticeText identifies the text of a page that may be a notice, "" for one that is none.
// Numbers of requests count for nothing in it.
func noticeText(pg content.Page) string {
	letters := 0
	for _, r := range pg.Markdown {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if letters > maxNotice || strings.Contains(pg.Markdown, "```") {
		return ""
	}
	words := slices.DeleteFunc(strings.Fields(pg.Markdown), func(word string) bool {
		return len(word) >= 12 && strings.ContainsAny(word, "0123456789")
	})
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	return hex.EncodeToString(sum[:8])
}

// replace ends a page of HTML whose content may take the place of what is stored. end does
// it; it is called at once, later, or not at all if the text is a notice.
func (c *crawl) replace(ctx context.Context, ch *chain, r *reading, end func() error) error {
	text, title := noticeText(r.page), cmp.Or(r.page.Title, r.page.Markdown)
	if text == "" || ch.now.contentHash == r.text.hash {
		return end()
	}
	if ch.now.contentHash != "" {
		old, err := c.storedContent(ctx, ch.now.key)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(r.text.blocks, func(b chunk.Block) bool {
			return slices.ContainsFunc(old.blocks, func(o chunk.Block) bool { return o.Hash == b.Hash })
		}) {
			return end()
		}
	}
	switch {
	case c.notices[text]:
		return c.noticed(ctx, replacing{text: text, title: title, chain: ch, http: r.resp.Status})
	case ch.now.contentHash == "":
		return end()
	}
	queue := func(tx *sql.Tx) error { return c.queue(ctx, tx, r.links, ch.page.depth+1) }
	if err := c.advance(ctx, "queueing the links of "+ch.now.address, queue); err != nil {
		return err
	}
	r.resp.Body, r.body, r.html = nil, nil, nil // they have been read, and may be large
	c.replaced = append(c.replaced, replacing{text, title, ch, r.resp.Status, end})
	had, texts := map[string]bool{}, map[string]bool{}
	for _, p := range c.replaced {
		texts[p.text] = true
		if p.text == text {
			had[p.chain.now.contentHash] = true
		}
	}
	if c.notices[text] = len(had) >= minNoticed; c.notices[text] {
		return c.endReplacing(text, func(p replacing) error { return c.noticed(ctx, p) })
	}
	if len(texts) > maxReplacing {
		return c.endReplacing(c.replaced[0].text, func(p replacing) error { return p.end() })
	}
	return nil
}

// endReplacing ends the pages that wait with a text, all that wait for "".
func (c *crawl) endReplacing(text string, end func(replacing) error) error {
	var left []replacing
	for i, p := range c.replaced {
		if text != "" && p.text != text {
			left = append(left, p)
			continue
		}
		if err := end(p); err != nil {
			c.replaced = append(left, c.replaced[i:]...)
			return err
		}
	}
	c.replaced = left
	return nil
}

// noticed fails a page in whose place a notice came: what is stored stays.
func (c *crawl) noticed(ctx context.Context, p replacing) error {
	c.part.stats.Succeeded-- // whatever its status, the answer is an error
	c.part.stats.Errors++
	return c.fail(ctx, p.chain, p.http, fmt.Sprintf("%s%s (%.100q)", noticeBegins, p.text, p.title))
}

// loadNotices reads which texts the session has found to be notices.
func (c *crawl) loadNotices(ctx context.Context) error {
	reasons, err := db.Texts(ctx, c.db, `SELECT DISTINCT reason FROM docs_pages
		WHERE provider = $1 AND session = $2 AND status = $3 AND reason LIKE $4`,
		c.id, c.part.session, Failed, noticeBegins+"%")
	for _, reason := range reasons {
		text, _, _ := strings.Cut(strings.TrimPrefix(reason, noticeBegins), " ")
		c.notices[text] = true
	}
	return err
}
