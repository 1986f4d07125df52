package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A demo's store and database come back, with their marks; wrong places are refused before anything is written.
func TestBackupAndRestore(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("a"), 0o750))
	require.Equal(t, exitOK, here(t, "catalog --web=demo --site=gadgets --log-level=error --store="+at("a")).code)
	got := here(t, "backup "+at("kept")+" --store="+at("a"))
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "and the database; copied ")
	got = here(t, "backup "+at("kept")+" --keep=1 --store="+at("a"))
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "copied 0 contents, 0 B")
	got = here(t, "backup ls --json "+at("kept"))
	assert.Contains(t, got.stdout, `"database":"sqlite"`)
	assert.Equal(t, exitOK, here(t, "backup check "+at("kept")).code)

	got = here(t, "restore "+at("kept")+" --store="+at("b"))
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.FileExists(t, at("b/demo"))
	for _, s := range []string{"a", "b"} {
		got = here(t, "ls products --json --store="+at(s))
		assert.Contains(t, got.stdout, "G-0007", s)
	}
	got = here(t, "catalog --contact=me@a.example --site=matter --log-level=error --store="+at("b"))
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "has the results of a demo")

	require.NoError(t, os.Mkdir(at("other"), 0o750))
	require.NoError(t, os.Symlink(at("a"), at("link")))
	require.NoError(t, os.WriteFile(at("other/photo.jpg"), nil, 0o600))
	for args, want := range map[string]string{
		"backup": "write pipeline backup TARGET",
		"backup " + at("a/in") + " --store=" + at("a"):                                      "one is in the other",
		"backup " + dir + " --store=" + at("a"):                                             "one is in the other",
		"backup " + at("link/in") + " --store=" + at("a"):                                   "one is in the other",
		"backup " + at("x") + " --store=" + at("a") + " --db=sqlite://" + at("none.db"):     "there is no database",
		"backup " + at("other") + " --store=" + at("a"):                                     "it has objects that are no backup",
		"backup " + at("x") + " --store=" + at("none"):                                      "none",
		"backup ls " + at("none"):                                                           "must exist",
		"restore " + at("kept") + " --store=" + at("b"):                                     "to an empty place only",
		"restore " + at("none") + " --store=" + at("c"):                                     "must exist",
		"restore " + at("other") + " --store=" + at("c"):                                    "there is no such snapshot",
		"restore " + at("kept") + " --snapshot=x --store=" + at("c"):                        "--snapshot=x: there is no such snapshot",
		"restore " + at("kept") + " --store=" + at("c") + " --db=postgres://me@localhost/x": "add --db=sqlite://",
		"restore " + at("kept") + " --store=" + at("d") + " --db=sqlite://" + at("b.db"):    "the database",
	} {
		got := here(t, args)
		assert.Equal(t, exitUsage, got.code, "%s: %s", args, got.stderr)
		assert.Contains(t, got.stderr, want, args)
	}
	got = here(t, "backup check "+at("other"))
	assert.Equal(t, exitUsage, got.code, "of a place without a snapshot")
	assert.Contains(t, got.stderr, "there is no such snapshot")
	require.NoError(t, os.WriteFile(at("b/restoring.json"), []byte("{}"), 0o600))
	got = here(t, "catalog --web=demo --site=gadgets --log-level=error --store="+at("b"))
	assert.Equal(t, exitUsage, got.code, got.stderr)
	assert.Contains(t, got.stderr, "give the same `restore` command again")
	assert.NoDirExists(t, at("x/data"))
	left, err := os.ReadDir(at("d"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
