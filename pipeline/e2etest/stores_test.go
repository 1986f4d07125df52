//go:build e2e

package e2etest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestEveryStoreAndRunnerGivesTheSameObjects(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 5})
	b := generate(40, steadyKinds)
	s3 := buckettest.StartVersity(t)
	gcs := buckettest.StartGCS(t)
	want := uninterrupted(t, w, b)
	for _, c := range []struct{ name, url, args string }{
		{"directory, prism", "", "--runner=prism"},
		{"directory, direct, 16 lanes", "", "--runner=direct --lanes=16"},
		{"directory, prism, 16 lanes", "", "--runner=prism --lanes=16"},
		{"S3, direct", "s3://" + s3.Bucket + "/a?endpoint=" + s3.Endpoint + "&region=us-east-1", "--runner=direct"},
		{"S3, prism", "s3://" + s3.Bucket + "/b?endpoint=" + s3.Endpoint + "&region=us-east-1", "--runner=prism"},
		{"GCS, direct", "gs://" + gcs + "/a", "--runner=direct"},
		{"GCS, prism", "gs://" + gcs + "/b", "--runner=prism"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = rig.Directory(t, nil)
			}
			rig.Put(t, c.url, b.files)
			run(t, w, c.url, strings.Fields(c.args)...)
			rig.Same(t, rig.Objects(t, c.url), want)
			w.ResetLog()
			run(t, w, c.url, strings.Fields(c.args)...)
			assert.EqualValues(t, 0, len(w.Requests()))
			run(t, w, c.url, append(strings.Fields(c.args), "--force")...)
			assert.NotEqual(t, 0, len(w.Requests()), "a forced run sent no request")
			rig.Same(t, rig.Objects(t, c.url), want)
		})
	}
	for _, runner := range []string{"direct", "prism"} {
		t.Run("memory, "+runner, func(t *testing.T) {
			// A memory store ends with its process, so a copy of this test's
			// binary runs the job in its own process and copies the result to a directory.
			dir := rig.Directory(t, b.files)
			cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestInMemory$", "-test.count=1", "--"}, args(w, "mem://bucket", "--runner="+runner)...)...)
			cmd.Env = append(os.Environ(), memoryFrom+"="+dir, "SSL_CERT_FILE="+w.CA)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, rig.Tail(string(out)))
			}
			rig.Same(t, rig.Objects(t, dir), want)
		})
	}
}

// memoryFrom is the environment variable that names, for a child, the directory with its input.
const memoryFrom = "SEED_E2E_MEMORY_FROM"

func TestInMemory(t *testing.T) {
	dir := os.Getenv(memoryFrom)
	if dir == "" {
		return // only for the child of TestEveryStoreAndRunnerGivesTheSameObjects
	}
	copyObjects(t, rig.Open(t, "mem://bucket"), rig.Open(t, dir))
	_, args, _ := strings.Cut(strings.Join(os.Args, "\x00"), "\x00--\x00")
	require.EqualValues(t, 0, (cli.Program{}).Main(strings.Split(args, "\x00"), os.Stdout, os.Stderr))
	copyObjects(t, rig.Open(t, dir), rig.Open(t, "mem://bucket"))
}

func copyObjects(t *testing.T, to, from store.Store) {
	t.Helper()
	for o, err := range from.List(t.Context(), "") {
		require.NoError(t, err)
		require.NoError(t, to.Put(t.Context(), o.Key, bytes.NewReader(rig.Get(t, from, o.Key)), store.PutOptions{}))
	}
}

// faultyProxy is a proxy before an S3 server that fails calls while it is on.
type faultyProxy struct {
	on     atomic.Bool
	refuse string // every write to a key with this in it fails
	faults atomic.Int64
	proxy  *httputil.ReverseProxy
}

