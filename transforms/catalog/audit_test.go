package catalog

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/store"
)

// lateStore calls listed after each listing.
type lateStore struct {
	store.Store
	listed func()
}

func (s lateStore) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		s.Store.List(ctx, prefix)(yield)
		s.listed()
	}
}

// An image that a run stores after the listing and before the reading of its row is not missing.
func TestAuditOfAnImageStoredMeanwhile(t *testing.T) {
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	require.NoError(t, Migrate(t.Context(), d))
	row := func(hash string) {
		t.Helper()
		_, err := d.ExecContext(t.Context(), `INSERT INTO catalog_images (site, url, hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure)
			VALUES ('x', 'https://x.example/' || $1, $1, 'image/png', 1, 1, 1, '', '', 1, 1, 1, 1, '')`, hash)
		require.NoError(t, err)
	}
	row("aaaa")
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	var found []string
	require.NoError(t, Images.Audit(t.Context(), lateStore{s, func() {
		require.NoError(t, store.Write(t.Context(), s, Images.Key("x", "bbbb", "image/png"), []byte("x"), store.PutOptions{}))
		row("bbbb")
	}}, d, func(_, key, _ string) { found = append(found, key) }))
	assert.Equal(t, []string{Images.Key("x", "aaaa", "image/png")}, found)
}
