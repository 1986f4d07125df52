package launch

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Where the sample bucket cannot be copied to, the error says what to do, and that nothing
// was touched.
func TestSampleThatCannotBeCopied(t *testing.T) {
	o := Options{Sample: true}
	o.Store = filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(o.Store, nil, 0o600))
	_, err := OpenStore(t.Context(), &o, io.Discard)
	require.True(t, usage.Is(err), err)
	require.ErrorContains(t, err, "name a bucket with --store")
}
