//go:build unix

package engine_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// witness is a publisher that sees what the process has noted while it reads.
type witness struct {
	provider.Provider
	seen map[string]bool // by unit
}

func (p witness) look() {
	files, _ := filepath.Glob(filepath.Join(os.TempDir(), "*", "*"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(text)) {
			p.seen[word] = true
		}
	}
}

func (p witness) IsArticleURL(u *url.URL) bool {
	p.look()
	return p.Provider.IsArticleURL(u)
}

func (p witness) ParseArticle(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	p.look()
	return p.Provider.ParseArticle(page, contentType, u)
}

// A process is known to read an article or a sitemap while it does. One at which two died costs
// that article or sitemap alone, and a replay gets it back.
func TestProcessDied(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := once(t)
	one := "<urlset><url><loc>https://daily.example/a/1</loc></url></urlset>"
	pages := map[string]string{"/map.xml": locs, "/rss": one, "/a/1": tale("", 1), "/a/2": tale("", 2), "/a/3": tale("", 3)}
	w.serve("daily.example", pages)
	input := func(path string) ledger.Input {
		return ledger.Input{Source: "daily-example", URL: "https://daily.example" + path}
	}
	bad := []string{"/rss", "/a/2"}
	for _, path := range bad {
		for _, process := range []string{"first", "second"} {
			require.NoError(t, ledger.SayBegun(t.Context(), w.store, "news", ledger.Unit("news", input(path)), process, process == "second"))
		}
	}
	p := declared(t, ofA)
	r := w.run(p)
	assert.Equal(t, engine.Ran, r.State, r.Reason)
	assert.Equal(t, counts{Found: 3, Fetched: 2, Inserted: 2, Failed: 1}, countsOf(r))
	assert.Equal(t, []string{"/robots.txt", "/map.xml", "/a/3", "/a/1"}, w.paths())
	require.Len(t, w.letters, 2)
	for i, l := range w.letters {
		assert.Equal(t, []any{ledger.Died, input(bad[i])}, []any{l.Kind, l.Input})
	}

	require.NoError(t, ledger.ForgetDeaths(t.Context(), w.store, w.letters))
	require.NoError(t, raw.Reopen(t.Context(), w.db, w.letters))
	again, err := raw.Again(t.Context(), w.db, "daily-example")
	require.NoError(t, err)
	require.Equal(t, []string{"https://daily.example/a/2"}, again)
	seen := witness{p, map[string]bool{}}
	assert.Equal(t, counts{Found: 3, Fetched: 1, Inserted: 1}, countsOf(w.run(seen)))
	for _, path := range []string{"/rss", "/map.xml", "/a/2"} {
		assert.True(t, seen.seen[ledger.Unit("news", input(path))], path)
	}
	left := 0
	for _, err := range ledger.DeadLetterIDs(t.Context(), w.store, "news") {
		require.NoError(t, err)
		left++
	}
	assert.Zero(t, left, "both are resolved")
}
