package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// missKept is how long a site is not asked again for what it did not have.
const missKept = 28 * 24 * time.Hour

// provider is what a crawl shares with the sources of its texts: which pages may be requested,
// how, and what the site was found to have.
type provider struct {
	cfg    Config
	w      *lane.Worker
	log    *slog.Logger
	db     *db.DB
	clock  polite.Clock
	policy policy.Policy
	id     string // the policy's
	part   part
	client *polite.Client
	gate   *permit.Gate

	scope     canonical.Scope
	host      string
	own       map[string]bool      // origins and sites of the seeds; a crawl needs them
	readBy    string               // identifies what turns a page into content
	seen      map[string]bool      // keys of this session
	forbidden map[string]bool      // keys of blocked_urls
	timeout   time.Duration        // of a page
	files     map[string]*repoFile // of the repository, by the key of the page
	filesOnly bool                 // there are no other pages
	whole     *bool                // what keepsWhole found; nil: it was not asked
}

func newProvider(cfg Config, w *lane.Worker, d *db.DB, p policy.Policy, in part) *provider {
	s := &provider{cfg: cfg, w: w, log: w.Log.With("provider", p.ProviderID), db: d, clock: w.Pacer.Clock, policy: p, id: p.ProviderID,
		part: in, scope: p.Scope(), host: p.Host(), readBy: readBy(p), timeout: pageTimeout,
		own: map[string]bool{}, seen: map[string]bool{}, forbidden: map[string]bool{}}
	s.gate = &permit.Gate{Purpose: cfg.Purpose}
	s.client = newClient(cfg, w, d, p.Delay(), s.gate)
	for _, raw := range p.SeedURLs {
		if u, err := canonical.Address(nil, raw, p.KeepQueryParams); err == nil {
			s.own[origin(u)], s.own[web.Site(u)] = true, true
		}
	}
	return s
}

// isOn reports whether the policy has a source.
func (s *provider) isOn(o policy.Source) bool { return slices.Contains(s.policy.Order(), o) }

// onlyHTML reports whether all pages come from themselves, so that nothing else is asked
// for or recorded.
func (s *provider) onlyHTML() bool { return s.policy.Order()[0] == policy.HTML }

// link is a page that may be visited: its key, its address, and the address of its
// Markdown where a list names that.
type link struct{ key, address, twin string }

// sphinxSource matches the sources of pages that Sphinx publishes next to them.
var sphinxSource = regexp.MustCompile(`/_sources/.*\.(?:txt|rst|md|ipynb)$`)

