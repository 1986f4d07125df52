package docs

import (
	"context"
	"database/sql"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

const (
	// maxFull is the maximum size of a llms-full.txt, which stays in memory for the crawl.
	maxFull = 20 << 20
	// maxLists is the maximum number of llms.txt that are read: one may list others.
	maxLists = 10
	// maxListed is the maximum number of links of one llms.txt that are read.
	maxListed = 10_000
	// maxTwinMisses is how many twins may be missing, one after another, until the site is
	// taken to have none by a rule.
	maxTwinMisses = 3
	// usualRule is what most sites add to a page's address for its Markdown.
	usualRule = ".md"
)

// Names in docs_sources of what is no policy.Source: lists of pages.
const (
	listLLMs    = "llms"
	listSitemap = "sitemap"
)

// acceptMarkdown asks for a page's Markdown where the site has it.
const acceptMarkdown = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/xml;q=0.8, */*;q=0.7"

// lists are the sources that a site has for language models: a llms.txt, which lists the pages, their
// texts in a llms-full.txt, and the Markdown of each page at an address of its own, its twin.
type lists struct {
	*provider
	list     string            // the address that lists the pages; "": nothing does
	llms     string            // the llms.txt
	twins    bool              // it names the Markdown of pages
	full     string            // address of the llms-full.txt
	fullSame bool              // it has not changed: neither have the pages that came from it
	pages    map[string]string // the texts in it, by key
	fullSaid rights.Rights     // what its response says
	rule     string            // what a page's address gets to be that of its Markdown; "": unknown
	guessed  bool              // no site said so
	noTwins  bool              // the site has no twins by a rule
	misses   int               // of twins, one after another
}

// load reads what earlier runs found out. When a session is resumed, that is
// not asked for again, except for a llms-full.txt whose texts are still needed.
func (s *lists) load(ctx context.Context) error {
	if s.onlyHTML() {
		return nil
	}
	if err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs_page_sources WHERE provider = $1 AND twin <> '')`,
		s.id).Scan(&s.twins); err != nil {
		return fmt.Errorf("looking for the Markdown of %s: %w", s.id, err)
	}
	if s.part.fresh {
		return nil
	}
	type row struct{ source, address, state string }
	for r, err := range db.Select(ctx, s.db, func(rows *sql.Rows) (r row, err error) { return r, rows.Scan(&r.source, &r.address, &r.state) },
		`SELECT source, address, state FROM docs_sources WHERE provider = $1 AND session = $2 AND state NOT IN ('missing', 'failed')
			ORDER BY source, address`, s.id, s.part.session) {
		switch {
		case err != nil:
			return fmt.Errorf("reading what %s offers: %w", s.id, err)
		case r.source == listLLMs, r.source == listSitemap:
			s.list = r.address
		case r.source == string(policy.LLMsFull):
			s.full, s.fullSame = r.address, r.state == "same"
		}
	}
	if s.full == "" || s.fullSame {
		return nil
	}
	var left int
	if err := s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_pages WHERE provider = $1 AND session = $2 AND status = $3`, s.id,
		s.part.session, Queued).Scan(&left); err != nil || left == 0 {
		return err
	}
	return s.fetchFull(ctx, s.full, false)
}

// discover asks the site for what it offers besides its pages, and returns the pages
// that its llms.txt lists.
func (s *lists) discover(ctx context.Context) (listed []link, err error) {
	if !s.isOn(policy.LLMsFull) && !s.isOn(policy.Markdown) {
		return nil, nil
	}
	for _, at := range s.addresses() {
		if listed, err = s.readLists(ctx, at); err != nil || len(listed) > 0 {
			break
		}
	}
	if err != nil || s.llms == "" || !s.isOn(policy.LLMsFull) {
		return listed, err
	}
	return listed, s.fetchFull(ctx, strings.TrimSuffix(s.llms, ".txt")+"-full.txt", !s.part.stats.Again)
}

// addresses are where a llms.txt may be: in the folder of the documentation, and
// at the root of its host.
func (s *lists) addresses() (out []string) {
	u, err := canonical.Address(nil, s.policy.SeedURLs[0], nil)
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
func (s *lists) readLists(ctx context.Context, first string) (listed []link, err error) {
	queue := []string{first}
	has := map[string]bool{}
	for n := 0; n < len(queue) && n < maxLists; n++ {
		var links []llms.Link
		why, err := s.text(ctx, listLLMs, queue[n], maxPage, false, func(body string) { links = llms.Links(body, maxListed) })
		if err != nil {
			return nil, err
		}
		if why != "" {
			continue
		}
		before := len(listed)
		base, _ := url.Parse(queue[n]) // text has read it
		for _, l := range links {
			u, err := base.Parse(l.Href)
			if err != nil {
				continue
			}
			if u.Fragment = ""; path.Base(u.Path) == "llms.txt" && !slices.Contains(queue, u.String()) {
				queue = append(queue, u.String())
			}
			if to, no := s.pageOf(base, l.Href); no == "" && !has[to.key] && len(listed) < maxQueued {
				has[to.key], s.twins = true, s.twins || to.twin != ""
				listed = append(listed, to)
			}
		}
		state, reason := "found", fmt.Sprintf("it lists %d pages", len(listed)-before)
		if len(listed) == before {
			state, reason = "missing", "it lists no page that the policy allows"
		} else if s.llms == "" {
			s.llms, s.list = queue[n], queue[n]
		}
		if err := s.note(ctx, listLLMs, queue[n], state, reason, nil); err != nil {
			return nil, err
		}
	}
	return listed, nil
}

// fetchFull reads a llms-full.txt.
func (s *lists) fetchFull(ctx context.Context, address string, conditional bool) error {
	var pages []llms.Page
	why, err := s.text(ctx, string(policy.LLMsFull), address, maxFull, conditional, func(body string) { pages = llms.Pages(body, maxQueued) })
	if err != nil || why != "" {
		return err
	}
	if s.fullSame {
		s.full = address
		return nil
	}
	s.pages = map[string]string{}
	base, _ := url.Parse(address) // text has read it
	for _, p := range pages {
		l, no := s.pageOf(base, p.Address)
		if _, twice := s.pages[l.key]; no == "" && !twice && len(p.Text) <= maxPage {
			s.pages[l.key] = p.Text
		}
	}
	state, reason := "found", fmt.Sprintf("it has the text of %d pages that the policy allows", len(s.pages))
	if len(s.pages) == 0 {
		state, reason = "missing", "it does not say which text is of which page that the policy allows"
	} else {
		s.full = address
	}
	return s.note(ctx, string(policy.LLMsFull), address, state, reason, nil)
}

// text fetches a file of Markdown, which read gets. 304 sets fullSame.
func (s *lists) text(ctx context.Context, source, address string, most int64, conditional bool, read func(string)) (why string, err error) {
	resp, why, err := s.offered(ctx, offer{source: source, address: address, accept: "text/plain, text/markdown, */*;q=0.5",
		most: most, conditional: conditional, lacks: notMarkdown})
	if err != nil || why != "" {
		return why, err
	}
	if resp.Status == http.StatusNotModified {
		s.fullSame = true
		return "", nil
	}
	if source == string(policy.LLMsFull) {
		s.fullSaid, _ = s.ofFile(ctx, resp) // offered refuses one that is reserved
	}
	parse := func() error { read(strings.ToValidUTF8(string(resp.Body), "\uFFFD")); return nil }
	if why, err := s.reading(ctx, address, len(resp.Body), parse); why != "" || err != nil {
		return why, err
	}
	return "", s.note(ctx, source, address, "found", "", resp.Header)
}

