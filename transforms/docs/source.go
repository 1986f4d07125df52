package docs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/pdf"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// sources turn pages into texts.
type sources struct {
	*provider
	lists    *lists
	repo     *repository
	api      *descriptions
	renderer *browser.Browser // for a policy with spa_rendering
}

// way is how the text of a page is got.
type way struct {
	source policy.Source
	reason string
	twin   *url.URL // asked for instead of the page
	accept string
	text   string        // of a page in a llms-full.txt
	said   rights.Rights // of that llms-full.txt
	same   bool          // the text has not changed since it was read
	file   *repoFile
}

// id tells ways apart by which the same page may have another text.
func (w way) id() string {
	at := w.twin
	switch {
	case w.source == policy.LLMsFull:
		return "/full"
	case w.file != nil:
		at = w.file.at
	case at == nil && w.accept == acceptMarkdown:
		return "/accept"
	case at == nil:
		return ""
	}
	sum := sha256.Sum256([]byte(at.String()))
	return "/" + hex.EncodeToString(sum[:6])
}

// media is what the way knows better than the answer's Content-Type.
func (w way) media(contentType string) string {
	if w.twin == nil && w.text == "" {
		return contentType
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		params = nil
	}
	return mime.FormatMediaType("text/markdown", params)
}

// byHTML is the way of a page that is asked for itself.
func byHTML(reason string) way { return way{source: policy.HTML, reason: reason, accept: accept} }

// wayTo chooses the best source of a page.
func (s *sources) wayTo(ctx context.Context, p *page) (way, error) {
	if w, ok := s.repo.way(p); ok {
		return w, nil
	}
	if w, ok := s.api.way(p); ok {
		return w, nil
	}
	if s.policy.SPARendering {
		return byHTML("the policy renders pages"), nil
	}
	why := "nothing else has it"
	if p.depth == 0 {
		return byHTML("a seed, whose navigation names pages that a list may leave out"), nil
	}
	for _, o := range s.policy.Order() {
		switch o {
		case policy.LLMsFull:
			if w, ok := s.lists.fullWay(p); ok {
				return w, nil
			}
		case policy.Markdown:
			w, no, err := s.lists.markdownWay(ctx, p)
			if err != nil || no == "" {
				return w, err
			}
			why = no
		case policy.HTML:
			return byHTML(why), nil
		case policy.OpenAPI, policy.GitHub: // they have pages of their own
		}
	}
	return byHTML(why), nil
}

// given returns the answer for a page that needs no request of its own, nil for another page.
func (ch *chain) given() *web.Response {
	switch {
	case ch.way.same:
		return &web.Response{Status: http.StatusNotModified}
	case ch.way.text != "":
		return &web.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/markdown; charset=utf-8"}},
			Body: []byte(ch.way.text), FinalURL: ch.at.String()}
	}
	return nil
}

// contentVersion changes when the program makes other content from the same page than
// before. Otherwise a 304 would keep the content of an older version.
const contentVersion = "12"

// readBy identifies what turns a page into content: this program's version and the
// policy's selectors.
func readBy(p policy.Policy) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{contentVersion, p.CustomSelectors.Content, fmt.Sprint(p.SPARendering)},
		p.CustomSelectors.Remove...), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// pageContent is what was read from a page.
type pageContent struct {
	title    string
	language string // BCP 47
	hash     string
	linked   string // Markdown with links, of a page that may be kept whole
	chunks   []chunk.Chunk
	blocks   []chunk.Block
	fetched  time.Time
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
	html        []byte // of a page of HTML
	page        content.Page
	head        pagehead.Head
	text        *pageContent // nil: none
	links       []link
}

func (r *reading) isMarkdown() bool { return r.form == content.Text && isMarkdown(r.contentType) }

// render prepares the body of an answer for its parser; why says why it cannot.
func (s *sources) render(ctx context.Context, ch *chain, r *reading) (why string, err error) {
	if r.isMarkdown() {
		r.body = []byte(llms.Twin(string(r.body)))
	}
	if s.renderer == nil || r.form != content.HTML {
		return "", nil
	}
	rendered, err := s.renderer.Render(ctx, ch.at, r.body, r.contentType, browser.Until{})
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
func (s *sources) learn(ctx context.Context, ch *chain, r *reading) error {
	if r.form == content.HTML {
		r.html = r.body
	}
	r.head = pagehead.Read(r.resp.Header, r.html, r.contentType, robots.ProductToken(s.client.Agent(ch.at)))
	switch {
	case r.isMarkdown() && ch.way.file != nil:
		r.page.Links = s.repo.linksOf(ch.way.file, string(r.body))
	case r.isMarkdown():
		r.page.Links = s.lists.links(cmp.Or(ch.way.twin, ch.at), string(r.body))
	}
	if err := s.api.name(ctx, ch, &r.page, r.head, r.html); err != nil {
		return err
	}
	s.api.readAs(&ch.way, r.form)
	if r.form == content.HTML {
		if err := s.lists.learn(ctx, ch, r.head); err != nil {
			return err
		}
	}
	if r.head.NoFollow {
		return nil
	}
	has := map[string]bool{}
	for _, href := range r.page.Links {
		if l, why := s.link(ch.at, href, false); why == "" && !has[l.key] && len(r.links) < maxLinks {
			has[l.key] = true
			r.links = append(r.links, l)
		}
	}
	return nil
}

// Why a page is skipped.
const (
	noIndex      = "it asks not to be indexed (noindex)"
	softNotFound = "it says that it was not found (a soft 404)"
	aLogin       = "a login form"
)

// elsewhere returns why a page itself says that its content should not be indexed, "" if it should be: noindex, a redirect, not found, a
// copy. onward are the pages that are requested instead. kept says that the stored content stays until it is known whether the original
// has any.
func (s *provider) elsewhere(ctx context.Context, ch *chain, pg content.Page, head pagehead.Head, page []byte) (onward []link, why string,
	kept bool, err error) {
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
	if r.form == content.PDF {
		r.page, err = pdf.Read(ctx, r.body)
	} else {
		r.page, err = content.Read(r.form, r.body, r.contentType, content.Options{Base: ch.at, Content: s.policy.CustomSelectors.Content,
			Remove: s.policy.CustomSelectors.Remove, Keep: s.policy.KeepQueryParams, Links: s.policy.Terms == policy.Allowed})
	}
	if err != nil || r.page.Empty {
		return err
	}
	t.title, t.blocks = r.page.Title, chunk.Blocks(r.page.Markdown)
	t.linked = cmp.Or(r.page.Linked, r.page.Markdown)
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
	resp, alone, err := s.get(ctx, "", polite.Request{URL: u.String(), Accept: "*/*",
		Header: http.Header{"Accept-Language": {acceptLanguage}}, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: -1, Once: true})
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
