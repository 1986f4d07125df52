package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// files returns the text of all files below a directory, by path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(b)
		return err
	}))
	return out
}

// --url crawls one page, or with --depth those below it, by the policy of its host or a
// default one. --markdown writes whole pages only where somebody read the site's terms.
func TestDocsURL(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	base := "--job=docs --web=demo --log-level=error --store=" + dir + " "
	to := t.TempDir()
	got := here(t, base+"--url=https://kind-urlset-1.com/ --tos-allowed=2026-01-05 --depth=1 --markdown="+to)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "11 pages of https://kind-urlset-1.com/ are stored as provider url-kind-urlset-1-com-ad4d8f25d6d5\nurl-kind-urlset-1-com-ad4d8f25d6d5: 11 pages in "+to+"\n")
	pages := files(t, to)
	assert.Len(t, pages, 11)
	page := pages["kind-urlset-1.com/articles/9.html.md"]
	assert.Contains(t, page, "title: \"Article 9\"\nurl: \"https://kind-urlset-1.com/articles/9.html\"\n")
	assert.Contains(t, page, "whole: true\n---\n\n# Article 9\n\nParagraph 1 of article 9 ")
	assert.Contains(t, page, "Paragraph 6 of article 9 ")

	// Of the same stored pages nothing says later that the terms were read.
	excerpts := t.TempDir()
	got = here(t, base+"--markdown="+excerpts+" --provider=url-kind-urlset-1-com-ad4d8f25d6d5")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "11 pages in "+excerpts+", the first 200 characters of each with a link")
	short := files(t, excerpts)["kind-urlset-1.com/articles/9.html.md"]
	_, text, _ := strings.Cut(short, "whole: false\n---\n\n")
	text, _, found := strings.Cut(text, "\n\n[The original](<https://kind-urlset-1.com/articles/9.html>)\n")
	assert.True(t, found, short)
	assert.Len(t, []rune(text), 200)

	policies := t.TempDir() // somebody has read the terms
	writeFile(t, filepath.Join(policies, "a.yaml"), "provider_id: url-kind-urlset-1-com-ad4d8f25d6d5\nseed_urls: [https://kind-urlset-1.com/]\nallowed_path_patterns: [/**]\ntos: allowed\ntos_checked: 2026-01-05\n")
	whole := t.TempDir()
	got = here(t, base+"--markdown="+whole+" --policies="+policies)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, pages, files(t, whole))

	// One page, by the policy of its host, whose terms are unknown.
	one := t.TempDir()
	got = here(t, base+"--url=https://docs.tosspayments.com/reference --report=- --markdown="+one)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.EqualValues(t, 1, report(t, []byte(got.stdout)).Counts["pages_new"])
	assert.Contains(t, files(t, one)["docs.tosspayments.com/reference.md"], "whole: false")

	// A page that could not be had is no success.
	got = here(t, base+"--url=https://kind-disallow-all-1.com/docs --report=-")
	assert.Equal(t, exitFailed, got.code)
	why := "nothing was kept of https://kind-disallow-all-1.com/docs: blocked (robots.txt line 3: Disallow: /)"
	assert.Equal(t, 1, strings.Count(got.stderr, why), got.stderr)
	refused := report(t, []byte(got.stdout))
	assert.Equal(t, ledger.Failed, refused.State, "the report says what the exit code says")
	assert.Contains(t, refused.Error, why)

	// Nor is a purged provider's page asked for by another name.
	require.Equal(t, exitOK, here(t, base+"--purge-provider=toss-payments").code)
	got = here(t, base+"--url=https://docs.tosspayments.com/reference")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "toss-payments was purged, and is not crawled again until --enable-provider=toss-payments is given")
}

// What --url and --markdown refuse, before anything is sent or written.
func TestDocsURLRefused(t *testing.T) {
	emptyEnv(t)
	policies := t.TempDir()
	writeFile(t, filepath.Join(policies, "a.yaml"), "provider_id: a\nseed_urls: [https://a.example/docs]\nallowed_path_patterns: [/docs/**]\ntos: prohibited\ntos_checked: 2026-01-05\n")
	dir := t.TempDir()
	for args, want := range map[string]string{
		"--url=docs.example":                                                     "write the URL of a page",
		"--url=ftp://docs.example/":                                              "write the URL of a page",
		"--url=https://me:x@docs.example/":                                       "write the URL of a page",
		"--url=https://docs.example/ --depth=6":                                  "--depth=6: use 0 to 5",
		"--depth=1":                                                              "go with --url",
		"--tos-allowed=2026-01-05":                                               "go with --url",
		"--url=https://docs.example/ --tos-allowed=yes":                          `--tos-allowed: "yes" is not a date; write YYYY-MM-DD`,
		"--url=https://docs.example/ --tos-allowed=9999-01-05":                   "--tos-allowed: 9999-01-05 is in the future",
		"--url=https://docs.tosspayments.com/reference --tos-allowed=2026-01-05": "write tos and tos_checked there",
		"--url=https://docs.tosspayments.com/pricing":                            "does not allow the path (no allowed pattern matches)",
		"--url=https://docs.example/blog/x":                                      "may have personal data",
		"--url=https://www.a.example/docs/x --policies=" + policies:              "its terms of service prohibit crawling (tos: prohibited)",
		"--url=https://docs.example/ --provider=stripe":                          "leave --provider out",
		"--url=https://docs.example/ --diff":                                     "use one at a time",
		"--markdown=":                                                            "--markdown= is empty; name a directory",
		"--markdown=" + dir:                                                      "no run has used",
		"--markdown=" + dir + " --provider=strip":                                "there is no such provider",
	} {
		got := here(t, "--job=docs --web=demo --store="+t.TempDir()+" "+args)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Contains(t, got.stderr, want, args)
	}
	assert.Empty(t, files(t, dir))
}
