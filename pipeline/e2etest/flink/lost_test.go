//go:build e2e

package flink

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

const (
	atOnce    = 8                    // --concurrency of the runs that lose a process
	underWay  = 4 * atOnce           // visits that the seed job makes at once
	seedPause = 5 * time.Millisecond // --host-delay of rig's runs
)

// seed starts the seed job on the cluster's four slots.
func (o onCluster) seed(t *testing.T, dir string, more ...string) *rig.Child {
	t.Helper()
	return o.w.Start(t, dir, append(o.s.args("PROCESS", 4, fmt.Sprintf("--concurrency=%d", atOnce), "--lease-ttl=6s"), more...)...)
}

// middle waits until a run is in the middle of its hosts, on both TaskManagers.
func (o onCluster) middle(t *testing.T, run *rig.Child) {
	t.Helper()
	rig.Eventually(t, "the run in the middle", 4*time.Minute, func() bool { return run.Ended() || len(o.w.Requests()) > 80 })
	if run.Ended() {
		t.Fatalf("the run ended:\n%s", rig.Tail(run.Output(t)))
	}
	if strings.Contains(run.Output(t), `"event":"few_`) {
		t.Errorf("a cluster that has what the job needs is warned of:\n%s", rig.Tail(run.Output(t)))
	}
	assert.EqualValues(t, 2, len(o.s.workers(t)))
}

// idle waits until the cluster has nothing to do.
func (o onCluster) idle(t *testing.T) {
	t.Helper()
	rig.Eventually(t, "four free slots and no worker", 3*time.Minute, func() bool {
		all, free := o.slots()
		return all == 4 && free == 4 && len(o.s.workers(t)) == 0
	})
}

// A TaskManager's machine that is lost in the middle of a run costs the hosts that
// were under way: the launcher submits the job again, another TaskManager takes the
// place, and the run ends as done.
func (o onCluster) lostTaskManager(t *testing.T, victim *rig.Child) {
	o.idle(t)
	o.w.ResetLog()
	dir, begin := rig.Directory(t, o.files), time.Now()
	run := o.seed(t, dir)
	o.middle(t, run)
	victim.KillAll(t)
	lost := time.Now()
	o.taskManager()
	rig.Eventually(t, "the job submitted again", 2*time.Minute, func() bool {
		return run.Ended() || strings.Contains(run.Output(t), `"event":"job_restarts"`)
	})
	again := time.Now()
	ended(t, run)
	t.Logf("killed after %v, submitted again after %v, done after %v", lost.Sub(begin), again.Sub(begin), time.Since(begin))
	if !strings.Contains(run.Output(t), `"event":"job_restarts"`) {
		t.Errorf("the log does not say that the job was submitted again:\n%s", rig.Tail(run.Output(t)))
	}
	assert.Equal(t, "done", rig.LastReport(t, dir).State)
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, o.reference))
	o.costs(t, dir, lost, 2) // what was lost, and what Flink cancelled on the other machine
}

// Without its launcher a job continues. The same command ends it and does the rest.
func (o onCluster) lostLauncher(t *testing.T) {
	o.idle(t)
	o.w.ResetLog()
	dir, begin := rig.Directory(t, o.files), time.Now()
	run := o.seed(t, dir)
	o.middle(t, run)
	run.Kill(t)
	lost := time.Now()
	sent := len(o.w.Requests())
	rig.Eventually(t, "20 requests without the launcher", 3*time.Minute, func() bool { return len(o.w.Requests()) >= sent+20 })
	ended(t, o.seed(t, dir))
	t.Logf("killed after %v, done after %v", lost.Sub(begin), time.Since(begin))
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, o.reference))
	o.costs(t, dir, lost, 1)
}

