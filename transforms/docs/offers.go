package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

const (
	// missKept is how long a site is not asked again for what it did not have.
	missKept = 28 * 24 * time.Hour
	// maxFull is the maximum size of a llms-full.txt, which stays in memory for the crawl.
	maxFull = 20 << 20
	// maxLists is the maximum number of llms.txt that are read: one may list others.
	maxLists = 10
	// maxListed is the maximum number of links of one llms.txt that are read.
	maxListed = 10_000
)

// Names in docs_sources of what is no policy.Source: lists of pages.
const (
	listLLMs    = "llms"
	listSitemap = "sitemap"
)

// offered is what a site offers besides its pages.
type offered struct {
	list     string            // the address that lists the pages; "": nothing does
	llms     string            // the llms.txt
	twins    map[string]string // the addresses of pages' Markdown, by key
	from     map[string]string // the sources of pages' stored content, by key
	full     string            // address of the llms-full.txt
	fullSame bool              // it has not changed: neither have the pages that came from it
	pages    map[string]string // the texts in it, by key
	rule     string            // what a page's address gets to be that of its Markdown; "": unknown
	guessed  bool              // no site said so
	noTwins  bool              // the site has no twins by a rule

	described   map[string]string // why pages are taken to be descriptions of APIs, by key
	named       map[string]bool   // addresses of descriptions that were noted in this session
	places      []link            // where descriptions were found that no page names
	placesTried bool
	inFiles     map[string]bool // keys of descriptions that are in several files

	files     map[string]*repoFile // of the repository, by the key of the page
	fileLinks map[string]link      // the pages of its files, by the address of the file
	filePages []link
	filesOnly bool // there are no other pages
}

// isOn reports whether the policy has a source.
func (c *crawl) isOn(s policy.Source) bool { return slices.Contains(c.policy.Order(), s) }

// onlyHTML reports whether all pages come from themselves, so that nothing else is asked
// for or recorded.
func (c *crawl) onlyHTML() bool { return c.policy.Order()[0] == policy.HTML }

