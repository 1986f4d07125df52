//go:build e2e

package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/resident"
	"github.com/newsfork/seed-engine/pipeline/e2etest/sockets"
)

// Program is the binary under test, in the folder Programs. Main builds it.
var Program, Programs string

// Scratch is a folder that Main removes at the end.
var Scratch string

// JavaOptions is the variable of the options of every Java process. Main sets those for processes that end soon: what the
// second compiler and several threads of the garbage collector win comes after minutes; they took a third of the processor time.
const JavaOptions = "JAVA_TOOL_OPTIONS"

// Main builds the program and these others of cmd, unless the folder E2E_PROGRAMS has
// them, runs the tests and returns the exit code.
func Main(m *testing.M, more ...string) int {
	Hangup()
	dir, err := os.MkdirTemp("", "runner-e2e-")
	if err == nil {
		err = os.Setenv(JavaOptions, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	Scratch = dir
	Programs = os.Getenv("E2E_PROGRAMS")
	if Programs == "" {
		Programs = dir
		build := []string{"build", "-o", dir + "/"}
		for _, name := range append(more, "pipeline") {
			build = append(build, "github.com/newsfork/seed-engine/cmd/"+name)
		}
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
			return 1
		}
	}
	Program = filepath.Join(Programs, "pipeline")
	return m.Run()
}

// Hangup lets the programs under test receive SIGHUP where the tests themselves run under
// nohup: a program inherits that a signal is ignored, and not that it is caught.
func Hangup() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// Missing skips a test that needs something that this machine lacks, or fails it on CI.
func Missing(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Web is a simulated web and the file with its CA.
type Web struct {
	*webtest.Web
	CA     string
	Env    []string                        // of the commands, next to the environment of the test
	Before func(http.Handler) http.Handler // of the sites that a job adds, nil for nothing
}

// StartWeb starts a simulated web for the test.
func StartWeb(t testing.TB, o webtest.Options) Web {
	t.Helper()
	w := webtest.New(o)
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		assert.NoError(t, w.Close())
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, w.CAPEM(), 0o600))
	return Web{Web: w, CA: ca}
}

// Args returns the program's arguments for a run on a store against the web.
func (w Web) Args(storeURL string, more ...string) []string {
	return append([]string{"--connect-to=" + w.Addr(), "--store=" + storeURL, "--host-delay=5ms", "--progress=off", "--log-level=warn", "--log-format=json"}, more...)
}

// Start starts the program on a store against the web.
func (w Web) Start(t testing.TB, storeURL string, more ...string) *Child {
	t.Helper()
	cmd := exec.Command(Program, w.Args(storeURL, more...)...)
	cmd.Env = slices.Concat(os.Environ(), w.Env, []string{"SSL_CERT_FILE=" + w.CA})
	return Start(t, cmd)
}

// Run runs the program to its end, and fails unless the exit code is 0.
func (w Web) Run(t testing.TB, storeURL string, more ...string) *Child {
	t.Helper()
	c := w.Start(t, storeURL, more...)
	if code := c.Wait(t, 3*time.Minute); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s", code, Tail(c.Output(t)))
	}
	return c
}

// Child is a process of a program.
type Child struct {
	Cmd    *exec.Cmd
	out    string // file with standard output and error
	exited chan struct{}
	peak   int64 // bytes of resident memory, once it has exited
}

// killGroup kills a process group when its input ends, which the end of this process
// does too.
const killGroup = `cat >/dev/null; kill -s KILL -- -"$0" 2>/dev/null`

// Start starts a command whose output goes to a file. At the test's end it is
// killed with its children, also when the test process ends without its cleanup: by
// a timeout, a panic or a signal.
func Start(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out") // not a pipe: Wait would wait for children of the child too
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	c := &Child{Cmd: cmd, out: out.Name(), exited: make(chan struct{})}
	peak := resident.Watch(cmd.Process.Pid)
	go func() {
		_ = cmd.Wait() // callers look at the exit code
		c.peak = peak()
		_ = out.Close()
		close(c.exited)
	}()
	reaper := exec.Command("sh", "-c", killGroup, strconv.Itoa(cmd.Process.Pid))
	reaper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the test alone
	in, err := reaper.StdinPipe()
	if err := errors.Join(err, reaper.Start()); err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = reaper.Wait() // the group may have ended already
		<-c.exited
	})
	return c
}

