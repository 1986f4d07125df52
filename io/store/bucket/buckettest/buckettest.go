// Package buckettest starts the servers of buckets that tests run against. No promise: see docs/library.md.
package buckettest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"golang.org/x/sys/unix"

	"github.com/newsfork/seed-engine/io/freeport"
	_ "github.com/newsfork/seed-engine/io/store/bucket" // so that the tests can open them
)

// versityVersion is the S3 gateway that the suite runs against.
const versityVersion = "v1.8.0"

// S3 is a running S3 server with one empty bucket.
type S3 struct{ Endpoint, AccessKey, SecretKey, Bucket string }

// StartVersity starts versitygw on a free port of 127.0.0.1 for the time of the
// test, and sets the AWS variables of the process to its credentials. Where it cannot be
// installed the test is skipped, or fails when CI=true.
func StartVersity(t testing.TB) S3 {
	t.Helper()
	bin, err := installVersity()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	data := t.TempDir()
	s := S3{AccessKey: "test-access", SecretKey: "test-secret-key", Bucket: "bucket"}
	// To the gateway each folder of its root is a bucket.
	if err := os.MkdirAll(filepath.Join(data, s.Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + ports[0]
	s.Endpoint = "http://" + addr
	args := []string{"--port", addr, "--access", s.AccessKey, "--secret", s.SecretKey, "--health", "/health", "--quiet", "posix"}
	if unix.Setxattr(data, "user.seed", []byte("x"), 0) != nil {
		args = append(args, "--sidecar", t.TempDir())
	}
	var out bytes.Buffer
	cmd := exec.Command(bin, append(args, data)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = cmd.Process.Kill() // an error if it has already exited
			<-ended                //nolint:errcheck // "signal: killed"
		}
	})
	if err := answers(s.Endpoint, ended); err != nil {
		stopped = errors.Is(err, errEnded)
		t.Fatalf("versitygw at %s: %v\n%s", s.Endpoint, err, out.String())
	}
	// Every gateway has these, and t.Setenv forbids tests in parallel.
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey, "AWS_SESSION_TOKEN": ""} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var errEnded = errors.New("it ended")

// answers waits until a gateway answers.
func answers(endpoint string, ended <-chan error) error {
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if r, err := client.Get(endpoint + "/health"); err == nil {
			return r.Body.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%w: %w", errEnded, err)
		case <-time.After(20 * time.Millisecond): // a real process, a real wait
		}
		if time.Now().After(deadline) {
			return errors.New("it did not answer within 20 s")
		}
	}
}

// installVersity installs the gateway once, in the user's cache.
var installVersity = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache for versitygw: %w", err)
	}
	dir := filepath.Join(cache, "seed-engine", "bin")
	bin := filepath.Join(dir, "versitygw")
	if out, err := exec.Command("go", "version", "-m", bin).Output(); err == nil && strings.Contains(string(out), versityVersion) {
		return bin, nil
	}
	cmd := exec.Command("go", "install", "github.com/versity/versitygw/cmd/versitygw@"+versityVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing versitygw, which these tests need: %w\n%s", err, out)
	}
	return bin, nil
})

// StartGCS starts fake-gcs-server in this process for the time of the test, sets
// STORAGE_EMULATOR_HOST to it, and returns the name of an empty bucket.
func StartGCS(t testing.TB) (bucket string) {
	t.Helper()
	s, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "bucket"})
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(s.URL(), "http://"))
	return "bucket"
}
