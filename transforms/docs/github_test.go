package docs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// gitHubWorld is a world whose provider has a repository.
type gitHubWorld struct {
	*world
	hub   *gitHub
	files map[string]string
	asked []http.Header
	names []string         // what the API was asked for
	limit http.HandlerFunc // answers in place of the API, if set
}

func newGitHubWorld(t *testing.T, d *db.DB, most int, sources ...policy.Source) *gitHubWorld {
	g := &gitHubWorld{world: newWorld(t, d), hub: newGitHub(most)}
	g.policy.Sources = sources
	g.policy.GitHub.Repository, g.policy.GitHub.Ref, g.policy.GitHub.Path, g.policy.GitHub.Base = "acme/docs", "main", "docs", "https://"+host+"/docs/"
	g.files = map[string]string{
		"README.md":            prose("the repository"),
		"docs/index.md":        prose("home") + "See [a](./a.mdx), [the guide](guide/README.md) and [an old page](old/x.md).\n",
		"docs/a.mdx":           "---\ntitle: The A\n---\nimport X from '../x'\n\n<X label=\"Tip\">\n" + prose("a") + "</X>\n",
		"docs/guide/README.md": prose("guide") + "Write to me@example.com.\n",
		"docs/guide/b.md":      prose("b"),
		"docs/old/x.md":        prose("old"),
		"docs/_part.md":        prose("part"),
		"docs/c.rst":           "C\n=\n",
	}
	g.put()
	g.sim.Handle("api.github.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.asked = append(g.asked, r.Header.Clone())
		g.names = append(g.names, g.nameOf(r))
		limit := g.limit
		g.mu.Unlock()
		if limit != nil {
			limit(w, r)
			return
		}
		g.hub.ServeHTTP(w, r)
	}))
	return g
}

func (g *gitHubWorld) put() { g.hub.put("acme/docs", g.files) }

// nameOf says what a request is for: a tree, or the file that has the blob.
func (g *gitHubWorld) nameOf(r *http.Request) string {
	at := strings.TrimPrefix(r.URL.RequestURI(), "/repos/acme/docs/git/")
	if sha, ok := strings.CutPrefix(at, "blobs/"); ok {
		for name, text := range g.files {
			if gitID("blob", text) == sha {
				return name
			}
		}
	}
	if sha, ok := strings.CutPrefix(at, "trees/"); ok && len(sha) >= 40 {
		return "trees/" + strings.Repeat("0", 3) + sha[40:]
	}
	return at
}

// requests are what the API was asked for since the last call.
func (g *gitHubWorld) requestsToAPI() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.names
	g.names, g.asked = nil, nil
	return out
}

const wholeTree = "trees/main?recursive=1"

// A repository alone has all pages: the first session asks for the tree and each file, an
// unchanged one for the tree alone, and a change for the tree and the file.
func TestGitHub(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGitHubWorld(t, d, 0, policy.GitHub)
		state, reason := g.run()
		require.Equal(t, Done, state, reason)
		require.Equal(t, []string{wholeTree, "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md"}, g.requestsToAPI())
		require.Empty(t, g.log(), "the site is asked for nothing")
		at := " https://" + host
		pages, counts := sourcesOf(g.world)
		require.Equal(t, []string{"github" + at + "/docs", "github" + at + "/docs/a", "github" + at + "/docs/guide", "github" + at + "/docs/guide/b"}, pages)
		require.Equal(t, map[string][2]int64{"github": {4, 5}}, counts)
		require.Equal(t, "github: acme/docs has it as docs/a.mdx", g.sourceOf("/docs/a"))
		require.Equal(t, []string{"https://github.com/acme/docs/tree/main/docs found (it has 5 files of Markdown; left: 1 .rst)"},
			g.strings(`SELECT address || ' ' || state || ' (' || reason || ')' FROM docs_sources`))
		require.Equal(t, []string{"The A"}, g.strings(`SELECT title FROM docs_pages WHERE key LIKE '%/docs/a'`))
		all := g.everything()
		require.NotContains(t, all, "me@example.com")
		require.NotContains(t, all, "import X")
		require.Contains(t, g.strings(`SELECT to_key FROM docs_links WHERE from_key LIKE '%/docs'`), "https://"+host+"/docs/guide")

		g.newSession()
		state, _ = g.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{wholeTree}, g.requestsToAPI())
		require.Equal(t, [2]int64{4, 0}, [2]int64{g.crawl.part.stats.Unchanged, g.crawl.part.stats.Updated})

		g.files["docs/guide/b.md"] = prose("another b")
		g.put()
		g.newSession()
		g.run()
		require.Equal(t, []string{wholeTree, "docs/guide/b.md"}, g.requestsToAPI())
		require.Equal(t, [2]int64{3, 1}, [2]int64{g.crawl.part.stats.Unchanged, g.crawl.part.stats.Updated})

		delete(g.files, "docs/guide/b.md")
		g.put()
		g.newSession()
		g.run()
		require.Equal(t, []string{wholeTree}, g.requestsToAPI())
		require.Equal(t, row{Deleted, "the repository does not have it", 1, 0, false}, g.row("/docs/guide/b"))
		require.Equal(t, int64(1), g.crawl.part.stats.Deleted)
		require.Empty(t, g.log())

		// A repository that cannot be read deletes nothing.
		for name, files := range map[string]map[string]string{"gone": nil, "empty": {"x.md": "x"}} {
			g.hub.put("acme/docs", files)
			g.newSession()
			state, reason = g.run()
			require.Equal(t, Unreachable, state, name)
			require.Contains(t, reason, map[string]string{"gone": "GitHub answers 404", "empty": "has no Markdown"}[name])
			require.Equal(t, []string{"3"}, g.strings(`SELECT CAST(COUNT(*) AS TEXT) FROM docs_pages WHERE content_hash <> ''`))
		}
	})
}

