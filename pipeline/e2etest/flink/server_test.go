//go:build e2e

package flink

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/freeport"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// jars downloads the job server once for each test process, or takes it from Maven's own cache.
var jars = sync.OnceValues(func() (string, error) {
	page, err := rig.ReadPage("TestCluster")
	if err != nil {
		return "", err
	}
	dir, err := page.Jars()
	return filepath.Join(dir, "lib"), err
})

// server is a Flink job server with a cluster inside it.
type server struct {
	*rig.Child
	endpoint string
	ca       string // which the environment of its workers names
}

// startServer starts a server whose environment has the web's CA and env, as an
// operator would set it: workers do not see the launcher's environment.
func startServer(t testing.TB, w rig.Web, env ...string) server {
	t.Helper()
	lib, err := jars()
	if err != nil {
		rig.Missing(t, err)
	}
	ports, err := freeport.Find(1)
	require.NoError(t, err)
	port := ports[0]
	opens, err := filepath.Abs("testdata/java17.args")
	require.NoError(t, err)
	cmd := exec.Command("java", "@"+opens, "-Xmx512m", "-Djava.io.tmpdir="+t.TempDir(), "-cp", filepath.Join(lib, "*"),
		"org.apache.beam.runners.flink.FlinkJobServerDriver", "--flink-master=[local]", "--job-host=localhost", "--job-port="+port,
		"--artifact-port=0", "--expansion-port=-1", "--artifacts-dir="+t.TempDir())
	cmd.Env = append(append(os.Environ(), "SSL_CERT_FILE="+w.CA), env...)
	s := server{rig.Start(t, cmd), "localhost:" + port, w.CA}
	s.ready(t)
	return s
}

func (s server) ready(t testing.TB) {
	t.Helper()
	rig.Eventually(t, "the job server ready", 3*time.Minute, func() bool {
		return s.Ended() || strings.Contains(s.Output(t), "Job server now running")
	})
	if s.Ended() {
		t.Fatalf("the job server ended:\n%s", rig.Tail(s.Output(t)))
	}
}

// args returns the program's arguments for this server.
func (s server) args(environment string, parallelism int, more ...string) []string {
	return append([]string{"--runner=flink", "--endpoint=" + s.endpoint, "--environment_type=" + environment, fmt.Sprintf("--parallelism=%d", parallelism),
		"--shared-filesystem"}, more...)
}

// workers returns the processes of the program that the server's cluster started. Other tests have workers at the same time.
func (s server) workers(t testing.TB) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var pids []int
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		var pid int
		if _, serr := fmt.Sscan(e.Name(), &pid); err != nil || serr != nil {
			continue
		}
		if arg := strings.Split(string(line), "\x00"); len(arg) < 2 || arg[0] != rig.Program || arg[1] != "--worker=true" {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), "SSL_CERT_FILE="+s.ca) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(t testing.TB, pids []int) {
	t.Helper()
	for _, pid := range pids {
		err := syscall.Kill(pid, syscall.SIGKILL)
		require.True(t, err == nil || errors.Is(err, syscall.ESRCH), err)
	}
}
