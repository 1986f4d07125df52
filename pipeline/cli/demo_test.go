package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

const quiet = " --log-level=error --progress=off"

// filesIn are the files below a folder, with their contents.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[p] = string(b)
		return err
	}))
	return out
}

// The results of a demo are marked, and runs of real sites refuse its store and its database, whatever the job and the flags,
// before anything is touched. What only looks works, and so does the demo, again and of another job.
func TestRealRunsRefuseADemo(t *testing.T) {
	dir := smallBucket(t, false)
	for range 2 {
		a := start(t, dir, "--web=demo --store=b"+quiet)
		require.Equal(t, exitOK, a.code, a.stderr)
	}
	require.FileExists(t, filepath.Join(dir, "b/demo"))
	b, err := os.ReadFile(filepath.Join(dir, "b/processing/country=sg/category=news/date=2026-01-28/kind-urlset-1.com/domain_metadata.json"))
	require.NoError(t, err)
	assert.Contains(t, string(b), `"web": "demo"`)
	a := start(t, dir, "--job=docs --web=demo --store=b --provider=toss-payments"+quiet)
	require.Equal(t, exitOK, a.code, a.stderr)

	writeFile(t, filepath.Join(dir, "c/datasets/x"), "")
	before := filesIn(t, dir)
	for args, says := range map[string]string{
		"--store=b":                                    "--store=b has the results of a demo",
		"--store=b --country=sg --force":               "--store=b has the results of a demo",
		"--store=b --watch=1m":                         "--store=b has the results of a demo",
		"--store=b --watch=1m --streaming":             "--store=b has the results of a demo",
		"--store=b --runner=prism --layout=table":      "--store=b has the results of a demo",
		"--store=b --job=docs":                         "--store=b has the results of a demo",
		"--store=b --job=docs --url=https://a.example": "--store=b has the results of a demo",
		"--store=b --job=catalog --contact=a@b.example --db=sqlite://" + dir + "/other.db": "--store=b has the results of a demo",
		"--store=b --job=news":                                "--store=b has the results of a demo",
		"--store=c --job=docs --db=sqlite://" + dir + "/b.db": "b.db has the rows of a demo",
		"--store=c --job=news --db=sqlite://" + dir + "/b.db": "b.db has the rows of a demo",
	} {
		a := start(t, dir, args+quiet)
		assert.Equal(t, exitUsage, a.code, "%s: %s", args, a.stderr)
		assert.Contains(t, a.stderr, says, args)
	}
	assert.Equal(t, before, filesIn(t, dir))

	for _, args := range []string{"--store=b --until=extract", "--store=b --estimate", "runs --store=b", "dead-letters --store=b", "ls domains --store=b", "changes --job=seed --store=b",
		"export --what=domains --to=d.csv --store=b", "--job=docs --diff --store=b", "--job=docs --provider=toss-payments --markdown=md --store=b",
		"--job=news --purge-expired --store=b", "--job=news --reparse --store=b", "--job=news --web=demo --keep-html --publisher=demo-economy --store=b"} {
		a := start(t, dir, args+map[bool]string{true: quiet}[strings.HasPrefix(args, "--")])
		assert.Equal(t, exitOK, a.code, "%s: %s", args, a.stderr)
	}
	rows, err := os.ReadFile(filepath.Join(dir, "d.csv"))
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(rows), ",demo\n"))
}

// A demo refuses a store and a database with anything that a real run may have left, of any job, and leaves them as they are.
func TestDemoRefusesRealResults(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(s store.Store) error
		code int
	}{
		{"raw files alone", nil, exitOK},
		{"a domain", func(s store.Store) error {
			return s.Put(t.Context(), "processing/country=sg/category=a/date=2026-01-01/a.sg/x", strings.NewReader(""), store.PutOptions{})
		}, exitUsage},
		{"packed", func(s store.Store) error {
			return s.Put(t.Context(), "tables/domains/x.parquet", strings.NewReader(""), store.PutOptions{})
		}, exitUsage},
		{"documents", func(s store.Store) error {
			return s.Put(t.Context(), "handoff/docs/stripe/x", strings.NewReader(""), store.PutOptions{})
		}, exitUsage},
		{"a run of another job", func(s store.Store) error {
			return ledger.Start(t.Context(), s, ledger.Run{RunID: "r1", Job: "catalog"})
		}, exitUsage},
		{"a run that copied files", func(s store.Store) error {
			return ledger.Start(t.Context(), s, ledger.Run{RunID: "r1", Job: "migrate"})
		}, exitOK},
		{"a server's objects", func(s store.Store) error {
			return s.Put(t.Context(), "alerts/state.json", strings.NewReader("{}"), store.PutOptions{})
		}, exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := smallBucket(t, false)
			s, err := store.Open(t.Context(), filepath.Join(dir, "b"))
			require.NoError(t, err)
			defer func() { _ = s.Close() }()
			if c.put != nil {
				require.NoError(t, c.put(s))
			}
			before := filesIn(t, dir)
			a := start(t, dir, "--web=demo --force --store=b"+quiet)
			require.Equal(t, c.code, a.code, a.stderr)
			if c.code == exitUsage {
				assert.Contains(t, a.stderr, "--store=b has results of real runs")
				assert.Equal(t, before, filesIn(t, dir))
			}
		})
	}
	dir := smallBucket(t, false)
	base, err := db.Open(t.Context(), "sqlite://"+filepath.Join(dir, "n.db"))
	require.NoError(t, err)
	defer func() { _ = base.Close() }()
	require.NoError(t, raw.Migrate(t.Context(), base))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "e"), 0o755))
	demo := "--job=docs --web=demo --provider=toss-payments --db=sqlite://" + dir + "/n.db --store="
	_, err = base.ExecContext(t.Context(), "INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at) VALUES ('a', 'b', 'stored', 0, 0)")
	require.NoError(t, err)
	a := start(t, dir, demo+"e"+quiet)
	assert.Equal(t, exitUsage, a.code, a.stderr)
	assert.Contains(t, a.stderr, "n.db has rows of real runs")
	assert.Empty(t, filesIn(t, filepath.Join(dir, "e")), "the store is not marked either")
	_, err = base.ExecContext(t.Context(), "DELETE FROM news_urls")
	require.NoError(t, err)
	a = start(t, dir, demo+"e"+quiet)
	assert.Equal(t, exitOK, a.code, "tables without rows: %s", a.stderr)
}
