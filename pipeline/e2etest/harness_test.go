//go:build e2e

// The end-to-end tests run the real program as a child process against a
// simulated web in this one, so that they can kill it, see its exit code, and
// read from the server's log what it asked for.
package e2etest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// program is the binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	if os.Getenv(memoryFrom) != "" {
		return m.Run() // a child that runs the job in its own process
	}
	dir, err := os.MkdirTemp("", "seed-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "pipeline")
	build := exec.Command("go", "build", "-o", program, "../../cmd/pipeline")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// internet is a simulated web and the file with its CA.
type internet struct {
	*webtest.Web
	ca string
}

func startWeb(t testing.TB, o webtest.Options) internet {
	t.Helper()
	w := webtest.New(o)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, w.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return internet{w, ca}
}

// child is the program at work.
type child struct {
	cmd    *exec.Cmd
	out    string // file with standard output and error
	exited chan error
}

func (w internet) args(storeURL string, more ...string) []string {
	return append([]string{"--connect-to=" + w.Addr(), "--store=" + storeURL, "--host-delay=5ms", "--runner=direct",
		"--progress=off", "--log-level=warn"}, more...)
}

func (w internet) start(t testing.TB, storeURL string, more ...string) *child {
	t.Helper()
	return startChild(t, exec.Command(program, w.args(storeURL, more...)...), w.ca)
}

func startChild(t testing.TB, cmd *exec.Cmd, ca string) *child {
	t.Helper()
	// A file, not a pipe: a child of the child must not keep Wait from ending.
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca, "GORACE=")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, out: out.Name(), exited: make(chan error, 1)}
	go func() {
		c.exited <- errors.Join(cmd.Wait(), out.Close())
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, or it must
	return c
}

// wait gives the exit code; a child killed by a signal has -1.
func (c *child) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(limit):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the output
		<-c.exited
		t.Fatalf("the program did not end within %v:\n%s", limit, tail(c.output(t)))
	}
	return c.cmd.ProcessState.ExitCode()
}

