package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// keeper stores the articles of a visit.
type keeper struct {
	*visit
	held   []held // pages that may be no articles
	differ bool   // pages of this run have different texts, or times of publication
}

// save reads a page and stores the article.
func (k *keeper) save(ctx context.Context, e raw.Evidence, letter ledger.DeadLetter) error {
	u, asked, err := k.addresses(e)
	if err == nil && e.Rights != nil {
		own, _ := k.policy.Canonical(u) // addresses has checked that there is no error
		w := raw.Withheld{URL: e.Requested, Canonical: slices.Compact([]string{asked, own}), SitemapAt: e.SitemapAt, Requested: true, Rights: *e.Rights}
		if is, err := k.reserved(ctx, w); is || err != nil {
			return err
		}
	}
	var a provider.Article
	if err == nil {
		size := len(e.HTML)
		for _, page := range e.More {
			size += len(page.HTML)
		}
		end, ended := budget.Begin(ctx, size)
		if ended != nil {
			return ended
		}
		a, err = k.whole(e, u)
		end()
	}
	k.result.Health.Parsed++
	if err != nil {
		k.result.Health.Failed++
		letter.Stage, letter.Kind, letter.Retryable = "Parse", "parse_failed", false
		return errors.Join(k.keep(ctx, asked, e), k.failed(ctx, letter, err)) // for a better parser
	}
	k.believe(&a)
	h := &k.result.Health
	for _, f := range []struct {
		has bool
		n   *int
	}{{a.Title != "", &h.Titled}, {a.Body != "", &h.Bodied}, {!a.Published.IsZero(), &h.Dated}} {
		if f.has {
			*f.n++
		}
	}
	a.Title, a.Language = cmp.Or(a.Title, e.News.Title), cmp.Or(a.Language, e.News.Language)
	a = clean(a, u)
	a.Published = publishedAt(a.Published, e.News.PublicationDate, u, k.policy.Zone)
	if past := a.Published; !k.Reparse && e.SitemapAt.IsZero() && !past.IsZero() && past.Before(k.now().Add(-k.Config.Retention())) {
		k.old++
		return k.ifOpen(ctx, func(ctx context.Context) error {
			return raw.Alias(ctx, k.DB, raw.Row{Source: k.p.ID(), FetchedAt: e.FetchedAt}, asked, "")
		})
	}
	return k.hold(ctx, held{e: e, letter: letter, a: a, u: u, asked: asked})
}

// put stores an article.
func (k *keeper) put(ctx context.Context, h held) error {
	e, a, u, asked, letter := h.e, h.a, h.u, h.asked, h.letter
	limits := k.limits()
	canonical, copied, err := k.identity(ctx, u, a, limits)
	if err != nil {
		return err
	}
	row := raw.Row{Source: k.p.ID(), Unique: k.policy.Unique, URL: e.URL, Canonical: canonical, Article: a, SitemapAt: e.SitemapAt, FetchedAt: e.FetchedAt, Teasers: k.policy.Teasers, Rights: e.Rights}
	out := raw.Same
	if !copied {
		if err := k.moved(ctx, asked, canonical, a, limits); err != nil {
			return err
		}
		// The page comes first, so that a kill leaves no article without it. One without a text is for a better parser.
		if !a.Paywalled || k.policy.Teasers {
			err = k.keep(ctx, canonical, e)
		}
		if err == nil {
			out, err = raw.Save(ctx, k.DB, row, limits, k.now())
		}
		if err == nil && out == raw.Purged && k.KeepHTML {
			err = raw.Discard(ctx, k.Store, canonical, e)
		}
	}
	if err == nil && asked != canonical { // the address in the sitemap is recorded too
		err = raw.Alias(ctx, k.DB, row, asked, out)
	}
	if db.Rejected(err) {
		letter.Stage, letter.Kind, letter.Retryable = "Save", "database_rejected", false
		refused := raw.Row{Source: k.p.ID(), Canonical: asked, SitemapAt: e.SitemapAt}
		return errors.Join(raw.Refuse(ctx, k.DB, refused, k.now(), true), k.failed(ctx, letter, err))
	}
	if err != nil {
		return err
	}
	switch out {
	case raw.Inserted:
		k.result.Inserted++
		k.stored = true
	case raw.Changed:
		k.result.Changed++
		k.stored = true
	case raw.Same:
		k.result.Same++
		k.stored = true
		if copied {
			k.leftOut(e.URL, "duplicate", "it is stored from "+canonical)
		}
	case raw.Paywalled:
		k.result.Paywalled++
		k.leftOut(e.URL, "paywall", "the page does not show the article to readers without a subscription")
	case raw.Purged:
		k.leftOut(e.URL, "expired", "its retention has ended")
	default:
		k.result.Empty++
		k.leftOut(e.URL, "empty_content", "the page has no text")
	}
	return k.Worker.Resolve(ctx, letter)
}

