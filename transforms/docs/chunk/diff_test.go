package chunk_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"

	"github.com/stretchr/testify/require"
)

func TestDiff(t *testing.T) {
	const page = "intro\n\n# T\n\none\n\ntwo\n\n## A\n\na text\n\n## B\n\nb text\n\n## C\n\nc text"
	f := func(after, want string) {
		t.Helper()
		got, err := json.Marshal(chunk.Diff(chunk.Blocks(page), chunk.Blocks(after)))
		require.NoError(t, err)
		require.Equal(t, want, string(got), after)
	}
	f(page, `null`)
	f("intro\n\n\n# T\n\none\ntwo\n\n## A\n\na  text\n\n## B\n\nb text\n\n## C\n\nc text", `[{"path":["T"],"kind":"changed","added":1,"removed":2}]`)
	f("intro\n\n# T\n\none\n\ntwo\n\n## A\n\na other\n\n## B\n\nb text\n\nnew\n\n## C\n\nc text",
		`[{"path":["T","A"],"kind":"changed","added":1,"removed":1},{"path":["T","B"],"kind":"changed","added":1}]`)
	f("intro\n\n# T\n\none\n\ntwo\n\n## B\n\nb text\n\n## C\n\nc text\n\n## A\n\na text", `[{"path":["T","A"],"kind":"moved"}]`)
	f("intro\n\n# T\n\ntwo\n\none\n\n## A\n\na text\n\n## B\n\nb text\n\n## C\n\nc text", `[{"path":["T"],"kind":"changed","added":1,"removed":1}]`)
	f("# T\n\none\n\ntwo\n\n## A\n\na text\n\n## D\n\nb text\n\n## C\n\nc text",
		`[{"path":["T","D"],"kind":"added","added":2},{"kind":"removed","removed":1},{"path":["T","B"],"kind":"removed","removed":2}]`)
}

// White space is nothing in text, and has a meaning in code.
func TestDiffOfCode(t *testing.T) {
	const page = "# T\n\n  some   text\n\n```python\nif x:\n    y()\nz()\n```"
	for after, want := range map[string]string{
		"# T\n\nsome text\n\n```python\nif x:\n    y()\nz()\n```":           `null`,
		"# T\n\nsome text\n\n```python\nif x:\n    y()\n    z()\n```":       `[{"path":["T"],"kind":"changed","added":1,"removed":1}]`,
		"# T\n\nsome text\n\n```python\nif x:\n    y()\n\nz()\n```":         `[{"path":["T"],"kind":"changed","added":1,"removed":1}]`,
		"# T\n\nsome text\n\n- ```python\n  if x:\n      y()\n  z()\n  ```": `[{"path":["T"],"kind":"changed","added":1,"removed":1}]`,
	} {
		if got, err := json.Marshal(chunk.Diff(chunk.Blocks(page), chunk.Blocks(after))); err != nil || string(got) != want {
			t.Errorf("%q: %s (%v), want %s", after, got, err, want)
		}
	}
}

// For a page with little else than headings, time and memory grow only with its size.
func TestDiffOfManyHeadings(t *testing.T) {
	blocks := chunk.Blocks(strings.Repeat("## a\n\n## b\n\n", 50_000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	changes := chunk.Diff(nil, blocks)
	runtime.ReadMemStats(&after)
	require.Len(t, changes, 100_000)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 200 {
		t.Errorf("%d MB for 100,000 headings", grown)
	}
}

// A path has only the beginning of a very long heading, because every chunk below repeats it.
func TestLongHeading(t *testing.T) {
	const page = "# %s\n\nwords"
	long := fmt.Sprintf(page, strings.Repeat("한", chunk.MaxHeading+1))
	for _, b := range chunk.Blocks(long) {
		if want := strings.Repeat("한", chunk.MaxHeading); b.Path[0] != want {
			t.Errorf("%d characters", len([]rune(b.Path[0])))
		}
	}
	if text := chunk.Split("p", long, nil, chunk.Default)[0].Text; text != long {
		t.Errorf("the text has %d of %d bytes", len(text), len(long))
	}
}

func TestBlocks(t *testing.T) {
	blocks := chunk.Blocks("# T\n\n- a\n- b\n\n```\n# no heading\n\nx\n```\ntext\n## U\n| a |\n| --- |")
	got, err := json.Marshal(blocks)
	require.NoError(t, err)
	paths := ""
	for _, b := range blocks {
		paths += b.Path[len(b.Path)-1]
		require.Len(t, b.Hash, 16)
	}
	require.Equal(t, "TTTTUU", paths, got)
}