func (c *child) output(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(c.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// run runs the program to its end and demands exit code 0.
func (w internet) run(t testing.TB, storeURL string, more ...string) *child {
	t.Helper()
	c := w.start(t, storeURL, more...)
	if code := c.wait(t, 2*time.Minute); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s", code, tail(c.output(t)))
	}
	return c
}

// peakRSS is the child's largest resident set in bytes.
func (c *child) peakRSS() int64 {
	return c.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
}

// bucket is a generated input.
type bucket struct {
	files   map[string][]byte
	domains map[string][]string // registrable domain → marks of every partition that asks
	inFile  map[string][]string // raw file → marks of its domains
}

// steadyKinds answer the same whenever and however often they are asked, and
// cost no time-out.
var steadyKinds = []string{"urlset", "index", "sitemap-gz", "rss", "atom", "text", "namespaced", "utf16", "wrong-type", "no-sitemap-line",
	"no-sitemap", "soft404", "euckr", "gzip", "br", "zstd", "no-robots", "robots-403", "robots-500", "robots-with-foreign-sitemap",
	"robots-bad-sitemap-lines", "disallow-all", "redirect-www", "redirect-http", "redirect-short", "redirect-loop", "redirect-private",
	"tls-refused", "tls-wrong-name"}

// generate spreads domains over files and partitions, each in one to four of
// them and some twice in one, with a bad record, a truncated file and a domain
// under two authorities.
func generate(domains int, kinds []string) bucket {
	b := bucket{files: map[string][]byte{}, domains: map[string][]string{}, inFile: map[string][]string{}}
	paths := []string{
		"country=sg/category=news/date=2026-01-28/raw_0001.json", "country=sg/category=news/date=2026-01-28/raw_0002.json",
		"country=sg/category=policy/date=2026-01-28/raw_0001.json", "country=kr/category=news/date=2026-01-29/raw_0001.json",
		"country=kr/category=news/date=2026-01-29/raw_0002.json", "country=de/category=education/date=2026-01-30/raw_0001.json",
		"country=gb/category=news/date=2026-01-30/raw_0001.json",
	}
	records := make([][]string, len(paths))
	ask := func(file int, domain, record string) {
		records[file] = append(records[file], record)
		key := "datasets/" + paths[file]
		raw, _ := hive.ParseRaw(key)
		mark := raw.Partition.DomainDir(domain) + "/domain_metadata.json.success"
		if !slices.Contains(b.domains[domain], mark) {
			b.domains[domain] = append(b.domains[domain], mark)
		}
		if !slices.Contains(b.inFile[key], mark) {
			b.inFile[key] = append(b.inFile[key], mark)
		}
	}
	for i := range domains {
		domain := fmt.Sprintf("%s-%d.com", kinds[i%len(kinds)], i+1)
		for n := range 1 + i%4 {
			file := (i*3 + n*5) % len(paths)
			ask(file, domain, fmt.Sprintf(`{"raw_url":"https://%s/about/%d"}`, domain, n))
			if i%5 == 0 {
				ask(file, domain, fmt.Sprintf(`{"raw_url":"http://www.%s/again"}`, domain))
			}
			if i%7 == 0 {
				cc := strings.TrimPrefix(paths[file][:10], "country=")
				ask(file, domain, fmt.Sprintf(`{"raw_url":"https://%s/","normalized_domain":"%[1]s","domain_id":"org:%s:%[1]s"}`, domain, cc))
			}
		}
	}
	records[2] = append(records[2], `{"raw_url":"https://10.0.0.1/"}`)
	for i, p := range paths {
		b.files["datasets/"+p] = []byte(`{"meta":{},"records":[` + strings.Join(records[i], ",\n") + `]}`)
	}
	b.files["datasets/country=gb/category=policy/date=2026-01-30/raw_0001.json"] = []byte(`{"records":[{"raw_url":"https://urlset-9999.com/"},{"raw_`)
	b.files["datasets/country=gb/category=policy/date=2026-01-30/raw_metadata.json"] = []byte(`{}`)
	return b
}

func openStore(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // every write has been confirmed
	return s
}

// put lays objects out in a store.
func put(t testing.TB, url string, files map[string][]byte) {
	t.Helper()
	s := openStore(t, url)
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if err := s.Put(t.Context(), key, bytes.NewReader(files[key]), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// directory makes a directory store with these objects.
func directory(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, files)
	return dir
}

func get(t testing.TB, s store.Store, key string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// volatile are the fields of a JSON object that may differ between two runs.
var volatile = regexp.MustCompile(`^(collected_at|fetched_at|response_ms|first_at|last_at|run_id|attempts)$`)

func settle(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if volatile.MatchString(k) {
				delete(v, k)
			} else {
				v[k] = settle(v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = settle(v[i])
		}
	}
	return v
}

// objects reads what a run leaves for its users: everything but the ledger's
// own state, without times.
func objects(t testing.TB, url string) map[string]string {
	t.Helper()
	s := openStore(t, url)
	out := map[string]string{}
	for o, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(o.Key, "runs/") || strings.HasPrefix(o.Key, "lease/") {
			continue
		}
		body := get(t, s, o.Key)
		if strings.HasSuffix(o.Key, "/domain_metadata.json") || strings.HasPrefix(o.Key, "dead-letters/") {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatalf("%s: %v", o.Key, err)
			}
			var err error
			if body, err = json.Marshal(settle(v)); err != nil {
				t.Fatal(err)
			}
		}
		out[o.Key] = string(body)
	}
	return out
}

// same compares two sets of objects by key and content.
func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	differ := 0
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		g, inGot := got[key]
		w, inWant := want[key]
		switch {
		case !inGot:
			t.Errorf("%s is missing", key)
		case !inWant:
			t.Errorf("%s is too many", key)
		case g != w:
			t.Errorf("%s differs:\n got %.600q\nwant %.600q", key, g, w)
		default:
			continue
		}
		if differ++; differ == 5 {
			t.Fatal("and maybe more")
		}
	}
}

// marks gives the completion marks in a store that hold: all, or those of the
// forced run that is going on.
func marks(t testing.TB, url string, forced bool) map[string]bool {
	t.Helper()
	s := openStore(t, url)
	var id string
	if forced {
		for o, err := range s.List(t.Context(), "force/seed/") {
			if err != nil {
				t.Fatal(err)
			}
			var f struct{ ID string }
			if err := json.Unmarshal(get(t, s, o.Key), &f); err != nil {
				t.Fatal(err)
			}
			id = f.ID
		}
		if id == "" {
			return nil // not begun, or complete: the next one begins anew
		}
	}
	out := map[string]bool{}
	for _, root := range []string{"datasets/", "processing/"} {
		for o, err := range s.List(t.Context(), root) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(o.Key, hive.Success) {
				continue
			}
			if forced {
				h, err := s.Head(t.Context(), o.Key)
				if err != nil {
					t.Fatal(err)
				}
				if h.Metadata["forced-by"] != id {
					continue
				}
			}
			out[o.Key] = true
		}
	}
	return out
}

// lastReport reads the newest run's report.
func lastReport(t testing.TB, url string) map[string]any {
	t.Helper()
	s := openStore(t, url)
	var newest string
	for o, err := range s.List(t.Context(), "runs/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.Key, "/report.json") {
			newest = max(newest, o.Key)
		}
	}
	if newest == "" {
		t.Fatal("there is no report in the store")
	}
	var r map[string]any
	if err := json.Unmarshal(get(t, s, newest), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually waits for a real process to get somewhere.
func eventually(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