func (k *keeper) limits() raw.Limits {
	return raw.Limits{TextMaxLength: k.Config.RawTextMaxLength, Retention: k.Config.Retention()}
}

// keep stores an article's page, if the run keeps pages.
func (k *keeper) keep(ctx context.Context, canonical string, e raw.Evidence) error {
	if !k.KeepHTML || len(e.HTML) == 0 {
		return nil
	}
	return raw.Keep(ctx, k.Store, canonical, e)
}

// The maximum sizes of an article's metadata in bytes. Its text has its own limit.
const (
	maxTitle   = 2000
	maxName    = 200 // of an author, a section, a language
	maxAuthors = 50
	maxTags    = 50
	maxImages  = 20
)

// clean makes the text of the page at u safe to store.
func clean(a provider.Article, u *url.URL) provider.Article {
	a.Title = untrusted.Line(a.Title, maxTitle)
	a.Body = untrusted.Text(a.Body, 0)
	a.Language, a.Section, a.Press = untrusted.Line(a.Language, maxName), untrusted.Line(a.Section, maxName), untrusted.Line(a.Press, maxName)
	a.Description = untrusted.Line(a.Description, maxTitle)
	a.Authors, a.Tags = names(a.Authors, maxAuthors), names(a.Tags, maxTags)
	base := dom.Base(u, a.Base)
	a.Base = ""
	a.Canonical, _ = canonical.Resolve(base, a.Canonical, []string{"*"}) // "": none, or none of a web page
	var images []string
	for _, address := range a.Images {
		image, err := canonical.Address(base, address, []string{"*"})
		if err == nil && len(images) < maxImages && untrusted.Key(image.String()) == nil && !slices.Contains(images, image.String()) {
			images = append(images, image.String())
		}
	}
	a.Images = images
	if untrusted.Key(a.ExternalID) != nil {
		a.ExternalID = "" // the next key of its policy is used
	}
	return a
}

// names makes short texts safe to store, most of them at most.
func names(texts []string, most int) (out []string) {
	for _, name := range texts[:min(len(texts), most)] {
		if name = untrusted.Line(name, maxName); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// addresses returns an article's own address, and its identity by the address in the sitemap.
func (r reader) addresses(e raw.Evidence) (u *url.URL, asked string, err error) {
	sitemaps, err := url.Parse(e.Requested)
	if err == nil {
		u, err = url.Parse(e.URL)
	}
	if err == nil {
		asked, err = r.policy.Canonical(sitemaps)
	}
	if err == nil {
		_, err = r.policy.Canonical(u)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading its address: %w", err)
	}
	return u, asked, nil
}

// whole reads all pages of an article. A further page that cannot be read is left out.
func (r reader) whole(e raw.Evidence, u *url.URL) (provider.Article, error) {
	a, err := r.parse(e, u)
	if err != nil {
		return a, err
	}
	for _, page := range e.More {
		more := raw.Evidence{URL: page.URL, ContentType: page.ContentType, HTML: page.HTML}
		at, err := url.Parse(page.URL)
		var next provider.Article
		if err == nil {
			next, err = r.parse(more, at)
		}
		if err != nil {
			r.log.Warn("next_page_failed", "code", "parse_failed", "url", ledger.Redact(page.URL), "error", ledger.Redact(err.Error()))
			continue
		}
		a.Join(next)
	}
	return a, nil
}

// parse lets the provider read a page. A panic fails only that page.
func (r reader) parse(e raw.Evidence, u *url.URL) (a provider.Article, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			r.log.Error("parser_panicked", "url", ledger.Redact(e.URL), "panic", bug, "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug in the parser of %s: %v", r.p.ID(), bug)
		}
	}()
	return r.p.ParseArticle(e.HTML, e.ContentType, u)
}

// identity returns the canonical address of the article at u, and whether the page is a copy
// of an article that is stored from that address. What a page says of its address counts
// only as long as both have one article: some publishers' pages all name the same.
func (k *keeper) identity(ctx context.Context, u *url.URL, a provider.Article, l raw.Limits) (canonical string, copied bool, err error) {
	own, _ := k.policy.Canonical(u) // addresses has checked that there is no error
	canonical = k.canonical(u, a.Canonical)
	there, err := raw.Under(ctx, k.DB, k.p.ID(), canonical)
	if err != nil || there.ID == "" {
		return canonical, false, err
	}
	at, err := url.Parse(there.URL)
	if err != nil {
		return canonical, false, fmt.Errorf("reading the address of a stored article: %w", err)
	}
	from, err := k.policy.Canonical(at)
	switch {
	case err != nil || from == own:
		return canonical, false, err
	case there.Like(a, l):
		return canonical, canonical != own && from == canonical, nil
	case canonical == own: // the stored one is another, which named this address
		return own, false, raw.Readdress(ctx, k.DB, there.ID, from)
	}
	k.log.Warn("canonical_ignored", "url", ledger.Redact(u.String()), "canonical", ledger.Redact(canonical))
	return own, false, nil
}