func (f *faultyProxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if !f.on.Load() {
		f.proxy.ServeHTTP(rw, r)
		return
	}
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, f.refuse) {
		f.faults.Add(1)
		http.Error(rw, "refused", http.StatusInternalServerError) // a 503 would be tried for a minute
		return
	}
	kind := rand.IntN(40)
	if kind < 4 {
		f.faults.Add(1)
	}
	switch kind {
	case 0:
		http.Error(rw, "unavailable", http.StatusServiceUnavailable)
	case 1:
		time.Sleep(300 * time.Millisecond)
		f.proxy.ServeHTTP(rw, r)
	case 2: // reset before the call
		reset(rw)
	case 3: // the call is done, its answer is lost
		f.proxy.ServeHTTP(discard{http.Header{}}, r)
		reset(rw)
	default:
		f.proxy.ServeHTTP(rw, r)
	}
}

func reset(rw http.ResponseWriter) {
	c, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0) // a plain close is a fault as well
	}
	_ = c.Close()
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestFaultyStoreLosesNothing(t *testing.T) {
	t.Parallel()
	w := rig.StartWeb(t, webtest.Options{Seed: 5})
	b := generate(40, steadyKinds)
	want := uninterrupted(t, w, b)
	s3 := buckettest.StartVersity(t)
	target, err := url.Parse(s3.Endpoint)
	require.NoError(t, err)
	const victim = "index-2.com"
	for layout, args := range map[string][]string{"objects": nil, "table": packed} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel() // each waits for a minute
			f := &faultyProxy{refuse: "/" + victim + "/domain_metadata.json", proxy: signedProxy(target)}
			front := newServer(t, f)
			behind := "s3://" + s3.Bucket + "/" + layout + "?endpoint=" + s3.Endpoint + "&region=us-east-1"
			before := "s3://" + s3.Bucket + "/" + layout + "?endpoint=" + front + "&region=us-east-1"
			rig.Put(t, behind, b.files)
			f.on.Store(true)
			f.faults.Store(0)
			child := start(t, w, before, args...)
			code := child.Wait(t, 3*time.Minute)
			f.on.Store(false)
			t.Logf("%d faults, exit code %d", f.faults.Load(), code)
			assert.NotEqual(t, int64(0), f.faults.Load(), "no call failed, so the test proves nothing")
			if want := map[bool]int{true: 1, false: 0}[args == nil]; code != want { // packed results have no object for the victim
				t.Errorf("exit code %d, want %d\n%s", code, want, rig.Tail(child.Output(t)))
			}
			if out := child.Output(t); args == nil && !strings.Contains(out, "the store did not take all results") {
				t.Errorf("no line says that results are missing:\n%s", rig.Tail(out))
			}
			marked := marks(t, behind, false)
			deadLettered := deadLetterKeys(t, behind, "store_failed")
			if args == nil { // a segment that failed has one dead letter, until the lane's next one
				for domain, asks := range b.domains {
					for _, mark := range asks {
						key := strings.TrimSuffix(mark, ".success")
						if marked[mark] == deadLettered[key] {
							t.Errorf("%s: marked %t, dead letter %t, want one of them", domain, marked[mark], deadLettered[key])
						}
					}
				}
				for _, mark := range b.domains[victim] {
					if !deadLettered[strings.TrimSuffix(mark, ".success")] {
						t.Errorf("%s could not be stored and has no dead letter", mark)
					}
				}
			}
			for file, domains := range b.inFile {
				for _, mark := range domains {
					assert.True(t, !marked[file+".success"] || marked[mark], "%s was marked, though %s was not", file, mark)
				}
			}
			run(t, w, before, args...)
			if args != nil {
				rig.Materialize(t, behind)
			}
			rig.Same(t, rig.Objects(t, behind), want)
			left := deadLetterKeys(t, behind, "store_failed")
			assert.Len(t, left, 0, "dead letters remain after the success: %v", left)
		})
	}
}

// deadLetterKeys returns the keys of the dead letters of a kind.
func deadLetterKeys(t *testing.T, url, kind string) map[string]bool {
	t.Helper()
	s := rig.Open(t, url)
	out := map[string]bool{}
	for o, err := range s.List(t.Context(), "dead-letters/seed/") {
		require.NoError(t, err)
		var d struct {
			Kind  string
			Input struct{ Key string }
		}
		require.NoError(t, json.Unmarshal(rig.Get(t, s, o.Key), &d))
		if d.Kind == kind {
			out[d.Input.Key] = true
		}
	}
	return out
}

func newServer(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
