//go:build e2e

package e2etest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/pipeline/e2etest/sockets"
)

// Unless a flag says so, no run, watch or server listens where other machines can
// reach it. With the default runner a run does not listen at all.
func TestSockets(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 5 * time.Millisecond})
	catalog, docs, news := rig.Catalog(w), rig.Docs(t, w), rig.News(t, w)
	silent := func(t *testing.T, c *rig.Child) {
		t.Helper()
		found := c.Sockets(t, c.Ended)
		assert.True(t, len(found) <= 0, "it listens on %v, want nowhere", found)
		if code := c.Wait(t, time.Minute); code != 0 {
			t.Fatalf("exit code %d, want 0:\n%s", code, rig.Tail(c.Output(t)))
		}
	}
	t.Run("seed", func(t *testing.T) { silent(t, w.Start(t, rig.Directory(t, rig.Bucket(40)))) })
	for name, j := range map[string]rig.Job{"catalog": catalog, "docs": docs, "news": news} {
		t.Run(name, func(t *testing.T) {
			silent(t, j.Start(t, w, rig.Directory(t, nil), "sqlite://"+filepath.Join(t.TempDir(), "db")))
		})
	}
	t.Run("migrate", func(t *testing.T) {
		dir := rig.Directory(t, map[string]string{"research/datasets/country=sg/category=news/2026-01-28_0001.json": `{"records":[]}`})
		silent(t, rig.Start(t, exec.Command(rig.Program, "--job=migrate", "--store="+dir, "--dry-run=false", "--progress=off")))
	})

	done := func(t *testing.T, dir string) func() bool {
		s := rig.Open(t, dir)
		return there(t, s, "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json.success")
	}
	t.Run("watch", func(t *testing.T) {
		dir := rig.Directory(t, rig.Bucket(20))
		c := w.Start(t, dir, "--watch=200ms")
		found := c.Sockets(t, done(t, dir))
		assert.True(t, len(found) <= 0, "it listens on %v, want nowhere", found)
	})
	for name, more := range map[string][]string{"prism": {"--runner=prism", "--watch=200ms"}, "stream": {"--watch=200ms", "--streaming"}} {
		t.Run(name, func(t *testing.T) {
			dir := rig.Directory(t, rig.Bucket(20))
			w.ResetLog()
			c := w.Start(t, dir, more...)
			rig.Eventually(t, "the first request", time.Minute, func() bool { return c.Ended() || len(w.Requests()) > 0 })
			local(t, c.Sockets(t, done(t, dir)), 2) // prism's, and that of its workers
		})
	}
	t.Run("server", func(t *testing.T) {
		dir := rig.Directory(t, rig.Bucket(20))
		o := w.StartOrchestrator(t, nil, dir)
		o.Trigger(`{}`)
		local(t, o.Sockets(t, done(t, dir)), 1) // the API's
	})
}

// local fails if other machines can reach a socket, or if there are fewer than least.
func local(t *testing.T, found []sockets.Socket, least int) {
	t.Helper()
	assert.True(t, len(found) >= least, "it listens on %v, want %d sockets: was the right process looked at?", found, least)
	for _, s := range found {
		assert.False(t, s.Open(), "it listens on %s, which other machines can reach", s)
	}
}

// The first command of the README, with its simulated web in the same process.
func TestSocketsOfTheDemo(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(rig.Program, "--web=demo", "--progress=off")
	cmd.Dir = t.TempDir()
	cmd.Env = os.Environ()
	c := rig.Start(t, cmd)
	local(t, c.Sockets(t, c.Ended), 2) // the sites, and their names
}