// notMarkdown says what an answer is, "" for Markdown.
func notMarkdown(resp *web.Response) string {
	form, media := content.Kind(resp.Header.Get("Content-Type"), resp.Body)
	if form != content.Text || !llms.IsMarkdown(string(resp.Body)) {
		return "no Markdown but " + media
	}
	return ""
}

// fullWay is the way to a page whose text is in the llms-full.txt.
func (s *lists) fullWay(p *page) (w way, ok bool) {
	text, in := s.pages[p.key]
	w = way{source: policy.LLMsFull, reason: "in " + s.full, text: text, said: s.fullSaid}
	w.same = s.fullSame && p.source == policy.LLMsFull && p.contentHash != "" && p.readBy == s.readBy+w.id()
	return w, in || w.same
}

// markdownWay is the way to a page's Markdown: its twin, or else the page's address
// with an Accept header that prefers Markdown.
func (s *lists) markdownWay(ctx context.Context, p *page) (w way, no string, err error) {
	// Markdown has no navigation. So it is asked for only where something else says
	// which pages there are.
	if s.list == "" {
		return way{}, "no list names the pages, so that their navigation is needed", nil
	}
	w = way{source: policy.Markdown, reason: "the site answers Accept: text/markdown", accept: acceptMarkdown}
	twin := p.twin
	if twin != "" {
		w.reason = s.list + " names " + twin
	} else if s.rule != "" && !s.noTwins && !strings.Contains(p.address, "?") {
		twin = strings.TrimSuffix(p.address, "/") + s.rule
		w.reason = "the site has Markdown at " + twin
	}
	if twin == "" {
		return w, "", nil
	}
	u, err := url.Parse(twin)
	if err != nil || s.offLimits(u) != "" {
		return way{}, "the policy does not allow " + twin, nil
	}
	r, err := s.robots(ctx, u)
	switch {
	case s.failsPageOnly(u, err):
		return way{}, err.Error(), nil
	case err != nil:
		return way{}, "", err
	}
	if not := r.Check(u); not != nil {
		return way{}, not.Error(), nil
	}
	w.twin = u
	return w, "", nil
}

