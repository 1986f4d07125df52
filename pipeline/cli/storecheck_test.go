package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

// store check finds nothing in what a run left, and each thing that is broken, and changes nothing.
func TestStoreCheck(t *testing.T) {
	emptyEnv(t)
	dir := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(dir, 0o750))
	require.Equal(t, exitOK, here(t, "catalog --web=demo --site=gadgets --log-level=error --store="+dir).code)
	got := here(t, "store check --store="+dir)
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, "nothing is inconsistent\n", got.stdout)

	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	put := func(key, text string) {
		t.Helper()
		require.NoError(t, store.Write(t.Context(), s, key, []byte(text), store.PutOptions{}))
	}
	require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: "20260101-000000-000-aaaaaaaa", Job: "news"}))
	put("sites/docs/x.json", "{")
	put("restoring.json", "{}")
	put("handoff/manifests/docs/s.json", `{"providers":[{"provider":"p","objects":[{"key":"handoff/docs/p/s/gone.jsonl","size":3}]}]}`)
	temp := filepath.Join(dir, ".store-tmp-1")
	require.NoError(t, os.WriteFile(temp, nil, 0o600))
	require.NoError(t, os.Chtimes(temp, time.Time{}, time.Now().Add(-2*time.Hour)))
	d, err := db.Open(t.Context(), "sqlite://"+dir+".db")
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `INSERT INTO catalog_images (site, url, hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure)
		VALUES ('x', 'https://x.example/', 'abcd', 'image/png', 1, 1, 1, '', '', 1, 1, 1, 1, '')`)
	require.NoError(t, err)
	require.NoError(t, d.Close())

	got = here(t, "store check --json --store="+dir)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.stderr, "6 things are inconsistent")
	for _, want := range []string{`"temporary files of killed writers","count":1`, `"a restore that was cut off"`, `sites/docs/x.json`, `images/sha256/ab/abcd.png`,
		`"runs whose process is gone","count":1,"examples":["20260101-000000-000-aaaaaaaa"]`, `handoff/docs/p/s/gone.jsonl`} {
		assert.Contains(t, got.stdout, want)
	}
	assert.FileExists(t, temp)
	assert.Equal(t, 6, strings.Count(got.stdout, "\n"))
}

// A run that ends after the listing of the runs is not dead.
func TestStoreCheckOfRuns(t *testing.T) {
	s := storetest.NewMemory()
	const dead, ending = "20260101-000000-000-aaaaaaaa", "20260101-000002-000-aaaaaaaa"
	for id, job := range map[string]string{dead: "news", ending: "seed"} {
		require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: id, Job: job}))
	}
	ended := false
	s.Hook = func(op, key string, before bool) {
		if before && op == "list" && strings.HasSuffix(key, "/seed/") { // the leases of the job
			ended = true
			_, err := ledger.Finish(t.Context(), s, ending, ledger.Done, nil, time.Now())
			assert.NoError(t, err)
		}
	}
	f := &faults{}
	require.NoError(t, auditRuns(t.Context(), s, f))
	assert.True(t, ended)
	require.Len(t, f.all, 1)
	assert.Equal(t, []string{dead}, f.all[0].Examples)
}
