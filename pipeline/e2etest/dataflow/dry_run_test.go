//go:build e2e

package dataflow

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// closedNetwork points everything in the environment that leads to a network to
// a listener that only counts the connections.
func closedNetwork(t *testing.T) (env []string, requested *atomic.Int64) {
	t.Helper()
	requested = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			requested.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	at := strings.TrimPrefix(s.URL, "http://")
	return []string{"HTTP_PROXY=" + s.URL, "HTTPS_PROXY=" + s.URL, "NO_PROXY=", "STORAGE_EMULATOR_HOST=" + at, "GCE_METADATA_HOST=" + at}, requested
}

// emptyHome is a folder and an environment in which all that the program writes would appear.
func emptyHome(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	return dir, []string{"HOME=" + dir, "TMPDIR=" + dir}
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestDryRun(t *testing.T) {
	const db = "--db=postgres://seed@db.example/seed"
	for name, c := range map[string]struct {
		more             []string
		workers, threads int64
	}{
		"seed":        {nil, 3, 4},
		"filters":     {[]string{"--country=sg", "--category=news", "--force"}, 3, 4},
		"watch":       {[]string{"--watch=1m"}, 3, 4},
		"stream":      {[]string{"--watch=1m", "--streaming"}, 3, 4},
		"migrate":     {[]string{"--job=migrate", "--dry-run=false", "--country=sg"}, 3, 4},
		"docs":        {[]string{"--job=docs", db}, 3, 4},
		"catalog":     {[]string{"--job=catalog", "--contact=https://example.org/", db}, 3, 4},
		"news":        {[]string{"--job=news", db, "--concurrency=24"}, 3, 4},
		"news by one": {[]string{"--job=news", db}, 1, 1}, // its --concurrency is 1
		"few slots":   {[]string{"--concurrency=7"}, 3, 2},
		"slow":        {[]string{"--rate=2.5"}, 2, 1},
		"autoscaling": {[]string{"--max_num_workers=32"}, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			network, requested := closedNetwork(t)
			dir, home := emptyHome(t)
			cmd := exec.Command(rig.Program, append(append(flags("gs://raw"), "--dry_run", "--log-format=text"), c.more...)...)
			cmd.Dir, cmd.Env = dir, environ(append(network, home...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Run(), "%s%s", &stdout, &stderr)
			f := form{streaming: name == "stream", workers: c.workers, threads: c.threads}
			if name == "autoscaling" {
				f.most = 32
			}
			checkJob(t, stdout.Bytes(), f)
			assert.Empty(t, stderr.String())
			assert.Zero(t, requested.Load(), "connections")
			requireEmpty(t, dir)
		})
	}
}

// A missing setting is reported in one line, before any request or write.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"runner":      {append(flags("gs://raw"), "--runner=prism", "--dry_run"), "pipeline: --dry_run prints Dataflow's job, but with prism it would be run; for a preview use --until=list or --until=extract\n"},
		"no preview":  {append(flags("gs://raw"), "--job=news", "--runner=prism", "--dry_run"), "pipeline: --dry_run prints Dataflow's job, but with prism it would be run; leave it out\n"},
		"run":         {append(flags("gs://raw"), "--dry_run", "--job=news", "--db=postgres://seed@db.example/seed", "--purge-expired"), "pipeline: --dry_run prints the job of a run, and these options start no run; leave --dry_run out\n"},
		"credentials": {flags("gs://raw"), "pipeline: --runner=dataflow needs Google credentials: set GOOGLE_APPLICATION_CREDENTIALS to a service account's file, or run `gcloud auth application-default login`: "},
	} {
		t.Run(name, func(t *testing.T) {
			network, requested := closedNetwork(t)
			network = append(network, "GOOGLE_APPLICATION_CREDENTIALS=/nowhere/key.json")
			dir, home := emptyHome(t)
			cmd := exec.Command(rig.Program, c.args...)
			cmd.Dir, cmd.Env = dir, environ(append(network, home...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.Error(t, cmd.Run())
			assert.Equal(t, 2, cmd.ProcessState.ExitCode())
			assert.Empty(t, stdout.String())
			assert.Truef(t, strings.HasPrefix(stderr.String(), c.want) && strings.Count(stderr.String(), "\n") == 1, "got %q\nwant %q", stderr.String(), c.want)
			assert.Zero(t, requested.Load(), "connections")
			requireEmpty(t, dir)
		})
	}
}
