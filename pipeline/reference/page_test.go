package reference

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables and schemas of docs/reference")

const folder = "../../docs/reference"

// table is a table of a page. It stands between two comments that name it.
type table struct {
	page, name string
	head       []string
	rows       [][]string
	// ByHand says that the column after those of rows is written by hand: it stays when the
	// others are written again, and no row may lack it.
	byHand bool
}

func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", `\|`)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

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
	if w.byHand {
		for row := range strings.Lines(has) {
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "| "), " |\n"), " | ")
			meanings[cells[0]] = strings.Join(cells[min(len(cells), len(w.head)-1):], " | ")
		}
	}
	var want strings.Builder
	want.WriteString(line(w.head) + "|" + strings.Repeat(" --- |", len(w.head)) + "\n")
	for _, row := range w.rows {
		cells := make([]string, 0, len(w.head))
		for _, c := range row {
			cells = append(cells, cell(c))
		}
		if w.byHand {
			meaning := strings.TrimSpace(meanings[cells[0]])
			if meaning == "" {
				t.Errorf("%s does not say what %s means: `make golden` adds the row, write its last column", file, cells[0])
			}
			cells = append(cells, meaning)
		}
		require.Len(t, cells, len(w.head), "%s: %v", w.name, row)
		want.WriteString(line(cells))
	}
	if *update && has != want.String() {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644))
		return
	}
	require.Equal(t, want.String(), has, "%s: `make golden` writes it; a column that is written by hand stays", file)
}
