//go:build e2e

package flink

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/newsfork/seed-engine/io/traces/tracestest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestSameAsPrism(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	const hosts = 80
	files := rig.Bucket(hosts)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	want, counts := rig.Objects(t, reference), rig.LastReport(t, reference).Counted()
	if counts["domains_collected"] < hosts || counts["files_completed"] != 4 {
		t.Fatalf("on prism: %v", counts)
	}
	collector := tracestest.Start(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "1")
	s := startServer(t, w)
	for _, environment := range []string{"LOOPBACK", "PROCESS"} {
		if environment == "PROCESS" {
			defer func() {
				if !strings.Contains(s.Output(t), `"event":"domain_collector_complete"`) {
					t.Errorf("the job server has nothing of its workers in its log:\n%s", rig.Tail(s.Output(t)))
				}
			}()
		}
		for _, parallelism := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", environment, parallelism), func(t *testing.T) {
				w.ResetLog()
				dir := rig.Directory(t, files)
				begin := time.Now()
				w.Run(t, dir, s.args(environment, parallelism, "--log-level=info")...)
				t.Logf("%v", time.Since(begin))
				rig.Same(t, rig.Objects(t, dir), want)
				rig.OneAtATime(t, w.Requests())
				r := rig.LastReport(t, dir)
				if got := r.Counted(); !maps.Equal(got, counts) {
					t.Errorf("counts %v, on prism %v", got, counts)
				}
				sent := slices.DeleteFunc(w.Requests(), func(r webtest.LoggedRequest) bool { return r.Method == "" })
				if r.HTTP.Requests != int64(len(sent)) {
					t.Errorf("the report counts %d requests, the web's log %d", r.HTTP.Requests, len(sent))
				}
				rig.StoreCounted(t, dir)
				if len(r.Lanes) < 2 || slices.ContainsFunc(r.Lanes, func(l struct {
					Finished bool `json:"finished"`
				}) bool {
					return !l.Finished
				}) {
					t.Errorf("lanes %v, want several, all finished", r.Lanes)
				}
				rig.Eventually(t, "no worker is left", 20*time.Second, func() bool { return len(s.workers(t)) == 0 })
				traced(t, collector, r.RunID, hosts)
			})
		}
	}
	t.Run("packed", func(t *testing.T) { packed(t, s, w, files, want) })
}

// traced checks that the workers sent the trace of a run that the launcher began: each lane
// is of the run, each host was visited.
func traced(t *testing.T, c *tracestest.Collector, run string, want int64) {
	t.Helper()
	id := sha256.Sum256([]byte(run))
	runs := slices.DeleteFunc(c.Named("run"), func(s *otlp.Span) bool { return !bytes.Equal(s.TraceId, id[:16]) })
	if len(runs) != 1 {
		t.Fatalf("%d spans of the run %s, want 1", len(runs), run)
	}
	hosts := int64(0)
	lanes := map[string]bool{}
	for _, s := range c.Named("lane") {
		if bytes.Equal(s.ParentSpanId, runs[0].SpanId) {
			hosts += tracestest.Attributes(s)["seed.hosts"].(int64)
			lanes[string(s.SpanId)] = true
		}
	}
	visits := int64(0)
	for _, s := range c.Named("visit") {
		if len(s.Links) == 1 && lanes[string(s.Links[0].SpanId)] {
			visits++
		}
	}
	if hosts != want || visits != want {
		t.Errorf("%d lanes with %d hosts and %d visits were traced, want %d", len(lanes), hosts, visits, want)
	}
}

func TestLimitsHoldOverAllLanes(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 20 * time.Millisecond})
	s := startServer(t, w)
	t.Run("concurrency", func(t *testing.T) {
		w.ResetLog()
		w.Run(t, rig.Directory(t, rig.Bucket(150)), s.args("PROCESS", 4, "--concurrency=8")...)
		if n := w.MaxInFlight(); n > 8 || n < 4 {
			t.Errorf("%d requests in flight, want up to 8 over all lanes", n)
		}
		rig.OneAtATime(t, w.Requests())
	})
	t.Run("fewer than slots", func(t *testing.T) {
		w.ResetLog()
		w.Run(t, rig.Directory(t, rig.Bucket(40)), s.args("PROCESS", 4, "--concurrency=2")...)
		if n := w.MaxInFlight(); n > 2 {
			t.Errorf("%d requests in flight, want at most 2", n)
		}
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
			if n > 60+8 {
				t.Fatalf("%d requests within two seconds, want 30 a second", n)
			}
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
				if len(pids) == 0 {
					t.Fatal("there is no worker")
				}
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
			if len(log) <= len(begun) {
				t.Error("nothing was left for the second run: the kill proves nothing")
			}
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

func TestInterruptAndControl(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 100 * time.Millisecond})
	s := startServer(t, w)
	files := rig.Bucket(200)
	for _, by := range []string{"Ctrl-C", "runs cancel"} {
		t.Run(by, func(t *testing.T) {
			w.ResetLog()
			dir := rig.Directory(t, files)
			c := w.Start(t, dir, s.args("PROCESS", 2, "--concurrency=4")...)
			rig.Eventually(t, "the run in the middle", 2*time.Minute, func() bool { return c.Ended() || len(w.Requests()) > 20 })
			if by == "Ctrl-C" {
				require.NoError(t, c.Cmd.Process.Signal(syscall.SIGINT))
			} else {
				out, err := exec.Command(rig.Program, "runs", "cancel", runID(t, dir), "--store="+dir).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			at := time.Now()
			if code := c.Wait(t, time.Minute); code != 130 {
				t.Errorf("exit code %d, want 130:\n%s", code, rig.Tail(c.Output(t)))
			}
			for _, r := range w.Requests() {
				if late := r.Start.Sub(at); late > 5*time.Second {
					t.Errorf("%s got a request %v after the stop", r.Host, late)
				}
			}
		})
	}
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

// runID returns the id of the newest run.
func runID(t *testing.T, dir string) string {
	t.Helper()
	id := ""
	for o, err := range rig.Open(t, dir).List(t.Context(), "runs/") {
		require.NoError(t, err)
		id = max(id, strings.Split(o.Key, "/")[1])
	}
	return id
}
