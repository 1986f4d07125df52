//go:build e2e

package dataflow

import (
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// A server submits runs with --async: their processes end at once, and the server
// follows the runs, controls them and sees their ends.
func TestOrchestratedAsync(t *testing.T) {
	w := newWorld(t)
	given, _ := otherWorker(t)
	begin, ran := make(chan struct{}), make(chan error, 1)
	first := true
	a := startAPI(t, func(body []byte) error {
		if !first { // the second job never begins
			return nil
		}
		first = false
		<-begin
		err := runStaged(t, time.Minute)(body)
		ran <- err
		return err
	})
	start := func() rig.Orchestrator {
		return w.web.StartOrchestrator(t, a.environ(w.home), w.bucket,
			append(flags(w.bucket), "--dataflow_endpoint="+a.URL+"/", "--worker_binary="+given, "--async", "--log-level=info")...)
	}
	submitted := func(n int) {
		t.Helper()
		rig.Eventually(t, "the job submitted", time.Minute, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.jobs) == n
		})
	}
	o := start()
	id := o.Trigger(`{}`)
	submitted(1)
	rig.Eventually(t, "the launcher's end", time.Minute, func() bool { return o.Said("run_process_ended") == 1 })
	o.Reaches(id, "running")
	assert.Equal(t, id, o.Call("POST", "/api/v1/seeds/orchestrate", `{"country":"kr"}`, http.StatusConflict).RunID)
	o.Call("POST", "/api/v1/runs/"+id+"/pause", "", http.StatusAccepted)
	o.Reaches(id, "paused")
	o.Call("POST", "/api/v1/runs/"+id+"/resume", "", http.StatusAccepted)
	o.Reaches(id, "running")
	close(begin)
	require.NoError(t, <-ran)
	r := o.Reaches(id, "done")
	assert.Equal(t, "dataflow", r.Runner)
	assert.NotEmpty(t, r.Lanes)
	s := rig.Open(t, w.bucket)
	rig.Eventually(t, "the report written down", time.Minute, func() bool {
		_, err := s.Head(t.Context(), "runs/"+id+"/report.json")
		require.True(t, err == nil || errors.Is(err, store.ErrNotExist), "%v", err)
		return err == nil
	})
	w.complete(t, rig.LastReport(t, w.bucket))

	// A server that is started again finds the run, and can cancel it.
	id = o.Trigger(`{"force":true}`)
	submitted(2)
	rig.Eventually(t, "the launcher's end", time.Minute, func() bool { return o.Said("run_process_ended") == 2 })
	require.NoError(t, o.Cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, o.Wait(t, time.Minute))
	assert.Zero(t, o.Said("run_not_closed"), "%s", rig.Tail(o.Output(t)))
	o = start()
	o.Reaches(id, "running")
	o.Call("POST", "/api/v1/runs/"+id+"/cancel", "", http.StatusAccepted)
	o.Reaches(id, "cancelling")
	o.Reaches(id, "cancelled")
	assert.Zero(t, o.Said("run_not_closed"), "%s", rig.Tail(o.Output(t)))
}