// Ended reports whether the program has ended.
func (c *Child) Ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Kill kills the process alone, not its children.
func (c *Child) Kill(t testing.TB) {
	t.Helper()
	if err := c.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-c.exited
}

// KillAll kills the process and its children, as a machine that is lost does.
func (c *Child) KillAll(t testing.TB) {
	t.Helper()
	require.NoError(t, syscall.Kill(-c.Cmd.Process.Pid, syscall.SIGKILL))
	<-c.exited
}

// Wait returns the exit code, -1 for a child that a signal killed.
func (c *Child) Wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(limit):
		_ = c.Cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the output
		select {
		case <-c.exited:
		case <-time.After(5 * time.Second):
		}
		t.Fatalf("the program did not end within %v:\n%s", limit, Tail(c.Output(t)))
	}
	return c.Cmd.ProcessState.ExitCode()
}

// PeakRSS is the largest resident set of a program that has ended, in bytes.
func (c *Child) PeakRSS(t testing.TB) int64 {
	t.Helper()
	<-c.exited
	if c.peak == 0 {
		t.Fatal("this system does not tell the memory of a process: /proc/PID/status is missing")
	}
	return c.peak
}

// Output returns what the program has written so far.
func (c *Child) Output(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(c.out)
	require.NoError(t, err)
	return string(b)
}

// Tail returns the end of a long text.
func Tail(s string) string { return s[max(0, len(s)-6000):] }

// Eventually waits until real processes make ok true.
func Eventually(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// Bucket returns raw files in three partitions. Their domains, of which some are
// in two files, give the same responses at any time.
func Bucket(domains int) map[string]string {
	kinds := []string{"urlset", "index", "sitemap-gz", "no-sitemap", "no-robots", "robots-403", "robots-500", "redirect-www", "euckr", "disallow-all"}
	paths := []string{"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", "datasets/country=sg/category=news/date=2026-01-28/raw_0002.json",
		"datasets/country=kr/category=news/date=2026-01-29/raw_0001.json", "datasets/country=de/category=education/date=2026-01-30/raw_0001.json"}
	records := make([][]string, len(paths))
	for i := range domains {
		record := fmt.Sprintf(`{"raw_url":"https://%s-%d.com/"}`, kinds[i%len(kinds)], i+1)
		records[i%len(paths)] = append(records[i%len(paths)], record)
		if i%3 == 0 {
			records[(i+1)%len(paths)] = append(records[(i+1)%len(paths)], record)
		}
	}
	records[0] = append(records[0], `{"raw_url":"https://10.0.0.1/"}`)
	files := map[string]string{"datasets/country=de/category=news/date=2026-01-30/raw_0001.json": `{"records":[{"raw_url":"https://urlset-9999.com/"},{"raw_`}
	for i, p := range paths {
		files[p] = `{"meta":{},"records":[` + strings.Join(records[i], ",\n") + `]}`
	}
	return files
}

// Open opens a store for the test.
func Open(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // every write was confirmed
	return s
}

// Put writes objects to a store.
func Put(t testing.TB, url string, files map[string]string) {
	t.Helper()
	s := Open(t, url)
	for key, body := range files {
		require.NoError(t, s.Put(t.Context(), key, strings.NewReader(body), store.PutOptions{}))
	}
}

// Directory makes a directory store with these objects.
func Directory(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.Mkdir(dir, 0o755))
	Put(t, dir, files)
	return dir
}

// Get reads one object.
func Get(t testing.TB, s store.Store, key string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, errors.Join(err, r.Close()))
	return b
}

// Objects reads the results of a run: all objects except the state of the ledger,
// of pauses and of the server, and the table, which materialize makes objects of, without times and other values that differ between tries.
func Objects(t testing.TB, url string) map[string]string {
	t.Helper()
	s := Open(t, url)
	out := map[string]string{}
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		if root, _, _ := strings.Cut(o.Key, "/"); slices.Contains([]string{"runs", "lease", "pauses", "schedules", "schedule-settings", "providers", "removals", "reports",
			"alerts", "audit", "tables"}, root) {
			continue
		}
		body := Get(t, s, o.Key)
		if strings.HasSuffix(o.Key, ".json") && !strings.HasPrefix(o.Key, "datasets/") {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatalf("%s: %v", o.Key, err)
			}
			var err error
			if body, err = json.Marshal(normalize(v)); err != nil {
				t.Fatal(err)
			}
		}
		out[o.Key] = string(body)
	}
	return out
}