// link returns the page to which an href leads, and why it is not visited, "" if it
// is. A seed need not match an allowed pattern.
func (s *provider) link(base *url.URL, href string, seed bool) (l link, why string) {
	u, err := canonical.Address(base, href, s.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	key, err := canonical.Key(u, s.policy.KeepQueryParams)
	if err != nil {
		return link{}, err.Error()
	}
	l = link{key: key, address: u.String()}
	if err := cmp.Or(untrusted.Key(l.key), untrusted.Key(l.address)); err != nil {
		return l, "its address: " + err.Error()
	}
	if content.MaskEmails(l.address) != l.address {
		return l, "an e-mail address is part of it"
	}
	if host := canonical.Host(u); host != s.host {
		return l, "another host: " + host
	}
	if !seed && sphinxSource.MatchString(u.Path) {
		return l, "the source of a page that Sphinx made"
	}
	if s.filesOnly && s.files[key] == nil {
		return l, "the repository does not have it"
	}
	pattern, in := s.scope.Rule(canonical.Path(key))
	switch {
	case in, seed && pattern == "":
		return l, ""
	case pattern == "":
		return l, "no allowed path pattern matches"
	case s.policy.Personal(pattern) != "":
		return l, fmt.Sprintf("the personal-data block %q (%s)", s.policy.Personal(pattern), pattern)
	}
	return l, "the blocked path pattern " + pattern
}

// offLimits says why an address that is no page is not asked for, "" if it may be: it
// needs no allowed pattern.
func (s *provider) offLimits(u *url.URL) string {
	l, why := s.link(nil, u.String(), true)
	if why == "" && s.forbidden[l.key] {
		return answered403
	}
	return why
}

const answered403 = "it answered 403 before"

// robots returns the rules of u's origin.
func (s *provider) robots(ctx context.Context, u *url.URL) (*polite.Rules, error) {
	r, err := s.client.Robots(ctx, u)
	return r, unreachable(err)
}

// get sends a request that is no page's own. alone is an error of this address alone: the response is
// nil then. The error ends the crawl.
func (s *provider) get(ctx context.Context, source string, req polite.Request) (resp *web.Response, alone, err error) {
	u, err := url.Parse(req.URL)
	if err != nil {
		return nil, errors.New("no URL"), nil
	}
	resp, err = s.client.Get(ctx, req)
	err = unreachable(err)
	if resp != nil && source != "" {
		s.part.stats.asked(source)
	}
	var failure *web.Error
	var no *polite.DisallowedError
	if resp == nil && (errors.As(err, &failure) || errors.As(err, &no) || s.failsPageOnly(u, err)) {
		return nil, err, nil
	}
	return resp, nil, err
}

// passes reports whether an address may be there later.
func passes(alone error) bool {
	var failure *web.Error
	return errors.As(alone, &failure) && failure.Kind != web.KindBlocked
}

// within checks the redirects of a request.
func within(offLimits func(*url.URL) string) func(*url.URL) error {
	return func(u *url.URL) error {
		if why := offLimits(u); why != "" {
			return errors.New(why)
		}
		return nil
	}
}

// failsPageOnly reports whether an error of a request for u fails only this page, because u is not on one of the provider's own origins. A
// pause applies to the whole site.
func (s *provider) failsPageOnly(u *url.URL, err error) bool {
	var abandoned *polite.AbandonedError
	return !s.own[origin(u)] && errors.Is(err, errUnreachable) || !s.own[web.Site(u)] && errors.As(err, &abandoned)
}

// reachSeeds requests a seed whose host cannot be reached from the other name of its site: without www., or with it where a domain stands
// alone. That name's robots.txt is requested first. Errors come again when the seeds are requested.
func (s *provider) reachSeeds(ctx context.Context) {
	s.policy.SeedURLs = slices.Clone(s.policy.SeedURLs)
	for i, raw := range s.policy.SeedURLs {
		u, err := canonical.Address(nil, raw, s.policy.KeepQueryParams)
		if err != nil {
			continue
		}
		other := *u
		if other.Host = web.Site(u); origin(&other) == origin(u) {
			if alone, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err != nil || alone != u.Host {
				continue
			}
			other.Host = "www." + u.Host
		}
		if _, err := s.robots(ctx, u); !errors.Is(err, errUnreachable) {
			continue
		}
		if _, err := s.robots(ctx, &other); err == nil {
			s.log.Warn("seed_refused", "url", raw, "reason", "its host cannot be reached; "+other.String()+" is requested in its place")
			s.policy.SeedURLs[i] = other.String()
			delete(s.own, origin(u))
			s.own[origin(&other)] = true
		}
	}
}

// checkSeeds returns errUnreachable if no seed could be fetched: then nothing is
// known about the provider's pages.
func (s *provider) checkSeeds(ctx context.Context) error {
	var seeds, lost int
	err := s.db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = $1
		AND (http_status = 0 OR http_status = 429 OR http_status >= 500 OR reason LIKE $4) THEN 1 ELSE 0 END), 0)
		FROM docs_pages WHERE provider = $2 AND session = $3 AND depth = 0`, Failed, s.id, s.part.session, noticeBegins+"%").Scan(&seeds, &lost)
	switch {
	case err != nil:
		return fmt.Errorf("counting the seeds of %s that answered: %w", s.id, err)
	case seeds > 0 && seeds == lost:
		return fmt.Errorf("%w: none of its %d seeds could be fetched", errUnreachable, seeds)
	}
	return nil
}

func (s *provider) deadLetter(p *page, kind, reason string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: s.cfg.Lane.RunID, Stage: "visit", Kind: kind, Retryable: true, Error: reason,
		Input: ledger.Input{URL: p.address, Source: s.id}}
}

// guard runs a parser of foreign bytes in its share of memory. A bug that they trigger
// fails only their page.
func (s *provider) guard(ctx context.Context, at *url.URL, bytes int, parse func() error) (err error) {
	end, err := budget.Begin(ctx, bytes)
	if err != nil {
		return err
	}
	defer end()
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("page_panic", "url", at.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("a bug: panic while reading the page: %v", v)
		}
	}()
	return parse()
}

// reading reads a document that is no page, within the budget of all documents. why says that processes died at it,
// or what read says.
func (s *provider) reading(ctx context.Context, address string, size int, read func() error) (why string, err error) {
	letter := s.deadLetter(&page{address: address}, ledger.Died, "")
	ctx, done, err := s.w.Unit(ctx, letter.Input)
	if err != nil {
		letter.Error = err.Error()
		return letter.Error, s.w.DeadLetter(ctx, letter)
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

// offer is an address that is no page, and what may be there.
type offer struct {
	source, address, accept string
	most                    int64
	conditional             bool
	scoped                  bool                             // it needs an allowed pattern
	lacks                   func(*web.Response) (why string) // why an answer is not it
}

// offered fetches an address that is no page. why says why there is nothing, and is remembered.
func (s *provider) offered(ctx context.Context, f offer) (_ *web.Response, why string, err error) {
	had, err := s.noted(ctx, f.source, f.address)
	switch {
	case err != nil:
		return nil, "", err
	case had.state == "missing" && had.readBy == s.readBy && s.clock.Now().Sub(db.Time(had.checked)) < missKept,
		had.state == "failed" && had.session == s.part.session:
		return nil, had.reason, nil
	}
	u, err := url.Parse(f.address)
	if err != nil {
		return nil, "no URL", nil
	}
	offLimits := s.offLimits
	if f.scoped {
		offLimits = func(u *url.URL) string {
			_, why := s.link(nil, u.String(), false)
			return cmp.Or(why, s.offLimits(u))
		}
	}
	if why := offLimits(u); why != "" {
		return nil, why, nil
	}
	h := http.Header{"Accept-Language": {acceptLanguage}}
	if f.conditional && had.state != "" && had.state != "missing" && had.state != "failed" && had.readBy == s.readBy {
		setIf(h, "If-None-Match", had.etag)
		setIf(h, "If-Modified-Since", had.modified)
	}
	resp, alone, err := s.get(ctx, f.source, polite.Request{URL: f.address, Accept: f.accept, Header: h, Timeout: pageTimeout,
		MaxBytes: f.most, MaxRedirects: maxRedirects, Once: true, Probe: true, Scope: within(offLimits)})
	passing, reserved := passes(alone), ""
	if alone == nil && err == nil {
		_, reserved = s.ofFile(ctx, resp)
	}
	switch {
	case err != nil:
		return nil, "", err
	case alone != nil:
		why = ledger.Redact(alone.Error())
	case resp.Status == http.StatusNotModified && reserved == "":
		return resp, "", s.note(ctx, f.source, f.address, "same", had.reason, resp.Header)
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		why, passing = fmt.Sprintf("status %d", resp.Status), true
	case reserved != "": // it is asked for in the next session
		why, passing = reserved, true
	case resp.Status != http.StatusOK:
		why = fmt.Sprintf("status %d", resp.Status)
	case resp.Truncated:
		why = fmt.Sprintf("longer than %d MB, or broken off", f.most>>20)
	default:
		why = f.lacks(resp)
	}
	switch {
	case passing && (had.state == "" || had.state == "failed"): // it is asked for in the next session
		return nil, why, s.note(ctx, f.source, f.address, "failed", why, nil)
	case passing:
		return nil, why, nil
	case why != "":
		return nil, why, s.note(ctx, f.source, f.address, "missing", why, nil)
	}
	return resp, "", nil
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// noted is what was recorded of an address; without a record it is zero.
type noted struct {
	state, reason, etag, modified, readBy, session string
	checked                                        int64
}

func (s *provider) noted(ctx context.Context, source, address string) (n noted, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT state, reason, etag, last_modified, read_by, checked_at, session FROM docs_sources
		WHERE provider = $1 AND source = $2 AND address = $3`, s.id, source, address).
		Scan(&n.state, &n.reason, &n.etag, &n.modified, &n.readBy, &n.checked, &n.session)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return n, fmt.Errorf("reading what is known of %s: %w", address, err)
	}
	return n, nil
}

