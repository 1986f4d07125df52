package launch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// A run removes what killed writers left, and a run of less than a minute does not
// walk the store.
func TestSweep(t *testing.T) {
	for worked, want := range map[time.Duration]int{sweepAfter - time.Second: 1, sweepAfter + time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			left := filepath.Join(dir, ".store-tmp-1")
			require.NoError(t, os.WriteFile(left, nil, 0o600))
			before := time.Now().Add(-2 * time.Hour)
			require.NoError(t, os.Chtimes(left, before, before))
			s, err := store.Open(t.Context(), dir)
			require.NoError(t, err)
			end := (&run{store: s}).sweep(t.Context())
			time.Sleep(worked)
			synctest.Wait()
			require.NoError(t, end())
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, want, "after %v", worked)
		})
	}
}

// What cannot be swept fails no run: here a file has taken the place of the store's parent.
func TestSweepFailsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := filepath.Join(t.TempDir(), "parent")
		dir := filepath.Join(parent, "store")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		s, err := store.Open(t.Context(), dir)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(parent))
		require.NoError(t, os.WriteFile(parent, nil, 0o600))
		end := (&run{store: s}).sweep(t.Context())
		time.Sleep(sweepAfter + time.Second)
		synctest.Wait()
		require.NoError(t, end())
	})
}
