//go:build e2e

package flink

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/freeport"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// cluster is a standalone Flink cluster: one JobManager, and TaskManagers with two
// slots each, in JVMs of their own. Its configuration and its commands are those of
// docs/cluster.md, with free ports of loopback.
type cluster struct {
	t          testing.TB // at whose end the cluster ends; a subtest may start a TaskManager
	page       rig.Page
	dir, rest  string
	endpoint   string // of the job server
	ca         string
	localhost  *strings.Replacer
	env        []string // of the TaskManagers, and of the workers that they start
	jobManager *rig.Child
}

func startCluster(t testing.TB, w rig.Web, env ...string) cluster {
	t.Helper()
	lib, err := jars()
	if err != nil {
		rig.Missing(t, err)
	}
	page, err := rig.ReadPage("TestCluster")
	require.NoError(t, err)
	ports, err := freeport.Find(4)
	require.NoError(t, err)
	c := cluster{t: t, page: page, dir: t.TempDir(), ca: w.CA, rest: "127.0.0.1:" + ports[1], endpoint: "localhost:" + ports[3],
		localhost: strings.NewReplacer("10.0.0.1", "127.0.0.1", "6123", ports[0], "8081", ports[1], "6124", ports[2], "8099", ports[3])}
	c.env = append(append(os.Environ(), "SSL_CERT_FILE="+w.CA, "ADDRESS=127.0.0.1", rig.JavaOptions+"="+os.Getenv(rig.JavaOptions)+" -Djava.io.tmpdir="+c.dir), env...)
	conf := filepath.Join(c.dir, "conf")
	err = errors.Join(os.Symlink(lib, filepath.Join(c.dir, "lib")), os.Symlink(filepath.Join(filepath.Dir(lib), "java17.args"), filepath.Join(c.dir, "java17.args")),
		os.Mkdir(conf, 0o755), os.WriteFile(filepath.Join(conf, "flink-conf.yaml"), []byte(c.localhost.Replace(page["conf"])), 0o600))
	require.NoError(t, err)
	c.jobManager = c.start("jobmanager")
	return c
}

func (c cluster) start(block string) *rig.Child {
	c.t.Helper()
	return c.page.Start(c.t, block, c.dir, c.localhost, c.env...)
}

func (c cluster) taskManager() *rig.Child { return c.start("taskmanager") }

func (c cluster) jobServer() server {
	c.t.Helper()
	s := server{c.start("jobserver"), c.endpoint, c.ca}
	s.ready(c.t)
	return s
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

// TestCluster runs the jobs on one standalone cluster, and kills its processes.
func TestCluster(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 60 * time.Millisecond})
	dsn := dbtest.Postgres(t)
	begin := time.Now()
	c := startCluster(t, w, "SEED_DB="+dsn)
	managers := []*rig.Child{c.taskManager(), c.taskManager()}
	s := c.jobServer()
	files := rig.Bucket(160)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism", "--concurrency=64")
	rig.Eventually(t, "two TaskManagers", 3*time.Minute, func() bool {
		all, _ := c.slots()
		return c.jobManager.Ended() || managers[0].Ended() || managers[1].Ended() || all == 4
	})
	for _, m := range append(managers, c.jobManager) {
		if m.Ended() {
			t.Fatalf("a process of the cluster ended:\n%s", rig.Tail(m.Output(t)))
		}
	}
	if show := c.start("overview"); show.Wait(t, time.Minute) != 0 || !strings.Contains(show.Output(t), `"slots-total":4`) {
		t.Errorf("the page's look at the cluster shows %s", show.Output(t))
	}
	t.Logf("%v: the cluster is ready", time.Since(begin))
	onCluster{c, s, w, files, reference}.run(t, dsn, managers)
}

// onCluster is what the tests on a cluster share.
type onCluster struct {
	cluster
	s         server
	w         rig.Web
	files     map[string]string
	reference string // the store of the seed job on prism
}

func (o onCluster) run(t *testing.T, dsn string, managers []*rig.Child) {
	t.Run("four jobs", func(t *testing.T) { o.fourJobs(t, dsn, managers) })
	t.Run("lost TaskManager", func(t *testing.T) { o.lostTaskManager(t, managers[0]) })
	t.Run("lost launcher", func(t *testing.T) { o.lostLauncher(t) })
	t.Run("restarted TaskManager under a stream", func(t *testing.T) { o.stream(t, managers[1]) })
	if rig.Nightly {
		t.Run("by server", func(t *testing.T) { o.byServer(t) })
		t.Run("lost job server", func(t *testing.T) { o.lostJobServer(t) })
	}
}