// An answer that is not the content with the hash that the tree names is a dead letter, and
// what is stored stays. It is asked for again in the next session.
func TestGitHubWrongContent(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
	g.run()
	before := g.strings(`SELECT preview FROM docs_chunks WHERE key LIKE '%/docs/guide/b' ORDER BY ordinal`)
	g.files["docs/guide/b.md"] = prose("another b")
	g.put()
	wrong := func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = io.WriteString(w, "# Moved\n\n"+prose("a portal"))
			return
		}
		g.hub.ServeHTTP(w, r)
	}
	g.limit = wrong
	g.newSession()
	state, _ := g.run()
	require.Equal(t, Done, state)
	reason := "GitHub's answer for docs/guide/b.md is not the content with the hash " + gitID("blob", g.files["docs/guide/b.md"])
	require.Equal(t, row{Failed, reason, 1, 200, true}, g.row("/docs/guide/b"))
	require.Equal(t, before, g.strings(`SELECT preview FROM docs_chunks WHERE key LIKE '%/docs/guide/b' ORDER BY ordinal`))
	require.Equal(t, []string{"wrong_content https://" + host + "/docs/guide/b: " + reason}, g.deadLetters())

	g.limit = nil
	g.newSession()
	g.run()
	require.Equal(t, row{Indexed, "", 1, 200, true}, g.row("/docs/guide/b"))
	require.NotEqual(t, before, g.strings(`SELECT preview FROM docs_chunks WHERE key LIKE '%/docs/guide/b' ORDER BY ordinal`))
	require.Empty(t, g.deadLetters())
}

// With html after it the site's other pages are asked for as before.
func TestGitHubAndHTML(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub, policy.HTML)
	g.policy.SeedURLs = append(g.policy.SeedURLs, "https://"+host+"/docs/start")
	g.set("/docs/start", doc("start", "/docs/a", "/docs/more"))
	g.set("/docs/more", doc("more"))
	state, _ := g.run()
	require.Equal(t, Done, state)
	require.Equal(t, []string{"/docs/start", "/docs/more"}, g.paths())
	_, counts := sourcesOf(g.world)
	require.Equal(t, map[string][2]int64{"github": {4, 5}, "html": {2, 2}}, counts)
}

// Without a base the pages are those of github.com.
func TestGitHubWithoutBase(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
	p, err := policy.Parse("p.yaml", []byte("provider_id: p\nseed_urls: [https://github.com/acme/docs]\nallowed_path_patterns: [/acme/docs/blob/**]\nblocked_path_patterns: ['/**/a.mdx']\nmax_pages: 2\nsources: [github]\ngithub: {repository: acme/docs, path: docs}\n"), time.Now())
	require.NoError(t, err)
	g.policy = p
	state, reason := g.run()
	require.Equal(t, [2]string{string(Done), reasonMaxPages}, [2]string{string(state), reason})
	require.Equal(t, []string{"https://github.com/acme/docs/blob/HEAD/docs/guide/README.md", "https://github.com/acme/docs/blob/HEAD/docs/index.md"},
		g.strings(`SELECT address FROM docs_pages WHERE content_hash <> '' ORDER BY address`))
	require.Equal(t, []string{"trees/HEAD?recursive=1", "docs/index.md", "docs/guide/README.md"}, g.requestsToAPI())
}

// last answers, and says that no request is left.
func (g *gitHubWorld) last(reset time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", fmt.Sprint(reset.Unix()))
		g.hub.ServeHTTP(w, r)
	}
}

