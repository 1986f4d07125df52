package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/site"
)

// candidate is an article in a sitemap.
type candidate struct {
	url       *url.URL
	canonical string
	published time.Time // by the news extension
	modified  time.Time // lastmod
	at        time.Time // the later of both; if it is newer than the stored one, the article is fetched again
	news      sitemap.News
	order     int
	refusals  int    // of requests for it
	again     string // as a replayed dead letter has its address; "": there is none
}

// ahead is how far in the future a date of a sitemap may be: a zone that is written wrong is
// less. One beyond counts as none. Its article would be the newest for years, and keep
// those that are new from being fetched.
const ahead = 24 * time.Hour

// shared is how many addresses of one sitemap have a time of change that is none of theirs, but
// when the sitemap was written or all of them were stored again. By it they would all be newer than
// the newest article.
const shared = 100

// when returns the time by which candidates are sorted.
func (c candidate) when() time.Time {
	if !c.published.IsZero() {
		return c.published
	}
	return c.modified
}

// newer orders by publication, then lastmod, then position in the sitemaps.
func newer(a, b candidate) int {
	if c := b.when().Compare(a.when()); c != 0 {
		return c
	}
	if c := b.modified.Compare(a.modified); c != 0 {
		return c
	}
	return a.order - b.order
}

// with returns an article by what two sitemaps say of it.
func (c candidate) with(other candidate) candidate {
	if newer(other, c) < 0 {
		c, other = other, c
	}
	if c.published.IsZero() { // a sitemap without news has only the last change
		c.published, c.news = other.published, other.news
	}
	if other.modified.After(c.modified) {
		c.modified = other.modified
	}
	if other.at.After(c.at) {
		c.at = other.at
	}
	return c
}

// listing has the newest of the articles that the sitemaps name, each once. What sitemaps may
// name is more than fits into memory.
type listing struct {
	all   []candidate
	at    map[string]int // places in all, by canonical address
	most  int            // in all, once it is sorted
	named int64          // how many were added, also those that are no longer in all
	seen  map[uint64]struct{}
	seed  maphash.Seed
}

// maxSeen bounds the memory by which addresses are counted once. More are counted each time.
const maxSeen = 2 * maxSitemaps * maxEntries

