//go:build e2e

package spark

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/freeport"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// cluster is a standalone Spark cluster: a master, two workers with one executor of
// one core each, and Beam's job server. Its commands are those of docs/cluster.md, with
// free ports of loopback.
type cluster struct {
	page      rig.Page
	localhost *strings.Replacer
	server    *rig.Child
}

func startCluster(t testing.TB, w rig.Web) cluster {
	t.Helper()
	page, err := rig.ReadPage("TestTwoExecutors")
	require.NoError(t, err)
	home, err := page.Jars()
	if err != nil {
		rig.Missing(t, err)
	}
	ports, err := freeport.Find(2)
	require.NoError(t, err)
	c := cluster{page: page, localhost: strings.NewReplacer("10.0.0.1", "127.0.0.1", "7077", ports[0], "8099", ports[1])}
	tmp := t.TempDir()
	env := append(os.Environ(), "SSL_CERT_FILE="+w.CA, "ADDRESS=127.0.0.1", rig.JavaOptions+"="+os.Getenv(rig.JavaOptions)+" -Djava.io.tmpdir="+tmp, "SPARK_LOCAL_DIRS="+tmp, "SPARK_WORKER_DIR="+tmp)
	page.Start(t, "master", home, c.localhost, env...)
	workers := []*rig.Child{page.Start(t, "worker", home, c.localhost, env...), page.Start(t, "worker", home, c.localhost, env...)}
	c.server = page.Start(t, "jobserver", home, c.localhost, env...)
	rig.Eventually(t, "the job server and two workers", 5*time.Minute, func() bool {
		return c.server.Ended() || strings.Contains(c.server.Output(t), "Job server now running") && !slices.ContainsFunc(workers, func(w *rig.Child) bool {
			return !strings.Contains(w.Output(t), "Successfully registered with master")
		})
	})
	if c.server.Ended() {
		t.Fatalf("the job server ended:\n%s", rig.Tail(c.server.Output(t)))
	}
	return c
}

// TestTwoExecutors runs the seed job on two executors at once, with packed results and
// with single objects. The counts and the objects are those of prism, and the limits hold over both executors, by the web's log.
func TestTwoExecutors(t *testing.T) {
	const atOnce, rate = 8, 40
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
	files := rig.Bucket(160)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism", "--concurrency=64")
	want, counts := rig.Objects(t, reference), rig.LastReport(t, reference).Counted()
	begin := time.Now()
	c := startCluster(t, w)
	t.Logf("%v: the cluster is ready", time.Since(begin))
	runs := [][]string{{"--concurrency=8", "--rate=40"}}
	if rig.Nightly {
		runs = append(runs, []string{"--concurrency=8", "--layout=table"})
	}
	for _, limits := range runs {
		t.Run(strings.Join(limits, " "), func(t *testing.T) {
			w.ResetLog()
			packed, limited := slices.Contains(limits, "--layout=table"), slices.Contains(limits, "--rate=40")
			dir := rig.Directory(t, files)
			begin, before := time.Now(), len(c.server.Output(t))
			run := c.page.Submit(t, w, dir, c.localhost, limits...)
			if code := run.Wait(t, 6*time.Minute); code != 0 {
				t.Fatalf("exit code %d, want 0:\n%s\n%s", code, rig.Tail(run.Output(t)), rig.Tail(c.server.Output(t)))
			}
			log := w.Requests()
			most := w.MaxInFlight()
			t.Logf("%v; %d requests, at most %d at once", time.Since(begin), len(log), most)
			if packed {
				rig.Materialize(t, dir)
			}
			rig.Same(t, rig.Objects(t, dir), want)
			report := rig.LastReport(t, dir)
			if got := report.Counted(); report.State != "done" || !maps.Equal(got, counts) {
				t.Errorf("%s with %v, want done with %v", report.State, got, counts)
			}
			if most > atOnce || !limited && most < 4 {
				t.Errorf("%d requests in flight, want up to %d over both executors", most, atOnce)
			}
			rig.OneAtATime(t, log)
			rig.PausesKept(t, log, 5*time.Millisecond, false)
			rig.RobotsObeyed(t, w, log)
			if limited {
				rig.RateKept(t, log, rate)
			}
			if out := c.server.Output(t)[before:]; !strings.Contains(out, "(executor 0)") || !strings.Contains(out, "(executor 1)") {
				t.Error("not both executors finished a task")
			}
		})
	}
}
