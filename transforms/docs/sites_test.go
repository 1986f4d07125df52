package docs

import (
	"crypto/sha1" //nolint:gosec // Git names its objects so
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/newsfork/seed-engine/transforms/docs/docsim"
)

// offerTexts adds what a site may have for language models: llms.txt, and with full the
// text of all its pages in llms-full.txt, or else the Markdown of each page at its
// address with .md.
func offerTexts(s *docsim.Site, full bool) {
	var list, all strings.Builder
	list.WriteString("# Demo\n\n## Docs\n\n")
	for _, path := range s.Paths() {
		p, _ := s.Page(path)
		if p.Kind != "" || p.Status != 0 {
			continue
		}
		text := asMarkdown(p)
		if full {
			fmt.Fprintf(&list, "- [%s](%s)\n", p.Title, path)
			head, rest, _ := strings.Cut(text, "\n")
			fmt.Fprintf(&all, "%s\nSource: https://%s%s\n%s\n", head, s.Host, path, rest)
		} else {
			fmt.Fprintf(&list, "- [%s](%s.md)\n", p.Title, path)
			s.Set(path+".md", docsim.Page{Kind: "text/markdown; charset=utf-8", Body: text})
		}
	}
	s.Set("/llms.txt", docsim.Page{Kind: "text/plain; charset=utf-8", Body: list.String()})
	if full {
		s.Set("/llms-full.txt", docsim.Page{Kind: "text/plain; charset=utf-8", Body: all.String()})
	}
}

// describe adds an OpenAPI description, which the header of the page that a
// crawl begins with names (RFC 8631).
func describe(s *docsim.Site) {
	at := strings.TrimRight(s.Seed, "/") + "/openapi.json"
	s.Set(at, docsim.Page{Kind: "application/json", Body: `{"openapi":"3.1.0","info":{"title":"Demo API of ` + s.Host + `"},"paths":{"/things":{"get":{"summary":"All things",` +
		`"responses":{"200":{"description":"The things","content":{"application/json":{"schema":{"type":"object","properties":{"id":{"type":"string","description":"Which thing of ` + s.Host + ` it is"}}}}}}}}}}}`})
	seed, _ := s.Page(s.Seed)
	seed.Header = http.Header{"Link": {"<" + at + `>; rel="service-desc"`}}
	s.Set(s.Seed, seed)
}

// asMarkdown is the page as its author wrote it.
func asMarkdown(p docsim.Page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.Title)
	for _, sec := range p.Sections {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", sec.Heading, sec.Text)
		if sec.Code != "" {
			fmt.Fprintf(&b, "```%s\n%s\n```\n\n", sec.Lang, sec.Code)
		}
		for i, row := range sec.Table {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
			}
		}
		b.WriteByte('\n')
	}
	for _, l := range p.Links {
		fmt.Fprintf(&b, "- [%s](%s)\n", strings.Trim(l[strings.LastIndexByte(strings.TrimRight(l, "/"), '/')+1:], "/"), l)
	}
	return b.String()
}

// asRepository are the site's pages as files of Markdown.
func asRepository(s *docsim.Site) map[string]string {
	files := map[string]string{}
	for _, at := range s.Paths() {
		p, _ := s.Page(at)
		if p.Kind == "" && p.Status == 0 {
			name := strings.Trim(at, "/")
			if name == "" {
				name = "index"
			}
			files[name+".md"] = asMarkdown(p)
		}
	}
	return files
}

// gitHub is what GitHub's REST API answers for the trees and blobs of public repositories
// (docs.github.com/en/rest/git).
type gitHub struct {
	mu    sync.Mutex
	repos map[string]map[string]string // files by owner/name
	most  int
}

// newGitHub has no repositories. most is the number of entries of one answer for a tree;
// 0: no limit.
func newGitHub(most int) *gitHub { return &gitHub{repos: map[string]map[string]string{}, most: most} }

// put sets the files of a repository by their paths.
func (g *gitHub) put(repo string, files map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repos[repo] = maps.Clone(files)
}

// gitID is the SHA of an object.
func gitID(kind, content string) string {
	sum := sha1.Sum([]byte(fmt.Sprintf("%s %d\x00%s", kind, len(content), content))) //nolint:gosec // as Git does
	return hex.EncodeToString(sum[:])
}

type treeEntry struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Type string `json:"type"`
	SHA  string `json:"sha"`
	Size int    `json:"size,omitempty"`
}

// treeOf lists a folder. Folders in it are listed too if it is recursive.
func treeOf(files map[string]string, folder string, recursive bool) (out []treeEntry, sha string) {
	var names strings.Builder
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		below, in := strings.CutPrefix(name, folder)
		if !in {
			continue
		}
		id := gitID("blob", files[name])
		names.WriteString(below + " " + id + "\n")
		for at := path.Dir(below); at != "."; at = path.Dir(at) {
			folders[at] = true
		}
		if recursive || !strings.Contains(below, "/") {
			out = append(out, treeEntry{below, "100644", "blob", id, len(files[name])})
		}
	}
	for at := range folders {
		if recursive || !strings.Contains(at, "/") {
			_, id := treeOf(files, folder+at+"/", false)
			out = append(out, treeEntry{at, "040000", "tree", id, 0})
		}
	}
	slices.SortFunc(out, func(a, b treeEntry) int { return strings.Compare(a.Path, b.Path) })
	return out, gitID("tree", names.String())
}

// ServeHTTP implements http.Handler.
func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 6 || parts[0] != "repos" || parts[3] != "git" || g.repos[parts[1]+"/"+parts[2]] == nil {
		g.missing(w)
		return
	}
	files := g.repos[parts[1]+"/"+parts[2]]
	if parts[4] == "blobs" {
		for _, text := range files {
			if gitID("blob", text) == parts[5] && r.Header.Get("Accept") == "application/vnd.github.raw+json" {
				w.Header().Set("Content-Type", "application/vnd.github.raw+json; charset=utf-8")
				_, _ = io.WriteString(w, text)
				return
			}
		}
		g.missing(w)
		return
	}
	recursive := r.URL.Query().Has("recursive")
	entries, sha, found := g.find(files, parts[5], recursive)
	if !found || parts[4] != "trees" {
		g.missing(w)
		return
	}
	etag := fmt.Sprintf("W/%q", sha)
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	truncated := recursive && g.most > 0 && len(entries) > g.most
	if truncated {
		entries = entries[:g.most]
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"sha": sha, "url": "https://api.github.com" + r.URL.Path, "tree": entries, "truncated": truncated})
}

func (g *gitHub) find(files map[string]string, sha string, recursive bool) (entries []treeEntry, id string, found bool) {
	all, root := treeOf(files, "", true)
	if sha == "HEAD" || sha == "main" || sha == root {
		entries, id = treeOf(files, "", recursive)
		return entries, id, true
	}
	for _, e := range all {
		if e.Type == "tree" && e.SHA == sha {
			entries, id = treeOf(files, e.Path+"/", recursive)
			return entries, id, true
		}
	}
	return nil, "", false
}

func (g *gitHub) missing(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`)
}
