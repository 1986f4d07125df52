package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// Each method uses the bucket's own key, and names objects by the usual one.
func TestPlaced(t *testing.T) {
	own, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	roots, err := store.NewRoots("raw", "out/found/")
	require.NoError(t, err)
	s := store.Placed(own, roots)
	write := func(s store.Store, key string) {
		t.Helper()
		require.NoError(t, store.Write(t.Context(), s, key, []byte(key), store.PutOptions{}))
	}
	keys := func(s store.Store, prefix string) (all []string) {
		for o, err := range s.List(context.Background(), prefix) {
			require.NoError(t, err)
			all = append(all, o.Key)
		}
		return all
	}
	write(own, "datasets/hidden")
	write(own, "raw/b/1")
	write(s, "datasets/a")
	write(s, "runs/x")
	require.NoError(t, errors.Join(store.PutAll(t.Context(), s, []store.Item{{Key: "processing/p", Body: []byte("p")}})...))
	require.NoError(t, store.Create(t.Context(), s, "processing/q", []byte("q"), store.PutOptions{}))
	for prefix, want := range map[string][]string{
		"datasets/": {"datasets/a", "datasets/b/1"}, "datasets/b": {"datasets/b/1"}, "processing/": {"processing/p", "processing/q"},
		"": {"datasets/hidden", "out/found/p", "out/found/q", "raw/a", "raw/b/1", "runs/x"}} {
		assert.Equal(t, want, keys(s, prefix), "List(%q)", prefix)
	}
	o, err := s.Head(t.Context(), "datasets/a")
	body, readErr := store.ReadAll(t.Context(), s, "datasets/a", 100)
	assert.True(t, err == nil && readErr == nil && o.Key == "datasets/a" && string(body) == "datasets/a",
		"%+v, %q, %v, %v", o, body, err, readErr)
	require.NoError(t, s.Delete(t.Context(), "datasets/a"))
	for key, want := range map[string]bool{"datasets/a": false, "datasets/b/1": true, "datasets/hidden": false, "runs/x": true} {
		got, err := store.Exists(t.Context(), s, key)
		assert.True(t, err == nil && got == want, "Exists(%q) = %v, %v", key, got, err)
	}
	assert.True(t, store.Local(s) && store.Exclusive(t.Context(), s) == nil, "it is no longer a directory")
	if same, err := store.NewRoots("datasets/", "processing"); err != nil || store.Placed(own, same) != own {
		t.Error("the usual roots change the store", fmt.Sprint(same), err)
	}
}
