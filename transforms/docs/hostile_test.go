//go:build unix

package docs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
)

// What pages say never gets to the database as it came, and what it refuses all
// the same is that page's dead letter.
func TestHostileText(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		refuse := `ALTER TABLE docs_pages ADD CHECK (title NOT LIKE '%refuse me%')`
		if w.db.Dialect == db.SQLite {
			refuse = `CREATE TRIGGER refuse BEFORE UPDATE ON docs_pages WHEN NEW.title LIKE '%refuse me%' BEGIN SELECT RAISE(ABORT, 'refused'); END`
		}
		_, err := w.db.ExecContext(t.Context(), refuse)
		require.NoError(t, err)
		w.set("/robots.txt", func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write([]byte("User-agent: *\nDisallow: /a\x00\xff\x1b\n"))
		})
		w.set("/docs", doc("A\x00\x1b[31m\xff start", "/docs/"+strings.Repeat("l", 4000), "/docs/a", "/docs/b", "/docs/c%00%FF", "/docs/x?q=\xff\x00"))
		w.set("/docs/a", doc("refuse me"))
		w.set("/docs/b", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("ETag", `"`+strings.Repeat("e", 4000)+`"`)
			rw.Header().Set("Last-Modified", "a\xff")
			doc("the b page\xed\xa0\x80")(rw, r)
		})
		w.set("/docs/c%00%FF", doc("the c page"))

		state, reason := w.run()
		assert.Equal(t, Done, state, reason)
		assert.Equal(t, Indexed, w.row("/docs").Status)
		assert.Equal(t, row{Status: Failed, Reason: "the database refused its content", Depth: 1, HTTP: 200}, w.row("/docs/a"))
		assert.Equal(t, Indexed, w.row("/docs/b").Status)
		assert.Equal(t, []string{""}, w.strings(`SELECT etag || last_modified FROM docs_pages WHERE key LIKE '%/docs/b'`))
		assert.Equal(t, Indexed, w.row("/docs/c%00%FF").Status)
		for _, title := range w.strings(`SELECT title FROM docs_pages`) {
			assert.NotContains(t, title, "\x00")
			assert.NotContains(t, title, "\x1b")
		}
		for _, key := range w.strings(`SELECT key FROM docs_pages`) {
			assert.Less(t, len(key), 2001)
		}

		letters := w.deadLetters()
		require.Len(t, letters, 1)
		assert.Contains(t, letters[0], "database_rejected https://"+host+"/docs/a: ")
	})
}
