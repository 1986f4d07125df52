// Package cases reads test cases: tables next to a test, and the suites of other parsers, in one format, in a folder next to
// the repository (../shared/cases). No promise: see docs/library.md.
package cases

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Table reads the cases in a YAML file of the package's testdata.
func Table[T any](t testing.TB, name string) (table T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = yamltext.Strict(text, &table)
	}
	if err != nil {
		t.Fatalf("reading cases in %s: %v", name, err)
	}
	return table
}

// Path is the path of a file of cases; name is its path below the folder of all cases.
// Where the folder is absent a test is skipped, and with CI=true it fails.
func Path(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd() // a test runs in its package's folder
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(root)
		if above == root {
			t.Fatal("there is no go.mod above the test's folder")
		}
		root = above
	}
	dir := filepath.Join(root, "..", "shared", "cases")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatal("the shared cases are absent; CI needs them in ../shared/cases next to the repository")
		}
		t.Skip("the shared cases are absent (../shared/cases next to the repository)")
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// File reads a whole file of the cases.
func File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatalf("reading a case: %v", err)
	}
	return b
}

// Rows reads a file with one JSON object a line.
func Rows[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(Path(t, name))
	if err != nil {
		t.Fatalf("reading cases: %v", err)
	}
	defer func() { _ = f.Close() }() // it was only read: its error does not matter
	var rows []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r T
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("reading %s, row %d: %v", name, len(rows)+1, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", name)
	}
	return rows
}
