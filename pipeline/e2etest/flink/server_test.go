//go:build e2e

package flink

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// copyDependencies is Maven's goal that copies a project's jars to a folder.
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

// jars downloads the job server once for each test process, or takes it from Maven's own cache.
var jars = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("the Flink job server needs Java 17: %w", err)
	}
	dir, err := os.MkdirTemp("", "flink-job-server-")
	if err != nil {
		return "", err
	}
	pom, err := filepath.Abs("testdata/pom.xml")
	if err != nil {
		return "", err
	}
	lib := filepath.Join(dir, "lib")
	var out []byte
	for range 2 { // a download may fail once
		out, err = exec.Command("mvn", "-q", "-B", "-f", pom, copyDependencies, "-DincludeScope=runtime", "-DoutputDirectory="+lib).CombinedOutput()
		if err == nil {
			return lib, nil
		}
	}
	return "", errors.Join(fmt.Errorf("downloading the Flink job server with Maven: %w\n%s", err, rig.Tail(string(out))), os.RemoveAll(dir))
})

// server is a Flink job server with a cluster inside it.
type server struct {
	*rig.Child
	endpoint string
}

// startServer starts a server whose environment has the web's CA and env, as an
// operator would set it: workers do not see the launcher's environment.
func startServer(t testing.TB, w rig.Web, env ...string) server {
	t.Helper()
	return startServerFor(t, w, "[local]", env...)
}

// startServerFor starts a server that submits to the cluster at master.
func startServerFor(t testing.TB, w rig.Web, master string, env ...string) server {
	t.Helper()
	lib, err := jars()
	if err != nil {
		rig.Missing(t, err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	opens, err := filepath.Abs("testdata/java17.args")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", "@"+opens, "-Xmx512m", "-Djava.io.tmpdir="+t.TempDir(), "-cp", filepath.Join(lib, "*"),
		"org.apache.beam.runners.flink.FlinkJobServerDriver", "--flink-master="+master, "--job-host=localhost", "--job-port="+port,
		"--artifact-port=0", "--expansion-port=-1", "--artifacts-dir="+t.TempDir())
	cmd.Env = append(append(os.Environ(), "SSL_CERT_FILE="+w.CA), env...)
	s := server{rig.Start(t, cmd), "localhost:" + port}
	rig.Eventually(t, "the job server ready", 3*time.Minute, func() bool {
		return s.Ended() || strings.Contains(s.Output(t), "Job server now running")
	})
	if s.Ended() {
		t.Fatalf("the job server ended:\n%s", rig.Tail(s.Output(t)))
	}
	return s
}

// args returns the program's arguments for this server.
func (s server) args(environment string, parallelism int, more ...string) []string {
	return append([]string{"--runner=flink", "--endpoint=" + s.endpoint, "--environment_type=" + environment, fmt.Sprintf("--parallelism=%d", parallelism),
		"--shared-filesystem"}, more...)
}

// workers returns the processes of the program that the server started.
func (s server) workers(t testing.TB) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		var pid int
		if _, serr := fmt.Sscan(e.Name(), &pid); err != nil || serr != nil {
			continue
		}
		if arg := strings.Split(string(line), "\x00"); len(arg) > 1 && arg[0] == rig.Program && arg[1] == "--worker=true" {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(t testing.TB, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
