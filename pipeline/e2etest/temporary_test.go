//go:build e2e

package e2etest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// No run leaves a temporary file, however it ends; what a killed one had, the next run
// removes.
func TestNoTemporaryFileStays(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 5 * time.Millisecond})
	jobs := map[string]rig.Job{"catalog": rig.Catalog(w), "docs": rig.Docs(t, w), "news": rig.News(t, w)}
	temporary := func(t *testing.T) (files func() []string) { // of the next commands
		t.Helper()
		dir := filepath.Join(t.TempDir(), "tmp") // the test has its other folders next to it
		require.NoError(t, os.Mkdir(dir, 0o700))
		w.Env = []string{"TMPDIR=" + dir}
		return func() (files []string) {
			require.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
				if name != dir {
					files = append(files, name)
				}
				return err
			}))
			return files
		}
	}
	ended := func(t *testing.T, c *rig.Child, code int) {
		t.Helper()
		require.Equal(t, code, c.Wait(t, time.Minute), "%s", rig.Tail(c.Output(t)))
	}
	for _, runner := range []string{"direct", "prism"} {
		for name, j := range jobs {
			t.Run(name+" on "+runner, func(t *testing.T) {
				files := temporary(t)
				ended(t, j.Start(t, w, rig.Directory(t, nil), "sqlite://"+filepath.Join(t.TempDir(), "db"), "--runner="+runner), 0)
				require.Empty(t, files())
			})
		}
		t.Run("seed on "+runner, func(t *testing.T) {
			files := temporary(t)
			w.Run(t, rig.Directory(t, rig.Bucket(40)), "--runner="+runner)
			require.Empty(t, files())
		})
		t.Run("migrate on "+runner, func(t *testing.T) {
			files := temporary(t)
			dir := rig.Directory(t, map[string]string{"research/datasets/country=sg/category=news/2026-01-28_0001.json": `{"records":[]}`})
			cmd := exec.Command(rig.Program, "--job=migrate", "--store="+dir, "--dry-run=false", "--progress=off", "--runner="+runner)
			cmd.Env = append(os.Environ(), w.Env...)
			ended(t, rig.Start(t, cmd), 0)
			require.Empty(t, files())
		})
		atWork := func(t *testing.T) *rig.Child {
			t.Helper()
			w.ResetLog()
			c := w.Start(t, rig.Directory(t, rig.Bucket(400)), "--runner="+runner, "--rate=20")
			rig.Eventually(t, "the first request", time.Minute, func() bool { return c.Ended() || len(w.Requests()) > 0 })
			return c
		}
		t.Run("stopped on "+runner, func(t *testing.T) {
			files := temporary(t)
			c := atWork(t)
			require.NoError(t, c.Cmd.Process.Signal(syscall.SIGTERM))
			ended(t, c, 130)
			require.Empty(t, files())
		})
		t.Run("failed on "+runner, func(t *testing.T) {
			files := temporary(t)
			ended(t, w.Start(t, rig.Directory(t, rig.Bucket(60)), "--runner="+runner, "--connect-to=127.0.0.1:1", "--outage-threshold=0.01"), 1)
			require.Empty(t, files())
		})
		t.Run("killed on "+runner, func(t *testing.T) {
			files := temporary(t)
			atWork(t).Kill(t)
			require.NotEmpty(t, files())
			w.Run(t, rig.Directory(t, rig.Bucket(4)), "--runner="+runner)
			require.Empty(t, files())
		})
	}
}
