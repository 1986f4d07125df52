//go:build e2e && nightly

package flink

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

var soakJobs = flag.Int("soak", 100, "jobs of TestSoak")

// A cluster of three TaskManagers does a hundred jobs next to a stream. Of each ten jobs one is cancelled and one loses a worker; of
// each twenty one loses a TaskManager. Each comes to its end, the stream does every file, and the last jobs take no more than the first:
// metaspace, files of the cluster, calls of the store.
func TestSoak(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 20 * time.Millisecond})
	c := startCluster(t, w)
	managers := []*rig.Child{c.taskManager(), c.taskManager(), c.taskManager()}
	s := c.jobServer()
	rig.Eventually(t, "three TaskManagers", 5*time.Minute, func() bool { all, _ := c.slots(); return all == 6 })
	random := rand.New(rand.NewPCG(7, 7))
	streamed := rig.Directory(t, rig.Bucket(4))
	objects := rig.Open(t, streamed)
	stream := w.Start(t, streamed, s.args("PROCESS", 2, "--watch="+interval.String(), "--streaming", "--concurrency=4", "--lease-ttl=4s")...)
	type figures struct{ metaspace, disk, calls int64 }
	var each []figures // of the jobs that nothing happened to
	for n := range *soakJobs {
		dir := rig.Directory(t, rig.Bucket(40))
		rig.Eventually(t, "slots for the job", 5*time.Minute, func() bool { _, free := c.slots(); return free >= 2 || stream.Ended() })
		before, begin := len(w.Requests()), time.Now()
		job := w.Start(t, dir, s.args("PROCESS", 2, "--concurrency=4", "--lease-ttl=4s")...)
		atWork := func() {
			rig.Eventually(t, "the job at work", 5*time.Minute, func() bool { return job.Ended() || len(w.Requests()) > before+20 })
		}
		happens, want := "nothing", 0
		switch {
		case n%10 == 3:
			happens, want = "cancelled", 130
			atWork()
			control(t, dir, "cancel")
		case n%10 == 6:
			happens = "a worker killed"
			atWork()
			if pids := s.workers(t); len(pids) > 0 {
				kill(t, []int{pids[random.IntN(len(pids))]})
			}
		case n%20 == 9:
			happens = "a TaskManager killed"
			atWork()
			victim := 1 + random.IntN(len(managers)-1) // the first one stays: its metaspace is looked at
			managers[victim].KillAll(t)
			managers[victim] = c.taskManager()
		case n%5 == 1:
			rig.Put(t, streamed, map[string]string{fmt.Sprintf("datasets/country=sg/category=news/date=2026-02-02/raw_%04d.json", n): inIt})
		}
		if code := job.Wait(t, 6*time.Minute); code != want && (want != 130 || code != 0) { // a cancel may come when all is done
			t.Fatalf("job %d, %s: exit code %d, want %d:\n%s", n, happens, code, want, rig.Tail(job.Output(t)))
		}
		require.False(t, stream.Ended(), "%s", rig.Tail(stream.Output(t)))
		now := figures{metaspace: c.metaspace(t), disk: c.disk(t)}
		for _, calls := range rig.LastReport(t, dir).Store {
			now.calls += calls
		}
		t.Logf("job %d, %s: %v, metaspace %d MiB, files %d MiB, %d calls of the store", n, happens, time.Since(begin).Round(time.Second), now.metaspace>>20, now.disk>>20, now.calls)
		if happens == "nothing" {
			each = append(each, now)
		}
	}
	for n := 1; n < *soakJobs; n += 5 {
		key := fmt.Sprintf("datasets/country=sg/category=news/date=2026-02-02/raw_%04d.json", n)
		rig.Eventually(t, key, 2*time.Minute, func() bool { return stream.Ended() || marked(t, objects, key)() })
	}
	require.NoError(t, stream.Cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, stream.Wait(t, time.Minute))
	t.Logf("the stream was submitted again %d times", strings.Count(stream.Output(t), `"event":"job_restarts"`))
	mean := func(of []figures) (m figures) {
		for _, f := range of {
			m.metaspace, m.disk, m.calls = m.metaspace+f.metaspace/int64(len(of)), m.disk+f.disk/int64(len(of)), m.calls+f.calls/int64(len(of))
		}
		return m
	}
	third := len(each) / 3
	first, last := mean(each[1:1+third]), mean(each[len(each)-third:]) // the first job loads what all need
	t.Logf("the first jobs: %+v; the last: %+v", first, last)
	for what, grown := range map[string]bool{
		"metaspace": last.metaspace > first.metaspace*5/4,
		"files":     last.disk > first.disk+1<<30, // the jars of the last jobs, 152 MB each, are there for a while
		"calls":     last.calls > first.calls*5/4,
	} {
		assert.False(t, grown, what)
	}
}

// metaspace is the metaspace of the TaskManager that uses most of it, in bytes.
func (c cluster) metaspace(t *testing.T) (most int64) {
	t.Helper()
	get := func(path string, v any) {
		r, err := http.Get("http://" + c.rest + path)
		require.NoError(t, err)
		defer func() { _ = r.Body.Close() }() // only read
		require.NoError(t, json.NewDecoder(r.Body).Decode(v))
	}
	var of []struct {
		Max float64 `json:"max"`
	}
	get("/taskmanagers/metrics?get=Status.JVM.Memory.Metaspace.Used&agg=max", &of)
	if len(of) > 0 {
		most = int64(of[0].Max)
	}
	return most
}

// disk is how many bytes the files of the cluster have.
func (c cluster) disk(t *testing.T) (size int64) {
	t.Helper()
	err := filepath.WalkDir(c.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it was removed meanwhile
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	require.NoError(t, err)
	return size
}