// When no request is left the provider is held until the limit ends, however long that is,
// and continued without asking for anything twice.
func TestGitHubLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		nth    int // the request that is answered so
		answer func(g *gitHubWorld, reset time.Time) http.HandlerFunc
		wait   time.Duration
		again  bool // that request is made again
	}{
		{"403 with the time of the reset", 3, func(_ *gitHubWorld, reset time.Time) http.HandlerFunc {
			return status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(reset.Unix()))
		}, 50 * time.Minute, true},
		{"a file is the last one that is allowed", 3, (*gitHubWorld).last, 50 * time.Minute, false},
		{"the tree is the last one that is allowed", 1, (*gitHubWorld).last, 50 * time.Minute, false},
		{"403 for the tree", 1, func(_ *gitHubWorld, reset time.Time) http.HandlerFunc {
			return status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(reset.Unix()))
		}, 50 * time.Minute, true},
		{"429 with Retry-After", 3, func(_ *gitHubWorld, _ time.Time) http.HandlerFunc { return status(429, "Retry-After", "1800") }, 30 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
			n := 0
			g.limit = func(w http.ResponseWriter, r *http.Request) {
				if n++; n == tt.nth {
					tt.answer(g, g.time.Now().Add(tt.wait))(w, r)
					return
				}
				g.hub.ServeHTTP(w, r)
			}
			state, reason := g.run()
			require.Equal(t, Held, state)
			require.Contains(t, reason, "asks for a pause until")
			all := []string{wholeTree, "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md"}
			require.Equal(t, all[:tt.nth], g.requestsToAPI())
			state, _ = g.run()
			require.Equal(t, Held, state, "a run before the end asks for nothing")
			require.Empty(t, g.requestsToAPI())
			g.time.Advance(tt.wait - time.Minute)
			began := g.time.Now()
			state, _ = g.run()
			require.Equal(t, Done, state)
			left := all[tt.nth:]
			if tt.again {
				left = all[tt.nth-1:]
			}
			require.Equal(t, left, g.requestsToAPI())
			require.GreaterOrEqual(t, g.time.Now().Sub(began), 59*time.Second, "the rest of the pause is waited for")
		})
	}
}

// A tree that has not changed says so as the last request too: then nothing is left to ask for.
func TestGitHubUnchangedAsTheLastRequest(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
	g.run()
	g.requestsToAPI()
	g.newSession()
	var answers []int
	g.limit = func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		g.last(g.time.Now().Add(time.Hour))(recorded, r)
		answers = append(answers, recorded.Code)
		maps.Copy(w.Header(), recorded.Header())
		w.WriteHeader(recorded.Code)
	}
	state, reason := g.run()
	require.Equal(t, Done, state, reason)
	require.Equal(t, []int{http.StatusNotModified}, answers)
	require.Equal(t, []string{wholeTree}, g.requestsToAPI())
	require.Equal(t, int64(4), g.crawl.part.stats.Unchanged)
}

// A file over the limit of a page is not asked for: the tree has its size. One that was a
// page before stays as it was.
func TestGitHubLongFile(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
	g.files["docs/guide/long.md"] = strings.Repeat("x", maxPage+1)
	g.files["docs/guide/most.md"] = prose("most") + strings.Repeat(" ", maxPage-len(prose("most")))
	g.put()
	state, _ := g.run()
	require.Equal(t, Done, state)
	require.Equal(t, []string{wholeTree, "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md", "docs/guide/most.md"}, g.requestsToAPI())
	require.Equal(t, row{TooLarge, "longer than 5 MB", 1, 0, false}, g.row("/docs/guide/long"))
	require.Equal(t, row{Indexed, "", 1, 200, true}, g.row("/docs/guide/most"))
	g.files["docs/guide/b.md"] = strings.Repeat("b", maxPage+1)
	g.put()
	g.newSession()
	g.run()
	require.Equal(t, []string{wholeTree}, g.requestsToAPI())
	require.Equal(t, row{TooLarge, "longer than 5 MB", 1, 0, true}, g.row("/docs/guide/b"))
	require.Zero(t, g.crawl.part.stats.Deleted)
}

