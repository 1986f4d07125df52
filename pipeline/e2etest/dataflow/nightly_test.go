//go:build e2e && nightly

package dataflow

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// With --async the program ends when the job is submitted, and the state of the
// run comes from what its workers write.
func TestAsync(t *testing.T) {
	w := newWorld(t)
	begin, ran := make(chan struct{}), make(chan error, 1)
	a := startAPI(t, func(body []byte) error {
		<-begin
		err := runStaged(t, time.Minute)(body)
		ran <- err
		return err
	})
	given, content := otherWorker(t)
	c := w.submit(t, a, "--async", "--worker_binary="+given)
	require.Zero(t, c.Wait(t, time.Minute), "%s", rig.Tail(c.Output(t)))
	id, state := w.newest(t)
	assert.Equal(t, "running", state)
	assert.Contains(t, c.Output(t), `"event":"run_submitted","run_id":"`+id+`","job_id":"job-1"`)
	requireEmpty(t, w.dir)
	require.Len(t, a.jobs, 1)
	checkJob(t, a.jobs[0], form{workers: 3, threads: 4, workerSHA256: sum(content)})

	// While it runs, no other run begins, and a watcher waits for its end.
	other := w.submit(t, a, "--async", "--worker_binary="+given)
	assert.Equal(t, 1, other.Wait(t, time.Minute))
	assert.Regexp(t, `pipeline: starting the run: run `+id+` was submitted with --async at .* and has not ended: wait until .*runs show .*runs cancel `+id, other.Output(t))
	assert.Len(t, a.jobs, 1)
	watcher := w.web.Start(t, w.bucket, "--runner=prism", "--watch=500ms", "--log-format=text")
	rig.Eventually(t, "the watcher waiting", time.Minute, func() bool { return watcher.Ended() || watcher.Output(t) != "" })
	assert.Contains(t, watcher.Output(t), "waiting: run "+id+" was submitted with --async")

	close(begin)
	require.NoError(t, <-ran)
	s := rig.Open(t, w.bucket)
	rig.Eventually(t, "the watcher to take over", time.Minute, func() bool {
		return watcher.Ended() || strings.Contains(string(rig.Get(t, s, "runs/"+id+"/state.json")), `"state": "done"`)
	})
	require.False(t, watcher.Ended(), "%s", rig.Tail(watcher.Output(t)))
	require.NoError(t, watcher.Cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, watcher.Wait(t, time.Minute), "%s", rig.Tail(watcher.Output(t)))
	var got rig.Report
	require.NoError(t, json.Unmarshal([]byte(w.runs(t, "show", id)), &got))
	assert.Equal(t, []string{id, "done"}, []string{got.RunID, got.State})
	w.complete(t, got)
	assert.NotEmpty(t, got.Lanes)
	for _, l := range got.Lanes {
		assert.True(t, l.Finished)
	}
	// The next run has nothing to do.
	w.web.Run(t, w.bucket, "--runner=prism")
	assert.Zero(t, rig.LastReport(t, w.bucket).Counts["domains_collected"])
}

// A stream submitted with --async reads new files, and `runs cancel` stops it.
func TestAsyncStreaming(t *testing.T) {
	w := newWorld(t)
	given, _ := otherWorker(t)
	ran := make(chan error, 1)
	a := startAPI(t, func(body []byte) error {
		err := runStaged(t, 2*time.Minute)(body)
		ran <- err
		return err
	})
	s := rig.Open(t, w.bucket)
	late := "datasets/country=kr/category=news/date=2026-01-29/raw_0001.json"
	body := rig.Get(t, s, late)
	require.NoError(t, s.Delete(t.Context(), late))
	c := w.submit(t, a, "--async", "--worker_binary="+given, "--watch=500ms", "--streaming")
	require.Zero(t, c.Wait(t, time.Minute), "%s", rig.Tail(c.Output(t)))
	id, state := w.newest(t)
	assert.Equal(t, "running", state)
	marked := func(key string) func() bool {
		return func() bool { _, err := s.Head(t.Context(), key+".success"); return err == nil }
	}
	rig.Eventually(t, "the files that were there", time.Minute, marked("datasets/country=de/category=education/date=2026-01-30/raw_0001.json"))
	require.NoError(t, s.Put(t.Context(), late, bytes.NewReader(body), store.PutOptions{}))
	rig.Eventually(t, "the file that came", time.Minute, marked(late))
	rig.Eventually(t, "the other files", time.Minute, marked("datasets/country=sg/category=news/date=2026-01-28/raw_0002.json"))
	show := func() (r rig.Report) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(w.runs(t, "show", id)), &r))
		return r
	}
	rig.Eventually(t, "the total of what was done", time.Minute, func() bool { return show().Counts["domains_collected"] == 50 })
	assert.Equal(t, "running", show().State, "a part of a stream's total is not its end")
	w.runs(t, "cancel", id)
	require.NoError(t, <-ran)
	rig.Eventually(t, "the run to be over", time.Minute, func() bool { return show().State == "cancelled" })
	assert.EqualValues(t, len(w.web.Requests()), show().HTTP.Requests, "as in the simulated web's own log")
	rig.Same(t, rig.Objects(t, w.bucket), rig.Objects(t, w.reference))
	rig.OneAtATime(t, w.web.Requests())
	w.web.Run(t, w.bucket, "--runner=prism") // the next run begins
}
