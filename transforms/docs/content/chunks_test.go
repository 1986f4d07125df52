package content_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"

	"github.com/stretchr/testify/require"
)

// maxDangling is how many chunks of the shared pages may end with an introduction
// to what is in the next chunk, because both together are over the limit. It may
// only fall.
const maxDangling = 1

// TestChunksOfDocsPages cuts real pages. No chunk is over the limit, a line of code
// is cut only when it alone is over the limit, and each heading in a chunk is below
// the chunk's path.
func TestChunksOfDocsPages(t *testing.T) {
	var q chunk.Quality
	dangling, anchored := 0, 0
	for _, p := range docsPages(t) {
		page, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{})
		require.NoError(t, err, p.ID)
		paths := headingPaths(page.Markdown)
		require.Len(t, page.Anchors, len(paths))
		chunks := chunk.Split(p.ID, page.Markdown, page.Anchors, chunk.Default)
		q.Add(chunks)
		var lines []string
		for _, c := range chunks {
			require.LessOrEqual(t, c.Tokens, chunk.Default.Max)
			lines = append(lines, codeLines(c.Text)...)
			if strings.HasSuffix(strings.TrimRight(c.Text, "*_ "), ":") {
				dangling++
				t.Logf("%s: chunk %d of %d tokens ends %q", p.ID, c.Ordinal, c.Tokens, c.Text[max(0, len(c.Text)-60):])
			}
			if c.Anchor != "" {
				anchored++
			}
			for range headingPaths(c.Text) {
				heading := paths[0]
				paths = paths[1:]
				n := min(len(heading), len(c.Path))
				if !slices.Equal(heading[:n], c.Path[:n]) {
					t.Errorf("%s: chunk %d of %q has the heading %q", p.ID, c.Ordinal, c.Path, heading)
				}
			}
		}
		require.Equal(t, codeLines(page.Markdown), lines)
	}
	t.Logf("%d pages, %d chunks, %.0f tokens each, %d under %d, %d repeated, %d to %d a page; out of range: %v",
		q.Pages, q.Chunks, q.AverageTokens(), q.Small, chunk.Default.Min, q.Duplicate, q.MinPage, q.MaxPage, q.Outside())
	t.Logf("%d chunks end with an introduction, %d have an anchor", dangling, anchored)
	if q.Chunks == 0 || anchored < q.Chunks*9/10 || dangling > maxDangling {
		t.Errorf("of %d chunks %d have an anchor, %d end with an introduction", q.Chunks, anchored, dangling)
	}
}

// headingPaths returns the paths of Markdown's headings, each with the heading itself as the last.
func headingPaths(markdown string) [][]string {
	var all [][]string
	var last []string
	for _, b := range chunk.Blocks(markdown) {
		if !slices.Equal(b.Path, last) {
			last = b.Path
			all = append(all, b.Path)
		}
	}
	return all
}
