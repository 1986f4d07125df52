//go:build !race

// Under the race detector to start PDFium takes a minute. Documents are read one at a time.

package docs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// printed is a document in testdata as a page.
func printed(t *testing.T, name string) docsim.Page {
	t.Helper()
	body, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return docsim.Page{Kind: "application/pdf", Body: string(body)}
}

// A PDF is a page like others: it is new, then not modified, then updated in one section;
// each of its chunks names the page of the PDF, and its Markdown can be had.
func TestPDF(t *testing.T) {
	t.Parallel()
	dsn := dbtest.SQLite(t)
	j := newJob(t, dsn, webtest.Options{})
	j.cfg.Policies = slices.DeleteFunc(j.cfg.Policies, func(p policy.Policy) bool { return p.Host() != "docs.tosspayments.com" })
	require.Len(t, j.cfg.Policies, 1)
	id, site := j.cfg.Policies[0].ProviderID, j.sites["docs.tosspayments.com"]
	seed, _ := site.Page(site.Seed)
	path := seed.Links[0] + "/manual.pdf"
	seed.Links = append(seed.Links, path)
	site.Set(site.Seed, seed)
	site.Set(path, printed(t, "manual.pdf"))

	d := openDB(t, dsn)
	row := func() (status, title string, chunks int) {
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT status, title, chunks FROM docs_pages WHERE provider = $1 AND address = $2`, id, "https://"+site.Host+path).Scan(&status, &title, &chunks))
		return status, title, chunks
	}
	j.run("direct")
	status, title, chunks := row()
	require.Equal(t, "indexed", status)
	require.Equal(t, "Manual", title)
	require.Equal(t, 3, chunks)
	j.run("direct")
	status, _, _ = row()
	require.Equal(t, "not_modified", status)
	site.Later()
	site.Set(path, printed(t, "manual-later.pdf")) // its last section has one sentence more
	r, _ := j.run("direct")
	status, _, _ = row()
	require.Equal(t, "indexed", status)
	require.Equal(t, int64(1), r.Providers[0].Updated)

	handed := handedIn(t, j.dir)
	var anchors []string
	for _, l := range handed {
		if strings.HasSuffix(l.URL, ".pdf") && l.Op == "upsert" {
			anchors = append(anchors, strings.Join(l.Path, "/")+"#"+l.Anchor)
		}
	}
	slices.Sort(anchors)
	require.Equal(t, []string{"Manual/Begin#page=1", "Manual/End#page=2", "Manual/Then#page=1"}, slices.Compact(anchors))
	var sections string
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT sections FROM docs_changes WHERE provider = $1 AND kind = 'updated'`, id).Scan(&sections))
	require.Contains(t, sections, "End")
	require.NotContains(t, sections, "Then")

	dir := t.TempDir()
	_, err := WriteFolder(t.Context(), d, j.store, dir, []string{id}, func(string) bool { return true }, true, io.Discard)
	require.NoError(t, err)
	var files strings.Builder
	require.NoError(t, fsWalk(dir, &files))
	for n := range 20 {
		require.Contains(t, files.String(), fmt.Sprintf("Sentence %d of section %d says what a reader of manuals wants to know about the part that it names.", n, 1))
	}
}

// Which PDFs are read.
func TestWhichPDFsAreRead(t *testing.T) {
	guide := printed(t, "guide.pdf").Body
	whatIsRead(t, []answered{
		{"pdf", as("application/pdf", guide), Indexed, ""},
		{"pdf that says html", as("text/html", guide), Indexed, ""},
		{"pdf without text", as("application/pdf", printed(t, "no-text.pdf").Body), Skipped, "the PDF has no text"},
		{"damaged pdf", as("application/pdf", "%PDF-1.7 …"), Skipped, "the PDF is damaged"},
		{"pdf that asks not to be indexed", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("X-Robots-Tag", "noindex")
			as("application/pdf", guide)(rw, r)
		}, Skipped, "it asks not to be indexed"},
	})
}
