package docs

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/docs/github"
	"github.com/newsfork/seed-engine/transforms/docs/llms"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

// gitHubToken is the environment variable with a token of GitHub's API. Without it GitHub
// allows fewer requests.
const gitHubToken = "SEED_GITHUB_TOKEN"

const (
	// maxTree is the maximum size of the answer for a tree; GitHub's are up to 7 MB.
	maxTree = 16 << 20
	// maxTrees is how many trees are asked for where one answer has not all of them.
	maxTrees = 100
	// maxLimited is how many times one file is asked for again after answers that ask to wait.
	maxLimited = 5
)

// repoFile is a file of the provider's repository.
type repoFile struct {
	github.File
	at *url.URL // against which its links are
}

// repository is the source of pages that are files of a repository on GitHub.
type repository struct {
	*provider
	github.Repository
	api   *polite.Client
	pages []link
	links map[string]link // the pages of its files, by the address of the file
}

// newRepository makes a client for GitHub's API too. What the API asks to wait holds for all providers.
func newRepository(p *provider) *repository {
	api := newClient(p.cfg, p.w, p.db, p.policy.Delay(), p.gate)
	api.Policy.PauseOf = gitHubPause
	api.Policy.Retry = func(a polite.Attempt) (time.Duration, bool) {
		if a.Failure == nil && a.RetryAfter >= 0 && (a.Status() == http.StatusForbidden || a.Status() == http.StatusTooManyRequests) {
			return a.RetryAfter, a.Retries < maxLimited
		}
		return retry(a)
	}
	g := p.policy.GitHub
	return &repository{provider: p, Repository: github.Repository{Name: g.Repository, Ref: g.Ref, Path: g.Path, Base: g.Base}, api: api,
		links: map[string]link{}}
}

// gitHubPause is how long an answer asks to wait, below 0 for not at all: by Retry-After, or until
// X-RateLimit-Reset when no request is left.
func gitHubPause(r *web.Response, now time.Time) time.Duration {
	refused := r.Status == http.StatusForbidden || r.Status == http.StatusTooManyRequests
	pause := time.Duration(-1)
	if d, ok := web.RetryAfter(r.Header, now); ok && (refused || r.Status == http.StatusServiceUnavailable) {
		pause = d
	}
	if r.Header.Get("X-RateLimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(r.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && reset < now.Unix()+86400 {
			// Its clock has whole seconds.
			pause = max(pause, time.Unix(reset+1, 0).Sub(now))
		}
	}
	if pause < 0 && (r.Status == http.StatusTooManyRequests || refused && bytes.Contains(bytes.ToLower(r.Body), []byte("rate limit"))) {
		pause = defaultRetryAfter
	}
	return pause
}

// gitHubRequest is a request to the API. The token goes there and nowhere else: a redirect
// is not followed. The API is made for programs, so its robots.txt, which is for pages, does not count.
func (s *repository) request(address, accept, etag string) polite.Request {
	h := http.Header{"X-Github-Api-Version": {github.Version}}
	if key := strings.TrimSpace(os.Getenv(gitHubToken)); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	setIf(h, "If-None-Match", etag)
	return polite.Request{URL: address, Accept: accept, Header: h, Timeout: s.timeout, MaxBytes: maxPage, MaxRedirects: -1, Invited: true}
}

// load makes the files of the repository known. It asks which there are once a session.
func (s *repository) load(ctx context.Context) error {
	if !s.isOn(policy.GitHub) {
		return nil
	}
	had, err := s.noted(ctx, string(policy.GitHub), s.Address())
	if err != nil {
		return err
	}
	if had.session != s.part.session || had.state != "found" && had.state != "same" {
		if err := s.list(ctx, had.etag, had.reason); err != nil {
			if !errors.Is(err, errRepository) {
				return err
			}
			return cmp.Or(s.note(ctx, string(policy.GitHub), s.Address(), "failed", err.Error(), nil), fmt.Errorf("%w: %w", errUnreachable, err))
		}
	}
	var files []github.File
	for f, err := range db.Select(ctx, s.db, func(r *sql.Rows) (f github.File, err error) { return f, r.Scan(&f.Path, &f.SHA, &f.Size) },
		`SELECT path, sha, size FROM docs_repository_files WHERE provider = $1`, s.id) {
		if err != nil {
			return fmt.Errorf("reading the files of the repository of %s: %w", s.id, err)
		}
		files = append(files, f)
	}
	github.Sort(files)
	seeds := map[string]bool{}
	for _, raw := range s.policy.SeedURLs {
		if l, why := s.link(nil, raw, true); why == "" {
			seeds[l.key] = true
		}
	}
	s.files = map[string]*repoFile{}
	for _, f := range files {
		page, file := s.At(f)
		l, why := s.link(nil, page, false)
		at, err := url.Parse(file)
		if why != "" && !seeds[l.key] || err != nil {
			continue
		}
		if s.links[at.String()] = l; s.files[l.key] == nil {
			s.files[l.key] = &repoFile{f, at}
			s.pages = append(s.pages, l)
		}
	}
	s.filesOnly = !s.isOn(policy.HTML)
	return nil
}

