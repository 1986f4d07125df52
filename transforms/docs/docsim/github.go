package docsim

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
)

// GitHub is what GitHub's REST API answers for the trees and blobs of public repositories
// (docs.github.com/en/rest/git).
type GitHub struct {
	mu    sync.Mutex
	repos map[string]map[string]string // files by owner/name
	most  int
}

// NewGitHub has no repositories. most is the number of entries of one answer for a tree;
// 0: no limit.
func NewGitHub(most int) *GitHub { return &GitHub{repos: map[string]map[string]string{}, most: most} }

// Set sets the files of a repository by their paths.
func (g *GitHub) Set(repo string, files map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repos[repo] = maps.Clone(files)
}

// BlobID is the SHA of a file.
func BlobID(content string) string { return objectID("blob", content) }

func objectID(kind, content string) string {
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

// tree lists a folder. Folders in it are listed too if it is recursive.
func tree(files map[string]string, folder string, recursive bool) (out []treeEntry, sha string) {
	var names strings.Builder
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		below, in := strings.CutPrefix(name, folder)
		if !in {
			continue
		}
		id := objectID("blob", files[name])
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
			_, id := tree(files, folder+at+"/", false)
			out = append(out, treeEntry{at, "040000", "tree", id, 0})
		}
	}
	slices.SortFunc(out, func(a, b treeEntry) int { return strings.Compare(a.Path, b.Path) })
	return out, objectID("tree", names.String())
}

// ServeHTTP implements http.Handler.
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
			if objectID("blob", text) == parts[5] && r.Header.Get("Accept") == "application/vnd.github.raw+json" {
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

func (g *GitHub) find(files map[string]string, sha string, recursive bool) (entries []treeEntry, id string, found bool) {
	all, root := tree(files, "", true)
	if sha == "HEAD" || sha == "main" || sha == root {
		entries, id = tree(files, "", recursive)
		return entries, id, true
	}
	for _, e := range all {
		if e.Type == "tree" && e.SHA == sha {
			entries, id = tree(files, e.Path+"/", recursive)
			return entries, id, true
		}
	}
	return nil, "", false
}

func (g *GitHub) missing(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`)
}

// Repository are the site's pages as files of Markdown.
func (s *Site) Repository() map[string]string {
	files := map[string]string{}
	for _, at := range s.Paths() {
		p, _ := s.Page(at)
		if p.Kind == "" && p.Status == 0 {
			name := strings.Trim(at, "/")
			if name == "" {
				name = "index"
			}
			files[name+".md"] = p.markdown()
		}
	}
	return files
}
