package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/pdf"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

// contentVersion changes when the program makes other content from the same page than
// before. Otherwise a 304 would keep the content of an older version.
const contentVersion = "11"

// readBy identifies what turns a page into content: this program's version and the
// policy's selectors.
func readBy(p policy.Policy) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{contentVersion, p.CustomSelectors.Content, fmt.Sprint(p.SPARendering)}, p.CustomSelectors.Remove...), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// pageContent is what was read from a page.
type pageContent struct {
	title    string
	language string // BCP 47
	hash     string
	chunks   []chunk.Chunk
	blocks   []chunk.Block
	fetched  time.Time
	files    int64 // 1 for a description in several files
}

// outline returns the size in bytes of everything but the text.
func (r *pageContent) outline() (size int) {
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

// index reads a page's content and its links, and stores them.
func (c *crawl) index(ctx context.Context, ch *chain, resp *web.Response) error {
	skipped := ending{status: Skipped, http: resp.Status, resp: resp}
	skip := func(reason string) error {
		skipped.reason = reason
		c.w.Log.Info("page_skipped", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", reason)
		if skipped.gone && len(skipped.onward) == 0 && ch.answer.Kind.Wall() {
			c.hold(ch, skipped)
			return nil
		}
		return c.end(ctx, ch, skipped)
	}
	contentType := ch.way.media(resp.Header.Get("Content-Type"))
	form, media := content.Kind(contentType, resp.Body)
	if form == content.Excluded {
		return skip("not collected: " + media)
	}
	var described *content.Description
	if form == content.OpenAPI && c.isOn(policy.OpenAPI) && !pagehead.Read(resp.Header, nil, "", productToken).NoIndex {
		var done bool
		var err error
		if described, done, err = c.gather(ctx, ch, resp); done || err != nil {
			return err
		}
	}
	if err := c.move(ch, Parsing); err != nil {
		return err
	}
	body := resp.Body
	markdown := form == content.Text && isMarkdown(contentType)
	if markdown {
		body = []byte(llms.Front(string(body)))
	}
	if c.renderer != nil && form == content.HTML {
		rendered, err := c.renderer.Render(ctx, ch.at, body, contentType)
		switch {
		case err != nil && (ctx.Err() != nil || ends(err)):
			return err
		case err != nil:
			return skip(ledger.Redact(err.Error()))
		}
		body, contentType = []byte(rendered), "text/html; charset=utf-8"
		ch.answer = answer.Classify(answer.Response{Status: resp.Status, Header: http.Header{"Content-Type": {contentType}}, Body: body})
	}
	switch {
	case ch.replaced():
		c.hold(ch, ending{status: Failed, http: resp.Status, reason: "no page but " + string(ch.answer.Kind) + ": " + ch.answer.Evidence})
		return nil
	case form == content.HTML && ch.answer.Kind == answer.Login:
		skipped.gone = true
		return skip(aLogin)
	}
	var pg content.Page
	var r *pageContent
	read := func() (err error) { pg, r, err = c.read(ctx, form, body, contentType, ch, described); return err }
	switch err := c.guard(ctx, ch, len(body), read); {
	case ctx.Err() != nil:
		return ctx.Err()
	case pdf.Refused(err):
		return skip(ledger.Redact(err.Error()))
	case err != nil:
		if derr := c.w.DeadLetter(ctx, c.deadLetter(ch.page, "page_unreadable", err.Error())); derr != nil {
			return derr
		}
		skipped.deadLetter = true
		return skip(ledger.Redact(err.Error()))
	}
	var page []byte
	if form == content.HTML {
		page = body
	}
	head := pagehead.Read(resp.Header, page, contentType, productToken)
	if markdown {
		pg.Links = c.markdownLinks(ch, string(body))
	}
	if err := c.nameDescriptions(ctx, ch, &pg, head, page); err != nil {
		return err
	}
	c.readAs(ch, form)
	if form == content.HTML {
		if err := c.learnTwins(ctx, ch, head); err != nil {
			return err
		}
	}
	links := c.links(ch, pg, head)
	onward, why, kept, err := c.elsewhere(ctx, ch, pg, head, page)
	if err != nil {
		return err
	}
	if why != "" {
		skipped.gone, skipped.links, skipped.onward = !kept, links, onward
		if why == noIndex && r != nil && form == content.HTML {
			return c.replace(ctx, ch, resp, pg, r, links, func() error { return skip(why) })
		}
		return skip(why)
	}
	if r == nil {
		skipped.empty = true
		if pg.Script {
			return skip("no content without scripts; spa_rendering: true renders the page")
		}
		return skip("no content")
	}
	if ch.way.source == policy.OpenAPI {
		other, err := c.sameDescription(ctx, ch, r.hash)
		if err != nil {
			return err
		}
		if other != "" {
			skipped.gone = true
			return skip("the same description as " + other)
		}
	}
	of, err := c.sameAs(ctx, ch.now.key, r.hash)
	if err != nil {
		return fmt.Errorf("looking for the folder of %s: %w", ch.now.address, err)
	}
	if of != "" {
		c.copies[ch.now.key] = copyBegins + of + copySame
		skipped.gone, skipped.links = true, links
		return skip(c.copies[ch.now.key])
	}
	r.language = cmp.Or(pg.Language, content.Language(resp.Header.Get("Content-Language")))
	r.fetched = c.clock.Now().UTC().Truncate(time.Second)
	store := func() error {
		if err := c.move(ch, Extracting); err != nil {
			return err
		}
		return c.end(ctx, ch, ending{status: Indexed, http: resp.Status, resp: resp, read: r, links: links})
	}
	if form == content.HTML {
		return c.replace(ctx, ch, resp, pg, r, links, store)
	}
	return store()
}

// Why a page is skipped.
const (
	noIndex      = "it asks not to be indexed (noindex)"
	softNotFound = "it says that it was not found (a soft 404)"
	aLogin       = "a login form"
)

// isMarkdown reports whether a Content-Type is Markdown's.
func isMarkdown(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/markdown" || media == "text/x-markdown"
}

// links returns the pages to which a page links, none if it tells crawlers not to
// follow its links.
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

// elsewhere returns why a page itself says that its content should not be indexed, ""
// if it should be: it says noindex, it redirects, it was not found, or it is a copy of a page that the
// crawl may visit. onward are the pages that are requested instead. kept says that
// the page's stored content stays until it is known whether its original has any.
func (c *crawl) elsewhere(ctx context.Context, ch *chain, pg content.Page, head pagehead.Head, page []byte) (onward []link, why string, kept bool, err error) {
	if to, no := c.link(ch.at, head.Refresh, false); head.Refresh != "" && to.key != ch.now.key {
		if no == "" {
			onward = append(onward, to)
		}
		return onward, fmt.Sprintf("redirects to %.500s by itself", head.Refresh), false, nil
	}
	if page != nil {
		if why, address := stub(pg, page); why != "" {
			if to, no := c.link(ch.at, address, false); address != "" && no == "" && to.key != ch.now.key {
				onward = append(onward, to)
			}
			return onward, why, false, nil
		}
		if ch.answer.Kind == answer.Soft404 {
			return nil, softNotFound, false, nil
		}
	}
	to, no := c.link(ch.at, head.Canonical, false)
	if head.Canonical != "" && no == "" {
		copied, known, err := c.copyOf(ctx, ch, to)
		if err != nil {
			return nil, "", false, err
		}
		if copied {
			c.copies[ch.now.key] = copyBegins + to.key + copyNames
			return []link{to}, c.copies[ch.now.key], !known, nil
		}
	}
	if head.NoIndex {
		return nil, noIndex, false, nil
	}
	return nil, "", false, nil
}

// read extracts the content of a body; nil if there is none.
func (c *crawl) read(ctx context.Context, form content.Form, body []byte, contentType string, ch *chain, described *content.Description) (pg content.Page, r *pageContent, err error) {
	var files int64
	switch {
	case described != nil:
		files = 1
		pg, err = described.Page()
	case form == content.PDF:
		pg, err = pdf.Read(ctx, body)
	default:
		pg, err = content.Read(form, body, contentType, content.Options{Base: ch.at, Content: c.policy.CustomSelectors.Content, Remove: c.policy.CustomSelectors.Remove, Keep: c.policy.KeepQueryParams})
	}
	if err != nil || pg.Empty {
		return pg, nil, err
	}
	r = &pageContent{files: files, title: pg.Title, blocks: chunk.Blocks(pg.Markdown)}
	if pg.Pages != nil {
		r.chunks = chunk.SplitPages(ch.now.key, pg.Markdown, pg.Pages, chunk.Default)
	} else {
		r.chunks = chunk.Split(ch.now.key, pg.Markdown, pg.Anchors, chunk.Default)
	}
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
