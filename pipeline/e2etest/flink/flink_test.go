//go:build e2e

package flink

import (
	"fmt"
	"maps"
	"os/exec"
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

func TestSameAsPrism(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	const hosts = 80
	files := rig.Bucket(hosts)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	want, counts := rig.Objects(t, reference), rig.LastReport(t, reference).Counted()
	require.True(t, counts["domains_collected"] >= hosts && counts["files_completed"] == 4, "on prism: %v", counts)
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
				got := r.Counted()
				assert.True(t, maps.Equal(got, counts), "counts %v, on prism %v", got, counts)
				sent := slices.DeleteFunc(w.Requests(), func(r webtest.LoggedRequest) bool { return r.Method == "" })
				if r.HTTP.Requests != int64(len(sent)) {
					t.Errorf("the report counts %d requests, the web's log %d", r.HTTP.Requests, len(sent))
				}
				rig.StoreCounted(t, dir)
				assert.True(t, len(r.Lanes) >= 2 && !slices.ContainsFunc(r.Lanes, func(l struct {
					Finished bool `json:"finished"`
				}) bool {
					return !l.Finished
				}), "lanes %v, want several, all finished", r.Lanes)
				rig.Eventually(t, "no worker is left", 20*time.Second, func() bool { return len(s.workers(t)) == 0 })
			})
		}
	}
	t.Run("packed", func(t *testing.T) { packed(t, s, w, files, want) })
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
				require.NoError(t, err, string(out))
			}
			at := time.Now()
			if code := c.Wait(t, time.Minute); code != 130 {
				t.Errorf("exit code %d, want 130:\n%s", code, rig.Tail(c.Output(t)))
			}
			for _, r := range w.Requests() {
				late := r.Start.Sub(at)
				assert.True(t, late <= 5*time.Second, "%s got a request %v after the stop", r.Host, late)
			}
		})
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
