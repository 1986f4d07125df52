//go:build e2e

package search

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/cmd/search/index/indextest"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// pgserver is a package of PyPI with the programs of PostgreSQL 16 and with pgvector, which
// Debian 12 lacks.
const pgserver = "pgserver==0.1.4"

// An index does the same with pgvector as without. Vectors that were there before the
// extension move into it. Where it may not be created, or is dropped, the index keeps
// its vectors as plain bytes.
func TestPgvector(t *testing.T) {
	dir, err := os.MkdirTemp("", "pgserver-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) // PostgreSQL runs as another user
	if _, err := rig.FromPyPI(dir, pgserver); err != nil {
		rig.Missing(t, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "lib/python3*/site-packages/pgserver/pginstall/bin"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	open := func(t *testing.T, dsn string) *db.DB {
		t.Helper()
		d, err := db.Open(t.Context(), dsn)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, d.Close()) })
		return d
	}
	dsn := dbtest.PostgresOf(t, found[0])
	admin := open(t, dsn)
	ctx := t.Context()
	exec := func(statement string) {
		t.Helper()
		_, err := admin.ExecContext(ctx, statement)
		require.NoError(t, err, statement)
	}

	t.Run("not permitted", func(t *testing.T) {
		exec(`CREATE SCHEMA reader; CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT ALL ON SCHEMA reader TO reader`)
		u, err := url.Parse(dsn)
		require.NoError(t, err)
		u.User = url.UserPassword("reader", "reader")
		q := u.Query()
		q.Set("search_path", "reader")
		u.RawQuery = q.Encode()
		d := open(t, u.String())
		x, err := index.Open(ctx, d, "small")
		require.NoError(t, err)
		home, err := x.Prepare(ctx)
		require.NoError(t, err)
		assert.Contains(t, home.Why, "CREATE EXTENSION vector")
		assert.Empty(t, home.Pgvector)
		indextest.Near(t, d)
	})

	x, err := index.Open(ctx, admin, "small")
	require.NoError(t, err)
	chunks, vectors := []index.Chunk{}, map[string][]float32{}
	for i := range 1200 {
		id := fmt.Sprintf("c%d", i)
		chunks = append(chunks, index.Chunk{ID: id, Provider: "p", URL: "https://p.example/" + id, Text: "text " + id})
		vectors[id] = []float32{float32(i), 1}
	}
	best := func(want ...string) {
		t.Helper()
		for _, x := range []index.Index{x, x.Keep()} {
			all, err := x.Search(ctx, index.Query{Vector: []float32{1, 0}, Limit: len(want)})
			require.NoError(t, err)
			for i, f := range all {
				assert.Equal(t, want[i], f.ID)
			}
			assert.Len(t, all, len(want))
		}
	}
	rows := func(table string) (n int) {
		t.Helper()
		require.NoError(t, admin.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table).Scan(&n))
		return n
	}
	lacking := func(want int) {
		t.Helper()
		lack, err := x.Lacking(ctx, chunks)
		require.NoError(t, err)
		assert.Len(t, lack, want)
		_, n, err := x.Size(ctx)
		require.NoError(t, err)
		assert.EqualValues(t, want, n)
	}
	require.NoError(t, x.Apply(ctx, index.Change{Put: chunks, Vectors: vectors, At: time.Now()}))
	best("c1199", "c1198")
	for range 2 { // the second time there is nothing to do
		home, err := x.Prepare(ctx)
		require.NoError(t, err)
		assert.Equal(t, index.Home{Pgvector: "0.6.2"}, home)
		assert.Equal(t, []int{0, 1200}, []int{rows("search_vectors"), rows("search_pgvector")})
		best("c1199", "c1198")
		lacking(0)
	}
	// A schema of its own, as several installations in one database have.
	t.Run("same", func(t *testing.T) { indextest.Run(t, open(t, dbtest.PostgresOf(t, found[0]))) })

	exec(`DROP EXTENSION vector CASCADE`)
	lacking(1200)
	require.NoError(t, x.Apply(ctx, index.Change{Put: chunks[:2], Vectors: vectors, At: time.Now()}))
	best("c1", "c0")
	lacking(1198)
	exec(`CREATE EXTENSION vector`)
	best("c1", "c0")
	_, err = x.Prepare(ctx)
	require.NoError(t, err)
	best("c1", "c0")
	assert.Equal(t, []int{0, 2}, []int{rows("search_vectors"), rows("search_pgvector")})
	n, err := removal.FromSearch(ctx, admin, "p")
	require.NoError(t, err)
	assert.EqualValues(t, 1200, n)
	assert.Zero(t, rows("search_pgvector"))
	require.NoError(t, removal.EraseSearch(ctx, admin))
}