// moved gives a stored article the address that it has now: the one under which it is stored
// redirects there, or its page names another as canonical. Save then finds it. Where another
// article is stored from there, both stay.
func (k *keeper) moved(ctx context.Context, asked, canonical string, a provider.Article, l raw.Limits) error {
	if asked == canonical || k.policy.Unique == provider.ByExternalID { // an id finds it
		return nil
	}
	before, err := raw.Under(ctx, k.DB, k.p.ID(), asked)
	if err != nil || before.ID == "" || !before.Like(a, l) {
		return err
	}
	return raw.Readdress(ctx, k.DB, before.ID, canonical)
}

// canonical returns an article's identity: the canonical address in its page, if that is
// an article of this provider, or else its own address.
func (r reader) canonical(u *url.URL, said string) string {
	if said != "" {
		if c, err := u.Parse(said); err == nil && r.p.IsArticleURL(c) {
			if key, err := r.policy.Canonical(c); err == nil && untrusted.Key(key) == nil {
				return key
			}
		}
	}
	key, _ := r.policy.Canonical(u) // addresses has checked that there is no error
	return key
}

// reparse reads the stored pages again.
func (k *keeper) reparse(ctx context.Context) error {
	if err := k.judgeStored(ctx); err != nil {
		return err
	}
	older := 0
	for e, err := range raw.Kept(ctx, k.Store, k.p.ID()) {
		var damaged *raw.DamagedError
		if errors.As(err, &damaged) {
			letter := ledger.DeadLetter{Job: k.Job, RunID: k.RunID, Stage: "Parse", Kind: "parse_failed", Input: ledger.Input{Key: damaged.Key, Source: k.p.ID()}}
			err = k.failed(ctx, letter, damaged)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !k.Worker.Proceed(ctx) {
			return &errStop{Cut, "the run was stopped", "stopped"}
		}
		if !e.FetchedAt.Add(k.Config.Retention()).After(k.now()) {
			continue
		}
		newer, err := k.fetchedSince(ctx, e)
		if err != nil {
			return err
		}
		if newer {
			older++
			continue
		}
		letter := ledger.DeadLetter{Job: k.Job, RunID: k.RunID, Stage: "Parse", Kind: "parse_failed", Input: ledger.Input{URL: e.URL, Source: k.p.ID()}}
		within, end, err := k.Worker.Unit(ctx, letter.Input)
		if err != nil {
			letter.Kind = ledger.Died
			err = k.failed(ctx, letter, err)
		} else {
			err = k.reread(within, e, letter)
		}
		end()
		if err != nil {
			return err
		}
		k.count()
	}
	if older > 0 {
		k.limit(fmt.Sprintf("%d kept pages were not read again: the articles were fetched since, without --keep-html", older))
	}
	return nil
}

// reread reads a stored page again, unless it is a wall.
func (k *keeper) reread(ctx context.Context, e raw.Evidence, letter ledger.DeadLetter) error {
	wall, closed := classify(&web.Response{Status: http.StatusOK, Header: e.Header, FinalURL: e.URL, Body: e.HTML}, e.URL, answer.Page)
	if closed != nil || inPlace(wall) {
		letter.Kind = string(wall.Kind)
		return k.failed(ctx, letter, errors.New(shown(wall)))
	}
	return k.save(ctx, e, letter)
}

// fetchedSince reports whether a newer page than the evidence was read, which was not kept.
func (k *keeper) fetchedSince(ctx context.Context, e raw.Evidence) (bool, error) {
	_, asked, err := k.addresses(e)
	if err != nil {
		return false, nil //nolint:nilerr // save reports it
	}
	known, err := raw.Lookup(ctx, k.DB, k.p.ID(), asked)
	return known.FetchedAt.After(e.FetchedAt), err
}

// believe removes a page's times that are ahead of now. The article would stay the newest for years.
func (k *keeper) believe(a *provider.Article) {
	if a.Published.After(k.now().Add(ahead)) {
		a.Published = time.Time{}
		k.ahead++
	}
	if a.Modified.After(k.now().Add(ahead)) {
		a.Modified = time.Time{}
	}
}

// publishedAt is when an article came out: what its page says, else what the sitemap does, else
// the day in its address. read is of the page, which may know no more than its address.
func publishedAt(read time.Time, listed string, u *url.URL, zone *time.Location) time.Time {
	day := article.DayIn(u, zone)
	if !read.IsZero() && !read.Equal(day) {
		return read
	}
	if t, ok := article.ParseTime(listed, zone); ok {
		return t
	}
	return day
}