// list asks for the repository's tree and stores its files. Nothing is stored of a
// tree that is not whole, because what is not in it counts as deleted.
func (s *repository) list(ctx context.Context, etag, before string) error {
	resp, err := s.ask(ctx, s.Tree("", true), etag)
	if err != nil {
		return err
	}
	if resp.Status == http.StatusNotModified {
		return s.note(ctx, string(policy.GitHub), s.Address(), "same", before, nil)
	}
	tree, err := s.read(ctx, resp)
	if err != nil {
		return err
	}
	entries, reason := tree.Entries, ""
	if tree.Truncated {
		reason = "; its tree is too long for one answer, so that its folders were asked for"
		if entries, err = s.walk(ctx); err != nil {
			return err
		}
	}
	files, left := s.Files(entries)
	if len(files) == 0 {
		return fmt.Errorf("%w: %s has no Markdown; is github.path right?", errRepository, s.Address())
	}
	if len(files) > maxQueued {
		reason += fmt.Sprintf("; %d files over %d are left", len(files)-maxQueued, maxQueued)
		files = files[:maxQueued]
	}
	for _, end := range slices.Sorted(maps.Keys(left)) {
		reason += fmt.Sprintf("; left: %d %s", left[end], end)
	}
	rows := make([][]any, len(files))
	for i, f := range files {
		rows[i] = []any{s.id, f.Path, f.SHA, f.Size}
	}
	if err := s.db.Do(ctx, "storing the files of the repository of "+s.id, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM docs_repository_files WHERE provider = $1`, s.id); err != nil {
			return err
		}
		// The condition of the next request must not be older than the files.
		if _, err := tx.ExecContext(ctx, `DELETE FROM docs_sources WHERE provider = $1 AND source = $2`, s.id, policy.GitHub); err != nil {
			return err
		}
		return s.db.InsertRows(ctx, tx, "docs_repository_files", []string{"provider", "path", "sha", "size"}, rows, "")
	}); err != nil {
		return err
	}
	return s.note(ctx, string(policy.GitHub), s.Address(), "found", fmt.Sprintf("it has %d files of Markdown%s", len(files), reason),
		resp.Header)
}

// errRepository says that a repository cannot be read.
var errRepository = errors.New("its repository")

// ask asks for a tree: the answer is 200, or 304 where there is a condition.
func (s *repository) ask(ctx context.Context, address, etag string) (*web.Response, error) {
	req := s.request(address, github.Accept, etag)
	req.MaxBytes = maxTree
	resp, err := s.api.Get(ctx, req)
	if resp != nil {
		s.part.stats.asked(string(policy.GitHub))
	}
	var failure *web.Error
	var paused *polite.AbandonedError
	good := resp != nil && !resp.Truncated && (resp.Status == http.StatusOK || resp.Status == http.StatusNotModified && etag != "")
	switch {
	case good && errors.As(err, &paused): // this was the last request that it allows for now
		return resp, nil
	case errors.As(err, &failure):
		return nil, fmt.Errorf("%w: %s", errRepository, ledger.Redact(err.Error()))
	case err != nil:
		return nil, err
	case good:
		return resp, nil
	case resp.Truncated:
		return nil, fmt.Errorf("%w: the answer for %s ends early", errRepository, address)
	}
	hint := ""
	switch resp.Status {
	case http.StatusUnauthorized:
		hint = "; is " + gitHubToken + " right?"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		hint = "; it has another name now, write that into github.repository"
	case http.StatusNotFound:
		hint = "; are github.repository and github.ref right?"
	}
	return nil, fmt.Errorf("%w: GitHub answers %d for %s%s", errRepository, resp.Status, address, hint)
}

func (s *repository) read(ctx context.Context, resp *web.Response) (github.Tree, error) {
	end, err := budget.Begin(ctx, len(resp.Body))
	if err != nil {
		return github.Tree{}, err
	}
	defer end()
	t, err := github.ReadTree(resp.Body)
	if err != nil {
		return t, fmt.Errorf("%w: %w", errRepository, err)
	}
	return t, nil
}

// walk reads the tree folder by folder: only those with the documentation, each
// whole where one answer has it.
func (s *repository) walk(ctx context.Context) (out []github.Entry, err error) {
	asked := 0
	read := func(sha string, recursive bool) (t github.Tree, err error) {
		if asked++; asked > maxTrees {
			return t, fmt.Errorf("%w: it has too many folders; name a smaller one in github.path", errRepository)
		}
		resp, err := s.ask(ctx, s.Tree(sha, recursive), "")
		if err != nil {
			return t, err
		}
		return s.read(ctx, resp)
	}
	type folder struct{ path, sha string }
	for todo := []folder{{}}; len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		t := github.Tree{Truncated: true}
		if at.sha != "" && s.In(at.path) {
			if t, err = read(at.sha, true); err != nil {
				return nil, err
			}
		}
		whole := !t.Truncated
		if !whole {
			if t, err = read(at.sha, false); err != nil {
				return nil, err
			}
			if t.Truncated {
				return nil, fmt.Errorf("%w: the folder %q is too long; name a smaller one in github.path", errRepository, at.path)
			}
		}
		for _, e := range t.Entries {
			e.Path = path.Join(at.path, e.Path)
			if out = append(out, e); !whole && e.Type == "tree" && s.Near(e.Path) {
				todo = append(todo, folder{e.Path, e.SHA})
			}
		}
	}
	return out, nil
}

// way is the way to a page that the repository has.
func (s *repository) way(p *page) (w way, ok bool) {
	f := s.files[p.key]
	if f == nil {
		return way{}, false
	}
	w = way{source: policy.GitHub, reason: s.Name + " has it as " + f.Path, file: f}
	w.same = !s.part.stats.Again && p.contentHash != "" && p.etag == f.etag() && p.readBy == s.readBy+w.id()
	return w, true
}

// etag is the validator of a page that was made from the file.
func (f *repoFile) etag() string { return strconv.Quote(f.SHA) }

// page makes a page's answer of GitHub's for its file. wrong says that the file has other content than the tree names.
func (s *repository) page(ctx context.Context, ch *chain, resp *web.Response) (out *web.Response, why string, wrong bool, err error) {
	f, body := ch.way.file, resp.Body
	switch {
	case resp.Truncated:
		return nil, "the answer ends early", false, nil
	case resp.Status != http.StatusOK:
		return nil, fmt.Sprintf("GitHub answers %d for %s", resp.Status, f.Path), false, nil
	case !f.Has(body):
		return nil, fmt.Sprintf("GitHub's answer for %s is not the content with the hash %s", f.Path, f.SHA), true, nil
	case strings.EqualFold(path.Ext(f.Path), ".mdx"):
		err = s.guard(ctx, ch.at, len(body), func() error { body = []byte(llms.MDX(string(body))); return nil })
	}
	// The headers are the API's. What they say is not about the page.
	return &web.Response{Status: http.StatusOK, Body: body, FinalURL: ch.at.String(), Elapsed: resp.Elapsed,
		Header: http.Header{"Content-Type": {"text/markdown; charset=utf-8"}, "Etag": {f.etag()}}}, "", false, err
}

// linksOf are the links of a file. Those to other files stand for their pages.
func (s *repository) linksOf(f *repoFile, markdown string) (out []string) {
	for _, l := range llms.Links(markdown, content.MaxLinks) {
		u, err := f.at.Parse(l.Href)
		if err != nil {
			continue
		}
		u.Fragment, u.RawFragment = "", ""
		if to, ok := s.links[u.String()]; ok {
			out = append(out, to.address)
		} else if to, why := s.pageOf(f.at, l.Href); why == "" {
			out = append(out, to.address)
		}
	}
	return out
}
