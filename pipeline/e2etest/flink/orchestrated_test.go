//go:build e2e

package flink

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// orchestrator is cmd/server at work; each of its runs is submitted to Flink.
type orchestrator struct {
	*rig.Child
	t   *testing.T
	url string
}

func startOrchestrator(t *testing.T, w rig.Web, store string, more ...string) orchestrator {
	t.Helper()
	program := filepath.Join(t.TempDir(), "server")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/newsfork/seed-engine/cmd/server").CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"--listen=" + address, "--store=" + store, "--connect-to=" + w.Addr(), "--host-delay=5ms",
		"--log-level=warn", "--log-format=json"}, more...)...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+w.CA)
	o := orchestrator{rig.Start(t, cmd), t, "http://" + address}
	rig.Eventually(t, "the server ready", time.Minute, func() bool {
		if o.Ended() {
			t.Fatalf("the server ended:\n%s", rig.Tail(o.Output(t)))
		}
		resp, err := http.Get(o.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return o
}

// orchestratedRun is what a test looks at in an answer about a run.
type orchestratedRun struct {
	RunID  string   `json:"run_id"`
	Runner string   `json:"runner"`
	State  string   `json:"state"`
	Alerts []string `json:"alerts"`
	Lanes  []struct {
		Finished bool `json:"finished"`
	} `json:"lanes"`
}

func (o orchestrator) call(method, path, body string, want int) (r orchestratedRun) {
	o.t.Helper()
	req, err := http.NewRequest(method, o.url+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != want {
		o.t.Fatalf("%s %s: %s, want %d (%v)\n%s", method, path, resp.Status, want, err, rig.Tail(o.Output(o.t)))
	}
	return r
}

// trigger starts a run of the seed job.
func (o orchestrator) trigger(body string) string {
	o.t.Helper()
	return o.call("POST", "/api/v1/seeds/orchestrate", body, http.StatusAccepted).RunID
}

func (o orchestrator) reaches(id, state string) orchestratedRun {
	o.t.Helper()
	var r orchestratedRun
	rig.Eventually(o.t, "run "+id+" is "+state, 3*time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond) // the server is not what is looked at
		r = o.call("GET", "/api/v1/runs/"+id, "", http.StatusOK)
		if slices.Contains([]string{"done", "failed", "cancelled", "interrupted"}, r.State) && r.State != state {
			o.t.Fatalf("run %s is %s, want %s (%q):\n%s", id, r.State, state, r.Alerts, rig.Tail(o.Output(o.t)))
		}
		return r.State == state
	})
	return r
}

// TestOrchestrated triggers, steers and loses runs on Flink through the server,
// whose own program is launcher and worker too.
func TestOrchestrated(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 30 * time.Millisecond})
	files := rig.Bucket(80)
	reference, dir := rig.Directory(t, files), rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	w.ResetLog()
	s := startServer(t, w)
	o := startOrchestrator(t, w, dir, s.args("PROCESS", 2, "--lease-ttl=6s", "--concurrency=8")...)

	id := o.trigger(`{}`)
	if busy := o.call("POST", "/api/v1/seeds/orchestrate", `{"country":"kr"}`, http.StatusConflict); busy.RunID != id {
		t.Errorf("409 names run %q, want %q", busy.RunID, id)
	}
	r := o.reaches(id, "done")
	if r.Runner != "flink" || len(r.Lanes) < 2 {
		t.Errorf("the run was on %q with %d lanes, want flink and several", r.Runner, len(r.Lanes))
	}
	got, want := rig.Objects(t, dir), rig.Objects(t, reference)
	for key := range got {
		if strings.HasPrefix(key, "schedules/") || strings.HasPrefix(key, "reports/") || strings.HasPrefix(key, "alerts/") {
			delete(got, key) // the server's own
		}
	}
	rig.Same(t, got, want)
	rig.OneAtATime(t, w.Requests())

	// Pause, resume and cancel reach the workers of the cluster.
	w.ResetLog()
	id = o.trigger(`{"force":true}`)
	rig.Eventually(t, "the forced run at work", 2*time.Minute, func() bool { return len(w.Requests()) > 10 })
	o.call("POST", "/api/v1/runs/"+id+"/pause", "", http.StatusAccepted)
	o.reaches(id, "paused")
	time.Sleep(5 * time.Second) // workers look every two seconds; a host's requests end
	at := len(w.Requests())
	time.Sleep(2 * time.Second)
	if now := len(w.Requests()); now != at {
		t.Errorf("%d requests were sent while the run was paused", now-at)
	}
	o.call("POST", "/api/v1/runs/"+id+"/resume", "", http.StatusAccepted)
	rig.Eventually(t, "the run at work again", time.Minute, func() bool { return len(w.Requests()) > at })
	o.call("POST", "/api/v1/runs/"+id+"/cancel", "", http.StatusAccepted)
	o.reaches(id, "cancelled")

	// A server that ends leaves the run on the cluster at work; the next one finds it.
	rig.Eventually(t, "a free job", time.Minute, func() bool {
		resp, err := http.Post(o.url+"/api/v1/seeds/orchestrate", "", strings.NewReader(`{"force":true}`))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var started orchestratedRun
		if err := json.NewDecoder(resp.Body).Decode(&started); err != nil {
			t.Fatal(err)
		}
		id = started.RunID
		return resp.StatusCode == http.StatusAccepted
	})
	o.reaches(id, "running")
	if err := o.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := o.Wait(t, time.Minute); code != 0 {
		t.Errorf("the server's exit code is %d, want 0:\n%s", code, rig.Tail(o.Output(t)))
	}
	o = startOrchestrator(t, w, dir, s.args("PROCESS", 2, "--lease-ttl=6s", "--concurrency=8")...)
	o.reaches(id, "done")

	// Without a job server a run fails and says so; the server lives.
	s.Kill(t)
	id = o.trigger(`{"force":true}`)
	if r := o.reaches(id, "failed"); len(r.Alerts) != 1 || !strings.HasPrefix(r.Alerts[0], "the run ended before it began, with exit code 1") {
		t.Errorf("the failed run says %q", r.Alerts)
	}
	if out := o.Output(t); !strings.Contains(out, "no job server of flink answers there") {
		t.Errorf("the log does not say why:\n%s", rig.Tail(out))
	}
	o.call("GET", "/readyz", "", http.StatusOK)
}
