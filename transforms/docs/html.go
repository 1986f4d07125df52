package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/pdf"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
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

// reading is an answer, and what is read of it.
type reading struct {
	resp        *web.Response
	form        content.Form
	contentType string
	body        []byte
	described   *content.Description // in several files
	html        []byte               // of a page of HTML
	page        content.Page
	head        pagehead.Head
	text        *pageContent // nil: none
	links       []link
}

func (r *reading) isMarkdown() bool { return r.form == content.Text && isMarkdown(r.contentType) }

// index reads a page's content and its links, and stores them.
func (c *crawl) index(ctx context.Context, ch *chain, resp *web.Response) error {
	r := &reading{resp: resp, contentType: ch.way.media(resp.Header.Get("Content-Type")), body: resp.Body}
	var media string
	if r.form, media = content.Kind(r.contentType, resp.Body); r.form == content.Excluded {
		return c.skip(ctx, ch, resp, ending{reason: "not collected: " + media})
	}
	if r.form == content.OpenAPI && c.isOn(policy.OpenAPI) && !pagehead.Read(resp.Header, nil, "", productToken).NoIndex {
		var unsure string
		var err error
		if r.described, unsure, err = c.api.gather(ctx, ch, resp); err != nil {
			return err
		}
		if unsure != "" {
			return c.fail(ctx, ch, 0, unsure)
		}
	}
	if err := c.move(ch, Parsing); err != nil {
		return err
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
	return c.settle(ctx, ch, r)
}

// render prepares the body of an answer for its parser; why says why it cannot.
func (c *crawl) render(ctx context.Context, ch *chain, r *reading) (why string, err error) {
	if r.isMarkdown() {
		r.body = []byte(llms.Front(string(r.body)))
	}
	if c.renderer == nil || r.form != content.HTML {
		return "", nil
	}
	rendered, err := c.renderer.Render(ctx, ch.at, r.body, r.contentType)
	switch {
	case err != nil && (ctx.Err() != nil || ends(err)):
		return "", err
	case err != nil:
		return ledger.Redact(err.Error()), nil
	}
	r.body, r.contentType = []byte(rendered), "text/html; charset=utf-8"
	ch.answer = answer.Classify(answer.Response{Status: r.resp.Status, Header: http.Header{"Content-Type": {r.contentType}}, Body: r.body})
	return "", nil
}

// learn reads what a page says besides its text: its links, descriptions of APIs, and where its Markdown is.
func (c *crawl) learn(ctx context.Context, ch *chain, r *reading) error {
	if r.form == content.HTML {
		r.html = r.body
	}
	r.head = pagehead.Read(r.resp.Header, r.html, r.contentType, productToken)
	switch {
	case r.isMarkdown() && ch.way.file != nil:
		r.page.Links = c.repo.linksOf(ch.way.file, string(r.body))
	case r.isMarkdown():
		r.page.Links = c.lists.links(cmp.Or(ch.way.twin, ch.at), string(r.body))
	}
	if err := c.api.name(ctx, ch, &r.page, r.head, r.html); err != nil {
		return err
	}
	c.api.readAs(&ch.way, r.form)
	if r.form == content.HTML {
		if err := c.lists.learn(ctx, ch, r.head); err != nil {
			return err
		}
	}
	if r.head.NoFollow {
		return nil
	}
	has := map[string]bool{}
	for _, href := range r.page.Links {
		if l, why := c.link(ch.at, href, false); why == "" && !has[l.key] && len(r.links) < maxLinks {
			has[l.key] = true
			r.links = append(r.links, l)
		}
	}
	return nil
}

// settle decides what becomes of a page that was read.
func (c *crawl) settle(ctx context.Context, ch *chain, r *reading) error {
	skip := func(e ending) error { return c.skip(ctx, ch, r.resp, e) }
	onward, why, kept, err := c.elsewhere(ctx, ch, r.page, r.head, r.html)
	switch {
	case err != nil:
		return err
	case why != "":
		e := ending{reason: why, gone: !kept, links: r.links, onward: onward}
		if why == noIndex && r.text != nil && r.form == content.HTML {
			return c.replace(ctx, ch, r.resp, r.page, r.text, r.links, func() error { return skip(e) })
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
		return c.replace(ctx, ch, r.resp, r.page, r.text, r.links, store)
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

// Why a page is skipped.
const (
	noIndex      = "it asks not to be indexed (noindex)"
	softNotFound = "it says that it was not found (a soft 404)"
	aLogin       = "a login form"
)

// elsewhere returns why a page itself says that its content should not be indexed, ""
// if it should be: it says noindex, it redirects, it was not found, or it is a copy of a page that the
// crawl may visit. onward are the pages that are requested instead. kept says that
// the page's stored content stays until it is known whether its original has any.
func (s *provider) elsewhere(ctx context.Context, ch *chain, pg content.Page, head pagehead.Head, page []byte) (onward []link, why string, kept bool, err error) {
	if to, no := s.link(ch.at, head.Refresh, false); head.Refresh != "" && to.key != ch.now.key {
		if no == "" {
			onward = append(onward, to)
		}
		return onward, fmt.Sprintf("redirects to %.500s by itself", head.Refresh), false, nil
	}
	if page != nil {
		if why, address := stub(pg, page); why != "" {
			if to, no := s.link(ch.at, address, false); address != "" && no == "" && to.key != ch.now.key {
				onward = append(onward, to)
			}
			return onward, why, false, nil
		}
		if ch.answer.Kind == answer.Soft404 {
			return nil, softNotFound, false, nil
		}
	}
	to, no := s.link(ch.at, head.Canonical, false)
	if head.Canonical != "" && no == "" {
		copied, known, err := s.copyOf(ctx, ch, to)
		if err != nil {
			return nil, "", false, err
		}
		if copied {
			return []link{to}, copyBegins + to.key + copyNames, !known, nil
		}
	}
	if head.NoIndex {
		return nil, noIndex, false, nil
	}
	return nil, "", false, nil
}

// read extracts the content of a body.
func (s *provider) read(ctx context.Context, ch *chain, r *reading) (err error) {
	t := &pageContent{}
	switch {
	case r.described != nil:
		t.files = 1
		r.page, err = r.described.Page()
	case r.form == content.PDF:
		r.page, err = pdf.Read(ctx, r.body)
	default:
		r.page, err = content.Read(r.form, r.body, r.contentType, content.Options{Base: ch.at, Content: s.policy.CustomSelectors.Content, Remove: s.policy.CustomSelectors.Remove, Keep: s.policy.KeepQueryParams})
	}
	if err != nil || r.page.Empty {
		return err
	}
	t.title, t.blocks = r.page.Title, chunk.Blocks(r.page.Markdown)
	if r.page.Pages != nil {
		t.chunks = chunk.SplitPages(ch.now.key, r.page.Markdown, r.page.Pages, chunk.Default)
	} else {
		t.chunks = chunk.Split(ch.now.key, r.page.Markdown, r.page.Anchors, chunk.Default)
	}
	if len(t.chunks) == 0 {
		return nil
	}
	if t.outline() > maxOutline {
		return fmt.Errorf("its headings, repeated with each of its %d blocks, are over %d MB", len(t.blocks), maxOutline>>20)
	}
	h := sha256.New()
	for _, b := range t.blocks {
		_, _ = h.Write([]byte(strings.Join(b.Path, "\x00") + "\x01" + b.Hash + "\x02")) // a hash.Hash never fails
	}
	t.hash = hex.EncodeToString(h.Sum(nil))
	r.text = t
	return nil
}

// pagePart answers a page's request for a script or data of the provider's own host. The
// error ends the crawl.
func (s *provider) pagePart(ctx context.Context, page, u *url.URL) (answer browser.Asset, refused bool, err error) {
	if u.Scheme != page.Scheme || canonical.Host(u) != s.host {
		return browser.Asset{}, true, nil
	}
	resp, alone, err := s.get(ctx, "", polite.Request{URL: u.String(), Accept: "*/*", Header: http.Header{"Accept-Language": {acceptLanguage}}, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: -1, Once: true})
	if err != nil || alone != nil || resp.Truncated || resp.Status/100 != 2 {
		return browser.Asset{}, true, err // the page works without it, as in a reader's browser
	}
	return browser.Asset{Status: resp.Status, Kind: resp.Header.Get("Content-Type"), Body: resp.Body}, false, nil
}

// maxStub is the maximum size in bytes of the Markdown of a page that only says that it
// redirects, maxScriptStub that of a page that a script redirects, in HTML.
const (
	maxStub       = 400
	maxScriptStub = 4 << 10
)

// stub returns why a page of HTML only leads to another one, "" if it does not, and the address
// to which its script leads.
func stub(pg content.Page, page []byte) (why, to string) {
	if len(pg.Markdown) > maxStub {
		return "", ""
	}
	if m := moves.FindSubmatch(page); m != nil && len(page) <= maxScriptStub {
		to = string(m[1]) + string(m[2])
		why = fmt.Sprintf("redirects to %.500s by a script", to)
	}
	if strings.HasPrefix(strings.ToLower(pg.Title), "redirecting") {
		why = "says only that it redirects"
	}
	return why, to
}

// moves finds a script that leads the browser to another page.
var moves = regexp.MustCompile(`(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location(?:\.href)?\s*=\s*["']([^"'\s]+)["']|(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location\.(?:replace|assign)\(\s*["']([^"'\s]+)["']`)
