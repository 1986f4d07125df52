package store

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Sync reaches the directory beneath every wrapper, and returns what kept it
// from being synced.
func TestSync(t *testing.T) {
	root := t.TempDir()
	opened, err := openDir(root)
	require.NoError(t, err)
	var synced []string
	failure := error(nil)
	opened.syncFileSystem = func(root string) error {
		synced = append(synced, root)
		return failure
	}
	allow := func(context.Context, bool) error { return nil }
	for name, s := range map[string]Store{"a directory": opened, "counted": Counted(opened, new(Calls)), "guarded": Guarded(opened, allow),
		"placed": Placed(opened, Roots{Raw: "raw/"}), "all": Guarded(Counted(Placed(opened, Roots{Raw: "raw/"}), new(Calls)), allow)} {
		synced = nil
		err := Sync(t.Context(), s)
		assert.True(t, err == nil && len(synced) == 1 && synced[0] == root, "%s: synced %q, error %v; want %q once", name, synced, err, root)
	}
	failure = errors.New("I/O error")
	if err := Sync(t.Context(), opened); !errors.Is(err, failure) || !strings.Contains(err.Error(), root) {
		t.Errorf("error %v, want %v with the directory's name", err, failure)
	}
	require.NoError(t, os.Remove(root))
	synced = nil
	if err := Sync(t.Context(), opened); !errors.Is(err, ErrGone) || len(synced) > 0 {
		t.Errorf("a directory that is gone: error %v, synced %q; want %v and no sync", err, synced, ErrGone)
	}
}

// The real call, on the file system of the tests' own files.
func TestSyncFileSystem(t *testing.T) {
	assert.NoError(t, syncFileSystem(t.TempDir()))
}