func newListing(most int) *listing {
	return &listing{most: most, at: map[string]int{}, seen: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

// add adds an article. Of one that is named twice the newer dates count.
func (l *listing) add(c candidate) {
	c.order = int(l.named)
	if i, twice := l.at[c.canonical]; twice {
		c.order = l.all[i].order
		l.all[i] = l.all[i].with(c)
		return
	}
	hash := maphash.String(l.seed, c.canonical)
	if _, again := l.seen[hash]; !again {
		l.named++
		if len(l.seen) < maxSeen {
			l.seen[hash] = struct{}{}
		}
	}
	l.at[c.canonical] = len(l.all)
	if l.all = append(l.all, c); len(l.all) >= 2*l.most {
		l.sort()
	}
}

// sort puts the newest first, and leaves the others out.
func (l *listing) sort() {
	slices.SortStableFunc(l.all, newer)
	if len(l.all) > l.most {
		clear(l.all[l.most:]) // so that they can be freed
		l.all = l.all[:l.most]
	}
	clear(l.at)
	for i := range l.all {
		l.at[l.all[i].canonical] = i
	}
}

// search reads what names the publisher's articles.
type search struct {
	*visit
	waiting, queue []child // the roots, and children of indexes
	aside          []child // needless by what is said about their times
	requested      map[string]bool
	found          *listing
	enough         time.Time // the wanted number of articles is at least as new as this; zero: there are fewer
	misdated       bool      // see belies
	deep           bool      // an index was too deep to be followed
	shown          [2][2]int // named now and before: by the largest source of no index, by those of indexes
}

// candidates reads the sitemaps, the newest of an index first, until the others cannot
// have newer articles than those found. It returns the articles, newest first.
func (v *visit) candidates(ctx context.Context) ([]candidate, error) {
	s := &search{visit: v, requested: map[string]bool{}, found: newListing(v.Config.MaxArticlesPerProvider + maxMissed)}
	read := 0
	var firstErr error
	for {
		next, err := s.next(ctx, read == 0)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		s.requested[next.address] = true
		children, err := s.sitemap(ctx, *next)
		if errors.As(err, new(*errStop)) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // the other sitemaps may be readable
			if err := s.unreadable(ctx, *next, err); err != nil {
				return nil, err
			}
			firstErr = cmp.Or(firstErr, err)
			continue
		}
		read++
		v.readable = *next
		s.enough = nth(s.found.all, v.Config.MaxArticlesPerProvider)
		arrange(children, v.policy.Zone, v.now())
		s.queue = append(children, s.queue...)
		if next.depth == 0 {
			slices.SortStableFunc(s.queue, nearer)
		}
	}
	if read == 0 {
		if v.judge.Verdict().State == site.Closed { // its sources alone may be gone
			if _, _, err := v.front(ctx); errors.As(err, new(*errStop)) || ctx.Err() != nil {
				return nil, err
			}
		}
		return nil, &errStop{Skipped, fmt.Sprintf("none of its sitemaps and feeds can be read: %v", firstErr), code(firstErr)}
	}
	if left := slices.DeleteFunc(slices.Concat(s.waiting, s.queue, s.aside), s.needless); len(left) > 0 {
		v.limit(fmt.Sprintf("%d sitemaps were read, the maximum for a run; %d more were left out, such as %.200s", maxSitemaps, len(left),
			ledger.Redact(left[0].address)))
	}
	for _, n := range s.shown {
		v.judge.Listed(n[0], n[1])
	}
	s.found.sort()
	v.result.Found = s.found.named
	return s.found.all, nil
}

// next returns the sitemap to request next, nil if there is none. none says that none could be read yet.
func (s *search) next(ctx context.Context, none bool) (*child, error) {
	for len(s.requested) < maxSitemaps {
		if len(s.waiting)+len(s.queue) == 0 && none {
			var err error
			if s.waiting, err = s.roots(ctx); err != nil {
				return nil, err
			}
			if len(s.waiting) > maxSitemaps {
				arrange(s.waiting, s.policy.Zone, s.now())
			}
		}
		if len(s.waiting)+len(s.queue) == 0 {
			if !s.misdated || len(s.aside) == 0 { // else what is said about their times is wrong
				break
			}
			s.queue, s.aside = s.aside, nil
		}
		from := &s.queue
		// Every root is read before any child, because one index must not keep the other roots
		// from being read. But half of the requests are for children.
		if len(s.waiting) > 0 && (len(s.queue) == 0 || len(s.requested) < maxSitemaps/2) {
			from = &s.waiting
		}
		next := (*from)[0]
		*from = (*from)[1:]
		if !s.needless(next) {
			return &next, nil
		}
		if !s.requested[next.address] {
			s.aside = append(s.aside, next)
		}
	}
	return nil, nil
}

// needless reports whether a sitemap was requested, or cannot have newer articles than those found.
func (s *search) needless(c child) bool {
	return s.requested[c.address] || c.depth > 0 && !s.misdated && !c.until.IsZero() && !s.enough.IsZero() && !s.enough.Before(c.until)
}

// unreadable records why a sitemap could not be read.
func (s *search) unreadable(ctx context.Context, c child, err error) error {
	if _, err := s.disallowed(ctx, err, c.address, c.address); err != nil {
		return err
	}
	if n, ok := s.was.Sources[c.address]; ok && c.depth == 0 {
		s.named.Sources[c.address] = n
	}
	if keepsOut(err) {
		s.refusing = append(s.refusing, err.Error())
	}
	s.log.Warn("sitemap_failed", "code", code(err), "url", ledger.Redact(c.address), "error", ledger.Redact(err.Error()))
	return nil
}

// belies reports whether an article shows that what is said about its sitemap's time is wrong: the
// name is of another time, or the index is older than the sitemap.
func (s *search) belies(c child, one candidate) bool {
	at := one.published
	if c.dated && at.IsZero() { // to change later is no reason to be in another file
		at = one.modified
	}
	return !c.until.IsZero() && at.After(c.until.Add(time.Hour)) && !at.After(s.now()) // a time to come is wrong itself
}

// nth returns the time of the n-th newest candidate, zero if there are fewer.
func nth(found []candidate, n int) time.Time {
	if len(found) < n {
		return time.Time{}
	}
	times := make([]time.Time, len(found))
	for i := range found {
		times[i] = found[i].when()
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[n-1]
}

// limit records once what was left out because of a limit.
func (v *visit) limit(text string) {
	if !slices.Contains(v.result.Limits, text) {
		v.result.Limits = append(v.result.Limits, text)
		v.log.Warn("limit_reached", "limit", text)
	}
}

// sitemap requests one sitemap, reads it, and returns the children of an index.
func (s *search) sitemap(ctx context.Context, c child) (children []child, err error) {
	letter := ledger.DeadLetter{Job: s.Job, RunID: s.RunID, Stage: "Sitemap", Input: ledger.Input{URL: c.address, Source: s.p.ID()}}
	ctx, end, err := s.Worker.Unit(ctx, letter.Input)
	defer end()
	if err != nil {
		letter.Kind, letter.Error = ledger.Died, err.Error()
		return nil, errors.Join(err, s.Worker.DeadLetter(ctx, letter))
	}
	r, wall, base, err := s.getSitemap(ctx, c)
	a := site.Answer{Role: site.Seed, URL: c.address, Verdict: wall}
	if r != nil && s.leaves(c.address, r.FinalURL) {
		a.To = r.FinalURL
	}
	if err == nil {
		children, err = s.entries(ctx, c, r, base, &a)
	}
	if len(children) == 0 || c.page { // an index is no source
		s.answered(a, r, err)
	}
	if err == nil {
		err = s.Worker.Resolve(ctx, letter)
	}
	return children, err
}

// entries reads a sitemap that was received.
func (s *search) entries(ctx context.Context, c child, r *web.Response, base *url.URL, a *site.Answer) ([]child, error) {
	end, err := budget.Begin(ctx, len(r.Body))
	if err != nil {
		return nil, err
	}
	defer end()
	if c.page {
		return s.frontLinks(c, r, base)
	}
	var entries []sitemap.Entry
	times := map[string]int{}
	read, err := sitemap.ScanAny(r.Body, func(e sitemap.Entry) bool {
		entries = append(entries, e)
		times[e.LastMod]++
		return len(entries) < maxEntries
	})
	if errors.Is(err, sitemap.ErrNotSitemap) {
		return nil, fmt.Errorf("%s is neither a sitemap nor a feed, but %.60q", ledger.Redact(c.address), cmp.Or(r.Header.Get("Content-Type"), http.DetectContentType(r.Body)))
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(entries) >= maxEntries:
		s.limit(fmt.Sprintf("a sitemap was read up to its address number %d: %.200s", maxEntries, ledger.Redact(c.address)))
	case r.Truncated, read.Truncated:
		s.limit(fmt.Sprintf("a sitemap was read up to its first %d MiB, or ends early: %.200s", maxSitemap>>20, ledger.Redact(c.address)))
	}
	for i, e := range entries {
		if times[e.LastMod] >= shared && strings.Contains(e.LastMod, ":") {
			entries[i].LastMod = ""
		}
	}
	if read.Kind == sitemap.Index {
		return s.children(c, base, entries), nil
	}
	s.whereTo(a, base, entries)
	var articles []candidate
	for _, e := range entries {
		one, ok := s.listedArticle(base, e)
		if !ok {
			continue
		}
		articles = append(articles, one)
		if c.depth > 0 && !s.misdated && s.belies(c, one) {
			s.misdated = true
			s.log.Warn("sitemap_misdated", "url", ledger.Redact(c.address), "article", ledger.Redact(one.url.String()))
		}
		s.found.add(one)
	}
	s.compare(c, articles)
	return nil, nil
}

// getSitemap requests a sitemap or a feed. Relative addresses in it are relative to base.
func (v *visit) getSitemap(ctx context.Context, c child) (r *web.Response, wall answer.Verdict, base *url.URL, err error) {
	want, kind := polite.Request{URL: c.address, Accept: "application/xml,text/xml,application/rss+xml,application/atom+xml,application/feed+json", MaxBytes: maxSitemap, Invited: c.invited}, answer.Sitemap
	if c.page {
		want, kind = polite.Request{URL: c.address, Accept: acceptPage, MaxBytes: maxPage}, answer.Page
	}
	r, wall, err = v.get(ctx, want, kind)
	if err == nil {
		err = checkStatus(r.Status)
	}
	if err == nil {
		base, err = url.Parse(r.FinalURL)
	}
	return r, wall, base, err
}

// children returns the sitemaps that an index names.
func (s *search) children(index child, base *url.URL, entries []sitemap.Entry) (children []child) {
	for _, e := range entries {
		u, err := canonical.Address(base, e.Loc, []string{"*"})
		switch {
		case err != nil:
		case index.depth < maxDepth:
			at := s.dated(e.LastMod)
			until := at
			if !at.IsZero() && !strings.Contains(e.LastMod, ":") {
				until = at.AddDate(0, 0, 1) // a day is over at its end
			}
			children = append(children, child{address: u.String(), at: at, until: until, dated: !at.IsZero(), depth: index.depth + 1, invited: index.invited})
		case !s.deep:
			s.limit(fmt.Sprintf("an index in an index in an index was not followed: %.200s", ledger.Redact(index.address)))
			s.deep = true
		}
	}
	return children
}

// listedArticle reads an entry of a sitemap; ok is false if it is no article of the publisher.
func (s *search) listedArticle(base *url.URL, e sitemap.Entry) (c candidate, ok bool) {
	s.listed++
	u, err := canonical.Address(base, e.Loc, []string{"*"})
	if err != nil || !s.p.IsArticleURL(u) {
		if s.other == "" {
			s.other = untrusted.Line(e.Loc, 200)
		}
		return c, false
	}
	key, err := s.policy.Canonical(u)
	if err == nil {
		err = errors.Join(untrusted.Key(u.String()), untrusted.Key(key))
	}
	if err != nil {
		s.log.Warn("address_left_out", "url", ledger.Redact(untrusted.Line(e.Loc, 200)), "error", err.Error())
		return c, false
	}
	c = candidate{url: u, canonical: key, modified: s.dated(e.LastMod), published: s.dated(e.News.PublicationDate), news: e.News}
	if c.published.IsZero() {
		c.news.PublicationDate = ""
	}
	c.news.Title, c.news.Language, c.news.Publication = untrusted.Line(e.News.Title, maxTitle), untrusted.Line(e.News.Language, maxName), ""
	c.at = c.modified
	if c.published.After(c.at) {
		c.at = c.published
	}
	return c, true
}

// dated reads a date of a sitemap; zero: there is none, or it is far in the future.
func (s *search) dated(text string) time.Time {
	t, _ := article.ParseTime(text, s.policy.Zone) // zero if there is none
	if t.After(s.now().Add(ahead)) {
		return time.Time{}
	}
	return t
}

// choose returns those of the newest articles that are new, or newer in the sitemap than
// the stored version. Articles that were refused before come last: one that is refused
// every time must not keep the others from being requested.
func (v *visit) choose(ctx context.Context, found []candidate) ([]candidate, error) {
	oldest, most := v.now().Add(-v.Config.Retention()), min(len(found), v.Config.MaxArticlesPerProvider)
	var out, last []candidate
	for _, c := range found[:most] {
		if !c.when().IsZero() && c.when().Before(oldest) {
			v.old++
			v.leftOut(c.url.String(), "expired", "it is older than the retention")
			continue
		}
		if no := v.rules.Check(c.url); no != nil {
			if is, err := v.disallowed(ctx, no, c.url.String(), c.canonical); err != nil {
				return nil, err
			} else if !is {
				v.result.Forbidden++
				v.leftOut(c.url.String(), code(no), no.Error())
			}
			continue
		}
		known, err := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		if err != nil {
			return nil, err
		}
		c.refusals = known.Refusals
		switch known.State {
		case "stored":
			v.stored = true
		case "purged":
			v.expired++
		}
		switch {
		case !known.Fresh(c.at):
		case known.Refusals > 0:
			last = append(last, c)
		default:
			out = append(out, c)
		}
	}
	if err := v.missed(ctx, found[most:]); err != nil {
		return nil, err
	}
	return v.again(ctx, append(out, last...))
}

// again adds the articles whose dead letters were replayed: they may no longer be among the newest,
// nor in a sitemap.
func (v *visit) again(ctx context.Context, chosen []candidate) ([]candidate, error) {
	replayed, err := raw.Again(ctx, v.DB, v.p.ID())
	if err != nil {
		return nil, err
	}
	for _, address := range replayed {
		c := candidate{again: address}
		// A redacted address is not the one that failed.
		if c.url, err = url.Parse(address); err == nil && v.p.IsArticleURL(c.url) && !strings.Contains(address, "=REDACTED") {
			c.canonical, err = v.policy.Canonical(c.url)
		}
		if i := slices.IndexFunc(chosen, func(o candidate) bool { return o.canonical == c.canonical }); err == nil && i >= 0 {
			chosen[i].again = address
			continue
		}
		known, lerr := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		switch {
		case lerr != nil:
			return nil, lerr
		case err == nil && c.canonical != "" && known.State != "purged" && v.rules.Check(c.url) == nil:
			chosen = append(chosen, c)
			continue
		}
		v.log.Warn("address_left_out", "url", ledger.Redact(address), "error", "it is no article's, has expired, is not known as a whole, or robots.txt forbids it")
		if err := raw.Requested(ctx, v.DB, v.p.ID(), address); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// missed counts the articles that were published since the newest that is stored, and
// that this run leaves out: runs are too rare for the publisher, or
// maxArticlesPerProvider is too small.
func (v *visit) missed(ctx context.Context, rest []candidate) error {
	newest, err := raw.Newest(ctx, v.DB, v.p.ID(), v.now().Add(ahead))
	if err != nil || newest.IsZero() {
		return err
	}
	for _, c := range rest[:min(len(rest), maxMissed)] {
		if !c.when().After(newest) { // the newest come first
			return nil
		}
		known, err := raw.Lookup(ctx, v.DB, v.p.ID(), c.canonical)
		if err != nil {
			return err
		}
		if known.State == "" {
			v.result.Missed++
		}
	}
	return nil
}
