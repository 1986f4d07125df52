package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where nothing is requested, and where a command is refused, the file of --turns is not made.
func TestNoTurnsWithoutRequests(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	for args, want := range map[string]int{"--until=list": ExitOK, "--estimate": ExitOK, "--job=docs --store=s3://bucket": ExitUsage} {
		got := here(t, args+" --turns=turns/file")
		require.Equal(t, want, got.code, "%s: %s", args, got.stderr)
		require.NoDirExists(t, "turns", args)
	}
}

// With the wrong folder, or one that is not mounted, a run fails instead of ending as done.
func TestStoreWithoutRawFiles(t *testing.T) {
	const raw = "country=sg/category=news/date=2026-01-28/raw_0001.json"
	for _, tt := range []struct {
		file, says string
		args       []string
	}{
		{"notes.txt", "it has notes.txt and other objects", nil},
		{"notes.txt", "has no raw file", []string{"--until=list"}},
		{"raw/" + raw, "it has raw/" + raw + ": copy such files to datasets/" + raw, nil},
		{raw, "it has " + raw + ": copy", nil},
	} {
		dir, args := t.TempDir(), tt.args
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, tt.file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, tt.file), nil, 0o644))
		var stderr bytes.Buffer
		code := Main(append([]string{"--store=" + dir, "--runner=direct", "--web=demo"}, args...), io.Discard, &stderr)
		require.Equal(t, 2, code, stderr.String())
		require.Contains(t, stderr.String(), tt.says)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1, "nothing is touched")
	}
}
