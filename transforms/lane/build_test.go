package lane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker of another build than its launcher's does not begin. Where a build is unknown, it does.
func TestWorkerOfAnotherBuild(t *testing.T) {
	defer func(was string) { ownBuild = was }(ownBuild)
	for _, c := range []struct{ launcher, worker, want string }{
		{"aaa", "aaa", ""}, {"", "bbb", ""}, {"aaa", "", ""},
		{"aaa", "bbb", "the launcher was built from commit aaa and this worker from bbb: start both from the same build"},
	} {
		ownBuild = c.worker
		run := "build-" + c.launcher + "-" + c.worker
		_, err := Open(t.Context(), Config{Job: "seed", RunID: run, Store: "mem://" + run, Build: c.launcher})
		if c.want != "" {
			require.EqualError(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, Close(run))
	}
}
