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
			end := sweep(t.Context(), s)
			time.Sleep(worked)
			synctest.Wait()
			require.NoError(t, end())
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, want, "after %v", worked)
		})
	}
}
