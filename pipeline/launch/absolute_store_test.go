package launch

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker may have another working directory, so a directory store travels as an absolute path.
func TestStoreOfWorkersIsAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dir, err := filepath.Abs(".") // as the launcher sees it
	require.NoError(t, err)
	for in, want := range map[string]string{
		"rel":             filepath.Join(dir, "rel"),
		"./a/../b/":       filepath.Join(dir, "b"),
		"../x":            filepath.Join(filepath.Dir(dir), "x"),
		"/abs":            "/abs",
		"file:///abs":     "file:///abs",
		"mem://name":      "mem://name",
		"s3://bucket/dir": "s3://bucket/dir",
	} {
		o := parsed(t, "--runner=direct")
		o.Store = in
		require.Equal(t, want, o.LaneConfig().Store, in)
	}
}