var volatile = []string{"collected_at", "fetched_at", "response_ms", "first_at", "last_at", "run_id", "earlier_run_ids", "attempts"}

func normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if slices.Contains(volatile, k) {
				delete(v, k)
			} else {
				v[k] = normalize(v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = normalize(v[i])
		}
	}
	return v
}

// Same compares two sets of objects by key and content.
func Same(t testing.TB, got, want map[string]string) {
	t.Helper()
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	differ := 0
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		g, inGot := got[key]
		w, inWant := want[key]
		if inGot && inWant && g == w {
			continue
		}
		t.Errorf("%s (exists: %t, wanted: %t):\n got %.400q\nwant %.400q", key, inGot, inWant, g, w)
		if differ++; differ == 5 {
			t.Fatal("there may be more differences")
		}
	}
	if len(want) == 0 {
		t.Error("nothing to compare")
	}
}

// Report is the part of a run report that the tests check.
type Report struct {
	RunID  string           `json:"run_id"`
	State  string           `json:"state"`
	Counts map[string]int64 `json:"counts"`
	HTTP   struct {
		Requests int64 `json:"requests"`
	} `json:"http"`
	Store      map[string]int64 `json:"store"`
	StoreBytes struct {
		Written int64 `json:"written"`
	} `json:"store_bytes"`
	Lanes []struct {
		Finished bool `json:"finished"`
	} `json:"lanes"`
}

// StoreCounted checks that a run's report counts the writes of all its processes: one
// for each object of its results, with its bytes.
func StoreCounted(t testing.TB, url string) {
	t.Helper()
	var objects, size int64
	for o, err := range Open(t, url).List(t.Context(), "processing/") {
		require.NoError(t, err)
		objects, size = objects+1, size+o.Size
	}
	r := LastReport(t, url)
	calls := r.Store["put"] + r.Store["put_if_absent"]
	t.Logf("%d writes of %d bytes; the results are %d objects of %d bytes", calls, r.StoreBytes.Written, objects, size)
	if objects == 0 || calls < objects || r.StoreBytes.Written < size {
		t.Errorf("the report counts %d writes of %d bytes, want those of %d objects of %d bytes at least", calls, r.StoreBytes.Written, objects, size)
	}
}

// Counted returns the counts that are not 0.
func (r Report) Counted() map[string]int64 {
	c := maps.Clone(r.Counts)
	maps.DeleteFunc(c, func(_ string, n int64) bool { return n == 0 })
	return c
}

// LastReport reads the newest run's report.
func LastReport(t testing.TB, url string) Report {
	t.Helper()
	s := Open(t, url)
	newest := ""
	for o, err := range s.List(t.Context(), "runs/") {
		require.NoError(t, err)
		if strings.HasSuffix(o.Key, "/report.json") {
			newest = max(newest, o.Key)
		}
	}
	if newest == "" {
		t.Fatal("there is no report in the store")
	}
	var r Report
	require.NoError(t, json.NewDecoder(bytes.NewReader(Get(t, s, newest))).Decode(&r))
	return r
}

// Materialize writes the objects of the table.
func Materialize(t testing.TB, store string) {
	t.Helper()
	if out, err := exec.Command(Program, "store", "materialize", "--store="+store).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// OneAtATime checks that no two workers visited a host at the same time.
func OneAtATime(t testing.TB, log []webtest.LoggedRequest) {
	t.Helper()
	by := map[string][]webtest.LoggedRequest{}
	for _, r := range log {
		by[strings.TrimPrefix(r.Host, "www.")] = append(by[strings.TrimPrefix(r.Host, "www.")], r)
	}
	for host, rs := range by {
		slices.SortFunc(rs, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
		for i, r := range rs[1:] {
			if r.Start.Before(rs[i].End) {
				t.Errorf("%s got a request for %s while %s was in flight", host, r.Path, rs[i].Path)
			}
		}
	}
}

// Sockets returns all sockets that receive data from others and that the program
// or its children have open at any time until done.
func (c *Child) Sockets(t testing.TB, done func() bool) (all []sockets.Socket) {
	t.Helper()
	seen := map[sockets.Socket]bool{}
	Eventually(t, "the work during which the sockets are observed", 3*time.Minute, func() bool {
		over := c.Ended() || done()
		found, err := sockets.Of(c.Cmd.Process.Pid)
		if err != nil {
			Missing(t, err)
		}
		for _, s := range found {
			seen[s] = true
		}
		return over
	})
	return slices.Collect(maps.Keys(seen))
}