// fourJobs runs the four jobs, two at a time, and compares them with prism.
func (o onCluster) fourJobs(t *testing.T, dsn string, managers []*rig.Child) {
	o.w.ResetLog()
	catalog, docs, news := rig.Catalog(o.w), rig.Docs(t, o.w), rig.News(t, o.w)
	catalog.Args = append(catalog.Args, "--host-delay=20ms") // with a pause it sends one request at a time
	catalog.Pause = 20 * time.Millisecond
	jobs := []rig.Job{docs, catalog, news}
	there, here := make([]rig.Left, len(jobs)), make([]rig.Left, len(jobs))
	started := make([]*rig.Child, len(jobs))
	otherDSN := dbtest.Postgres(t)
	for i, j := range jobs {
		there[i] = rig.Left{Store: rig.Directory(t, nil), DSN: otherDSN}
		started[i] = j.Start(t, o.w, there[i].Store, there[i].DSN, "--runner=prism")
	}
	ended(t, started...)
	for i, j := range jobs {
		j.Polite(t, o.w.Requests())
		here[i] = rig.Left{Store: rig.Directory(t, nil), DSN: dsn}
	}

	o.w.ResetLog()
	begin := time.Now()
	start := func(i int) *rig.Child {
		return jobs[i].Start(t, o.w, here[i].Store, here[i].DSN, o.s.args("PROCESS", 2)...)
	}
	dir := rig.Directory(t, o.files)
	ended(t, o.page.Submit(t, o.w, dir, o.localhost, "--concurrency=8", "--log-level=info"))
	t.Logf("%v: seed", time.Since(begin))
	started[0], started[1] = start(0), start(1)
	ended(t, started[1])
	started[2] = start(2)
	ended(t, started[0], started[2])
	t.Logf("%v", time.Since(begin))
	log := o.w.Requests()
	for i, j := range jobs {
		j.Same(t, here[i], there[i])
		j.Polite(t, log)
		state := rig.LastReport(t, here[i].Store).State
		assert.Equal(t, "done", state, "%v is %s, want done", j.Args, state)
	}
	got, want := rig.LastReport(t, dir), rig.LastReport(t, o.reference)
	if got.State != "done" || !maps.Equal(got.Counted(), want.Counted()) {
		t.Errorf("the seed job is %s with %v, want done with %v", got.State, got.Counted(), want.Counted())
	}
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, o.reference))
	rig.StoreCounted(t, dir)
	log = slices.DeleteFunc(log, func(r webtest.LoggedRequest) bool {
		return slices.ContainsFunc(jobs, func(j rig.Job) bool { return slices.Contains(j.Hosts, r.Host) })
	})
	all := managers[0].Output(t) + managers[1].Output(t)
	assert.Contains(t, all, `"event":"domain_collector_complete"`, "the TaskManagers' logs have nothing of their workers")
	rig.PausesKept(t, log, seedPause, false)
	rig.RobotsObeyed(t, o.w, log)
	requestedOnce(t, log)
}

// All hosts of the simulated web have one address: with --server-delay the workers of two
// TaskManagers together ask it for one thing at a time.
func (o onCluster) byServer(t *testing.T) {
	const pause = 10 * time.Millisecond
	files := rig.Bucket(40)
	reference, dir := rig.Directory(t, files), rig.Directory(t, files)
	o.w.Run(t, reference, "--runner=prism", "--concurrency=64")
	o.idle(t)
	o.w.ResetLog()
	begin := time.Now()
	run := o.seed(t, dir, "--server-delay="+pause.String())
	workers := 0
	rig.Eventually(t, "the end of the run", 4*time.Minute, func() bool {
		workers = max(workers, len(o.s.workers(t)))
		return run.Ended()
	})
	ended(t, run)
	t.Logf("%v", time.Since(begin))
	assert.Equal(t, 2, workers, "%d workers, want one for each TaskManager", workers)
	rig.Same(t, rig.Objects(t, dir), rig.Objects(t, reference))
	got, want := rig.LastReport(t, dir).Counted(), rig.LastReport(t, reference).Counted()
	assert.True(t, maps.Equal(got, want), "counts %v, on prism %v", got, want)
	log := slices.DeleteFunc(o.w.Requests(), func(r webtest.LoggedRequest) bool { return r.Method == "" })
	slices.SortFunc(log, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
	for i, r := range log[1:] {
		if gap := r.Start.Sub(log[i].End); gap < pause-time.Millisecond {
			t.Errorf("%s%s was asked %v after the answer of %s%s, want %v", r.Host, r.Path, gap, log[i].Host, log[i].Path, pause)
		}
	}
}

// ended waits for programs, which must end with 0.
func ended(t *testing.T, programs ...*rig.Child) {
	t.Helper()
	for _, c := range programs {
		if code := c.Wait(t, 6*time.Minute); code != 0 {
			t.Fatalf("%v: exit code %d, want 0:\n%s", c.Cmd.Args, code, rig.Tail(c.Output(t)))
		}
	}
}