// fails reports whether the answer for a page's twin is no Markdown. The page itself is
// asked for then.
func (s *lists) fails(ctx context.Context, ch *chain, resp *web.Response) (bool, error) {
	if ch.way.twin == nil || resp.Status == http.StatusNotModified {
		return false, nil
	}
	why := notMarkdown(resp)
	switch {
	case resp.Status != http.StatusOK:
		why = fmt.Sprintf("status %d", resp.Status)
	case why == "" && resp.Truncated:
		why = "it ends early"
	}
	twin, ruled := ch.way.twin.String(), ch.page.twin == ""
	if why == "" {
		s.misses, s.guessed = 0, s.guessed && !ruled
		return false, nil
	}
	s.misses++
	if ruled && (s.guessed || s.misses >= maxTwinMisses) {
		s.noTwins = true
		if err := s.note(ctx, string(policy.Markdown), s.rule, "missing", twin+": "+why, nil); err != nil {
			return true, err
		}
	}
	ch.way = byHTML(fmt.Sprintf("%s: %s", twin, why))
	return true, nil
}

// answered corrects the source by the answer to a request that prefers Markdown.
func (ch *chain) answered(resp *web.Response) {
	if ch.way.twin != nil || ch.way.accept != acceptMarkdown || isRedirect(resp) || isMarkdown(resp.Header.Get("Content-Type")) ||
		resp.Status == http.StatusNotModified && ch.now.source == policy.Markdown {
		return
	}
	ch.way.source, ch.way.reason = policy.HTML, "the site has no Markdown of it"
}

// isMarkdown reports whether a Content-Type is Markdown's.
func isMarkdown(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/markdown" || media == "text/x-markdown"
}

// learn learns from a page of HTML by which rule the site's Markdown is named. A
// site that says nothing is tried once with the usual rule.
func (s *lists) learn(ctx context.Context, ch *chain, head pagehead.Head) error {
	if s.list == "" || s.rule != "" || s.noTwins || ch.page.depth == 0 && head.Markdown == "" || !s.isOn(policy.Markdown) {
		return nil
	}
	if head.Markdown == "" && (s.twins || s.full != "") { // the list names them, or most texts are there
		return nil
	}
	rule := usualRule
	if s.guessed = true; head.Markdown != "" {
		to, err := ch.at.Parse(head.Markdown)
		if err != nil {
			return nil //nolint:nilerr // what a page says wrongly is as if it said nothing
		}
		after, ok := strings.CutPrefix(to.String(), strings.TrimSuffix(ch.at.String(), "/"))
		if !ok || !slices.ContainsFunc(markdownNames, func(n struct{ end, page string }) bool { return n.end == after }) {
			return nil
		}
		rule, s.guessed = after, false
	}
	err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs_sources
		WHERE provider = $1 AND source = $2 AND address = $3 AND state = 'missing' AND read_by = $4 AND checked_at > $5)`,
		s.id, policy.Markdown, rule, s.readBy, db.Micros(s.clock.Now().Add(-missKept))).Scan(&s.noTwins)
	if err != nil {
		return fmt.Errorf("looking for what %s offers: %w", s.id, err)
	}
	if !s.noTwins {
		s.rule = rule
	}
	return nil
}

// links are the links of a page's Markdown. Links to the Markdown of other
// pages stand for those pages.
func (s *lists) links(base *url.URL, markdown string) (out []string) {
	for _, l := range llms.Links(markdown, content.MaxLinks) {
		if to, why := s.pageOf(base, l.Href); why == "" {
			out = append(out, to.address)
		}
	}
	return out
}
