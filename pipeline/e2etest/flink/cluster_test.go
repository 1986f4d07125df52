//go:build e2e

package flink

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// cluster is a standalone Flink cluster: one JobManager, and TaskManagers with two
// slots each, in JVMs of their own. It comes from the jars of the job server.
type cluster struct {
	dir, rest string
	env       []string // of the TaskManagers, and of the workers that they start
}

func startCluster(t testing.TB, w rig.Web) cluster {
	t.Helper()
	c := cluster{dir: t.TempDir(), env: append(os.Environ(), "SSL_CERT_FILE="+w.CA)}
	var ports [3]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // all are different while they are chosen
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.rest = "127.0.0.1:" + ports[1]
	conf := strings.NewReplacer("RPC", ports[0], "REST", ports[1], "BLOB", ports[2], "TMP", c.dir).Replace(`jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: RPC
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 900m
rest.address: 127.0.0.1
rest.port: REST
rest.bind-address: 127.0.0.1
blob.server.port: BLOB
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
parallelism.default: 1
io.tmp.dirs: TMP
`)
	if err := os.WriteFile(filepath.Join(c.dir, "flink-conf.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	c.java(t, "-Xmx400m", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")
	return c
}

// java starts one of the cluster's processes.
func (c cluster) java(t testing.TB, heap, class string, args ...string) *rig.Child {
	t.Helper()
	lib, err := jars()
	if err != nil {
		rig.Missing(t, err)
	}
	opens, err := filepath.Abs("testdata/java17.args")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", append([]string{"@" + opens, heap, "-XX:MaxDirectMemorySize=450m", "-XX:MaxMetaspaceSize=256m", "-Djava.io.tmpdir=" + c.dir,
		"-cp", filepath.Join(lib, "*"), class, "--configDir", c.dir}, args...)...)
	cmd.Env = c.env
	return rig.Start(t, cmd)
}

// taskManager starts one, with the memory options that Flink's scripts would compute.
func (c cluster) taskManager(t testing.TB, name string) *rig.Child {
	t.Helper()
	args := []string{"-D", "taskmanager.resource-id=" + name}
	for _, set := range []string{"framework.heap.size=64m", "task.heap.size=436m", "managed.size=160m", "framework.off-heap.size=128m", "task.off-heap.size=128m",
		"network.min=192m", "network.max=192m", "jvm-metaspace.size=256m", "jvm-overhead.min=192m", "jvm-overhead.max=192m"} {
		args = append(args, "-D", "taskmanager.memory."+set)
	}
	return c.java(t, "-Xmx500m", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner", append(args, "-D", "taskmanager.cpu.cores=2")...)
}

// slots returns how many task slots the cluster has, and how many are free.
func (c cluster) slots() (all, free int) {
	r, err := http.Get("http://" + c.rest + "/overview")
	if err != nil {
		return 0, 0
	}
	defer func() { _ = r.Body.Close() }() // only read
	var o struct {
		All  int `json:"slots-total"`
		Free int `json:"slots-available"`
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		return 0, 0
	}
	return o.All, o.Free
}

// A TaskManager that is killed in the middle of a run costs the hosts that were under
// way: the launcher submits the job again, another TaskManager takes the place, and
// the run ends as done.
func TestLostTaskManager(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
	files := rig.Bucket(160)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	begin := time.Now()
	c := startCluster(t, w)
	victim := c.taskManager(t, "tm1")
	c.taskManager(t, "tm2")
	s := startServerFor(t, w, c.rest)
	rig.Eventually(t, "two TaskManagers", 3*time.Minute, func() bool { all, _ := c.slots(); return victim.Ended() || all == 4 })
	if victim.Ended() {
		t.Fatalf("the TaskManager ended:\n%s", rig.Tail(victim.Output(t)))
	}
	t.Logf("%v: the cluster is ready", time.Since(begin))
	dir := rig.Directory(t, files)
	const atOnce = 8
	run := w.Start(t, dir, s.args("PROCESS", 4, fmt.Sprintf("--concurrency=%d", atOnce), "--lease-ttl=6s", "--flink-rest="+c.rest)...)
	rig.Eventually(t, "the run in the middle", 4*time.Minute, func() bool { return run.Ended() || len(w.Requests()) > 80 })
	if run.Ended() {
		t.Fatalf("the run ended:\n%s", rig.Tail(run.Output(t)))
	}
	if strings.Contains(run.Output(t), `"event":"few_`) {
		t.Errorf("a cluster that has what the job needs is warned of:\n%s", rig.Tail(run.Output(t)))
	}
	if n := len(s.workers(t)); n != 2 {
		t.Errorf("%d workers, want one for each TaskManager", n)
	}
	t.Logf("%v: a TaskManager is killed", time.Since(begin))
	victim.Kill(t)
	begun := len(w.Requests())
	c.taskManager(t, "tm3")
	rig.Eventually(t, "the job submitted again", 2*time.Minute, func() bool {
		return run.Ended() || strings.Contains(run.Output(t), `"event":"job_restarts"`)
	})
	again, done := time.Now(), marks(t, dir)
	if code := run.Wait(t, 4*time.Minute); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s\n%s", code, rig.Tail(run.Output(t)), rig.Tail(s.Output(t)))
	}
	t.Logf("%v: the run has ended", time.Since(begin))
	if !strings.Contains(run.Output(t), `"event":"job_restarts"`) {
		t.Errorf("the log does not say that the job was submitted again:\n%s", rig.Tail(run.Output(t)))
	}
	if state := rig.LastReport(t, dir).State; state != "done" {
		t.Errorf("the run is %s, want done", state)
	}
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	log := w.Requests()
	rig.OneAtATime(t, log)
	all, late := marks(t, dir), 0
	for _, r := range log {
		if r.Start.After(again) {
			late++
			if n := done[r.Host]; n > 0 && n == all[r.Host] {
				t.Errorf("%s was done, and got a request for %s after the restart", r.Host, r.Path)
			}
		}
	}
	t.Logf("%d requests before the kill, %d of %d after the restart; %d of %d hosts were done", begun, late, len(log), len(done), len(all))
	if late == 0 || len(done) == 0 {
		t.Error("the restart proves nothing")
	}
	if len(log) <= begun {
		t.Error("nothing was left after the kill: it proves nothing")
	}
}

// marks counts the partitions in which each host is done.
func marks(t *testing.T, dir string) map[string]int {
	t.Helper()
	of := map[string]int{}
	for o, err := range rig.Open(t, dir).List(t.Context(), "processing/") {
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(o.Key) == "domain_metadata.json.success" {
			of[path.Base(path.Dir(o.Key))]++
		}
	}
	return of
}
