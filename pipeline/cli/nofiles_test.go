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
	for args, want := range map[string]int{"--until=list": exitOK, "--estimate": exitOK, "--job=docs --store=s3://bucket": exitUsage} {
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
		{"raw/" + raw, "it has raw/" + raw + ": give --raw-prefix=raw/\n", nil},
		{raw, "it has " + raw + ": give --raw-prefix=/\n", nil},
		{"datasets/" + raw, "has no raw file (raw/country=CC", []string{"--raw-prefix=raw"}},
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

// A bucket that is laid out otherwise is read and written below its own prefixes, by every command.
func TestPrefixes(t *testing.T) {
	const in = "country=sg/category=news/date=2026-01-28/"
	for raw, args := range map[string]string{"raw/": "--raw-prefix=raw --results-prefix=found/domains/", "": "--raw-prefix=/ --results-prefix=found/domains"} {
		emptyEnv(t)
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, raw+in+"raw_0001.json"), `{"records":[{"raw_url":"https://urlset-1.com/"}]}`)
		run := here(t, "--store="+dir+" --web=demo "+args)
		require.Equal(t, exitOK, run.code, run.stderr)
		document, err := os.ReadFile(filepath.Join(dir, "found/domains", in, "urlset-1.com/domain_metadata.json"))
		require.NoError(t, err)
		require.Contains(t, string(document), `"raw_file_path": "`+raw+in+`raw_0001.json"`)
		require.FileExists(t, filepath.Join(dir, "found/domains", in, "urlset-1.com/domain_metadata.json.success"))
		require.FileExists(t, filepath.Join(dir, raw+in+"raw_0001.json.success"))
		require.NoDirExists(t, filepath.Join(dir, "processing"))
		require.NoDirExists(t, filepath.Join(dir, "datasets"))
		again := here(t, "--until=list --store="+dir+" "+args)
		require.Contains(t, again.stdout, "would read 0 raw files (1 listed, 1 already processed")
		exported := here(t, "export --what=domains --format=csv --to="+filepath.Join(dir, "domains.csv")+" --store="+dir+" "+args)
		require.Equal(t, exitOK, exported.code, exported.stderr)
		rows, err := os.ReadFile(filepath.Join(dir, "domains.csv"))
		require.NoError(t, err)
		require.Contains(t, string(rows), ":urlset-1.com,")
	}
	for args, says := range map[string]string{"--results-prefix=/": "other objects", "--raw-prefix=a --results-prefix=a/": "other objects", "--raw-prefix=../a": "write a prefix", "--raw-prefix=": "write /", "--job=docs --raw-prefix=a": "means nothing"} {
		got := here(t, args)
		require.Equal(t, exitUsage, got.code, args)
		require.Contains(t, got.stderr, says, args)
	}
}
