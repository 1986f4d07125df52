package github_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/github"
)

func sha(b byte) string { return strings.Repeat(string(b), 40) }

// A file is the page that it becomes on a site, or its own page on github.com.
func TestAt(t *testing.T) {
	for _, tt := range []struct{ root, base, file, page, links string }{
		{"docs", "https://a.example/help/", "docs/guide/a b.mdx", "https://a.example/help/guide/a%20b", "https://a.example/help/guide/a%20b.mdx"},
		{"docs", "https://a.example/help", "docs/guide/README.md", "https://a.example/help/guide/", "https://a.example/help/guide/README.md"},
		{"", "https://a.example", "Index.markdown", "https://a.example/", "https://a.example/Index.markdown"},
		{"", "", "docs/index.md", "https://github.com/o/r/blob/HEAD/docs/index.md", "https://github.com/o/r/blob/HEAD/docs/index.md"},
	} {
		page, links := github.Repository{Name: "o/r", Path: tt.root, Base: tt.base}.At(github.File{Path: tt.file})
		require.Equal(t, [2]string{tt.page, tt.links}, [2]string{page, links})
	}
	r := github.Repository{Name: "o/r", Ref: "release/1", Path: "docs"}
	require.Equal(t, "https://api.github.com/repos/o/r/git/trees/release%2F1?recursive=1", r.Tree("", true))
	require.Equal(t, "https://github.com/o/r/tree/release/1/docs", r.Address())
}

// Only whole files of Markdown below the folder are pages.
func TestFiles(t *testing.T) {
	tree, err := github.ReadTree([]byte(fmt.Sprintf(`{"sha":%q,"truncated":true,"tree":[{"path":"d/README.md","type":"blob","sha":%[2]q,"size":3},{"path":"d/index.md","type":"blob","sha":%[2]q},
		{"path":"dd/x.md","type":"blob","sha":%[2]q},{"path":"d/.x/y.md","type":"blob","sha":%[2]q},{"path":"d/_x.md","type":"blob","sha":%[2]q},{"path":"d/x.rst","type":"blob","sha":%[2]q},
		{"path":"d/link.md","mode":"120000","type":"blob","sha":%[2]q},{"path":"d/sub.md","type":"commit","sha":%[2]q},{"path":"d/a.MD","type":"blob","sha":%[2]q},
		{"path":"d/../../etc.md","type":"blob","sha":%[2]q},{"path":"d/bad.md","type":"blob","sha":"../x"}]}`, sha('a'), sha('b'))))
	require.NoError(t, err)
	require.True(t, tree.Truncated)
	files, left := github.Repository{Path: "d"}.Files(tree.Entries)
	require.Equal(t, []github.File{{"d/index.md", sha('b'), 0}, {"d/README.md", sha('b'), 3}, {"d/a.MD", sha('b'), 0}}, files)
	require.Equal(t, map[string]int{".rst": 1}, left)
	for _, body := range []string{"", "[]", "{}", `{"sha":"x","tree":[]}`, `{"message":"Not Found"}`} {
		_, err := github.ReadTree([]byte(body))
		require.Error(t, err, body)
	}
}

// The hashes are git's: printf 'hello\n' | git hash-object --stdin.
func TestHas(t *testing.T) {
	for sha, want := range map[string]bool{"ce013625030ba8dba906f756967f9e9ca394464a": true, "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4": true,
		"ce013625030ba8dba906f756967f9e9ca394464b": false, "": false} {
		require.Equal(t, want, github.File{SHA: sha}.Has([]byte("hello\n")), sha)
	}
	require.True(t, github.File{SHA: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}.Has(nil))
}

func FuzzReadTree(f *testing.F) {
	f.Add(fmt.Sprintf(`{"sha":%q,"tree":[{"path":"d/a.md","type":"blob","sha":%q}]}`, sha('a'), sha('b')), "d")
	f.Fuzz(func(t *testing.T, body, folder string) {
		tree, err := github.ReadTree([]byte(body))
		if err != nil {
			return
		}
		r := github.Repository{Name: "o/r", Path: folder, Base: "https://a.example/"}
		files, _ := r.Files(tree.Entries)
		for _, file := range files {
			require.Len(t, strings.TrimLeft(file.SHA, "0123456789abcdef"), 0)
			page, at := r.At(file)
			require.True(t, strings.HasPrefix(page, "https://a.example/") && strings.HasPrefix(at, "https://a.example/"))
		}
	})
}
