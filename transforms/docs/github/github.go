// Package github reads what GitHub's REST API says of a repository of documentation: the
// files of its tree, and which page each is. It is pure. No promise: see docs/library.md.
package github

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // Git names its objects so
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Headers of requests to the API.
const (
	Accept  = "application/vnd.github+json"
	Raw     = "application/vnd.github.raw+json"
	Version = "2022-11-28" // X-GitHub-Api-Version
)

// Repository is a folder of a repository, and where its pages are.
type Repository struct {
	Name string // owner/name
	Ref  string // "": the default branch
	Path string // "": all of it
	Base string // the public address of the folder; "": pages are on github.com
}

func (r Repository) api() string { return "https://api.github.com/repos/" + r.Name + "/git/" }

// ref is the reference as GitHub takes it.
func (r Repository) ref() string { return cmp.Or(r.Ref, "HEAD") }

// Tree is the address of a tree by its SHA, "" for the one at the reference.
func (r Repository) Tree(sha string, recursive bool) string {
	at := r.api() + "trees/" + url.PathEscape(cmp.Or(sha, r.ref()))
	if recursive {
		at += "?recursive=1"
	}
	return at
}

// Blob is the address of a file's content by its SHA.
func (r Repository) Blob(sha string) string { return r.api() + "blobs/" + sha }

// Address is that of the folder for people. It names the repository, the reference and the folder.
func (r Repository) Address() string {
	return strings.TrimSuffix("https://github.com/"+r.Name+"/tree/"+escape(path.Join(r.ref(), r.Path)), "/")
}

// Entry is a file or a folder of a tree.
type Entry struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Type string `json:"type"` // blob, tree, or commit: another repository
	SHA  string `json:"sha"`
	Size int64  `json:"size"`
}

// Tree is the answer for a tree.
type Tree struct {
	SHA       string  `json:"sha"`
	Entries   []Entry `json:"tree"`
	Truncated bool    `json:"truncated"` // it has more entries than one answer
}

var hash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// ReadTree reads the answer for a tree. Entries whose path or SHA cannot be what they should are left out.
func ReadTree(body []byte) (t Tree, err error) {
	if err := json.Unmarshal(body, &t); err != nil {
		return Tree{}, fmt.Errorf("reading a tree: %w", err)
	}
	if !hash.MatchString(t.SHA) || t.Entries == nil {
		return Tree{}, fmt.Errorf("reading a tree: the answer is none")
	}
	t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool {
		return !hash.MatchString(e.SHA) || e.Path != path.Clean(e.Path) || strings.HasPrefix(e.Path, "/") || strings.HasPrefix(e.Path, "..") || untrusted.Key(e.Path) != nil
	})
	return t, nil
}

// In reports whether a folder is in that of the documentation.
func (r Repository) In(folder string) bool { return r.Path == "" || within(folder, r.Path) }

// Near reports whether a folder is in that of the documentation, or has it.
func (r Repository) Near(folder string) bool { return r.In(folder) || within(r.Path, folder) }

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// File is a file of Markdown.
type File struct {
	Path string
	SHA  string
	Size int64
}

// Has reports whether content is the file's: Git names each by the hash of its length and its bytes.
func (f File) Has(content []byte) bool {
	sum := sha1.New() //nolint:gosec // as Git does
	if len(f.SHA) > 2*sha1.Size {
		sum = sha256.New() // repositories of that format
	}
	_, _ = fmt.Fprintf(sum, "blob %d\x00%s", len(content), content) // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil)) == f.SHA
}

var (
	markdown = []string{".md", ".mdx", ".markdown"}
	// others are forms of documentation that are not read.
	others = []string{".rst", ".adoc", ".asciidoc", ".org", ".ipynb", ".html"}
)

// Files are the files of Markdown in the repository's folder, sorted, and how many others
// it has by their endings. What begins with a dot or an underscore is no page.
func (r Repository) Files(entries []Entry) (files []File, left map[string]int) {
	left = map[string]int{}
	for _, e := range entries {
		if e.Type != "blob" || e.Mode == "120000" || !r.In(e.Path) {
			continue
		}
		below := strings.TrimPrefix(strings.TrimPrefix(e.Path, r.Path), "/")
		if slices.ContainsFunc(strings.Split(below, "/"), func(s string) bool { return s == "" || s[0] == '.' || s[0] == '_' }) {
			continue
		}
		switch end := strings.ToLower(path.Ext(e.Path)); {
		case slices.Contains(markdown, end):
			files = append(files, File{e.Path, e.SHA, e.Size})
		case slices.Contains(others, end):
			left[end]++
		}
	}
	Sort(files)
	return files, left
}

// Sort sorts files by folder, the index of each first.
func Sort(files []File) {
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(strings.Compare(path.Dir(a.Path), path.Dir(b.Path)), order(a)-order(b), strings.Compare(a.Path, b.Path))
	})
}

// order has the index of a folder before its README, which may be the same page.
func order(f File) int {
	switch stem(f.Path) {
	case "index":
		return 0
	case "readme":
		return 1
	}
	return 2
}

func stem(name string) string {
	return strings.ToLower(strings.TrimSuffix(path.Base(name), path.Ext(name)))
}

// At are the addresses of a file: of the page that it is, and its own, against which its links are.
func (r Repository) At(f File) (page, file string) {
	if r.Base == "" {
		at := "https://github.com/" + r.Name + "/blob/" + escape(path.Join(r.ref(), f.Path))
		return at, at
	}
	base, below := strings.TrimRight(r.Base, "/")+"/", strings.TrimPrefix(strings.TrimPrefix(f.Path, r.Path), "/")
	to := strings.TrimSuffix(below, path.Ext(below))
	if order(f) < 2 {
		if to = path.Dir(below) + "/"; to == "./" {
			to = ""
		}
	}
	return base + escape(to), base + escape(below)
}

func escape(name string) string { return (&url.URL{Path: "/" + name}).EscapedPath()[1:] }
