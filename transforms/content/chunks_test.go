package content_test

import (
	"slices"
	"testing"

	"github.com/newsfork/seed-engine/transforms/chunk"
	"github.com/newsfork/seed-engine/transforms/content"
)

// TestChunksOfDocsPages cuts the field's own pages: no chunk over the limit, no
// line of code cut but where it alone is over it.
func TestChunksOfDocsPages(t *testing.T) {
	var q chunk.Quality
	for _, p := range docsPages(t) {
		page, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{})
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		chunks := chunk.Split(p.ID, page.Markdown, chunk.Default)
		q.Add(chunks)
		var lines []string
		for _, c := range chunks {
			if c.Tokens > chunk.Default.Max {
				t.Errorf("%s: chunk %d has %d tokens", p.ID, c.Ordinal, c.Tokens)
			}
			lines = append(lines, codeLines(c.Text)...)
		}
		if want := codeLines(page.Markdown); !slices.Equal(lines, want) {
			t.Errorf("%s: %d lines of code in chunks, %d in the page", p.ID, len(lines), len(want))
		}
	}
	t.Logf("%d pages, %d chunks, %.0f tokens each, %d under %d, %d repeated, %d to %d a page; out of range: %v",
		q.Pages, q.Chunks, q.AverageTokens(), q.Small, chunk.Default.Min, q.Duplicate, q.MinPage, q.MaxPage, q.Outside())
	if q.Chunks == 0 {
		t.Error("no chunks")
	}
}
