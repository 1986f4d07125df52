//go:build e2e && nightly

package flink

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// The loop: each batch is a job of its own.
func TestWatch(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	s := startServer(t, w)
	for _, environment := range []string{"LOOPBACK", "PROCESS"} {
		t.Run(environment, func(t *testing.T) {
			w.ResetLog()
			files := rig.Bucket(12)
			dir := rig.Directory(t, files)
			objects := rig.Open(t, dir)
			c := w.Start(t, dir, s.args(environment, 2, "--watch="+interval.String())...)
			begin := newFile(t, c, dir, files)
			stop(t, c, dir, "Ctrl-C")
			taken := false
			for r, err := range ledger.List(t.Context(), objects) {
				require.NoError(t, err)
				// Meanwhile batches tried the broken file; each takes at most some seconds.
				taken = taken || strings.Contains(r.RunID, "-b0") && r.StartedAt.After(begin) && r.StartedAt.Sub(begin) <= 2*interval+10*time.Second
			}
			assert.True(t, taken, "no batch took the new file within two intervals")
			requestedOnce(t, w.Requests())
			rig.OneAtATime(t, w.Requests())
			rig.Eventually(t, "no Flink job and no worker is left", 30*time.Second, func() bool { return s.running(t) == 0 && len(s.workers(t)) == 0 })
		})
	}
}

// A stream is paused in the middle of its hosts, longer than a lease lasts, and
// between two files; it sends nothing meanwhile, and continues where it was.
func TestStreamPause(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
	files := rig.Bucket(120)
	reference := rig.Directory(t, files)
	rig.Put(t, reference, map[string]string{appears: inIt})
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	s := startServer(t, w)
	dir := rig.Directory(t, files)
	objects := rig.Open(t, dir)
	watch := w.Start(t, dir, s.args("PROCESS", 2, "--watch="+interval.String(), "--streaming", "--concurrency=8", "--lease-ttl=3s", "--log-level=info")...)
	rig.Eventually(t, "the stream in the middle", 2*time.Minute, func() bool { return watch.Ended() || len(w.Requests()) > 60 })
	paused := func(span time.Duration, more map[string]string) {
		t.Helper()
		control(t, dir, "pause")
		time.Sleep(5 * time.Second) // workers look every two seconds; a host's requests end
		at := len(w.Requests())
		rig.Put(t, dir, more)
		time.Sleep(span)
		now := len(w.Requests())
		assert.Equal(t, at, now, "%d requests were sent while the stream was paused", now-at)
		r, err := ledger.Load(t.Context(), objects, runID(t, dir))
		assert.True(t, err == nil && r.State == ledger.Paused, "the stream is %s (%v), want paused", r.State, err)
	}
	paused(8*time.Second, nil)
	require.False(t, marked(t, objects, first(files)...)(), "all files are done at the pause, so the test proves nothing")
	control(t, dir, "resume")
	rig.Eventually(t, "the first files' .success", 2*time.Minute, func() bool { return watch.Ended() || marked(t, objects, first(files)...)() })

	paused(2*interval, map[string]string{appears: inIt})
	begin := time.Now()
	control(t, dir, "resume")
	rig.Eventually(t, "the new file's .success", time.Minute, func() bool { return watch.Ended() || marked(t, objects, appears)() })
	if watch.Ended() {
		t.Fatalf("the watch ended:\n%s", rig.Tail(watch.Output(t)))
	}
	t.Logf(".success %v after the second resume", time.Since(begin))

	paused(0, nil)
	stop(t, watch, dir, "runs cancel") // out of a pause too
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	requestedOnce(t, w.Requests())
	rig.OneAtATime(t, w.Requests())
	rig.Eventually(t, "no Flink job and no worker is left", 30*time.Second, func() bool { return s.running(t) == 0 && len(s.workers(t)) == 0 })
}

// Flink restarts a stream whose worker was killed, and nothing is lost.
func TestStreamOutlivesItsWorker(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
	files := rig.Bucket(120)
	reference := rig.Directory(t, files)
	rig.Put(t, reference, map[string]string{appears: inIt})
	w.Run(t, reference, "--runner=prism")
	want := rig.Objects(t, reference)
	w.ResetLog()
	s := startServer(t, w)
	dir := rig.Directory(t, files)
	objects := rig.Open(t, dir)
	watch := w.Start(t, dir, s.args("PROCESS", 2, "--watch="+interval.String(), "--streaming", "--concurrency=8", "--lease-ttl=6s")...)
	rig.Eventually(t, "the stream in the middle", 2*time.Minute, func() bool { return watch.Ended() || len(w.Requests()) > 60 })
	pids := s.workers(t)
	require.True(t, len(pids) != 0 && !marked(t, objects, first(files)...)(), "workers %v at the kill: it proves nothing", pids)
	kill(t, pids)
	rig.Eventually(t, "the first files' .success", 2*time.Minute, func() bool { return watch.Ended() || marked(t, objects, first(files)...)() })
	rig.Put(t, dir, map[string]string{appears: inIt})
	rig.Eventually(t, "the new file's .success", time.Minute, func() bool { return watch.Ended() || marked(t, objects, appears)() })
	if watch.Ended() {
		t.Fatalf("the watch ended:\n%s", rig.Tail(watch.Output(t)))
	}
	stop(t, watch, dir, "Ctrl-C")
	rig.Same(t, rig.Objects(t, dir), want)
	rig.OneAtATime(t, w.Requests())
	rig.Eventually(t, "no Flink job and no worker is left", 30*time.Second, func() bool { return s.running(t) == 0 && len(s.workers(t)) == 0 })
}

// Flink restarts the stream three times. Then the launcher submits it again.
func TestStreamOutlivesFourWorkers(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 200 * time.Millisecond})
	files := rig.Bucket(160)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	s := startServer(t, w)
	dir := rig.Directory(t, files)
	objects := rig.Open(t, dir)
	watch := w.Start(t, dir, s.args("PROCESS", 2, "--watch="+interval.String(), "--streaming", "--concurrency=4", "--lease-ttl=3s")...)
	for n := range 4 {
		requested := len(w.Requests())
		rig.Eventually(t, "a worker at its hosts", 2*time.Minute, func() bool { return watch.Ended() || len(w.Requests()) > requested+10 })
		pids := s.workers(t)
		if watch.Ended() || len(pids) == 0 || marked(t, objects, first(files)...)() {
			t.Fatalf("kill %d: workers %v, ended %v:\n%s", n+1, pids, watch.Ended(), rig.Tail(watch.Output(t)))
		}
		kill(t, pids)
		rig.Eventually(t, "the workers' end", time.Minute, func() bool {
			return !slices.ContainsFunc(s.workers(t), func(pid int) bool { return slices.Contains(pids, pid) })
		})
	}
	rig.Eventually(t, "the stream submitted again", 2*time.Minute, func() bool { return watch.Ended() || strings.Contains(watch.Output(t), `"event":"job_restarts"`) })
	rig.Eventually(t, "the files' .success", 3*time.Minute, func() bool { return watch.Ended() || marked(t, objects, first(files)...)() })
	stop(t, watch, dir, "runs cancel")
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	rig.OneAtATime(t, w.Requests())
}