// note records whether a site has an address. Without header the validators that
// were recorded before stay.
func (s *provider) note(ctx context.Context, source, address, state, reason string, header http.Header) error {
	etag, modified := validator(header.Get("ETag")), validator(header.Get("Last-Modified"))
	s.log.Info("source_checked", "source", source, "url", address, "state", state, "reason", reason)
	return s.db.Write(ctx, "recording whether there is "+address, `INSERT INTO docs_sources (provider, source, address, session, state, reason, etag, last_modified, read_by, checked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (provider, source, address) DO UPDATE SET session = excluded.session, state = excluded.state, reason = excluded.reason,
			read_by = excluded.read_by, checked_at = excluded.checked_at,
			etag = CASE WHEN excluded.etag = '' THEN docs_sources.etag ELSE excluded.etag END,
			last_modified = CASE WHEN excluded.last_modified = '' THEN docs_sources.last_modified ELSE excluded.last_modified END`,
		s.id, source, clean(address), s.part.session, state, content.Clean(reason), etag, modified, s.readBy, db.Micros(s.clock.Now()))
}

// markdownNames are how the address of a page's Markdown ends (llmstxt.org), and what
// the page's own has instead.
var markdownNames = []struct{ end, page string }{{"/index.html.md", "/"}, {"/index.md", "/"}, {".md", ""}, {".mdx", ""}}

// pageOf is link for an address that may be that of a page's Markdown: the page is then
// the one without the ending.
func (s *provider) pageOf(base *url.URL, href string) (link, string) {
	l, why := s.link(base, href, false)
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
			of, why := s.link(nil, page.String(), false)
			of.twin = l.address
			return of, why
		}
	}
	return l, why
}
