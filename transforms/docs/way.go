package docs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

// acceptMarkdown asks for a page's Markdown where the site has it.
const acceptMarkdown = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/xml;q=0.8, */*;q=0.7"

// way is how the text of a page is got.
type way struct {
	source policy.Source
	reason string
	twin   *url.URL // asked for instead of the page
	accept string
	text   string // of a page in a llms-full.txt
	same   bool   // the text has not changed since it was read
	whole  bool   // it is asked for without conditions
	file   *repoFile
}

// id tells ways apart by which the same page may have another text.
func (w way) id() string {
	switch {
	case w.source == policy.LLMsFull:
		return "/full"
	case w.file != nil:
		sum := sha256.Sum256([]byte(w.file.at.String()))
		return "/" + hex.EncodeToString(sum[:6])
	case w.twin != nil:
		sum := sha256.Sum256([]byte(w.twin.String()))
		return "/" + hex.EncodeToString(sum[:6])
	case w.accept == acceptMarkdown:
		return "/accept"
	}
	return ""
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
func (c *crawl) wayTo(ctx context.Context, p *page) (way, error) {
	o := &c.offers
	if w, ok := c.fileWay(p); ok {
		return w, nil
	}
	if why := c.describes(p); why != "" {
		return way{source: policy.OpenAPI, reason: why, accept: acceptAPI}, nil
	}
	if c.policy.SPARendering {
		return byHTML("the policy renders pages"), nil
	}
	why := "nothing else has it"
	if p.depth == 0 {
		return byHTML("a seed, whose navigation names pages that a list may leave out"), nil
	}
	for _, s := range c.policy.Order() {
		switch s {
		case policy.LLMsFull:
			text, in := o.pages[p.key]
			w := way{source: s, reason: "in " + o.full, text: text}
			if w.same = o.fullSame && o.from[p.key] == string(s) && p.contentHash != "" && p.readBy == c.readBy+w.id(); in || w.same {
				return w, nil
			}
		case policy.Markdown:
			// Markdown has no navigation. So it is asked for only where something else says
			// which pages there are.
			if o.list == "" {
				why = "no list names the pages, so that their navigation is needed"
				continue
			}
			w, no, err := c.markdownWay(ctx, p)
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

// markdownWay is the way to a page's Markdown: its twin, or else the page's address
// with an Accept header that prefers Markdown.
func (c *crawl) markdownWay(ctx context.Context, p *page) (w way, no string, err error) {
	o := &c.offers
	w = way{source: policy.Markdown, reason: "the site answers Accept: text/markdown", accept: acceptMarkdown}
	twin := o.twins[p.key]
	if twin != "" {
		w.reason = o.list + " names " + twin
	} else if o.rule != "" && !o.noTwins && !strings.Contains(p.address, "?") {
		twin = strings.TrimSuffix(p.address, "/") + o.rule
		w.reason = "the site has Markdown at " + twin
	}
	if twin == "" {
		return w, "", nil
	}
	u, err := url.Parse(twin)
	if err != nil || c.offLimits(u) != "" {
		return way{}, "the policy does not allow " + twin, nil
	}
	r, err := c.robots(ctx, u)
	switch {
	case c.failsPageOnly(u, err):
		return way{}, err.Error(), nil
	case err != nil:
		return way{}, "", err
	}
	if not := r.Check(u); not != nil {
		return way{}, not.Error(), nil
	}
	w.twin, w.accept = u, acceptMarkdown
	return w, "", nil
}

// given ends a page whose text is there without a request of its own. done is false for
// another page.
func (c *crawl) given(ctx context.Context, ch *chain) (done bool, err error) {
	switch {
	case ch.way.same:
		links, err := c.stored(ctx, ch.now.key)
		if err != nil {
			return true, err
		}
		return true, c.end(ctx, ch, ending{status: NotModified, http: http.StatusNotModified, links: links})
	case ch.way.file != nil && ch.way.file.Size > maxPage:
		c.w.Log.Warn("page_too_large", "provider", c.policy.ProviderID, "url", ch.at.String(), "limit", maxPage)
		return true, c.end(ctx, ch, ending{status: TooLarge, reason: "longer than 5 MB"})
	case ch.way.text != "":
		return true, c.index(ctx, ch, &web.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/markdown; charset=utf-8"}}, Body: []byte(ch.way.text), FinalURL: ch.at.String()})
	case c.offers.inFiles[ch.now.key]:
		resp, err := c.resumed(ctx, ch)
		if err != nil || resp == nil {
			return err != nil, err
		}
		return true, c.receive(ctx, ch, resp)
	}
	return false, nil
}

// maxTwinMisses is how many twins may be missing, one after another, until the site is
// taken to have none by a rule.
const maxTwinMisses = 3

// twinFails reports whether the answer for a page's twin is no Markdown. The page itself is
// asked for then.
func (c *crawl) twinFails(ctx context.Context, ch *chain, resp *web.Response) (bool, error) {
	if ch.way.twin == nil || resp.Status == http.StatusNotModified {
		return false, nil
	}
	form, media := content.Kind(resp.Header.Get("Content-Type"), resp.Body)
	why := ""
	switch {
	case resp.Status != http.StatusOK:
		why = fmt.Sprintf("status %d", resp.Status)
	case form != content.Text || !llms.IsMarkdown(string(resp.Body)):
		why = "no Markdown but " + media
	case resp.Truncated:
		why = "it ends early"
	}
	twin, ruled := ch.way.twin.String(), c.offers.twins[ch.page.key] == ""
	if why == "" {
		if c.twinMisses = 0; ruled && c.offers.guessed {
			c.offers.guessed = false
		}
		return false, nil
	}
	c.twinMisses++
	if ruled && (c.offers.guessed || c.twinMisses >= maxTwinMisses) {
		c.offers.noTwins = true
		if err := c.noteOffer(ctx, string(policy.Markdown), c.offers.rule, "missing", twin+": "+why, nil); err != nil {
			return true, err
		}
	}
	ch.way = byHTML(fmt.Sprintf("%s: %s", twin, why))
	return true, nil
}

// answered corrects the source by the answer to a request that prefers Markdown.
func (c *crawl) answered(ch *chain, resp *web.Response) {
	if ch.way.twin != nil || ch.way.accept != acceptMarkdown || isRedirect(resp) {
		return
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.Status == http.StatusNotModified && c.offers.from[ch.now.key] == string(policy.Markdown), media == "text/markdown", media == "text/x-markdown":
	default:
		ch.way.source, ch.way.reason = policy.HTML, "the site has no Markdown of it"
	}
}

// learnTwins learns from a page of HTML by which rule the site's Markdown is named. A
// site that says nothing is tried once with the usual rule.
func (c *crawl) learnTwins(ctx context.Context, ch *chain, head pagehead.Head) error {
	o := &c.offers
	if o.list == "" || o.rule != "" || o.noTwins || ch.page.depth == 0 && head.Markdown == "" || !c.isOn(policy.Markdown) {
		return nil
	}
	if head.Markdown == "" && (len(o.twins) > 0 || o.full != "") { // the list names them, or most texts are there
		return nil
	}
	rule := usualRule
	if o.guessed = true; head.Markdown != "" {
		to, err := ch.at.Parse(head.Markdown)
		if err != nil {
			return nil //nolint:nilerr // what a page says wrongly is as if it said nothing
		}
		after, ok := strings.CutPrefix(to.String(), strings.TrimSuffix(ch.at.String(), "/"))
		if !ok || !isTwinRule(after) {
			return nil
		}
		rule, o.guessed = after, false
	}
	var n int
	if err := c.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_sources WHERE provider = $1 AND source = $2 AND address = $3 AND state = 'missing' AND read_by = $4 AND checked_at > $5`,
		c.policy.ProviderID, policy.Markdown, rule, c.readBy, c.clock.Now().Add(-missKept).UnixMicro()).Scan(&n); err != nil {
		return fmt.Errorf("looking for what %s offers: %w", c.policy.ProviderID, err)
	}
	if o.noTwins = n > 0; !o.noTwins {
		o.rule = rule
	}
	return nil
}

// usualRule is what most sites add to a page's address for its Markdown.
const usualRule = ".md"

func isTwinRule(end string) bool {
	for _, n := range markdownNames {
		if end == n.end {
			return true
		}
	}
	return false
}

// markdownLinks are the links of a page's Markdown. Links to the Markdown of other
// pages stand for those pages.
func (c *crawl) markdownLinks(ch *chain, markdown string) (out []string) {
	if ch.way.file != nil {
		return c.fileLinksOf(ch.way.file, markdown)
	}
	base := ch.at
	if ch.way.twin != nil {
		base = ch.way.twin
	}
	for _, l := range llms.Links(markdown, content.MaxLinks) {
		if to, why := c.pageOf(base, l.Href); why == "" {
			out = append(out, to.address)
		}
	}
	return out
}
