package pipeline

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts returns the contents of the module's files that have one of the endings,
// by path from the module's root.
func texts(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != ".." && (strings.HasPrefix(name, ".") || name == "out" || name == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		for _, e := range endings {
			if strings.HasSuffix(name, e) {
				b, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				files[filepath.ToSlash(strings.TrimPrefix(p, ".."+string(filepath.Separator)))] = string(b)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// documents returns the pages that people read. Markdown in a package's testdata
// folder is not one of them: it is what a test expects.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := texts(t, ".md")
	for name := range pages {
		if strings.Contains(name, "/testdata/") {
			delete(pages, name)
		}
	}
	require.True(t, len(pages) >= 10, "found %d pages, want 10 or more: were they moved?", len(pages))
	return pages
}

var (
	fences    = regexp.MustCompile("(?ms)^```.*?^```$")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	quoted    = regexp.MustCompile("`([^`\n]+)`")
	testName  = regexp.MustCompile(`^Test[A-Z]\w*$`)
	ourFolder = regexp.MustCompile(`^(cmd|pipeline|server|transforms|io|deploy|testdata|docs)/[\w./-]*$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchor is the name that GitHub gives a heading.
func anchor(text string) string {
	return strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// TestDocumentsNameWhatExists checks that the links, tests, files and folders
// that the pages name exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	var tests strings.Builder
	for _, text := range texts(t, "_test.go") {
		tests.WriteString(text)
	}
	pages := documents(t)
	anchors := map[string]map[string]bool{}
	for name, text := range pages {
		anchors[name] = map[string]bool{"": true}
		for _, h := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			anchors[name][anchor(h[1])] = true
		}
	}
	named := 0
	for name, text := range pages {
		text = fences.ReplaceAllString(text, "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, at, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if have, isPage := anchors[target]; isPage && !have[at] {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], target)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			switch word := m[1]; {
			case testName.MatchString(word):
				named++
				assert.Contains(t, tests.String(), "func "+word+"(", "%s names %s, and there is no such test", name, word)
			case ourFolder.MatchString(word):
				named++
				_, err := os.Stat(filepath.Join("..", filepath.FromSlash(word)))
				assert.NoError(t, err, "%s names %s, which is not there", name, word)
			}
		}
	}
	assert.True(t, named >= 100, "the pages name %d tests and folders, want 100 or more: are they still written in backquotes?", named)
}

// unwelcome are words of a private dialect, with the plain ones.
var unwelcome = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\brooms?\b`), "package or folder"},
	{regexp.MustCompile(`(?i)\broad\b`), "pipeline"},
	{regexp.MustCompile(`(?i)\bmanners\b`), "politeness"},
	{regexp.MustCompile(`(?i)\bforg(ive|ave)\w*`), "resolve"},
	{regexp.MustCompile(`(?i)\bwish(es)?\b`), "request"},
	{regexp.MustCompile(`(?i)\bmentions?\b`), "URL record"},
	{regexp.MustCompile(`(?i)\b(the|a|lane's|its) rolls?\b`), "host table"},
	{regexp.MustCompile(`(?i)\bhurr(y|ies|ied)\b`), "no delay"},
	{regexp.MustCompile(`(?i)\bbeside\b`), "next to, or in parallel"},
	{regexp.MustCompile(`(?i)\bpatience\b`), "the name of the limit"},
	{regexp.MustCompile(`(?i)\banew\b`), "again, or restart"},
	{regexp.MustCompile(`(?i)\bsettl(e|es|ed|ing)\b`), "complete, or close"},
	{regexp.MustCompile(`(?i)\bstand(s|ing)? by\b`), "wait for the leader"},
	{regexp.MustCompile(`(?i)\b(go|goes|gone|going|went) on\b`), "resume, or continue"},
	{regexp.MustCompile(`(?i)\b(leave|leaves|left|let|lets) (it |them )?alone\b`), "abandon until T"},
	{regexp.MustCompile(`(?i)\bgiv(e|es|ing|en) back\b`), "release"},
	{regexp.MustCompile(`(?i)\bvacat(e|es|ed|ing)\b`), "evict"},
}

// TestPlainWords keeps the words of a private dialect out of the pages and the code.
func TestPlainWords(t *testing.T) {
	for name, text := range texts(t, ".go", ".md", ".html", ".js", ".yaml", ".yml", "Makefile") {
		if name == "pipeline/documents_test.go" || strings.Contains(name, "/testdata/") {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, u := range unwelcome {
				if found := u.word.FindString(line); found != "" {
					t.Errorf("%s:%d says %q; say %s (docs/architecture.md has the words):\n%s", name, i+1, found, u.instead, line)
				}
			}
		}
	}
}

// elsewhere are patterns of citations of documents that a reader of this
// repository does not have. A match is allowed when the text shortly before it
// matches excuse: it names a public standard or another project.
var elsewhere = []struct{ citation, excuse *regexp.Regexp }{
	{regexp.MustCompile(`(?i)\b(sections?|appendix) (\d+(\.\d+)*|[A-E]\b)`),
		regexp.MustCompile(`RFC|WAI-ARIA|OpenAPI|CommonMark|Atom|WHATWG|Unicode|UTS|W3C|ISO|its manual|proc\(5\)|[a-z]+\(\d\)`)},
	{regexp.MustCompile(`(?i)\bissue #?\d+`), regexp.MustCompile(`[\w.-]+/[\w.-]+ $|\bits $|"$`)},
	{regexp.MustCompile(`\bCPA-\d+`), nil},
	{regexp.MustCompile(`(?i)\bthe design\b|\bdesign (document|\d)`), nil},
	{regexp.MustCompile(`(?i)\bthe seed's\b|\bthe seed on\b|\bseed, section`), nil},
	{regexp.MustCompile(`(?i)\bthe (mission|requirement)\b`), nil},
	{regexp.MustCompile(`\bspec/\w`), nil},
	{regexp.MustCompile(`(^|[^/\w\[(-]|[^\]]\()(docs|catalog|news|seed|cli|server|engines|design|next|style)\.md\b`), nil}, // a link is no citation
}

var nextLine = regexp.MustCompile(`\n\s*(//|--|#)?[ \t]*`)

// TestNothingIsCitedFromElsewhere checks that code and pages state a rule
// themselves, or cite a page of docs/, an RFC or a public standard.
func TestNothingIsCitedFromElsewhere(t *testing.T) {
	for name, text := range texts(t, ".go", ".md", ".sql", ".yaml", ".yml", ".html", ".js") {
		if name == "pipeline/documents_test.go" || strings.Contains(name, "/testdata/") || strings.Contains(name, "/migrations/") {
			continue // a shipped migration never changes, not even its comments
		}
		text = nextLine.ReplaceAllString(text, " ") // a citation may span two lines
		for _, e := range elsewhere {
			for _, at := range e.citation.FindAllStringIndex(text, -1) {
				if e.excuse != nil && e.excuse.MatchString(text[max(0, at[0]-100):at[0]]) {
					continue
				}
				t.Errorf("%s cites a document that is not in the repository; say the rule itself:\n…%s…", name, text[max(0, at[0]-60):min(len(text), at[1]+40)])
			}
		}
	}
}
