//go:build e2e

package e2etest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// readExported reads each export in a folder with pyarrow and, in all formats, with
// DuckDB. It compares their columns, counts and texts, runs the queries of a page, and
// prints the counts.
const readExported = `
import json, re, sys
import duckdb, pyarrow.parquet as pq
root, page = sys.argv[1], sys.argv[2]
counts = {}
def text(value, csv):
    value = "" if value is None else str(value)
    return value[1:] if csv and value.startswith("'") else value
for what in sys.argv[3:]:
    file = root + "/" + what
    rows = pq.read_table(file + ".parquet").to_pylist()
    assert rows, what + " has no rows: nothing that ran before fills it"
    columns = list(rows[0])
    tables = [duckdb.sql("SELECT * FROM " + f) for f in ("read_parquet('%s.parquet')" % file, "read_json('%s.jsonl', format = 'newline_delimited')" % file, "read_csv('%s.csv', all_varchar = true, header = true)" % file)]
    texts = [c for c in columns if isinstance(rows[0][c], str) and c not in ("document", "fields", "kept", "read_at")]
    want = sorted([text(r[c], False) for c in texts] for r in rows)
    for t in tables:
        assert t.columns == columns, (what, t.columns, columns)
        got = sorted([text(v, t is tables[2]) for v in r] for r in t.select(*['"%s"' % c for c in texts]).fetchall())
        assert got == want, (what, [p for p in zip(got, want) if p[0] != p[1]][:3], len(got), len(want))
    counts[what] = len(rows)
duckdb.sql("SET file_search_path = '%s'" % root)
queries = re.findall(r"` + "```" + `sql\n(.*?)` + "```" + `", open(page).read(), re.S)
for q in queries:
    found = duckdb.sql(q).fetch_arrow_table().num_rows
    assert found > 0 or "rss" in q, q
counts["queries"] = len(queries)
print(json.dumps(counts))
`

// misread changes articles of a database as if a parser had misread them, so that reading them
// again finds another version.
func misread(t *testing.T, dsn string) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.ExecContext(t.Context(), "UPDATE news_articles SET title = 'Misread', content_hash = 'of a misread article'")
	require.NoError(t, err)
}

// reserve adds an article that is reserved: no site of the demo says so.
func reserve(t *testing.T, dsn string) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.ExecContext(t.Context(), `INSERT INTO news_reserved (source, url, url_hash, purpose, verdict, place, line, raw, sha256, read_at, decided_at, rights)
		VALUES ('demo-local', 'https://local.demo-press.example/a', 'h', 'ai-train', 'reserved', 'https://local.demo-press.example/robots.txt', 3, 'Content-Signal: ai-train=no', 'ab', 1769590800000000, 1769590800000000, '{}')`)
	require.NoError(t, err)
}

// readExports runs the jobs that fill a database, exports all kinds of rows in all
// formats, and compares what others read with what the program wrote.
func readExports(t *testing.T, python, dir string) {
	t.Helper()
	program := rig.Program
	database := "sqlite://" + filepath.Join(t.TempDir(), "state.db")
	demo := t.TempDir() // a store with the seed job's results takes none of a demo
	for _, args := range [][]string{{"--job=catalog", "--demo-changes=1"}, {"--job=catalog", "--demo-changes=2"}, {"--job=catalog", "--sites=../../transforms/catalog/sites/examples", "--images"}, {"--job=news", "--keep-html", "--images"}, {"--job=news", "--reparse"}, {"--job=docs", "--provider=stripe"}} {
		if slices.Contains(args, "--reparse") {
			misread(t, database)
		}
		if out, err := exec.Command(program, append(args, "--web=demo", "--store="+demo, "--db="+database)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, rig.Tail(string(out)))
		}
	}
	reserve(t, database)
	to := t.TempDir()
	want := map[string]string{}
	for _, what := range export.Names() {
		from := demo
		if w, err := export.Named(what); err != nil || w.Job == seed.Job {
			from = dir
		}
		for _, format := range []string{"parquet", "jsonl", "csv"} {
			out, err := exec.Command(program, "export", "--what="+what, "--format="+format, "--to="+to, "--store="+from, "--db="+database).CombinedOutput()
			words := strings.Fields(string(out))
			require.True(t, err == nil && len(words) >= 2, "%s as %s: %v\n%s", what, format, err, out)
			want[what] = words[1] // wrote N rows
		}
	}
	page, err := filepath.Abs("../../docs/export.md")
	require.NoError(t, err)
	cmd := exec.Command(python, append([]string{"-c", readExported, to, page}, export.Names()...)...)
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it bare
			out = failed.Stderr
		}
		t.Fatalf("%v\n%s", err, out)
	}
	var got map[string]json.Number
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	for what, n := range want {
		if got[what].String() != n || n == "0" {
			t.Errorf("others count %s rows of %s, the export wrote %s", got[what], what, n)
		}
	}
	if got["queries"].String() != "5" {
		t.Errorf("ran %s queries of docs/export.md, want 5", got["queries"])
	}
}
