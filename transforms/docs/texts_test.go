package docs

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func TestPageFile(t *testing.T) {
	for address, want := range map[string]string{
		"https://docs.example/":                            "docs.example/index.md",
		"https://docs.example/a/b.html":                    "docs.example/a/b.html.md",
		"https://docs.example/a/":                          "docs.example/a.md",
		"https://docs.example:8080/a":                      "docs.example_8080/a.md",
		"https://docs.example/a.md":                        "docs.example/a-md-",
		"https://docs.example/a.md/b":                      "docs.example/a-md/b-",
		"https://docs.example/a?page=2":                    "docs.example/a-",
		"https://docs.example/../../etc":                   "docs.example/--/--/etc-",
		"https://docs.example/a/%2e%2e/b":                  "docs.example/a/%2e%2e/b.md",
		"https://docs.example/.ssh/x":                      "docs.example/-ssh/x-",
		"https://docs.example/a:b\\c":                      "docs.example/a-b%5Cc-",
		"https://docs.example/" + strings.Repeat("x", 200): "docs.example/" + strings.Repeat("x", 80) + "-",
	} {
		got, err := pageFile(address)
		if err != nil || got != want && (!strings.HasSuffix(want, "-") || !strings.HasPrefix(got, want) || len(got) != len(want)+len("0123abcd.md")) {
			t.Errorf("pageFile(%s) = %s, %v; want %s", address, got, err, want)
		}
	}
}

// No two addresses have one file, also where names differ by more than the case of their
// letters only, or where a name ends in dots or means a device.
func TestPageFiles(t *testing.T) {
	of := map[string]string{}
	for _, address := range strings.Fields(`https://a.example https://a.example/?q https://a.example//  https://a.example/index https://a.example/index/ https://a.example/Index https://a.example/index.md
		https://a.example/b//c https://a.example/b/index/c https://a.example//b/c https://a.example/b/c https://a.example/b/c// https://a.example/B/c https://a.example/b/C https://a.example/b/c?x https://a.example/b/c?X
		https://a.example/./b https://a.example/../b https://a.example/b/. https://a.example/b/.. https://a.example/b./c https://a.example/b../c https://a.example/b. https://a.example/b.. https://a.example/--/b
		https://a.example/con https://a.example/CON https://a.example/con.txt https://a.example/-con https://a.example/_con https://a.example/nul/x https://a.example/x/Aux.a.b https://a.example/com1 https://a.example/lpt9.md
		https://a.example/c.md/d https://a.example/c.MD/d https://a.example/c https://a.example/c.md https://a.example/c-md https://a.example/%41 https://a.example/A https://a.example/a%2fb https://a.example/a/b
		https://a.example:8080/ https://a.example_8080/ https://[::1]/ https://__1/ https://con/x`) {
		name, err := pageFile(address)
		require.NoError(t, err)
		require.Empty(t, of[strings.ToLower(name)], "%s: %s", address, name)
		of[strings.ToLower(name)] = address
	}
	a, err := pageFile("https://a.example/x?y")
	require.NoError(t, err)
	b, err := pageFile("https://a.example/" + strings.TrimSuffix(path.Base(a), ".md")) // made to have the same name
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	long, err := pageFile("https://a.example/" + strings.Repeat("abc/", 450))
	require.NoError(t, err)
	require.Less(t, len(long), 300)
}

// As many files are there as the command says, also of two providers with the same page.
func TestWriteFolder(t *testing.T) {
	d := openDB(t, dbtest.SQLite(t))
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, p := range [][2]string{{"a", "/"}, {"a", "/index"}, {"a", "/b//c"}, {"a", "/b/index/c"}, {"a", "/B/index/c"}, {"b", "/"}, {"b", "/x"}} {
		_, err := d.Exec(`INSERT INTO docs_pages (provider, key, address, session, seq, discovered_at, depth, status, content_hash, title) VALUES ($1, $2, $2, 's', 1, $3, 0, 'stored', 'h', $2)`, p[0], "https://docs.example"+p[1], 1)
		require.NoError(t, err)
	}
	dir, again := t.TempDir(), ""
	for range 2 {
		var out bytes.Buffer
		n, err := WriteFolder(t.Context(), d, s, dir, []string{"a", "b"}, func(string) bool { return false }, true, &out)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		require.Contains(t, out.String(), "a: 5 pages in "+dir)
		pages, names := map[string]bool{}, ""
		require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				body, err := os.ReadFile(name)
				require.NoError(t, err)
				pages[regexp.MustCompile(`(?m)^url: (.*)\n(.*)$`).FindString(string(body))] = true
				names += name + "\n"
			}
			return err
		}))
		require.Len(t, pages, 7, "%v", pages)
		require.Equal(t, 7, strings.Count(names, "\n"))
		if again != "" {
			require.Equal(t, again, names, "names stay")
		}
		again = names
	}
	var shared struct {
		Host  string            `json:"host"`
		Pages map[string]string `json:"pages"`
	}
	require.NoError(t, json.Unmarshal([]byte(`{"host": "docs.evil.example", "pages": {"/": "Start", "/index": "Page index", "/b//c": "double slash", "/b/index/c": "index between"}}`), &shared))
	names := map[string]bool{}
	for at := range shared.Pages {
		name, err := pageFile("https://" + shared.Host + at)
		require.NoError(t, err)
		names[name] = true
	}
	require.Len(t, names, len(shared.Pages))
}

// A page's file is inside of its folder, whatever its address is, and a name that any system takes.
func FuzzPageFile(f *testing.F) {
	f.Add("https://a.example/../..//b?c")
	f.Add("https://a.example/con.x/B./" + strings.Repeat("y", 300))
	device := regexp.MustCompile(`(?i)(?:^|/)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|/)|\./|[^/]{250}`)
	f.Fuzz(func(t *testing.T, address string) {
		name, err := pageFile(address)
		if u, uerr := url.Parse(address); err == nil && uerr == nil && u.Host != "" && device.MatchString(name) {
			t.Errorf("%q has the file %q", address, name)
		}
		if err == nil && (strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || strings.Contains(name, "/../") || strings.ContainsRune(name, 0)) {
			t.Errorf("%q has the file %q", address, name)
		}
	})
}

// A page that was kept whole has its links, or their text alone; it outlives the hand-off.
func TestKeptPage(t *testing.T) {
	d := openDB(t, dbtest.SQLite(t))
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = d.Exec(`INSERT INTO docs_pages (provider, key, address, session, seq, discovered_at, depth, status, content_hash, title) VALUES ('a', 'k', 'https://a.example/k', 's', 1, $1, 0, 'stored', 'h', 'K')`, 1)
	require.NoError(t, err)
	p := &provider{id: "a", w: &lane.Worker{Store: s}, policy: policy.Policy{Terms: policy.Allowed}}
	read := ending{read: &pageContent{linked: "See [b](https://a.example/b)."}}
	text := func(links bool) string {
		for text, err := range texts(t.Context(), d, s, "a", true, links) {
			require.NoError(t, err)
			return text.Text
		}
		return ""
	}
	require.NoError(t, p.keep(t.Context(), &page{key: "k"}, read))
	_, err = sweepHandOff(t.Context(), s, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "See [b](https://a.example/b).", text(true))
	require.Equal(t, "See b.", text(false))
	require.Empty(t, func() string {
		for text := range texts(t.Context(), d, s, "a", false, true) {
			return text.Text
		}
		return ""
	}())
	p.policy.Terms = policy.Unknown
	require.NoError(t, p.keep(t.Context(), &page{key: "k", contentHash: "h"}, read))
	require.Empty(t, text(true), "its policy does not allow it any more")
}