// Without its job server a job continues too, but nobody can follow it: the launcher
// ends. With another job server the same command does the rest.
func (o onCluster) lostJobServer(t *testing.T) {
	o.idle(t)
	o.w.ResetLog()
	dir, begin := rig.Directory(t, o.files), time.Now()
	run := o.seed(t, dir)
	o.middle(t, run)
	o.s.Kill(t)
	lost := time.Now()
	if code := run.Wait(t, 3*time.Minute); code != 1 {
		t.Errorf("exit code %d without a job server, want 1:\n%s", code, rig.Tail(run.Output(t)))
	}
	o.s = o.jobServer()
	ended(t, o.seed(t, dir))
	t.Logf("killed after %v, done after %v", lost.Sub(begin), time.Since(begin))
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, o.reference))
	o.costs(t, dir, lost, 1)
	o.idle(t)
}

// Flink restarts a stream whose TaskManager was lost when the TaskManager is there
// again; the stream does the rest, and takes what comes later.
func (o onCluster) stream(t *testing.T, victim *rig.Child) {
	o.idle(t)
	o.w.ResetLog()
	dir, begin := rig.Directory(t, o.files), time.Now()
	objects := rig.Open(t, dir)
	watch := o.seed(t, dir, "--watch="+interval.String(), "--streaming")
	o.middle(t, watch)
	require.False(t, marked(t, objects, first(o.files)...)(), "all files are done at the kill, so the test proves nothing")
	victim.KillAll(t)
	lost := time.Now()
	o.taskManager()
	newFile(t, watch, dir, o.files)
	t.Logf("killed after %v, a new file done after %v", lost.Sub(begin), time.Since(begin))
	stop(t, watch, dir, "Ctrl-C")
	reference := rig.Directory(t, o.files)
	rig.Put(t, reference, map[string]string{appears: inIt})
	o.costs(t, dir, lost, 2)
	o.w.Run(t, reference, "--runner=prism", "--concurrency=64")
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
}

// costs checks from the web's side what the loss of a process cost: no host's rule
// is broken, no host that is done gets a request, and only visits that were under way
// when work was cut off, once or more times, are made again.
func (o onCluster) costs(t *testing.T, dir string, lost time.Time, cuts int) {
	t.Helper()
	log := o.w.Requests()
	rig.OneAtATime(t, log)
	rig.PausesKept(t, log, seedPause, false)
	rig.RobotsObeyed(t, o.w, log)
	done := doneAt(t, dir)
	seen, twice := map[string]bool{}, map[string]bool{}
	later, repeated := 0, 0
	for _, r := range log {
		if r.Method == "" {
			continue // a handshake
		}
		host, url := strings.TrimPrefix(r.Host, "www."), r.Scheme+"://"+r.Host+r.Path
		if at, ok := done[host]; ok && r.Start.After(at) {
			t.Errorf("%s was done, and got a request for %s %v later", host, r.Path, r.Start.Sub(at))
		}
		if seen[url] {
			twice[host] = true
			repeated++
		}
		seen[url] = true
		if r.Start.After(lost) {
			later++
		}
	}
	before := 0
	for _, at := range done {
		if at.Before(lost) {
			before++
		}
	}
	t.Logf("%d of %d hosts were done at the kill; of %d requests %d came later; %d hosts got %d requests for the second time", before, len(done), len(log), later, len(twice), repeated)
	assert.True(t, before != 0 && later != 0, "nothing was done before the kill, or nothing was left: it proves nothing")
	if len(twice) > cuts*underWay {
		t.Errorf("%d hosts got a request twice, and at most %d were under way: %v", len(twice), cuts*underWay, slices.Sorted(maps.Keys(twice)))
	}
}

// doneAt returns when the last mark of each host was written.
func doneAt(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	at := map[string]time.Time{}
	for o, err := range rig.Open(t, dir).List(t.Context(), "processing/") {
		require.NoError(t, err)
		if host := path.Base(path.Dir(o.Key)); path.Base(o.Key) == "domain_metadata.json.success" && o.ModTime.After(at[host]) {
			at[host] = o.ModTime
		}
	}
	return at
}
