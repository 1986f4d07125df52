package export_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/export"
)

// The file of an export that was killed goes with the next export, one that is at work stays.
func TestFileOfAKilledExport(t *testing.T) {
	dir := t.TempDir()
	killed, working := filepath.Join(dir, ".export-1.tmp"), filepath.Join(dir, ".export-2.tmp")
	for name, age := range map[string]time.Duration{killed: 2 * time.Hour, working: time.Minute} {
		require.NoError(t, os.WriteFile(name, []byte("rows"), 0o600))
		require.NoError(t, os.Chtimes(name, time.Now().Add(-age), time.Now().Add(-age)))
	}
	to, err := export.ParseTarget("domains", filepath.Join(dir, "domains.csv"), "")
	require.NoError(t, err)
	n, err := to.Write(t.Context(), nil, nil, func(w io.Writer) (int64, error) {
		_, err := io.WriteString(w, "a")
		return 1, err
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = to.Write(t.Context(), nil, nil, func(io.Writer) (int64, error) { return 0, errors.New("no rows") })
	require.EqualError(t, err, "no rows")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{working, filepath.Join(dir, "domains.csv")}, files)
}
