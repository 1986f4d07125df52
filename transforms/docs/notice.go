package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// A site that is closed for a while, or refuses crawlers, may answer each request with one
// notice and status 200. One page does not show that: its text may be new. But pages that
// had texts of their own do not get one short text in the same session.

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
func (c *crawl) replace(ctx context.Context, ch *chain, resp *web.Response, pg content.Page, r *pageContent, links []link, end func() error) error {
	text, title := noticeText(pg), cmp.Or(pg.Title, pg.Markdown)
	if text == "" || ch.now.contentHash == r.hash {
		return end()
	}
	if ch.now.contentHash != "" {
		old, err := c.storedContent(ctx, ch.now.key)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(r.blocks, func(b chunk.Block) bool {
			return slices.ContainsFunc(old.blocks, func(o chunk.Block) bool { return o.Hash == b.Hash })
		}) {
			return end()
		}
	}
	switch {
	case c.notices[text]:
		return c.noticed(ctx, replacing{text: text, title: title, chain: ch, http: resp.Status})
	case ch.now.contentHash == "":
		return end()
	}
	if err := c.advance(ctx, func(tx *sql.Tx) error { return c.queue(ctx, tx, links, ch.page.depth+1) }); err != nil {
		return fmt.Errorf("queueing the links of %s: %w", ch.now.address, err)
	}
	resp.Body = nil // it has been read, and may be large
	c.replaced = append(c.replaced, replacing{text, title, ch, resp.Status, end})
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
	reasons, err := db.Texts(ctx, c.db, `SELECT DISTINCT reason FROM docs_pages WHERE provider = $1 AND session = $2 AND status = $3 AND reason LIKE $4`,
		c.id, c.part.session, Failed, noticeBegins+"%")
	for _, reason := range reasons {
		text, _, _ := strings.Cut(strings.TrimPrefix(reason, noticeBegins), " ")
		c.notices[text] = true
	}
	return err
}
