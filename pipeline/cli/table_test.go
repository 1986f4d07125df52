package cli

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// contents are the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = string(b)
		return err
	}))
	return all
}

// A purge says what it removes; a dry run says the same and changes no file.
func TestPurgeOfResults(t *testing.T) {
	dir := smallBucket(t, false)
	a := start(t, dir, "--runner=direct --web=demo --store=b --host-delay=0s --layout=table --progress=off")
	require.Equal(t, exitOK, a.code, a.stderr)
	b := filepath.Join(dir, "b")
	require.Equal(t, exitOK, here(t, "store materialize --store="+b).code)
	files := contents(t, b)
	results := slices.DeleteFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return !strings.Contains(name, "/processing/") })
	require.NotEmpty(t, results)
	for _, name := range results {
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Now().Add(-49*time.Hour)))
	}
	for args, want := range map[string]string{
		"older-than 2d":  "would remove 0 rows of the table and 11 objects from before 20",
		"older-than 3d":  "would remove 0 rows of the table and 0 objects from before 20",
		"older-than 1ms": "would remove 3 rows of the table and 11 objects from before 20",
		"domain kind-urlset-1.com kind-urlset-2.com": "kind-urlset-2.com: would remove 1 rows, 4 objects",
	} {
		a := here(t, "rm "+args+" --dry-run --store="+b)
		require.Equal(t, exitOK, a.code, a.stderr)
		require.Contains(t, a.stdout, want, args)
		require.Equal(t, files, contents(t, b), args)
	}
	for args, want := range map[string]string{
		"older-than old":           "write a number of days, such as 90d",
		"older-than 0d":            "write a number of days, such as 90d",
		"older-than 2d gov.sg.com": "write pipeline rm older-than AGE",
		"domain --dry-run":         "write pipeline rm domain NAME…",
	} {
		a := here(t, "rm "+args+" --store="+b)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, want, args)
	}
	require.Equal(t, exitUsage, here(t, "store compact --dry-run --store="+b).code)

	a = here(t, "rm older-than 2d --store="+b)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stdout, "removed 0 rows of the table and 11 objects from before 20")
	a = here(t, "rm older-than 1ms --store="+b)
	require.Contains(t, a.stdout, "removed 3 rows of the table and 0 objects from before 20")
	for name := range contents(t, b) {
		require.NotContains(t, name, "/processing/")
		require.NotRegexp(t, `/`+domaintable.Root+`.*\.(parquet|warc\.gz)`, name)
	}
}

// Results that only an earlier version reads are no reason to visit their domains again without a word.
func TestResultsOfAnEarlierVersionAreRefused(t *testing.T) {
	dir := smallBucket(t, false)
	commit := filepath.Join(dir, "b", "packed", "seed", "lane-00000-of-00001", "00000001.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(commit), 0o755))
	require.NoError(t, os.WriteFile(commit, []byte("{}"), 0o600))
	files := contents(t, filepath.Join(dir, "b"))
	a := start(t, dir, "--runner=direct --store=b --layout=table --progress=off")
	require.Equal(t, exitUsage, a.code, a.stderr)
	require.Contains(t, a.stderr, "--store=b has results under packed/seed/ of --layout=packed")
	require.Equal(t, files, contents(t, filepath.Join(dir, "b")))
}

// Earlier versions are listed in the form of the newest one. A store without a table, and versions that are not there, are refused.
func TestVersionsOfTheTable(t *testing.T) {
	dir := smallBucket(t, false)
	at := " --store=" + filepath.Join(dir, "b")
	run := func(more string) string {
		t.Helper()
		a := start(t, dir, "--runner=direct --web=demo --store=b --host-delay=0s --progress=off "+more)
		require.Equal(t, exitOK, a.code, a.stderr)
		a = here(t, "runs ls --json"+at)
		require.Equal(t, exitOK, a.code, a.stderr)
		var newest struct {
			ID string `json:"run_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(a.stdout, "\n", 2)[0]), &newest))
		return newest.ID
	}
	run("")
	for _, args := range []string{"ls domains --as-of=1h", "export feeds --as-of=0", "changes --job=seed --between=0,1", "runs rollback r1"} {
		a := here(t, args+at)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, "there is no table in this store: only --layout=table keeps earlier versions", args)
	}
	first := run("--force --layout=table")
	list := func(args string) []string {
		t.Helper()
		a := here(t, "ls domains "+args+at)
		require.Equal(t, exitOK, a.code, a.stderr)
		lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
		slices.Sort(lines)
		return lines
	}
	before, table := list("--json"), list("")
	require.Len(t, before, 3)
	second := run("--force --layout=table")
	require.NotEqual(t, before, list("--json"))
	require.Equal(t, before, list("--json --as-of="+first))
	require.Equal(t, table, list("--as-of="+first))
	require.Equal(t, []string{""}, list("--as-of=0"))
	a := here(t, "changes --job=seed --json --between=0,"+first+at)
	require.Equal(t, exitOK, a.code, a.stderr)
	lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
	slices.Sort(lines)
	require.Len(t, lines, 3)
	require.Equal(t, `{"kind":"new","source":"sg/news/2026-01-28","item":"kind-no-robots-3.org","what":""}`, lines[0])
	a = here(t, "changes --job=seed --between="+first+","+second+at)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stderr, "nothing changed")
	for args, want := range map[string]string{
		"ls domains --as-of=99":                                "its newest one is 4. Name another version",
		"ls domains --as-of=2020-01-01":                        "its oldest one is younger",
		"ls domains --as-of=then":                              `"then" is neither a version of the table, nor a time, nor a run`,
		"export products --as-of=0":                            "--as-of means nothing to products",
		"changes --job=seed --between=1":                       "write two versions, times or runs, the earlier one first: --between=A,B",
		"changes --job=seed --between=" + second + "," + first: "write the earlier one first",
		"changes --job=news --between=0,1":                     "--between is for the seed job",
		"runs rollback " + first:                               "run " + second + " has changed the table since (PROMOTE): take that back first",
	} {
		a := here(t, args+at)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, want, args)
	}
}
