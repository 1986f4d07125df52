package docs

import (
	"bytes"
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

// GitHubToken is the environment variable with a token of GitHub's API. Without it GitHub
// allows fewer requests.
const GitHubToken = "SEED_GITHUB_TOKEN"

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

func (c *crawl) repository() github.Repository {
	g := c.policy.GitHub
	return github.Repository{Name: g.Repository, Ref: g.Ref, Path: g.Path, Base: g.Base}
}

// newGitHub makes the client for GitHub's API. What the API asks to wait holds for all providers.
func (c *crawl) newGitHub() *polite.Client {
	out := c.newClient()
	out.Policy.PauseOf = gitHubPause
	out.Policy.Retry = func(a polite.Attempt) (time.Duration, bool) {
		if a.Failure == nil && a.RetryAfter >= 0 && (a.Status() == http.StatusForbidden || a.Status() == http.StatusTooManyRequests) {
			return a.RetryAfter, a.Retries < maxLimited
		}
		return retry(a)
	}
	return out
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
func (c *crawl) gitHubRequest(address, accept, etag string) polite.Request {
	h := http.Header{"X-Github-Api-Version": {github.Version}}
	if key := strings.TrimSpace(os.Getenv(GitHubToken)); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	setIf(h, "If-None-Match", etag)
	return polite.Request{URL: address, Accept: accept, Header: h, Timeout: c.timeout, MaxBytes: maxPage, MaxRedirects: -1, Invited: true}
}

// loadRepository makes the files of the repository known. It asks which there are once a session.
func (c *crawl) loadRepository(ctx context.Context) error {
	if !c.isOn(policy.GitHub) {
		return nil
	}
	repo, id := c.repository(), c.policy.ProviderID
	var session, state, etag string
	err := c.db.QueryRowContext(ctx, `SELECT session, state, etag FROM docs_sources WHERE provider = $1 AND source = $2 AND address = $3`, id, policy.GitHub, repo.Address()).Scan(&session, &state, &etag)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("reading what is known of the repository of %s: %w", id, err)
	}
	if session != c.part.session || state != "found" && state != "same" {
		if err := c.askRepository(ctx, etag); err != nil {
			return err
		}
	}
	var files []github.File
	for f, err := range db.Select(ctx, c.db, func(r *sql.Rows) (f github.File, err error) { return f, r.Scan(&f.Path, &f.SHA, &f.Size) },
		`SELECT path, sha, size FROM docs_repository_files WHERE provider = $1`, id) {
		if err != nil {
			return fmt.Errorf("reading the files of the repository of %s: %w", id, err)
		}
		files = append(files, f)
	}
	github.Sort(files)
	o, seeds := &c.offers, map[string]bool{}
	for _, raw := range c.policy.SeedURLs {
		if l, why := c.link(nil, raw, true); why == "" {
			seeds[l.key] = true
		}
	}
	o.files, o.fileLinks = map[string]*repoFile{}, map[string]link{}
	for _, f := range files {
		page, file := repo.At(f)
		l, why := c.link(nil, page, false)
		if seeds[l.key] {
			why = ""
		}
		at, err := url.Parse(file)
		if why != "" || err != nil {
			continue
		}
		if o.fileLinks[at.String()] = l; o.files[l.key] == nil {
			o.files[l.key] = &repoFile{f, at}
			o.filePages = append(o.filePages, l)
		}
	}
	o.filesOnly = !c.isOn(policy.HTML)
	return nil
}

// askRepository asks for the repository's tree and stores its files. Nothing is stored of a
// tree that is not whole, because what is not in it counts as deleted.
func (c *crawl) askRepository(ctx context.Context, etag string) error {
	repo, id := c.repository(), c.policy.ProviderID
	resp, err := c.askGitHub(ctx, repo.Tree("", true), etag)
	if err != nil {
		return c.noRepository(ctx, err)
	}
	if resp.Status == http.StatusNotModified {
		var reason string
		if err := c.db.QueryRowContext(ctx, `SELECT reason FROM docs_sources WHERE provider = $1 AND source = $2 AND address = $3`, id, policy.GitHub, repo.Address()).Scan(&reason); err != nil {
			return fmt.Errorf("reading what is known of the repository of %s: %w", id, err)
		}
		return c.noteOffer(ctx, string(policy.GitHub), repo.Address(), "same", reason, nil)
	}
	tree, err := c.readTree(ctx, resp)
	entries, reason := tree.Entries, ""
	if err == nil && tree.Truncated {
		reason = "; its tree is too long for one answer, so that its folders were asked for"
		entries, err = c.walkRepository(ctx)
	}
	files, left := repo.Files(entries)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: %s has no Markdown; is github.path right?", errRepository, repo.Address())
	}
	if err != nil {
		return c.noRepository(ctx, err)
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
		rows[i] = []any{id, f.Path, f.SHA, f.Size}
	}
	if err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM docs_repository_files WHERE provider = $1`, id); err != nil {
			return err
		}
		// The condition of the next request must not be older than the files.
		if _, err := tx.ExecContext(ctx, `DELETE FROM docs_sources WHERE provider = $1 AND source = $2`, id, policy.GitHub); err != nil {
			return err
		}
		return c.db.InsertRows(ctx, tx, "docs_repository_files", []string{"provider", "path", "sha", "size"}, rows, "")
	}); err != nil {
		return fmt.Errorf("storing the files of the repository of %s: %w", id, err)
	}
	return c.noteOffer(ctx, string(policy.GitHub), repo.Address(), "found", fmt.Sprintf("it has %d files of Markdown%s", len(files), reason), resp.Header)
}

// errRepository says that a repository cannot be read.
var errRepository = errors.New("its repository")

// noRepository records why the repository cannot be read, and ends the crawl of the provider.
func (c *crawl) noRepository(ctx context.Context, err error) error {
	if !errors.Is(err, errRepository) {
		return err
	}
	if nerr := c.noteOffer(ctx, string(policy.GitHub), c.repository().Address(), "failed", err.Error(), nil); nerr != nil {
		return nerr
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

// askGitHub asks for a tree: the answer is 200, or 304 where there is a condition.
func (c *crawl) askGitHub(ctx context.Context, address, etag string) (*web.Response, error) {
	req := c.gitHubRequest(address, github.Accept, etag)
	req.MaxBytes = maxTree
	resp, err := c.github.Get(ctx, req)
	if resp != nil {
		c.part.stats.asked(string(policy.GitHub))
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
		hint = "; is " + GitHubToken + " right?"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		hint = "; it has another name now, write that into github.repository"
	case http.StatusNotFound:
		hint = "; are github.repository and github.ref right?"
	}
	return nil, fmt.Errorf("%w: GitHub answers %d for %s%s", errRepository, resp.Status, address, hint)
}

func (c *crawl) readTree(ctx context.Context, resp *web.Response) (github.Tree, error) {
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

// walkRepository reads the tree folder by folder: only those with the documentation, each
// whole where one answer has it.
func (c *crawl) walkRepository(ctx context.Context) (out []github.Entry, err error) {
	repo, asked := c.repository(), 0
	read := func(sha string, recursive bool) (t github.Tree, err error) {
		if asked++; asked > maxTrees {
			return t, fmt.Errorf("%w: it has too many folders; name a smaller one in github.path", errRepository)
		}
		resp, err := c.askGitHub(ctx, repo.Tree(sha, recursive), "")
		if err != nil {
			return t, err
		}
		return c.readTree(ctx, resp)
	}
	type folder struct{ path, sha string }
	for todo := []folder{{}}; len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		t := github.Tree{Truncated: true}
		if at.sha != "" && repo.In(at.path) {
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
			if out = append(out, e); !whole && e.Type == "tree" && repo.Near(e.Path) {
				todo = append(todo, folder{e.Path, e.SHA})
			}
		}
	}
	return out, nil
}

// fileWay is the way to a page that the repository has.
func (c *crawl) fileWay(p *page) (w way, ok bool) {
	f := c.offers.files[p.key]
	if f == nil {
		return way{}, false
	}
	w = way{source: policy.GitHub, reason: c.policy.GitHub.Repository + " has it as " + f.Path, file: f}
	w.same = !c.part.stats.Again && p.contentHash != "" && p.etag == f.etag() && p.readBy == c.readBy+w.id()
	return w, true
}

// etag is the validator of a page that was made from the file.
func (f *repoFile) etag() string { return strconv.Quote(f.SHA) }

// receiveFile processes GitHub's answer for a file.
func (c *crawl) receiveFile(ctx context.Context, ch *chain, resp *web.Response) error {
	f := ch.way.file
	if resp.Status != http.StatusOK || resp.Truncated {
		reason := fmt.Sprintf("GitHub answers %d for %s", resp.Status, f.Path)
		if resp.Truncated {
			reason = "the answer ends early"
		}
		return c.fail(ctx, ch, resp.Status, reason)
	}
	if !f.Has(resp.Body) {
		reason := fmt.Sprintf("GitHub's answer for %s is not the content with the hash %s", f.Path, f.SHA)
		c.w.Log.Warn("page_failed", "provider", c.policy.ProviderID, "url", ch.at.String(), "reason", reason)
		if err := c.w.DeadLetter(ctx, c.deadLetter(ch.page, "wrong_content", reason)); err != nil {
			return err
		}
		return c.end(ctx, ch, ending{status: Failed, http: resp.Status, reason: reason, deadLetter: true})
	}
	body := resp.Body
	if strings.EqualFold(path.Ext(f.Path), ".mdx") {
		if err := c.guard(ctx, ch, len(body), func() error { body = []byte(llms.MDX(string(body))); return nil }); err != nil {
			return err
		}
	}
	// The headers are the API's. What they say is not about the page.
	return c.index(ctx, ch, &web.Response{Status: http.StatusOK, Body: body, FinalURL: ch.at.String(), Elapsed: resp.Elapsed,
		Header: http.Header{"Content-Type": {"text/markdown; charset=utf-8"}, "Etag": {f.etag()}}})
}

// fileLinksOf are the links of a file. Those to other files stand for their pages.
func (c *crawl) fileLinksOf(f *repoFile, markdown string) (out []string) {
	for _, l := range llms.Links(markdown, content.MaxLinks) {
		u, err := f.at.Parse(l.Href)
		if err != nil {
			continue
		}
		u.Fragment, u.RawFragment = "", ""
		if to, ok := c.offers.fileLinks[u.String()]; ok {
			out = append(out, to.address)
		} else if to, why := c.pageOf(f.at, l.Href); why == "" {
			out = append(out, to.address)
		}
	}
	return out
}