// A short pause is waited for: GitHub's secondary limits may name no time, then it is a minute.
func TestGitHubSecondaryLimit(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
	n := 0
	var refused, after time.Time
	g.limit = func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 2:
			refused = g.time.Now()
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"message":"You have exceeded a secondary rate limit."}`)
			return
		case 3:
			after = g.time.Now()
		}
		g.hub.ServeHTTP(w, r)
	}
	state, _ := g.run()
	require.Equal(t, Done, state)
	require.Equal(t, []string{wholeTree, "docs/index.md", "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md"}, g.requestsToAPI())
	require.GreaterOrEqual(t, after.Sub(refused), time.Minute)
}

// Where one answer does not have all of the tree, the folder of the documentation is asked for.
func TestGitHubTruncated(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 9, policy.GitHub)
	for i := range 5 {
		g.files[fmt.Sprintf("aaa/%d.md", i)] = prose("else")
	}
	g.put()
	state, _ := g.run()
	require.Equal(t, Done, state)
	require.Equal(t, []string{wholeTree, "trees/main", "trees/000?recursive=1", "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md"}, g.requestsToAPI())
	require.Contains(t, g.strings(`SELECT reason FROM docs_sources`)[0], "too long for one answer")
	g.newSession()
	g.run()
	require.Equal(t, []string{wholeTree}, g.requestsToAPI())
}

// The token goes to the API alone, also where that redirects elsewhere, and is written nowhere.
func TestGitHubToken(t *testing.T) {
	t.Setenv(gitHubToken, "ghp_secret")
	g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub, policy.HTML)
	g.policy.SeedURLs = append(g.policy.SeedURLs, "https://"+host+"/docs/start")
	g.set("/docs/start", doc("start"))
	state, _ := g.run()
	require.Equal(t, Done, state)
	for _, h := range g.asked {
		require.Equal(t, "Bearer ghp_secret", h.Get("Authorization"))
	}
	require.Len(t, g.asked, 5)
	require.Equal(t, "application/vnd.github+json", g.asked[0].Get("Accept"))
	require.Equal(t, "2022-11-28", g.asked[0].Get("X-GitHub-Api-Version"))
	for _, r := range g.log() {
		require.Empty(t, r.header.Get("Authorization"), r.path)
	}
	g.limit = status(302, "Location", "https://"+host+"/docs/steal")
	g.newSession()
	state, reason := g.run()
	require.Equal(t, Unreachable, state)
	require.Contains(t, reason, "GitHub answers 302")
	require.Empty(t, g.log(), "a redirect is not followed")
	require.NotContains(t, g.everything()+reason+strings.Join(g.strings(`SELECT reason FROM docs_sources`), ""), "ghp_secret")
}

// A run that is killed anywhere is continued, and nothing that was answered and stored is asked for again.
func TestGitHubKilled(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 4; kill++ {
		g := newGitHubWorld(t, openDB(t, dbtest.SQLite(t)), 0, policy.GitHub)
		ctx, cancel := context.WithCancel(t.Context())
		pauses := 0
		g.waits = func() {
			if pauses++; pauses == kill {
				cancel()
			}
		}
		_, _, err := g.try(ctx)
		require.ErrorIs(t, err, context.Canceled)
		g.waits = nil
		state, _ := g.run()
		require.Equal(t, Done, state)
		asked := g.requestsToAPI()
		require.Equal(t, []string{wholeTree, "docs/index.md", "docs/a.mdx", "docs/guide/README.md", "docs/guide/b.md"}, slices.Compact(slices.Clone(asked)), "killed in pause %d", kill)
		require.Len(t, asked, 5, "killed in pause %d", kill)
	}
}

// GitHub says in three ways how long to wait (docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
func TestGitHubPause(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name   string
		status int
		header []string
		body   string
		want   time.Duration
	}{
		{"an answer", 200, []string{"X-Ratelimit-Remaining", "59", "X-Ratelimit-Reset", "1000600"}, "", -1},
		{"the last one", 304, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1000600"}, "", 601 * time.Second},
		{"refused", 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1003600"}, "", 3601 * time.Second},
		{"the longer of two", 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1000010", "Retry-After", "60"}, "", time.Minute},
		{"secondary", 403, []string{"Retry-After", "90"}, "", 90 * time.Second},
		{"secondary without a time", 403, nil, `{"message":"You have exceeded a secondary Rate Limit"}`, time.Minute},
		{"429 without a time", 429, nil, "", time.Minute},
		{"a reset that is no time", 429, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "soon"}, "", time.Minute},
		{"forbidden", 403, nil, `{"message":"Repository access blocked"}`, -1},
		{"unavailable", 503, []string{"Retry-After", "5"}, "", 5 * time.Second},
	} {
		h := http.Header{}
		for i := 0; i+1 < len(tt.header); i += 2 {
			h.Set(tt.header[i], tt.header[i+1])
		}
		require.Equal(t, tt.want, gitHubPause(&web.Response{Status: tt.status, Header: h, Body: []byte(tt.body)}, now), tt.name)
	}
}
