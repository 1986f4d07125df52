package export

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/schemas and the lists of docs/export.md")

const (
	page      = "../../docs/export.md"
	schemas   = "../../docs/schemas"
	rowsBegin = "<!-- rows: written by `make golden` from the row types -->\n\n"
	rowsEnd   = "<!-- end of rows -->"
)

// rowLists are the row types; their columns are in the schemas.
func rowLists() string {
	b := strings.Builder{}
	b.WriteString("| `WHAT` | rows | from | filters | `--since` | columns |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, w := range All {
		from := "store"
		if w.NeedsDB() {
			from = "database"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s of `%s` | `--%s` | %s | [version %d](schemas/%s.schema.json) |\n",
			w.Name, w.About, from, w.Job, strings.Join(w.Filters, "`, `--"), w.Since, w.Version, w.Name)
	}
	return b.String()
}

func TestRows(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), rowsBegin)
	has, after, ok2 := strings.Cut(rest, rowsEnd)
	require.True(t, ok && ok2, "docs/export.md has no lists of rows")
	want := rowLists()
	if *update && has != want {
		require.NoError(t, os.WriteFile(page, []byte(before+rowsBegin+want+rowsEnd+after), 0o644))
		return
	}
	require.Equal(t, want, has, "`make golden` writes it")
}

// The published schemas are those of the row types. Where this fails because a column is
// gone or means something else, raise the version of the What.
func TestSchemas(t *testing.T) {
	for _, w := range All {
		file := filepath.Join(schemas, w.Name+".schema.json")
		want, err := w.Schema()
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.MkdirAll(schemas, 0o755))
			require.NoError(t, os.WriteFile(file, want, 0o644))
		}
		has, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(has), "%s; `make golden` writes it", file)
	}
	files, err := filepath.Glob(filepath.Join(schemas, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(All), "docs/schemas has a file of no row type")
}
