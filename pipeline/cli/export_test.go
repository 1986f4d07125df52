package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported is a store with one domain that is done and one that is not.
func exported(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for key, body := range map[string]string{
		"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json":                                    "{}",
		"processing/country=sg/category=news/date=2026-01-28/a.sg/domain_metadata.json":                      document("a.sg"),
		"processing/country=sg/category=news/date=2026-01-28/a.sg/domain_metadata.json.success":              "",
		"processing/country=sg/category=news/date=2026-01-28/not-done.sg/domain_metadata.json":               document("not-done.sg"),
		"processing/country=sg/category=news/date=2026-01-28/not-done.sg/robots.txt":                         "User-agent: *",
		"processing/country=sg/category=news/date=2026-01-28/not-done.sg/domain_metadata.json.success.other": "",
	} {
		at := filepath.Join(dir, filepath.FromSlash(key))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(body), 0o644))
	}
	return dir
}

func document(name string) string {
	return `{"domain_id":"com:sg:` + name + `","registrable_domain":"` + name + `","country":"SG","category":"news","collected_at":"2026-01-28T00:30:00.120Z",
		"robots":{"status_code":0,"content_length":0,"exists":false,"error":"dns"},"sitemap":{"status_code":0,"content_length":0,"exists":false,"url":"https://` + name + `/sitemap.xml","error":"dns"}}`
}

func TestExport(t *testing.T) {
	store := exported(t)
	out := t.TempDir()
	a := here(t, "export --what=domains --to=- --store="+store)
	require.Equal(t, 0, a.code, a.stderr)
	var row map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &row))
	require.Equal(t, "com:sg:a.sg", row["domain_id"])
	require.Equal(t, "dns", row["robots_error"])
	require.Equal(t, "a.sg", row["document"].(map[string]any)["registrable_domain"])

	for to, want := range map[string]string{out: "domains.parquet", out + "/all.csv": "all.csv", out + "/x --format=jsonl": "x"} {
		a := here(t, "export --what=domains --store="+store+" --to="+to)
		require.Equal(t, 0, a.code, a.stderr)
		require.Contains(t, a.stderr, "wrote 1 rows of domains to "+filepath.Join(out, want))
		require.FileExists(t, filepath.Join(out, want))
	}
	a = here(t, "export --what=outcomes --to=store:exports/today.csv --since=2026-01-28 --store="+store)
	require.Equal(t, 0, a.code, a.stderr)
	b, err := os.ReadFile(filepath.Join(store, "exports", "today.csv"))
	require.NoError(t, err)
	require.Contains(t, string(b), ",unreachable,dns,")

	for args, line := range map[string]string{"outcomes --failed": `"state":"unreachable"`, "domains --failed": `"state":"unreachable"`, "feeds --failed": ""} {
		a = here(t, "export "+args+" --store="+store)
		require.Equal(t, 0, a.code, a.stderr)
		require.Contains(t, a.stdout, line)
	}
	a = here(t, "get domains a.sg --store="+store)
	require.Equal(t, 0, a.code, a.stderr)
	require.Contains(t, a.stdout, `"category": "news"`)

	a = here(t, "export --what=domains --to="+out+"/none.jsonl --since=2026-01-29 --store="+store)
	require.Equal(t, 0, a.code, a.stderr)
	require.Contains(t, a.stderr, "wrote 0 rows")

	a = here(t, "export --what=outcomes --schema")
	require.Equal(t, 0, a.code, a.stderr)
	require.True(t, json.Valid([]byte(a.stdout)))
}

func TestExportRefusals(t *testing.T) {
	store := exported(t)
	out := t.TempDir()
	file := filepath.Join(out, "x.parquet")
	require.NoError(t, os.WriteFile(file, []byte("an earlier export"), 0o644))
	for args, want := range map[string]string{
		"export --to=" + file:                                                              "export: say what: domains, feeds",
		"export --what=domain --to=" + file:                                                "there is no domain to export; use domains, feeds",
		"export --what=domains --to=" + file + " --format=xlsx":                            "--format=xlsx: use parquet, jsonl or csv",
		"export --what=domains --to=" + out + "/x":                                         "its ending says no format; add --format=parquet, jsonl or csv",
		"export --what=domains --to=-  --format=csv":                                       "only --format=jsonl goes to standard output",
		"export --what=domains --to=store:processing/x.csv":                                "write store:exports/NAME",
		"export --what=domains --to=s3://bucket/x.csv":                                     "it is a URL",
		"export --what=domains --to=" + out + "/none/x.csv":                                "there is no folder",
		"export --what=domains --to=" + file + " --run=1":                                  "--run means nothing to domains",
		"export --what=domains --to=" + file + " --country=SG":                             "two lower-case letters",
		"export --what=domains --to=" + file + " --since=lately":                           "--since=lately: write a day",
		"export domains " + file + " more":                                                 "write pipeline export [WHAT] [FILE]",
		"export --what=domains --to=" + file + " --colour=red":                             "see `help export`",
		"export --what=domains --country=kr --to=" + file + " --store=" + store:            "the store has country/category/date sg/news/2026-01-28",
		"export --what=outcomes --run=20260128-x --to=" + file + " --store=" + store:       "there is no run 20260128-x",
		"export --what=domains --to=" + file + " --store=" + filepath.Join(out, "nothing"): "--store",
		"export --what=pages --to=" + file + " --store=" + store:                           "there is no database " + store + ".db; run --job=docs first",
		"export --what=pages --site=a --to=" + file + " --store=" + store:                  "its filters are --provider, --since",
	} {
		a := here(t, args)
		require.Equal(t, 2, a.code, "%s: %s", args, a.stderr)
		require.Contains(t, a.stderr, want, args)
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "an earlier export", string(b))

	broken := filepath.Join(store, "processing/country=sg/category=news/date=2026-01-28/a.sg/domain_metadata.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"domain_id":`), 0o644))
	a := here(t, "export --what=domains --to="+file+" --store="+store)
	require.Equal(t, 1, a.code, a.stderr)
	require.Contains(t, a.stderr, "it is no domain metadata")
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, left, 1)
	b, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "an earlier export", string(b))
	require.Contains(t, here(t, "help export").stdout, "WHAT is domains, feeds")
}
