package lane

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker of another build than its launcher's does not begin, also without commits. Where a build is unknown, it does.
func TestWorkerOfAnotherBuild(t *testing.T) {
	defer func(was func() string) { ownBuild = was }(ownBuild)
	for _, c := range []struct{ launcher, worker, want string }{
		{"aaa", "aaa", ""}, {"", "bbb", ""}, {"aaa", "", ""},
		{"sha256:a", "sha256:a", ""},
		{"aaa", "bbb", "aaa and this worker is build bbb"}, {"aaa", "sha256:a", "aaa and this worker is build sha256:a"},
		{"sha256:a", "sha256:b", "sha256:a and this worker is build sha256:b"}, {"sha256:a", "aaa", "sha256:a and this worker is build aaa"},
	} {
		ownBuild = func() string { return c.worker }
		run := strings.ReplaceAll("build-"+c.launcher+"-"+c.worker, ":", "-")
		_, err := Open(t.Context(), Config{Job: "seed", RunID: run, Store: "mem://" + run, Build: c.launcher})
		if c.want != "" {
			require.ErrorContains(t, err, "the launcher is build "+c.want+" (commits, or hashes of programs that were built without one): start both from the same build")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, Close(run))
	}
}

// Without a commit the program's file is what is compared: a test's program has none.
func TestBuildWithoutACommit(t *testing.T) {
	require.Regexp(t, "^sha256:[0-9a-f]{16}$", ownBuild())
	require.Equal(t, ownBuild(), Build(false))
	require.Empty(t, Build(true))
}
