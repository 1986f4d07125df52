//go:build e2e

package flink

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// TestOrchestrated starts, controls and fails runs on Flink through the server,
// whose program is also the launcher and the worker.
func TestOrchestrated(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 100 * time.Millisecond})
	files := rig.Bucket(80)
	reference, dir := rig.Directory(t, files), rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	s := startServer(t, w)
	// The rate lets a run last for ten seconds, so that a pause and a cancel, which workers see
	// within two, come before its end.
	o := w.StartOrchestrator(t, nil, dir, s.args("PROCESS", 2, "--lease-ttl=6s", "--concurrency=4", "--rate=20")...)

	id := o.Trigger(`{}`)
	busy := o.Call("POST", "/api/v1/seeds/orchestrate", `{"country":"kr"}`, http.StatusConflict)
	assert.Equal(t, id, busy.RunID, "409 names run %q, want %q", busy.RunID, id)
	r := o.Reaches(id, "done")
	if r.Runner != "flink" || len(r.Lanes) < 2 {
		t.Errorf("the run was on %q with %d lanes, want flink and several", r.Runner, len(r.Lanes))
	}
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	rig.OneAtATime(t, w.Requests())

	// Pause, resume and cancel reach the workers of the cluster.
	w.ResetLog()
	id = o.Trigger(`{"force":true}`)
	rig.Eventually(t, "the forced run at work", 2*time.Minute, func() bool { return len(w.Requests()) > 10 })
	o.Call("POST", "/api/v1/runs/"+id+"/pause", "", http.StatusAccepted)
	o.Reaches(id, "paused")
	time.Sleep(5 * time.Second) // workers look every two seconds; a host's requests end
	at := len(w.Requests())
	time.Sleep(2 * time.Second)
	now := len(w.Requests())
	assert.Equal(t, at, now, "%d requests were sent while the run was paused", now-at)
	o.Call("POST", "/api/v1/runs/"+id+"/resume", "", http.StatusAccepted)
	rig.Eventually(t, "the run at work again", time.Minute, func() bool { return len(w.Requests()) > at })
	o.Call("POST", "/api/v1/runs/"+id+"/cancel", "", http.StatusAccepted)
	o.Reaches(id, "cancelled")

	// When a server ends, the run on the cluster continues; the next server finds it.
	rig.Eventually(t, "a free job", time.Minute, func() bool {
		resp, err := http.Post(o.URL+"/api/v1/seeds/orchestrate", "", strings.NewReader(`{"force":true}`))
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		var started rig.OrchestratedRun
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&started))
		id = started.RunID
		return resp.StatusCode == http.StatusAccepted
	})
	o.Reaches(id, "running")
	require.NoError(t, o.Cmd.Process.Signal(syscall.SIGTERM))
	if code := o.Wait(t, time.Minute); code != 0 {
		t.Errorf("the server's exit code is %d, want 0:\n%s", code, rig.Tail(o.Output(t)))
	}
	o = w.StartOrchestrator(t, nil, dir, s.args("PROCESS", 2, "--lease-ttl=6s", "--concurrency=4", "--rate=20")...)
	o.Reaches(id, "done")

	// Without a job server a run fails with that reason, and the server survives.
	s.Kill(t)
	id = o.Trigger(`{"force":true}`)
	if r := o.Reaches(id, "failed"); !strings.HasPrefix(r.Error, "the run did not begin: ") || !strings.Contains(r.Error, "no job server of flink answers there") {
		t.Errorf("the failed run says %q", r.Error)
	}
	if out := o.Output(t); !strings.Contains(out, "no job server of flink answers there") {
		t.Errorf("the log does not say why:\n%s", rig.Tail(out))
	}
	o.Call("GET", "/readyz", "", http.StatusOK)
}
