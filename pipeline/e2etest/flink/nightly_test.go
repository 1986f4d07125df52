//go:build e2e && nightly

package flink

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestLimitsHoldOverAllLanes(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 20 * time.Millisecond})
	s := startServer(t, w)
	t.Run("concurrency", func(t *testing.T) {
		w.ResetLog()
		w.Run(t, rig.Directory(t, rig.Bucket(150)), s.args("PROCESS", 4, "--concurrency=8")...)
		n := w.MaxInFlight()
		assert.True(t, n <= 8 && n >= 4, "%d requests in flight, want up to 8 over all lanes", n)
		rig.OneAtATime(t, w.Requests())
	})
	t.Run("fewer than slots", func(t *testing.T) {
		w.ResetLog()
		w.Run(t, rig.Directory(t, rig.Bucket(40)), s.args("PROCESS", 4, "--concurrency=2")...)
		n := w.MaxInFlight()
		assert.True(t, n <= 2, "%d requests in flight, want at most 2", n)
	})
	t.Run("rate", func(t *testing.T) {
		w.ResetLog()
		w.Run(t, rig.Directory(t, rig.Bucket(60)), s.args("PROCESS", 4, "--rate=30")...)
		log := w.Requests()
		slices.SortFunc(log, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
		log = slices.DeleteFunc(log, func(r webtest.LoggedRequest) bool { return r.Method == "" })
		// In any two seconds there are as many requests as the rate allows, and a few that started late.
		for i := range log {
			n := 0
			for _, r := range log[i:] {
				if r.Start.Sub(log[i].Start) < 2*time.Second {
					n++
				}
			}
			require.True(t, n <= 60+8, "%d requests within two seconds, want 30 a second", n)
		}
	})
}

// TestKilled kills one of the processes in the middle of a run and starts the run again at once.
func TestKilled(t *testing.T) {
	files := rig.Bucket(160)
	for _, victim := range []string{"worker", "job server", "launcher"} {
		t.Run(victim, func(t *testing.T) {
			w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
			reference := rig.Directory(t, files)
			w.Run(t, reference, "--runner=prism")
			want := rig.Objects(t, reference)
			w.ResetLog()
			s := startServer(t, w)
			dir := rig.Directory(t, files)
			first := w.Start(t, dir, s.args("PROCESS", 4, "--concurrency=8", "--lease-ttl=6s")...)
			rig.Eventually(t, "the first run in the middle", 2*time.Minute, func() bool { return first.Ended() || len(w.Requests()) > 80 })
			if first.Ended() {
				t.Fatalf("the first run ended:\n%s", rig.Tail(first.Output(t)))
			}
			begun := w.Requests()
			switch victim {
			case "worker":
				pids := s.workers(t)
				require.NotEqual(t, 0, len(pids), "there is no worker")
				kill(t, pids)
			case "job server":
				s.Kill(t)
			case "launcher":
				first.Kill(t)
			}
			if victim != "launcher" {
				want := 1
				if victim == "worker" { // then the launcher submits the job again
					want = 0
				}
				if code := first.Wait(t, 2*time.Minute); code != want {
					t.Errorf("the first run: exit code %d, want %d:\n%s", code, want, rig.Tail(first.Output(t)))
				}
			}
			if victim == "job server" {
				s = startServer(t, w)
			}
			second := w.Start(t, dir, s.args("PROCESS", 4, "--concurrency=8", "--lease-ttl=6s")...)
			if code := second.Wait(t, 4*time.Minute); code != 0 {
				t.Fatalf("the second run: exit code %d, want 0:\n%s", code, rig.Tail(second.Output(t)))
			}
			rig.Same(t, rig.Objects(t, dir), want)
			log := w.Requests()
			rig.OneAtATime(t, log)
			assert.True(t, len(log) > len(begun), "nothing was left for the second run: the kill proves nothing")
		})
	}
}

// A launcher that was suspended for longer than its lease lasts ends, because the
// next run has taken over its lease and the leases of its workers.
func TestSuspendedLauncher(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 100 * time.Millisecond})
	files := rig.Bucket(160)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	s := startServer(t, w)
	dir := rig.Directory(t, files)
	args := s.args("PROCESS", 2, "--concurrency=4", "--lease-ttl=4s")
	first := w.Start(t, dir, args...)
	rig.Eventually(t, "the first run in the middle", 2*time.Minute, func() bool { return first.Ended() || len(w.Requests()) > 40 })
	id := runID(t, dir)
	require.NoError(t, first.Cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(5 * time.Second) // while it is suspended
	second := w.Start(t, dir, args...)
	rig.Eventually(t, "the second run", time.Minute, func() bool { return second.Ended() || runID(t, dir) != id })
	require.NoError(t, first.Cmd.Process.Signal(syscall.SIGCONT))
	if code, out := first.Wait(t, time.Minute), first.Output(t); code != 1 || !strings.Contains(out, "this run lost its lease") {
		t.Errorf("the first run: exit code %d, want 1, for its lease:\n%s", code, rig.Tail(out))
	}
	if code := second.Wait(t, 2*time.Minute); code != 0 {
		t.Fatalf("the second run: exit code %d, want 0:\n%s", code, rig.Tail(second.Output(t)))
	}
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	rig.OneAtATime(t, w.Requests())
}

// A worker that cannot open its store ends the run at once and says why. Without
// the hook, Beam's job server would wait three minutes for the worker to read.
func TestWorkerWithoutItsStore(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	s := startServer(t, w)
	dir := rig.Directory(t, rig.Bucket(4))
	cmd := exec.Command(rig.Program, s.args("PROCESS", 2, "--store=/proc/self/cwd/"+filepath.Base(dir), "--connect-to="+w.Addr(), "--progress=off", "--log-format=json")...)
	cmd.Dir = filepath.Dir(dir) // which is not the workers', so the same path leads them elsewhere
	begin := time.Now()
	c := rig.Start(t, cmd)
	assert.EqualValues(t, 1, c.Wait(t, 2*time.Minute))
	t.Logf("ended after %v", time.Since(begin))
	const said = "pipeline: the pipeline stopped: a worker says: opening the worker's store: "
	if lines := strings.Split(strings.TrimSpace(c.Output(t)), "\n"); !strings.HasPrefix(lines[len(lines)-1], said) {
		t.Errorf("the last line is not %q…:\n%s", said, rig.Tail(c.Output(t)))
	}
}
