package reference

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecords keeps the tables of JSON that other programs read.
func TestRecords(t *testing.T) {
	for _, r := range []struct{ page, name, dir, of string }{
		{"../domain-metadata.md", "fields", "../../transforms/seed/metadata", "Domain"},
		{"hand-off.md", "lines", "../../transforms/docs", "handOffLine"},
		{"hand-off.md", "manifest", "../../transforms/docs", "manifest"},
		{"dead-letters.md", "record", "../../io/ledger", "DeadLetter"},
	} {
		w := table{page: r.page, name: r.name}
		read(t, r.dir, "json").object(r.of).walk("", func(path string, f field) {
			if f.of.fields != nil || f.of.item != nil && f.of.item.fields != nil {
				return // its own fields follow
			}
			require.NotEmpty(t, f.doc, "%s: %s has no comment above it", r.of, path)
			there := "optional"
			if f.required {
				there = ""
			}
			for above := range strings.SplitSeq("source,feeds,homepage,dismissed", ",") {
				if (r.of == "Domain" || r.of == "DeadLetter") && f.required && strings.HasPrefix(path, above) {
					there = "with `" + above + "`"
				}
			}
			w.rows = append(w.rows, []string{code(path), f.of.String(), there, f.doc})
		})
		w.check(t)
	}
}
