package reference

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the lists and schemas of docs/reference")

const folder = "../../docs/reference"

// table is a list of a page. It stands between two comments that name it. The first text of
// a row is its name, the last one its meaning; those between them stand in parentheses.
type table struct {
	page, name string
	rows       [][]string
	// ByHand says that the meanings are written by hand, and rows are without them: they stay
	// when the rest is written again, and no row may lack one.
	byHand bool
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// check compares the table with its page, or writes it there.
func (w table) check(t *testing.T) {
	t.Helper()
	file := filepath.Join(folder, w.page)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := "<!-- "+w.name+": written by `make golden` -->\n", "<!-- end of "+w.name+" -->"
	before, rest, ok := strings.Cut(string(raw), begin)
	has, after, ok2 := strings.Cut(rest, end)
	require.True(t, ok && ok2, "%s has no lines %q and %q", file, strings.TrimSpace(begin), end)

	meanings := map[string]string{}
	for row := range strings.Lines(has) {
		head, meaning, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(row), "- "), ": ")
		name, _, _ := strings.Cut(head, " (")
		meanings[name] = meaning
	}
	var want strings.Builder
	for _, row := range w.rows {
		if w.byHand {
			if row = append(row, meanings[row[0]]); meanings[row[0]] == "" {
				t.Errorf("%s does not say what %s means: `make golden` adds the row, write its end", file, row[0])
			}
		}
		last := len(row) - 1
		want.WriteString("- " + row[0])
		if about := slices.DeleteFunc(slices.Clone(row[1:last]), func(s string) bool { return s == "" }); len(about) > 0 {
			want.WriteString(" (" + strings.Join(about, "; ") + ")")
		}
		want.WriteString(": " + strings.ReplaceAll(row[last], "\n", " ") + "\n")
	}
	if *update && has != want.String() {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644))
		return
	}
	require.Equal(t, want.String(), has, "%s: `make golden` writes it; meanings that are written by hand stay", file)
}
