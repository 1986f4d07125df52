package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/docs"
)

// docs unblock lifts the block of one page, however its URL is written, or of all pages of a provider.
func TestUnblock(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir() + "/store"
	run := func(args string) (int, string) {
		got := here(t, "docs unblock "+args+" --store="+dir)
		return got.code, got.stdout + got.stderr
	}
	code, said := run("stripe")
	require.Equal(t, exitUsage, code)
	assert.Contains(t, said, "no run has used")
	base, err := db.Open(t.Context(), "sqlite://"+dir+".db")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, base.Close()) })
	require.NoError(t, docs.Migrate(t.Context(), base))
	for _, of := range [][2]string{{"stripe", "a"}, {"stripe", "b"}, {"stripe", "c"}, {"auth0", "a"}} {
		_, err := base.Exec(`INSERT INTO docs_blocked_urls (provider, key, address, http_status, blocked_at) VALUES ($1, $2, $2, 403, 1)`, of[0], "https://docs.example.com/"+of[1])
		require.NoError(t, err)
	}
	for _, c := range []struct {
		args, says string
		code       int
		left       []string
	}{
		{"", "write pipeline docs unblock PROVIDER [URL]", exitUsage, []string{"auth0 a", "stripe a", "stripe b", "stripe c"}},
		{"strpe", "docs unblock strpe: no such page is blocked by a 403; providers with such pages: auth0, stripe", exitUsage, []string{"auth0 a", "stripe a", "stripe b", "stripe c"}},
		{"stripe http://www.docs.example.com/b/#top", "1 pages of stripe that answered 403 are requested again", exitOK, []string{"auth0 a", "stripe a", "stripe c"}},
		{"stripe https://docs.example.com/b", "docs unblock stripe https://docs.example.com/b: no such page", exitUsage, []string{"auth0 a", "stripe a", "stripe c"}},
		{"stripe", "2 pages of stripe that answered 403 are requested again", exitOK, []string{"auth0 a"}},
	} {
		code, said := run(c.args)
		require.Equal(t, c.code, code, said)
		assert.Contains(t, said, c.says)
		left, err := db.Texts(t.Context(), base, `SELECT provider || ' ' || substr(key, 26) FROM docs_blocked_urls ORDER BY 1`)
		require.NoError(t, err)
		assert.Equal(t, c.left, left)
	}
}

// A run makes the directory of its store in the working directory. One with an absolute path may be on a volume that is not mounted;
// what only looks makes nothing.
func TestStoreThatIsNew(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	t.Chdir(dir)
	run := "docs --web=demo --provider=toss-payments --limit=1 --log-format=text "
	for args, code := range map[string]int{
		"ls pages --store=new": exitUsage, "docs --diff --store=new": exitUsage, run + "--store=no/such": exitUsage,
		run + "--store=" + filepath.Join(dir, "new"): exitUsage, "seed --web=demo --store=new": exitUsage,
		"docs --web=demo --explain=https://docs.tosspayments.com/reference --store=new": exitOK,
	} {
		got := here(t, args)
		assert.Equal(t, code, got.code, args+got.stderr)
	}
	assert.NoDirExists(t, "new")
	got := here(t, run+"--store=new")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stderr, "Made the store's directory ./new\n")
	assert.DirExists(t, "new/runs")
	assert.NotContains(t, here(t, run+"--store=new").stderr, "Made")
}