// loadOffers reads what earlier runs found out. When a session is resumed, that is
// not asked for again, except for a llms-full.txt whose texts are still needed.
func (c *crawl) loadOffers(ctx context.Context) error {
	o := &c.offers
	o.twins, o.from = map[string]string{}, map[string]string{}
	if err := c.loadRepository(ctx); err != nil {
		return err
	}
	if err := c.loadDescriptions(ctx); err != nil || c.onlyHTML() {
		return err
	}
	rows, err := c.db.QueryContext(ctx, `SELECT key, source, twin FROM docs_page_sources WHERE provider = $1`, c.policy.ProviderID)
	if err == nil {
		err = each(rows, func() error {
			var key, source, twin string
			err := rows.Scan(&key, &source, &twin)
			if o.from[key] = source; twin != "" {
				o.twins[key] = twin
			}
			return err
		})
	}
	if err == nil && !c.part.fresh {
		err = c.resumeOffers(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading what %s offers: %w", c.policy.ProviderID, err)
	}
	return nil
}

func (c *crawl) resumeOffers(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx, `SELECT source, address, state FROM docs_sources WHERE provider = $1 AND session = $2 AND state NOT IN ('missing', 'failed') ORDER BY source, address`, c.policy.ProviderID, c.part.session)
	if err != nil {
		return err
	}
	full, same := "", false
	if err := each(rows, func() error {
		var source, address, state string
		err := rows.Scan(&source, &address, &state)
		switch source {
		case listLLMs, listSitemap:
			c.offers.list = address
		case string(policy.LLMsFull):
			full, same = address, state == "same"
		}
		return err
	}); err != nil || full == "" {
		return err
	}
	c.offers.full, c.offers.fullSame = full, same
	var left int
	if err := c.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_pages WHERE provider = $1 AND session = $2 AND status = $3`, c.policy.ProviderID, c.part.session, Queued).Scan(&left); err != nil || left == 0 || same {
		return err
	}
	return c.fetchFull(ctx, full, false)
}

// discover asks the site for what it offers besides its pages, and returns the pages
// that its llms.txt lists.
func (c *crawl) discover(ctx context.Context) (listed []link, err error) {
	if !c.isOn(policy.LLMsFull) && !c.isOn(policy.Markdown) {
		return nil, nil
	}
	for _, at := range c.listAddresses() {
		if listed, err = c.readLists(ctx, at); err != nil || len(listed) > 0 {
			break
		}
	}
	if err != nil || c.offers.llms == "" || !c.isOn(policy.LLMsFull) {
		return listed, err
	}
	full := strings.TrimSuffix(c.offers.llms, ".txt") + "-full.txt"
	return listed, c.fetchFull(ctx, full, !c.part.stats.Again)
}

// listAddresses are where a llms.txt may be: in the folder of the documentation, and
// at the root of its host.
func (c *crawl) listAddresses() (out []string) {
	u, err := canonical.Address(nil, c.policy.SeedURLs[0], nil)
	if err != nil {
		return nil
	}
	if folder := folderOf(u); folder != "" {
		out = append(out, origin(u)+"/"+folder+"/llms.txt")
	}
	return append(out, origin(u)+"/llms.txt")
}

// folderOf is the first folder of a seed URL, as in an address; "" if it has none.
func folderOf(seed *url.URL) string {
	folder, _, _ := strings.Cut(strings.TrimPrefix(seed.Path, "/"), "/")
	if path.Ext(folder) != "" {
		return ""
	}
	return url.PathEscape(folder)
}

// readLists reads a llms.txt and those that it lists.
func (c *crawl) readLists(ctx context.Context, first string) (listed []link, err error) {
	queue := []string{first}
	has := map[string]bool{}
	for n := 0; n < len(queue) && n < maxLists; n++ {
		var links []llms.Link
		why, err := c.offerText(ctx, listLLMs, queue[n], maxPage, false, func(body string) { links = llms.Links(body, maxListed) })
		if err != nil {
			return nil, err
		}
		if why != "" {
			continue
		}
		before := len(listed)
		base, _ := url.Parse(queue[n]) // offer has read it
		for _, l := range links {
			u, err := base.Parse(l.Href)
			if err != nil {
				continue
			}
			if u.Fragment = ""; path.Base(u.Path) == "llms.txt" && !slices.Contains(queue, u.String()) {
				queue = append(queue, u.String())
			}
			if to, no := c.pageOf(base, l.Href); no == "" && !has[to.key] && len(listed) < maxQueued {
				has[to.key] = true
				listed = append(listed, to)
			}
		}
		found := len(listed) - before
		if found == 0 {
			if err := c.noteOffer(ctx, listLLMs, queue[n], "missing", "it lists no page that the policy allows", nil); err != nil {
				return nil, err
			}
			continue
		}
		if c.offers.llms == "" {
			c.offers.llms, c.offers.list = queue[n], queue[n]
		}
		if err := c.noteOffer(ctx, listLLMs, queue[n], "found", fmt.Sprintf("it lists %d pages", found), nil); err != nil {
			return nil, err
		}
	}
	return listed, nil
}

// markdownNames are how the address of a page's Markdown ends (llmstxt.org), and what
// the page's own has instead.
var markdownNames = []struct{ end, page string }{{"/index.html.md", "/"}, {"/index.md", "/"}, {".md", ""}, {".mdx", ""}}

// pageOf is link for an address that may be that of a page's Markdown: the page is then
// the one without the ending.
func (c *crawl) pageOf(base *url.URL, href string) (link, string) {
	l, why := c.link(base, href, false)
	if why != "" && l.key == "" {
		return l, why
	}
	u, err := url.Parse(l.address)
	if err != nil {
		return l, why
	}
	if name := path.Base(u.Path); name == "llms.txt" || name == "llms-full.txt" {
		return l, "a list of pages"
	}
	for _, n := range markdownNames {
		if before, ok := strings.CutSuffix(u.Path, n.end); ok && before+n.page != "" {
			page := *u
			page.Path, page.RawPath = before+n.page, ""
			of, why := c.link(nil, page.String(), false)
			of.twin = l.address
			return of, why
		}
	}
	return l, why
}

// fetchFull reads a llms-full.txt.
func (c *crawl) fetchFull(ctx context.Context, address string, conditional bool) error {
	o := &c.offers
	var pages []llms.Page
	why, err := c.offerText(ctx, string(policy.LLMsFull), address, maxFull, conditional, func(body string) { pages = llms.Pages(body, maxQueued) })
	switch {
	case err != nil:
		return err
	case o.fullSame:
		o.full = address
		return nil
	case why != "":
		return nil
	}
	o.pages = map[string]string{}
	base, _ := url.Parse(address) // offer has read it
	for _, p := range pages {
		l, no := c.pageOf(base, p.Address)
		if _, twice := o.pages[l.key]; no == "" && !twice && len(p.Text) <= maxPage {
			o.pages[l.key] = p.Text
		}
	}
	state, reason := "found", fmt.Sprintf("it has the text of %d pages that the policy allows", len(o.pages))
	if len(o.pages) == 0 {
		state, reason = "missing", "it does not say which text is of which page that the policy allows"
	} else {
		o.full = address
	}
	return c.noteOffer(ctx, string(policy.LLMsFull), address, state, reason, nil)
}

// offerText is offer for a file of Markdown, which read gets. 304 sets fullSame.
func (c *crawl) offerText(ctx context.Context, source, address string, most int64, conditional bool, read func(body string)) (why string, err error) {
	resp, why, err := c.offer(ctx, offerAt{source: source, address: address, accept: "text/plain, text/markdown, */*;q=0.5", most: most, conditional: conditional,
		lacks: func(resp *web.Response) string {
			form, media := content.Kind(resp.Header.Get("Content-Type"), resp.Body)
			if form != content.Text || !llms.IsMarkdown(string(resp.Body)) {
				return "no Markdown but " + media
			}
			return ""
		}})
	if err != nil || why != "" {
		return why, err
	}
	if resp.Status == http.StatusNotModified {
		c.offers.fullSame = true
		return "", nil
	}
	if why, err := c.reading(ctx, address, len(resp.Body), func() error { read(strings.ToValidUTF8(string(resp.Body), "\uFFFD")); return nil }); why != "" || err != nil {
		return why, err
	}
	return "", c.noteOffer(ctx, source, address, "found", "", resp.Header)
}

// reading reads a document that is no page, within the budget of all documents. why says that processes died at it,
// or what read says.
func (c *crawl) reading(ctx context.Context, address string, size int, read func() error) (why string, err error) {
	letter := c.deadLetter(&page{address: address}, ledger.Died, "")
	ctx, done, err := c.w.Unit(ctx, letter.Input)
	if err != nil {
		letter.Error = err.Error()
		return letter.Error, c.w.DeadLetter(ctx, letter)
	}
	defer done()
	end, err := budget.Begin(ctx, size)
	if err != nil {
		return "", err
	}
	defer end()
	if err := read(); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// offerAt is an address that is no page, and what may be there.
type offerAt struct {
	source, address, accept string
	most                    int64
	conditional             bool
	scoped                  bool                             // it needs an allowed pattern
	lacks                   func(*web.Response) (why string) // why an answer is not it
}

// offer fetches an address that is no page. why says why there is nothing, and is remembered.
func (c *crawl) offer(ctx context.Context, f offerAt) (_ *web.Response, why string, err error) {
	var state, reason, etag, modified, readBy, session string
	var checked int64
	row := c.db.QueryRowContext(ctx, `SELECT state, reason, etag, last_modified, read_by, checked_at, session FROM docs_sources WHERE provider = $1 AND source = $2 AND address = $3`, c.policy.ProviderID, f.source, f.address)
	switch err := row.Scan(&state, &reason, &etag, &modified, &readBy, &checked, &session); {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, "", fmt.Errorf("looking for %s: %w", f.address, err)
	case state == "missing" && readBy == c.readBy && c.clock.Now().Sub(db.Time(checked)) < missKept, state == "failed" && session == c.part.session:
		return nil, reason, nil
	}
	u, err := url.Parse(f.address)
	if err != nil {
		return nil, "no URL", nil
	}
	offLimits := func(u *url.URL) string {
		if f.scoped {
			_, why := c.link(nil, u.String(), false)
			return cmp.Or(why, c.offLimits(u))
		}
		return c.offLimits(u)
	}
	if why := offLimits(u); why != "" {
		return nil, why, nil
	}
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if f.conditional && state != "" && state != "missing" && state != "failed" && readBy == c.readBy {
		setIf(h, "If-None-Match", etag)
		setIf(h, "If-Modified-Since", modified)
	}
	resp, err := c.client.Get(ctx, polite.Request{URL: f.address, Accept: f.accept, Header: h, Timeout: pageTimeout, MaxBytes: f.most, MaxRedirects: maxRedirects, Once: true, Probe: true,
		Scope: func(u *url.URL) error {
			if why := offLimits(u); why != "" {
				return errors.New(why)
			}
			return nil
		}})
	err = unreachable(err)
	if resp != nil {
		c.part.stats.asked(f.source)
	}
	var failure *web.Error
	var no *polite.DisallowedError
	passing := ""
	switch {
	case resp == nil && errors.As(err, &failure) && failure.Kind != web.KindBlocked:
		passing = ledger.Redact(err.Error())
	case resp == nil && (errors.As(err, &no) || c.failsPageOnly(u, err) || errors.As(err, &failure)):
		why = ledger.Redact(err.Error())
	case err != nil:
		return nil, "", err
	case resp.Status == http.StatusNotModified:
		return resp, "", c.noteOffer(ctx, f.source, f.address, "same", reason, resp.Header)
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		passing = fmt.Sprintf("status %d", resp.Status)
	case resp.Status != http.StatusOK:
		why = fmt.Sprintf("status %d", resp.Status)
	case resp.Truncated:
		why = fmt.Sprintf("longer than %d MB, or broken off", f.most>>20)
	default:
		why = f.lacks(resp)
	}
	switch {
	case passing != "" && (state == "" || state == "failed"): // it is asked for in the next session
		return nil, passing, c.noteOffer(ctx, f.source, f.address, "failed", passing, nil)
	case passing != "":
		return nil, passing, nil
	case why != "":
		return nil, why, c.noteOffer(ctx, f.source, f.address, "missing", why, nil)
	}
	return resp, "", nil
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// offLimits says why an address that is no page is not asked for, "" if it may be: it
// needs no allowed pattern.
func (c *crawl) offLimits(u *url.URL) string {
	l, why := c.link(nil, u.String(), true)
	if why != "" {
		return why
	}
	if c.forbidden[l.key] {
		return "it answered 403 before"
	}
	return ""
}

// noteOffer records whether a site has an address. Without header the validators that
// were recorded before stay.
func (c *crawl) noteOffer(ctx context.Context, source, address, state, reason string, header http.Header) error {
	etag, modified := validator(header.Get("ETag")), validator(header.Get("Last-Modified"))
	_, err := c.db.ExecContext(ctx, `INSERT INTO docs_sources (provider, source, address, session, state, reason, etag, last_modified, read_by, checked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (provider, source, address) DO UPDATE SET session = excluded.session, state = excluded.state, reason = excluded.reason, read_by = excluded.read_by, checked_at = excluded.checked_at,
			etag = CASE WHEN excluded.etag = '' THEN docs_sources.etag ELSE excluded.etag END, last_modified = CASE WHEN excluded.last_modified = '' THEN docs_sources.last_modified ELSE excluded.last_modified END`,
		c.policy.ProviderID, source, clean(address), c.part.session, state, content.Clean(reason), etag, modified, c.readBy, db.Micros(c.clock.Now()))
	if err != nil {
		return fmt.Errorf("recording whether there is %s: %w", address, err)
	}
	c.w.Log.Info("source_checked", "provider", c.policy.ProviderID, "source", source, "url", address, "state", state, "reason", reason)
	return nil
}
