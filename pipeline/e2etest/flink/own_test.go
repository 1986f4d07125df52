//go:build e2e

package flink

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// A program of a user's own, with the stages of the seed job and one of its own, writes on Flink what it writes
// on one machine.
func TestOwnPipeline(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	files := rig.Bucket(40)
	program := filepath.Join(t.TempDir(), "own")
	out, err := exec.Command("go", "build", "-o", program, "./testdata/own").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func(args ...string) map[string]string {
		t.Helper()
		dir := rig.Directory(t, files)
		out, err := exec.Command(program, append(args, "--store="+dir, "--connect-to="+w.Addr(), "--ca="+w.CA)...).CombinedOutput()
		require.NoError(t, err, "%s", rig.Tail(string(out)))
		for name := range files {
			require.Contains(t, string(out), "finished "+filepath.Base(name))
		}
		return rig.Objects(t, dir)
	}
	want := run("--runner=direct")
	require.Greater(t, len(want), 2*40)
	s := startServer(t, w)
	rig.Same(t, run("--runner=flink", "--endpoint="+s.endpoint, "--environment_type=LOOPBACK"), want)
}
